"""Writing each row of a streaming query once: a transaction for each task of each batch, and a marker within it.

- A task's transactional id consists of the query's id, which the checkpoint keeps, and the task's number. A process
  that runs the task first takes the id over: the producer that had it is fenced, its open transaction aborted.
- The task's *marker* (`Marker`) is a text beside a committed offset of a group with the same name. The transaction that
  writes the rows commits it, so it exists if, and only if, they do. It has the batch, the number of rows, and the *run*
  of the query, from one start to its end, that wrote them. A task without rows leaves a marker too. The offset is -1,
  which Kafka's clients take for none: the group is behind nothing, and no monitor of lag sees it. Apache Kafka keeps
  the text beside it; a broker that does not is noticed in the first batch (`finish_batch`).

Spark repeats a batch because a task failed, in the same run and with the same tasks, or because the driver died or the
query failed before Spark recorded the batch as done. Then it is the *first batch of another run*, and its tasks may be
different ones: other options, or a partition that begins elsewhere, divide the offsets differently. A task does not
know the number of tasks, nor what the others did. The driver knows when all are done. Hence:

1. A marker of a later batch: it is another checkpoint, or one that was set back. The task fails.
2. A marker of this batch: it is written, the task's rows are taken and dropped. If another run wrote it they are
   counted, as another number means that the offsets are divided differently now: the task fails then.
3. An older marker of this run: this run has done a batch already, so this one is new. The task commits.
4. Else (no marker, or one of another run) this is the first batch that this run has
   for the task. A worker looks at the markers of all tasks, once. If none is of this batch and another run, the batch
   is new, and the task commits.
5. If there are such markers, the rows are written and the marker is sent, but the transaction is left open.
6. When all tasks have come so far, none having failed, and not all by 3, the driver looks for markers of this batch at
   numbers that no task has any more, having locked their ids out first. If there is one the batch fails, and what is
   open is aborted. Else it commits the open transactions, one by one (`finish_batch`).

So where another run has written some of a batch, nothing more of it becomes visible before all of its tasks were
compared with that. A driver that dies while it commits leaves markers and open transactions, which the next run
treats by 2 and 5. With verifyReplays=false nothing is compared and nothing left open; that is for rows that have
changed by themselves, and for a batch that is done again and takes longer than a transaction may.

Tasks are compared by the number of rows alone. Other rows pass if each task that was written has as many of them. Other
ways to tell them apart were considered and do not work:

- A digest of keys and values, or of their sizes: they may rightly differ each time. uuid() makes other keys, and a sum
  of floats after a shuffle, which takes rows in any order, has other digits; each crash would stop such a query until
  an operator starts it with verifyReplays=false. That is a common case, this a rare one.
- The ranges of offsets: the worker that writes a task's rows is another process than the one that read them, and after
  a shuffle there is no such thing. Spark hands nothing of a partition on but its rows.
- The number of tasks: Spark tells it to the driver when the batch is done, and to no task (Python's TaskContext lacks
  it), so a batch that was interrupted has left it nowhere.
- The options that cut tasks: they are the source's, and a checkpoint's offsets have no room for them, as Spark's own
  connector is to read them too.

One case remains: a process outlives its driver, and commits after the next run has looked (4), in a batch whose offsets
are divided differently meanwhile. Its number is fenced when the task of that number begins, and its rows are compared
then (2), or by the driver (6): the query fails, but after tasks have committed.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafka.config import resolve
from kafka.errors import IllegalStateError, KafkaError, UnsupportedVersionError
from kafka.spark.client_cache import ClientCache, admin_client, prepare_worker
from kafka.spark.options import ForeachBatch, SinkOptions
from kafka.structs import OffsetAndMetadata, TopicPartition

# The driver loads this module in a new process for each batch, and needs none of these after the first one.
if TYPE_CHECKING:
    from kafka.producer.transaction_handover import OpenTransaction

__all__ = [
    "Marker",
    "TaskIdentity",
    "TaskOutcome",
    "finish_batch",
    "give_up_batch",
    "task_identity",
    "transactors",
    "write_once",
]


log = logging.getLogger(__name__)

# As long as brokers allow by default: a transaction is open while its task runs.
_TIMEOUT_MS: Final = 900_000
_CLOSE_TIMEOUT: Final = 10.0
#: How many groups are asked for by name beside the list: Spark's default is 200 tasks after a shuffle.
_ASKED: Final = 256

_QUERY: Final = "sql.streaming.queryId"
_BATCH: Final = "streaming.sql.batchId"
_RUN: Final = "spark.jobGroup.id"

# Markers.


class Marker(NamedTuple):
    """How far a task has written.

    >>> Marker(8, rows=100, run="r").text()
    '{"batch": 7, "rows": 100, "run": "r"}'
    >>> Marker.of(OffsetAndMetadata(-1, '{"batch": 7, "rows": 100, "run": "r"}'))
    Marker(next_batch=8, rows=100, run='r')
    """

    next_batch: int
    rows: int
    """How many rows of the batch before it were this task's."""
    run: str | None = None
    """The run of the query that wrote them: from one start to its end."""

    @classmethod
    def of(cls, offset: OffsetAndMetadata) -> Marker | None:
        """Read it from the text beside a committed offset; None if that is another one."""
        try:
            said = json.loads(offset.metadata or "")
            return cls(int(said["batch"]) + 1, int(said["rows"]), said["run"])
        except (KeyError, TypeError, ValueError):
            return None

    def text(self) -> str:
        """Return what is to be committed."""
        return json.dumps({"batch": self.next_batch - 1, "rows": self.rows, "run": self.run})


