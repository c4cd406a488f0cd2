"""The secured listeners of the test library let in whom they should, judged by Kafka's own Java client."""

from __future__ import annotations

import json
import ssl
import subprocess
import urllib.error
import urllib.parse
import urllib.request

import pytest

from . import sasl
from .certificates import PASSWORD, Authority, Certificate, java_stores
from .conftest import StartKafka, need_kafka
from .java_client import JavaClient, JavaClientError
from .kafka_process import KafkaCluster
from .kdc import KeyDistributionCenter
from .oauth import AUDIENCE, CLIENT_ID, CLIENT_SECRET, TokenServer
from .releases import NEWEST

SASL_MODULES = "org.apache.kafka.common.security"


def login(mechanism: str, user: str, password: str) -> dict[str, str]:
    kind = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    module = f'{SASL_MODULES}.{kind} required username="{user}" password="{password}";'
    return {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": mechanism, "sasl_jaas_config": module}


def trust(authority: Authority) -> dict[str, str]:
    return {"ssl_truststore_type": "PEM", "ssl_truststore_location": str(authority.cert)}


@pytest.mark.parametrize(
    ("mechanism", "user", "password"),
    [("PLAIN", "alice", "secret"), ("SCRAM-SHA-256", "bob", "hunter2"), ("SCRAM-SHA-512", "bob", "hunter2")],
)
def test_passwords_are_checked(
    secured: KafkaCluster, java_client: JavaClient, mechanism: str, user: str, password: str
) -> None:
    servers = secured.bootstrap("SASL_PLAINTEXT")
    assert java_client.nodes(servers, **login(mechanism, user, password)) == [1]
    with pytest.raises(JavaClientError, match="SaslAuthenticationException"):
        java_client.nodes(servers, **login(mechanism, user, "wrong"))


def test_sasl_over_tls(secured: KafkaCluster, java_client: JavaClient, authority: Authority) -> None:
    config = {**login("PLAIN", "alice", "secret"), **trust(authority), "security_protocol": "SASL_SSL"}
    assert java_client.nodes(secured.bootstrap("SASL_SSL"), **config) == [1]


def test_tls_wants_the_authority_to_be_known(
    secured: KafkaCluster, java_client: JavaClient, authority: Authority
) -> None:
    servers = secured.bootstrap("SSL")
    assert java_client.nodes(servers, security_protocol="SSL", **trust(authority)) == [1]
    with pytest.raises(JavaClientError, match="SslAuthenticationException"):
        java_client.nodes(servers, security_protocol="SSL")


def test_mutual_tls_wants_a_certificate_of_the_authority(
    secured: KafkaCluster, java_client: JavaClient, authority: Authority
) -> None:
    servers = secured.bootstrap("MTLS")
    keys, _ = java_stores(authority, authority.issue("client", common_name="alice"))
    store = {"ssl_keystore_location": str(keys), "ssl_keystore_type": "PKCS12", "ssl_keystore_password": PASSWORD}
    config = {"security_protocol": "SSL", **trust(authority)}
    assert java_client.nodes(servers, **config, **store) == [1]
    with pytest.raises(JavaClientError, match="SslAuthenticationException"):
        java_client.nodes(servers, **config)


def test_signed_tokens_are_checked(secured: KafkaCluster, token_server: TokenServer) -> None:
    module = f"{SASL_MODULES}.oauthbearer.OAuthBearerLoginModule required"
    config = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_jaas_config": f'{module} clientId="{CLIENT_ID}" clientSecret="{CLIENT_SECRET}";',
        "sasl_oauthbearer_token_endpoint_url": token_server.token_url,
        "sasl_login_callback_handler_class": f"{SASL_MODULES}.oauthbearer.OAuthBearerLoginCallbackHandler",
    }
    with JavaClient(NEWEST, {"org.apache.kafka.sasl.oauthbearer.allowed.urls": token_server.token_url}) as java:
        assert java.nodes(secured.bootstrap("SASL_PLAINTEXT"), **config) == [1]
        foreign = {"access_token": token_server.sign(aud=f"not-{AUDIENCE}"), "expires_in": 3600}
        token_server.answers.append((200, json.dumps(foreign).encode()))
        with pytest.raises(JavaClientError, match="SaslAuthenticationException"):
            java.nodes(secured.bootstrap("SASL_PLAINTEXT"), **config)


