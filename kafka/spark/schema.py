"""The columns of the source as Spark's types, and the choice of columns by a schema of the user's. Needs pyspark."""

from __future__ import annotations

from typing import Final

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

from kafka.spark.errors import KafkaSparkOptionError

__all__ = ["chosen_columns", "source_schema"]

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
