"""What the records of a case are: the same for every library, and other ones in each round.

A kind such as ``mix-headers``, ``json-zstd`` or ``mix-x20`` is a shape of traffic.Content with one record per
millisecond, cut into batches of 16 KiB, or of so many records. ``-burst`` gives a hundred records each millisecond,
``-nokeys`` leaves the keys out.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from traffic import BATCH_BYTES, Content, Record

NOW_MS = 1_700_000_000_000
CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
_HEADER = 61  # bytes of a batch in front of its records
_RECORDS = 2000

Row = tuple[int, "bytes | None", bytes, list[tuple[str, bytes]]]


@dataclass(frozen=True)
class Batches:
    """The records of some batches."""

    rows: list[list[Row]]
    """By batch: timestamp, key, value and headers of each record."""
    codec: int
    limit: int

    @property
    def count(self) -> int:
        """Records in all."""
        return sum(map(len, self.rows))

    @property
    def size(self) -> int:
        """Bytes of keys and values."""
        return sum(len(key or b"") + len(value) for batch in self.rows for _, key, value, _ in batch)

    def expected(self) -> list[tuple[int, bytes | None, bytes, list[tuple[str, bytes]]]]:
        """Offset, key, value and headers of each record when read back."""
        flat = [row[1:] for batch in self.rows for row in batch]
        return [(offset, *row) for offset, row in enumerate(flat)]

    def fetched(self, batches: list[bytes]) -> bytes:
        """The encoded batches in one buffer, with the base offsets that a broker would have given."""
        parts, offset = [], 0
        for batch, rows in zip(batches, self.rows, strict=True):
            parts.append(struct.pack(">q", offset) + batch[8:])
            offset += len(rows)
        return b"".join(parts)


def content(kind: str, seed: int, records: int = _RECORDS) -> Batches:
    """The records of a kind, as many as asked for."""
    shape, *traits = kind.split("-")
    found = Content(f"{shape}-headers" if "headers" in traits else shape, seed).records(records)
    per_batch = next((int(trait[1:]) for trait in traits if trait[0] == "x"), 0)
    limit = 1 << 24 if per_batch else BATCH_BYTES
    per_ms = 100 if "burst" in traits else 1
    rows: list[list[Row]] = []
    room = 0
    for index, sent in enumerate(found):
        record = sent._replace(key=None) if "nokeys" in traits else sent
        timestamp = NOW_MS + index // per_ms
        size = _encoded_size(record, timestamp - rows[-1][0][0], len(rows[-1])) if rows else 0
        if not rows or size > room or (per_batch and len(rows[-1]) == per_batch):
            rows.append([])
            size = _encoded_size(record, 0, 0)
            room = limit - _HEADER
        room -= size
        rows[-1].append((timestamp, record.key, record.value, record.headers or []))
    codec = next((number for name, number in CODECS.items() if name in traits), 0)
    return Batches(rows, codec, limit)


def _encoded_size(record: Record, delta: int, index: int) -> int:
    """Bytes of a record in a batch, so that each library gets the same batches."""
    size = 1 + _varint(delta) + _varint(index) + _varint(len(record.headers or ()))
    for field in (record.key, record.value, *(part for pair in record.headers or () for part in pair)):
        size += 1 if field is None else _varint(len(field)) + len(field)
    return _varint(size) + size


def _varint(number: int) -> int:
    return (number.bit_length() + 7) // 7
