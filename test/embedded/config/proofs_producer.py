"""Proofs for what producers alone take."""

from __future__ import annotations

import math
import time
from typing import Any

from kafka.broker import Broker
from kafka.broker.faults import NO_REPLY, SeenRequest
from kafka.errors import (
    BufferExhaustedError,
    KafkaError,
    KafkaTimeoutError,
    NotEnoughReplicasError,
    RecordTooLargeError,
)
from kafka.net.environment import Environment
from kafka.partitioner import RoundRobinPartitioner
from test.embedded.clocks import JumpingClock

from .proofs import proves
from .subjects import PATIENCE, TOPIC, Subject, seen


def _batches(broker: Broker) -> list[bytes]:
    """The batches that came, each as it was on the wire."""
    found = []
    for request in seen(broker, "Produce"):
        for topic in request.request.topic_data:
            found += [bytes(data.records) for data in topic.partition_data]
    return found


def _failure(future: Any) -> BaseException | None:
    try:
        future.get(timeout=PATIENCE)
    except KafkaError as error:
        return error
    return None


# Records


@proves("key_serializer", "value_serializer")
def what_is_sent_goes_through_it(subject: Subject) -> None:
    broker = subject.broker()
    used = subject.make(broker, **{subject.option: lambda text: text.upper().encode()})
    name = subject.option.removesuffix("_serializer")
    used.thing.send(TOPIC, **{"value": b"v", name: "text"}).get(timeout=PATIENCE)
    assert getattr(broker.records(TOPIC)[0], name) == b"TEXT"


@proves("interceptors", kinds="producer")
def they_see_records_on_their_way(subject: Subject) -> None:
    class Upper:
        def on_send(self, record: Any) -> Any:
            return record._replace(value=record.value.upper())

    broker = subject.broker()
    subject.make(broker, interceptors=[Upper()]).thing.send(TOPIC, b"text").get(timeout=PATIENCE)
    assert broker.records(TOPIC)[0].value == b"TEXT"


@proves("partitioner")
def it_chooses_the_partition(subject: Subject) -> None:
    broker = subject.broker(topics={TOPIC: 3})
    used = subject.make(broker, partitioner=lambda key, every, available: every[-1])
    for _ in range(5):
        used.thing.send(TOPIC, b"v", key=b"k").get(timeout=PATIENCE)
    assert len(broker.records(TOPIC, 2)) == 5
    assert isinstance(subject.make(broker, partitioner=RoundRobinPartitioner()).thing, object)


@proves("partitioner_ignore_keys")
def equal_keys_do_not_stay_together(subject: Subject) -> None:
    for ignore in (False, True):
        broker = subject.broker(topics={TOPIC: 3})
        used = subject.make(broker, partitioner_ignore_keys=ignore, batch_size=200)
        used.thing.send_many(TOPIC, [(b"k", b"v" * 100)] * 60)
        used.thing.flush(timeout=PATIENCE)
        assert (sum(bool(broker.records(TOPIC, number)) for number in range(3)) > 1) is ignore


class _OneSilent:
    """A producer at two brokers, of which one takes what it is sent and does not answer."""

    def __init__(self, subject: Subject, **options: Any) -> None:
        self._broker = broker = subject.broker(nodes=2, topics={TOPIC: 2})
        self._silent, self._other = sorted((0, 1), key=lambda number: broker.leader(TOPIC, number))
        broker.intercept("Produce", lambda _: NO_REPLY, before=True, node=broker.leader(TOPIC, self._silent))
        self._used = subject.make(broker, batch_size=0, linger_ms=0, max_in_flight_requests_per_connection=1, **options)
        self._sent = 0

    def send(self, count: int) -> None:
        """Send records one by one, each when the one before has arrived or is stuck."""
        for _ in range(count):
            self._used.thing.send(TOPIC, b"v")
            self._sent += 1
            self._used.until(lambda: self.stuck + len(self._broker.records(TOPIC, self._other)) == self._sent)

    @property
    def stuck(self) -> int:
        """How many records wait for the broker that is silent."""
        under_way = self._used.thing.health()["partitions"]
        return int(next((entry["records"] for tp, entry in under_way.items() if str(self._silent) in str(tp)), 0))


