"""Every verb that talks to a cluster, on Apache Kafka: one node, and lines that run in this order.

What each verb does in its own mode is tried on the embedded broker (``embedded/cli/test_every_verb.py`` has the table);
that Kafka itself answers each verb, and takes each change, is shown here.
"""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from kafka import KafkaConsumer, KafkaProducer
from test.embedded.cli.shell import run
from test.embedded.cli.test_every_verb import CONNECTED
from test.real.conftest import StartKafka
from test.real.kafka_process import KafkaCluster
from test.real.sasl import plain


class Step(NamedTuple):
    """A line, what it shows in its output or its errors, and its exit code."""

    line: str
    shows: str
    code: int = 0
    stdin: bytes = b""


#: Verb -> its lines. {dir} is a directory, {secured} the listener with users, {log_dir} a directory of the broker.
STEPS: dict[str, list[Step]] = {
    "topics create": [Step("every -p 2 --set retention.ms=86400000", "every: created with 2 partitions")],
    "produce": [
        Step("every -K : -H a=b", "", stdin=b"k:one\nk:two\n"),
        Step("every --value three --progress", "written"),
    ],
    "consume": [Step("every -f '%k %s\\n' -g readers", "k one\nk two")],
    "tail": [Step("every -n 1 --no-follow", "three")],
    "topics list": [Step("'ev*' -f json", '"every"')],
    "topics describe": [Step("every", r"retention\.ms=86400000")],
    "topics alter": [Step("every -p 3 --set segment.bytes=10000000 --yes", "every: 3 partitions")],
    "topics copy": [
        Step("every copied --create", "copied: 3 records copied"),
        Step("every copied --resume nightly", "copied: 3 records copied"),
        Step("every copied --resume nightly", "copied: 0 records copied"),
    ],
    "topics dump": [Step("every {dir}/every.jsonl.gz", "3 records")],
    "topics load": [Step("{dir}/every.jsonl.gz copied", "3 records loaded")],
    "groups list": [Step("", r"readers +Empty")],
    "groups describe": [Step("readers", "Group readers: Empty"), Step("nosuch", "'nosuch' does not exist", 1)],
    "groups lag": [Step("readers --by group", r"readers +\d +0"), Step("readers --fail-above -1", "readers", 4)],
    "groups offsets": [Step("readers --export {dir}/offsets.csv", ""), Step("readers", "every")],
    "groups reset-offsets": [Step("readers --to beginning --yes", "NEW OFFSET")],
    "groups copy": [
        Step("readers others --yes", "NEW OFFSET"),
        Step("readers translated --rename every=copied --yes", r"copied +\d"),
    ],
    "groups delete-offsets": [Step("others --topic every --yes", "every")],
    "groups remove-members": [Step("readers --yes", "has no members", 1)],
    "groups delete": [Step("translated --yes", "translated: deleted")],
    "configs list": [Step("topic -q", "topic")],
    "configs describe": [Step("broker 1 log.retention.hours", r"log\.retention\.hours +168")],
    "configs set": [
        Step("topic every retention.ms=99999999 --yes", "changed 1 setting"),
        Step("client-metrics slow metrics=org.apache. interval.ms=30000 --yes", "changed 2 settings"),
    ],
    "configs append": [Step("topic copied cleanup.policy=compact --yes", "changed 1 setting")],
    "configs subtract": [Step("topic copied cleanup.policy=compact --yes", "changed 1 setting")],
    "configs unset": [Step("topic every retention.ms --yes", "changed 1 setting")],
    "offsets list": [Step("every", r"every +0 +0 +\d"), Step("every --at max-timestamp", "every")],
    "records delete-before": [Step("copied:0 --place end --yes", "NEW START")],
    "brokers list": [Step("", r"1 +127\.0\.0\.1 +\d+")],
    "brokers describe": [Step("1", "Broker 1 at 127.0.0.1")],
    "brokers versions": [Step("", r"Metadata +3 +0 +13")],
    "brokers log-dirs": [Step("", r"1 +\S+ +\d+")],
    "brokers unregister": [Step("1 --yes", "broker 1|is running|1 is", 1)],
    "cluster describe": [Step("", "controller 1")],
    "cluster quorum": [Step("", r"1 +leader")],
    "cluster voters": [Step("", r"1 +leader|1 +")],
    "cluster voters-add": [Step("9 --listener CONTROLLER=localhost:1 --yes", "give --directory-id", 1)],
    "cluster voters-remove": [Step("9 --yes", "node 9 is not a voter", 1)],
    "cluster features": [Step("", r"metadata\.version")],
    "cluster features-upgrade": [
        Step("group.version=1 --dry-run", "group.version"),
        Step("nosuch.version=1 --yes", "nosuch", 1),
    ],
    "acls allow": [
        Step("--principal ada --operation read --topic every --yes", "User:ada allow read topic every: added")
    ],
    "acls deny": [Step("--principal eve --operation read --topic every --yes", "deny")],
    "acls list": [Step("--principal ada", "User:ada")],
    "acls delete": [Step("--topic every --yes -f jsonl", '"done": "deleted"')],
    "users set-password": [Step("ada", "ada: password set", stdin=b"hush\n")],
    "users list": [Step("", r"ada +SCRAM-SHA-256")],
    "users delete": [Step("ada --yes", "ada: deleted")],
    "quotas set": [Step("producer_byte_rate=1000000 --user ada", "producer_byte_rate")],
    "quotas list": [Step("", "ada")],
    "quotas unset": [Step("producer_byte_rate --user ada", "producer_byte_rate")],
    "tokens create": [Step("--lifetime 1h -f json {secured}", '"hmac"')],
    "tokens list": [Step("{secured}", "User:owner")],
    "tokens renew": [Step("@env:HMAC {secured}", "token: expires")],
    "tokens expire": [Step("@env:HMAC --yes {secured}", "expired")],
    "partitions reassign-plan": [Step("every --brokers 1 --output {dir}/plan.json", "")],
    "partitions reassign-apply": [Step("{dir}/plan.json --yes", "")],
    "partitions reassign-status": [Step("", "")],
    "partitions reassign-throttle": [Step("none --yes", "")],
    "partitions reassign-cancel": [Step("every --yes", "no such partition is moving", 1)],
    "partitions elect": [Step("every --yes", "every-0: leads already")],
    "partitions move-dir": [Step("every:0 --broker 1 --directory {log_dir} --yes", "")],
    "transactions list": [Step("", "open-1")],
    "transactions describe": [Step("open-1", "every-0|Ongoing")],
    "transactions producers": [Step("every:0", "every")],
    "transactions hanging": [Step("--longer-than 0", "")],
    "transactions abort": [Step("every:0 --longer-than 0 --yes", "no transaction", 1)],
    "transactions fence": [Step("open-1 --yes", "open-1")],
    "top": [Step("--count 1", "every")],
    "health": [Step("", r"under-min-isr +yes")],
    "exporter": [Step("--once", "kafka_exporter_up")],
    "perf produce": [Step("copied -n 100", "100 records sent")],
    "perf consume": [Step("copied -n 100", r"start\.time")],
    "perf latency": [Step("copied -n 5", "Avg latency")],
    "request": [Step("Metadata '{{\"topics\": null}}'", '"every"')],
    "topics delete": [Step("every copied --yes", "every: deleted")],
}


