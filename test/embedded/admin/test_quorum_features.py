"""Features, the quorum, registrations and raw requests through `KafkaAdminClient`, against the embedded broker."""

from __future__ import annotations

import uuid

import pytest

from kafka import KafkaAdminClient
from kafka.admin import RaftVoterEndpoint, UpdateFeatureType
from kafka.broker import Broker
from kafka.errors import (
    BrokerIdNotRegisteredError,
    CoordinatorNotAvailableError,
    IllegalArgumentError,
    InvalidUpdateVersionError,
    KafkaError,
    MismatchedEndpointTypeError,
    UnsupportedVersionError,
)
from kafka.protocol.admin import ListGroupsRequest
from kafka.protocol.metadata import MetadataRequest


def test_features_are_described_and_changed(admin: KafkaAdminClient):
    found = admin.describe_features()
    assert found.supported_features.keys() >= {"group.version", "metadata.version"}
    level = found.finalized_features["group.version"].max_version
    assert level == 1
    assert found == admin.describe_features(send_request_to_controller=True)
    assert admin.update_features({"group.version": ("safe-downgrade", 0)}) == {"group.version": "OK"}
    after = admin.describe_features()
    assert "group.version" not in after.finalized_features
    assert after.finalized_features_epoch > found.finalized_features_epoch
    assert admin.update_features({"group.version": 1})["group.version"].ok


def test_a_broker_is_not_a_controller(broker: Broker):
    with pytest.raises(MismatchedEndpointTypeError, match="give it in bootstrap_servers"):
        KafkaAdminClient(bootstrap_controllers=broker.bootstrap_servers)


def test_a_feature_update_is_checked_without_being_made(admin: KafkaAdminClient):
    wanted = {"group.version": (UpdateFeatureType.SAFE_DOWNGRADE, 0)}
    assert admin.update_features(wanted, validate_only=True) == {"group.version": "OK"}
    assert "group.version" in admin.describe_features().finalized_features


def test_a_feature_that_cannot_be_updated_is_named(admin: KafkaAdminClient):
    outcome = admin.update_features({"group.version": 0}, raise_errors=False)["group.version"]
    assert isinstance(outcome.error, InvalidUpdateVersionError)
    assert "downgrade" in outcome
    for wrong, error in (("1", TypeError), (-1, IllegalArgumentError), (("sideways", 1), IllegalArgumentError)):
        with pytest.raises(error):
            admin.update_features({"group.version": wrong})  # type: ignore[dict-item]


def test_the_quorum_is_described(admin: KafkaAdminClient, broker: Broker):
    quorum = admin.describe_metadata_quorum()
    voters = [voter["replica_id"] for voter in quorum.voters]
    assert quorum.leader_id == admin.describe_cluster().controller_id
    assert quorum.leader_id in voters
    assert quorum.leader_epoch >= 0
    assert quorum.high_watermark >= 0
    assert {node.node_id for node in quorum.nodes} >= set(voters)
    assert all(listener.port for node in quorum.nodes for listener in node.listeners)


def test_voters_are_added_and_removed_as_the_cluster_allows(admin: KafkaAdminClient):
    """What the embedded broker decides is its own matter; an outcome is an exception or nothing."""
    voter = admin.describe_metadata_quorum().voters[-1]
    endpoint = RaftVoterEndpoint(name="CONTROLLER", host="127.0.0.1", port=9093)
    with pytest.raises(KafkaError, match=r"add_raft_voter\(\)|cluster"):
        admin.add_raft_voter(99, uuid.uuid4(), [endpoint], cluster_id="another-cluster")
    with pytest.raises(KafkaError):
        admin.remove_raft_voter(voter.replica_id, uuid.uuid4())
    with pytest.raises(TypeError, match=r"uuid\.UUID"):
        admin.remove_raft_voter(1, "AAAA")  # type: ignore[arg-type]
    with pytest.raises(IllegalArgumentError, match="listener's name"):
        admin.add_raft_voter(1, uuid.uuid4(), ["host:9093"])  # type: ignore[list-item]


def test_a_broker_that_was_shut_down_is_unregistered(admin: KafkaAdminClient, broker: Broker):
    broker.stop_node(3)
    admin.unregister_broker(3)
    with pytest.raises(BrokerIdNotRegisteredError, match="3"):
        admin.unregister_broker(3)
    cluster = admin.describe_cluster(include_fenced_brokers=True)
    assert [node.broker_id for node in cluster.brokers] == [1, 2]


def test_versions_of_apis_are_known(admin: KafkaAdminClient):
    versions = admin.api_versions()
    assert versions[MetadataRequest.API_KEY][1] >= 12
    assert admin.get_broker_version_data(2).ranges == versions


def test_requests_are_sent_as_they_are(admin: KafkaAdminClient, broker: Broker):
    assert len(admin.send_request(MetadataRequest(topics=None)).brokers) == 3
    responses = admin.send_requests([(ListGroupsRequest(), node) for node in (1, 2)], lambda found: found.groups)
    assert responses == [[], []]
    broker.stop_node(3)
    found = admin.broadcast_request(ListGroupsRequest(), [1, 3], timeout_ms=1500)
    assert found[1].groups == []
    assert isinstance(found[3], KafkaError)
    with pytest.raises(TypeError):
        admin.send_request("Metadata")


def test_coordinators_are_found(admin: KafkaAdminClient, broker: Broker):
    found = admin.find_coordinators([f"g{number}" for number in range(20)])
    assert set(found.values()) == {1, 2, 3}
    assert admin.find_coordinator("g0") == found["g0"]
    assert admin.find_coordinator("t", "transaction") in {1, 2, 3}
    with pytest.raises(IllegalArgumentError, match="coordinator_type"):
        admin.find_coordinator("g", "nonsense")
    broker.fail("FindCoordinator", 15, times=100)
    answers = admin.find_coordinators(["g0"], timeout_ms=2000, raise_errors=False)
    assert isinstance(answers["g0"], CoordinatorNotAvailableError)


def test_an_old_broker_lacks_them():
    with Broker(as_version="2.6") as broker, KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        for call, release in (
            (admin.describe_features, "2.7"),
            (admin.describe_metadata_quorum, "3.3"),
            (admin.telemetry_subscription, "3.7"),
            (admin.list_client_metrics_resources, "3.7"),
        ):
            with pytest.raises(UnsupportedVersionError, match=f"needs Kafka {release}"):
                call()
