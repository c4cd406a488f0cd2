"""kafka.producer.record_accumulator: which batch a record goes into, and what memory the batches hold."""

from __future__ import annotations

import random
import time
from types import SimpleNamespace
from typing import Any

import pytest

from kafka.errors import ClientClosedError, IllegalStateError, RecordTooLargeError
from kafka.future import Future
from kafka.partitioner import Murmur2Partitioner
from kafka.producer.buffer_pool import Reservation
from kafka.producer.partition import Partition
from kafka.producer.producer_batch import ProducerBatch
from kafka.producer.record_accumulator import RecordAccumulator

VALUE = b"x" * 300


class Filled:
    """An accumulator without a loop: partitions are chosen in turn, and calls to the loop are counted."""

    def __init__(self, *, batch_size: int = 1000, buffer_memory: int = 3000, partitions: int = 3) -> None:
        self.called: list[str] = []
        turn = iter(range(10**6))
        owner: Any = SimpleNamespace(
            now=time.monotonic,
            keeper=lambda: None,
            work_soon=lambda: self.called.append("work"),
            hurry_all=lambda: self.called.append("hurry"),
            call_soon=self.call_soon,
        )
        self.accumulator = RecordAccumulator(
            owner,
            lambda topic: topic.ordered[next(turn) % partitions],
            batch_size=batch_size,
            buffer_memory=buffer_memory,
            max_request_size=5000,
            codec=None,
            level=None,
        )
        self.topic = self.accumulator.topic("t", range(partitions))

    def call_soon(self, function: Any, *args: Any) -> None:
        partition = getattr(function, "__self__", None)
        if isinstance(partition, Partition):
            self.called.append(f"look {partition.index}")
        else:
            function(*args)

    def add(self, value: bytes = VALUE, partition: int | None = None) -> tuple[ProducerBatch, int] | None:
        where = None if partition is None else self.topic.partitions[partition]
        return self.accumulator.add(self.topic, where, (1, None, value, None))

    def reserve(self, value: bytes = VALUE, partition: int = 0) -> Reservation:
        found = self.accumulator.reservation(self.topic, self.topic.partitions[partition], (1, None, value, None))
        self.accumulator.wait(found)
        return found

    def add_reserved(self, reservation: Reservation, value: bytes = VALUE, partition: int = 0) -> Any:
        return self.accumulator.add_reserved(
            reservation, self.topic, self.topic.partitions[partition], (1, None, value, None)
        )


@pytest.fixture
def filled() -> Filled:
    return Filled()


def test_records_of_one_partition_fill_one_batch_after_the_other(filled: Filled) -> None:
    places = [filled.add(partition=0) for _ in range(4)]
    batches = [place[0] for place in places if place is not None]
    assert [place[1] for place in places if place is not None] == [0, 1, 2, 0]
    assert batches[0] is batches[2] is not batches[3]
    partition = filled.topic.partitions[0]
    assert list(partition.queue) == [batches[0], batches[3]]
    assert partition.open is batches[3]


def test_records_without_a_key_go_to_another_partition_when_their_batch_is_full(filled: Filled) -> None:
    value = b"x" * 920
    batches = [place[0] for place in (filled.add(value) for _ in range(3)) if place is not None]
    assert [batch.partition.index for batch in batches] == [0, 0, 1], "after batch_size bytes, however many batches"
    assert filled.topic.partitions[0].open is None
    fresh, left = filled.accumulator.take_fresh()
    assert fresh == batches
    assert left == [filled.topic.partitions[0]] * 2, "the sender looks at the full ones too"


def test_the_loop_is_called_once_until_the_sender_has_looked(filled: Filled) -> None:
    for partition in (0, 1, 0):
        filled.add(partition=partition)
    assert filled.called == ["work"]
    filled.accumulator.take_fresh()
    filled.add(partition=2)
    assert filled.called == ["work", "work"]


