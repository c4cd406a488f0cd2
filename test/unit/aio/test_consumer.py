"""An asyncio consumer as a member of its group, in virtual time beside a scripted broker."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kafka.aio import AIOKafkaConsumer
from kafka.coordinator.states import MemberState
from kafka.errors import CommitFailedError
from kafka.testing import SILENCE
from test.unit.aio.virtual import live_in, run
from test.unit.consumer.scripted import T0, Cluster

Story = Callable[[AIOKafkaConsumer], Awaitable[None]]


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def make(cluster: Cluster, **options: Any) -> AIOKafkaConsumer:
    """Make a consumer of the cluster that is not started."""
    chosen = {"bootstrap_servers": "b0", "auto_offset_reset": "earliest", "group_id": "g", **options}
    consumer: AIOKafkaConsumer = live_in(cluster.network, AIOKafkaConsumer("t", **chosen))
    opened = consumer._open

    def open_here() -> Any:
        cluster.loop = opened()
        return cluster.loop

    consumer._open = open_here  # type: ignore[method-assign]
    return consumer


def live(cluster: Cluster, story: Story, **options: Any) -> None:
    """Run a story of a consumer that is started, and see that it leaves nothing."""

    async def main() -> None:
        consumer = make(cluster, **options)
        async with consumer:
            await story(consumer)

    run(cluster.network, main())
    assert not cluster.network.open_sockets


def state(consumer: AIOKafkaConsumer) -> MemberState:
    return consumer._core.check_group().membership.state


POLLED = {"max_poll_interval_ms": 5000, "session_timeout_ms": 4000, "heartbeat_interval_ms": 1000}


@pytest.mark.parametrize("how", ["getone", "iteration"])
def test_an_application_that_takes_a_record_within_each_max_poll_interval_is_not_stuck(
    cluster: Cluster, how: str
) -> None:
    cluster.fill(100)

    async def story(consumer: AIOKafkaConsumer) -> None:
        records = consumer.__aiter__()
        for offset in range(20):
            record = await (consumer.getone() if how == "getone" else records.__anext__())
            assert record.offset == offset
            await asyncio.sleep(4)
        assert state(consumer) is MemberState.STABLE
        await asyncio.sleep(10)
        assert state(consumer) is MemberState.LEFT, "it takes no records any more"

    live(cluster, story, **POLLED)
    assert len(cluster.asked("JoinGroup")) == 1


@pytest.mark.parametrize("how", ["subscribe", "unsubscribe, subscribe", "unsubscribe"])
def test_a_subscription_that_changes_while_the_member_is_out_of_the_group_for_max_poll_interval(
    cluster: Cluster, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.fill(3)

    async def story(consumer: AIOKafkaConsumer) -> None:
        assert (await consumer.getone()).offset == 0
        await asyncio.sleep(8)
        assert state(consumer) is MemberState.LEFT
        if how.startswith("unsubscribe"):
            consumer.unsubscribe()
        if how.rsplit(maxsplit=1)[-1] == "subscribe":
            consumer.subscribe(["t", "u"])
        await asyncio.sleep(1)
        left = MemberState.LEFT if how == "subscribe" else MemberState.UNJOINED
        joined = how == "unsubscribe, subscribe"
        assert state(consumer) is (MemberState.STABLE if joined else left)
        if how.rsplit(maxsplit=1)[-1] == "subscribe":
            assert (await consumer.getone()).offset == 0
            assert state(consumer) is MemberState.STABLE
        caplog.clear()
        consumer.unsubscribe()
        await asyncio.sleep(60)
        assert "max_poll_interval_ms" not in caplog.text

    live(cluster, story, enable_auto_commit=False, **POLLED)


@pytest.mark.parametrize("code", [27, 25], ids=["rebalance", "removed"])
def test_a_commit_fails_once_after_partitions_were_taken_away_before_their_offsets_were_stored(
    cluster: Cluster, code: int
) -> None:
    cluster.fill(10)

    async def story(consumer: AIOKafkaConsumer) -> None:
        for offset in range(5):
            assert (await consumer.getone()).offset == offset
        cluster.script["Heartbeat"] = deque([code])
        await asyncio.sleep(3)
        assert len(cluster.asked("JoinGroup")) == 2, "the group has rebalanced while the application was busy"
        with pytest.raises(CommitFailedError, match="cannot be committed: t-0 "):
            await consumer.commit()
        assert (await consumer.getone()).offset == 0
        await consumer.commit()
        assert cluster.committed[T0] == 1

    live(cluster, story, enable_auto_commit=False, heartbeat_interval_ms=1000)


@pytest.mark.parametrize("call", ["start", "getone"])
def test_a_call_that_waits_while_the_member_leaves_because_of_max_poll_interval_joins_again(
    cluster: Cluster, call: str
) -> None:
    cluster.assigns = []
    if call == "start":
        cluster.script["JoinGroup"] = deque([SILENCE])

    async def main() -> None:
        consumer = make(cluster, request_timeout_ms=300_000)
        starting = asyncio.ensure_future(consumer.start())
        if call == "getone":
            await starting
            waiting: asyncio.Future[Any] = asyncio.ensure_future(consumer.getone())
        await asyncio.sleep(1)
        member = consumer._core.check_group().membership
        member.loop.call_soon(member._poll_timed_out)
        await asyncio.sleep(5)
        assert state(consumer) is MemberState.STABLE
        assert len(cluster.asked("JoinGroup")) >= 2
        await starting
        if call == "getone":
            waiting.cancel()
        await consumer.stop()

    run(cluster.network, main())
