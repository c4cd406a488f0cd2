"""The values of Avro's primitive and logical types, and their bytes."""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from typing import Any, Final, NamedTuple
from uuid import UUID

from kafka.schema_registry.avro_types import AvroError, AvroType

__all__ = [
    "LOGICAL",
    "Logical",
    "PRIMITIVES",
    "Read",
    "Write",
    "as_float",
    "as_text",
    "decimal_type",
    "extend",
    "fixed_reader",
    "is_bytes",
    "is_latin",
    "read_bytes",
    "read_float",
    "read_long",
    "write_bytes",
    "write_long",
]

Read = Callable[[bytes, int], tuple[object, int]]

Write = Callable[[Any, bytearray], None]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)

_DAY: Final = date(1970, 1, 1)


def read_long(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of variable length, and the place behind it."""
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
    """Write a number of variable length."""
    number = (number << 1) ^ (number >> 63)
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)


def read_bytes(data: bytes, at: int) -> tuple[bytes, int]:
    """Return bytes that have their size before them, and the place behind them."""
    size, at = read_long(data, at)
    if size < 0 or size > len(data) - at:
        raise AvroError(f"{size} bytes are announced at byte {at}, and {len(data) - at} are left")
    return data[at : at + size], at + size


def write_bytes(value: bytes, out: bytearray) -> None:
    """Write bytes and before them their size."""
    write_long(len(value), out)
    out += value


def _is_int(bits: int) -> Callable[[object], bool]:
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_bytes(value: object) -> bool:
    """Whether a value is bytes."""
    return isinstance(value, (bytes, bytearray))


def is_latin(value: object) -> bool:
    """Whether a value is text that has one character for each byte."""
    return isinstance(value, str) and all(ord(char) < 256 for char in value)


class Logical(NamedTuple):
    """How a logical type turns the value that is encoded into one of Python, and back."""

    of: Callable[[Any], object]
    to: Callable[[Any], Any]
    accepts: Callable[[object], bool]


def _instant(unit: timedelta, zone: timezone | None) -> Logical:
    epoch = _EPOCH if zone else _EPOCH.replace(tzinfo=None)
    return Logical(
        lambda number: epoch + number * unit,
        lambda value: (value - epoch) // unit,
        lambda value: isinstance(value, datetime) and (value.tzinfo is not None) == (zone is not None),
    )


def _time_of_day(unit: timedelta) -> Logical:
    return Logical(
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
LOGICAL: Final = {
    ("string", "uuid"): Logical(UUID, str, lambda value: isinstance(value, UUID)),
    ("int", "date"): Logical(
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


#: Moves the point of a number of any size: the context of a thread rounds to 28 digits unless a program says otherwise.
_EXACT: Final = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)


def decimal_type(schema: AvroType, form: str) -> Logical:
    """Return the decimals of a schema; in JSON they are text such as 12.50. A fixed type has a size."""
    scale, size = schema.scale, schema.size

    def of(data: bytes) -> Decimal | str:
        number = _EXACT.scaleb(int.from_bytes(data, "big", signed=True), -scale)
        return number if form == "native" else format(number, "f")

    def to(value: object) -> bytes:
        scaled = _EXACT.scaleb(Decimal(str(value)), scale)
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

    return Logical(of, to, accepts)


def as_text(data: bytes, at: int) -> tuple[str, int]:
    """Return bytes as text of one character for each byte; the place stays."""
    return data.decode("latin-1"), at


def fixed_reader(size: int) -> Callable[[bytes, int], tuple[bytes, int]]:
    """Return the function that reads a number of bytes."""

    def read(data: bytes, at: int) -> tuple[bytes, int]:
        if size > len(data) - at:
            raise AvroError(f"{size} bytes are needed at byte {at}, and {len(data) - at} are left")
        return data[at : at + size], at + size

    return read


def extend(value: bytes, out: bytearray) -> None:
    """Write bytes without a size."""
    out += value


def _read_boolean(data: bytes, at: int) -> tuple[bool, int]:
    if data[at] > 1:
        raise AvroError(f"{data[at]} at byte {at} is not a boolean")
    return bool(data[at]), at + 1


def _read_text(data: bytes, at: int) -> tuple[str, int]:
    found, at = read_bytes(data, at)
    return found.decode(), at


def as_float(number: int, at: int) -> tuple[float, int]:
    """Return a number as a floating-point one; the place stays."""
    return float(number), at


def read_float(data: bytes, at: int) -> tuple[float, int]:
    """Return a number of four bytes, and the place behind it."""
    return struct.unpack_from("<f", data, at)[0], at + 4


def _read_double(data: bytes, at: int) -> tuple[float, int]:
    return struct.unpack_from("<d", data, at)[0], at + 8


PRIMITIVES: Final[dict[str, tuple[Read, Write, Callable[[object], bool]]]] = {
    "null": (lambda _, at: (None, at), lambda *_: None, lambda value: value is None),
    "boolean": (_read_boolean, lambda value, out: out.append(value), lambda value: isinstance(value, bool)),
    "int": (read_long, write_long, _is_int(32)),
    "long": (read_long, write_long, _is_int(64)),
    "float": (read_float, lambda value, out: out.extend(struct.pack("<f", value)), _is_number),
    "double": (_read_double, lambda value, out: out.extend(struct.pack("<d", value)), _is_number),
    "bytes": (read_bytes, write_bytes, is_bytes),
    "string": (
        _read_text,
        lambda value, out: write_bytes(value.encode(), out),
        lambda value: isinstance(value, str),
    ),
}
