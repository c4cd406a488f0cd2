"""The data source as Spark sees it: its name, options and columns, and which reader or writer serves a query.

Several processes of Spark create the source in turn, so nothing that one of them remembers reaches the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, DataSourceWriter
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

from kafka.spark.batch_reader import batch_reader, warn_once
from kafka.spark.errors import KafkaSparkOptionError, concise
from kafka.spark.options import SinkOptions, SourceOptions
from kafka.spark.registry_columns import ERROR

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceStreamWriter

    from kafka.spark.registry_columns import TypedColumns

__all__ = ["KafkaDataSource", "chosen_columns", "source_schema"]


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
        plain = source_schema(include_headers=options.include_headers)
        return plain if options.registry is None else options.registry.schema(plain)

    @concise
    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch query."""
        return batch_reader(*_chosen(SourceOptions.parse(self.options, streaming=False), schema))

    @concise
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return the reader of a streaming query."""
        from kafka.spark.micro_batch_reader import stream_reader

        options = SourceOptions.parse(self.options, streaming=True)
        if options.pushdown:
            warn_once("filterPushdown has no effect in streaming queries: Spark gives them no filters")
        return stream_reader(*_chosen(options, schema))

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
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: ARG002 - complete mode appends
        """Return the writer of a streaming query."""
        from kafka.spark.writers import stream_writer

        return stream_writer(SinkOptions.parse(self.options), schema)


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


def _chosen(options: SourceOptions, schema: StructType) -> tuple[SourceOptions, list[str], TypedColumns | None]:
    """Return the options, which columns of records are needed, and what makes the columns of the frame from them."""
    if options.registry is None:
        return options, chosen_columns(schema), None
    typed = options.registry.columns(schema)
    by_registry = (ERROR,) if options.registry.permissive else ()
    chosen_columns(StructType([one for one in schema if one.name not in {*options.registry.subjects, *by_registry}]))
    return options, typed.needed, typed


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
