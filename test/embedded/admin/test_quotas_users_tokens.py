"""Quotas, users of SCRAM and delegation tokens through `KafkaAdminClient`."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from kafka import KafkaAdminClient
from kafka.admin import UserScramCredentialDeletion, UserScramCredentialUpsertion
from kafka.broker import Broker
from kafka.errors import (
    DelegationTokenNotFoundError,
    DelegationTokenRequestNotAllowedError,
    InvalidRequestError,
    ResourceNotFoundError,
    SaslAuthenticationFailedError,
    UnsupportedVersionError,
)

ALICE = {"user": "alice"}
TOKENS = {"delegation.token.secret.key": "cluster secret"}


def test_quotas_are_set_described_and_removed(admin: KafkaAdminClient):
    changed = admin.alter_client_quotas(
        [
            (ALICE, {"producer_byte_rate": 1000, "request_percentage": 12.5}),
            ({"user": None}, {"producer_byte_rate": 500}),
            ({"user": "alice", "client-id": "app"}, {"consumer_byte_rate": 2000}),
        ]
    )
    assert changed.ok
    (found,) = admin.describe_client_quotas(ALICE, strict=True)
    assert (found.entity, found.quotas) == (ALICE, {"producer_byte_rate": 1000.0, "request_percentage": 12.5})
    assert [quota.entity for quota in admin.describe_client_quotas({"user": None})] == [{"user": None}]
    assert len(admin.describe_client_quotas({"user": ...})) == 3
    assert len(admin.describe_client_quotas({"user": ...}, strict=True)) == 2
    assert len(admin.describe_client_quotas()) == 3
    admin.alter_client_quotas([(ALICE, {"producer_byte_rate": None})])
    (found,) = admin.describe_client_quotas(ALICE, strict=True)
    assert found["quotas"] == {"request_percentage": 12.5}


def test_quotas_are_checked_without_being_set(admin: KafkaAdminClient):
    assert admin.alter_client_quotas([(ALICE, {"producer_byte_rate": 1})], validate_only=True).ok
    assert admin.describe_client_quotas() == []


def test_one_quota_that_is_refused_does_not_lose_the_others(admin: KafkaAdminClient):
    entries = [(ALICE, {"nonsense": 1}), ({"user": "bob"}, {"producer_byte_rate": 1})]
    with pytest.raises(InvalidRequestError, match="alice") as caught:
        admin.alter_client_quotas(entries)
    assert [one.ok for one in caught.value.results] == [False, True]
    with pytest.raises(TypeError, match="must be a number"):
        admin.alter_client_quotas([(ALICE, {"producer_byte_rate": "much"})])  # type: ignore[dict-item]


def test_users_are_created_described_and_deleted(admin: KafkaAdminClient):
    outcome = admin.alter_user_scram_credentials(
        [
            UserScramCredentialUpsertion("alice", "SCRAM-SHA-256", "secret", iterations=8192),
            UserScramCredentialUpsertion("bob", "SCRAM-SHA-512", "secret"),
            UserScramCredentialDeletion("carol", "SCRAM-SHA-256"),
        ],
        raise_errors=False,
    )
    assert (outcome["alice"], outcome["bob"]) == (None, None)
    assert isinstance(outcome["carol"].error, ResourceNotFoundError)  # type: ignore[union-attr]
    found = admin.describe_user_scram_credentials(["alice", "nobody"])
    assert found["alice"].ok
    assert found["alice"]["credential_infos"] == [{"mechanism": 1, "iterations": 8192}]
    assert isinstance(found["nobody"].error, ResourceNotFoundError)
    assert sorted(admin.describe_user_scram_credentials()) == ["alice", "bob"]
    assert admin.alter_user_scram_credentials([UserScramCredentialDeletion("bob", 2)]) == {"bob": None}  # type: ignore[arg-type]
    assert list(admin.describe_user_scram_credentials()) == ["alice"]


def test_a_user_that_was_created_can_log_in():
    with Broker(sasl=[("SCRAM-SHA-256", "admin", "a")]) as broker:
        options = {
            "bootstrap_servers": broker.bootstrap_servers,
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "SCRAM-SHA-256",
        }
        with KafkaAdminClient(**options, sasl_plain_username="admin", sasl_plain_password="a") as admin:
            admin.alter_user_scram_credentials([UserScramCredentialUpsertion("eve", "SCRAM-SHA-256", "pässword")])
        with KafkaAdminClient(**options, sasl_plain_username="eve", sasl_plain_password="pässword") as eve:
            assert eve.list_topics() == []
        with pytest.raises(SaslAuthenticationFailedError):
            KafkaAdminClient(**options, sasl_plain_username="eve", sasl_plain_password="wrong")


@pytest.fixture
def secured() -> Iterator[Broker]:
    with Broker(sasl=[("SCRAM-SHA-256", "admin", "a")], configs=TOKENS) as broker:
        yield broker


@pytest.fixture
def owner(secured: Broker) -> Iterator[KafkaAdminClient]:
    with KafkaAdminClient(
        bootstrap_servers=secured.bootstrap_servers,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="SCRAM-SHA-256",
        sasl_plain_username="admin",
        sasl_plain_password="a",
    ) as admin:
        yield admin


def test_tokens_are_created_renewed_described_and_expired(owner: KafkaAdminClient):
    token = owner.create_delegation_token(["User:bob"], max_lifetime_ms=3_600_000)
    assert (token.owner, token.requester, token.renewers) == ("User:admin", "User:admin", ["User:bob"])
    assert token.issue_timestamp < token.expiry_timestamp <= token.max_timestamp == token.issue_timestamp + 3_600_000
    assert owner.renew_delegation_token(token.hmac, 60_000) <= token.max_timestamp
    (found,) = owner.describe_delegation_token(["User:admin"])
    assert (found.token_id, found.hmac) == (token.token_id, token.hmac)
    assert owner.describe_delegation_token([("User", "nobody")]) == []
    owner.expire_delegation_token(token.hmac)
    assert owner.describe_delegation_token() == []
    with pytest.raises(DelegationTokenNotFoundError):
        owner.renew_delegation_token(token.hmac)


def test_a_token_needs_a_client_that_authenticated(admin: KafkaAdminClient):
    with pytest.raises(DelegationTokenRequestNotAllowedError):
        admin.create_delegation_token()
    with (
        Broker(configs=TOKENS) as broker,
        KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as anonymous,
        pytest.raises(DelegationTokenRequestNotAllowedError),
    ):
        anonymous.create_delegation_token()


def test_secrets_are_in_no_text(owner: KafkaAdminClient, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    credential = UserScramCredentialUpsertion("eve", "SCRAM-SHA-256", "top-secret-password")
    owner.alter_user_scram_credentials([credential])
    token = owner.create_delegation_token()
    texts = [repr(credential), repr(token), str(owner.describe_delegation_token()), caplog.text]
    with pytest.raises(DelegationTokenNotFoundError) as caught:
        owner.renew_delegation_token(b"not-the-right-hmac")
    texts += [str(caught.value), repr(caught.value)]
    secrets = ["top-secret-password", repr(token.hmac), token.hmac.hex(), "not-the-right-hmac"]
    secrets += [repr(credential.salt), repr(credential.salted_password)]
    assert token.hmac
    for text in texts:
        assert not [secret for secret in secrets if secret in text]


def test_old_brokers_lack_them():
    with Broker(as_version="2.5") as broker, KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        with pytest.raises(UnsupportedVersionError, match=r"needs Kafka 2\.6"):
            admin.describe_client_quotas()
        with pytest.raises(UnsupportedVersionError, match=r"needs Kafka 2\.7"):
            admin.describe_user_scram_credentials()
