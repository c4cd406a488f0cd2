"""Permissions, users, quotas, reassignments, transactions, copies, measuring and segments from the shell."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from kafka import KafkaAdminClient, KafkaProducer
from kafka.broker import Broker, Exchange
from kafka.broker.security.acls import Filter
from kafka.broker.security.service import Security

from .conftest import Shell
from .shell import run

ANY = Filter()
SECURED = {"authorizer.class.name": "StandardAuthorizer", "super.users": "User:ANONYMOUS"}


pytestmark = pytest.mark.kafka_broker(topics={"events": 3, "orders": 1}, configs=SECURED)


def test_acls_are_added_listed_and_deleted(shell: Shell) -> None:
    assert shell("purekafka acls allow --principal ada --consumer --topic events --group g --yes").code == 0
    assert shell("purekafka acls deny --principal eve --operation all --topic '*' --dry-run").code == 0
    rows = shell("purekafka acls list -f json").json
    assert {(row["principal"], row["operation"], row["resource_type"], row["resource_name"]) for row in rows} == {
        ("User:ada", "read", "topic", "events"),
        ("User:ada", "describe", "topic", "events"),
        ("User:ada", "read", "group", "g"),
    }
    assert shell("purekafka acls list --topic events -f '{operation}'").lines == ["describe", "read"]
    assert shell("purekafka acls delete --principal ada --topic events").code == 2
    assert shell("purekafka acls delete --principal ada --topic events --yes").code == 0
    assert shell("purekafka acls list -f '{resource_name}'").lines == ["g"]
    assert shell("purekafka acls delete --principal nobody --yes").code == 1
    assert shell("purekafka acls delete --yes").code == 2
    assert shell("purekafka acls allow --principal ada --yes").code == 2


def test_an_acl_that_came_after_the_question_stays(shell: Shell, broker: Broker) -> None:
    assert shell("purekafka acls allow --principal zoe --operation read --topic events --topic orders --yes").code == 0

    def meanwhile(exchange: Exchange) -> None:
        access = exchange.call.cluster.service(Security).control_access()
        (gone,) = [one for one in access.find(ANY) if one.resource_name == "orders" and one.principal == "User:zoe"]
        access.delete(ANY._replace(principal="User:zoe", resource_name="orders"))
        access.create(gone._replace(resource_name="later"))

    broker.intercept("DeleteAcls", meanwhile, before=True, times=1)
    outcome = shell("purekafka acls delete --principal zoe --yes -f json")
    assert outcome.code == 0
    assert sorted(one["done"] for one in outcome.json) == ["deleted", "was deleted already"]
    assert shell("purekafka acls list --principal zoe -f '{resource_name}'").lines == ["later"]


def test_passwords_come_from_standard_input_and_show_nowhere(shell: Shell, broker: Broker, tmp_path: Path) -> None:
    outcome = shell("purekafka users set-password ada", stdin=b"hush\n")
    assert (outcome.code, outcome.out, outcome.err) == (0, "ada: password set\n", "")
    rows = shell("purekafka users list -f json").json
    assert [(row["user"], row["mechanism"]) for row in rows] == [("ada", "SCRAM-SHA-256"), ("ada", "SCRAM-SHA-512")]
    asked = iter([0, 93])

    def refuse_second(exchange: Any) -> Any:
        exchange.reply.results[0].error_code = next(asked)  # UNACCEPTABLE_CREDENTIAL
        return exchange.reply

    with broker.intercept("AlterUserScramCredentials", refuse_second):
        refused = shell("purekafka users set-password ada", stdin=b"hush\n")
    assert (refused.code, refused.out) == (1, "ada SCRAM-SHA-256: password set\n")
    assert refused.err.startswith("purekafka users set-password: ada SCRAM-SHA-512: ")
    refused = shell("purekafka users set-password ada --password hush")
    assert (refused.code, "hush" in refused.err) == (2, False)
    (tmp_path / "secret").write_text("psst\n")
    assert shell(f"purekafka users set-password ada --password @{tmp_path / 'secret'}").code == 0
    assert shell("purekafka users delete ada --mechanism SCRAM-SHA-256 --yes").code == 0
    assert [row["mechanism"] for row in shell("purekafka users list -f json").json] == ["SCRAM-SHA-512"]
    refused = shell("purekafka users delete ada --mechanism SCRAM-SHA-512 --mechanism SCRAM-SHA-256 --yes")
    assert (refused.code, "no password for SCRAM-SHA-256" in refused.err) == (1, True)
    assert shell("purekafka users delete ada --yes").code == 0
    assert shell("purekafka users list ada").code == 1
    assert shell("purekafka users delete ada --yes").code == 1


def test_voters_of_the_quorum_are_listed_removed_and_added(monkeypatch: pytest.MonkeyPatch) -> None:
    with Broker(nodes=3) as broker:
        monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", broker.bootstrap_servers)
        refused = run("purekafka cluster voters remove 3 --yes")
        assert (refused.code, "kraft.version is 0" in refused.err) == (1, True)
        with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
            assert admin.update_features({"kraft.version": 1})["kraft.version"].ok
        voters = {row["node"]: row for row in run("purekafka cluster voters -f json").json}
        assert sorted(voters) == [1, 2, 3]
        assert [voters[3]["listeners"], len(voters[3]["directory_id"])] == [
            [f"CONTROLLER=127.0.0.1:{broker.port(3)}"],
            22,
        ]
        planned = run("purekafka cluster voters remove 3 --dry-run")
        assert (planned.code, voters[3]["directory_id"] in planned.out) == (0, True)
        assert run("purekafka cluster voters remove 3").code == 2, "without consent"
        assert run("purekafka cluster voters remove 3 --yes").code == 0
        assert run("purekafka cluster voters -f '{node}'").lines == ["1", "2"]
        assert run("purekafka cluster quorum -f '{node} {role}'").lines[2:] == ["3 observer"]
        gone = run("purekafka cluster voters remove 3 --yes")
        assert (gone.code, "node 3 is not a voter; the voters are 1, 2" in gone.err) == (1, True)
        # The directory is the one that the observer reports.
        listener = voters[3]["listeners"][0]
        assert run(f"purekafka cluster voters add 3 --listener {listener} --yes").code == 0
        assert {row["node"]: row for row in run("purekafka cluster voters -f json").json} == voters
        assert run(f"purekafka cluster voters add 3 --listener {listener} --yes").code == 1
        unknown = run(f"purekafka cluster voters add 9 --listener {listener} --yes")
        assert (unknown.code, "give --directory-id" in unknown.err) == (1, True)
        for wrong in ("--listener c3:9093", f"--listener {listener} --directory-id x"):
            assert run(f"purekafka cluster voters add 9 {wrong} --yes").code == 2


def test_client_metrics_are_subscribed_to(shell: Shell) -> None:
    line = "purekafka configs set client-metrics slow metrics=org.apache.,kafka. interval.ms=30000 match=client_id=a.*"
    assert shell(f"{line} --dry-run").code == 0
    assert shell("purekafka configs list client-metrics -f json").json == []
    assert shell(f"{line} --yes").lines[-1] == "client-metrics slow: changed 3 settings"
    assert shell("purekafka configs list client-metrics -q").lines == ["client-metrics"]
    rows = shell("purekafka configs describe client-metrics slow -f json").json
    assert {row["setting"]: row["value"] for row in rows} == {
        "metrics": "org.apache.,kafka.", "interval.ms": "30000", "match": "client_id=a.*",
    }  # fmt: skip
    refused = shell("purekafka configs set client-metrics slow interval.ms=1 --yes")
    assert (refused.code, "interval.ms" in refused.err) == (1, True)
    assert shell("purekafka configs unset client-metrics slow metrics interval.ms match --yes").code == 0
    assert shell("purekafka configs list client-metrics -f json").json == []


def test_quotas_are_set_and_unset(shell: Shell) -> None:
    assert shell("purekafka quotas set producer_byte_rate=1000 --user ada --client app").code == 0
    assert shell("purekafka quotas set consumer_byte_rate=5 --client default").code == 0
    assert shell("purekafka quotas set consumer_byte_rate=9 --user eve --dry-run").code == 0
    rows = shell("purekafka quotas list -f json").json
    assert {(row["user"], row["client-id"], row["quota"], row["value"]) for row in rows} == {
        ("ada", "app", "producer_byte_rate", 1000.0),
        (None, "default", "consumer_byte_rate", 5.0),
    }
    assert shell("purekafka quotas unset producer_byte_rate --user ada --client app").code == 0
    assert len(shell("purekafka quotas list -f json").json) == 1
    for word in ("much", "nan", "inf"):
        assert shell(f"purekafka quotas set producer_byte_rate={word} --user ada").code == 2
    assert shell("purekafka quotas set producer_byte_rate=1").code == 2
    refused = shell("purekafka quotas set produce_rate=1 --user ada")
    assert (refused.code, "the names of quotas are producer_byte_rate" in refused.err) == (1, True)


def test_c11_a_reassignment_is_planned_applied_and_undone(tmp_path: Path) -> None:
    plan, old = tmp_path / "plan.json", tmp_path / "old.json"
    with Broker(nodes=3, topics={"events": 6}) as broker:
        servers = f"-b {broker.bootstrap_servers}"
        outcome = run(f"purekafka partitions reassign plan events --brokers 1,2 --output {plan} -f json {servers}")
        assert outcome.code == 0
        written = json.loads(plan.read_text())
        assert written["version"] == 1
        assert {broker for entry in written["partitions"] for broker in entry["replicas"]} <= {1, 2}
        assert run(f"purekafka partitions reassign apply {plan} {servers}").code == 2
        done = run(f"purekafka partitions reassign apply {plan} --rollback {old} --yes --wait {servers}")
        assert done.code == 0, done.err
        assert run(f"purekafka partitions reassign status {plan} {servers}").code == 0
        (topic,) = run(f"purekafka topics describe events -f json {servers}").json
        assert {broker for row in topic["partitions"] for broker in row["replicas"]} == {1, 2}
        assert sorted(row["leader"] for row in topic["partitions"]).count(1) == 3
        assert run(f"purekafka partitions reassign status {old} {servers}").code == 1
        assert run(f"purekafka partitions reassign cancel --yes {servers}").code == 1
        assert run(f"purekafka partitions reassign plan events --brokers 9 {servers}").code == 1
        assert run(f"purekafka partitions reassign plan events -r 4 {servers}").code == 2
        assert run(f"purekafka partitions elect events --yes {servers}").code == 0


def test_a_limit_that_stays_when_the_wait_is_interrupted_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("kafka.cli.partitions._wait", interrupted)
    plan = tmp_path / "plan.json"
    with Broker(nodes=2, topics={"events": 2}) as broker:
        servers = f"-b {broker.bootstrap_servers}"
        assert run(f"purekafka partitions reassign-plan --brokers 1 --output {plan} {servers}").code == 0, "all topics"
        refused = run(f"purekafka partitions reassign-plan -r 3 {servers}")
        assert (refused.code, "topic 'events': 3 replicas need as many brokers" in refused.err) == (2, True)
        done = run(f"purekafka partitions reassign-apply {plan} --throttle 5MB --wait --yes {servers}")
        assert done.code == 130
        assert "the limit stays until: purekafka partitions reassign-throttle none" in done.err


def test_an_acl_does_not_say_the_contrary_of_its_option(shell: Shell) -> None:
    for line in ("allow --deny-principal", "deny --allow-principal"):
        assert shell(f"purekafka acls {line} eve --operation read --topic events --yes").code == 2
    for line in ("allow --allow-principal ada", "deny --deny-principal eve"):
        assert shell(f"purekafka acls {line} --operation read --topic events --dry-run").code == 0


def test_a_file_is_one_value_and_has_no_keys(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "lines").write_text("a:1\nb:2\n")
    refused = shell(f"purekafka produce events {tmp_path}/lines -K :")
    assert (refused.code, "--lines FILE reads its lines" in refused.err) == (2, True)


def test_transactions_are_listed_described_and_fenced(shell: Shell, broker: Broker) -> None:
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id="shop") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("orders", b"a").get(10)
        (row,) = shell("purekafka transactions list -f json").json
        assert (row["transactional_id"], row["state"]) == ("shop", "Ongoing")
        none = shell("purekafka transactions abort orders --longer-than 0 --yes")
        assert (none.code, "transactions fence ID ends one that its coordinator knows" in none.err) == (1, True)
        (row,) = shell("purekafka transactions describe shop -f json").json
        assert 0 <= row["open_s"] + 1 < 600
        assert row["partitions"] == ["orders-0"]
        (row,) = shell("purekafka transactions producers orders -f json").json
        assert row["transaction_start"] == 0
        assert shell("purekafka transactions hanging -f json").json == []
        producer.abort_transaction()
    assert shell("purekafka transactions fence shop").code == 2
    assert shell("purekafka transactions fence shop --yes").code == 0
    absent = shell("purekafka transactions describe nope")
    assert (absent.code, absent.err.partition("'nope': ")[0]) == (1, "purekafka transactions describe: transaction ")


def test_log_dirs_quorum_and_features(shell: Shell, broker: Broker) -> None:
    broker.append("orders", "a")
    (row,) = shell("purekafka brokers log-dirs -f json").json
    assert (row["broker"], row["replicas"]) == (1, 4)
    assert [row["role"] for row in shell("purekafka cluster quorum -f json").json].count("leader") == 1
    assert "metadata.version" in [row["feature"] for row in shell("purekafka cluster features -f json").json]
    assert shell("purekafka brokers unregister 1 --yes").code == 1


# Copies…


def test_a_topic_is_dumped_and_loaded_again(shell: Shell, broker: Broker, tmp_path: Path) -> None:
    for number in range(9):
        broker.append("events", f"{number}", key=b"\xff", headers={"n": str(number)}, partition=number % 3)
    file = tmp_path / "events.jsonl.gz"
    assert shell(f"purekafka topics dump events {file}").out == f"{file}: 9 records\n"
    assert len(gzip.decompress(file.read_bytes()).splitlines()) == 9
    broker.create_topic("again", 3)
    assert shell(f"purekafka topics load {file} again").out == "9 records loaded\n"
    before, after = broker.records("events"), broker.records("again")
    assert [record._replace(topic="again") for record in before] == after
    file.write_bytes(gzip.compress(b'{"value": "a"}\nnot json\n'))
    outcome = shell(f"purekafka topics load {file} orders")
    assert (outcome.code, outcome.out) == (1, "1 record loaded\n")
    assert "line 2: " in outcome.err


def test_a_damaged_file_is_named_and_its_first_records_are_counted(
    shell: Shell, broker: Broker, tmp_path: Path
) -> None:
    whole = gzip.compress(b"".join(b'{"value": "%d"}\n' % number for number in range(20_000)))
    file = tmp_path / "records.jsonl.gz"
    for damaged in (whole[:-2000], whole[:-2000] + b"\xff" * 2000, b"plain"):
        file.write_bytes(damaged)
        before = len(broker.records("orders"))
        outcome = shell(f"purekafka topics load {file} orders")
        assert outcome.code == 1
        assert f"purekafka topics load: {file} is damaged, or not compressed by gzip: " in outcome.err.splitlines()[-1]
        loaded = len(broker.records("orders")) - before
        assert outcome.out == f"{loaded:,} records loaded\n"
        assert (loaded > 0) == (damaged != b"plain")


def test_a_line_without_a_topic_is_named_and_the_others_are_loaded(
    shell: Shell, broker: Broker, tmp_path: Path
) -> None:
    file = tmp_path / "records.jsonl"
    file.write_text('{"value": "a", "topic": "orders"}\n{"value": "b"}\n{"value": "c", "topic": "orders"}\n')
    outcome = shell(f"purekafka topics load {file}")
    assert (outcome.code, outcome.out) == (1, "2 records loaded\n")
    assert "line 2: the record has no topic" in outcome.err
    assert [record.value for record in broker.records("orders")] == [b"a", b"c"]


def test_a_directory_that_is_missing_is_named_as_the_user_gave_it(shell: Shell) -> None:
    outcome = shell("purekafka topics dump events /no/such/events.jsonl")
    assert (outcome.code, outcome.err.splitlines()[-1]) == (
        1,
        "purekafka topics dump: /no/such/events.jsonl: No such file or directory",
    )


def test_a_topic_is_copied(shell: Shell, broker: Broker) -> None:
    for number in range(9):
        broker.append("events", f"{number}", partition=number % 3, timestamp_ms=1000 + number)
    assert shell("purekafka topics copy events events-2").code == 1
    assert shell("purekafka topics copy events events-2 --create").out == "events-2: 9 records copied\n"
    assert [r._replace(topic="events-2") for r in broker.records("events")] == broker.records("events-2")
    assert shell("purekafka topics copy events orders").code == 1
    assert shell("purekafka topics copy events orders --repartition --from -1").out == "orders: 3 records copied\n"
    assert shell("purekafka topics copy events events").code == 2


# Measuring…


def test_perf_prints_the_lines_of_kafkas_scripts(shell: Shell, broker: Broker) -> None:
    outcome = shell("purekafka perf produce events -n 500 --size 50")
    assert re.fullmatch(
        r"500 records sent, [\d.]+ records/sec \([\d.]+ MB/sec\), [\d.]+ ms avg latency, [\d.]+ ms max latency, "
        r"\d+ ms 50th, \d+ ms 95th, \d+ ms 99th, \d+ ms 99.9th.\n",
        outcome.out,
    )
    heading, line = shell("purekafka perf consume events").lines
    assert len(heading.split(", ")) == len(line.split(", ")) == 10
    assert line.split(", ")[4] == "500"
    assert shell("purekafka perf latency orders -n 5").lines[0].startswith("Avg latency: ")


def test_a_record_that_is_refused_ends_the_measurement_of_latency_at_once(shell: Shell) -> None:
    shell("purekafka configs set topic orders max.message.bytes=1000 --yes")
    outcome = shell("purekafka perf latency orders -n 5 --size 2000")
    assert outcome.code == 1
    assert "max.message.bytes" in outcome.err


# Segments…


def test_c16_segments_are_dumped_and_damage_is_reported_by_position(tmp_path: Path) -> None:
    with Broker(topics=["events"], data_dir=tmp_path / "data") as broker:
        servers = broker.bootstrap_servers
        with KafkaProducer(bootstrap_servers=servers) as producer:
            producer.send("events", b"first", key=b"k", headers=[("h", b"1")]).get(10)
            producer.send("events", b"second").get(10)
        assert run("purekafka consume events -g billing -b", servers).code == 0
    (segment,) = [path for path in (tmp_path / "data").glob("topics/*-0/*.log") if b"first" in path.read_bytes()]
    outcome = run("purekafka logs dump --records", str(segment))
    assert outcome.code == 0, outcome.err
    assert outcome.out.count("isvalid: true") == 2
    assert "headers: [h:1] key: k payload: first" in outcome.out
    positions = [int(found) for found in re.findall(r"position: (\d+)", outcome.out)]
    data = bytearray(segment.read_bytes())
    data[-1] ^= 1
    segment.write_bytes(data)
    outcome = run("purekafka logs dump", str(segment))
    assert outcome.code == 1
    assert f"the batch at position {positions[1]} has a wrong checksum" in outcome.err
    segment.write_bytes(data[:-3])
    outcome = run("purekafka logs dump", str(segment))
    assert outcome.code == 1
    assert f"bytes from position {positions[1]} on are not a whole batch" in outcome.err
    assert run("purekafka logs dump", str(tmp_path / "x.txt")).code == 2
    assert run("purekafka logs dump", str(tmp_path / "x.log")).code == 1


def test_c16_indexes_are_dumped(tmp_path: Path) -> None:
    index = tmp_path / "00000000000000000100.index"
    index.write_bytes(bytes.fromhex("00000005 00000100 0000000a 00000200 00000000 00000000"))
    assert run("purekafka logs dump", str(index)).lines[1:] == [
        "offset: 105 position: 256",
        "offset: 110 position: 512",
    ]
    index.write_bytes(bytes.fromhex("0000000a 00000200 00000005 00000100"))
    assert run("purekafka logs dump", str(index)).code == 1


def test_a_group_without_permission_differs_from_one_without_a_coordinator(shell: Shell, broker: Broker) -> None:
    broker.fail("FindCoordinator", [30], times=1000)
    outcome = shell("purekafka consume events --group billing")
    assert (outcome.code, "'billing': This principal has no permission" in outcome.err) == (1, True), outcome.err
