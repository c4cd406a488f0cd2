"""From the columns of records to the Arrow batches that Spark takes: its names, types and order. Needs pyarrow.

Spark compares the schema of what a task yields with what it expects, to the letter, so it is written out here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kafka.errors import CorruptRecordError
from kafka.record.columns import BinaryColumn, Columns, HeaderColumn
from kafka.structs import TopicPartition

__all__ = ["COLUMNS", "HEADERS", "batch_of", "empty_batch", "schema_of"]

_HEADER: Final = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
_TYPES: Final = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestampType": pa.int32(),
    "headers": pa.list_(pa.field("element", _HEADER)),
}
HEADERS: Final = "headers"
COLUMNS: Final = tuple(name for name in _TYPES if name != HEADERS)
"""All columns but headers, which a query must ask for."""
_MILLIS_MAX: Final = (2**63 - 1) // 1000


def schema_of(names: Sequence[str]) -> Any:
    """Return the Arrow schema of these columns.

    >>> schema_of(["topic", "offset"]).types
    [DataType(string), DataType(int64)]
    """
    return pa.schema([pa.field(name, _TYPES[name]) for name in names])


def empty_batch(names: Sequence[str]) -> Any:
    """Return a batch without rows.

    >>> empty_batch(["offset"]).num_rows
    0
    """
    return pa.RecordBatch.from_arrays([pa.array([], _TYPES[name]) for name in names], schema=schema_of(names))


def batch_of(columns: Columns, tp: TopicPartition, end: int, names: Sequence[str]) -> Any:
    """Return the records before the offset ``end`` as a batch of these columns.

    >>> from kafka.record.columns import from_rows
    >>> batch_of(from_rows([]), TopicPartition("events", 0), 10, ["value"]).num_rows
    0
    """
    offsets = _numpy(columns.offsets, np.int64)
    count = int(np.searchsorted(offsets, end)) if len(offsets) and offsets[-1] >= end else len(offsets)
    arrays = [_column(name, columns, tp, count) for name in names]
    return pa.RecordBatch.from_arrays(arrays, schema=schema_of(names))


def _column(name: str, columns: Columns, tp: TopicPartition, count: int) -> Any:
    if name == "value":
        return _binary(columns.values, count)
    if name == "key":
        return _binary(columns.keys, count)
    if name == "topic":
        return pa.repeat(pa.scalar(tp.topic, pa.string()), count)
    if name == "partition":
        return pa.array(np.full(count, tp.partition, np.int32))
    if name == "offset":
        return pa.array(_numpy(columns.offsets, np.int64)[:count])
    if name == "timestamp":
        return _micros(columns, tp, count)
    if name == "timestampType":
        return pa.array(_numpy(columns.timestamp_types, np.int8)[:count].astype(np.int32))
    return _headers(columns.headers, count)


def _binary(column: BinaryColumn, count: int) -> Any:
    values = column.to_arrow()
    if values.type != pa.binary():
        values = values.cast(pa.binary())
    return values if len(values) == count else values.slice(0, count)


def _numpy(column: Any, kind: Any) -> Any:
    """Return a column of numbers, all of which are buffers, as numpy has it."""
    return np.frombuffer(column, kind)


def _micros(columns: Columns, tp: TopicPartition, count: int) -> Any:
    millis = _numpy(columns.timestamps, np.int64)[:count]
    beyond = (millis > _MILLIS_MAX) | (millis < -_MILLIS_MAX)
    if beyond.any():
        at = int(np.flatnonzero(beyond)[0])
        raise _malformed(tp, int(columns.offsets[at]), int(millis[at]))
    return pa.Array.from_buffers(_TYPES["timestamp"], count, [None, pa.py_buffer(millis * 1000)])


def _malformed(tp: TopicPartition, offset: int, timestamp: int) -> CorruptRecordError:
    return CorruptRecordError(
        f"[KAFKA_MALFORMED_RECORD_TIMESTAMP] Record at topic {tp.topic} partition {tp.partition} offset {offset} has "
        f"timestamp value {timestamp} that overflows when converting to Spark's microsecond-precision TimestampType. "
        "Kafka's timestamps are milliseconds since 1970; this one looks as if its producer writes microseconds or "
        "nanoseconds.",
        topic_partition=tp,
        offset=offset,
    )


def _headers(headers: HeaderColumn, count: int) -> Any:
    """Return the lists of headers; null for a record that has none, as with Spark's own connector."""
    kind = _TYPES[HEADERS]
    if not len(headers.keys):
        return pa.nulls(count, kind)
    starts = _numpy(headers.starts, np.int32)[: count + 1]
    present = np.append(starts[1:] != starts[:-1], True)
    pairs = pa.StructArray.from_arrays(
        [headers.keys.to_arrow().cast(pa.string()), _binary(headers.values, len(headers.keys))], fields=list(_HEADER)
    )
    return pa.ListArray.from_arrays(pa.array(starts, mask=~present), pairs).cast(kind)
