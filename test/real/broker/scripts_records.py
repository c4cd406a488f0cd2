"""Scripts about records: produce, fetch, offsets; and about bytes that mean nothing."""

from __future__ import annotations

import struct
from typing import Any
from uuid import UUID

from kafka.protocol.admin import DeleteRecordsRequest
from kafka.protocol.fetch import FetchRequest
from kafka.protocol.offset import ListOffsetsRequest, OffsetForLeaderEpochRequest
from kafka.protocol.produce import ProduceRequest
from kafka.protocol.transaction import DescribeProducersRequest
from kafka.record.batch_builder import BatchBuilder

from .sessions import Transcript, versions

THEN = 1_700_000_000_000
NOBODY = UUID(int=0)
ABSENT_ID = UUID("01234567-89ab-4def-8123-456789abcdef")


def batch(
    *values: bytes | None, codec: str | None = None, key: bytes | None = None, at: int = THEN, **seal: Any
) -> bytes:
    builder = BatchBuilder(2**30, codec)
    for number, value in enumerate(values):
        builder.append(at + number, key, value)
    return builder.seal(**seal).data


def produce_request(
    version: int, name: str, topic_id: UUID, data: bytes | None, partition: int = 0, acks: int = -1, **fields: Any
) -> ProduceRequest:
    cls = ProduceRequest[version]
    if version >= 13:
        topic = cls.TopicProduceData(topic_id=topic_id, partition_data=[(partition, data)])
    else:
        topic = cls.TopicProduceData(name=name, partition_data=[(partition, data)])
    return cls(acks=acks, timeout_ms=5000, topic_data=[topic], **fields)


def produce(say: Transcript) -> None:
    # Not null for the records: Kafka 4.3 never answers that.
    for version in range(3, versions("Produce").stop):
        name = f"produced-{version}"
        topic_id = say.make_topic(name, 1, max_message_bytes="5000")

        def put(
            label: str, data: bytes, version: int = version, name: str = name, topic_id: UUID = topic_id, **options: Any
        ) -> None:
            say.ask(f"{label} v{version}", produce_request(version, name, topic_id, data, **options))

        put("one", batch(b"a"))
        put("three", batch(b"a", b"b", b"c"))
        put("acks 1", batch(b"a"), acks=1)
        put("gzip", batch(b"a" * 100, codec="gzip"))
        put("zstd", batch(b"a" * 100, codec="zstd"))
        put("empty", b"")
        put("two batches", batch(b"a") + batch(b"b"))
        put("checksum", batch(b"a" * 20)[:-3] + b"xyz")
        put("short", batch(b"a" * 50)[:40])
        put("cut off", batch(b"a" * 50)[:-1])
        put("too large", batch(b"a" * 6000))
        put("acks 2", batch(b"a"), acks=2)
        put("no such partition", batch(b"a"), partition=1)
        put("negative partition", batch(b"a"), partition=-1)
        put("control", batch(b"a", producer_id=1, producer_epoch=0, control=True, transactional=True))
        put("magic", batch(b"a")[:16] + b"\x07" + batch(b"a")[17:])
        put("future", batch(b"a", at=4_000_000_000_000))
        put("from afar", batch(b"a", at=0))
        put("offset", struct.pack(">q", 5) + batch(b"a")[8:])
        say.ask(f"nowhere v{version}", produce_request(version, "nowhere", ABSENT_ID, batch(b"a")))
        say.ask(f"illegal v{version}", produce_request(version, "no/where", NOBODY, batch(b"a")))


