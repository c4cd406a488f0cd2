"""C19: what kcat mode prints of Avro, compared with Avro's library for C, which kcat prints with.

Debian's kcat is built without Avro, so the texts around a value are those of its documented format.
"""

from __future__ import annotations

import ctypes
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from kafka.broker import Broker
from kafka.cli.kcat_avro import avro_c_json
from kafka.cli.record_types import Undecodable
from kafka.schema_registry.avro import compile_avro
from test.embedded.schema_registry.registry_server import RegistryServer

from .test_kcat import OURS, ran

SCHEMA = {
    "type": "record",
    "name": "User",
    "namespace": "a.b",
    "fields": [
        {"name": "name", "type": "string"},
        {"name": "size", "type": "double"},
        {"name": "share", "type": "float"},
        {"name": "data", "type": "bytes"},
        {"name": "id", "type": {"type": "fixed", "name": "Id", "size": 2}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "flags", "type": {"type": "map", "values": "boolean"}},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
        {"name": "price", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}]},
        {
            "name": "parts",
            "type": {
                "type": "array",
                "items": ["null", "string", "int", "double", "boolean", {"type": "array", "items": "long"}, "Id"],
            },
        },
        {"name": "friend", "type": ["null", "User", "Kind"]},
    ],
}
USER = {
    "name": 'grün "quoted" back\\slash\ttab \x01\x7f € 😀',
    "size": 1e20,
    "share": 0.5,
    "data": "a\xff",
    "id": "\x01\x02",
    "kind": "B",
    "flags": {"ä": True, "no": False},
    "at": {"long": 5},
    "price": {"bytes": "\x01"},
    "parts": [None, {"string": ""}, {"int": -7}, {"double": 1e-7}, {"boolean": True}, {"array": [1, -2]}, {"Id": "ab"}],
    "friend": {"Kind": "A"},
}
#: Printed by avro_value_to_json() of Avro's library for C 1.11.1.
USER_PRINTED = (
    r'{"name": "gr\u00FCn \"quoted\" back\\slash\ttab \u0001' + "\x7f" + r' \u20AC \uD83D\uDE00", "size": 1e20, '
    r'"share": 0.5, "data": "a\u00FF", "id": "\u0001\u0002", "kind": "B", "flags": {"\u00E4": true, "no": false}, '
    r'"at": {"long": 5}, "price": {"bytes": "\u0001"}, "parts": [null, {"string": ""}, {"int": -7}, '
    r'{"double": 9.9999999999999995e-8}, {"boolean": true}, {"array": [1, -2]}, {"Id": "ab"}], "friend": {"Kind": "A"}}'
)


class _Value(ctypes.Structure):
    _fields_ = (("interface", ctypes.c_void_p), ("self", ctypes.c_void_p))


class AvroC:
    """Prints values of one schema as kcat does: one line, by avro_value_to_json()."""

    def __init__(self, library: ctypes.CDLL, schema: str) -> None:
        self._library = library
        library.avro_generic_class_from_schema.restype = ctypes.c_void_p
        library.avro_reader_memory.restype = ctypes.c_void_p
        library.avro_strerror.restype = ctypes.c_char_p
        parsed, text = ctypes.c_void_p(), schema.encode()
        self._check(library.avro_schema_from_json_length(text, ctypes.c_size_t(len(text)), ctypes.byref(parsed)))
        self._class = ctypes.c_void_p(library.avro_generic_class_from_schema(parsed))

    def print(self, data: bytes) -> str:
        value, text = _Value(), ctypes.c_char_p()
        self._check(self._library.avro_generic_value_new(self._class, ctypes.byref(value)))
        reader = ctypes.c_void_p(self._library.avro_reader_memory(data, ctypes.c_int64(len(data))))
        self._check(self._library.avro_value_read(reader, ctypes.byref(value)))
        self._check(self._library.avro_value_to_json(ctypes.byref(value), 1, ctypes.byref(text)))
        self._library.avro_reader_free(reader)
        assert text.value is not None
        return text.value.decode("ascii")

    def _check(self, failed: int) -> None:
        if failed:
            raise ValueError(self._library.avro_strerror().decode())


@pytest.fixture(scope="module")
def library() -> ctypes.CDLL:
    try:
        return ctypes.CDLL("libavro.so.23")
    except OSError:
        pytest.skip("needs Avro's library for C: apt-get install libavro23")


def _text(rng: random.Random) -> str:
    """Return text without NUL, at which the library for C ends it."""
    chars = [*map(chr, range(1, 300)), "€", "\u2028", "\ud7ff", "\uffff", "😀", "/", '"', "\\"]
    return "".join(rng.choices(chars, k=rng.randrange(12)))


def _latin(rng: random.Random, size: int) -> str:
    return "".join(chr(rng.randrange(1, 256)) for _ in range(size))


def _number(rng: random.Random) -> float:
    return rng.choice((0.0, -0.0, 1.0, rng.random(), rng.uniform(-1e18, 1e18), 10.0 ** rng.randrange(-320, 308)))


