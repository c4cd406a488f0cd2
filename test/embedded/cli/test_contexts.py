"""C4: where the options of a command come from, and that secrets show nowhere."""

from __future__ import annotations

import io
import stat
from argparse import Namespace
from pathlib import Path

import pytest

from kafka.broker import Broker
from kafka.cli.connection import settings

from .shell import run


def options(**given: object) -> dict[str, str]:
    words = {"bootstrap_servers": None, "options": [], "config_file": None, "context": None}
    return settings(Namespace(**{**words, **given}))


def test_c4_a_flag_overrides_a_variable_a_context_and_a_file(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    found = options(**both)
    assert (found["client_id"], found["bootstrap_servers"], found["linger_ms"]) == ("variable", "variable:1", "2")
    found = options(**both, options=["client.id=flag"], bootstrap_servers="flag:1")
    assert (found["client_id"], found["bootstrap_servers"]) == ("flag", "flag:1")


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
    import subprocess
    import sys

    def python(module: str, *words: str, stdin: str = "") -> str:
        command = [sys.executable, "-m", module, *words]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60, check=True)
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
