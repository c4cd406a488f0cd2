"""The wire types of Kafka's protocol guide, one small class each, written to be obviously right.

They serve two purposes. The declarative layer (``Schema``, ``Array``, ``String('utf-8')`` …) lets
users define and probe their own messages. The interpreter, which explains errors of the compiled codecs and must agree
with them, uses them too. Nothing here is on a hot path.

A type encodes a value to ``bytes`` and decodes one from anything with ``read(n)``::

    >>> from io import BytesIO
    >>> String('utf-8').encode('hi')
    b'\\x00\\x02hi'
    >>> Array(Int32).decode(BytesIO(bytes.fromhex('00000002 00000007 00000008')))
    [7, 8]
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Sequence
from io import BytesIO
from typing import Any, ClassVar, Concatenate, Generic, ParamSpec, Protocol, TypeVar

from kafka.errors import KafkaProtocolError

_P = ParamSpec("_P")
_R = TypeVar("_R")

#: Strings are limited to what an INT16 length can say, in the compact form too, as the brokers have it.
MAX_STRING_BYTES = 0x7FFF
#: BYTES and RECORDS carry an INT32 length.
MAX_BYTES = 0x7FFFFFFF


class Readable(Protocol):
    """Where a type decodes from: a ``BytesIO`` or the reader of the interpreter."""

    def read(self, size: int, /) -> bytes:
        """Return the next ``size`` bytes, fewer at the end."""


def shown(value: object) -> str:
    """Show a value and its type in an error, cut where it would fill the screen."""
    text = repr(value)
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({type(value).__name__})"


class Gathered:
    """Buffers of bytes, one after the other, as the value of a field: joining large records would copy them.

    They are sent as they are, so they must not change until the request has left.

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


def take(data: Readable, size: int) -> bytes:
    """Read exactly ``size`` bytes or say how many are missing."""
    chunk = data.read(size)
    if len(chunk) != size:
        raise KafkaProtocolError(f"needs {size} bytes, only {len(chunk)} are left")
    return chunk


class AbstractType:
    """A wire type: ``encode(value) -> bytes`` and ``decode(readable) -> value``."""

    def encode(self, value: Any) -> bytes:
        """Return the wire form of ``value``."""
        raise NotImplementedError

    def decode(self, data: Readable) -> Any:
        """Read one value."""
        raise NotImplementedError

    def repr(self, value: Any) -> str:
        """Show a value of this type."""
        return repr(value)

    def __repr__(self) -> str:
        return type(self).__name__


class _PrimitiveMeta(type):
    """Lets the class ``Int32`` be used as a type: ``Int32.encode(5)`` as well as ``Int32().encode(5)``."""

    def __call__(cls, *args: object, **kwargs: object) -> Any:
        if not args and not kwargs:
            found = cls.__dict__.get("_instance")
            if found is None:
                found = super().__call__()
                cls._instance = found
            return found
        return super().__call__(*args, **kwargs)


class _bothmethod(Generic[_P, _R]):  # noqa: N801 - used as a decorator
    """A method that also works on the class, where it acts on the class's only instance."""

    def __init__(self, function: Callable[Concatenate[Any, _P], _R]) -> None:
        self._function = function
        self.__doc__ = function.__doc__

    def __get__(self, instance: object, owner: type) -> Callable[_P, _R]:
        return self._function.__get__(owner() if instance is None else instance, owner)  # type: ignore[no-any-return]


class _FixedWidth(AbstractType, metaclass=_PrimitiveMeta):
    """Numbers of a fixed width, big-endian."""

    FORMAT: ClassVar[str]
    _kind: ClassVar[type | tuple[type, ...]] = int

    @_bothmethod
    def encode(self, value: object) -> bytes:
        """Return the big-endian bytes."""
        by_index = self._kind is int and hasattr(value, "__index__")  # numpy's integers, for example
        if isinstance(value, bool) or not (by_index or isinstance(value, self._kind)):
            raise KafkaProtocolError(f"takes {self._wanted()}, not {shown(value)}")
        try:
            return struct.pack(">" + self.FORMAT, value)
        except struct.error:
            raise KafkaProtocolError(f"takes {self._wanted()}, not {shown(value)}") from None

    @_bothmethod
    def decode(self, data: Readable) -> Any:
        """Read the number."""
        return struct.unpack(">" + self.FORMAT, take(data, struct.calcsize(">" + self.FORMAT)))[0]

    def _wanted(self) -> str:
        return f"a number of type {type(self).__name__}"


class Int8(_FixedWidth):
    """A signed 8-bit integer."""

    FORMAT = "b"


class Int16(_FixedWidth):
    """A signed 16-bit integer."""

    FORMAT = "h"


class Int32(_FixedWidth):
    """A signed 32-bit integer."""

    FORMAT = "i"


