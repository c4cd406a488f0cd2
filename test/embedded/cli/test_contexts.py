"""C4: where the options of a command come from, and that secrets show nowhere."""

from __future__ import annotations

import io
import ssl
import stat
import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka.broker import Broker
from kafka.cli.options import settings
from test import quick_start

from .conftest import Shell
from .shell import run

CERTIFICATES = Path(__file__).parents[2] / "unit" / "net" / "certs"


def options(**given: object) -> dict[str, str]:
    words = {"bootstrap_servers": None, "options": [], "config_file": None, "context": None}
    return settings(Namespace(**{**words, **given}))


def test_c4_what_the_command_line_names_overrides_variables_and_these_the_current_context(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = home / "client.properties"
    file.write_text(
        "bootstrap.servers=file:1\nclient.id=file\nlinger.ms=1\nrequest.timeout.ms=1000\nkey.serializer=a.B\n"
    )
    run("purekafka contexts add prod -b context:1 -X client.id=context -X linger.ms=2")
    assert options()["client_id"] == "context", "the first context is in use"
    assert options(config_file=str(file))["client_id"] == "file", "a file that is named excludes the current context"
    both = {"config_file": str(file), "context": "prod"}
    found = options(**both)
    assert (found["client_id"], found["request_timeout_ms"]) == ("context", "1000")
    monkeypatch.setenv("PUREKAFKA_CLIENT_ID", "variable")
    monkeypatch.setenv("PUREKAFKA_BOOTSTRAP_SERVERS", "variable:1")
    monkeypatch.setenv("PUREKAFKA_ACKS", "1")
    found = options()
    assert (found["client_id"], found["bootstrap_servers"], found["linger_ms"]) == ("variable", "variable:1", "2")
    monkeypatch.setenv("PUREKAFKA_CONTEXT", "prod")
    assert options() == found, "a context that a variable names gives way as the current one does"
    found = options(config_file=str(file))
    assert (found["client_id"], found["bootstrap_servers"], found["acks"]) == ("file", "file:1", "1")
    for named in (both, {"context": "prod"}):
        found = options(**named)
        assert (found["client_id"], found["bootstrap_servers"], found["linger_ms"]) == ("context", "context:1", "2")
        assert "acks" not in found, "a context that is named is complete"
    found = options(**both, options=["client.id=flag"], bootstrap_servers="flag:1")
    assert (found["client_id"], found["bootstrap_servers"]) == ("flag", "flag:1")
    assert "bootstrap_servers" not in options(context="prod", options=["bootstrap.controllers=c:1"])


@pytest.fixture
def other() -> Iterator[Broker]:
    """A second cluster, in the context `other`, which is not the current one."""
    with Broker(topics={"events": 3, "orders": 1}) as other:
        assert run(f"purekafka contexts add other -b {other.bootstrap_servers}").code == 0
        assert run("purekafka contexts use --none").code == 0
        yield other


@pytest.mark.parametrize("variable", ["KAFKA_BOOTSTRAP_SERVERS", "PUREKAFKA_BOOTSTRAP_SERVERS"])
def test_a_context_on_the_command_line_is_used_whatever_the_variables_say(
    variable: str, broker: Broker, other: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, broker.bootstrap_servers)
    broker.append("events", b"tea")
    copied = run("purekafka topics copy events events --to-context other")
    assert (copied.code, len(broker.records("events")), len(other.records("events"))) == (0, 1, 1)
    here, there = (f"{each.cluster.cluster_id} at {each.bootstrap_servers}" for each in (broker, other))
    assert copied.out == f"events: 1 record copied from cluster {here} to cluster {there}\n"
    deleted = run("purekafka --context other topics delete orders --yes")
    assert deleted.code == 0
    assert ("orders" in broker.cluster.topics, "orders" in other.cluster.topics) == (True, False)


def test_a_copy_to_a_context_does_not_take_over_how_the_source_is_reached(
    broker: Broker, other: Broker, home: Path
) -> None:
    broker.append("events", b"tea")
    file = home / "source.properties"
    file.write_text(f"bootstrap.servers={broker.bootstrap_servers}\nclient.id=source\n")
    assert run(f"purekafka --config {file} topics copy events events --to-context other").code == 0
    assert len(other.records("events")) == 1
    assert "source" not in {request.client_id for request in other.requests}
    assert run("purekafka topics copy events copied --create --sandbox --to-context other").code == 0
    assert len(other.records("copied")) == 30


def test_a_copy_of_a_topic_to_itself_is_refused_under_every_name_of_its_cluster(broker: Broker, shell: Shell) -> None:
    assert run(f"purekafka contexts add same -b {broker.bootstrap_servers}").code == 0
    broker.append("events", b"tea")
    for words in ("", "--to-context same"):
        refused = shell(f"purekafka topics copy events events {words}")
        assert (refused.code, "doubles its records" in refused.err) == (2, True)
    assert len(broker.records("events")) == 1


def test_the_sandbox_and_another_cluster_exclude_each_other(other: Broker) -> None:
    for words in ("--context other", f"-b {other.bootstrap_servers}"):
        refused = run(f"purekafka topics delete orders --yes --sandbox {words}")
        assert (refused.code, "exclude each other" in refused.err) == (2, True)


def test_a_plan_names_the_cluster(broker: Broker, other: Broker, shell: Shell) -> None:
    for line in (
        "topics delete orders",
        "records delete-before events --place end",
        "groups reset-offsets g --topic events --to end -f json",
        "partitions elect events",
    ):
        planned = shell(f"purekafka {line} --dry-run")
        assert planned.err.splitlines()[0] == f"Cluster {broker.cluster.cluster_id} at {broker.bootstrap_servers}"
        elsewhere = shell(f"purekafka --context other {line} --yes")
        assert elsewhere.err.splitlines()[0] == f"Cluster {other.cluster.cluster_id} at {other.bootstrap_servers}"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("client.properties", "bootstrap.servers=b1:9092,\\\n  b2:9092\nsecurity.protocol = SASL_SSL\n! old\n"),
        ("kcat.conf", "metadata.broker.list=b1:9092,b2:9092\nsecurity.protocol=SASL_SSL\nbroker.address.family=v4\n"),
        ("config.toml", "bootstrap_servers = \"b1:9092,b2:9092\" # two\nsecurity_protocol = 'SASL_SSL'\n"),
    ],
)
def test_c4_files_of_java_of_kcat_and_toml(name: str, text: str, home: Path) -> None:
    (home / name).write_text(text)
    expected = {"bootstrap_servers": "b1:9092,b2:9092", "security_protocol": "SASL_SSL"}
    assert options(config_file=str(home / name)) == expected


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (b"\xff", "it is not text in UTF-8"),
        (b'contexts = "a"', "a context is a table"),
        (b'[contexts]\na = "b1:9092"', "a context is a table"),
        (b'a = 1\n[a.b]\nc = "d"', "line 2: a has a value already"),
        (b'current = "a\\q"', 'line 1: "a\\q" is not a value'),
    ],
)
def test_a_file_of_contexts_that_is_malformed_is_an_error_of_usage(home: Path, text: bytes, complaint: str) -> None:
    run("purekafka contexts add a -b b1:9092")
    (home / "purekafka" / "config.toml").write_bytes(text)
    outcome = run("purekafka contexts list")
    assert (outcome.code, complaint in outcome.err) == (2, True), outcome.err


