"""Avro's binary encoding: a schema is compiled once to functions that read and write values.

`compile_avro` makes a codec in one of four forms. ``native`` has the values of Python: bytes, Decimal, datetime, UUID.
``json`` has what JSON can carry: bytes are text of one character for each byte, as in Avro's JSON encoding, decimals
are text, other logical types are the numbers that are encoded. ``tagged`` is Avro's JSON encoding itself, in which a
value of a union stands in an object under the name of its type; ``short_tagged`` has these names without namespaces,
as Avro's library for C and so kcat print them. A value is read with the schema of its writer.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any, Final, NamedTuple
from uuid import UUID

__all__ = ["FORMS", "AvroCodec", "AvroError", "compile_avro"]

Read = Callable[[bytes, int], tuple[object, int]]
Write = Callable[[Any, bytearray], None]

FORMS: Final = ("native", "json", "tagged", "short_tagged")
_TAGGED: Final = ("tagged", "short_tagged")
#: Values without bytes, such as nulls: a few bytes could announce any number of them, so there is a limit for an array.
_MOST_EMPTY: Final = 1000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)
_DAY: Final = date(1970, 1, 1)


class AvroError(ValueError):
    """A schema is wrong, bytes are not of the schema, or a value does not fit into it."""


class AvroCodec:
    """Reads and writes values of one schema."""

    __slots__ = ("accepts", "empty", "name", "read", "write")

    def __init__(self, name: str) -> None:
        self.name = name
        self.read: Read = _not_compiled
        self.write: Write = _not_compiled
        self.accepts: Callable[[Any], bool] = _not_compiled
        self.empty = False
        """Whether a value may take no byte at all."""

    def decode(self, data: bytes, at: int = 0) -> Any:
        """Return the value in the bytes from `at` on."""
        try:
            value, end = self.read(data, at)
        except (IndexError, struct.error):
            raise AvroError(f"the value ends after {len(data)} bytes, within {self.name}") from None
        except RecursionError:
            raise AvroError("the value is nested too deeply") from None
        except AvroError:
            raise
        except (ValueError, ArithmeticError) as error:  # text that is not UTF-8, a date out of range
            raise AvroError(f"a value of {self.name} is wrong: {error}") from None
        if end != len(data):
            raise AvroError(f"{len(data) - end} bytes are left behind the value")
        return value

    def encode(self, value: object, prefix: bytes = b"") -> bytes:
        """Return the bytes of a value."""
        out = bytearray(prefix)
        try:
            self.write(value, out)
        except RecursionError:
            raise AvroError("the value is nested too deeply") from None
        except AvroError:
            raise
        except (ValueError, ArithmeticError, struct.error) as error:  # a number out of range, half a surrogate pair
            raise AvroError(f"{_shown(value)} does not fit into {self.name}: {error}") from None
        return bytes(out)


def _not_compiled(*_: object) -> Any:
    raise AvroError("the schema refers to a type that is not complete")


def compile_avro(schema: str, references: Iterable[str] = (), form: str = "native") -> AvroCodec:
    """Compile the text of a schema; `references` are the texts of schemas whose types it uses, in their order.

    >>> codec = compile_avro('{"type": "record", "name": "User", "fields": [{"name": "id", "type": ["null", "long"]}]}')
    >>> codec.encode({"id": 7}), codec.decode(bytes.fromhex("020e"))
    (b'\\x02\\x0e', {'id': 7})
    """
    compiler = _Compiler(form)
    try:
        for text in references:
            compiler.compile(json.loads(text), "")
        return compiler.compile(json.loads(schema), "")
    except AvroError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise AvroError(f"the Avro schema is wrong: {type(error).__name__}: {error}") from None
    except RecursionError:
        raise AvroError("the Avro schema is nested too deeply") from None


# Numbers and bytes…


def read_long(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    at += 1
    number, shift = byte & 0x7F, 7
    while byte & 0x80:
        if shift > 63:
            raise AvroError("a number has more than 10 bytes")
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        shift += 7
    number &= 0xFFFF_FFFF_FFFF_FFFF
    return (number >> 1) ^ -(number & 1), at


def write_long(number: int, out: bytearray) -> None:
    number = (number << 1) ^ (number >> 63)
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)


def _read_bytes(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = read_long(data, at)
    if size < 0 or size > len(data) - at:
        raise AvroError(f"{size} bytes are announced at byte {at}, and {len(data) - at} are left")
    return data[at : at + size], at + size


def _write_bytes(value: bytes, out: bytearray) -> None:
    write_long(len(value), out)
    out += value


def _is_int(bits: int) -> Callable[[object], bool]:
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_bytes(value: object) -> bool:
    return isinstance(value, (bytes, bytearray))


def _is_latin(value: object) -> bool:
    return isinstance(value, str) and all(ord(char) < 256 for char in value)


class _Logical(NamedTuple):
    """How a logical type turns the value that is encoded into one of Python, and back."""

    of: Callable[[Any], object]
    to: Callable[[Any], Any]
    accepts: Callable[[object], bool]


def _instant(unit: timedelta, zone: timezone | None) -> _Logical:
    epoch = _EPOCH if zone else _EPOCH.replace(tzinfo=None)
    return _Logical(
        lambda number: epoch + number * unit,
        lambda value: (value - epoch) // unit,
        lambda value: isinstance(value, datetime) and (value.tzinfo is not None) == (zone is not None),
    )


def _time_of_day(unit: timedelta) -> _Logical:
    return _Logical(
        lambda number: (_EPOCH + number * unit).time(),
        lambda value: (
            timedelta(hours=value.hour, minutes=value.minute, seconds=value.second, microseconds=value.microsecond)
            // unit
        ),
        lambda value: isinstance(value, time),
    )


_MILLI: Final = timedelta(milliseconds=1)
_MICRO: Final = timedelta(microseconds=1)
#: (type, logical type) -> its values in Python. Types that are not here keep the values that are encoded.
_LOGICAL: Final = {
    ("string", "uuid"): _Logical(UUID, str, lambda value: isinstance(value, UUID)),
    ("int", "date"): _Logical(
        lambda number: _DAY + timedelta(days=number),
        lambda value: (value - _DAY).days,
        lambda value: isinstance(value, date) and not isinstance(value, datetime),
    ),
    ("int", "time-millis"): _time_of_day(_MILLI),
    ("long", "time-micros"): _time_of_day(_MICRO),
    ("long", "timestamp-millis"): _instant(_MILLI, timezone.utc),
    ("long", "timestamp-micros"): _instant(_MICRO, timezone.utc),
    ("long", "local-timestamp-millis"): _instant(_MILLI, None),
    ("long", "local-timestamp-micros"): _instant(_MICRO, None),
}


def _decimal(schema: Mapping[str, Any], form: str, size: int | None) -> _Logical:
    """Return the decimals of a schema; in JSON they are text such as 12.50. A fixed type has a size."""
    scale = int(schema.get("scale", 0))

    def of(data: bytes) -> Decimal | str:
        number = Decimal(int.from_bytes(data, "big", signed=True)).scaleb(-scale)
        return number if form == "native" else format(number, "f")

    def to(value: object) -> bytes:
        scaled = Decimal(str(value)).scaleb(scale)
        number = int(scaled)
        if number != scaled:
            raise AvroError(f"{value} has more than {scale} digits behind the point")
        length = size or (number + (number < 0)).bit_length() // 8 + 1
        return number.to_bytes(length, "big", signed=True)

    def accepts(value: object) -> bool:
        if isinstance(value, bool) or not isinstance(value, (Decimal, int) if form == "native" else (str, int, float)):
            return False
        try:
            to(value)
        except (ArithmeticError, ValueError):
            return False
        return True

    return _Logical(of, to, accepts)


# Schemas…


class _Compiler:
    """Compiles schemas; the types that have names are known to the ones after them."""

    def __init__(self, form: str) -> None:
        self._form = form
        self._named: dict[str, AvroCodec] = {}
        self._defaults: _Compiler = self if form == "json" else _Compiler("json")
        """Defaults of fields are in JSON in a schema, whatever the form of the values."""

    def compile(self, schema: Any, namespace: str) -> AvroCodec:
        if isinstance(schema, list):
            return self._union(schema, namespace)
        if isinstance(schema, str):
            return self._by_name(schema, namespace)
        kind = schema["type"]
        if isinstance(kind, (dict, list)):
            return self.compile(kind, namespace)
        if kind in {"record", "error"}:
            return self._record(schema, namespace)
        if kind == "array":
            return self._array(self.compile(schema["items"], namespace))
        if kind == "map":
            return self._map(self.compile(schema["values"], namespace))
        if kind == "enum":
            return self._enum(schema, namespace)
        if kind == "fixed":
            codec = self._fixed(self._declare(schema, namespace)[0], int(schema["size"]))
        else:
            codec = self._by_name(kind, namespace)
        return self._with_logical(codec, kind, schema)

    def _by_name(self, name: str, namespace: str) -> AvroCodec:
        if name in _PRIMITIVES:
            return self._primitive(name)
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        found = self._named.get(full) or self._named.get(name)
        if found is None:
            raise AvroError(f"the Avro schema uses the type {full!r}, which it does not declare")
        return found

    def _declare(self, schema: Mapping[str, Any], namespace: str) -> tuple[AvroCodec, str]:
        """Return a new codec under the full name of a type, and the namespace inside it."""
        name = schema["name"]
        namespace = name.rpartition(".")[0] if "." in name else schema.get("namespace", namespace) or ""
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        codec = self._named[full] = AvroCodec(full)
        return codec, namespace

    def _primitive(self, name: str) -> AvroCodec:
        codec = AvroCodec(name)
        codec.read, codec.write, codec.accepts = _PRIMITIVES[name]
        codec.empty = name == "null"
        if name == "bytes" and self._form != "native":
            codec.read = lambda data, at: _as_text(*_read_bytes(data, at))
            codec.write = lambda value, out: _write_bytes(value.encode("latin-1"), out)
            codec.accepts = _is_latin
        codec.write = _checking(codec)
        return codec

    def _with_logical(self, codec: AvroCodec, kind: str, schema: Mapping[str, Any]) -> AvroCodec:
        name = schema.get("logicalType")
        if self._form in _TAGGED or name is None:
            return codec
        size = int(schema["size"]) if kind == "fixed" else None
        if name == "decimal" and kind in {"bytes", "fixed"}:
            logical = _decimal(schema, self._form, size)
            read: Read = _read_bytes if size is None else _reader_of(size)
            write: Write = _write_bytes if size is None else _extend
        elif self._form == "native" and (kind, name) in _LOGICAL:
            logical = _LOGICAL[kind, name]
            read, write = codec.read, codec.write
        else:
            return codec

        def read_value(data: bytes, at: int) -> tuple[object, int]:
            value, at = read(data, at)
            return logical.of(value), at

        found = AvroCodec(codec.name)
        plain = codec.accepts if kind != "fixed" and name != "decimal" else lambda _: False
        found.read = read_value
        found.accepts = lambda value: logical.accepts(value) or plain(value)
        # A program may also give the value that is encoded.
        found.write = lambda value, out: write(logical.to(value) if logical.accepts(value) else value, out)
        if name == "decimal":
            found.write = _checking(found)
        return found

    def _fixed(self, codec: AvroCodec, size: int) -> AvroCodec:
        read = _reader_of(size)
        codec.empty = size == 0
        if self._form == "native":
            codec.read = read
            codec.accepts = lambda value: _is_bytes(value) and len(value) == size
            codec.write = _extend
        else:
            codec.read = lambda data, at: _as_text(*read(data, at))
            codec.accepts = lambda value: _is_latin(value) and len(value) == size
            codec.write = lambda value, out: out.extend(value.encode("latin-1"))
        codec.write = _checking(codec)
        return codec

    def _enum(self, schema: Mapping[str, Any], namespace: str) -> AvroCodec:
        codec, _ = self._declare(schema, namespace)
        symbols = list(schema["symbols"])
        numbers = {symbol: number for number, symbol in enumerate(symbols)}

        def read(data: bytes, at: int) -> tuple[object, int]:
            number, at = read_long(data, at)
            if not 0 <= number < len(symbols):
                raise AvroError(f"{number} is not a symbol of {codec.name}")
            return symbols[number], at

        codec.read = read
        codec.accepts = lambda value: isinstance(value, str) and value in numbers
        codec.write = lambda value, out: write_long(numbers[value], out)
        codec.write = _checking(codec)
        return codec

    def _array(self, items: AvroCodec) -> AvroCodec:
        codec = AvroCodec("array")

        def read(data: bytes, at: int) -> tuple[object, int]:
            found: list[object] = []
            count, at = _block(data, at, items)
            while count:
                for _ in range(count):
                    value, at = items.read(data, at)
                    found.append(value)
                count, at = _block(data, at, items)
            return found, at

        def write(value: Any, out: bytearray) -> None:
            if value:
                write_long(len(value), out)
                for number, each in enumerate(value):
                    _write_part(items, each, out, f"[{number}]")
            out.append(0)

        codec.read, codec.write = read, write
        codec.accepts = lambda value: isinstance(value, (list, tuple)) and all(map(items.accepts, value))
        codec.write = _of_type(codec, write, (list, tuple))
        return codec

    def _map(self, values: AvroCodec) -> AvroCodec:
        codec = AvroCodec("map")

        def read(data: bytes, at: int) -> tuple[object, int]:
            found: dict[str, object] = {}
            count, at = _block(data, at)
            while count:
                for _ in range(count):
                    name, at = _read_bytes(data, at)
                    found[name.decode()], at = values.read(data, at)
                count, at = _block(data, at)
            return found, at

        def write(value: Any, out: bytearray) -> None:
            if value:
                write_long(len(value), out)
                for name, each in value.items():
                    _write_bytes(str(name).encode(), out)
                    _write_part(values, each, out, str(name))
            out.append(0)

        codec.read = read
        codec.accepts = lambda value: isinstance(value, Mapping) and all(map(values.accepts, value.values()))
        codec.write = _of_type(codec, write, (Mapping,))
        return codec

    def _record(self, schema: Mapping[str, Any], namespace: str) -> AvroCodec:
        codec, inner = self._declare(schema, namespace)
        if self._defaults is not self:
            self._defaults.compile(schema, namespace)  # the types in it, for the defaults of later fields
        fields: list[_Field] = []
        codec.read, codec.accepts = _record_reader(fields), _record_test(fields)
        codec.write = _of_type(codec, _record_writer(codec, fields), (Mapping,))
        for field in schema["fields"]:
            default = None
            if "default" in field:
                default = self._defaults.compile(field["type"], inner).encode(field["default"])
            fields.append(_Field(field["name"], self.compile(field["type"], inner), default))
        codec.empty = all(field.codec.empty for field in fields)
        return codec

    def _union(self, branches: list[Any], namespace: str) -> AvroCodec:
        parts = [self.compile(branch, namespace) for branch in branches]
        tagged = self._form in _TAGGED
        tags = [part.name.rpartition(".")[2] if self._form == "short_tagged" else part.name for part in parts]
        codec = AvroCodec("union")

        def read(data: bytes, at: int) -> tuple[object, int]:
            number, at = read_long(data, at)
            if not 0 <= number < len(parts):
                raise AvroError(f"{number} is not a branch of a union of {len(parts)}")
            value, at = parts[number].read(data, at)
            return (value if not tagged or value is None else {tags[number]: value}), at

        chosen = _branch_finder(parts, tags, tagged=tagged)

        def write(value: object, out: bytearray) -> None:
            found = chosen(value)
            if found is None:
                raise AvroError(f"{_shown(value)} is not one of {', '.join(part.name for part in parts)}")
            write_long(found[0], out)
            parts[found[0]].write(found[1], out)

        codec.read, codec.write = read, write
        codec.accepts = lambda value: chosen(value) is not None
        return codec


def _branch_finder(
    parts: list[AvroCodec], tags: list[str], *, tagged: bool
) -> Callable[[object], tuple[int, object] | None]:
    """Return what finds the branch of a union for a value: the branch's number, and its own value."""

    def plain(value: object) -> tuple[int, object] | None:
        return next(((number, value) for number, part in enumerate(parts) if part.accepts(value)), None)

    def named(value: object) -> tuple[int, object] | None:
        if isinstance(value, Mapping) and len(value) == 1:
            (name,) = value
            for number, part in enumerate(parts):
                if name in {part.name, tags[number]} and part.accepts(value[name]):
                    return number, value[name]
        return None

    # A map or a record may look like an object with the name of a branch. It is such an object where a union is read as
    # one, and else only if no branch takes it as it is.
    first, second = (named, plain) if tagged else (plain, named)
    return lambda value: first(value) or second(value)


