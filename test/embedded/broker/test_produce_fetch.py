"""Produce and Fetch, request by request."""

from __future__ import annotations

import re
import select
import struct
import threading
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from kafka.broker import Broker, Exchange
from kafka.broker.server.connection import Connection
from kafka.protocol.fetch import FetchRequest
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.offset import ListOffsetsRequest
from kafka.protocol.produce import ProduceRequest
from kafka.record.batch import decode_batch
from kafka.record.crc32c import crc32c
from kafka.record.header import scan
from kafka.record.message_v0_v1 import LegacyBuilder
from kafka.structs import TopicPartition

from .batches import NOW, batch, produce
from .wire import Wire, wire


@pytest.fixture(scope="module")
def shared() -> Iterator[Broker]:
    with Broker(seed=1) as broker:
        yield broker


@pytest.fixture
def topic(shared: Broker, request: pytest.FixtureRequest) -> str:
    name = re.sub(r"[^\w.-]", "_", request.node.name)
    shared.create_topic(name)
    return name


@pytest.fixture
def client(shared: Broker) -> Iterator[Wire]:
    with wire(shared) as connection:
        yield connection


def fetch(
    topic: str, offset: int = 0, version: int = 12, max_bytes: int = 1 << 20, partition: int = 0, **fields: Any
) -> FetchRequest:
    cls = FetchRequest[version]
    fields = {"max_wait_ms": 0, "min_bytes": 1, **fields}
    if version >= 3:
        fields.setdefault("max_bytes", 1 << 26)
    part = cls.FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes)
    return cls(topics=[cls.FetchTopic(topic=topic, partitions=[part])], **fields)


def only(reply: Any) -> Any:
    """The one partition in a produce or fetch reply."""
    (topic,) = reply.responses
    (part,) = topic.partition_responses if hasattr(topic, "partition_responses") else topic.partitions
    return part


def values(data: Any) -> list[bytes | None]:
    return [record.value for header in scan(data) if not header.is_control for record in decode_batch(data, header)]


@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
def test_produced_records_are_fetched(client: Wire, topic: str, codec: str | None) -> None:
    first = only(client.ask(produce(batch(b"a" * 100, b"b" * 100, codec=codec), topic)))
    second = only(client.ask(produce(batch(b"c" * 100, codec=codec), topic)))
    assert (first.error_code, first.base_offset) == (0, 0)
    assert (second.error_code, second.base_offset) == (0, 2)
    part = only(client.ask(fetch(topic)))
    assert (part.error_code, part.high_watermark, part.log_start_offset) == (0, 3, 0)
    assert values(part.records) == [b"a" * 100, b"b" * 100, b"c" * 100]
    assert [header.base_offset for header in scan(part.records)] == [0, 2]


@pytest.mark.parametrize("version", range(14))
def test_every_version_of_produce_stores_the_records(shared: Broker, client: Wire, topic: str, version: int) -> None:
    if version < 3:
        old = LegacyBuilder(0 if version < 2 else 1, 1000)
        old.append(NOW, b"k", b"v")
        data = old.seal().data
    else:
        data = batch(b"v", key=b"k")
    request = produce(data, topic, version=version)
    if version >= 13:
        topic_id = shared.run(lambda cluster: cluster.topics[topic].id)
        request.topic_data[0].topic_id = topic_id
        request.topic_data[0].name = ""
    part = only(client.ask(request))
    assert part.error_code == 0
    (record,) = shared.records(topic)
    assert (record.key, record.value) == (b"k", b"v")


@pytest.mark.parametrize("version", range(19))
def test_every_version_of_fetch_reads_the_records(shared: Broker, client: Wire, topic: str, version: int) -> None:
    shared.append(topic, b"v", key=b"k", timestamp_ms=NOW)
    request = fetch(topic, version=version)
    if version >= 13:
        request.topics[0].topic_id = shared.run(lambda cluster: cluster.topics[topic].id)
        request.topics[0].topic = ""
    part = only(client.ask(request))
    assert part.error_code == 0
    (header,) = scan(part.records)
    assert header.magic == (0 if version < 2 else 1 if version < 4 else 2)
    (record,) = decode_batch(part.records, header)
    assert (record.offset, record.key, record.value) == (0, b"k", b"v")


