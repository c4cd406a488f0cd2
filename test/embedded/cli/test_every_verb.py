"""A rule: every verb is tried in the mode that it is named for, and in the modes that all of them have in common.

`MODES` says which test tries a verb in its own mode: `tail` while records arrive, `reassign-apply` while replicas move.
A verb without a row fails here. The common modes are tried for each verb of the program: its examples run
(`test_examples.py`), a full disk is an error (`unit/cli/test_files.py`), a dry run leaves no trace
(`test_dry_runs.py`), and here: no broker answers, the reader of the output has gone, nothing changes without consent.
"""

from __future__ import annotations

import os
import re
import shlex
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.broker import Broker
from kafka.cli.grammar import COMMANDS, Noun, Verb, load
from kafka.errors import UnknownError

from .shell import call, run
from .test_dry_runs import CHECKED, LINES, READS

TESTS = Path(__file__).resolve().parents[2]


#: Verb -> the tests that try it in the mode it is named for.
#: Files are those of this directory, without test_, unless they have a directory.
ROWS = """
produce
    interrupted.py::test_a_signal_ends_produce_while_brokers_are_away
    records.py::test_c13_each_failure_names_its_line
    records.py::test_c13_memory_is_bounded_with_an_endless_input
consume
    interrupted.py::test_a_disk_that_is_full_commits_what_is_on_it
    interrupted.py::test_after_kill_9_the_next_member_repeats_records_and_loses_none
    records.py::test_c7_a_group_commits_only_what_was_printed
tail
    following.py::test_tail_loses_and_repeats_nothing_while_it_goes_over_from_the_last_records_to_new_ones
topics list
    topics.py::test_c5_a_listing_has_every_format
topics describe
    operations.py::test_partitions_are_chosen_by_their_faults
topics create
    topics.py::test_topics_are_created_changed_and_deleted
    operations.py::test_changes_are_printed_as_json_with_the_failures
topics alter
    topics.py::test_topics_are_created_changed_and_deleted
    operations.py::test_a_change_is_not_made_without_consent
topics delete
    topics.py::test_c11_deletion_shows_what_it_would_delete_and_needs_consent
topics copy
    copying.py::test_a_copy_that_is_ended_continues_without_loss_and_without_a_record_twice
    interrupted.py::test_a_copy_that_is_interrupted_says_how_many_records_are_written
    contexts.py::test_a_copy_to_a_context_does_not_take_over_how_the_source_is_reached
topics dump
    interrupted.py::test_a_dump_that_is_interrupted_leaves_the_file_of_yesterday
topics load
    administration.py::test_a_topic_is_dumped_and_loaded_again
groups list
    groups.py::test_c3_a_thousand_groups_are_listed_in_three_seconds
groups describe
    groups.py::test_members_with_their_partitions
    operations.py::test_a_streams_group_is_described_with_its_topology_and_its_offsets_move
groups lag
    outages.py::test_the_lag_of_the_other_partitions_is_shown
    operations.py::test_lag_is_chosen_sorted_and_told_by_the_code
groups offsets
    groups.py::test_offsets_are_exported_and_imported_as_kafkas_script_writes_them
groups reset-offsets
    groups.py::test_c11_reset_offsets_shows_the_plan_and_needs_consent
groups delete-offsets
    groups.py::test_offsets_and_groups_are_copied_and_deleted
groups copy
    groups.py::test_a_copy_of_offsets_keeps_their_metadata
groups delete
    groups.py::test_offsets_and_groups_are_copied_and_deleted
groups remove-members
    every_verb.py::test_members_are_removed_while_they_read
configs list
    every_verb.py::test_resources_with_settings_are_listed
configs describe
    groups.py::test_settings_are_changed_one_by_one
configs set
    groups.py::test_settings_are_changed_one_by_one
configs append
    groups.py::test_settings_are_changed_one_by_one
configs subtract
    groups.py::test_settings_are_changed_one_by_one
configs unset
    groups.py::test_settings_are_changed_one_by_one
offsets list
    outages.py::test_offsets_of_the_other_partitions_are_listed
records delete-before
    groups.py::test_offsets_by_place_and_records_deleted_before_one
brokers list
    groups.py::test_brokers_and_the_cluster
brokers describe
    groups.py::test_brokers_and_the_cluster
brokers versions
    groups.py::test_brokers_and_the_cluster
brokers log-dirs
    outages.py::test_a_broker_that_does_not_exist_or_answer_costs_five_seconds
brokers unregister
    every_verb.py::test_a_broker_that_was_taken_away_is_unregistered
cluster describe
    groups.py::test_brokers_and_the_cluster
cluster quorum
    administration.py::test_log_dirs_quorum_and_features
cluster voters
    administration.py::test_voters_of_the_quorum_are_listed_removed_and_added
cluster voters-add
    administration.py::test_voters_of_the_quorum_are_listed_removed_and_added
cluster voters-remove
    administration.py::test_voters_of_the_quorum_are_listed_removed_and_added
cluster features
    administration.py::test_log_dirs_quorum_and_features
cluster features-upgrade
    operations.py::test_features_are_upgraded_after_the_controller_has_checked
acls list
    administration.py::test_acls_are_added_listed_and_deleted
acls allow
    administration.py::test_acls_are_added_listed_and_deleted
acls deny
    operations.py::test_a_change_is_not_made_without_consent
acls delete
    administration.py::test_acls_are_added_listed_and_deleted
users list
    administration.py::test_passwords_come_from_standard_input_and_show_nowhere
users set-password
    administration.py::test_passwords_come_from_standard_input_and_show_nowhere
users delete
    administration.py::test_passwords_come_from_standard_input_and_show_nowhere
quotas list
    administration.py::test_quotas_are_set_and_unset
quotas set
    administration.py::test_quotas_are_set_and_unset
quotas unset
    administration.py::test_quotas_are_set_and_unset
tokens list
    every_verb.py::test_a_token_is_created_renewed_listed_and_expired
tokens create
    every_verb.py::test_a_token_is_created_renewed_listed_and_expired
tokens renew
    every_verb.py::test_a_token_is_created_renewed_listed_and_expired
tokens expire
    every_verb.py::test_a_token_is_created_renewed_listed_and_expired
partitions reassign-plan
    administration.py::test_c11_a_reassignment_is_planned_applied_and_undone
partitions reassign-apply
    operations.py::test_a_move_has_a_limit_while_it_lasts
    dry_runs.py::test_the_way_back_of_a_reassignment_is_not_overwritten
partitions reassign-status
    administration.py::test_c11_a_reassignment_is_planned_applied_and_undone
partitions reassign-throttle
    operations.py::test_a_move_has_a_limit_while_it_lasts
partitions reassign-cancel
    every_verb.py::test_a_move_that_waits_for_a_broker_is_cancelled
partitions elect
    every_verb.py::test_leaders_go_back_to_their_first_replicas
partitions move-dir
    every_verb.py::test_a_replica_goes_to_another_directory
transactions list
    administration.py::test_transactions_are_listed_described_and_fenced
transactions describe
    administration.py::test_transactions_are_listed_described_and_fenced
transactions producers
    administration.py::test_transactions_are_listed_described_and_fenced
transactions hanging
    administration.py::test_transactions_are_listed_described_and_fenced
transactions abort
    every_verb.py::test_a_hanging_transaction_is_found_and_aborted
transactions fence
    administration.py::test_transactions_are_listed_described_and_fenced
top
    promises.py::test_c18_top_leaves_the_terminal_as_it_was
    outages.py::test_views_redraw_and_say_what_is_not_known
health
    operations.py::test_health_follows_the_cluster
exporter
    exporter.py::test_lag_is_served_while_records_arrive_and_are_read
    exporter.py::test_a_signal_ends_it_in_a_second
perf produce
    records.py::test_perf_counts_every_record_that_failed
perf consume
    administration.py::test_perf_prints_the_lines_of_kafkas_scripts
perf latency
    administration.py::test_perf_prints_the_lines_of_kafkas_scripts
logs dump
    administration.py::test_c16_segments_are_dumped_and_damage_is_reported_by_position
contexts list
    contexts.py::test_c4_contexts_are_one_file_that_only_its_owner_reads
contexts add
    contexts.py::test_c4_contexts_are_one_file_that_only_its_owner_reads
contexts use
    contexts.py::test_c4_contexts_are_one_file_that_only_its_owner_reads
contexts show
    contexts.py::test_c4_a_password_comes_from_elsewhere_and_shows_nowhere
contexts remove
    contexts.py::test_c4_contexts_are_one_file_that_only_its_owner_reads
contexts import
    contexts.py::test_c4_a_context_is_imported_from_a_file
completion bash
    promises.py::test_c17_bash_completes_words
completion zsh
    promises.py::test_there_is_a_script_for_each_shell
completion fish
    promises.py::test_there_is_a_script_for_each_shell
completion words
    promises.py::test_c17_live_names_are_completed_and_remembered
demo
    embedded/test_demo.py
broker
    embedded/broker/test_command.py
request
    embedded/test_request_command.py
protocol list
    unit/cli/test_protocol.py
protocol show
    unit/cli/test_protocol.py
protocol decode
    unit/cli/test_protocol.py
protocol encode
    unit/cli/test_protocol.py
spark run
    embedded/spark/test_jobs.py
spark copy
    embedded/spark/test_jobs.py
spark dump
    embedded/spark/test_jobs.py
spark lag
    embedded/spark/test_jobs.py
spark plan
    embedded/spark/test_jobs.py
"""
MODES: dict[str, list[str]] = {}
for row in ROWS.strip().splitlines():
    if row.startswith(" "):
        MODES[list(MODES)[-1]].append(row.strip())
    else:
        MODES[row] = []


