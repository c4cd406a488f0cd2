"""librdkafka's partitioners, by the names of its option ``partitioner``: keys stay where kcat puts them."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Sequence
from typing import Final

from kafka.cli.arguments import UsageError
from kafka.partitioner import murmur2


def _fnv1a(key: bytes) -> int:
    """Return the hash that Sarama and librdkafka use: FNV-1a, as the absolute value of 32 bits with a sign.

    >>> _fnv1a(b"k0"), _fnv1a(b"")
    (1757577426, 2128831035)
    """
    found = 0x811C9DC5
    for byte in key:
        found = (found ^ byte) * 0x01000193 & 0xFFFFFFFF
    return found if found < 1 << 31 else (1 << 32) - found


def _murmur2(key: bytes) -> int:
    return murmur2(key) & 0x7FFFFFFF


#: Name -> the hash of keys, and whether a record without a key, or with an empty key, goes to any partition.
PARTITIONERS: Final[dict[str, tuple[Callable[[bytes], int] | None, bool, bool]]] = {
    "random": (None, True, True),
    "consistent": (zlib.crc32, False, False),
    "consistent_random": (zlib.crc32, True, True),
    "murmur2": (_murmur2, False, False),
    "murmur2_random": (_murmur2, True, False),
    "fnv1a": (_fnv1a, False, False),
    "fnv1a_random": (_fnv1a, True, False),
}


def partitioner(name: str) -> Callable[[bytes | None, Sequence[int], Sequence[int]], int]:
    """Return a partitioner as `KafkaProducer` takes it.

    >>> partitioner("consistent_random")(b"k0", [0, 1, 2, 3, 4, 5], [])
    3
    """
    if name not in PARTITIONERS:
        raise UsageError(f"partitioner {name!r} does not exist: the names are {', '.join(PARTITIONERS)}")
    hashed, without_key, empty = PARTITIONERS[name]
    choice = random.Random().choice  # noqa: S311 - spreads load, guards nothing

    def choose(key: bytes | None, partitions: Sequence[int], available: Sequence[int]) -> int:
        if hashed is None or (key is None and without_key) or (key == b"" and empty):
            return choice(available or partitions)
        return partitions[hashed(key or b"") % len(partitions)]

    return choose
