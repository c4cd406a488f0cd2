"""Writing each row of a streaming query once: a transaction for each task of each batch, and a marker within it.

What there is:

- A task's transactional id is made of the query's id, which the checkpoint keeps, and the task's number. Whoever runs
  the task takes the id over before anything else: whoever had it is locked out, and what they left open is aborted.
- The task's *marker* (`markers`) is an offset of a group of the same name. It is committed by the transaction that
  has the rows, so it is there if, and only if, they are. It tells the batch, how many rows it was, and in which *run*
  of the query, from one start to its end, it was written. A task without rows leaves a marker too.

A batch is done again because a task failed, in the same run and with the same tasks, or because the driver died or the
query failed before Spark noted that the batch is done. That is then the *first batch of another run*, and its tasks may
have been cut anew: by other options, or a partition that begins elsewhere. A task is not told how many there are, and
cannot see what the others did. The driver is told when all are done. Hence:

1. A marker of a later batch: it is another checkpoint, or one that was set back. The task fails.
2. A marker of this batch: it is written, the task's rows are taken and dropped. If another run wrote it they are
   counted, as another number means that the tasks were cut anew: the task fails then.
3. An older marker of this run: this run has done a batch already, so this one is new. The task commits by itself.
4. Else (no marker, one of another run, one from before markers told runs) this is the first batch that this run has
   for the task. The markers of all tasks are looked at, once for each worker. If none is of this batch and another
   run, the batch is new, and the task commits by itself.
5. If there are such markers, the rows are written and the marker is sent, but the transaction is left open.
6. When all tasks have come so far, none having failed, and not all by 3, the driver looks for markers of this batch at
   numbers that no task has any more, having locked their ids out first. If there is one the batch fails, and what is
   open is aborted. Else it commits the open transactions, one by one (`commit`).

So where another run has written some of a batch, nothing more of it becomes visible before all of its tasks were
compared with that. A driver that dies while it commits leaves markers and open transactions, which the next run
treats by 2 and 5. With verifyReplays=false nothing is compared and nothing left open; that is for rows that have
changed by themselves, and for a batch that is done again and takes longer than a transaction may.

The number of rows is all that tasks are compared by. Other rows pass if each task that was written has as many of them.
What would tell them apart was considered, and is not to be had:

- A digest of keys and values, or of their sizes: they may rightly differ each time. uuid() makes other keys, and a sum
  of floats after a shuffle, which takes rows in any order, has other digits; each crash would stop such a query until
  somebody starts it with verifyReplays=false. That is a common case, this a rare one.
- The ranges of offsets: the worker that writes a task's rows is another process than the one that read them, and after
  a shuffle there is no such thing. Spark hands nothing of a partition on but its rows.
- The number of tasks: Spark tells it to the driver when the batch is done, and to no task (Python's TaskContext lacks
  it), so a batch that was interrupted has left it nowhere.
- The options that cut tasks: they are the source's, and a checkpoint's offsets have no room for them, as Spark's own
  connector is to read them too.

What also remains: that a process outlives its driver, and commits after the next run has looked (4), in a batch whose
tasks were cut anew meanwhile. Its own number is locked out when the task of that number begins, and what it wrote
compared then (2), or by the driver (6): the query fails, but after tasks have committed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kafka.errors import IllegalStateError
from kafka.spark.client_cache import prepare_worker
from kafka.spark.exactly_once.markers import Marker
from kafka.spark.exactly_once.producer import transactors
from kafka.spark.row_sender import RowSender
from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from kafka.producer.transaction_handover import OpenTransaction
    from kafka.spark.exactly_once.producer import Transactor
    from kafka.spark.options import SinkOptions

__all__ = ["TaskIdentity", "TaskOutcome", "task_identity", "write_once"]


log = logging.getLogger(__name__)

_QUERY: Final = "sql.streaming.queryId"
_BATCH: Final = "streaming.sql.batchId"
_RUN: Final = "spark.jobGroup.id"


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
    """What the driver has to know of a task that is done."""

    counts: dict[str, int]
    """Records by topic and partition."""
    id_prefix: str
    """What the ids of all tasks begin with."""
    held: OpenTransaction | None = None
    """The transaction that the driver is to commit."""
    is_certain: bool = False
    """This run has done a batch before with the task, so there is nothing to compare."""


def task_identity() -> TaskIdentity:
    """Return that of the task that runs here."""
    from pyspark import TaskContext

    context = TaskContext.get()
    names = (_QUERY, _BATCH, _RUN)
    query, batch, run = (context.getLocalProperty(name) for name in names) if context else (None, None, None)
    if context is None or query is None or batch is None:
        raise IllegalStateError(
            "exactlyOnce needs a streaming query of Spark: this task was not told its query and its batch"
        )
    return TaskIdentity(query, int(batch), context.partitionId(), run)


def write_once(options: SinkOptions, identity: TaskIdentity, batches: Iterable[Any]) -> TaskOutcome:
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


class _Task:
    """A task, and the producer that has its transactional id for now."""

    def __init__(self, options: SinkOptions, identity: TaskIdentity, transactor: Transactor) -> None:
        assert options.topic is not None
        self._options = options
        self._identity = identity
        self._transactor = transactor
        self._topic = options.topic
        self._family = f"{options.transactional_prefix}-{identity.query}-"
        self._name = f"{self._family}{identity.task}"
        self._place = TopicPartition(options.topic, 0)

    def write(self, batches: Iterable[Any]) -> TaskOutcome:
        """Write the rows, or find that they are written."""
        identity, producer = self._identity, self._transactor.producer
        producer.take_over(self._name)
        marker = self._transactor.marker(self._name, self._place)
        if marker is not None and marker.next_batch > identity.batch + 1:
            raise IllegalStateError(
                f"Task {identity.task} is to write batch {identity.batch}, but the group {self._name} says for topic "
                f"{self._topic} that batch {marker.next_batch - 1} is written: the checkpoint was set back. What is "
                "written already cannot be told from what is not; take a new transactionalIdPrefix or a new checkpoint"
            )
        if marker is not None and marker.next_batch == identity.batch + 1:
            return self._skip(marker, batches)
        is_certain = marker is not None and marker.run is not None and marker.run == identity.run
        if not is_certain and self._options.verify_replays and self._is_replay():
            producer.begin_transaction()
            counts = self._fill(batches)
            return TaskOutcome(counts, self._family, held=producer.leave_open())
        with producer.transaction():
            counts = self._fill(batches)
        return TaskOutcome(counts, self._family, is_certain=is_certain)

    def _is_replay(self) -> bool:
        identity = self._identity
        return self._transactor.others_wrote(self._family, self._place, identity.batch, identity.run)

    def _fill(self, batches: Iterable[Any]) -> dict[str, int]:
        producer, identity = self._transactor.producer, self._identity
        sender = RowSender(producer, self._topic)
        rows = 0
        for batch in batches:
            rows += batch.num_rows
            sender.send(batch)
        counts = sender.finish()
        marker = Marker(identity.batch + 1, rows, identity.run)
        producer.send_offsets_to_transaction({self._place: marker.offset()}, self._name)
        return counts

    def _skip(self, marker: Marker, batches: Iterable[Any]) -> TaskOutcome:
        identity = self._identity
        rows = sum(batch.num_rows for batch in batches)  # Spark waits until they are taken
        is_of_this_run = marker.run is not None and marker.run == identity.run
        if not is_of_this_run and self._options.verify_replays and marker.rows not in {None, rows}:
            raise IllegalStateError(
                f"Task {identity.task} of batch {identity.batch} has {rows} rows; {marker.rows} were written by an "
                "earlier run of this query. Restore minPartitions, maxRecordsPerPartition and rowsPerTask until the "
                "batch is done. If its rows have changed by themselves (retention, compaction, a function that is "
                "random), start once with verifyReplays=false, which takes what is written for right"
            )
        log.info("Batch %d of task %d is written already", identity.batch, identity.task)
        return TaskOutcome({}, self._family)