def verbs() -> Iterator[tuple[str, Verb]]:
    for name in COMMANDS:
        command = load(name)
        for verb in command.verbs.values() if isinstance(command, Noun) else [command]:
            yield (name if isinstance(command, Verb) else f"{name} {verb.name}"), verb


VERBS = dict(verbs())


def test_every_verb_has_a_test_in_the_mode_it_is_named_for() -> None:
    assert sorted(MODES) == sorted(VERBS)


@pytest.mark.parametrize("title", MODES)
def test_the_tests_of_the_table_exist_and_run_the_verb(title: str) -> None:
    """A test that is renamed, or that does not name the verb, is not a test of it."""
    for reference in MODES[title]:
        path, _, name = reference.partition("::")
        text = (TESTS / (path if "/" in path else f"embedded/cli/test_{path}")).read_text(encoding="utf-8")
        if name:
            decorators, body = r"(?:^@.*\n(?:^[ )\]].*\n)*)*", r"(?:.*\n(?![^ \n)]))*.*\n"
            found = re.search(rf"{decorators}^def {name}\({body}", text, re.MULTILINE)
            assert found is not None, reference
            text = found[0]
        verb = VERBS[title].name
        assert verb in text or verb.replace("-", " ") in text, f"{reference} does not run {title}"


def words_of(title: str, verb: Verb) -> list[str]:
    """Return the first example of a verb, as words, without the sandbox."""
    line = next((one for one in verb.examples if "|" not in one), verb.examples[0]).partition("|")[0]
    return [word for word in shlex.split(line)[1:] if word != "--sandbox"]