def test_c4_contexts_are_one_file_that_only_its_owner_reads(home: Path) -> None:
    run("purekafka contexts add a -b b1:9092")
    file = home / "purekafka" / "config.toml"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert run("purekafka contexts add a -b b2:9092").code == 2
    assert run("purekafka contexts add a -b b2:9092 --replace").code == 0
    assert run("purekafka contexts add b -b b3:9092").code == 0
    assert run("purekafka contexts use b").out == "b: in use\n"
    assert [(row["name"], row["current"]) for row in run("purekafka contexts list -f json").json] == [
        ("a", False),
        ("b", True),
    ]
    outcome = run("purekafka --context prd topics list")
    assert (outcome.code, "context 'prd' does not exist" in outcome.err) == (2, True)
    assert run("purekafka contexts remove b").code == 0
    assert run("purekafka contexts show b").code == 2


def test_c4_a_password_comes_from_elsewhere_and_shows_nowhere(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADA", "hush")
    (home / "secret").write_text("hush\n")
    with Broker(topics=["events"], sasl=[("PLAIN", "ada", "hush")]) as broker:
        common = "-X security.protocol=SASL_PLAINTEXT -X sasl.mechanisms=PLAIN -X sasl.username=ada"
        servers = f"-b {broker.bootstrap_servers}"
        for value in ("@env:ADA", f"@{home / 'secret'}"):
            assert run(f"purekafka topics list -q {servers} {common} -X sasl.password={value}").lines == ["events"]
        added = run(f"purekafka contexts add prod {servers} {common} -X sasl.password=hush")
        assert (added.code, "hush" in added.out) == (0, False)
        assert run("purekafka topics list -q").lines == ["events"]
        for line in ("contexts show prod", "contexts list", "contexts show prod -f json"):
            outcome = run(f"purekafka {line}")
            assert outcome.code == 0
            assert "hush" not in outcome.out + outcome.err
        wrong = run(f"purekafka topics list {servers} {common} -X sasl.password=psst")
        assert wrong.code == 1
        assert "psst" not in wrong.err

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    assert run("purekafka topics list -X sasl.password=@prompt").code == 2, "standard input is not a terminal"
    monkeypatch.setattr("sys.stdin", Terminal())
    monkeypatch.setattr("getpass.getpass", lambda prompt: f"{prompt}hush")
    assert options(options=["sasl.password=@prompt"])["sasl_plain_password"] == "sasl.password: hush"
    assert run("purekafka topics list -X sasl.pasword=x").code == 2


JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="ada" password="@hu;sh";'


def test_a_file_of_java_with_jaas_and_a_trust_store_of_java_connects(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATES / "server.pem", CERTIFICATES / "server.key")
    (home / "hush").write_text(JAAS)
    file = home / "client.properties"
    with Broker(topics=["events"], sasl=[("PLAIN", "ada", "@hu;sh")], ssl_context=context) as broker:
        common = (
            f"bootstrap.servers={broker.bootstrap_servers.replace(':', chr(92) + ':')}\nsecurity.protocol=SASL_SSL\n"
            f"sasl.mechanism=PLAIN\nssl.truststore.location={CERTIFICATES / 'ca.jks'}\nssl.truststore.password=s3cret\n"
            "ssl.truststore.type=JKS\nssl.enabled.protocols=TLSv1.3\ninterceptor.classes=a.B\nlisten.to.me=1\n"
        )
        file.write_text(f"{common}sasl.jaas.config={JAAS}\n")
        listed = run(f"purekafka topics list -q --config {file}")
        assert (listed.code, listed.lines) == (0, ["events"]), listed.err
        assert listed.err == f"--config {file}: option 'listen.to.me' does not exist; it is ignored\n"
        imported = run(f"purekafka contexts import prod {file}")
        assert (imported.code, "listen.to.me" in imported.err) == (0, True)
        assert run("purekafka topics list -q").lines == ["events"]
        shown = run("purekafka contexts show prod")
        assert "sasl_jaas_config" in shown.out
        for secret in ("hu;sh", "s3cret"):
            assert secret not in shown.out
        # The text of JAAS from a file, a variable and a context.
        file.write_text(common)
        assert run("purekafka contexts use --none").code == 0
        assert run(f"purekafka topics list -q --config {file} -X sasl.jaas.config=@{home / 'hush'}").lines == ["events"]
        monkeypatch.setenv("PUREKAFKA_SASL_JAAS_CONFIG", JAAS)
        assert run(f"purekafka topics list -q --config {file}").lines == ["events"]
        wrong = run(f"purekafka topics list -q --config {file} -X sasl.jaas.config=hu;sh")
        assert (wrong.code, "hu;sh" in wrong.err, "login module" in wrong.err) == (2, False, True)
        wrong = run(f"purekafka topics list -q --config {file} -X ssl.truststore.password=psst")
        assert (wrong.code, "psst" in wrong.err, "password of the JKS store is wrong" in wrong.err) == (2, False, True)


SECRETS = ("hush-1", "hush-2", "hush-3", "hush-4")


def test_no_command_writes_a_secret_to_a_file_the_output_or_the_log(
    home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """From a variable, -X, a file of Java and a context; only the context has it, and only its owner reads that."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    file = tmp_path / "client.properties"
    jaas = 'x.PlainLoginModule required username="ada" password="{}";'
    file.write_text(f"sasl.jaas.config={jaas.format('hush-2')}\n")
    users = [("PLAIN", "ada", SECRETS[0])]
    with Broker(topics={"events": 1, "orders": 1}, sasl=users, configs={"super.users": "User:ada"}) as broker:
        servers = f"-b {broker.bootstrap_servers} -X security.protocol=SASL_PLAINTEXT -X sasl.mechanism=PLAIN"
        flags = f"{servers} -X sasl.username=ada -X sasl.password=hush-1 -X ssl.key.password=hush-4"
        assert run(f"purekafka contexts add prod {flags}").code == 0
        assert run(f"purekafka contexts import java {file}").code == 2, "without an address"
        monkeypatch.setenv("PUREKAFKA_SCHEMA_REGISTRY_TOKEN", "hush-3")
        shown = []
        for line in (
            f"-vv topics list {flags}",
            f"-vv topics describe {flags}",
            f"-vv topics list {servers} --config {file}",
            "-vv consume events --context prod",
            "-vv produce events --value tea --context prod",
            "-vv groups lag --context prod",
            "-vv topics delete orders --context prod --dry-run",
            "contexts list -f json",
            "contexts show prod",
            "contexts show prod -f json",
            "contexts add new -b b1:9092 -X sasl.password:hush-1",
            f"-X sasl.password:hush-1 topics list {servers}",
            "configs set broker 1 listener.name.x.ssl.keystore.password=hush-1 --dry-run --context prod",
            f"completion words -- topics describe {flags} e",
            "completion words -- topics describe --context prod o",
        ):
            outcome = _logged(line)
            shown.append(outcome)
            assert not [secret for secret in SECRETS if secret in outcome], f"{line}\n{outcome}"
        assert "Traceback" not in "".join(shown)
        assert run("purekafka completion words -- topics describe --context prod o").lines == ["orders"]
    written = {path for path in home.rglob("*") if path.is_file() and path != file}
    assert {path.name for path in written} == {"config.toml", "names.json"}
    for path in written:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert not [secret for secret in SECRETS if secret in (home / "cache" / "purekafka" / "names.json").read_text()]


def _logged(line: str) -> str:
    """Return all that a process prints, its log included."""
    words = [sys.executable, "-m", "kafka", *line.split()]
    done = quick_start.run(words, text=True)
    return done.stdout + done.stderr


def test_completion_asks_for_no_password_and_reads_no_input(
    broker: Broker, shell: Shell, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    monkeypatch.setattr("getpass.getpass", lambda *_: pytest.fail("a password is asked for"))
    for value in ("@prompt", "@-"):
        words = f"completion words -- topics describe -X client.id={value} e"
        assert shell(f"purekafka {words}", stdin=b"typed\n") == (0, b"", "")


def test_completions_are_remembered_for_one_cluster_and_one_user(
    broker: Broker, shell: Shell, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    assert shell("purekafka completion words -- consume ev").lines == ["events"]
    with Broker(topics=["evening"]) as other:
        assert shell(f"purekafka completion words -- consume -b {other.bootstrap_servers} ev").lines == ["evening"]
        assert run(f"purekafka contexts add other -b {other.bootstrap_servers}").code == 0
        assert shell("purekafka completion words -- consume --context other ev").lines == ["evening"]
    assert shell("purekafka completion words -- consume ev").lines == ["events"]
    assert run(f"purekafka contexts add same -b {broker.bootstrap_servers} -X client.id=me").code == 0
    broker.forget_requests()
    assert shell("purekafka completion words -- consume --context same ev").lines == ["events"]
    assert broker.requests, "another client"


def test_c4_a_context_is_imported_from_a_file(home: Path) -> None:
    file = home / "client.properties"
    file.write_text("bootstrap.servers=b1:9092\nsasl.password=@odd\nno.such.option=1\n")
    outcome = run(f"purekafka contexts import prod {file}")
    assert outcome.code == 0
    assert "no.such.option" in outcome.err
    assert options()["sasl_plain_password"] == "@odd"
    file.write_text("linger.ms=1\n")
    assert run(f"purekafka contexts import other {file}").code == 2


# C19: kafka-python 3…


def test_c19_the_words_of_kafka_python_3(capfd: pytest.CaptureFixture[str]) -> None:
    def python(module: str, *words: str, stdin: str = "") -> str:
        command = [sys.executable, "-m", module, *words]
        done = quick_start.run(command, input=stdin, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    with Broker() as broker:
        servers = ("-b", broker.bootstrap_servers)
        python("kafka.admin", *servers, "topics", "create", "-t", "events", "--num-partitions", "2")
        assert python("kafka.admin", *servers, "--format", "json", "topics", "list").count('"name": "events"') == 1
        python("kafka.producer", *servers, "-t", "events", stdin="hello\n")
        read = ("-t", "events", "-g", "g", "--from-beginning", "--max-messages", "1")
        assert python("kafka.consumer", *servers, *read) == "hello\n"
        assert "g" in python("kafka.admin", *servers, "groups", "list")
        assert "events" in python("kafka.admin", *servers, "partitions", "list-offsets", "-t", "events")
        python("kafka.admin", *servers, "topics", "delete", "-t", "events")
        assert broker.cluster.topics.get("events") is None


def test_clusters_with_one_id_are_distinguished_by_the_ids_of_topics(
    broker: Broker, other: Broker, shell: Shell
) -> None:
    """Files of docker-compose that were copied have the same CLUSTER_ID."""
    other.run(lambda cluster: setattr(cluster, "cluster_id", broker.cluster.cluster_id))
    broker.append("events", b"tea")
    copied = shell("purekafka topics copy events events --to-context other")
    assert (copied.code, len(broker.records("events")), len(other.records("events"))) == (0, 1, 1)


@pytest.mark.parametrize("name", ['a"b', "a[1]", "prüf", "a.b", "a b", "a\nb", "a\\", "#a", "\u2028", "'a'"])
def test_c4_a_context_may_have_any_name(name: str, home: Path) -> None:
    assert run("purekafka contexts add", name, "-b", "h:1", "-X", "client.id=[me] # 'you' \\").code == 0
    assert run("purekafka contexts add other -b h:2").code == 0
    assert sorted(one["name"] for one in run("purekafka contexts list --format json").json) == sorted([name, "other"])
    assert options(context=name) == {"bootstrap_servers": "h:1", "client_id": "[me] # 'you' \\"}
    assert run("purekafka contexts remove", name).code == 0
    assert [one["name"] for one in run("purekafka contexts list --format json").json] == ["other"]