class _Field(NamedTuple):
    """A field of a record, and the bytes of its default."""

    name: str
    codec: AvroCodec
    default: bytes | None


# The fields of a record may be of its type, so they are not all known when its functions are made.


def _record_reader(fields: list[_Field]) -> Read:
    def read(data: bytes, at: int) -> tuple[object, int]:
        found: dict[str, object] = {}
        for name, codec, _ in fields:
            found[name], at = codec.read(data, at)
        return found, at

    return read


def _record_writer(record: AvroCodec, fields: list[_Field]) -> Write:
    def write(value: Any, out: bytearray) -> None:
        unknown = value.keys() - {field.name for field in fields}
        if unknown:
            known = ", ".join(field.name for field in fields)
            raise AvroError(f"{record.name} has no field {next(iter(unknown))!r}; its fields are {known}")
        for name, codec, default in fields:
            if name in value:
                _write_part(codec, value[name], out, name)
            elif default is None:
                raise AvroError(f"field {name!r} of {record.name} is missing, and has no default")
            else:
                out += default

    return write


def _record_test(fields: list[_Field]) -> Callable[[object], bool]:
    def accepts(value: object) -> bool:
        return (
            isinstance(value, Mapping)
            and value.keys() <= {field.name for field in fields}
            and all(
                codec.accepts(value[name]) if name in value else default is not None for name, codec, default in fields
            )
        )

    return accepts


