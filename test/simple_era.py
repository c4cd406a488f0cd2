"""Programs of the Simple* era, for a cluster with a topic of two partitions that is empty; both tiers run them.

Each takes the bootstrap servers and the name of the topic. The examples of the manual are in manual_examples.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any, Final

from kafka import (
    KeyedProducer,
    MultiProcessConsumer,
    Murmur2Partitioner,
    RoundRobinPartitioner,
    SimpleClient,
    SimpleConsumer,
    SimpleProducer,
    create_gzip_message,
    create_message,
)
from kafka.context import OffsetCommitContext
from kafka.errors import OffsetOutOfRangeError
from kafka.structs import (
    FetchRequestPayload,
    OffsetCommitRequestPayload,
    OffsetFetchRequestPayload,
    OffsetRequestPayload,
    ProduceRequestPayload,
)

Program = Callable[[str, str], None]
PATIENCE: Final = 30  # seconds until a program that reads gives up


@contextmanager
def connected(servers: str) -> Iterator[SimpleClient]:
    with SimpleClient(servers, timeout=PATIENCE) as client:
        yield client


@contextmanager
def stopping(stoppable: Any) -> Iterator[Any]:
    try:
        yield stoppable
    finally:
        stoppable.stop()


def everything(servers: str, topic: str) -> set[bytes | None]:
    """Read a topic from its start to its end, without a group."""
    with connected(servers) as client, stopping(SimpleConsumer(client, None, topic, auto_offset_reset="smallest")) as c:
        c.seek(0, 0)
        found = c.get_messages(count=c.pending(), timeout=PATIENCE)
        assert c.pending() == 0
        return {each.message.value for each in found}


def payloads(servers: str, topic: str) -> None:
    """The calls of the client, with str and bytes as names."""
    with connected(servers) as client:
        assert topic in client.topics
        assert client.get_partition_ids_for_topic(topic.encode()) == [0, 1]
        assert client.has_metadata_for_topic(topic)
        messages = [create_message("plain", b"key"), create_gzip_message([(b"one", b"k1"), (b"two", None)])]
        to_both = [ProduceRequestPayload(name, p, messages) for p, name in enumerate((topic, topic.encode()))]
        for acks in (1, -1):
            sent = client.send_produce_request(to_both, acks=acks)
            assert [(r.topic, r.partition, r.error) for r in sent] == [(topic, 0, 0), (topic, 1, 0)]
        assert client.send_produce_request(to_both[:1], acks=0) == []
        assert sent[0].offset == 3
        fetched = client.send_fetch_request(
            [FetchRequestPayload(topic, p, 0, 4096) for p in (0, 1)], max_wait_time=1000
        )
        assert [r.partition for r in fetched] == [0, 1]
        contents = [(m.offset, m.message.key, m.message.value) for m in fetched[1].messages]
        assert contents[:3] == [(0, b"key", b"plain"), (1, b"k1", b"one"), (2, None, b"two")]
        assert fetched[1].highwaterMark == 6
        (end,) = client.send_offset_request([OffsetRequestPayload(topic, 1, -1, 1)])
        (start,) = client.send_offset_request([OffsetRequestPayload(topic, 1, -2, 1)])
        assert (start.offsets, end.offsets) == ([0], [6])
        group = f"{topic}-payloads"
        assert client.send_consumer_metadata_request(group, fail_on_error=False)[0].error in {0, 15}
        client.send_offset_commit_request(group, [OffsetCommitRequestPayload(topic, 0, 2, b"note")])
        (committed,) = client.send_offset_fetch_request(group, [OffsetFetchRequestPayload(topic, 0)])
        assert (committed.offset, committed.error) == (2, 0)
        outside = FetchRequestPayload(topic, 0, 10**6, 4096)
        (refused,) = client.send_fetch_request([outside], fail_on_error=False)
        assert refused.error == OffsetOutOfRangeError.errno
        with closing(client.copy()) as other:
            assert other.send_offset_request([OffsetRequestPayload(topic, 1, -1, 1)]) == [end]
        client.reinit()
        assert client.send_offset_request([OffsetRequestPayload(topic, 1, -1, 1)]) == [end]


def asynchronous_producer(servers: str, topic: str) -> None:
    """A thread sends batches, compressed, until it is stopped."""
    with connected(servers) as client:
        producer = SimpleProducer(client, async_send=True, batch_send_every_n=20, batch_send_every_t=60, codec=1)
        for number in range(50):
            assert producer.send_messages(topic, b"%d" % number) == []
        producer.stop()
    assert everything(servers, topic) == {b"%d" % number for number in range(50)}


def keyed_producer(servers: str, topic: str) -> None:
    """Keys choose partitions, and are read again."""
    with connected(servers) as client:
        keyed = KeyedProducer(client, partitioner=Murmur2Partitioner)
        homes = [keyed.send_messages(topic.encode(), b"key%d" % n, b"%d" % n)[0].partition for n in range(10)]
        assert homes == [Murmur2Partitioner([0, 1]).partition(b"key%d" % n) for n in range(10)]
        in_turn = KeyedProducer(client, partitioner=RoundRobinPartitioner)
        assert {in_turn.send(topic, b"key", b"x")[0].partition for _ in range(2)} == {0, 1}
        with stopping(SimpleConsumer(client, None, topic)) as consumer:
            found = consumer.get_messages(count=12, timeout=PATIENCE)
        assert {(m.message.key, m.message.value) for m in found if m.message.value != b"x"} == {
            (b"key%d" % n, b"%d" % n) for n in range(10)
        }


def consumer_positions(servers: str, topic: str) -> None:
    """Positions move, are committed, and are where the next consumer begins."""
    group = f"{topic}-positions"
    with connected(servers) as client:
        producer = SimpleProducer(client, random_start=False)
        for number in range(10):
            producer.send_messages(topic, b"%d" % number)
        with stopping(SimpleConsumer(client, group, topic, auto_commit=False, iter_timeout=2)) as consumer:
            assert consumer.pending() == 10
            assert {m.message.value for m in consumer} == {b"%d" % n for n in range(10)}
            consumer.seek(-1, 2, partition=0)
            assert consumer.get_message(timeout=PATIENCE).message.value == b"8"
            consumer.seek(0, 0)
            consumer.seek(2, 1)
            assert consumer.offsets == {0: 2, 1: 2}
            consumer.seek(4, partition=1)
            assert consumer.pending([1]) == 1
            assert consumer.get_message(block=False, timeout=0) is None or consumer.offsets
            consumer.seek(3)
            assert consumer.commit()
        with stopping(SimpleConsumer(client, group.encode(), topic.encode(), auto_commit_every_n=1)) as consumer:
            assert consumer.offsets == {0: 3, 1: 3}
            consumer.provide_partition_info()
            rest = consumer.get_messages(count=4, timeout=PATIENCE)
            assert sorted((partition, m.offset) for partition, m in rest) == [(0, 3), (0, 4), (1, 3), (1, 4)]
        with stopping(SimpleConsumer(client, group, topic)) as consumer:
            assert consumer.offsets == {0: 5, 1: 5}
            consumer.seek(1000, partition=0)
            consumer.auto_offset_reset = "smallest"
            assert consumer.get_message(timeout=PATIENCE).message.value == b"0"


def commit_context(servers: str, topic: str) -> None:
    """A block that succeeds is committed, one that raises is read again."""
    with connected(servers) as client:
        SimpleProducer(client, random_start=False).send_messages(topic, b"one", b"two", b"three")
        with stopping(SimpleConsumer(client, f"{topic}-context", topic, auto_commit=False, partitions=[0])) as consumer:
            consumer.provide_partition_info()
            with OffsetCommitContext(consumer) as context:
                ((partition, message),) = consumer.get_messages(count=1, timeout=PATIENCE)
                context.mark(partition, message.offset)
            for _ in range(2):
                try:
                    with OffsetCommitContext(consumer) as context:
                        ((partition, message),) = consumer.get_messages(count=1, timeout=PATIENCE)
                        context.mark(partition, message.offset)
                        raise LookupError
                except LookupError:  # noqa: PERF203 - each attempt fails
                    assert message.message.value == b"two"
            consumer.fetch_last_known_offsets([0])
            assert consumer.offsets == {0: 1}


def several_processes(servers: str, topic: str) -> None:
    """Two processes read a partition each; positions are those of the messages taken."""
    with connected(servers) as client:
        producer = SimpleProducer(client)
        for number in range(20):
            producer.send_messages(topic, b"%d" % number)
        consumer = MultiProcessConsumer(client, f"{topic}-processes", topic, num_procs=2, auto_commit_every_n=5)
        with stopping(consumer):
            assert len(consumer.processes) == 2
            found = consumer.get_messages(count=20, timeout=PATIENCE)
            assert {m.message.value for m in found} == {b"%d" % n for n in range(20)}
            assert consumer.pending() == 0
        consumer.fetch_last_known_offsets()
        assert consumer.offsets == {0: 10, 1: 10}


PROGRAMS: Final[list[Program]] = [
    payloads,
    asynchronous_producer,
    keyed_producer,
    consumer_positions,
    commit_context,
    several_processes,
]
