"""C15: the facts of Kafka's own scripts on three nodes: members, places, reassignments, log directories, programs."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka import KafkaConsumer, KafkaProducer
from test.embedded.cli.shell import run
from test.real.kafka_process import KafkaCluster

from .conftest import Script

TOOLS = "org.apache.kafka.tools."
GROUPS = TOOLS + "consumer.group.ConsumerGroupCommand"
REASSIGN = TOOLS + "reassign.ReassignPartitionsCommand"


@pytest.fixture(autouse=True)
def servers(kafka_cluster: KafkaCluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", kafka_cluster.bootstrap_servers)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return kafka_cluster.bootstrap_servers


def rows(text: str, first: str) -> list[dict[str, str]]:
    """Return the table of a script whose heading begins with `first`, by its headings."""
    lines = [line for line in text.splitlines() if not re.match(r"\d\d:\d\d:\d\d,", line)]  # which are of the log
    at = next(number for number, line in enumerate(lines) if line.startswith(first))
    headings = re.split(r"\s{2,}|\s(?=[A-Z#])", lines[at].strip())
    found = []
    for line in lines[at + 1 :]:
        # The coordinator of a group is an address and an id.
        cells = re.sub(r"\s+(\(\d+\))", r"\1", line).split(maxsplit=len(headings) - 1)
        if len(cells) == len(headings):
            found.append({name.strip(): cell.strip() for name, cell in zip(headings, cells, strict=True)})
    return found


def shown(value: Any) -> str:
    return "-" if value is None else str(value)


@pytest.fixture
def member(servers: str) -> Iterator[KafkaConsumer]:
    """A member that has read six of ten records of each of two partitions."""
    assert run("purekafka topics create read -p 2 --if-not-exists").code == 0
    with KafkaProducer(bootstrap_servers=servers) as producer:
        for number in range(20):
            producer.send("read", b"%d" % number, partition=number % 2)
    with KafkaConsumer(
        "read", bootstrap_servers=servers, group_id="readers", client_id="reader-1", enable_auto_commit=False,
        auto_offset_reset="earliest",
    ) as consumer:  # fmt: skip
        read = 0
        while read < 20:
            read += sum(map(len, consumer.poll(1000).values()))
        for tp in consumer.assignment():
            consumer.seek(tp, 6)
        consumer.commit()
        yield consumer


def test_c15_members_of_groups_have_the_facts_of_kafka_consumer_groups(script: Script, member: KafkaConsumer) -> None:
    described = rows(script(GROUPS, "--describe", "--group", "readers"), "GROUP")
    theirs = [
        (row["GROUP"], row["TOPIC"], row["PARTITION"], row["CURRENT-OFFSET"], row["LOG-END-OFFSET"], row["LAG"],
         row["CONSUMER-ID"], row["HOST"], row["CLIENT-ID"])
        for row in described
    ]  # fmt: skip
    names = ("group_id", "topic", "partition", "offset", "end", "lag", "member_id", "host", "client_id")
    ours = [tuple(shown(row[name]) for name in names) for row in run("purekafka groups lag readers -f json").json]
    assert sorted(ours) == sorted(theirs)
    assert len(ours) == 2
    (theirs_member,) = rows(script(GROUPS, "--describe", "--members", "--group", "readers"), "GROUP")
    (group,) = run("purekafka groups describe readers -f json").json
    (ours_member,) = group["members"]
    partitions = sum(map(len, ours_member["assignment"].values()))
    assert (ours_member["member_id"], ours_member["host"], ours_member["client_id"], str(partitions)) == (
        theirs_member["CONSUMER-ID"], theirs_member["HOST"], theirs_member["CLIENT-ID"], theirs_member["#PARTITIONS"]
    )  # fmt: skip
    (state,) = rows(script(GROUPS, "--describe", "--state", "--group", "readers"), "GROUP")
    assert state["STATE"] == group["state"] == "Stable"
    assert state["#MEMBERS"] == str(len(group["members"]))
    assert state["ASSIGNMENT-STRATEGY"] == group["assignor"]
    coordinator = re.search(r"\((\d+)\)", state["COORDINATOR (ID)"])
    assert coordinator is not None
    assert int(coordinator[1]) == group["coordinator"]
    # Groups of other tests come and go on the shared cluster meanwhile.
    listed = rows(script(GROUPS, "--list", "--state"), "GROUP")
    theirs_states = [row["STATE"] for row in listed if row["GROUP"] == "readers"]
    found = run("purekafka groups list -f json").json
    assert [row["state"] for row in found if row["group_id"] == "readers"] == theirs_states == ["Stable"]


@pytest.mark.parametrize("place", ["earliest", "latest", "max-timestamp", "1000000003000"])
def test_c15_places_have_the_offsets_of_kafka_get_offsets(place: str, servers: str, script: Script) -> None:
    assert run("purekafka topics create places -p 2 --set retention.ms=-1 --if-not-exists").code == 0
    with KafkaProducer(bootstrap_servers=servers) as producer:
        for number in range(6):
            producer.send("places", b"x", partition=number % 2, timestamp_ms=1_000_000_000_000 + 1000 * number)
    words = ("--topic-partitions", "places:0,places:1", "--time", place)
    theirs = sorted(re.findall(r"^places:\d:\d+$", script(TOOLS + "GetOffsetShell", *words), re.MULTILINE))
    ours = run(f"purekafka offsets places --at {place}{'ms' * place.isdigit()} -f '{{topic}}:{{partition}}:{{offset}}'")
    assert (ours.lines, len(theirs)) == (theirs, 2), ours.err


def test_c15_reassignments_have_the_facts_of_kafka_reassign_partitions(
    script: Script, servers: str, tmp_path: Path
) -> None:
    assert run("purekafka topics create moved --assignment 1:2,2:1,1:2").code == 0
    topics = tmp_path / "topics.json"
    topics.write_text('{"version":1,"topics":[{"topic":"moved"}]}')
    words = ("--generate", "--topics-to-move-json-file", str(topics), "--broker-list", "2,3")
    lines = [line for line in script(REASSIGN, *words).splitlines() if line.startswith("{")]
    before, proposed = (json.loads(line)["partitions"] for line in lines)
    # The present replicas are the same, and each plan has the chosen brokers only.
    plan, old = tmp_path / "plan.json", tmp_path / "old.json"
    planned = run(f"purekafka partitions reassign plan moved --brokers 2,3 --output {plan} -f json").json
    now = {(row["topic"], row["partition"]): row["replicas"] for row in planned}
    assert now.items() <= {(row["topic"], row["partition"]): row["replicas"] for row in before}.items()
    assert all({2, 3} == set(row["replicas"]) for row in proposed)
    assert all({2, 3} == set(row["new_replicas"]) for row in planned)
    # A move that takes long, for the copies are throttled to a trickle.
    with KafkaProducer(bootstrap_servers=servers, acks="all") as producer:
        for partition in range(3):
            for _ in range(2000):
                producer.send("moved", b"x" * 1000, partition=partition)
    script(REASSIGN, "--execute", "--reassignment-json-file", str(plan), "--throttle", "1000")
    listed = script(REASSIGN, "--list")
    pattern = r"^(\S+)-(\d+): replicas: ([\d,]+)\.(?: adding: ([\d,]*)\.)?(?: removing: ([\d,]*)\.)?$"
    theirs = {
        (topic, int(partition)): tuple(sorted(map(int, filter(None, (part or "").split(",")))) for part in parts)
        for topic, partition, *parts in re.findall(pattern, listed, re.MULTILINE)
    }
    moving = run("purekafka partitions reassign status -f json").json
    ours = {
        (row["topic"], row["partition"]): tuple(sorted(row[name]) for name in ("replicas", "adding", "removing"))
        for row in moving
    }
    assert ours == theirs
    assert ours, "partitions move"
    # Their plan is cancelled by us; what they then list is nothing.
    assert run("purekafka partitions reassign cancel moved --yes").code == 0
    assert "No partition reassignments found." in script(REASSIGN, "--list")
    assert run("purekafka partitions reassign status -f json").json == []
    # Our move is complete for their --verify, which also takes the throttles away; the way back is in our file.
    script(REASSIGN, "--verify", "--reassignment-json-file", str(plan))
    moved = run(f"purekafka partitions reassign apply {plan} --rollback {old} --yes --wait")
    assert moved.code == 0, moved.err
    verified = script(REASSIGN, "--verify", "--reassignment-json-file", str(plan))
    assert sorted(re.findall(r"Reassignment of partition (\S+) is completed", verified)) == [
        f"{row['topic']}-{row['partition']}" for row in planned
    ]
    rollback = json.loads(old.read_text())["partitions"]
    assert {row["partition"]: set(row["replicas"]) for row in rollback} == {0: {1, 2}, 1: {1, 2}, 2: {1, 2}}
    assert rollback[0].keys() == before[0].keys()


def test_c15_log_dirs_have_the_facts_of_kafka_log_dirs(kafka_cluster: KafkaCluster, script: Script) -> None:
    assert run("purekafka topics create sized -p 3 -r 2").code == 0
    with KafkaProducer(bootstrap_servers=kafka_cluster.bootstrap_servers) as producer:
        for number in range(30):
            producer.send("sized", b"x" * number, partition=number % 3)
    described = script(TOOLS + "LogDirsCommand", "--describe", "--topic-list", "sized")
    (line,) = (line for line in described.splitlines() if line.startswith("{"))
    theirs = [
        (broker["broker"], directory["logDir"], part["partition"], part["size"], part["offsetLag"], part["isFuture"])
        for broker in json.loads(line)["brokers"]
        for directory in broker["logDirs"]
        for part in directory["partitions"]
    ]
    found = run("purekafka brokers log-dirs --topic sized -f json").json
    ours = [
        (item["broker"], item["directory"], f"{one['topic']}-{one['partition']}", one["bytes"], one["offset_lag"],
         one["future"])
        for item in found
        for one in item["partitions"]
    ]  # fmt: skip
    assert sorted(ours) == sorted(theirs)
    assert len(ours) == 6
    assert {item["broker"] for item in found} == {1, 2, 3}
    for item in found:
        sizes = [one["bytes"] for one in item["partitions"]]
        assert (item["replicas"], item["bytes"]) == (len(sizes), sum(sizes))


# Programs…


def test_c15_perf_prints_lines_of_the_form_of_kafkas_programs(script: Script) -> None:
    assert run("purekafka topics create measured -p 1").code == 0
    words = ("--topic", "measured", "--num-records", "200", "--record-size", "50", "--throughput", "-1")
    theirs = script(TOOLS + "ProducerPerformance", *words).splitlines()[-1]
    ours = run("purekafka perf produce measured -n 200 --size 50").lines[-1]
    pattern = (
        r"200 records sent, [\d.]+ records/sec \([\d.]+ MB/sec\), [\d.]+ ms avg latency, [\d.]+ ms max latency, "
        r"\d+ ms 50th, \d+ ms 95th, \d+ ms 99th, \d+ ms 99\.9th\."
    )
    assert re.fullmatch(pattern, theirs)
    assert re.fullmatch(pattern, ours)
    words = ("--topic", "measured", "--num-records", "400", "--timeout", "20000")
    consumed = script(TOOLS + "ConsumerPerformance", *words)
    heading, line = (line for line in consumed.splitlines() if line.count(",") == 9)
    our_heading, our_line = run("purekafka perf consume measured").lines
    assert our_heading == heading
    fields, our_fields = line.split(", "), our_line.split(", ")
    assert (our_fields[2], our_fields[4]) == (fields[2], fields[4]), "data consumed, in MB and in messages"


def test_c15_topics_have_the_eligible_leaders_of_kafka_topics(kafka_cluster: KafkaCluster, script: Script) -> None:
    """A replica that left the replicas in sync when these were as few as min.insync.replicas may lead (KIP-966)."""
    assert run("purekafka topics create eligible -p 2 -r 3 -c min.insync.replicas=3").code == 0
    assert "ELR" not in run("purekafka topics describe eligible").out
    lost = next(node for node in kafka_cluster.nodes if node != kafka_cluster.leader("eligible", 0))
    kafka_cluster.kill(lost)
    deadline = time.monotonic() + 60
    while any(len(one["isr"]) == 3 for one in described("eligible")):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    theirs = script(TOOLS + "TopicCommand", "--describe", "--topic", "eligible")
    assert re.findall(r"\bElr: (\d*)", theirs) == [str(lost)] * 2, theirs
    assert [one["elr"] for one in described("eligible")] == [[lost]] * 2
    assert "ISR  ELR  START" in re.sub(" +(?= )", " ", run("purekafka topics describe eligible").lines[2])


def described(topic: str) -> list[dict[str, Any]]:
    (found,) = run(f"purekafka topics describe {topic} -f json").json
    partitions: list[dict[str, Any]] = found["partitions"]
    return partitions
