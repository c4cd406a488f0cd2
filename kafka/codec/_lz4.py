"""lz4: frames with independent blocks of 64 KiB, the only kind that Kafka's Java classes accept."""

from __future__ import annotations

import struct
from typing import Final

from kafka.codec._common import CODEC_LZ4, Bytes, bad, bounded, load, too_large

_LZ4_DEFAULT_LEVEL: Final = 9  # means "the fast compressor" to Java; see lz4_compress
_LZ4_MAGIC: Final = b"\x04\x22\x4d\x18"
_LZ4_SLICE: Final = 1 << 20


def lz4_compress(data: Bytes, level: int | None) -> bytes:
    frame = load(CODEC_LZ4, "lz4.frame")
    packed: bytes = frame.compress(
        data,
        # Java's default level 9 stands for the fast compressor, not for HC at 9 (KIP-390).
        compression_level=0 if level in (None, _LZ4_DEFAULT_LEVEL) else level,
        block_size=frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        store_size=False,
    )
    return packed


def lz4_decompress(data: Bytes, limit: int) -> bytes:
    frame = load(CODEC_LZ4, "lz4.frame")
    bound = bounded(CODEC_LZ4, len(data), limit)
    view = memoryview(data)
    parts: list[bytes] = []
    size = pos = 0
    while pos < len(view):  # frames may follow each other
        # The package's class for this copies what it has not used yet at each call, and takes half as long again.
        context, ended = frame.create_decompression_context(), False
        while not ended:
            try:
                # The package allocates all of max_length at once, so it is asked for 1 MiB at a time.
                part, used, ended = frame.decompress_chunk(context, view[pos:], max_length=_LZ4_SLICE)
            except RuntimeError as err:
                raise bad(CODEC_LZ4, err) from err
            pos += used
            size += len(part)
            if size > bound:
                raise too_large(CODEC_LZ4, len(view), bound)
            if not used and not part and not ended:
                raise bad(CODEC_LZ4, "the frame ends early")
            parts.append(part)
    if not parts:
        raise bad(CODEC_LZ4, "empty")
    return parts[0] if len(parts) == 1 else b"".join(parts)


def lz4_decompress_any_checksum(data: Bytes, limit: int) -> bytes:
    # Old clients and brokers computed the header's checksum over the wrong bytes; newer ones do not. As the
    # brokers do since 0.10, take either for magic 0 by putting the right one in place.
    return lz4_decompress(with_header_checksum(data, broken=False), limit)


def with_header_checksum(data: Bytes, *, broken: bool) -> bytes:
    """Return the frame with its header checksum as the standard says, or as Kafka before 0.10 had it.

    KAFKA-3160: the second byte of xxHash-32 over the frame descriptor; the old code began at the magic number.
    """
    frame = bytes(data)
    if len(frame) < 7 or frame[:4] != _LZ4_MAGIC:
        raise bad(CODEC_LZ4, "no frame header")
    flags = frame[4]
    end = 6 + (8 if flags & 0x08 else 0) + (4 if flags & 0x01 else 0)  # content size, dictionary id
    if len(frame) <= end:
        raise bad(CODEC_LZ4, "the frame header is cut off")
    checksum = xxh32(frame[0 if broken else 4 : end]) >> 8 & 0xFF
    return b"%b%c%b" % (frame[:end], checksum, frame[end + 1 :])


def xxh32(data: bytes) -> int:
    """XxHash-32 with seed 0 of a few bytes."""
    prime1, prime2, prime3, prime4, prime5 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1
    mask = 0xFFFFFFFF

    def rotate(value: int, by: int) -> int:
        return (value << by | value >> (32 - by)) & mask

    pos = 0
    value = prime5
    if len(data) >= 16:
        lanes = [(prime1 + prime2) & mask, prime2, 0, -prime1 & mask]
        while pos + 16 <= len(data):
            for lane, word in enumerate(struct.unpack_from("<4I", data, pos)):
                lanes[lane] = rotate((lanes[lane] + word * prime2) & mask, 13) * prime1 & mask
            pos += 16
        value = sum(rotate(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True)) & mask
    value = (value + len(data)) & mask
    while pos + 4 <= len(data):
        value = rotate((value + struct.unpack_from("<I", data, pos)[0] * prime3) & mask, 17) * prime4 & mask
        pos += 4
    for byte in data[pos:]:
        value = rotate((value + byte * prime5) & mask, 11) * prime1 & mask
    value = (value ^ value >> 15) * prime2 & mask
    value = (value ^ value >> 13) * prime3 & mask
    return value ^ value >> 16
