"""CRC-32C (Castagnoli), the checksum of record batches in format v2.

The ``crc32c`` package, which the distribution requires, uses the processor's instruction (4 to 24 GB/s). Where it does
not exist plain Python does the same at some 10 MB/s.

:func:`crc32c` picks on first use, and does not import the package, which takes 60 ms.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import Final

Buffer = bytes | bytearray | memoryview
Crc = Callable[[Buffer, int], int]

_POLYNOMIAL: Final = 0x82F63B78
_MASK: Final = 0xFFFFFFFF


def crc32c(data: Buffer, value: int = 0) -> int:
    """Return the CRC-32C of ``data``, continuing from the checksum ``value`` of what went before.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    >>> crc32c(b"6789", crc32c(b"12345")) == crc32c(b"123456789")
    True
    """
    return fastest()(data, value)


@lru_cache(maxsize=1)
def fastest() -> Crc:
    """Return the function behind `crc32c`, for a caller that needs it many times.

    >>> hex(fastest()(b"123456789", 0))
    '0xe3069283'
    """
    with suppress(Exception):  # another release of the package may have another layout
        return _extension()
    try:
        from crc32c import crc32c as from_package
    except ImportError:
        return crc32c_python
    return from_package


def _extension() -> Crc:
    """Load the package's extension module alone.

    The package itself imports importlib.metadata and argparse: 40 to 100 ms, which the first send() or poll() would
    hold an event loop for.
    """
    from importlib.machinery import PathFinder
    from importlib.util import find_spec, module_from_spec

    package = find_spec("crc32c")
    spec = PathFinder.find_spec("crc32c._crc32c", package.submodule_search_locations if package else None)
    if spec is None or spec.loader is None:
        raise ImportError("there is no module crc32c._crc32c")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    checksum: Crc = module.crc32c
    return checksum


@lru_cache(maxsize=1)
def _table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (_POLYNOMIAL if byte & 1 else 0)  # noqa: PLW2901 - one bit after the other
        table.append(byte)
    return table


def crc32c_python(data: Buffer, value: int = 0) -> int:
    """Compute CRC-32C in plain Python.

    >>> hex(crc32c_python(b"123456789"))
    '0xe3069283'
    """
    table = _table()
    crc = value ^ _MASK
    for byte in memoryview(data):
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ _MASK
