"""kafka.producer.record_accumulator: which batch a record goes into, and what memory the batches hold."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from kafka.errors import ClientClosedError, IllegalStateError, RecordTooLargeError
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
            work_soon=lambda: self.called.append("work"),
            hurry_soon=lambda: self.called.append("hurry"),
            look_soon=lambda partition: self.called.append(f"look {partition.index}"),
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


def test_memory_of_a_settled_batch_goes_to_the_oldest_reservation_and_its_batch_is_joined_by_others() -> None:
    filled = Filled(buffer_memory=1000)
    first = filled.add(b"x" * 900, partition=1)
    assert first is not None
    waiting = [filled.reserve() for _ in range(4)]
    filled.accumulator.settled(first[0])
    assert [one.ready.is_done for one in waiting] == [True, False, False, False]
    place = filled.add_reserved(waiting[0])
    assert [one.ready.is_done for one in waiting] == [True, True, False, False]
    assert place[0].expected
    filled.called.clear()
    assert filled.add_reserved(waiting[1]) == (place[0], 1)
    assert [one.ready.is_done for one in waiting] == [True, True, True, False], "each wakes the next one"
    assert filled.called == []
    filled.accumulator.cancel(waiting[2])
    assert waiting[3].ready.is_done, "one that is cancelled too"
    assert filled.add_reserved(waiting[3]) == (place[0], 2)
    assert filled.called == ["look 0"], "no call is expected any more"


def test_a_call_that_was_woken_for_a_batch_that_is_closed_by_then_waits_in_its_place() -> None:
    filled = Filled(buffer_memory=1000)
    first = filled.add(b"x" * 900, partition=1)
    assert first is not None
    one, two, three = (filled.reserve() for _ in range(3))
    filled.accumulator.settled(first[0])
    batch, _ = filled.add_reserved(one)
    filled.accumulator.close_for_sending(batch)
    assert filled.add_reserved(two) is None
    assert not two.ready.is_done
    filled.accumulator.settled(batch)
    assert two.ready.is_done, "it is the oldest again"
    assert filled.add_reserved(two)[1] == 0
    assert three.ready.is_done


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


def test_batches_sent_again_return_to_the_head_of_the_queue(filled: Filled) -> None:
    for _ in range(4):
        filled.add(partition=0)
    partition = filled.topic.partitions[0]
    first, second = partition.queue
    partition.queue.popleft()
    partition.queue.popleft()
    filled.accumulator.put_back(partition, [first, second])
    assert list(partition.queue) == [first, second]


def test_formats_before_kafka_0_11_fill_batches_too() -> None:
    filled = Filled()
    filled.accumulator.magic = 1
    place = filled.add(partition=0)
    assert place is not None
    assert place[0].builder.magic == 1
    assert filled.add(partition=0) == (place[0], 1)