def test_produce_without_acks_gets_no_reply(shared: Broker, client: Wire, topic: str) -> None:
    client.send(produce(batch(b"silent"), topic, acks=0))
    assert only(client.ask(fetch(topic, max_wait_ms=5000))).high_watermark == 1


def test_an_error_without_acks_closes_the_connection(client: Wire) -> None:
    client.send(produce(batch(b"lost"), "no-such-topic", acks=0))
    assert client.is_closed()


@pytest.mark.parametrize(
    ("damage", "code"),
    [
        (lambda data: data[:-1] + b"!", 2),  # checksum
        (lambda data: data[:20], 87),  # cut off
        (lambda data: b"", 87),
        (lambda data: data + data, 87),  # two batches
        (lambda data: data[:16] + b"\x05" + data[17:], 2),  # unknown magic
    ],
)
def test_damaged_batches_are_refused(shared: Broker, client: Wire, topic: str, damage: Any, code: int) -> None:
    part = only(client.ask(produce(damage(batch(b"v" * 50)), topic)))
    assert (part.error_code, part.base_offset) == (code, -1)
    assert shared.records(topic) == []


@pytest.mark.parametrize("codec", [None, "gzip"])
def test_a_batch_that_was_made_wrong_is_not_taken_for_a_damaged_one(
    client: Wire, topic: str, codec: str | None
) -> None:
    # Kafka: INVALID_RECORD, which is final, where CORRUPT_MESSAGE has producers send the same again and again.
    data = bytearray(batch(b"a", b"b", codec=codec))
    struct.pack_into(">i", data, 23, 2)  # the last offset delta, and below the count: one record more than there are
    struct.pack_into(">i", data, 57, 3)
    struct.pack_into(">I", data, 17, crc32c(data[21:]))
    assert only(client.ask(produce(bytes(data), topic))).error_code == 87


def test_a_batch_beyond_max_message_bytes_is_refused(shared: Broker, client: Wire) -> None:
    shared.create_topic("small", configs={"max.message.bytes": 200})
    assert only(client.ask(produce(batch(b"v" * 300), "small"))).error_code == 10
    assert only(client.ask(produce(batch(b"v" * 100), "small"))).error_code == 0


def test_a_compacted_topic_names_the_records_without_a_key(shared: Broker, client: Wire) -> None:
    shared.create_topic("compacted", configs={"cleanup.policy": "compact"})
    part = only(client.ask(produce(batch(b"a", b"b"), "compacted")))
    assert part.error_code == 87
    assert [error.batch_index for error in part.record_errors] == [0, 1]


def test_timestamps_from_the_future_are_refused(shared: Broker, client: Wire, topic: str) -> None:
    future = int(shared.clock.time() * 1000) + 10 * 3_600_000
    part = only(client.ask(produce(batch(b"a", timestamp=future), topic)))
    assert part.error_code == 32
    assert [error.batch_index for error in part.record_errors] == [0]


def test_log_append_time_is_the_brokers(shared: Broker, client: Wire) -> None:
    shared.create_topic("appended", configs={"message.timestamp.type": "LogAppendTime"})
    part = only(client.ask(produce(batch(b"a", timestamp=5), "appended")))
    assert abs(part.log_append_time_ms - time.time() * 1000) < 60_000
    (record,) = shared.records("appended")
    assert (record.timestamp, record.timestamp_type) == (part.log_append_time_ms, 1)


def test_a_topics_codec_takes_the_producers_place(shared: Broker, client: Wire) -> None:
    shared.create_topic("packed", configs={"compression.type": "gzip"})
    client.ask(produce(batch(b"a" * 1000), "packed"))
    (header,) = scan(only(client.ask(fetch("packed"))).records)
    assert header.codec == 1
    assert shared.records("packed")[0].value == b"a" * 1000


