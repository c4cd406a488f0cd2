"""The current releases of the common clients against the embedded broker: what each can do, shown as a table.

``make test-clients`` runs them. Each client is fetched once by its own package manager into the cache that runs share;
one whose tools are not installed is skipped with a line that says which.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
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

from .clients.toxiproxy import Toxiproxy
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


def _suite(name: str, module: str, package: str, *flags: str) -> Path:
    """The directory of a Go module with its own tests, compiled there as the program ``judge``."""
    go = _tool("go")

    def make(where: Path) -> None:
        _fetch([go, "mod", "init", "judge"], where)
        _fetch([go, "get", module], where)
        listed = subprocess.run(
            [go, "list", "-m", "-f", "{{.Dir}}", module.split("@", maxsplit=1)[0]],
            cwd=where,
            capture_output=True,
            text=True,
            check=True,
        )
        source = shutil.copytree(listed.stdout.strip(), where / name, copy_function=shutil.copyfile)
        source.chmod(0o755)
        _fetch([go, "test", "-c", *flags, "-o", str(source / package / "judge"), f"./{package}"], source)

    return _made(f"{name}_tests", (module, package, flags), CLIENTS / name / "main.go", make) / name / package


def _run_suite(home: Path, environment: dict[str, str], wanted: str, skipped: dict[str, str]) -> tuple[int, list[str]]:
    """Run tests of Go but those that are skipped for the reason given; how many passed, and what was skipped there."""
    words = ["-test.v", "-test.timeout=850s", f"-test.run={wanted}", f"-test.skip=^({'|'.join(skipped)})$"]
    result = subprocess.run(
        [str(home / "judge"), *words],
        cwd=home,
        capture_output=True,
        text=True,
        timeout=900,
        env={**os.environ, **environment},
        check=False,
    )
    lines = [line for line in result.stdout.splitlines() if line.startswith("--- ")]
    found = {
        word: [line.split()[2] for line in lines if line.startswith(f"--- {word}")] for word in ("PASS", "FAIL", "SKIP")
    }
    print(f"{len(found['PASS'])} passed, {len(found['FAIL'])} failed, {found['SKIP']} skipped, and these by us:")
    for name, why in skipped.items():
        print(f"  {name}: {why}")
    assert result.returncode == 0, result.stdout[-100_000:]
    return len(found["PASS"]), found["SKIP"]


@pytest.mark.timeout(1200)
def test_the_tests_of_franz_go_pass() -> None:
    """Those of its module, with SCRAM and tokens; most need a cluster."""
    home = _suite("franz_go", FRANZ_GO_TESTS, "pkg/kgo")
    internal = "it reads __consumer_offsets, which this broker has not"
    skipped = {
        "TestConsumeRegex": internal,
        "TestConsumeRegexShareSkipsInternal": internal,
        "Test848RegexBrokerResolves": internal,
    }
    users = [("SCRAM-SHA-256", "ada", "secret")]
    tokens = [("OAUTHBEARER", "admin", "")]
    # The consumers of its test of share groups release records; on a slow machine some are so delivered five times,
    # the limit of a new group, and the release after that gives them up, in Kafka too.
    configs = {"default.replication.factor": 3, "group.share.delivery.count.limit": 10}
    with (
        Broker(nodes=3, configs=configs) as broker,
        Broker(sasl=users) as secured,
        Broker(sasl=tokens) as with_tokens,
    ):
        environment = {
            "KGO_SEEDS": broker.bootstrap_servers,
            "KGO_TEST_RECORDS": "20000",
            "KGO_TEST_RF": "3",
            "KGO_LOG_LEVEL": "none",
            "KGO_TEST_SCRAM": "ada:secret:256",
            "KGO_TEST_SCRAM_SEEDS": secured.bootstrap_servers,
            "KGO_TEST_OAUTH_SEEDS": with_tokens.bootstrap_servers,
        }
        passed, left = _run_suite(home, environment, ".", skipped)
    assert passed > 140
    assert left == ["TestIssueProduceBrokerTooOldFailsRecords"], "for brokers before Kafka 0.11"


@pytest.mark.timeout(1200)
def test_the_tests_of_sarama_pass(tmp_path: Path) -> None:
    """Its functional tests, which cut connections and stop nodes."""
    home = _suite("sarama", SARAMA[0], ".", "-tags=functional")
    skipped = {"TestFuncIdempotentBufferedSequence": "it looks into the log of a container"}
    tests = {
        name
        for path in home.glob("functional*_test.go")
        for name in re.findall(r"^func (Test\w+)\(t \*testing\.T", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    with Toxiproxy(tmp_path) as toxiproxy:
        environment = {
            "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
            "TOXIPROXY_ADDR": toxiproxy.address,
            "KAFKA_VERSION": NEWEST,
        }
        passed, left = _run_suite(home, environment, f"^({'|'.join(sorted(tests))})$", skipped)
    assert passed > 60
    assert all("Java" in name or name == "TestReadOnlyAndAllCommittedMessages" for name in left), left


def _group(cluster: object, name: str) -> object:
    return cluster.service(GroupService).coordinator.groups[name]  # type: ignore[attr-defined]