class Int64(_FixedWidth):
    """A signed 64-bit integer."""

    FORMAT = "q"


class UInt16(_FixedWidth):
    """An unsigned 16-bit integer."""

    FORMAT = "H"


class UInt32(_FixedWidth):
    """An unsigned 32-bit integer."""

    FORMAT = "I"


class BitField(AbstractType, metaclass=_PrimitiveMeta):
    """A set of numbers from 0 to 31: the bits of an INT32, as in lists of authorized operations.

    >>> BitField.encode({3, 8}).hex()
    '00000108'
    """

    FORMAT: ClassVar[str] = "i"

    @_bothmethod
    def encode(self, value: Any) -> bytes:
        """Return four bytes with these bits set."""
        bits = 0
        for bit in value:
            if bit not in range(32):
                raise KafkaProtocolError(f"takes numbers from 0 to 31, not {shown(bit)}")
            bits |= 1 << bit
        return bits.to_bytes(4, "big")

    @_bothmethod
    def decode(self, data: Readable) -> set[int]:
        """Return which bits of four bytes are set."""
        bits = int.from_bytes(take(data, 4), "big")
        return {bit for bit in range(32) if bits >> bit & 1}


class Float64(_FixedWidth):
    """An IEEE 754 double."""

    FORMAT = "d"
    _kind = (int, float)


class Boolean(AbstractType, metaclass=_PrimitiveMeta):
    """One byte, 0 or 1; anything but 0 reads as true."""

    FORMAT: ClassVar[str] = "?"

    @_bothmethod
    def encode(self, value: object) -> bytes:
        """Return one byte."""
        if value not in (True, False):
            raise KafkaProtocolError(f"takes True or False, not {shown(value)}")
        return b"\x01" if value else b"\x00"

    @_bothmethod
    def decode(self, data: Readable) -> bool:
        """Read one byte."""
        return take(data, 1) != b"\x00"


class Uuid(AbstractType, metaclass=_PrimitiveMeta):
    """16 bytes, shown as ``uuid.UUID``."""

    @_bothmethod
    def encode(self, value: object) -> bytes:
        """Return the 16 bytes."""
        if not isinstance(value, uuid.UUID):
            raise KafkaProtocolError(f"takes a uuid.UUID, not {shown(value)}")
        return value.bytes

    @_bothmethod
    def decode(self, data: Readable) -> uuid.UUID:
        """Read 16 bytes."""
        return uuid.UUID(bytes=take(data, 16))


UUID = Uuid


class UnsignedVarInt32(AbstractType, metaclass=_PrimitiveMeta):
    """A base-128 integer of at most five bytes, the least significant group first."""

    _BITS: ClassVar[int] = 32

    @_bothmethod
    def encode(self, value: object) -> bytes:
        """Return one to five bytes."""
        if not isinstance(value, int) or not 0 <= value < 1 << self._BITS:
            raise KafkaProtocolError(f"takes a number from 0 to 2**{self._BITS}-1, not {shown(value)}")
        out = bytearray()
        while value > 127:
            out.append(value & 127 | 128)
            value >>= 7
        out.append(value)
        return bytes(out)

    @_bothmethod
    def decode(self, data: Readable) -> int:
        """Read up to five bytes."""
        value = shift = 0
        while True:
            byte = take(data, 1)[0]
            value |= (byte & 127) << shift
            if byte < 128:
                break
            shift += 7
            if shift >= self._BITS:
                raise KafkaProtocolError(f"is a variable-length integer of more than {self._BITS} bits")
        if value >= 1 << self._BITS:
            raise KafkaProtocolError(f"is a variable-length integer of more than {self._BITS} bits")
        return value


class _UnsignedVarInt64(UnsignedVarInt32):
    _BITS = 64


class VarInt32(AbstractType, metaclass=_PrimitiveMeta):
    """A zigzag-encoded variable-length integer: small numbers of either sign stay short."""

    _BITS: ClassVar[int] = 32
    _UNSIGNED: ClassVar[AbstractType] = UnsignedVarInt32()

    @_bothmethod
    def encode(self, value: object) -> bytes:
        """Return one to five (or ten) bytes."""
        half = 1 << (self._BITS - 1)
        if not isinstance(value, int) or not -half <= value < half:
            raise KafkaProtocolError(f"takes a signed {self._BITS}-bit number, not {shown(value)}")
        return self._UNSIGNED.encode(value << 1 if value >= 0 else ~(value << 1))

    @_bothmethod
    def decode(self, data: Readable) -> int:
        """Read one to five (or ten) bytes."""
        raw: int = self._UNSIGNED.decode(data)
        return (raw >> 1) ^ -(raw & 1)


class VarInt64(VarInt32):
    """A zigzag-encoded variable-length integer of up to 64 bits."""

    _BITS = 64
    _UNSIGNED = _UnsignedVarInt64()


