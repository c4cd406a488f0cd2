"""Plain callables in the shape of the interfaces."""

# ruff: noqa: ARG002 - the interface names what it passes

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafka.serializer.abstract import Deserializer, Headers, Serializer

__all__ = ["DeserializeWrapper", "SerializeWrapper"]


class SerializeWrapper(Serializer):
    """A callable ``f(data)``, or None for bytes as they are, as a `Serializer`.

    >>> SerializeWrapper(str.encode).serialize("events", [], "a")
    b'a'
    """

    def __init__(self, fn: Callable[[Any], bytes | None] | None) -> None:
        super().__init__()
        self.fn = fn

    def serialize(self, topic: str, headers: Headers, data: Any) -> bytes | None:
        """Call the callable."""
        return data if self.fn is None else self.fn(data)


class DeserializeWrapper(Deserializer):
    """A callable ``f(data)``, or None for bytes as they are, as a `Deserializer`.

    >>> DeserializeWrapper(bytes.decode).deserialize("events", [], b"a")
    'a'
    """

    def __init__(self, fn: Callable[[bytes | None], Any] | None) -> None:
        super().__init__()
        self.fn = fn

    def deserialize(self, topic: str, headers: Headers, data: bytes | None) -> Any:
        """Call the callable."""
        return data if self.fn is None else self.fn(data)
