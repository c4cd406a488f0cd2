"""Records for tests: values into a batch, and a partition's batches back into records."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from kafka.record.batch import decode_batch
from kafka.record.batch_builder import BatchBuilder
from kafka.record.header import scan

if TYPE_CHECKING:
    from kafka.broker.topics import Partition
    from kafka.record.consumer_record import ConsumerRecord

__all__ = ["decode", "encode"]

_NO_LIMIT = 2**31 - 1


def encode(records: Iterable[Any], timestamp_ms: int) -> bytes:
    """Return a batch of the records: values, or tuples of key, value and perhaps headers; text becomes UTF-8.

    >>> from kafka.record.header import read_header
    >>> read_header(encode(["a", ("key", "b")], 1700000000000)).count
    2
    """
    builder = BatchBuilder(_NO_LIMIT)
    for record in records:
        key, value, *rest = record if isinstance(record, tuple) else (None, record)
        builder.append(timestamp_ms, _bytes(key), _bytes(value), list(rest[0]) if rest and rest[0] else None)
    return builder.seal().data


def _bytes(value: bytes | str | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def decode(partition: Partition, *, committed: bool = False) -> list[ConsumerRecord]:
    """Return what a reader from the start sees; with ``committed`` a reader of committed records."""
    log = partition.log
    upper = log.stable_offset if committed else log.high_watermark
    aborted = log.producers.aborted if committed else []
    rows: list[ConsumerRecord] = []
    for segment, number in log.batches_from(log.start_offset):
        entry = segment.entry(number)
        if entry.first >= upper:
            break
        data = segment.read(entry.position, entry.end)
        for header in scan(data):
            hidden = header.is_control or any(
                one.producer_id == header.producer_id and one.first_offset <= header.base_offset < one.last_offset
                for one in aborted
                if header.is_transactional
            )
            if not hidden:
                found = decode_batch(data, header, partition.topic.name, partition.index, check_crc=False)
                rows += [row for row in found if row.offset >= log.start_offset]
    return rows
