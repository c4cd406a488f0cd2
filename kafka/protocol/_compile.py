"""Compiles definitions to Python functions: one encoder and one decoder per message and version.

The functions are flat: nested structs and lists are unrolled into one body, neighbouring fields of
fixed width become one ``struct.Struct`` call together with the length or count that follows them.
Their source is registered with ``linecache``, so tracebacks and debuggers show it.

The generated code holds only the straight path. It raises whatever Python raises when the data does
not fit (``struct.error``, ``IndexError``, ``AttributeError`` …) or ``Malformed`` where Python would
not notice; then the interpreter does the same work again to say exactly what is wrong where.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from kafka.errors import KafkaProtocolError
from kafka.protocol import _interpret
from kafka.protocol._decoders import compile_decoder
from kafka.protocol._encoders import compile_encoder
from kafka.protocol._initialisers import compile_init
from kafka.protocol._layout import has_records, layout_of
from kafka.protocol._runtime import MISFITS
from kafka.protocol.struct import Struct

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka.protocol.struct import StructMeta

__all__ = ["Codec", "compile_codec", "compile_init"]


class Codec(NamedTuple):
    """Encodes and decodes one message in one version."""

    #: ``encode(message, parts)`` appends the wire form to ``parts``; on an error ``parts`` is as it was.
    encode: Callable[[Any, list[bytes]], None]
    #: ``decode(data, *, start=0)`` reads one message that fills ``data`` from ``start`` to its end.
    decode: Callable[..., Any]
    #: ``decode_prefix(data, start)`` reads one message that more bytes may follow; it returns the message and its end.
    decode_prefix: Callable[[Any, int], tuple[Any, int]]


def compile_codec(cls: StructMeta) -> Codec:  # noqa: C901 - five small functions that share what is compiled
    """Compile both directions of a message, or of a part of one, in the version that ``cls`` is bound to.

    The bound class gets an ``encode`` and a ``decode`` of its own, which go straight to the code.
    """
    straight_encode, straight_decode = compile_encoder(cls), compile_decoder(cls)
    views = has_records(layout_of(cls))
    join = b"".join

    def encode_into(message: Any, parts: list[bytes]) -> None:
        before = len(parts)
        try:
            straight_encode(message, parts)
        except MISFITS:
            del parts[before:]
            parts.append(_interpret.encode(cls, message))

    def encode(self: Any, version: int | None = None) -> bytes:
        if version is not None and version != cls._version:
            return Struct.encode(self, version)
        parts: list[bytes] = []
        try:
            straight_encode(self, parts)
            return join(parts)
        except MISFITS:
            return _interpret.encode(cls, self)

    def decode(data: Any, version: int | None = None, *, start: int = 0) -> Any:
        if version is not None and version != cls._version:
            return cls._unbound._codec(version).decode(data, start=start)
        # The code relies on what slices of bytes are. A bytearray, as frames are received in, is
        # copied too, unless the message holds records: then those are views into it.
        if data.__class__ is not bytes and not (views and data.__class__ is bytearray):
            data = _as_bytes(data)
        try:
            message, position = straight_decode(data, start, len(data))
            if position == len(data):
                return message
        except MISFITS:
            pass
        return _interpret.decode(cls, data, start)

    def decode_prefix(data: Any, start: int) -> tuple[Any, int]:
        if data.__class__ is not bytes and not (views and data.__class__ is bytearray):
            data = _as_bytes(data)
        try:
            return straight_decode(data, start, len(data))  # type: ignore[no-any-return]
        except MISFITS:
            return _interpret.decode_prefix(cls, data, start)

    encode.__doc__, decode.__doc__ = Struct.encode.__doc__, Struct.decode.__doc__
    cls.encode = encode
    cls.decode = staticmethod(decode)
    return Codec(encode_into, decode, decode_prefix)


def _as_bytes(data: Any) -> bytes:
    try:
        return bytes(memoryview(data.read() if hasattr(data, "read") else data))
    except TypeError:
        raise KafkaProtocolError(f"decode() takes bytes, not {type(data).__name__}") from None
