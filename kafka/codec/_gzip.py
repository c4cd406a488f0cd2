"""gzip, of the standard library."""

from __future__ import annotations

import zlib
from typing import Final

from kafka.codec._common import CODEC_GZIP, Bytes, bad, bounded, too_large

_GZIP_DEFAULT_LEVEL: Final = 6


def gzip_compress(data: Bytes, level: int | None) -> bytes:
    # wbits 31: a gzip header with no time stamp, so equal batches give equal bytes.
    packer = zlib.compressobj(_GZIP_DEFAULT_LEVEL if level is None else level, zlib.DEFLATED, 31)
    return packer.compress(data) + packer.flush()


def gzip_decompress(data: Bytes, limit: int) -> bytes:
    bound = bounded(CODEC_GZIP, len(data), limit)
    parts: list[bytes] = []
    size = 0
    rest: Bytes = data
    while rest or not parts:  # a gzip file may consist of several members
        unpacker = zlib.decompressobj(31)
        try:
            parts.append(unpacker.decompress(rest, bound - size + 1))
        except zlib.error as err:
            raise bad(CODEC_GZIP, err) from err
        size += len(parts[-1])
        if size > bound:
            raise too_large(CODEC_GZIP, len(data), bound)
        if not unpacker.eof:
            raise bad(CODEC_GZIP, "the stream ends early")
        rest = unpacker.unused_data
        if not rest.strip(b"\0"):
            break  # padding after the last member is legal
    return parts[0] if len(parts) == 1 else b"".join(parts)
