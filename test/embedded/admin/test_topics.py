"""Topics and the cluster through `KafkaAdminClient`, against the embedded broker."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from uuid import UUID

import pytest

import kafka
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewPartitions, NewTopic
from kafka.broker import Broker
from kafka.broker.faults import NO_REPLY
from kafka.errors import (
    ClientClosedError,
    IllegalArgumentError,
    KafkaConfigurationError,
    KafkaTimeoutError,
    NoBrokersAvailable,
    TopicAlreadyExistsError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)


@pytest.fixture
def admin(broker: Broker) -> Iterator[KafkaAdminClient]:
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        yield admin


def test_the_class_is_where_programs_import_it_from():
    from kafka.admin.client import KafkaAdminClient as ofModule

    assert kafka.KafkaAdminClient is KafkaAdminClient is ofModule
    assert "KafkaAdminClient" in dir(kafka)


def test_topics_are_created_described_and_deleted(admin: KafkaAdminClient):
    configs = {"cleanup.policy": "compact", "retention.ms": 1000}
    result = admin.create_topics([NewTopic("logs", num_partitions=3, replication_factor=2, topic_configs=configs)])
    (made,) = result["topics"]
    assert (made["name"], made.num_partitions, made.replication_factor) == ("logs", 3, 2)
    assert isinstance(made.topic_id, UUID)
    assert {entry.name: entry.value for entry in made.configs}["retention.ms"] == "1000"
    assert sorted(admin.list_topics()) == ["events", "logs"]
    (topic,) = admin.describe_topics(["logs"])
    assert topic.topic_id == made.topic_id
    assert topic["topic"] == "logs"
    assert "topic" not in topic
    assert [len(partition["replicas"]) for partition in topic["partitions"]] == [2, 2, 2]
    assert "DESCRIBE" in (topic.authorized_operations or [])
    assert admin.describe_topics([made.topic_id])[0].name == "logs"
    assert admin.delete_topics(["logs"]).topic_error_codes == [("logs", 0)]
    assert admin.list_topics() == ["events"]


def test_a_topic_is_deleted_by_its_id(admin: KafkaAdminClient):
    (topic,) = admin.describe_topics(["events"])
    deleted = admin.delete_topics([topic.topic_id])
    assert deleted.topics[0].topic_id == topic.topic_id
    assert admin.list_topics() == []
    with pytest.raises(UnknownTopicIdError):
        admin.delete_topics([topic.topic_id])


def test_replicas_are_where_they_are_assigned(admin: KafkaAdminClient):
    admin.create_topics({"placed": {"assignments": {0: [2, 3], 1: [3, 1]}}})
    (topic,) = admin.describe_topics(["placed"])
    assert [partition.replica_nodes for partition in topic.partitions] == [[2, 3], [3, 1]]


def test_one_bad_topic_does_not_lose_the_others(admin: KafkaAdminClient):
    with pytest.raises(TopicAlreadyExistsError, match="'events'") as caught:
        admin.create_topics(["events", "fresh"])
    assert [(topic.name, topic.ok) for topic in caught.value.results.topics] == [("events", False), ("fresh", True)]
    result = admin.delete_topics(["fresh", "missing"], raise_errors=False)
    assert result.topics.failed[0].error == UnknownTopicOrPartitionError(
        f"topic 'missing': {result.topics.failed[0].error_message or UnknownTopicOrPartitionError.description}"
    )
    assert admin.list_topics() == ["events"]


def test_validating_changes_nothing(admin: KafkaAdminClient):
    assert admin.create_topics(["fresh"], validate_only=True).topics.ok
    assert admin.create_partitions({"events": 5}, validate_only=True).results.ok
    assert admin.list_topics() == ["events"]
    assert len(admin.describe_topics(["events"])[0].partitions) == 2


def test_partitions_are_added(admin: KafkaAdminClient):
    result = admin.create_partitions({"events": NewPartitions(4, [[1], [2]])})
    assert result.topic_errors == [("events", 0, None)]
    assert [partition.leader_id for partition in admin.describe_topics(["events"])[0].partitions][2:] == [1, 2]
    failed = admin.create_partitions({"events": 1, "missing": 2}, raise_errors=False)
    assert [topic.error_code for topic in failed.results] == [37, 3]


def test_a_topic_that_was_waited_for_can_be_written_to_at_once(admin: KafkaAdminClient, broker: Broker):
    admin.create_topics(["fresh"], wait_for_metadata=True)
    for node in broker.node_ids:
        address = f"127.0.0.1:{broker.port(node)}"
        with KafkaProducer(bootstrap_servers=address, retries=0, enable_idempotence=False) as producer:
            producer.send("fresh", b"value").get(timeout=20)


def test_waiting_for_a_topic_ends_when_another_client_creates_it(admin: KafkaAdminClient, broker: Broker):
    waiting = threading.Thread(target=admin.wait_for_topics, args=(["late"], 20_000))
    waiting.start()
    broker.create_topic("late")
    waiting.join(20)
    assert not waiting.is_alive()
    with pytest.raises(KafkaTimeoutError, match="never"):
        admin.wait_for_topics(["late", "never"], timeout_ms=200)


def test_a_controller_that_refuses_once_costs_no_error(admin: KafkaAdminClient, broker: Broker):
    broker.fail("CreateTopics", "NOT_CONTROLLER", times=2)
    assert admin.create_topics(["fresh"]).topics.ok


def test_the_cluster_is_described(admin: KafkaAdminClient):
    cluster = admin.describe_cluster(include_authorized_operations=True)
    assert [broker["broker_id"] for broker in cluster["brokers"]] == [1, 2, 3]
    assert cluster.brokers[0]["node_id"] == 1
    assert "node_id" not in cluster.brokers[0]
    assert cluster["throttle_time_ms"] == cluster.throttle_time_ms == 0
    assert "throttle_time_ms" not in cluster
    assert cluster.cluster_id
    assert "ALTER" in (cluster.authorized_operations or [])


def test_a_release_without_that_api_is_described_by_its_metadata(broker: Broker):
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers, api_version=(2, 7)) as admin:
        cluster = admin.describe_cluster()
    assert [node.broker_id for node in cluster.brokers] == [1, 2, 3]
    assert {request.name for request in broker.requests} <= {"Metadata"}


def test_a_call_ends_by_its_deadline(admin: KafkaAdminClient, broker: Broker):
    broker.intercept("DescribeCluster", lambda _: NO_REPLY)
    began = time.monotonic()
    with pytest.raises(KafkaTimeoutError):
        admin.describe_cluster(timeout_ms=300)
    assert 0.2 < time.monotonic() - began < 10  # a minute by default


def test_the_constructor_raises_where_no_broker_answers():
    with pytest.raises(NoBrokersAvailable, match=r"127\.0\.0\.1:1"):
        KafkaAdminClient(bootstrap_servers="127.0.0.1:1", bootstrap_timeout_ms=2000)
    with KafkaAdminClient(bootstrap_servers="127.0.0.1:1", bootstrap_timeout_ms=0) as admin:
        assert not admin.bootstrap_connected()
        with pytest.raises(NoBrokersAvailable, match=r"127\.0\.0\.1:1.*refused"):
            admin.list_topics(timeout_ms=2000)


def test_wrong_arguments_are_refused(admin: KafkaAdminClient):
    with pytest.raises(KafkaConfigurationError, match="KafkaAdminClient has no option 'group_id'"):
        KafkaAdminClient(group_id="g")
    with pytest.raises(TypeError, match="list of names"):
        admin.delete_topics("events")
    with pytest.raises(IllegalArgumentError, match="timeout_ms must not be negative"):
        admin.list_topics(timeout_ms=-1)


def test_a_closed_client_says_so(broker: Broker):
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    admin.close()
    admin.close()
    with pytest.raises(ClientClosedError):
        admin.list_topics()


def test_one_client_serves_sixteen_threads(admin: KafkaAdminClient):
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for turn in range(5):
                name = f"t-{number}-{turn}"
                admin.create_topics([name])
                assert admin.describe_topics([name])[0].ok
                admin.delete_topics([name])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures
    assert admin.list_topics() == ["events"]


def test_the_metrics_and_the_health_of_the_client_are_there(admin: KafkaAdminClient):
    assert admin.bootstrap_connected()
    assert admin.health()["ok"]
    assert "admin-client-metrics" in admin.metrics()
    assert "KafkaAdminClient" in repr(admin)


def test_topics_that_exist_are_compared_and_others_created(admin: KafkaAdminClient):
    wanted = {
        "new": {"num_partitions": 2},
        "plain": {},
        "different": {"num_partitions": 3, "replication_factor": 1, "configs": {"retention.ms": 5000, "flush.ms": 7}},
    }
    admin.create_topics({"plain": {}, "different": {"num_partitions": 2, "configs": {"flush.ms": 7}}})
    found = admin.ensure_topics(wanted)
    assert [(name, topic.created, topic.ok) for name, topic in found.items()] == [
        ("new", True, True),
        ("plain", False, True),
        ("different", False, False),
    ]
    differences = found["different"].differences
    assert differences["num_partitions"] == (3, 2)
    assert differences["retention.ms"] == ("5000", "604800000")
    assert "flush.ms" not in differences
    assert not admin.ensure_topics(["new"])["new"].created


def test_a_deletion_may_be_waited_for(admin: KafkaAdminClient):
    admin.create_topics(["doomed"], wait_for_metadata=True)
    assert admin.delete_topics(["doomed"], wait=True).topics.ok
    assert not admin.describe_topics(["doomed"])[0].ok
