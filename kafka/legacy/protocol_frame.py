"""A buffer that is filled and read like a file."""

from __future__ import annotations

from typing import Final

__all__ = ["KafkaBytes"]

# The whence of seek(), as in the io module, which this package has no other use for.
_SET: Final = 0
_CURRENT: Final = 1
_END: Final = 2


class KafkaBytes(bytearray):
    """A number of bytes, and a position for the next ``read`` or ``write``.

    >>> frame = KafkaBytes(4)
    >>> frame.write(b"abcd")
    4
    >>> frame.seek(1)
    1
    >>> frame.read(2), frame.tell()
    (b'bc', 3)
    """

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self._position = 0

    def read(self, size: int | None = None) -> bytes:
        """Return the next ``size`` bytes, or all that are left."""
        start = self._position
        self._position = len(self) if size is None or size < 0 else min(start + size, len(self))
        return bytes(self[start : self._position])

    def write(self, data: bytes) -> int:
        """Put bytes in the place of those at the position; it does not grow beyond its size."""
        if len(data) > len(self) - self._position:
            raise ValueError(f"{len(data)} bytes do not fit in the {len(self) - self._position} that are left")
        self[self._position : self._position + len(data)] = data
        self._position += len(data)
        return len(data)

    def seek(self, offset: int, whence: int = _SET) -> int:
        """Move the position; from the start, from where it is (1) or from the end (2)."""
        base = {_SET: 0, _CURRENT: self._position, _END: len(self)}[whence]
        self._position = min(max(base + offset, 0), len(self))
        return self._position

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def __repr__(self) -> str:
        return f"KafkaBytes({bytes(self)!r})"
