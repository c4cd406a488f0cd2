"""Compression codecs of Kafka's record batches, each imported when first needed.

Two faces. :func:`compressor` and :func:`decompressor` hand out functions by the codec's number (the three
low bits of a batch's attributes); the record layer uses these. The named pairs (``gzip_encode``,
``lz4_decode_old_kafka``, ...) are the historic ones and call the same code.

Decompression is bounded: a few hundred bytes must not be able to fill the memory. The bound is the caller's
``limit`` or what the format can at most make out of the bytes given (a deflate stream grows 1032-fold, and so
on), whichever is less; beyond it :class:`~kafka.errors.CorruptRecordError` is raised. Every error of a codec's
package is translated to it here; nothing above this module knows the packages.

No thread, no I/O. All functions may be called from several threads at once.
"""

from __future__ import annotations

import importlib
import importlib.util
import struct
import zlib
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from kafka.errors import CorruptRecordError, IllegalArgumentError, UnsupportedCodecError

__all__ = [
    "CODEC_NAMES",
    "CODEC_NONE",
    "CODEC_GZIP",
    "CODEC_SNAPPY",
    "CODEC_LZ4",
    "CODEC_ZSTD",
    "DEFAULT_LIMIT",
    "codec_id",
    "check_level",
    "compressor",
    "decompressor",
    "has_codec",
    "has_gzip",
    "has_snappy",
    "has_lz4",
    "has_zstd",
    "gzip_encode",
    "gzip_decode",
    "snappy_encode",
    "snappy_decode",
    "lz4_encode",
    "lz4_decode",
    "lz4f_decode",
    "lz4_encode_old_kafka",
    "lz4_decode_old_kafka",
    "zstd_encode",
    "zstd_decode",
]

Bytes = bytes | bytearray | memoryview
Compress = Callable[[Bytes], bytes]
Decompress = Callable[[Bytes, int], bytes]

CODEC_NONE: Final = 0
CODEC_GZIP: Final = 1
CODEC_SNAPPY: Final = 2
CODEC_LZ4: Final = 3
CODEC_ZSTD: Final = 4

CODEC_NAMES: Final = {
    CODEC_NONE: "none",
    CODEC_GZIP: "gzip",
    CODEC_SNAPPY: "snappy",
    CODEC_LZ4: "lz4",
    CODEC_ZSTD: "zstd",
}
_CODEC_IDS: Final = {name: number for number, name in CODEC_NAMES.items()}

#: Most bytes that one batch may unpack to unless the caller says otherwise (1 GiB).
DEFAULT_LIMIT: Final = 1 << 30

# How far each format can blow up its input, and what it adds to that. Deflate: 258 bytes from two bits.
# Snappy: 64 bytes from a 3-byte copy. LZ4: 255 bytes from one length byte. Zstandard: a run-length block of
# 128 KiB from four bytes.
_MOST_GROWTH: Final = {
    CODEC_GZIP: (1032, 1 << 10),
    CODEC_SNAPPY: (22, 1 << 10),
    CODEC_LZ4: (255, 1 << 10),
    CODEC_ZSTD: (32768, 1 << 17),
}

# KIP-390, with the ranges of the Java client. Snappy has none.
_LEVELS: Final = {CODEC_GZIP: (1, 9), CODEC_LZ4: (1, 17), CODEC_ZSTD: (-131072, 22)}
_GZIP_DEFAULT_LEVEL: Final = 6
_LZ4_DEFAULT_LEVEL: Final = 9  # means "the fast compressor" to Java; see _lz4_compress
_ZSTD_DEFAULT_LEVEL: Final = 3

_PIP_NAMES: Final = {CODEC_SNAPPY: "python-snappy", CODEC_LZ4: "lz4", CODEC_ZSTD: "zstandard"}


# Which codec, at which level.


def codec_id(codec: int | str | None) -> int:
    """Turn the name of a codec, its number or ``None`` into its number.

    >>> codec_id("lz4"), codec_id(None), codec_id(2)
    (3, 0, 2)
    """
    if codec is None:
        return CODEC_NONE
    if isinstance(codec, str):
        number = _CODEC_IDS.get(codec.lower())
        if number is not None:
            return number
    elif codec in CODEC_NAMES:
        return int(codec)
    raise UnsupportedCodecError(f"unknown compression codec {codec!r}; known are {', '.join(_CODEC_IDS)}")


