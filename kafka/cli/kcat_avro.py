"""What kcat prints of Avro: the JSON of Avro's library for C, in text (-f) and in the objects of -J.

The fields of -J and the words of the errors are the same as in kcat 1.7 with libserdes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from kafka.cli.record_types import Undecodable

if TYPE_CHECKING:
    from kafka.cli.connection import Connection
    from kafka.record import ConsumerRecord

ShowAvro = Callable[[bytes], str]
_ESCAPED: Final = re.compile(r'[\0-\x1f"\\]|[^\0-\x7f]')
_SHORT_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def avro_reader(connection: Connection) -> ShowAvro:
    """Return the function that makes JSON of Avro behind the id of a schema; Undecodable has kcat's words."""
    from kafka.schema_registry import SchemaDeserializer, SchemaMismatchError

    deserializer = SchemaDeserializer(connection.registry("avro"), kind="AVRO", form="short_tagged")
    not_framed = "message not produced with Schema-Registry Avro framing"

    def shown(data: bytes) -> str:
        if len(data) < 5:
            raise Undecodable(f"Payload is smaller ({len(data)}) than framing (5): {not_framed}")
        if data[0]:
            raise Undecodable(f"Invalid CP1 magic byte {data[0]}, expected 0: {not_framed}")
        try:
            return avro_c_json(deserializer.decode(data))
        except SchemaMismatchError as error:
            raise Undecodable(str(error)) from None

    return shown


def avro_formatter(show: ShowAvro, part: str) -> Callable[[bytes], bytes]:
    """Return the function that prints Avro for -f; kcat prints nothing for an empty key or payload."""
    failed = f"Avro/Schema-registry {'key' if part == 'key' else 'message'} deserialization"

    def shown(data: bytes) -> bytes:
        try:
            return show(data).encode() if data else b""
        except Undecodable as error:
            raise Undecodable(f"{failed}: {error}", b"") from None

    return shown


def avro_fields(record: ConsumerRecord, avro: Mapping[str, ShowAvro], plain: Callable[[bytes | None], str]) -> str:
    """Return the fields of -J for the key and the payload; `plain` makes JSON of what is not Avro.

    Behind Avro stands the id of its schema; a value that cannot be read is null, with the error behind it.
    """

    def field(name: str, part: str, data: bytes | None) -> str:
        if data is None or part not in avro:
            return f'"{name}":{plain(data)}'
        try:
            return f'"{name}":{avro[part](data)},"{part}_schema_id":{int.from_bytes(data[1:5], "big")}'
        except Undecodable as error:
            place = f"{record.topic} [{record.partition}] at offset {record.offset}"
            print(f"% ERROR: Failed to deserialize {part} in message in {place}: {error}", file=sys.stderr)
            return f'"{name}":null,"{name}_error":{plain(str(error).encode())}'

    return f"{field('key', 'key', record.key)},{field('payload', 'value', record.value)}"


def avro_c_json(value: Any) -> str:
    """Return JSON as Avro's library for C writes it, with which kcat prints Avro.

    >>> avro_c_json({"price": {"double": 1e20}, "name": "grün", "share": 0.1})
    '{"price": {"double": 1e20}, "name": "gr\\\\u00FCn", "share": 0.10000000000000001}'
    """
    if isinstance(value, str):
        return f'"{_ESCAPED.sub(_escape, value)}"'
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        text = f"{value:.17g}"
        if text.strip("-") in {"inf", "nan"}:
            raise Undecodable("Failed to encode Avro as JSON")
        digits, exponent, power = text.partition("e")
        return f"{digits}e{int(power)}" if exponent else text if "." in text else f"{text}.0"
    if isinstance(value, list):
        return f"[{', '.join(map(avro_c_json, value))}]"
    return f"{{{', '.join(f'{avro_c_json(name)}: {avro_c_json(one)}' for name, one in value.items())}}}"


def _escape(found: re.Match[str]) -> str:
    char = found[0]
    if char in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[char]
    units = char.encode("utf-16-be")
    return "".join(f"\\u{int.from_bytes(units[at : at + 2], 'big'):04X}" for at in range(0, len(units), 2))
