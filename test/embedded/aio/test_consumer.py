"""`AIOKafkaConsumer` against the embedded broker: each record once and in order, whatever is cancelled or raised."""

from __future__ import annotations

import asyncio
import collections
import contextvars
import gc
import random
import time
import weakref

import anyio
import pytest

from kafka.aio import (
    AIOKafkaConsumer,
    AIOKafkaProducer,
    ConsumerRebalanceListener,
    IllegalOperation,
    OffsetAndMetadata,
    TopicPartition,
)
from kafka.aio.errors import (
    CommitFailedError,
    ConsumerStoppedError,
    IllegalStateError,
    KafkaError,
    NoBrokersAvailable,
    WakeupError,
)
from kafka.broker import Broker
from kafka.errors import AbortableTransactionError, IllegalArgumentError

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


pytestmark = pytest.mark.kafka_broker(topics={"t": 2, "one": 1})


def fill(broker, count, partition=0, topic="t", begin=0):
    for number in range(begin, begin + count):
        broker.append(topic, value=b"%d" % number, partition=partition)


def consumer(broker, *topics, **options):
    return AIOKafkaConsumer(
        *topics, bootstrap_servers=broker.bootstrap_servers, **{"auto_offset_reset": "earliest", **options}
    )


async def until(ready, patience=60.0):
    deadline = time.monotonic() + patience
    while not ready():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.005)


# Reading


def test_the_ways_to_read(run, broker):
    fill(broker, 1000)
    fill(broker, 10, partition=1)

    async def main():
        async with consumer(broker, "t") as reader:
            assert reader.assignment() == {T0, T1}
            assert reader.subscription() == {"t"}
            first = await reader.getone(T0)
            assert (first.topic, first.partition, first.offset, first.value) == ("t", 0, 0, b"0")
            first.consumer = reader
            many = await reader.getmany(T0, timeout_ms=5000, max_records=7)
            assert [record.offset for record in many[T0]] == list(range(1, 8))
            assert {T1} == set(await reader.getmany(T1, timeout_ms=5000))
            assert await reader.getmany(T1) == {}
            seen = []
            async for record in reader:
                seen.append(record.offset)
                if len(seen) == 500:
                    break
            assert seen == list(range(8, 508))
            assert await reader.position(T0) == 508
            assert (await reader.getone()).offset == 508
            polled = await reader.poll(timeout_ms=5000, max_records=3, update_offsets=False)
            assert [record.offset for record in polled[T0]] == [509, 510, 511]
            again = await reader.poll(timeout_ms=5000, max_records=3)
            assert [record.offset for record in again[T0]] == [509, 510, 511]
            columns = await reader.poll_batches(timeout_ms=5000)
            assert len(columns[T0]) >= 1
            with pytest.raises(ValueError, match="max_records must be at least 1"):
                await reader.getmany(max_records=0)

    run(main())


def test_getmany_takes_500_records_unless_more_are_asked_for(run, broker):
    fill(broker, 3000)

    async def main():
        async with consumer(broker, "t") as reader:
            some = await reader.getmany(timeout_ms=5000)
            assert [record.offset for record in some[T0]] == list(range(500))
            more = await reader.getmany(timeout_ms=5000, max_records=700)
            assert [record.offset for record in more[T0]] == list(range(500, 500 + len(more[T0])))
            assert 500 <= len(more[T0]) <= 700
        async with consumer(broker, "t", max_poll_records=20) as reader:
            assert len((await reader.getmany(timeout_ms=5000))[T0]) == 20

    run(main())