def append_time(say: Transcript) -> None:
    topic_id = say.make_topic("by-the-broker", 1, message_timestamp_type="LogAppendTime")
    reply = say.quietly(produce_request(12, "by-the-broker", topic_id, batch(b"a", b"b")))
    stamp = reply.responses[0].partition_responses[0].log_append_time_ms
    say.note("has a time", stamp > THEN)
    say.make_topic("keyed", 1, cleanup_policy="compact")
    say.ask("no key", produce_request(12, "keyed", NOBODY, batch(b"a", b"b")))
    say.ask("key", produce_request(12, "keyed", NOBODY, batch(b"a", b"b", key=b"k")))
    say.make_topic("recent", 1, message_timestamp_before_max_ms="1000")
    say.ask("too old", produce_request(12, "recent", NOBODY, batch(b"a")))
    say.make_topic("packed", 1, compression_type="lz4")
    say.ask("packed", produce_request(12, "packed", NOBODY, batch(b"a" * 500)))
    part = say.quietly(fetch_request(12, "packed", NOBODY)).responses[0].partitions[0]
    say.note("codec", part.records[22] & 7)
    say.make_topic("careful", 1, min_insync_replicas="2")
    say.ask("careful", produce_request(12, "careful", NOBODY, batch(b"a")))
    say.ask("careless", produce_request(12, "careful", NOBODY, batch(b"a"), acks=1))


def idempotence(say: Transcript) -> None:
    topic_id = say.make_topic("once")

    def put(label: str, sequence: int, epoch: int = 0, count: int = 1, producer: int = 4242) -> None:
        data = batch(*[b"x"] * count, producer_id=producer, producer_epoch=epoch, base_sequence=sequence)
        say.ask(label, produce_request(12, "once", topic_id, data))

    for sequence in range(6):
        put(f"sequence {sequence}", sequence)
    for sequence in range(6):
        put(f"again {sequence}", sequence)
    put("gap", 9)
    put("three", 6, count=3)
    put("part of the three", 7, count=2)
    put("new epoch in the middle", 9, epoch=1)
    put("new epoch", 0, epoch=1)
    put("old epoch", 9, epoch=0)
    put("wraps", 2**31 - 1, producer=4243)
    put("wrapped", 0, producer=4243)
    put("stranger in the middle", 17, producer=4244)
    say.ask("no sequence", produce_request(12, "once", topic_id, batch(b"x", producer_id=9, producer_epoch=0)))
    data = batch(b"x", producer_id=9, producer_epoch=0, base_sequence=0, transactional=True)
    say.ask("no transaction", produce_request(12, "once", topic_id, data))
    reply = say.quietly(DescribeProducersRequest[0](topics=[("once", [0])]))
    known = reply.topics[0].partitions[0].active_producers
    say.note("producers", sorted((one.producer_id, one.producer_epoch, one.last_sequence) for one in known))
    say.ask("no producers", DescribeProducersRequest[0](topics=[("once", [7]), ("nowhere", [0])]))


