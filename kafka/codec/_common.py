"""The common part of the codecs: their numbers, the bounds of the unpacked size, and the search for packages."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Final

from kafka.errors import CorruptRecordError, UnsupportedCodecError

if TYPE_CHECKING:
    from typing import Protocol

    class Unpacker(Protocol):
        """Unpacks one member, as an object of `zlib.decompressobj` does."""

        @property
        def eof(self) -> bool: ...

        @property
        def unused_data(self) -> bytes: ...

        def decompress(self, data: Bytes, max_length: int, /) -> bytes: ...


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

_PIP_NAMES: Final = {CODEC_SNAPPY: "python-snappy", CODEC_LZ4: "lz4", CODEC_ZSTD: "zstandard"}


# Bounds and errors.


def bounded(codec: int, size: int, limit: int) -> int:
    """Return how many bytes ``size`` bytes of this format may unpack to, and no more than ``limit``."""
    growth, extra = _MOST_GROWTH[codec]
    return min(limit, size * growth + extra)


def too_large(codec: int, size: int, bound: int) -> CorruptRecordError:
    return CorruptRecordError(
        reason=f"{size} bytes of {CODEC_NAMES[codec]} unpack to more than the {bound} bytes allowed"
    )


def bad(codec: int, why: object) -> CorruptRecordError:
    return CorruptRecordError(reason=f"not valid {CODEC_NAMES[codec]} data: {why}")


#: How much of what follows a first member or frame is handed to a package at once. When a member ends, the package
#: copies the rest of what it was given, so that a stream of tiny members would take time with the square of its size.
FIRST_SLICE: Final = 128


def unpack_members(
    codec: int, data: Bytes, limit: int, unpacker: Callable[[], Unpacker], padding: bytes = b""
) -> bytes:
    """Unpack a stream of members with an interface like that of `zlib.decompressobj`, in time linear in both sizes.

    ``padding`` may follow the last member.
    """
    bound = bounded(codec, len(data), limit)
    view = memoryview(data)
    parts: list[bytes] = []
    size = pos = 0
    while pos < len(view) or not parts:
        if parts and view[pos] in padding and not bytes(view[pos:]).strip(padding):
            break
        member = unpacker()
        step = FIRST_SLICE if parts else len(view)
        while not member.eof:
            piece = view[pos : pos + step]
            if not piece:
                raise bad(codec, "the stream ends early")
            parts.append(member.decompress(piece, bound - size + 1))
            size += len(parts[-1])
            if size > bound:
                raise too_large(codec, len(view), bound)
            pos += len(piece)
            step *= 2
        pos -= len(member.unused_data)
    return parts[0] if len(parts) == 1 else b"".join(parts)


# The packages.


def installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):  # the parent package is absent, or a test blocks the name
        return False


# By the names that were asked for: looking again for a module that is not there takes 0.1 ms each time.
_loaded: dict[tuple[str, ...], ModuleType] = {}


def load(codec: int, *names: str) -> ModuleType:
    """Import the first of these modules that exists, or say which package to install."""
    found = _loaded.get(names)
    if found is not None and sys.modules.get(found.__name__) is found:
        return found
    for name in names:
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        _loaded[names] = module
        return module
    raise UnsupportedCodecError(
        f"{CODEC_NAMES[codec]} compression needs a package that is not installed: pip install {_PIP_NAMES[codec]}",
        codec=CODEC_NAMES[codec],
    )
