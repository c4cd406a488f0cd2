"""Which topics a producer asks the cluster for, and for how long."""

from __future__ import annotations

from typing import Any

import pytest

from kafka import KafkaClient
from kafka.consumer.subscription import SubscriptionState
from kafka.errors import IllegalArgumentError, InvalidTopicError
from test.unit.producer.memory_cluster import Cluster, Producer

IMPOSSIBLE = {
    "cannot be encoded": "tenant-\udcff",
    "too long for the protocol": "x" * 40_000,
    "too long": "x" * 250,
    "a space": "a b",
    "a slash": "a/b",
    "NUL": "x\0y",
    "a line break at the end": "events\n",
    "empty": "",
    "a dot": ".",
    "two dots": "..",
}
NO_NAMES: list[Any] = [None, 3, b"events", ["events"], {"events": 1}, ("events",)]


def names_asked_for(cluster: Cluster) -> set[str]:
    return {topic.name for request in cluster.asked("Metadata") for topic in request.topics or ()}


def wanted(producer: Producer) -> set[str]:
    return set(producer.core.cluster.wanted_topics)


@pytest.mark.parametrize("name", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_an_impossible_name_costs_its_own_record_and_nothing_else(make_producer, name):
    cluster = Cluster({"events": 2, "more": 1}, nodes=2)
    producer = make_producer(cluster, delivery_timeout_ms=4000, request_timeout_ms=1000)
    producer.send("events", b"0", partition=1).get(3)
    assert isinstance(producer.send(name, b"x").exception, InvalidTopicError)
    assert wanted(producer) == {"events"}
    cluster.leaders["events", 1] = 0
    cluster.advertised.discard(1)
    cluster.brokers[1].stop()
    assert producer.send("events", b"1", partition=1).get(3).partition == 1
    assert producer.send("more", b"2").get(3).topic == "more"
    assert names_asked_for(cluster) == {"events", "more"}


def test_an_impossible_name_is_told_in_words(make_producer):
    producer = make_producer(Cluster({"events": 1}))
    with pytest.raises(InvalidTopicError, match=r"'a/b' is not a legal name of a topic: names have 1 to 249 .*'_'"):
        producer.send("a/b", b"x").get(1)
    with pytest.raises(InvalidTopicError):
        producer.partitions_for("a/b")
    with pytest.raises(InvalidTopicError):
        producer.send_many("a/b", [b"x"])
    with pytest.raises(InvalidTopicError) as long:
        producer.partitions_for("x" * 40_000)
    assert len(str(long.value)) < 300


@pytest.mark.parametrize("name", NO_NAMES, ids=repr)
def test_what_is_not_a_name_is_a_type_error_in_words(make_producer, name):
    producer = make_producer(Cluster({"events": 1}))
    for call in (
        lambda: producer.send(name, b"x"),
        lambda: producer.send(name, b"x", b"key"),
        lambda: producer.send(name, b"x", partition=0),
        lambda: producer.send_many(name, [b"x"]),
        lambda: producer.partitions_for(name),
    ):
        with pytest.raises(TypeError, match="a topic's name must be a str, not "):
            call()


@pytest.mark.parametrize("name", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_a_client_and_a_consumer_refuse_the_same_names(name):
    cluster = Cluster({"events": 1})
    with KafkaClient(environment=cluster.network.environment(), bootstrap_servers="b0") as client:
        with pytest.raises(IllegalArgumentError, match="is not a legal name of a topic"):
            client.add_topic(name)
        with pytest.raises(IllegalArgumentError, match="is not a legal name of a topic"):
            client.set_topics(["events", name])
        assert client.cluster.wanted_topics == frozenset()
    with pytest.raises(IllegalArgumentError, match="is not a legal name of a topic"):
        SubscriptionState().subscribe([name])


def test_a_client_takes_a_list_of_topics_not_a_name():
    cluster = Cluster({"events": 1})
    client = KafkaClient(environment=cluster.network.environment(), bootstrap_servers="b0")
    with client, pytest.raises(TypeError, match=r"call add_topic\('events'\)"):
        client.set_topics("events")
