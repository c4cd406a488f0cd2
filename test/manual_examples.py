"""The examples that the manuals print, each run as printed: ``python -m test.manual_examples SERVERS NAME...``.

All of them are in the manual of kafka-python 1.3.4; the pages on the KafkaClient and ClusterMetadata of 2.x and on the
coordinators of 1.x print none. In the order of the manual, chapter and block -> example here:

* KafkaConsumer: read a topic -> iteration; with a group -> group; assign -> assignment; msgpack -> msgpack
* KafkaProducer: its seven blocks (send, get, flush, key, JSON, string keys, gzip) are one session -> producer_session
* Usage, KafkaConsumer -> consumer_usage. Its last comment, on a regex, has no code in the manual: that is -> pattern
* Usage, KafkaProducer -> producer_usage; the block on retries -> retries
* KafkaConsumer, ``api_version``: four values with what they enable -> releases
* SimpleConsumer with MultiProcessConsumer -> simple_consumer; SimpleProducer, asynchronous -> simple_producer_async,
  synchronous -> simple_producer; KeyedProducer -> keyed_producer; SimpleClient -> simple_client
* The blocks with shell commands (pip, git, tox, the build of Snappy) concern that package and are not run.

test_manual_examples in test/embedded/legacy and test/real/legacy runs them as processes.

Addresses are those of a test; where an example gives none, DEFAULT_CONFIG has them. The statements are executed one by
one, as at a prompt, and a loop without an end is left at its third ``print``, as if by Ctrl-C. What the examples take
from outside is in `outside`: ``msgpack`` is a stand-in that writes JSON. Four things cannot run as printed: ``async=``
is a keyword of Python now; ``except A, B:`` is Python 2; the usage of the producer gives ``b'msg'``, a string of
Python 2, to a serializer that writes JSON; the SimpleProducer's asynchronous block ends in the manual after its client.
"""

from __future__ import annotations

import ast
import gc
import json
import logging
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from types import SimpleNamespace
from typing import Any, Final

from kafka import KafkaConsumer, KafkaProducer, SimpleConsumer, TopicPartition
from kafka.partitioner import murmur2

# The topics of the examples, with their partitions.
TOPICS: Final = {
    "my_favorite_topic": 2,
    "foobar": 3,
    "msgpackfoo": 1,
    "fizzbuzz": 1,
    "flipflap": 2,
    "my-topic": 2,
    "msgpack-topic": 1,
    "json-topic": 1,
    "awesome-topic": 1,
}
ENOUGH: Final = 3  # prints, until a loop without an end is left

Printed = list[tuple[Any, ...]]


@dataclass(frozen=True)
class Run:
    """What a run left behind."""

    names: dict[str, Any]
    printed: Printed
    starts: dict[TopicPartition, int]

    def added(self, topic: str, count: int) -> list[Any]:
        """Return the records of a topic that the run added, in order of the partitions; at least `count`."""
        partitions = [tp for tp in self.starts if tp.topic == topic]
        found: list[Any] = []
        with KafkaConsumer(consumer_timeout_ms=10_000) as consumer:
            consumer.assign(partitions)
            for tp in partitions:
                consumer.seek(tp, self.starts[tp])
            while len(found) < count:
                found.append(next(consumer))
            for records in consumer.poll(500).values():
                found += records
        return sorted(found, key=lambda record: (record.partition, record.offset))

    def values(self, topic: str, count: int) -> list[Any]:
        return [record.value for record in self.added(topic, count)]


@dataclass(frozen=True)
class Example:
    text: str
    check: Callable[[Run], None]
    feed: dict[str, bytes] | None = None
    """Records that another program sends meanwhile: the value for each topic."""


class Enough(BaseException):
    """The reader of the output has seen enough."""


def outside(printed: Printed) -> dict[str, Any]:
    """Return what the examples take from elsewhere."""

    def note(*values: Any) -> None:
        printed.append(values)
        if len(printed) % ENOUGH == 0:
            raise Enough

    def is_instance(value: Any, cls: Any) -> bool:
        if len(printed) == ENOUGH:
            raise Enough
        printed.append((value,))
        return isinstance(value, cls)

    msgpack = SimpleNamespace(dumps=lambda value: json.dumps(value).encode(), loads=json.loads, unpackb=json.loads)
    return {
        "print": note,
        "isinstance": is_instance,
        "json": json,
        "logging": logging,
        "log": logging.getLogger("example"),
        "msgpack": msgpack,
        "SimpleConsumer": SimpleConsumer,  # the example's import has SimpleProducer in its place
        "__name__": "example",
    }


