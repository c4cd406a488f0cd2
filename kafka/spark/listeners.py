"""A listener that tells how far queries are behind, and a function for foreachBatch. Need pyspark."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.listener import StreamingQueryListener

from kafka.spark.progress import lag
from kafka.structs import TopicPartition

__all__ = ["LagListener", "foreach_batch_writer"]


log = logging.getLogger(__name__)


class LagListener(StreamingQueryListener):
    """Calls a function with the query's name (or id) and its lag after every batch for which the lag is known.

    ::

        spark.streams.addListener(LagListener(lambda name, lag: gauge.set(sum(lag.values()))))
    """

    def __init__(self, tell: Callable[[str, dict[TopicPartition, int]], object]) -> None:
        self._tell = tell

    def onQueryStarted(self, event: object) -> None:
        """A query began; it has no lag yet."""

    def onQueryProgress(self, event: Any) -> None:
        """A batch is done: call the function."""
        progress = event.progress
        found = lag(progress)
        if found:  # neither unknown nor of other sources
            self._tell(progress.name or str(progress.id), found)

    def onQueryIdle(self, event: object) -> None:
        """There is nothing new; the last lag stays true."""

    def onQueryTerminated(self, event: object) -> None:
        """A query ended."""


def foreach_batch_writer(**options: str) -> Callable[[DataFrame, int], None]:
    """Return a function for ``foreachBatch`` that writes to Kafka: for update mode, which Spark gives no Python sink.

    ::

        counts.writeStream.outputMode("update").foreachBatch(
            foreach_batch_writer(**{"kafka.bootstrap.servers": "localhost:9092", "topic": "counts"})
        ).start()
    """

    def write(frame: DataFrame, _batch_id: int) -> None:
        frame.write.format("purekafka").options(**options).mode("append").save()

    return write
