"""Columns of Spark and a schema registry: `from_registry` reads values with schema ids, `to_registry` writes them.

The driver asks the registry for the schema, so that the columns have types before a query runs. The functions run on
the executors on whole Arrow batches; each Python worker asks the registry once for each schema that it meets.
"""

from __future__ import annotations

import struct
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafka.schema_registry import Schema, SchemaMismatchError, SchemaRegistry
from kafka.schema_registry.column_writer import ColumnWriter
from kafka.schema_registry.columns import SchemaColumns
from kafka.spark.errors import KafkaSparkOptionError

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["RegistryReader", "from_registry", "in_rows", "shown_place", "to_registry"]

_PLACE: Final = ("topic", "partition", "offset")
#: The error of a value that cannot be read, as a column.
ERROR_TYPE: Final = "struct<topic: string, partition: int, offset: bigint, reason: string>"
_Registry = tuple[tuple[str, Any], ...]
#: How long a task waits for a registry that is away. Spark repeats a failed task at once, and soon ends the query.
_RETRY_FOR: Final = 60.0


class RegistryReader(NamedTuple):
    """How values are read; it is pickled for the executors, whose workers keep one set of columns for each."""

    registry: _Registry
    reader: Schema
    key: bool
    message: str | None

    def columns(self) -> SchemaColumns:
        """Return the columns, made once for each process."""
        return _columns(self)


@cache
def _columns(reading: RegistryReader) -> SchemaColumns:
    return SchemaColumns(_of_task(reading.registry), reading.reader, key=reading.key, message=reading.message)


def from_registry(
    column: Column | str,
    url: str,
    *,
    subject: str | None = None,
    version: int | None = None,
    schema: Schema | None = None,
    message: str | None = None,
    key: bool = False,
    permissive: bool = False,
    headers: Column | str | None = None,
    place: tuple[str, str, str] | None = _PLACE,
    **registry: Any,
) -> Column:
    """Return a binary column, whose values begin with the id of a schema, as a column of the schema's type.

    ::

        orders = df.select(from_registry("value", "http://localhost:8081", subject="orders-value").alias("order"))
        orders.select("order.id", "order.lines")

    The reader's schema decides the types: it is the newest version of ``subject``, of the given ``version``, or
    ``schema``. Each value is read with the schema that it names, and resolved into the reader's: fields that it does
    not have get their defaults. ``message`` names the message of Protobuf if a schema has several. With ``headers``,
    the column of the record's headers, the id may be in ``__value_schema_id``, with ``key=True`` in
    ``__key_schema_id``.

    A value that cannot be read ends the query with an error that names its topic, partition and offset. With
    ``permissive=True`` the column is a struct of ``value`` and ``error``, which is null or has `topic`, `partition`,
    `offset` and `reason`. ``place`` names the columns of these; None if the frame does not have them.

    `kafka.schema_registry.SchemaRegistry` has the further arguments: ``user_info``, ``token``, ``ssl_cafile``, and
    so on. Needs Spark 4.1 or later.
    """
    from pyspark.sql import functions
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import StructField, StructType, _parse_datatype_string

    reading = reader_of(registry_of(url, registry), subject, version, schema, key=key, message=message)
    kind = from_arrow_type(reading.columns().type, prefer_timestamp_ntz=True)
    if permissive:
        kind = StructType([StructField("value", kind), StructField("error", _parse_datatype_string(ERROR_TYPE))])
    places = () if place is None else place
    given = [column, *places, *(() if headers is None else (headers,))]
    read = _reading(reading, placed=place is not None, permissive=permissive, headers=headers is not None)
    return _arrow_udf(read, kind)(*(functions.col(one) if isinstance(one, str) else one for one in given))


def _reading(reading: RegistryReader, *, placed: bool, permissive: bool, headers: bool) -> Callable[..., Any]:
    """Return the function of the executors."""

    def read(values: Any, *others: Any) -> Any:
        found, errors = reading.columns().decode(values, others[-1] if headers else None)
        where = others[:3] if placed else ()
        if permissive:
            return with_errors(found, errors, where)
        if errors:
            row = min(errors)
            raise SchemaMismatchError(f"{shown_place(where, row)} cannot be read: {errors[row]}")
        return found

    return read


def with_errors(found: Any, errors: dict[int, str], where: tuple[Any, ...]) -> Any:
    """Return a struct column of values and errors."""
    import pyarrow as pa

    rows = sorted(errors)
    places = [one.take(pa.array(rows, pa.int64())) for one in where] or [pa.nulls(len(rows))] * len(_PLACE)
    kinds = (pa.string(), pa.int32(), pa.int64())
    parts = {name: place.cast(kind) for name, place, kind in zip(_PLACE, places, kinds, strict=True)}
    parts["reason"] = pa.array([errors[row] for row in rows], pa.string())
    return pa.StructArray.from_arrays([found, in_rows(rows, parts, len(found))], ["value", "error"])


