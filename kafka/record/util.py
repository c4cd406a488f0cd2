"""A historic module path; see `kafka.legacy.record_util`."""

from __future__ import annotations

from kafka.legacy.record_util import (
    calc_crc32,
    calc_crc32c,
    decode_varint,
    encode_varint,
    size_of_varint,
)

__all__ = ["calc_crc32", "calc_crc32c", "decode_varint", "encode_varint", "size_of_varint"]