def check_level(codec: int, level: int | None) -> None:
    """Raise :class:`~kafka.errors.IllegalArgumentError` unless the codec knows this compression level.

    >>> check_level(CODEC_GZIP, 9)
    >>> check_level(CODEC_GZIP, 10)
    Traceback (most recent call last):
    kafka.errors.IllegalArgumentError: ...gzip takes compression levels 1 to 9, not 10
    """
    if level is None:
        return
    if codec not in _LEVELS:
        raise IllegalArgumentError(f"{CODEC_NAMES[codec]} has no compression levels; leave the level out")
    lowest, highest = _LEVELS[codec]
    # -1 is how zlib and Kafka's compression.gzip.level spell "the default".
    if not lowest <= level <= highest and not (codec == CODEC_GZIP and level == -1):
        raise IllegalArgumentError(f"{CODEC_NAMES[codec]} takes compression levels {lowest} to {highest}, not {level}")


def has_codec(codec: int | str | None) -> bool:
    """Whether the package that this codec needs is installed. Does not import it.

    >>> has_codec("gzip")
    True
    """
    number = codec_id(codec)
    if number == CODEC_SNAPPY:
        return _installed("snappy")
    if number == CODEC_LZ4:
        return _installed("lz4")
    if number == CODEC_ZSTD:
        return any(_installed(name) for name in _ZSTD_MODULES)
    return True


def compressor(codec: int, level: int | None = None, *, broken_lz4_checksum: bool = False) -> Compress:
    """Return a function that compresses bytes with this codec and level.

    ``broken_lz4_checksum`` writes LZ4 frames as brokers before 0.10 want them (KAFKA-3160).

    >>> compress = compressor(CODEC_GZIP, 9)
    >>> gzip_decode(compress(b"kafka"))
    b'kafka'
    """
    check_level(codec, level)
    if codec == CODEC_GZIP:
        return lambda data: _gzip_compress(data, level)
    if codec == CODEC_SNAPPY:
        return snappy_encode
    if codec == CODEC_LZ4:
        if broken_lz4_checksum:
            return lambda data: _with_header_checksum(_lz4_compress(data, level), broken=True)
        return lambda data: _lz4_compress(data, level)
    if codec == CODEC_ZSTD:
        return lambda data: zstd_encode(data, level)
    raise UnsupportedCodecError(f"batches with codec {codec} cannot be compressed")


def decompressor(codec: int, *, broken_lz4_checksum: bool = False) -> Decompress:
    """Return a function that decompresses ``(data, limit)`` and raises when the result exceeds ``limit``.

    ``broken_lz4_checksum`` takes LZ4 frames of clients before 0.10 as well (KAFKA-3160).

    >>> decompressor(CODEC_GZIP)(gzip_encode(b"kafka"), 5)
    b'kafka'
    """
    if broken_lz4_checksum and codec == CODEC_LZ4:
        return _lz4_decompress_any_checksum
    found = _DECOMPRESSORS.get(codec)
    if found is None:
        raise UnsupportedCodecError(f"the batch uses codec {codec}, which this release does not know")
    return found


def _bounded(codec: int, size: int, limit: int) -> int:
    """Return how many bytes ``size`` bytes of this format may unpack to, and no more than ``limit``."""
    growth, extra = _MOST_GROWTH[codec]
    return min(limit, size * growth + extra)


def _too_large(codec: int, size: int, bound: int) -> CorruptRecordError:
    return CorruptRecordError(
        reason=f"{size} bytes of {CODEC_NAMES[codec]} unpack to more than the {bound} bytes allowed"
    )


def _bad(codec: int, why: object) -> CorruptRecordError:
    return CorruptRecordError(reason=f"not valid {CODEC_NAMES[codec]} data: {why}")


# The packages.


def _installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):  # the parent package is absent, or a test blocks the name
        return False


def _load(codec: int, *names: str) -> ModuleType:
    """Import the first of these modules that exists, or say which package to install."""
    for name in names:
        try:
            return importlib.import_module(name)
        except ImportError:  # noqa: PERF203 - three names at most, once per batch
            continue
    raise UnsupportedCodecError(
        f"{CODEC_NAMES[codec]} compression needs a package that is not installed: pip install {_PIP_NAMES[codec]}",
        codec=CODEC_NAMES[codec],
    )


# gzip


def _gzip_compress(data: Bytes, level: int | None) -> bytes:
    # wbits 31: a gzip header with no time stamp, so equal batches give equal bytes.
    packer = zlib.compressobj(_GZIP_DEFAULT_LEVEL if level is None else level, zlib.DEFLATED, 31)
    return packer.compress(data) + packer.flush()