def test_a_batch_holds_its_whole_size_until_it_is_closed_and_then_what_it_needs(filled: Filled) -> None:
    place = filled.add(partition=0)
    assert place is not None
    memory = filled.accumulator.memory
    assert memory.free == 2000
    filled.accumulator.close_for_sending(place[0])
    assert 2000 < memory.free < 3000
    filled.accumulator.settled(place[0])
    assert memory.free == 3000
    assert filled.accumulator.unsettled() == []


def test_without_memory_a_record_is_not_added_and_its_reservation_makes_the_sender_hurry(filled: Filled) -> None:
    for partition in range(3):
        filled.add(partition=partition)
    assert filled.add(b"x" * 900, partition=0) is None
    filled.called.clear()
    reservation = filled.reserve(b"x" * 900)
    assert filled.called == ["hurry"]
    assert not reservation.ready.is_done


def done(waiting: list[Reservation]) -> list[bool]:
    return [one.ready.is_done for one in waiting]


def test_memory_of_a_settled_batch_goes_to_the_oldest_call_and_those_whose_records_fit_into_its_batch() -> None:
    filled = Filled(buffer_memory=1000)
    first = filled.add(b"x" * 900, partition=1)
    assert first is not None
    waiting = [filled.reserve() for _ in range(5)]
    filled.accumulator.settled(first[0])
    assert done(waiting) == [True, True, False, False, False], "a third one may be too large by some bytes"
    batch, _ = filled.add_reserved(waiting[0])
    assert batch.share is not None
    filled.called.clear()
    assert filled.add_reserved(waiting[1]) == (batch, 1)
    assert done(waiting) == [True, True, True, False, False], "there was room for it"
    assert filled.called == []
    assert filled.add_reserved(waiting[2]) == (batch, 2)
    assert batch.share is None
    assert filled.called == ["look 0"], "no call is expected any more"
    assert batch.builder.limit == 1000
    filled.accumulator.close_for_sending(batch)
    filled.accumulator.settled(batch)
    assert done(waiting) == [True] * 5
    for one in waiting[3:]:
        filled.accumulator.cancel(one)
    assert filled.accumulator.memory.free == 1000


def test_other_calls_take_no_room_from_those_that_were_woken_for_a_batch() -> None:
    filled = Filled(buffer_memory=1000)
    first = filled.add(b"x" * 900, partition=1)
    assert first is not None
    one, two = filled.reserve(), filled.reserve()
    filled.accumulator.settled(first[0])
    batch, _ = filled.add_reserved(one)
    assert filled.add(b"x" * 200, partition=0) == (batch, 1), "there is room for both"
    assert filled.add(partition=0) is None
    assert filled.add_reserved(two) == (batch, 2)
    assert filled.add(b"x" * 50, partition=0) == (batch, 3)


@pytest.mark.parametrize("leaving", [0, 1])
def test_a_call_that_is_cancelled_when_it_was_woken_leaves_its_room_to_the_others(leaving: int) -> None:
    filled = Filled(buffer_memory=1000)
    first = filled.add(b"x" * 900, partition=1)
    assert first is not None
    waiting = [filled.reserve() for _ in range(4)]
    filled.accumulator.settled(first[0])
    if leaving:
        batch, _ = filled.add_reserved(waiting[0])
        filled.accumulator.cancel(waiting[1])
    else:
        filled.accumulator.cancel(waiting[0])
        batch, index = filled.add_reserved(waiting[1])
        assert index == 0
    assert done(waiting) == [True, True, True, False]
    assert filled.add_reserved(waiting[2]) == (batch, 1)
    assert done(waiting) == [True] * 4
    filled.accumulator.cancel(waiting[3])
    assert batch.share is None
    assert batch.builder.limit == 1000
    assert filled.add(b"x" * 200, partition=0) == (batch, 2)


def test_when_all_calls_that_were_woken_are_cancelled_their_memory_is_free_again() -> None:
    filled = Filled(buffer_memory=1000)
    first = filled.add(b"x" * 900, partition=1)
    assert first is not None
    waiting = [filled.reserve() for _ in range(2)]
    filled.accumulator.settled(first[0])
    for one in waiting:
        assert filled.accumulator.memory.free == 0
        filled.accumulator.cancel(one)
        filled.accumulator.cancel(one)
    assert filled.accumulator.memory.free == 1000


