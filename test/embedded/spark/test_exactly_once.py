"""Each row of a streaming query is written once, whatever cut its tasks off, and told if that cannot be done."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from kafka.admin import KafkaAdminClient
from kafka.broker import Broker
from kafka.consumer import KafkaConsumer
from kafka.errors import (
    ClusterAuthorizationFailedError,
    CoordinatorLoadInProgressError,
    IllegalStateError,
    KafkaError,
    KafkaTimeoutError,
    NotCoordinatorError,
)
from kafka.producer import KafkaProducer
from kafka.producer.transaction_handover import HandoverProducer, end_transactions
from kafka.spark.errors import KafkaSparkOptionError
from kafka.spark.exactly_once import (
    Marker,
    TaskIdentity,
    TaskOutcome,
    finish_batch,
    give_up_batch,
    transactors,
    write_once,
)
from kafka.spark.options import SinkOptions
from kafka.structs import TopicPartition

FIRST = TaskIdentity("query", 0, 0, "run")


pytestmark = pytest.mark.kafka_broker(topics={"out": 2})


@pytest.fixture
def options(broker: Broker) -> Iterator[SinkOptions]:
    yield SinkOptions.parse(
        {"kafka.bootstrap.servers": broker.bootstrap_servers, "topic": "out", "exactlyOnce": "true"}
    )
    transactors.close()  # before the broker, so that nothing waits for it


def rows(*values: bytes) -> Any:
    return pa.RecordBatch.from_pydict({"value": list(values)})


def seen(broker: Broker) -> list[bytes | None]:
    return sorted(record.value or b"" for record in broker.records("out", committed=True))


def write(options: SinkOptions, batch: int, task: int, values: Sequence[bytes], run: str = "run") -> TaskOutcome:
    batches = [rows(*values)] if values else []
    return write_once(options, TaskIdentity("query", batch, task, run), batches)


def run_batch(options: SinkOptions, batch: int, *tasks: Sequence[bytes], run: str = "run") -> list[TaskOutcome]:
    """Do what Spark does with a batch whose tasks have these rows."""
    outcomes: list[TaskOutcome] = []
    try:
        for number, values in enumerate(tasks):
            outcomes.append(write(options, batch, number, values, run))
        finish_batch(options, outcomes, batch)
    except BaseException:
        give_up_batch(options, outcomes)
        raise
    return outcomes


def written_and_not_noted(options: SinkOptions, tasks: Sequence[Sequence[bytes]], *done: int) -> None:
    """Two batches of a run; of the second these tasks are done when all of its processes are gone."""
    run_batch(options, 0, *([b"0"] for _ in tasks), run="old")
    for number in done:
        assert write(options, 1, number, tasks[number], run="old").held is None


# What a task does.


def test_tasks_of_a_batch_that_is_new_commit_by_themselves(broker: Broker, options: SinkOptions) -> None:
    outcomes = [write(options, 0, 0, [b"a", b"b"]), write(options, 0, 1, [b"c"]), write(options, 0, 2, [])]
    assert [sum(each.counts.values()) for each in outcomes] == [2, 1, 0]
    assert seen(broker) == [b"a", b"b", b"c"]
    finish_batch(options, outcomes, 0)
    write(options, 1, 0, [b"d"], run="new")
    assert seen(broker) == [b"a", b"b", b"c", b"d"]


def test_later_batches_of_a_run_cost_the_driver_nothing_and_tasks_look_at_their_own_mark_only(
    broker: Broker, options: SinkOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_batch(options, 0, [b"a"], [])
    monkeypatch.setattr("kafka.producer.transaction_handover.end_transactions", None)
    monkeypatch.setattr("kafka.spark.exactly_once.Markers.tasks", None)
    outcomes = run_batch(options, 1, [b"b"], [b"c"])
    assert [each.held for each in outcomes] == [None, None]
    assert seen(broker) == [b"a", b"b", b"c"]


def test_a_task_that_is_run_again_after_its_commit_writes_nothing_and_takes_its_rows(
    broker: Broker, options: SinkOptions
) -> None:
    run_batch(options, 0, [b"a"])
    write(options, 1, 0, [b"b"])
    again = iter([rows(b"something else")])
    outcome = write_once(options, TaskIdentity("query", 1, 0, "run"), again)
    assert outcome.counts == {}
    assert next(again, None) is None
    assert seen(broker) == [b"a", b"b"]


def test_a_topic_that_brokers_create_is_created_by_a_task_without_rows(broker: Broker, options: SinkOptions) -> None:
    """The first batch of a query that starts at the latest offsets has none."""
    impatient = replace(options, topic="made-by-use", client={**options.client, "max_block_ms": 20_000})
    assert write(impatient, 0, 0, []).counts == {}
    write(impatient, 1, 0, [b"a"])
    assert [record.value for record in broker.records("made-by-use", committed=True)] == [b"a"]


@pytest.mark.kafka_broker(topics={"out": 2}, configs={"auto.create.topics.enable": "false"})
def test_a_topic_that_does_not_exist_is_named(options: SinkOptions) -> None:
    impatient = replace(options, topic="missing", client={**options.client, "max_block_ms": 500})
    with pytest.raises(KafkaTimeoutError, match="Topic 'missing' was not found"):
        write(impatient, 0, 0, [])


def test_tasks_and_queries_have_separate_marks(broker: Broker, options: SinkOptions) -> None:
    run_batch(options, 0, [b"a"], [b"a"])
    finish_batch(options, [write_once(options, TaskIdentity("other", 0, 0), [rows(b"a")])], 0)
    assert seen(broker) == [b"a"] * 3


def test_a_task_that_failed_midway_shows_nothing_until_it_is_run_again(broker: Broker, options: SinkOptions) -> None:
    def failing() -> Iterator[Any]:
        yield rows(b"a", b"b")
        raise RuntimeError("the task fails")

    for batch in (0, 1):
        before = seen(broker)
        with pytest.raises(RuntimeError, match="the task fails"):
            write_once(options, replace(FIRST, batch=batch), failing())
        assert seen(broker) == before
        run_batch(options, batch, [b"a", b"b"])
    assert seen(broker) == [b"a", b"a", b"b", b"b"]


@pytest.mark.parametrize("batch", [0, 1])
def test_a_process_that_was_killed_before_its_commit_is_locked_out(
    broker: Broker, options: SinkOptions, batch: int
) -> None:
    if batch:  # one that has kept its connections, and its id of the batch before
        run_batch(options, 0, [b"0"])
        write(options, 1, 0, [b"1"])
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id="spark-query-0") as killed:
        killed.init_transactions()
        killed.begin_transaction()
        killed.send("out", b"a").get(timeout=10)
        # Here it hangs, and Spark runs the task elsewhere.
        run_batch(options, 2 * batch, [b"a"])
        with pytest.raises(KafkaError):
            killed.commit_transaction()
    assert seen(broker) == [b"0", b"1", b"a"][-1 - 2 * batch :]


def test_the_id_that_a_process_has_kept_is_fenced_by_a_later_attempt_elsewhere(
    broker: Broker, options: SinkOptions
) -> None:
    run_batch(options, 0, [b"0"])

    def overtaken() -> Iterator[Any]:
        yield rows(b"a")
        with HandoverProducer(bootstrap_servers=broker.bootstrap_servers) as later:
            later.take_over("spark-query-0")
            with later.transaction():
                later.send("out", b"a")
                later.commit_text(TopicPartition("out", 0), Marker(2, 1, "run").text(), "spark-query-0")

    with pytest.raises(KafkaError):
        write_once(options, replace(FIRST, batch=1), overtaken())
    assert run_batch(options, 1, [b"a"])[0].counts == {}
    assert seen(broker) == [b"0", b"a"]


# Batches that are done again by another run.


def test_a_batch_that_was_written_is_not_written_by_the_next_run(broker: Broker, options: SinkOptions) -> None:
    tasks = [[b"a", b"b"], [b"c"], []]
    written_and_not_noted(options, tasks, 0, 2)
    assert [each.held is None for each in run_batch(options, 1, *tasks, run="new")] == [True, False, True]
    assert seen(broker) == [b"0"] * 3 + [b"a", b"b", b"c"]
    run_batch(options, 2, [b"d"], [b"e"], run="new")
    assert seen(broker)[-2:] == [b"d", b"e"]


@pytest.mark.parametrize("grown", [[[b"a"], [b"b"]], [[], [b"a"], [b"b"]]])
def test_a_task_that_was_cut_into_several_is_refused_before_any_of_them_is_visible(
    broker: Broker, options: SinkOptions, grown: list[list[bytes]]
) -> None:
    written_and_not_noted(options, [[b"a", b"b"]], 0)
    before = seen(broker)
    with pytest.raises(IllegalStateError, match=r"batch 1 has . rows; 2 were written.* Restore minPartitions"):
        run_batch(options, 1, *grown, run="new")
    assert seen(broker) == before
    assert run_batch(options, 1, [b"a", b"b"], run="new")[0].counts == {}


def test_the_first_records_of_tasks_that_moved_are_not_visible_either(broker: Broker, options: SinkOptions) -> None:
    written_and_not_noted(options, [[b"a", b"b"]], 0)
    before = seen(broker)
    early = write(options, 1, 1, [b"b"], run="new")
    with pytest.raises(IllegalStateError, match="1 rows; 2 were written"):
        write(options, 1, 0, [b"a"], run="new")
    give_up_batch(options, [early])
    assert seen(broker) == before


def test_tasks_that_were_put_together_are_refused_where_only_one_that_is_gone_was_written(
    broker: Broker, options: SinkOptions
) -> None:
    tasks = [[b"a"], [b"b"], [b"c"]]
    written_and_not_noted(options, tasks, 2)
    before = seen(broker)
    with pytest.raises(IllegalStateError, match="Batch 1 consists of 2 tasks, but was written by at least 3"):
        run_batch(options, 1, [b"a", b"b"], [b"c"], run="new")
    assert seen(broker) == before
    run_batch(options, 1, *tasks, run="newer")
    assert seen(broker) == [*before[:3], b"a", b"b", b"c"]


def test_fewer_tasks_are_no_matter_where_no_more_were_written(broker: Broker, options: SinkOptions) -> None:
    written_and_not_noted(options, [[b"a"], [b"b"], [b"c"]])
    run_batch(options, 1, [b"a", b"b", b"c"], run="new")
    run_batch(options, 2, [b"d"], [b"e"], [b"f"], [b"g"], run="new")
    assert seen(broker) == [b"0"] * 3 + [b"a", b"b", b"c", b"d", b"e", b"f", b"g"]


def test_a_process_of_a_number_that_is_gone_is_locked_out_when_the_driver_commits(
    broker: Broker, options: SinkOptions
) -> None:
    run_batch(options, 0, [b"0"], [b"0"], run="old")
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id="spark-query-1") as late:
        late.init_transactions()
        late.begin_transaction()
        late.send("out", b"b").get(timeout=10)
        run_batch(options, 1, [b"a", b"b"], run="new")
        with pytest.raises(KafkaError):
            late.commit_transaction()
    assert seen(broker) == [b"0", b"0", b"a", b"b"]


def test_the_rest_of_a_batch_becomes_visible_when_all_of_its_tasks_were_compared(
    broker: Broker, options: SinkOptions
) -> None:
    written_and_not_noted(options, [[b"a"], [b"b"], [b"c"]], 1)
    before = seen(broker)
    outcomes = [write(options, 1, number, [value], run="new") for number, value in enumerate((b"a", b"b", b"c"))]
    assert [each.held is None for each in outcomes] == [False, True, False]
    assert seen(broker) == before
    finish_batch(options, outcomes, 1)
    assert seen(broker) == [b"0"] * 3 + [b"a", b"b", b"c"]


def test_a_task_that_is_run_again_before_the_driver_has_committed_it_is_written_once(
    broker: Broker, options: SinkOptions
) -> None:
    written_and_not_noted(options, [[b"a"], [b"b"]], 1)
    lost = write(options, 1, 0, [b"a"], run="new")
    outcomes = run_batch(options, 1, [b"a"], [b"b"], run="new")
    with pytest.raises(KafkaError, match=r"'spark-query-0' was not ended.*verifyReplays=false"):
        finish_batch(options, [lost, outcomes[1]], 1)
    assert seen(broker) == [b"0", b"0", b"a", b"b"]


def test_a_driver_that_died_while_it_committed_is_made_good(broker: Broker, options: SinkOptions) -> None:
    tasks = [[b"%d" % number] for number in range(1, 5)]
    written_and_not_noted(options, tasks, 3)
    outcomes = [write(options, 1, number, values, run="new") for number, values in enumerate(tasks)]
    assert sum(each.held is not None for each in outcomes) == 3
    assert outcomes[1].held is not None
    end_transactions(options.client, [outcomes[1].held], committed=True)
    again = run_batch(options, 1, *tasks, run="newer")
    assert [each.held is None for each in again] == [False, True, False, True]
    assert seen(broker) == [b"0"] * 4 + [b"1", b"2", b"3", b"4"]


def test_a_batch_that_is_given_up_leaves_nothing_open(broker: Broker, options: SinkOptions) -> None:
    written_and_not_noted(options, [[b"a"], [b"b"], [b"c"]], 2)
    before = seen(broker)
    outcomes = [write(options, 1, number, [b"a"], run="new") for number in range(2)]
    assert all(each.held is not None for each in outcomes)
    give_up_batch(options, outcomes)
    give_up_batch(options, outcomes)  # nothing more to abort, which is no error
    where = [TopicPartition("out", 0), TopicPartition("out", 1)]
    with KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, isolation_level="read_committed") as reader:
        stable = reader.end_offsets(where)
    with KafkaConsumer(bootstrap_servers=broker.bootstrap_servers) as reader:
        assert reader.end_offsets(where) == stable
    assert seen(broker) == before


def test_a_change_without_a_writer_is_taken_for_right_when_configured(broker: Broker, options: SinkOptions) -> None:
    written_and_not_noted(options, [[b"a", b"b"], [b"c"]], 0)
    trusting = replace(options, verify_replays=False)
    outcomes = run_batch(trusting, 1, [b"b"], [b"c"], run="new")  # one is gone by retention
    assert [each.held for each in outcomes] == [None, None]
    assert seen(broker) == [b"0", b"0", b"a", b"b", b"c"]
    given = {"kafka.bootstrap.servers": "b:1", "topic": "out", "exactlyOnce": "true"}
    assert SinkOptions.parse(given).verify_replays
    assert not SinkOptions.parse({**given, "VerifyReplays": "false"}).verify_replays


def test_coordinators_that_are_not_ready_are_asked_again(broker: Broker, options: SinkOptions) -> None:
    written_and_not_noted(options, [[b"a"], [b"b"], [b"c"]], 1)
    for api in ("ListGroups", "OffsetFetch", "InitProducerId", "EndTxn"):
        broker.fail(api, [CoordinatorLoadInProgressError, NotCoordinatorError])
    run_batch(options, 1, [b"a"], [b"b"], [b"c"], run="new")
    assert seen(broker) == [b"0"] * 3 + [b"a", b"b", b"c"]


def test_a_broker_that_lists_no_groups_yet_does_not_hide_what_was_written(broker: Broker, options: SinkOptions) -> None:
    def forget(exchange: Any) -> None:
        exchange.reply.groups = []  # as Apache Kafka right after a restart, with no error

    written_and_not_noted(options, [[b"a"], [b"b"]], 1)
    with (
        broker.intercept("ListGroups", forget),
        pytest.raises(IllegalStateError, match="consists of 1 tasks, but was written by at least 2"),
    ):
        run_batch(options, 1, [b"a", b"b"], run="second")
    assert seen(broker) == [b"0", b"0", b"b"]


def test_groups_that_may_not_be_listed_fail_the_task(broker: Broker, options: SinkOptions) -> None:
    broker.fail("ListGroups", [ClusterAuthorizationFailedError])
    with pytest.raises(ClusterAuthorizationFailedError, match=r"list_groups\(\)"):
        write(options, 0, 0, [b"a"])
    run_batch(options, 0, [b"a"])
    assert seen(broker) == [b"a"]


def test_no_monitor_sees_lag_in_the_groups_of_marks(broker: Broker, options: SinkOptions) -> None:
    for batch in range(3):
        run_batch(options, batch, [b"a"], [b"b"])
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        names = ["spark-query-0", "spark-query-1"]
        assert sorted(group.group_id for group in admin.list_groups()) == names
        offsets = admin.list_group_offsets(names)
        lags = admin.group_lag()
    assert [at.offset for found in offsets.values() for at in found.values()] == [-1, -1]
    assert [(one.committed, one.lag) for name in names for one in lags[name]] == [(None, None)] * 2
    assert [lags[name].total for name in names] == [0, 0]


def test_a_broker_that_does_not_keep_marks_is_an_error_in_the_first_batch(
    broker: Broker, options: SinkOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kafka.broker.server.apis import committed_offsets

    answer = committed_offsets._partition

    def forgetful(make: Any, index: int, offset: Any, code: int) -> Any:
        return answer(make, index, offset if offset.offset >= 0 else committed_offsets._NOTHING, code)

    monkeypatch.setattr(committed_offsets, "_partition", forgetful)
    with pytest.raises(
        IllegalStateError, match=r"not kept the text .* group spark-query-0 .*exactlyOnce is not possible"
    ):
        run_batch(options, 0, [b"a"], [b"b"])


def test_a_checkpoint_that_was_set_back_is_an_error_and_not_skipped(broker: Broker, options: SinkOptions) -> None:
    for batch in range(4):
        run_batch(options, batch, [b"%d" % batch])
    message = r"write batch 1, but the group spark-query-0 says for topic out that batch 3 is .*transactionalIdPrefix"
    for run in ("run", "new"):
        with pytest.raises(IllegalStateError, match=message):
            run_batch(options, 1, [b"1"], run=run)
    assert seen(broker) == [b"0", b"1", b"2", b"3"]


# What it costs.


def test_tasks_of_all_numbers_share_the_connections_of_a_process(broker: Broker, options: SinkOptions) -> None:
    run_batch(options, 0, *([] for _ in range(5)))
    write(options, 1, 0, [b"a"])
    gc.collect()
    threads, producer = threading.active_count(), transactors.get(options.client)
    for batch in (1, 2):
        run_batch(options, batch, *([b"a"] for _ in range(5)))
    assert transactors.get(options.client) is producer
    assert threading.active_count() <= threads
    assert seen(broker) == [b"a"] * 10


# Where it cannot be used.


def test_what_it_cannot_be_used_for_is_refused(broker: Broker) -> None:
    base = {"kafka.bootstrap.servers": broker.bootstrap_servers, "exactlyOnce": "true"}
    with pytest.raises(KafkaSparkOptionError, match="needs the option topic"):
        SinkOptions.parse(base)
    with pytest.raises(KafkaSparkOptionError, match="cannot be one for all tasks"):
        SinkOptions.parse({**base, "topic": "out", "kafka.transactional.id": "x"})
