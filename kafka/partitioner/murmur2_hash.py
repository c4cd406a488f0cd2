"""The hash of the Java client, so that both clients put a key into the same partition."""

from __future__ import annotations

from functools import lru_cache
from struct import Struct
from typing import Final

__all__ = ["murmur2", "murmur2_once"]

# The constants of MurmurHash2, and the seed that org.apache.kafka.common.utils.Utils uses.
_M: Final = 0x5BD1E995
_SEED: Final = 0x9747B28C
_MASK: Final = 0xFFFFFFFF

# Keys repeat. Long ones are left out, so that the cache holds at most half a megabyte of keys.
_CACHED_LENGTH: Final = 128
_CACHED_KEYS: Final = 4096

_words = lru_cache(maxsize=64)(lambda count: Struct(f"<{count}I").unpack_from)


def murmur2(data: bytes | bytearray | memoryview) -> int:
    """The 32-bit hash, unsigned.

    >>> hex(murmur2(b"foobar")), murmur2(b"foobar") & 0x7fffffff
    ('0xd0e47bbe', 1357151166)
    """
    if len(data) <= _CACHED_LENGTH:
        return _cached(data if type(data) is bytes else bytes(data))
    return murmur2_once(data)


def murmur2_once(data: bytes | bytearray | memoryview) -> int:
    """The 32-bit hash, unsigned, which is not remembered: for callers that remember what they compute from it."""
    length = len(data)
    h = _SEED ^ length
    for k in _words(length >> 2)(data):
        k = k * _M & _MASK  # noqa: PLW2901 - one name per word, as in the definition
        h = (h * _M & _MASK) ^ ((k ^ k >> 24) * _M & _MASK)
    tail = length & ~3
    if tail < length:
        h = (h ^ int.from_bytes(data[tail:], "little")) * _M & _MASK
    h = (h ^ h >> 13) * _M & _MASK
    return h ^ h >> 15


_cached = lru_cache(maxsize=_CACHED_KEYS)(murmur2_once)