class _Sized(AbstractType):
    """A type with a length in front: the four ways to write that length, and null."""

    def __init__(self, *, compact: bool = False, nullable: bool = True) -> None:
        self.compact = compact
        self.nullable = nullable

    _LENGTH: ClassVar[AbstractType] = Int32()
    _MAX: ClassVar[int] = MAX_BYTES

    def _encode_length(self, length: int | None) -> bytes:
        if length is None:
            if not self.nullable:
                raise KafkaProtocolError("may not be None here")
            return b"\x00" if self.compact else self._LENGTH.encode(-1)
        if length > self._MAX:
            raise KafkaProtocolError(f"is too long: {length} where at most {self._MAX} are possible")
        return UnsignedVarInt32.encode(length + 1) if self.compact else self._LENGTH.encode(length)

    def _decode_length(self, data: Readable) -> int | None:
        length: int = UnsignedVarInt32.decode(data) - 1 if self.compact else self._LENGTH.decode(data)
        if length >= 0:
            if length > MAX_BYTES:
                raise KafkaProtocolError(f"has the impossible length {length}")
            return length
        if not self.nullable:
            raise KafkaProtocolError("is null, which this version does not allow")
        return None


class String(_Sized):
    """Text with an INT16 (or compact) length in front."""

    _LENGTH = Int16()
    _MAX = MAX_STRING_BYTES

    def __init__(self, encoding: str = "utf-8", *, compact: bool = False, nullable: bool = True) -> None:
        super().__init__(compact=compact, nullable=nullable)
        self.encoding = encoding

    def encode(self, value: Any) -> bytes:
        """Return length and text; ``bytes`` are taken as text that is encoded already."""
        if value is None:
            return self._encode_length(None)
        if isinstance(value, str):
            value = _encode_text(value, self.encoding)
        elif not isinstance(value, bytes):
            raise KafkaProtocolError(f"takes a str, not {shown(value)}")
        return self._encode_length(len(value)) + bytes(value)

    def decode(self, data: Readable) -> str | None:
        """Read length and text."""
        length = self._decode_length(data)
        if length is None:
            return None
        raw = take(data, length)
        try:
            return raw.decode(self.encoding)
        except UnicodeDecodeError as error:
            raise KafkaProtocolError(f"is no {self.encoding} text: {error.reason} at byte {error.start}") from None


def _encode_text(value: str, encoding: str) -> bytes:
    try:
        return value.encode(encoding)
    except UnicodeEncodeError as error:
        raise KafkaProtocolError(f"cannot be written as {encoding}: {error.reason} at {error.start}") from None


class CompactString(String):
    """Text with a compact length in front."""

    def __init__(self, encoding: str = "utf-8", *, nullable: bool = True) -> None:
        super().__init__(encoding, compact=True, nullable=nullable)


class Bytes(_Sized, metaclass=_PrimitiveMeta):
    """Bytes with an INT32 (or compact) length in front."""

    @_bothmethod
    def encode(self, value: object) -> bytes:
        """Return length and bytes."""
        if value is None:
            return self._encode_length(None)
        if not isinstance(value, (bytes, bytearray, memoryview)):
            raise KafkaProtocolError(f"takes bytes, not {shown(value)}")
        value = bytes(value)
        return self._encode_length(len(value)) + bytes(value)

    @_bothmethod
    def decode(self, data: Readable) -> bytes | None:
        """Read length and bytes."""
        length = self._decode_length(data)
        return None if length is None else take(data, length)

    def repr(self, value: Any) -> str:
        """Show the first hundred bytes."""
        return repr(value[:100] + b"..." if value is not None and len(value) > 100 else value)


class CompactBytes(Bytes):
    """Bytes with a compact length in front."""

    def __init__(self, *, nullable: bool = True) -> None:
        super().__init__(compact=True, nullable=nullable)


class Records(Bytes):
    """Record batches: bytes on the wire, a ``memoryview`` into the received frame once decoded."""

    @_bothmethod
    def encode(self, value: object) -> bytes:
        """Return length and bytes; a list is taken as the ``(offset, message)`` pairs of the oldest formats."""
        if isinstance(value, (list, tuple)):
            from kafka.protocol.message import MessageSet

            value = MessageSet.encode(value, prepend_size=False)
        elif isinstance(value, Gathered):
            value = bytes(value)
        return super().encode(value)


