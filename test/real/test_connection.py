"""The client core against Apache Kafka: every release, every kind of security, and every way to get it wrong."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import ssl
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kafka._core.client import Client
from kafka._runtime.network_thread import ThreadDriver, complete
from kafka.aio import Cluster
from kafka.aio.helpers import create_ssl_context
from kafka.broker import Broker
from kafka.client_async import KafkaClient
from kafka.config import resolve
from kafka.conn import BrokerConnection
from kafka.errors import (
    AuthenticationError,
    IllegalSaslStateError,
    KafkaError,
    NoBrokersAvailable,
    SaslAuthenticationFailedError,
    SslAuthenticationError,
    UnsupportedSaslMechanismError,
)
from kafka.protocol.admin import ListGroupsRequest
from kafka.protocol.metadata import MetadataRequest
from kafka.sasl.oauth import OidcTokenProvider

from . import sasl
from .certificates import PASSWORD, Authority, Certificate
from .conftest import StartKafka
from .kafka_process import KafkaCluster
from .kdc import KeyDistributionCenter
from .oauth import CLIENT_ID, CLIENT_SECRET, TokenServer

ANN = {"sasl_plain_username": "alice", "sasl_plain_password": "secret"}
BOB = {"sasl_plain_username": "bob", "sasl_plain_password": "hunter2"}


def groups(servers: str, **config: Any) -> Any:
    """Connect, ask something that needs authentication, and return the client's version of the broker."""
    with KafkaClient(bootstrap_servers=servers, **config) as client:
        future = client.submit(client.least_loaded_node() or 1, ListGroupsRequest())
        client.poll(timeout_ms=60_000, future=future)
        assert future.succeeded(), future
        assert future.value.error_code == 0
        return client.api_version


def refused(servers: str, error: type[KafkaError], match: str, *, within: float = 20.0, **config: Any) -> None:
    """Connecting fails with this error, and not when its time is up, which is 30 seconds."""
    began = time.monotonic()
    with pytest.raises(error, match=match):
        KafkaClient(bootstrap_servers=servers, **config).close()
    assert time.monotonic() - began < within


# Every release


@pytest.mark.matrix
def test_each_release_is_recognised(kafka_matrix: KafkaCluster) -> None:
    began = time.monotonic()
    found = groups(kafka_matrix.bootstrap_servers) if kafka_matrix.release.number >= (0, 9) else None
    if found is None:
        with KafkaClient(bootstrap_servers=kafka_matrix.bootstrap_servers) as client:
            found = client.api_version
            future = client.submit(client.least_loaded_node() or 1, MetadataRequest(topics=[]))
            client.poll(timeout_ms=60_000, future=future)
            assert future.value.brokers
    assert time.monotonic() - began < 10
    assert found is not None
    expected = kafka_matrix.release.number
    assert found[:2] == expected[:2] or (found[:3] == expected[:3])


def test_the_newest_release_without_security(kafka: KafkaCluster) -> None:
    assert groups(kafka.bootstrap_servers) >= (3, 9)


def test_a_connection_by_hand(kafka: KafkaCluster) -> None:
    host, port = kafka.address(kafka.nodes[0])
    conn = BrokerConnection(host, port, socket.AF_INET)
    assert conn.connect_blocking(60)
    future = conn.send(MetadataRequest(topics=None))
    deadline = time.monotonic() + 60
    while not future.is_done and time.monotonic() < deadline:
        conn.recv()
    assert future.value.brokers
    conn.close()
    assert conn.disconnected()


def test_a_thread_drives_the_core_and_leaves_nothing(kafka: KafkaCluster) -> None:
    gc.collect()  # what earlier tests left to be collected
    before = len(os.listdir("/proc/self/fd"))
    core = Client(resolve("client", {"bootstrap_servers": kafka.bootstrap_servers}))
    driver = ThreadDriver(core.loop)
    complete(driver.run(core.bootstrap(), core.loop.time() + 60))
    for _ in range(100):
        assert complete(driver.run(core.request(ListGroupsRequest()), core.loop.time() + 60)).error_code == 0
    core.loop.call_soon(core.shut_down)
    complete(driver.close())
    assert len(os.listdir("/proc/self/fd")) == before


