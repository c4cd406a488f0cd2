"""kafka.producer.partition: sequence numbers and epochs, and the order of what is sent again."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

from kafka.errors import KafkaError
from kafka.producer.partition import SEQUENCES, Partition, Topic
from kafka.producer.producer_batch import ProducerBatch
from kafka.record.batch_builder import BatchBuilder


class Numbering:
    """Sequence numbers of one partition, without a producer."""

    def __init__(self, *, is_transactional: bool = False) -> None:
        self.id = SimpleNamespace(producer_id=7, epoch=0, enabled=True, renewed=0)
        self.id.renew = self.renew
        sender: Any = SimpleNamespace(
            accumulator=SimpleNamespace(close=lambda _batch: None, lock=nullcontext()),
            producer=self.id,
            transactions=SimpleNamespace(admits=lambda _partition: True) if is_transactional else None,
            backoff=SimpleNamespace(delay=lambda _failures: 5.0),
            loop=SimpleNamespace(time=lambda: 100.0),
            resting=set(),
            rest=lambda partition, until: self.rests.append((until, partition)),
            max_in_flight=5,
        )
        self.rests: list[tuple[float, Partition]] = []
        self.partition = Partition(Topic("t"), 0, sender)

    def renew(self) -> None:
        self.id.renewed += 1
        self.id.producer_id = -1

    def batch(self, count: int = 1) -> ProducerBatch:
        batch = ProducerBatch(self.partition, BatchBuilder(1000), 0.0, 0)
        for _ in range(count):
            batch.append(1, None, b"x", None)
        self.partition.queue.append(batch)
        return batch

    def ensure(self) -> bool:
        return self.partition._ensure_epoch(self.partition.queue[0])


def test_batches_are_numbered_by_their_records_and_begin_again_after_the_last_number() -> None:
    of = Numbering()
    first = of.batch(3)
    assert of.ensure()
    of.partition.next_sequence = SEQUENCES - 1
    of.partition._seal(first)
    assert of.partition.next_sequence == 2


def test_a_gap_begins_another_epoch_when_nothing_is_in_flight() -> None:
    of = Numbering()
    batch = of.batch()
    assert of.ensure()
    of.partition.sequence_gap = of.partition.epoch_accepted = True
    of.partition.next_sequence = 5
    of.partition.in_flight.append(batch)
    assert not of.ensure()
    of.partition.in_flight.clear()
    assert of.ensure()
    assert (of.partition.epoch, of.partition.next_sequence) == (1, 0)
    assert not of.partition.sequence_gap
    assert not of.partition.epoch_accepted


def test_a_batch_that_may_be_in_the_log_is_sent_as_it_is_before_a_new_epoch() -> None:
    of = Numbering()
    batch = of.batch()
    assert of.ensure()
    of.partition.sequence_gap = batch.unsure = True
    assert of.ensure()
    assert of.partition.epoch == 0


def test_after_the_last_epoch_comes_another_id() -> None:
    of = Numbering()
    of.batch()
    assert of.ensure()
    of.partition.epoch, of.partition.sequence_gap = 2**15 - 1, True
    assert not of.ensure()
    assert of.id.renewed == 1
    assert of.rests == [(105.0, of.partition)]


def test_sealed_batches_get_new_numbers_in_the_order_of_the_queue() -> None:
    of = Numbering()
    first, second, third = of.batch(2), of.batch(3), of.batch()
    assert of.ensure()
    of.partition._seal(second)
    of.partition.sequence_gap = True
    assert of.ensure()
    assert [(batch.sealed.producer_epoch, batch.sealed.base_sequence) for batch in (first, second)] == [(1, 0), (1, 2)]
    assert third.sealed is None
    assert of.partition.next_sequence == 5


def test_a_batch_that_was_answered_before_its_turn_keeps_its_number_in_another_epoch() -> None:
    of = Numbering()
    again, answered, behind = of.batch(), of.batch(2), of.batch()
    assert of.ensure()
    for batch in (again, answered, behind):
        of.partition._seal(batch)
    answered.answer = KafkaError("it waits for the batch before it")
    of.partition.sequence_gap = True
    assert of.ensure()
    numbers = [(batch.sealed.producer_epoch, batch.sealed.base_sequence) for batch in (again, answered, behind)]
    assert numbers == [(1, 0), (0, 1), (1, 1)]


def test_parts_of_a_divided_batch_have_its_numbers() -> None:
    of = Numbering()
    whole = of.batch(4)
    assert of.ensure()
    of.partition.next_sequence = 10
    of.partition._seal(whole)
    parts = [of.batch(2), of.batch(2)]
    of.partition._seal_parts(whole, parts)
    assert [part.sealed.base_sequence for part in parts] == [10, 12]
    assert of.partition.next_sequence == 14


def test_a_batch_behind_a_divided_one_keeps_its_number_and_the_next_one_follows_it() -> None:
    of = Numbering(is_transactional=True)
    whole, behind = of.batch(4), of.batch(3)
    assert of.ensure()
    for batch in (whole, behind):
        of.partition._seal(batch)
    parts = [of.batch(2), of.batch(2)]
    of.partition._seal_parts(whole, parts)
    assert [batch.sealed.base_sequence for batch in (*parts, behind)] == [0, 2, 4]
    following = of.batch()
    of.partition._seal(following)
    assert following.sealed.base_sequence == 7


def test_in_a_transaction_a_gap_stops_the_partition_until_there_is_another_epoch() -> None:
    of = Numbering(is_transactional=True)
    of.batch()
    assert of.ensure()
    of.partition.sequence_gap = of.partition.epoch_accepted = True
    of.partition.next_sequence = 5
    assert not of.ensure()
    of.id.epoch = 1
    assert of.ensure()
    assert of.partition.next_sequence == 0
    assert of.partition.epoch_accepted, "the leader knows the epoch before, so it accepts nothing but 0"


def test_batches_sent_again_return_to_the_head_of_the_queue() -> None:
    of = Numbering()
    first, second, third = of.batch(), of.batch(), of.batch()
    of.partition.queue.clear()
    of.partition.queue.append(third)
    of.partition.in_flight += [first, second]
    of.partition.draining, of.partition.not_before = True, 105.0
    of.partition.advance()
    assert list(of.partition.queue) == [first, second, third]
    assert not of.partition.in_flight
    assert of.rests == [(105.0, of.partition)]
