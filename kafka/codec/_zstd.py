"""zstd: the standard library's module where there is one, its backport, else the package zstandard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kafka.codec._common import CODEC_ZSTD, Bytes, bad, bounded, load, too_large, unpack_members

if TYPE_CHECKING:
    from types import ModuleType

_ZSTD_DEFAULT_LEVEL: Final = 3
ZSTD_MODULES: Final = ("compression.zstd", "backports.zstd", "zstandard")

# zstandard's objects give out all that one input yields. Four bytes can yield 128 KiB, so it is fed in slices
# of a size that cannot exceed 32 MiB at a time.
_ZSTD_SLICE: Final = 1024
#: Blocks of 128 KiB at most that may be unpacked at once.
_MOST_BLOCKS: Final = 256

# Contexts are dear to make (10 µs) and not to be shared between threads. list.pop and append are atomic.
_idle_zstd_decompressors: list[Any] = []
_idle_zstd_compressors: dict[int, list[Any]] = {}


def zstd_encode(payload: Bytes, level: int | None = None) -> bytes:
    """Compress with Zstandard.

    >>> from kafka.codec import zstd_decode
    >>> zstd_decode(zstd_encode(b"kafka"))
    b'kafka'
    """
    level = _ZSTD_DEFAULT_LEVEL if level is None else level
    module = load(CODEC_ZSTD, *ZSTD_MODULES)
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


def zstd_decompress(data: Bytes, limit: int) -> bytes:
    module = load(CODEC_ZSTD, *ZSTD_MODULES)
    bound = bounded(CODEC_ZSTD, len(data), limit)
    if not len(data):
        raise bad(CODEC_ZSTD, "empty")
    try:
        if module.__name__ == "zstandard":
            return _zstandard_frames(module, data, bound)
        return unpack_members(CODEC_ZSTD, data, limit, module.ZstdDecompressor)
    except module.ZstdError as err:
        raise bad(CODEC_ZSTD, err) from err


def _zstandard_frames(module: ModuleType, data: Bytes, bound: int) -> bytes:
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
        step = _frame_at_once(module, view[pos:]) or _ZSTD_SLICE
        while not frame.eof:
            if pos >= len(view):
                raise bad(CODEC_ZSTD, "the frame ends early")
            piece = view[pos : pos + step]
            part = frame.decompress(piece)
            pos += len(piece) - len(frame.unused_data)
            size += len(part)
            if size > bound:
                raise too_large(CODEC_ZSTD, len(view), bound)
            parts.append(part)
    _idle_zstd_decompressors.append(context)
    return b"".join(parts)


def _frame_at_once(module: ModuleType, view: memoryview) -> int:
    """Return how long the frame is, its checksum too, if all of it cannot unpack to more than 32 MiB; else 0."""
    at: int = module.frame_header_size(view)
    for _ in range(_MOST_BLOCKS):
        header = int.from_bytes(view[at : at + 3], "little")
        is_run = header >> 1 & 3 == 1  # one byte, repeated
        at += 3 + (1 if is_run else header >> 3)
        if header & 1 or at >= len(view):
            return at + 4
    return 0