@pytest.mark.parametrize("how", ["getone", "getmany"])
def test_named_partitions_are_fetched_while_others_fill_fetch_buffer_memory(run_once, how):
    count, size, memory, fetched = 400, 1000, 100_000, 40_000
    names = [TopicPartition("big", number) for number in range(4)]
    last = names[-1]

    async def main():
        async with consumer(broker, fetch_buffer_memory=memory, max_partition_fetch_bytes=fetched) as reader:
            reader.assign(names)
            offsets = {partition: [] for partition in names}
            while len(offsets[last]) < count:
                if how == "getone":
                    record = await asyncio.wait_for(reader.getone(last), 60)
                    offsets[last].append(record.offset)
                else:
                    found = await reader.getmany(last, timeout_ms=60_000)
                    offsets[last] += [record.offset for record in found[last]]
                held = sum(entry["buffered_bytes"] for entry in reader.health()["partitions"].values())
                assert held <= memory + len(names) * 10 * size  # a first batch comes whole
            while sum(map(len, offsets.values())) < len(names) * count:
                for partition, records in (await reader.getmany(timeout_ms=60_000)).items():
                    offsets[partition] += [record.offset for record in records]
            assert offsets == {partition: list(range(count)) for partition in names}

    with Broker(topics={"big": len(names)}) as broker:
        for partition in names:
            for _ in range(count // 10):
                broker.append_many("big", [bytes(size)] * 10, partition=partition.partition)
        run_once(main())


def test_a_wait_for_a_silent_partition_does_not_fetch_the_others_repeatedly(run_once):
    memory, fetched = 100_000, 30_000
    names = [TopicPartition("big", number) for number in range(8)]
    silent = names[0]

    async def main():
        options = {"fetch_buffer_memory": memory, "max_partition_fetch_bytes": fetched, "fetch_max_wait_ms": 10}
        async with consumer(broker, **options) as reader:
            reader.assign(names)
            waiting = asyncio.ensure_future(reader.getone(silent))
            await until(lambda: count(broker, "Fetch") > 60)
            assert not waiting.done()
            asked = collections.Counter(
                (part.partition, part.fetch_offset)
                for seen in broker.requests
                if seen.name == "Fetch"
                for topic in seen.request.topics
                for part in topic.partitions
                if part.partition != silent.partition
            )
            assert max(asked.values()) < 6, asked
            held = {name: entry["buffered_bytes"] for name, entry in reader.health()["partitions"].items()}
            assert sum(held.values()) > memory // 3, held
            broker.append("big", b"now", partition=silent.partition)
            assert (await waiting).value == b"now"

    with Broker(topics={"big": len(names)}) as broker:
        for partition in names[1:]:
            for _ in range(40):
                broker.append_many("big", [bytes(1000)] * 10, partition=partition.partition)
        run_once(main())


def test_positions(run, broker):
    fill(broker, 100)

    async def main():
        async with consumer(broker) as reader:
            reader.assign([T0, T1])
            assert await reader.position(T0) == 0
            assert await reader.seek_to_end(T0) is True
            assert await reader.position(T0) == 100
            assert await reader.seek_to_beginning() is True
            reader.seek(T0, 50)
            assert (await reader.getone(T0)).offset == 50
            assert reader.highwater(T0) == 100
            assert reader.last_stable_offset(T0) == -1
            assert abs(reader.last_poll_timestamp(T0) - time.time() * 1000) < 60_000
            assert reader.current_lag(T0) == 49
            reader.pause(T0)
            assert reader.paused() == {T0}
            assert await reader.getmany(timeout_ms=50) == {}
            reader.resume(T0)
            assert (await reader.getone()).offset == 51
            assert await reader.beginning_offsets([T0, T1]) == {T0: 0, T1: 0}
            assert await reader.end_offsets([T0, T1]) == {T0: 100, T1: 0}
            assert (await reader.offsets_for_times({T0: 0}))[T0].offset == 0
            assert await reader.topics() == {"t", "one"}
            assert reader.partitions_for_topic("t") == {0, 1}
            with pytest.raises(ValueError, match="offset"):
                reader.seek(T0, -1)
            with pytest.raises(IllegalStateError, match="one-0 is not assigned"):
                reader.seek(TopicPartition("one", 0), 1)
            with pytest.raises(IllegalStateError):
                await reader.seek_to_beginning(TopicPartition("one", 0))
            with pytest.raises(TypeError):
                await reader.seek_to_end("t")
            with pytest.raises(IllegalOperation):
                await reader.commit()
            with pytest.raises(IllegalOperation):
                await reader.committed(T0)

    run(main())


def test_records_and_errors_equal_the_ones_of_aiokafka(run, broker):
    """Run with aiokafka 0.14 as well: it gives the same."""
    servers = broker.bootstrap_servers

    async def main():
        async with AIOKafkaProducer(bootstrap_servers=servers) as producer:
            await producer.send_and_wait("one", b"v", headers=[("a", b"1"), ("b", None)])
            await producer.send_and_wait("one", b"v")
        one = TopicPartition("one", 0)
        options = {"group_id": "g", "auto_offset_reset": "earliest", "enable_auto_commit": False}
        async with AIOKafkaConsumer("one", bootstrap_servers=servers, **options) as reader:
            record = await reader.getone()
            assert record.headers == (("a", b"1"), ("b", None))
            assert (await reader.getone()).headers == ()
            for wrong in ("x", 1.5, (1, "a", 3), None):
                with pytest.raises(ValueError, match="an offset must be a number"):
                    await reader.commit({one: wrong})
            for wrong in ({}, [1]):
                with pytest.raises(ValueError, match="offsets must be a mapping"):
                    await reader.commit(wrong)
            with pytest.raises(TypeError, match="metadata"):
                await reader.commit({one: (1, 5)})
            for wrong in (-1, (2**63, ""), OffsetAndMetadata(-1, "", -1)):  # as on threads
                with pytest.raises(IllegalArgumentError, match="must be from 0 to 9223372036854775807"):
                    await reader.commit({one: wrong})
            assert await reader.committed(one) is None
            with pytest.raises(TypeError, match="TopicPartition"):
                await reader.commit({"one": 1})
            with pytest.raises(IllegalStateError):
                await reader.commit({TopicPartition("t", 0): 1})
        async with AIOKafkaConsumer(bootstrap_servers=servers) as reader:
            reader.assign([one])
            with pytest.raises(IllegalOperation, match="needs a group"):
                await reader.seek_to_committed()
            async with AIOKafkaProducer(bootstrap_servers=servers) as producer:
                await producer.send_and_wait("one", b"w", headers=record.headers)

    run(main())
    assert broker.records("one")[-1].headers == [("a", b"1"), ("b", None)]


def test_wrong_arguments_say_so():
    for error, arguments, options in (
        (TypeError, (), {"topics": "t"}),
        (TypeError, (), {}),
        (TypeError, (["t"],), {"pattern": "t"}),
        (ValueError, (), {"pattern": "("}),
        (TypeError, (["t"],), {"listener": object()}),
    ):
        with pytest.raises(error):
            AIOKafkaConsumer().subscribe(*arguments, **options)
    with pytest.raises(TypeError):
        AIOKafkaConsumer(["t"])
    with pytest.raises(ValueError, match=r"max_poll_records of AIOKafkaConsumer"):
        AIOKafkaConsumer(max_poll_records=0)
    with pytest.raises(ValueError, match="isolation_level"):
        AIOKafkaConsumer(isolation_level="none")
    reader = AIOKafkaConsumer()
    reader.assign([T0])
    with pytest.raises(IllegalStateError):
        reader.subscribe(["t"])
    assert reader.assignment() == {T0}
    assert reader.subscription() == set()


def test_not_started_and_stopped_are_a_sentence_each(run_once, broker):
    async def main():
        reader = consumer(broker, "t")
        with pytest.raises(IllegalStateError, match="is not started: call `await client"):
            await reader.getone()
        assert reader.health()["problems"] == ["the consumer is not started"]
        async with reader:
            pass
        for call in (reader.getone, reader.getmany, reader.commit, reader.topics):
            with pytest.raises(ConsumerStoppedError, match="This AIOKafkaConsumer was stopped"):
                await call()
        with pytest.raises(ConsumerStoppedError):
            async for _ in reader:
                pass
        assert reader.closed

    run_once(main())


def test_stop_ends_what_waits(run, broker):
    async def main():
        reader = consumer(broker, "t")
        await reader.start()

        async def iterate():
            return [record async for record in reader]

        one = asyncio.ensure_future(reader.getone())
        some = asyncio.ensure_future(reader.getone(T1))
        many = asyncio.ensure_future(reader.getmany(timeout_ms=60_000))
        iteration = asyncio.ensure_future(iterate())
        await asyncio.sleep(0.1)
        await reader.stop()
        with pytest.raises(ConsumerStoppedError):
            await one
        with pytest.raises(ConsumerStoppedError):
            await some
        assert await many == {}
        assert await iteration == []

    run(main())


# Cancelled calls (A1, A3, A5)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("way", ["cancel", "timeout", "anyio"])
def test_hundreds_of_cancelled_reads_lose_and_repeat_nothing(run_once, way):  # noqa: C901
    rng = random.Random(way)
    total = 300

    async def main(broker):  # noqa: C901
        seen = {T0: [], T1: []}
        cancelled = 0
        async with consumer(broker, "t", group_id="g", auto_commit_interval_ms=20) as reader:

            def note(record):
                seen[TopicPartition(record.topic, record.partition)].append(record.offset)

            async def read():
                kind = rng.randrange(4)
                if kind == 0:
                    note(await reader.getone())
                elif kind == 1:
                    note(await reader.getone(rng.choice([T0, T1])))
                elif kind == 2:
                    for records in (await reader.getmany(timeout_ms=50, max_records=rng.randrange(1, 4))).values():
                        for record in records:
                            note(record)
                else:
                    async for record in reader:
                        note(record)
                        if rng.random() < 0.5:
                            break

            async def cut(steps):
                nonlocal cancelled
                if way == "cancel":
                    task = asyncio.ensure_future(read())
                    for _ in range(steps):
                        await asyncio.sleep(0)
                    cancelled += task.cancel()
                    await asyncio.gather(task, return_exceptions=True)
                elif way == "timeout":
                    try:
                        await asyncio.wait_for(read(), rng.random() / 5000)
                    except asyncio.TimeoutError:
                        cancelled += 1
                else:
                    with anyio.move_on_after(rng.random() / 5000) as scope:
                        await read()
                    cancelled += scope.cancelled_caught

            async def produce():
                for number in range(total):
                    broker.append("t", value=b"%d" % number, partition=number % 2)
                    if number % 10 == 0:
                        await asyncio.sleep(0)

            producing = asyncio.ensure_future(produce())
            rounds = 0
            while cancelled < 200:
                await cut(rng.randrange(8))
                rounds += 1
                for partition in (T0, T1):
                    if rounds % 50 == 0:
                        assert await reader.position(partition) == len(seen[partition])
                        assert (broker.committed("g", "t", partition.partition) or 0) <= len(seen[partition])
                if rounds % 100 == 0 and producing.done():
                    producing.result()
                    producing = asyncio.ensure_future(produce()) if rounds < 3000 else producing
            await producing
            written = sum(broker.offsets("t", number)[1] for number in (0, 1))
            while sum(map(len, seen.values())) < written:
                for records in (await reader.getmany(timeout_ms=1000)).values():
                    for record in records:
                        note(record)
            assert reader._core._getters == 0
        for offsets in seen.values():
            assert offsets == list(range(len(offsets)))
        for partition in (T0, T1):
            assert broker.committed("g", "t", partition.partition) == len(seen[partition])

    with Broker(topics={"t": 2}) as broker:
        run_once(main(broker))


def test_a_sibling_that_fails_ends_a_consuming_task_with_all_sockets_closed(run_once, broker):
    async def main():
        async def consume():
            async with consumer(broker, "t", group_id="g") as reader:
                started.set()
                async for _ in reader:
                    pass

        async def fail():
            await started.wait()
            raise ZeroDivisionError

        started = anyio.Event()
        began = time.monotonic()
        with pytest.raises(BaseException) as caught:  # noqa: PT011, PT012
            async with anyio.create_task_group() as group:
                group.start_soon(consume)
                group.start_soon(fail)
        assert "ZeroDivisionError" in repr(caught.value)
        await asyncio.sleep(0)
        await until(lambda: asyncio.all_tasks() == {asyncio.current_task()})
        assert time.monotonic() - began < 15

    run_once(main())


def test_other_calls_that_are_cancelled_leave_the_consumer_usable(run_once, broker):
    fill(broker, 50)

    async def main():
        async with consumer(broker, "t", group_id="g", enable_auto_commit=False) as reader:
            for steps in range(12):
                for call in (
                    lambda: reader.commit({T0: 5}),
                    lambda: reader.committed(T0),
                    lambda: reader.position(T0),
                    lambda: reader.seek_to_beginning(T0),
                    lambda: reader.end_offsets([T0]),
                    reader.topics,
                ):
                    task = asyncio.ensure_future(call())
                    for _ in range(steps):
                        await asyncio.sleep(0)
                    task.cancel()
                    await asyncio.gather(task, return_exceptions=True)
            await reader.commit({T0: 7})
            assert await reader.committed(T0) == 7
            assert await reader.position(T0) == 0
            assert (await reader.getone(T0)).offset == 0
            assert len(asyncio.all_tasks()) == 2, "this one and the consumer's"

    run_once(main())


# Several tasks (A15)


def test_many_tasks_share_the_records_of_one_consumer(run, broker):
    fill(broker, 500)
    fill(broker, 500, partition=1)

    async def main():
        seen = []
        async with consumer(broker, "t") as reader:

            async def work():
                while len(seen) < 1000:
                    for records in (await reader.getmany(timeout_ms=100, max_records=3)).values():
                        seen.extend((record.partition, record.offset) for record in records)

            async def one_by_one():
                while len(seen) < 1000:
                    try:
                        record = await asyncio.wait_for(reader.getone(), 0.2)
                    except asyncio.TimeoutError:
                        continue
                    seen.append((record.partition, record.offset))

            await asyncio.gather(*(work() for _ in range(5)), *(one_by_one() for _ in range(5)))
        assert sorted(seen) == [(partition, offset) for partition in (0, 1) for offset in range(500)]

    run(main())


def test_getone_of_two_partitions_do_not_starve_each_other(run_once, broker):
    fill(broker, 300)
    fill(broker, 300, partition=1)

    async def main():
        async with consumer(broker, "t") as reader:

            async def read(partition):
                return [(await reader.getone(partition)).offset for _ in range(300)]

            assert await asyncio.gather(read(T0), read(T1)) == [list(range(300))] * 2

    run_once(main())


# The group (A9, A14)


class Listener(ConsumerRebalanceListener):
    def __init__(self):
        self.calls = []
        self.on_revoked = self.on_assigned = None

    async def on_partitions_revoked(self, revoked):
        self.calls.append(("revoked", revoked))
        if self.on_revoked is not None:
            await self.on_revoked(revoked)

    async def on_partitions_assigned(self, assigned):
        self.calls.append(("assigned", assigned))
        if self.on_assigned is not None:
            await self.on_assigned(assigned)


def test_offsets_of_records_from_before_a_rebalance_are_refused_in_a_transaction(run_once, broker):
    fill(broker, 5)
    fill(broker, 5, partition=1)
    options = {"group_id": "g", "enable_auto_commit": False, "partition_assignment_strategy": ["cooperative-sticky"]}

    async def main():
        async with (
            consumer(broker, "t", **options) as reader,
            AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id="copy") as producer,
        ):
            offsets = {}
            while len(offsets) < 2:
                for partition, records in (await reader.getmany(timeout_ms=5000)).items():
                    offsets[partition] = records[-1].offset + 1
            before = reader.group_metadata()
            async with consumer(broker, "t", **options) as other:
                await until(lambda: len(other.assignment()) == len(reader.assignment()) == 1)
                assert reader.group_metadata() == before
                with pytest.raises(AbortableTransactionError):
                    async with producer.transaction():
                        await producer.send_offsets_to_transaction(offsets, reader.group_metadata())
                moved = next(iter(other.assignment()))
                assert await other.committed(moved) is None
                # A call that returns nothing, or is cancelled, says nothing about the records returned before.
                assert await reader.getmany(timeout_ms=0) == {}
                with pytest.raises(asyncio.TimeoutError):
                    await asyncio.wait_for(reader.getone(), 0.05)
                assert reader.group_metadata() == before
                kept = next(iter(reader.assignment()))
                reader.seek(kept, 0)  # the transaction was aborted
                again = await reader.getmany(timeout_ms=5000)
                assert reader.group_metadata().generation_id > before.generation_id
                async with producer.transaction():
                    offset = again[kept][-1].offset + 1
                    await producer.send_offsets_to_transaction({kept: offset}, reader.group_metadata())
                assert await reader.committed(kept) == offset

    run_once(main())


