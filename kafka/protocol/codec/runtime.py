"""Functions that the compiled codecs call off their straight path, and the source code under construction."""

from __future__ import annotations

import linecache
import struct
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from itertools import repeat
from typing import Any, Final

from kafka.errors import KafkaProtocolError
from kafka.protocol import types
from kafka.protocol.struct import Struct, StructMeta, check_encodable
from kafka.protocol.types import Gathered

__all__ = []


class Malformed(Exception):  # noqa: N818 - it never leaves the codec
    """The straight path does not apply; the interpreter knows why."""


#: What generated code and the run-time below may meet when data does not fit.
CODEC_ERRORS: Final = (
    Malformed,
    struct.error,
    IndexError,
    KeyError,
    AttributeError,
    TypeError,
    ValueError,
    OverflowError,
)

_UVARINT: Final = [bytes((n,)) for n in range(128)]
_BOOL: Final = {True: 1, False: 0}


#: Lengths repeat, and finding one costs a fifth of making it.
_uvarint: Final[Callable[[int], bytes]] = lru_cache(maxsize=4096)(types.UnsignedVarInt32.encode)


@lru_cache(maxsize=4096)
def _text_prefix(length: int) -> bytes:
    if length > types.MAX_STRING_BYTES + 1:
        raise Malformed
    return types.UnsignedVarInt32.encode(length)


def _long_uvarint(data: bytes, position: int, first: int) -> tuple[int, int]:
    """Read the rest of an unsigned varint whose first byte was ``first``."""
    value = first & 127
    for shift in (7, 14, 21, 28):
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            if value > 0xFFFFFFFF:
                break
            return value, position
    raise Malformed


def _blob(value: object) -> bytearray | memoryview | Gathered:
    """Return bytes-like data whose ``len`` is its size in bytes."""
    if isinstance(value, bytearray | Gathered):
        return value
    if isinstance(value, memoryview):
        return value.cast("B") if value.nbytes != len(value) else value
    raise Malformed


def _sequence(value: object) -> list[object]:
    try:
        return list(types.as_sequence(value))
    except KafkaProtocolError:  # the interpreter says it with the field's name
        raise Malformed from None


#: Most lists of numbers are short: replicas, in-sync replicas, partitions of a topic.
SHORT_LIST: Final = 32


def _ints(values: Sequence[int], code: str) -> bytes:
    return struct.pack(f">{len(values)}{code}", *values)


def _unpack_ints(data: bytes, position: int, count: int, code: str) -> tuple[int, ...]:
    return struct.unpack_from(f">{count}{code}", data, position)


@cache
def short_unpackers(code: str) -> list[Callable[..., tuple[int, ...]]]:
    return [struct.Struct(f">{count}{code}").unpack_from for count in range(SHORT_LIST)]


@cache
def short_packers(code: str) -> list[Callable[..., bytes]]:
    return [struct.Struct(f">{count}{code}").pack for count in range(SHORT_LIST)]


def _long_text(data: bytes, position: int) -> tuple[str, int]:
    """Read a compact string that is longer than what one byte of length can say."""
    length, position = _long_uvarint(data, position + 1, data[position])
    if not length:  # null, said in more bytes than it takes: rare enough for the interpreter
        raise Malformed
    stop = position + length - 1
    return data[position:stop].decode(), stop


#: Topic ids come back in every message; making a UUID costs more than all the rest of a partition.
_uuid_of: Final = lru_cache(maxsize=4096)(lambda raw: uuid.UUID(bytes=raw))


def _read_tags(
    known: Mapping[int, tuple[str, Callable[[bytes, int, int], tuple[object, int]]]],
    target: Struct,
    data: bytes,
    position: int,
    count: int,
    end: int,
) -> int:
    """Read a tag buffer that is not empty; ``count`` is its first byte."""
    if count > 127:
        count, position = _long_uvarint(data, position, count)
    previous = -1
    tagged: dict[str | int, object] = {}
    for _ in range(count):
        tag, position = _any_uvarint(data, position)
        size, position = _any_uvarint(data, position)
        if tag <= previous or size > end - position:
            raise Malformed
        previous = tag
        stop = position + size
        if tag in known:
            name, decode = known[tag]
            # A separate part, so that it cannot read beyond its size.
            value, used = decode(data[position:stop], 0, size)
            if used != size:
                raise Malformed
            tagged[name] = value
        else:
            tagged[tag] = bytes(data[position:stop])
        position = stop
    target._tagged = tagged or None
    return position


def _any_uvarint(data: bytes, position: int) -> tuple[int, int]:
    first = data[position]
    return (first, position + 1) if first < 128 else _long_uvarint(data, position + 1, first)


def _write_tags(known: list[tuple[int, bytes]], tagged: dict[str | int, Any]) -> bytes:
    """Write a tag buffer: the known fields, encoded already, and the unknown ones of ``tagged``."""
    fields = [*known, *((tag, b"".join((raw,))) for tag, raw in tagged.items() if isinstance(tag, int))]
    fields.sort()
    out = [_uvarint(len(fields))]
    for tag, raw in fields:
        out += (_uvarint(tag), _uvarint(len(raw)), raw)
    return b"".join(out)


def _check_other_version(value: object, cls: StructMeta) -> None:
    """Let through an instance of the same struct, of another version or of none, that this version can carry."""
    if not isinstance(value, Struct) or type(value)._unbound is not cls._unbound:
        raise Malformed
    check_encodable(value, cls)
    if value._tagged and value.unknown_tags and cls._version not in cls._unbound._flexible:
        raise Malformed


RUNTIME: Final[Mapping[str, object]] = {
    "Malformed": Malformed,
    "UV": _UVARINT,
    "BOOL": _BOOL,
    "Gathered": Gathered,
    "blob": _blob,
    "foreign": _check_other_version,
    "ints": _ints,
    "join": b"".join,
    "long_text": _long_text,
    "long_uvarint": _long_uvarint,
    "new": object.__new__,
    "read_tags": _read_tags,
    "repeat": repeat,
    "sequence": _sequence,
    "text_prefix": _text_prefix,
    "unpack_ints": _unpack_ints,
    "uuid_of": _uuid_of,
    "uvarint": _uvarint,
    "write_tags": _write_tags,
}


class Source:
    """The lines of a function under construction, and the names that it refers to."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.globals: dict[str, Any] = dict(RUNTIME)
        self._depth = 1
        self._serial = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self._depth + text)

    def indent(self) -> None:
        self._depth += 1

    def dedent(self) -> None:
        self._depth -= 1

    def name(self, stem: str) -> str:
        self._serial += 1
        return f"{stem}{self._serial}"

    def constant(self, stem: str, value: object) -> str:
        for known, held in self.globals.items():
            if held is value and known.startswith(stem):
                return known
        name = self.name(stem)
        self.globals[name] = value
        return name

    def finish(self, head: str, label: str) -> Callable[..., Any]:
        """Compile the function; its source can be seen in tracebacks."""
        text = "\n".join([head, *self.lines, ""])
        filename = f"<{label}>"
        linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
        exec(compile(text, filename, "exec"), self.globals)  # noqa: S102 - the text is made of our own definitions
        return self.globals[head.split("(", maxsplit=1)[0].removeprefix("def ")]  # type: ignore[no-any-return]


@cache
def struct_of(format_: str) -> struct.Struct:
    return struct.Struct(">" + format_)