def test_a_repeated_batch_gets_the_offset_that_it_has(shared: Broker, client: Wire, topic: str) -> None:
    def send(sequence: int) -> Any:
        data = batch(b"v", producer_id=7, producer_epoch=0, base_sequence=sequence)
        return only(client.ask(produce(data, topic)))

    assert [send(sequence).base_offset for sequence in range(5)] == [0, 1, 2, 3, 4]
    assert [(part.error_code, part.base_offset) for part in map(send, range(5))] == [(0, at) for at in range(5)]
    assert send(6).error_code == 45
    assert send(5).base_offset == 5
    assert send(0).error_code == 45  # out of the window of five
    assert len(shared.records(topic)) == 6


def test_an_old_producer_epoch_is_fenced(client: Wire, topic: str) -> None:
    def send(epoch: int, sequence: int) -> int:
        data = batch(b"v", producer_id=8, producer_epoch=epoch, base_sequence=sequence)
        return int(only(client.ask(produce(data, topic))).error_code)

    assert send(1, 0) == 0
    assert send(0, 1) == 47
    assert send(2, 5) == 45  # a new epoch begins at 0
    assert send(2, 0) == 0


def test_sequence_numbers_wrap_around(client: Wire, topic: str) -> None:
    def send(sequence: int, *payload: bytes) -> int:
        data = batch(*payload, producer_id=9, producer_epoch=0, base_sequence=sequence)
        return int(only(client.ask(produce(data, topic))).error_code)

    assert send(2**31 - 2, b"a", b"b") == 0
    assert send(0, b"c") == 0


def test_acks_all_needs_the_replicas() -> None:
    with Broker(nodes=2) as broker:
        broker.create_topic("careful", replication_factor=2, configs={"min.insync.replicas": 2})
        leader = broker.leader("careful")
        with wire(broker, leader) as client:
            assert only(client.ask(produce(batch(b"v"), "careful"))).error_code == 0
            broker.stop_node(3 - leader)
            assert only(client.ask(produce(batch(b"v"), "careful"))).error_code == 19
            assert only(client.ask(produce(batch(b"v"), "careful", acks=1))).error_code == 0
            assert only(client.ask(produce(batch(b"v"), "careful", acks=5))).error_code == 21


# Fetch


def test_fetch_waits_for_enough_bytes(shared: Broker, client: Wire, topic: str) -> None:
    client.send(fetch(topic, max_wait_ms=30_000, min_bytes=500))
    shared.append(topic, b"x" * 100)
    with wire(shared) as other:  # a round trip: the first append has been looked at
        assert only(other.ask(fetch(topic))).high_watermark == 1
    client.socket.settimeout(0.05)
    with pytest.raises(TimeoutError):
        client.socket.recv(1)
    client.socket.settimeout(60)
    shared.append(topic, b"x" * 1000)
    _, reply = client.receive(FetchRequest[12].RESPONSE_TYPE)
    assert values(only(reply).records) == [b"x" * 100, b"x" * 1000]


