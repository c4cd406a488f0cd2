"""The embedded broker, judged by the command line tools that come with Kafka, as people use them against a real one."""

from __future__ import annotations

import functools
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka.broker import Broker
from test.real import jvm
from test.real.kafka_process import KafkaCluster
from test.real.releases import NEWEST

TOOLS = "org.apache.kafka.tools."
QUIET = Path(__file__).parent / "quiet.properties"
RECORDS = 500


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(nodes=2, seed=3) as cluster:
        yield cluster


@functools.cache
def _java_flags() -> list[str]:
    """Flags for a quick start: with the classes that a broker loads, many of which are the clients', mapped."""

    def train(flag: str) -> None:
        with KafkaCluster(NEWEST, java_args=(*jvm.QUICK_START, flag), archive=False) as kafka:
            kafka.stop(1)

    archive = jvm.class_archive(NEWEST, train)
    return [*jvm.QUICK_START, *([archive] if archive else [])]


def tool(broker: Broker, main: str, *words: str, text: str | None = None) -> str:
    """Run a tool to its end; what it printed."""
    java = jvm.command(NEWEST, *_java_flags(), "-Xmx256m", f"-Dlog4j2.configurationFile={QUIET}", main)
    argv = [*java, "--bootstrap-server", broker.bootstrap_servers, *words]
    result = subprocess.run(argv, input=text, capture_output=True, text=True, timeout=200, check=False)
    assert result.returncode == 0, f"{main}\n{result.stdout}\n{result.stderr}"
    assert "Exception" not in result.stderr, result.stderr
    return result.stdout


def test_topics_are_created_described_altered_and_deleted(broker: Broker) -> None:
    main = TOOLS + "TopicCommand"
    create = ["--create", "--topic", "by-java", "--partitions", "3", "--replication-factor", "2"]
    assert "Created topic by-java." in tool(broker, main, *create, "--config", "retention.ms=12345678")
    described = tool(broker, main, "--describe", "--topic", "by-java")
    assert "PartitionCount: 3" in described
    assert "ReplicationFactor: 2" in described
    assert "retention.ms=12345678" in described
    assert len(re.findall(r"Leader: [12]\s", described)) == 3
    tool(broker, main, "--alter", "--topic", "by-java", "--partitions", "5")
    assert broker.run(lambda cluster: len(cluster.topics["by-java"].partitions)) == 5
    tool(broker, main, "--delete", "--topic", "by-java")
    assert "by-java" not in broker.run(lambda cluster: list(cluster.topics))


def test_records_of_the_console_producer_are_printed_by_the_console_consumer(broker: Broker) -> None:
    broker.create_topic("console", 2)
    lines = "".join(f"k{number}\tv{number}\n" for number in range(50))
    tool(broker, TOOLS + "ConsoleProducer", "--topic", "console", "--reader-property", "parse.key=true", text=lines)
    assert {(record.key, record.value) for record in broker.records("console")} == {
        (b"k%d" % number, b"v%d" % number) for number in range(50)
    }
    printed = tool(
        broker,
        TOOLS + "consumer.ConsoleConsumer",
        *("--topic", "console", "--from-beginning", "--max-messages", "50"),
        *("--group", "console-group", "--formatter-property", "print.key=true"),
    )
    assert sorted(printed.splitlines()) == sorted(lines.splitlines())
    groups = TOOLS + "consumer.group.ConsumerGroupCommand"
    described = tool(broker, groups, "--describe", "--group", "console-group")
    rows = [line.split() for line in described.splitlines() if line.startswith("console-group")]
    assert [row[5] for row in rows] == ["0", "0"], described  # no lag
    reset = ["--reset-offsets", "--group", "console-group", "--topic", "console", "--to-earliest", "--execute"]
    tool(broker, groups, *reset)
    assert "console-group" in tool(broker, groups, "--list")
    assert "successful" in tool(broker, groups, "--delete", "--group", "console-group")


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_the_verifiable_clients_agree(broker: Broker, protocol: str) -> None:
    topic = f"verified-{protocol}"
    broker.create_topic(topic, 3)
    sent = tool(broker, TOOLS + "VerifiableProducer", "--topic", topic, "--max-messages", str(RECORDS), "--acks", "-1")
    summary = json.loads(sent.splitlines()[-1])
    assert (summary["sent"], summary["acked"]) == (RECORDS, RECORDS)
    words = ["--topic", topic, "--group-id", topic, "--group-protocol", protocol, "--max-messages", str(RECORDS)]
    seen = tool(broker, TOOLS + "VerifiableConsumer", *words, "--reset-policy", "earliest")
    events = [json.loads(line) for line in seen.splitlines()]
    assert sum(event["count"] for event in events if event["name"] == "records_consumed") == RECORDS
    assert all(event["success"] for event in events if event["name"] == "offsets_committed")


def test_the_performance_tools_run(broker: Broker) -> None:
    broker.create_topic("perf", 2)
    sent = tool(
        broker,
        TOOLS + "ProducerPerformance",
        *("--topic", "perf", "--num-records", "20000", "--record-size", "100", "--throughput", "-1"),
    )
    assert "20000 records sent" in sent
    read = tool(
        broker, TOOLS + "ConsumerPerformance", "--topic", "perf", "--num-records", "20000", "--timeout", "20000"
    )
    assert int(read.splitlines()[-1].split(",")[4]) >= 20000, read


def test_configuration_offsets_records_and_directories(broker: Broker, tmp_path: Path) -> None:
    broker.create_topic("looked-at", 1)
    broker.append_many("looked-at", ["a", "b", "c"])
    configs = ["--entity-type", "topics", "--entity-name", "looked-at"]
    tool(broker, "kafka.admin.ConfigCommand", "--alter", *configs, "--add-config", "max.message.bytes=5000")
    assert broker.run(lambda cluster: cluster.topics["looked-at"].configs) == {"max.message.bytes": "5000"}
    assert "looked-at:0:3" in tool(broker, TOOLS + "GetOffsetShell", "--topic", "looked-at")
    plan = tmp_path / "plan.json"
    plan.write_text(
        json.dumps({"version": 1, "partitions": [{"topic": "looked-at", "partition": 0, "offset": 2}]}),
        encoding="utf-8",
    )
    assert "low_watermark: 2" in tool(broker, TOOLS + "DeleteRecordsCommand", "--offset-json-file", str(plan))
    assert "looked-at" in tool(broker, TOOLS + "LogDirsCommand", "--describe", "--topic-list", "looked-at")
    assert "Produce(0): 0 to 13" in tool(broker, TOOLS + "BrokerApiVersionsCommand")


def test_transactions_are_listed_and_described(broker: Broker) -> None:
    broker.create_topic("transacted", 1)
    sent = tool(
        broker,
        TOOLS + "ProducerPerformance",
        *("--topic", "transacted", "--num-records", "200", "--record-size", "10", "--throughput", "-1"),
        *("--transactional-id", "java-tid", "--transaction-duration-ms", "50"),
    )
    assert "200 records sent" in sent
    assert len(broker.records("transacted", committed=True)) == 200
    listed = tool(broker, TOOLS + "TransactionsCommand", "list")
    assert "java-tid" in listed
    assert "CompleteCommit" in tool(broker, TOOLS + "TransactionsCommand", "describe", "--transactional-id", "java-tid")
    producers = tool(
        broker, TOOLS + "TransactionsCommand", "describe-producers", "--topic", "transacted", "--partition", "0"
    )
    assert "CurrentTransactionStartOffset" in producers
