"""The configuration of brokers, loggers, groups and client metrics, in raw requests, answered as by Kafka 4.3."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kafka.broker import Broker
from kafka.errors import Code, KafkaConfigurationError
from kafka.protocol.acl import CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest
from kafka.protocol.configs import (
    AlterConfigsRequest,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
    ListConfigResourcesRequest,
)
from kafka.protocol.group import ConsumerGroupHeartbeatRequest
from kafka.protocol.users import AlterClientQuotasRequest

from .wire import Wire, wire

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
Answer = tuple[int, str | None]


pytestmark = pytest.mark.kafka_broker(seed=1)


@pytest.fixture
def client(broker: Broker) -> Iterator[Wire]:
    with wire(broker) as connection:
        yield connection


def describe(client: Wire, kind: int, name: str, *keys: str) -> dict[str, Any]:
    request = DescribeConfigsRequest[4](resources=[(kind, name, list(keys) or None)], include_synonyms=True)
    (result,) = client.ask(request).results
    assert result.error_code == 0, result
    return {row.name: row for row in result.configs}


def refused(client: Wire, kind: int, name: str) -> Answer:
    (result,) = client.ask(DescribeConfigsRequest[4](resources=[(kind, name, None)])).results
    return result.error_code, result.error_message


def alter(client: Wire, kind: int, name: str, *changes: Any, validate_only: bool = False) -> Answer:
    """Changes are triples of name, operation and value."""
    request = IncrementalAlterConfigsRequest[1](resources=[(kind, name, list(changes))], validate_only=validate_only)
    (response,) = client.ask(request).responses
    return response.error_code, response.error_message


def synonyms(row: Any) -> list[tuple[str, str | None, int]]:
    return [(one.name, one.value, one.source) for one in row.synonyms]


# Topics


@pytest.mark.kafka_broker(topics=["events"])
@pytest.mark.parametrize(
    ("topic", "changes", "code"),
    [
        ("none", [("retention.ms", SET, "1")], Code.UNKNOWN_TOPIC_OR_PARTITION),
        ("none", [("retention.ms", SET, "day")], Code.INVALID_CONFIG),
        ("none", [("retention.ms", APPEND, "1")], Code.INVALID_CONFIG),
        ("none", [("retention.ms", SET, "day"), ("segment.ms", SET, None)], Code.INVALID_REQUEST),
        ("events", [("cleanup.policy", SET, "")], 0),
        ("events", [("cleanup.policy", APPEND, "")], Code.INVALID_CONFIG),
        ("events", [("cleanup.policy", SET, "delete,,compact")], Code.INVALID_CONFIG),
        ("events", [("compression.type", SET, "")], Code.INVALID_CONFIG),
        ("events", [("min.compaction.lag.ms", SET, "2"), ("max.compaction.lag.ms", SET, "1")], Code.INVALID_CONFIG),
        ("events", [("min.compaction.lag.ms", SET, "1"), ("max.compaction.lag.ms", SET, "1")], 0),
    ],
)
def test_changes_of_a_topic_are_checked_as_by_kafka(
    client: Wire, topic: str, changes: list[tuple[str, int, str | None]], code: int
) -> None:
    assert alter(client, TOPIC, topic, *changes)[0] == code
    assert alter(client, TOPIC, topic, *changes, validate_only=True)[0] == code


# Brokers


def test_all_options_of_kafka_s_brokers_are_described(client: Wire) -> None:
    rows = describe(client, BROKER, "1")
    assert len(rows) > 300
    assert (rows["num.io.threads"].value, rows["num.io.threads"].read_only) == ("8", False)
    assert (rows["ssl.keystore.password"].value, rows["ssl.keystore.password"].is_sensitive) == (None, True)
    assert (rows["metrics.num.samples"].value, rows["metrics.num.samples"].read_only) == ("2", True)
    assert "leader.replication.throttled.rate" not in rows  # described where it is set


@pytest.mark.parametrize("node", ["1", ""])
@pytest.mark.parametrize("name", ["leader.replication.throttled.rate", "follower.replication.throttled.rate"])
def test_a_replication_throttle_is_kept(client: Wire, node: str, name: str) -> None:
    assert alter(client, BROKER, node, (name, SET, "1000")) == (0, None)
    row = describe(client, BROKER, node)[name]
    assert (row.value, row.config_source, row.config_type) == ("1000", 2 if node else 3, 5)
    wrong = f"Invalid value x for configuration {name}: Not a number of type LONG"
    assert alter(client, BROKER, node, (name, SET, "x")) == (Code.INVALID_REQUEST, wrong)
    assert alter(client, BROKER, node, (name, DELETE, None)) == (0, None)
    assert name not in describe(client, BROKER, node)


def test_an_option_without_effect_is_kept_and_described(broker: Broker, client: Wire) -> None:
    assert alter(client, BROKER, "", ("num.replica.fetchers", SET, "3")) == (0, None)
    row = describe(client, BROKER, "1")["num.replica.fetchers"]
    assert synonyms(row) == [("num.replica.fetchers", "3", 3), ("num.replica.fetchers", "1", 5)]
    name = "listener.name.internal.ssl.keystore.type"
    assert alter(client, BROKER, "1", (name, SET, "PEM")) == (0, None)
    row = describe(client, BROKER, "1")[name]
    assert synonyms(row) == [(name, "PEM", 2), ("ssl.keystore.type", "JKS", 5)]
    per_listener = (
        "These security configs can be dynamically updated only per-listener using the listener prefix: "
        "[ssl.keystore.location]"
    )
    change = ("ssl.keystore.location", SET, "/k")
    assert alter(client, BROKER, "1", change) == (Code.INVALID_REQUEST, per_listener)


def test_an_option_that_kafka_does_not_know_is_hidden(client: Wire) -> None:
    assert alter(client, BROKER, "1", ("my.plugin.password", SET, "secret")) == (0, None)
    row = describe(client, BROKER, "1")["my.plugin.password"]
    assert (row.value, row.is_sensitive, row.read_only, row.config_type) == (None, True, True, 0)
    assert synonyms(row) == [("my.plugin.password", None, 2)]


def test_the_broker_is_not_started_with_an_option_without_effect() -> None:
    with pytest.raises(KafkaConfigurationError, match=r"'num\.io\.threads' of Kafka has no effect"):
        Broker(configs={"num.io.threads": "3"}).start()


def test_min_insync_replicas_is_always_set_for_all_brokers(broker: Broker, client: Wire) -> None:
    """As eligible leader replicas want it (KIP-966)."""
    broker.create_topic("t")
    name = "min.insync.replicas"
    assert list(describe(client, BROKER, "")) == [name]
    for kind, resource in ((BROKER, "1"), (TOPIC, "t")):
        assert synonyms(describe(client, kind, resource)[name]) == [(name, "1", 3), (name, "1", 5)]
    removed = f"Cluster-level {name} cannot be removed while ELR is enabled."
    assert alter(client, BROKER, "", (name, DELETE, None)) == (Code.INVALID_CONFIG, removed)
    altered = f"Broker-level {name} cannot be altered while ELR is enabled."
    assert alter(client, BROKER, "1", (name, SET, "1")) == (Code.INVALID_CONFIG, altered)
    assert alter(client, BROKER, "", (name, SET, "2")) == (0, None)
    assert synonyms(describe(client, TOPIC, "t")[name])[0] == (name, "2", 3)
    assert broker.run(lambda cluster: cluster.partition("t", 0).log.config.min_insync_replicas) == 2


def test_before_eligible_leader_replicas_it_is_not() -> None:
    with Broker(as_version="3.9", configs={"min.insync.replicas": "2"}) as broker, wire(broker) as client:
        assert describe(client, BROKER, "") == {}
        name = "min.insync.replicas"
        assert synonyms(describe(client, BROKER, "1")[name]) == [(name, "2", 4), (name, "1", 5)]
        assert alter(client, BROKER, "1", (name, SET, "1")) == (0, None)


# Loggers

APIS = "kafka.server.KafkaApis"
WRONG_LEVEL = (
    f"Cannot set the log level of {APIS} to debug as it is not a supported log level. "
    "Valid log levels are DEBUG, ERROR, FATAL, INFO, TRACE, WARN"
)


def level(client: Wire, logger: str) -> str:
    row = describe(client, LOGGER, "1", logger)[logger]
    assert (row.config_source, row.config_type, row.read_only, row.is_sensitive, row.synonyms) == (
        6,
        0,
        False,
        False,
        [],
    )
    assert row.documentation == ""
    value: str = row.value
    return value


def test_a_logger_s_level_is_its_own_or_the_root_s(client: Wire) -> None:
    assert {row.value for row in describe(client, LOGGER, "1").values()} == {"INFO"}
    assert alter(client, LOGGER, "1", (APIS, SET, "DEBUG"), validate_only=True) == (0, None)
    assert level(client, APIS) == "INFO"
    assert alter(client, LOGGER, "1", (APIS, SET, "DEBUG"), ("root", SET, "WARN")) == (0, None)
    assert (level(client, APIS), level(client, "kafka.server.ReplicaManager")) == ("DEBUG", "WARN")
    assert alter(client, LOGGER, "1", (APIS, DELETE, None)) == (0, None)
    assert level(client, APIS) == "WARN"


def test_levels_are_forgotten_when_the_node_stops() -> None:
    with Broker(nodes=2) as broker:
        with wire(broker) as client:
            alter(client, LOGGER, "1", (APIS, SET, "TRACE"))
        broker.stop_node(1)
        broker.start_node(1)
        with wire(broker) as client:
            assert level(client, APIS) == "INFO"


@pytest.mark.parametrize(
    ("change", "answer"),
    [
        (("no.such", SET, "INFO"), (40, "Logger no.such does not exist!")),
        ((APIS, APPEND, "INFO"), (42, "APPEND operation is not allowed for the BROKER_LOGGER resource")),
        ((APIS, SUBTRACT, "INFO"), (42, "SUBTRACT operation is not allowed for the BROKER_LOGGER resource")),
        (("root", DELETE, None), (42, "Removing the log level of the root logger is not allowed")),
        ((APIS, SET, None), (42, f"Null value not supported for : {APIS}")),
        ((APIS, 9, "INFO"), (-1, None)),
        (
            (APIS, SET, "debug"),
            (40, WRONG_LEVEL),
        ),
    ],
)
def test_a_wrong_change_of_a_level_is_refused(client: Wire, change: Any, answer: Answer) -> None:
    assert alter(client, LOGGER, "1", ("kafka.log.LogManager", SET, "ERROR"), change) == answer
    assert level(client, "kafka.log.LogManager") == "INFO"  # all of them or none


def test_loggers_belong_to_the_broker_that_is_asked(client: Wire) -> None:
    assert refused(client, LOGGER, "") == (42, "Broker id must not be empty")
    assert refused(client, LOGGER, "2") == (42, "Unexpected broker id, expected 1 but received 2")
    assert refused(client, LOGGER, "x") == (42, "Broker id must be an integer, but it is: x")
    change = ("root", SET, "INFO")
    assert alter(client, LOGGER, "", change) == (42, "Node id must be an integer, but it is: ")
    assert alter(client, LOGGER, "2", change) == (42, "Unexpected node id. Expected 1, but received 2")
    (response,) = client.ask(AlterConfigsRequest[2](resources=[(LOGGER, "1", [("root", "INFO")])])).responses
    assert (response.error_code, response.error_message) == (42, "Unknown resource type 8")


# Groups

WRONG_START = (
    "Invalid value by_duration:-PT1H for configuration {}: Invalid value `by_duration:-PT1H` for configuration {}."
    " The value must be either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
)


def test_a_group_s_setting_has_the_brokers_option_as_its_synonym(client: Wire) -> None:
    rows = describe(client, GROUP, "g")
    assert len(rows) == 17
    assert synonyms(rows["consumer.session.timeout.ms"]) == [("group.consumer.session.timeout.ms", "45000", 5)]
    assert synonyms(rows["share.auto.offset.reset"]) == [("share.auto.offset.reset", "latest", 5)]
    assert alter(client, GROUP, "g", ("consumer.session.timeout.ms", SET, "50000")) == (0, None)
    assert synonyms(describe(client, GROUP, "g")["consumer.session.timeout.ms"]) == [
        ("consumer.session.timeout.ms", "50000", 8),
        ("group.consumer.session.timeout.ms", "45000", 5),
    ]


@pytest.mark.parametrize(
    ("name", "value", "answer"),
    [
        (
            "consumer.session.timeout.ms",
            "5",
            "{} must be greater than or equal to group.consumer.min.session.timeout.ms",
        ),
        (
            "share.heartbeat.interval.ms",
            "50000",
            "{} must be less than or equal to group.share.max.heartbeat.interval.ms",
        ),
        ("streams.num.standby.replicas", "7", "{} must be less than or equal to group.streams.max.standby.replicas"),
        ("share.record.lock.duration.ms", "1", "Invalid value 1 for configuration {}: Value must be at least 1000"),
        (
            "share.isolation.level",
            "foo",
            "Invalid value foo for configuration {}: String must be one of: read_committed, read_uncommitted",
        ),
        (
            "share.auto.offset.reset",
            "by_duration:-PT1H",
            WRONG_START,
        ),
        ("no.such", "1", "Unknown group config name: {}"),
    ],
)
def test_a_wrong_setting_of_a_group_is_refused(client: Wire, name: str, value: str, answer: str) -> None:
    assert alter(client, GROUP, "g", (name, SET, value)) == (Code.INVALID_CONFIG, answer.replace("{}", name))


def test_a_duration_is_a_share_group_s_starting_point(client: Wire) -> None:
    for value in ("earliest", "by_duration:P1DT2H", "by_duration:PT0.5S"):
        assert alter(client, GROUP, "g", ("share.auto.offset.reset", SET, value)) == (0, None)


def test_groups_are_named(client: Wire) -> None:
    assert refused(client, GROUP, "") == (42, "Group name must not be empty")
    change = ("consumer.session.timeout.ms", SET, "50000")
    assert alter(client, GROUP, "", change) == (42, "Default group resources are not allowed.")


def test_a_group_goes_by_its_own_settings_at_once(client: Wire) -> None:
    cls = ConsumerGroupHeartbeatRequest[1]

    def beat(epoch: int) -> Any:
        joins = {"rebalance_timeout_ms": 1000, "subscribed_topic_names": ["t"], "topic_partitions": []}
        return client.ask(cls(group_id="g", member_id="m", member_epoch=epoch, **joins if epoch == 0 else {}))

    first = beat(0)
    assert first.heartbeat_interval_ms == 5000
    assert alter(client, GROUP, "g", ("consumer.heartbeat.interval.ms", SET, "9000")) == (0, None)
    assert beat(first.member_epoch).heartbeat_interval_ms == 9000
    assert alter(client, GROUP, "g", ("consumer.heartbeat.interval.ms", DELETE, None)) == (0, None)
    assert beat(first.member_epoch).heartbeat_interval_ms == 5000


def test_a_session_lasts_as_long_as_the_group_says(broker: Broker, client: Wire) -> None:
    alter(client, GROUP, "g", ("consumer.session.timeout.ms", SET, "60000"))
    joins = {"rebalance_timeout_ms": 1000, "subscribed_topic_names": ["t"], "topic_partitions": []}
    client.ask(ConsumerGroupHeartbeatRequest[1](group_id="g", member_id="m", member_epoch=0, **joins))
    broker.clock.advance(50)
    assert broker.group_members("g")
    broker.clock.advance(11)
    assert not broker.group_members("g")


# Client metrics


def listed(client: Wire, *kinds: int, version: int = 1) -> list[tuple[str, int]]:
    reply = client.ask(ListConfigResourcesRequest[version](*([list(kinds)] if version else [])))
    return [(one.resource_name, one.resource_type if version else METRICS) for one in reply.config_resources]


def test_a_subscription_to_client_metrics_is_made_listed_described_and_removed(client: Wire) -> None:
    values = {"interval.ms": "1000", "match": "client_id=a.*,client_software_name=b", "metrics": "org.apache.kafka."}
    changes = [(name, SET, value) for name, value in values.items()]
    assert alter(client, METRICS, "slow", *changes, validate_only=True) == (0, None)
    assert listed(client, METRICS) == []
    assert alter(client, METRICS, "slow", *changes) == (0, None)
    assert listed(client, METRICS) == listed(client, version=0) == [("slow", METRICS)]
    assert ("slow", METRICS) in listed(client)
    rows = describe(client, METRICS, "slow")
    assert {name: row.value for name, row in rows.items()} == values
    assert synonyms(rows["metrics"]) == [("metrics", "org.apache.kafka.", 7)]
    assert alter(client, METRICS, "slow", *((name, DELETE, None) for name in values)) == (0, None)
    assert listed(client, METRICS) == []
    rows = describe(client, METRICS, "slow")
    assert [(row.value, row.config_source, row.synonyms) for row in rows.values()] == [
        ("300000", 5, []),
        ("", 5, []),
        ("", 5, []),
    ]


@pytest.mark.parametrize(
    ("change", "answer"),
    [
        (
            ("interval.ms", SET, "50"),
            (42, "Invalid value 50 for interval.ms, interval must be between 100 and 3600000 (1 hour)"),
        ),
        (("interval.ms", SET, "x"), (40, "Invalid value x for configuration interval.ms: Not a number of type INT")),
        (("metrics", APPEND, "y"), (40, "Can't APPEND to key metrics because its type is not LIST.")),
        (("match", SET, "foo=a"), (40, "Illegal client matching pattern: foo=a")),
        (("match", SET, "client_id"), (40, "Illegal client matching pattern: client_id")),
        (("match", SET, "client_id=["), (40, "Illegal client matching pattern: client_id=[")),
        (("no.such", SET, "1"), (42, "Unknown client metrics configuration: no.such")),
        (("no.such", DELETE, None), (0, None)),
    ],
)
def test_a_wrong_subscription_is_refused(client: Wire, change: Any, answer: Answer) -> None:
    assert alter(client, METRICS, "s", change) == answer
    assert listed(client, METRICS) == []


def test_a_subscription_has_a_name(client: Wire) -> None:
    assert refused(client, METRICS, "") == (42, "Client metrics subscription name must not be empty")
    assert alter(client, METRICS, "", ("interval.ms", SET, "1000")) == (42, "Subscription name can't be empty")
    (made,) = client.ask(AlterConfigsRequest[2](resources=[(METRICS, "whole", [("interval.ms", "2000")])])).responses
    assert made.error_code == 0
    assert describe(client, METRICS, "whole")["interval.ms"].value == "2000"


# Quotas, and rights without an authorizer


@pytest.mark.parametrize(
    ("entity", "key", "value", "message"),
    [
        (("user", "a"), "producer_byte_rate", 10.5, "producer_byte_rate cannot be a fractional value."),
        (("user", "a"), "consumer_byte_rate", 10.5, "consumer_byte_rate cannot be a fractional value."),
        (
            ("ip", "127.0.0.1"),
            "connection_creation_rate",
            1.5,
            "connection_creation_rate cannot be a fractional value.",
        ),
        (("user", "a"), "producer_byte_rate", 1e19, "Proposed value for producer_byte_rate is too large for a LONG."),
        (
            ("ip", None),
            "connection_creation_rate",
            3e9,
            "Proposed value for connection_creation_rate is too large for an INT.",
        ),
        (("user", "a"), "request_percentage", -1.5, "Quota request_percentage must be greater than 0"),
        (("ip", "not a host"), "connection_creation_rate", 1.0, "not a host is not a valid IP or resolvable host."),
        (("user", ""), "producer_byte_rate", 1.0, "Empty user not supported"),
    ],
)
def test_a_quota_that_kafka_refuses_is_refused(client: Wire, entity: Any, key: str, value: float, message: str) -> None:
    (entry,) = client.ask(AlterClientQuotasRequest[1](entries=[([entity], [(key, value, False)])])).entries
    assert (entry.error_code, entry.error_message) == (Code.INVALID_REQUEST, message)


@pytest.mark.parametrize("key", ["request_percentage", "controller_mutation_rate"])
def test_other_quotas_may_be_fractions(client: Wire, key: str) -> None:
    (entry,) = client.ask(AlterClientQuotasRequest[1](entries=[([("user", "a")], [(key, 10.5, False)])])).entries
    assert entry.error_code == 0


def test_without_an_authorizer_there_are_no_rights_to_describe_or_change(client: Wire) -> None:
    any_acl = (1, None, 1, None, None, 1, 1)
    described = client.ask(DescribeAclsRequest[3](*any_acl))
    assert (described.error_code, described.error_message) == (54, "No Authorizer is configured on the broker")
    made = client.ask(CreateAclsRequest[3](creations=[(2, "t", 3, "User:a", "*", 3, 3)])).results[0]
    assert (made.error_code, made.error_message) == (54, "No Authorizer is configured.")
    deleted = client.ask(DeleteAclsRequest[3](filters=[any_acl])).filter_results[0]
    assert (deleted.error_code, deleted.error_message) == (54, "No Authorizer is configured.")
