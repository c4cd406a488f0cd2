"""client.properties as Java's programs have it: one file for Kafka's own tools and for purekafka --config."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka.config.client_properties import parse_properties
from test.embedded.cli.shell import run
from test.real import jvm
from test.real.certificates import PASSWORD, Authority, java_stores
from test.real.java_tools import JavaTools
from test.real.kafka_process import KafkaCluster
from test.real.oauth import CLIENT_ID, CLIENT_SECRET, TokenServer
from test.real.releases import NEWEST
from test.unit.config.test_client_properties import PROPERTIES

FACTS = Path(jvm.__file__).parent / "java" / "PropertiesFacts.java"
TOPICS = "org.apache.kafka.tools.TopicCommand"
MODULES = "org.apache.kafka.common.security"


@pytest.fixture(scope="module")
def tools(token_server: TokenServer) -> Iterator[JavaTools]:
    """Kafka's tools, which may ask the server for tokens."""
    with JavaTools(NEWEST, {"org.apache.kafka.sasl.oauthbearer.allowed.urls": token_server.token_url}) as running:
        yield running


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No contexts and no address of another cluster."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("KAFKA_BOOTSTRAP_SERVERS", raising=False)


def jks(source: Path) -> Path:
    """Return a PKCS12 store as JKS."""
    target = source.with_suffix(".jks")
    if not target.exists():
        words = ["-srckeystore", str(source), "-srcstorepass", PASSWORD]
        words += ["-destkeystore", str(target), "-deststorepass", PASSWORD, "-deststoretype", "JKS"]
        subprocess.run(["keytool", "-importkeystore", "-noprompt", *words], check=True, capture_output=True)
    return target


@pytest.fixture
def files(secured: KafkaCluster, authority: Authority, token_server: TokenServer, tmp_path: Path) -> dict[str, Path]:
    keys, trusted = java_stores(authority, authority.issue("reader", common_name="reader"))
    secured.add_scram_user("ben", "hunter\\2", "SCRAM-SHA-512")

    def written(name: str, listener: str, text: str) -> Path:
        servers = secured.bootstrap(listener).replace(":", "\\:")
        file = tmp_path / f"{name}.properties"
        file.write_text(f"# {name}\nbootstrap.servers={servers}\nno.such.option=1\nkey.serializer=a.B\n{text}")
        return file

    def trust(store: Path, kind: str) -> str:
        return f"ssl.truststore.location={store}\nssl.truststore.type={kind}\nssl.truststore.password={PASSWORD}\n"

    def mutual(store: Path, kind: str) -> str:
        own = f"ssl.keystore.location={store}\nssl.keystore.type={kind}\nssl.keystore.password={PASSWORD}\n"
        return f"security.protocol=SSL\n{own}ssl.key.password={PASSWORD}\n{trust(trusted, 'PKCS12')}"

    plain = f'{MODULES}.plain.PlainLoginModule required \\\n  username="ada" \\\n  password="@secret";\n'
    scram = f'{MODULES}.scram.ScramLoginModule required username="ben" password="hunter\\\\\\\\2";\n'
    oauth = f"{MODULES}.oauthbearer.OAuthBearerLoginModule required clientId={CLIENT_ID} clientSecret={CLIENT_SECRET} ;"
    handler = f"{MODULES}.oauthbearer.OAuthBearerLoginCallbackHandler"
    return {
        "plain": written(
            "plain",
            "SASL_SSL",
            f"security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.jaas.config={plain}{trust(jks(trusted), 'JKS')}",
        ),
        "scram": written(
            "scram",
            "SASL_PLAINTEXT",
            f"security.protocol = SASL_PLAINTEXT\nsasl.mechanism: SCRAM-SHA-512\nsasl.jaas.config={scram}",
        ),
        "oauth": written(
            "oauth",
            "SASL_PLAINTEXT",
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n"
            f"sasl.oauthbearer.token.endpoint.url={token_server.token_url}\n"
            f"sasl.login.callback.handler.class={handler}\nsasl.jaas.config={oauth}\n",
        ),
        "pkcs12": written("pkcs12", "MTLS", mutual(keys, "PKCS12")),
        "jks": written("jks", "MTLS", mutual(jks(keys), "JKS")),
        "pem": written(
            "pem",
            "SASL_SSL",
            f"security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.jaas.config={plain}"
            f"ssl.truststore.type=PEM\nssl.truststore.location={authority.cert}\n",
        ),
    }


@pytest.mark.parametrize("name", ["plain", "scram", "oauth", "pkcs12", "jks", "pem"])
def test_one_file_is_for_kafkas_own_tools_and_for_ours(name: str, files: dict[str, Path], tools: JavaTools) -> None:
    if name == "pkcs12":
        pytest.importorskip("cryptography")
    file = files[name]
    created = run(f"purekafka topics create by-{name} -p 1 --config {file}")
    assert (created.code, created.out) == (0, f"by-{name}: created with 1 partition\n"), created.err
    assert created.err == f"--config {file}: option 'no.such.option' does not exist; it is ignored\n"
    servers = parse_properties(file.read_text(encoding="utf-8"))["bootstrap.servers"]
    words = ("--bootstrap-server", servers, "--command-config", str(file), "--list")
    listed = tools.run(TOPICS, *words)
    assert f"by-{name}" in listed.out.splitlines(), listed.out + listed.err
    assert run(f"purekafka produce by-{name} --value tea --config {file}").code == 0
    assert run(f"purekafka contexts import {name} {file} --replace").code == 0
    assert run(f"purekafka consume by-{name} --context {name}").lines == ["tea"]


def test_java_reads_the_same_names_and_values() -> None:
    lines = [base64.b64encode(text.encode("latin-1", "backslashreplace")).decode() for text in PROPERTIES]
    argv = jvm.command(NEWEST, *jvm.QUICK_START, str(FACTS))
    done = subprocess.run(argv, input="\n".join(lines), capture_output=True, text=True, timeout=120, check=True)
    for text, answer in zip(PROPERTIES, done.stdout.splitlines(), strict=True):
        pairs = [tuple(map(_decoded, pair.split("="))) for pair in answer.split()]
        # Kafka cuts the white space around a value, whose end Java keeps.
        assert {name: value.strip() for name, value in pairs} == parse_properties(text), text


def _decoded(text: str) -> str:
    return base64.urlsafe_b64decode(f"{text}==").decode()
