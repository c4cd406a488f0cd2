"""C11: a dry run leaves no trace, neither in files nor in the cluster. Every verb with --dry-run is in the table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka import KafkaConsumer, TopicPartition
from kafka.broker import Broker
from kafka.cli.grammar import COMMANDS, Noun, load

from .shell import Outcome, run

#: Verb -> a line that would change something; None where this cluster has nothing that it could change.
LINES = {
    "topics create": "topics create fresh -p 2 --set retention.ms=9",
    "topics alter": "topics alter events --partitions 9 --set retention.ms=9",
    "topics delete": "topics delete events 'o*'",
    "groups reset-offsets": "groups reset-offsets billing --topic events --to end",
    "groups delete-offsets": "groups delete-offsets billing --topic events",
    "groups copy": "groups copy billing billing-2",
    "groups delete": "groups delete billing",
    "groups remove-members": "groups remove-members readers",
    "configs set": "configs set topic events retention.ms=9",
    "configs append": "configs append topic events cleanup.policy=compact",
    "configs subtract": "configs subtract topic orders cleanup.policy=compact",
    "configs unset": "configs unset topic orders retention.ms",
    "records delete-before": "records delete-before events --place end",
    "brokers unregister": None,
    "cluster voters-add": None,
    "cluster voters-remove": None,
    "cluster features-upgrade": "cluster features-upgrade share.version=0 --downgrade",
    "acls allow": "acls allow --principal eve --operation read --topic events",
    "acls deny": "acls deny --principal eve --operation read --topic events",
    "acls delete": "acls delete --principal ada",
    "users delete": "users delete ada",
    "quotas set": "quotas set producer_byte_rate=9 --user eve",
    "quotas unset": "quotas unset producer_byte_rate --user ada",
    "tokens expire": "tokens expire AAAA",
    "partitions reassign-apply": "partitions reassign-apply plan.json --rollback old.json",
    "partitions reassign-throttle": "partitions reassign-throttle none",
    "partitions reassign-cancel": None,
    "partitions elect": "partitions elect events",
    "partitions move-dir": "partitions move-dir events --broker 1 --directory /data/2",
    "transactions abort": None,
    "transactions fence": "transactions fence orders-1",
}

#: What shows the state of the cluster.
STATE = (
    "topics list -a -f json",
    "topics describe -f json",
    "configs describe topic events -f json",
    "configs describe topic orders -f json",
    "groups list -f json",
    "groups describe readers -f json",
    "groups lag -f json",
    "brokers list -f json",
    "acls list -f json",
    "users list -f json",
    "quotas list -f json",
    "configs list client-metrics -f json",
    "partitions reassign status -f json",
)

#: Requests that ask a broker to check a change, and carry the wish not to make it.
CHECKED = {
    "CreateTopics",
    "CreatePartitions",
    "AlterConfigs",
    "IncrementalAlterConfigs",
    "AlterClientQuotas",
    "UpdateFeatures",
}
READS = {
    "ApiVersions", "Metadata", "DescribeCluster", "DescribeConfigs", "DescribeTopicPartitions", "FindCoordinator",
    "DescribeGroups", "ConsumerGroupDescribe", "ListGroups", "OffsetFetch", "ListOffsets", "DescribeAcls",
    "DescribeUserScramCredentials", "DescribeClientQuotas", "ListConfigResources", "ListClientMetricsResources",
    "ListPartitionReassignments", "DescribeLogDirs", "DescribeTransactions", "ShareGroupDescribe",
    "StreamsGroupDescribe", "DescribeQuorum",
}  # fmt: skip


def verbs() -> Iterator[str]:
    for name in COMMANDS:
        command = load(name)
        for verb in command.verbs.values() if isinstance(command, Noun) else [command]:
            if any("--dry-run" in argument.names for argument in verb.arguments):
                yield f"{name} {verb.name}"


def test_every_verb_with_a_dry_run_is_in_the_table() -> None:
    assert sorted(LINES) == sorted(verbs())


@pytest.fixture(scope="module")
def cluster() -> Iterator[Broker]:
    """Three nodes with something of each kind, and a group with a member."""
    configs = {"authorizer.class.name": "StandardAuthorizer", "super.users": "User:ANONYMOUS"}
    with Broker(nodes=3, topics={"events": 3, "orders": 1}, configs=configs) as broker:
        at = f"-b {broker.bootstrap_servers}"
        for line in (
            "configs set topic orders retention.ms=77 cleanup.policy=compact,delete --yes",
            "acls allow --principal ada --operation read --topic events --yes",
            "quotas set producer_byte_rate=7 --user ada",
            "configs set client-metrics rates interval.ms=7000 --yes",
        ):
            assert run(f"purekafka {line} {at}").code == 0
        assert run(f"purekafka users set-password ada {at}", stdin=b"hush").code == 0
        for number in range(6):
            broker.append("events", b"%d" % number, partition=number % 3)
        assert run(f"purekafka groups reset-offsets billing --topic events --to 1 --yes {at}").code == 0
        with KafkaConsumer("orders", group_id="readers", bootstrap_servers=broker.bootstrap_servers) as consumer:
            consumer.poll(timeout_ms=5000)
            assert consumer.assignment() == {TopicPartition("orders", 0)}
            yield broker


def state() -> list[Outcome]:
    return [run(f"purekafka {line}") for line in STATE]


def files(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def dry_run(verb: str, cluster: Broker) -> None:
    """Run a verb twice, without and with --yes, and look at what it asked of the cluster."""
    cluster.forget_requests()
    outcome = run(f"purekafka {LINES[verb]} --dry-run")
    assert outcome.code == 0, outcome.err
    assert outcome.out + outcome.err
    assert run(f"purekafka {LINES[verb]} --dry-run --yes").code in {0, 2}, "2: a verb that does not ask"
    requests = [seen for seen in cluster.requests if not (seen.client_id or "").startswith("readers")]
    for seen in requests:
        assert seen.name in READS | CHECKED | {"Heartbeat", "Fetch"}, (verb, seen.name)
        assert seen.name not in CHECKED or seen.request.validate_only, (verb, seen.name)


def test_a_dry_run_leaves_no_trace(cluster: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", cluster.bootstrap_servers)
    monkeypatch.chdir(tmp_path)
    leader = cluster.leader("orders")
    moved = {"topic": "orders", "partition": 0, "replicas": [leader % 3 + 1]}
    (tmp_path / "plan.json").write_text(json.dumps({"version": 1, "partitions": [moved]}))
    (tmp_path / "offsets.csv").write_text("events,0,2\n")
    files_before, before = files(tmp_path), state()
    assert not [outcome for outcome in before if outcome.code], before
    verbs = [verb for verb, line in LINES.items() if line is not None]
    for verb in verbs:
        dry_run(verb, cluster)
        assert files(tmp_path) == files_before, verb
    after = state()
    # Each look at everything is thirteen commands: only if something has changed is it looked which verb does it.
    for verb in verbs if after != before else ():
        dry_run(verb, cluster)
        assert state() == after, verb
    assert after == before


def test_the_way_back_of_a_reassignment_is_not_overwritten(
    cluster: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", cluster.bootstrap_servers)
    monkeypatch.chdir(tmp_path)
    leader = cluster.leader("orders")
    moved = {"topic": "orders", "partition": 0, "replicas": [leader % 3 + 1]}
    (tmp_path / "plan.json").write_text(json.dumps({"version": 1, "partitions": [moved]}))
    apply = "purekafka partitions reassign apply plan.json --rollback old.json --wait"
    assert run(f"{apply} --dry-run").code == 0
    assert run(apply).code == 2, "nobody agreed"
    assert not (tmp_path / "old.json").exists()
    assert run(f"{apply} --yes").code == 0
    back = (tmp_path / "old.json").read_text()
    assert json.loads(back)["partitions"][0]["replicas"] == [leader]
    for words in ("--yes", "--dry-run"):
        again = run(f"{apply} {words}")
        assert (again.code, "the file exists; --replace overwrites it" in again.err) == (2, True)
        assert (tmp_path / "old.json").read_text() == back
    assert run("purekafka partitions reassign apply old.json --yes --wait").code == 0
    assert cluster.leader("orders") == leader
    assert run(f"{apply} --yes --replace").code == 0
