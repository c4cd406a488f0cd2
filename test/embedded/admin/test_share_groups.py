"""Share groups, streams groups and client metrics through `KafkaAdminClient`, against the embedded broker."""

from __future__ import annotations

from typing import Any

import pytest

from kafka import KafkaAdminClient, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource
from kafka.broker import Broker
from kafka.errors import (
    GroupAuthorizationFailedError,
    GroupIdNotFoundError,
    KafkaError,
    NoError,
    NonEmptyGroupError,
    UnknownTopicOrPartitionError,
)
from kafka.protocol.share import ShareGroupHeartbeatRequest
from kafka.protocol.streams import StreamsGroupHeartbeatRequest

FIRST, SECOND = TopicPartition("events", 0), TopicPartition("events", 1)
MEMBER = "AAAAAAAAAAAAAAAAAAAAAQ"


def join(admin: KafkaAdminClient, epoch: int = 0) -> Any:
    """Have a member join a share group, or leave it with epoch -1."""
    response = admin.send_request(
        ShareGroupHeartbeatRequest(
            group_id="shared", member_id=MEMBER, member_epoch=epoch, subscribed_topic_names=["events"] * (epoch == 0)
        )
    )
    assert response.error_code == 0
    return response


def test_a_share_group_is_described_with_its_members(admin: KafkaAdminClient):
    join(admin)
    found = admin.describe_share_groups(["shared", "nobody"], include_authorized_operations=True)
    group = found["shared"]
    (member,) = group.members
    assert (group.group_state, group.group_type, group.ok) == ("Stable", "share", True)
    assert (member.member_id, member.topics) == (MEMBER, ["events"])
    assert member.assigned_partitions == [FIRST, SECOND]
    assert group.coordinator_id == admin.find_coordinator("shared")
    assert isinstance(found["nobody"].error, GroupIdNotFoundError)
    assert [one.group_id for one in admin.list_groups(types_filter=["share"])] == ["shared"]


def test_offsets_of_share_groups_are_altered_listed_and_deleted(admin: KafkaAdminClient, broker: Broker):
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for _ in range(5):
            producer.send("events", b"record", partition=0)
    missing = TopicPartition("evnets", 0)
    altered = admin.alter_share_group_offsets("shared", {FIRST: 3, SECOND: 0, missing: 0}, raise_errors=False)
    assert altered == {FIRST: NoError, SECOND: NoError, missing: UnknownTopicOrPartitionError}
    found = admin.list_share_group_offsets({"shared": [FIRST]})
    assert found["shared"][FIRST].start_offset == 3
    assert {one.start_offset for one in admin.list_share_group_offsets("shared")["shared"].values()} == {3, 0}
    assert admin.list_share_group_offsets(["nobody"]) == {"nobody": {}}
    broker.fail("DescribeShareGroupOffsets", 30)
    refused = admin.list_share_group_offsets("shared", raise_errors=False)["shared"]
    assert isinstance(refused, GroupAuthorizationFailedError)
    deleted = admin.delete_share_group_offsets("shared", ["events", "evnets"], raise_errors=False)
    assert deleted == {"events": NoError, "evnets": UnknownTopicOrPartitionError}
    assert admin.delete_share_groups(["shared"]) == {"shared": "OK"}


def test_a_share_group_with_members_keeps_its_offsets(admin: KafkaAdminClient):
    join(admin)
    with pytest.raises(NonEmptyGroupError):
        admin.alter_share_group_offsets("shared", {FIRST: 3})
    with pytest.raises(NonEmptyGroupError):
        admin.delete_share_group_offsets("shared", ["events"])
    assert isinstance(admin.delete_share_groups(["shared"], raise_errors=False)["shared"].error, NonEmptyGroupError)
    join(admin, -1)
    assert admin.describe_share_groups(["shared"])["shared"].members == []


def test_a_streams_group_is_described_with_its_topology(admin: KafkaAdminClient):
    kind = StreamsGroupHeartbeatRequest
    part = kind.Subtopology(
        subtopology_id="counts",
        source_topics=["events"],
        source_topic_regex=[],
        state_changelog_topics=[
            kind.TopicInfo(
                name="app-store-changelog",
                partitions=0,
                replication_factor=1,
                topic_configs=[kind.KeyValue(key="cleanup.policy", value="compact")],
            )
        ],
        repartition_sink_topics=[],
        repartition_source_topics=[],
        copartition_groups=[],
    )
    response = admin.send_request(
        kind(
            group_id="app",
            member_id=MEMBER,
            member_epoch=0,
            rebalance_timeout_ms=30_000,
            topology=kind.Topology(epoch=0, subtopologies=[part]),
            active_tasks=[],
            standby_tasks=[],
            warmup_tasks=[],
            process_id="process",
            client_tags=[kind.KeyValue(key="zone", value="a")],
        )
    )
    assert response.error_code == 0
    found = admin.describe_streams_groups(["app", "nobody"])
    group = found["app"]
    assert group.ok, group.error
    (member,) = group.members
    (part,) = group.subtopologies
    assert (part.subtopology_id, part.source_topics) == ("counts", ["events"])
    changelog = part.state_changelog_topics["app-store-changelog"]
    assert (changelog.replication_factor, changelog.topic_configs) == (1, {"cleanup.policy": "compact"})
    assert (member.member_id, member.process_id, member.client_tags) == (MEMBER, "process", {"zone": "a"})
    assert (group.topology_epoch, group.coordinator_id) == (0, admin.find_coordinator("app"))
    assert isinstance(found["nobody"].error, GroupIdNotFoundError)


def test_offsets_of_streams_groups_are_read_like_offsets_of_groups(admin: KafkaAdminClient):
    assert admin.alter_streams_group_offsets("app", {FIRST: 3}) == {FIRST: NoError}
    assert admin.list_streams_group_offsets("app")["app"][FIRST].offset == 3
    assert admin.delete_streams_group_offsets("app", [FIRST]) == {FIRST: NoError}
    admin.alter_consumer_group_offsets("app", {FIRST: 3})
    assert admin.delete_consumer_group_offsets("app", [FIRST]) == {FIRST: NoError}
    assert isinstance(admin.delete_streams_groups(["nobody"], raise_errors=False)["nobody"].error, GroupIdNotFoundError)


def test_metrics_are_subscribed_to_and_pushed():
    with (
        Broker(configs={"metric.reporters": "com.example.Reporter"}) as broker,
        KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers, enable_metrics_push=False) as admin,
    ):
        subscription = ConfigResource("client_metrics", "own", {"metrics": "org.apache.kafka.", "interval.ms": 1000})
        assert admin.alter_configs([subscription]) == {"client_metrics": {"own": "OK"}}
        assert admin.list_client_metrics_resources() == ["own"]
        found = admin.telemetry_subscription()
        assert found.requested_metrics == ["org.apache.kafka."]
        assert found.push_interval_ms == 1000
        assert admin.client_instance_id() == found.client_instance_id
        admin.push_telemetry(found, b"", terminating=True)
        with pytest.raises(KafkaError):
            admin.push_telemetry(found, b"after the last push")


def test_levels_of_loggers_are_a_configuration(admin: KafkaAdminClient):
    (name, *_) = admin.describe_configs([ConfigResource("broker_logger", 1)], config_filter="all")["broker_logger"]["1"]
    resource = ConfigResource("broker_logger", 1, {name: "DEBUG"})
    assert admin.alter_configs([resource], raise_on_unknown=False)["broker_logger"]["1"].ok
    found = admin.describe_configs([ConfigResource("broker_logger", 1, [name])], config_filter="all")
    assert found["broker_logger"]["1"][name].value == "DEBUG"
