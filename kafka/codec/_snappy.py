"""snappy: raw blocks within xerial's framing, which is what Kafka's Java client reads and writes."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

from kafka.codec._common import CODEC_SNAPPY, Bytes, bad, bounded, load, too_large

_XERIAL_MAGIC: Final = b"\x82SNAPPY\0"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK: Final = 32 * 1024
_INT32: Final = struct.Struct(">i")


def snappy_encode(payload: Bytes, xerial_compatible: bool = True, xerial_blocksize: int = _XERIAL_BLOCK) -> bytes:
    """Compress with snappy, in xerial's framing unless told otherwise.

    >>> from kafka.codec import snappy_decode
    >>> snappy_decode(snappy_encode(b"kafka" * 10)) == b"kafka" * 10
    True
    """
    compress: Callable[[Bytes], bytes] = load(CODEC_SNAPPY, "snappy").compress
    if not xerial_compatible:
        return compress(bytes(payload))
    view = memoryview(payload)
    parts = [_XERIAL_HEADER]
    for start in range(0, len(view), xerial_blocksize):
        block = compress(bytes(view[start : start + xerial_blocksize]))
        parts += (_INT32.pack(len(block)), block)
    return b"".join(parts)


def snappy_decompress(data: Bytes, limit: int) -> bytes:
    bound = bounded(CODEC_SNAPPY, len(data), limit)
    data = bytes(data)  # a slice of bytes costs half of what a slice of a memoryview costs
    if not data.startswith(_XERIAL_MAGIC):
        return _snappy_block(data, bound)
    parts: list[bytes] = []
    room, size, pos = bound, len(data), len(_XERIAL_HEADER)
    while pos < size:
        # Streams may be glued together: a header can stand where a block is due, as in SnappyInputStream.
        if data.startswith(_XERIAL_MAGIC, pos):
            pos += len(_XERIAL_HEADER)
            continue
        if pos + 4 > size:
            raise bad(CODEC_SNAPPY, "a block's length is cut off")
        (length,) = _INT32.unpack_from(data, pos)
        pos += 4
        if length < 0 or length > size - pos:
            raise bad(CODEC_SNAPPY, f"a block of {length} bytes where {size - pos} are left")
        part = _snappy_block(data[pos : pos + length], room)
        room -= len(part)
        pos += length
        parts.append(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _snappy_block(block: bytes, room: int) -> bytes:
    # The block says first what it unpacks to, and libraries allocate that much: look before they do.
    claimed = shift = 0
    for byte in block[:5]:
        claimed |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
    else:
        raise bad(CODEC_SNAPPY, "no length at its start")
    if claimed > room or claimed > len(block) * 22 + 64:
        raise too_large(CODEC_SNAPPY, len(block), room)
    uncompress: Callable[[bytes], bytes] = load(CODEC_SNAPPY, "snappy").uncompress
    try:
        return uncompress(block)
    except Exception as err:  # the package has had several error types over time
        raise bad(CODEC_SNAPPY, err.__cause__ or err) from err
