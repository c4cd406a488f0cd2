"""A finished batch of format v2: what a sender writes, and writes again when it has to."""

from __future__ import annotations

from typing import Final

from kafka.codec import CODEC_NONE
from kafka.errors import IllegalArgumentError
from kafka.record._crc32c import crc32c
from kafka.record.header import LOG_OVERHEAD, TRANSACTIONAL, V2_CHECKED, V2_HEADER, V2_HEADER_SIZE

_INT32_MAX: Final = 2**31 - 1


class SealedBatch:
    """The bytes of a finished batch, as they go over the wire, and the facts a sender needs about them.

    >>> from kafka.record.builder import BatchBuilder
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

        >>> from kafka.record.builder import BatchBuilder
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

        >>> from kafka.record.builder import BatchBuilder
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
