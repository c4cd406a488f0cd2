"""What a schema registry calls compatible, by format: changes of a schema, and whether the new one reads the old."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kafka.schema_registry.server.formats import InvalidSchema, parse_schema

INT = {"name": "a", "type": "int"}


def record(*fields: Any, **more: Any) -> Any:
    return {"type": "record", "name": "R", "fields": list(fields), **more}


def differences(kind: str, new: str, old: str) -> list[str]:
    return parse_schema(kind, new, []).differences(parse_schema(kind, old, []))


def enum(*symbols: str, **more: Any) -> Any:
    return {"type": "enum", "name": "E", "symbols": list(symbols), **more}


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        (record(INT), record(INT, {"name": "b", "type": "int"}), []),
        (record(INT, {"name": "b", "type": "int", "default": 1}), record(INT), []),
        (record(INT, {"name": "b", "type": "int"}), record(INT), ["/fields/b: the reader's field has no default"]),
        (record({"name": "z", "type": "int", "aliases": ["a"]}), record(INT), []),
        (record(INT, name="S"), record(INT), ["/name: the name S is not the writer's, R"]),
        (record(INT, name="S", aliases=["R"]), record(INT), []),
        ("long", "int", []),
        ("int", "long", ["/: the reader's type int does not read the writer's long"]),
        ("string", "bytes", []),
        (["null", "string"], "string", []),
        ("string", ["null", "string"], ["the reader's type string does not read the writer's null (branch 0"]),
        (["null", "double"], ["null", "int"], []),
        (enum("A", "B"), enum("A", "B", "C"), ["/symbols: the reader's enum lacks C"]),
        (enum("A", "B", default="A"), enum("A", "B", "C"), []),
        ({"type": "array", "items": "int"}, {"type": "array", "items": "string"}, ["/items: the reader's type int"]),
    ],
)
def test_an_avro_reader_reads_what_resolution_allows(new: Any, old: Any, expected: list[str]) -> None:
    found = differences("AVRO", json.dumps(new), json.dumps(old))
    assert len(found) == len(expected)
    assert all(part in one for part, one in zip(expected, found, strict=True)), found


def test_an_avro_type_that_contains_itself_is_compared_once() -> None:
    tree = record(INT, {"name": "next", "type": ["null", "R"]})
    assert differences("AVRO", json.dumps(tree), json.dumps(tree)) == []
    wider = record({"name": "a", "type": "long"}, {"name": "next", "type": ["null", "R"]})
    assert differences("AVRO", json.dumps(wider), json.dumps(tree)) == []
    assert differences("AVRO", json.dumps(tree), json.dumps(wider)) != []


OPEN = {"type": "object", "properties": {"a": {"type": "integer"}}}
CLOSED = {**OPEN, "additionalProperties": False}


def with_b(schema: dict[str, Any], b: Any, **more: Any) -> dict[str, Any]:
    return {**schema, "properties": {**schema["properties"], "b": b}, **more}


@pytest.mark.parametrize(
    ("new", "old", "compatible"),
    [
        ({"type": "number"}, {"type": "integer"}, True),
        ({"type": "integer"}, {"type": "number"}, False),
        ({"type": ["string", "null"]}, {"type": "string"}, True),
        ({"type": "string"}, {"type": ["string", "null"]}, False),
        ({}, {"type": "string"}, True),
        ({"type": "string"}, {}, False),
        # A property may be added to a closed object, and removed from an open one.
        (with_b(CLOSED, {"type": "string"}), CLOSED, True),
        (with_b(OPEN, {"type": "string"}), OPEN, False),
        (with_b(OPEN, {}), OPEN, True),
        (OPEN, with_b(OPEN, {"type": "string"}), True),
        (CLOSED, with_b(CLOSED, {"type": "string"}), False),
        (with_b(CLOSED, {"type": "string"}, required=["b"]), CLOSED, False),
        (with_b(CLOSED, {"type": "string", "default": ""}, required=["b"]), CLOSED, True),
        ({**OPEN, "required": ["a"]}, OPEN, False),
        (OPEN, {**OPEN, "required": ["a"]}, True),
        (OPEN, CLOSED, True),
        (CLOSED, OPEN, False),
        ({"type": "string", "maxLength": 5}, {"type": "string", "maxLength": 4}, True),
        ({"type": "string", "maxLength": 4}, {"type": "string", "maxLength": 5}, False),
        ({"type": "string", "minLength": 1}, {"type": "string"}, False),
        ({"type": "string", "pattern": "a"}, {"type": "string", "pattern": "b"}, False),
        ({"type": "integer", "multipleOf": 2}, {"type": "integer", "multipleOf": 4}, True),
        ({"type": "integer", "multipleOf": 4}, {"type": "integer", "multipleOf": 2}, False),
        ({"enum": ["a", "b"]}, {"enum": ["a"]}, True),
        ({"enum": ["a"]}, {"enum": ["a", "b"]}, False),
        ({"type": "array", "items": {"type": "number"}}, {"type": "array", "items": {"type": "integer"}}, True),
        ({"type": "array", "items": {"type": "integer"}}, {"type": "array"}, False),
        ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, {"oneOf": [{"type": "string"}]}, True),
        ({"oneOf": [{"type": "string"}]}, {"oneOf": [{"type": "string"}, {"type": "integer"}]}, False),
        ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, {"type": "integer"}, True),
        ({"allOf": [{"type": "string"}]}, {"allOf": [{"type": "string"}, {"maxLength": 3}]}, True),
        ({"$ref": "#/definitions/x", "definitions": {"x": {"type": "number"}}}, {"type": "integer"}, True),
        ({"not": {"type": "string"}}, {"not": {"type": ["string", "null"]}}, True),
    ],
)
def test_a_json_schema_takes_what_the_one_before_took(new: Any, old: Any, compatible: bool) -> None:
    found = differences("JSON", json.dumps(new), json.dumps(old))
    assert (not found) is compatible, found


def test_a_json_schema_that_contains_itself_is_compared() -> None:
    tree = {"type": "object", "properties": {"next": {"$ref": "#"}, "a": {"type": "integer"}}}
    wider = {"type": "object", "properties": {"next": {"$ref": "#"}, "a": {"type": "number"}}}
    assert differences("JSON", json.dumps(wider), json.dumps(tree)) == []
    assert differences("JSON", json.dumps(tree), json.dumps(wider)) != []


def proto(body: str, head: str = "") -> str:
    return f'syntax = "proto3"; package shop; {head} message Order {{ {body} }}'


@pytest.mark.parametrize(
    ("new", "old", "compatible"),
    [
        (proto("int32 a = 1; string b = 2;"), proto("int32 a = 1;"), True),
        (proto(""), proto("int32 a = 1;"), True),
        (proto("int32 renamed = 1;"), proto("int32 a = 1;"), True),
        (proto("int64 a = 1;"), proto("int32 a = 1;"), True),
        (proto("sint32 a = 1;"), proto("int32 a = 1;"), False),
        (proto("string a = 1;"), proto("int32 a = 1;"), False),
        (proto("bytes a = 1;"), proto("string a = 1;"), True),
        (proto("repeated string a = 1;"), proto("string a = 1;"), True),
        (proto("repeated int32 a = 1;"), proto("int32 a = 1;"), False),
        (proto("enum E { X = 0; } E a = 1;"), proto("int32 a = 1;"), True),
        (proto("message In { int32 x = 1; } In a = 1;"), proto("message In { string x = 1; } In a = 1;"), False),
        (proto("map<string, int32> m = 1;"), proto("map<string, string> m = 1;"), False),
        (proto("map<string, int64> m = 1;"), proto("map<string, int32> m = 1;"), True),
        (proto("oneof o { int32 a = 1; int32 b = 2; }"), proto("oneof o { int32 a = 1; }"), True),
        (proto("oneof o { int32 a = 1; }"), proto("oneof o { int32 a = 1; int32 b = 2; }"), False),
        (proto("oneof o { int32 a = 1; int32 b = 2; }"), proto("int32 a = 1; int32 b = 2;"), False),
        (proto("oneof o { int32 a = 1; }"), proto("int32 a = 1;"), True),
        (proto(""), proto("", "message Other {}"), False),
        (proto("").replace("shop", "store"), proto(""), False),
        (proto("optional int32 a = 1;"), proto("int32 a = 1;"), True),
    ],
)
def test_a_protobuf_file_reads_messages_of_the_one_before(new: str, old: str, compatible: bool) -> None:
    pytest.importorskip("google.protobuf", reason="protobuf is not installed: pip install 'purekafka[registry]'")
    found = differences("PROTOBUF", new, old)
    assert (not found) is compatible, found


def test_a_descriptor_and_the_file_it_is_of_are_one_schema() -> None:
    pytest.importorskip("google.protobuf", reason="protobuf is not installed: pip install 'purekafka[registry]'")
    text = proto("message In { int32 x = 1; } In a = 1; map<string, In> m = 2; optional int64 o = 3;")
    parsed = parse_schema("PROTOBUF", text, [])
    again = parse_schema("PROTOBUF", parsed.serialized(), [])
    assert again.identity == parsed.identity


@pytest.mark.parametrize(
    ("kind", "text", "complaint"),
    [
        ("AVRO", "{", "not JSON"),
        ("AVRO", '{"type": "nope"}', "uses the type 'nope'"),
        ("AVRO", json.dumps(record(INT, INT)), "has the field 'a' twice"),
        ("AVRO", json.dumps(record({"name": "a-b", "type": "int"})), "has the name 'a-b'"),
        ("AVRO", json.dumps(record({**INT, "default": "x"})), "'x' does not fit into int"),
        ("AVRO", '["int", "int"]', "a type twice"),
        ("AVRO", '["int", ["long"]]', "union as a branch"),
        ("JSON", "[]", "an object, true or false"),
        ("JSON", '{"type": "nope"}', "not a type of JSON"),
        ("JSON", '{"properties": {"a": {"items": [3]}}}', "#/properties/a/items/0"),
        ("JSON", '{"allOf": {}}', "must be a list"),
    ],
)
def test_text_that_is_not_a_schema_is_refused(kind: str, text: str, complaint: str) -> None:
    with pytest.raises(InvalidSchema, match=complaint):
        parse_schema(kind, text, [])