def execute(example: Example, servers: str) -> Run:
    """Run an example, statement by statement."""
    text = re.sub(r"^(>>>|\.\.\.) ?", "", example.text, flags=re.MULTILINE)
    text = re.sub(r"(localhost|broker1):(9092|1234)", servers.partition(",")[0], text)
    with KafkaConsumer() as consumer:
        starts = consumer.end_offsets([TopicPartition(topic, p) for topic, n in TOPICS.items() for p in range(n)])
    printed: Printed = []
    names = outside(printed)
    with feeding(example.feed or {}):
        for statement in ast.parse(text).body:
            with suppress(Enough):
                exec(compile(ast.Module([statement], []), "example of the manual", "exec"), names)
    return Run(names, printed, starts)


@contextmanager
def feeding(feed: dict[str, bytes]) -> Iterator[None]:
    """Send a record to the partitions of these topics in turn, ten times a second, from another thread."""
    ended = threading.Event()
    turns = count()

    def send() -> None:
        with KafkaProducer() as producer:
            while not ended.wait(0.1):
                turn = next(turns)
                for topic, value in feed.items():
                    producer.send(topic, value, partition=turn % TOPICS[topic])

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


# KafkaConsumer

ITERATION: Final = """
>>> from kafka import KafkaConsumer
>>> consumer = KafkaConsumer('my_favorite_topic')
>>> for msg in consumer:
...     print (msg)
"""

GROUP: Final = """
>>> # join a consumer group for dynamic partition assignment and offset commits
>>> from kafka import KafkaConsumer
>>> consumer = KafkaConsumer('my_favorite_topic', group_id='my_favorite_group')
>>> for msg in consumer:
...     print (msg)
"""

ASSIGNMENT: Final = """
>>> # manually assign the partition list for the consumer
>>> from kafka import TopicPartition
>>> consumer = KafkaConsumer(bootstrap_servers='localhost:1234')
>>> consumer.assign([TopicPartition('foobar', 2)])
>>> msg = next(consumer)
"""

MSGPACK: Final = """
>>> # Deserialize msgpack-encoded values
>>> consumer = KafkaConsumer(value_deserializer=msgpack.loads)
>>> consumer.subscribe(['msgpackfoo'])
>>> for msg in consumer:
...     assert isinstance(msg.value, dict)
"""


def printed_records(run: Run) -> None:
    assert len(run.printed) == ENOUGH
    for (record,) in run.printed:
        topic, partition, offset, *_ = record  # a namedtuple
        assert (record.topic, record.partition, record.offset) == (topic, partition, offset)
        assert (record.topic, record.key, record.value) == ("my_favorite_topic", None, b"news")
        assert record.offset >= run.starts[TopicPartition(record.topic, record.partition)]


def printed_in_a_group(run: Run) -> None:
    printed_records(run)
    consumer = run.names["consumer"]
    assert consumer.assignment() == {TopicPartition("my_favorite_topic", 0), TopicPartition("my_favorite_topic", 1)}
    consumer.close()
    with KafkaConsumer(group_id="my_favorite_group") as reader:
        for (record,) in run.printed:
            assert (reader.committed(TopicPartition(record.topic, record.partition)) or 0) > record.offset


def one_record(run: Run) -> None:
    record = run.names["msg"]
    assert (record.topic, record.partition, record.value) == ("foobar", 2, b"news")


def dictionaries(run: Run) -> None:
    assert run.printed == [({"is": "news"},)] * ENOUGH


# KafkaProducer

PRODUCER_SESSION: Final = """
>>> from kafka import KafkaProducer
>>> producer = KafkaProducer(bootstrap_servers='localhost:1234')
>>> for _ in range(100):
...     producer.send('foobar', b'some_message_bytes')

>>> # Block until a single message is sent (or timeout)
>>> future = producer.send('foobar', b'another_message')
>>> result = future.get(timeout=60)

>>> # Block until all pending messages are at least put on the network
>>> # NOTE: This does not guarantee delivery or success! It is really
>>> # only useful if you configure internal batching using linger_ms
>>> producer.flush()

>>> # Use a key for hashed-partitioning
>>> producer.send('foobar', key=b'foo', value=b'bar')

>>> # Serialize json messages
>>> import json
>>> producer = KafkaProducer(value_serializer=lambda v: json.dumps(v).encode('utf-8'))
>>> producer.send('fizzbuzz', {'foo': 'bar'})

>>> # Serialize string keys
>>> producer = KafkaProducer(key_serializer=str.encode)
>>> producer.send('flipflap', key='ping', value=b'1234')

>>> # Compress messages
>>> producer = KafkaProducer(compression_type='gzip')
>>> for i in range(1000):
...     producer.send('foobar', b'msg %d' % i)
"""