@proves("partitioner_adaptive_partitioning_enable")
def a_broker_with_a_long_queue_gets_less(subject: Subject) -> None:
    adaptive = _OneSilent(subject, partitioner_adaptive_partitioning_enable=True)
    adaptive.send(200)
    uniform = _OneSilent(subject, partitioner_adaptive_partitioning_enable=False)
    uniform.send(200)
    assert adaptive.stuck < 50 < uniform.stuck  # chance makes them 18 and 100, give or take 5 and 7


@proves("partitioner_availability_timeout_ms")
def a_broker_that_takes_no_data_is_avoided(subject: Subject) -> None:
    for timeout, avoided in ((400, True), (0, False)):  # the other one may take its time on a busy machine
        options = {
            "partitioner_adaptive_partitioning_enable": False,
            "partitioner_availability_timeout_ms": timeout,
        }
        producer = _OneSilent(subject, **options)
        while producer.stuck < 2:  # one that is sent, and one that cannot be; there need not be a third
            producer.send(1)
        time.sleep(0.5)  # more than that time
        before = producer.stuck
        producer.send(20)
        assert (producer.stuck <= before + 1) is avoided, (timeout, before, producer.stuck)


# Batches


@proves("linger_ms")
def a_batch_waits_for_more(subject: Subject) -> None:
    broker = subject.broker()
    used = subject.use(broker, linger_ms=300)
    broker.forget_requests()
    began = time.monotonic()
    used.thing.send(TOPIC, b"v")
    used.until(lambda: seen(broker, "Produce"))
    assert time.monotonic() - began > 0.25  # 5 ms by default


@proves("batch_size")
def a_full_batch_is_sent(subject: Subject) -> None:
    counts = []
    for size in (300, 16384):
        broker = subject.broker()
        used = subject.make(broker, batch_size=size, linger_ms=1000)
        used.thing.send_many(TOPIC, [b"v" * 100] * 20)
        used.thing.flush(timeout=PATIENCE)
        counts.append(len(_batches(broker)))
    assert counts[0] >= 8
    assert counts[1] <= 2


@proves("compression_type")
def batches_are_compressed(subject: Subject) -> None:
    broker = subject.broker()
    used = subject.make(broker, compression_type="gzip")
    used.thing.send(TOPIC, b"v" * 10_000).get(timeout=PATIENCE)
    assert len(_batches(broker)[0]) < 1000


@proves("compression_level")
def the_level_is_the_codec_s(subject: Subject) -> None:
    sizes = []
    for level in (1, 9):
        broker = subject.broker()
        used = subject.make(broker, compression_type="gzip", compression_level=level)
        value = b" ".join(b"%d" % (number * number % 977) for number in range(2000))
        used.thing.send(TOPIC, value).get(timeout=PATIENCE)
        sizes.append(len(_batches(broker)[0]))
    assert sizes[1] < sizes[0]


@proves("max_request_size")
def a_larger_record_is_refused(subject: Subject) -> None:
    used = subject.make(subject.broker(), max_request_size=500)
    assert isinstance(_failure(used.thing.send(TOPIC, b"v" * 600)), RecordTooLargeError)


@proves("buffer_memory", "max_block_ms")
def send_blocks_so_long_while_so_much_waits(subject: Subject) -> None:
    broker = subject.broker()
    used = subject.use(broker, buffer_memory=5000, max_block_ms=3000, batch_size=1000)
    broker.intercept("Produce", lambda _: NO_REPLY)
    began = time.monotonic()
    try:
        for _ in range(100):
            used.thing.send(TOPIC, b"v" * 200)
    except BufferExhaustedError:
        assert 2.5 < time.monotonic() - began < 30  # 60 by default
    else:
        raise AssertionError("20,000 bytes went into 5,000")


