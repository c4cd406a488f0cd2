"""Proofs for what consumers alone take, but for groups."""

from __future__ import annotations

import gzip
import struct
import time
import zlib
from typing import Any

import pytest

from kafka import KafkaAdminClient
from kafka.admin import ConfigResource
from kafka.broker import Broker
from kafka.broker.faults import Exchange
from kafka.errors import CorruptRecordError, NoOffsetForPartitionError
from kafka.structs import TopicPartition

from .proofs import proves
from .subjects import PATIENCE, TOPIC, Subject, seen

T0 = TopicPartition(TOPIC, 0)


def _filled(subject: Subject, count: int = 10, size: int = 10, **options: Any) -> Broker:
    """A broker whose topic has some records, a batch each."""
    broker = subject.broker(**options)
    for _ in range(count):
        broker.append(TOPIC, b"v" * size)
    return broker


def _reader(subject: Subject, broker: Broker, **options: Any) -> Any:
    """A consumer at the topic's beginning."""
    if subject.kind == "share":
        with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
            admin.alter_configs([ConfigResource("GROUP", "shared", {"share.auto.offset.reset": "earliest"})])
        return subject.make(broker, **options)
    used = subject.make(broker, **options)
    used.thing.assign([T0])
    used.thing.seek_to_beginning(T0)
    return used


def _read(used: Any, count: int) -> list[Any]:
    records: list[Any] = []
    deadline = time.monotonic() + PATIENCE
    while len(records) < count:
        assert time.monotonic() < deadline, f"only {len(records)} came"
        for found in used.thing.poll(timeout_ms=100).values():
            records += found
    return records


# What comes out


@proves("key_deserializer", "value_deserializer")
def what_is_read_goes_through_it(subject: Subject) -> None:
    broker = subject.broker()
    broker.append(TOPIC, b"text", key=b"text")
    used = _reader(subject, broker, **{subject.option: lambda data: data.decode().upper()})
    assert getattr(_read(used, 1)[0], subject.option.removesuffix("_deserializer")) == "TEXT"


@proves("interceptors", kinds="consumer")
def they_see_records_that_were_read(subject: Subject) -> None:
    class Nothing:
        def on_consume(self, _records: Any) -> Any:
            told.append(_records)
            return _records

    told: list[Any] = []
    _read(_reader(subject, _filled(subject, 1), interceptors=[Nothing()]), 1)
    assert told


@proves("max_poll_records")
def a_poll_returns_no_more(subject: Subject) -> None:
    used = _reader(subject, _filled(subject), max_poll_records=3)
    sizes = []
    for _ in range(4):
        found: dict[Any, Any] = {}
        while not found:
            found = used.thing.poll(timeout_ms=100)
        sizes.append(sum(map(len, found.values())))
    assert sizes == [3, 3, 3, 1]


@proves("consumer_timeout_ms")
def iteration_ends_when_nothing_comes(subject: Subject) -> None:
    used = _reader(subject, _filled(subject, 2), consumer_timeout_ms=200)
    _read(used, 2)
    began = time.monotonic()
    assert list(used.thing) == []
    assert 0.15 < time.monotonic() - began < 30  # for ever by default


@proves("check_crcs")
def a_damaged_batch_is_refused_or_not(subject: Subject) -> None:
    def damage(exchange: Exchange) -> None:
        for topic in exchange.reply.responses:
            for partition in topic.partitions:
                if partition.records:
                    data = bytearray(bytes(partition.records))
                    data[17] ^= 0xFF  # the checksum's first byte
                    partition.records = bytes(data)

    broker = _filled(subject, 1)
    broker.intercept("ShareFetch" if subject.kind == "share" else "Fetch", damage)
    assert len(_read(_reader(subject, broker, check_crcs=False), 1)) == 1
    broker.append(TOPIC, b"another")  # a share consumer has locked the first one
    with pytest.raises(CorruptRecordError):
        _read(_reader(subject, broker), 1)


@proves("max_decompressed_bytes")
def a_batch_does_not_grow_beyond_that(subject: Subject) -> None:
    broker = subject.broker(configs={"compression.type": "gzip"})
    producer = subject.enter(_producer(broker))
    producer.send(TOPIC, b"v" * 100_000).get(timeout=PATIENCE)
    assert len(_read(_reader(subject, broker), 1)) == 1
    producer.send(TOPIC, b"v" * 100_000).get(timeout=PATIENCE)  # a share consumer has locked the first one
    with pytest.raises(CorruptRecordError):
        _read(_reader(subject, broker, max_decompressed_bytes=50_000), 1)