class Markers:
    """The markers of a sink's tasks: committed offsets of groups that have the names of the transactional ids."""

    def __init__(self, configs: Mapping[str, object], place: TopicPartition) -> None:
        self._admin = admin_client(configs)
        self._place = place
        self._timeout_ms: float = resolve("producer", configs)["max_block_ms"]
        self.can_wait = True
        """Whether the broker can tell what is committed and not yet visible."""

    def read(self, names: Iterable[str], *, stable: bool) -> dict[str, Marker]:
        """Return the markers that tasks have, by the names of their groups.

        With `stable` a transaction that has one and is not over yet is waited for; else the marker before it counts.
        """
        wanted = {name: [self._place] for name in names}
        if not wanted:
            return {}
        try:
            found = self._admin.list_group_offsets(wanted, timeout_ms=self._timeout_ms, require_stable=stable)
        except UnsupportedVersionError:  # brokers before 2.5 always tell the marker before
            self.can_wait = False
            found = self._admin.list_group_offsets(wanted, timeout_ms=self._timeout_ms)
        markers = {name: Marker.of(commits[self._place]) for name, commits in found.items() if self._place in commits}
        return {name: marker for name, marker in markers.items() if marker is not None}

    def tasks(self, id_prefix: str, first: int = 0) -> dict[int, str]:
        """Return the numbers, from the first one on, and the groups of all tasks that have ever left a marker.

        A broker that has just started lists no groups, without an error, until it knows of which it is the coordinator.
        So the groups of the next numbers are asked for one by one, which a coordinator answers when it has loaded them.
        """
        groups = self._admin.list_groups(timeout_ms=self._timeout_ms)
        ends = [group.group_id.removeprefix(id_prefix) for group in groups if group.group_id.startswith(id_prefix)]
        listed = {int(end): f"{id_prefix}{end}" for end in ends if end.isdecimal() and int(end) >= first}
        asked = {number: f"{id_prefix}{number}" for number in range(first, first + _ASKED) if number not in listed}
        there = self.read(asked.values(), stable=False)
        return {**listed, **{number: name for number, name in asked.items() if name in there}}

    def fence(self, names: Iterable[str]) -> None:
        """Lock out the producers that have these ids, and abort what they left open."""
        self._admin.fence_producers(names, timeout_ms=self._timeout_ms)

    def close(self) -> None:
        """Close the connections."""
        self._admin.close()


# Tasks.


@dataclass(frozen=True)
class TaskIdentity:
    """Which part of which batch a task writes."""

    query: str
    batch: int
    task: int
    run: str | None = None
    """The run of the query; where it is not known each batch is taken for the first of one."""


@dataclass(frozen=True)
class TaskOutcome:
    """A task that is done, for the driver."""

    counts: dict[str, int]
    """Records by topic and partition."""
    id_prefix: str
    """The beginning of the ids of all tasks."""
    held: OpenTransaction | None = None
    """The transaction that the driver is to commit."""
    is_certain: bool = False
    """This run has done a batch before with the task, so there is nothing to compare."""


def task_identity(batch_of: ForeachBatch | None = None) -> TaskIdentity:
    """Return that of the task that runs here; a function for foreachBatch says which batch it writes."""
    from pyspark import TaskContext

    context = TaskContext.get()
    if batch_of is not None and context is not None:
        return TaskIdentity(batch_of.query, batch_of.batch, context.partitionId(), batch_of.run)
    names = (_QUERY, _BATCH, _RUN)
    query, batch, run = (context.getLocalProperty(name) for name in names) if context else (None, None, None)
    if context is None or query is None or batch is None:
        raise IllegalStateError(
            "exactlyOnce needs a streaming query of Spark: this task was not told its query and its batch"
        )
    return TaskIdentity(query, int(batch), context.partitionId(), run)