def test_a_group_shares_partitions_and_start_waits_for_the_first_assignment(run, broker):
    async def main():
        async with consumer(broker, "t", group_id="g") as first:
            assert first.assignment() == {T0, T1}
            assert first.group_id == "g"
            assert first.member_id
            async with consumer(broker, "t", group_id="g") as second:
                # The first one joins again although no task takes records from it.
                await until(lambda: len(first.assignment()) == len(second.assignment()) == 1)
                assert first.assignment() | second.assignment() == {T0, T1}
            await until(lambda: first.assignment() == {T0, T1})
        assert not broker.group_members("g")

    run(main())


def test_a_listener_may_be_coroutines_and_call_the_consumer(run, broker):
    fill(broker, 100)
    where = contextvars.ContextVar("where", default="nowhere")

    async def main():
        listener = Listener()
        reader = consumer(broker, group_id="g", enable_auto_commit=False)
        where.set("subscribe")
        reader.subscribe(["t"], listener=listener)
        where.set("later")
        found = []

        async def on_assigned(assigned):
            found.append(where.get())
            for partition in assigned:
                found.append(await reader.position(partition))
                found.append(await reader.committed(partition))
            # A task that the listener awaits may call the consumer, too; records are for later.
            await asyncio.create_task(reader.commit({T0: 3}))
            with pytest.raises(IllegalStateError, match="called by a rebalance listener"):
                await reader.getone()
            await reader.seek_to_end(T0)
            reader.seek(T0, 42)

        listener.on_assigned = on_assigned
        async with reader:
            assert (await reader.getone()).offset == 42
            assert await reader.committed(T0) == 3
        assert found[0] == "subscribe"
        assert len(found) == 5
        assert [kind for kind, _ in listener.calls] == ["revoked", "assigned"], "stop() is no rebalance"

    run(main())


