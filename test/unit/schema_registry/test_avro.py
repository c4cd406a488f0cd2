"""Avro's binary encoding. The bytes are those of the specification, or of fastavro where that has no example."""

from __future__ import annotations

import json
import random
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from kafka.schema_registry.avro import AvroError, compile_avro

TREE = {
    "type": "record",
    "name": "Node",
    "namespace": "a.b",
    "fields": [
        {"name": "value", "type": "long"},
        {"name": "next", "type": ["null", "Node"], "default": None},
    ],
}


def schema(kind: Any, **more: Any) -> str:
    return json.dumps({"type": kind, **more} if more else kind)


@pytest.mark.parametrize(
    ("text", "value", "encoded"),
    [
        (schema("null"), None, ""),
        (schema("boolean"), True, "01"),
        (schema("int"), -64, "7f"),
        (schema("int"), 64, "8001"),
        (schema("long"), 2**63 - 1, "feffffffffffffffff01"),
        (schema("long"), -(2**63), "ffffffffffffffffff01"),
        (schema("float"), 1.5, "0000c03f"),
        (schema("double"), -2, "00000000000000c0"),
        (schema("bytes"), b"\xff\0", "04ff00"),
        (schema("string"), "foo", "06666f6f"),
        (schema("array", items="long"), [3, 27], "04063600"),
        (schema("array", items="long"), [], "00"),
        (schema("map", values="int"), {"a": 1}, "0202610200"),
        (schema("fixed", name="F", size=2), b"ab", "6162"),
        (schema("enum", name="E", symbols=["A", "B"]), "B", "02"),
        (schema(["null", "string"]), None, "00"),
        (schema(["null", "string"]), "a", "020261"),
        (schema("record", name="R", fields=[{"name": "a", "type": "long"}, {"name": "b", "type": "string"}]),
         {"a": 27, "b": "foo"}, "3606666f6f"),
        (json.dumps(TREE), {"value": 1, "next": {"value": 2, "next": None}}, "02020400"),
        (schema("int", logicalType="date"), date(1970, 1, 3), "04"),
        (schema("int", logicalType="time-millis"), time(0, 0, 1), "d00f"),
        (schema("long", logicalType="timestamp-millis"), datetime(1970, 1, 1, tzinfo=timezone.utc), "00"),
        (schema("long", logicalType="timestamp-micros"),
         datetime(1969, 12, 31, 23, 59, 59, 999999, timezone.utc), "01"),
        (schema("long", logicalType="local-timestamp-millis"), datetime(1970, 1, 1, 0, 0, 1), "d00f"),
        (schema("string", logicalType="uuid"), UUID(int=1), "48" + b"00000000-0000-0000-0000-000000000001".hex()),
        (schema("bytes", logicalType="decimal", precision=4, scale=2), Decimal("-1.28"), "0280"),
        (schema("fixed", name="F", size=3, logicalType="decimal", precision=6, scale=1), Decimal("12.5"), "00007d"),
        (  # more digits than the context of decimal keeps
            schema("bytes", logicalType="decimal", precision=30, scale=4),
            Decimal("-9999999999999999999999999.9999"),
            "1a" + (1 - 10**29).to_bytes(13, "big", signed=True).hex(),
        ),
        (schema("long", logicalType="of-tomorrow"), 1, "02"),
    ],
)  # fmt: skip
def test_values_are_encoded_as_the_specification_says(text: str, value: Any, encoded: str) -> None:
    codec = compile_avro(text)
    assert codec.encode(value).hex() == encoded
    assert codec.decode(bytes.fromhex(encoded)) == value
    for form in ("json", "tagged"):  # what a command line prints is taken back
        other = compile_avro(text, form=form)
        shown = json.loads(json.dumps(other.decode(bytes.fromhex(encoded))))
        assert other.encode(shown).hex() == encoded


def test_blocks_with_their_size_in_bytes_are_read() -> None:
    # Two blocks: one of two items with a size, one of one item.
    assert compile_avro(schema("array", items="long")).decode(bytes.fromhex("0304 0636 0202 00")) == [3, 27, 1]


def test_a_field_with_a_default_may_be_left_out() -> None:
    text = schema(
        "record",
        name="R",
        fields=[
            {"name": "id", "type": "long"},
            {"name": "tags", "type": {"type": "array", "items": "string"}, "default": ["x"]},
            {"name": "raw", "type": "bytes", "default": "\u00ff"},
            {"name": "inner", "type": {"type": "record", "name": "I", "fields": [{"name": "n", "type": "int"}]},
             "default": {"n": 3}},
        ],
    )  # fmt: skip
    for form in ("native", "json", "tagged"):
        codec = compile_avro(text, form=form)
        assert codec.encode({"id": 1}).hex() == "02" + "0202" + "7800" + "02ff" + "06"
    assert compile_avro(text).decode(codec.encode({"id": 1})) == {
        "id": 1, "tags": ["x"], "raw": b"\xff", "inner": {"n": 3}
    }  # fmt: skip


@pytest.mark.parametrize("form", ["native", "json"])
@pytest.mark.parametrize(
    "other",
    [
        {"type": "map", "values": "string"},
        {"type": "record", "name": "R", "fields": [{"name": "string", "type": "string"}]},
    ],
)
def test_a_map_or_record_that_looks_like_a_named_branch_of_a_union_stays_one(form: str, other: Any) -> None:
    codec = compile_avro(json.dumps(["null", "string", other]), form=form)
    value = {"string": "x"}
    assert codec.decode(codec.encode(value)) == value
    tagged = compile_avro(json.dumps(["null", "string", other]), form="tagged")
    assert tagged.decode(tagged.encode(value)) == value
    assert codec.decode(tagged.encode(value)) == "x"


