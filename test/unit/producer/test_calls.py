"""kafka.producer.calls: the same coroutines below a synchronous face and in tasks of asyncio, waiting for memory."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from kafka._runtime.network_thread import complete
from kafka.errors import BufferExhaustedError, IllegalStateError, KafkaTimeoutError
from kafka.producer.asyncio_future import AsyncRecordFuture
from kafka.producer.calls import ProducerCalls
from kafka.producer.future import FutureRecordMetadata
from kafka.protocol.commit import FindCoordinatorResponse
from kafka.protocol.transaction import AddPartitionsToTxnResponse
from test.unit.producer.asyncio_cluster import asyncio_calls
from test.unit.producer.memory_cluster import Cluster

TRANSACTIONAL = {"transactional_id": "t", "enable_idempotence": True}


def transactional_cluster() -> Cluster:
    cluster = Cluster({"events": 1})
    for broker in cluster.brokers:
        coordinator = FindCoordinatorResponse.Coordinator(key="t", node_id=0, host="b0", port=9092)
        broker.on("FindCoordinator", {"coordinators": [coordinator]})
        broker.on("AddPartitionsToTxn", add_partitions)
        broker.on("EndTxn", {})
    return cluster


def add_partitions(request: Any, _session: Any) -> Any:
    reply: Any = AddPartitionsToTxnResponse
    return {
        "results_by_topic_v3_and_below": [
            reply.AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    reply.AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=0)
                    for index in topic.partitions
                ],
            )
            for topic in request.v3_and_below_topics
        ]
    }


async def a_transaction(calls: ProducerCalls[Any]) -> list[object]:
    """All that waits: metadata, partitions, a flush, a transaction."""
    await calls.init_transactions()
    await calls.begin_transaction()
    sent = calls.send("events", b"one", None, None, None, 7)
    future = sent if not asyncio.iscoroutine(sent) else await sent
    await calls.flush()
    many = await calls.send_many("events", [b"two", b"three"])
    await calls.commit_transaction()
    with pytest.raises(IllegalStateError, match="no transaction is open"):
        calls.send("events", b"late", None, None, None, None)
    return [
        future.done(),
        [each.done() for each in many],
        future._look()[2].base_offset,
        await calls.partitions_for("events"),
        (await calls.current_health())["transaction"]["state"],
        await calls.purge(),
    ]


EXPECTED = [True, [True, True], 0, {0}, "ready", 0]


def test_the_calls_run_in_the_thread_that_uses_a_synchronous_producer(make_producer: Any) -> None:
    producer = make_producer(transactional_cluster(), **TRANSACTIONAL)
    assert complete(a_transaction(producer._calls)) == EXPECTED


def test_the_same_calls_are_awaited_in_a_task_of_asyncio() -> None:
    async def main() -> list[object]:
        async with asyncio_calls(transactional_cluster(), **TRANSACTIONAL) as calls:
            return await a_transaction(calls)

    threads = threading.active_count()
    assert asyncio.run(main()) == EXPECTED
    assert threading.active_count() == threads


# Waiting for memory.

SMALL = {"batch_size": 1000, "buffer_memory": 1000, "linger_ms": 0}


def stuck(cluster: Cluster) -> Cluster:
    """Let the leader of the only partition be away."""
    cluster.leaders["events", 0] = -1
    return cluster


async def full(calls: ProducerCalls[Any]) -> None:
    """Fill the only batch that there is memory for."""
    await calls.partitions_for("events")
    while not asyncio.iscoroutine(sent := send(calls, b"." * 90)):
        pass
    sent.close()


def send(calls: ProducerCalls[Any], value: bytes) -> Any:
    return calls.send("events", value, None, None, 0, None)


def test_tasks_get_room_in_the_order_of_arrival() -> None:
    cluster = stuck(Cluster({"events": 1}))
    order: list[int] = []

    async def one(calls: ProducerCalls[AsyncRecordFuture], number: int) -> int:
        future = await send(calls, b"%4d" % number + b"." * 90)
        order.append(number)
        return (await future).offset

    async def main() -> list[int]:
        async with asyncio_calls(cluster, **SMALL) as calls:
            await full(calls)
            tasks = [asyncio.create_task(one(calls, number)) for number in range(30)]
            await asyncio.sleep(0)
            assert calls.accumulator.memory.waiting == 30
            del cluster.leaders["events", 0]
            calls.core.client.cluster.request_update()
            return await asyncio.gather(*tasks)

    offsets = asyncio.run(main())
    assert order == list(range(30))
    assert offsets == sorted(offsets)


def test_threads_get_room_in_the_order_of_arrival_too(make_producer: Any) -> None:
    """Each record below a synchronous face waits by the same code: one after the other here, as there is one thread."""
    cluster = Cluster({"events": 1})
    producer = make_producer(cluster, **SMALL)
    futures = [producer.send("events", b"." * 90, partition=0) for _ in range(50)]
    producer.flush()
    assert [future.get(0).offset for future in futures] == list(range(50))
    assert producer._calls.accumulator.memory.free == 1000


def test_a_cancelled_send_is_not_accepted_and_leaves_the_queue() -> None:
    cluster = stuck(Cluster({"events": 1}))

    async def main() -> None:
        async with asyncio_calls(cluster, **SMALL) as calls:
            await full(calls)
            before = sum(batch.count for batch in calls.accumulator.unsettled())
            tasks = [asyncio.create_task(send(calls, b"x" * 90)) for _ in range(1000)]
            await asyncio.sleep(0)
            memory = calls.accumulator.memory
            assert memory.waiting == 1000
            for task in tasks[1:]:
                task.cancel()
            await asyncio.gather(*tasks[1:], return_exceptions=True)
            assert memory.waiting == 1
            assert all(task.cancelled() for task in tasks[1:])
            del cluster.leaders["events", 0]
            calls.core.client.cluster.request_update()
            await (await tasks[0])
            await calls.flush()
            assert cluster.offsets["events", 0] == before + 1
            assert memory.free == memory.total

    asyncio.run(main())


def test_a_send_that_is_cancelled_when_its_memory_is_granted_passes_it_on() -> None:
    """The memory comes free, and the task is cancelled before it runs again."""
    cluster = stuck(Cluster({"events": 1}))

    async def main() -> None:
        async with asyncio_calls(cluster, **SMALL) as calls:
            await full(calls)
            first, second = (asyncio.create_task(send(calls, b"x" * 500)) for _ in range(2))
            await asyncio.sleep(0)
            waiting = [*calls.accumulator.memory._waiting]
            waiting[0].ready.add_callback(lambda _: first.cancel())
            assert await calls.purge() > 0
            with pytest.raises(asyncio.CancelledError):
                await first
            await second
            assert sum(batch.count for batch in calls.accumulator.unsettled()) == 1
            await calls.purge()
            assert calls.accumulator.memory.free == calls.accumulator.memory.total

    asyncio.run(main())


def test_cancelling_a_send_that_waits_for_metadata_sends_nothing_and_forgets_the_search() -> None:
    cluster = Cluster({"events": 1})

    async def main() -> None:
        async with asyncio_calls(cluster) as calls:
            task = asyncio.create_task(calls.send("not-yet", b"x", None, None, None, None))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            for _ in range(20):
                await asyncio.sleep(0)
            assert not calls.core._searches
            assert not calls.accumulator.unsettled()

    asyncio.run(main())


def test_a_task_that_finds_no_room_in_time_gets_the_same_error_as_a_thread(make_producer: Any) -> None:
    async def main() -> BufferExhaustedError:
        async with asyncio_calls(stuck(Cluster({"events": 1})), max_block_ms=2000, **SMALL) as calls:
            await full(calls)
            with pytest.raises(BufferExhaustedError) as raised:
                await send(calls, b"x" * 90)
            assert not calls.accumulator.memory.has_waiters
            await calls.purge()
            return raised.value

    cluster = stuck(Cluster({"events": 1}))
    producer = make_producer(cluster, max_block_ms=2000, **SMALL)
    producer.partitions_for("events")
    with pytest.raises(BufferExhaustedError) as raised:  # noqa: PT012
        while True:
            producer.send("events", b"x" * 90, partition=0)
    assert str(raised.value) == str(asyncio.run(main()))


def test_a_flush_that_takes_too_long_says_why_in_both(make_producer: Any) -> None:
    async def main() -> str:
        async with asyncio_calls(stuck(Cluster({"events": 1}))) as calls:
            await calls.partitions_for("events")
            send(calls, b"x")
            with pytest.raises(KafkaTimeoutError) as raised:
                await calls.flush(2)
            await calls.purge()
            return str(raised.value)

    producer = make_producer(stuck(Cluster({"events": 1})))
    producer.partitions_for("events")
    assert isinstance(producer.send("events", b"x"), FutureRecordMetadata)
    with pytest.raises(KafkaTimeoutError) as raised:
        producer.flush(2)
    assert str(raised.value) == asyncio.run(main())


def test_a_flush_without_time_succeeds_when_there_is_nothing_to_wait_for(make_producer: Any) -> None:
    with make_producer(Cluster({"t": 1})) as producer:
        producer.flush(timeout=0)
        producer.send("t", b"x").get(10)
        producer.flush(timeout=0)
        producer.send("t", b"x")
        with pytest.raises(KafkaTimeoutError, match="1 record left"):
            producer.flush(timeout=0)
