"""The client of a schema registry and its serializers, against a registry over loopback and the embedded broker."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest

from kafka import KafkaConsumer, KafkaProducer
from kafka.broker import Broker
from kafka.errors import IllegalArgumentError, KafkaConfigurationError
from kafka.schema_registry import (
    Schema,
    SchemaDeserializer,
    SchemaMismatchError,
    SchemaRegistry,
    SchemaRegistryError,
    SchemaSerializer,
    schema_id,
)

from .registry_server import RegistryServer

USER = json.dumps(
    {
        "type": "record",
        "name": "User",
        "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": ["null", "string"], "default": None}],
    }
)


def test_records_are_written_and_read_by_the_schema_of_their_subject(server: RegistryServer) -> None:
    number = server.add("events-value", USER)
    registry = SchemaRegistry(server.url)
    with Broker(topics={"events": 1}) as broker:
        servers = broker.bootstrap_servers
        with KafkaProducer(bootstrap_servers=servers, value_serializer=SchemaSerializer(registry)) as producer:
            for identifier in range(10):
                producer.send("events", {"id": identifier, "name": "ada"})
            producer.send("events", None, b"tombstone")
        assert broker.records("events")[0].value == bytes.fromhex("00 00000064 00 02 06 616461")
        with KafkaConsumer(
            "events",
            bootstrap_servers=servers,
            auto_offset_reset="earliest",
            consumer_timeout_ms=5000,
            value_deserializer=SchemaDeserializer(registry),
        ) as consumer:
            values = [next(consumer).value for _ in range(11)]
    assert values == [*({"id": identifier, "name": "ada"} for identifier in range(10)), None]
    assert number == 100
    paths = [path for _, path, _ in server.requests]
    assert paths == ["/subjects/events-value/versions/latest", "/schemas/ids/100"], "each is asked for once"


def test_a_given_schema_is_registered_once(server: RegistryServer) -> None:
    serializer = SchemaSerializer(SchemaRegistry(server.url), Schema(USER), key=True)
    first = serializer.encode("a/b", {"id": 1})
    assert (schema_id(first), serializer.encode("a/b", {"id": 1})) == (100, first)
    assert server.requests == [("POST", "/subjects/a%2Fb-key/versions", None)]
    assert server.subjects == {"a/b-key": [100]}
    with pytest.raises(SchemaMismatchError, match=r"^subject 'a/b-key': id: 'x' does not fit into long$"):
        serializer.encode("a/b", {"id": "x"})


def test_types_of_other_subjects_are_fetched_before_the_schema(server: RegistryServer) -> None:
    server.add("money", json.dumps({"type": "record", "name": "Money", "fields": [{"name": "cents", "type": "int"}]}))
    text = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "total", "type": "Money"}]})
    server.add("orders-value", text, references=[{"name": "Money", "subject": "money", "version": 1}])
    registry = SchemaRegistry(server.url)
    data = SchemaSerializer(registry).encode("orders", {"total": {"cents": 5}})
    assert SchemaDeserializer(registry).decode(data) == {"total": {"cents": 5}}
    assert [path for _, path, _ in server.requests].count("/subjects/money/versions/1") == 1


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, None),
        ({"user_info": "ada:se:cret"}, "Basic " + b64encode(b"ada:se:cret").decode()),
        ({"token": "t0ken"}, "Bearer t0ken"),
    ],
)
def test_credentials_are_sent_and_not_shown(
    options: dict[str, str], expected: str | None, server: RegistryServer
) -> None:
    server.add("s", USER)
    registry = SchemaRegistry(server.url, **options)  # type: ignore[arg-type]
    assert registry.latest("s").id == 100
    assert server.requests[0][2] == expected
    assert "cret" not in repr(registry)
    assert "t0ken" not in repr(registry)


def test_a_user_in_the_url_is_sent_and_shows_in_no_error(server: RegistryServer) -> None:
    registry = SchemaRegistry(server.url.replace("//", "//ada:p%40ss@"))
    with pytest.raises(SchemaRegistryError) as failed:
        registry.latest("nope")
    assert server.requests[0][2] == "Basic " + b64encode(b"ada:p@ss").decode()
    assert (failed.value.status, failed.value.error_code) == (404, 40401)
    shown = f"{failed.value} {registry!r} {registry.url}"
    assert "p%40ss" not in shown
    assert "p@ss" not in shown
    assert f"{server.url}: subject 'nope': Subject 'nope' not found. (status 404)" in str(failed.value)


def test_the_next_address_is_asked_when_one_does_not_answer(server: RegistryServer) -> None:
    server.add("s", USER)
    registry = SchemaRegistry(["http://127.0.0.1:1", server.url])
    assert registry.latest("s").text == USER
    with pytest.raises(SchemaRegistryError, match=r"does not answer about subject 's': .*127\.0\.0\.1:1.*refused"):
        SchemaRegistry("http://127.0.0.1:1").latest("s")


@pytest.mark.parametrize("url", ["", "localhost:8081", "ftp://u:pass@h", "http://"])
def test_a_wrong_url_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(KafkaConfigurationError, match="URL") as failed:
        SchemaRegistry(url)
    assert "pass@" not in str(failed.value)


@pytest.mark.parametrize(
    ("status", "body", "complaint"),
    [
        (401, b"", "Unauthorized .status 401."),
        (500, b"<html>", "Internal Server Error .status 500."),
        (200, b"<html>", "not the URL of a schema registry"),
        (200, b"{}", "has no valid schema: KeyError"),
        (302, b"", "status 302"),
    ],
)
def test_an_answer_that_is_no_schema_is_an_error(
    status: int, body: bytes, complaint: str, server: RegistryServer
) -> None:
    server.refuse = (status, body)
    with pytest.raises(SchemaRegistryError, match=complaint):
        SchemaDeserializer(SchemaRegistry(server.url)).decode(b"\0\0\0\0\1\0")


def test_bytes_that_name_no_known_schema_are_a_mismatch_and_asked_about_once(server: RegistryServer) -> None:
    deserializer = SchemaDeserializer(SchemaRegistry(server.url))
    for _ in range(3):
        with pytest.raises(SchemaMismatchError, match=r"schema id 7: Schema not found"):
            deserializer.decode(b"\0\0\0\0\7abc")
    assert len(server.requests) == 1
    with pytest.raises(SchemaMismatchError, match="begin with 706c61696e, not with 00 and the id of a schema"):
        deserializer.decode(b"plain text")
    with pytest.raises(SchemaMismatchError, match="begin with nothing"):
        deserializer.decode(b"")


def test_schemas_are_remembered_up_to_a_limit(server: RegistryServer) -> None:
    """Bytes of another kind look like many ids, which must not fill the memory."""
    registry = SchemaRegistry(server.url)
    for number in range(1100):
        registry._remember(("id", number, False), Schema("x"))
    assert len(registry._remembered) == 1000
    assert registry.schema(1099).text == "x"
    assert not server.requests


def test_a_type_of_schema_that_is_not_wanted_is_refused(server: RegistryServer) -> None:
    number = server.add("events-value", '{"type": "object"}', "JSON")
    registry = SchemaRegistry(server.url)
    data = b"\0" + number.to_bytes(4, "big") + b"{}"
    assert SchemaDeserializer(registry).decode(data) == {}
    with pytest.raises(SchemaMismatchError, match="schema id 100 is of type JSON, not AVRO"):
        SchemaDeserializer(registry, kind="AVRO").decode(data)
    for option in ({"kind": "avro"}, {"form": "plain"}):
        with pytest.raises(IllegalArgumentError, match="must be one of"):
            SchemaDeserializer(registry, **option)  # type: ignore[arg-type]
    with pytest.raises(SchemaMismatchError, match="the schema of subject 'events-value' is of type JSON, not AVRO"):
        SchemaSerializer(registry, kind="AVRO").encode("events", {})


# JSON Schema…


def test_values_are_checked_by_a_json_schema(server: RegistryServer) -> None:
    pytest.importorskip("jsonschema", reason="jsonschema is not installed: pip install 'purekafka[registry]'")
    server.add("city", '{"type": "string", "minLength": 2}', "JSON")
    text = '{"type": "object", "properties": {"id": {"type": "integer"}, "city": {"$ref": "city.json"}}}'
    server.add("u-value", text, "JSON", [{"name": "city.json", "subject": "city", "version": 1}])
    registry = SchemaRegistry(server.url)
    serializer = SchemaSerializer(registry)
    data = serializer.encode("u", {"id": 1, "city": "Zürich"})
    assert data[5:] == '{"id":1,"city":"Zürich"}'.encode()
    assert SchemaDeserializer(registry).decode(data) == {"id": 1, "city": "Zürich"}
    for value, complaint in (
        ({"id": "x"}, "id: 'x' is not of type 'integer'"),
        ({"city": "O"}, "city: 'O' is too short"),
    ):
        with pytest.raises(SchemaMismatchError, match=complaint):
            serializer.encode("u", value)


def test_values_of_a_json_schema_are_read_without_its_package(server: RegistryServer, monkeypatch: Any) -> None:
    import sys

    for name in [name for name in sys.modules if name.partition(".")[0] in {"jsonschema", "referencing"}]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "jsonschema", None)
    number = server.add("u-value", '{"type": "object"}', "JSON")
    registry = SchemaRegistry(server.url)
    assert SchemaDeserializer(registry).decode(b"\0" + number.to_bytes(4, "big") + b"[1]") == [1]
    with pytest.raises(SchemaMismatchError, match="schema id 100: Expecting"):
        SchemaDeserializer(registry).decode(b"\0" + number.to_bytes(4, "big") + b"[1")
    with pytest.raises(SchemaRegistryError, match=r"pip install 'purekafka\[registry\]'"):
        SchemaSerializer(registry).encode("u", {})


# Protobuf…


def protobuf_file(server: RegistryServer) -> None:
    """Register the descriptors of two files; the second one imports the first one and a file of Protobuf."""
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto

    def field(message: Any, name: str, number: int, kind: Any, type_name: str = "") -> None:
        found = message.field.add(name=name, number=number, type=kind, label=FieldDescriptorProto.LABEL_OPTIONAL)
        if type_name:
            found.type_name = type_name

    money = FileDescriptorProto(name="whatever", package="shop", syntax="proto3")
    field(money.message_type.add(name="Money"), "cents", 1, FieldDescriptorProto.TYPE_INT64)
    orders = FileDescriptorProto(name="default", package="shop", syntax="proto3")
    orders.dependency.extend(["money.proto", "google/protobuf/timestamp.proto"])
    order = orders.message_type.add(name="Order")
    field(order, "total_price", 1, FieldDescriptorProto.TYPE_MESSAGE, ".shop.Money")
    field(order, "at", 2, FieldDescriptorProto.TYPE_MESSAGE, ".google.protobuf.Timestamp")
    field(order.nested_type.add(name="Line"), "text", 1, FieldDescriptorProto.TYPE_STRING)
    server.add("money", "// money", "PROTOBUF", serialized=b64encode(money.SerializeToString()).decode())
    server.add(
        "orders-value",
        "// orders",
        "PROTOBUF",
        [{"name": "money.proto", "subject": "money", "version": 1}],
        b64encode(orders.SerializeToString()).decode(),
    )


def test_messages_of_protobuf_are_written_and_read(server: RegistryServer) -> None:
    pytest.importorskip("google.protobuf", reason="protobuf is not installed: pip install 'purekafka[registry]'")
    protobuf_file(server)
    registry = SchemaRegistry(server.url)
    value = {"total_price": {"cents": "5"}, "at": "2026-01-01T00:00:00Z"}
    data = SchemaSerializer(registry).encode("orders", value)
    assert data[:6] == bytes.fromhex("00 00000065 00"), "the id of the schema, and the first message of the file"
    deserializer = SchemaDeserializer(registry)
    assert deserializer.decode(data) == value
    nested = SchemaSerializer(registry, message="shop.Order.Line").encode("orders", {"text": "a"})
    assert nested[5:] == bytes.fromhex("04 00 00 0a 01 61")
    assert deserializer.decode(nested) == {"text": "a"}
    for damaged, complaint in (
        (data[:5], "ends within the indexes"),
        (data[:5] + b"\2\x08", "no message with the indexes .4."),
        (data[:5] + b"\0\xff", "not a message shop.Order"),
        (data[:5] + b"\xff\xff\x7f", "not a number of indexes"),
    ):
        with pytest.raises(SchemaMismatchError, match=complaint):
            deserializer.decode(damaged)
    with pytest.raises(SchemaMismatchError, match=r"does not fit into shop\.Order"):
        SchemaSerializer(registry).encode("orders", {"nope": 1})
    with pytest.raises(SchemaMismatchError, match="the schema has no message 'Nope'; it has Line, Order"):
        SchemaSerializer(registry, message="Nope").encode("orders", {})


def test_protobuf_without_its_package_names_the_extra(server: RegistryServer, monkeypatch: Any) -> None:
    import sys

    for name in [name for name in sys.modules if name.startswith("google.protobuf")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "google.protobuf", None)
    number = server.add("orders-value", "// orders", "PROTOBUF")
    with pytest.raises(SchemaRegistryError, match=r"protobuf: pip install 'purekafka\[registry\]'"):
        SchemaDeserializer(SchemaRegistry(server.url)).decode(b"\0" + number.to_bytes(4, "big") + b"\0")
