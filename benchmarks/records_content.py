"""What the records of a case are: the same for every library."""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass

PER_BATCH = 500
NOW_MS = 1_700_000_000_000
SAME_TIME = 100  # consecutive records with one timestamp: what a producer at 100,000/s sees
HEADERS = [("trace-id", b"0af7651916cd43dd"), ("source", b"billing"), ("attempt", b"1")]
CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


@dataclass(frozen=True)
class Content:
    """The records of one batch."""

    values: list[bytes]
    keys: list[bytes] | None
    headers: list[tuple[str, bytes]]
    codec: int

    @property
    def size(self) -> int:
        """Bytes of keys and values."""
        return sum(map(len, self.values)) + sum(map(len, self.keys or ()))

    def timestamps(self) -> list[int]:
        """One for each record."""
        return [NOW_MS + index // SAME_TIME for index in range(len(self.values))]

    def expected(self) -> list[tuple[int, bytes | None, bytes, list[tuple[str, bytes]]]]:
        """Offset, key, value and headers of each record when read back."""
        keys = self.keys or [None] * len(self.values)
        return [(at, key, value, self.headers) for at, (key, value) in enumerate(zip(keys, self.values, strict=True))]

    def fetched(self, batch: bytes, count: int) -> bytes:
        """The batch so often, with the base offsets that a broker would have given."""
        return b"".join(struct.pack(">q", at * len(self.values)) + batch[8:] for at in range(count))


def content(kind: str, per_batch: int = PER_BATCH) -> Content:
    """The records of a kind such as 100B-key-headers or 20-300B-lz4."""
    size, *traits = kind.replace("20-300B", "mixed").split("-")
    rnd = random.Random(7)
    letters = rnd.choices(b"abcdefghijklmnopqrstuvwxyz      ", k=1 << 16)
    text = bytes(letters)

    def value() -> bytes:
        length = {"100B": 100, "1KB": 1000}.get(size) or rnd.randint(20, 300)
        at = rnd.randrange(len(text) - length)
        return text[at : at + length]

    return Content(
        values=[value() for _ in range(per_batch)],
        keys=[b"key%05d" % at for at in range(per_batch)] if "key" in traits else None,
        headers=HEADERS if "headers" in traits else [],
        codec=next((number for name, number in CODECS.items() if name in traits), 0),
    )