def _as_text(data: bytes, at: int) -> tuple[str, int]:
    return data.decode("latin-1"), at


def _reader_of(size: int) -> Callable[[bytes, int], tuple[bytes, int]]:
    def read(data: bytes, at: int) -> tuple[bytes, int]:
        if size > len(data) - at:
            raise AvroError(f"{size} bytes are needed at byte {at}, and {len(data) - at} are left")
        return data[at : at + size], at + size

    return read


def _extend(value: bytes, out: bytearray) -> None:
    out += value


def _block(data: bytes, at: int, items: AvroCodec | None = None) -> tuple[int, int]:
    """Read how many items the next block of an array or map has; a negative count stands before its size in bytes."""
    count, at = read_long(data, at)
    if count < 0:
        _, at = read_long(data, at)
        count = -count
    if count > (_MOST_EMPTY if items is not None and items.empty else len(data) - at):
        raise AvroError(f"{count} items are announced at byte {at}, and {len(data) - at} bytes are left")
    return count, at


def _checking(codec: AvroCodec) -> Write:
    write, accepts = codec.write, codec.accepts

    def checked(value: object, out: bytearray) -> None:
        if not accepts(value):
            raise AvroError(f"{_shown(value)} does not fit into {codec.name}")
        write(value, out)

    return checked


