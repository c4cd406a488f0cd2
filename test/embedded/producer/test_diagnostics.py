"""Errors of time that is up name what was waited for: what is wrong, where, and what to look at."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from kafka import KafkaProducer
from kafka.broker import Broker
from kafka.broker.faults import NO_REPLY
from kafka.errors import BufferExhaustedError, KafkaTimeoutError, OutcomeUnknownTimeoutError, for_code

from .conftest import WAIT

FACES = "both"

# Long enough for an attempt on a busy machine, where the reason is to be found; the wait itself is what is tested.
SOON = 1.0


@contextmanager
def stopped(broker: Broker, *nodes: int) -> Iterator[None]:
    for node in nodes:
        broker.stop_node(node, crash=True)
    try:
        yield
    finally:
        for node in nodes:
            broker.start_node(node)


def why(action: Callable[[], object], error: type[KafkaTimeoutError] = KafkaTimeoutError) -> str:
    with pytest.raises(error) as caught:
        action()
    return str(caught.value)


def why_at_last(action: Callable[[], object], reason: str) -> str:
    """What is said once a reason was found, which a busy machine takes its time for."""
    deadline = time.monotonic() + WAIT
    while not re.search(reason, told := why(action)):
        assert time.monotonic() < deadline, told
    return told


def warm(make: Callable[..., KafkaProducer], topic: str, **options: object) -> KafkaProducer:
    """A producer with a producer id and a connection to the topic's leader."""
    options = {"linger_ms": 0, "delivery_timeout_ms": SOON * 1000, "request_timeout_ms": SOON * 1000, **options}
    producer = make(**options)
    for _ in range(WAIT):  # a busy machine may take longer than the time that is tested here
        with suppress(KafkaTimeoutError):
            producer.send(topic, b"first", partition=0).get(WAIT)
            break
    return producer


def test_a_dead_cluster_refuses_connections(make, broker, topic):
    producer = warm(make, topic)
    with stopped(broker, *broker.node_ids):
        told = why(producer.send(topic, b"x", partition=0).get)
    assert f"1 record to {topic}-0 not acknowledged within" in told
    assert re.search(r"broker \S+ \(127.0.0.1:\d+\): .*refused.*see whether it runs", told), told


def test_what_get_and_flush_and_close_waited_for(make, broker, topic, caplog):
    producer = warm(make, topic, delivery_timeout_ms=60_000)
    with stopped(broker, *broker.node_ids):
        future = producer.send(topic, b"x", partition=0)
        told = [why_at_last(lambda: future.get(0.1), "refused"), why(lambda: producer.flush(0.01))]
        producer.close(timeout=0.01)
    told += [str(future.exception), caplog.messages[-1]]
    for one in told:
        assert "refused" in one, told
    assert "still being sent" in told[0]
    assert "1 record left" in told[1]
    assert "was closed before this record was written" in told[2]
    assert f"1 record to topic {topic!r} failed" in told[3]


def test_a_partition_without_a_leader(make, broker, topic):
    producer = warm(make, topic)
    leader = broker.leader(topic)
    with stopped(broker, leader):
        told = why(producer.send(topic, b"x", partition=0).get)
    assert f"no leader for {topic}-0 (LeaderNotAvailableError)" in told, told
    assert f"see whether one of its replicas, brokers [{leader}], runs" in told


def test_a_broker_that_hangs(make, broker, topic):
    producer = warm(make, topic)
    # The request's time and the record's are over at once.
    silence = (
        r"broker \d \(127.0.0.1:\d+\) .*(has not answered for \d+.\d seconds: see whether it hangs|no response to Pro)"
    )
    with broker.intercept(None, lambda _exchange: NO_REPLY, before=True):
        future = producer.send(topic, b"x", partition=0)
        why_at_last(lambda: future.get(0.1), silence)
        late = why(future.get, OutcomeUnknownTimeoutError)
        broker.drop_connections()
    assert re.search(silence, late), late


def test_a_broker_that_throttles(make, broker, topic):
    producer = warm(make, topic)

    def throttle(exchange):
        exchange.reply.throttle_time_ms = 60_000

    with broker.intercept("Produce", throttle):
        producer.send(topic, b"1", partition=0).get(WAIT)
    told = why(producer.send(topic, b"2", partition=0).get)
    assert re.search(r"broker \d \(127.0.0.1:\d+\) throttles this client for another \d+\.\d seconds", told), told
    assert "quotas" in told


def test_a_producer_id_that_is_refused(make, broker, topic):
    producer = make(linger_ms=0, delivery_timeout_ms=SOON * 1000, request_timeout_ms=SOON * 1000)
    producer.partitions_for(topic)
    with broker.fail("InitProducerId", [for_code(15)], times=10_000):
        told = why(producer.send(topic, b"x").get)
    assert "no producer id yet: " in told, told
    assert "CoordinatorNotAvailableError" in told, told


