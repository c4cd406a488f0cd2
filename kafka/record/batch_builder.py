"""Building a record batch in format v2, record by record, for a producer.

Data flow: ``append`` keeps a record's key and value if they fit; ``seal`` encodes all of them at once, compresses and
puts the header in front. A sealed batch never changes: a retry sends the same bytes. How the records are kept, and
found to fit, is said in :mod:`kafka.record._filling`.

Owned by the producer's accumulator, which holds its lock around ``append`` and gives the builder to the sender for
``seal``. Nothing here locks, waits or reads a clock.
"""

from __future__ import annotations

from typing import Final

from kafka.codec import CODEC_NONE, Compress, check_level, codec_id, compressor
from kafka.errors import IllegalArgumentError, IllegalStateError
from kafka.record._crc32c import crc32c
from kafka.record._encode import Data, Headers, record_size
from kafka.record._filling import FULL, Filling, Segment
from kafka.record.header import (
    CONTROL,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    TRANSACTIONAL,
    V2_CHECKED,
    V2_HEADER,
    V2_HEADER_SIZE,
)

__all__ = ["FULL", "BatchBuilder", "Data", "Headers", "SealedBatch", "record_size"]

_INT32_MAX: Final = 2**31 - 1


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
    """The records, compressed or not; nobody can change them."""
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
        crc = crc32c(body, crc32c(V2_CHECKED.pack(*checked)))
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
        """Let the records go, once nobody will send them any more; what is known about them stays.

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


class BatchBuilder(Filling):
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

    __slots__ = ("_codec", "_compress")

    magic: Final = 2

    def __init__(self, limit: int, codec: int | str | None = None, level: int | None = None) -> None:
        super().__init__(limit)
        self._codec = codec_id(codec)
        check_level(self._codec, level)
        self._compress: Compress | None = compressor(self._codec, level) if self._codec else None

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
        """Return a builder that already has ``count`` encoded records, with offset deltas from 0 on.

        >>> records = b"\\x0e\\x00\\x00\\x00\\x01\\x02v\\x00"
        >>> BatchBuilder.of_records(records, 1, 1700000000000, 1700000000000, limit=1000).seal().size
        69
        """
        builder = cls(limit, codec, level)
        builder._segments = [Segment(count, len(records), records)]
        builder._base = count
        builder.base_timestamp = base_timestamp
        builder._greatest = max_timestamp
        return builder

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
        count = self.count
        if self._segments is None or not count:
            raise IllegalStateError("a batch without records, or a sealed one, cannot be sealed")
        greatest = self.max_timestamp
        self._close_run()
        body: Data = (
            self._segments[0].data if len(self._segments) == 1 else b"".join([one.data for one in self._segments])
        )
        codec = CODEC_NONE
        total = len(body)
        if self._compress is not None:
            packed = self._compress(bytes(body))
            if len(packed) < total:
                body, codec = packed, self._codec
        attributes = (TRANSACTIONAL if transactional else 0) | (CONTROL if control else 0)
        if log_append_time is not None:
            attributes |= LOG_APPEND_TIME
        sealed = SealedBatch(
            body,
            count,
            self.base_timestamp,
            greatest if log_append_time is None else log_append_time,
            codec=codec,
            attributes=attributes,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            uncompressed_size=V2_HEADER_SIZE + total,
        )
        self._counted = total, 0
        self._timestamp = self._segments = None
        return sealed
