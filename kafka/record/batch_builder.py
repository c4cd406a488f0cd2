"""Building a record batch in format v2, record by record, for a producer.

Data flow: ``append`` encodes a record if it fits; ``seal`` joins the records, compresses them and puts the header in
front. A sealed batch never changes: a retry sends the same bytes.

The producer's accumulator owns an open batch. It holds its lock around ``append`` and gives the builder to the sender
for ``seal``. Nothing here locks, waits or reads a clock.

Ctrl-C may raise an exception between any two instructions. A record is in the batch or it is not, because one
instruction adds it to the list of records, and ``size`` and ``max_timestamp`` are raised before: after an interrupted
``append`` they may count a record that is not there, and never the other way round.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kafka.codec import (
    CODEC_GZIP,
    CODEC_LZ4,
    CODEC_NONE,
    CODEC_SNAPPY,
    CODEC_ZSTD,
    Compress,
    check_level,
    codec_id,
    compressor,
)
from kafka.errors import IllegalArgumentError, IllegalStateError
from kafka.record.crc32c import fastest
from kafka.record.header import (
    CONTROL,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    TRANSACTIONAL,
    V2_CHECKED,
    V2_HEADER,
    V2_HEADER_SIZE,
)
from kafka.record.varint import VARINT, VARINT_END, encode_varint, varint_size

__all__ = ["FULL", "BatchBuilder", "Data", "Headers", "SealedBatch", "record_size"]

Headers = Sequence[tuple[str, "bytes | None"]]
#: Encoded records, which cannot be changed.
Data = bytes | memoryview

#: What ``append`` returns instead of an index when the record does not fit any more.
FULL: Final = -1

#: From this size on, in bytes, compressing takes more than a millisecond; with a level eight times as long, maybe.
_SLOW_FROM: Final = {
    CODEC_NONE: 1 << 62,
    CODEC_GZIP: 1 << 15,
    CODEC_SNAPPY: 1 << 18,
    CODEC_LZ4: 1 << 18,
    CODEC_ZSTD: 1 << 16,
}

_INT32_MAX: Final = 2**31 - 1
_INT64_MIN: Final = -(2**63)
_INT64_MAX: Final = 2**63 - 1

_NULL: Final = encode_varint(-1)
_NO_HEADERS: Final = encode_varint(0)

# Encodings by number. The tables end where a number takes three bytes: an IndexError says that it is for encode_varint.
_VARINTS: Final = VARINT[:VARINT_END]
#: A record's length, and the attributes behind it.
_LENGTHS: Final = [encoded + b"\0" for encoded in _VARINTS]
#: A value's length, and the null key in front of it.
_NULL_KEYS: Final = [_NULL + encoded for encoded in _VARINTS]
#: The size of a key or value together with its length, which takes a second byte from 64 on.
_FIELD_SIZES: Final = [*range(1, 65), *range(66, VARINT_END + 2)]


class SealedBatch:
    """The bytes of a finished batch, as they go over the wire, and the facts a sender needs about them.

    >>> from kafka.record.batch_builder import BatchBuilder
    >>> batch = BatchBuilder(limit=1000)
    >>> batch.append(0, b"k", b"v")
    0
    >>> sealed = batch.seal(producer_id=7, producer_epoch=0, base_sequence=42)
    >>> len(sealed.data) == sealed.size, sealed.count, sealed.base_sequence
    (True, 1, 42)
    """

    __slots__ = (
        "_attributes",
        "base_sequence",
        "base_timestamp",
        "body",
        "codec",
        "count",
        "header",
        "max_timestamp",
        "producer_epoch",
        "producer_id",
        "size",
        "uncompressed_size",
    )

    header: bytes
    """The first 61 bytes."""
    body: bytes | memoryview
    """The records, compressed or not; immutable."""
    size: int
    count: int
    codec: int
    """0 where the compressed form was not smaller and the batch goes out as it is."""
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    uncompressed_size: int
    """Bytes before compression, header included; with :attr:`size` this gives the compression ratio."""

    def __init__(
        self,
        body: bytes | memoryview,
        count: int,
        base_timestamp: int,
        max_timestamp: int,
        *,
        codec: int = CODEC_NONE,
        attributes: int = 0,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        uncompressed_size: int | None = None,
    ) -> None:
        self.body = body
        self.count = count
        self.codec = codec
        self.base_timestamp = base_timestamp
        self.max_timestamp = max_timestamp
        self.size = V2_HEADER_SIZE + len(body)
        self.uncompressed_size = self.size if uncompressed_size is None else uncompressed_size
        self._attributes = attributes | codec
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        if self.size > _INT32_MAX:
            raise IllegalArgumentError(f"a batch of {self.size} bytes does not fit its 31-bit length")
        checked = (
            self._attributes,
            count - 1,
            base_timestamp,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            count,
        )
        checksum = fastest()
        crc = checksum(body, checksum(V2_CHECKED.pack(*checked), 0))
        # Base offset 0 and leader epoch -1 are for the broker to fill in; the checksum leaves them out.
        self.header = V2_HEADER.pack(0, self.size - LOG_OVERHEAD, -1, 2, crc, *checked)

    @property
    def data(self) -> bytes:
        """Header and body in one piece (a copy; a sender that writes two buffers needs none)."""
        return self.header + self.body

    @property
    def is_transactional(self) -> bool:
        """Whether it was sealed as part of a transaction."""
        return bool(self._attributes & TRANSACTIONAL)

    def forget(self) -> None:
        """Release the records, after the last attempt to send them; the facts about them stay.

        >>> from kafka.record.batch_builder import BatchBuilder
        >>> batch = BatchBuilder(limit=1000)
        >>> batch.append(0, None, b"v")
        0
        >>> sealed = batch.seal()
        >>> sealed.forget()
        >>> len(sealed.body), sealed.count, sealed.size
        (0, 1, 69)
        """
        self.body = b""

    def with_producer(self, producer_id: int, producer_epoch: int, base_sequence: int) -> SealedBatch:
        """Return the same records under another producer id, epoch and sequence (after KIP-360's epoch bump).

        Only for batches that the broker is known not to have: a plain retry sends the same object.

        >>> from kafka.record.batch_builder import BatchBuilder
        >>> batch = BatchBuilder(limit=1000)
        >>> batch.append(0, None, b"v")
        0
        >>> batch.seal(producer_id=7, producer_epoch=0, base_sequence=5).with_producer(7, 1, 0).producer_epoch
        1
        """
        return SealedBatch(
            self.body,
            self.count,
            self.base_timestamp,
            self.max_timestamp,
            codec=self.codec,
            attributes=self._attributes,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            uncompressed_size=self.uncompressed_size,
        )


class BatchBuilder:
    """An open batch of format v2.

    :attr:`size` is exact (before compression). The first record is taken whatever its size: whether a single record may
    exceed the limit is for the caller to decide, with ``record_size()``.

    >>> batch = BatchBuilder(limit=100)
    >>> batch.append(1700000000000, b"key", b"value"), batch.append(1700000000001, None, b"x" * 10)
    (0, 1)
    >>> batch.append(1700000000001, None, b"x" * 20) == FULL
    True
    >>> batch.count, batch.size, batch.size == len(batch.seal().data)
    (2, 93, True)
    """

    __slots__ = (
        "_codec",
        "_compress",
        "_count",
        "_encoded",
        "_records",
        "_slow_from",
        "base_timestamp",
        "limit",
        "max_timestamp",
        "size",
    )

    magic: Final = 2

    limit: int
    """The size at which ``append`` returns FULL."""
    size: int
    """Bytes so far, header included, uncompressed."""
    base_timestamp: int
    """The first record's timestamp, -1 without records."""
    max_timestamp: int
    """The greatest timestamp so far, -1 without records."""

    def __init__(self, limit: int, codec: int | str | None = None, level: int | None = None) -> None:
        self.limit = limit
        self.size = V2_HEADER_SIZE
        self.base_timestamp = -1
        self.max_timestamp = -1
        self._codec = CODEC_NONE if codec is None else codec_id(codec)
        if level is not None:
            check_level(self._codec, level)
        self._compress: Compress | None = compressor(self._codec, level) if self._codec else None
        self._slow_from = _SLOW_FROM[self._codec] if level is None else _SLOW_FROM[self._codec] >> 3
        self._records: list[bytes] | None = []
        """While the batch is open."""
        self._encoded: Data | None = None
        self._count = 0

    @classmethod
    def of_records(
        cls,
        records: Data,
        count: int,
        base_timestamp: int,
        max_timestamp: int,
        limit: int,
        codec: int | str | None = None,
        level: int | None = None,
    ) -> BatchBuilder:
        """Return a builder of ``count`` encoded records, with offset deltas from 0 on, that takes no others.

        >>> records = b"\\x0e\\x00\\x00\\x00\\x01\\x02v\\x00"
        >>> BatchBuilder.of_records(records, 1, 1700000000000, 1700000000000, limit=1000).seal().size
        69
        """
        builder = cls(limit, codec, level)
        builder.size += len(records)
        builder.base_timestamp = base_timestamp
        builder.max_timestamp = max_timestamp
        builder._records = None
        builder._encoded = records
        builder._count = count
        return builder

    @property
    def count(self) -> int:
        """Records so far; the next one gets this index."""
        records = self._records
        return self._count if records is None else len(records)

    @property
    def is_slow(self) -> bool:
        """Whether to compress it may take more than a millisecond."""
        return self.size > self._slow_from

    def compress(self) -> bytes:
        """Return the compressed records for `seal`, when no other is added; safe from any thread."""
        records, body = self._records, self._encoded
        if records:
            body = b"".join(records)
        if body is None or self._compress is None:
            raise IllegalStateError("a batch that is sealed, or has no codec, cannot be compressed")
        return self._compress(bytes(body))

    def append(
        self, timestamp: int, key: bytes | None, value: bytes | None, headers: Headers | bytes | None = None
    ) -> int:
        """Add a record; return its index in the batch, or ``FULL`` and leave the batch as it is.

        Headers may be encoded already (`encode_headers`), for many records that have the same.

        >>> BatchBuilder(limit=1000).append(0, b"key", None, [("trace", b"1")])
        0
        """
        # Hot. A try costs nothing where nothing is raised, so what is rare is found by its exception: a sealed batch
        # and a null value by TypeError, numbers that take three bytes by IndexError.
        records = self._records
        try:
            index = len(records)  # type: ignore[arg-type]
            if index:
                delta = timestamp - self.base_timestamp
                stamp = _VARINTS[delta] if 0 <= delta < VARINT_END else self._encode_delta(timestamp)
            else:
                stamp = self._begin(timestamp)
            offset = _VARINTS[index]
            size = len(value)  # type: ignore[arg-type]
            body = (
                len(stamp) + len(offset) + _FIELD_SIZES[size] + 2
            )  # the attributes, and the tail if there are no headers
            if headers:
                tail = _tail(headers)
                body += len(tail) - 1
            else:
                tail = b"\0"
            if key is None:
                record = b"".join((_LENGTHS[body + 1], stamp, offset, _NULL_KEYS[size], value, tail))  # type: ignore[arg-type]
            else:
                keyed = len(key)
                length = _LENGTHS[body + _FIELD_SIZES[keyed]]
                record = b"".join((length, stamp, offset, _VARINTS[keyed], key, _VARINTS[size], value, tail))  # type: ignore[arg-type]
        except (IndexError, TypeError):
            record = self._encode_any(timestamp, key, value, headers)
            index = self.count
        size = self.size + len(record)
        if size > self.limit and index:
            return FULL
        self.size = size
        if timestamp > self.max_timestamp:  # noqa: PLR1730 - max() takes three times as long
            self.max_timestamp = timestamp
        records.append(record)  # type: ignore[union-attr]
        return index

    def extend(
        self,
        values: Sequence[bytes | None],
        timestamp: int,
        keys: Sequence[bytes | None] | None = None,
        start: int = 0,
        headers: bytes | None = None,
    ) -> int:
        """Add records with one timestamp, from ``values[start]`` on, until one does not fit; return how many went in.

        All of them get the `headers`, which are encoded already.

        >>> batch = BatchBuilder(limit=90)
        >>> batch.extend([b"0123456789"] * 5, 1700000000000)
        1
        """
        first = self.count
        while start < len(values):
            key = None if keys is None else keys[start]
            if self.append(timestamp, key, values[start], headers) == FULL:
                break
            start += 1
            if keys is None:
                start += self._extend_plain(values, timestamp, start, headers or _NO_HEADERS)
        return self.count - first

    def _extend_plain(self, values: Sequence[bytes | None], timestamp: int, start: int, tail: bytes) -> int:
        """Add values like the last one; return how many. Other values (null, large) are left to ``append``."""
        # `append` in a loop, with what does not change in local variables: two thirds of its time.
        records = self._records
        delta = timestamp - self.base_timestamp
        if records is None or not 0 <= delta < VARINT_END:
            return 0
        first = index = len(records)
        limit, total = self.limit, self.size
        stamp = _VARINTS[delta]
        fixed = len(stamp) + len(tail) + 2  # attributes, null key
        try:
            for at in range(start, len(values)):
                value = values[at]
                offset = _VARINTS[index]
                size = len(value)  # type: ignore[arg-type]
                length = _LENGTHS[fixed + len(offset) + _FIELD_SIZES[size]]
                record = b"".join((length, stamp, offset, _NULL_KEYS[size], value, tail))  # type: ignore[arg-type]
                total += len(record)
                if total > limit:
                    break
                self.size = total
                records.append(record)
                index += 1
        except (IndexError, TypeError):
            pass
        return index - first

    def _begin(self, timestamp: int) -> bytes:
        """Note the first record's timestamp; return its delta, encoded."""
        if not _INT64_MIN <= timestamp <= _INT64_MAX:
            raise IllegalArgumentError(f"timestamp {timestamp} does not fit 64 bits")
        self.base_timestamp = self.max_timestamp = timestamp
        return _VARINTS[0]

    def _encode_delta(self, timestamp: int) -> bytes:
        delta = timestamp - self.base_timestamp
        if not (_INT64_MIN <= timestamp <= _INT64_MAX and _INT64_MIN <= delta <= _INT64_MAX):
            raise IllegalArgumentError(
                f"timestamp {timestamp} does not fit 64 bits in a batch that begins at {self.base_timestamp}"
            )
        return encode_varint(delta)

    def _encode_any(
        self, timestamp: int, key: bytes | None, value: bytes | None, headers: Headers | bytes | None
    ) -> bytes:
        if self._records is None:
            raise IllegalStateError("the batch is sealed; its bytes do not change any more")
        index = self.count
        stamp = self._encode_delta(timestamp) if index else self._begin(timestamp)
        return _encode_record(stamp, encode_varint(index), key, value, headers)

    def forget(self) -> None:
        """Release the records of a batch that is not sent; their number stays.

        >>> batch = BatchBuilder(limit=1000)
        >>> batch.append(0, None, b"v")
        0
        >>> batch.forget()
        >>> batch.count
        1
        """
        self._count, self._records, self._encoded = self.count, None, None

    def seal(
        self,
        *,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        transactional: bool = False,
        control: bool = False,
        log_append_time: int | None = None,
        compressed: bytes | None = None,
    ) -> SealedBatch:
        """Finish the batch: compress it, unless that makes it larger, and put the header in front.

        Afterwards the builder is empty and takes no more records. ``log_append_time`` is for brokers; ``compressed`` is
        what `compress` has returned, if it was called.

        >>> batch = BatchBuilder(limit=10_000, codec="gzip")
        >>> batch.extend([b"0123456789" * 10] * 50, 1700000000000)
        50
        >>> sealed = batch.seal()
        >>> sealed.size < sealed.uncompressed_size
        True
        """
        count, body, records = self._count, self._encoded, self._records
        if records:
            count, body = len(records), b"".join(records)
        if body is None:
            raise IllegalStateError("a batch without records, or a sealed one, cannot be sealed")
        codec = CODEC_NONE
        uncompressed_size = V2_HEADER_SIZE + len(body)
        if self._compress is not None:
            packed = self._compress(bytes(body)) if compressed is None else compressed
            if len(packed) < len(body):
                body, codec = packed, self._codec
        attributes = (TRANSACTIONAL if transactional else 0) | (CONTROL if control else 0)
        if log_append_time is not None:
            attributes |= LOG_APPEND_TIME
        sealed = SealedBatch(
            body,
            count,
            self.base_timestamp,
            self.max_timestamp if log_append_time is None else log_append_time,
            codec=codec,
            attributes=attributes,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            uncompressed_size=uncompressed_size,
        )
        self._count, self.size = count, uncompressed_size
        self._encoded = self._records = None
        return sealed


def _encode_record(
    stamp: bytes, offset: bytes, key: bytes | None, value: bytes | None, headers: Headers | bytes | None
) -> bytes:
    pieces = [stamp, offset]
    for field in (key, value):
        if field is None:
            pieces.append(_NULL)
        else:
            size = len(field)
            pieces += (_VARINTS[size] if size < VARINT_END else encode_varint(size), field)
    pieces.append(_tail(headers) if headers else _NO_HEADERS)
    size = sum(map(len, pieces)) + 1
    return b"".join((_LENGTHS[size] if size < VARINT_END else encode_varint(size) + b"\0", *pieces))


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


def _tail(headers: Headers | bytes) -> bytes:
    return headers if isinstance(headers, bytes) else encode_headers(headers)


# Names of headers repeat: their encodings, length first.
_names: dict[str, bytes] = {}
_MOST_NAMES: Final = 1024


def encode_headers(headers: Headers) -> bytes:
    r"""Encode a record's headers, their number first.

    >>> encode_headers([("a", b"1"), ("b", None)])
    b'\x04\x02a\x021\x02b\x01'
    """
    names = _names
    pieces = [encode_varint(len(headers))]
    for name, value in headers:
        pieces.append(names.get(name) or _encode_name(name))
        if value is None:
            pieces.append(_NULL)
        else:
            size = len(value)
            pieces += (_VARINTS[size] if size < VARINT_END else encode_varint(size), value)
    return b"".join(pieces)


def _encode_name(name: str) -> bytes:
    encoded = name.encode()
    encoded = encode_varint(len(encoded)) + encoded
    if len(_names) >= _MOST_NAMES:
        _names.clear()
    if len(encoded) <= 100:
        _names[name] = encoded
    return encoded
