"""What is about asyncio alone: calls that are cancelled, tasks that are too many, a consumer that stops."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from kafka import AcknowledgeType, TopicPartition
from kafka.aio import AIOKafkaShareConsumer
from kafka.broker import Broker
from kafka.errors import ConsumerStoppedError, IllegalStateError

from .conftest import GROUP

JOBS = TopicPartition("jobs", 0)


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(main(), 60))


def consumer(broker: Broker, **configs: Any) -> AIOKafkaShareConsumer[Any, Any]:
    chosen: dict[str, Any] = {"share_acknowledgement_mode": "explicit", **configs}
    return AIOKafkaShareConsumer("jobs", bootstrap_servers=broker.bootstrap_servers, group_id=GROUP, **chosen)


async def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        await asyncio.sleep(0.01)


def fetches(broker: Broker) -> int:
    return sum(seen.name == "ShareFetch" for seen in broker.requests)


def test_a_cancelled_poll_has_taken_nothing_and_the_next_one_returns_what_came(broker: Broker) -> None:
    async def main() -> None:
        async with consumer(broker, fetch_max_wait_ms=30_000) as one:
            polling = asyncio.create_task(one.poll(60_000))
            await until(lambda: fetches(broker) > 0)
            polling.cancel()
            with pytest.raises(asyncio.CancelledError):
                await polling
            broker.append("jobs", "a")  # the fetch that is under way acquires it
            await until(lambda: broker.share_records(GROUP, "jobs") != {})
            assert await one.commit() == {}
            (record,) = (await one.poll(30_000))[JOBS]
            assert record.delivery_count == 1
            one.acknowledge(record)
            assert await one.commit() == {JOBS: None}

    run(main)


def test_records_of_a_cancelled_iteration_are_released_by_stop(broker: Broker) -> None:
    async def main() -> None:
        async with consumer(broker, fetch_max_wait_ms=30_000) as one:
            waiting = asyncio.create_task(one.__anext__())
            await until(lambda: fetches(broker) > 0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            broker.append("jobs", "a")
            await until(lambda: broker.share_records(GROUP, "jobs") != {})
        assert broker.share_records(GROUP, "jobs")[0].state == "available"

    run(main)


def test_a_commit_that_is_cancelled_is_sent_and_its_outcome_is_reported(broker: Broker) -> None:
    async def main() -> None:
        broker.append("jobs", "a")
        heard: list[Any] = []
        async with consumer(broker) as one:
            one.set_acknowledgement_commit_callback(lambda offsets, error: heard.append((offsets, error)))
            (record,) = (await one.poll(30_000))[JOBS]
            one.acknowledge(record)
            committing = asyncio.create_task(one.commit())
            await asyncio.sleep(0)
            committing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await committing
            await until(lambda: broker.share_records(GROUP, "jobs") == {})
            assert await one.poll(50) == {}
            assert heard == [({JOBS: {0}}, None)]

    run(main)


def test_one_task_at_a_time_takes_records(broker: Broker) -> None:
    async def main() -> None:
        async with consumer(broker) as one:
            polling = asyncio.create_task(one.poll(60_000))
            await asyncio.sleep(0)
            with pytest.raises(IllegalStateError, match="Another task"):
                await one.poll()
            polling.cancel()

    run(main)


def test_stop_ends_a_poll_and_an_iteration(broker: Broker) -> None:
    async def main() -> None:
        async def work(member: AIOKafkaShareConsumer[Any, Any]) -> None:
            async for _ in member:
                raise AssertionError("there is no record")

        async with consumer(broker) as other:
            working = asyncio.create_task(work(other))
            await until(lambda: fetches(broker) > 0)
        await working
        broker.forget_requests()
        one = consumer(broker)
        with pytest.raises(IllegalStateError, match="start"):
            await one.poll()
        await one.start()
        polling = asyncio.create_task(one.poll(60_000))
        await until(lambda: fetches(broker) > 0)
        await one.stop()
        with pytest.raises(ConsumerStoppedError):
            await polling
        with pytest.raises(ConsumerStoppedError):
            await one.poll()

    run(main)


def test_a_fetch_that_waits_at_the_broker_does_not_keep_stop_from_leaving_the_group(broker: Broker) -> None:
    async def main() -> None:
        one = consumer(broker, fetch_max_wait_ms=30_000)
        await one.start()
        polling = asyncio.create_task(one.poll(60_000))
        await until(lambda: fetches(broker) > 0)
        polling.cancel()
        await asyncio.wait({polling})
        await one.stop(timeout=4)
        heartbeats = [seen.request for seen in broker.requests if seen.name == "ShareGroupHeartbeat"]
        assert heartbeats[-1].member_epoch == -1

    run(main)


def test_a_cancelled_worker_releases_its_record(broker: Broker) -> None:
    async def main() -> None:
        broker.append("jobs", "a")
        async with consumer(broker) as one:
            begun = asyncio.Event()

            async def work() -> None:
                async for record in one:
                    with one.processing(record):
                        begun.set()
                        await asyncio.sleep(60)

            worker = asyncio.create_task(work())
            await begun.wait()
            worker.cancel()
            with pytest.raises(asyncio.CancelledError):
                await worker
            assert await one.commit() == {JOBS: None}
            record = await one.__anext__()
            assert record.delivery_count == 2
            one.acknowledge(record, AcknowledgeType.ACCEPT)

    run(main)
