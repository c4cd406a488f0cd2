"""The data source as Spark sees it, and the batch reader.

The source is made on the driver, by several processes of Spark's in turn, so nothing that one of them remembers reaches
the others.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceWriter,
    InputPartition,
)
from pyspark.sql.types import StructType

from kafka.spark.errors import KafkaSparkOptionError
from kafka.spark.options import SourceOptions
from kafka.spark.reader import KafkaPartition, RangeReader
from kafka.spark.schema import chosen_columns, source_schema
from kafka.spark.sink_options import SinkOptions

__all__ = ["KafkaBatchReader", "KafkaDataSource"]


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

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return the reader of a streaming query."""
        from kafka.spark.stream import stream_reader

        return stream_reader(SourceOptions.parse(self.options, streaming=True), chosen_columns(schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer of a batch query."""
        from kafka.spark.sink import KafkaBatchWriter

        if overwrite:
            raise KafkaSparkOptionError(
                "Save mode Overwrite not allowed for Kafka. Allowed save modes are Append and ErrorIfExists (default)."
            )
        return KafkaBatchWriter(SinkOptions.parse(self.options), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> Any:  # noqa: ARG002 - complete mode appends
        """Return the writer of a streaming query."""
        from kafka.spark.sink import stream_writer

        return stream_writer(SinkOptions.parse(self.options), schema)


class KafkaBatchReader(RangeReader, DataSourceReader):
    """Reads what there is between two bounds."""

    def partitions(self) -> list[InputPartition]:
        """Return the tasks."""
        from kafka.spark.driver import planner
        from kafka.spark.planning import batch_ranges, tasks

        with planner(self.options) as offsets:
            ranges = batch_ranges(offsets, self.options)
        return [KafkaPartition(each) for each in tasks(ranges, self.options)]
