"""Programs of the Simple* era, for a cluster with a topic of two partitions that is empty; both tiers run them.

Each takes the bootstrap servers and the name of the topic. Those with PRINTED in their name are the examples that the
manual of kafka-python 1.3.4 prints, with these addresses, and with ``async_`` for the word that Python has taken.
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

PRINTED_CLIENT: Final = """
import time
from kafka import SimpleClient
from kafka.errors import LeaderNotAvailableError, NotLeaderForPartitionError
from kafka.protocol import create_message
from kafka.structs import ProduceRequestPayload

kafka = SimpleClient('localhost:9092')
payload = ProduceRequestPayload(topic='my-topic', partition=0,
                                messages=[create_message("some message")])

retries = 5
resps = []
while retries and not resps:
    retries -= 1
    try:
        resps = kafka.send_produce_request(
            payloads=[payload], fail_on_error=True)
    except (LeaderNotAvailableError, NotLeaderForPartitionError):
        kafka.load_metadata_for_topics()
        time.sleep(1)

kafka.close()

resps[0].topic      # 'my-topic'
resps[0].partition  # 0
resps[0].error      # 0
resps[0].offset     # offset of the first message sent in this request
"""

PRINTED_PRODUCER: Final = """
from kafka import SimpleProducer, SimpleClient

# To send messages asynchronously
client = SimpleClient('localhost:9092')
producer = SimpleProducer(client, async_=True)
producer.send_messages('my-topic', b'async message')
producer.stop()

# To send messages synchronously
client = SimpleClient('localhost:9092')
producer = SimpleProducer(client, async_=False)

# Note that the application is responsible for encoding messages to type bytes
producer.send_messages('my-topic', b'some message')
producer.send_messages('my-topic', b'this method', b'is variadic')

# Send unicode message
producer.send_messages('my-topic', u'?'.encode('utf-8'))

producer = SimpleProducer(client,
                          async_=False,
                          req_acks=SimpleProducer.ACK_AFTER_LOCAL_WRITE,
                          ack_timeout=2000,
                          sync_fail_on_error=False)

responses = producer.send_messages('my-topic', b'another message')
for r in responses:
    logging.info(r.offset)
"""

PRINTED_KEYED: Final = """
from kafka import (
    SimpleClient, KeyedProducer,
    Murmur2Partitioner, RoundRobinPartitioner)

kafka = SimpleClient('localhost:9092')

# HashedPartitioner is default (currently uses python hash())
producer = KeyedProducer(kafka)
producer.send_messages(b'my-topic', b'key1', b'some message')
producer.send_messages(b'my-topic', b'key2', b'this methode')

# Murmur2Partitioner attempts to mirror the java client hashing
producer = KeyedProducer(kafka, partitioner=Murmur2Partitioner)

# Or just produce round-robin (or just use SimpleProducer)
producer = KeyedProducer(kafka, partitioner=RoundRobinPartitioner)
"""

PRINTED_CONSUMER: Final = """
from kafka import SimpleProducer, SimpleClient, SimpleConsumer

# To consume messages
client = SimpleClient('localhost:9092')
consumer = SimpleConsumer(client, "my-group", "my-topic")
for message in consumer:
    # message is raw byte string -- decode if necessary!
    # e.g., for unicode: `message.decode('utf-8')`
    print(message)
    break  # the example is printed without an end

# Use multiprocessing for parallel consumers
from kafka import MultiProcessConsumer

# This will split the number of partitions among two processes
consumer = MultiProcessConsumer(client, "my-group", "my-topic", num_procs=2)
consumer.stop()

# This will spawn processes such that each handles 2 partitions max
consumer = MultiProcessConsumer(client, "my-group", "my-topic",
                                partitions_per_proc=2)

for message in consumer:
    print(message)
    break

for message in consumer.get_messages(count=5, block=True, timeout=4):
    print(message)

consumer.stop()
client.close()
"""


def run_printed(example: str, servers: str, topic: str) -> dict[str, Any]:
    """Run an example of the manual, with the addresses and the names of a test; return its variables."""
    import logging

    text = example.replace("localhost:9092", servers).replace("my-topic", topic).replace("my-group", f"{topic}-group")
    names: dict[str, Any] = {"logging": logging, "__name__": "example"}
    exec(compile(text, "example of the manual", "exec"), names)
    return names


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


def printed_examples(servers: str, topic: str) -> None:
    """The manual's examples, one after the other."""
    answered = run_printed(PRINTED_CLIENT, servers, topic)["resps"][0]
    assert (answered.topic, answered.partition, answered.error, answered.offset) == (topic, 0, 0, 0)
    produced = run_printed(PRINTED_PRODUCER, servers, topic)
    assert [response.error for response in produced["responses"]] == [0]
    keyed = run_printed(PRINTED_KEYED, servers, topic)
    consumed = run_printed(PRINTED_CONSUMER, servers, topic)
    assert isinstance(consumed["message"].message.value, bytes)
    assert everything(servers, topic) >= {
        b"some message", b"async message", b"this method", b"is variadic", b"?", b"another message", b"this methode",
    }  # fmt: skip
    for names in (answered and produced, keyed):
        for value in names.values():
            if isinstance(value, SimpleClient):
                value.close()


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
    printed_examples,
    payloads,
    asynchronous_producer,
    keyed_producer,
    consumer_positions,
    commit_context,
    several_processes,
]
