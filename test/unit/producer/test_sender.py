"""Partitions, sender and sinks: order, retries, sequence numbers, and errors that are true about what is written."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from kafka.errors import (
    KafkaError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    NotLeaderForPartitionError,
    OutcomeUnknownError,
    OutcomeUnknownTimeoutError,
    TopicAuthorizationFailedError,
)
from kafka.testing.scripted_broker import SILENCE
from test.unit.producer.memory_cluster import Cluster

NOT_LEADER = 6
TOO_LARGE = 10
NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
NOT_AUTHORIZED = 29
OUT_OF_ORDER = 45
RECORD = b"x" * 900


class Sent(NamedTuple):
    """The numbers of a batch as they were on the wire."""

    epoch: int
    sequence: int
    count: int


def sent(cluster: Cluster) -> list[Sent]:
    found = []
    for request in cluster.asked("Produce"):
        for topic in request.topic_data:
            for each in topic.partition_data:
                data = bytes(each.records)
                number = int.from_bytes
                found.append(
                    Sent(
                        number(data[51:53], "big", signed=True),
                        number(data[53:57], "big", signed=True),
                        number(data[57:61], "big"),
                    )
                )
    return found


@pytest.fixture
def numbered(make_producer: Any) -> Any:
    """An idempotent producer whose leader has accepted a batch of its epoch; records of 900 bytes fill a batch each."""

    def make(**options: Any) -> tuple[Any, Cluster]:
        cluster = Cluster({"events": 1})
        producer = make_producer(cluster, enable_idempotence=True, batch_size=1000, **options)
        assert producer.send("events", RECORD).get(10).offset == 0
        return producer, cluster

    return make


def test_the_first_batch_of_an_epoch_is_in_flight_alone(make_producer: Any) -> None:
    cluster = Cluster({"events": 1})
    producer = make_producer(cluster, enable_idempotence=True, batch_size=1000, linger_ms=0)
    cluster.script.append(SILENCE)
    producer.partitions_for("events")
    for _ in range(3):
        producer.send("events", RECORD)
    producer.rest(1)
    assert sent(cluster) == [Sent(0, 0, 1)]
    producer.flush()
    assert cluster.offsets["events", 0] == 3


def test_after_it_several_batches_are_in_flight(numbered: Any) -> None:
    producer, cluster = numbered()
    cluster.script.extend([SILENCE] * 10)
    for _ in range(7):
        producer.send("events", RECORD)
    producer.rest(0.1)
    assert [batch.sequence for batch in sent(cluster)] == [0, 1, 2, 3, 4, 5], "five: brokers remember that many"
    producer.purge(in_flight=True)


def test_a_batch_that_is_sent_again_keeps_its_number_and_its_place(numbered: Any) -> None:
    producer, cluster = numbered()
    cluster.script.extend([NOT_LEADER, OUT_OF_ORDER, OUT_OF_ORDER])
    futures = [producer.send("events", RECORD) for _ in range(3)]
    producer.flush()
    assert [future.get(0).offset for future in futures] == [1, 2, 3]
    assert sent(cluster)[1:] == [Sent(0, number, 1) for number in (1, 2, 3, 1, 2, 3)]


def test_batches_that_are_acknowledged_behind_one_that_is_sent_again_are_not_sent_again(numbered: Any) -> None:
    producer, cluster = numbered()
    cluster.script.append(NOT_ENOUGH_REPLICAS_AFTER_APPEND)
    futures = [producer.send("events", RECORD) for _ in range(8)]
    producer.flush()
    assert all(future.succeeded() for future in futures)
    numbers = [batch.sequence for batch in sent(cluster)[1:]]
    assert numbers == [1, 2, 3, 4, 5, 1, 6, 7, 8], (
        "none behind the five that brokers remember before the first is written"
    )


def test_a_batch_that_is_given_up_leaves_the_acknowledged_ones_behind_it_acknowledged(numbered: Any) -> None:
    producer, cluster = numbered()
    cluster.script.extend([NOT_LEADER, 0, 0, NOT_LEADER, NOT_AUTHORIZED])
    first, second, third = [producer.send("events", RECORD) for _ in range(3)]
    producer.flush()
    assert isinstance(first.exception, TopicAuthorizationFailedError)
    assert second.succeeded()
    assert third.succeeded()
    assert [batch.sequence for batch in sent(cluster)[1:]] == [1, 2, 3, 1, 1]
    assert producer.send("events", RECORD).get(10)
    assert sent(cluster)[-1] == Sent(1, 0, 1)


def test_nothing_more_is_sent_before_all_answers_have_arrived(numbered: Any) -> None:
    producer, cluster = numbered(request_timeout_ms=2000, retry_backoff_ms=10)
    cluster.script.extend([NOT_LEADER, SILENCE])
    batches = [producer.send("events", RECORD)._batch for _ in range(2)]
    producer.core.call_soon(producer.core.sender.hurry, *batches)
    producer.rest(1.0)
    assert len(sent(cluster)) == 3, "the second batch has no answer yet"
    producer.flush()
    assert [batch.sequence for batch in sent(cluster)[1:]] == [1, 2, 1, 2]


def test_a_new_epoch_waits_for_the_answer_to_a_batch_that_has_expired_in_flight(numbered: Any) -> None:
    producer, cluster = numbered(request_timeout_ms=2900, delivery_timeout_ms=3000, retry_backoff_ms=1000)
    cluster.script.extend([NOT_LEADER, SILENCE])
    with pytest.raises(OutcomeUnknownTimeoutError):
        producer.send("events", RECORD).get(10)
    assert len(sent(cluster)) == 3
    following = producer.send("events", RECORD)
    producer.rest(0.1)
    assert len(sent(cluster)) == 3, "the last attempt may still be written, before or behind what is sent now"
    assert following.get(10)
    assert sent(cluster)[3:] == [Sent(1, 0, 1)]


def test_after_a_batch_that_was_given_up_the_next_one_begins_another_epoch(numbered: Any) -> None:
    producer, cluster = numbered()
    cluster.script.append(NOT_AUTHORIZED)
    with pytest.raises(TopicAuthorizationFailedError):
        producer.send("events", RECORD).get(10)
    assert producer.send("events", RECORD).get(10).offset == 1
    assert sent(cluster) == [Sent(0, 0, 1), Sent(0, 1, 1), Sent(1, 0, 1)]


def test_a_batch_that_is_too_large_is_divided_and_each_record_finds_its_offset(make_producer: Any) -> None:
    cluster = Cluster({"events": 1})
    producer = make_producer(cluster, enable_idempotence=True, linger_ms=1000)
    cluster.script.append(TOO_LARGE)
    futures = [producer.send("events", b"x" * 100) for _ in range(20)]
    assert [future.get(10).offset for future in futures] == list(range(20))
    whole, *parts = sent(cluster)
    assert whole.count == sum(part.count for part in parts) == 20
    assert len(parts) > 1


def test_a_record_alone_that_is_too_large_fails(make_producer: Any) -> None:
    cluster = Cluster({"events": 1})
    producer = make_producer(cluster)
    cluster.script.append(TOO_LARGE)
    with pytest.raises(MessageSizeTooLargeError):
        producer.send("events", b"x").get(10)


def test_a_record_that_was_never_sent_is_not_written_and_its_error_says_so(make_producer: Any) -> None:
    cluster = Cluster({"events": 1})
    cluster.leaders["events", 0] = -1
    producer = make_producer(cluster, delivery_timeout_ms=3000, request_timeout_ms=1000, linger_ms=0)
    future = producer.send("events", b"x")
    with pytest.raises(KafkaTimeoutError, match=r"not acknowledged within 3\.0 seconds .* after 0 attempts") as raised:
        future.get(10)
    assert not isinstance(raised.value, OutcomeUnknownTimeoutError)
    assert "no leader for events-0" in str(raised.value)


def test_each_record_expires_when_its_own_delivery_timeout_ms_has_passed(make_producer: Any) -> None:
    cluster = Cluster({"events": 3})
    cluster.leaders.update(dict.fromkeys([("events", index) for index in range(3)], -1))
    producer = make_producer(cluster, delivery_timeout_ms=3000, request_timeout_ms=1000, linger_ms=0)
    producer.partitions_for("events")
    began, futures, ended = cluster.now, [], []
    for index in range(3):
        futures.append(producer.send("events", b"x", partition=index))
        producer.rest(1)
    for future in futures:
        with pytest.raises(KafkaTimeoutError):
            future.get(10)
        ended.append(round(cluster.now - began))
    assert ended == [3, 4, 5]


def test_a_record_whose_last_answer_is_missing_may_be_written_and_its_error_says_so(make_producer: Any) -> None:
    cluster = Cluster({"events": 1})
    cluster.script.extend([SILENCE] * 20)
    producer = make_producer(cluster, delivery_timeout_ms=3000, request_timeout_ms=1000, linger_ms=0)
    with pytest.raises(OutcomeUnknownTimeoutError) as raised:
        producer.send("events", b"x").get(10)
    assert raised.value.outcome_unknown


@pytest.mark.parametrize("idempotent", [True, False])
def test_a_record_that_expires_while_it_is_in_flight_may_be_written_and_its_error_says_so(
    make_producer: Any, idempotent: bool
) -> None:
    cluster = Cluster({"events": 1})
    cluster.script.append(SILENCE)
    producer = make_producer(
        cluster, enable_idempotence=idempotent, delivery_timeout_ms=3000, request_timeout_ms=3000, linger_ms=0
    )
    with pytest.raises(OutcomeUnknownTimeoutError) as raised:
        producer.send("events", b"x").get(10)
    assert raised.value.outcome_unknown


@pytest.mark.parametrize(
    "reply",
    [
        b"\x80\0\0\0",
        b"HTTP/1.1 400 Bad Request\r\n",
        b"\x15\x03\x03\x00\x02\x02\x50",
        b"\0\0\0\x06\xff\xff\xff\xff\0\0",
        b"\0\0\0\x04\0\0\0\x63",
    ],
    ids=["size", "HTTP", "TLS alert", "id", "short"],
)
@pytest.mark.parametrize("idempotent", [True, False])
def test_a_reply_that_is_broken_leaves_the_outcome_open_and_the_batch_is_sent_again(
    make_producer: Any, reply: bytes, idempotent: bool
) -> None:
    cluster = Cluster({"events": 1})
    cluster.script.append(reply)
    producer = make_producer(cluster, enable_idempotence=idempotent, linger_ms=0)
    assert producer.send("events", b"x").get(10).offset == 0
    assert len(cluster.asked("Produce")) == 2
    first, second = sent(cluster) if idempotent else (None, None)
    assert first == second
    cluster.script.extend([reply] * 100)
    unsure = producer.send("events", b"x")
    producer.rest(1)
    producer.purge(in_flight=True)
    with pytest.raises(KafkaError) as raised:
        unsure.get(0)
    assert raised.value.outcome_unknown


def test_a_definite_error_after_an_unanswered_attempt_is_not_definite(make_producer: Any) -> None:
    cluster = Cluster({"events": 1})
    cluster.script.extend([SILENCE, NOT_AUTHORIZED])
    producer = make_producer(cluster, request_timeout_ms=1000, linger_ms=0)
    with pytest.raises(OutcomeUnknownError, match="an earlier one may have written it") as raised:
        producer.send("events", b"x").get(10)
    assert isinstance(raised.value.__cause__, TopicAuthorizationFailedError)


@pytest.mark.parametrize(("retries", "in_flight"), [(0, 3), (2**31 - 1, 1)])
def test_without_idempotence_only_a_producer_that_does_not_retry_has_several_batches_in_flight(
    make_producer: Any, retries: int, in_flight: int
) -> None:
    cluster = Cluster({"events": 1})
    cluster.script.extend([SILENCE] * 5)
    producer = make_producer(cluster, retries=retries, batch_size=1000, max_in_flight_requests_per_connection=3)
    producer.partitions_for("events")
    for _ in range(5):
        producer.send("events", RECORD)
    producer.rest(0.1)
    assert len(sent(cluster)) == in_flight
    producer.purge(in_flight=True)


@pytest.mark.parametrize("retries", [0, 2])
def test_a_batch_is_sent_again_as_often_as_retries_says(make_producer: Any, retries: int) -> None:
    cluster = Cluster({"events": 1})
    cluster.script.extend([NOT_LEADER] * 5)
    producer = make_producer(cluster, retries=retries)
    with pytest.raises(NotLeaderForPartitionError):
        producer.send("events", b"x").get(10)
    assert len(sent(cluster)) == 1 + retries


def test_a_partition_whose_leader_moves_is_sent_to_the_new_one(make_producer: Any) -> None:
    cluster = Cluster({"events": 1}, nodes=2)
    producer = make_producer(cluster)
    producer.send("events", b"x").get(10)
    cluster.leaders["events", 0] = 1

    def refuse(request: Any, _session: Any) -> Any:
        cluster.script.append(NOT_LEADER)
        return cluster.produce(request, 0)

    cluster.brokers[0].on("Produce", refuse)
    assert producer.send("events", b"x").get(10).offset == 1
    assert len(cluster.brokers[1].asked("Produce")) == 1


def test_each_batch_is_given_up_at_its_own_time(make_producer: Any) -> None:
    cluster = Cluster({"events": 2})
    cluster.leaders = {("events", 0): -1, ("events", 1): -1}
    producer = make_producer(cluster, delivery_timeout_ms=3000, request_timeout_ms=1000, linger_ms=0)
    producer.partitions_for("events")
    began = cluster.now
    ended: list[float] = []
    for partition in range(2):
        producer.send("events", b"x", partition=partition).add_errback(lambda _: ended.append(cluster.now - began))
        producer.rest(1.0)
    producer.rest(3.0)
    assert ended == [pytest.approx(3.0), pytest.approx(4.0)]
    assert not producer.core.accumulator.unsettled()