def write_once(options: SinkOptions, identity: TaskIdentity, batches: Iterable[object]) -> TaskOutcome:
    """Write the Arrow batches of a task unless that is done."""
    prepare_worker(freeze=options.freeze)
    transactor = transactors.get(options.client)
    try:
        outcome = _Task(options, identity, transactor).write(batches)
    except BaseException:
        transactors.drop(options.client)
        raise
    if outcome.held is not None:
        transactors.drop(options.client)
    return outcome


class Transactor:
    """The transactional producer of a worker process: one set of connections for the tasks of all numbers.

    Each task has a transactional id. The producer takes the id over when the task begins, which fences the producer
    that had it and aborts what that left open, as a new producer would.
    """

    def __init__(self, configs: Mapping[str, object]) -> None:
        from kafka.producer.transaction_handover import HandoverProducer

        self.producer = HandoverProducer(**{"transaction_timeout_ms": _TIMEOUT_MS, **configs})
        self._configs = configs
        self._markers: dict[TopicPartition, Markers] = {}
        self._known: tuple[object, bool] | None = None
        """A question, and whether another run has written that batch."""

    def markers(self, place: TopicPartition) -> Markers:
        """Return the markers of the sink of a topic."""
        if place not in self._markers:
            self._markers[place] = Markers(self._configs, place)
        return self._markers[place]

    def others_wrote(self, id_prefix: str, place: TopicPartition, batch: int, run: str | None) -> bool:
        """Whether another run has written a batch, or some of it; it is looked up once for all tasks of a process."""
        asked = (id_prefix, place, batch, run)
        if self._known is None or self._known[0] != asked:
            markers = self.markers(place)
            found = markers.read(markers.tasks(id_prefix).values(), stable=False).values()
            wrote = any(each.next_batch > batch and (run is None or each.run != run) for each in found)
            self._known = asked, wrote
        return self._known[1]

    def close(self) -> None:
        """Close the connections, which aborts the transaction unless the driver is to end it."""
        try:
            self.producer.close(timeout=_CLOSE_TIMEOUT)
        finally:
            for markers in self._markers.values():
                markers.close()


transactors: Final = ClientCache(Transactor)


class _Task:
    """A task, and the producer that has its transactional id for now."""

    def __init__(self, options: SinkOptions, identity: TaskIdentity, transactor: Transactor) -> None:
        assert options.topic is not None
        self._options = options
        self._identity = identity
        self._transactor = transactor
        self._topic = options.topic
        self._id_prefix = f"{options.transactional_prefix}-{identity.query}-"
        self._name = f"{self._id_prefix}{identity.task}"
        self._place = TopicPartition(options.topic, 0)

    def write(self, batches: Iterable[object]) -> TaskOutcome:
        """Write the rows, or find that they are written."""
        identity, producer = self._identity, self._transactor.producer
        producer.take_over(self._name)
        marker = self._transactor.markers(self._place).read([self._name], stable=True).get(self._name)
        if marker is not None and marker.next_batch > identity.batch + 1:
            raise IllegalStateError(
                f"Task {identity.task} is to write batch {identity.batch}, but the group {self._name} says for topic "
                f"{self._topic} that batch {marker.next_batch - 1} is written: the checkpoint was set back. Rows "
                "that are written cannot be distinguished from new ones: take a new transactionalIdPrefix or checkpoint"
            )
        if marker is not None and marker.next_batch == identity.batch + 1:
            return self._skip(marker, batches)
        # A topic that brokers create at its first use is created now: a task without rows would not use it, and its
        # marker stands beside an offset of the topic.
        producer.partitions_for(self._topic)
        is_certain = marker is not None and marker.run is not None and marker.run == identity.run
        if not is_certain and self._options.verify_replays and self._is_replay():
            producer.begin_transaction()
            counts = self._fill(batches)
            return TaskOutcome(counts, self._id_prefix, held=producer.leave_open())
        with producer.transaction():
            counts = self._fill(batches)
        return TaskOutcome(counts, self._id_prefix, is_certain=is_certain)

    def _is_replay(self) -> bool:
        identity = self._identity
        return self._transactor.others_wrote(self._id_prefix, self._place, identity.batch, identity.run)

    def _fill(self, batches: Iterable[Any]) -> dict[str, int]:
        from kafka.spark.row_sender import RowSender

        producer, identity = self._transactor.producer, self._identity
        sender = RowSender(producer, self._topic)
        rows = 0
        for batch in batches:
            rows += batch.num_rows
            sender.send(batch)
        counts = sender.finish()
        marker = Marker(identity.batch + 1, rows, identity.run)
        producer.commit_text(self._place, marker.text(), self._name)
        return counts

    def _skip(self, marker: Marker, batches: Iterable[Any]) -> TaskOutcome:
        identity = self._identity
        rows = sum(batch.num_rows for batch in batches)  # Spark waits until they are taken
        is_of_this_run = marker.run is not None and marker.run == identity.run
        if not is_of_this_run and self._options.verify_replays and marker.rows != rows:
            raise IllegalStateError(
                f"Task {identity.task} of batch {identity.batch} has {rows} rows; {marker.rows} were written by an "
                "earlier run of this query. Restore minPartitions, maxRecordsPerPartition and rowsPerTask until the "
                "batch is done. If its rows have changed by themselves (retention, compaction, a function that is "
                "random), start once with verifyReplays=false, which takes what is written for right"
            )
        log.info("Batch %d of task %d is written already", identity.batch, identity.task)
        return TaskOutcome({}, self._id_prefix)