def test_fetch_sees_what_comes_just_before_it_begins_to_wait(
    shared: Broker, client: Wire, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin_to_wait = Connection._wait_for

    def append_first(connection: Connection, result: Any) -> None:
        shared.append(topic, b"x")
        begin_to_wait(connection, result)

    monkeypatch.setattr(Connection, "_wait_for", append_first)
    began = time.monotonic()
    client.socket.settimeout(60)
    reply = client.ask(fetch(topic, max_wait_ms=30_000))
    assert values(only(reply).records) == [b"x"]
    assert time.monotonic() - began < 20  # a busy machine adds to it


def test_fetch_does_not_wait_for_what_is_deleted_just_before_it_begins_to_wait(
    shared: Broker, client: Wire, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin_to_wait = Connection._wait_for

    def delete_first(connection: Connection, result: Any) -> None:
        shared.delete_topic(topic)
        begin_to_wait(connection, result)

    monkeypatch.setattr(Connection, "_wait_for", delete_first)
    assert only(client.ask(fetch(topic, max_wait_ms=600_000))).error_code == 3


def test_fetch_waits_no_longer_than_max_wait_ms(shared: Broker) -> None:
    with Broker(topics=["events"]) as broker, wire(broker) as client:
        broker.clock.freeze()
        client.send(fetch("events", max_wait_ms=500_000))
        _wait_for_request(broker, "Fetch")
        broker.clock.advance(500)
        _, reply = client.receive(FetchRequest[12].RESPONSE_TYPE)
        assert only(reply).records == b""


def test_fetch_does_not_wait_for_more_than_a_reply_may_have(shared: Broker, client: Wire, topic: str) -> None:
    for _ in range(5):
        shared.append(topic, b"x" * 50)
    request = fetch(topic, max_wait_ms=600_000, min_bytes=1000)
    request.max_bytes = 100
    assert values(only(client.ask(request)).records) == [b"x" * 50]


def test_fetch_waits_for_what_is_there_beside_what_is_not() -> None:
    with Broker(topics=["events"]) as broker, wire(broker) as client:
        request = fetch("nowhere", max_wait_ms=600_000)
        request.topics += fetch("events", partition=7).topics + fetch("events").topics
        client.send(request)
        _wait_for_request(broker, "Fetch")
        with wire(broker) as other:  # a round trip: the fetch has been looked at
            assert only(other.ask(fetch("events"))).high_watermark == 0
        broker.append("events", b"x")
        _, reply = client.receive(FetchRequest[12].RESPONSE_TYPE)
        told = [
            (one.topic, each.partition_index, each.error_code) for one in reply.responses for each in one.partitions
        ]
        # As in Kafka, what is not there comes last.
        assert told == [("events", 0, 0), ("nowhere", 0, 3), ("events", 7, 3)]
        assert only(client.ask(fetch("nowhere", max_wait_ms=600_000))).error_code == 3  # nothing to wait for


def by_id(topic_id: uuid.UUID, **fields: Any) -> FetchRequest:
    cls = FetchRequest[13]
    part = cls.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    topics = [cls.FetchTopic(topic_id=topic_id, partitions=[part])] if fields.get("session_epoch", 0) <= 0 else []
    return cls(**{"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1000, "topics": topics, **fields})


def test_a_topic_that_is_deleted_under_a_fetch_is_known_by_its_name() -> None:
    with Broker(topics=["events"]) as broker, wire(broker) as client:
        topic_id = broker.run(lambda cluster: cluster.topics["events"].id)
        client.send(by_id(topic_id, max_wait_ms=600_000))
        _wait_for_request(broker, "Fetch")
        with wire(broker) as other:
            assert only(other.ask(fetch("events"))).error_code == 0
        broker.delete_topic("events")
        _, reply = client.receive(FetchRequest[13].RESPONSE_TYPE)
        assert only(reply).error_code == 3
        assert only(client.ask(by_id(topic_id))).error_code == 100


def test_a_session_keeps_the_names_of_its_topics() -> None:
    with Broker(topics=["events"]) as broker, wire(broker) as client:
        topic_id = broker.run(lambda cluster: cluster.topics["events"].id)
        session = client.ask(by_id(topic_id, session_epoch=0)).session_id
        broker.delete_topic("events")
        assert only(client.ask(by_id(topic_id, session_id=session, session_epoch=1))).error_code == 3
        broker.create_topic("events")
        assert only(client.ask(by_id(topic_id, session_id=session, session_epoch=2))).error_code == 103


def _wait_for_request(broker: Broker, name: str) -> None:
    deadline = time.monotonic() + 10
    arrived = threading.Event()
    while not any(seen.name == name for seen in broker.requests):
        assert time.monotonic() < deadline
        arrived.wait(0.005)


def test_the_first_batch_comes_whole_and_the_last_may_be_cut(shared: Broker, client: Wire, topic: str) -> None:
    for _ in range(3):
        shared.append(topic, b"x" * 1000)
    part = only(client.ask(fetch(topic, max_bytes=10)))
    assert len(values(part.records)) == 1
    part = only(client.ask(fetch(topic, max_bytes=1500)))
    assert len(part.records) == 1500
    assert len(values(part.records)) == 1
    part = only(client.ask(fetch(topic, max_bytes=10, version=2)))
    assert len(part.records) <= 10  # old versions had no such promise


@pytest.mark.parametrize("version", [4, 11, 12])
@pytest.mark.parametrize("limits", [{"max_bytes": 80}, {"reply": 180}])
def test_only_the_first_partition_with_data_gets_more_than_the_limit(
    shared: Broker, client: Wire, version: int, limits: dict[str, int]
) -> None:
    # Kafka answers 570, 0, 0: a part of a first batch is of no use to a reader, and Java's consumer gives up over it.
    topic = f"three-{version}-{'-'.join(limits)}"
    shared.create_topic(topic, 3)
    for index in range(3):
        client.ask(produce(batch(b"v" * 100), topic, index))
    cls = FetchRequest[version]
    most = limits.get("max_bytes", 1000)
    parts = [cls.FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=most) for index in range(3)]
    request = cls(max_wait_ms=0, min_bytes=1, max_bytes=limits.get("reply", 1000))
    request.topics = [cls.FetchTopic(topic=topic, partitions=parts)]
    sizes = [len(part.records) for part in client.ask(request).responses[0].partitions]
    assert sizes[0] > 100
    assert sizes[1:] == [0, 0]


def test_offsets_that_are_not_there_are_out_of_range(client: Wire, topic: str) -> None:
    assert only(client.ask(fetch(topic, offset=1))).error_code == 1
    assert only(client.ask(fetch(topic, offset=-1))).error_code == 1
    assert only(client.ask(fetch(topic, offset=0))).error_code == 0
    assert only(client.ask(fetch("no-such-topic"))).error_code == 3
    assert only(client.ask(fetch(topic, partition=5))).error_code == 3


def test_a_session_tells_only_news(shared: Broker, client: Wire, topic: str) -> None:
    shared.append(topic, b"a")
    full = client.ask(fetch(topic, session_epoch=0))
    assert full.session_id > 0
    cls = FetchRequest[12]

    def go_on(epoch: int, *parts: Any) -> Any:
        topics = [cls.FetchTopic(topic=topic, partitions=list(parts))] if parts else []
        return client.ask(
            cls(
                max_wait_ms=0,
                min_bytes=1,
                max_bytes=1 << 20,
                session_id=full.session_id,
                session_epoch=epoch,
                topics=topics,
            )
        )

    moved = cls.FetchPartition(partition=0, fetch_offset=1, partition_max_bytes=1000)
    assert go_on(1, moved).responses == []
    shared.append(topic, b"b")
    assert values(only(go_on(2)).records) == [b"b"]
    assert go_on(2).error_code == 71
    assert go_on(3, cls.FetchPartition(partition=0, fetch_offset=2, partition_max_bytes=1000)).responses == []
    forgotten = cls(
        max_wait_ms=0, min_bytes=1, max_bytes=1 << 20, session_id=full.session_id, session_epoch=4,
        topics=[], forgotten_topics_data=[cls.ForgottenTopic(topic=topic, partitions=[0])],
    )  # fmt: skip
    assert client.ask(forgotten).session_id == 0
    assert go_on(5).error_code == 70


def test_a_reader_with_an_earlier_leader_epoch_is_fenced_though_its_session_has_no_news() -> None:
    with Broker(nodes=2, topics={"events": 1}) as broker:
        leader = broker.leader("events")

        def in_session(session: int, epoch: int) -> FetchRequest:
            request = fetch("events", session_id=session, session_epoch=epoch)
            request.topics[0].partitions[0].current_leader_epoch = 0
            if epoch:
                request.topics = []
            return request

        with wire(broker, leader) as client:
            session = client.ask(in_session(0, 0)).session_id
            assert client.ask(in_session(session, 1)).responses == []
            for node in (3 - leader, leader):
                broker.move_leader(TopicPartition("events", 0), node)
            assert only(client.ask(in_session(session, 2))).error_code == 74


@pytest.mark.parametrize("offset", [25, 45], ids=["within the log", "beyond its end"])
@pytest.mark.parametrize("session_epoch", [0, 1], ids=["first fetch", "in a session"])
def test_a_reader_of_a_truncated_part_learns_where_the_logs_diverge(session_epoch: int, offset: int) -> None:
    with Broker(nodes=2, topics={"events": 1}) as broker:
        broker.append_many("events", [b"old"] * 20)
        broker.move_leader(TopicPartition("events", 0), 3 - broker.leader("events", 0))
        broker.append_many("events", [b"new"] * 10)
        with wire(broker, broker.leader("events", 0)) as client:
            session_id = client.ask(fetch("events", session_epoch=0)).session_id if session_epoch else 0
            request = fetch("events", offset, session_id=session_id, session_epoch=session_epoch)
            request.topics[0].partitions[0].last_fetched_epoch = 0
            part = only(client.ask(request))
            assert part.error_code == 0
            assert (part.diverging_epoch.epoch, part.diverging_epoch.end_offset) == (0, 20)
            assert not len(part.records)


def test_leader_epochs_are_checked(client: Wire, topic: str) -> None:
    def with_epoch(epoch: int) -> int:
        request = fetch(topic)
        request.topics[0].partitions[0].current_leader_epoch = epoch
        return int(only(client.ask(request)).error_code)

    assert with_epoch(0) == 0
    assert with_epoch(1) == 75


def test_produce_to_the_wrong_node_names_the_leader() -> None:
    with Broker(nodes=2, topics={"events": 2}) as broker:
        leader = broker.leader("events", 0)
        other = 3 - leader
        with wire(broker, other) as client:
            reply = client.ask(produce(batch(b"v"), version=10))
            part = only(reply)
            assert part.error_code == 6
            assert part.current_leader.leader_id == leader
            assert [(node.node_id, node.port) for node in reply.node_endpoints] == [(leader, broker.port(leader))]
            reply = client.ask(fetch("events", version=12))
            assert (only(reply).error_code, only(reply).current_leader.leader_id) == (6, -1)
            topic_id = broker.run(lambda cluster: cluster.topics["events"].id)
            for version in (15, 16):  # Kafka has the field from 12 on, and fills it in from 16 on
                cls = FetchRequest[version]
                part = cls.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
                topics = [cls.FetchTopic(topic_id=topic_id, partitions=[part])]
                reply = client.ask(cls(max_wait_ms=0, min_bytes=1, max_bytes=1000, topics=topics))
                assert only(reply).error_code == 6
                assert only(reply).current_leader.leader_id == (leader if version >= 16 else -1)


def test_topics_are_known_by_id() -> None:

    with Broker(topics=["events"]) as broker, wire(broker) as client:
        cls = ProduceRequest[13]
        data = cls.TopicProduceData(topic_id=uuid.uuid4(), partition_data=[(0, batch(b"v"))])
        assert only(client.ask(cls(acks=-1, timeout_ms=100, topic_data=[data]))).error_code == 100


def test_read_committed_stops_at_open_transactions_and_lists_aborted_ones(
    shared: Broker, client: Wire, topic: str
) -> None:
    def run(cluster: Any) -> None:
        partition = cluster.partition(topic, 0)
        opened = batch(b"t", producer_id=5, producer_epoch=0, base_sequence=0, transactional=True)
        cluster.append(partition, opened)
        cluster.append(partition, batch(b"plain"))

    shared.run(run)
    part = only(client.ask(fetch(topic, isolation_level=1)))
    assert (part.last_stable_offset, part.high_watermark, bytes(part.records)) == (0, 2, b"")
    assert values(only(client.ask(fetch(topic))).records) == [b"t", b"plain"]
    shared.run(lambda cluster: cluster.append_marker(cluster.partition(topic, 0), 5, 0, committed=False))
    part = only(client.ask(fetch(topic, isolation_level=1)))
    assert part.last_stable_offset == 3
    assert [(one.producer_id, one.first_offset) for one in part.aborted_transactions] == [(5, 0)]
    assert [record.value for record in shared.records(topic, committed=True)] == [b"plain"]
    assert only(client.ask(fetch(topic, offset=3, isolation_level=1))).aborted_transactions == []


def test_a_read_committed_fetch_waits_for_the_end_of_the_transaction_and_not_for_its_records(
    shared: Broker, client: Wire, topic: str
) -> None:
    def write(cluster: Any, sequence: int) -> None:
        data = batch(b"t" * 1000, producer_id=5, producer_epoch=0, base_sequence=sequence, transactional=True)
        cluster.append(cluster.partition(topic, 0), data)

    def is_answered() -> bool:
        for _ in range(3):  # passes of the loop: what it had to answer is sent
            shared.run(lambda _: None)
        return bool(select.select([client.socket], [], [], 0)[0])

    shared.run(lambda cluster: write(cluster, 0))
    shared.forget_requests()
    client.send(fetch(topic, isolation_level=1, max_wait_ms=60_000))
    deadline = time.monotonic() + 30
    while not any(seen.name == "Fetch" for seen in shared.requests):
        assert time.monotonic() < deadline
    assert not is_answered()
    shared.run(lambda cluster: write(cluster, 1))
    assert not is_answered()
    shared.run(lambda cluster: cluster.append_marker(cluster.partition(topic, 0), 5, 0, committed=True))
    _, reply = client.receive(FetchRequest[12].RESPONSE_TYPE)
    assert values(only(reply).records) == [b"t" * 1000] * 2


def test_interceptors_see_messages_within_replies(shared: Broker, client: Wire, topic: str) -> None:
    seen: list[Any] = []

    def abort(cluster: Any) -> None:
        partition = cluster.partition(topic, 0)
        cluster.append(partition, batch(b"t", producer_id=5, producer_epoch=0, base_sequence=0, transactional=True))
        cluster.append_marker(partition, 5, 0, committed=False)

    def look(exchange: Exchange) -> None:
        seen.append(only(exchange.reply))

    shared.run(abort)
    future = int(shared.clock.time() * 1000) + 10 * 3_600_000
    with shared.intercept("Fetch", look), shared.intercept("Produce", look):
        client.ask(fetch(topic, isolation_level=1))
        client.ask(produce(batch(b"a", timestamp=future), topic))
    fetched, produced = seen
    assert [(one.producer_id, one.first_offset) for one in fetched.aborted_transactions] == [(5, 0)]
    assert [error.batch_index for error in produced.record_errors] == [0]


@pytest.mark.parametrize("version", range(3, 13))
def test_a_batch_with_a_time_that_is_refused_has_its_answer_in_each_version(
    shared: Broker, client: Wire, topic: str, version: int
) -> None:
    future = int(shared.clock.time() * 1000) + 10 * 3_600_000
    answer = only(client.ask(produce(batch(b"a", timestamp=future), topic, version=version)))
    assert answer.error_code == 32
    assert [error.batch_index for error in answer.record_errors] == ([0] if version >= 8 else [])


def test_readers_are_sent_to_the_replica_in_their_rack() -> None:
    selector = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
    with Broker(nodes=2, racks=["a", "b"], configs={"replica.selector.class": selector}) as broker:
        broker.create_topic("racked", replication_factor=2)
        broker.append("racked", b"v")
        broker.move_leader(("racked", 0), 1)
        with wire(broker, 1) as leader, wire(broker, 2) as follower:
            assert only(leader.ask(fetch("racked", rack_id="b"))).preferred_read_replica == 2
            assert values(only(leader.ask(fetch("racked", rack_id="a"))).records) == [b"v"]
            assert values(only(leader.ask(fetch("racked", rack_id="elsewhere"))).records) == [b"v"]
            assert values(only(follower.ask(fetch("racked", rack_id="b"))).records) == [b"v"]
            assert only(follower.ask(fetch("racked", version=10))).error_code == 6  # before KIP-392
            assert only(follower.ask(produce(batch(b"v"), "racked"))).error_code == 6


def test_asking_for_metadata_makes_topics_where_that_is_allowed() -> None:
    with Broker(configs={"num.partitions": 3}) as broker, wire(broker) as client:
        ask = MetadataRequest[4]
        assert client.ask(ask(["made"], False)).topics[0].error_code == 3
        made = client.ask(ask(["made"], True)).topics[0]
        assert (made.error_code, len(made.partitions)) == (0, 3)
        assert client.ask(ask(["no/way"], True)).topics[0].error_code == 17
    with Broker(configs={"auto.create.topics.enable": False}) as broker, wire(broker) as client:
        assert client.ask(MetadataRequest[4](["made"], True)).topics[0].error_code == 3


# What takes long to check


def until_checked(broker: Broker) -> None:
    """Wait until a connection waits for its batch to be checked."""

    def is_checking(cluster: Any) -> bool:
        return any(one._task is not None for node in cluster.nodes.values() for one in node.listener.connections)

    deadline = time.monotonic() + 30
    while not broker.run(is_checking):
        assert time.monotonic() < deadline


@pytest.mark.parametrize("acks", [-1, 0])
def test_others_are_served_while_a_large_batch_is_checked(shared: Broker, topic: str, client: Wire, acks: int) -> None:
    may_go_on = threading.Event()
    shared.run(lambda cluster: cluster.background(cluster.in_thread(may_go_on.wait)))
    try:
        client.send(produce(batch(*[b"v"] * 30_000), topic, acks=acks))
        until_checked(shared)
        with wire(shared) as other:
            assert other.ask(produce(batch(b"small"), topic)).responses[0].partition_responses[0].base_offset == 0
    finally:
        may_go_on.set()
    client.socket.settimeout(30)
    if acks:
        _, reply = client.receive(ProduceRequest[9].RESPONSE_TYPE)
        assert reply.responses[0].partition_responses[0].base_offset == 1
    client.ask(MetadataRequest[1]([]))  # requests of a connection are served in order
    assert shared.offsets(topic) == (0, 30_001, 30_001)


@pytest.mark.parametrize("kind", ["many records", "bomb"])
def test_others_are_served_while_a_large_batch_is_searched(shared: Broker, topic: str, client: Wire, kind: str) -> None:
    large = batch(*[b"v"] * 30_000) if kind == "many records" else batch(b"\0" * (8 << 20), codec="gzip")
    client.socket.settimeout(30)
    client.ask(produce(large, topic))
    client.ask(produce(large, topic))
    may_go_on = threading.Event()
    shared.run(lambda cluster: cluster.background(cluster.in_thread(may_go_on.wait)))
    try:
        client.send(ListOffsetsRequest[7](replica_id=-1, topics=[(topic, [(0, -1, NOW)])]))
        until_checked(shared)
        with wire(shared) as other:
            other.ask(MetadataRequest[1]([]))
    finally:
        may_go_on.set()
    _, reply = client.receive(ListOffsetsRequest[7].RESPONSE_TYPE)
    found = reply.topics[0].partitions[0]
    assert (found.error_code, found.timestamp, found.offset) == (0, NOW, 0)


def test_a_topic_that_is_gone_when_its_large_batch_is_checked(shared: Broker, topic: str, client: Wire) -> None:
    may_go_on = threading.Event()
    shared.run(lambda cluster: cluster.background(cluster.in_thread(may_go_on.wait)))
    client.send(produce(batch(*[b"v"] * 30_000), topic))
    until_checked(shared)
    shared.delete_topic(topic)
    may_go_on.set()
    _, reply = client.receive(ProduceRequest[9].RESPONSE_TYPE)
    assert reply.responses[0].partition_responses[0].error_code == 3


def test_a_bomb_is_refused_and_the_log_says_why(
    shared: Broker, topic: str, client: Wire, caplog: pytest.LogCaptureFixture
) -> None:
    client.socket.settimeout(60)
    reply = client.ask(produce(batch(b"\0" * (65 << 20), codec="gzip"), topic))
    assert reply.responses[0].partition_responses[0].error_code == 87
    assert f"refused a batch for TopicPartition(topic='{topic}', partition=0) from test: " in caplog.text
    assert "unpack to more than the 67109632 bytes allowed" in caplog.text