def test_tokens_are_for_known_clients_only(token_server: TokenServer) -> None:
    def ask(secret: str) -> bytes:
        form = {"grant_type": "client_credentials", "client_id": CLIENT_ID, "client_secret": secret}
        with urllib.request.urlopen(token_server.token_url, urllib.parse.urlencode(form).encode(), 10.0) as answer:
            return bytes(answer.read())

    assert json.loads(ask(CLIENT_SECRET))["access_token"].count(".") == 2
    assert token_server.requests[-1].client_id == CLIENT_ID
    with pytest.raises(urllib.error.HTTPError) as refusal:
        ask("wrong")
    refusal.value.close()
    assert refusal.value.code == 401


def test_kerberos_lets_in_who_has_a_ticket(kdc: KeyDistributionCenter, kerberized: KafkaCluster) -> None:
    servers = kerberized.bootstrap("SASL_PLAINTEXT")
    config = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "GSSAPI", "sasl_kerberos_service_name": "kafka"}
    # A JVM of its own: Java reads one Kerberos configuration per process.
    with JavaClient(NEWEST, {"java.security.krb5.conf": str(kdc.config)}) as java:
        alice = kdc.login_module("alice")
        assert java.nodes(servers, **config, sasl_jaas_config=f"{alice};") == [1]
        with pytest.raises(JavaClientError, match=r"KafkaException|LoginException"):
            java.nodes(servers, **config, sasl_jaas_config=f"{alice.replace('alice', 'mallory')};")


# Of the newest release: share/test_share_consumer.py has users without rights.
@pytest.mark.matrix
@pytest.mark.parametrize("version", ["1.1.1", "2.8.2", NEWEST])
def test_access_control_keeps_out_who_was_not_let_in(version: str, kafka_at: StartKafka) -> None:
    users = sasl.plain({"root": "secret", "alice": "secret"})
    security = [users, sasl.access_control(version, "root")]
    cluster = kafka_at(version, listeners=("SASL_PLAINTEXT",), security=security)
    topic = cluster.create_topic("guarded")
    with JavaClient(need_kafka("3.9.1")) as java:
        java.produce(cluster.bootstrap_servers, topic, [{"value": b"x"}], **login("PLAIN", "root", "secret"))
        with pytest.raises(JavaClientError, match="TopicAuthorizationException"):
            java.produce(cluster.bootstrap_servers, topic, [{"value": b"x"}], **login("PLAIN", "alice", "secret"))


def test_certificates_of_every_kind(authority: Authority) -> None:
    def check(certificate: Certificate, *options: str) -> str:
        result = subprocess.run(
            ["openssl", "verify", "-CAfile", str(authority.cert), *options, str(certificate.cert)],
            capture_output=True,
            text=True,
            check=False,
        )
        return result.stdout + result.stderr

    good = authority.issue("good")
    assert check(good, "-verify_ip", "127.0.0.1").endswith("OK\n")
    assert check(good, "-verify_hostname", "localhost").endswith("OK\n")
    assert "has expired" in check(authority.issue("old", days=-1))
    assert (
        "hostname mismatch"
        in check(authority.issue("other", names=["DNS:example.org"]), "-verify_hostname", "localhost").lower()
    )
    revoked = authority.issue("revoked")
    assert "certificate revoked" in check(revoked, "-crl_check", "-CRLfile", str(authority.revoke(revoked)))
    locked = authority.issue("locked", password=PASSWORD)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    with pytest.raises(ssl.SSLError):
        context.load_cert_chain(locked.cert, locked.key, "wrong")
    context.load_cert_chain(locked.cert, locked.key, PASSWORD)


@pytest.mark.matrix
@pytest.mark.parametrize("version", ["0.10.2.2", "1.1.1", "2.8.2", "3.9.1"])
def test_old_brokers_know_passwords_too(version: str, kafka_at: StartKafka) -> None:
    security = [sasl.plain({"alice": "secret"}), sasl.scram("SCRAM-SHA-512")]
    cluster = kafka_at(version, listeners=("SASL_PLAINTEXT",), security=security)
    cluster.add_scram_user("bob", "hunter2", "SCRAM-SHA-512")
    with JavaClient(need_kafka("3.9.1")) as java:
        for mechanism, user, password in (("PLAIN", "alice", "secret"), ("SCRAM-SHA-512", "bob", "hunter2")):
            assert java.nodes(cluster.bootstrap_servers, **login(mechanism, user, password)) == [1]
