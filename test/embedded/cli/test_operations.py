"""The work of operators: health, moves with a limit, faulty partitions, features, outcomes as JSON, consent."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka import KafkaAdminClient
from kafka.admin import ConfigResource
from kafka.broker import Broker
from kafka.protocol.streams import StreamsGroupHeartbeatRequest

from .conftest import Shell
from .shell import Outcome, call, run

DEADLINE = 60.0


@pytest.fixture
def three(monkeypatch: pytest.MonkeyPatch) -> Iterator[Broker]:
    """Three nodes; ``events`` has its first partition on 1 and 2, its second on 2 and 3, and needs two in sync."""
    with Broker(nodes=3) as broker, KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        topic = {"assignments": {0: [1, 2], 1: [2, 3]}, "configs": {"min.insync.replicas": "2"}}
        admin.create_topics({"events": topic, "alone": {"assignments": {0: [3]}}}, wait_for_metadata=True)
        monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", broker.bootstrap_servers)
        yield broker


def until(line: str, code: int) -> Outcome:
    deadline = time.monotonic() + DEADLINE
    while (found := run(line)).code != code:
        assert time.monotonic() < deadline, found
        time.sleep(0.1)
    return found


def test_health_follows_the_cluster(three: Broker) -> None:
    found = run("purekafka health -f json")
    assert (found.code, found.err) == (0, "")
    assert all(row["ok"] for row in found.json if row["check"] != "at-min-isr")
    three.stop_node(3)
    found = until("purekafka health -f json", 4)
    rows = {row["check"]: row for row in found.json}
    assert not rows["offline"]["ok"]
    assert rows["offline"]["detail"] == "alone-0 have no leader, and cannot be read or written"
    assert "broker 3 has replicas and is down" in rows["brokers"]["detail"]
    assert not rows["under-min-isr"]["ok"]
    assert run("purekafka health --allow offline").code == 4
    assert run("purekafka health -q --allow offline").lines == ["brokers", "under-min-isr", "under-replicated"]
    stays = "broker 3: is not running; if it has a limit, that stays until reassign-throttle none is run again"
    assert run("purekafka partitions reassign-throttle none --yes").lines[-1] == stays
    waiting: list[Outcome] = []
    thread = threading.Thread(target=lambda: waiting.append(run("purekafka health --wait")))
    thread.start()
    three.start_node(3)
    thread.join(DEADLINE)
    assert [one.code for one in waiting] == [0]


def test_health_that_cannot_be_known_is_neither_good_nor_bad(three: Broker) -> None:
    assert run("purekafka health -b 127.0.0.1:1").code == 1
    three.stop_node(3)
    until("purekafka health", 4)
    assert run("purekafka health --wait --timeout 1").code == 124


def test_partitions_are_chosen_by_their_faults(three: Broker) -> None:
    def chosen(words: str) -> list[tuple[str, int]]:
        found = run(f"purekafka topics describe {words} -f csv --no-headers")
        assert found.code in {0, 1}
        return sorted((line.split(",")[0], int(line.split(",")[1])) for line in found.lines)

    assert chosen("--at-min-isr") == [("alone", 0), ("events", 0), ("events", 1)]
    assert chosen("--offline --under-min-isr --under-replicated") == []
    three.stop_node(3)
    until("purekafka health", 4)
    assert chosen("--offline") == [("alone", 0)]
    assert chosen("--under-min-isr") == [("alone", 0), ("events", 1)]
    assert ("events", 1) in chosen("--under-replicated")
    assert chosen("--at-min-isr") == [("alone", 0), ("events", 0)]


LIMITS = {f"{role}.replication.throttled.{what}" for role in ("leader", "follower") for what in ("rate", "replicas")}


def limits(broker: Broker) -> dict[str, dict[str, str]]:
    """Return the settings of limits of topics and brokers."""
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        resources = [ConfigResource("topic", "events"), *(ConfigResource("broker", str(one)) for one in (1, 2, 3))]
        found = admin.describe_configs(resources, config_filter="dynamic")
        named = {
            f"{kind} {name}": {
                key: entry["value"] for key, entry in settings.items() if key in LIMITS and entry["value"]
            }
            for kind, some in found.items()
            for name, settings in some.items()
        }
    return {name: settings for name, settings in named.items() if settings}


def plan(path: Path, replicas: list[int]) -> Path:
    path.write_text(
        json.dumps({"version": 1, "partitions": [{"topic": "events", "partition": 0, "replicas": replicas}]})
    )
    return path


def test_a_plan_from_standard_input_leaves_none_to_ask_on(three: Broker, tmp_path: Path) -> None:
    text = plan(tmp_path / "plan.json", [2, 3]).read_bytes()
    found = run("purekafka partitions reassign apply -", stdin=text)
    assert (found.code, "give --yes or --dry-run" in found.err) == (2, True)


def test_a_move_has_a_limit_while_it_lasts(three: Broker, tmp_path: Path) -> None:
    file = plan(tmp_path / "plan.json", [2, 3])
    found = run(f"purekafka partitions reassign apply {file} --throttle 50MB --yes")
    assert found.code == 0, found.err
    assert "the limit stays until: purekafka partitions reassign-throttle none" in found.err
    rates = {"leader.replication.throttled.rate": "50000000", "follower.replication.throttled.rate": "50000000"}
    assert limits(three) == {
        "topic events": {
            "leader.replication.throttled.replicas": "0:1,0:2",
            "follower.replication.throttled.replicas": "0:3",
        },
        **{f"broker {number}": rates for number in (1, 2, 3)},
    }
    assert run("purekafka partitions reassign-throttle none --dry-run").code == 0
    assert limits(three)
    removed = run("purekafka partitions reassign-throttle none --yes -f json")
    assert {one["name"] for one in removed.json} == {"topic events", "broker 1", "broker 2", "broker 3"}
    assert limits(three) == {}


def test_a_limit_is_removed_when_the_wait_is_over(three: Broker, tmp_path: Path) -> None:
    file = plan(tmp_path / "plan.json", [3, 2])
    found = run(f"purekafka partitions reassign apply {file} --throttle 1MiB --wait --yes")
    assert found.code == 0, found.err
    assert limits(three) == {}
    assert run("purekafka topics describe events -f json").json[0]["partitions"][0]["replicas"] == [3, 2]


def test_a_reader_that_has_gone_does_not_stop_a_move_half_way(three: Broker, tmp_path: Path) -> None:
    """As with ``| head -1``: the partitions move, and the limit is removed."""
    words = ["partitions", "reassign", "apply", str(plan(tmp_path / "plan.json", [3, 2])), "--throttle", "1MiB"]
    read, write = os.pipe()
    os.close(read)
    with open(write, "w", encoding="utf-8") as pipe:
        found = call(["purekafka", *words, "--wait", "--yes"], stdout=pipe)
    assert found.code == 0, found.err
    assert limits(three) == {}
    assert run("purekafka topics describe events -f json").json[0]["partitions"][0]["replicas"] == [3, 2]


def test_a_replica_moves_away_from_a_broker_that_is_down(three: Broker, tmp_path: Path) -> None:
    """It has no bandwidth to limit; the limit of the others is set, and the move begins."""
    three.stop_node(2)
    file = plan(tmp_path / "plan.json", [1, 3])
    found = run(f"purekafka partitions reassign apply {file} --throttle 50MB --yes")
    assert found.code == 0, found.err
    assert "broker 2: is not running, and has no limit" in found.out
    (row,) = run("purekafka configs describe broker 1 leader.replication.throttled.rate -f json").json
    assert row["value"] == "50000000"
    assert "AlterPartitionReassignments" in {request.name for request in three.requests}


def test_nothing_moves_without_the_limit_that_was_asked_for(three: Broker, tmp_path: Path) -> None:
    three.fail("IncrementalAlterConfigs", "CLUSTER_AUTHORIZATION_FAILED")
    found = run(f"purekafka partitions reassign apply {plan(tmp_path / 'plan.json', [2, 3])} --throttle 1M --yes")
    assert found.code == 1
    assert "AlterPartitionReassignments" not in {request.name for request in three.requests}


@pytest.mark.parametrize("rate", ["0", "fast", "-5", "5X"])
def test_a_rate_that_makes_no_sense_is_refused(three: Broker, rate: str) -> None:
    assert run(f"purekafka partitions reassign-throttle {rate} --yes").code == 2


def test_features_are_upgraded_after_the_controller_has_checked(shell: Shell) -> None:
    line = "purekafka cluster features upgrade"
    assert shell(f"{line} share.version=0 --yes").code == 1  # a lower level needs a word
    assert shell(f"{line} share.version=0 --downgrade --dry-run").code == 0
    assert shell(f"{line} share.version=0 --downgrade --yes").lines[-1] == "share.version: level 0"
    assert shell(f"{line} share.version=1 --yes -f jsonl").records == [
        {"name": "share.version", "done": "level 1", "error": None}
    ]
    refused = shell(f"{line} nosuch=1 --yes")
    assert (refused.code, refused.out) == (1, "")
    assert shell(f"{line} share.version=high --yes").code == 2


def test_a_streams_group_is_described_with_its_topology_and_its_offsets_move(shell: Shell, broker: Broker) -> None:
    kind = StreamsGroupHeartbeatRequest
    part = kind.Subtopology(
        subtopology_id="counts",
        source_topics=["events"],
        source_topic_regex=[],
        state_changelog_topics=[],
        repartition_sink_topics=[],
        repartition_source_topics=[],
        copartition_groups=[],
    )
    member = {"group_id": "app", "member_id": "AAAAAAAAAAAAAAAAAAAAAQ", "active_tasks": [], "standby_tasks": []}
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        joined = kind(
            **member,
            member_epoch=0,
            rebalance_timeout_ms=30_000,
            topology=kind.Topology(epoch=0, subtopologies=[part]),
            warmup_tasks=[],
            process_id="process",
            client_tags=[],
        )
        assert admin.send_request(joined).error_code == 0
        (item,) = shell("purekafka groups describe app -f json").json
        assert (item["type"], item["protocol_type"]) == ("streams", "streams")
        assert [one["source_topics"] for one in item["subtopologies"]] == [["events"]]
        assert [one["member_id"] for one in item["members"]] == ["AAAAAAAAAAAAAAAAAAAAAQ"]
        table = shell("purekafka groups describe app")
        assert "SUBTOPOLOGY" in table.out
        assert table.lines[0].startswith("Group app: ")
        assert shell("purekafka groups list --type streams -q").lines == ["app"]
        left = kind(group_id="app", member_id="AAAAAAAAAAAAAAAAAAAAAQ", member_epoch=-1)
        assert admin.send_request(left).error_code == 0
    assert shell("purekafka groups reset-offsets app --topic events --to beginning --yes").code == 0
    assert len(shell("purekafka groups lag app -f json").json) == 3
    assert shell("purekafka groups delete-offsets app --topic events --yes").code == 0
    assert shell("purekafka groups delete app --yes").code == 0
    assert shell("purekafka groups list --type streams -q").lines == []


def test_lag_is_chosen_sorted_and_told_by_the_code(shell: Shell, broker: Broker) -> None:
    for number in range(9):
        broker.append("events", b"record", partition=0 if number < 6 else 1)
    assert shell("purekafka groups reset-offsets readers --topic events --to beginning --yes").code == 0
    found = shell("purekafka groups lag --min-lag 1 --sort -f json")
    assert [(row["partition"], row["lag"]) for row in found.json] == [(0, 6), (1, 3)]
    assert shell("purekafka groups lag --fail-above 5").code == 4
    assert shell("purekafka groups lag --fail-above 6").code == 0
    assert shell("purekafka groups lag --fail-above 6 --by topic").code == 4
    assert shell("purekafka groups lag --min-lag 100 --fail-if-empty").code == 3


def test_changes_are_printed_as_json_with_the_failures(shell: Shell, broker: Broker) -> None:
    found = shell("purekafka topics create fresh events -p 2 -f json")
    assert found.code == 1
    fresh, events = found.json
    assert fresh == {"name": "fresh", "done": "created with 2 partitions", "error": None}
    assert (events["name"], events["done"]) == ("events", None)
    assert "exists" in events["error"]
    changed = shell("purekafka topics alter fresh -p 3 --yes -f jsonl")
    assert changed.records == [{"name": "fresh", "done": "3 partitions", "error": None}]
    assert "fresh" in changed.err  # the plan
    deleted = shell("purekafka topics delete fresh nosuch --yes -f json")
    assert {one["name"]: one["error"] is None for one in deleted.json} == {"fresh": True, "nosuch": False}
    refused = shell("purekafka topics delete events --yes -f csv")
    assert refused.code == 2
    assert "events" in shell("purekafka topics list -q").lines


@pytest.mark.parametrize(
    "line",
    [
        "configs set topic events retention.ms=1",
        "configs append topic events cleanup.policy=compact",
        "configs subtract topic events cleanup.policy=compact",
        "configs unset topic events retention.ms",
        "topics alter events --partitions 9",
        "acls allow --principal ada --operation read --topic events",
        "acls deny --principal ada --operation read --topic events",
    ],
)
def test_a_change_is_not_made_without_consent(broker: Broker, shell: Shell, line: str) -> None:
    broker.forget_requests()
    refused = shell(f"purekafka {line}")
    assert refused.code == 2
    assert "give --yes or --dry-run" in refused.err
    for answer, changes in ((b"n\n", False), (b"", False), (b"y\n", True)):
        code, changed = _answered(line, answer, broker)
        assert code == 0 or line.startswith("acls")  # this cluster has no authorizer
        assert changed == changes, (line, answer)


def _answered(line: str, answer: bytes, broker: Broker) -> tuple[int, bool]:
    """Run a line at a terminal whose user answers, and return its code and whether it changed something."""
    import io
    import os
    import pty

    from kafka.cli import main

    broker.forget_requests()
    master, slave = pty.openpty()
    before = sys.stdin
    try:
        os.write(master, answer or b"\n")
        with io.TextIOWrapper(open(slave, "rb", buffering=0, closefd=False)) as sys.stdin:
            code = main(line.split())
    finally:
        sys.stdin = before
        os.close(master)
        os.close(slave)
    names = {"IncrementalAlterConfigs", "CreatePartitions", "CreateAcls"}
    made = [one for one in broker.requests if one.name in names and not getattr(one.request, "validate_only", False)]
    return code, bool(made)
