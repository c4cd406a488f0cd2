"""Transactions against Apache Kafka: version two on the newest release, classic on those before it."""

from __future__ import annotations

import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.admin import TransactionState
from kafka.errors import (
    AbortableTransactionError,
    KafkaError,
    ProducerFencedError,
    TransactionAbortedError,
    UnsupportedVersionError,
)
from kafka.structs import ConsumerGroupMetadata, TopicPartition
from test.real.broker.peer_venvs import python_of
from test.real.kafka_process import KafkaCluster
from test.real.producer.load import until

FACES = "both"

WAIT = 60
Make = Callable[..., KafkaProducer]


@pytest.fixture
def make() -> Iterator[Make]:
    made: list[KafkaProducer] = []

    def make(cluster: KafkaCluster, name: str, **configs: Any) -> KafkaProducer:
        configs.setdefault("max_block_ms", WAIT * 1000)
        producer = KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, transactional_id=name, **configs)
        made.append(producer)
        return producer

    yield make
    for producer in made:
        producer.close(timeout=5)


def unique(what: str) -> str:
    return f"{what}-{uuid.uuid4().hex[:8]}"


def read(cluster: KafkaCluster, topic: str, isolation: str = "read_committed") -> list[bytes]:
    """Everything up to the end that readers of this kind see."""
    where = TopicPartition(topic, 0)
    with KafkaConsumer(
        bootstrap_servers=cluster.bootstrap_servers, isolation_level=isolation, auto_offset_reset="earliest"
    ) as reader:
        reader.assign([where])
        found: list[bytes] = []
        deadline = time.monotonic() + WAIT
        end = reader.end_offsets([where])[where]
        while reader.position(where) < end:
            assert time.monotonic() < deadline, f"{reader.position(where)} of {end}"
            found += [record.value for records in reader.poll(500).values() for record in records]
    return found


def settled(cluster: KafkaCluster, topic: str) -> bool:
    """Whether no transaction is open on the topic."""
    where = TopicPartition(topic, 0)
    ends = []
    for isolation in ("read_committed", "read_uncommitted"):
        with KafkaConsumer(bootstrap_servers=cluster.bootstrap_servers, isolation_level=isolation) as reader:
            ends.append(reader.end_offsets([where])[where])
    return ends[0] == ends[1]


def committed_offset(cluster: KafkaCluster, group: str, topic: str) -> int | None:
    with KafkaConsumer(bootstrap_servers=cluster.bootstrap_servers, group_id=group) as reader:
        return reader.committed(TopicPartition(topic, 0))


def commit_and_abort(cluster: KafkaCluster, make: Make) -> None:
    topic = cluster.create_topic(unique("both"))
    producer = make(cluster, topic, linger_ms=10_000)  # so that nothing is sent before flush() or the commit
    producer.init_transactions()
    for number in range(6):
        producer.begin_transaction()
        future = producer.send(topic, b"%d" % number)
        producer.send_offsets_to_transaction({TopicPartition(topic, 0): number}, topic)
        if number % 3 == 2:
            producer.flush()
            unsent = producer.send(topic, b"never sent")
            producer.abort_transaction()
            assert isinstance(unsent.exception, TransactionAbortedError)
        else:
            producer.commit_transaction()
            assert future.succeeded()
    until(lambda: settled(cluster, topic), "end of all transactions")
    assert read(cluster, topic) == [b"0", b"1", b"3", b"4"]
    assert read(cluster, topic, "read_uncommitted") == [b"%d" % number for number in range(6)]
    until(lambda: committed_offset(cluster, topic, topic) == 4, "committed offset")


def fencing(cluster: KafkaCluster, make: Make) -> None:
    topic = cluster.create_topic(unique("fenced"))
    first = make(cluster, topic)
    first.init_transactions()
    first.begin_transaction()
    first.send(topic, b"of the first").get(WAIT)
    second = make(cluster, topic)
    second.init_transactions()
    with pytest.raises(ProducerFencedError):
        first.commit_transaction()
    with second.transaction():
        second.send(topic, b"of the second")
    until(lambda: settled(cluster, topic), "end of all transactions")
    assert read(cluster, topic) == [b"of the second"]


