"""Bytes in several places that go over the wire as one field."""

from __future__ import annotations

__all__ = ["Gathered"]


class Gathered:
    """Buffers of bytes, one after the other: what a field of records takes where joining them would copy much.

    They stay pieces of their own down to the socket, so nobody may change them until the request has left.

    >>> whole = Gathered(b"head", b"body")
    >>> len(whole), bytes(whole)
    (8, b'headbody')
    """

    __slots__ = ("_size", "buffers")

    def __init__(self, *buffers: bytes | bytearray | memoryview) -> None:
        self.buffers = buffers
        self._size = sum(map(len, buffers))

    def __len__(self) -> int:
        return self._size

    def __bytes__(self) -> bytes:
        return b"".join(self.buffers)

    def __repr__(self) -> str:
        return f"<{self._size} bytes>"