@proves("on_delivery")
def it_is_called_with_what_became_of_a_batch(subject: Subject) -> None:
    told: list[Any] = []
    used = subject.use(subject.broker(), on_delivery=lambda *what: told.append(what))
    used.until(lambda: told)


# Requests


@proves("acks")
def the_request_says_who_has_to_have_a_record(subject: Subject) -> None:
    for acks in (1, "all"):
        broker = subject.broker()
        subject.use(broker, acks=acks)
        assert {request.request.acks for request in seen(broker, "Produce")} == {1 if acks == 1 else -1}


@proves("enable_idempotence")
def a_producer_has_an_id_or_none(subject: Subject) -> None:
    for wanted in (True, False):
        broker = subject.broker()
        subject.use(broker, enable_idempotence=wanted)
        assert bool(seen(broker, "InitProducerId")) is wanted


@proves("retries")
def a_batch_is_sent_again_so_often(subject: Subject) -> None:
    broker = subject.broker()
    used = subject.use(broker, retries=2, retry_backoff_ms=1)
    broker.forget_requests()
    broker.fail("Produce", [NotEnoughReplicasError], times=50)
    assert isinstance(_failure(used.thing.send(TOPIC, b"v")), NotEnoughReplicasError)
    assert len(seen(broker, "Produce")) == 3


@proves("delivery_timeout_ms")
def a_record_is_given_up_after_so_long(subject: Subject) -> None:
    broker = subject.broker()
    used = subject.use(broker, delivery_timeout_ms=3000, request_timeout_ms=1500)
    broker.fail("Produce", [NotEnoughReplicasError], times=1000)
    began = time.monotonic()
    assert isinstance(_failure(used.thing.send(TOPIC, b"v")), KafkaTimeoutError)
    assert 2.5 < time.monotonic() - began < 30  # 120 by default


@proves("metadata_max_idle_ms")
def a_topic_is_forgotten_when_nothing_was_sent_to_it(subject: Subject) -> None:
    for idle, forgotten in ((5000, True), (300000, False)):
        broker = subject.broker()
        clock = JumpingClock()
        options = {"metadata_max_idle_ms": idle, "metadata_max_age_ms": 2000, "environment": Environment(clock=clock)}
        used = subject.use(broker, **options)

        def asked_again(broker: Broker = broker) -> list[SeenRequest]:
            return seen(broker, "Metadata")

        for _ in range(2):  # what is asked for follows from what was idle when the last answer came
            broker.forget_requests()
            clock.ahead += 6.0
            used.thing._core.call_soon(lambda: None)  # wakes the thread, which sleeps by the real clock
            used.until(asked_again)
        assert any(TOPIC in [topic.name for topic in asked.request.topics] for asked in asked_again()) is not forgotten


# Transactions


@proves("transactional_id", "transaction_timeout_ms", "transaction_two_phase_commit_enable")
def the_coordinator_is_told_of_the_transactions(subject: Subject) -> None:
    broker = subject.broker()
    given: dict[str, Any] = {
        "transactional_id": "tx",
        "transaction_timeout_ms": 12345,
        "transaction_two_phase_commit_enable": True,
    }
    two_phase = subject.option == "transaction_two_phase_commit_enable"
    options = given if two_phase else {name: given[name] for name in ("transactional_id", "transaction_timeout_ms")}
    used = subject.make(broker, **options)
    used.thing.init_transactions()
    request = seen(broker, "InitProducerId")[-1].request
    assert request.transactional_id == "tx"
    assert request.transaction_timeout_ms in ({12345} if not two_phase else {12345, -1, 2**31 - 1})
    assert bool(getattr(request, "enable2_pc", False)) is two_phase
    assert math.isfinite(request.transaction_timeout_ms)
