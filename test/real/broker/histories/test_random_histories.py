"""A few random histories of each kind: the embedded broker answers as Apache Kafka does, step by step.

``python -m test.real.broker.histories KIND 0-999`` lives through many, and makes one that differs shorter.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic

from .kinds import KINDS, both
from .lockstep import Address, live, shortened

#: How many histories of a kind take a few seconds.
FEW = {
    "records": 10,
    "transactions": 10,
    "consumer-groups": 8,
    "classic-groups": 3,
    "share-groups": 5,
    "rights": 3,
    "topics": 5,
    "cleaning": 2,
}


DAY_MS = 86_400_000
TOPIC = {"cleanup.policy": "compact", "segment.ms": "1000", "min.cleanable.dirty.ratio": "0.01"}
Brokers = tuple[Address, Address]


@pytest.fixture(scope="module")
def brokers() -> Iterator[Brokers]:
    """Kafka and the embedded broker."""
    with ExitStack() as stack:
        yield both(stack, with_acls=False)


@pytest.fixture(scope="module")
def guarded() -> Iterator[Brokers]:
    """The same with ACLs; histories of rights ask for everything that is there."""
    with ExitStack() as stack:
        yield both(stack, with_acls=True)


def live_through(both_pairs: tuple[Brokers, Brokers], name: str, seeds: range) -> None:
    kind, differing = KINDS[name], []
    real, ours = both_pairs[name == "rights"]
    for seed in seeds:
        outcome = live(kind, kind.steps(random.Random(f"{name}/{seed}"), kind.length), real, ours)
        if outcome.differences:
            differing.append(f"{name} {seed}\n{shortened(kind, outcome, real, ours)}")
    assert not differing, "\n\n".join(differing)


def many(name: str) -> range:
    first = int(os.environ.get("PUREKAFKA_SEED", "1000"))
    return range(first, first + 20 * FEW[name])


@pytest.mark.parametrize("name", KINDS)
def test_the_embedded_broker_answers_as_kafka_through_a_random_history(
    brokers: Brokers, guarded: Brokers, name: str
) -> None:
    live_through((brokers, guarded), name, range(FEW[name]))


@pytest.mark.soak
@pytest.mark.parametrize("name", KINDS)
def test_the_embedded_broker_answers_as_kafka_through_many_random_histories(
    brokers: Brokers, guarded: Brokers, name: str
) -> None:
    live_through((brokers, guarded), name, many(name))


def compacted(servers: str, topic: str, now: int) -> list[tuple[int, bytes | None, bytes | None, int]]:
    """Write a table with old tombstones and transactions; what is left once compaction has removed offset 1."""
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        admin.create_topics([NewTopic(topic, 1, 1, topic_configs=TOPIC)])
    old = now - 3 * DAY_MS
    with KafkaProducer(bootstrap_servers=servers, transactional_id=topic) as producer:
        producer.init_transactions()
        for committed in (True, False):
            producer.begin_transaction()
            for key, value in ((b"gone", None), (b"k", b"superseded"), (b"k", b"latest")):
                producer.send(topic, value, key=key, timestamp_ms=old)
                producer.flush()
            producer.commit_transaction() if committed else producer.abort_transaction()
    with KafkaProducer(bootstrap_servers=servers) as producer:
        # Each begins a segment: those before it can be compacted.
        for number in (1, 2):
            producer.send(topic, b"new", key=b"new-%d" % number, timestamp_ms=now + number * 10_000).get(10)
    deadline = time.monotonic() + 60
    while True:
        found = read(servers, topic)
        if not any(row[0] == 1 for row in found) or time.monotonic() > deadline:
            return found


def read(servers: str, topic: str) -> list[tuple[int, bytes | None, bytes | None, int]]:
    partition = TopicPartition(topic, 0)
    with KafkaConsumer(bootstrap_servers=servers, isolation_level="read_uncommitted") as consumer:
        consumer.assign([partition])
        consumer.seek_to_beginning(partition)
        end, rows = consumer.end_offsets([partition])[partition], []
        while consumer.position(partition) < end:
            for batch in consumer.poll(100).values():
                rows += [(row.offset, row.key, row.value, row.timestamp) for row in batch]
    return rows


def test_old_tombstones_outlive_the_first_compaction(brokers: Brokers) -> None:
    now = int(time.time() * 1000) - DAY_MS
    real, ours = [compacted(servers, "tombstones", now) for servers in map("{0[0]}:{0[1]}".format, brokers)]
    assert ours == real
    assert ours[0][:3] == (0, b"gone", None)
