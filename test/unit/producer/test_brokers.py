"""What a producer keeps for each broker that it sends to."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from kafka._core.client import PRODUCE
from kafka._runtime.network_thread import complete
from kafka.errors import UnsupportedVersionError
from kafka.protocol.metadata import MetadataResponse
from kafka.protocol.negotiation import ApiVersions
from kafka.protocol.produce import ProduceResponse
from kafka.protocol.registry import ApiKey
from kafka.structs import TopicPartition
from kafka.testing import SILENCE
from test.unit.producer.memory_cluster import Cluster


def refresh(producer: Any) -> None:
    complete(producer._driver.run(producer.core.client.refresh(producer.core.now() + 10)))


def test_a_throttle_is_waited_for_with_one_timer(make_producer, monkeypatch):
    cluster = Cluster({"events": 50})
    producer = make_producer(cluster, linger_ms=0)
    cluster.throttle_ms = 60_000
    producer.send("events", b"x").get(1)
    cluster.throttle_ms = 0
    loop = producer.core.loop
    call_later, timers = loop.call_later, []
    monkeypatch.setattr(loop, "call_later", lambda *args: timers.append(args) or call_later(*args))
    futures = []
    for partition in range(50):
        futures.append(producer.send("events", b"x", partition=partition))
        producer.rest(0.5)
    assert len(timers) == 1
    assert not any(future.is_done for future in futures)
    producer.rest(40)
    assert all(future.succeeded() for future in futures)


def test_a_throttle_that_begins_again_is_waited_for_again(make_producer):
    cluster = Cluster({"events": 1})
    producer = make_producer(cluster, linger_ms=0)
    cluster.throttle_ms = 10_000
    times = []
    for _ in range(3):
        producer.send("events", b"x").get(60)
        times.append(cluster.now)
    assert times[1] - times[0] >= 10
    assert times[2] - times[1] >= 10


def test_a_broker_that_has_left_the_cluster_is_forgotten(make_producer):
    cluster = Cluster({"events": 3}, nodes=3)
    producer = make_producer(cluster)
    for partition in range(3):
        producer.send("events", b"x", partition=partition).get(10)
    assert sorted(producer.core.sender._sinks) == [0, 1, 2]
    cluster.advertised = {0}
    cluster.leaders = {("events", 1): 0, ("events", 2): 0}
    refresh(producer)
    assert sorted(producer.core.sender._sinks) == [0]
    for partition in range(3):
        producer.send("events", b"y", partition=partition).get(10)
    cluster.advertised, cluster.leaders = {0, 1, 2}, {}
    refresh(producer)
    assert [producer.send("events", b"z", partition=at).get(10).offset for at in range(3)] == [2, 2, 2]
    assert sorted(producer.core.sender._sinks) == [0, 1, 2]


def test_a_batch_for_a_leader_that_metadata_does_not_list_is_sent_when_it_does(make_producer):
    cluster = Cluster({"events": 2}, nodes=2)
    cluster.advertised = {0}
    producer = make_producer(cluster, linger_ms=0)
    waits = producer.send("events", b"x", partition=1)
    producer.rest(1)
    assert not waits.is_done
    cluster.advertised = {0, 1}
    assert waits.get(10).offset == 0


def test_batches_that_wait_for_a_broker_go_to_the_new_leader(make_producer):
    """Whatever the sink of the old leader waits for: it keeps none of them."""
    cluster = Cluster({"events": 2}, nodes=2)
    producer = make_producer(cluster, max_in_flight_requests_per_connection=1, linger_ms=0)
    assert producer.send("events", b"first", partition=1).get(10).offset == 0
    cluster.script.append(SILENCE)  # the only request that may be in flight is not answered
    other = producer.send("events", b"owed", partition=1)
    producer.rest(0.1)
    cluster.topics["events"] = 4  # the broker leads another partition, whose batch waits behind that request
    refresh(producer)
    waits = producer.send("events", b"waits", partition=3)
    producer.rest(0.1)
    assert not other.is_done
    assert not waits.is_done
    cluster.leaders = {("events", 3): 0}
    refresh(producer)
    producer.rest(0.1)
    assert waits.succeeded()
    assert producer.send("events", b"after", partition=3).get(10).offset == 1
    assert {at for request in cluster.brokers[1].asked("Produce") for at in written(request)} == {1}
    assert {at for request in cluster.brokers[0].asked("Produce") for at in written(request)} == {3}


def test_a_leader_that_a_reply_names_gets_the_batches_that_wait_for_the_old_one(make_producer):
    """No metadata comes, so they leave the old leader's sink when it sends next (KIP-951)."""
    cluster = Cluster({"events": 4}, nodes=2)
    producer = make_producer(cluster, linger_ms=0)
    cluster.throttle_ms = 10_000
    assert producer.send("events", b"first", partition=1).get(10).offset == 0
    cluster.throttle_ms = 0
    waits = producer.send("events", b"waits", partition=3)
    producer.rest(0.1)
    assert not waits.is_done
    assert producer.core.cluster.update_partition_leader(TopicPartition("events", 3), 0, 1)
    assert waits.get(30).offset == 0
    assert {at for request in cluster.brokers[1].asked("Produce") for at in written(request)} == {1}
    assert {at for request in cluster.brokers[0].asked("Produce") for at in written(request)} == {3}