def _user(rng: random.Random, depth: int = 0) -> dict[str, Any]:
    parts: list[Any] = [
        None,
        {"string": _text(rng)},
        {"int": rng.randrange(-(2**31), 2**31)},
        {"double": _number(rng)},
        {"boolean": rng.random() < 0.5},
        {"array": [rng.randrange(-(2**63), 2**63) for _ in range(rng.randrange(3))]},
        {"Id": _latin(rng, 2)},
    ]
    return {
        "name": _text(rng),
        "size": _number(rng),
        "share": rng.choice((rng.random(), 3.4e38, 1e-40, 16777216.0)),
        "data": _latin(rng, rng.randrange(4)),
        "id": _latin(rng, 2),
        "kind": rng.choice("AB"),
        "flags": {_text(rng): rng.random() < 0.5 for _ in range(rng.randrange(3))},
        "at": rng.choice((None, {"long": rng.randrange(2**50)})),
        "price": rng.choice((None, {"bytes": _latin(rng, 2)})),
        "parts": rng.choices(parts, k=rng.randrange(9)),
        "friend": {"User": _user(rng, depth + 1)} if depth < 3 and rng.random() < 0.5 else None,
    }


def test_c19_avro_is_printed_as_by_the_library_of_kcat(library: ctypes.CDLL) -> None:
    text = json.dumps(SCHEMA)
    codec, theirs = compile_avro(text, form="short_tagged"), AvroC(library, text)
    rng = random.Random(1)
    for value in (USER, *(_user(rng) for _ in range(500))):
        data = codec.encode(value)
        assert avro_c_json(codec.decode(data)) == theirs.print(data)


@pytest.mark.parametrize("number", [0.0, -0.0, 0.1, 1e16, 1e17, 123456789012345680.0, 5e-324, 1.7976931348623157e308])
def test_c19_numbers_are_printed_as_by_the_library_of_kcat(number: float, library: ctypes.CDLL) -> None:
    for kind in ("double", "float"):
        if kind == "float" and abs(number) > 3e38:
            continue
        codec = compile_avro(f'"{kind}"')
        data = codec.encode(number)
        assert avro_c_json(codec.decode(data)) == AvroC(library, f'"{kind}"').print(data)


def test_c19_avro_has_the_text_that_kcat_prints() -> None:
    codec = compile_avro(json.dumps(SCHEMA), form="short_tagged")
    assert avro_c_json(codec.decode(codec.encode(USER))) == USER_PRINTED
    for number in (float("inf"), float("-inf"), float("nan")):
        with pytest.raises(Undecodable, match=r"^Failed to encode Avro as JSON$"):
            avro_c_json([number])


# The command line…


@pytest.fixture
def registry() -> Iterator[RegistryServer]:
    server = RegistryServer()
    yield server
    server.close()


@pytest.fixture
def broker(registry: RegistryServer, kafka_broker: Broker) -> Broker:
    """A broker whose topic has a record of Avro, a tombstone, an empty value, and two values of another format."""
    registry.add("t-value", json.dumps(SCHEMA))
    registry.add("t-key", '"long"')
    value = compile_avro(json.dumps(SCHEMA), form="short_tagged").encode(USER, bytes.fromhex("00 00000064"))
    key = bytes.fromhex("00 00000065 0e")
    for second, one in enumerate([value, None, b"", b"{}", b"plain"], 1):
        kafka_broker.append("t", one, key=None if one == b"plain" else key, timestamp_ms=second * 1000)
    return kafka_broker


def test_c19_the_avro_of_f_is_that_of_kcat(broker: Broker, registry: RegistryServer) -> None:
    code, out, notes = ran(OURS, rf"-C -t t -e -s avro -r {registry.url} -f '%o %k: %s\n'", broker)
    failed = (
        "% ERROR: Failed to format message in t [0] at offset 3: Avro/Schema-registry message deserialization: Payload "
        "is smaller (2) than framing (5): message not produced with Schema-Registry Avro framing: terminating"
    )
    assert (code, notes) == (1, [failed])
    assert out.decode() == f"0 7: {USER_PRINTED}\n1 7: \n2 7: \n3 7: "
    code, out, notes = ran(OURS, rf"-C -t t -o 4 -e -s key=avro -s value=avro -r {registry.url} -Z -K ,", broker)
    assert (code, out) == (1, b"NULL,")
    assert ": Invalid CP1 magic byte 112, expected 0: message not produced with Schema-Registry Avro" in notes[0]
    code, out, notes = ran(OURS, f"-C -t t -o 3 -e -q -s key=avro -r {registry.url}", broker)
    assert (code, out) == (0, b"{}\nplain\n"), "what -s does not name is printed as it is"


def test_c19_the_avro_of_j_is_that_of_kcat(broker: Broker, registry: RegistryServer) -> None:
    code, out, notes = ran(OURS, f"-C -t t -e -q -J -s avro -r {registry.url}", broker)
    wrong = [
        f"Payload is smaller ({size}) than framing (5): message not produced with Schema-Registry Avro framing"
        for size in (0, 2)
    ]
    wrong.append("Invalid CP1 magic byte 112, expected 0: message not produced with Schema-Registry Avro framing")
    assert code == 0
    assert notes == [
        f"% ERROR: Failed to deserialize value in message in t [0] at offset {offset}: {text}"
        for offset, text in enumerate(wrong, 2)
    ]
    key = '"key":7,"key_schema_id":101'
    assert out.decode().splitlines() == [
        f'{{"topic":"t","partition":0,"offset":{offset},"tstype":"create","ts":{offset + 1}000,"broker":1,{rest}}}'
        for offset, rest in enumerate(
            (
                f'{key},"payload":{USER_PRINTED},"value_schema_id":100',
                f'{key},"payload":null',
                *(f'{key},"payload":null,"payload_error":"{text}"' for text in wrong[:2]),
                f'"key":null,"payload":null,"payload_error":"{wrong[2]}"',
            )
        )
    ]
    code, out, _ = ran(OURS, f"-C -t t -e -q -J -c 1 -s key=avro -r {registry.url}", broker)
    assert json.loads(out.decode("latin-1"))["key"] == 7
