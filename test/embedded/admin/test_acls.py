"""Access control lists through `KafkaAdminClient`, against an embedded broker that enforces them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka import KafkaAdminClient
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ResourcePattern,
    ResourcePatternFilter,
    acl_bindings,
    consumer_acls,
    producer_acls,
)
from kafka.broker import Broker
from kafka.errors import (
    ClusterAuthorizationFailedError,
    InvalidRequestError,
    NoError,
    SecurityDisabledError,
    TopicAuthorizationFailedError,
    UnsupportedVersionError,
)

EVERYTHING = ACLFilter(None, None, "any", "any", ResourcePatternFilter("any", None))
READ = ACL("User:bob", "*", "read", "allow", ResourcePattern("topic", "events"))
PREFIX = ACL("User:bob", "*", "write", "deny", ResourcePattern("topic", "ev", "prefixed"))
USERS = [("PLAIN", "admin", "a"), ("PLAIN", "bob", "b")]
ENFORCED = {"authorizer.class.name": "StandardAuthorizer", "super.users": "User:admin"}


def administrator(broker: Broker, user: str = "admin", password: str = "a", **options: object) -> KafkaAdminClient:
    return KafkaAdminClient(
        bootstrap_servers=broker.bootstrap_servers,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_plain_username=user,
        sasl_plain_password=password,
        **options,
    )


pytestmark = pytest.mark.kafka_broker(topics=["events", "logs"], sasl=USERS, configs=ENFORCED)


@pytest.fixture
def admin(broker: Broker) -> Iterator[KafkaAdminClient]:
    with administrator(broker) as admin:
        yield admin


def test_acls_are_created_described_and_deleted(admin: KafkaAdminClient):
    created = admin.create_acls([READ, PREFIX])
    assert created == {"succeeded": [READ, PREFIX], "failed": []}
    found, error = admin.describe_acls(EVERYTHING)
    assert set(found) == {READ, PREFIX}
    assert error is NoError
    deny = ACLFilter("User:bob", None, "any", "deny", ResourcePatternFilter("topic", None))
    assert admin.delete_acls([deny]) == [(deny, [(PREFIX, NoError)], NoError)]
    assert admin.describe_acls(EVERYTHING)[0] == [READ]


def test_a_filter_by_match_finds_what_applies_to_a_resource(admin: KafkaAdminClient):
    admin.create_acls([READ, PREFIX])
    match = ACLFilter(None, None, "any", "any", ResourcePatternFilter("topic", "events", "match"))
    literal = ACLFilter(None, None, "any", "any", ResourcePatternFilter("topic", "events", "literal"))
    assert set(admin.describe_acls(match)[0]) == {READ, PREFIX}
    assert admin.describe_acls(literal)[0] == [READ]


def test_one_acl_that_is_refused_does_not_lose_the_others(admin: KafkaAdminClient):
    wrong = ACL("User:bob", "*", "read", "allow", ResourcePattern("cluster", "not-kafka-cluster"))
    created = admin.create_acls([wrong, READ], raise_errors=False)
    assert created["succeeded"] == [READ]
    assert created["failed"] == [(wrong, InvalidRequestError)]
    assert "kafka-cluster" in str(created.errors[wrong])
    with pytest.raises(InvalidRequestError) as caught:
        created.raise_for_error()
    assert caught.value.results is created


def test_a_consumer_may_do_what_its_acls_allow(broker: Broker, admin: KafkaAdminClient):
    with administrator(broker, "bob", "b") as bob:
        assert bob.list_topics() == []
        assert admin.create_acls(consumer_acls("User:bob", ["events"], ["readers"])).ok
        assert bob.list_topics() == ["events"]
        assert bob.list_group_offsets("readers") == {"readers": {}}
        with pytest.raises(TopicAuthorizationFailedError):
            bob.delete_topics(["logs"])
        with pytest.raises(ClusterAuthorizationFailedError):
            bob.describe_acls(EVERYTHING)


def test_bindings_are_made_for_all_combinations():
    topics = [ResourcePattern("topic", name) for name in ("a", "b")]
    made = acl_bindings(["User:x", "User:y"], ["read", ACLOperation.DESCRIBE], topics, hosts=["1.1.1.1", "2.2.2.2"])
    assert len(set(made)) == 16
    kinds = {(acl.resource_pattern.resource_type.name, acl.operation.name) for acl in producer_acls("User:x", ["a"])}
    assert kinds == {("TOPIC", "WRITE"), ("TOPIC", "DESCRIBE"), ("TOPIC", "CREATE")}


def test_without_an_authorizer_the_broker_says_so():
    with Broker() as broker, KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        with pytest.raises(SecurityDisabledError, match="No Authorizer"):
            admin.describe_acls(EVERYTHING)
        assert admin.create_acls([READ], raise_errors=False)["failed"] == [(READ, SecurityDisabledError)]


def test_an_old_broker_has_no_prefixes():
    with (
        Broker(as_version="1.1", sasl=USERS, configs=ENFORCED) as broker,
        administrator(broker) as admin,
    ):
        assert admin.create_acls([READ]).ok
        with pytest.raises(UnsupportedVersionError, match=r"PREFIXED needs Kafka 2.0"):
            admin.create_acls([PREFIX])
