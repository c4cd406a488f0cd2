"""A listener that tells how far queries are behind, and functions for foreachBatch. Need pyspark."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable
from contextlib import nullcontext
from functools import wraps
from typing import TYPE_CHECKING, Final

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import DataFrame
from pyspark.sql.streaming.listener import StreamingQueryListener

from kafka import _hooks
from kafka.spark.errors import KEEP_TRACEBACK, KafkaSparkOptionError
from kafka.spark.progress import lag
from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )

__all__ = ["LagListener", "foreach_batch_writer", "without_java_stack"]


log = logging.getLogger(__name__)


class LagListener(StreamingQueryListener):
    """Calls a function with the query's name (or id) and its lag after every batch for which the lag is known.

    ::

        spark.streams.addListener(LagListener(lambda name, lag: gauge.set(sum(lag.values()))))

    ``alive`` is called with the name when a query starts, after every batch, and while there is nothing new: a query
    that has not been alive for longer than its batches take is stuck, and its last lag says nothing.
    """

    def __init__(
        self,
        tell: Callable[[str, dict[TopicPartition, int]], object],
        alive: Callable[[str], object] | None = None,
    ) -> None:
        self._tell = tell
        self._alive = alive
        self._names: dict[object, str] = {}

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """A query began; it has no lag yet."""
        self._names[event.id] = event.name or str(event.id)
        self._is_alive(event.id)

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """A batch is done: call the functions."""
        progress = event.progress
        name = self._names[progress.id] = progress.name or str(progress.id)
        found = lag(progress)
        if found:  # neither unknown nor of other sources
            self._tell(name, found)
        self._is_alive(progress.id)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """There is nothing new; the last lag stays true."""
        self._is_alive(event.id)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """A query ended."""
        self._names.pop(event.id, None)

    def _is_alive(self, query: object) -> None:
        if self._alive is not None:
            self._alive(self._names.get(query, str(query)))


Write = Callable[[DataFrame, int], None]

_JAVA_FRAME: Final = re.compile(r"\s*(?:at \S+\(|\.\.\. \d+ more)")
#: The exceptions that a stop causes in Java.
_INTERRUPTIONS: Final = (
    "java.lang.InterruptedException",
    "java.io.InterruptedIOException",
    "java.nio.channels.ClosedByInterruptException",
)


def without_java_stack(write: Write) -> Write:
    """Decorate a function for foreachBatch: an error of Java reaches Spark with its messages and without its stacks.

    When a query is stopped, Spark searches the text of its function's error for the exceptions that a stop causes. Its
    regular expression takes stack for each character behind the words with which Py4J begins: on 2,000 of them
    it raises StackOverflowError, which Java prints, and the stop is not recognized.

    >>> @without_java_stack
    ... def write(batch, batch_id):
    ...     batch.write.format("noop").mode("append").save()
    """

    @wraps(write)
    def called(frame: DataFrame, batch_id: int) -> None:
        try:
            write(frame, batch_id)
        except Py4JJavaError as error:
            if os.environ.get(KEEP_TRACEBACK):
                raise
            raise Py4JError(_brief(str(error))) from None

    return called


def _brief(text: str) -> str:
    """Return the messages of an error of Java, and behind them, of one that a stop has caused, how Spark sees that."""
    lines = [line for line in text.splitlines() if line.strip() and not _JAVA_FRAME.match(line)]
    for name in _INTERRUPTIONS:
        if name in text:
            return "\n".join([*lines, f"py4j.protocol.Py4JJavaError: An error occurred while calling Java: {name}"])
    return "\n".join(lines)


_QUERY: Final = "sql.streaming.queryId"
_RUN: Final = "spark.jobGroup.id"
_written: dict[tuple[str | None, ...], int] = {}
"""The last batch that was written exactly once, by the run of the query and where it went."""


def foreach_batch_writer(**options: str) -> Write:
    """Return a function for ``foreachBatch`` that writes to Kafka: for update mode, which Spark gives no Python sink.

    ::

        counts.writeStream.outputMode("update").foreachBatch(
            foreach_batch_writer(**{"kafka.bootstrap.servers": "localhost:9092", "topic": "counts"})
        ).start()

    With ``exactlyOnce`` the rows of a batch that is repeated are not written again, as in a streaming sink. A query
    that writes a topic with two such functions gives each another ``transactionalIdPrefix``.
    """
    lowered = {name.lower(): str(value) for name, value in options.items()}
    once = lowered.get("exactlyonce", "").strip().lower() == "true"

    @without_java_stack
    def write(frame: DataFrame, batch_id: int) -> None:
        with nullcontext() if _hooks.tracer is None else _hooks.tracer.writing(lowered.get("topic")):
            save(frame, batch_id)

    def save(frame: DataFrame, batch_id: int) -> None:
        writer = frame.write.format("purekafka").options(**options).mode("append")
        if not once:
            writer.save()
            return
        from kafka.spark.options import ForeachBatch

        try:
            context = frame.sparkSession.sparkContext
            query, run = context.getLocalProperty(_QUERY), context.getLocalProperty(_RUN)
        except Exception as error:
            raise KafkaSparkOptionError(
                f"exactlyOnce in foreachBatch needs a driver of Spark, not Connect: {error}"
            ) from None
        if not query:
            raise KafkaSparkOptionError("exactlyOnce: this function was called outside of foreachBatch of a query")
        place = (run, lowered.get("topic"), lowered.get("transactionalidprefix"))
        if _written.get(place) == batch_id:
            raise KafkaSparkOptionError(
                f"Batch {batch_id} was written to {lowered.get('topic')} already: the rows of this call would be taken "
                "for written. Give each foreach_batch_writer of a query another transactionalIdPrefix, and call it once"
            )
        writer.option("foreachBatch", ForeachBatch(query, batch_id, run).text()).save()
        _written[place] = batch_id

    return write
