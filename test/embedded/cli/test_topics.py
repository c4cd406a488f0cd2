"""Topics from the shell."""

from __future__ import annotations

import csv
import io

from kafka.broker import Broker

from .conftest import Shell

#: The keys of JSON output are documented and stable: others may be added.
LIST_KEYS = {"name", "partition_count", "replication_factor", "internal", "id", "under_replicated", "without_leader"}
PARTITION_KEYS = {"partition", "leader", "replicas", "isr", "elr", "start", "end", "leader_epoch", "offline"}


def test_c5_a_listing_has_every_format(shell: Shell) -> None:
    table = shell("purekafka topics list")
    assert table.lines == [
        "TOPIC   PARTITIONS  REPLICAS  INTERNAL",
        "events           3         1  no",
        "orders           1         1  no",
    ]
    assert shell("purekafka topics list --no-headers").lines == ["events  3  1  no", "orders  1  1  no"]
    rows = shell("purekafka topics list -f json").json
    assert [set(row) for row in rows] == [LIST_KEYS, LIST_KEYS]
    assert shell("purekafka topics list -f jsonl").records == rows
    assert shell("purekafka topics list -q").lines == ["events", "orders"]
    assert shell("purekafka topics list -f '{name}:{partition_count}'").lines == ["events:3", "orders:1"]
    found = list(csv.DictReader(io.StringIO(shell("purekafka topics list -f csv").out)))
    assert [(row["name"], row["partition_count"], row["internal"]) for row in found] == [
        ("events", "3", "false"),
        ("orders", "1", "false"),
    ]


def test_c5_a_format_that_does_not_exist_is_refused_with_2(shell: Shell) -> None:
    outcome = shell("purekafka topics list -f jsn")
    assert (outcome.code, outcome.out) == (2, "")
    assert "table, json, jsonl, csv, or a template" in outcome.err
    outcome = shell("purekafka topics list -f '{nam}'")
    assert (outcome.code, outcome.out) == (2, "")
    assert "field 'nam' does not exist; the fields are name, partition_count" in outcome.err


def test_c5_the_description_of_a_topic_has_stable_keys(shell: Shell, broker: Broker) -> None:
    broker.append("events", "a", partition=1)
    (topic,) = shell("purekafka topics describe events -f json").json
    assert set(topic) == LIST_KEYS | {"settings", "partitions"}
    assert [set(row) for row in topic["partitions"]] == [PARTITION_KEYS] * 3
    assert [(row["partition"], row["start"], row["end"]) for row in topic["partitions"]] == [
        (0, 0, 0),
        (1, 0, 1),
        (2, 0, 0),
    ]


def test_topics_are_created_changed_and_deleted(shell: Shell) -> None:
    assert shell("purekafka topics create a b -p 2 --set retention.ms=60000").out == (
        "a: created with 2 partitions\nb: created with 2 partitions\n"
    )
    assert shell("purekafka topics alter a -p 4 --set cleanup.policy=compact --unset retention.ms --yes").code == 0
    (topic,) = shell("purekafka topics describe a -f json").json
    assert (topic["partition_count"], topic["settings"]) == (4, {"cleanup.policy": "compact"})
    assert shell("purekafka topics delete 'a' b --yes").lines[-2:] == ["a: deleted", "b: deleted"]
    assert shell("purekafka topics list -q").lines == ["events", "orders"]


def test_c8_one_of_several_items_that_fails_ends_with_1(shell: Shell) -> None:
    outcome = shell("purekafka topics create events new")
    assert (outcome.code, outcome.out) == (1, "new: created with 1 partition\n")
    assert outcome.err == "purekafka topics create: topic 'events': Topic 'events' already exists.\n"
    assert shell("purekafka topics create events --if-not-exists")[:] == (0, b"events: exists\n", "")
    outcome = shell("purekafka topics create events -p 9 --if-not-exists")
    assert (outcome.code, outcome.out) == (0, "events: exists\n")
    assert outcome.err.startswith("purekafka topics create: events keeps its ")
    outcome = shell("purekafka topics describe orders nope -f json")
    assert outcome.code == 1
    assert "topic 'nope'" in outcome.err
    outcome = shell("purekafka topics delete nope orders --yes")
    assert (outcome.code, outcome.lines[-1]) == (1, "orders: deleted")
    assert shell("purekafka topics delete nope --yes --if-exists").code == 0
    assert shell("purekafka topics list 'x*' --fail-if-empty").code == 3


def test_c11_deletion_shows_what_it_would_delete_and_needs_consent(shell: Shell) -> None:
    refused = shell("purekafka topics delete 'e*'")
    assert refused.code == 2
    assert "events" in refused.out
    assert "give --yes or --dry-run" in refused.err
    dry = shell("purekafka topics delete events --dry-run")
    assert (dry.code, dry.err.splitlines()[1:]) == (0, ["Nothing was changed (--dry-run)."])
    assert shell("purekafka topics create new --dry-run").out == "new: would be created with 1 partition\n"
    assert shell("purekafka topics list -q").lines == ["events", "orders"]


def test_only_partitions_that_lack_replicas_are_shown(shell: Shell) -> None:
    assert shell("purekafka topics describe --under-replicated -f json").json == []


def test_words_that_other_verbs_take_are_named(shell: Shell) -> None:
    for line, said in (
        ("create two -p 2 --assignment 1,1", "leave -p and -r out"),
        ("alter events -p 9 --dry-run", "the records of a key may go to another partition"),
    ):
        assert said in shell(f"purekafka topics {line}").err
    pattern = shell("purekafka configs set topic 'ev*' retention.ms=3d --yes")
    assert (pattern.code, "purekafka topics alter and describe take patterns" in pattern.err) == (2, True)


def test_the_only_verb_of_a_noun_need_not_be_named(shell: Shell, broker: Broker) -> None:
    broker.append("orders", "a")
    assert shell("purekafka offsets orders").out == shell("purekafka offsets list orders").out
    assert shell("purekafka offsets orders:0 --at end -f '{offset}'").lines == ["1"]
    wrong = shell("purekafka offsets lst")
    assert (wrong.code, "unknown verb 'lst': did you mean list?" in wrong.err) == (2, True)