def home(key: bytes, partitions: int) -> int:
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def everything_sent(run: Run) -> None:
    run.names["producer"].flush()
    records = run.added("foobar", 1102)
    assert sorted(record.value for record in records) == sorted(
        [b"some_message_bytes"] * 100 + [b"another_message", b"bar"] + [b"msg %d" % i for i in range(1000)]
    )
    (keyed,) = [record for record in records if record.key]
    assert (keyed.key, keyed.value, keyed.partition) == (b"foo", b"bar", home(b"foo", 3))
    result = run.names["result"]
    assert [r.value for r in records if (r.partition, r.offset) == (result.partition, result.offset)] == [
        b"another_message"
    ]
    assert run.values("fizzbuzz", 1) == [b'{"foo": "bar"}']
    (ping,) = run.added("flipflap", 1)
    assert (ping.key, ping.value, ping.partition) == (b"ping", b"1234", home(b"ping", 2))


# Usage

CONSUMER_USAGE: Final = """
from kafka import KafkaConsumer

# To consume latest messages and auto-commit offsets
consumer = KafkaConsumer('my-topic',
                         group_id='my-group',
                         bootstrap_servers=['localhost:9092'])
for message in consumer:
    # message value and key are raw bytes -- decode if necessary!
    # e.g., for unicode: `message.value.decode('utf-8')`
    print ("%s:%d:%d: key=%s value=%s" % (message.topic, message.partition,
                                          message.offset, message.key,
                                          message.value))

# consume earliest available messages, don't commit offsets
KafkaConsumer(auto_offset_reset='earliest', enable_auto_commit=False)

# consume json messages
KafkaConsumer(value_deserializer=lambda m: json.loads(m.decode('ascii')))

# consume msgpack
KafkaConsumer(value_deserializer=msgpack.unpackb)

# StopIteration if no message after 1sec
KafkaConsumer(consumer_timeout_ms=1000)
"""

PATTERN: Final = """
# Subscribe to a regex topic pattern
consumer = KafkaConsumer()
consumer.subscribe(pattern='^awesome.*')
for message in consumer:
    print (message)
"""

PRODUCER_USAGE: Final = """
from kafka import KafkaProducer
from kafka.errors import KafkaError

producer = KafkaProducer(bootstrap_servers=['broker1:1234'])

# Asynchronous by default
future = producer.send('my-topic', b'raw_bytes')

# Block for 'synchronous' sends
try:
    record_metadata = future.get(timeout=10)
except KafkaError:
    # Decide what to do if produce request failed...
    log.exception()
    pass

# Successful result returns assigned partition and offset
print (record_metadata.topic)
print (record_metadata.partition)
print (record_metadata.offset)

# produce keyed messages to enable hashed partitioning
producer.send('my-topic', key=b'foo', value=b'bar')

# encode objects via msgpack
producer = KafkaProducer(value_serializer=msgpack.dumps)
producer.send('msgpack-topic', {'key': 'value'})

# produce json messages
producer = KafkaProducer(value_serializer=lambda m: json.dumps(m).encode('ascii'))
producer.send('json-topic', {'key': 'value'})

# produce asynchronously
for _ in range(100):
    producer.send('my-topic', 'msg')

# block until all async messages are sent
producer.flush()
"""

RETRIES: Final = """
# configure multiple retries
producer = KafkaProducer(retries=5)
"""

RELEASES: Final = """
manual = KafkaConsumer(api_version=(0, 8, 0))
stored = KafkaConsumer(group_id='my-stored-group', api_version=(0, 8, 2))
there = KafkaConsumer(group_id='my-stored-group', api_version=(0, 8, 1))
member = KafkaConsumer('my-topic', group_id='my-coordinated-group', api_version=(0, 9))
"""


