"""Varints and checksums under the names that programs have imported since kafka-python 1.4."""

from __future__ import annotations

import zlib
from collections.abc import Callable

from kafka.record.crc32c import crc32c
from kafka.record.varint import Buffer, decode_varint, varint_size
from kafka.record.varint import encode_varint as _encode

__all__ = ["calc_crc32", "calc_crc32c", "decode_varint", "encode_varint", "size_of_varint"]

size_of_varint = varint_size


def encode_varint(value: int, write: Callable[[int], object]) -> int:
    """Encode a signed integer, call ``write`` with each byte, and return how many there were.

    >>> out = bytearray()
    >>> encode_varint(300, out.append), bytes(out)
    (2, b'\\xd8\\x04')
    """
    encoded = _encode(value)
    for byte in encoded:
        write(byte)
    return len(encoded)


def calc_crc32c(memview: Buffer) -> int:
    """Return the CRC-32C, the checksum of batches in format v2.

    >>> hex(calc_crc32c(b"123456789"))
    '0xe3069283'
    """
    return crc32c(memview)


def calc_crc32(memview: Buffer) -> int:
    """Return the CRC-32, the checksum of messages in formats v0 and v1.

    >>> hex(calc_crc32(b"123456789"))
    '0xcbf43926'
    """
    return zlib.crc32(memview)
