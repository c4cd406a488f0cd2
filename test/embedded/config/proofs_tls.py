"""Proofs for what is about TLS. The certificates are those of the unit tests; the broker's is for 127.0.0.1."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

from kafka.broker import Broker
from kafka.errors import KafkaConfigurationError, SslAuthenticationError

from .proofs import proves
from .subjects import Subject

CERTIFICATES = Path(__file__).parents[2] / "unit" / "net" / "certs"


def path(name: str) -> str:
    return str(CERTIFICATES / name)


def text(name: str) -> str:
    return (CERTIFICATES / name).read_text(encoding="utf-8")


TRUST = {"security_protocol": "SSL", "ssl_cafile": path("ca.pem")}


def secured(subject: Subject, *, certificate: str = "server", ask_client: bool = False, **options: Any) -> Broker:
    """A broker that speaks TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path(f"{certificate}.pem"), path(f"{certificate}.key"))
    if ask_client:
        context.load_verify_locations(path("ca.pem"))
        context.verify_mode = ssl.CERT_REQUIRED
    ciphers = options.pop("ciphers", None)
    if ciphers:
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers(ciphers)
    return subject.broker(ssl_context=context, **options)


@proves("security_protocol", "ssl_cafile")
def tls_is_spoken_with_a_broker_that_is_trusted(subject: Subject) -> None:
    broker = secured(subject)
    assert subject.attempt(broker, **TRUST) is None
    without = {name: value for name, value in TRUST.items() if name != subject.option}
    assert isinstance(subject.attempt(broker, **without), SslAuthenticationError)


@proves("ssl_truststore_certificates")
def authorities_may_be_given_as_text(subject: Subject) -> None:
    broker = secured(subject)
    assert subject.attempt(broker, security_protocol="SSL", ssl_truststore_certificates=text("ca.pem")) is None
    wrong = subject.attempt(broker, security_protocol="SSL", ssl_truststore_certificates=text("other-ca.pem"))
    assert isinstance(wrong, SslAuthenticationError)


@proves("ssl_context")
def the_application_s_own_context_is_used(subject: Subject) -> None:
    broker = secured(subject)
    context = ssl.create_default_context(cafile=path("ca.pem"))
    assert subject.attempt(broker, security_protocol="SSL", ssl_context=context) is None
    other = ssl.create_default_context(cafile=path("other-ca.pem"))
    assert isinstance(subject.attempt(broker, security_protocol="SSL", ssl_context=other), SslAuthenticationError)


@proves("ssl_check_hostname")
def a_certificate_for_another_name_is_refused_or_not(subject: Subject) -> None:
    broker = secured(subject, host="localhost")
    assert "localhost" in str(subject.attempt(broker, **TRUST))
    assert subject.attempt(broker, ssl_check_hostname=False, **TRUST) is None


MINE = {"ssl_certfile": path("client.pem"), "ssl_keyfile": path("client.key")}
MINE_AS_TEXT = {"ssl_keystore_certificate_chain": text("client.pem"), "ssl_keystore_key": text("client.key")}


@proves("ssl_certfile", "ssl_keyfile", "ssl_keystore_certificate_chain", "ssl_keystore_key")
def the_client_shows_who_it_is(subject: Subject) -> None:
    broker = secured(subject, ask_client=True)
    mine = MINE if subject.option in MINE else MINE_AS_TEXT
    assert subject.attempt(broker, **TRUST, **mine) is None
    without = {name: value for name, value in mine.items() if name != subject.option}
    error = subject.attempt(broker, **TRUST, **without)
    assert isinstance(error, SslAuthenticationError | KafkaConfigurationError)


@proves("ssl_password")
def an_encrypted_key_is_opened(subject: Subject) -> None:
    broker = secured(subject, ask_client=True)
    mine = {"ssl_certfile": path("client.pem"), "ssl_keyfile": path("client-encrypted.key")}
    assert subject.attempt(broker, **TRUST, **mine, ssl_password="s3cret") is None
    assert "ssl_password" in str(subject.attempt(broker, **TRUST, **mine))


@proves("ssl_truststore_password", "ssl_keystore_password")
def the_stores_of_java_are_opened(subject: Subject) -> None:
    broker = secured(subject, ask_client=True)
    stores = {"ssl_truststore_password": "s3cret", "ssl_keystore_password": "s3cret"}
    named = {"security_protocol": "SSL", "ssl_cafile": path("ca.jks"), "ssl_certfile": path("client.jks")}
    assert subject.attempt(broker, **named, **stores) is None
    refused = str(subject.attempt(broker, **named, **{**stores, subject.option: "psst"}))
    assert "password of the JKS store is wrong" in refused
    assert "psst" not in refused


@proves("ssl_crlfile")
def a_revoked_certificate_is_refused(subject: Subject) -> None:
    broker = secured(subject, certificate="revoked")
    lenient = {**TRUST, "ssl_check_hostname": False}
    assert subject.attempt(broker, **lenient) is None
    assert "revoked" in str(subject.attempt(broker, **lenient, ssl_crlfile=path("crl.pem")))


@proves("ssl_ciphers")
def only_these_ciphers_are_offered(subject: Subject) -> None:
    broker = secured(subject, ciphers="ECDHE-ECDSA-AES128-GCM-SHA256")
    assert subject.attempt(broker, **TRUST, ssl_ciphers="ECDHE-ECDSA-AES128-GCM-SHA256") is None
    refused = subject.attempt(broker, **TRUST, ssl_ciphers="ECDHE-ECDSA-AES256-GCM-SHA384")
    assert isinstance(refused, SslAuthenticationError)
