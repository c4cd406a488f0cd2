"""Interceptors of a producer (KIP-42): they see and change records, hear of outcomes, and can break nothing."""

from __future__ import annotations

import threading

import pytest

from kafka import KafkaProducer
from kafka.errors import RecordTooLargeError, TopicAuthorizationFailedError
from kafka.interceptors import ProducerInterceptor, ProducerRecord
from test.embedded.threads import nothing_left

from .conftest import WAIT

FACES = "both"


class Notes(ProducerInterceptor):
    """Notes what it is told, and adds its name to the value."""

    def __init__(self, name="notes", journal=None):
        self.name = name
        self.journal = [] if journal is None else journal
        self.configs = None

    def configure(self, configs):
        self.configs = configs

    def on_send(self, record):
        self.journal.append((self.name, "send", record.value, threading.current_thread().name))
        return record._replace(value=record.value + self.name.encode())

    def on_acknowledgement(self, metadata, exception):
        self.journal.append((self.name, "ack", metadata, exception))

    def close(self):
        self.journal.append((self.name, "close"))


class Broken(ProducerInterceptor):
    def on_send(self, *_):
        raise ValueError("on purpose")

    on_acknowledgement = close = on_send


def test_each_sees_what_the_one_before_it_made(make, broker, topic, face):
    journal = []
    first, second = Notes("-1", journal), Notes("-2", journal)
    producer = make(interceptors=[first, second], client_id="mine")
    future = producer.send(topic, b"x", key=b"k", headers=[("h", b"1")])
    order = []
    future.add_callback(lambda _: order.extend(entry[:2] for entry in journal))
    metadata = future.get(WAIT)
    (record,) = broker.records(topic)
    assert (record.key, record.value, list(record.headers)) == (b"k", b"x-1-2", [("h", b"1")])
    me = threading.current_thread().name if face == "threads" else "event loop"
    assert journal[:2] == [("-1", "send", b"x", me), ("-2", "send", b"x-1", me)]
    assert journal[2:] == [("-1", "ack", metadata, None), ("-2", "ack", metadata, None)]
    assert order == [("-1", "send"), ("-2", "send"), ("-1", "ack"), ("-2", "ack")]  # before the record's own
    assert first.configs["client_id"] == second.configs["client_id"] == "mine"
    producer.close()
    assert journal[4:] == [("-1", "close"), ("-2", "close")]


def test_they_see_what_serializers_make_bytes_of(make, broker, topic):
    class Double(ProducerInterceptor):
        def on_send(self, record):
            assert isinstance(record, ProducerRecord)
            return record._replace(value=record.value * 2, partition=0)

    make(interceptors=[Double], value_serializer=lambda number: b"%d" % number).send(topic, 21).get(WAIT)
    assert [record.value for record in broker.records(topic)] == [b"42"]


def test_one_that_raises_or_returns_nothing_is_logged_and_passed_over(make, broker, topic, caplog):
    class Forgetful(ProducerInterceptor):
        def on_send(self, record):
            pass

    notes = Notes()
    producer = make(interceptors=[Broken(), Forgetful(), notes])
    assert producer.send(topic, b"x-").get(WAIT).offset == 0
    producer.close()
    assert [record.value for record in broker.records(topic)] == [b"x-notes"]
    assert [entry[1] for entry in notes.journal] == ["send", "ack", "close"]
    assert [str(record.exc_info[1]) for record in caplog.records if record.exc_info] == ["on purpose"] * 3
    assert "returned None" in caplog.text


def test_they_hear_why_a_record_was_given_up(make, broker, topic):
    notes = Notes("")
    producer = make(interceptors=[notes], max_request_size=1000)
    producer.partitions_for(topic)
    broker.fail("Produce", [TopicAuthorizationFailedError])
    with pytest.raises(TopicAuthorizationFailedError) as refused:
        producer.send(topic, b"x").get(WAIT)
    with pytest.raises(RecordTooLargeError) as too_large:
        producer.send(topic, b"x" * 2000).get(WAIT)
    with pytest.raises(TypeError) as wrong:
        producer.send(topic, b"x", key=5, partition=0)
    heard = [(entry[2].partition, entry[2].offset, entry[3]) for entry in notes.journal if entry[1] == "ack"]
    assert heard == [(0, -1, refused.value), (-1, -1, too_large.value), (0, -1, wrong.value)]


def test_send_many_passes_them_too(make, broker, topic):
    notes = Notes("!")
    sent = make(interceptors=[notes]).send_many(topic, [b"a", (b"k", b"b")])
    sent.get(WAIT)
    assert [record.value for record in broker.records(topic)] == [b"a!", b"b!"]


def test_an_error_in_configure_is_raised_and_leaves_nothing_behind(broker):
    class Refuses(ProducerInterceptor):
        def configure(self, configs):
            raise LookupError("no tracer")

    with nothing_left(), pytest.raises(LookupError, match="no tracer"):
        KafkaProducer(bootstrap_servers=broker.bootstrap_servers, interceptors=[Refuses()])
