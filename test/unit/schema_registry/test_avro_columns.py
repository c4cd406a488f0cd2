"""Avro to Arrow columns against the codec that reads value by value, on random schemas, values and damage."""

from __future__ import annotations

import json
import random
import string
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow", reason="columns need pyarrow: pip install 'purekafka[columns]'")
pytest.importorskip("numpy", reason="columns need numpy: pip install 'purekafka[columns]'")

from kafka.schema_registry.avro import AvroCodec, AvroError, compile_avro, parse_avro, resolve_avro  # noqa: E402
from kafka.schema_registry.avro_columns import AvroColumns, arrow_type  # noqa: E402
from kafka.schema_registry.avro_types import AvroType  # noqa: E402

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class Schemas:
    """Random schemas, and random values of them in the form of `compile_avro`."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.names = 0

    def schema(self, depth: int = 0) -> Any:
        rng = self.rng
        simple = ["null", "boolean", "int", "long", "float", "double", "bytes", "string"]
        choice = rng.random()
        if depth > 2 or choice < 0.45:
            return rng.choice(simple)
        self.names += 1
        name = f"N{self.names}"
        made: list[Any] = [
            {"type": "record", "name": name, "fields": self.fields(depth)},
            {"type": "array", "items": self.schema(depth + 1)},
            {"type": "map", "values": self.schema(depth + 1)},
            {"type": "enum", "name": name, "symbols": ["A", "B", "C"]},
            {"type": "fixed", "name": name, "size": rng.randint(1, 9)},
            ["null", rng.choice(simple[1:])],
            [rng.choice(simple[1:]), "null"],
            ["null", {"type": "record", "name": name, "fields": self.fields(depth)}],
            ["null", "boolean", "string", {"type": "array", "items": "int"}],
            {"type": "int", "logicalType": "date"},
            {"type": "long", "logicalType": rng.choice(["timestamp-millis", "timestamp-micros"])},
            {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 3},
        ]
        return rng.choice(made)

    def fields(self, depth: int) -> list[Any]:
        return [{"name": f"f{at}", "type": self.schema(depth + 1)} for at in range(self.rng.randint(1, 5))]

    def value(self, schema: AvroType) -> Any:
        rng = self.rng
        if schema.logical == "decimal":
            return Decimal(rng.randint(-(10**11), 10**11)).scaleb(-3)
        if schema.logical == "date":
            return date(1970, 1, 1) + timedelta(days=rng.randint(-9999, 9999))
        if schema.logical:
            return EPOCH + timedelta(milliseconds=rng.randint(-(10**12), 10**12))
        if schema.kind == "record":
            return {one.name: self.value(one.type) for one in schema.fields}
        if schema.kind == "array":
            return [self.value(schema.item) for _ in range(rng.choice([0, 1, 2, 7]))]
        if schema.kind == "map":
            return {f"k{at}": self.value(schema.item) for at in range(rng.choice([0, 1, 3]))}
        if schema.kind == "union":
            return self.value(rng.choice(schema.branches))
        simple: dict[str, Any] = {
            "null": lambda: None,
            "boolean": lambda: rng.random() < 0.5,
            "int": lambda: rng.choice([0, 1, -1, 63, 64, -(1 << 31), (1 << 31) - 1, rng.randint(-9999, 9999)]),
            "long": lambda: rng.choice([0, -(1 << 63), (1 << 63) - 1, rng.randint(-(10**15), 10**15)]),
            "float": lambda: rng.choice([0.0, 0.5, -1.25, float("inf")]),
            "double": lambda: rng.uniform(-1e9, 1e9),
            "bytes": lambda: rng.randbytes(rng.choice([0, 1, 5, 200])),
            "string": lambda: "".join(rng.choices(string.printable + "äß€😀", k=rng.choice([0, 1, 5, 100]))),
            "enum": lambda: rng.choice(schema.symbols),
            "fixed": lambda: rng.randbytes(schema.size),
        }
        return simple[schema.kind]()


def shown(schema: AvroType, value: Any) -> Any:
    """Return a value as its column has it."""
    if value is None:
        return None
    if schema.kind == "record":
        return {one.name: shown(one.type, value[one.name]) for one in schema.fields}
    if schema.kind == "array":
        return [shown(schema.item, one) for one in value]
    if schema.kind == "map":
        return [(name, shown(schema.item, one)) for name, one in value.items()]
    if schema.kind == "union":
        members = [one for one in schema.branches if one.kind != "null"]
        if len(members) == 1:
            return shown(members[0], value)
        kinds = {"boolean": bool, "string": str, "array": list}
        return {
            f"member{at}": shown(one, value) if isinstance(value, kinds[one.kind]) else None
            for at, one in enumerate(members)
        }
    return value


@pytest.mark.parametrize("seed", range(60))
def test_columns_have_the_values_that_were_written(seed: int) -> None:
    random_schemas = Schemas(seed)
    text = json.dumps(random_schemas.schema())
    schema, codec = parse_avro(text), compile_avro(text)
    resolved = resolve_avro(parse_avro(text), schema)
    values = [random_schemas.value(schema) for _ in range(random_schemas.rng.choice([0, 1, 50]))]
    data = [codec.encode(value, b"\0\0\0\0\7") for value in values]
    data.insert(len(data) // 2, None)  # type: ignore[arg-type]
    values.insert(len(values) // 2, None)
    columns = AvroColumns(schema, schema)
    found, bad = columns.decode(pa.array(data, pa.binary()), 5)
    assert not bad.any()
    assert found.type == columns.type == arrow_type(schema)
    assert found.to_pylist() == [shown(schema, value) for value in values], text
    found.validate(full=True)
    assert printed([resolved.decode(one, 5) for one in data if one]) == printed(
        [codec.decode(one, 5) for one in data if one]
    )
    sliced, bad = columns.decode(pa.array([b"", *data], pa.binary())[1:], 5)
    assert sliced.equals(found) or sliced.to_pylist() == found.to_pylist()
    assert not bad.any()


@pytest.mark.parametrize("seed", range(60))
def test_damage_costs_its_own_value_and_is_what_the_codec_refuses(seed: int) -> None:
    random_schemas = Schemas(seed)
    rng = random_schemas.rng
    text = json.dumps(random_schemas.schema())
    schema, codec = parse_avro(text), compile_avro(text)
    data = []
    for _ in range(60):
        made = bytearray(codec.encode(random_schemas.value(schema)))
        if rng.random() < 0.5:
            for _ in range(rng.randint(1, 3)):
                if made:
                    made[rng.randrange(len(made))] = rng.randrange(256)
        if rng.random() < 0.3:
            del made[rng.randrange(len(made) + 1) :]
        data.append(bytes(made))
    found, bad = AvroColumns(schema, schema).decode(pa.array(data, pa.binary()))
    found.validate(full=True)
    for one, value, is_bad in zip(data, found.to_pylist(), bad, strict=True):
        expected = decoded(codec, one)
        if isinstance(expected, AvroError):
            assert is_bad, (text, one)
            assert value is None
        elif not is_bad:
            assert printed(value) == printed(shown(schema, expected)), (text, one)
        else:  # the columns know limits that the codec does not look at: 32 bits, the digits of a decimal
            assert "int" in text or "decimal" in text or "date" in text, (text, one, expected)


def decoded(codec: AvroCodec, data: bytes) -> Any:
    try:
        return codec.decode(data)
    except AvroError as error:
        return error


def printed(value: Any) -> str:
    """Return the text of a value, in which not-a-numbers are equal; Arrow has a class of its own for UTC."""
    return repr(value).replace("zoneinfo.ZoneInfo(key='UTC')", "datetime.timezone.utc")


def record(*fields: Any, **more: Any) -> str:
    return json.dumps({"type": "record", "name": "R", "fields": list(fields), **more})


A = {"name": "a", "type": "int"}
B = {"name": "b", "type": "string"}
NESTED = {"type": "record", "name": "In", "fields": [{"name": "x", "type": "string"}]}


@pytest.mark.parametrize(
    ("writer", "reader", "value", "expected"),
    [
        ('"int"', '"long"', 5, 5),
        ('"int"', '"double"', 5, 5.0),
        ('"float"', '"double"', 0.5, 0.5),
        ('"bytes"', '"string"', b"a", "a"),
        ('"string"', '"bytes"', "a", b"a"),
        ('"int"', '["null", "long"]', 5, 5),
        ('["null", "int"]', '"int"', 5, 5),
        ('["null", "int"]', '["null", "string", "long"]', 5, {"member0": None, "member1": 5}),
        ('["int", "long"]', '["int", "long"]', 1 << 40, 1 << 40),
        (record(A, B), record(B), {"a": 1, "b": "x"}, {"b": "x"}),
        (record(A), record(A, {"name": "b", "type": "int", "default": 7}), {"a": 1}, {"a": 1, "b": 7}),
        (record(A), record({"name": "b", "type": ["null", NESTED], "default": None}), {"a": 1}, {"b": None}),
        (record(A), record({"name": "b", "type": NESTED, "default": {"x": "d"}}), {"a": 1}, {"b": {"x": "d"}}),
        (record(A), record({"name": "z", "type": "long", "aliases": ["a"]}), {"a": 3}, {"z": 3}),
        (
            '{"type": "enum", "name": "E", "symbols": ["A", "B", "C"]}',
            '{"type": "enum", "name": "E", "symbols": ["X", "A"], "default": "X"}',
            "C",
            "X",
        ),
        ('{"type": "array", "items": "int"}', '{"type": "array", "items": "double"}', [1, 2], [1.0, 2.0]),
        ('"int"', '{"type": "long", "logicalType": "timestamp-millis"}', 5, EPOCH + timedelta(milliseconds=5)),
    ],
)  # fmt: skip
def test_a_reader_s_schema_reads_what_another_one_wrote(writer: str, reader: str, value: Any, expected: Any) -> None:
    data = compile_avro(writer).encode(value)
    found, bad = AvroColumns(parse_avro(writer), parse_avro(reader)).decode(pa.array([data, data], pa.binary()))
    assert not bad.any()
    assert found.to_pylist() == [expected, expected]
    assert found.type == arrow_type(parse_avro(reader))
    if isinstance(expected, dict) and "member0" in expected:  # a column has a struct for what is one value in Python
        expected = expected["member1"]
    assert resolve_avro(parse_avro(writer), parse_avro(reader)).decode(data) == expected


def test_a_branch_that_the_reader_does_not_have_is_an_error_of_its_values() -> None:
    writer = '["int", "string"]'
    codec = compile_avro(writer)
    columns = AvroColumns(parse_avro(writer), parse_avro('"int"'))
    found, bad = columns.decode(pa.array([codec.encode(1), codec.encode("x"), codec.encode(2)], pa.binary()))
    assert (found.to_pylist(), bad.tolist()) == ([1, None, 2], [False, True, False])
    resolved = resolve_avro(parse_avro(writer), parse_avro('"int"'))
    assert resolved.decode(codec.encode(2)) == 2
    with pytest.raises(AvroError, match="the reader's schema does not read <AvroType string>"):
        resolved.decode(codec.encode("x"))


@pytest.mark.parametrize(
    ("writer", "reader", "complaint"),
    [
        ('"string"', '"int"', "the reader's type int does not read string"),
        (record(A), record(A, name="S"), "the reader's type S does not read R"),
        (record(A), record({"name": "b", "type": "int"}), "the field 'b' of R has no default"),
        ('["string", "bytes"]', '"int"', "does not read any branch"),
    ],
)
def test_schemas_that_do_not_fit_are_refused(writer: str, reader: str, complaint: str) -> None:
    with pytest.raises(AvroError, match=complaint):
        AvroColumns(parse_avro(writer), parse_avro(reader))
    with pytest.raises(AvroError, match=complaint):
        resolve_avro(parse_avro(writer), parse_avro(reader))


def test_a_list_of_a_type_that_contains_itself_is_read_by_a_longer_schema() -> None:
    node = {"name": "next", "type": ["null", "R"]}
    writer, reader = record(A, node), record(A, node, {"name": "b", "type": "string", "default": "d"})
    data = compile_avro(writer).encode({"a": 1, "next": {"a": 2, "next": None}})
    assert resolve_avro(parse_avro(writer), parse_avro(reader)).decode(data) == {
        "a": 1,
        "next": {"a": 2, "next": None, "b": "d"},
        "b": "d",
    }


def test_a_type_that_contains_itself_has_no_column() -> None:
    with pytest.raises(AvroError, match="contains itself"):
        arrow_type(parse_avro(record({"name": "next", "type": ["null", "R"]})))


def test_a_few_bytes_do_not_announce_many_items() -> None:
    text = '{"type": "array", "items": "null"}'
    values = [b"\xfe\xff\xff\xff\x0f\x00", compile_avro(text).encode([None] * 3)]
    found, bad = AvroColumns(parse_avro(text), parse_avro(text)).decode(pa.array(values, pa.binary()))
    assert (found.to_pylist(), bad.tolist()) == ([None, [None] * 3], [True, False])
