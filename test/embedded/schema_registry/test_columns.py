"""Values with schema ids to Arrow columns and back, of the three formats, with a registry over loopback."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

pa = pytest.importorskip("pyarrow", reason="columns need pyarrow: pip install 'purekafka[columns]'")

from kafka.schema_registry import (  # noqa: E402
    Reference,
    Schema,
    SchemaDeserializer,
    SchemaMismatchError,
    SchemaRegistry,
    SchemaRegistryError,
    SchemaSerializer,
)
from kafka.schema_registry.column_writer import ColumnWriter  # noqa: E402
from kafka.schema_registry.columns import SchemaColumns  # noqa: E402

from .registry_server import RegistryServer  # noqa: E402


def avro(*fields: Any) -> Schema:
    return Schema(json.dumps({"type": "record", "name": "Order", "fields": list(fields)}))


ID = {"name": "id", "type": "long"}
NOTE = {"name": "note", "type": ["null", "string"], "default": None}
PROTO = """
syntax = "proto3"; package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
import "google/protobuf/struct.proto";
message Other { int32 x = 1; }
message Order {
  int64 id = 1; optional string note = 2; repeated Line lines = 3; map<string, Status> states = 4;
  google.protobuf.Timestamp at = 5; oneof pay { string card = 6; bytes cash = 7; } uint64 big = 8;
  google.protobuf.Int32Value maybe = 9; google.protobuf.Struct extra = 10;
  message Line { string sku = 1; double price = 2; }
  enum Status { UNKNOWN = 0; PAID = 1; }
}
"""


def test_each_value_is_read_by_its_own_schema_into_the_reader_s(server: RegistryServer) -> None:
    registry = SchemaRegistry(server.url)
    old = SchemaSerializer(registry, avro(ID), subject="s")
    new = SchemaSerializer(registry, avro(ID, NOTE), subject="s")
    values = [
        old.encode("", {"id": 1}),
        new.encode("", {"id": 2, "note": "x"}),
        None,
        b"poison",
        b"\0\0\0\0\x63\2",
        old.encode("", {"id": 3})[:-1],
        old.encode("", {"id": 4}),
    ]
    columns = SchemaColumns(registry, registry.latest("s"))
    found, errors = columns.decode(pa.array(values, pa.binary()))
    assert str(columns.type) == "struct<id: int64, note: string>"
    assert found.to_pylist() == [
        {"id": 1, "note": None}, {"id": 2, "note": "x"}, None, None, None, None, {"id": 4, "note": None},
    ]  # fmt: skip
    assert sorted(errors) == [3, 4, 5]
    assert errors[3] == "the bytes begin with 706f69736f, not with 00 and the id of a schema"
    assert "schema id 99: Schema 99 not found" in errors[4]
    assert errors[5] == "schema id 100: the value ends after 5 bytes, within Order"


def test_ids_may_be_in_headers(server: RegistryServer) -> None:
    registry = SchemaRegistry(server.url)
    data = SchemaSerializer(registry, Schema('"long"'), subject="s").encode("", 7)
    guid = server._store.by_id(100)[0].guid
    headers = [
        [{"key": "__value_schema_id", "value": data[:5]}],
        [{"key": "other", "value": b""}, {"key": "__value_schema_id", "value": b"\1" + UUID(guid).bytes}],
        None,
        [{"key": "__value_schema_id", "value": b"what"}],
    ]
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    columns = SchemaColumns(registry, registry.latest("s"))
    found, errors = columns.decode(pa.array([data[5:], data[5:], data, data]), pa.array(headers, kind))
    assert found.to_pylist() == [7, 7, 7, None]
    assert errors == {3: "the header __value_schema_id has no id of a schema: b'what'"}
    deserializer = SchemaDeserializer(registry)
    assert deserializer.deserialize("t", [("__value_schema_id", data[:5])], data[5:]) == 7
    assert deserializer.deserialize("t", [("__value_schema_id", b"\1" + UUID(guid).bytes)], data[5:]) == 7
    assert deserializer.deserialize("t", [("x", b"")], data) == 7


def test_a_registry_that_is_away_is_not_an_error_of_records(server: RegistryServer) -> None:
    registry = SchemaRegistry(server.url)
    data = SchemaSerializer(registry, Schema('"long"'), subject="s").encode("", 7)
    columns = SchemaColumns(registry, Schema('"long"'))
    server.fail(503)
    fresh = SchemaColumns(SchemaRegistry(server.url), Schema('"long"'))
    with pytest.raises(SchemaRegistryError, match="status 503"):
        fresh.decode(pa.array([data]))
    server.recover()
    assert columns.decode(pa.array([data]))[0].to_pylist() == [7]


def test_messages_of_protobuf_are_columns_and_back(server: RegistryServer) -> None:
    pytest.importorskip("google.protobuf", reason="protobuf is not installed: pip install 'purekafka[registry]'")
    registry = SchemaRegistry(server.url)
    schema = Schema(PROTO, "PROTOBUF")
    serializer = SchemaSerializer(registry, schema, subject="s", message="shop.Order")
    values = [
        serializer.encode(
            "", {"id": 5, "lines": [{"sku": "a", "price": 0.5}], "states": {"x": "PAID"}, "cash": "AP8="}
        ),
        serializer.encode("", {"at": "2026-01-01T00:00:00Z", "big": str((1 << 64) - 1), "maybe": 3, "extra": {"a": 1}}),
        SchemaSerializer(registry, schema, subject="s", message="shop.Other").encode("", {"x": 1}),
        serializer.encode("", {"note": "cut"})[:-1],
    ]
    columns = SchemaColumns(registry, registry.latest("s"), message="shop.Order")
    assert "lines: list<item: struct<sku: string, price: double>>, states: map<string, string>" in str(columns.type)
    found, errors = columns.decode(pa.array(values))
    none = dict.fromkeys(["note", "at", "card", "cash", "maybe", "extra"])
    rows = found.to_pylist()
    assert rows[0] == {
        **none,
        "id": 5,
        "lines": [{"sku": "a", "price": 0.5}],
        "states": [("x", "PAID")],
        "cash": b"\0\xff",
        "big": Decimal(0),
    }
    assert rows[1]["at"] == datetime(2026, 1, 1, tzinfo=timezone.utc)
    assert (rows[1]["big"], rows[1]["maybe"], json.loads(rows[1]["extra"])) == (Decimal((1 << 64) - 1), 3, {"a": 1.0})
    assert rows[2:] == [None, None]
    assert "a message shop.Other, not shop.Order" in errors[2]
    assert "not a message shop.Order" in errors[3]
    writer = ColumnWriter(registry, registry.latest("s"), message="shop.Order")
    assert writer.encode(found[:1]).to_pylist() == values[:1]


TIMES = """
syntax = "proto3"; package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
message Times { google.protobuf.Timestamp at = 1; google.protobuf.Duration for = 2; map<bool, int32> votes = 3; }
"""


def test_a_time_that_protobuf_does_not_allow_is_an_error_of_its_record(server: RegistryServer) -> None:
    pytest.importorskip("google.protobuf", reason="protobuf is not installed: pip install 'purekafka[registry]'")
    from google.protobuf.duration_pb2 import Duration
    from google.protobuf.timestamp_pb2 import Timestamp

    registry = SchemaRegistry(server.url)
    head = b"\0" + registry.register("s", Schema(TIMES, "PROTOBUF")).to_bytes(4, "big") + b"\0"
    far = 1 << 62

    def field(number: int, message: Any) -> bytes:
        data = message.SerializeToString()
        return head + bytes([number << 3 | 2, len(data)]) + data

    values = [field(1, Timestamp(seconds=far)), field(2, Duration(seconds=far)), field(1, Timestamp(seconds=1))]
    found, errors = SchemaColumns(registry, registry.latest("s")).decode(pa.array(values))
    assert [row and row["at"] for row in found.to_pylist()] == [
        None,
        None,
        datetime(1970, 1, 1, 0, 0, 1, 0, timezone.utc),
    ]
    assert sorted(errors) == [0, 1]
    assert "beyond 64 bits" in errors[0]
    for value in values[:2]:
        with pytest.raises(SchemaMismatchError, match=r"a message shop\.Times cannot be read"):
            SchemaDeserializer(registry).decode(value)


def test_maps_with_keys_that_are_not_text_are_columns_and_back(server: RegistryServer) -> None:
    pytest.importorskip("google.protobuf", reason="protobuf is not installed: pip install 'purekafka[registry]'")
    registry = SchemaRegistry(server.url)
    value = SchemaSerializer(registry, Schema(TIMES, "PROTOBUF"), subject="s").encode("", {"votes": {"true": 3}})
    found, _ = SchemaColumns(registry, registry.latest("s")).decode(pa.array([value]))
    assert found.to_pylist()[0]["votes"] == [(True, 3)]
    assert ColumnWriter(registry, registry.latest("s")).encode(found).to_pylist() == [value]


def test_json_is_columns_and_back(server: RegistryServer) -> None:
    pytest.importorskip("jsonschema", reason="jsonschema is not installed: pip install 'purekafka[registry]'")
    registry = SchemaRegistry(server.url)
    server.add("city", '{"type": "string"}', "JSON")
    text = json.dumps(
        {
            "type": "object",
            "properties": {
                "id": {"type": "integer"},
                "price": {"type": ["number", "null"]},
                "city": {"$ref": "city.json"},
                "tags": {"type": "array", "items": {"type": "string"}},
                "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
                "any": {},
                "in": {"oneOf": [{"type": "null"}, {"type": "object", "properties": {"x": {"type": "boolean"}}}]},
            },
        }
    )
    schema = Schema(text, "JSON", (Reference("city.json", "city", 1),))
    serializer = SchemaSerializer(registry, schema, subject="s")
    value = {"id": 1, "price": 2, "city": "Oslo", "tags": ["a"], "counts": {"k": 3}, "any": "x", "in": {"x": True}}
    values = [serializer.encode("", value), serializer.encode("", {}), serializer.encode("", {"any": [1]})]
    wrong = values[0][:5] + b'{"id": "x"}'
    columns = SchemaColumns(registry, registry.latest("s"))
    found, errors = columns.decode(pa.array([*values, wrong, values[0][:5] + b"{"]))
    rows = found.to_pylist()
    assert rows[0] == {**value, "counts": [("k", 3)]}
    assert rows[1] == dict.fromkeys(value)
    assert rows[2]["any"] == "[1]"
    assert errors[3] == 'schema id 101: "x" is not of the type int or float'
    assert "schema id 101: Expecting" in errors[4]
    written = ColumnWriter(registry, registry.latest("s")).encode(found[:1]).to_pylist()
    assert json.loads(written[0][5:]) == value


def test_columns_of_avro_are_written_back(server: RegistryServer) -> None:
    registry = SchemaRegistry(server.url)
    schema = avro(
        ID,
        NOTE,
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "counts", "type": {"type": "map", "values": "int"}},
        {"name": "either", "type": ["string", "boolean", "null"]},
    )
    serializer = SchemaSerializer(registry, schema, subject="s")
    at = datetime(2026, 1, 1, tzinfo=timezone.utc)
    base = {"id": 1, "note": None, "at": at, "price": Decimal("1.25"), "counts": {"a": 1}}
    values = [serializer.encode("", {**base, "either": one}) for one in ("x", True, None)]
    columns, writer = SchemaColumns(registry, registry.latest("s")), ColumnWriter(registry, registry.latest("s"))
    found, errors = columns.decode(pa.array(values))
    assert not errors
    assert writer.encode(found).to_pylist() == values
    bare = ColumnWriter(registry, registry.latest("s"), framed=False).encode(found).to_pylist()
    assert bare == [value[5:] for value in values]
    with pytest.raises(SchemaMismatchError, match=r"row 1 of the column: subject 's': .*'b'"):
        ColumnWriter(registry, registry.latest("s")).encode(pa.array([None, {"b": 1}]))


def test_a_reader_of_another_format_or_type_is_refused(server: RegistryServer) -> None:
    registry = SchemaRegistry(server.url)
    data = SchemaSerializer(registry, Schema('"long"'), subject="s").encode("", 7)
    found, errors = SchemaColumns(registry, Schema("{}", "JSON")).decode(pa.array([data]))
    assert (found.to_pylist(), errors) == ([None], {0: "schema id 100 is of type AVRO, and the reader's is JSON"})
    found, errors = SchemaColumns(registry, Schema('"boolean"')).decode(pa.array([data]))
    assert errors == {0: "schema id 100: the reader's type boolean does not read long"}
    with pytest.raises(SchemaMismatchError, match="contains itself"):
        SchemaColumns(registry, avro({"name": "next", "type": ["null", "Order"]}))
