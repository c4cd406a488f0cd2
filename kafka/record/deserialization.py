"""Keys and values of records as the application's deserializers make them. Sans-IO."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from kafka.errors import RecordDeserializationError
from kafka.record.consumer_record import ConsumerRecord
from kafka.structs import TopicPartition

__all__ = ["Deserialize", "deserialize"]

#: Takes the bytes, or with ``deserialize_with_headers`` the record's headers and the bytes.
Deserialize: TypeAlias = Callable[..., Any]

_new = tuple.__new__


def deserialize(
    records: Iterable[ConsumerRecord],
    record_type: type[ConsumerRecord],
    key_deserializer: Deserialize | None,
    value_deserializer: Deserialize | None,
    *,
    with_headers: bool,
) -> tuple[list[ConsumerRecord], RecordDeserializationError | None]:
    """Return the records with their keys and values deserialized, up to one that is refused, and that refusal."""
    key_deserializer = key_deserializer or _as_it_is
    value_deserializer = value_deserializer or _as_it_is
    rows: list[ConsumerRecord] = []
    for record in records:
        origin = "key"
        try:
            if with_headers:
                key = key_deserializer(record.headers, record.key)
                origin = "value"
                value = value_deserializer(record.headers, record.value)
            else:
                key = key_deserializer(record.key)
                origin = "value"
                value = value_deserializer(record.value)
        except Exception as err:  # whatever the application's code raises
            return rows, _refusal(record, origin, err)
        rows.append(_new(record_type, (*record[:5], key, value, *record[7:])))
    return rows, None


def _as_it_is(*given: Any) -> Any:
    return given[-1]


def _refusal(record: ConsumerRecord, origin: str, cause: Exception) -> RecordDeserializationError:
    err = RecordDeserializationError(
        f"the {origin} deserializer raised {type(cause).__name__}: {cause}",
        topic_partition=TopicPartition(record.topic, record.partition),
        offset=record.offset,
        origin=origin,
        key_bytes=record.key,
        value_bytes=record.value,
        headers=record.headers,
        timestamp=record.timestamp,
    )
    err.__cause__ = cause
    return err
