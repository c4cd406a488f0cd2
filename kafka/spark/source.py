"""The data source as Spark sees it, and the batch reader.

The source is made on the driver, by several processes of Spark's in turn, so nothing that one of them remembers reaches
the others.
"""

from __future__ import annotations

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from kafka.spark.options import SourceOptions
from kafka.spark.reader import KafkaPartition, RangeReader
from kafka.spark.schema import chosen_columns, source_schema

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


class KafkaBatchReader(RangeReader, DataSourceReader):
    """Reads what there is between two bounds."""

    def partitions(self) -> list[InputPartition]:
        """Return the tasks."""
        from kafka.spark.driver import planner
        from kafka.spark.planning import batch_ranges, tasks

        with planner(self.options) as offsets:
            ranges = batch_ranges(offsets, self.options)
        return [KafkaPartition(each) for each in tasks(ranges, self.options)]
