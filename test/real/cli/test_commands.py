"""The command line against Apache Kafka: the tasks of a shell, and the facts of Kafka's own scripts field by field."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kafka import KafkaProducer
from test.embedded.cli.shell import run
from test.embedded.cli.transcript import perform
from test.real.kafka_process import KafkaCluster

from .conftest import Script

TOOLS = "org.apache.kafka.tools."
GROUPS = TOOLS + "consumer.group.ConsumerGroupCommand"


@pytest.fixture(autouse=True)
def servers(kafka: KafkaCluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", kafka.bootstrap_servers)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return kafka.bootstrap_servers


def lines_of(text: str, pattern: str) -> list[str]:
    """Return the lines that are data, and not of the log, which scripts print on the same output."""
    return [line for line in text.splitlines() if re.fullmatch(pattern, line)]


def test_the_thirty_tasks_on_apache_kafka(servers: str, tmp_path: Path) -> None:
    perform(servers, tmp_path)


def test_a_context_on_the_command_line_is_used_beside_the_address_in_a_variable(servers: str) -> None:
    from kafka import KafkaAdminClient
    from kafka.broker import Broker

    with KafkaAdminClient(bootstrap_servers=servers) as admin, Broker(topics=["kept"]) as other:
        assert run(f"purekafka contexts add other -b {other.bootstrap_servers}").code == 0
        assert run("purekafka topics create kept -p 1").code == 0
        assert run("purekafka produce kept --value tea").code == 0
        assert run("purekafka topics copy kept kept --to-context other").code == 0
        assert [record.value for record in other.records("kept")] == [b"tea"]
        assert run("purekafka consume kept").lines == ["tea"]
        deleted = run("purekafka --context other topics delete kept --yes")
        assert (deleted.code, other.bootstrap_servers in deleted.err) == (0, True)
        assert run("purekafka consume kept").lines == ["tea"]
        planned = run("purekafka topics delete kept --yes")
        assert f"Cluster {admin.describe_cluster().cluster_id} at {servers}" in planned.err


def test_c15_topics_have_the_facts_of_kafka_topics(script: Script) -> None:
    assert run("purekafka topics create facts -p 3 --set retention.ms=1234567").code == 0
    described = script(TOOLS + "TopicCommand", "--describe", "--topic", "facts")
    (ours,) = run("purekafka topics describe facts -f json").json
    head = re.search(r"TopicId: (\S+)\s+PartitionCount: (\d+)\s+ReplicationFactor: (\d+)", described)
    assert head is not None
    assert (ours["id"], ours["partition_count"], ours["replication_factor"]) == (head[1], int(head[2]), int(head[3]))
    assert "retention.ms=1234567" in described
    assert ours["settings"]["retention.ms"] == "1234567"
    theirs = re.findall(r"Partition: (\d+)\s+Leader: (\d+)\s+Replicas: (\S+)\s+Isr: (\S+)", described)
    mine = [
        (str(row["partition"]), str(row["leader"]), ",".join(map(str, row["replicas"])), ",".join(map(str, row["isr"])))
        for row in ours["partitions"]
    ]
    assert mine == theirs
    listed = lines_of(script(TOOLS + "TopicCommand", "--list"), r"[\w.-]+")
    assert run("purekafka topics list --all -q").lines == sorted(listed)


def test_c15_settings_have_the_facts_of_kafka_configs(script: Script) -> None:
    assert run("purekafka topics create settings --set cleanup.policy=compact --set retention.ms=99").code == 0
    words = ("--describe", "--all", "--entity-type", "topics", "--entity-name", "settings")
    described = script("kafka.admin.ConfigCommand", *words)
    theirs = dict(re.findall(r"^\s+(\S+?)=(.*?) sensitive=", described, re.MULTILINE))
    ours = {row["setting"]: row["value"] for row in run("purekafka configs describe topic settings --all -f json").json}
    assert {name: value or "" for name, value in ours.items()} == theirs


def test_c15_groups_and_offsets_have_the_facts_of_kafkas_scripts(
    kafka: KafkaCluster, script: Script, tmp_path: Path
) -> None:
    assert run("purekafka topics create read -p 2").code == 0
    with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
        for number in range(20):
            producer.send("read", b"%d" % number, partition=number % 2)
    assert run("purekafka consume read -g readers -n 7").code == 0
    described = script(GROUPS, "--describe", "--group", "readers")
    theirs = {tuple(line.split()[:6]) for line in described.splitlines() if line.startswith("readers")}
    ours = {
        tuple(
            "-" if value is None else str(value)
            for value in (row[name] for name in ("group_id", "topic", "partition", "offset", "end", "lag"))
        )
        for row in run("purekafka groups lag readers -f json").json
    }
    assert ours == theirs
    offsets = lines_of(script(TOOLS + "GetOffsetShell", "--topic", "read"), r"\S+:\d+:\d+")
    assert run("purekafka offsets list read -f '{topic}:{partition}:{end}'").lines == sorted(offsets)
    # An export is read by the other side, in both directions.
    file = tmp_path / "offsets.csv"
    assert run(f"purekafka groups reset-offsets readers --to 3 --dry-run --export {file}").code == 0
    reset = ("--reset-offsets", "--group", "readers", "--from-file", str(file), "--execute")
    script(GROUPS, *reset)
    assert set(run("purekafka groups offsets readers -f '{offset}'").lines) == {"3"}
    every = ("--reset-offsets", "--group", "readers", "--all-topics", "--to-earliest", "--dry-run", "--export")
    exported = script(GROUPS, *every)
    lines = lines_of(exported, r"\S+,\d+,\d+")
    file.write_text("\n".join(lines) + "\n")
    assert run(f"purekafka groups reset-offsets readers --from-file {file} --yes").code == 0
    assert set(run("purekafka groups offsets readers -f '{offset}'").lines) == {"0"}


def test_c15_log_dirs_and_reassignments_have_the_facts_of_kafkas_scripts(script: Script, tmp_path: Path) -> None:
    assert run("purekafka topics create moved -p 2").code == 0
    described = script(TOOLS + "LogDirsCommand", "--describe", "--broker-list", "1", "--topic-list", "moved")
    assert "moved-0" in described
    (ours,) = run("purekafka brokers log-dirs -f json").json
    (theirs,) = json.loads(next(line for line in described.splitlines() if line.startswith("{")))["brokers"]
    assert (ours["broker"], ours["directory"]) == (theirs["broker"], theirs["logDirs"][0]["logDir"])
    # A plan of ours is read by the script, and the script's by us.
    plan = tmp_path / "plan.json"
    plan.write_text('{"version":1,"partitions":[{"topic":"moved","partition":0,"replicas":[1],"log_dirs":["any"]}]}')
    assert run(f"purekafka partitions reassign apply {plan} --yes --wait").code == 0
    words = ("--verify", "--reassignment-json-file", str(plan))
    verified = script(TOOLS + "reassign.ReassignPartitionsCommand", *words)
    assert "Reassignment of partition moved-0 is completed" in verified
    assert run(f"purekafka partitions reassign status {plan}").code == 0


def test_c10_the_records_of_internal_topics_are_decoded(kafka: KafkaCluster) -> None:
    assert run("purekafka topics create decoded").code == 0
    assert run("purekafka produce decoded --transactional-id decoded-tx", stdin=b"a\n").code == 0
    # Readers of committed records see the record a little after the commit, so the present end may be before it.
    assert run("purekafka consume decoded -g decoders --read-committed --follow -n 1").lines == ["a"]
    offsets = "purekafka consume __consumer_offsets --key-type offsets --value-type offsets -f jsonl --strict"
    typed = [row for row in run(offsets).records if row["key"]["group"] == "decoders"]
    assert typed[-1]["value"]["offset"] == 1
    (group, *_) = run("purekafka consume __consumer_offsets --key-type group-metadata -f '%k\\n' --strict").records
    assert group.keys() == {"group"}
    log = "purekafka consume __transaction_state --key-type transaction-log --value-type transaction-log -f jsonl"
    assert "decoded-tx" in {row["key"]["transactionalId"] for row in run(log).records}


def test_commands_take_a_fraction_of_the_time_of_kafkas_scripts(kafka: KafkaCluster) -> None:
    """Printed by pytest -rP. Both run as processes, one after the other."""
    assert run("purekafka topics create timed -p 2").code in {0, 1}
    pairs = [
        ("topics describe timed", TOOLS + "TopicCommand", ["--describe", "--topic", "timed"]),
        ("groups lag", GROUPS, ["--describe", "--all-groups"]),
        ("configs describe topic timed --all", "kafka.admin.ConfigCommand",
         ["--describe", "--all", "--entity-type", "topics", "--entity-name", "timed"]),
    ]  # fmt: skip
    ours_total = theirs_total = 0.0
    for line, main, words in pairs:
        begun = time.perf_counter()
        command = [sys.executable, "-m", "kafka", *line.split()]
        subprocess.run(command, check=True, capture_output=True, timeout=60)
        ours = time.perf_counter() - begun
        begun = time.perf_counter()
        done = kafka.tool(main, "--bootstrap-server", kafka.bootstrap_servers, *words)
        assert done.returncode == 0, done.stderr
        theirs = time.perf_counter() - begun
        print(f"{line:<36} {ours:6.2f} s   {main.rpartition('.')[2]:<24} {theirs:6.2f} s")
        ours_total, theirs_total = ours_total + ours, theirs_total + theirs
    print(f"{'all':<36} {ours_total:6.2f} s   {'':<24} {theirs_total:6.2f} s")
    assert ours_total < theirs_total


def test_tail_follows_partitions_that_end_with_markers_of_transactions(servers: str) -> None:
    assert run("purekafka topics create followed -p 2").code == 0
    with KafkaProducer(bootstrap_servers=servers, transactional_id="followed") as producer:
        producer.init_transactions()

        def write(*values: str) -> None:
            with producer.transaction():
                for number, value in enumerate(values):
                    producer.send("followed", value.encode(), partition=number % 2)

        write("early 0", "early 1", "early 2")
        command = [sys.executable, "-m", "kafka", "tail", "followed", "-n", "2", "--timeout", "60"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            printed = [process.stdout.readline() for _ in range(2)]
            for each in range(3):
                values = [f"late {each}.{number}" for number in range(2)]
                write(*values)
                assert sorted(process.stdout.readline() for _ in range(2)) == [f"{value}\n" for value in values]
            process.send_signal(signal.SIGINT)
            rest, _ = process.communicate()
    assert {line.strip() for line in printed} < {"early 0", "early 1", "early 2"}
    assert (process.returncode, rest) == (130, "")


def test_a_group_has_committed_what_a_command_printed_when_a_signal_ends_it(servers: str) -> None:
    assert run("purekafka topics create printed -p 1").code == 0
    with KafkaProducer(bootstrap_servers=servers) as producer:
        producer.send_many("printed", [b"%d " % number + b"x" * (number * 7 % 1500) for number in range(4000)])
    command = [sys.executable, "-m", "kafka", "consume", "printed", "-g", "slow", "--timeout", "60"]
    env = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        printed = os.read(process.stdout.fileno(), 20_000)
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        printed += process.communicate()[0]
    assert process.returncode == 143
    found = [int(line.split()[0]) for line in printed.split(b"\n")[:-1]]
    assert found == list(range(len(found)))
    assert 0 < len(found) < 4000
    (row,) = run("purekafka groups offsets slow -f json").json
    assert row["offset"] == len(found)