def test_start_returns_though_the_listener_has_ended_the_subscription(run, broker):
    async def main():
        listener = Listener()
        reader = consumer(broker, group_id="g")

        async def on_assigned(_assigned):
            reader.unsubscribe()

        listener.on_assigned = on_assigned
        reader.subscribe(["t"], listener=listener)
        async with reader:
            assert reader.assignment() == set()

    run(main())


def test_between_the_beginning_and_the_end_of_a_revocation_nothing_is_handed_out(run_once, broker):
    fill(broker, 1000)
    fill(broker, 1000, partition=1)

    async def main():
        listener = Listener()
        handed_out = []
        gate = asyncio.Event()
        inside = []

        async def on_revoked(_revoked):
            inside.append(len(handed_out))
            await asyncio.wait_for(gate.wait(), 60)
            inside.append(len(handed_out))

        first = consumer(broker, group_id="g", rebalance_timeout_ms=30_000)
        first.subscribe(["t"], listener=listener)
        async with first:
            listener.on_revoked = on_revoked

            async def read():
                async for record in first:
                    handed_out.append(record.offset)
                    await asyncio.sleep(0.001)

            reading = asyncio.ensure_future(read())
            await until(lambda: handed_out)
            second = consumer(broker, "t", group_id="g")
            starting = asyncio.ensure_future(second.start())
            await until(lambda: inside)
            await asyncio.sleep(0.3)
            gate.set()
            await starting
            await until(lambda: len(first.assignment()) == 1)
            assert inside[0] == inside[1]
            await second.stop()
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    run_once(main())


