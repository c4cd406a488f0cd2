"""Random mixes of all ways to take records, on both faces: each record comes once, and commits cover no other.

A program is a list of calls: `poll`, iteration, `getone`, `getmany`, columns, with records that the deserializer
refuses, calls that are cancelled, seeks, pauses and commits between them. The model is the next offset of each
partition. Hypothesis makes the programs, and shrinks one that fails.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka import KafkaConsumer
from kafka.aio import AIOKafkaConsumer
from kafka.broker import Broker
from kafka.errors import RecordDeserializationError
from kafka.structs import TopicPartition

from .reading import TIMEOUT, tp

ALL = [tp(number) for number in range(3)]
# The number of records in each batch of a partition, and the records that the deserializer refuses.
BATCHES = {tp(0): [700], tp(1): [10] * 20, tp(2): [1, 2, 600, 3, 1]}
REFUSED = {tp(0): {5, 6, 510, 699}, tp(1): {0, 9, 10, 55}, tp(2): {3, 300, 605}}
ENDS = {partition: sum(sizes) for partition, sizes in BATCHES.items()}
WAIT_MS = 20

groups = itertools.count()


def deserialize(data: bytes) -> bytes:
    if data.startswith(b"refused"):
        raise ValueError("refused")
    return data


def value_at(partition: TopicPartition, offset: int) -> bytes:
    return b"refused %d" % offset if offset in REFUSED[partition] else b"%d" % offset


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(topics={"events": len(ALL)}) as running:
        for partition, sizes in BATCHES.items():
            values = [value_at(partition, offset) for offset in range(ENDS[partition])]
            for size in sizes:
                batch, values = values[:size], values[size:]
                running.append_many("events", batch, partition=partition.partition)
        yield running


class Model:
    """The next offset of each partition, and what may be returned."""

    def __init__(self) -> None:
        self.expected = dict.fromkeys(ALL, 0)
        self.paused: set[TopicPartition] = set()

    def returned(self, partition: TopicPartition, offset: int, value: bytes, *, columns: bool = False) -> None:
        assert partition not in self.paused
        assert offset == self.expected[partition], f"{partition}: {offset} came, {self.expected[partition]} is next"
        assert value == value_at(partition, offset)
        assert columns or offset not in REFUSED[partition]
        self.expected[partition] += 1

    def records(self, found: dict[TopicPartition, list[Any]]) -> None:
        for partition, records in found.items():
            for record in records:
                self.returned(partition, record.offset, record.value)

    def record(self, record: Any) -> None:
        self.returned(TopicPartition(record.topic, record.partition), record.offset, record.value)

    def peeked(self, found: dict[TopicPartition, list[Any]]) -> None:
        before = dict(self.expected)
        self.records(found)
        self.expected = before

    def columns(self, found: dict[TopicPartition, Any]) -> None:
        for partition, columns in found.items():
            for offset, value in zip(columns.offsets, columns.values, strict=True):
                self.returned(partition, int(offset), bytes(value), columns=True)

    def refused(self, error: RecordDeserializationError) -> None:
        partition = error.topic_partition
        assert partition is not None
        assert partition not in self.paused
        assert error.offset == self.expected[partition]
        assert error.offset in REFUSED[partition]

    @property
    def is_at_the_end(self) -> bool:
        return self.expected == ENDS


PARTITIONS = st.sampled_from(ALL)
COUNTS = st.sampled_from([1, 2, 7, 500, 2000])
READS = st.one_of(
    st.tuples(st.just("poll"), COUNTS),
    st.tuples(st.just("peek"), COUNTS),
    st.tuples(st.just("iterate"), st.sampled_from([1, 3, 30])),
    st.tuples(st.just("one")),
    st.tuples(st.just("one"), PARTITIONS),
    st.tuples(st.just("many_of"), PARTITIONS, COUNTS),
    st.tuples(st.just("columns"), COUNTS),
)
OTHERS = st.one_of(
    st.tuples(st.just("skip"), st.booleans()),
    st.tuples(st.just("seek"), PARTITIONS, st.sampled_from([0, 4, 6, 100])),
    st.tuples(st.just("pause"), PARTITIONS),
    st.tuples(st.just("resume")),
    st.tuples(st.just("commit")),
)
CANCELLED = st.tuples(st.just("cancelled"), READS, st.integers(0, 6))
PROGRAMS = st.lists(st.one_of(READS, READS, READS, OTHERS), max_size=25)
AIO_PROGRAMS = st.lists(st.one_of(READS, READS, READS, OTHERS, CANCELLED), max_size=25)


class Reading:
    """One program: its consumer and its model."""

    def __init__(self, broker: Broker, consumer: Any, group: str) -> None:
        self.broker, self.consumer, self.group = broker, consumer, group
        self.model = Model()
        self.skips = True

    def step(self, name: str, *args: Any) -> Any:
        """Do what both faces do in the same way; None if it is a call that takes records."""
        consumer, model = self.consumer, self.model
        if name == "skip":
            (self.skips,) = args
        elif name == "seek":
            partition, offset = args
            consumer.seek(partition, offset)
            model.expected[partition] = offset
        elif name == "pause":
            consumer.pause(*args)
            model.paused.update(args)
        elif name == "resume":
            consumer.resume(*ALL)
            model.paused.clear()
        else:
            return False
        return True

    def refused(self, error: RecordDeserializationError) -> None:
        self.model.refused(error)
        if self.skips:
            self.consumer.seek(error.topic_partition, error.offset + 1)
            self.model.expected[error.topic_partition] += 1

    def check_commit(self) -> None:
        for partition, offset in self.model.expected.items():
            assert self.broker.committed(self.group, *partition) == offset


class SyncReading(Reading):
    consumer: KafkaConsumer[Any, Any]

    def run(self, program: list[tuple[Any, ...]]) -> None:
        self.consumer.assign(ALL)
        for partition in ALL:
            self.consumer.seek(partition, 0)
        for step in program:
            self.do(*step)
        self.step("resume")
        self.skips = True
        deadline = time.monotonic() + TIMEOUT
        for step in itertools.cycle([("poll", 500), ("iterate", 1000), ("columns", 100)]):
            if self.model.is_at_the_end:
                break
            assert time.monotonic() < deadline
            self.do(*step)

    def do(self, name: str, *args: Any) -> None:
        if not self.step(name, *args):
            try:
                getattr(self, name)(*args)
            except RecordDeserializationError as error:
                self.refused(error)
        for partition, offset in self.model.expected.items():
            assert self.consumer.position(partition) == offset

    def poll(self, limit: int) -> None:
        self.model.records(self.consumer.poll(WAIT_MS, max_records=limit))

    def peek(self, limit: int) -> None:
        self.model.peeked(self.consumer.poll(WAIT_MS, max_records=limit, update_offsets=False))

    def iterate(self, count: int) -> None:
        for record in itertools.islice(self.consumer, count):
            self.model.record(record)

    def one(self, *_partition: TopicPartition) -> None:
        self.iterate(1)

    def many_of(self, _partition: TopicPartition, limit: int) -> None:
        self.poll(limit)

    def columns(self, at_least: int) -> None:
        self.model.columns(self.consumer.poll_batches(WAIT_MS, max_records=at_least))

    def commit(self) -> None:
        self.consumer.commit()
        self.check_commit()


class AIOReading(Reading):
    consumer: AIOKafkaConsumer[Any, Any]

    async def run(self, program: list[tuple[Any, ...]]) -> None:
        self.consumer.assign(ALL)
        for partition in ALL:
            self.consumer.seek(partition, 0)
        for step in program:
            await self.do(*step)
        self.step("resume")
        self.skips = True
        deadline = time.monotonic() + TIMEOUT
        for step in itertools.cycle([("poll", 500), ("iterate", 100), ("columns", 100)]):
            if self.model.is_at_the_end:
                break
            assert time.monotonic() < deadline
            await self.do(*step)

    async def do(self, name: str, *args: Any) -> None:
        if not self.step(name, *args):
            try:
                if name in {"cancelled", "iterate", "commit"}:
                    await getattr(self, name)(*args)
                else:
                    await self.read(name, *args)
            except RecordDeserializationError as error:
                self.refused(error)
        for partition, offset in self.model.expected.items():
            assert await self.consumer.position(partition) == offset

    def call(self, name: str, *args: Any) -> tuple[Awaitable[Any], Callable[[Any], None]]:
        """Return a call that takes records, and what sees its result."""
        consumer, model = self.consumer, self.model
        if name == "poll":
            return consumer.poll(WAIT_MS, max_records=args[0]), model.records
        if name == "peek":
            return consumer.poll(WAIT_MS, max_records=args[0], update_offsets=False), model.peeked
        if name == "columns":
            return consumer.poll_batches(WAIT_MS, max_records=args[0]), model.columns
        if name == "many_of":
            return consumer.getmany(args[0], timeout_ms=WAIT_MS, max_records=args[1]), model.records
        if name == "iterate":
            return consumer.__anext__(), model.record
        return consumer.getone(*args), model.record

    async def read(self, name: str, *args: Any) -> bool:
        """Make a call, which is cancelled if it has no result in time; return whether it had one."""
        call, see = self.call(name, *args)
        task = asyncio.ensure_future(call)
        done, _ = await asyncio.wait({task}, timeout=2 * WAIT_MS / 1000)
        if not done:
            task.cancel()
        return await self.see(task, see)

    async def see(self, task: asyncio.Future[Any], see: Callable[[Any], None]) -> bool:
        try:
            see(await task)
        except asyncio.CancelledError:
            return False
        return True

    async def cancelled(self, read: tuple[Any, ...], turns: int) -> None:
        call, see = self.call(*read)
        task = asyncio.ensure_future(call)
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await self.see(task, see)

    async def iterate(self, count: int) -> None:
        for _ in range(count):
            if not await self.read("iterate"):
                return

    async def commit(self) -> None:
        await self.consumer.commit()
        self.check_commit()


def options(broker: Broker, group: str) -> dict[str, Any]:
    return {
        "bootstrap_servers": broker.bootstrap_servers,
        "group_id": group,
        "enable_auto_commit": False,
        "auto_offset_reset": "earliest",
        "value_deserializer": deserialize,
        "fetch_max_wait_ms": 10,
    }


def read_in_a_thread(broker: Broker, program: list[tuple[Any, ...]]) -> None:
    group = f"mixed-{next(groups)}"
    with KafkaConsumer(consumer_timeout_ms=WAIT_MS, **options(broker, group)) as consumer:
        SyncReading(broker, consumer, group).run(program)


def read_in_tasks(broker: Broker, program: list[tuple[Any, ...]]) -> None:
    async def main() -> None:
        group = f"mixed-{next(groups)}"
        async with AIOKafkaConsumer(**options(broker, group)) as consumer:
            await AIOReading(broker, consumer, group).run(program)

    asyncio.run(main())


@settings(max_examples=30)
@given(program=PROGRAMS)
def test_any_mix_of_calls_returns_each_record_once_in_a_thread(broker: Broker, program: list[tuple[Any, ...]]) -> None:
    read_in_a_thread(broker, program)


@settings(max_examples=30)
@given(program=AIO_PROGRAMS)
def test_any_mix_of_calls_returns_each_record_once_in_tasks(broker: Broker, program: list[tuple[Any, ...]]) -> None:
    read_in_tasks(broker, program)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@settings(max_examples=1500)
@given(program=PROGRAMS)
def test_any_long_mix_in_a_thread(broker: Broker, program: list[tuple[Any, ...]]) -> None:
    read_in_a_thread(broker, program)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@settings(max_examples=1500)
@given(program=AIO_PROGRAMS)
def test_any_long_mix_in_tasks(broker: Broker, program: list[tuple[Any, ...]]) -> None:
    read_in_tasks(broker, program)
