"""A partition without a leader, brokers that do not answer, names that do not exist: the rest is shown, and soon."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from kafka import KafkaAdminClient
from kafka.broker import Broker

from .shell import Outcome, run


@pytest.fixture
def halved(monkeypatch: pytest.MonkeyPatch) -> Iterator[Broker]:
    """Two nodes, the second of which is down: partitions of `events` have one replica each, on both in turn."""
    with Broker(nodes=2) as broker:
        monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", broker.bootstrap_servers)
        broker.create_topic("events", 4)
        for number in range(8):
            broker.append("events", b"tea", partition=number % 4)
        with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
            admin.alter_group_offsets("billing", {("events", number): 1 for number in range(4)})
        broker.stop_node(2)
        yield broker


def alive(broker: Broker) -> set[int]:
    """Return the partitions of `events` that have a leader."""
    return {number for number in range(4) if broker.leader("events", number) == 1}


def soon(line: str, seconds: float = 25) -> Outcome:
    """Run a command that reads; a machine that is busy gets some time, but not the minute of a call."""
    begun = time.monotonic()
    outcome = run(f"purekafka {line}")
    assert time.monotonic() - begun < seconds, line
    return outcome


def test_offsets_of_the_other_partitions_are_listed(halved: Broker) -> None:
    for line in ("offsets list events", "offsets list", "topics describe events", "topics describe"):
        outcome = soon(f"{line} -f json")
        assert outcome.code == 1
        found = outcome.json[0]["partitions"] if line.startswith("topics") else outcome.json
        assert {row["partition"] for row in found if row["end"] == 2} == alive(halved)
        assert {row["partition"] for row in found if row["end"] is None} == set(range(4)) - alive(halved)
        for number in set(range(4)) - alive(halved):
            assert f"events-{number}: it has no leader" in outcome.err
    for place in ("-1", "end", "max-timestamp"):
        outcome = soon(f"offsets list events --at {place} -f json")
        assert (outcome.code, {row["partition"] for row in outcome.json}) == (1, alive(halved))


def test_the_lag_of_the_other_partitions_is_shown(halved: Broker) -> None:
    outcome = soon("groups lag billing -f json")
    assert outcome.code == 1
    assert {row["partition"]: row["lag"] for row in outcome.json} == {
        number: 1 if number in alive(halved) else None for number in range(4)
    }
    assert outcome.err.count("has no leader") == 2


def test_a_sum_of_which_a_part_is_not_known_is_not_shown_as_a_number(halved: Broker) -> None:
    for by in ("topic", "group"):
        outcome = soon(f"groups lag billing --by {by} -f json")
        assert (outcome.code, outcome.json[0]["lag"], outcome.json[0]["largest"]) == (1, None, 1)
    assert soon("groups lag billing --by topic --fail-above 0").code == 4, "what is known is above it already"
    lines = soon("top --count 1").lines
    assert ["billing", "events", "-", "-", "-", "-"] in [line.split() for line in lines]


def test_the_records_of_the_other_partitions_are_read(halved: Broker) -> None:
    """What is missing is named and is exit code 1; nobody reads half of a topic without knowing it."""
    for words in ("-f %p", "--group readers -f %p"):
        outcome = soon(f"consume events {words}", 40)
        assert {int(number) for number in outcome.out} == alive(halved), outcome.err
        for number in set(range(4)) - alive(halved):
            assert f"events-{number}: it has no leader" in outcome.err
        assert outcome.code == 1
    outcome = soon(f"consume events -p {min(set(range(4)) - alive(halved))}")
    assert (outcome.code, outcome.out, outcome.err.count("it has no leader")) == (1, "", 1)


@pytest.mark.parametrize(
    "line", ["groups reset-offsets billing --to end --yes", "records delete-before events --place end --yes"]
)
def test_a_plan_does_not_wait_for_a_leader(line: str, halved: Broker) -> None:
    outcome = soon(line)
    assert (outcome.code, outcome.out, outcome.err.count("it has no leader")) == (1, "", 2)
    assert halved.committed("billing", "events", min(alive(halved))) == 1, "nothing was changed"


def test_views_redraw_and_say_what_is_not_known(halved: Broker) -> None:
    outcome = soon("top --count 3 --interval 0.1")
    assert (outcome.code, outcome.out.count("2 without leader") >= 3) == (0, True), outcome.out
    assert "has no leader" in soon("top --count 1").out


def test_a_change_says_which_partition_has_no_leader(halved: Broker) -> None:
    outcome = soon("groups reset-offsets billing --from-file - --dry-run < /dev/null", 25)
    assert outcome.code == 2
    begun = time.monotonic()
    offsets = b"".join(b"events,%d,0\n" % number for number in range(4))
    outcome = run("purekafka groups reset-offsets billing --from-file - --yes", stdin=offsets)
    assert time.monotonic() - begun < 25
    assert (outcome.code, outcome.err.count("it has no leader")) == (1, 2)
    with KafkaAdminClient(bootstrap_servers=halved.bootstrap_servers) as admin:
        committed = admin.list_group_offsets("billing")["billing"]
    assert {place.offset for place in committed.values()} == {1}


def test_a_broker_that_does_not_exist_or_answer_costs_five_seconds(
    halved: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "99" in soon("configs describe broker 99").err
    monkeypatch.setattr("kafka.cli.connection._READ_MS", 1000)
    assert "broker 99" in soon("brokers log-dirs --broker 99").err
    outcome = soon("brokers describe")
    assert outcome.code == 0
    for api in ("DescribeConfigs", "DescribeLogDirs", "ListOffsets"):
        halved.delay(api, 60)
    for line in ("configs describe broker 1", "brokers log-dirs", "offsets list events:0", "groups lag billing"):
        outcome = soon(line)
        assert outcome.code == 1, line
        assert outcome.err


def test_words_that_are_not_ids_of_brokers(halved: Broker) -> None:
    for words in ("1,x", "1,", "one"):
        wrong = soon(f"partitions reassign plan events --brokers {words}")
        assert (wrong.code, "--brokers takes ids" in wrong.err) == (2, True)
    for line in ("reassign plan events --brokers 1,9", "move-dir events:0 --broker 9 --directory /d --yes"):
        absent = soon(f"partitions {line}", 25)
        assert (absent.code, "broker 9 does not exist; the brokers are 1" in absent.err) == (1, True)


def test_the_user_s_patience_is_kept(halved: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka.cli.connection._READ_MS", 60_000)  # far from what a busy machine adds to a second
    begun = time.monotonic()
    outcome = run("purekafka configs describe broker 99 -X default.api.timeout.ms=1000 -X request.timeout.ms=900")
    assert (outcome.code, time.monotonic() - begun < 20) == (1, True)


def test_each_of_several_things_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    with Broker(topics={"events": 1}) as broker:
        monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", broker.bootstrap_servers)
        with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
            admin.alter_group_offsets("billing", {("events", 0): 0})
        run("purekafka users set-password ada", stdin=b"hush")
        for line, known in (
            ("topics describe events nosuch", "Topic events"),
            ("topics describe nosuch events -q", "events"),
            ("offsets list events nosuch", "events"),
            ("offsets list nosuch events --at end", "events"),
            ("groups describe billing nosuch", "Group billing"),
            ("groups lag billing nosuch", "billing"),
            ("brokers describe 1 9", "Broker 1"),
            ("users list ada nosuch", "ada"),
            ("configs describe topic events retention.ms nosuch", "retention.ms"),
        ):
            outcome = run(f"purekafka {line}")
            assert (outcome.code, known in outcome.out) == (1, True), line
            assert "9" in outcome.err or "nosuch" in outcome.err, line
        twice = run("purekafka groups describe billing billing")
        assert (twice.code, twice.out.count("Group billing")) == (0, 1)


def test_watching_a_group_that_does_not_exist_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from kafka.cli import group_lag
    from kafka.cli.screen import Rates

    with Broker(topics={"events": 1}) as broker, KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        monkeypatch.setattr("kafka.cli.screen.redraw", lambda look, *_: print("\n".join(look(Rates()))) or 0)
        outcome = run(f"purekafka groups lag nosuch --watch -b {broker.bootstrap_servers}")
        assert "group 'nosuch' does not exist" in outcome.out
        assert group_lag.lag_rows(admin, ["nosuch"])[0] == []


def test_patterns_leave_internal_topics_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with Broker(topics={"events": 1, "_mine": 1}) as broker:
        monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", broker.bootstrap_servers)
        broker.create_topic("__consumer_offsets", 1)
        for line in (
            "topics delete '*' --dry-run",
            "topics describe '*'",
            "topics list '*'",
        ):
            outcome = run(f"purekafka {line}")
            assert (outcome.code, "events" in outcome.out, "_mine" in outcome.out) == (0, True, True)
            assert "__consumer_offsets" not in outcome.out, line
        assert run("purekafka topics alter '*' --set retention.ms=9 --dry-run").out.count("retention.ms=9") == 2
        for line in (
            "topics describe '__*'",
            "topics list '_*'",
            "topics list __consumer_offsets",
            "topics list -a '*'",
        ):
            assert "__consumer_offsets" in run(f"purekafka {line}").out, line