def in_rows(rows: Sequence[int], parts: Mapping[str, Any], count: int) -> Any:
    """Return a struct column that has these parts in some rows, and is null in the others."""
    import numpy as np
    import pyarrow as pa

    made = pa.StructArray.from_arrays(list(parts.values()), list(parts))
    if not rows:
        return pa.nulls(count, made.type)
    index, is_other = np.zeros(count, np.int64), np.ones(count, np.bool_)
    index[rows], is_other[rows] = np.arange(len(rows)), False
    return made.take(pa.array(index, mask=is_other))


def shown_place(where: Sequence[Any], row: int) -> str:
    """Return the place of a row as text, from the columns of topics, partitions and offsets."""
    if not where:
        return "a value"
    topic, partition, offset = (one[row].as_py() for one in where)
    return f"{topic}-{partition} offset {offset}"


def to_registry(
    column: Column | str,
    url: str,
    *,
    subject: str,
    schema: Schema | None = None,
    message: str | None = None,
    key: bool = False,
    id_in_header: bool = False,
    **registry: Any,
) -> Column:
    """Return a column as binary values that begin with the id of a schema.

    ::

        out = df.select(to_registry("order", "http://localhost:8081", subject="orders-value").alias("value"))

    The schema is the newest one of ``subject``; a given ``schema`` is registered under it. A struct is written by the
    names of its fields. ``message`` names the message of Protobuf if the schema has several. With ``id_in_header`` the
    column is a struct of ``value``, without the id, and ``headers``, which has it. A value that does not fit into the
    schema ends the query. `kafka.schema_registry.SchemaRegistry` has the further arguments. Needs Spark 4.1.
    """
    from pyspark.sql import functions
    from pyspark.sql.types import BinaryType

    settings = registry_of(url, registry)
    client = SchemaRegistry(**dict(settings))
    if schema is None:
        chosen = client.latest(subject)
    else:
        chosen = schema._replace(id=client.register(subject, schema), subject=subject)
    chosen = chosen._replace(subject=subject)

    def write(values: Any) -> Any:
        return _writer(settings, chosen, message, framed=not id_in_header).encode(values)

    given = functions.col(column) if isinstance(column, str) else column
    written = _arrow_udf(write, BinaryType())(given)
    if not id_in_header:
        return written
    name, data = f"__{'key' if key else 'value'}_schema_id", struct.pack(">bI", 0, chosen.id)
    header = functions.struct(functions.lit(name).alias("key"), functions.lit(bytearray(data)).alias("value"))
    return functions.struct(written.alias("value"), functions.array(header).alias("headers"))


@cache
def _writer(registry: _Registry, schema: Schema, message: str | None, *, framed: bool) -> ColumnWriter:
    """Return what writes values, made once for each process."""
    return ColumnWriter(_of_task(registry), schema, message=message, framed=framed)


@cache
def newest_writer(registry: _Registry, subject: str, version: int | None, message: str | None) -> ColumnWriter:
    """Return what writes values by a version of a subject, or by the newest one when a process first asks."""
    chosen = _newest(_of_task(registry), subject, version)._replace(subject=subject)
    return _writer(registry, chosen, message, framed=True)


def _of_task(registry: _Registry) -> SchemaRegistry:
    return SchemaRegistry(**dict(registry), retry_for=_RETRY_FOR)


def _newest(client: SchemaRegistry, subject: str, version: int | None) -> Schema:
    return client.latest(subject) if version is None else client.version(subject, version)


def registry_of(url: str, options: dict[str, Any]) -> _Registry:
    """Return the arguments of a registry's client, which are checked; they go to the executors."""
    known = ("user_info", "token", "ssl_cafile", "ssl_certfile", "ssl_keyfile", "timeout")
    for name in options:
        if name not in known:
            raise KafkaSparkOptionError(f"unknown argument {name!r}; a schema registry has {', '.join(known)}")
    SchemaRegistry(url, **options)
    return (("url", url), *sorted(options.items()))


def reader_of(
    registry: _Registry,
    subject: str | None,
    version: int | None,
    schema: Schema | None,
    *,
    key: bool = False,
    message: str | None = None,
) -> RegistryReader:
    """Return how values are read, with the reader's schema from the registry unless it is given."""
    if schema is None:
        if subject is None:
            raise KafkaSparkOptionError("give the subject, or the schema, whose types the column has")
        schema = _newest(SchemaRegistry(**dict(registry)), subject, version)
    return RegistryReader(registry, schema, key, message)


def _arrow_udf(function: Callable[..., Any], kind: Any) -> Callable[..., Column]:
    try:
        from pyspark.sql.pandas.functions import ArrowUDFType, arrow_udf
    except ImportError:
        raise KafkaSparkOptionError("from_registry and to_registry need Spark 4.1 or later") from None
    with warnings.catch_warnings():  # it would rather have type hints, which do not say how many columns come
        warnings.simplefilter("ignore", UserWarning)
        made: Callable[..., Column] = arrow_udf(function, kind, ArrowUDFType.SCALAR)
    return made
