"""Splitting a batch that the broker found too large (KIP-126)."""

from __future__ import annotations

from kafka.record.builder import FULL, BatchBuilder
from kafka.record.header import read_header
from kafka.record.legacy_builder import LegacyBuilder, SealedMessages
from kafka.record.rows import decode_batch
from kafka.record.sealed import SealedBatch


def split_batch(
    sealed: SealedBatch | SealedMessages, limit: int, codec: int | str | None = None, level: int | None = None
) -> list[BatchBuilder | LegacyBuilder]:
    """Return the same records, in order, in unsealed batches of at most ``limit`` bytes before compression.

    A batch of one record cannot be split: it comes back as one. The caller seals them with sequence numbers that follow
    each other, and knows from each one's ``count`` whose futures are whose.

    >>> whole = BatchBuilder(limit=10_000)
    >>> whole.extend([b"0123456789" * 10] * 10, 1700000000000)
    10
    >>> [part.count for part in split_batch(whole.seal(), limit=500)]
    [4, 4, 2]
    """
    data = sealed.data
    parts: list[BatchBuilder | LegacyBuilder] = []
    position = 0
    while (header := read_header(data, position)) is not None:
        position = header.end
        for row in decode_batch(data, header, check_crc=False):
            timestamp = -1 if row.timestamp is None else row.timestamp
            if not parts or parts[-1].append(timestamp, row.key, row.value, row.headers) == FULL:
                parts.append(
                    BatchBuilder(limit, codec, level)
                    if header.magic > 1
                    else LegacyBuilder(header.magic, limit, codec, level)
                )
                parts[-1].append(timestamp, row.key, row.value, row.headers)
    return parts