def _gzip_decompress(data: Bytes, limit: int) -> bytes:
    bound = _bounded(CODEC_GZIP, len(data), limit)
    parts: list[bytes] = []
    size = 0
    rest: Bytes = data
    while rest or not parts:  # a gzip file may consist of several members
        unpacker = zlib.decompressobj(31)
        try:
            parts.append(unpacker.decompress(rest, bound - size + 1))
        except zlib.error as err:
            raise _bad(CODEC_GZIP, err) from err
        size += len(parts[-1])
        if size > bound:
            raise _too_large(CODEC_GZIP, len(data), bound)
        if not unpacker.eof:
            raise _bad(CODEC_GZIP, "the stream ends early")
        rest = unpacker.unused_data
        if not rest.strip(b"\0"):
            break  # padding after the last member is legal
    return parts[0] if len(parts) == 1 else b"".join(parts)


# snappy: raw blocks within xerial's framing, which is what Kafka's Java client reads and writes.

_XERIAL_MAGIC: Final = b"\x82SNAPPY\0"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK: Final = 32 * 1024
_INT32: Final = struct.Struct(">i")


def snappy_encode(payload: Bytes, xerial_compatible: bool = True, xerial_blocksize: int = _XERIAL_BLOCK) -> bytes:
    """Compress with snappy, in xerial's framing unless told otherwise.

    >>> snappy_decode(snappy_encode(b"kafka" * 10)) == b"kafka" * 10
    True
    """
    compress: Callable[[Bytes], bytes] = _load(CODEC_SNAPPY, "snappy").compress
    if not xerial_compatible:
        return compress(bytes(payload))
    view = memoryview(payload)
    parts = [_XERIAL_HEADER]
    for start in range(0, len(view), xerial_blocksize):
        block = compress(bytes(view[start : start + xerial_blocksize]))
        parts += (_INT32.pack(len(block)), block)
    return b"".join(parts)


def _snappy_decompress(data: Bytes, limit: int) -> bytes:
    bound = _bounded(CODEC_SNAPPY, len(data), limit)
    view = memoryview(data)
    if bytes(view[:8]) != _XERIAL_MAGIC:
        return _snappy_block(view, bound)
    parts: list[bytes] = []
    room = bound
    pos = len(_XERIAL_HEADER)
    while pos < len(view):
        # Streams may be glued together: a header can stand where a block is due, as in SnappyInputStream.
        if bytes(view[pos : pos + 8]) == _XERIAL_MAGIC:
            pos += len(_XERIAL_HEADER)
            continue
        if pos + 4 > len(view):
            raise _bad(CODEC_SNAPPY, "a block's length is cut off")
        size = _INT32.unpack_from(view, pos)[0]
        pos += 4
        if size < 0 or size > len(view) - pos:
            raise _bad(CODEC_SNAPPY, f"a block of {size} bytes where {len(view) - pos} are left")
        part = _snappy_block(view[pos : pos + size], room)
        room -= len(part)
        pos += size
        parts.append(part)
    return b"".join(parts)


def _snappy_block(block: memoryview, room: int) -> bytes:
    # The block says first what it unpacks to, and libraries allocate that much: look before they do.
    claimed = shift = 0
    for byte in block[:5]:
        claimed |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    else:
        raise _bad(CODEC_SNAPPY, "no length at its start")
    if claimed > room or claimed > len(block) * 22 + 64:
        raise _too_large(CODEC_SNAPPY, len(block), room)
    uncompress: Callable[[bytes], bytes] = _load(CODEC_SNAPPY, "snappy").uncompress
    try:
        return uncompress(bytes(block))
    except Exception as err:  # the package has had several error types over time
        raise _bad(CODEC_SNAPPY, err.__cause__ or err) from err


# lz4: frames with independent blocks of 64 KiB, the only kind that Kafka's Java classes accept.

_LZ4_MAGIC: Final = b"\x04\x22\x4d\x18"
_LZ4_SLICE: Final = 1 << 20


def _lz4_compress(data: Bytes, level: int | None) -> bytes:
    frame = _load(CODEC_LZ4, "lz4.frame")
    packed: bytes = frame.compress(
        data,
        # Java's default level 9 stands for the fast compressor, not for HC at 9 (KIP-390).
        compression_level=0 if level in (None, _LZ4_DEFAULT_LEVEL) else level,
        block_size=frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        store_size=False,
    )
    return packed


