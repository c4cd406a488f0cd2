"""The current releases of the common clients against the embedded broker: what each can do, shown as a table.

``make test-clients`` runs them. Each client is fetched once by its own package manager into the cache that runs share;
one whose tools are not installed is skipped with a line that says which.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from kafka.broker import Broker
from kafka.broker.groups.consumer_group import ConsumerGroup
from kafka.broker.groups.service import GroupService
from test.real import jvm
from test.real.kafka_jars import KafkaUnavailable, cache_dir, locked
from test.real.releases import NEWEST

from .peer_venvs import python_of

pytestmark = pytest.mark.soak

HERE = Path(__file__).parent
CLIENTS = HERE / "clients"
FETCH_TIMEOUT = 600
RUN_TIMEOUT = 300
KAFKAJS = "2.2.4"
FRANZ_GO = ("github.com/twmb/franz-go@v1.22.2", "github.com/twmb/franz-go/pkg/kadm@v1.19.0")
FRANZ_GO_TESTS = "github.com/twmb/franz-go@v1.22.3"
SARAMA = ("github.com/IBM/sarama@v1.61.1",)

#: What every client can do, and what those can that have the consumer protocol of KIP-848.
ALL = ("list_topics", "produce", "pattern", "classic", "transaction")
KIP_848 = ("consumer", "pattern_consumer")


class Client(NamedTuple):
    """How a client is run, and what it can do."""

    command: Callable[[], list[str]]
    version: str
    has_848: bool = False


def _python(peer: str, script: str) -> Callable[[], list[str]]:
    return lambda: [str(python_of(peer)), "-I", str(CLIENTS / script)]


def _tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"this client needs the program {name}")
    return found


def _made(name: str, recipe: object, source: Path, make: Callable[[Path], None]) -> Path:
    """Return the directory of a client in the cache, made anew where its source or version has changed."""
    digest = hashlib.sha256(repr(recipe).encode() + source.read_bytes()).hexdigest()[:8]
    home = cache_dir() / f"client-{name}-{digest}"
    if not home.is_dir():
        cache_dir().mkdir(parents=True, exist_ok=True)
        with locked(cache_dir() / f"client-{name}.lock"):
            if not home.is_dir():
                partial = home.with_name(f".{home.name}.partial")
                shutil.rmtree(partial, ignore_errors=True)
                partial.mkdir()
                shutil.copy(source, partial)
                make(partial)
                partial.rename(home)
    return home


def _fetch(command: list[str], where: Path) -> None:
    result = subprocess.run(command, cwd=where, capture_output=True, text=True, timeout=FETCH_TIMEOUT, check=False)
    if result.returncode:
        pytest.skip(f"{' '.join(command)} failed: {(result.stderr.strip().splitlines() or ['?'])[-1]}")


def _kafkajs() -> list[str]:
    node, npm = _tool("node"), _tool("npm")
    install = [npm, "install", "--no-audit", "--no-fund", "--silent", f"kafkajs@{KAFKAJS}"]
    home = _made("kafkajs", KAFKAJS, CLIENTS / "kafkajs" / "main.js", lambda where: _fetch(install, where))
    return [node, str(home / "main.js")]


def _go(name: str, modules: tuple[str, ...]) -> Callable[[], list[str]]:
    def command() -> list[str]:
        go = _tool("go")

        def make(where: Path) -> None:
            _fetch([go, "mod", "init", "judge"], where)
            _fetch([go, "get", *modules], where)
            _fetch([go, "build", "-o", "judge", "."], where)

        return [str(_made(name, modules, CLIENTS / name / "main.go", make) / "judge")]

    return command


def _java() -> list[str]:
    try:
        quiet = f"-Dlog4j2.configurationFile={HERE / 'quiet.properties'}"
        return jvm.command(NEWEST, *jvm.QUICK_START, "-Xmx256m", quiet, str(CLIENTS / "Judge.java"))
    except KafkaUnavailable as why:
        pytest.skip(str(why))


JUDGES = {
    "confluent-kafka": Client(_python("confluent-kafka", "python_confluent.py"), "2.16.1", has_848=True),
    "aiokafka": Client(_python("aiokafka", "python_aiokafka.py"), "0.14.0"),
    "kafka-python": Client(_python("kafka-python", "python_kafka_python.py"), "3.0.12"),
    "kafkajs": Client(_kafkajs, KAFKAJS),
    "franz-go": Client(_go("franz_go", FRANZ_GO), "1.22.2", has_848=True),
    "sarama": Client(_go("sarama", SARAMA), "1.61.1"),
    "kafka-clients": Client(_java, NEWEST, has_848=True),
}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(nodes=3, configs={"default.replication.factor": 3}) as running:
        yield running


@pytest.fixture(scope="module")
def table() -> Iterator[dict[str, list[str]]]:
    """Collect a row for each client, and show them at the end."""
    rows: dict[str, list[str]] = {}
    yield rows
    for name, row in rows.items():
        print(f"{name:16}", *(f"{cell:>16}" for cell in row))


@pytest.mark.parametrize("name", JUDGES)
def test_a_client_can_do_what_clients_do(
    broker: Broker, table: dict[str, list[str]], caplog: pytest.LogCaptureFixture, name: str
) -> None:
    """List all topics, produce, subscribe by pattern, consume in both kinds of group, run transactions."""
    client = JUDGES[name]
    for suffix, partitions in (("a", 2), ("b", 1), ("tx", 1), ("other", 1)):
        broker.create_topic(f"{name}-{suffix}", partitions)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    result = subprocess.run(
        [*client.command(), broker.bootstrap_servers, name],
        capture_output=True,
        text=True,
        timeout=RUN_TIMEOUT,
        env=environment,
        check=False,
    )
    assert result.returncode == 0, f"{name} said\n{result.stdout}\n{result.stderr}"
    said = dict.fromkeys(line.removeprefix("can ") for line in result.stdout.splitlines() if line.startswith("can "))
    (version,) = [line.split()[1] for line in result.stdout.splitlines() if line.startswith("version ")]
    expected = {*ALL, *(KIP_848 if client.has_848 else ())}
    table[name] = [version, *("yes" if each in said else "-" for each in (*ALL, *KIP_848))]
    print(name, *table[name])

    assert set(said) == expected
    assert version == client.version
    # The broker has seen what the client says that it did.
    assert len(broker.records(f"{name}-a")) == 100
    assert [record.value for record in broker.records(f"{name}-tx", committed=True)] == [b"committed"]
    assert len(broker.records(f"{name}-tx")) == 2
    groups = {"classic": False, "pattern": False, "consumer": True, "pattern-consumer": True}
    for suffix, is_848 in groups.items():
        if not is_848 or client.has_848:
            group = f"{name}-{suffix}"
            assert sum(broker.committed(group, f"{name}-a", index) or 0 for index in range(2)) == 100, group
            kind = broker.run(lambda cluster, group=group: type(_group(cluster, group)))
            assert (kind is ConsumerGroup) == is_848, group
    # And had no reason to close a connection.
    assert [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING] == []


def test_the_share_group_tests_of_franz_go_pass(broker: Broker) -> None:
    """They are in its module; the one for names of topics wants an internal topic, which this broker has not."""
    go = _tool("go")

    def make(where: Path) -> None:
        _fetch([go, "mod", "init", "judge"], where)
        _fetch([go, "get", FRANZ_GO_TESTS], where)
        listed = subprocess.run(
            [go, "list", "-m", "-f", "{{.Dir}}", FRANZ_GO_TESTS.split("@", maxsplit=1)[0]],
            cwd=where,
            capture_output=True,
            text=True,
            check=True,
        )
        source = shutil.copytree(listed.stdout.strip(), where / "franz-go", copy_function=shutil.copyfile)
        source.chmod(0o755)
        _fetch([go, "test", "-c", "-o", str(where / "judge"), "./pkg/kgo"], source)

    home = _made("franz_go_tests", FRANZ_GO_TESTS, CLIENTS / "franz_go" / "main.go", make)
    environment = {
        "KGO_SEEDS": broker.bootstrap_servers,
        "KGO_TEST_RECORDS": "20000",
        "KGO_TEST_RF": "3",
        "KGO_LOG_LEVEL": "none",
    }
    result = subprocess.run(
        [home / "judge", "-test.v", "-test.run", "^TestShareGroup"],
        cwd=home,
        capture_output=True,
        text=True,
        timeout=RUN_TIMEOUT,
        env={**os.environ, **environment},
        check=False,
    )
    print(result.stdout)
    assert result.returncode == 0, result.stdout
    for name in ("TestShareGroupETL", "TestShareGroupAckOnClose", "TestShareGroupOffsetsAdmin"):
        assert f"--- PASS: {name} " in result.stdout


def _group(cluster: object, name: str) -> object:
    return cluster.service(GroupService).coordinator.groups[name]  # type: ignore[attr-defined]
