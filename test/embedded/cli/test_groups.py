"""Groups, offsets, settings and brokers from the shell."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest

from kafka import KafkaAdminClient, KafkaConsumer
from kafka.broker import Broker, Exchange
from kafka.structs import TopicPartition
from test.speed import slowness

from .conftest import Shell
from .shell import run

LAG_KEYS = {
    "group_id", "topic", "partition", "offset", "end", "lag", "client_id", "host", "member_id",
}  # fmt: skip


@pytest.fixture
def group(broker: Broker) -> str:
    """A group that has read some records of two topics."""
    broker.append_many("events", ["a"] * 10, partition=0)
    broker.append_many("orders", ["b"] * 5)
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.alter_group_offsets("readers", {("events", 0): 4, ("orders", 0): 5})
    return "readers"


def test_c5_groups_and_their_lag_have_stable_keys(shell: Shell, group: str) -> None:
    assert shell("purekafka groups list -f json").json == [
        {"group_id": group, "state": "Empty", "type": "classic", "protocol_type": ""}
    ]
    rows = shell("purekafka groups lag -f json").json
    assert [set(row) for row in rows] == [LAG_KEYS, LAG_KEYS]
    assert [(row["topic"], row["offset"], row["end"], row["lag"]) for row in rows] == [
        ("events", 4, 10, 6),
        ("orders", 5, 5, 0),
    ]
    assert shell("purekafka groups lag --by topic -f '{topic} {lag}'").lines == ["events 6", "orders 0"]
    assert shell("purekafka groups lag readers --by group -f jsonl").records == [
        {"group_id": group, "partitions": 2, "lag": 6, "largest": 6}
    ]
    assert shell("purekafka groups lag --topic orders -f '{lag}'").lines == ["0"]


def test_members_with_their_partitions(shell: Shell, broker: Broker) -> None:
    with KafkaConsumer(
        "events", bootstrap_servers=broker.bootstrap_servers, group_id="live", client_id="me"
    ) as consumer:
        deadline = time.monotonic() + 30
        while not consumer.assignment():
            assert time.monotonic() < deadline
            consumer.poll(100)
        (found,) = shell("purekafka groups describe live -f json").json
        assert (found["state"], found["members"][0]["client_id"]) == ("Stable", "me")
        assert found["members"][0]["assignment"] == {"events": [0, 1, 2]}
        assert "events:0,1,2" in shell("purekafka groups describe live").out
        rows = shell("purekafka groups lag live -f json").json
        assert [(row["partition"], row["client_id"]) for row in rows] == [(0, "me"), (1, "me"), (2, "me")]
        refused = shell("purekafka groups reset-offsets live --topic events --to end --yes")
        assert (refused.code, refused.err.strip()) == (
            1, "purekafka groups reset-offsets: group 'live' has 1 member, which would commit over it: stop them first",
        )  # fmt: skip
        assert shell("purekafka groups delete live --yes").code == 1


@pytest.mark.parametrize(
    "line", ["describe nope", "lag nope", "offsets nope", "delete nope --yes", "delete-offsets nope --topic a --yes"]
)
def test_c8_an_unknown_group_ends_with_1(line: str, shell: Shell) -> None:
    outcome = shell(f"purekafka groups {line}")
    assert outcome.code == 1
    assert "group 'nope' does not exist" in outcome.err


def test_c11_reset_offsets_shows_the_plan_and_needs_consent(shell: Shell, group: str, broker: Broker) -> None:
    words = "purekafka groups reset-offsets readers --to beginning"
    refused = shell(words)
    assert refused.code == 2
    assert refused.lines == [
        "TOPIC   PARTITION  OFFSET  NEW OFFSET  LAG  NEW LAG",
        "events          0       4           0    6       10",
        "orders          0       5           0    0        5",
    ]
    assert shell(f"{words} --dry-run").code == 0
    assert broker.committed(group, "events") == 4
    assert shell(f"{words} --yes").code == 0
    assert broker.committed(group, "events") == 0
    (row,) = shell("purekafka groups reset-offsets readers --topic events:0 --shift-by 3 --yes -f json").json
    assert row == {"topic": "events", "partition": 0, "offset": 0, "new_offset": 3, "lag": 10, "new_lag": 7}
    assert broker.committed(group, "events") == 3


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("readers", "give one of --to, --shift-by and --from-file"),
        ("readers --to end --shift-by 1", "give one of --to, --shift-by and --from-file"),
        ("readers --to soon", "'soon' is not a place"),
    ],
)
def test_wrong_words_of_reset_offsets(words: str, complaint: str, shell: Shell, group: str) -> None:
    outcome = shell(f"purekafka groups reset-offsets {words} --yes")
    assert (outcome.code, outcome.out) == (2, "")
    assert complaint in outcome.err


def test_offsets_are_exported_and_imported_as_kafkas_script_writes_them(
    shell: Shell, group: str, broker: Broker, tmp_path: Path
) -> None:
    file = tmp_path / "offsets.csv"
    assert shell(f"purekafka groups offsets readers --export {file}").code == 0
    assert file.read_text() == "events,0,4\norders,0,5\n"
    assert (
        shell("purekafka groups reset-offsets readers --to end --dry-run --export -").out == "events,0,10\norders,0,5\n"
    )
    file.write_text("events,0,7\n")
    assert shell(f"purekafka groups reset-offsets readers --from-file {file} --yes").code == 0
    assert broker.committed(group, "events") == 7
    file.write_text("other,events,0,1\nreaders,events,0,2\n")
    assert shell(f"purekafka groups reset-offsets readers --from-file {file} --yes").code == 0
    assert broker.committed(group, "events") == 2
    outcome = shell("purekafka groups reset-offsets readers --from-file -", stdin=b"events,0,3\n")
    assert (outcome.code, "give --yes or --dry-run" in outcome.err) == (2, True)  # what was read leaves none to ask
    file.write_bytes(b"ev\xe9nts,0,2\n")
    outcome = shell(f"purekafka groups reset-offsets readers --from-file {file} --yes")
    assert (outcome.code, "it is not text in UTF-8" in outcome.err) == (2, True)
    file.write_text("events;0;2\n")
    outcome = shell(f"purekafka groups reset-offsets readers --from-file {file} --yes")
    assert (outcome.code, "line 1: write topic,partition,offset" in outcome.err) == (2, True)


def test_offsets_of_a_file_are_kept_within_the_log(shell: Shell, group: str, tmp_path: Path) -> None:
    file = tmp_path / "offsets.csv"
    deleted = shell("purekafka records delete-before events:0 --to +1 --yes")
    assert (deleted.code, deleted.lines[-1]) == (0, "events-0: begins at 1")
    (log,) = shell("purekafka offsets list events:0 -f json").json
    assert log["start"] == 1
    for place, offset in ((999999, log["end"]), (0, 1)):
        file.write_text(f"events,0,{place}\n")
        outcome = shell(f"purekafka groups reset-offsets {group} --from-file {file} --yes -f json")
        assert outcome.code == 0
        assert f"offset {place} becomes {offset}" in outcome.err
        assert outcome.err.endswith(f"group {group!r}: 1 offset changed\n")
        assert outcome.json[0]["new_offset"] == offset
        kept = shell(f"purekafka groups offsets {group} -f json").json
        assert {row["topic"]: row["offset"] for row in kept} == {"events": offset, "orders": 5}


def test_a_copy_of_offsets_keeps_their_metadata(shell: Shell, broker: Broker) -> None:
    from kafka import KafkaAdminClient, OffsetAndMetadata

    broker.append("events", b"tea", partition=0)
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.alter_group_offsets("noted", {("events", 0): OffsetAndMetadata(1, "note", 0)})
        assert shell("purekafka groups copy noted copied --yes").code == 0
        offsets = admin.list_group_offsets(["noted", "copied"])
        assert offsets["copied"] == offsets["noted"]


def test_a_lag_above_a_limit_has_an_exit_code(shell: Shell, group: str) -> None:
    for words, code in (("", 0), ("--fail-above 6", 0), ("--fail-above 5", 4), ("--fail-above 5 --by group -q", 4)):
        assert shell(f"purekafka groups lag {group} {words}").code == code, words
    assert shell(f"purekafka groups lag {group} nosuch --fail-above 6").code == 1


def test_patterns_choose_groups(shell: Shell, broker: Broker) -> None:
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        for name in ("bill-1", "bill-2", "other"):
            admin.alter_group_offsets(name, {("events", 0): 0})
    assert shell("purekafka groups lag 'bill-*' -q").lines == ["bill-1", "bill-2"]
    assert [row["group_id"] for row in shell("purekafka groups describe 'bill-?' bill-1 -f json").json] == [
        "bill-1",
        "bill-2",
    ]
    for line in ("lag 'nosuch-*'", "describe 'nosuch-*'", "delete 'nosuch-*' --yes"):
        refused = shell(f"purekafka groups {line}")
        assert (refused.code, "no group matches 'nosuch-*'" in refused.err) == (2, True)
    assert shell("purekafka groups delete 'bill-*' --yes").code == 0
    assert shell("purekafka groups list -q").lines == ["other"]


def test_the_marks_of_sparks_queries_are_not_lag(shell: Shell, broker: Broker) -> None:
    from kafka import OffsetAndMetadata
    from kafka.producer.transaction_handover import HandoverProducer
    from kafka.spark.exactly_once import Marker

    query = "07447e02-1111-2222-3333-0123456789ab"
    marks = [f"spark-{query}-0", f"mine-{query}-17", f"older-{query}-1"]
    readers = [f"spark-{query}-9", "readers"]
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.alter_group_offsets(marks[2], {("events", 0): OffsetAndMetadata(1, '{"rows": 5, "run": "r"}')})
        for name in readers:
            admin.alter_group_offsets(name, {("events", 0): OffsetAndMetadata(0, "note")})
    with HandoverProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for name in marks[:2]:
            producer.take_over(name)
            with producer.transaction():
                producer.commit_text(TopicPartition("events", 0), Marker(1, rows=5, run="r").text(), name)
    assert shell("purekafka groups lag -q").lines == sorted(readers)
    assert shell("purekafka groups lag --all -q").lines == sorted([*marks, *readers])
    assert shell(f"purekafka groups lag {marks[0]} -q").lines == marks[:1]
    seen = shell("purekafka top --count 1").out
    assert [name in seen for name in (*marks, *readers)] == [False, False, False, True, True]


def test_the_name_of_a_group_does_not_command_the_terminal(shell: Shell, broker: Broker) -> None:
    name = "a\x1b[2J\nb"
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.alter_group_offsets(name, {("events", 0): 0})
    for words in (("groups list",), ("groups describe", name), ("groups lag",), ("top --count 1",),
                  ("groups describe", "no" + name), ("groups delete", name, "--yes")):  # fmt: skip
        outcome = shell("purekafka", *words[0].split(), *words[1:])
        assert "\x1b" not in outcome.out + outcome.err, words
        assert "a\\x1b[2J\\nb" in outcome.out + outcome.err, words


def test_top_counts_the_records_that_are_there(shell: Shell, broker: Broker) -> None:
    broker.append_many("orders", [b"x"] * 5)
    assert shell("purekafka records delete-before orders --place 3 --yes").code == 0
    (line,) = [line for line in shell("purekafka top --count 1").lines if line.startswith("orders ")]
    assert line.split()[1] == "2"


def test_the_lag_of_some_partitions(shell: Shell, group: str) -> None:
    rows = shell(f"purekafka groups lag {group} --topic events:0,2 -f json").json
    assert {(row["topic"], row["partition"]) for row in rows} <= {("events", 0), ("events", 2)}
    assert rows
    assert shell(f"purekafka groups lag {group} --topic events:x").code == 2


def test_offsets_and_groups_are_copied_and_deleted(shell: Shell, group: str, broker: Broker) -> None:
    assert shell("purekafka groups copy readers others --yes").code == 0
    assert broker.committed("others", "events") == 4
    assert shell("purekafka groups delete-offsets others --topic events --yes").code == 0
    assert broker.committed("others", "events") is None
    outcome = shell("purekafka groups delete others nope --yes")
    assert (outcome.code, outcome.lines[-1]) == (1, "others: deleted")
    assert shell("purekafka groups list -q").lines == ["readers"]


def test_c3_a_thousand_groups_are_listed_in_three_seconds(shell: Shell, broker: Broker) -> None:
    """CPU of the command and the broker together, in one process."""
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        for number in range(1000):
            admin.alter_group_offsets(f"group-{number:04}", {("events", 0): 0})
    for line in ("purekafka groups list -f jsonl", "purekafka groups lag -f jsonl"):
        begun = time.process_time()
        outcome = shell(line)
        spent = time.process_time() - begun
        assert (outcome.code, len(outcome.records)) == (0, 1000)
        assert spent < 3 * slowness(), f"{line}: {spent:.2f} s"


def test_c3_a_dead_broker_costs_its_own_rows() -> None:
    with Broker(nodes=3, topics=["events"]) as broker:
        with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
            for number in range(20):
                admin.alter_group_offsets(f"group-{number}", {("events", 0): 0})
        broker.fail("ListGroups", "BROKER_NOT_AVAILABLE", node=2, times=1000)
        outcome = run("purekafka groups list -f jsonl --timeout 20", "-b", broker.bootstrap_servers)
    assert outcome.code == 1
    assert 0 < len(outcome.records) < 20
    assert re.search(r"purekafka groups list: broker 2: ", outcome.err)


# Settings, brokers, offsets…


def test_settings_are_changed_one_by_one(shell: Shell) -> None:
    assert shell("purekafka configs set topic events retention.ms=60000 cleanup.policy=compact --yes").code == 0
    assert shell("purekafka configs append topic events cleanup.policy=delete --yes").code == 0
    assert shell("purekafka configs set topic events retention.ms=5 --dry-run").code == 0
    rows = shell("purekafka configs describe topic events retention.ms cleanup.policy -f json").json
    assert [(row["setting"], row["value"], row["source"]) for row in rows] == [
        ("cleanup.policy", "compact,delete", "dynamic-topic"),
        ("retention.ms", "60000", "dynamic-topic"),
    ]
    assert shell("purekafka configs subtract topic events cleanup.policy=compact --yes").code == 0
    assert shell("purekafka configs unset topic events retention.ms --yes").code == 0
    found = shell("purekafka configs describe topic events -f '{setting}={value}'").lines
    assert "cleanup.policy=delete" in found
    assert not [line for line in found if line.startswith("retention.ms")]
    outcome = shell("purekafka configs set topic events retention.ms=soon --yes")
    assert (outcome.code, outcome.out) == (1, "")
    assert "Invalid value soon for configuration retention.ms" in outcome.err
    assert shell("purekafka configs describe topic nope").code == 1
    assert shell("purekafka configs describe topic events retention.m").code == 1
    assert shell("purekafka configs describe broker one").code == 2


def test_the_controller_is_the_one_of_the_quorum() -> None:
    """A broker of a cluster with KRaft names any live broker as the controller, another one in each response."""

    def names_another(exchange: Exchange) -> Any:
        exchange.reply.controller_id = 3
        return exchange.reply

    with Broker(nodes=3) as broker, broker.intercept("DescribeCluster", names_another):
        servers = broker.bootstrap_servers
        assert run("purekafka cluster describe -b", servers).out.splitlines()[0].endswith("3 brokers, controller 1")
        rows = run("purekafka brokers list -f json -b", servers).json
        assert [row["broker_id"] for row in rows if row["controller"]] == [1]
        assert "controller 1," in run("purekafka top --count 1 -b", servers).out
        broker.fail("DescribeQuorum", "CLUSTER_AUTHORIZATION_FAILED", times=2)
        assert "controller not known" in run("purekafka cluster describe -b", servers).out
        assert run("purekafka health -b", servers).code == 0
        broker.fail("DescribeQuorum", "UNKNOWN_SERVER_ERROR", times=2)
        assert "no controller" in run("purekafka cluster describe -b", servers).out
        unhealthy = run("purekafka health -b", servers)
        assert (unhealthy.code, "the cluster has no controller" in unhealthy.out) == (4, True)


def test_brokers_and_the_cluster() -> None:
    with Broker(nodes=3, topics={"events": 6}) as broker:
        servers = broker.bootstrap_servers
        rows = run("purekafka brokers list -f json -b", servers).json
        assert [row["broker_id"] for row in rows] == [1, 2, 3]
        assert sum(row["leaders"] for row in rows) == 6
        assert sum(row["controller"] for row in rows) == 1
        (found,) = run("purekafka cluster describe -f json -b", servers).json
        assert (found["broker_count"], len(found["brokers"])) == (3, 3)
        outcome = run("purekafka brokers describe 2 7 -f json -b", servers)
        assert (outcome.code, [row["broker_id"] for row in outcome.json]) == (1, [2])
        assert "broker 7 does not exist; the brokers are 1, 2, 3" in outcome.err
        (api,) = [row for row in run("purekafka brokers versions -f json -b", servers).json if row["api"] == "Metadata"]
        assert api["used"] == api["highest"]


def test_offsets_by_place_and_records_deleted_before_one(shell: Shell, broker: Broker) -> None:
    for number in range(6):
        broker.append("orders", str(number), timestamp_ms=1000 * number)
    assert shell("purekafka offsets list orders -f '{start} {end} {records}'").lines == ["0 6 6"]
    assert shell("purekafka offsets list orders:0 --at 2500ms -f '{offset}'").lines == ["3"]
    assert shell("purekafka offsets list nope").code == 1
    assert shell("purekafka records delete-before orders --place 2").code == 2
    assert shell("purekafka records delete-before orders --place 2 --yes").code == 0
    assert shell("purekafka offsets list orders -f '{start} {end} {records}'").lines == ["2 6 4"]
    assert shell("purekafka offsets list orders:3").code == 1
