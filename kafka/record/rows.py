"""One batch at a time, whole: for brokers, tools and tests, which know where a batch is and want what is in it."""

from __future__ import annotations

from kafka.codec import DEFAULT_LIMIT
from kafka.errors import CorruptRecordError
from kafka.record._decode import Origin, take_rows
from kafka.record._errors import corrupt
from kafka.record._legacy import read_messages, to_rows
from kafka.record._open import open_batch
from kafka.record.consumer_record import ConsumerRecord
from kafka.record.header import BatchHeader, Buffer


def origin_of(header: BatchHeader, topic: str, partition: int) -> Origin:
    """Return what the records of a batch share.

    >>> from kafka.record.header import BatchHeader
    >>> origin_of(BatchHeader(0, 5, 0, 3, 2, 0, 0, 0, 100, 100, -1, -1, -1, 1), "events", 0).base_offset
    5
    """
    append_time = header.max_timestamp if header.timestamp_type else None
    return Origin(topic, partition, header.base_offset, header.base_timestamp, append_time, header.leader_epoch)


def decode_batch(
    buffer: Buffer,
    header: BatchHeader,
    topic: str = "",
    partition: int = -1,
    *,
    check_crc: bool = True,
    limit: int = DEFAULT_LIMIT,
) -> list[ConsumerRecord]:
    """Return all records of one batch, of control batches too.

    Raises :class:`~kafka.errors.CorruptRecordError` if anything in the batch is not as it must be.

    >>> from kafka.record.builder import BatchBuilder
    >>> from kafka.record.header import scan
    >>> builder = BatchBuilder(limit=1000)
    >>> builder.append(1700000000000, b"k", b"v")
    0
    >>> data = builder.seal().data
    >>> [record.value for header in scan(data) for record in decode_batch(data, header)]
    [b'v']
    """
    if header.magic < 2:
        return to_rows(read_messages(buffer, header, check_crcs=check_crc, limit=limit), topic, partition)
    body = open_batch(buffer, header, check_crc=check_crc, limit=limit)
    rows: list[ConsumerRecord] = []
    try:
        end = take_rows(body.data, body.start, body.end, header.count, origin_of(header, topic, partition), rows)
    except CorruptRecordError as err:
        if err.offset is None:
            err.offset = header.base_offset
        raise
    if end != body.end:
        raise corrupt(f"{body.end - end} bytes after the last record", header.base_offset)
    return rows
