"""The embedded broker, judged by the command line tools that come with Kafka, as people use them against a real one."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafka.broker import Broker
from test.real import jvm
from test.real.java_tools import QUIET, JavaTools
from test.real.releases import NEWEST

TOOLS = "org.apache.kafka.tools."
RECORDS = 500
pytestmark = pytest.mark.breaks_invariant("leftovers", reason="clients of tools that have exited stay connected")
Tool = Callable[..., str]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(nodes=2, seed=3) as cluster:
        yield cluster


@pytest.fixture
def tool(broker: Broker, java_tools: JavaTools) -> Tool:
    """Runs a tool to its end; returns what it printed."""

    def run(main: str, *words: str, text: str = "") -> str:
        done = java_tools.run(main, "--bootstrap-server", broker.bootstrap_servers, *words, text=text)
        assert done.code == 0, f"{main}\n{done.out}\n{done.err}"
        assert "Exception" not in done.err, done.err
        return done.out

    return run


def test_topics_are_created_described_altered_and_deleted(broker: Broker, tool: Tool) -> None:
    main = TOOLS + "TopicCommand"
    create = ["--create", "--topic", "by-java", "--partitions", "3", "--replication-factor", "2"]
    assert "Created topic by-java." in tool(main, *create, "--config", "retention.ms=12345678")
    described = tool(main, "--describe", "--topic", "by-java")
    assert "PartitionCount: 3" in described
    assert "ReplicationFactor: 2" in described
    assert "retention.ms=12345678" in described
    assert len(re.findall(r"Leader: [12]\s", described)) == 3
    tool(main, "--alter", "--topic", "by-java", "--partitions", "5")
    assert broker.run(lambda cluster: len(cluster.topics["by-java"].partitions)) == 5
    tool(main, "--delete", "--topic", "by-java")
    assert "by-java" not in broker.run(lambda cluster: list(cluster.topics))


def test_records_of_the_console_producer_are_printed_by_the_console_consumer(broker: Broker, tool: Tool) -> None:
    broker.create_topic("console", 2)
    lines = "".join(f"k{number}\tv{number}\n" for number in range(50))
    tool(TOOLS + "ConsoleProducer", "--topic", "console", "--reader-property", "parse.key=true", text=lines)
    assert {(record.key, record.value) for record in broker.records("console")} == {
        (b"k%d" % number, b"v%d" % number) for number in range(50)
    }
    printed = tool(
        TOOLS + "consumer.ConsoleConsumer",
        *("--topic", "console", "--from-beginning", "--max-messages", "50"),
        *("--group", "console-group", "--formatter-property", "print.key=true"),
    )
    assert sorted(printed.splitlines()) == sorted(lines.splitlines())
    groups = TOOLS + "consumer.group.ConsumerGroupCommand"
    described = tool(groups, "--describe", "--group", "console-group")
    rows = [line.split() for line in described.splitlines() if line.startswith("console-group")]
    assert [row[5] for row in rows] == ["0", "0"], described  # no lag
    reset = ["--reset-offsets", "--group", "console-group", "--topic", "console", "--to-earliest", "--execute"]
    tool(groups, *reset)
    assert "console-group" in tool(groups, "--list")
    assert "successful" in tool(groups, "--delete", "--group", "console-group")


def verifiable(broker: Broker, kind: str, *words: str) -> str:
    """Run one of the two clients that print what they did as their JVM shuts down."""
    main = [f"-Dlog4j2.configurationFile={QUIET}", f"{TOOLS}Verifiable{kind}"]
    done = jvm.run(NEWEST, *main, "--bootstrap-server", broker.bootstrap_servers, *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_the_verifiable_clients_agree(broker: Broker, protocol: str) -> None:
    topic = f"verified-{protocol}"
    broker.create_topic(topic, 3)
    sent = verifiable(broker, "Producer", "--topic", topic, "--max-messages", str(RECORDS), "--acks", "-1")
    summary = json.loads(sent.splitlines()[-1])
    assert (summary["sent"], summary["acked"]) == (RECORDS, RECORDS)
    words = ["--topic", topic, "--group-id", topic, "--group-protocol", protocol, "--max-messages", str(RECORDS)]
    seen = verifiable(broker, "Consumer", *words, "--reset-policy", "earliest")
    events = [json.loads(line) for line in seen.splitlines()]
    assert sum(event["count"] for event in events if event["name"] == "records_consumed") == RECORDS
    assert all(event["success"] for event in events if event["name"] == "offsets_committed")


def test_the_performance_tools_run(broker: Broker, tool: Tool) -> None:
    broker.create_topic("perf", 2)
    sent = tool(
        TOOLS + "ProducerPerformance",
        *("--topic", "perf", "--num-records", "20000", "--record-size", "100", "--throughput", "-1"),
    )
    assert "20000 records sent" in sent
    read = tool(TOOLS + "ConsumerPerformance", "--topic", "perf", "--num-records", "20000", "--timeout", "20000")
    assert int(read.splitlines()[-1].split(",")[4]) >= 20000, read


def test_configuration_offsets_records_and_directories(broker: Broker, tool: Tool, tmp_path: Path) -> None:
    broker.create_topic("looked-at", 1)
    broker.append_many("looked-at", ["a", "b", "c"])
    configs = ["--entity-type", "topics", "--entity-name", "looked-at"]
    tool("kafka.admin.ConfigCommand", "--alter", *configs, "--add-config", "max.message.bytes=5000")
    assert broker.run(lambda cluster: cluster.topics["looked-at"].configs) == {"max.message.bytes": "5000"}
    assert "looked-at:0:3" in tool(TOOLS + "GetOffsetShell", "--topic", "looked-at")
    plan = tmp_path / "plan.json"
    plan.write_text(
        json.dumps({"version": 1, "partitions": [{"topic": "looked-at", "partition": 0, "offset": 2}]}),
        encoding="utf-8",
    )
    assert "low_watermark: 2" in tool(TOOLS + "DeleteRecordsCommand", "--offset-json-file", str(plan))
    assert "looked-at" in tool(TOOLS + "LogDirsCommand", "--describe", "--topic-list", "looked-at")
    assert "Produce(0): 0 to 13" in tool(TOOLS + "BrokerApiVersionsCommand")


def test_transactions_are_listed_and_described(broker: Broker, tool: Tool) -> None:
    broker.create_topic("transacted", 1)
    sent = tool(
        TOOLS + "ProducerPerformance",
        *("--topic", "transacted", "--num-records", "200", "--record-size", "10", "--throughput", "-1"),
        *("--transactional-id", "java-tid", "--transaction-duration-ms", "50"),
    )
    assert "200 records sent" in sent
    assert len(broker.records("transacted", committed=True)) == 200
    listed = tool(TOOLS + "TransactionsCommand", "list")
    assert "java-tid" in listed
    assert "CompleteCommit" in tool(TOOLS + "TransactionsCommand", "describe", "--transactional-id", "java-tid")
    producers = tool(TOOLS + "TransactionsCommand", "describe-producers", "--topic", "transacted", "--partition", "0")
    assert "CurrentTransactionStartOffset" in producers