def test_an_exception_of_a_listener_is_raised_by_the_next_get_and_the_rebalance_continues(run_once, broker, caplog):
    fill(broker, 5)

    async def main():
        listener = Listener()
        reader = consumer(broker, group_id="g")
        reader.subscribe(["t"], listener=listener)
        await reader.start()

        async def fail(_partitions):
            raise ZeroDivisionError("in the listener")

        listener.on_assigned = fail
        reader.enforce_rebalance()
        await until(lambda: len(listener.calls) >= 3)
        with pytest.raises(ZeroDivisionError):
            await reader.getone()
        assert (await reader.getone()).offset == 0
        await reader.stop()

    run_once(main())
    assert "A rebalance listener or a callback of group g failed" in caplog.text


@pytest.mark.parametrize("plain", [False, True])
def test_a_listener_that_awaits_a_task_that_it_cancelled_has_failed_and_the_group_is_served(run_once, broker, plain):
    fill(broker, 5)

    async def main():
        listener = Listener()
        reader = consumer(broker, group_id="g")
        reader.subscribe(["t"], listener=listener)
        await reader.start()

        async def fail(_partitions):
            work = asyncio.ensure_future(asyncio.sleep(1000))
            work.cancel()
            await work

        def fail_at_once(_partitions):
            listener.calls.append("failed")
            raise asyncio.CancelledError

        listener.on_revoked = fail
        if plain:
            listener.on_partitions_revoked = fail_at_once
        reader.enforce_rebalance()
        await until(lambda: len(listener.calls) >= 3)
        with pytest.raises(RuntimeError, match=r"(revoked|callback) raised asyncio\.CancelledError.*suppress"):
            await asyncio.wait_for(reader.getone(), 60)
        assert (await asyncio.wait_for(reader.getone(), 60)).offset == 0
        await reader.stop()

    run_once(main())