def test_a_batch_that_another_replaces_is_closed_when_the_calls_that_were_woken_for_it_have_added_theirs() -> None:
    filled = Filled(buffer_memory=2000)
    first = filled.add(b"x" * 900, partition=1)
    second = filled.add(b"x" * 900, partition=2)
    assert first is not None
    assert second is not None
    one, two = filled.reserve(), filled.reserve()
    filled.accumulator.settled(first[0])
    batch, _ = filled.add_reserved(one)
    filled.accumulator.settled(second[0])
    replacing, _ = filled.add(b"x" * 700, partition=0) or (None, None)
    assert replacing is not batch
    assert filled.topic.partitions[0].open is replacing
    assert filled.accumulator.memory.free == 0
    assert filled.add_reserved(two) == (batch, 1)
    assert batch.share is None
    assert 0 < filled.accumulator.memory.free == 2000 - 1000 - batch.builder.size
    assert list(filled.topic.partitions[0].queue) == [batch, replacing]


def test_a_call_that_was_woken_for_a_batch_that_is_closed_by_then_waits_in_its_place() -> None:
    filled = Filled(buffer_memory=1000)
    first = filled.add(b"x" * 900, partition=1)
    assert first is not None
    one, two, three = (filled.reserve() for _ in range(3))
    filled.accumulator.settled(first[0])
    batch, _ = filled.add_reserved(one)
    filled.accumulator.close_for_sending(batch)
    assert filled.add_reserved(two) is None
    filled.accumulator.wait_again(two, Future())
    assert not two.ready.is_done
    filled.accumulator.settled(batch)
    assert two.ready.is_done, "it is the oldest again"
    assert filled.add_reserved(two)[1] == 0
    assert three.ready.is_done


def test_a_record_that_is_larger_than_its_room_waits_for_a_batch_that_it_opens() -> None:
    filled = Filled(buffer_memory=1000)
    first = filled.add(b"x" * 900, partition=1)
    assert first is not None
    one, two = filled.reserve(b"x" * 450), filled.reserve(b"x" * 453)
    filled.accumulator.settled(first[0])
    batch, _ = filled.add_reserved(one, b"x" * 450)
    assert two.ready.is_done
    where = filled.topic.partitions[0]
    record = (10 * 365 * 86_400_000, None, b"x" * 453, [("header", b"x" * 20)])
    assert filled.accumulator.add_reserved(two, filled.topic, where, record) is None
    filled.accumulator.wait_again(two, Future())
    assert not two.ready.is_done
    filled.accumulator.close_for_sending(batch)
    filled.accumulator.settled(batch)
    assert filled.accumulator.add_reserved(two, filled.topic, where, record)[1] == 0


def test_a_pause_closes_a_batch_that_calls_were_woken_for_too() -> None:
    filled = Filled(buffer_memory=1000)
    first = filled.add(b"x" * 900, partition=1)
    assert first is not None
    one, two = filled.reserve(), filled.reserve()
    filled.accumulator.settled(first[0])
    batch, _ = filled.add_reserved(one)
    filled.accumulator.pause(IllegalStateError("not now"))
    with pytest.raises(IllegalStateError, match="not now"):
        filled.add_reserved(two)
    filled.accumulator.cancel(two)
    assert batch.share is None
    assert filled.accumulator.memory.free == 1000 - batch.builder.size


@pytest.mark.parametrize(("size", "limit"), [(3500, "buffer_memory"), (6000, "max_request_size")])
def test_a_record_that_can_never_be_sent_is_refused_by_name_of_the_limit(filled: Filled, size: int, limit: str) -> None:
    with pytest.raises(RecordTooLargeError, match=f"The record to t-0 takes .* bytes, which is more than {limit}"):
        filled.add(b"x" * size, partition=0)


