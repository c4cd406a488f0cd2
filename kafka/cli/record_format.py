"""How a record becomes bytes of the output: %-formats of kcat and rpk, JSON, and the layout of the console consumer.

A format is compiled once to a function of a record, because consuming prints a million of them.
"""

from __future__ import annotations

import re
import struct
from base64 import b64encode
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from json.encoder import encode_basestring as _quoted
from math import isfinite
from typing import TYPE_CHECKING, Final

from kafka.cli.arguments import UsageError
from kafka.cli.record_types import Decode, Header, unpacker

if TYPE_CHECKING:
    from kafka.record import ConsumerRecord

Print = Callable[["ConsumerRecord"], bytes]


def as_bytes(value: object) -> bytes:
    """Return a decoded value as it is printed."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, list) and all(isinstance(part, (int, str)) for part in value):
        return " ".join(map(str, value)).encode()
    text = _json_of(value)
    return (text.strip('"') if isinstance(value, float) else text).encode()


def _json_of(value: object) -> str:
    """Return JSON; a number that JSON has not is text, ``"NaN"``, as Protobuf and Avro for Java have it."""
    import json

    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(value), ensure_ascii=False)


def _finite(value: object) -> object:
    if isinstance(value, float) and not isfinite(value):
        return _NOT_FINITE[str(value)]
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    return [_finite(one) for one in value] if isinstance(value, list) else value


_NOT_FINITE: Final = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


# %-formats…

_ESCAPE: Final = re.compile(rb"\\(x[0-9a-fA-F]{2}|.)", re.DOTALL)
_ESCAPED: Final = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"0": b"\0", b"e": b"\x1b", b"\\": b"\\"}


def unescape_bytes(text: str) -> bytes:
    r"""Replace ``\n``, ``\t`` and ``\xNN`` by the bytes that they stand for.

    >>> unescape_bytes(r"a\tb\xff")
    b'a\tb\xff'
    """

    def replaced(found: re.Match[bytes]) -> bytes:
        code = found.group(1)
        return bytes([int(code[1:], 16)]) if len(code) == 3 else _ESCAPED.get(code, found.group())

    return _ESCAPE.sub(replaced, text.encode())


# A token's expression over a record r, and what the %-operator of bytes makes of it.
_TOKENS: Final = {
    "t": ("r[0].encode()", "b"),
    "p": ("r[1]", "d"),
    "o": ("r[2]", "d"),
    "T": ("-1 if r[3] is None else r[3]", "d"),
    "k": ("key(r[5])", "b"),
    "s": ("value(r[6])", "b"),
    "v": ("value(r[6])", "b"),
    "K": ("-1 if r[5] is None else len(r[5])", "d"),
    "S": ("-1 if r[6] is None else len(r[6])", "d"),
    "V": ("-1 if r[6] is None else len(r[6])", "d"),
    "R": ("big32(-1 if r[6] is None else len(r[6]))", "b"),
    "h": ("headers(r[10])", "b"),
    "H": ("len(r[10])", "d"),
    "d": ("date(r[3])", "b"),
    "e": ("r[11]", "d"),
    "D": ("getattr(r, 'delivery_count', 1)", "d"),
    "i": ("count()", "d"),
}
_TOKEN: Final = re.compile(r"%(%|[a-zA-Z\[\]|])(\{(?:[^{}]|\{[^{}]*\})*\})?")
_UNKNOWN: Final = {"a": "attributes", "x": "producer ids", "y": "producer epochs", "[": "log starts", "|": "offsets"}


def compile_format(
    text: str,
    *,
    key: Decode | None = None,
    value: Decode | None = None,
    header: Decode | None = None,
    null: bytes = b"",
) -> Print:
    """Return the function of a %-format.

    >>> from kafka.record import ConsumerRecord
    >>> r = ConsumerRecord("events", 0, 7, 1000, 0, b"k", b"hello", headers=[("a", b"1")])
    >>> compile_format(r"%t/%p/%o %k=%s %h\\n")(r)
    b'events/0/7 k=hello a=1\\n'
    """
    names: dict[str, object] = {
        "big32": struct.Struct(">i").pack,
        "key": _printer(key, null),
        "value": _printer(value, null),
        "headers": _header_printer(header),
        "date": _date("%Y-%m-%dT%H:%M:%S.%fZ"),
        "count": iter(range(1, 2**62)).__next__,
    }
    pattern, expressions, at = b"", [], 0
    for found in _TOKEN.finditer(text):
        pattern += unescape_bytes(text[at : found.start()]).replace(b"%", b"%%")
        at = found.end()
        letter, inner = found.group(1), found.group(2)
        if letter == "%":
            pattern += b"%%" + unescape_bytes(inner or "").replace(b"%", b"%%")
            continue
        if letter not in _TOKENS:
            what = f": a consumer does not receive {_UNKNOWN[letter]}" if letter in _UNKNOWN else ""
            raise UsageError(f"the format has an unknown token %{letter}{what}; tokens are %{' %'.join(_TOKENS)}")
        expression, kind = _TOKENS[letter]
        if inner is not None:
            expression, kind = _modified(letter, inner[1:-1], expression, names)
        elif letter in "ksv" and (key if letter == "k" else value) is None and not null:
            expression = f"r[{5 if letter == 'k' else 6}] or b''"
        pattern += b"%" + kind.encode()
        expressions.append(expression)
    pattern += unescape_bytes(text[at:]).replace(b"%", b"%%")
    source = f"lambda r: pattern % ({''.join(f'{expression}, ' for expression in expressions)})"
    made: Print = eval(source, {**names, "pattern": pattern})  # noqa: S307 - made of the table above
    return made


def token_starts(text: str) -> list[int]:
    r"""Return where the tokens of a %-format begin.

    >>> token_starts(r"%o of %t\n")
    [0, 6]
    """
    return [found.start() for found in _TOKEN.finditer(text)]


def _printer(decode: Decode | None, null: bytes) -> Callable[[bytes | None], bytes]:
    if decode is None:
        return lambda data: null if data is None else data
    return lambda data: null if data is None else as_bytes(decode(data))


def _header_printer(decode: Decode | None) -> Callable[[Sequence[Header]], bytes]:
    show = _printer(decode, b"NULL")
    return lambda headers: b",".join(b"%b=%b" % (name.encode(), show(data)) for name, data in headers)


def _date(layout: str) -> Callable[[int | None], bytes]:
    def shown(timestamp: int | None) -> bytes:
        if timestamp is None or timestamp < 0:
            return b"-"
        return datetime.fromtimestamp(timestamp / 1000, timezone.utc).strftime(layout).encode()

    return shown


_NUMBERS: Final = {
    **{f"big{size}": f">{code}" for size, code in ((8, "B"), (16, "H"), (32, "I"), (64, "Q"))},
    **{f"little{size}": f"<{code}" for size, code in ((8, "B"), (16, "H"), (32, "I"), (64, "Q"))},
}


def _modified(letter: str, modifier: str, expression: str, names: dict[str, object]) -> tuple[str, str]:
    """Return the expression of a token with something in braces behind it."""
    name = f"part{len(names)}"
    if letter == "h":
        names[name] = _header_format(modifier)
        return f"{name}(r[10])", "b"
    if letter == "d":
        layout = modifier.removeprefix("strftime").strip("[]") or modifier
        names[name] = _date(layout)
        return f"{name}(r[3])", "b"
    if letter in "ksv":
        functions: dict[str, Callable[[bytes], bytes]] = {
            "hex": lambda data: data.hex().encode(),
            "base64": b64encode,
            "json": lambda data: _quoted(data.decode(errors="replace")).encode(),
            "schema": _schema,
        }
        if modifier.startswith("unpack[") and modifier.endswith("]"):
            unpack = unpacker(modifier[7:-1])
            functions[modifier] = lambda data: as_bytes(unpack(data))
        if modifier in functions:
            names[name] = _printer(functions[modifier], b"")
            return f"{name}(r[{5 if letter == 'k' else 6}])", "b"
        raise UsageError(f"%{letter}{{{modifier}}}: it takes hex, base64, json, schema and unpack[...]")
    if modifier in _NUMBERS:
        layout_of = struct.Struct(_NUMBERS[modifier])
        mask = (1 << 8 * layout_of.size) - 1
        names[name] = lambda number: layout_of.pack(number & mask)
        return f"{name}({expression})", "b"
    simple = {"ascii": ("%s", "d"), "number": ("%s", "d"), "hex": ("(b'%%x' %% (%s))", "b"), "bool": ("", "b")}
    if modifier == "bool":
        return f"(b'true' if ({expression}) else b'false')", "b"
    if modifier in simple and letter not in "tR":
        form, kind = simple[modifier]
        return form % expression, kind
    raise UsageError(f"%{letter}{{{modifier}}}: it takes {{{'}, {'.join([*simple, *_NUMBERS])}}}")


def _schema(data: bytes) -> bytes:
    """Print the id of the schema that bytes begin with."""
    from kafka.schema_registry import schema_id

    found = schema_id(data)
    return b"-" if found is None else b"%d" % found


def _header_format(text: str) -> Callable[[Sequence[Header]], bytes]:
    """Return the function of a format for each header, with %k, %v, %K and %V, as rpk has it."""
    parts = re.split(r"%([kvKV%])", text)
    pattern = b"".join(
        unescape_bytes(part).replace(b"%", b"%%") if at % 2 == 0 else {"%": b"%%"}.get(part, b"%b")
        for at, part in enumerate(parts)
    )
    letters = [part for part in parts[1::2] if part != "%"]

    def shown(headers: Sequence[Header]) -> bytes:
        lines = []
        for name, data in headers:
            fields = {
                "k": name.encode(),
                "v": data or b"",
                "K": str(len(name.encode())).encode(),
                "V": str(-1 if data is None else len(data)).encode(),
            }
            lines.append(pattern % tuple(fields[letter] for letter in letters))
        return b"".join(lines)

    return shown


# Layouts with names…


def record_json(
    key: Decode | None = None,
    value: Decode | None = None,
    header: Decode | None = None,
    *,
    with_deliveries: bool = False,
) -> Print:
    r"""Return the function that prints a record as one JSON object in a line.

    Bytes that are not UTF-8 are in base64; ``key_encoding``, ``value_encoding`` and the third element of a header mark
    them.

    >>> from kafka.record import ConsumerRecord
    >>> print(record_json()(ConsumerRecord("events", 0, 7, 1000, 0, None, b"\xff")).decode(), end="")
    {"topic":"events","partition":0,"offset":7,"timestamp":1000,"key":null,"value":"/w==","value_encoding":"base64"}
    """
    quoted = _quoted
    topics: dict[str, str] = {}

    def shown(r: ConsumerRecord) -> bytes:
        topic, partition, offset, timestamp, kind, k, v = r[:7]
        prefix = topics.get(topic)
        if prefix is None:
            prefix = topics[topic] = f'{{"topic":{quoted(topic)},"partition":'
        stamp = "null" if timestamp is None or timestamp < 0 else timestamp
        try:
            if key is None and value is None:
                key_text = "null" if k is None else quoted(k.decode())
                value_text = "null" if v is None else quoted(v.decode())
            else:
                key_text, value_text = _json_part("key", k, key), _json_part("value", v, value)
        except UnicodeDecodeError:
            key_text, value_text = _json_part("key", k, key), _json_part("value", v, value)
        more = "" if kind != 1 else ',"timestamp_type":"LogAppendTime"'
        if with_deliveries:
            more += f',"delivery_count":{getattr(r, "delivery_count", 1)}'
        headers = r[10]
        if headers:
            more += f',"headers":{_json_headers(headers, header)}'
        return (
            f'{prefix}{partition},"offset":{offset},"timestamp":{stamp},"key":{key_text},"value":{value_text}{more}}}\n'
        ).encode()

    return shown


def _json_part(name: str, data: bytes | None, decode: Decode | None) -> str:
    if data is None:
        return "null"
    if decode is not None:
        return _json_of(decode(data))
    try:
        return _quoted(data.decode())
    except UnicodeDecodeError:
        return f'"{b64encode(data).decode()}","{name}_encoding":"base64"'


def _json_headers(headers: Sequence[Header], decode: Decode | None) -> str:
    shown = []
    for name, data in headers:
        if data is None:
            text = "null"
        elif decode is not None:
            text = _json_part("", data, decode)
        else:
            try:
                text = _quoted(data.decode())
            except UnicodeDecodeError:
                text = f'"{b64encode(data).decode()}","base64"'
        shown.append(f"[{_quoted(name)},{text}]")
    return f"[{','.join(shown)}]"


def console_layout(r: ConsumerRecord) -> bytes:
    """Print a record as Kafka's console consumer does with all its print properties.

    >>> from kafka.record import ConsumerRecord
    >>> console_layout(ConsumerRecord("events", 0, 7, 1000, 0, None, b"hello"))
    b'CreateTime:1000\\tPartition:0\\tOffset:7\\tNO_HEADERS\\tnull\\thello\\n'
    """
    headers = b",".join(b"%b:%b" % (name.encode(), b"null" if data is None else data) for name, data in r.headers)
    if r.timestamp is None or r.timestamp < 0:
        time = b"NO_TIMESTAMP"
    else:
        time = b"%b:%d" % (b"LogAppendTime" if r.timestamp_type else b"CreateTime", r.timestamp)
    return b"%b\tPartition:%d\tOffset:%d\t%b\t%b\t%b\n" % (
        time,
        r.partition,
        r.offset,
        headers or b"NO_HEADERS",
        b"null" if r.key is None else r.key,
        b"null" if r.value is None else r.value,
    )
