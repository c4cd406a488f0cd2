"""Compression codecs of Kafka's record batches, each imported when first needed.

Two faces. :func:`compressor` and :func:`decompressor` hand out functions by the codec's number (the three
low bits of a batch's attributes); the record layer uses these. The named pairs (``gzip_encode``,
``lz4_decode_old_kafka``, ...) are the historic ones and call the same code.

Decompression is bounded: a few hundred bytes must not be able to fill the memory. The bound is the smaller of the
caller's ``limit`` and the most that the format can make out of the bytes given (a deflate stream grows 1032-fold, and
so on); beyond it :class:`~kafka.errors.CorruptRecordError` is raised. Every error of a codec's package is translated
to it here; nothing above this module knows the packages.

No thread, no I/O. All functions may be called from several threads at once.
"""

from __future__ import annotations

from typing import Final

from kafka.codec._common import (
    CODEC_GZIP,
    CODEC_LZ4,
    CODEC_NAMES,
    CODEC_NONE,
    CODEC_SNAPPY,
    CODEC_ZSTD,
    DEFAULT_LIMIT,
    Bytes,
    Compress,
    Decompress,
    installed,
)
from kafka.codec._gzip import gzip_compress, gzip_decompress
from kafka.codec._lz4 import lz4_compress, lz4_decompress, lz4_decompress_any_checksum, with_header_checksum
from kafka.codec._snappy import snappy_decompress, snappy_encode
from kafka.codec._zstd import ZSTD_MODULES, zstd_decompress, zstd_encode
from kafka.errors import IllegalArgumentError, UnsupportedCodecError

__all__ = [
    "CODEC_NAMES",
    "CODEC_NONE",
    "CODEC_GZIP",
    "CODEC_SNAPPY",
    "CODEC_LZ4",
    "CODEC_ZSTD",
    "DEFAULT_LIMIT",
    "Compress",
    "Decompress",
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

_CODEC_IDS: Final = {name: number for number, name in CODEC_NAMES.items()}

# KIP-390, with the ranges of the Java client. Snappy has none.
_LEVELS: Final = {CODEC_GZIP: (1, 9), CODEC_LZ4: (1, 17), CODEC_ZSTD: (-131072, 22)}


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
        return installed("snappy")
    if number == CODEC_LZ4:
        return installed("lz4")
    if number == CODEC_ZSTD:
        return any(installed(name) for name in ZSTD_MODULES)
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
        return lambda data: gzip_compress(data, level)
    if codec == CODEC_SNAPPY:
        return snappy_encode
    if codec == CODEC_LZ4:
        if broken_lz4_checksum:
            return lambda data: with_header_checksum(lz4_compress(data, level), broken=True)
        return lambda data: lz4_compress(data, level)
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
        return lz4_decompress_any_checksum
    found = _DECOMPRESSORS.get(codec)
    if found is None:
        raise UnsupportedCodecError(f"the batch uses codec {codec}, which this release does not know")
    return found


_DECOMPRESSORS: Final[dict[int, Decompress]] = {
    CODEC_GZIP: gzip_decompress,
    CODEC_SNAPPY: snappy_decompress,
    CODEC_LZ4: lz4_decompress,
    CODEC_ZSTD: zstd_decompress,
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
    return gzip_compress(payload, compresslevel)


def gzip_decode(payload: Bytes) -> bytes:
    """Decompress gzip data, to 1 GiB at most.

    >>> gzip_decode(gzip_encode(b"kafka", 9))
    b'kafka'
    """
    return gzip_decompress(payload, DEFAULT_LIMIT)


def snappy_decode(payload: Bytes) -> bytes:
    """Decompress snappy data, raw or in xerial's framing, to 1 GiB at most.

    >>> snappy_decode(snappy_encode(b"kafka", xerial_compatible=False))
    b'kafka'
    """
    return snappy_decompress(payload, DEFAULT_LIMIT)


def lz4_encode(payload: Bytes, level: int | None = None) -> bytes:
    """Compress to a standard LZ4 frame, as Kafka 0.10 and later want it.

    >>> lz4_decode(lz4_encode(b"kafka"))
    b'kafka'
    """
    return lz4_compress(payload, level)


def lz4_decode(payload: Bytes) -> bytes:
    """Decompress a standard LZ4 frame, to 1 GiB at most.

    >>> lz4_decode(lz4_encode(b"kafka", 12))
    b'kafka'
    """
    return lz4_decompress(payload, DEFAULT_LIMIT)


lz4f_decode = lz4_decode


def lz4_encode_old_kafka(payload: Bytes) -> bytes:
    """Compress to an LZ4 frame with the header checksum that brokers before 0.10 expect.

    >>> lz4_decode_old_kafka(lz4_encode_old_kafka(b"kafka"))
    b'kafka'
    """
    return with_header_checksum(lz4_compress(payload, None), broken=True)


def lz4_decode_old_kafka(payload: Bytes) -> bytes:
    """Decompress an LZ4 frame whose header checksum may be the one of Kafka before 0.10.

    >>> lz4_decode_old_kafka(lz4_encode(b"kafka"))
    b'kafka'
    """
    return lz4_decompress_any_checksum(payload, DEFAULT_LIMIT)


def zstd_decode(payload: Bytes) -> bytes:
    """Decompress Zstandard data, to 1 GiB at most.

    >>> zstd_decode(zstd_encode(b"kafka", 19))
    b'kafka'
    """
    return zstd_decompress(payload, DEFAULT_LIMIT)