class Array(_Sized):
    """A sequence with an INT32 (or compact) count in front.

    ``Array(Int32)`` holds plain values; ``Array(('name', String()), ('id', Int32))`` holds tuples.
    """

    def __init__(self, *of: Any, compact: bool = False, nullable: bool = True) -> None:
        super().__init__(compact=compact, nullable=nullable)
        if not of:
            raise KafkaProtocolError("Array needs the type of its elements, or (name, type) pairs")
        if isinstance(of[0], tuple):
            self.array_of: Any = Schema(*of)
        else:
            (self.array_of,) = of

    def encode(self, items: object) -> bytes:
        """Return count and elements."""
        if items is None:
            return self._encode_length(None)
        items = as_sequence(items)
        return self._encode_length(len(items)) + b"".join([self.array_of.encode(item) for item in items])

    def decode(self, data: Readable) -> list[Any] | None:
        """Read count and elements; stops at the first element that is not there."""
        count = self._decode_length(data)
        if count is None:
            return None
        return [self.array_of.decode(data) for _ in range(count)]

    def repr(self, value: Any) -> str:
        """Show the elements."""
        if value is None:
            return "None"
        return "[" + ", ".join(_instance(self.array_of).repr(item) for item in value) + "]"

    def __repr__(self) -> str:
        return f"Array({self.array_of!r})"


def _instance(wire_type: Any) -> AbstractType:
    return wire_type() if isinstance(wire_type, type) else wire_type  # type: ignore[no-any-return]


def as_sequence(value: object) -> Sequence[Any]:
    """Return ``value`` as a list, or raise an error if it is not a sequence; text and bytes are not."""
    if isinstance(value, (list, tuple)):
        return value
    if isinstance(value, (str, bytes, bytearray, memoryview)) or not hasattr(value, "__iter__"):
        raise KafkaProtocolError(f"takes a list, not {shown(value)}")
    return list(value)


class CompactArray(Array):
    """A sequence with a compact count in front."""

    def __init__(self, *of: Any, nullable: bool = True) -> None:
        super().__init__(*of, compact=True, nullable=nullable)


class TaggedFields(AbstractType, metaclass=_PrimitiveMeta):
    """The tag buffer that ends every struct of a flexible version: ``{tag: bytes}``."""

    @_bothmethod
    def encode(self, value: Any) -> bytes:
        """Return the tags in ascending order."""
        value = value or {}
        parts = [UnsignedVarInt32.encode(len(value))]
        for tag in sorted(value):
            if not isinstance(value[tag], (bytes, bytearray, memoryview)):
                raise KafkaProtocolError(f"takes bytes, not {shown(value[tag])}, for tag {tag}")
            parts += (UnsignedVarInt32.encode(tag), UnsignedVarInt32.encode(len(value[tag])), bytes(value[tag]))
        return b"".join(parts)

    @_bothmethod
    def decode(self, data: Readable) -> dict[int, bytes]:
        """Read all tags; they must ascend."""
        tags: dict[int, bytes] = {}
        previous = -1
        for _ in range(UnsignedVarInt32.decode(data)):
            tag: int = UnsignedVarInt32.decode(data)
            if tag <= previous:
                raise KafkaProtocolError(f"has tag {tag} after tag {previous}: tags must ascend")
            tags[tag] = take(data, UnsignedVarInt32.decode(data))
            previous = tag
        return tags


class Schema(AbstractType):
    """Named types one after the other; encodes from and decodes to a tuple.

    >>> Schema(('id', Int16), ('name', String())).encode((1, 'x'))
    b'\\x00\\x01\\x00\\x01x'
    """

    def __init__(self, *fields: tuple[str, Any]) -> None:
        self.names: tuple[str, ...] = tuple(name for name, _ in fields)
        self.fields: tuple[Any, ...] = tuple(wire_type for _, wire_type in fields)

    def encode(self, item: object) -> bytes:
        """Return the values' wire forms, joined."""
        values = tuple(as_sequence(item))
        if len(values) != len(self.fields):
            raise KafkaProtocolError(f"takes {len(self.fields)} values {self.names}, not {len(values)}")
        parts = []
        for name, wire_type, value in zip(self.names, self.fields, values, strict=True):
            try:
                parts.append(wire_type.encode(value))
            except KafkaProtocolError as error:  # noqa: PERF203 - says which of them it was
                raise KafkaProtocolError(f"{name}: {error}") from None
        return b"".join(parts)

    def decode(self, data: Readable | bytes) -> tuple[Any, ...]:
        """Read one value of each type."""
        source: Readable = BytesIO(data) if isinstance(data, bytes) else data
        return tuple([wire_type.decode(source) for wire_type in self.fields])

    def __len__(self) -> int:
        return len(self.fields)

    def repr(self, value: Any) -> str:
        """Show the values with their names."""
        pairs = zip(self.names, self.fields, tuple(value), strict=True)
        return "(" + ", ".join(f"{name}={_instance(wire_type).repr(item)}" for name, wire_type, item in pairs) + ")"

    def __repr__(self) -> str:
        return "Schema(" + ", ".join(f"{n}={t!r}" for n, t in zip(self.names, self.fields, strict=True)) + ")"
