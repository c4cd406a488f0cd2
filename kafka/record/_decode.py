"""Decoding of records in format v2 into ConsumerRecords: one loop, no call per record.

Per record with a 100-byte value the loop takes 1.4 µs and a run 0.7, of which 0.3 makes the tuple (November 2026, on
a slow machine; kafka-python 4.7, aiokafka with its C extension 0.75). ``test/unit/record/reference.py`` has the plain
twin; a property test holds the two equal.

What the loop leaves unchecked on the way it makes up for at the end of each record: slices of bytes do not fail
when they are short, but then the record does not end where its length says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from operator import add
from typing import Any, Final, NamedTuple

from kafka.errors import CorruptRecordError
from kafka.record._errors import corrupt
from kafka.record._headers import decode_headers
from kafka.record._runs import SHORTEST, Header, Run, find_even
from kafka.record._uneven import find_uneven
from kafka.record._varint import decode_varint
from kafka.record.consumer_record import NO_HEADERS, ConsumerRecord

#: Length, attributes, timestamp delta, offset delta, key length, value length, number of headers: a byte each.
SMALLEST_RECORD: Final = 7

_new = tuple.__new__


class Origin(NamedTuple):
    """What all records of a batch have in common."""

    topic: str
    partition: int
    base_offset: int
    base_timestamp: int
    append_time: int | None
    """The broker's timestamp, if it stands in place of the records' own."""
    leader_epoch: int


def take_rows(buf: bytes, pos: int, limit: int, take: int, origin: Origin, rows: list[ConsumerRecord]) -> int:
    """Append ``take`` records from ``pos`` on to ``rows``; return the position after them.

    Runs of equal shape go the fast way, the others through the loop, in growing pieces so that searching for runs
    where there are none costs little.

    Raises CorruptRecordError; what has been appended by then is for the caller to remove.
    """
    piece = 32
    while take:
        run = find_run(buf, pos, limit, take)
        if run is not None:
            rows += run_rows(run, origin)
            pos = run.ends[-1]
            take -= run.count
            continue
        piece = min(piece * 2, take)
        pos = decode_rows(buf, pos, limit, piece, origin, rows)
        take -= piece
    return pos


def take_runs(
    buf: bytes, pos: int, limit: int, take: int, origin: Origin, rows: list[ConsumerRecord]
) -> tuple[int, int]:
    """Append records as long as they are equally long, ``take`` at most; return the position and how many."""
    taken = 0
    while take - taken >= SHORTEST and (run := find_even(buf, pos, limit, take - taken)) is not None:
        rows += run_rows(run, origin)
        pos = run.ends[-1]
        taken += run.count
    return pos, taken


def find_run(buf: bytes, pos: int, limit: int, most: int, *, views: bool = False) -> Run | None:
    r"""Return the run of records of one kind that begins at ``pos``, or None where there is none worth it.

    With ``views`` keys and values may be views of ``buf``.

    >>> find_run(b"\x0e\0\0\0\1\2x\0\x0e\0\0\2\1\2x\0", 0, 16, 2) is None
    True
    """
    if most < SHORTEST:
        return None
    return find_even(buf, pos, limit, most, views=views) or find_uneven(buf, pos, limit, most)


def run_rows(
    run: Run, origin: Origin, bases: Sequence[int] | None = None, stamps: Sequence[int] | None = None
) -> Iterator[ConsumerRecord]:
    """Make records of a run; ``bases`` and ``stamps`` are what each one's offset and timestamp count from.

    Without them that is what the origin says.
    """
    count = run.count
    base = origin.base_offset
    offsets = run.offset_deltas
    if bases is not None:
        counted: Iterable[int] = map(add, offsets, bases)
    elif isinstance(offsets, range):
        counted = range(base + offsets.start, base + offsets.stop)
    else:
        counted = map(add, offsets, repeat(base))
    return make_rows(
        origin,
        count,
        counted,
        run.timestamps(origin.base_timestamp) if stamps is None else map(add, run.timestamps(0), stamps),
        _each(run.keys),
        _each(run.values),
        _each(run.key_size),
        _each(run.value_size),
        run.header_rows(),
        _each(run.header_size),
    )


def _each(fields: Any) -> Iterable[Any]:
    """Return what each record has: what is in a list, or the one thing that all have."""
    return fields if isinstance(fields, list) else repeat(fields)


def make_rows(
    origin: Origin,
    count: int,
    offsets: Iterable[int],
    timestamps: Iterable[int],
    keys: Iterable[bytes | None],
    values: Iterable[bytes | None],
    key_sizes: Iterable[int],
    value_sizes: Iterable[int],
    headers: Iterable[list[Header]],
    header_sizes: Iterable[int],
) -> Iterator[ConsumerRecord]:
    """Make ``count`` records of what they have in common and the rest by column, without a bytecode per record."""
    topic, partition, _, _, append_time, leader_epoch = origin
    fields = zip(
        repeat(topic, count),
        repeat(partition),
        offsets,
        timestamps if append_time is None else repeat(append_time),
        repeat(0 if append_time is None else 1),
        keys,
        values,
        repeat(None),
        key_sizes,
        value_sizes,
        headers,
        repeat(leader_epoch),
        header_sizes,
        strict=False,
    )
    return map(_new, repeat(ConsumerRecord), fields)


def decode_rows(  # noqa: C901, PLR0912, PLR0915 - hot: calls and shared branches would cost more than they tidy
    buf: bytes, pos: int, limit: int, take: int, origin: Origin, rows: list[ConsumerRecord]
) -> int:
    """Append ``take`` records from ``pos`` on to ``rows``; return the position after them.

    Raises CorruptRecordError; what has been appended by then is for the caller to remove.
    """
    topic, partition, base_offset, base_timestamp, append_time, leader_epoch = origin
    timestamp_type = 0 if append_time is None else 1
    new, record_type, varint = _new, ConsumerRecord, decode_varint
    append, no_headers = rows.append, NO_HEADERS
    try:
        for _ in range(take):
            length = buf[pos]
            pos += 1
            if length > 127:
                length = length & 127 | buf[pos] << 7
                pos += 1
                if length > 16383:
                    length, pos = varint(buf, pos - 2)
                    length = length << 1 if length >= 0 else -1  # which cannot match below
            start = pos
            pos += 1  # attributes, of which none is defined
            delta = buf[pos]
            pos += 1
            if delta > 127:
                delta = delta & 127 | buf[pos] << 7
                pos += 1
                if delta > 16383:
                    delta, pos = varint(buf, pos - 2)
                    delta = delta << 1 if delta >= 0 else ~(delta << 1)
            timestamp = base_timestamp + (delta >> 1 ^ -(delta & 1))
            delta = buf[pos]
            pos += 1
            if delta > 127:
                delta = delta & 127 | buf[pos] << 7
                pos += 1
                if delta > 16383:
                    delta, pos = varint(buf, pos - 2)
                    delta = delta << 1 if delta >= 0 else -1  # odd, which is refused below
            offset = base_offset + (delta >> 1)
            size = buf[pos]
            pos += 1
            if size == 1:
                key = None
                key_size = -1
            else:
                if size > 127:
                    size = size & 127 | buf[pos] << 7
                    pos += 1
                    if size > 16383:
                        size, pos = varint(buf, pos - 2)
                        size = size << 1 if size >= 0 else ~(size << 1)
                if size & 1:
                    if size != 1:  # which -1 is in any number of bytes
                        raise corrupt(f"a key of length {-(size >> 1) - 1}", base_offset)
                    key = None
                    key_size = -1
                else:
                    key_size = size >> 1
                    key = buf[pos : pos + key_size]
                    pos += key_size
            size = buf[pos]
            pos += 1
            if size == 1:
                value = None
                size = -1
            else:
                if size > 127:
                    size = size & 127 | buf[pos] << 7
                    pos += 1
                    if size > 16383:
                        size, pos = varint(buf, pos - 2)
                        size = size << 1 if size >= 0 else ~(size << 1)
                if size & 1:
                    if size != 1:
                        raise corrupt(f"a value of length {-(size >> 1) - 1}", base_offset)
                    value = None
                    size = -1
                else:
                    size >>= 1
                    value = buf[pos : pos + size]
                    pos += size
            if buf[pos]:
                headers, header_size, pos = decode_headers(buf, pos, limit)
            else:
                headers = no_headers
                header_size = -1
                pos += 1
            if (pos - start) << 1 != length or delta & 1:
                raise corrupt("the record does not end where its length says, or has a negative offset", base_offset)
            append(
                new(
                    record_type,
                    (
                        topic,
                        partition,
                        offset,
                        timestamp if append_time is None else append_time,
                        timestamp_type,
                        key,
                        value,
                        None,
                        key_size,
                        size,
                        headers,
                        leader_epoch,
                        header_size,
                    ),
                )
            )
    except IndexError:
        raise corrupt("the records are cut off", base_offset) from None
    if pos > limit:
        raise corrupt("the records go on after the end of the batch", base_offset)
    return pos


def check_framing(buf: bytes, pos: int, limit: int, count: int, base_offset: int) -> None:
    """Raise unless exactly ``count`` records, by their lengths, fill the bytes up to ``limit``.

    Done before the first records of a batch are taken that will not be decoded in one go, so that a batch which
    claims more or fewer than it has is refused as a whole.
    """
    try:
        for _ in range(count):
            length = buf[pos]
            pos += 1
            if length > 127:
                length = length & 127 | buf[pos] << 7
                pos += 1
                if length > 16383:
                    length, pos = decode_varint(buf, pos - 2)
                    if length < 0:
                        break
                    pos += length
                    continue
            pos += length >> 1
    except (IndexError, CorruptRecordError):
        pos = -1
    if pos != limit:
        raise corrupt(f"the content does not amount to {count} records", base_offset)


def skip_rows(buf: bytes, pos: int, limit: int, count: int, wanted: int) -> tuple[int, int]:
    """Return how many records precede the first with an offset delta of at least ``wanted``, and where that begins.

    >>> skip_rows(b"\\x0c\\0\\0\\0\\1\\1\\0" * 2, 0, 14, 2, 5)
    (2, 14)
    """
    for index in range(count):
        length, start = decode_varint(buf, pos)
        _, at = decode_varint(buf, start + 1)
        delta, _ = decode_varint(buf, at)
        if delta >= wanted:
            return index, pos
        pos = start + length
        if length < SMALLEST_RECORD - 1 or pos > limit:
            raise corrupt(f"a record of length {length}")
    return count, pos
