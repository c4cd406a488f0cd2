"""Programs as they were written for kafka-python 2.0, 2.2, 2.3 and 3.0, on the same client."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import pytest

from kafka import KafkaConsumer, KafkaProducer
from kafka.broker import Broker

SECURED = {"authorizer.class.name": "StandardAuthorizer", "super.users": "User:ANONYMOUS"}


@pytest.fixture
def servers() -> Iterator[str]:
    with Broker(nodes=3, configs=SECURED) as broker:
        yield broker.bootstrap_servers


def produce(servers: str, topic: str, count: int) -> None:
    producer = KafkaProducer(bootstrap_servers=servers)
    for _ in range(count):
        producer.send(topic, b"value", partition=0)
    producer.flush()
    producer.close()


def test_a_program_for_2_0(servers: str):
    from kafka.admin import (
        ACL,
        ACLFilter,
        ACLOperation,
        ACLPermissionType,
        ConfigResource,
        ConfigResourceType,
        KafkaAdminClient,
        NewPartitions,
        NewTopic,
        ResourcePattern,
        ResourcePatternFilter,
    )
    from kafka.admin.acl_resource import ResourceType
    from kafka.errors import NoError, TopicAlreadyExistsError
    from kafka.structs import OffsetAndMetadata, TopicPartition

    admin = KafkaAdminClient(bootstrap_servers=servers, client_id="setup", api_version_auto_timeout_ms=5000)
    try:
        created = admin.create_topics([NewTopic(name="orders", num_partitions=2, replication_factor=1)])
        assert created.topic_errors[0][1] == 0
        try:
            admin.create_topics(new_topics=[NewTopic("orders", 2, 1)], timeout_ms=5000, validate_only=False)
        except TopicAlreadyExistsError:
            pass
        else:
            raise AssertionError("TopicAlreadyExistsError was not raised")
        admin.create_partitions({"orders": NewPartitions(3)})
        (topic,) = admin.describe_topics(["orders"])
        assert (topic["topic"], topic["error_code"], len(topic["partitions"])) == ("orders", 0, 3)
        assert {"partition", "leader", "replicas", "isr"} <= {
            key for key in ("partition", "leader", "replicas", "isr") if topic["partitions"][0][key] is not None
        }
        cluster = admin.describe_cluster()
        assert [broker["node_id"] for broker in cluster["brokers"]] == [1, 2, 3]
        assert cluster["controller_id"] in {1, 2, 3}

        resource = ConfigResource(ConfigResourceType.TOPIC, "orders", configs={"retention.ms": "1000"})
        admin.alter_configs([resource])
        (reply,) = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, "orders")])
        _, _, _, name, entries = reply.resources[0]
        assert name == "orders"
        assert {entry[0]: entry[1] for entry in entries}["retention.ms"] == "1000"

        acl = ACL(
            principal="User:test",
            host="*",
            operation=ACLOperation.READ,
            permission_type=ACLPermissionType.ALLOW,
            resource_pattern=ResourcePattern(ResourceType.TOPIC, "orders"),
        )
        result = admin.create_acls([acl])
        assert (len(result["succeeded"]), len(result["failed"])) == (1, 0)
        acl_filter = ACLFilter(
            principal=None,
            host="*",
            operation=ACLOperation.ANY,
            permission_type=ACLPermissionType.ANY,
            resource_pattern=ResourcePatternFilter(ResourceType.TOPIC, "orders"),
        )
        acls, error = admin.describe_acls(acl_filter)
        assert (acls, error) == ([acl], NoError)
        for _filter, matching, filter_error in admin.delete_acls([acl_filter]):
            assert (len(matching), filter_error) == (1, NoError)

        produce(servers, "orders", 3)
        consumer = KafkaConsumer(
            "orders",
            bootstrap_servers=servers,
            group_id="readers",
            auto_offset_reset="earliest",
            consumer_timeout_ms=30_000,
        )
        assert len([message.value for message in islice(consumer, 3)]) == 3
        (group,) = admin.describe_consumer_groups(["readers"])
        assert (group.group, group.state, group.error_code) == ("readers", "Stable", 0)
        assert group.members[0].member_assignment.assignment[0][0] == "orders"
        assert group.members[0].member_metadata.subscription == ["orders"]
        consumer.close()
        assert ("readers", "consumer") in admin.list_consumer_groups()
        offsets = admin.list_consumer_group_offsets("readers")
        assert offsets[TopicPartition("orders", 0)][:2] == OffsetAndMetadata(3, "")[:2]
        assert dict(admin.delete_consumer_groups(["readers"]))["readers"] is NoError
        deleted = admin.delete_topics(["orders"], timeout_ms=5000)
        assert deleted.topic_error_codes == [("orders", 0)]
        assert "orders" not in admin.list_topics()
    finally:
        admin.close()
        admin.close()


def test_a_program_for_2_2(servers: str):
    from kafka import KafkaAdminClient, TopicPartition
    from kafka.admin import NewTopic
    from kafka.errors import BrokerResponseError
    from kafka.protocol.admin import ElectionType

    admin = KafkaAdminClient(bootstrap_servers=servers, receive_message_max_bytes=1_000_000)
    admin.create_topics([NewTopic("events", 2, 3)])
    produce(servers, "events", 10)
    partition = TopicPartition("events", 0)
    deleted = admin.delete_records({partition: 4}, timeout_ms=10_000)
    assert deleted[partition]["low_watermark"] == 4
    assert {"low_watermark", "error_code", "partition_index"} <= deleted[partition].keys()
    try:
        admin.delete_records({partition: 400, TopicPartition("events", 1): 400})
    except BrokerResponseError:
        pass
    else:
        raise AssertionError("BrokerResponseError was not raised")
    response = admin.perform_leader_election(ElectionType.PREFERRED, {"events": [0, 1]})
    for result in response.replica_election_results:
        assert result.topic == "events"
    directories = admin.describe_log_dirs()
    names = {topic[0] for entry in directories.log_dirs for topic in entry[2]}
    assert "events" in names
    admin.close()


def test_a_program_for_2_3(servers: str):
    from kafka.admin import KafkaAdminClient, NewTopic
    from kafka.admin.acl_resource import ACLOperation, valid_acl_operations
    from kafka.protocol.admin import ListGroupsRequest
    from kafka.protocol.metadata import MetadataRequest

    admin = KafkaAdminClient(bootstrap_servers=servers)
    admin.create_topics([NewTopic("events"), NewTopic("logs", topic_configs={"cleanup.policy": "compact"})])
    (topic,) = admin.describe_topics(["events"])
    assert "DESCRIBE" in topic["authorized_operations"]
    assert valid_acl_operations([3]) == {ACLOperation.READ}
    with KafkaConsumer(
        "events", bootstrap_servers=servers, group_id="readers", auto_offset_reset="earliest"
    ) as consumer:
        while not consumer.assignment():
            consumer.poll(100)
        (group,) = admin.describe_consumer_groups(["readers"], include_authorized_operations=True)
        assert group.members[0].member_metadata.topics == ["events"]
        assert "DELETE" in group.authorized_operations
    response = admin.send_request(MetadataRequest[1]([]))
    assert len(response.brokers) == 3
    counts = admin.send_requests([(ListGroupsRequest[0](), 1)], response_fn=lambda found: len(found.groups))
    assert counts in ([0], [1])
    admin.close()


def test_a_program_for_3_0(servers: str):
    from kafka import KafkaAdminClient, OffsetSpec, TopicPartition
    from kafka.admin import (
        ConfigResource,
        MemberToRemove,
        ScramMechanism,
        UserScramCredentialDeletion,
        UserScramCredentialUpsertion,
    )
    from kafka.errors import NoError

    with KafkaAdminClient(bootstrap_servers=servers, bootstrap_timeout_ms=10_000) as admin:
        created = admin.create_topics(
            {"events": {"num_partitions": 2, "replication_factor": 1, "configs": {"retention.ms": "1000"}}},
            wait_for_metadata=True,
        )
        assert created["topics"][0]["num_partitions"] == 2
        admin.wait_for_topics(["events"], timeout_ms=5000)
        (topic,) = admin.describe_topics(["events"])
        assert topic["partitions"][0]["leader_id"] in {1, 2, 3}
        assert "leader" not in topic["partitions"][0]
        cluster = admin.describe_cluster()
        assert "node_id" not in cluster["brokers"][0]
        assert cluster["brokers"][0]["broker_id"] == 1
        page = admin.describe_topic_partitions(["events"], response_partition_limit=1)
        assert page["next_cursor"]["partition_index"] == 1
        assert admin.alter_configs([ConfigResource("TOPIC", "events", {"segment.ms": "5000"})]) == {
            "topic": {"events": "OK"}
        }
        found = admin.describe_configs([ConfigResource("TOPIC", "events")], config_filter="dynamic")
        assert set(found["topic"]["events"]) >= {"retention.ms", "segment.ms"}
        admin.reset_configs([ConfigResource("TOPIC", "events", ["segment.ms"])])

        produce(servers, "events", 5)
        first = TopicPartition("events", 0)
        assert admin.list_partition_offsets({first: OffsetSpec.LATEST})[first].offset == 5
        assert admin.reset_group_offsets("readers", {first: OffsetSpec.EARLIEST}) == {
            first: {"error": NoError, "offset": 0}
        }
        assert [group["group_id"] for group in admin.list_groups(states_filter=["Empty"])] == ["readers"]
        assert admin.list_group_offsets({"readers": [first]})["readers"][first].offset == 0
        assert admin.delete_group_offsets("readers", [first]) == {first: NoError}
        with KafkaConsumer("events", bootstrap_servers=servers, group_id="readers") as consumer:
            while not consumer.assignment():
                consumer.poll(100)
            group = admin.describe_groups(["readers"])["readers"]
            (member,) = group["members"]
            assert group["group_state"] == "Stable"
            assert member["member_metadata"]["topics"] == ["events"]
            assigned = member["member_assignment"]["assigned_partitions"]
            assert [(entry["topic"], entry["partitions"]) for entry in assigned] == [("events", [0, 1])]
            removed = admin.remove_group_members("readers", [MemberToRemove(member["member_id"])])
            assert removed == {member["member_id"]: NoError}
        assert admin.delete_groups(["readers"]) == {"readers": "OK"}

        assert admin.alter_partition_reassignments({first: [2, 3]}) == {first: None}
        assert admin.list_partition_reassignments() == {}
        assert admin.elect_leaders("PREFERRED", {"events": [0]}, raise_errors=True).error_code == 0
        assert {entry["broker"] for entry in admin.describe_log_dirs(brokers=[1, 2])} == {1, 2}
        secret = UserScramCredentialUpsertion("alice", ScramMechanism.SCRAM_SHA_256, "secret")
        assert admin.alter_user_scram_credentials([secret]) == {"alice": None}
        (info,) = admin.describe_user_scram_credentials(["alice"])["alice"]["credential_infos"]
        assert info["iterations"] == 4096
        admin.alter_user_scram_credentials([UserScramCredentialDeletion("alice", ScramMechanism.SCRAM_SHA_256)])
        assert admin.list_transactions() == {1: [], 2: [], 3: []}
        assert admin.find_hanging_transactions() == []
        assert admin.describe_metadata_quorum()["leader_id"] in {1, 2, 3}
        assert admin.update_features({"group.version": 1}, validate_only=True) == {"group.version": "OK"}
        assert admin.api_versions()[3][1] >= 12
        deleted = admin.delete_topics(["events"], raise_errors=False)
        assert deleted["topics"][0]["error_code"] == 0
        assert deleted["topics"][0]["name"] == "events"