def printed_lines(run: Run) -> None:
    for (line,) in run.printed:
        assert re.fullmatch(r"my-topic:[01]:\d+: key=None value=b'news'", line), line
    read = {int(line.split(":")[1]): int(line.split(":")[2]) for (line,) in run.printed}
    run.names["consumer"].close()
    with KafkaConsumer(group_id="my-group") as reader:
        for partition, offset in read.items():
            assert (reader.committed(TopicPartition("my-topic", partition)) or 0) > offset
    consumer = KafkaConsumer("json-topic", consumer_timeout_ms=1000)
    try:
        next(consumer)
    except StopIteration:
        consumer.close()
    else:
        raise AssertionError("a record where none was sent")


def printed_matches(run: Run) -> None:
    assert [record.topic for (record,) in run.printed] == ["awesome-topic"] * ENOUGH
    assert run.names["consumer"].subscription() == {"awesome-topic"}


def usage_sent(run: Run) -> None:
    (topic,), (partition,), (offset,) = run.printed
    assert topic == "my-topic"
    records = run.added("my-topic", 102)
    assert [r.value for r in records if (r.partition, r.offset) == (partition, offset)] == [b"raw_bytes"]
    assert [(r.value, r.partition) for r in records if r.key == b"foo"] == [(b"bar", home(b"foo", 2))]
    assert [r.value for r in records].count(b'"msg"') == 100
    assert run.values("msgpack-topic", 1) == run.values("json-topic", 1) == [b'{"key": "value"}']


def five_retries(run: Run) -> None:
    producer = run.names["producer"]
    assert producer.config["retries"] == 5
    assert producer.send("fizzbuzz", b"x").get(timeout=30).topic == "fizzbuzz"


def each_release(run: Run) -> None:
    tp = TopicPartition("my-topic", 0)
    for name in ("manual", "stored", "there"):
        run.names[name].assign([tp])
    for name in ("manual", "stored"):
        assert run.names[name].position(tp) >= run.starts[tp]
    stored = run.names["stored"]
    stored.commit()
    assert stored.committed(tp) == stored.position(tp)
    assert run.names["there"].committed(tp) is None  # in ZooKeeper, not in Kafka
    member = run.names["member"]
    while not member.assignment():
        member.poll(100)
    assert member.assignment() == {tp, TopicPartition("my-topic", 1)}


# Simple APIs

SIMPLE_CONSUMER: Final = """
from kafka import SimpleProducer, SimpleClient

# To consume messages
client = SimpleClient('localhost:9092')
consumer = SimpleConsumer(client, "my-group", "my-topic")
for message in consumer:
    # message is raw byte string -- decode if necessary!
    # e.g., for unicode: `message.decode('utf-8')`
    print (message)

# Use multiprocessing for parallel consumers
from kafka import MultiProcessConsumer

# This will split the number of partitions among two processes
consumer = MultiProcessConsumer(client, "my-group", "my-topic", num_procs=2)

# This will spawn processes such that each handles 2 partitions max
consumer = MultiProcessConsumer(client, "my-group", "my-topic",
                                partitions_per_proc=2)

for message in consumer:
    print (message)

for message in consumer.get_messages(count=5, block=True, timeout=4):
    print (message)

client.close()
"""

SIMPLE_PRODUCER_ASYNC: Final = """
from kafka import SimpleProducer, SimpleClient

# To send messages asynchronously
client = SimpleClient('localhost:9092')
producer = SimpleProducer(client, async_=True)
producer.send_messages('my-topic', b'async message')
"""

SIMPLE_PRODUCER: Final = """
from kafka import SimpleProducer, SimpleClient

# To send messages synchronously
client = SimpleClient('localhost:9092')
producer = SimpleProducer(client, async_=False)

# Note that the application is responsible for encoding messages to type bytes
producer.send_messages('my-topic', b'some message')
producer.send_messages('my-topic', b'this method', b'is variadic')

# Send unicode message
producer.send_messages('my-topic', u'?'.encode('utf-8'))

# To wait for acknowledgements
# ACK_AFTER_LOCAL_WRITE : server will wait till the data is written to
#                         a local log before sending response
# ACK_AFTER_CLUSTER_COMMIT : server will block until the message is committed
#                            by all in sync replicas before sending a response
producer = SimpleProducer(client,
                          async_=False,
                          req_acks=SimpleProducer.ACK_AFTER_LOCAL_WRITE,
                          ack_timeout=2000,
                          sync_fail_on_error=False)

responses = producer.send_messages('my-topic', b'another message')
for r in responses:
    logging.info(r.offset)
"""

