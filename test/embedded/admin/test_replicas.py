"""Elections, reassignments and log directories through `KafkaAdminClient`, against the embedded broker."""

from __future__ import annotations

import time

import pytest

from kafka import KafkaAdminClient, KafkaProducer, TopicPartition, TopicPartitionReplica
from kafka.admin import ElectionType
from kafka.broker import Broker
from kafka.errors import (
    IllegalArgumentError,
    InvalidReplicaAssignmentError,
    KafkaError,
    LogDirNotFoundError,
    NoError,
    NoReassignmentInProgressError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
)

FIRST, SECOND, MISSING = TopicPartition("moved", 0), TopicPartition("moved", 1), TopicPartition("evnets", 0)


@pytest.fixture(autouse=True)
def moved(admin: KafkaAdminClient) -> None:
    """A topic whose partitions have two replicas each."""
    admin.create_topics({"moved": {"assignments": {0: [1, 2], 1: [2, 3]}}}, wait_for_metadata=True)


def replicas_of(admin: KafkaAdminClient) -> list[list[int]]:
    (topic,) = admin.describe_topics(["moved"])
    return [partition.replica_nodes for partition in topic.partitions]


def test_preferred_leaders_are_elected(admin: KafkaAdminClient, broker: Broker):
    broker.move_leader(FIRST, 2)
    result = admin.elect_leaders(ElectionType.PREFERRED, {"moved": [0, 1]})
    assert result.error_code == 0
    outcomes = [(one.topic, one.partition_id, one.ok) for one in result.partitions]
    assert outcomes == [("moved", 0, True), ("moved", 1, True)]
    assert broker.leader("moved", 0) == 1
    assert admin.perform_leader_election(0, [FIRST]).replica_election_results[0]["topic"] == "moved"
    assert admin.elect_leaders("preferred").partitions.ok


def test_one_partition_that_is_unknown_does_not_lose_the_other_elections(admin: KafkaAdminClient, broker: Broker):
    broker.move_leader(FIRST, 2)
    with pytest.raises(UnknownTopicOrPartitionError, match="evnets-0") as caught:
        admin.elect_leaders("preferred", [FIRST, MISSING])
    outcomes = {one.topic: one.ok for one in caught.value.results.partitions}
    assert outcomes == {"moved": True, "evnets": False}
    assert broker.leader("moved", 0) == 1
    with pytest.raises(IllegalArgumentError, match="PREFERRED or UNCLEAN"):
        admin.elect_leaders("best")


def test_replicas_move_to_other_brokers(admin: KafkaAdminClient):
    assert admin.alter_partition_reassignments({FIRST: [3, 1], SECOND: [1, 2, 3]}) == {FIRST: None, SECOND: None}
    deadline = time.monotonic() + 10
    while admin.list_partition_reassignments() and time.monotonic() < deadline:
        pass
    assert replicas_of(admin) == [[3, 1], [1, 2, 3]]


def test_one_reassignment_that_is_refused_does_not_lose_the_others(admin: KafkaAdminClient):
    with pytest.raises(UnknownTopicOrPartitionError, match="evnets-0") as caught:
        admin.alter_partition_reassignments({FIRST: [2, 1], MISSING: [1]})
    assert caught.value.results == {FIRST: None, MISSING: UnknownTopicOrPartitionError}
    found = admin.alter_partition_reassignments({FIRST: [99], SECOND: None}, raise_errors=False)
    assert found == {FIRST: InvalidReplicaAssignmentError, SECOND: NoReassignmentInProgressError}
    assert replicas_of(admin) == [[2, 1], [2, 3]]
    for wrong in ([], [1, 1], ["1"]):
        with pytest.raises(IllegalArgumentError, match="ids of different brokers"):
            admin.alter_partition_reassignments({FIRST: wrong})  # type: ignore[dict-item]


def test_log_directories_of_all_brokers_are_described(admin: KafkaAdminClient, broker: Broker):
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        producer.send("moved", b"x" * 5000, partition=0).get(timeout=10)
    found = admin.describe_log_dirs()
    assert [one["broker"] for one in found] == [1, 2, 3]
    sizes = {
        (one.broker, topic.name, part.partition_index): part.partition_size
        for one in found
        for directory in one.log_dirs
        for topic in directory.topics
        for part in topic.partitions
        if topic.name == "moved"
    }
    assert sizes.keys() == {(1, "moved", 0), (2, "moved", 0), (2, "moved", 1), (3, "moved", 1)}
    assert sizes[1, "moved", 0] > 5000
    assert len(found.log_dirs) == 3
    (only,) = admin.describe_log_dirs([SECOND], [2])
    assert [topic.name for topic in only.log_dirs[0].topics] == ["moved"]


def test_a_broker_that_is_down_does_not_lose_the_directories_of_the_others(admin: KafkaAdminClient, broker: Broker):
    broker.stop_node(2)
    found = admin.describe_log_dirs(brokers=[1, 2, 3], timeout_ms=1500, raise_errors=False)
    assert [one.broker for one in found] == [1, 3]
    assert list(found.failed) == [2]
    assert not found.ok
    # Not the same type: by now the metadata may have come that has no broker 2.
    with pytest.raises(KafkaError, match="broker") as caught:
        admin.describe_log_dirs(brokers=[1, 2, 3], timeout_ms=1500)
    assert [one.broker for one in caught.value.results] == [1, 3]


def test_replicas_have_directories_and_move_between_them(admin: KafkaAdminClient):
    replica, other = TopicPartitionReplica("moved", 0, 1), TopicPartitionReplica("moved", 0, 3)
    found = admin.describe_replica_log_dirs([replica, other])
    place = found[replica].current_log_dir
    assert place
    assert (found[replica].current_offset_lag, found[replica].future_log_dir) == (0, None)
    assert found[other].current_log_dir is None
    wanted = {replica: place, TopicPartitionReplica("moved", 1, 2): "/nowhere"}
    moves = admin.alter_replica_log_dirs(wanted, raise_errors=False)
    assert moves == {replica: NoError, TopicPartitionReplica("moved", 1, 2): LogDirNotFoundError}
    with pytest.raises(TypeError, match="TopicPartitionReplica"):
        admin.alter_replica_log_dirs({FIRST: place})  # type: ignore[dict-item]


def test_an_old_broker_cannot_elect_unclean_leaders():
    with Broker(as_version="2.3") as broker, KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        with pytest.raises(UnsupportedVersionError, match=r"unclean election needs Kafka 2\.4"):
            admin.elect_leaders("unclean")
        with pytest.raises(UnsupportedVersionError, match=r"needs Kafka 2\.4"):
            admin.list_partition_reassignments()