def test_a_pause_closes_what_is_open_and_refuses_until_records_are_admitted(filled: Filled) -> None:
    filled.add(partition=0)
    filled.add()
    filled.accumulator.pause(IllegalStateError("not now"))
    assert not any(partition.open for partition in filled.topic.ordered)
    assert not filled.accumulator.sticky
    with pytest.raises(IllegalStateError, match="not now"):
        filled.add(partition=0)
    filled.accumulator.admit()
    assert filled.add(partition=0) is not None


def test_at_the_end_calls_that_wait_raise_why() -> None:
    filled = Filled(buffer_memory=1000)
    filled.add(b"x" * 900, partition=1)
    reservation = filled.reserve()
    filled.accumulator.refuse(ClientClosedError("closed"))
    assert filled.accumulator.closed
    with pytest.raises(ClientClosedError, match="closed"):
        reservation.ready.result()
    with pytest.raises(ClientClosedError, match="closed"):
        filled.add_reserved(reservation)


def test_a_topic_that_returns_continues_its_sequence_numbers(filled: Filled) -> None:
    filled.topic.partitions[0].next_sequence = 5
    filled.add()
    filled.accumulator.retire("t")
    assert "t" not in filled.accumulator.topics
    assert "t" not in filled.accumulator.sticky
    again = filled.accumulator.topic("t", range(4))
    assert again.partitions[0].next_sequence == 5
    assert len(again.ordered) == 4


def test_formats_before_kafka_0_11_fill_batches_too() -> None:
    filled = Filled()
    filled.accumulator.magic = 1
    place = filled.add(partition=0)
    assert place is not None
    assert place[0].builder.magic == 1
    assert filled.add(partition=0) == (place[0], 1)


def test_the_partition_of_a_key_is_that_of_the_default_partitioner_also_when_it_is_remembered_and_after_growth():
    accumulator = Filled().accumulator
    rng = random.Random(7)
    keys = [rng.randbytes(rng.choice((0, 1, 12, 128, 129, 5000))) for _ in range(500)]
    for count in (1, 6, 7, 1000):
        topic = accumulator.topic("events", range(count))
        choose = Murmur2Partitioner().choose
        for key in [*keys, *keys]:
            assert topic.by_key[key].index == choose("events", key, topic.indexes, ())


def test_the_keys_that_a_topic_remembers_are_bounded():
    topic = Filled().accumulator.topic("events", range(3))
    for number in range(20_000):
        topic.by_key[b"%d" % number]
    topic.by_key[b"k" * 1000]
    assert len(topic.by_key) <= 4096
    assert b"k" * 1000 not in topic.by_key


ADDS: dict[str, Any] = {
    "add": lambda filled: filled.add(),
    "add to a partition": lambda filled: filled.add(partition=0),
    "extend": lambda filled: filled.accumulator.extend(filled.topic, [VALUE], 0, 1),
    "extend_pairs": lambda filled: filled.accumulator.extend_pairs(filled.topic, [(None, VALUE)], 1, []),
    "extend_pairs with keys": lambda filled: filled.accumulator.extend_pairs(filled.topic, [(b"k", VALUE)], 1, []),
}


@pytest.mark.parametrize("how", ADDS)
def test_a_record_is_added_to_an_open_batch_under_the_lock(how: str) -> None:
    filled = Filled(partitions=1)
    place = filled.add()
    assert place is not None
    batch, held = place[0], []
    append, extend = batch.builder.append, batch.builder.extend

    class Watched(type(batch.builder)):  # type: ignore[misc]
        def append(self, *args: Any) -> int:
            held.append(filled.accumulator.inside())
            return append(*args)

        def extend(self, *args: Any, **more: Any) -> int:
            held.append(filled.accumulator.inside())
            return extend(*args, **more)

    watched = Watched(1000)
    watched.size = batch.builder.size
    batch.builder, batch.append = watched, watched.append
    ADDS[how](filled)
    assert held == [True]
    assert not filled.accumulator.inside()