KEYED_PRODUCER: Final = """
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

SIMPLE_CLIENT: Final = """
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

    # Other exceptions you might consider handling:
    # UnknownTopicOrPartitionError, TopicAuthorizationFailedError,
    # RequestTimedOutError, MessageSizeTooLargeError, InvalidTopicError,
    # RecordListTooLargeError, InvalidRequiredAcksError,
    # NotEnoughReplicasError, NotEnoughReplicasAfterAppendError

kafka.close()

resps[0].topic      # 'my-topic'
resps[0].partition  # 0
resps[0].error      # 0
resps[0].offset     # offset of the first message sent in this request
"""


def printed_messages(run: Run) -> None:
    assert len(run.printed) == 2 * ENOUGH + min(ENOUGH, 5)
    for (message,) in run.printed:
        assert isinstance(message.message.value, bytes)
    run.names["consumer"].stop()


def sent_in_the_background(run: Run) -> None:
    run.names["producer"].stop()
    assert run.values("my-topic", 1) == [b"async message"]
    run.names["client"].close()


def sent_one_by_one(run: Run) -> None:
    assert sorted(run.values("my-topic", 5)) == [
        b"?",
        b"another message",
        b"is variadic",
        b"some message",
        b"this method",
    ]
    (response,) = run.names["responses"]
    assert (response.topic, response.error) == ("my-topic", 0)
    run.names["client"].close()


def sent_by_key(run: Run) -> None:
    found = {(record.key, record.value) for record in run.added("my-topic", 2)}
    assert found == {(b"key1", b"some message"), (b"key2", b"this methode")}
    run.names["kafka"].close()


def sent_by_payload(run: Run) -> None:
    (answer,) = run.names["resps"]
    start = run.starts[TopicPartition("my-topic", 0)]
    assert (answer.topic, answer.partition, answer.error, answer.offset) == ("my-topic", 0, 0, start)
    assert run.values("my-topic", 1) == [b"some message"]


NEWS: Final = b"news"
EXAMPLES: Final = {
    "iteration": Example(ITERATION, printed_records, {"my_favorite_topic": NEWS}),
    "group": Example(GROUP, printed_in_a_group, {"my_favorite_topic": NEWS}),
    "assignment": Example("from kafka import KafkaConsumer\n" + ASSIGNMENT, one_record, {"foobar": NEWS}),
    "msgpack": Example("from kafka import KafkaConsumer\n" + MSGPACK, dictionaries, {"msgpackfoo": b'{"is": "news"}'}),
    "producer_session": Example(PRODUCER_SESSION, everything_sent),
    "consumer_usage": Example(CONSUMER_USAGE, printed_lines, {"my-topic": NEWS}),
    "pattern": Example("from kafka import KafkaConsumer\n" + PATTERN, printed_matches, {"awesome-topic": NEWS}),
    "producer_usage": Example(PRODUCER_USAGE, usage_sent),
    "retries": Example("from kafka import KafkaProducer\n" + RETRIES, five_retries),
    "releases": Example("from kafka import KafkaConsumer\n" + RELEASES, each_release),
}
SIMPLE_EXAMPLES: Final = {
    "simple_consumer": Example(SIMPLE_CONSUMER, printed_messages, {"my-topic": NEWS}),
    "simple_producer_async": Example(SIMPLE_PRODUCER_ASYNC, sent_in_the_background),
    "simple_producer": Example(SIMPLE_PRODUCER, sent_one_by_one),
    "keyed_producer": Example(KEYED_PRODUCER, sent_by_key),
    "simple_client": Example(SIMPLE_CLIENT, sent_by_payload),
}

_IN_GROUPS: Final = {"group", "consumer_usage", "releases"}


def runs_on(name: str, release: str) -> bool:
    """Whether a release has what an example needs: groups, or the requests of old releases."""
    number = tuple(int(part) for part in release.split("."))
    return name not in _IN_GROUPS or (number >= (0, 9) and not (name == "releases" and number >= (4,)))


def main(servers: str, *names: str) -> None:
    """Run examples, with the addresses that they do not give; each one's clients are gone before the next begins."""
    for cls in (KafkaConsumer, KafkaProducer):
        cls.DEFAULT_CONFIG["bootstrap_servers"] = servers
    for name in names:
        example = {**EXAMPLES, **SIMPLE_EXAMPLES}[name]
        example.check(execute(example, servers))
        gc.collect()
        print(name, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
