"""The streaming writer that is given Arrow, which Spark does from 4.1 on. Needs that release."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from kafka.spark.sink import StreamSink

__all__ = ["ArrowStreamWriter"]


class ArrowStreamWriter(StreamSink, DataSourceStreamArrowWriter):
    """Writes the micro-batches of a query."""

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Write the rows of a task."""
        return self.write_batches(iterator)
