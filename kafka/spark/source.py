"""The data source as Spark sees it, and the batch reader.

The source is made on the driver, by several processes of Spark's in turn, so nothing that a reader remembers reaches
the tasks: a reader is pickled before it has planned anything, and what a task needs is in the reader's settings or in
the partition.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from kafka.spark.options import SourceOptions
from kafka.spark.ranges import OffsetRange
from kafka.spark.schema import chosen_columns, source_schema

if TYPE_CHECKING:
    from kafka.spark.fetching import ReadSettings

__all__ = ["KafkaBatchReader", "KafkaDataSource", "KafkaPartition"]


class KafkaPartition(InputPartition):
    """What one task reads."""

    def __init__(self, ranges: tuple[OffsetRange, ...]) -> None:
        self.ranges = ranges

    def __repr__(self) -> str:
        return f"KafkaPartition{self.ranges!r}"


class KafkaDataSource(DataSource):
    """The format ``purekafka``."""

    @classmethod
    def name(cls) -> str:
        """Return what ``format()`` is called with."""
        return "purekafka"

    def schema(self) -> StructType:
        """Return the columns of a read; wrong options are errors here, which is in ``load()``."""
        options = SourceOptions.parse(self.options, streaming=False, check_edges=False)
        return source_schema(include_headers=options.include_headers)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch query."""
        options = SourceOptions.parse(self.options, streaming=False)
        return KafkaBatchReader(options, chosen_columns(schema))


class _RangeReader:
    """The part of both readers that runs in tasks."""

    def __init__(self, options: SourceOptions, columns: list[str]) -> None:
        self.options = options
        self.columns = columns

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the records of a task as Arrow batches."""
        # Spark makes a partition of its own where there is none.
        ranges = getattr(partition, "ranges", ())
        return _read(ranges, self.settings(), freeze=self.options.freeze)

    def settings(self) -> ReadSettings:
        """Return what a task has to know."""
        from kafka.spark.fetching import ReadSettings

        options = self.options
        return ReadSettings(options.client, self.columns, options.fail_on_data_loss, options.poll_timeout)


def _read(ranges: tuple[OffsetRange, ...], settings: ReadSettings, *, freeze: bool) -> Iterator[Any]:
    from kafka.spark.connections import freeze_once
    from kafka.spark.fetching import read_ranges

    if freeze:
        freeze_once()
    yield from read_ranges(ranges, settings)


class KafkaBatchReader(_RangeReader, DataSourceReader):
    """Reads what there is between two bounds."""

    def partitions(self) -> list[InputPartition]:
        """Return the tasks."""
        from kafka.spark.driver import planner
        from kafka.spark.planning import batch_ranges, tasks

        with planner(self.options) as offsets:
            ranges = batch_ranges(offsets, self.options)
        return [KafkaPartition(each) for each in tasks(ranges, self.options)]
