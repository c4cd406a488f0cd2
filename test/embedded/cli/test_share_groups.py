"""Share groups from the shell: their members, lag and offsets, and their records."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from kafka import KafkaAdminClient, KafkaShareConsumer
from kafka.admin import ConfigResource
from kafka.broker import Broker
from test import quick_start

from .conftest import Shell

GROUP = "workers"


@pytest.fixture(autouse=True)
def queue(broker: Broker) -> None:
    """Five records, and a group that begins with the first."""
    broker.append_many("orders", [b"0", b"1", b"2", b"3", b"4"])
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.alter_configs([ConfigResource("GROUP", GROUP, {"share.auto.offset.reset": "earliest"})])


@pytest.fixture
def member(broker: Broker) -> Iterator[KafkaShareConsumer[bytes | None, bytes | None]]:
    """A member that has finished the records 0 and 1, and has the others."""
    with KafkaShareConsumer(
        "orders",
        bootstrap_servers=broker.bootstrap_servers,
        group_id=GROUP,
        client_id="me",
        share_acknowledgement_mode="explicit",
    ) as consumer:
        (rows,) = consumer.poll(30_000).values()
        for row in rows[:2]:
            consumer.acknowledge(row)
        consumer.commit()
        yield consumer


def test_members_and_lag(shell: Shell, member: object) -> None:
    assert shell("purekafka groups list -f json").json == [
        {"group_id": GROUP, "state": "Stable", "type": "share", "protocol_type": "share"}
    ]
    (found,) = shell(f"purekafka groups describe {GROUP} -f json").json
    assert (found["state"], found["type"], found["assignor"]) == ("Stable", "share", "simple")
    assert [(one["client_id"], one["assignment"]) for one in found["members"]] == [("me", {"orders": [0]})]
    assert "orders:0" in shell("purekafka groups describe 'work*'").out
    for words in (GROUP, ""):
        (row,) = shell(f"purekafka groups lag {words} -f json").json
        # The start offset is stored one acknowledgement late, as Kafka does.
        assert (row["offset"], row["end"], row["lag"], row["client_id"]) == (0, 5, 3, "me")
    assert shell(f"purekafka groups lag {GROUP} --fail-above 2").code == 4
    assert [line.split() for line in shell("purekafka top --count 1").lines if line.startswith(GROUP)] == [
        [GROUP, "orders", "3", "-", "-", "-"]
    ]


def test_offsets_of_a_group_with_members_are_not_changed(shell: Shell, member: object) -> None:
    outcome = shell(f"purekafka groups reset-offsets {GROUP} --to end --yes")
    assert (outcome.code, "has 1 member" in outcome.err) == (1, True)
    outcome = shell(f"purekafka groups remove-members {GROUP} --yes")
    assert (outcome.code, "whose members leave by themselves" in outcome.err) == (1, True)
    assert shell(f"purekafka groups delete {GROUP} --yes").code == 1


def test_offsets_are_shown_changed_copied_and_deleted(shell: Shell, member: KafkaShareConsumer) -> None:
    member.close()
    assert shell(f"purekafka groups offsets {GROUP} --export -").out == "orders,0,2\n"
    (row,) = shell(f"purekafka groups reset-offsets {GROUP} --to end --dry-run -f json").json
    assert (row["offset"], row["new_offset"], row["new_lag"]) == (2, 5, 0)
    (row,) = shell(f"purekafka groups offsets {GROUP} -f json").json
    assert (row["topic"], row["partition"], row["offset"]) == ("orders", 0, 2)
    assert shell(f"purekafka groups reset-offsets {GROUP} --to 4 --yes").code == 0
    assert shell(f"purekafka groups lag {GROUP} -f '{{offset}} {{lag}}'").out == "4 1\n"
    assert shell(f"purekafka groups copy {GROUP} others --yes").code == 0
    assert shell("purekafka groups list -f '{group_id} {type}'").lines == ["others share", f"{GROUP} share"]
    assert shell("purekafka groups offsets others --export -").out == "orders,0,4\n"
    outcome = shell("purekafka groups delete-offsets others --topic orders:0 --yes")
    assert (outcome.code, "are deleted by topic" in outcome.err) == (2, True)
    assert shell("purekafka groups delete-offsets others --topic orders --yes").code == 0
    assert shell("purekafka groups offsets others --export -").out == ""
    assert shell(f"purekafka groups delete {GROUP} others --yes").code == 0
    assert shell("purekafka groups list -f json").json == []


def test_records_are_printed_and_accepted(shell: Shell, broker: Broker) -> None:
    first = shell(f"purekafka consume orders --share {GROUP} -n 2 -f '%o %D %s\\n'")
    assert (first.code, first.lines) == (0, ["0 1 0", "1 1 1"])
    rest = shell(f"purekafka consume orders --share {GROUP} -f jsonl")
    assert [(row["offset"], row["delivery_count"]) for row in map(json.loads, rest.lines)] == [(2, 1), (3, 1), (4, 1)]
    assert broker.share_records(GROUP, "orders") == {}
    assert shell(f"purekafka consume orders --share {GROUP} --fail-if-empty").code == 3


def test_released_records_stay_in_the_queue_and_rejected_ones_do_not(shell: Shell, broker: Broker) -> None:
    for count in (1, 2):
        shown = shell(f"purekafka consume orders --share {GROUP} --ack release -f '%D %s\\n'")
        assert shown.lines == [f"{count} {number}" for number in range(5)]
    assert {one.state for one in broker.share_records(GROUP, "orders").values()} == {"available"}
    assert len(shell(f"purekafka consume orders --share {GROUP} --ack reject").lines) == 5
    assert broker.share_records(GROUP, "orders") == {}


def test_new_records_are_followed_until_there_are_enough(shell: Shell, broker: Broker) -> None:
    def append() -> None:
        deadline = time.monotonic() + 30
        while not any(seen.name == "ShareAcknowledge" for seen in broker.requests):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        broker.append("orders", b"5")

    appending = threading.Thread(target=append)
    appending.start()
    outcome = shell(f"purekafka consume --pattern 'ord.*' --share {GROUP} --follow -n 6 --timeout 40")
    appending.join()
    assert outcome.lines == ["0", "1", "2", "3", "4", "5"]


def test_output_that_breaks_off_leaves_its_records_in_the_queue(broker: Broker) -> None:
    broker.append_many("orders", [b"x" * 100_000] * 30)
    words = [sys.executable, "-m", "kafka", "consume", "orders", "--share", GROUP, "--follow"]
    words += ["-b", broker.bootstrap_servers]
    with quick_start.Program(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as command:
        assert command.stdout is not None
        assert command.stdout.readline() == b"0\n"
        command.stdout.close()
        command.wait(60)
    left = broker.share_records(GROUP, "orders")
    assert {one.state for one in left.values()} == {"available"}
    assert 5 < len(left) <= 30, "the small records were printed, and not all of the large ones"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("orders --share g --group h", "exclude each other"),
        ("orders --share g --from 3", "the group decides which records come"),
        ("orders --share g -p 0", "the group decides which records come"),
        ("orders --share g --filter-value x", "would be lost"),
        ("orders --share g --ack release --follow", "--follow has none"),
        ("--pattern nothing.* --share g", "no topic matches"),
    ],
)
def test_wrong_words(words: str, complaint: str, shell: Shell) -> None:
    outcome = shell(f"purekafka consume {words}")
    assert (outcome.code, outcome.out) == (2, "")
    assert complaint in outcome.err


def test_a_topic_that_does_not_exist(shell: Shell) -> None:
    outcome = shell("purekafka consume ordres --share g")
    assert (outcome.code, outcome.err.strip()) == (1, "purekafka consume: topic 'ordres' does not exist")


def test_brokers_without_share_groups(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    with Broker(topics=["orders"], as_version="3.9") as old:
        monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", old.bootstrap_servers)
        outcome = shell("purekafka consume orders --share g")
        assert outcome.code == 1
        assert "Kafka 4.2" in outcome.err
        outcome = shell("purekafka groups describe nope")
        assert "group 'nope' does not exist" in outcome.err