# The driver. The process is one that Spark starts for each batch. Batches after the first of a run cost no connection.


def finish_batch(options: SinkOptions, outcomes: Sequence[TaskOutcome], batch: int) -> None:
    """Commit the open transactions of a batch whose tasks are all done; raise if an earlier run had other tasks."""
    if not options.verify_replays or all(each.is_certain for each in outcomes):
        return
    _check_markers(options, outcomes, batch)
    _end(options, _held(outcomes), committed=True)


def give_up_batch(options: SinkOptions, outcomes: Sequence[TaskOutcome]) -> None:
    """Abort what tasks have left open, so that readers of the topic need not wait for their timeout."""
    try:
        _end(options, _held(outcomes), committed=False)
    except KafkaError as error:
        # Transactions that are committed, or taken over by now, cannot be aborted.
        log.info("Not all transactions were aborted: %s", error)


def _held(outcomes: Sequence[TaskOutcome]) -> list[OpenTransaction]:
    return [each.held for each in outcomes if each.held is not None]


def _check_markers(options: SinkOptions, outcomes: Sequence[TaskOutcome], batch: int) -> None:
    """Raise if tasks with numbers that the batch does not have any more have written it, or later ones.

    Or if a task has committed, and its marker is gone.
    """
    assert options.topic is not None
    id_prefix, tasks = outcomes[0].id_prefix, len(outcomes)
    committed = [f"{id_prefix}{number}" for number, each in enumerate(outcomes) if each.held is None][:1]
    with closing(Markers(options.client, TopicPartition(options.topic, 0))) as markers:
        others = markers.tasks(id_prefix, first=tasks)
        markers.fence(others.values())
        found = markers.read([*others.values(), *committed], stable=True)
    if markers.can_wait and not found.keys() >= set(committed):
        raise IllegalStateError(
            f"Batch {batch} is written, but the broker has not kept the text that says so, in the group {committed[0]} "
            f"at offset -1 of {options.topic}-0, as Apache Kafka does: exactlyOnce is not possible with this broker, "
            "unless the topic was deleted meanwhile. Write without it, and remove duplicates when reading"
        )
    wrote = [number for number, name in others.items() if name in found and found[name].next_batch > batch]
    if wrote:
        raise IllegalStateError(
            f"Batch {batch} consists of {tasks} tasks, but was written by at least {max(wrote) + 1} in an earlier "
            "run of this query. Restore minPartitions, maxRecordsPerPartition and rowsPerTask until the batch is "
            "done, or start once with verifyReplays=false, which takes what is written for right"
        )


def _end(options: SinkOptions, held: Sequence[OpenTransaction], *, committed: bool) -> None:
    """Commit or abort open transactions; each is tried, the first error raised."""
    if not held:
        return
    from kafka.producer.transaction_handover import end_transactions

    try:
        end_transactions({"transaction_timeout_ms": _TIMEOUT_MS, **options.client}, held, committed=committed)
    except KafkaError as error:
        raise type(error)(
            f"{error} If the batch takes longer than kafka.transaction.timeout.ms, start once with "
            "verifyReplays=false: its tasks commit by themselves then"
        ) from error
