"""The calls of a consumer, driven in a thread and in a task of asyncio."""

from __future__ import annotations

import asyncio
import warnings
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from kafka._core.client import make_client
from kafka._runtime.application import Application
from kafka._runtime.loop import Loop
from kafka._runtime.network_thread import complete
from kafka.config import resolve
from kafka.consumer.core import ConsumerCore
from kafka.consumer.subscription_state import SubscriptionState
from kafka.errors import CoordinatorLoadInProgressError, KafkaTimeoutError, WakeupError
from kafka.structs import OffsetAndMetadata, TopicPartition
from test.unit.consumer.scripted import SILENCE, T0, T1, Cluster, HereDriver, InTaskDriver

FOREVER = float("inf")
Story = Callable[[ConsumerCore], Coroutine[Any, Any, Any]]


def make_core(cluster: Cluster, application: Callable[[Loop], Application], **configs: Any) -> ConsumerCore:
    config = resolve(
        "consumer", {"bootstrap_servers": "b0", "auto_offset_reset": "earliest", "client_id": "c", **configs}
    )
    client = make_client(config, cluster.network.environment())
    cluster.loop = client.loop
    return ConsumerCore(config, client, application(client.loop), SubscriptionState())


async def lived(core: ConsumerCore, story: Story) -> Any:
    """Start a consumer, live through a story, close the consumer."""
    await core.start()
    try:
        return await story(core)
    finally:
        await core.close(5.0)


def in_a_thread(cluster: Cluster, story: Story, **configs: Any) -> Any:
    core = make_core(cluster, HereDriver, **configs)  # type: ignore[arg-type]
    return complete(lived(core, story))


def in_a_task(cluster: Cluster, story: Story, **configs: Any) -> Any:
    async def main() -> Any:
        core = make_core(cluster, InTaskDriver, **configs)  # type: ignore[arg-type]
        outcome = await lived(core, story)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return outcome

    return asyncio.run(main())