# TLS


def tls(authority: Authority, **more: Any) -> dict[str, Any]:
    return {"security_protocol": "SSL", "ssl_cafile": str(authority.cert), **more}


def test_tls_with_a_file_and_with_text(secured: KafkaCluster, authority: Authority) -> None:
    groups(secured.bootstrap("SSL"), **tls(authority))
    text = Path(authority.cert).read_text(encoding="utf-8")
    groups(secured.bootstrap("SSL"), security_protocol="SSL", ssl_truststore_certificates=text)


def test_an_unknown_authority_is_refused(secured: KafkaCluster) -> None:
    refused(secured.bootstrap("SSL"), SslAuthenticationError, "ssl_cafile", security_protocol="SSL")


def test_a_client_certificate_is_shown(secured: KafkaCluster, authority: Authority) -> None:
    mine = authority.issue("conn-client", common_name="alice")
    groups(secured.bootstrap("MTLS"), **tls(authority, ssl_certfile=str(mine.cert), ssl_keyfile=str(mine.key)))
    locked = authority.issue("conn-locked", password=PASSWORD)
    files = {"ssl_certfile": str(locked.cert), "ssl_keyfile": str(locked.key), "ssl_password": PASSWORD}
    groups(secured.bootstrap("MTLS"), **tls(authority, **files))


def test_a_missing_client_certificate_is_named(secured: KafkaCluster, authority: Authority) -> None:
    refused(secured.bootstrap("MTLS"), SslAuthenticationError, "ssl_certfile", **tls(authority))


def test_an_asyncio_cluster_logs_in_over_tls(secured: KafkaCluster, authority: Authority) -> None:
    config = {"security_protocol": "SASL_SSL", "sasl_mechanism": "SCRAM-SHA-512", **BOB}
    config["ssl_context"] = create_ssl_context(cafile=authority.cert)

    async def main() -> None:
        async with Cluster(secured.bootstrap("SASL_SSL"), **config) as cluster:
            await cluster.heal()
            assert list(cluster) == [1]
            assert (await cluster[1].send(MetadataRequest(topics=[]))).brokers
        with pytest.raises(AuthenticationError):
            await Cluster(secured.bootstrap("SASL_SSL"), **{**config, "sasl_plain_password": "no"}).start()

    asyncio.run(main())


