"""Serializers for text and JSON."""

# ruff: noqa: ARG002 - the interface names what it passes

from __future__ import annotations

from typing import Any

from kafka.serializer.abstract import Deserializer, Headers, Serializer

__all__ = ["DefaultSerializer", "JsonSerializer", "StringSerializer"]


class DefaultSerializer(Serializer, Deserializer):
    """Text to bytes and back; bytes pass as they are.

    >>> s = DefaultSerializer()
    >>> s.serialize("t", [], "é"), s.serialize("t", [], b"raw"), s.serialize("t", [], None)
    (b'\\xc3\\xa9', b'raw', None)
    >>> s.deserialize("t", [], b"abc")
    'abc'
    """

    def __init__(self, encoding: str = "utf-8") -> None:
        super().__init__()
        self.encoding = encoding

    def serialize(self, topic: str, headers: Headers, data: Any) -> bytes | None:
        """Encode a str; bytes and None stay."""
        if data is None or isinstance(data, bytes):
            return data
        if isinstance(data, str):
            return data.encode(self.encoding)
        if isinstance(data, (bytearray, memoryview)):
            return bytes(data)
        raise TypeError(f"{type(self).__name__} takes str or bytes, not {type(data).__name__}; use JsonSerializer()?")

    def deserialize(self, topic: str, headers: Headers, data: bytes | None) -> Any:
        """Decode to a str; None stays."""
        return None if data is None else str(data, self.encoding)


class StringSerializer(DefaultSerializer):
    """As `DefaultSerializer`, under the name that Java users look for."""


class JsonSerializer(DefaultSerializer):
    """JSON; None stays a null, for tombstones.

    >>> s = JsonSerializer()
    >>> s.serialize("t", [], {"a": [1, None]})
    b'{"a": [1, null]}'
    >>> s.deserialize("t", [], b'{"a": [1, null]}')
    {'a': [1, None]}
    """

    def __init__(self, encoding: str = "utf-8") -> None:
        super().__init__(encoding)
        import json  # here, because clients that send no JSON need not load it

        self._dumps, self._loads = json.dumps, json.loads

    def serialize(self, topic: str, headers: Headers, data: Any) -> bytes | None:
        """Encode anything that `json.dumps` takes."""
        return None if data is None else self._dumps(data).encode(self.encoding)

    def deserialize(self, topic: str, headers: Headers, data: bytes | None) -> Any:
        """Decode with `json.loads`."""
        return None if data is None else self._loads(str(data, self.encoding))