def crash_between_produce_and_commit(cluster: KafkaCluster, make: Make) -> None:
    topic = cluster.create_topic(unique("crashed"))
    program = (
        "import os, sys\n"
        "from kafka import KafkaProducer\n"
        "producer = KafkaProducer(bootstrap_servers=sys.argv[1], transactional_id=sys.argv[2], max_block_ms=60000)\n"
        "producer.init_transactions()\n"
        "producer.begin_transaction()\n"
        "producer.send(sys.argv[2], b'lost').get(60)\n"
        "producer.send_offsets_to_transaction({(sys.argv[2], 0): 99}, sys.argv[2])\n"
        "os._exit(9)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program, cluster.bootstrap_servers, topic], timeout=WAIT, check=False)
    assert ended.returncode == 9
    successor = make(cluster, topic)
    successor.init_transactions()
    until(lambda: settled(cluster, topic), "end of the lost transaction")
    assert committed_offset(cluster, topic, topic) is None
    with successor.transaction():
        successor.send(topic, b"once")
    until(lambda: settled(cluster, topic), "end of all transactions")
    assert read(cluster, topic) == [b"once"]


def took_too_long(cluster: KafkaCluster, make: Make) -> None:
    topic = cluster.create_topic(unique("late"))
    producer = make(cluster, topic, transaction_timeout_ms=1000)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(topic, b"late").get(WAIT)
    until(lambda: settled(cluster, topic), "end of the transaction by timeout")
    if cluster.release.number < (2, 5):
        # Such a broker gives no other epoch to who tells the one it has, so a timeout is as a fence.
        with pytest.raises(ProducerFencedError):
            producer.commit_transaction()
        return
    with pytest.raises(AbortableTransactionError, match="transaction_timeout_ms"):
        producer.commit_transaction()
    producer.abort_transaction()
    with producer.transaction():
        producer.send(topic, b"in time")
    until(lambda: settled(cluster, topic), "end of all transactions")
    assert read(cluster, topic) == [b"in time"]


def group_membership(cluster: KafkaCluster, make: Make) -> None:
    topic = cluster.create_topic(unique("member"))
    producer = make(cluster, topic)
    producer.init_transactions()
    producer.begin_transaction()
    # Before 2.5 the broker cannot tell who the consumer is.
    wanted = AbortableTransactionError if cluster.release.number >= (2, 5) else UnsupportedVersionError
    with pytest.raises(wanted):
        producer.send_offsets_to_transaction({TopicPartition(topic, 0): 1}, ConsumerGroupMetadata(topic, 3, "nobody"))
    producer.abort_transaction()
    with producer.transaction():
        producer.send(topic, b"x")
    until(lambda: settled(cluster, topic), "end of all transactions")
    assert read(cluster, topic) == [b"x"]


def test_commit_and_abort(kafka, make):
    commit_and_abort(kafka, make)


def test_fencing_by_a_second_instance(kafka, make):
    fencing(kafka, make)


def test_crash_between_produce_and_commit(kafka, make):
    crash_between_produce_and_commit(kafka, make)


def test_the_newest_release_runs_version_two(kafka, make):
    topic = kafka.create_topic(unique("v2"))
    producer = make(kafka, topic)
    producer.init_transactions()
    epochs = []
    for _ in range(3):
        with producer.transaction():
            producer.send(topic, b"x")
        epochs.append(producer.health()["transaction"]["epoch"])
    assert epochs == [1, 2, 3]


@pytest.mark.one_face  # each connection of asyncio asks its broker, as aiokafka's
def test_classic_transactions_on_the_newest_release(kafka, make):
    """A stated release is taken at its word: it has no features, so partitions are added first."""
    topic = kafka.create_topic(unique("classic"))
    producer = make(kafka, topic, api_version=(3, 9))
    producer.init_transactions()
    for number in range(3):
        with producer.transaction():
            producer.send(topic, b"%d" % number)
            producer.send_offsets_to_transaction({TopicPartition(topic, 0): number}, topic)
    assert producer.health()["transaction"]["epoch"] < 3
    until(lambda: settled(kafka, topic), "end of all transactions")
    assert read(kafka, topic) == [b"0", b"1", b"2"]


def test_a_transaction_that_took_too_long(kafka, make):
    took_too_long(kafka, make)


def test_a_consumer_that_its_group_does_not_know(kafka, make):
    group_membership(kafka, make)


@pytest.mark.one_face  # an asyncio member gives partitions up in the background
@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_member_that_the_group_has_removed_cannot_commit_what_others_have_processed(kafka, make, protocol):
    """It was stuck for longer than max_poll_interval_ms, and has not heard of its removal in poll()."""
    topic, group = kafka.create_topic(unique("removed")), unique("copiers")
    where = TopicPartition(topic, 0)
    options = {"session_timeout_ms": 6000} if protocol == "classic" else {}
    producer = make(kafka, unique("copier"))
    producer.init_transactions()
    with producer.transaction():
        producer.send(topic, b"x")
    reading = {
        "bootstrap_servers": kafka.bootstrap_servers,
        "group_id": group,
        "group_protocol": protocol,
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        **options,
    }
    with KafkaConsumer(topic, **reading, max_poll_interval_ms=6500) as stuck, KafkaConsumer(topic, **reading) as other:
        until(lambda: stuck.poll(100), "the record")
        member = stuck.group_metadata()
        assert member.generation_id >= 0
        until(lambda: stuck.health()["group"]["generation"] < 0, "removal from the group")
        until(lambda: other.poll(100), "the record once more")
        with producer.transaction():
            producer.send_offsets_to_transaction({where: 1}, other.group_metadata())
        with pytest.raises(AbortableTransactionError), producer.transaction():
            producer.send_offsets_to_transaction({where: 0}, stuck.group_metadata())
        assert other.committed(where) == 1


def test_kafka_s_own_tool_shows_our_transaction(kafka, make, java_tools):
    topic = kafka.create_topic(unique("shown"))
    producer = make(kafka, topic, transaction_timeout_ms=45_000)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(topic, b"x").get(WAIT)
    command = "org.apache.kafka.tools.TransactionsCommand"
    servers = ["--bootstrap-server", kafka.bootstrap_servers]
    shown = java_tools.run(command, *servers, "describe", "--transactional-id", topic).out
    assert "Ongoing" in shown, shown
    assert "45000" in shown, shown
    assert f"{topic}-0" in shown, shown
    producer.commit_transaction()
    with KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers) as admin:
        # The commit was prepared when the call returned; it is completed a little later.
        done = TransactionState.COMPLETE_COMMIT
        until(lambda: admin.describe_transactions([topic])[topic].state == done, "completion")
    shown = java_tools.run(command, *servers, "describe", "--transactional-id", topic).out
    assert "CompleteCommit" in shown, shown


