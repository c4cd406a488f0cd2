"""A consumer and its tracer: what the tracer is told, and that no record is lost where it is interrupted."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from kafka import _hooks
from kafka.errors import KafkaError, WakeupError
from kafka.structs import TopicPartition

T0 = TopicPartition("t", 0)


class Tracer:
    """Notes what it is told."""

    def __init__(self):
        self.told = []
        self.interrupts = False

    def producer(self, facts):
        return None

    def consumer(self, facts):
        self.facts = facts
        return self

    def now(self):
        return 7

    def received(self, began, taken):
        if self.interrupts:
            self.interrupts = False
            raise KeyboardInterrupt
        self.told.append((began, {partition: [one.offset for one in rows] for partition, rows in taken.items()}))

    def failed(self, began, error):
        self.told.append((began, type(error).__name__))

    @contextmanager
    def processing(self, record):
        self.told.append(("begin", record.offset))
        try:
            yield
        finally:
            self.told.append(("end", record.offset))

    @contextmanager
    def settling(self, operation):
        yield


@pytest.fixture
def tracer(monkeypatch):
    made = Tracer()
    monkeypatch.setattr(_hooks, "tracer", made)
    return made


@pytest.fixture
def consumer(tracer, cluster, make):
    cluster.fill(10)
    made = make()
    made.assign([T0])
    made.seek(T0, 0)
    return made


def test_a_poll_tells_what_it_has_taken_and_an_empty_one_nothing(tracer, consumer):
    assert len(consumer.poll(1000, max_records=4)[T0]) == 4
    assert tracer.told == [(7, {T0: [0, 1, 2, 3]})]
    consumer.poll(1000, max_records=100)
    assert consumer.poll(10) == {}
    assert tracer.told[1:] == [(7, {T0: [4, 5, 6, 7, 8, 9]})]
    assert tracer.facts.face == "KafkaConsumer"
    assert tracer.facts.client_id == consumer.config["client_id"]


def test_ctrl_c_within_the_tracer_loses_no_record(tracer, consumer):
    tracer.interrupts = True
    with pytest.raises(KeyboardInterrupt):
        consumer.poll(1000)
    assert [record.offset for record in consumer.poll(1000)[T0]] == list(range(10))


def test_an_iteration_tells_of_each_chunk_once_and_of_each_record(tracer, consumer):
    for record in consumer:
        if record.offset == 1:
            break
    assert tracer.told[0][1][T0][:2] == [0, 1]
    assert tracer.told[1:] == [("begin", 0), ("end", 0), ("begin", 1), ("end", 1)]
    assert next(iter(consumer)).offset == 2
    assert tracer.told[5:] == [("begin", 2), ("end", 2)]


def test_wakeup_is_not_a_failure_and_an_error_of_kafka_is(tracer, cluster, make):
    consumer = make(auto_offset_reset="none")
    consumer.assign([T0])
    consumer.wakeup()
    with pytest.raises(WakeupError):
        consumer.poll(1000)
    assert tracer.told == []
    with pytest.raises(KafkaError) as raised:
        consumer.poll(1000)
    assert tracer.told == [(7, type(raised.value).__name__)]


def test_without_a_tracer_nothing_stands_between_a_poll_and_the_core(cluster, make):
    consumer = make()
    assert "poll" not in vars(consumer._core)
    assert consumer._core.tracer is None
