"""What health() says of a producer, a client and a consumer: one form, for a probe or a dashboard."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kafka import KafkaClient
from kafka._runtime.network_thread import complete
from kafka.testing import SILENCE
from test.unit.producer.memory_cluster import Cluster

COMMON = {"ok", "closed", "problems", "metadata_age_s", "metadata_state", "brokers", "topics", "partitions"}
CONNECTION = {"address", "state", "error", "failures", "in_flight", "throttled_s"}


def checked(health: dict[str, Any]) -> dict[str, Any]:
    """Check the form that all clients have in common."""
    assert health.keys() >= COMMON
    assert json.loads(json.dumps(health)) == health
    assert all(entry.keys() == CONNECTION for entry in health["brokers"].values())
    assert all(entry.keys() >= {"leader", "problem"} for entry in health["partitions"].values())
    assert health["ok"] == (not health["closed"] and not health["problems"])
    return health


def test_all_is_well(make_producer):
    producer = make_producer(Cluster({"events": 2}))
    producer.send("events", b"x").get(10)
    health = checked(producer.health())
    assert health["ok"]
    assert health["problems"] == []
    assert health["partitions"] == {}
    assert "0/produce" in health["brokers"]


def test_records_that_linger_are_no_problem(make_producer):
    producer = make_producer(Cluster({"events": 1}), linger_ms=5000)
    producer.send("events", b"x")
    producer.rest(4)
    health = checked(producer.health())
    assert health["ok"]
    assert health["partitions"]["events-0"] == {
        "records": 1,
        "oldest_s": health["partitions"]["events-0"]["oldest_s"],
        "attempts": 0,
        "leader": 0,
        "problem": None,
    }
    assert health["partitions"]["events-0"]["oldest_s"] >= 4


def test_it_is_not_ok_while_records_wait_for_an_answer_that_does_not_come(make_producer):
    cluster = Cluster({"events": 1})
    producer = make_producer(cluster)
    cluster.script.append(SILENCE)
    for _ in range(192):
        producer.send("events", b"x")
    producer.rest(5.5)
    health = checked(producer.health())
    assert not health["ok"]
    assert health["partitions"]["events-0"]["records"] == 192
    assert "has not answered for" in health["partitions"]["events-0"]["problem"]
    assert health["problems"] == ["events-0: " + health["partitions"]["events-0"]["problem"]]


def test_it_is_not_ok_after_an_attempt_that_failed(make_producer):
    cluster = Cluster({"events": 1})
    producer = make_producer(cluster)
    cluster.script.extend([19] * 100)
    producer.send("events", b"x")
    producer.until(lambda: len(cluster.times) == 2)
    health = checked(producer.health())
    assert not health["ok"]
    assert "NotEnoughReplicas" in health["partitions"]["events-0"]["problem"]


def test_it_is_not_ok_while_a_partition_has_no_leader(make_producer):
    cluster = Cluster({"events": 2})
    producer = make_producer(cluster)
    producer.partitions_for("events")
    cluster.leaders["events", 1] = -1
    complete(producer._driver.run(producer.core.client.refresh(producer.core.now() + 10)))
    producer.send("events", b"x", partition=1)
    producer.rest(2)
    health = checked(producer.health())
    assert not health["ok"]
    assert health["partitions"]["events-1"]["leader"] == -1
    assert "no leader for events-1" in health["partitions"]["events-1"]["problem"]


@pytest.mark.parametrize(
    ("left", "told"),
    [
        ({}, "topic 'events' does not exist any more: create it again"),
        ({"events": 1}, "topic 'events' has only 1 partition now, so it was deleted and created again: add partitions"),
    ],
)
def test_a_topic_that_was_deleted_is_named(make_producer, left, told):
    cluster = Cluster({"events": 2})
    cluster.leaders["events", 1] = -1
    producer = make_producer(cluster)
    producer.send("events", b"x", partition=1)
    cluster.topics = left
    complete(producer._driver.run(producer.core.client.refresh(producer.core.now() + 10)))
    producer.rest(2)
    health = checked(producer.health())
    assert not health["ok"]
    assert told in health["partitions"]["events-1"]["problem"]


def test_it_is_not_ok_while_the_leader_refuses_connections(make_producer):
    cluster = Cluster({"events": 2}, nodes=2)
    producer = make_producer(cluster)
    producer.send("events", b"x", partition=1).get(10)
    assert producer.health()["ok"]
    cluster.brokers[1].stop()
    producer.send("events", b"x", partition=1)
    producer.until(lambda: producer.health()["brokers"]["1/produce"]["failures"] > 1)
    health = checked(producer.health())
    assert not health["ok"]
    assert "refused" in health["partitions"]["events-1"]["problem"].lower()


def test_a_broker_that_nothing_waits_for_may_be_away(make_producer):
    cluster = Cluster({"events": 2}, nodes=2)
    producer = make_producer(cluster)
    for partition in (0, 1):
        producer.send("events", b"x", partition=partition).get(10)
    cluster.brokers[1].stop()
    producer.rest(1)
    health = checked(producer.health())
    assert health["brokers"]["1/produce"]["error"]
    assert health["ok"], health["problems"]


def test_it_is_not_ok_while_no_broker_can_be_reached(make_producer):
    cluster = Cluster({"events": 1})
    producer = make_producer(cluster)
    producer.send("events", b"x").get(10)
    cluster.brokers[0].stop()
    producer.rest(1)
    assert not checked(producer.health())["ok"]


def test_a_closed_producer_is_not_ok(make_producer):
    producer = make_producer(Cluster({"events": 1}))
    producer.close()
    health = checked(producer.health())
    assert (health["ok"], health["closed"]) == (False, True)


def test_a_client_answers_in_the_same_form():
    cluster = Cluster({"events": 1})
    client = KafkaClient(environment=cluster.network.environment(), bootstrap_servers="b0")
    assert checked(client.health())["ok"]
    client.close()
    assert not checked(client.health())["ok"]


def test_a_client_that_has_not_met_its_cluster_is_not_ok():
    cluster = Cluster({"events": 1})
    with KafkaClient(environment=cluster.network.environment(), bootstrap_servers="b0", bootstrap=False) as client:
        health = checked(client.health())
    assert health["problems"] == ["the cluster has not sent metadata yet"]
    assert health["metadata_age_s"] is None


def test_topics_that_the_cluster_refuses_are_named():
    cluster = Cluster({"events": 1})
    with KafkaClient(environment=cluster.network.environment(), bootstrap_servers="b0") as client:
        client.poll(future=client.set_topics(["events", "nothing"]))
        health = checked(client.health())
    assert health["topics"] == {"nothing": "UnknownTopicOrPartitionError"}
    assert health["problems"] == ["topic 'nothing': UnknownTopicOrPartitionError"]


def test_a_transaction_that_failed_is_a_problem(make_producer):
    cluster = Cluster({"events": 1})
    for broker in cluster.brokers:
        broker.on("FindCoordinator", {"coordinators": [], "error_code": 53})
    producer = make_producer(cluster, transactional_id="id", enable_idempotence=True)
    health = checked(producer.health())
    assert health["ok"]
    assert health["transaction"]["transactional_id"] == "id"
    producer.core.transactions.error = ValueError("no right")
    assert checked(producer.health())["problems"] == ["transaction: no right"]
