"""Features, the controller quorum, brokers and directories, in raw requests: the answers of Apache Kafka 4.3."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from kafka.broker import Broker
from kafka.errors import Code
from kafka.protocol.admin import (
    AlterReplicaLogDirsRequest,
    ApiVersionsRequest,
    DescribeLogDirsRequest,
    UnregisterBrokerRequest,
    UpdateFeaturesRequest,
)
from kafka.protocol.fields import ZERO_UUID
from kafka.protocol.metadata import DescribeClusterRequest, MetadataRequest
from kafka.protocol.quorum import AddRaftVoterRequest, DescribeQuorumRequest, RemoveRaftVoterRequest

from .wire import Wire, wire

UPGRADE, DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
NEEDS_DOWNGRADE = (
    "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe downgrade."
)


pytestmark = pytest.mark.kafka_broker(nodes=3, seed=1, as_version="4.3")


@pytest.fixture
def client(broker: Broker) -> Iterator[Wire]:
    with wire(broker) as connection:
        yield connection


# Features


def features(client: Wire) -> tuple[dict[str, tuple[int, int]], dict[str, int], int]:
    """What is supported, what is in force, and the epoch."""
    reply = client.ask(ApiVersionsRequest[4](client_software_name="test", client_software_version="1"))
    supported = {one.name: (one.min_version, one.max_version) for one in reply.supported_features}
    finalized = {one.name: one.max_version_level for one in reply.finalized_features}
    return supported, finalized, reply.finalized_features_epoch


def update(client: Wire, *updates: tuple[str, int, int], version: int = 2, validate_only: bool = False) -> Any:
    request = UpdateFeaturesRequest[version](timeout_ms=5000, validate_only=validate_only)
    request.feature_updates = [(name, level, kind if version else kind != UPGRADE) for name, level, kind in updates]
    return client.ask(request)


def test_the_features_of_kafka_4_3_are_listed(client: Wire) -> None:
    supported, finalized, _ = features(client)
    assert supported == {
        "eligible.leader.replicas.version": (0, 1),
        "group.version": (0, 1),
        "kraft.version": (0, 1),
        "metadata.version": (7, 30),
        "share.version": (0, 1),
        "streams.version": (0, 1),
        "transaction.version": (0, 2),
    }
    assert finalized == {
        "eligible.leader.replicas.version": 1,
        "group.version": 1,
        "metadata.version": 30,
        "share.version": 1,
        "streams.version": 1,
        "transaction.version": 2,
    }


@pytest.mark.parametrize(("release", "metadata", "share"), [("4.0", 25, None), ("4.1", 27, 0), ("4.2", 29, 1)])
def test_an_earlier_release_has_its_own_features(release: str, metadata: int, share: int | None) -> None:
    with Broker(as_version=release) as broker, wire(broker) as client:
        supported, finalized, _ = features(client)
        assert finalized["metadata.version"] == metadata
        assert ("share.version" in supported) is (share is not None)
        assert finalized.get("share.version", 0) == (share or 0)


def test_an_update_of_features_is_in_force_at_once_and_survives_a_restart(tmp_path: Any) -> None:
    with Broker(data_dir=tmp_path / "data") as broker, wire(broker) as client:
        before = features(client)[2]
        assert update(client, ("streams.version", 0, DOWNGRADE), ("transaction.version", 1, DOWNGRADE)).error_code == 0
        _, finalized, epoch = features(client)
        assert "streams.version" not in finalized
        assert (finalized["transaction.version"], epoch) == (1, before + 1)
    with Broker(data_dir=tmp_path / "data") as broker, wire(broker) as client:
        assert features(client)[1]["transaction.version"] == 1


@pytest.mark.parametrize(
    ("name", "level", "kind", "reason"),
    [
        ("nosuch", 1, UPGRADE, "Local controller 1 does not support this feature."),
        ("share.version", 2, UPGRADE, "Local controller 1 only supports versions 0-1"),
        ("metadata.version", 5, UNSAFE_DOWNGRADE, "Local controller 1 only supports versions 7-30"),
        (
            "group.version",
            0,
            UPGRADE,
            NEEDS_DOWNGRADE,
        ),
        ("kraft.version", 1, DOWNGRADE, "Can't downgrade to a newer version."),
        ("group.version", 1, 0, "The controller does not support the given upgrade type."),
    ],
)
def test_an_update_that_cannot_be_made_fails_with_kafka_s_reason(
    client: Wire, name: str, level: int, kind: int, reason: str
) -> None:
    before = features(client)
    reply = update(client, ("transaction.version", 0, DOWNGRADE), (name, level, kind))
    assert reply.error_code == Code.INVALID_UPDATE_VERSION
    assert reply.error_message == (
        "The update failed for all features since the following feature had an error: "
        f"Invalid update version {level} for feature {name}. {reason}"
    )
    assert features(client) == before  # all of them or none


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (DOWNGRADE, "Refusing to perform the requested downgrade because it might delete metadata information."),
        (UNSAFE_DOWNGRADE, "Unsafe metadata downgrade is not supported in this version."),
    ],
)
def test_metadata_version_is_not_lowered_across_a_change_of_format(client: Wire, kind: int, reason: str) -> None:
    reply = update(client, ("metadata.version", 29, kind))
    assert reply.error_message.endswith(f"Unsupported metadata.version downgrade from 30 to 29. {reason}")


def test_validating_changes_nothing_and_results_are_listed_up_to_version_1(client: Wire) -> None:
    before = features(client)
    reply = update(client, ("group.version", 0, DOWNGRADE), version=1, validate_only=True)
    assert [(one.feature, one.error_code, one.error_message) for one in reply.results] == [("group.version", 0, "NONE")]
    assert features(client) == before
    assert update(client, ("group.version", 0, DOWNGRADE), version=0).error_code == Code.INVALID_UPDATE_VERSION


# The quorum


def quorum(client: Wire, version: int = 2, topic: str = "__cluster_metadata", partition: int = 0) -> Any:
    return client.ask(DescribeQuorumRequest[version](topics=[(topic, [(partition,)])]))


@pytest.mark.parametrize("version", [0, 1, 2])
def test_all_nodes_vote_and_the_controller_leads(broker: Broker, client: Wire, version: int) -> None:
    reply = quorum(client, version)
    (part,) = reply.topics[0].partitions
    assert (reply.error_code, part.error_code, part.leader_id, part.observers) == (0, 0, 1, [])
    assert [voter.replica_id for voter in part.current_voters] == [1, 2, 3]
    assert {voter.log_end_offset for voter in part.current_voters} == {part.high_watermark}
    if version >= 1:
        now = broker.run(lambda cluster: cluster.clock.now_ms())
        assert all(now - 60_000 < voter.last_fetch_timestamp <= now for voter in part.current_voters)
    if version >= 2:
        assert {node.node_id: node.listeners[0].port for node in reply.nodes} == {n: broker.port(n) for n in (1, 2, 3)}
        assert all(voter.replica_directory_id == ZERO_UUID for voter in part.current_voters)


def test_the_log_grows_with_changes_and_the_epoch_with_controllers(broker: Broker) -> None:
    with wire(broker, 2) as client:
        first = quorum(client).topics[0].partitions[0]
        broker.create_topic("made")
        broker.stop_node(1)
        broker.clock.advance(60)
        second = quorum(client).topics[0].partitions[0]
        assert second.high_watermark > first.high_watermark
        assert (second.leader_id, second.leader_epoch) == (2, first.leader_epoch + 1)
        stopped, running, _ = second.current_voters
        assert running.last_fetch_timestamp - stopped.last_fetch_timestamp >= 60_000


@pytest.mark.parametrize(("topic", "partition"), [("events", 0), ("__cluster_metadata", 1)])
def test_only_the_metadata_s_partition_has_a_quorum(client: Wire, topic: str, partition: int) -> None:
    reply = quorum(client, topic=topic, partition=partition)
    (part,) = reply.topics[0].partitions
    assert (part.partition_index, part.error_code) == (partition, Code.UNKNOWN_TOPIC_OR_PARTITION)
    assert (part.error_message, reply.nodes) == ("This server does not host this topic-partition.", [])


def add(
    client: Wire, voter: int, directory: uuid.UUID, cluster_id: str | None = None, listener: str = "CONTROLLER"
) -> Any:
    listeners = [(listener, "127.0.0.1", 9093)]
    reply = client.ask(AddRaftVoterRequest[1](cluster_id, 1000, voter, directory, listeners))
    return reply.error_code, reply.error_message


def remove(client: Wire, voter: int, directory: uuid.UUID, cluster_id: str | None = None) -> Any:
    reply = client.ask(RemoveRaftVoterRequest[0](cluster_id, voter, directory))
    return reply.error_code, reply.error_message


def test_voters_stay_at_kraft_version_0(client: Wire) -> None:
    some = uuid.UUID(int=5)
    assert add(client, 4, some) == (
        Code.UNSUPPORTED_VERSION,
        "Cluster doesn't support adding voter because the kraft.version feature is 0",
    )
    assert remove(client, 2, some) == (
        Code.UNSUPPORTED_VERSION,
        "Cluster doesn't support removing voter because the kraft.version feature is 0",
    )
    code, message = add(client, 4, some, cluster_id="other")
    assert code == Code.INCONSISTENT_CLUSTER_ID
    assert message.startswith('The given id "other" doesn\'t match the cluster id "')
    assert remove(client, 2, some, cluster_id="other")[0] == Code.INCONSISTENT_CLUSTER_ID
    invalid = "Add voter request didn't include a valid voter"
    assert add(client, -2, some) == add(client, 4, ZERO_UUID) == (Code.INVALID_REQUEST, invalid)
    assert remove(client, 2, ZERO_UUID)[1] == "Remove voter request didn't include a valid voter"
    assert "default listener ListenerName(CONTROLLER)" in add(client, 4, some, listener="OTHER")[1]


def test_voters_change_at_kraft_version_1(client: Wire) -> None:
    assert update(client, ("kraft.version", 1, UPGRADE)).error_code == 0
    refused = update(client, ("kraft.version", 0, DOWNGRADE))
    assert refused.error_message.endswith("Can't downgrade the version of this feature.")

    def roles() -> tuple[dict[int, uuid.UUID], list[int]]:
        (part,) = quorum(client).topics[0].partitions
        voters = {voter.replica_id: voter.replica_directory_id for voter in part.current_voters}
        return voters, [one.replica_id for one in part.observers]

    voters, _ = roles()
    assert sorted(voters) == [1, 2, 3]
    assert ZERO_UUID not in voters.values()
    assert remove(client, 3, uuid.UUID(int=5))[0] == Code.VOTER_NOT_FOUND
    assert remove(client, 3, voters[3]) == (0, None)
    assert roles() == ({1: voters[1], 2: voters[2]}, [3])
    assert add(client, 2, voters[2])[0] == Code.DUPLICATE_VOTER
    assert add(client, 4, uuid.UUID(int=5))[0] == Code.REQUEST_TIMED_OUT  # there is no such node
    assert add(client, 3, voters[3]) == (0, None)
    assert roles() == (voters, [])


# Brokers


def brokers(client: Wire) -> list[tuple[int, bool]]:
    reply = client.ask(DescribeClusterRequest[2](include_fenced_brokers=True))
    return [(one.broker_id, one.is_fenced) for one in reply.brokers]


def unregister(client: Wire, node: int) -> Any:
    reply = client.ask(UnregisterBrokerRequest[0](broker_id=node))
    return reply.error_code, reply.error_message


def test_a_stopped_broker_is_listed_as_fenced_until_it_is_unregistered(broker: Broker, client: Wire) -> None:
    broker.stop_node(3)
    assert brokers(client) == [(1, False), (2, False), (3, True)]
    assert unregister(client, 3) == (0, "")
    assert brokers(client) == [(1, False), (2, False)]
    again = Code.BROKER_ID_NOT_REGISTERED, "Broker ID 3 is not currently registered"
    assert unregister(client, 3) == again
    assert unregister(client, 77)[0] == again[0]
    broker.start_node(3)
    assert brokers(client) == [(1, False), (2, False), (3, False)]


def test_an_unregistered_broker_that_runs_leads_nothing(broker: Broker, client: Wire) -> None:
    broker.create_topic("led", 3, replication_factor=2)
    assert {broker.leader("led", index) for index in range(3)} == {1, 2, 3}
    assert unregister(client, 2) == (0, "")
    assert {broker.leader("led", index) for index in range(3)} == {1, 3}
    reply = client.ask(MetadataRequest[12](topics=[], allow_auto_topic_creation=False))
    assert [one.node_id for one in reply.brokers] == [1, 3]
    with wire(broker, 2) as other:
        assert brokers(other) == [(1, False), (3, False)]


# Directories


@pytest.mark.parametrize("version", [1, 2])
def test_a_replica_can_be_moved_only_to_where_it_is(broker: Broker, client: Wire, version: int) -> None:
    broker.create_topic("kept", 1, replication_factor=3)
    (here,) = client.ask(DescribeLogDirsRequest[4](topics=[("kept", [0])])).results

    def move(*dirs: tuple[str, list[tuple[str, list[int]]]]) -> list[tuple[str, int, int]]:
        reply = client.ask(AlterReplicaLogDirsRequest[version](dirs=list(dirs)))
        return [(one.topic_name, p.partition_index, p.error_code) for one in reply.results for p in one.partitions]

    unknown, absent = Code.UNKNOWN_TOPIC_OR_PARTITION, Code.LOG_DIR_NOT_FOUND
    assert move((here.log_dir, [("kept", [0, 9]), ("nope", [0])])) == [
        ("kept", 0, 0),
        ("kept", 9, unknown),
        ("nope", 0, unknown),
    ]
    assert move(("/nowhere", [("kept", [0])])) == [("kept", 0, absent)]
    assert move((here.log_dir, [("kept", [0])]), ("/nowhere", [("kept", [0])])) == [("kept", 0, absent)]
    assert move() == []
