"""Taking records out of the buffers: turns, limits, errors in place of records, and what an exception gives back."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest

from kafka.consumer.fetch_collector import FetchCollector
from kafka.consumer.partition_state import EARLIEST, CompletedFetch, Cursor, Reset
from kafka.consumer.subscription_state import SubscriptionState
from kafka.errors import CorruptRecordError, KafkaError, LogTruncationError, OffsetOutOfRangeError
from kafka.record.batch_builder import BatchBuilder
from kafka.record.batch_reader import RecordReader
from kafka.structs import OffsetAndMetadata, TopicPartition

T0, T1, T2 = (TopicPartition("t", number) for number in range(3))


class Fetcher:
    """What a collector needs of a fetcher."""

    starved = False
    metrics = None

    def __init__(self) -> None:
        self.arrivals: deque[Any] = deque()
        self.kicks = 0
        self.drained_sizes: list[int] = []

    def kick(self) -> None:
        self.kicks += 1

    def freed(self, _state: Any) -> None:
        pass

    def drained(self, cursor: Cursor, fetched: CompletedFetch, _records: int, *, at_end: bool) -> None:
        if at_end:
            cursor.current = None
            self.drained_sizes.append(fetched.size)


class Positions:
    reset: Reset | None = None

    def policy(self) -> Reset | None:
        return self.reset


class World:
    """A subscription with three partitions at offset 0, and a collector over a fetcher that a test fills."""

    def __init__(self) -> None:
        self.subscription = SubscriptionState()
        self.subscription.assign_by_user([T0, T1, T2])
        for partition in (T0, T1, T2):
            self.subscription.seek(partition, 0)
        self.fetcher, self.positions = Fetcher(), Positions()
        self.collector = FetchCollector(self.subscription, self.fetcher, self.positions)  # type: ignore[arg-type]
        self.subscription.on_ready = self.fetcher.arrivals.append

    def arrive(self, partition: TopicPartition, count: int, first: int = 0, deserializer: Any = None) -> None:
        builder = BatchBuilder(limit=1 << 20)
        builder.extend([b"v"] * count, 0)
        data = bytearray(builder.seal().data)
        data[:8] = first.to_bytes(8, "big")
        reader = RecordReader(bytes(data), partition.topic, partition.partition, first, value_deserializer=deserializer)
        self._put(partition, CompletedFetch(reader, len(data)))

    def arrive_error(self, partition: TopicPartition, error: KafkaError) -> None:
        self._put(partition, CompletedFetch(None, 0, error))

    def _put(self, partition: TopicPartition, fetched: CompletedFetch) -> None:
        state = self.subscription.get(partition)
        state.cursor.fetched.append(fetched)
        state.cursor.received += fetched.size
        self.fetcher.arrivals.append(state)

    def take(self, limit: int) -> dict[TopicPartition, list[int]]:
        self.collector.begun.clear()
        return {partition: [each.offset for each in rows] for partition, rows in self.collector.take(limit).items()}

    def position(self, partition: TopicPartition) -> int | None:
        return self.subscription.get(partition).cursor.position


@pytest.fixture
def world() -> World:
    return World()


def test_partitions_take_turns_so_that_none_starves(world: World) -> None:
    for partition in (T0, T1, T2):
        world.arrive(partition, 4)
    assert world.take(2) == {T0: [0, 1]}
    assert world.take(2) == {T1: [0, 1]}
    assert world.take(3) == {T2: [0, 1, 2]}
    assert world.take(6) == {T0: [2, 3], T1: [2, 3], T2: [3]}
    assert world.take(1) == {}
    assert len(world.fetcher.drained_sizes) == 3


def test_a_limit_holds_over_partitions_and_the_position_follows(world: World) -> None:
    world.arrive(T0, 3)
    world.arrive(T1, 3)
    assert world.take(4) == {T0: [0, 1, 2], T1: [0]}
    assert (world.position(T0), world.position(T1)) == (3, 1)


def test_paused_and_revoked_partitions_return_nothing(world: World) -> None:
    for partition in (T0, T1, T2):
        world.arrive(partition, 1)
    world.subscription.pause(T0)
    world.subscription.mark_leaving([T1])
    assert world.take(10) == {T2: [0]}
    world.subscription.resume(T0)
    assert world.take(10) == {T0: [0]}


def test_records_before_an_error_are_returned_first(world: World) -> None:
    world.arrive(T0, 2)
    world.arrive_error(T0, CorruptRecordError("damaged"))
    assert world.take(10) == {T0: [0, 1]}
    with pytest.raises(CorruptRecordError):
        world.take(10)
    assert world.take(10) == {}


def test_an_offset_out_of_range_goes_where_auto_offset_reset_says(world: World) -> None:
    world.positions.reset = EARLIEST
    world.arrive_error(T0, OffsetOutOfRangeError())
    assert world.take(10) == {}
    assert world.subscription.get(T0).cursor.reset == EARLIEST


def test_an_offset_out_of_range_is_raised_without_a_reset(world: World) -> None:
    world.arrive_error(T0, OffsetOutOfRangeError())
    with pytest.raises(OffsetOutOfRangeError, match="auto_offset_reset is 'none'") as caught:
        world.take(10)
    assert world.position(T0) == 0
    assert caught.value.args[0] == {T0: 0}  # programs for kafka-python and aiokafka seek in its keys()
    assert str(caught.value).startswith("[Error 1] OffsetOutOfRangeError: offset 0 is outside of the log")


@pytest.mark.parametrize(("end", "position"), [(7, 7), (12, 10)])
def test_a_cut_log_moves_the_position_to_where_it_was_cut_and_never_ahead(
    world: World, end: int, position: int
) -> None:
    world.subscription.seek(T0, 10)
    world.positions.reset = EARLIEST
    cut = LogTruncationError("cut", divergent_offsets={T0: OffsetAndMetadata(end, "", 2)})
    world.arrive_error(T0, cut)
    assert world.take(10) == {}
    cursor = world.subscription.get(T0).cursor
    assert (cursor.position, cursor.epoch) == (position, 2)


def test_an_exception_in_a_deserializer_gives_everything_back(world: World) -> None:
    def interrupted(data: bytes) -> bytes:
        raise KeyboardInterrupt

    world.arrive(T0, 2)
    world.arrive(T1, 2, deserializer=interrupted)
    world.collector.begun.clear()
    with pytest.raises(KeyboardInterrupt):
        world.collector.take(10)
    world.collector.take_back()
    assert (world.position(T0), world.position(T1)) == (0, 0)
    assert world.fetcher.kicks  # the records are fetched again


def test_records_that_were_returned_are_not_taken_back(world: World) -> None:
    world.arrive(T0, 2)
    assert world.take(10) == {T0: [0, 1]}
    world.collector.begun.clear()
    world.collector.take_back()
    assert world.position(T0) == 2


def test_records_given_back_by_an_iteration_come_first_and_alone(world: World) -> None:
    world.arrive(T0, 4)
    world.collector.begun.clear()
    chunk = world.collector.take_chunk(3)
    assert chunk is not None
    world.subscription.chunk = chunk
    chunk.cursor.returned = chunk.records[0]
    world.subscription.end_iteration()
    assert world.take(10) == {T0: [1, 2]}
    assert world.collector.given_back == {T0}
    assert world.take(10) == {T0: [3]}
    assert world.collector.given_back == set()


def test_a_partition_that_moved_returns_nothing_of_its_old_place(world: World) -> None:
    world.arrive(T0, 4)
    world.subscription.move(world.subscription.get(T0), Cursor(50))
    assert world.take(10) == {}
    assert world.position(T0) == 50


def test_columns_are_whole_batches(world: World) -> None:
    world.arrive(T0, 4)
    world.arrive(T1, 4)
    world.collector.begun.clear()
    assert {partition: len(columns) for partition, columns in world.collector.take_columns(3).items()} == {T0: 4}
    assert world.position(T0) == 4


def test_every_way_of_taking_ends_an_iteration_and_begins_with_its_rest(world: World) -> None:
    collector, subscription = world.collector, world.subscription

    def begin_an_iteration() -> None:
        collector.begun.clear()
        chunk = collector.take_chunk(3)
        assert chunk is not None
        subscription.chunk = chunk
        chunk.cursor.returned = chunk.records[0]
        assert collector.may_have_data

    world.arrive(T0, 4)
    begin_an_iteration()
    assert world.take(10) == {T0: [1, 2]}
    assert subscription.chunk is None
    assert world.take(10) == {T0: [3]}

    world.arrive(T1, 4)
    begin_an_iteration()
    assert world.collector.take_columns(10) == {}
    assert world.position(T1) == 1  # the rest has been through the deserializers, so it is fetched again

    world.arrive(T2, 4)
    begin_an_iteration()
    chunk = collector.take_chunk(10)
    assert chunk is not None
    assert [record.offset for record in chunk.records] == [1, 2]


def test_only_named_partitions_are_taken_from_and_the_others_keep_their_turn(world: World) -> None:
    for partition in (T0, T1, T2):
        world.arrive(partition, 2)
    world.collector.begun.clear()
    assert set(world.collector.take(10, {T1})) == {T1}
    assert world.take(3) == {T0: [0, 1], T2: [0]}


def test_an_error_is_deferred_to_the_next_call_where_records_were_taken_before(world: World) -> None:
    world.arrive_error(T0, CorruptRecordError("damaged"))
    world.collector.begun.clear()
    assert world.collector.take(10, defer_errors=True) == {}
    with pytest.raises(CorruptRecordError):
        world.take(10)
