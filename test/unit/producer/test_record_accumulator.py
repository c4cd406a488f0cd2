"""kafka.producer.record_accumulator: which batch a record goes into, and what memory the batches hold."""

from __future__ import annotations

import random
import time
from types import SimpleNamespace
from typing import Any

import pytest

from kafka.errors import ClientClosedError, IllegalStateError, RecordTooLargeError
from kafka.partitioner import Murmur2Partitioner
from kafka.producer.buffer_pool import Reservation
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
            work=lambda: self.called.append("work"),
            hurry_all=lambda: self.called.append("hurry"),
            call_soon=lambda f, *args: f(*args),
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

    def add(self, value: bytes = VALUE, partition: int | None = None) -> tuple[ProducerBatch, int] | None:
        where = None if partition is None else self.topic.partitions[partition]
        return self.accumulator.add(self.topic, where, (1, None, value, None))

    def reserve(self, value: bytes = VALUE, partition: int = 0) -> Reservation:
        found = self.accumulator.reserve(self.topic, self.topic.partitions[partition], (1, None, value, None))
        self.accumulator.wait(found)
        return found

    def add_reserved(self, reservation: Reservation, value: bytes = VALUE, partition: int = 0) -> Any:
        return self.accumulator.add(self.topic, self.topic.partitions[partition], (1, None, value, None), reservation)


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
    filled.accumulator.close(place[0])
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


def test_memory_of_settled_batches_goes_to_the_calls_that_wait_in_their_order() -> None:
    filled = Filled(buffer_memory=2000)
    held = [filled.add(b"x" * 900, partition=at) for at in (1, 2)]
    waiting = [filled.reserve() for _ in range(5)]
    for place in held:
        assert place is not None
        filled.accumulator.settled(place[0])
    assert done(waiting) == [True, True, False, False, False]
    batch, index = filled.add_reserved(waiting[0])
    assert index == 0
    assert filled.add_reserved(waiting[1]) == (batch, 1), "it is open by then"
    assert done(waiting) == [True, True, True, False, False], "the memory that it did not need"
    filled.accumulator.close(batch)
    filled.accumulator.settled(batch)
    assert done(waiting) == [True, True, True, True, False]
    for one in waiting[2:]:
        filled.accumulator.cancel(one)
        filled.accumulator.cancel(one)
    assert filled.accumulator.memory.free == 2000


def test_a_call_that_is_cancelled_when_its_memory_was_granted_passes_it_on() -> None:
    filled = Filled(buffer_memory=1000)
    first = filled.add(b"x" * 900, partition=1)
    assert first is not None
    one, two = filled.reserve(), filled.reserve()
    filled.accumulator.settled(first[0])
    assert done([one, two]) == [True, False]
    filled.accumulator.cancel(one)
    assert done([one, two]) == [True, True]
    assert filled.add_reserved(two)[1] == 0
    assert filled.accumulator.memory.free == 0


def test_memory_that_closing_a_full_batch_frees_leaves_a_call_that_was_granted_its_own() -> None:
    filled = Filled(buffer_memory=2000)
    full = filled.add(b"x" * 700)
    other = filled.add(b"x" * 900, partition=1)
    assert full is not None
    assert other is not None
    record = (1, None, b"x" * 900, None)
    one = filled.accumulator.reserve(filled.topic, None, record)
    filled.accumulator.wait(one)
    two = filled.reserve(b"x" * 150)
    filled.accumulator.settled(other[0])
    assert done([one, two]) == [True, False]
    place = filled.accumulator.add(filled.topic, None, record, one)
    assert place is not None
    assert place[0] is not full[0]
    assert filled.accumulator.memory.free >= 0
    assert not two.ready.is_done, "what the full batch did not need is not enough"


def test_a_pause_refuses_a_call_whose_memory_was_granted() -> None:
    filled = Filled(buffer_memory=1000)
    first = filled.add(b"x" * 900, partition=1)
    assert first is not None
    one = filled.reserve()
    filled.accumulator.settled(first[0])
    filled.accumulator.pause(IllegalStateError("not now"))
    with pytest.raises(IllegalStateError, match="not now"):
        filled.add_reserved(one)
    filled.accumulator.cancel(one)
    assert filled.accumulator.memory.free == 1000


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
    filled.accumulator.pause(ClientClosedError("closed"), for_good=True)
    filled.accumulator.admit()
    filled.accumulator.pause(IllegalStateError("not now"))
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
    filled.accumulator.use_format(1)
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
    "try_append": lambda filled: filled.accumulator.try_append("t", None, VALUE, 1),
    "try_append with a key": lambda filled: filled.accumulator.try_append("t", b"k", VALUE, 1),
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