def fetch_request(
    version: int,
    name: str,
    topic_id: UUID,
    offset: int = 0,
    *,
    partition: int = 0,
    part_bytes: int = 1 << 20,
    epoch: int = -1,
    last_epoch: int = -1,
    **fields: Any,
) -> FetchRequest:
    cls = FetchRequest[version]
    part = cls.FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=part_bytes)
    if version >= 9:
        part.current_leader_epoch = epoch
    if version >= 12:
        part.last_fetched_epoch = last_epoch
    topic = cls.FetchTopic(topic_id=topic_id) if version >= 13 else cls.FetchTopic(topic=name)
    topic.partitions = [part]
    return cls(**{"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 24, "topics": [topic], **fields})


def fetch(say: Transcript) -> None:
    topic_id = say.make_topic("fetched")
    for _ in range(3):
        say.quietly(produce_request(12, "fetched", topic_id, batch(b"a" * 100, b"b" * 100)))
    for version in versions("Fetch"):

        def get(label: str, offset: int = 0, version: int = version, **options: Any) -> None:
            say.ask(f"{label} v{version}", fetch_request(version, "fetched", topic_id, offset, **options))

        get("all")
        get("from the middle of a batch", 3)
        get("committed", isolation_level=1)
        get("at the end", 6)
        get("beyond", 7)
        get("before", -1)
        get("little", part_bytes=10)
        get("one and a half", part_bytes=400)
        get("little in all", max_bytes=10)
        get("nothing", part_bytes=0)
        get("no such partition", partition=3)
        get("waiting in vain", 6, max_wait_ms=50)
        if version >= 9:
            get("epoch", epoch=0)
            get("epoch to come", epoch=5)
        if version >= 12:
            get("followed", 2, last_epoch=0)
            get("diverged", 2, last_epoch=3)
        say.ask(f"nowhere v{version}", fetch_request(version, "nowhere", ABSENT_ID))


def fetch_sessions(say: Transcript) -> None:
    topic_id = say.make_topic("session", 2)
    for version in (7, 12, versions("Fetch").stop - 1):
        begun = say.quietly(fetch_request(version, "session", topic_id, session_epoch=0))
        number = begun.session_id
        say.note(f"begun v{version}", (number > 0, begun.error_code, len(begun.responses)))

        def go_on(
            label: str, epoch: int, session: int = number, number: int = number, version: int = version, **fields: Any
        ) -> None:
            request = FetchRequest[version](
                **{"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20, "topics": [], **fields},
                session_id=session,
                session_epoch=epoch,
            )
            reply = say.quietly(request)
            reply.session_id = 1 if reply.session_id == number else reply.session_id
            for topic in reply.responses:
                for part in topic.partitions:
                    part.records = len(part.records).to_bytes(4, "big")
            say.note(f"{label} v{version}", reply.to_json())

        go_on("nothing new", 1)
        say.quietly(produce_request(12, "session", topic_id, batch(b"new")))
        go_on("something new", 2)
        go_on("the same again", 3)
        go_on("wrong epoch", 3)
        go_on("unknown session", 3, session=123456)
        add = fetch_request(version, "session", topic_id, partition=1).topics
        go_on("another partition", 4, topics=add)
        forgotten = FetchRequest[version].ForgottenTopic(partitions=[0])
        if version >= 13:
            forgotten.topic_id = topic_id
        else:
            forgotten.topic = "session"
        go_on("one forgotten", 5, forgotten_topics_data=[forgotten])
        go_on("ended", -1)
        go_on("after the end", 6)


def list_offsets(say: Transcript) -> None:
    topic_id = say.make_topic("listed")
    for start in (0, 100, 50):
        say.quietly(produce_request(12, "listed", topic_id, batch(b"a", b"b", at=THEN + start)))
    for version in versions("ListOffsets"):
        cls = ListOffsetsRequest[version]

        def find(label: str, timestamp: int, *, topic: str = "listed", partition: int = 0, epoch: int = -1,
                 isolation: int = 0, cls: Any = cls, version: int = version) -> None:  # fmt: skip
            part = cls.ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
            if version >= 4:
                part.current_leader_epoch = epoch
            fields = {"isolation_level": isolation} if version >= 2 else {}
            topics = [cls.ListOffsetsTopic(name=topic, partitions=[part])]
            say.ask(f"{label} v{version}", cls(replica_id=-1, topics=topics, **fields))

        for special in range(-1, -9, -1):
            find(f"special {special}", special)
        find("committed", -1, isolation=1)
        for time in (0, THEN, THEN + 1, THEN + 2, THEN + 51, THEN + 101, THEN + 102):
            find(f"time {time - THEN}", time)
        find("nowhere", -1, topic="nowhere")
        find("no such partition", -1, partition=9)
        if version >= 4:
            find("epoch", -1, epoch=0)
            find("epoch to come", -1, epoch=4)
        twice = cls.ListOffsetsTopic(name="listed", partitions=[])
        twice.partitions = [cls.ListOffsetsPartition(partition_index=0, timestamp=-1) for _ in range(2)]
        say.ask(f"twice v{version}", cls(replica_id=-1, topics=[twice]))


def epochs_and_deletion(say: Transcript) -> None:
    topic_id = say.make_topic("shrinking", 2)
    for _ in range(4):
        say.quietly(produce_request(12, "shrinking", topic_id, batch(b"a", b"b")))
    for version in versions("OffsetForLeaderEpoch"):
        cls = OffsetForLeaderEpochRequest[version]
        replica = {"replica_id": -1} if version >= 3 else {}
        for current, epoch in ((-1, 0), (-1, 1), (0, 0), (3, 0), (-1, -1)):
            part = cls.OffsetForLeaderPartition(partition=0, current_leader_epoch=current, leader_epoch=epoch)
            say.ask(f"epoch {current} {epoch} v{version}", cls(topics=[("shrinking", [part])], **replica))
        part = cls.OffsetForLeaderPartition(partition=8, leader_epoch=0)
        say.ask(f"nowhere v{version}", cls(topics=[("shrinking", [part]), ("nowhere", [part])], **replica))
        part = cls.OffsetForLeaderPartition(partition=1, leader_epoch=0)
        say.ask(f"empty v{version}", cls(topics=[("shrinking", [part])], **replica))
    for version in versions("DeleteRecords"):
        cls = DeleteRecordsRequest[version]
        say.ask(f"delete v{version}", cls(topics=[("shrinking", [(0, version + 1)])], timeout_ms=5000))
        say.ask(f"delete again v{version}", cls(topics=[("shrinking", [(0, 1)])], timeout_ms=5000))
        say.ask(f"delete too much v{version}", cls(topics=[("shrinking", [(0, 99)])], timeout_ms=5000))
        say.ask(f"delete less than nothing v{version}", cls(topics=[("shrinking", [(0, -2)])], timeout_ms=5000))
        say.ask(f"delete nowhere v{version}", cls(topics=[("nowhere", [(0, 1)])], timeout_ms=5000))
    say.ask("after", fetch_request(12, "shrinking", topic_id, 1))
    say.ask("from there", fetch_request(12, "shrinking", topic_id, 3))
    say.ask("all", DeleteRecordsRequest[2](topics=[("shrinking", [(0, -1)])], timeout_ms=5000))
    say.ask("empty", fetch_request(12, "shrinking", topic_id, 8))
    say.ask("still counting", produce_request(12, "shrinking", topic_id, batch(b"a")))
    say.make_topic("compact", 1, cleanup_policy="compact")
    say.ask("compacted", DeleteRecordsRequest[2](topics=[("compact", [(0, 0)])], timeout_ms=5000))


def garbage(say: Transcript) -> None:
    def frame(body: bytes) -> bytes:
        return struct.pack(">i", len(body)) + body

    head = struct.pack(">hhih", 3, 1, 7, -1)
    say.raw("http", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    say.raw("negative size", struct.pack(">i", -1) + b"x" * 20)
    say.raw("huge size", struct.pack(">i", 2**31 - 1) + b"x" * 20)
    say.raw("nothing", struct.pack(">i", 0))
    say.raw("too short", frame(b"\0\x03"))
    say.raw("unknown api", frame(struct.pack(">hhih", 999, 0, 7, -1)))
    say.raw("negative api", frame(struct.pack(">hhih", -1, 0, 7, -1)))
    say.raw("inter-broker api", frame(struct.pack(">hhih", 4, 0, 7, -1) + b"\0" * 30))
    say.raw("version to come", frame(struct.pack(">hhih", 3, 99, 7, -1)))
    say.raw("version of old", frame(struct.pack(">hhih", 1, 0, 7, -1)))
    say.raw("negative version", frame(struct.pack(">hhih", 3, -1, 7, -1)))
    say.raw("no body", frame(head))
    say.raw("count beyond the end", frame(head + struct.pack(">i", 2**30)))
    say.raw("name beyond the end", frame(head + struct.pack(">ih", 1, 500) + b"x"))
    say.raw("api versions to come", frame(struct.pack(">hhih", 18, 99, 7, -1) + b"\0"))
    say.raw("tls", bytes.fromhex("16030100c8010000c40303") + b"\0" * 200)


SCRIPTS = [
    produce,
    append_time,
    idempotence,
    fetch,
    fetch_sessions,
    list_offsets,
    epochs_and_deletion,
    garbage,
]
