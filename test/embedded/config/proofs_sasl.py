"""Proofs for what is about SASL."""

from __future__ import annotations

import json
import logging
import ssl
import sys
import time
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from kafka._runtime.clock import SystemClock
from kafka.broker import Broker
from kafka.broker.faults import Exchange
from kafka.errors import KafkaError, SaslAuthenticationFailedError
from kafka.protocol.sasl import SaslAuthenticateResponse, SaslHandshakeResponse
from kafka.sasl.msk import AwsCredentials, presign

from .proofs import proves
from .proofs_tls import path
from .servers import Door, TokenEndpoint
from .subjects import Subject

ANN = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN", "sasl_plain_username": "ann"}


def believing(subject: Subject, *answers: bytes) -> tuple[Broker, list[bytes]]:
    """A broker that takes any mechanism and believes everybody, and what it was told."""
    broker = subject.broker()
    told: list[bytes] = []
    left = list(answers)

    def greet(exchange: Exchange) -> Any:
        return SaslHandshakeResponse[1](error_code=0, mechanisms=[exchange.request.mechanism])

    def believe(exchange: Exchange) -> Any:
        told.append(bytes(exchange.request.auth_bytes))
        answer = left.pop(0) if len(left) > 1 else left[0] if left else b""
        return SaslAuthenticateResponse(error_code=0, auth_bytes=answer)

    broker.intercept("SaslHandshake", greet, before=True)
    broker.intercept("SaslAuthenticate", believe, before=True)
    return broker, told


# Names and passwords


@proves("sasl_mechanism")
def the_mechanism_is_the_one_asked_for(subject: Subject) -> None:
    broker = subject.broker(sasl=[("SCRAM-SHA-256", "ann", "pw")])
    options = {**ANN, "sasl_plain_password": "pw"}
    assert subject.attempt(broker, **{**options, "sasl_mechanism": "SCRAM-SHA-256"}) is None
    assert "SCRAM-SHA-256" in str(subject.attempt(broker, **options))


@proves("sasl_plain_username", "sasl_plain_password")
def the_broker_lets_in_who_has_the_password(subject: Subject) -> None:
    broker = subject.broker(sasl=[("PLAIN", "ann", "pw")])
    options = {**ANN, "sasl_plain_password": "pw"}
    assert subject.attempt(broker, **options) is None
    error = subject.attempt(broker, **{**options, subject.option: "other"})
    assert isinstance(error, SaslAuthenticationFailedError)


@proves("sasl_scram_delegation_token")
def scram_says_that_it_is_a_token(subject: Subject) -> None:
    broker, told = believing(subject, b"e=other-error")
    options = {**ANN, "sasl_mechanism": "SCRAM-SHA-256", "sasl_plain_password": "pw"}
    _refused_soon(subject, broker, **options)
    _refused_soon(subject, broker, **options, sasl_scram_delegation_token=True)
    assert b"tokenauth=true" not in told[0]
    assert b"tokenauth=true" in told[-1]


def _refused_soon(subject: Subject, broker: Broker, **options: Any) -> None:
    assert isinstance(subject.attempt(broker, **options), KafkaError)


# Kerberos


class _FakeGssapi:
    """Puts the name of whom a ticket is wanted for on the wire."""

    NameType = SimpleNamespace(hostbased_service="host")
    MechType = SimpleNamespace(kerberos="kerberos")
    exceptions = SimpleNamespace(GSSError=type("GSSError", (Exception,), {}))

    class Name(str):
        def __new__(cls, text: str, name_type: str = "") -> Any:
            assert name_type == "host"
            return super().__new__(cls, text)

        def canonicalize(self, _mechanism: str) -> Any:
            return self

    class SecurityContext:
        complete = True

        def __init__(self, name: str, usage: str) -> None:
            self.name = name

        def step(self, _token: bytes | None) -> bytes:
            return self.name.encode()

        def unwrap(self, _data: bytes) -> Any:
            return SimpleNamespace(message=b"\x01\0\0\0")

        def wrap(self, message: bytes, _encrypt: bool) -> Any:
            return SimpleNamespace(message=message)