@pytest.mark.parametrize("again", [False, True])
def test_a_listener_that_runs_while_the_application_unsubscribes_is_called_once_for_each_partition(
    run_once, broker, again
):
    async def main():
        listener, entered, leave = Listener(), asyncio.Event(), asyncio.Event()
        reader = consumer(broker, group_id="g")
        reader.subscribe(["t"], listener=listener)

        async def wait(_partitions):
            entered.set()
            await leave.wait()

        async with reader:
            assert reader.assignment() == {T0, T1}
            del listener.calls[:]
            listener.on_revoked = wait
            reader.enforce_rebalance()
            polling = asyncio.ensure_future(reader.getmany(timeout_ms=20_000))
            await asyncio.wait_for(entered.wait(), 60)
            reader.unsubscribe()
            if again:
                reader.subscribe(["one"])
            leave.set()
            polling.cancel()
            await asyncio.gather(polling, return_exceptions=True)
            deadline = time.monotonic() + 60
            while broker.group_members("g") and not again:
                assert time.monotonic() < deadline
                await asyncio.sleep(0.01)
        revoked = [partition for kind, partitions in listener.calls if kind == "revoked" for partition in partitions]
        assert sorted(revoked) == [T0, T1]

    run_once(main())


def test_a_listener_that_takes_too_long_is_cancelled_after_rebalance_timeout_ms(run_once, broker):
    async def main():
        listener = Listener()
        ended = []

        async def hang(_partitions):
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                ended.append(True)
                raise

        reader = consumer(broker, group_id="g", rebalance_timeout_ms=300)
        reader.subscribe(["t"], listener=listener)
        async with reader:
            listener.on_assigned = hang
            reader.enforce_rebalance()
            with pytest.raises(KafkaError, match="took longer than rebalance_timeout_ms"):
                await asyncio.wait_for(reader.getone(), 60)
            assert ended == [True]

    run_once(main())


def test_stop_from_a_listener_does_not_wait_for_itself(run_once, broker):
    async def main():
        listener = Listener()
        reader = consumer(broker, group_id="g")
        reader.subscribe(["t"], listener=listener)

        async def stop(_partitions):
            await reader.stop()

        await reader.start()
        listener.on_assigned = stop
        reader.enforce_rebalance()
        with pytest.raises(ConsumerStoppedError):
            await reader.getone()
        await reader.stop()

    run_once(main())


@pytest.mark.slow
def test_max_poll_interval_ms_is_enforced_whatever_was_cancelled_before_and_waiting_does_not_count(run_once, broker):
    async def main():
        reader = consumer(
            broker,
            "t",
            group_id="g",
            max_poll_interval_ms=800,
            session_timeout_ms=6000,
            heartbeat_interval_ms=100,
            rebalance_timeout_ms=800,
        )
        async with reader:
            member = reader.member_id
            for _ in range(5):
                with pytest.raises(asyncio.TimeoutError):
                    await asyncio.wait_for(reader.getone(), 0.05)
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(reader.getone(), 3)
            assert set(broker.group_members("g")) == {member}, "a call that waits is not stuck"
            await until(lambda: not broker.group_members("g"))
            fill(broker, 1)
            assert (await asyncio.wait_for(reader.getone(), 60)).offset == 0
            assert broker.group_members("g")

    run_once(main())


@pytest.mark.slow
def test_membership_is_kept_after_the_application_blocked_the_loop(run_once, broker):
    fill(broker, 2000)

    async def main():
        async with consumer(
            broker, "t", group_id="g", session_timeout_ms=6000, heartbeat_interval_ms=500, rebalance_timeout_ms=6000
        ) as reader:
            member, generation = reader.member_id, reader.group_metadata().generation_id
            for _ in range(3):
                await reader.getmany(timeout_ms=1000, max_records=100)
                time.sleep(3)
            await asyncio.sleep(1)
            assert (reader.member_id, reader.group_metadata().generation_id) == (member, generation)
            await reader.commit()

    run_once(main())


def test_commits(run, broker):
    fill(broker, 10)

    async def main():
        async with consumer(broker, "t", group_id="g", enable_auto_commit=False) as reader:
            await reader.getone()
            await reader.commit()
            assert await reader.committed(T0) == 1
            await reader.commit({T0: (5, "note"), T1: OffsetAndMetadata(0, "")})
            assert await reader.committed(T0, metadata=True) == OffsetAndMetadata(5, "note")
            assert await reader.seek_to_committed(T0) == {T0: 5}
            assert (await reader.getone(T0)).offset == 5
            await reader.commit_async({T0: OffsetAndMetadata(6, "")})
            assert (await reader.committed([T0, T1]))[T0].offset == 6
            for wrong in ({}, {T0: None}, [T0]):
                with pytest.raises((ValueError, TypeError)):
                    await reader.commit(wrong)
            with pytest.raises(TypeError):
                await reader.commit({T0: (1, 2)})
            with pytest.raises(IllegalStateError):
                await reader.commit({TopicPartition("one", 0): 1})
            broker.expire_member("g")
            with pytest.raises((CommitFailedError, KafkaError)):
                await reader.commit({T0: 9}, timeout_ms=3000)

    run(main())