def _of_type(codec: AvroCodec, write: Write, types: tuple[type, ...]) -> Write:
    def checked(value: object, out: bytearray) -> None:
        if not isinstance(value, types):
            raise AvroError(f"{_shown(value)} does not fit into {codec.name}")
        write(value, out)

    return checked


def _write_part(codec: AvroCodec, value: object, out: bytearray, place: str) -> None:
    """Write a part of a value; an error names the whole way to it."""
    try:
        codec.write(value, out)
    except _PartError as error:
        error.places.append(place)
        raise
    except AvroError as error:
        raise _PartError(str(error), [place]) from None


class _PartError(AvroError):
    """An error of a value inside another one; the innermost place is the first."""

    def __init__(self, text: str, places: list[str]) -> None:
        super().__init__(text)
        self.places = places

    def __str__(self) -> str:
        return f"{'.'.join(reversed(self.places)).replace('.[', '[')}: {self.args[0]}"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _read_boolean(data: bytes, at: int) -> tuple[bool, int]:
    if data[at] > 1:
        raise AvroError(f"{data[at]} at byte {at} is not a boolean")
    return bool(data[at]), at + 1


def _read_text(data: bytes, at: int) -> tuple[str, int]:
    found, at = _read_bytes(data, at)
    return found.decode(), at


def _read_float(data: bytes, at: int) -> tuple[float, int]:
    return struct.unpack_from("<f", data, at)[0], at + 4


def _read_double(data: bytes, at: int) -> tuple[float, int]:
    return struct.unpack_from("<d", data, at)[0], at + 8


_PRIMITIVES: Final[dict[str, tuple[Read, Write, Callable[[object], bool]]]] = {
    "null": (lambda _, at: (None, at), lambda *_: None, lambda value: value is None),
    "boolean": (_read_boolean, lambda value, out: out.append(value), lambda value: isinstance(value, bool)),
    "int": (read_long, write_long, _is_int(32)),
    "long": (read_long, write_long, _is_int(64)),
    "float": (_read_float, lambda value, out: out.extend(struct.pack("<f", value)), _is_number),
    "double": (_read_double, lambda value, out: out.extend(struct.pack("<d", value)), _is_number),
    "bytes": (_read_bytes, _write_bytes, _is_bytes),
    "string": (
        _read_text,
        lambda value, out: _write_bytes(value.encode(), out),
        lambda value: isinstance(value, str),
    ),
}