def test_the_json_of_avro_names_the_branch_of_a_union() -> None:
    text = schema("record", name="R", fields=[{"name": "u", "type": ["null", "string", "long"]}])
    data = compile_avro(text).encode({"u": "a"})
    assert compile_avro(text, form="tagged").decode(data) == {"u": {"string": "a"}}
    assert compile_avro(text, form="json").decode(data) == {"u": "a"}
    # Both are taken, so a value that fits into several branches can be placed.
    assert compile_avro(text, form="json").encode({"u": {"long": 5}}) == compile_avro(text).encode({"u": 5})


def test_schemas_use_the_types_of_schemas_before_them() -> None:
    money = json.dumps({"type": "record", "name": "shop.Money", "fields": [{"name": "cents", "type": "long"}]})
    order = json.dumps(
        {"type": "record", "name": "Order", "namespace": "shop", "fields": [{"name": "total", "type": "Money"}]}
    )
    assert compile_avro(order, [money]).encode({"total": {"cents": 5}}) == b"\x0a"
    with pytest.raises(AvroError, match=r"uses the type 'shop\.Money'"):
        compile_avro(order)


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ({"value": "x"}, "value: 'x' does not fit into long"),
        ({"value": 2**63}, "does not fit into long"),
        ({"value": True}, "True does not fit into long"),
        ({"next": None}, r"field 'value' of a\.b\.Node is missing, and has no default"),
        ({"value": 1, "nxt": None}, r"a\.b\.Node has no field 'nxt'; its fields are value, next"),
        ({"value": 1, "next": {"value": 2, "next": 3}}, r"is not one of null, a\.b\.Node"),
        (7, r"7 does not fit into a\.b\.Node"),
    ],
)
def test_a_value_that_does_not_fit_is_named_with_its_place(value: Any, complaint: str) -> None:
    with pytest.raises(AvroError, match=complaint):
        compile_avro(json.dumps(TREE)).encode(value)


def test_the_place_of_an_error_is_the_whole_way_to_it() -> None:
    inner = {"type": "record", "name": "I", "fields": [{"name": "n", "type": "int"}]}
    text = schema("record", name="R", fields=[{"name": "items", "type": {"type": "array", "items": inner}}])
    with pytest.raises(AvroError, match=r"^items\[1\]\.n: 'x' does not fit into int$"):
        compile_avro(text).encode({"items": [{"n": 1}, {"n": "x"}]})


@pytest.mark.parametrize(
    ("text", "data", "complaint"),
    [
        (schema("long"), "", "the value ends after 0 bytes, within long"),
        (schema("long"), "0202", "1 bytes are left behind the value"),
        (schema("long"), "ff" * 11, "more than 10 bytes"),
        (schema("string"), "0aff", "5 bytes are announced at byte 1, and 1 are left"),
        (schema("string"), "02ff", "invalid start byte"),
        (schema("string"), "01", "-1 bytes are announced"),
        (schema("boolean"), "02", "2 at byte 0 is not a boolean"),
        (schema("double"), "0000", "the value ends"),
        (schema("enum", name="E", symbols=["A"]), "02", "1 is not a symbol of E"),
        (schema(["null"]), "02", "1 is not a branch of a union of 1"),
        (schema("fixed", name="F", size=9), "00", "9 bytes are needed at byte 0, and 1 are left"),
        (schema("array", items="long"), "feffffff0f", "items are announced"),
        (schema("array", items="null"), "feffffff0f", "items are announced"),
        (schema("int", logicalType="date"), "feffffff0f", "is wrong"),
        (json.dumps(TREE), "0202" * 20_000 + "0200", "nested too deeply"),
    ],
)
def test_bytes_that_are_not_of_the_schema_are_refused(text: str, data: str, complaint: str) -> None:
    with pytest.raises(AvroError, match=complaint):
        compile_avro(text).decode(bytes.fromhex(data))


@pytest.mark.parametrize(
    "text",
    ["", "{", '"lng"', "7", '{"type": "record", "name": "R"}', '{"type": "array"}', '{"name": "x"}', '{"type": 7}'],
)
def test_a_wrong_schema_is_refused(text: str) -> None:
    with pytest.raises(AvroError, match="Avro schema"):
        compile_avro(text)


def test_damaged_bytes_raise_nothing_but_avro_errors() -> None:
    rng = random.Random(1)
    nulls = {"type": "array", "items": "null"}
    text = schema(
        "record",
        name="R",
        fields=[
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
            {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
            {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
            {
                "name": "parts",
                "type": {"type": "map", "values": ["null", "double", nulls]},
            },
        ],
    )
    codec = compile_avro(text)
    good = codec.encode(
        {
            "at": datetime(2026, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=1),
            "price": Decimal("12.50"),
            "id": UUID(int=5),
            "parts": {"a": None, "b": 1.5, "c": [None, None]},
        }
    )
    refused = 0
    for _ in range(5000):
        data = bytearray(good)
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        try:
            codec.decode(bytes(data[: rng.randrange(1, len(data) + 1)]))
        except AvroError:
            refused += 1
    assert refused > 1000