@pytest.mark.parametrize("call", ["seek_to_committed", "seek_to_beginning", "seek_to_end"])
def test_a_partition_that_is_taken_away_during_a_seek_is_left_alone(run_once, broker, call):
    fill(broker, 10)

    async def main():
        async with consumer(broker, group_id="g", enable_auto_commit=False) as reader:
            reader.assign([T0, T1])
            await reader.commit({T0: 3, T1: 2})
            for _ in range(2):
                await reader.getone(T0)
            broker.delay("OffsetFetch" if call == "seek_to_committed" else "ListOffsets", 1)
            seeking = asyncio.ensure_future(getattr(reader, call)())
            for _ in range(3):
                await asyncio.sleep(0)
            assert not seeking.done()
            reader.assign([T1])  # as a rebalance in the background does
            found = await seeking
            assert found == ({T0: 3, T1: 2} if call == "seek_to_committed" else True)
            if call == "seek_to_committed":
                assert await reader.position(T1) == 2

    run_once(main())


def test_automatic_commits_come_while_a_call_waits_and_at_the_end(run_once, broker):
    fill(broker, 10)

    async def main():
        async with consumer(broker, "t", group_id="g", auto_commit_interval_ms=50) as reader:
            await reader.getmany(timeout_ms=5000, max_records=4)
            waiting = asyncio.ensure_future(reader.getone(T1))
            await until(lambda: broker.committed("g", "t") == 4)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            await reader.getone()
        assert broker.committed("g", "t") == 5
        reader = consumer(broker, "t", group_id="g")
        await reader.start()
        await reader.getmany(timeout_ms=5000, max_records=2)
        await reader.stop(commit=False)
        assert broker.committed("g", "t") == 5

    run_once(main())


PROTOCOLS = {
    "eager": {},
    "cooperative": {"partition_assignment_strategy": ["cooperative-sticky"]},
    "consumer": {"group_protocol": "consumer"},
}


class Refusing(ConsumerRebalanceListener):
    """Raises for the first assignment."""

    def __init__(self):
        self.assigned = []

    def on_partitions_assigned(self, assigned):
        self.assigned.append(sorted(assigned))
        if len(self.assigned) == 1:
            raise RuntimeError("of a listener")


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("how", ["it fails", "it is cancelled", "stop"])
def test_a_start_that_does_not_succeed_leaves_the_group(run_once, broker, protocol, how, caplog):
    fill(broker, 3)
    listener = Refusing()

    async def main():
        reader = consumer(broker, group_id="g", **PROTOCOLS[protocol])
        reader.subscribe(["t"], listener=listener if how == "it fails" else None)
        if how == "it fails":
            with pytest.raises(RuntimeError, match="of a listener"):
                await reader.start()
        else:
            joins = "ConsumerGroupHeartbeat" if protocol == "consumer" else "SyncGroup"
            broker.delay(joins, 0.2, times=1)
            starting = asyncio.ensure_future(reader.start())
            await until(lambda: count(broker, joins))
            if how == "stop":
                await reader.stop()
                with pytest.raises(ConsumerStoppedError):
                    await starting
            else:
                starting.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await starting
        await until(lambda: not broker.group_members("g"))
        if how != "stop":
            broker.clear_faults()
            await reader.start()
            assert reader.assignment() == {T0, T1}
            assert (await asyncio.wait_for(reader.getone(), 60)).offset == 0
            await reader.stop()
        assert not broker.group_members("g")

    run_once(main())
    internal = [record for record in caplog.records if record.exc_info and record.name != "kafka.aio.consumer_core"]
    assert not internal, "only the error of the listener is logged with a traceback"


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("then", ["nothing", "stop", "start"])
def test_a_start_that_is_cancelled_while_the_coordinator_moves_leaves_the_group(run_once, broker, protocol, then):
    fill(broker, 3)
    leave = "ConsumerGroupHeartbeat" if protocol == "consumer" else "LeaveGroup"
    joins = "ConsumerGroupHeartbeat" if protocol == "consumer" else "SyncGroup"

    async def main():
        session = {} if protocol == "consumer" else {"session_timeout_ms": 60_000}
        reader = consumer(broker, "t", group_id="g", **session, **PROTOCOLS[protocol])
        broker.delay(joins, 0.2, times=1)
        starting = asyncio.ensure_future(reader.start())
        await until(lambda: count(broker, joins))
        broker.fail(leave, "NOT_COORDINATOR", times=6)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        if then == "stop":
            await reader.stop()
            assert not broker.group_members("g")
        elif then == "start":
            await reader.start()
            assert len(broker.group_members("g")) == 1
            await reader.stop()
        else:
            await until(lambda: not broker.group_members("g"))
            await until(lambda: len(asyncio.all_tasks()) == 1)

    run_once(main())


# Memory (A11)


def count(broker, name):
    return sum(request.name == name for request in broker.requests)


# What goes wrong (A12, A19)