def with_certificate(certificate: Certificate) -> Broker:
    """The embedded broker: what the client thinks of a certificate does not depend on who shows it."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate.cert, certificate.key)
    return Broker(ssl_context=context)


def test_a_wrong_host_name_shows_the_right_ones(authority: Authority) -> None:
    other = authority.issue("conn-other", names=["DNS:broker.example.org", "DNS:b2.example.org"])
    right_names = r"not for '127\.0\.0\.1'.*broker\.example\.org, b2\.example\.org"
    with with_certificate(other) as broker:
        refused(broker.bootstrap_servers, SslAuthenticationError, right_names, **tls(authority))
        groups(broker.bootstrap_servers, **tls(authority, ssl_check_hostname=False))


def test_a_revoked_certificate_is_refused(tmp_path_factory: pytest.TempPathFactory) -> None:
    authority = Authority(tmp_path_factory.mktemp("revoking"))
    server = authority.issue("revoked")
    with with_certificate(server) as broker:
        groups(broker.bootstrap_servers, **tls(authority))
        crl = str(authority.revoke(server))
        refused(broker.bootstrap_servers, SslAuthenticationError, "revoked", **tls(authority, ssl_crlfile=crl))


# Listeners of another kind


def test_a_plain_client_at_a_tls_port_gets_an_error_that_says_so(secured: KafkaCluster) -> None:
    refused(secured.bootstrap("SSL"), SslAuthenticationError, "SSL or SASL_SSL")


def test_a_tls_client_at_a_plain_port_gets_an_error_that_says_so(secured: KafkaCluster, authority: Authority) -> None:
    refused(secured.bootstrap("PLAINTEXT"), SslAuthenticationError, "PLAINTEXT or SASL_PLAINTEXT", **tls(authority))


def test_a_sasl_client_at_a_plain_port_gets_an_error_that_says_so(secured: KafkaCluster) -> None:
    config = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN", **ANN}
    refused(secured.bootstrap("PLAINTEXT"), IllegalSaslStateError, "PLAINTEXT or SSL", **config)


def test_a_plain_client_at_a_sasl_port_gets_an_error_that_says_so(secured: KafkaCluster) -> None:
    refused(secured.bootstrap("SASL_PLAINTEXT"), AuthenticationError, "SASL_PLAINTEXT.*PLAIN")


def test_a_tls_client_without_sasl_at_a_sasl_port_gets_an_error_that_says_so(
    secured: KafkaCluster, authority: Authority
) -> None:
    refused(secured.bootstrap("SASL_SSL"), AuthenticationError, "SASL_SSL.*PLAIN", **tls(authority))


def test_sasl_clients_with_and_without_tls_mixed_up_get_an_error_that_says_so(
    secured: KafkaCluster, authority: Authority
) -> None:
    config = {"sasl_mechanism": "PLAIN", **ANN}
    plain = {**config, "security_protocol": "SASL_PLAINTEXT"}
    refused(secured.bootstrap("SASL_SSL"), SslAuthenticationError, "SSL or SASL_SSL", **plain)
    secret = {**tls(authority), **config, "security_protocol": "SASL_SSL"}
    refused(secured.bootstrap("SASL_PLAINTEXT"), SslAuthenticationError, "PLAINTEXT or SASL_PLAINTEXT", **secret)


def test_a_port_without_a_listener_is_named_in_the_error(secured: KafkaCluster) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        refused(address, NoBrokersAvailable, f"{address}.*refused", bootstrap_timeout_ms=3000)


# SASL


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
@pytest.mark.parametrize(("mechanism", "credentials"), [("PLAIN", ANN), ("SCRAM-SHA-256", BOB), ("SCRAM-SHA-512", BOB)])
def test_passwords(
    secured: KafkaCluster, authority: Authority, protocol: str, mechanism: str, credentials: dict[str, str]
) -> None:
    config = {"security_protocol": protocol, "sasl_mechanism": mechanism, "ssl_cafile": str(authority.cert)}
    groups(secured.bootstrap(protocol), **config, **credentials)
    wrong = {**credentials, "sasl_plain_password": "wrong"}
    refused(secured.bootstrap(protocol), SaslAuthenticationFailedError, "(?i)authentication failed", **config, **wrong)


def test_a_password_that_saslprep_would_change_works_as_kafka_stored_it(secured: KafkaCluster) -> None:
    secured.add_scram_user("carol", "\ufb01nal", "SCRAM-SHA-256")
    config = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "SCRAM-SHA-256"}
    groups(
        secured.bootstrap("SASL_PLAINTEXT"),
        **config,
        sasl_plain_username="carol",
        sasl_plain_password="\ufb01nal",
    )


def test_a_mechanism_that_is_not_enabled_names_the_enabled_ones(secured: KafkaCluster) -> None:
    config = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "AWS_MSK_IAM", "sasl_aws_region": "eu-west-1"}
    keys = {"sasl_aws_access_key_id": "a", "sasl_aws_secret_access_key": "b"}
    refused(secured.bootstrap("SASL_PLAINTEXT"), UnsupportedSaslMechanismError, "SCRAM-SHA-512", **config, **keys)


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_tokens_from_a_provider_and_from_an_endpoint(
    secured: KafkaCluster, authority: Authority, token_server: TokenServer, protocol: str
) -> None:
    config = {"security_protocol": protocol, "sasl_mechanism": "OAUTHBEARER", "ssl_cafile": str(authority.cert)}
    servers = secured.bootstrap(protocol)
    provider = OidcTokenProvider(token_server.token_url, CLIENT_ID, CLIENT_SECRET)
    groups(servers, **config, sasl_oauth_token_provider=provider)
    endpoint = {
        "sasl_oauthbearer_token_endpoint_url": token_server.token_url,
        "sasl_oauthbearer_client_id": CLIENT_ID,
    }
    groups(servers, **config, **endpoint, sasl_oauthbearer_client_secret=CLIENT_SECRET)
    refused(servers, AuthenticationError, "401", **config, **endpoint, sasl_oauthbearer_client_secret="wrong")


def test_a_token_that_the_broker_does_not_accept(secured: KafkaCluster, token_server: TokenServer) -> None:
    provider = type("Foreign", (), {"token": lambda self: token_server.sign(aud="somebody-else")})()
    config = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "OAUTHBEARER"}
    refused(
        secured.bootstrap("SASL_PLAINTEXT"),
        SaslAuthenticationFailedError,
        "invalid_token",
        **config,
        sasl_oauth_token_provider=provider,
    )


def test_kerberos(
    kdc: KeyDistributionCenter,
    kerberized: KafkaCluster,
    authority: Authority,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    pytest.importorskip("gssapi", reason="the gssapi package is not installed")
    cluster = kerberized
    monkeypatch.setenv("KRB5_CONFIG", str(kdc.config))
    config = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "GSSAPI"}
    servers = cluster.bootstrap("SASL_PLAINTEXT")
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{tmp_path / 'empty'}")
    refused(servers, SaslAuthenticationFailedError, "klist", **config)
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", str(kdc.keytab("alice")))
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{tmp_path / 'tickets'}")
    groups(servers, **config)
    over_tls = {**config, "security_protocol": "SASL_SSL", "ssl_cafile": str(authority.cert)}
    groups(cluster.bootstrap("SASL_SSL"), **over_tls)
    name = "kafka@elsewhere.example"
    refused(servers, SaslAuthenticationFailedError, "elsewhere", **config, sasl_kerberos_name=name)


def test_the_session_is_renewed_under_load(secured: KafkaCluster, token_server: TokenServer) -> None:
    """The broker closes a connection that is used for longer than that without a new authentication.

    The client begins it after 85 to 95 % of that time; what it sent before may reach a busy broker after the end.
    """
    provider = OidcTokenProvider(token_server.token_url, CLIENT_ID, CLIENT_SECRET)
    kinds = {"PLAIN": ANN, "SCRAM-SHA-512": BOB, "OAUTHBEARER": {"sasl_oauth_token_provider": provider}}
    with ExitStack() as stack:
        clients = [
            stack.enter_context(
                KafkaClient(
                    bootstrap_servers=secured.bootstrap("SASL_PLAINTEXT"),
                    security_protocol="SASL_PLAINTEXT",
                    sasl_mechanism=mechanism,
                    **credentials,
                )
            )
            for mechanism, credentials in kinds.items()
        ]
        links = [client.link(client.least_loaded_node() or 1) for client in clients]
        end = time.monotonic() + 13  # two sessions
        asked = 0
        while time.monotonic() < end:
            sent = [[link.submit(ListGroupsRequest()) for _ in range(20)] for link in links]
            for client, futures in zip(clients, sent, strict=True):
                client.poll(timeout_ms=60_000, future=futures[-1])
                for future in futures:
                    assert future.succeeded(), future
            asked += len(sent[0])
        assert [(link.failures, link.ready) for link in links] == [(0, True)] * len(links)
        assert asked > 100


@pytest.mark.matrix
@pytest.mark.parametrize("version", ["0.10.2.2", "1.1.1", "2.8.2", "3.9.1"])
def test_passwords_with_old_brokers(version: str, kafka_at: StartKafka) -> None:
    security = [sasl.plain({"alice": "secret"}), sasl.scram("SCRAM-SHA-512")]
    cluster = kafka_at(version, listeners=("SASL_PLAINTEXT",), security=security)
    cluster.add_scram_user("bob", "hunter2", "SCRAM-SHA-512")
    for mechanism, credentials in (("PLAIN", ANN), ("SCRAM-SHA-512", BOB)):
        config = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": mechanism}
        groups(cluster.bootstrap_servers, **config, **credentials)
        wrong = {**credentials, "sasl_plain_password": "wrong"}
        refused(cluster.bootstrap_servers, SaslAuthenticationFailedError, "SASL|uthentication", **config, **wrong)
