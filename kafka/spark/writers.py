"""The writers: what Spark asks of a sink, on the driver and in tasks.

At least once unless told otherwise, as Spark's own connector: a task hands its rows to an idempotent producer that
stays with the worker process, and ends when all of them are acknowledged. A task that Spark runs again writes its rows
again. With exactlyOnce a streaming query writes in transactions, see `exactly_once`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from pyspark.sql import datasource
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.types import ArrayType, BinaryType, IntegerType, StringType, StructType

from kafka.spark.errors import KafkaSparkOptionError, concise
from kafka.spark.options import SinkOptions

if TYPE_CHECKING:
    from pyspark.sql import Row

    from kafka.spark.exactly_once import TaskOutcome

__all__ = ["KafkaBatchWriter", "Sink", "StreamSink", "Written", "check_columns", "stream_writer"]


_TEXT: Final = (StringType, BinaryType)
_EXPECTED: Final = {
    "topic": "string",
    "key": "string or binary",
    "value": "string or binary",
    "partition": "int",
    "headers": "array<struct<key:string,value:binary>>",
}


class Written(WriterCommitMessage):
    """The records that a task has written."""

    def __init__(self, counts: dict[str, int], outcome: TaskOutcome | None = None) -> None:
        self.counts = counts
        """Records by topic and partition, as ``events-0``."""
        self.outcome = outcome
        """With exactlyOnce, what the driver has to know."""

    def __repr__(self) -> str:
        return f"Written({self.counts})"


def check_columns(schema: StructType, options: SinkOptions) -> None:
    """Raise unless a frame with these columns can be written. Columns with other names are left out.

    >>> from pyspark.sql.types import LongType, StructField
    >>> options = SinkOptions(topic="out", client={})
    >>> check_columns(StructType([StructField("value", LongType())]), options)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    kafka.spark.errors.KafkaSparkOptionError: value attribute unsupported type bigint. value must be a(n) string or ...
    """
    types = {field.name: field.dataType for field in schema.fields}
    if options.topic is None and "topic" not in types:
        raise KafkaSparkOptionError(
            "topic option required when no 'topic' attribute is present. Use the topic option for setting a topic."
        )
    if "value" not in types:
        raise KafkaSparkOptionError("Required attribute 'value' not found")
    by_registry = options.registry.subjects if options.registry is not None else {}
    for name, expected in _EXPECTED.items():
        kind = None if name in by_registry else types.get(name)
        if kind is not None and not _fits(name, kind):
            raise KafkaSparkOptionError(
                f"{name} attribute unsupported type {kind.simpleString()}. {name} must be a(n) {expected}"
            )


def _fits(name: str, kind: object) -> bool:
    if name in {"key", "value"}:
        return isinstance(kind, _TEXT)
    if name == "topic":
        return isinstance(kind, StringType)
    if name == "partition":
        return isinstance(kind, IntegerType)
    return isinstance(kind, ArrayType) and kind.simpleString() == _EXPECTED["headers"]


class Sink:
    """What all writers share: the end of a task, and the calls on the driver."""

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        check_columns(schema, options)
        self.options = options
        self.columns = [field.name for field in schema.fields]

    @concise
    def write_batches(self, batches: Iterable[object]) -> WriterCommitMessage:
        """Write the rows of a task."""
        if self.options.registry is not None:
            batches = self.options.registry.encoded(batches)
        if self.options.exactly_once:
            from kafka.spark.exactly_once import task_identity, write_once

            outcome = write_once(self.options, task_identity(self.options.batch), batches)
            return Written(outcome.counts, outcome)
        from kafka.spark.row_sender import write

        return Written(write(self.options, batches))

    @concise
    def end(self, messages: Sequence[WriterCommitMessage | None], batch: int) -> None:
        """All tasks of a batch are done; their records are there already, or are committed now."""
        if self.options.exactly_once:
            from kafka.spark.exactly_once import finish_batch

            finish_batch(self.options, _outcomes(messages), batch)

    @concise
    def give_up(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """A batch failed. Records that were acknowledged stay; open transactions are aborted."""
        if self.options.exactly_once:
            from kafka.spark.exactly_once import give_up_batch

            give_up_batch(self.options, _outcomes(messages))


class KafkaBatchWriter(Sink, DataSourceArrowWriter):
    """Writes a frame."""

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        super().__init__(options, schema)
        if options.exactly_once and options.batch is None:
            raise KafkaSparkOptionError(
                "exactlyOnce is for streaming queries: a batch query has no checkpoint to go by. In foreachBatch use "
                "kafka.spark.foreach_batch_writer, which knows the query and the batch"
            )

    def write(self, iterator: Iterator[object]) -> WriterCommitMessage:
        """Write the rows of a task."""
        return self.write_batches(iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """All tasks are done."""
        if self.options.batch is not None:
            self.end(messages, self.options.batch.batch)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """The query failed."""
        self.give_up(messages)


class StreamSink(Sink):
    """The part that streaming writers share."""

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """All tasks of a batch are done."""
        self.end(messages, batchId)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803, ARG002
        """A batch failed."""
        self.give_up(messages)


def _outcomes(messages: Sequence[WriterCommitMessage | None]) -> list[TaskOutcome]:
    return [each.outcome for each in messages if isinstance(each, Written) and each.outcome is not None]


class _RowStreamWriter(StreamSink, DataSourceStreamWriter):
    """For Spark 4.0, which streams rows and not Arrow."""

    @concise
    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        """Write the rows of a task."""
        from kafka.spark.row_sender import batches_of_rows

        return self.write_batches(batches_of_rows(self.columns, iterator))


if hasattr(datasource, "DataSourceStreamArrowWriter"):  # since Spark 4.1

    class ArrowStreamWriter(StreamSink, datasource.DataSourceStreamArrowWriter):
        """Writes the micro-batches of a query."""

        def write(self, iterator: Iterator[object]) -> WriterCommitMessage:
            """Write the rows of a task."""
            return self.write_batches(iterator)


def stream_writer(options: SinkOptions, schema: StructType) -> ArrowStreamWriter | _RowStreamWriter:
    """Return the writer for the release of Spark that runs."""
    if hasattr(datasource, "DataSourceStreamArrowWriter"):
        return ArrowStreamWriter(options, schema)
    if options.registry is not None:
        raise KafkaSparkOptionError("schemaRegistry in a streaming sink needs Spark 4.1 or later")
    return _RowStreamWriter(options, schema)