def _kerberos(subject: Subject, **options: Any) -> bytes:
    subject.monkeypatch.setitem(sys.modules, "gssapi", _FakeGssapi)
    broker, told = believing(subject)
    options = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "GSSAPI", **options}
    assert subject.attempt(broker, **options) is None
    return told[0]


@proves("sasl_kerberos_service_name")
def the_ticket_is_for_that_service(subject: Subject) -> None:
    assert _kerberos(subject, sasl_kerberos_service_name="mine") == b"mine@127.0.0.1"


@proves("sasl_kerberos_domain_name")
def the_ticket_is_for_that_host(subject: Subject) -> None:
    assert _kerberos(subject, sasl_kerberos_domain_name="b1.example") == b"kafka@b1.example"


@proves("sasl_kerberos_name")
def the_ticket_is_for_that_name(subject: Subject) -> None:
    assert _kerberos(subject, sasl_kerberos_name="mine@b1.example") == b"mine@b1.example"


# Tokens


def _oauth(subject: Subject, endpoint: TokenEndpoint | None = None, **options: Any) -> bytes:
    """Authenticate with a token; what the broker was told."""
    broker, told = believing(subject)
    assert subject.attempt(broker, **_oauth_options(endpoint), **options) is None
    return told[0]


def _oauth_options(endpoint: TokenEndpoint | None) -> dict[str, Any]:
    options: dict[str, Any] = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "OAUTHBEARER"}
    if endpoint is not None:
        options |= {
            "sasl_oauthbearer_token_endpoint_url": endpoint.url,
            "sasl_oauthbearer_client_id": "a b",
            "sasl_oauthbearer_client_secret": "s3cret",
        }
    return options


@proves("sasl_oauth_token_provider")
def the_application_s_own_token_is_sent(subject: Subject) -> None:
    provider = SimpleNamespace(token=lambda: "abc.def")
    assert b"auth=Bearer abc.def\x01" in _oauth(subject, sasl_oauth_token_provider=provider)


@proves(
    "sasl_oauthbearer_token_endpoint_url",
    "sasl_oauthbearer_client_id",
    "sasl_oauthbearer_client_secret",
    "sasl_oauthbearer_header_urlencode",
)
def a_token_is_fetched_with_the_client_s_credentials(subject: Subject) -> None:
    endpoint = subject.enter(TokenEndpoint())
    encode = subject.option == "sasl_oauthbearer_header_urlencode"
    assert b"auth=Bearer e30." in _oauth(subject, endpoint, sasl_oauthbearer_header_urlencode=encode)
    assert endpoint.asked[0].authorization == ("a+b:s3cret" if encode else "a b:s3cret")


@proves("sasl_oauthbearer_scope", "sasl_oauthbearer_audience")
def the_endpoint_is_told_what_for(subject: Subject) -> None:
    endpoint = subject.enter(TokenEndpoint())
    _oauth(subject, endpoint, **{subject.option: "all"})
    assert endpoint.asked[0].form[subject.option.removeprefix("sasl_oauthbearer_")] == "all"


@proves("sasl_oauthbearer_extensions")
def extensions_go_along_with_the_token(subject: Subject) -> None:
    endpoint = subject.enter(TokenEndpoint())
    assert b"\x01tenant=blue\x01" in _oauth(subject, endpoint, sasl_oauthbearer_extensions={"tenant": "blue"})


@proves("sasl_oauthbearer_sub_claim_name", "sasl_oauthbearer_scope_claim_name")
def the_log_names_the_principal_by_that_claim(subject: Subject) -> None:
    endpoint = subject.enter(TokenEndpoint(claims={"who": "ann"}))
    with subject.caplog.at_level(logging.INFO, "kafka.net.connection_setup"):
        _oauth(subject, endpoint, **{subject.option: "who"})
    assert "as who ann" in subject.caplog.text


