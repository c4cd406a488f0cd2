"""A SASL mechanism of the application's own, from its registration to a record that was written."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from kafka import KafkaConsumer, KafkaProducer
from kafka.broker import Broker, Exchange
from kafka.config import security_options
from kafka.errors import KafkaConfigurationError, SaslAuthenticationFailedError
from kafka.protocol.sasl import SaslAuthenticateResponse, SaslHandshakeResponse
from kafka.sasl import SaslMechanism, register_sasl_mechanism
from kafka.sasl.plain import SaslMechanismPlain


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is registered here is forgotten afterwards."""
    import kafka.sasl

    monkeypatch.setattr(kafka.sasl, "SASL_MECHANISMS", dict(kafka.sasl.SASL_MECHANISMS))
    monkeypatch.setattr(security_options, "_accepted", set())


class Challenge(SaslMechanism):
    """The broker sends a number, and is sent its hash with the secret."""

    def __init__(self, *, sasl_plain_password: str, host: str, **_config: Any) -> None:
        self._secret, self.host = sasl_plain_password.encode(), host
        self._next: bytes | None = b"hello"
        self._done = False

    def auth_bytes(self) -> bytes:
        assert self._next is not None
        return self._next

    def receive(self, auth_bytes: bytes) -> None:
        if self._next == b"hello":
            self._next = hashlib.sha256(self._secret + auth_bytes).digest()
        else:
            self._done = True

    def is_done(self) -> bool:
        return self._done

    def is_authenticated(self) -> bool:
        return self._done


def demanding(broker: Broker) -> None:
    """Have a broker ask for it."""

    def greet(exchange: Exchange) -> Any:
        known = exchange.request.mechanism == "X-CHALLENGE"
        return SaslHandshakeResponse(error_code=0 if known else 33, mechanisms=["X-CHALLENGE"])

    def check(exchange: Exchange) -> Any:
        said = bytes(exchange.request.auth_bytes)
        if said == b"hello":
            return SaslAuthenticateResponse(auth_bytes=b"4711")
        if said == hashlib.sha256(b"s3cret4711").digest():
            return SaslAuthenticateResponse(auth_bytes=b"")
        return SaslAuthenticateResponse(error_code=58, error_message="wrong hash")

    broker.intercept("SaslHandshake", greet, before=True)
    broker.intercept("SaslAuthenticate", check, before=True)


def test_a_mechanism_of_the_application_leads_to_the_broker() -> None:
    options: dict[str, Any] = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "X-CHALLENGE"}
    with pytest.raises(KafkaConfigurationError, match="sasl_mechanism"):
        KafkaProducer(**options)
    register_sasl_mechanism("X-CHALLENGE", Challenge)
    with Broker(topics=["events"]) as broker:
        demanding(broker)
        options["bootstrap_servers"] = broker.bootstrap_servers
        with KafkaProducer(**options, sasl_plain_password="s3cret") as producer:
            producer.send("events", b"v").get(timeout=10)
        with KafkaConsumer(
            "events",
            **options,
            sasl_plain_password="s3cret",
            auto_offset_reset="earliest",
            consumer_timeout_ms=10_000,
        ) as consumer:
            assert next(iter(consumer)).value == b"v"
        with pytest.raises(SaslAuthenticationFailedError, match="wrong hash"):
            KafkaProducer(**options, sasl_plain_password="other")


def test_a_mechanism_of_the_library_can_be_replaced() -> None:
    class FromVault(SaslMechanismPlain):
        def __init__(self, **config: Any) -> None:
            super().__init__(**{**config, "sasl_plain_password": "s3cret"})

    register_sasl_mechanism("PLAIN", FromVault, overwrite=True)
    with (
        Broker(topics=["events"], sasl=[("PLAIN", "ann", "s3cret")]) as broker,
        KafkaProducer(
            bootstrap_servers=broker.bootstrap_servers,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="PLAIN",
            sasl_plain_username="ann",
            sasl_plain_password="unused",
        ) as producer,
    ):
        assert producer.send("events", b"v").get(timeout=10).offset == 0
