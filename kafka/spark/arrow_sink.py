"""The streaming writer that is given Arrow, which Spark does from 4.1 on. Needs that release."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from kafka.spark.sink import Sink, StreamEnds, Written

__all__ = ["ArrowStreamWriter"]


class ArrowStreamWriter(Sink, StreamEnds, DataSourceStreamArrowWriter):
    """Writes the micro-batches of a query."""

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Write the rows of a task."""
        if self.options.exactly_once:
            from kafka.spark.exactly_once import task_identity, write_once

            return Written(write_once(self.options, task_identity(), iterator))
        from kafka.spark.writing import write

        return Written(write(self.options, iterator))
