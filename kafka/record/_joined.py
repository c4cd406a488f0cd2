"""Small batches that follow one another, decoded as if they were one.

A producer's batch has 16 KB by default, that is sixteen records of a kilobyte. To set up for a run of records takes
as long as to decode a dozen one by one, so with such batches runs gain nothing. Put together, the records of many
batches make long runs: they differ only in what their offsets and timestamps count from. 16 records of 1 KB a batch:
3.1 µs per record alone, 1.0 joined (November 2026).

Nothing is decided here about damage: whatever is not as it must be, the batches are left to be decoded one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import accumulate, chain, repeat
from typing import Final, NamedTuple

from kafka.errors import CorruptRecordError, KafkaError
from kafka.record._decode import Origin, decode_rows, find_run, run_rows
from kafka.record.batch import Body
from kafka.record.consumer_record import ConsumerRecord
from kafka.record.header import BatchHeader, Buffer, read_header

__all__ = ["Part", "decode_joined", "goes_with", "join"]

#: With more records, numbers within the batch take two bytes from the middle on, where a run would end.
_MOST_IN_BATCH: Final = 64
#: How much is decoded ahead of what was asked for, at most.
_MOST_RECORDS: Final = 512
_MOST_BYTES: Final = 1 << 20
#: How often a run may end early before it is given up.
_PATIENCE: Final = 3
_new = tuple.__new__


class Part(NamedTuple):
    """Records of one batch, so many of them in ``data[start:end]``."""

    data: bytes
    start: int
    end: int
    records: int
    base_offset: int
    base_timestamp: int


def goes_with(header: BatchHeader, before: BatchHeader | None = None) -> bool:
    """Whether a batch may be joined with others, and with the one before it.

    >>> from kafka.record.header import BatchHeader
    >>> first = BatchHeader(0, 5, 0, 3, 2, 0, 0, 9, 100, 100, -1, -1, -1, 10)
    >>> goes_with(first), goes_with(first, first), goes_with(first._replace(base_offset=15), first)
    (True, False, True)
    """
    if not (header.magic == 2 and 0 < header.count <= _MOST_IN_BATCH and not header.timestamp_type):
        return False
    if header.is_control:
        return False
    return before is None or (header.base_offset > before.last_offset and header.leader_epoch == before.leader_epoch)


def join(
    buffer: Buffer, first: BatchHeader, body: Body, wanted: int, unpack: Callable[[BatchHeader], Body], origin: Origin
) -> tuple[list[ConsumerRecord] | None, BatchHeader]:
    """Decode an open batch with those behind it, about as many as have so many records together.

    Returns their records and the header of the last one. None in place of the records says that nothing came of it, and
    then it is the same header if there was none to join the batch with. ``origin`` is the first one's.
    """
    parts = [Part(*body, first.count, first.base_offset, first.base_timestamp)]
    count, size, last = first.count, body.end - body.start, first
    wanted = min(max(wanted, _MOST_RECORDS >> 2), _MOST_RECORDS)
    while count < wanted and size < _MOST_BYTES:
        try:
            header = read_header(buffer, last.end)
            if header is None or not goes_with(header, last):
                break
            body = unpack(header)
        except KafkaError:  # damage, or a codec that is not there: to be told when its turn has come
            break
        last = header
        parts.append(Part(*body, last.count, last.base_offset, last.base_timestamp))
        count += last.count
        size += body.end - body.start
    if len(parts) > 1:
        with suppress(CorruptRecordError):  # which one it is in, and what may be taken before, is seen one by one
            return decode_joined(parts, origin), last
    return None, last


def decode_joined(parts: Sequence[Part], origin: Origin) -> list[ConsumerRecord] | None:
    """Return the records of some batches; None where that is no gain, or not all is as it must be.

    ``origin`` says what all have in common; what it says of offsets and timestamps does not count. Raises
    CorruptRecordError where the loop for single records does.
    """
    data = b"".join([memoryview(part.data)[part.start : part.end] for part in parts])
    counts = [part.records for part in parts]
    bases = list(chain.from_iterable(map(repeat, [part.base_offset for part in parts], counts)))
    stamps = list(chain.from_iterable(map(repeat, [part.base_timestamp for part in parts], counts)))
    # Each batch ends where one of its records does: after so many of them, and at that place.
    borders = dict(zip(accumulate(counts), accumulate([part.end - part.start for part in parts]), strict=True))
    rows: list[ConsumerRecord] = []
    position, patience = 0, _PATIENCE
    while len(rows) < len(bases):
        first = len(rows)
        run = find_run(data, position, len(data), len(bases) - first)
        if run is not None:
            behind = first + run.count
            rows += run_rows(run, origin, bases[first:behind], stamps[first:behind])
            if any(run.ends[at - first - 1] != place for at, place in borders.items() if first < at <= behind):
                return None
            position = run.ends[-1]
            continue
        patience -= 1
        if not first or not patience:
            return None
        # Up to the end of the batch, for the next run to begin there.
        behind = next(at for at in borders if at > first)
        position = _decode_one_by_one(data, position, origin, bases[first:behind], stamps[first:behind], rows)
        if position != borders[behind]:
            return None
    return rows


def _decode_one_by_one(
    data: bytes, position: int, origin: Origin, bases: list[int], stamps: list[int], rows: list[ConsumerRecord]
) -> int:
    found: list[ConsumerRecord] = []
    plain = origin._replace(base_offset=0, base_timestamp=0)
    position = decode_rows(data, position, len(data), len(bases), plain, found)
    for row, base, stamp in zip(found, bases, stamps, strict=True):
        timestamp = row[3] + stamp  # type: ignore[operator] # only in format v0 there is none
        rows.append(_new(ConsumerRecord, (*row[:2], row[2] + base, timestamp, *row[4:])))
    return position