@pytest.fixture
def servers(kafka_at: StartKafka, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> KafkaCluster:
    cluster = kafka_at(
        listeners=["PLAINTEXT", "SASL_PLAINTEXT"],
        security=[plain({"owner": "hush"})],
        properties={
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS;User:owner",
            "delegation.token.secret.key": "a cluster secret",
        },
    )
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", cluster.bootstrap_servers)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")
    return cluster


def test_every_verb_that_talks_to_a_cluster_is_in_the_table() -> None:
    assert sorted(STEPS) == sorted(CONNECTED)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_verb_runs_on_apache_kafka(
    servers: KafkaCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secured = f"-b {servers.bootstrap('SASL_PLAINTEXT')} -X security.protocol=SASL_PLAINTEXT -X sasl.mechanism=PLAIN"
    secured += " -X sasl.username=owner -X sasl.password=hush"
    wrong = []
    with KafkaProducer(bootstrap_servers=servers.bootstrap_servers, transactional_id="open-1") as producer:
        producer.init_transactions()
        for verb, steps in STEPS.items():
            if verb == "transactions list":
                producer.begin_transaction()
                producer.send("every", b"open", partition=0).get(60)
            for step in steps:
                log_dir = run("purekafka brokers log-dirs -f json").json[0]["directory"]
                line = step.line.format(dir=tmp_path, secured=secured, log_dir=log_dir)
                found = run(f"purekafka {verb} {line}", stdin=step.stdin)
                print(f"$ purekafka {verb} {line}\n{found.out}{found.err}")
                if verb == "tokens create":
                    monkeypatch.setenv("HMAC", json.loads(found.out)[0]["hmac"])
                    deadline = time.monotonic() + 60
                    while not run(f"purekafka tokens list -q {secured}").lines:  # brokers learn of it a little later
                        assert time.monotonic() < deadline
                if found.code != step.code or not re.search(step.shows, found.out + found.err):
                    wrong.append(f"{verb} {line}: {found.code}, not {step.code}, or without {step.shows!r}\n{found}")
                assert "Traceback" not in found.err, found.err
            if verb == "transactions producers":
                producer.abort_transaction()
    assert wrong == [], "\n".join(wrong)


def test_a_group_is_copied_to_another_cluster_with_the_records_that_it_has_not_read(
    kafka: KafkaCluster, servers: KafkaCluster
) -> None:
    """Kafka to Kafka: the copy has other offsets, by older records and by markers of transactions."""
    assert run(f"purekafka contexts add other -b {kafka.bootstrap_servers}").code == 0
    for context in ("", "--context other"):
        assert run(f"purekafka topics create relocated -p 1 {context}").code == 0
    with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
        for number in range(7):
            producer.send("relocated", b"older %d" % number)
    with KafkaProducer(bootstrap_servers=servers.bootstrap_servers) as producer:
        for number in range(40):
            producer.send("relocated", b"%d" % (number // 4), timestamp_ms=1_790_000_000_000 + number // 8)
    assert run("purekafka consume relocated -g billing -n 21").code == 0
    assert "40 records copied" in run("purekafka topics copy relocated relocated --resume all --to-context other").out
    copied = run("purekafka groups copy billing --to-context other --yes -f json")
    assert (copied.code, copied.json[0]["offset"], copied.json[0]["new_lag"]) == (0, None, 40 - 21 + 1), copied
    options = {"auto_offset_reset": "none", "isolation_level": "read_committed", "consumer_timeout_ms": 10_000}
    with KafkaConsumer(options, "relocated", bootstrap_servers=kafka.bootstrap_servers, group_id="billing") as consumer:
        left = [next(consumer).value for _ in range(19)]
    assert left == [b"%d" % (number // 4) for number in range(21, 40)]
