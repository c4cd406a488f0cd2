"""The data source as Spark sees it, and the batch reader.

The source is made on the driver, by several processes of Spark's in turn, so nothing that one of them remembers reaches
the others.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any, Final

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceWriter,
    InputPartition,
)
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from kafka.spark.errors import KafkaSparkOptionError, concise
from kafka.spark.filters import Condition, condition_of, narrowed
from kafka.spark.options import SinkOptions, SourceOptions
from kafka.spark.partition_reader import KafkaPartition, RangeReader

__all__ = ["FilteredBatchReader", "KafkaBatchReader", "KafkaDataSource", "chosen_columns", "source_schema"]


log = logging.getLogger(__name__)

_said: set[str] = set()
"""What was said already in this process."""


class KafkaDataSource(DataSource):
    """The format ``purekafka``."""

    @classmethod
    def name(cls) -> str:
        """Return what ``format()`` is called with."""
        return "purekafka"

    @concise
    def schema(self) -> StructType:
        """Return the columns of a read; wrong options are errors here, which is in ``load()``."""
        options = SourceOptions.parse(self.options, streaming=False, check_edges=False)
        return source_schema(include_headers=options.include_headers)

    @concise
    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch query."""
        options = SourceOptions.parse(self.options, streaming=False)
        # Spark refuses a reader that takes filters unless its configuration allows it.
        kind = FilteredBatchReader if options.pushdown and _has_pushdown() else KafkaBatchReader
        return kind(options, chosen_columns(schema))

    @concise
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return the reader of a streaming query."""
        from kafka.spark.micro_batch_reader import stream_reader

        options = SourceOptions.parse(self.options, streaming=True)
        if options.pushdown:
            _say_once("filterPushdown has no effect in streaming queries: Spark gives them no filters")
        return stream_reader(options, chosen_columns(schema))

    @concise
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer of a batch query."""
        from kafka.spark.writers import KafkaBatchWriter

        if overwrite:
            raise KafkaSparkOptionError(
                "Save mode Overwrite not allowed for Kafka. Allowed save modes are Append and ErrorIfExists (default)."
            )
        return KafkaBatchWriter(SinkOptions.parse(self.options), schema)

    @concise
    def streamWriter(self, schema: StructType, overwrite: bool) -> Any:  # noqa: ARG002 - complete mode appends
        """Return the writer of a streaming query."""
        from kafka.spark.writers import stream_writer

        return stream_writer(SinkOptions.parse(self.options), schema)


class KafkaBatchReader(RangeReader, DataSourceReader):
    """Reads what there is between two bounds."""

    conditions: tuple[Condition, ...] = ()
    """What Spark has told of the query's filters."""

    @concise
    def partitions(self) -> list[InputPartition]:
        """Return the tasks."""
        from kafka.spark.offset_reader import planner
        from kafka.spark.planning import batch_ranges, tasks

        with planner(self.options) as offsets:
            # Times are looked up after the ends, so that nothing between them can be missed.
            ranges = narrowed(batch_ranges(offsets, self.options), self.conditions, offsets.at_times)
        return [KafkaPartition(each) for each in tasks(ranges, self.options)]


class FilteredBatchReader(KafkaBatchReader):
    """Reads what there is between two bounds, and not what the query's filters leave out. Needs Spark 4.1."""

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:
        """Take what filters say of topics, partitions, offsets and times; Spark applies all of them once more."""
        found = (condition_of(each) for each in filters)
        self.conditions = tuple(each for each in found if each is not None)
        return filters


def _has_pushdown() -> bool:
    if not hasattr(DataSourceReader, "pushFilters"):
        _say_once("filterPushdown has no effect before Spark 4.1")
        return False
    # Up to 4.3 what a filter left to be read is kept with the frame's relation, where its other uses find it. The
    # releases that keep it with the scan push limits too.
    if not hasattr(DataSourceReader, "pushLimit"):
        _say_once(
            "filterPushdown: this release of Spark reads for all uses of a frame what its last filter needed. load() a "
            "frame for each filter, or rows are missing"
        )
    return True


def _say_once(sentence: str) -> None:
    if sentence not in _said:
        _said.add(sentence)
        log.warning("%s", sentence)


_HEADER: Final = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
_ALL: Final = StructType(
    [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestampType", IntegerType()),
        StructField("headers", ArrayType(_HEADER)),
    ]
)


def source_schema(*, include_headers: bool) -> StructType:
    """Return the schema of the source.

    >>> source_schema(include_headers=False).simpleString()[:45]
    'struct<key:binary,value:binary,topic:string,p'
    """
    return _ALL if include_headers else StructType(_ALL.fields[:-1])


def chosen_columns(schema: StructType) -> list[str]:
    """Return the names of the columns that a schema chooses, which must be columns of the source.

    That is how a query says that it does not need the others: Spark tells a source in Python nothing of that.

    >>> chosen_columns(StructType([StructField("offset", LongType())]))
    ['offset']
    """
    known = {field.name: field.dataType for field in _ALL.fields}
    for field in schema.fields:
        fault = _fault(field, known.get(field.name))
        if fault:
            raise KafkaSparkOptionError(
                f"Kafka source has a fixed schema and cannot be set with a custom one: {fault}. A schema may choose "
                f"among {_ALL.simpleString()[7:-1]}"
            )
    return [field.name for field in schema.fields]


def _fault(field: StructField, kind: DataType | None) -> str:
    """Return why the source cannot give a column; nothing if it can."""
    if kind is None:
        return f"it has no column {field.name!r}"
    if kind != field.dataType:
        types = f"{kind.simpleString()}, not {field.dataType.simpleString()}"
        return f"its column {field.name!r} is {types}; cast it in the query"
    return "" if field.nullable else f"its column {field.name!r} is nullable, remove NOT NULL"
