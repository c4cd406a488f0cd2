"""Finding records by time."""

from __future__ import annotations

from kafka.broker.storage.log import Log
from kafka.broker.storage.segment import Segment
from kafka.broker.storage.validation import QUICK_BYTES, QUICK_RECORDS
from kafka.errors import CorruptRecordError
from kafka.record.batch import decode_batch
from kafka.record.consumer_record import ConsumerRecord
from kafka.record.header import BatchHeader, Buffer, read_header

Found = tuple[int, int, int]
"""Timestamp, offset, leader epoch."""


class HeavyBatch(Exception):  # noqa: N818 - an outcome: to be read elsewhere
    """A batch whose records take too long to read on the event loop."""

    def __init__(self, key: tuple[int, int], data: Buffer, header: BatchHeader) -> None:
        super().__init__(key)
        self.key = key
        self.data = data
        self.header = header


class Reader:
    """Reads the records of batches; large ones must have been read before, in a thread, and stand in ``known``."""

    def __init__(self) -> None:
        self.known: dict[tuple[int, int], list[ConsumerRecord]] = {}

    def rows(self, log: Log, data: Buffer, header: BatchHeader) -> list[ConsumerRecord]:
        """Return the records of a batch; raise HeavyBatch for one that must be read first."""
        key = (id(log), header.base_offset)
        if key in self.known:
            return self.known[key]
        if header.count > QUICK_RECORDS:
            raise HeavyBatch(key, data, header)
        try:
            return decode_batch(data, header, check_crc=False, limit=QUICK_BYTES)
        except CorruptRecordError:
            if not header.codec:
                raise
            raise HeavyBatch(key, data, header) from None  # perhaps only because of the limit


def first_at_or_after(log: Log, timestamp: int, reader: Reader) -> Found | None:
    """Return the first record whose timestamp is at least ``timestamp``."""
    for segment in log.segments:
        if segment.max_timestamp < timestamp:
            continue
        for number in range(segment.find_timestamp(timestamp), len(segment)):
            found = _in_batch(log, segment, number, timestamp, reader)
            if found is not None:
                return found
    return None


def _in_batch(log: Log, segment: Segment, number: int, timestamp: int, reader: Reader) -> Found | None:
    entry = segment.entry(number)
    if entry.last < log.start_offset:
        return None
    data = segment.read(entry.position, entry.end)
    header = read_header(data)
    if header is None or header.max_timestamp < timestamp:
        return None
    # Markers are found too: for Kafka they are records like any other here.
    for row in reader.rows(log, data, header):
        at = -1 if row.timestamp is None else row.timestamp
        if at >= timestamp and row.offset >= log.start_offset:
            return at, row.offset, header.leader_epoch
    return None


def greatest_timestamp(log: Log, reader: Reader) -> Found | None:
    """Return the first record that has the greatest timestamp of all, be it -1 since none has any."""
    greatest = max((segment.max_timestamp for segment in log.segments), default=-1)
    return first_at_or_after(log, greatest, reader)


def offsets_before(log: Log, timestamp: int, count: int) -> list[int]:
    """Return first offsets of segments begun before a time, newest first, as version 0 of ListOffsets has them.

    -1 asks for the end of the log as well, -2 for its start.
    """
    bases = [max(segment.base_offset, log.start_offset) for segment in log.segments] or [log.start_offset]
    if timestamp == -2:
        return [log.start_offset][:count]
    if timestamp == -1:
        offsets = bases + ([log.end_offset] if not log.segments or len(log.segments[-1]) else [])
    else:
        offsets = [
            max(segment.base_offset, log.start_offset) for segment in log.segments if segment.created_ms <= timestamp
        ]
    return sorted(set(offsets), reverse=True)[:count]