def _lz4_decompress(data: Bytes, limit: int) -> bytes:
    frame = _load(CODEC_LZ4, "lz4.frame")
    bound = _bounded(CODEC_LZ4, len(data), limit)
    parts: list[bytes] = []
    size = 0
    rest: Bytes = data
    while rest:  # frames may follow each other
        unpacker = frame.LZ4FrameDecompressor()
        while not unpacker.eof:
            try:
                # The package allocates all of max_length at once, so it is asked for 1 MiB at a time.
                part = unpacker.decompress(rest, max_length=_LZ4_SLICE)
            except RuntimeError as err:
                raise _bad(CODEC_LZ4, err) from err
            rest = b""
            size += len(part)
            if size > bound:
                raise _too_large(CODEC_LZ4, len(data), bound)
            if not part and not unpacker.eof:
                raise _bad(CODEC_LZ4, "the frame ends early")
            parts.append(part)
        rest = unpacker.unused_data or b""
    if not parts:
        raise _bad(CODEC_LZ4, "empty")
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _lz4_decompress_any_checksum(data: Bytes, limit: int) -> bytes:
    # Old clients and brokers computed the header's checksum over the wrong bytes; newer ones do not. As the
    # brokers do since 0.10, take either for magic 0 by putting the right one in place.
    return _lz4_decompress(_with_header_checksum(data, broken=False), limit)


def _with_header_checksum(data: Bytes, *, broken: bool) -> bytes:
    """Return the frame with its header checksum as the standard says, or as Kafka before 0.10 had it.

    KAFKA-3160: the second byte of xxHash-32 over the frame descriptor; the old code began at the magic number.
    """
    frame = bytes(data)
    if len(frame) < 7 or frame[:4] != _LZ4_MAGIC:
        raise _bad(CODEC_LZ4, "no frame header")
    flags = frame[4]
    end = 6 + (8 if flags & 0x08 else 0) + (4 if flags & 0x01 else 0)  # content size, dictionary id
    if len(frame) <= end:
        raise _bad(CODEC_LZ4, "the frame header is cut off")
    checksum = _xxh32(frame[0 if broken else 4 : end]) >> 8 & 0xFF
    return b"%b%c%b" % (frame[:end], checksum, frame[end + 1 :])


def _xxh32(data: bytes) -> int:
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


# zstd: the standard library's module where there is one, its backport, else the package zstandard.

_ZSTD_MODULES: Final = ("compression.zstd", "backports.zstd", "zstandard")

# zstandard's objects give out all that one input yields. Four bytes can yield 128 KiB, so it is fed in slices
# of a size that cannot exceed 32 MiB at a time.
_ZSTD_SLICE: Final = 1024

# Contexts are dear to make (10 µs) and not to be shared between threads. list.pop and append are atomic.
_idle_zstd_decompressors: list[Any] = []
_idle_zstd_compressors: dict[int, list[Any]] = {}


def zstd_encode(payload: Bytes, level: int | None = None) -> bytes:
    """Compress with Zstandard.

    >>> zstd_decode(zstd_encode(b"kafka"))
    b'kafka'
    """
    level = _ZSTD_DEFAULT_LEVEL if level is None else level
    module = _load(CODEC_ZSTD, *_ZSTD_MODULES)
    packed: bytes
    if module.__name__ == "zstandard":
        idle = _idle_zstd_compressors.setdefault(level, [])
        try:
            context = idle.pop()
        except IndexError:
            context = module.ZstdCompressor(level=level)
        packed = context.compress(payload)
        idle.append(context)
    else:
        packed = module.compress(payload, level)
    return packed


def _zstd_decompress(data: Bytes, limit: int) -> bytes:
    module = _load(CODEC_ZSTD, *_ZSTD_MODULES)
    bound = _bounded(CODEC_ZSTD, len(data), limit)
    if not len(data):
        raise _bad(CODEC_ZSTD, "empty")
    try:
        if module.__name__ == "zstandard":
            return _zstandard_frames(module, data, bound)
        return _stdlib_zstd_frames(module, data, bound)
    except module.ZstdError as err:
        raise _bad(CODEC_ZSTD, err) from err