@pytest.mark.matrix
def test_every_release(kafka_matrix, make):
    if kafka_matrix.release.number < (0, 11):
        with pytest.raises(UnsupportedVersionError, match=r"transactional_id.* need brokers of Kafka 0\.11"):
            make(kafka_matrix, "too-early")
        return
    commit_and_abort(kafka_matrix, make)
    fencing(kafka_matrix, make)
    crash_between_produce_and_commit(kafka_matrix, make)
    group_membership(kafka_matrix, make)
    took_too_long(kafka_matrix, make)


# With confluent-kafka under the same transactional id

PEER = """
import sys
from confluent_kafka import KafkaException, Producer
servers, name = sys.argv[1:]
producer = Producer({"bootstrap.servers": servers, "transactional.id": name})
producer.init_transactions(60)
producer.begin_transaction()
producer.produce(name, b"of the peer")
producer.flush(60)
print("open", flush=True)
if sys.stdin.readline().strip() == "commit":
    try:
        producer.commit_transaction(60)
        print("committed", flush=True)
    except KafkaException as error:
        print("fenced" if error.args[0].fatal() else f"failed: {error}", flush=True)
"""


def test_we_and_confluent_kafka_lock_each_other_out(kafka, make):
    topic = kafka.create_topic(unique("peer"))
    peer = subprocess.Popen(
        [str(python_of("confluent-kafka")), "-c", PEER, kafka.bootstrap_servers, topic],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert peer.stdin is not None
        assert peer.stdout is not None
        assert peer.stdout.readline() == "open\n"
        ours = make(kafka, topic)
        ours.init_transactions()
        with ours.transaction():
            ours.send(topic, b"ours")
        print("commit", file=peer.stdin, flush=True)
        assert peer.stdout.readline() == "fenced\n"
    finally:
        peer.kill()
        peer.communicate()
    ours.begin_transaction()
    ours.send(topic, b"ours, fenced").get(WAIT)
    ended = subprocess.run(
        [str(python_of("confluent-kafka")), "-c", PEER, kafka.bootstrap_servers, topic],
        input="commit\n",
        capture_output=True,
        text=True,
        timeout=WAIT,
        check=False,
    )
    assert ended.stdout.split() == ["open", "committed"], ended.stderr
    with pytest.raises(KafkaError) as raised:
        ours.commit_transaction()
    assert isinstance(raised.value, ProducerFencedError)
    until(lambda: settled(kafka, topic), "end of all transactions")
    assert read(kafka, topic) == [b"ours", b"of the peer"]