def _producer(broker: Broker, **options: Any) -> Any:
    from kafka import KafkaProducer

    return KafkaProducer(bootstrap_servers=broker.bootstrap_servers, compression_type="gzip", **options)


def _message(value: bytes, *, compressed: bool) -> bytes:
    """A set of one message in format 1."""
    body = struct.pack(">bbqii", 1, int(compressed), 1, -1, len(value)) + value
    return struct.pack(">qiI", 0, len(body) + 4, zlib.crc32(body)) + body


@proves("skip_double_compressed_messages")
def messages_compressed_twice_are_passed_over(subject: Subject) -> None:
    once = gzip.compress(_message(b"v", compressed=False))
    twice = _message(gzip.compress(_message(once, compressed=True)), compressed=True)

    def replace(exchange: Exchange) -> None:
        for topic in exchange.reply.responses:
            for partition in topic.partitions:
                if partition.records:
                    partition.records = twice

    broker = _filled(subject, 1)
    broker.intercept("Fetch", replace)
    assert _read(_reader(subject, broker), 1)[0].value == once
    used = _reader(subject, broker, skip_double_compressed_messages=True)
    before = len(seen(broker, "Fetch"))
    used.until(lambda: len(seen(broker, "Fetch")) > before + 1)
    assert not used.thing.poll(timeout_ms=100)
    assert used.thing.position(T0) == 1


# Where to start


@proves("auto_offset_reset")
def reading_starts_there(subject: Subject) -> None:
    for where, position in (("earliest", 0), ("latest", 10)):
        used = subject.make(_filled(subject), auto_offset_reset=where)
        used.thing.assign([T0])
        assert used.thing.position(T0, timeout_ms=5000) == position
    used = subject.make(_filled(subject), auto_offset_reset="none")
    used.thing.assign([T0])
    with pytest.raises(NoOffsetForPartitionError):
        _read(used, 1)


# Fetching


def _fetches(subject: Subject, **options: Any) -> list[Any]:
    """The fetches of a consumer that reads ten records."""
    broker = _filled(subject)
    _read(_reader(subject, broker, **options), 10)
    return [request.request for request in seen(broker, "Fetch")]


@proves("fetch_min_bytes", "fetch_max_wait_ms", "fetch_max_bytes", kinds="consumer")
def the_broker_is_asked_for_so_much(subject: Subject) -> None:
    field = {"fetch_min_bytes": "min_bytes", "fetch_max_wait_ms": "max_wait_ms", "fetch_max_bytes": "max_bytes"}
    value = 7 if subject.option == "fetch_min_bytes" else 1234
    asked = _fetches(subject, **{subject.option: value})
    assert value in {getattr(request, field[subject.option]) for request in asked}


@proves("max_partition_fetch_bytes")
def so_much_is_asked_of_a_partition(subject: Subject) -> None:
    asked = _fetches(subject, max_partition_fetch_bytes=4321)
    assert {part.partition_max_bytes for one in asked for topic in one.topics for part in topic.partitions} == {4321}


@proves("isolation_level")
def the_broker_is_told_what_may_be_read(subject: Subject) -> None:
    for level, number in (("read_committed", 1), ("read_uncommitted", 0)):
        assert {request.isolation_level for request in _fetches(subject, isolation_level=level)} == {number}


@proves("client_rack", kinds="consumer")
def the_broker_is_told_where_the_client_is(subject: Subject) -> None:
    assert {request.rack_id for request in _fetches(subject, client_rack="east")} == {"east"}


@proves("enable_incremental_fetch_sessions")
def a_fetch_belongs_to_a_session_or_not(subject: Subject) -> None:
    for wanted in (True, False):
        broker = _filled(subject)
        used = _reader(subject, broker, enable_incremental_fetch_sessions=wanted, fetch_max_wait_ms=20)
        used.until(lambda broker=broker: len(seen(broker, "Fetch")) > 2)
        assert (seen(broker, "Fetch")[-1].request.session_id != 0) is wanted


@proves("fetch_buffer_memory")
def no_more_is_asked_for_while_so_much_waits(subject: Subject) -> None:
    def reading(memory: int) -> Broker:
        broker = _filled(subject, count=40, size=5000)
        _read(_reader(subject, broker, fetch_buffer_memory=memory, fetch_max_bytes=6000), 1)
        return broker

    bounded, unbounded = reading(10_000), reading(10_000_000)
    deadline = time.monotonic() + PATIENCE
    while len(seen(unbounded, "Fetch")) < 30:  # the network thread asks for more by itself
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert len(seen(bounded, "Fetch")) < 10, len(seen(bounded, "Fetch"))
