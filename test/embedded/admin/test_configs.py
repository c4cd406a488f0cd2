"""Configuration through `KafkaAdminClient`, against the embedded broker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kafka import KafkaAdminClient
from kafka.admin import AlterConfigOp, ConfigFilterType, ConfigResource, ConfigResourceType, ConfigSourceType
from kafka.broker import Broker
from kafka.errors import (
    IllegalArgumentError,
    InvalidConfigurationError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
)

EVENTS = ("topic", "events")


pytestmark = pytest.mark.kafka_broker(nodes=3, topics=["events"])


@pytest.fixture
def admin(broker: Broker) -> Iterator[KafkaAdminClient]:
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        yield admin


def own(admin: KafkaAdminClient, kind: str = "topic", name: str = "events") -> dict[str, Any]:
    """The settings that were set for a resource itself, and not for all brokers."""
    found = admin.describe_configs([ConfigResource(kind, name)], config_filter="dynamic")
    default = ConfigSourceType.DYNAMIC_DEFAULT_BROKER_CONFIG
    return {key: entry.value for key, entry in found[kind][name].items() if entry.config_source != default}


def test_settings_are_changed_one_by_one(admin: KafkaAdminClient):
    assert admin.alter_configs([ConfigResource(*EVENTS, {"retention.ms": 5000})]) == {"topic": {"events": "OK"}}
    admin.alter_configs([ConfigResource(*EVENTS, {"cleanup.policy": (AlterConfigOp.APPEND, "compact")})])
    assert own(admin) == {"retention.ms": "5000", "cleanup.policy": "delete,compact"}
    admin.alter_configs([ConfigResource(*EVENTS, {"cleanup.policy": ("subtract", "delete"), "retention.ms": None})])
    assert own(admin) == {"cleanup.policy": "compact"}


def test_settings_are_replaced_and_reset(admin: KafkaAdminClient):
    admin.alter_configs([ConfigResource(*EVENTS, {"retention.ms": 5000, "segment.ms": 70_000})])
    admin.replace_configs([ConfigResource(*EVENTS, {"retention.ms": 6000})])
    assert own(admin) == {"retention.ms": "6000"}
    admin.alter_configs([ConfigResource(*EVENTS, {"segment.ms": 70_000, "flush.ms": 7})])
    admin.reset_configs([ConfigResource(*EVENTS, ["flush.ms"])])
    assert own(admin) == {"retention.ms": "6000", "segment.ms": "70000"}
    admin.reset_configs([ConfigResource(*EVENTS)])
    assert own(admin) == {}


def test_before_incremental_changes_the_present_settings_are_kept(admin: KafkaAdminClient, broker: Broker):
    admin.alter_configs([ConfigResource(*EVENTS, {"retention.ms": 5000})])
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers, api_version=(2, 2)) as old:
        old.alter_configs([ConfigResource(*EVENTS, {"cleanup.policy": (AlterConfigOp.APPEND, ["compact"])})])
        assert own(admin)["retention.ms"] == "5000"
        old.alter_configs([ConfigResource(*EVENTS, {"retention.ms": None})])
        assert "retention.ms" not in own(admin)
        with pytest.raises(UnsupportedVersionError, match=r"needs Kafka 2\.3"):
            old.alter_configs([ConfigResource(*EVENTS, {"flush.ms": 7})], incremental=True)
    assert "IncrementalAlterConfigs" in {request.name for request in broker.requests}
    broker.forget_requests()
    admin.alter_configs([ConfigResource(*EVENTS, {"flush.ms": 7})], incremental=False)
    assert "IncrementalAlterConfigs" not in {request.name for request in broker.requests}
    assert own(admin)["flush.ms"] == "7"


def test_a_broker_is_asked_about_its_own_settings(admin: KafkaAdminClient, broker: Broker):
    broker.forget_requests()
    found = admin.describe_configs([ConfigResource("broker", node) for node in broker.node_ids], config_filter="all")
    asked = [request.node_id for request in broker.requests if request.name == "DescribeConfigs"]
    assert sorted(asked) == broker.node_ids
    assert {node: found["broker"][str(node)]["broker.id"].value for node in broker.node_ids} == {
        node: str(node) for node in broker.node_ids
    }


def test_a_broker_and_all_brokers_are_changed(admin: KafkaAdminClient):
    admin.alter_configs([ConfigResource("broker", 2, {"log.retention.ms": 8000})])
    admin.alter_configs([ConfigResource("broker", "", {"log.retention.ms": 9000})])
    found = admin.describe_configs([ConfigResource("broker", node) for node in (1, 2)], config_filter="dynamic")
    settings = [found["broker"][node]["log.retention.ms"] for node in "12"]
    assert [entry.value for entry in settings] == ["9000", "8000"]
    assert settings[0].config_source is ConfigSourceType.DYNAMIC_DEFAULT_BROKER_CONFIG


def test_a_setting_that_a_broker_does_not_have_is_refused(admin: KafkaAdminClient):
    hint = r"broker 2 has no setting 'log\.retentoin\.ms': did you mean 'log\.retention\.ms'\?"
    with pytest.raises(InvalidConfigurationError, match=hint):
        admin.alter_configs([ConfigResource("broker", 2, {"log.retentoin.ms": 8000})])
    with pytest.raises(InvalidConfigurationError, match="topic 'events'"):
        admin.alter_configs([ConfigResource(*EVENTS, {"retentoin.ms": 8000})])


@pytest.mark.parametrize(
    "name",
    [
        "listener.name.internal.ssl.keystore.location",
        "listener.name.internal.scram-sha-256.sasl.jaas.config",
        "listener.name.internal.max.connections",
    ],
)
def test_a_setting_of_a_listener_that_a_broker_lists_only_once_it_is_set_is_set(admin: KafkaAdminClient, name: str):
    admin.alter_configs([ConfigResource("broker", 2, {name: "5"})])
    found = admin.describe_configs([ConfigResource("broker", 2)], config_filter="dynamic")
    assert name in found["broker"]["2"]
    admin.reset_configs([ConfigResource("broker", 2, {name: None})])
    found = admin.describe_configs([ConfigResource("broker", 2)], config_filter="dynamic")
    assert name not in found["broker"].get("2", {})


def test_a_setting_of_a_listener_that_no_broker_has_is_refused(admin: KafkaAdminClient):
    hint = r"did you mean 'listener\.name\.internal\.ssl\.keystore\.location'"
    with pytest.raises(InvalidConfigurationError, match=hint):
        admin.alter_configs([ConfigResource("broker", 2, {"listener.name.internal.ssl.keystoer.location": "x"})])


def test_a_throttle_that_a_broker_lists_only_once_it_is_set_is_set(admin: KafkaAdminClient):
    admin.alter_configs([ConfigResource("broker", 2, {"leader.replication.throttled.rate": 1000})])
    found = admin.describe_configs([ConfigResource("broker", 2)], config_filter="dynamic")
    assert found["broker"]["2"]["leader.replication.throttled.rate"].value == "1000"


def test_validating_changes_nothing(admin: KafkaAdminClient):
    assert admin.alter_configs([ConfigResource(*EVENTS, {"flush.ms": 7})], validate_only=True)["topic"]["events"].ok
    assert own(admin) == {}


def test_one_bad_resource_does_not_lose_the_others(admin: KafkaAdminClient):
    resources = [ConfigResource("topic", "missing", {"flush.ms": 7}), ConfigResource(*EVENTS, {"flush.ms": 8})]
    with pytest.raises(UnknownTopicOrPartitionError, match="topic 'missing'") as caught:
        admin.alter_configs(resources)
    results = caught.value.results
    assert results["topic"]["events"] == "OK"
    assert isinstance(results["topic"]["missing"].error, UnknownTopicOrPartitionError)
    assert sorted(code for code, *_ in results.resources) == [0, 3]
    assert own(admin) == {"flush.ms": "8"}
    found = admin.describe_configs(resources, raise_errors=False)
    assert [resource.resource_name for resource in found.resources.failed] == ["missing"]


def test_the_replies_are_there_as_in_kafka_python_2(admin: KafkaAdminClient):
    found = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, "events", ["retention.ms"])])
    assert [reply.resources[0][3] for reply in found] == ["events"]
    code, _, kind, name, entries = found[0].resources[0]
    assert (code, kind, name, [entry[0] for entry in entries]) == (0, 2, "events", ["retention.ms"])
    assert list(admin.describe_configs([ConfigResource(*EVENTS)], config_filter="modified")) == ["topic"]


def test_settings_are_filtered_by_where_they_come_from(admin: KafkaAdminClient):
    admin.alter_configs([ConfigResource(*EVENTS, {"flush.ms": 7})])

    def names(wanted: ConfigFilterType) -> set[str]:
        return set(admin.describe_configs([ConfigResource(*EVENTS)], config_filter=wanted)["topic"]["events"])

    assert names(ConfigFilterType.DYNAMIC) - {"min.insync.replicas"} == {"flush.ms"}
    assert "flush.ms" in names(ConfigFilterType.MODIFIED)
    assert "flush.ms" not in names(ConfigFilterType.DEFAULT) | names(ConfigFilterType.STATIC)
    assert names(ConfigFilterType.DEFAULT) | names(ConfigFilterType.MODIFIED) == names(ConfigFilterType.ALL)


def test_synonyms_and_documentation_come_when_they_are_asked_for(admin: KafkaAdminClient):
    admin.alter_configs([ConfigResource(*EVENTS, {"retention.ms": 5000})])
    resource = [ConfigResource(*EVENTS, ["retention.ms"])]
    plain = admin.describe_configs(resource, config_filter="all")["topic"]["events"]["retention.ms"]
    full = admin.describe_configs(resource, True, "all", include_documentation=True)["topic"]["events"]["retention.ms"]
    assert not plain.synonyms
    assert not plain.documentation
    assert (full.synonyms[0].name, full.synonyms[0].value) == ("retention.ms", "5000")
    assert full.documentation


def test_resources_that_have_a_configuration_are_listed(admin: KafkaAdminClient):
    assert admin.list_config_resources(["topic"]) == {"topic": ["events"]}
    assert sorted(admin.list_config_resources(["broker"])["broker"]) == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("resources", "error", "text"),
    [
        ([ConfigResource("topic", "a"), ConfigResource("topic", "a")], IllegalArgumentError, "more than once"),
        ([ConfigResource("broker", "one")], IllegalArgumentError, "must be its id, not 'one'"),
        (["events"], TypeError, "tuples of type and name"),
        ([ConfigResource("topic", "a", ["flush.ms"])], TypeError, "must be a dict"),
    ],
)
def test_wrong_resources_are_refused(admin: KafkaAdminClient, resources: Any, error: type[Exception], text: str):
    with pytest.raises(error, match=text):
        admin.alter_configs(resources)