def written(request: Any) -> list[int]:
    return [each.index for topic in request.topic_data for each in topic.partition_data]


def test_a_broker_at_another_address_gets_the_next_request_there(make_producer):
    cluster = Cluster({"events": 1}, nodes=2)
    producer = make_producer(cluster, linger_ms=0)
    assert producer.send("events", b"x").get(10).offset == 0
    cluster.brokers.reverse()  # broker 0 is at the address of the other one
    cluster.brokers[0].on("Produce", lambda request, _session: cluster.produce(request, 0))
    refresh(producer)
    assert producer.send("events", b"y").get(10).offset == 1
    assert [len(broker.asked("Produce")) for broker in cluster.brokers] == [1, 1]


def test_a_broker_that_owes_an_answer_is_not_forgotten(make_producer):
    cluster = Cluster({"events": 2}, nodes=2)
    producer = make_producer(cluster, request_timeout_ms=5000, linger_ms=0)
    producer.send("events", b"x", partition=1).get(10)
    cluster.script.append(SILENCE)
    future = producer.send("events", b"y", partition=1)
    producer.rest(0.1)
    cluster.advertised, cluster.leaders = {0}, {("events", 1): 0}
    refresh(producer)
    assert sorted(producer.core.sender._sinks) == [1]
    assert future.get(30).partition == 1
    refresh(producer)
    assert sorted(producer.core.sender._sinks) == [0]


def test_records_for_a_broker_without_a_version_of_produce_fail_alone(make_producer):
    cluster = Cluster({"events": 2}, nodes=2)
    producer = make_producer(cluster, linger_ms=0)
    assert producer.send("events", b"x", partition=1).get(10).offset == 0
    link = producer.core.client.link(1, PRODUCE)
    link.versions = ApiVersions({**link.versions.ranges, 0: (90, 99)})
    with pytest.raises(UnsupportedVersionError, match="versions 90-99"):
        producer.send("events", b"x", partition=1).get(10)
    assert producer.send("events", b"x", partition=0).get(10).offset == 0


@pytest.mark.parametrize("newest", [12, 13], ids=["by name", "by id"])
def test_a_late_answer_about_a_topic_that_was_created_again_does_not_move_its_successor(make_producer, newest):
    """The old topic's epoch is higher than the new one's: no metadata could correct a leader that was taken from it."""
    cluster = Cluster({"events": 1}, nodes=2)
    present = {"id": UUID(int=1), "epoch": 7, "leader": 0}
    refused = []

    def metadata(request, session):
        cluster.leaders["events", 0] = present["leader"]
        reply = cluster.metadata(request, session)
        for topic in reply["topics"]:
            topic.topic_id = present["id"]
            topic.partitions[0].leader_epoch = present["epoch"]
        return reply

    def produce(request, node):
        reply = ProduceResponse
        ours = request.topic_data[0].topic_id == present["id"] if newest == 13 else True
        answer = reply.PartitionProduceResponse(index=0, error_code=0, base_offset=5)
        if node != present["leader"] or not ours or not refused:
            refused.append(node)
            answer.error_code, answer.base_offset = 6, -1
        if len(refused) == 1:  # the topic is created again, the producer hears of it, and then of the old leader
            present.update(id=UUID(int=2), epoch=0, leader=1)
            producer.core.cluster.update_metadata(
                MetadataResponse(
                    brokers=[
                        MetadataResponse.MetadataResponseBroker(node_id=at, host=broker.host, port=broker.port)
                        for at, broker in enumerate(cluster.brokers)
                    ],
                    topics=metadata(SimpleNamespace(topics=None), None)["topics"],
                )
            )
            answer.current_leader = reply.LeaderIdAndEpoch(leader_id=0, leader_epoch=8)
        (topic,) = request.topic_data
        found = reply.TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=[answer])
        return {"responses": [found]}

    for node, broker in enumerate(cluster.brokers):
        broker.on("Metadata", metadata)
        broker.on("Produce", lambda request, _session, node=node: produce(request, node))
        broker.ranges[ApiKey.Produce] = (3, newest)
    producer = make_producer(cluster, delivery_timeout_ms=60_000)
    assert producer.send("events", b"x").get(60).offset == 5
    assert refused == [0]