@proves("sasl_oauthbearer_connect_timeout_ms")
def the_endpoint_is_waited_for_so_long(subject: Subject) -> None:
    door = subject.enter(Door())
    options = {**_oauth_options(None), "sasl_oauthbearer_token_endpoint_url": f"http://{door.address}/token"}
    options |= {"sasl_oauthbearer_client_id": "a", "sasl_oauthbearer_client_secret": "b"}
    broker, _ = believing(subject)
    options |= {"sasl_oauthbearer_connect_timeout_ms": 100}
    for seconds in (0.5, 2.0, 6.0):  # a busy machine may not get to the endpoint in the shortest
        if subject.kind == "connection":
            subject.make(broker, **options).thing.connect_blocking(seconds)
        else:
            _refused_soon(subject, broker, bootstrap_timeout_ms=seconds * 1000, **options)
        if door.visits:
            break
    assert door.visits[0].lasted < 5  # 10 by default


@proves("sasl_oauthbearer_cafile")
def the_endpoint_s_certificate_is_checked_by_that_authority(subject: Subject) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path("server.pem"), path("server.key"))
    endpoint = subject.enter(TokenEndpoint().speak_tls(context))
    _oauth(subject, endpoint, sasl_oauthbearer_cafile=path("ca.pem"))
    assert len(endpoint.asked) == 1
    broker, _ = believing(subject)
    options = {**_oauth_options(endpoint), "sasl_oauthbearer_cafile": path("other-ca.pem")}
    if subject.kind == "connection":
        assert not subject.make(broker, **options).thing.connect_blocking(0.3)
    else:
        _refused_soon(subject, broker, **options, bootstrap_timeout_ms=300)
    assert len(endpoint.asked) == 1


@proves("sasl_login_refresh_window_factor")
def a_new_token_is_fetched_when_that_share_of_the_old_one_s_life_has_passed(subject: Subject) -> None:
    for factor, fetched in ((0.5, 2), (1.0, 1)):
        endpoint = subject.enter(TokenEndpoint(expires_in=1000))
        broker, told = believing(subject)
        options = {**_oauth_options(endpoint), "sasl_login_refresh_window_factor": factor}
        assert subject.attempt(broker, **options) is None
        first = len(endpoint.asked)
        later = time.time() + 750
        with patch.object(
            SystemClock, "time", staticmethod(lambda later=later: later)
        ):  # between the two shares of its life
            assert subject.attempt(broker, **options) is None
        assert len(told) > 1
        assert (len(endpoint.asked) > first) is (fetched == 2)


# AWS


def _aws(subject: Subject, **options: Any) -> dict[str, str]:
    """Authenticate to a broker that believes everybody; the fields that it was told."""
    broker, told = believing(subject, json.dumps({"version": "2020_10_22"}).encode())
    keys = {"sasl_aws_access_key_id": "AKIA", "sasl_aws_secret_access_key": "s3cret", "sasl_aws_region": "eu-west-1"}
    options = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "AWS_MSK_IAM", **keys, **options}
    assert subject.attempt(broker, **options) is None
    fields: dict[str, str] = json.loads(told[0])
    return fields


@proves("sasl_aws_region")
def the_signature_is_for_that_region(subject: Subject) -> None:
    assert "/eu-north-1/kafka-cluster/" in _aws(subject, sasl_aws_region="eu-north-1")["x-amz-credential"]


@proves("sasl_aws_access_key_id")
def the_key_is_named(subject: Subject) -> None:
    assert _aws(subject, sasl_aws_access_key_id="MINE")["x-amz-credential"].startswith("MINE/")


@proves("sasl_aws_session_token")
def the_session_s_token_goes_along(subject: Subject) -> None:
    assert _aws(subject, sasl_aws_session_token="tok")["x-amz-security-token"] == "tok"


@proves("sasl_aws_secret_access_key")
def the_signature_is_made_with_that_key(subject: Subject) -> None:
    told = _aws(subject, sasl_aws_secret_access_key="other")
    expected = presign(
        AwsCredentials("AKIA", "other"),
        host=told["host"],
        region="eu-west-1",
        service="kafka-cluster",
        timestamp=told["x-amz-date"],
        expires=int(told["x-amz-expires"]),
        query={"Action": "kafka-cluster:Connect"},
    )
    assert told["x-amz-signature"] == expected["X-Amz-Signature"]
