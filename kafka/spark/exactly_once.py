"""Writing each row of a streaming query once: a transaction for each task of each batch, and a mark within it.

A task's transactional id is made of the query's id, which the checkpoint keeps, and the task's number. With the rows
the transaction commits an offset for a group of that same name: the number of the next batch. So whoever runs the task
again (another attempt, or a driver that came back) first locks the one before it out, then reads the mark, and writes
only if it is not there yet. Neither marks nor transactions wait for the driver: nothing stays open between batches.

That is right as long as a batch that is done again has the same rows in the same tasks, which holds for what reads
Kafka with unchanged options, also through aggregations, as Spark keeps their number of tasks in the checkpoint.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from kafka.consumer import KafkaConsumer
from kafka.errors import IllegalStateError
from kafka.producer import KafkaProducer
from kafka.spark.sink_options import SinkOptions
from kafka.spark.writing import RowSender
from kafka.structs import TopicPartition

__all__ = ["TaskIdentity", "task_identity", "write_once"]

log = logging.getLogger(__name__)

# As long as brokers allow unless they are told otherwise: a transaction is open while its task runs.
_TIMEOUT_MS: Final = 900_000
_QUERY: Final = "sql.streaming.queryId"
_BATCH: Final = "streaming.sql.batchId"


@dataclass(frozen=True)
class TaskIdentity:
    """Which part of which batch a task writes."""

    query: str
    batch: int
    task: int


def task_identity() -> TaskIdentity:
    """Return that of the task that runs here."""
    from pyspark import TaskContext

    context = TaskContext.get()
    query, batch = (context.getLocalProperty(name) for name in (_QUERY, _BATCH)) if context else (None, None)
    if context is None or query is None or batch is None:
        raise IllegalStateError(
            "exactlyOnce needs a streaming query of Spark: this task was not told its query and its batch"
        )
    return TaskIdentity(query, int(batch), context.partitionId())


def write_once(options: SinkOptions, identity: TaskIdentity, batches: Iterable[Any]) -> dict[str, int]:
    """Write the Arrow batches of a task unless that is done; return how many went to each partition."""
    assert options.topic is not None
    name = f"{options.transactional_prefix}-{identity.query}-{identity.task}"
    mark = TopicPartition(options.topic, 0)
    configs = {"transaction_timeout_ms": _TIMEOUT_MS, **options.client, "transactional_id": name}
    producer = KafkaProducer(**configs)
    try:
        producer.init_transactions()
        done = _marked(options, name, mark)
        if done is not None and done > identity.batch:
            log.info("Batch %d of task %d is written already", identity.batch, identity.task)
            for _ in batches:
                pass  # Spark waits until its rows are taken
            return {}
        sender = RowSender(producer, options.topic)
        with producer.transaction():
            for batch in batches:
                sender.send(batch)
            counts = sender.finish()
            producer.send_offsets_to_transaction({mark: identity.batch + 1}, name)
    finally:
        producer.close(timeout=10.0)
    return counts


def _marked(options: SinkOptions, name: str, mark: TopicPartition) -> int | None:
    """Return the number of the batch after the last one that is written."""
    configs: dict[str, Any] = {
        key: value for key, value in options.client.items() if key in KafkaConsumer.DEFAULT_CONFIG
    }
    with KafkaConsumer(**configs, group_id=name, enable_auto_commit=False) as consumer:
        return consumer.committed(mark)
