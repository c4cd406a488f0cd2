"""Building a record batch in format v2, record by record, for a producer.

Data flow: ``append`` counts a record's exact size and keeps its key and value; ``seal`` encodes all of them at
once, compresses and puts the header in front. A sealed batch never changes: a retry sends the same bytes.

Owned by the producer's accumulator, which holds its lock around ``append`` and gives the builder to the sender for
``seal``. Nothing here locks, waits or reads a clock.

How it is fast: per record, one look-up of its size in a table and one ``list.append``; the encoding proper is left
to :mod:`kafka.record._encode`, which does runs of records at the price of a few C calls. Per 100-byte value, with
aiokafka's C extension at 0.25 µs: ``append`` and ``seal`` 0.36 µs, ``extend`` and ``seal`` 0.2 µs (November 2026).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate, takewhile
from typing import Final

from kafka.codec import CODEC_NONE, Compress, check_level, codec_id, compressor
from kafka.errors import IllegalArgumentError, IllegalStateError
from kafka.record._encode import (
    FIELD_SIZES,
    NO_HEADERS,
    NULL,
    SMALL,
    Headers,
    Stretch,
    delta_width,
    encode_headers,
    encode_run,
    plain_sizes,
)
from kafka.record._varint import VARINT, VARINT_END, encode_varint, varint_size
from kafka.record.header import CONTROL, LOG_APPEND_TIME, TRANSACTIONAL, V2_HEADER_SIZE
from kafka.record.sealed import SealedBatch

#: What ``append`` returns instead of an index when the record does not fit any more.
FULL: Final = -1

_NONE_FITS: Final[list[int]] = []
_INT64_MIN: Final = -(2**63)
_INT64_MAX: Final = 2**63 - 1
#: How many values ``extend`` measures in one go.
_AT_A_TIME: Final = 1024


class BatchBuilder:
    """An open batch of format v2.

    :attr:`size` is exact at any time (before compression). The first record is taken whatever its size: whether a
    single record may exceed the limit is for the caller to decide, with :func:`record_size`.

    >>> batch = BatchBuilder(limit=100)
    >>> batch.append(1700000000000, b"key", b"value"), batch.append(1700000000001, None, b"x" * 10)
    (0, 1)
    >>> batch.append(1700000000001, None, b"x" * 20) == FULL
    True
    >>> batch.size == len(batch.seal().data)
    True
    """

    __slots__ = (  # noqa: RUF023 - in the order of their use
        "count",
        "size",
        "limit",
        "base_timestamp",
        "max_timestamp",
        "_codec",
        "_compress",
        "_parts",
        # Records not yet encoded: consecutive ones, all with keys or all without.
        "_values",
        "_keys",
        "_stretches",
        # What holds for the next record if its timestamp is the last one's and its index below _step.
        "_timestamp",
        "_step",
        "_fixed",
        "_sizes",
        "_fields",
        "_stamp",
        "_width",
        "_greatest_before",
    )

    magic: Final = 2

    count: int
    """Records so far; the next one gets this index."""
    size: int
    """Bytes so far, header included, uncompressed."""
    limit: int
    """The size at which ``append`` says FULL."""
    base_timestamp: int
    max_timestamp: int

    def __init__(self, limit: int, codec: int | str | None = None, level: int | None = None) -> None:
        self.count = 0
        self.size = V2_HEADER_SIZE
        self.limit = limit
        self.base_timestamp = self.max_timestamp = -1
        self._codec = codec_id(codec)
        check_level(self._codec, level)
        self._compress: Compress | None = compressor(self._codec, level) if self._codec else None
        self._parts: list[bytes] | None = []
        self._values: list[bytes] = []
        self._keys: list[bytes] = []
        self._stretches: list[Stretch] = []
        self._timestamp: int | None = None
        self._step = self._fixed = 0
        self._width = 0
        self._sizes = self._fields = _NONE_FITS
        self._greatest_before = -1
        self._stamp = b""

    @classmethod
    def of_records(
        cls,
        records: bytes,
        count: int,
        base_timestamp: int,
        max_timestamp: int,
        limit: int,
        codec: int | str | None = None,
        level: int | None = None,
    ) -> BatchBuilder:
        """Return a builder that already has ``count`` encoded records, with offset deltas from 0 on.

        >>> records = b"\\x0e\\x00\\x00\\x00\\x01\\x02v\\x00"
        >>> BatchBuilder.of_records(records, 1, 1700000000000, 1700000000000, limit=1000).seal().size
        69
        """
        builder = cls(limit, codec, level)
        builder._open_parts().append(records)
        builder.count = count
        builder.size += len(records)
        builder.base_timestamp = base_timestamp
        builder.max_timestamp = max_timestamp
        return builder

    # Filling

    def append(self, timestamp: int, key: bytes | None, value: bytes | None, headers: Headers | None = None) -> int:
        """Add a record; return its index in the batch, or :data:`FULL` and leave the batch as it is.

        The objects must not change afterwards: bytes are kept, not copied.

        >>> BatchBuilder(limit=1000).append(0, b"key", None, [("trace", b"1")])
        0
        """
        # Hot. A small value, alone or with a small key, is counted here; IndexError tells that it is large, or that
        # the records before it are of the other kind, and TypeError that there is none. _append_any does the rest.
        index = self.count
        if timestamp != self._timestamp or index >= self._step:
            self._begin_stretch(timestamp, index)
        if not headers:
            try:
                if key is None:
                    size = self.size + self._sizes[len(value)]  # type: ignore[arg-type]
                    if size > self.limit and index:
                        return self._refuse(index)
                else:
                    fields = self._fields
                    body = self._fixed + fields[len(key)] + fields[len(value)]  # type: ignore[arg-type]
                    size = self.size + body + (1 if body < 64 else 2)
                    if size > self.limit and index:
                        return self._refuse(index)
                    self._keys.append(key)
            except (IndexError, TypeError):
                return self._append_any(key, value, headers)
            self._values.append(value)  # type: ignore[arg-type]
            self.size = size
            self.count = index + 1
            return index
        return self._append_any(key, value, headers)

    def extend(
        self,
        values: Sequence[bytes | None],
        timestamp: int,
        keys: Sequence[bytes | None] | None = None,
        start: int = 0,
    ) -> int:
        """Add records with one timestamp, from ``values[start]`` on, until one does not fit; return how many went in.

        >>> batch = BatchBuilder(limit=90)
        >>> batch.extend([b"0123456789"] * 5, 1700000000000)
        1
        """
        first = self.count
        if keys is not None:
            for key, value in zip(keys[start:], values[start:], strict=True):
                if self.append(timestamp, key, value) == FULL:
                    break
            return self.count - first
        while start < len(values):
            taken = self._extend_plain(values, timestamp, start)
            # Not even one: it is full, or the value is none of the small plain ones.
            if not taken and self.append(timestamp, None, values[start]) == FULL:
                break
            start += taken or 1
        return self.count - first

    def _extend_plain(self, values: Sequence[bytes | None], timestamp: int, start: int) -> int:
        """Take small values until the stretch or the batch ends; return how many."""
        index = self.count
        if timestamp != self._timestamp or index >= self._step:
            self._begin_stretch(timestamp, index)
        if not self._sizes:
            return 0  # the first one decides what kind of run this is
        values = values[start : start + min(self._step - index, _AT_A_TIME)]
        try:
            records = list(map(self._sizes.__getitem__, map(len, values)))  # type: ignore[arg-type]
        except (TypeError, IndexError):
            # A null or a large value among them, which append will take: go up to that.
            values = list(takewhile(lambda value: value is not None and len(value) < SMALL, values))
            records = [self._sizes[len(value)] for value in values]  # type: ignore[arg-type]
        room = self.limit - self.size
        total = sum(records)
        if total > room:
            totals = list(accumulate(records))
            fit = bisect_right(totals, room)
            values = values[:fit]
            total = totals[fit - 1] if fit else 0
        self._values += values  # type: ignore[arg-type]
        self.size += total
        self.count = index + len(values)
        return len(values)

    def _begin_stretch(self, timestamp: int, index: int) -> None:
        """Note what the encoding of the records from this index on has in common."""
        delta = timestamp - self.base_timestamp if index else 0
        if not (_INT64_MIN <= timestamp <= _INT64_MAX and _INT64_MIN <= delta <= _INT64_MAX):
            raise IllegalArgumentError(
                f"timestamp {timestamp} does not fit 64 bits in a batch from {self.base_timestamp}"
            )
        self._greatest_before = self.max_timestamp
        if not index:
            self.base_timestamp = self.max_timestamp = timestamp
        elif timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
        if index >= self._step:
            self._width, self._step = delta_width(index)
        self._stamp = stamp = b"\0" + (VARINT[delta] if 0 <= delta < VARINT_END else encode_varint(delta))
        self._timestamp = timestamp
        fixed = len(stamp) + self._width + 1  # the last one is the number of headers
        if fixed != self._fixed:
            self._fixed = fixed
            if self._sizes:
                self._sizes = plain_sizes(fixed)
        if not self._values:
            self._stretches.clear()
        self._stretches.append((index, stamp, fixed))

    def _refuse(self, index: int) -> int:
        """Undo what a record that does not fit has left behind."""
        if self._stretches[-1][0] == index:
            self._stretches.pop()
            self.max_timestamp = self._greatest_before
            self._timestamp = None
        return FULL

    def _append_any(self, key: bytes | None, value: bytes | None, headers: Headers | None) -> int:
        """Add a record that does not continue the pending ones; the stretch for its timestamp is open."""
        index = self.count
        tail = encode_headers(headers) if headers else NO_HEADERS
        body = self._fixed - 1 + len(tail)
        if key is None:
            key_size = NULL
        else:
            size = len(key)
            key_size = VARINT[size] if size < VARINT_END else encode_varint(size)
            body += size
        if value is None:
            value_size = NULL
        else:
            size = len(value)
            value_size = VARINT[size] if size < VARINT_END else encode_varint(size)
            body += size
        body += len(key_size) + len(value_size)
        length = VARINT[body] if body < VARINT_END else encode_varint(body)
        size = self.size + len(length) + body
        if size > self.limit and index:
            return self._refuse(index)
        if self._values:
            self._encode_pending()
        if value is None or headers or len(value) >= SMALL or len(key or b"") >= SMALL:
            offset = VARINT[index] if index < VARINT_END else encode_varint(index)
            parts = self._parts if self._parts is not None else self._open_parts()
            parts += (length, self._stamp, offset, key_size, key or b"", value_size, value or b"", tail)
        else:
            self._open_parts()
            self._begin_run(key, value)
        self.size = size
        self.count = index + 1
        return index

    def _begin_run(self, key: bytes | None, value: bytes) -> None:
        """Keep the first record of its kind: from now on append takes those of this kind, and no others."""
        self._values.append(value)
        if key is None:
            self._sizes = plain_sizes(self._fixed)
        else:
            self._keys.append(key)
            self._fields = FIELD_SIZES

    def _encode_pending(self) -> None:
        """Encode the records that are only kept so far."""
        if self._values:
            first = self.count - len(self._values)
            self._open_parts().extend(encode_run(first, self._values, self._keys, self._stretches))
            self._values = []
            self._keys = []
            self._sizes = self._fields = _NONE_FITS
            # The last one may go on, or belong to the next record.
            del self._stretches[:-1]

    def _open_parts(self) -> list[bytes]:
        if self._parts is None:
            raise IllegalStateError("the batch is sealed; its bytes do not change any more")
        return self._parts

    # Closing

    def seal(
        self,
        *,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        transactional: bool = False,
        control: bool = False,
        log_append_time: int | None = None,
    ) -> SealedBatch:
        """Finish the batch: compress it, unless that makes it larger, and put the header in front.

        Afterwards the builder is empty and takes no more records. ``log_append_time`` is for brokers.

        >>> batch = BatchBuilder(limit=10_000, codec="gzip")
        >>> batch.extend([b"0123456789" * 10] * 50, 1700000000000)
        50
        >>> sealed = batch.seal()
        >>> sealed.size < sealed.uncompressed_size
        True
        """
        if not self.count:
            raise IllegalStateError("a batch without records cannot be sealed")
        self._encode_pending()
        body = b"".join(self._open_parts())
        self._parts = None
        codec = CODEC_NONE
        uncompressed_size = V2_HEADER_SIZE + len(body)
        if self._compress is not None:
            packed = self._compress(body)
            if len(packed) < len(body):
                body, codec = packed, self._codec
        attributes = (TRANSACTIONAL if transactional else 0) | (CONTROL if control else 0)
        if log_append_time is not None:
            attributes |= LOG_APPEND_TIME
        return SealedBatch(
            body,
            self.count,
            self.base_timestamp,
            self.max_timestamp if log_append_time is None else log_append_time,
            codec=codec,
            attributes=attributes,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            uncompressed_size=uncompressed_size,
        )


def record_size(
    key: bytes | None, value: bytes | None, headers: Headers | None = None, *, index: int = 0, timestamp_delta: int = 0
) -> int:
    """Return how many bytes a record takes within a batch.

    >>> record_size(None, b"hello")
    12
    """
    body = 1 + varint_size(timestamp_delta) + varint_size(index)
    for field in (key, value):
        body += 1 if field is None else varint_size(len(field)) + len(field)
    body += len(encode_headers(headers)) if headers else 1
    return varint_size(body) + body