def test_a_producer_id_that_does_not_come(make, broker, topic):
    producer = make(linger_ms=0, delivery_timeout_ms=SOON * 1000, request_timeout_ms=SOON * 1000)
    producer.partitions_for(topic)
    with broker.intercept("InitProducerId", lambda _exchange: NO_REPLY, before=True):
        told = why(producer.send(topic, b"x").get)
    # The request and the record end at the same second; whichever is first, the message names the request.
    assert re.search(
        r"no producer id yet, which was requested: .*broker \d .*(has not answered|no response to Init)", told
    ), told


def test_an_error_that_came_back_repeatedly(make, broker, topic):
    producer = warm(make, topic)
    with broker.fail("Produce", [for_code(19)], times=10_000):
        told = why(producer.send(topic, b"x", partition=0).get)
    assert "the last attempt: " in told
    assert "NotEnoughReplicasError" in told


def test_what_stands_behind_an_unanswered_batch_names_the_broker(make, broker, topic):
    producer = warm(
        make, topic, delivery_timeout_ms=60_000, request_timeout_ms=50_000, max_in_flight_requests_per_connection=1
    )
    with broker.intercept("Produce", lambda _exchange: NO_REPLY, before=True):
        first = producer.send(topic, b"1", partition=0)
        why(lambda: first.get(0.1))
        second = producer.send(topic, b"2", partition=0)
        reason = r"waits for the answers to what was sent before: broker \d .* has not answered"
        why_at_last(lambda: second.get(0.1), reason)
        broker.drop_connections()


def test_a_full_buffer_says_what_it_waits_for(make, broker, topic):
    producer = warm(
        make, topic, buffer_memory=5000, batch_size=1000, max_block_ms=SOON * 1000, delivery_timeout_ms=60_000
    )

    def fill():
        for _ in range(100):
            producer.send(topic, b"x" * 100, partition=0)

    with stopped(broker, *broker.node_ids):
        told = why(fill, BufferExhaustedError)
        producer.close(timeout=0)
    assert "stayed full for max_block_ms" in told
    assert "refused" in told, told


@pytest.mark.parametrize("trouble", ["dead", "frozen"])
def test_a_topic_without_a_broker_to_ask(make, broker, topic, trouble):
    producer = make(max_block_ms=SOON * 1000, request_timeout_ms=60_000, connections_max_idle_ms=120_000)
    if trouble == "dead":
        with stopped(broker, *broker.node_ids):
            told = why(lambda: producer.send(topic, b"x"))
        assert "refused" in told, told
    else:
        with broker.intercept(None, lambda _exchange: NO_REPLY, before=True):
            told = why(lambda: producer.send(topic, b"x"))
            broker.drop_connections()
        assert "has not answered for" in told, told
    assert f"Topic {topic!r} was not found within max_block_ms" in told


def test_different_reasons_are_given_to_their_records(make, broker, topic):
    producer = make(linger_ms=0, delivery_timeout_ms=60_000, request_timeout_ms=50_000)
    broker.create_topic(topic + "-3", 3)
    for number in range(3):
        producer.send(topic + "-3", b"first", partition=number).get(WAIT)
    with stopped(broker, broker.leader(topic + "-3", 0)):
        futures = [producer.send(topic + "-3", b"x", partition=0) for _ in range(5)]
        futures += [_throttled(broker, producer, topic + "-3", 1)]
        deadline = time.monotonic() + WAIT
        told = ""
        while time.monotonic() < deadline and not re.search(
            r"5 records: no leader for .*; 1 record: .*throttles", told
        ):
            told = why(lambda: producer.flush(0.05))
    producer.close(timeout=0)
    assert re.search(r"6 records left: 5 records: no leader for .*; 1 record: .*throttles", told), told


def _throttled(broker: Broker, producer: KafkaProducer, topic: str, partition: int):
    def throttle(exchange):
        exchange.reply.throttle_time_ms = 60_000

    with broker.intercept("Produce", throttle):
        producer.send(topic, b"x", partition=partition).get(WAIT)
    return producer.send(topic, b"y", partition=partition)


@pytest.mark.one_face  # start() of the asyncio producer is what takes the transactional_id over
def test_a_transaction_that_waits_for_its_coordinator(make, broker, topic):
    producer = make(transactional_id=topic, request_timeout_ms=60_000)
    with broker.intercept("InitProducerId", lambda _exchange: NO_REPLY, before=True):
        reason = r"its coordinator, getting a producer id: broker \d .* has not answered for"
        why_at_last(lambda: producer.init_transactions(timeout=0.3), reason)
        broker.drop_connections()