@pytest.fixture(params=[in_a_thread, in_a_task])
def live(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(autouse=True)
def all_is_closed(cluster: Cluster) -> Any:
    yield
    assert not cluster.network.open_sockets


async def taken(core: ConsumerCore, count: int) -> list[int]:
    """Poll until there are `count` records; return their offsets."""
    found: list[int] = []
    while len(found) < count:
        for records in (await core.poll(core.take, 500, core.deadline(1.0), {})).values():
            found += [record.offset for record in records]
    return found


# Both ways to wait…


def test_the_same_calls_run_in_a_thread_and_in_a_task(cluster: Cluster, live: Any) -> None:
    cluster.fill(10)
    cluster.fill(5, T1)
    heard: list[Any] = []

    class Listener:
        def on_partitions_assigned(self, assigned: Any) -> None:
            heard.append(("assigned", sorted(assigned)))

        def on_partitions_revoked(self, revoked: Any) -> None:
            heard.append(("revoked", sorted(revoked)))

    async def story(core: ConsumerCore) -> list[object]:
        core.subscription.subscribe(["t"], listener=Listener())
        seen: list[object] = [sorted(await taken(core, 15))]
        seen.append(await core.position(T0, core.deadline(5)))
        await core.commit({T0: OffsetAndMetadata(7)}, core.deadline(5))
        seen.append((await core.committed([T0, T1], core.deadline(5)))[T0])
        seen.append({tp: at.offset for tp, at in (await core.find_offsets({T0: -1}, core.deadline(5))).items()})
        seen.append(await core.list_topics(core.deadline(5)))
        seen.append(await core.partitions_for_topic("t", core.deadline(5)))
        seen.append(await core.poll(core.take, 1, core.deadline(0), {}))
        return seen

    seen = live(cluster, story, group_id="g", enable_auto_commit=False)
    assert seen == [
        sorted([*range(10), *range(5)]),
        10,
        OffsetAndMetadata(7),
        {T0: 10},
        {"t"},
        {0, 1},
        {},
    ]
    assert heard == [("revoked", []), ("assigned", [T0, T1]), ("revoked", [T0, T1])]
    assert cluster.committed == {T0: 7}
    assert len(cluster.asked("LeaveGroup")) == 1


def test_columns_and_chunks_come_in_both(cluster: Cluster, live: Any) -> None:
    cluster.fill(10)

    async def story(core: ConsumerCore) -> tuple[int, list[int]]:
        core.subscription.assign_by_user([T0])
        columns = await core.poll(core.take_columns, 10, core.deadline(5), {})
        core.subscription.seek(T0, 4)
        chunk = await core.poll(core.take_chunk, 100, core.deadline(5), None)
        assert chunk is not None
        return len(columns[T0]), [record.offset for record in chunk.records]

    assert live(cluster, story) == (10, [4, 5, 6, 7, 8, 9])


def test_a_deadline_ends_a_wait_in_both(cluster: Cluster, live: Any) -> None:
    cluster.script["ListOffsets"] = deque([SILENCE] * 100)

    async def story(core: ConsumerCore) -> str:
        core.subscription.assign_by_user([T0])
        assert await core.poll(core.take, 1, core.deadline(0.1), {}) == {}
        with pytest.raises(KafkaTimeoutError) as caught:
            await core.position(T0, core.deadline(3))
        return str(caught.value)

    assert live(cluster, story) == "finding the position of t-0 took too long"


def test_wakeup_ends_a_wait_in_both(cluster: Cluster, live: Any) -> None:
    async def story(core: ConsumerCore) -> None:
        core.subscription.assign_by_user([T0])
        core.loop.call_later(1.0, core.wakeup)
        with pytest.raises(WakeupError):
            await core.poll(core.take, 1, FOREVER, {})

    live(cluster, story)


def test_position_neither_ends_with_a_wakeup_nor_uses_it_up_in_both(cluster: Cluster, live: Any) -> None:
    async def story(core: ConsumerCore) -> None:
        core.subscription.assign_by_user([T0])
        core.wakeup()
        assert await core.position(T0, core.deadline(5)) == 0  # it is looked up
        assert await core.position(T0, core.deadline(5)) == 0
        with pytest.raises(WakeupError):
            await core.poll(core.take, 1, FOREVER, {})

    live(cluster, story)


def test_partitions_are_assigned_without_a_group_in_both(cluster: Cluster, live: Any) -> None:
    cluster.fill(3)

    async def story(core: ConsumerCore) -> set[TopicPartition]:
        core.subscription.subscribe(["t"])
        await taken(core, 3)
        return core.subscription.assigned()

    assert live(cluster, story) == {T0, T1}


# Only asyncio cancels…


async def steps(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_a_poll_that_is_cancelled_at_any_step_loses_and_repeats_nothing(cluster: Cluster) -> None:
    async def story(core: ConsumerCore) -> list[int]:
        core.subscription.assign_by_user([T0])
        found: list[int] = []
        for at in range(60):
            cluster.fill(3)
            polling = asyncio.ensure_future(core.poll(core.take, 2, core.deadline(0.2), {}))
            await steps(at % 20)
            polling.cancel()
            try:
                records = await polling
            except asyncio.CancelledError:
                continue
            found += [record.offset for record in records.get(T0, ())]
        return found + await taken(core, 180 - len(found))

    assert in_a_task(cluster, story) == list(range(180))


def test_a_commit_whose_wait_is_cancelled_is_retried(cluster: Cluster) -> None:
    cluster.script["OffsetCommit"] = deque([CoordinatorLoadInProgressError.errno])

    async def story(core: ConsumerCore) -> None:
        core.subscription.assign_by_user([T0])
        await core.position(T0, core.deadline(5))
        committing = asyncio.ensure_future(core.commit({T0: OffsetAndMetadata(5)}, core.deadline(5)))
        while not cluster.asked("OffsetCommit"):
            await asyncio.sleep(0)
        committing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await committing
        assert T0 not in cluster.committed
        await core.poll(core.take, 1, core.deadline(1.0), {})
        assert cluster.committed == {T0: 5}

    in_a_task(cluster, story, group_id="g", enable_auto_commit=False)


class SlowListener:
    """Takes some steps of asyncio for each call."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ended: list[str] = []

    async def on_partitions_assigned(self, assigned: Any) -> None:
        await self._call("assigned")

    async def on_partitions_revoked(self, revoked: Any) -> None:
        await self._call("revoked")

    async def _call(self, what: str) -> None:
        self.begun.append(what)
        await steps(5)
        self.ended.append(what)


def test_a_listener_of_coroutine_functions_is_awaited(cluster: Cluster) -> None:
    cluster.fill(3)
    listener = SlowListener()

    async def story(core: ConsumerCore) -> None:
        core.subscription.subscribe(["t"], listener=listener)
        await taken(core, 3)
        assert listener.ended == ["revoked", "assigned"]

    in_a_task(cluster, story, group_id="g")
    assert listener.ended == ["revoked", "assigned", "revoked"]


def test_a_cancelled_poll_lets_the_listener_end_first(cluster: Cluster) -> None:
    cluster.fill(3)
    listener = SlowListener()

    async def story(core: ConsumerCore) -> None:
        core.subscription.subscribe(["t"], listener=listener)
        polling = asyncio.ensure_future(core.poll(core.take, 500, core.deadline(5), {}))
        while "assigned" not in listener.begun:
            await asyncio.sleep(0)
        polling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await polling
        assert listener.ended == ["revoked", "assigned"]
        assert await taken(core, 3) == [0, 1, 2]

    in_a_task(cluster, story, group_id="g")


def test_calls_of_several_tasks_may_wait_at_the_same_time(cluster: Cluster) -> None:
    cluster.fill(3)

    async def story(core: ConsumerCore) -> tuple[int, int, list[int]]:
        core.subscription.assign_by_user([T0, T1])
        deadline = core.deadline(5)
        first, second, records = await asyncio.gather(
            core.position(T0, deadline), core.position(T1, deadline), taken(core, 3)
        )
        return first, second, records

    assert in_a_task(cluster, story)[1:] == (0, [0, 1, 2])


def test_a_cancelled_close_closes(cluster: Cluster) -> None:
    cluster.fill(3)

    async def story(core: ConsumerCore) -> None:
        core.subscription.subscribe(["t"])
        await taken(core, 3)
        cluster.go_silent()
        closing = asyncio.ensure_future(core.close(30.0))
        await steps(3)
        began = cluster.now
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        assert core.closed
        assert cluster.now - began < 3

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        in_a_task(cluster, story, group_id="g")
