"""gzip, of the standard library."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final

from kafka.codec._common import CODEC_GZIP, Bytes, bad, unpack_members

if TYPE_CHECKING:
    from kafka.codec._common import Unpacker

_GZIP_DEFAULT_LEVEL: Final = 6


def gzip_compress(data: Bytes, level: int | None) -> bytes:
    # wbits 31: a gzip header with no time stamp, so equal batches give equal bytes.
    packer = zlib.compressobj(_GZIP_DEFAULT_LEVEL if level is None else level, zlib.DEFLATED, 31)
    return packer.compress(data) + packer.flush()


def gzip_decompress(data: Bytes, limit: int) -> bytes:
    try:
        # A gzip file may consist of several members, with zeros after the last one.
        return unpack_members(CODEC_GZIP, data, limit, _new_unpacker, padding=b"\0")
    except zlib.error as err:
        raise bad(CODEC_GZIP, err) from err


def _new_unpacker() -> Unpacker:
    return zlib.decompressobj(31)