def _zstandard_frames(module: Any, data: Bytes, bound: int) -> bytes:
    # Frames of the Java client carry no content size and may follow each other, so its one-shot call, which
    # knows neither, does not serve.
    try:
        context = _idle_zstd_decompressors.pop()
    except IndexError:
        context = module.ZstdDecompressor()
    view = memoryview(data)
    parts: list[bytes] = []
    size = pos = 0
    while pos < len(view):
        frame = context.decompressobj()
        while not frame.eof:
            if pos >= len(view):
                raise _bad(CODEC_ZSTD, "the frame ends early")
            piece = view[pos : pos + _ZSTD_SLICE]
            part = frame.decompress(piece)
            pos += len(piece) - len(frame.unused_data)
            size += len(part)
            if size > bound:
                raise _too_large(CODEC_ZSTD, len(view), bound)
            parts.append(part)
    _idle_zstd_decompressors.append(context)
    return b"".join(parts)


def _stdlib_zstd_frames(module: Any, data: Bytes, bound: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    rest: Bytes = data
    while rest:
        frame = module.ZstdDecompressor()
        parts.append(frame.decompress(rest, bound - size + 1))
        size += len(parts[-1])
        if size > bound:
            raise _too_large(CODEC_ZSTD, len(data), bound)
        if not frame.eof:
            raise _bad(CODEC_ZSTD, "the frame ends early")
        rest = frame.unused_data
    return b"".join(parts)


_DECOMPRESSORS: Final[dict[int, Decompress]] = {
    CODEC_GZIP: _gzip_decompress,
    CODEC_SNAPPY: _snappy_decompress,
    CODEC_LZ4: _lz4_decompress,
    CODEC_ZSTD: _zstd_decompress,
}


# The historic names.


def has_gzip() -> bool:
    """Whether gzip can be used: always.

    >>> has_gzip()
    True
    """
    return True


def has_snappy() -> bool:
    """Whether the package for snappy is installed.

    >>> has_snappy() in (True, False)
    True
    """
    return has_codec(CODEC_SNAPPY)


def has_lz4() -> bool:
    """Whether the package for lz4 is installed.

    >>> has_lz4() in (True, False)
    True
    """
    return has_codec(CODEC_LZ4)


def has_zstd() -> bool:
    """Whether a module for zstd is installed.

    >>> has_zstd() in (True, False)
    True
    """
    return has_codec(CODEC_ZSTD)


def gzip_encode(payload: Bytes, compresslevel: int | None = None) -> bytes:
    """Compress with gzip.

    >>> gzip_decode(gzip_encode(b"kafka"))
    b'kafka'
    """
    return _gzip_compress(payload, compresslevel)


def gzip_decode(payload: Bytes) -> bytes:
    """Decompress gzip data, to 1 GiB at most.

    >>> gzip_decode(gzip_encode(b"kafka", 9))
    b'kafka'
    """
    return _gzip_decompress(payload, DEFAULT_LIMIT)


def snappy_decode(payload: Bytes) -> bytes:
    """Decompress snappy data, raw or in xerial's framing, to 1 GiB at most.

    >>> snappy_decode(snappy_encode(b"kafka", xerial_compatible=False))
    b'kafka'
    """
    return _snappy_decompress(payload, DEFAULT_LIMIT)


def lz4_encode(payload: Bytes, level: int | None = None) -> bytes:
    """Compress to a standard LZ4 frame, as Kafka 0.10 and later want it.

    >>> lz4_decode(lz4_encode(b"kafka"))
    b'kafka'
    """
    return _lz4_compress(payload, level)


def lz4_decode(payload: Bytes) -> bytes:
    """Decompress a standard LZ4 frame, to 1 GiB at most.

    >>> lz4_decode(lz4_encode(b"kafka", 12))
    b'kafka'
    """
    return _lz4_decompress(payload, DEFAULT_LIMIT)


lz4f_decode = lz4_decode


def lz4_encode_old_kafka(payload: Bytes) -> bytes:
    """Compress to an LZ4 frame with the header checksum that brokers before 0.10 expect.

    >>> lz4_decode_old_kafka(lz4_encode_old_kafka(b"kafka"))
    b'kafka'
    """
    return _with_header_checksum(_lz4_compress(payload, None), broken=True)


def lz4_decode_old_kafka(payload: Bytes) -> bytes:
    """Decompress an LZ4 frame whose header checksum may be the one of Kafka before 0.10.

    >>> lz4_decode_old_kafka(lz4_encode(b"kafka"))
    b'kafka'
    """
    return _lz4_decompress_any_checksum(payload, DEFAULT_LIMIT)


def zstd_decode(payload: Bytes) -> bytes:
    """Decompress Zstandard data, to 1 GiB at most.

    >>> zstd_decode(zstd_encode(b"kafka", 19))
    b'kafka'
    """
    return _zstd_decompress(payload, DEFAULT_LIMIT)
