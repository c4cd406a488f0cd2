"""On a cluster that creates topics on demand: looking at a topic does not create it, wanting to read it may."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafka.consumer import KafkaConsumer
from kafka.errors import IllegalStateError, KafkaTimeoutError
from kafka.structs import TopicPartition
from test.unit.consumer.scripted import Cluster, MakeConsumer

TYPO = TopicPartition("typo", 0)


@pytest.fixture
def cluster(cluster: Cluster) -> Cluster:
    cluster.creates_topics = True
    return cluster


LOOKUPS: dict[str, Callable[[KafkaConsumer], object]] = {
    "partitions_for_topic": lambda consumer: consumer.partitions_for_topic("typo"),
    "topics": KafkaConsumer.topics,
    "beginning_offsets": lambda consumer: consumer.beginning_offsets([TYPO], timeout_ms=3000),
    "end_offsets": lambda consumer: consumer.end_offsets([TYPO], timeout_ms=3000),
    "offsets_for_times": lambda consumer: consumer.offsets_for_times({TYPO: 1}, timeout_ms=3000),
    "committed": lambda consumer: consumer.committed({TYPO}),
    "position": lambda consumer: consumer.position(TYPO),
    "pattern": lambda consumer: consumer.subscribe(pattern="ty"),
}


@pytest.mark.parametrize("name", LOOKUPS)
@pytest.mark.parametrize("old", [False, True])
def test_looking_at_a_topic_does_not_create_it(cluster: Cluster, make: MakeConsumer, name: str, old: bool) -> None:
    if old:  # 0.10.2: naming a topic creates it, whatever the request says
        cluster.broker.ranges = {**cluster.broker.ranges, 0: (0, 2), 1: (0, 3), 2: (0, 1), 3: (0, 2), 18: (0, 0)}
    consumer = make(group_id="g" if name == "committed" else None)
    try:
        assert not LOOKUPS[name](consumer) or name in {"topics", "committed"}
    except (IllegalStateError, KafkaTimeoutError):
        assert name not in {"partitions_for_topic", "topics", "committed"}
    consumer.poll(timeout_ms=5000)
    consumer.bootstrap(refresh=True)
    assert cluster.topics == {"t": 2}
    assert consumer.partitions_for_topic("t") == {0, 1}


def test_subscribing_to_a_topic_creates_it(cluster: Cluster, make: MakeConsumer) -> None:
    consumer = make("new")
    consumer.poll(timeout_ms=1000)
    assert "new" in cluster.topics


def test_a_look_puts_off_what_is_created_and_does_not_forget_it(cluster: Cluster, make: MakeConsumer) -> None:
    consumer = make()
    consumer.subscribe(["new"])
    assert consumer.partitions_for_topic("typo") is None
    consumer.poll(timeout_ms=5000)
    assert set(cluster.topics) == {"t", "new"}


def test_it_does_not_where_the_option_says_so(cluster: Cluster, make: MakeConsumer) -> None:
    consumer = make("new", allow_auto_create_topics=False)
    consumer.poll(timeout_ms=5000)
    assert cluster.topics == {"t": 2}
