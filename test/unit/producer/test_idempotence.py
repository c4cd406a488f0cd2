"""kafka.producer.idempotence: the producer id, its epochs, and the sequence numbers of batches."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kafka.errors import ClusterAuthorizationFailedError, KafkaTimeoutError
from kafka.producer.idempotence import SEQUENCES, SequenceNumbers
from kafka.producer.producer_batch import Partition, ProducerBatch, Topic
from kafka.record.batch_builder import BatchBuilder
from test.unit.producer.memory_cluster import Cluster

NOT_AVAILABLE = 15
NOT_AUTHORIZED = 31


def header(cluster: Cluster) -> tuple[int, int]:
    """Return producer id and first sequence number of the last batch on the wire."""
    (topic,) = cluster.asked("Produce")[-1].topic_data
    data = bytes(topic.partition_data[0].records)
    return int.from_bytes(data[43:51], "big", signed=True), int.from_bytes(data[53:57], "big", signed=True)


def test_the_id_is_requested_once_and_numbers_every_batch(make_producer: Any) -> None:
    cluster = Cluster({"events": 2})
    producer = make_producer(cluster, enable_idempotence=True)
    for _ in range(2):
        producer.send("events", b"x", partition=0).get(10)
        producer.send("events", b"x", partition=1).get(10)
        assert header(cluster)[0] == 7
    assert header(cluster)[1] == 1
    assert len(cluster.asked("InitProducerId")) == 1


def test_a_request_for_the_id_is_repeated_after_a_retriable_error(make_producer: Any) -> None:
    cluster = Cluster({"events": 1})
    answers = [{"error_code": NOT_AVAILABLE}, {"error_code": NOT_AVAILABLE}, {"producer_id": 9, "producer_epoch": 2}]
    cluster.brokers[0].on("InitProducerId", lambda _request, _session: answers.pop(0))
    producer = make_producer(cluster, enable_idempotence=True)
    producer.send("events", b"x").get(10)
    assert header(cluster) == (9, 0)


def test_without_an_id_the_error_of_a_record_names_the_reason(make_producer: Any) -> None:
    cluster = Cluster({"events": 1})
    cluster.brokers[0].on("InitProducerId", {"error_code": NOT_AVAILABLE})
    producer = make_producer(cluster, enable_idempotence=True, delivery_timeout_ms=2000, request_timeout_ms=1000)
    with pytest.raises(KafkaTimeoutError, match="no producer id yet: "):
        producer.send("events", b"x").get(10)


def test_a_principal_that_may_not_write_idempotently_writes_without_unless_it_is_required(
    make_producer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = Cluster({"events": 1})
    cluster.brokers[0].on("InitProducerId", {"error_code": NOT_AUTHORIZED})
    producer = make_producer(cluster, enable_idempotence=True)
    producer.core.producer._required = False  # as by default
    assert producer.send("events", b"x").get(10).offset == 0
    assert header(cluster) == (-1, -1)
    assert "continuing without idempotence" in caplog.text
    another = Cluster({"events": 1})
    another.brokers[0].on("InitProducerId", {"error_code": NOT_AUTHORIZED})
    required = make_producer(another, enable_idempotence=True)
    with pytest.raises(ClusterAuthorizationFailedError):
        required.send("events", b"x").get(10)
    assert "Cannot obtain a producer id" in caplog.text


class Numbering:
    """Sequence numbers of one partition, without a producer."""

    def __init__(self, *, is_transactional: bool = False) -> None:
        self.id = SimpleNamespace(producer_id=7, epoch=0, enabled=True, renewed=0)
        self.id.renew = self.renew
        self.postponed: list[Partition] = []
        accumulator: Any = SimpleNamespace(close_for_sending=lambda _batch: None)
        identity: Any = self.id
        self.numbers = SequenceNumbers(identity, accumulator, self.postponed.append, is_transactional=is_transactional)
        owner: Any = None
        self.partition = Partition(Topic("t"), 0, owner)

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
        return self.numbers.ensure_epoch(self.partition, self.partition.queue[0])


def test_batches_are_numbered_by_their_records_and_begin_again_after_the_last_number() -> None:
    of = Numbering()
    first = of.batch(3)
    assert of.ensure()
    of.partition.next_sequence = SEQUENCES - 1
    of.numbers.seal(first)
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
    assert of.postponed == [of.partition]


def test_sealed_batches_get_new_numbers_in_the_order_of_the_queue() -> None:
    of = Numbering()
    first, second, third = of.batch(2), of.batch(3), of.batch()
    assert of.ensure()
    of.numbers.seal(second)
    of.partition.sequence_gap = True
    assert of.ensure()
    assert [(batch.sealed.producer_epoch, batch.sealed.base_sequence) for batch in (first, second)] == [(1, 0), (1, 2)]
    assert third.sealed is None
    assert of.partition.next_sequence == 5


def test_parts_of_a_divided_batch_have_its_numbers() -> None:
    of = Numbering()
    whole = of.batch(4)
    assert of.ensure()
    of.partition.next_sequence = 10
    of.numbers.seal(whole)
    parts = [of.batch(2), of.batch(2)]
    of.numbers.seal_parts(whole, parts)
    assert [part.sealed.base_sequence for part in parts] == [10, 12]
    assert of.partition.next_sequence == 14


def test_a_batch_behind_a_divided_one_keeps_its_number_and_the_next_one_follows_it() -> None:
    of = Numbering(is_transactional=True)
    whole, behind = of.batch(4), of.batch(3)
    assert of.ensure()
    for batch in (whole, behind):
        of.numbers.seal(batch)
    parts = [of.batch(2), of.batch(2)]
    of.numbers.seal_parts(whole, parts)
    assert [batch.sealed.base_sequence for batch in (*parts, behind)] == [0, 2, 4]
    following = of.batch()
    of.numbers.seal(following)
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