def test_errors_given_to_several_waiters_do_not_grow(run_once, broker):
    async def main():
        async with consumer(broker, "t") as reader:
            before = None
            for _ in range(100):
                reader.wakeup()
                with pytest.raises(WakeupError) as caught:
                    await reader.getone()
                depth, trace = 0, caught.value.__traceback__
                while trace is not None:
                    depth, trace = depth + 1, trace.tb_next
                before = before or depth
                assert depth <= before

    run_once(main())


def test_with_no_broker_start_names_each_host_and_the_cause_and_may_be_tried_again(run_once):
    async def main():
        reader = AIOKafkaConsumer("t", bootstrap_servers="127.0.0.1:1,127.0.0.1:2", bootstrap_timeout_ms=300)
        for _ in range(2):
            with pytest.raises(NoBrokersAvailable) as caught:
                await reader.start()
            assert "127.0.0.1:1" in str(caught.value)
            assert "127.0.0.1:2" in str(caught.value)
            assert asyncio.all_tasks() == {asyncio.current_task()}

    run_once(main())


# Lifetime and idling (A18, A20)


def test_a_dropped_consumer_is_collected_although_it_runs(run_once, broker):
    async def main():
        loop = asyncio.get_running_loop()
        handler, told = loop.get_exception_handler(), []
        loop.set_exception_handler(lambda _loop, context: told.append((context["message"], "consumer" in context)))
        reader = consumer(broker, "t", group_id="g")
        await reader.start()
        ref = weakref.ref(reader)
        kept = [reader]
        del reader
        with pytest.warns(ResourceWarning, match="^Unclosed AIOKafkaConsumer"):  # noqa: PT031
            kept.clear()
            gc.collect()
        await until(lambda: asyncio.all_tasks() == {asyncio.current_task()})
        gc.collect()
        assert ref() is None
        assert told == [("Unclosed AIOKafkaConsumer", True)]
        loop.set_exception_handler(handler)

    run_once(main())


def test_an_idle_consumer_turns_nothing_between_two_deadlines(run_once):
    with Broker(topics={"t": 500}) as broker:

        async def main():
            async with consumer(broker, "t", fetch_max_wait_ms=10_000, metadata_max_age_ms=60_000) as reader:
                waiting = asyncio.ensure_future(reader.getone())

                async def turns_of_a_second():
                    before = reader._core.loop.turns
                    await asyncio.sleep(1)
                    return reader._core.loop.turns - before

                while await turns_of_a_second():  # until all partitions have their positions
                    pass
                turns = await turns_of_a_second() + await turns_of_a_second()
                waiting.cancel()
                await asyncio.gather(waiting, return_exceptions=True)
                return turns

        assert run_once(main()) <= 2


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_thousands_of_idle_or_cancelled_calls_leave_memory_as_it_was(run_once, broker):
    import tracemalloc

    async def main():
        async with consumer(broker, "t", fetch_max_wait_ms=10_000) as reader:

            async def idle(count):
                for _ in range(count // 2):
                    await reader.getmany(timeout_ms=0)
                for _ in range(count // 2 // 100):
                    tasks = [asyncio.ensure_future(reader.getone()) for _ in range(100)]
                    await asyncio.sleep(0)
                    for task in tasks:
                        task.cancel()
                    await asyncio.gather(*tasks, return_exceptions=True)
                del tasks

            tracemalloc.start()
            await idle(1_000)
            gc.collect()
            before = tracemalloc.get_traced_memory()[0]
            await idle(4_000)
            gc.collect()
            grown = tracemalloc.get_traced_memory()[0] - before
            tracemalloc.stop()
            assert reader._core._getters == 0
            return grown

    assert run_once(main()) < 10 * 4_000  # ten bytes for a call are less than any object that is kept for one


def test_nothing_keeps_the_context_of_a_caller_alive(run_once, broker):
    class Tenant:
        pass

    tenant = contextvars.ContextVar("tenant")
    refs = []
    fill(broker, 10)

    async def main():
        reader = consumer(broker, "t", group_id="g")

        async def caller(call):
            tenant.set(Tenant())
            refs.append(weakref.ref(tenant.get()))
            await call()

        async def read():
            await reader.getone()
            await reader.getmany(timeout_ms=10)
            await reader.commit()
            await reader.position(T0)

        await asyncio.create_task(caller(reader.start))
        await asyncio.create_task(caller(read))
        await asyncio.sleep(0.05)
        gc.collect()
        assert [ref() for ref in refs] == [None, None]
        await reader.stop()

    run_once(main())


def test_deserializers_see_the_context_of_the_caller(run_once, broker):
    fill(broker, 2)
    where = contextvars.ContextVar("where", default="nowhere")

    async def main():
        async with consumer(broker, "t", value_deserializer=lambda _value: where.get()) as reader:
            where.set("caller")
            assert (await reader.getone()).value == "caller"

    run_once(main())


# How it is (A24)


def test_health_answers_at_once_also_while_the_cluster_is_down(run_once, broker):
    async def main():
        async with consumer(broker, "t", group_id="g") as reader:
            await until(lambda: reader.health()["ok"])
            broker.stop_node(1, crash=True)
            await until(lambda: not reader.health()["ok"])
            assert reader.health()["problems"]
            assert reader.metrics()
            assert reader.group_id == "g"
            assert isinstance(reader.member_id, str)
            await reader.stop(1)

    run_once(main())