CONNECTED = [title for title, verb in VERBS.items() if any("--sandbox" in one.names for one in verb.arguments)]


@pytest.mark.parametrize("title", CONNECTED)
def test_an_unreachable_broker_is_reported_in_a_line_and_in_time(
    title: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = [word for word in words_of(title, VERBS[title]) if not word.startswith("localhost:")]
    words = [word for word in words if word not in {"-b", "--dashboards"}]
    (tmp_path / "records.jsonl").write_text('{"value": "a"}\n')
    (tmp_path / "plan.json").write_text('{"version": 1, "partitions": []}')
    began = time.monotonic()
    found = run(f"purekafka {shlex.join(words)} -b 127.0.0.1:1 -X bootstrap.timeout.ms=300 --timeout 20", stdin=b"a\n")
    assert found.code in {1, 2}, found
    if found.code == 1:
        assert "127.0.0.1:1" in found.err
    assert "Traceback" not in found.err
    assert time.monotonic() - began < 15


LISTS = [title for title, verb in VERBS.items() if any("--fail-if-empty" in one.names for one in verb.arguments)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Broker]:
    with Broker(topics={"events": 3, "orders": 1}) as broker:
        for number in range(30):
            broker.append("events", b"%d" % number, partition=number % 3)
        yield broker


@pytest.mark.parametrize("title", [title for title, verb in VERBS.items() if verb.reads and title != "exporter"])
def test_a_reader_that_has_gone_ends_it_quietly(
    title: str, cluster: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reading end of the pipe is closed before the command writes: exit code 0, and not a word."""
    words = [word for word in words_of(title, VERBS[title]) if not word.startswith("localhost:") and word != "-b"]
    if any(one.names[-1] == "--bootstrap-servers" for one in VERBS[title].arguments):
        words += ["-b", cluster.bootstrap_servers]
    monkeypatch.chdir(tmp_path)
    read, write = os.pipe()
    os.close(read)
    with open(write, "w", encoding="utf-8") as pipe:
        done = call(["purekafka", *words], stdout=pipe)
    assert "Traceback" not in done.err, done.err
    assert "Broken pipe" not in done.err
    assert done.code in {0, 1, 2}, done.err  # 1 and 2: there is nothing of that name in this cluster
    if done.code:
        assert done.err


ASKS = [title for title, line in LINES.items() if line and any("--yes" in one.names for one in VERBS[title].arguments)]


@pytest.mark.parametrize("title", ASKS)
def test_nothing_is_changed_without_consent(
    title: str, cluster: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without --yes and without a terminal to ask on, a command that changes something is refused."""
    cluster.forget_requests()
    words = LINES[title]
    assert words is not None
    monkeypatch.chdir(tmp_path)
    done = call(["purekafka", *shlex.split(words), "-b", cluster.bootstrap_servers])
    assert done.code in {1, 2}, done.err  # 1: there is nothing of that name in this cluster
    assert done.code == 1 or "--yes" in done.err or "cannot read" in done.err or "No such" in done.err
    changing = {one.name for one in cluster.requests if not getattr(one.request, "validate_only", False)}
    assert not {name for name in changing if name not in READS and name not in CHECKED}


def test_a_token_is_created_renewed_listed_and_expired(monkeypatch: pytest.MonkeyPatch) -> None:
    """A token needs a user: this cluster has one, with a password."""
    with Broker(sasl=[("SCRAM-SHA-256", "admin", "a")], configs={"delegation.token.secret.key": "secret"}) as broker:
        monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", broker.bootstrap_servers)
        monkeypatch.setenv("PUREKAFKA_SECURITY_PROTOCOL", "SASL_PLAINTEXT")
        monkeypatch.setenv("PUREKAFKA_SASL_MECHANISM", "SCRAM-SHA-256")
        monkeypatch.setenv("PUREKAFKA_SASL_PLAIN_USERNAME", "admin")
        monkeypatch.setenv("PUREKAFKA_SASL_PLAIN_PASSWORD", "a")
        (token,) = run("purekafka tokens create --lifetime 1h -f json").json
        monkeypatch.setenv("HMAC", token["hmac"])
        (listed,) = run("purekafka tokens list -f json").json
        assert listed["token_id"] == token["token_id"]
        renewed = run("purekafka tokens renew @env:HMAC")
        assert (renewed.code, renewed.out[:14]) == (0, "token: expires")
        assert run("purekafka tokens expire @env:HMAC --dry-run").code == 0
        assert run("purekafka tokens list -q").lines == [token["token_id"]]
        assert run("purekafka tokens expire @env:HMAC --yes").code == 0
        assert run("purekafka tokens list -q").lines == []
        assert run("purekafka tokens renew @env:HMAC").code == 1
        assert token["hmac"] not in renewed.out + renewed.err


def test_a_hanging_transaction_is_found_and_aborted(cluster: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", cluster.bootstrap_servers)
    with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, transactional_id="orders-1") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        for topic in ("events", "orders"):
            producer.send(topic, b"open", partition=0).get(30)

        def without_topics(exchange: Any) -> Any:
            """The reply of a coordinator that has lost what the transaction wrote to."""
            for one in exchange.reply.transaction_states:
                one.topics = []
            return exchange.reply

        assert run("purekafka transactions hanging --longer-than 0 -f json").json == []
        with cluster.intercept("DescribeTransactions", without_topics):
            found = run("purekafka transactions hanging --longer-than 0 -f json").json
            assert sorted((one["topic"], one["partition"]) for one in found) == [("events", 0), ("orders", 0)]
            assert run("purekafka transactions abort orders --longer-than 0 --dry-run").code == 0
            assert cluster.records("orders", committed=True) == []
            abort = KafkaAdminClient.abort_transaction

            def refused(self: KafkaAdminClient, which: Any, **limits: Any) -> None:
                if which.topic_partition.topic == "events":
                    raise UnknownError("the broker is ill")
                abort(self, which, **limits)

            with monkeypatch.context() as patched:
                patched.setattr(KafkaAdminClient, "abort_transaction", refused)
                done = run("purekafka transactions abort events orders --longer-than 0 --yes")
            assert done.code == 1
            number = found[0]["producer_id"]
            assert done.lines[-1] == f"orders-0, producer {number}: aborted"
            assert f"events-0, producer {number}: the broker is ill" in done.err
            done = run("purekafka transactions abort events orders --longer-than 0 --yes -f json")
        assert done.json == [{"name": f"events-0, producer {number}", "done": "aborted", "error": None}]
        assert done.code == 0, done.err
        assert run("purekafka consume orders -X isolation.level=read_committed").out == ""


def test_members_are_removed_while_they_read(cluster: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", cluster.bootstrap_servers)
    with KafkaConsumer("events", group_id="readers", bootstrap_servers=cluster.bootstrap_servers) as consumer:
        while not consumer.assignment():
            consumer.poll(timeout_ms=100)
        (group,) = run("purekafka groups describe readers -f json").json
        member = group["members"][0]["member_id"]
        nobody = run("purekafka groups remove-members readers --member nobody --yes")
        assert (nobody.code, "--member takes MEMBER of groups describe" in nobody.err) == (1, True)
        removed = run(f"purekafka groups remove-members readers --member {member} --yes")
        assert (removed.code, removed.lines[-1]) == (0, f"member {member}: removed")
        (group,) = run("purekafka groups describe readers -f json").json
        assert member not in [one["member_id"] for one in group["members"]]


def test_a_replica_goes_to_another_directory(tmp_path: Path) -> None:
    with Broker(topics={"events": 1}, configs={"log.dirs": f"{tmp_path}/1,{tmp_path}/2"}) as broker:
        at = f"-b {broker.bootstrap_servers}"
        directories = [one["directory"] for one in run(f"purekafka brokers log-dirs -f json {at}").json]
        moved = run(f"purekafka partitions move-dir events --broker 1 --directory {directories[-1]} --yes {at}")
        assert moved.code == 0, moved.err
        refused = run(f"purekafka partitions move-dir events --broker 1 --directory /nowhere --yes {at}")
        assert refused.code == 1
        assert (
            run(f"purekafka partitions move-dir events --broker 9 --directory {directories[-1]} --yes {at}").code == 1
        )


def test_a_move_that_waits_for_a_broker_is_cancelled(tmp_path: Path) -> None:
    """The new replica is on a broker that is down, so the move cannot end by itself."""
    with Broker(nodes=3) as broker, KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.create_topics({"events": {"assignments": {0: [1, 2]}}}, wait_for_metadata=True)
        at = f"-b {broker.bootstrap_servers}"
        moving = {"adding_replicas": [3], "partition_index": 0, "removing_replicas": [2], "replicas": [1, 3, 2]}

        def still_moving(exchange: Any) -> Any:
            kind = type(exchange.reply)
            entry = kind.OngoingPartitionReassignment(**moving)
            exchange.reply.topics = [kind.OngoingTopicReassignment(name="events", partitions=[entry])]
            return exchange.reply

        with broker.intercept("ListPartitionReassignments", still_moving):
            (row,) = run(f"purekafka partitions reassign status -f json {at}").json
            assert (row["adding"], row["removing"]) == ([3], [2])
            broker.forget_requests()
            limited = run(f"purekafka partitions reassign-throttle 1M --yes -f json {at}")
            assert {one["name"] for one in limited.json} == {"topic events", "broker 1", "broker 2", "broker 3"}
            run(f"purekafka partitions reassign-cancel events --yes {at}")
            asked = [one.request for one in broker.requests if one.name == "AlterPartitionReassignments"]
            assert [one.topics[0].partitions[0].replicas for one in asked] == [None]


def test_a_broker_that_was_taken_away_is_unregistered() -> None:
    with Broker(nodes=3, topics={"events": 1}) as broker:
        at = f"-b {broker.bootstrap_servers}"
        assert run(f"purekafka brokers unregister 3 --yes {at}").code == 1  # it is running
        broker.stop_node(3)
        deadline = time.monotonic() + 60
        while "3" in run(f"purekafka brokers list -q {at}").lines:
            assert time.monotonic() < deadline
        assert run(f"purekafka brokers unregister 3 --dry-run {at}").code == 0
        assert run(f"purekafka brokers unregister 3 --yes {at}").out == "3: unregistered\n"
        assert run(f"purekafka brokers unregister 3 --yes {at}").code == 1


def test_resources_with_settings_are_listed(cluster: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", cluster.bootstrap_servers)
    found = run("purekafka configs list -f json")
    assert found.code == 0
    assert {(row["kind"], row["name"]) for row in found.json} >= {
        ("topic", "events"),
        ("topic", "orders"),
        ("broker", "1"),
    }
    assert run("purekafka configs list topic -q").code == 0


def test_leaders_go_back_to_their_first_replicas() -> None:
    """A broker that was away leads nothing when it is back; an election gives its partitions back to it."""

    def leader(at: str) -> int:
        return int(run(f"purekafka topics describe events -f json {at}").json[0]["partitions"][0]["leader"] or -1)

    with Broker(nodes=3) as broker, KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.create_topics({"events": {"assignments": {0: [3, 1, 2]}}}, wait_for_metadata=True)
        at = f"-b {broker.bootstrap_servers}"
        deadline = time.monotonic() + 60
        broker.stop_node(3)
        while leader(at) == 3:
            assert time.monotonic() < deadline
        broker.start_node(3)
        while run(f"purekafka health {at}").code:
            assert time.monotonic() < deadline
        planned = run(f"purekafka partitions elect --dry-run {at}")
        assert planned.lines[1].split()[:2] == ["events", "0"], "what would change is shown"
        done = run(f"purekafka partitions elect events --yes -f json {at}")
        assert done.code == 0, done.err
        assert leader(at) == 3
        assert [one["name"] for one in done.json] == ["events-0"]
        again = run(f"purekafka partitions elect events --yes {at}")
        assert again.lines == ["events-0: leads already"]
        every = run(f"purekafka partitions elect --yes {at}")
        assert (every.code, every.out) == (0, "")
        assert every.err == "purekafka partitions elect: every partition has its preferred leader\n"
