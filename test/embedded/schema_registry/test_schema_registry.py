"""The client of a schema registry and its serializers, against a registry over loopback and the embedded broker."""

from __future__ import annotations

import asyncio
import json
import threading
from base64 import b64encode
from typing import Any

import pytest

from kafka import KafkaConsumer, KafkaProducer
from kafka.broker import Broker
from kafka.errors import IllegalArgumentError, KafkaConfigurationError, RecordDeserializationError
from kafka.schema_registry import (
    Reference,
    Schema,
    SchemaDeserializer,
    SchemaMismatchError,
    SchemaRegistry,
    SchemaRegistryError,
    SchemaSerializer,
    message_schema,
    schema_id,
)
from kafka.testing import FakeClock

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


@pytest.mark.parametrize(
    "url", ["", "localhost:8081", "ftp://u:pass@h", "http://", "http://u:pass@[", "http://u:pass@h:99999"]
)
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
def test_an_answer_without_a_schema_is_an_error(
    status: int, body: bytes, complaint: str, server: RegistryServer
) -> None:
    server.fail(status, body)
    with pytest.raises(SchemaRegistryError, match=complaint):
        SchemaDeserializer(SchemaRegistry(server.url)).decode(b"\0\0\0\0\1\0")


def test_an_unknown_schema_id_is_asked_for_again_after_a_second(server: RegistryServer) -> None:
    """A registry that follows another one is behind for a while; bytes of another kind are not one request each."""
    clock = FakeClock()
    deserializer = SchemaDeserializer(SchemaRegistry(server.url, clock=clock))
    for _ in range(3):
        with pytest.raises(SchemaMismatchError, match=r"schema id 100: Schema 100 not found"):
            deserializer.decode(b"\0\0\0\0\x64\2a")
    assert len(server.requests) == 1
    server.add("events-value", '"string"')
    clock.advance(0.9)
    with pytest.raises(SchemaMismatchError):
        deserializer.decode(b"\0\0\0\0\x64\2a")
    clock.advance(0.2)
    assert deserializer.decode(b"\0\0\0\0\x64\2a") == "a"
    assert len(server.requests) == 2


def test_unknown_schema_ids_are_remembered_up_to_a_limit_and_displace_no_schemas(server: RegistryServer) -> None:
    server.add("events-value", USER)
    registry = SchemaRegistry(server.url, clock=FakeClock())
    registry.schema(100)
    for number in range(1000, 2100):
        with pytest.raises(SchemaRegistryError):
            registry.schema(number)
    assert len(registry._unknown) == 1000
    del server.requests[:]
    registry.schema(100)
    assert not server.requests


def test_bytes_that_name_no_schema_are_a_mismatch(server: RegistryServer) -> None:
    deserializer = SchemaDeserializer(SchemaRegistry(server.url))
    with pytest.raises(SchemaMismatchError, match="begin with 706c61696e, not with 00 and the id of a schema"):
        deserializer.decode(b"plain text")
    with pytest.raises(SchemaMismatchError, match="begin with nothing"):
        deserializer.decode(b"")


def test_schemas_are_remembered_up_to_a_limit(server: RegistryServer) -> None:
    """Bytes of another kind look like many ids, which must not fill the memory."""
    registry = SchemaRegistry(server.url)
    for number in range(1100):
        registry._remember(("id", number), Schema("x"))
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


# Subjects…


def test_subjects_are_listed_looked_up_and_deleted(server: RegistryServer) -> None:
    registry = SchemaRegistry(server.url)
    schema = Schema(USER)
    for subject in ("a/b", "c"):
        registry.register(subject, schema)
    number = registry.register("c", Schema('"long"'))
    assert registry.subjects() == ["a/b", "c"]
    assert registry.versions("c") == [1, 2]
    found = registry.lookup("c", Schema('"long"'))
    assert found == Schema('"long"', id=number, subject="c", version=2)
    assert (registry.version("c", 2), registry.version("c", 2)) == (found, found)
    assert registry.delete("c", 2) == [2]
    for call in (lambda: registry.lookup("c", Schema('"long"')), lambda: registry.version("c", 2)):
        with pytest.raises(SchemaRegistryError) as failed:
            call()
        assert failed.value.status == 404
    assert registry.delete("c") == [1]
    assert registry.subjects() == ["a/b"]
    assert (registry.subjects(deleted=True), registry.versions("c", deleted=True)) == (["a/b", "c"], [1, 2])
    assert registry.delete("c", permanent=True) == [1, 2]
    assert registry.subjects(deleted=True) == ["a/b"]


def test_a_deleted_schema_is_registered_again(server: RegistryServer) -> None:
    """What is remembered of a subject is forgotten when it is deleted."""
    registry = SchemaRegistry(server.url)
    number = registry.register("s", Schema(USER))
    registry.delete("s")
    assert registry.register("s", Schema(USER)) == number
    assert server.subjects == {"s": [number, number]}
    assert registry.versions("s") == [2]


def test_a_version_that_was_missing_is_asked_for_again(server: RegistryServer) -> None:
    registry = SchemaRegistry(server.url)
    with pytest.raises(SchemaRegistryError):
        registry.version("s", 1)
    server.add("s", USER)
    assert registry.version("s", 1).text == USER


def test_schemas_of_equal_text_with_other_references_are_other_schemas(server: RegistryServer) -> None:
    registry = SchemaRegistry(server.url)
    for kind in ("int", "long"):
        registry.register(
            "b", Schema(f'{{"type": "record", "name": "B", "fields": [{{"name": "x", "type": "{kind}"}}]}}')
        )
    text = '{"type": "record", "name": "A", "fields": [{"name": "b", "type": "B"}]}'
    numbers = [registry.register("s", Schema(text, references=(Reference("B", "b", at),))) for at in (1, 2)]
    assert numbers[0] != numbers[1]


def test_compatibility_is_asked_for_and_set(server: RegistryServer) -> None:
    registry = SchemaRegistry(server.url)
    registry.register("s", Schema(USER))
    registry.set_compatibility("BACKWARD")
    assert registry.is_compatible("s", Schema(USER))
    assert not registry.is_compatible("s", Schema('"null"'), 1)
    with pytest.raises(SchemaRegistryError, match="incompatible with an earlier schema") as failed:
        registry.register("s", Schema('"null"'))
    assert (failed.value.status, failed.value.error_code) == (409, 409)
    with pytest.raises(SchemaRegistryError, match="the compatibility of subject 's'") as failed:
        registry.compatibility("s")
    assert failed.value.error_code == 40408
    registry.set_compatibility("FULL", "s")
    assert (registry.compatibility("s"), registry.compatibility()) == ("FULL", "BACKWARD")
    paths = [path for method, path, _ in server.requests if method in {"POST", "PUT"}]
    assert paths[2:4] == [f"/compatibility/subjects/s/versions/{version}" for version in ("latest", 1)]


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


DEEP = 100_000


def test_json_that_is_nested_too_deeply_is_an_error_of_its_record(server: RegistryServer) -> None:
    number = server.add("events-value", "{}", "JSON")
    deep = b"\0" + number.to_bytes(4, "big") + b"[" * DEEP + b"]" * DEEP
    registry = SchemaRegistry(server.url)
    with pytest.raises(SchemaMismatchError, match=r"^schema id 100: the value is nested too deeply$"):
        SchemaDeserializer(registry).decode(deep)
    with Broker(topics={"events": 1}) as broker:
        broker.append("events", deep)
        broker.append("events", deep[:5] + b"7")
        with KafkaConsumer(
            "events",
            bootstrap_servers=broker.bootstrap_servers,
            auto_offset_reset="earliest",
            consumer_timeout_ms=5000,
            value_deserializer=SchemaDeserializer(registry),
        ) as consumer:
            with pytest.raises(RecordDeserializationError, match=r"nested too deeply.*offset=0") as failed:
                next(consumer)
            consumer.seek(failed.value.topic_partition, failed.value.offset + 1)
            assert next(consumer).value == 7


def test_a_value_that_is_nested_too_deeply_is_not_written(server: RegistryServer) -> None:
    pytest.importorskip("jsonschema", reason="jsonschema is not installed: pip install 'purekafka[registry]'")
    server.add("events-value", "{}", "JSON")
    value: object = 1
    for _ in range(DEEP):
        value = [value]
    with pytest.raises(SchemaMismatchError, match=r"^subject 'events-value': the value is nested too deeply$"):
        SchemaSerializer(SchemaRegistry(server.url)).encode("events", value)


@pytest.mark.parametrize("body", [b"[" * DEEP, b'{"error_code": "many", "message": "no"}'])
def test_whatever_a_registry_answers_is_an_error_of_the_registry(body: bytes, server: RegistryServer) -> None:
    server.fail(500, body)
    with pytest.raises(SchemaRegistryError, match="status 500"):
        SchemaRegistry(server.url).latest("s")


# Protobuf…


MONEY = 'syntax = "proto3"; package shop; message Money { int64 cents = 1; }'
ORDERS = """\
syntax = "proto3";
package shop;
import "money.proto";
import "google/protobuf/timestamp.proto";
import "acme/options.proto";  // that nobody has
message Order {
  Money total_price = 1 [(acme.secret) = true];
  google.protobuf.Timestamp at = 2;
  message Line { string text = 1; }
}
"""


def protobuf_file(server: RegistryServer, *, descriptors: bool) -> None:
    """Register two files, as text or as descriptors; the second one imports the first one and a file of Protobuf."""

    def shown(text: str) -> str:
        if not descriptors:
            return text
        from kafka.schema_registry.proto_text import parse_proto

        return b64encode(parse_proto(text).SerializeToString()).decode()

    server.add("money", shown(MONEY), "PROTOBUF")
    references = [{"name": "money.proto", "subject": "money", "version": 1}]
    server.add("orders-value", shown(ORDERS), "PROTOBUF", references)


@pytest.mark.parametrize("descriptors", [False, True], ids=["text", "descriptor"])
def test_messages_of_protobuf_are_written_and_read(descriptors: bool, server: RegistryServer) -> None:
    pytest.importorskip("google.protobuf", reason="protobuf is not installed: pip install 'purekafka[registry]'")
    protobuf_file(server, descriptors=descriptors)
    registry = SchemaRegistry(server.url)
    value = {"total_price": {"cents": 5}, "at": "2026-01-01T00:00:00Z"}
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


KINDS = """\
syntax = "proto3";
import "google/protobuf/any.proto";
import "google/protobuf/wrappers.proto";
enum Color { RED = 0; BLUE = 1; }
message All {
  int64 i64 = 1; uint64 u64 = 2; sint64 s64 = 3; fixed64 f64 = 4; sfixed64 sf64 = 5;
  int32 i32 = 6; bool flag = 7; string text = 8; bytes raw = 9; double number = 10; Color color = 11;
  optional int64 maybe = 12;
  repeated int64 many = 13;
  map<int64, int64> by_number = 14;
  map<string, All> by_name = 15;
  All inner = 16;
  oneof choice { int64 left = 17; string right = 18; }
  google.protobuf.Int64Value wrapped = 19;
  google.protobuf.Any any = 20;
}
"""


def test_a_message_of_protobuf_has_its_zero_fields_and_numbers_of_64_bits(server: RegistryServer) -> None:
    pytest.importorskip("google.protobuf", reason="protobuf is not installed: pip install 'purekafka[registry]'")
    server.add("events-value", KINDS, "PROTOBUF")
    registry = SchemaRegistry(server.url)
    serializer, deserializer = SchemaSerializer(registry), SchemaDeserializer(registry)
    integers = dict.fromkeys(("i64", "u64", "s64", "f64", "sf64", "i32"), 0)
    zeros = {**integers, "flag": False, "text": "", "raw": "", "number": 0.0, "color": "RED", "many": []}
    zeros |= {"by_number": {}, "by_name": {}}
    assert deserializer.decode(serializer.encode("events", {})) == zeros
    most = 2**63 - 1
    value = {
        **dict.fromkeys(("i64", "u64", "s64", "f64", "sf64"), most),
        "maybe": 0,
        "many": [1, most],
        "by_number": {"1": most},
        "by_name": {"a": {"i64": most, "inner": {"many": [most]}}},
        "left": 0,
        "wrapped": most,
        "any": {"@type": "type.googleapis.com/google.protobuf.StringValue", "value": "a"},
    }
    name = {**zeros, "i64": most, "inner": {**zeros, "many": [most]}}
    assert deserializer.decode(serializer.encode("events", value)) == {**zeros, **value, "by_name": {"a": name}}
    own = {"any": {"@type": "type.googleapis.com/All", "text": "a"}}
    assert deserializer.decode(serializer.encode("events", own))["any"]["text"] == "a"


def test_an_any_of_protobuf_of_an_unknown_type_or_with_other_bytes_is_an_error_of_its_record(
    server: RegistryServer,
) -> None:
    pytest.importorskip("google.protobuf", reason="protobuf is not installed: pip install 'purekafka[registry]'")
    from google.protobuf.any_pb2 import Any as ProtobufAny

    number = server.add("events-value", KINDS, "PROTOBUF")
    head = b"\0" + number.to_bytes(4, "big") + b"\0"
    for url, complaint in (("acme.com/acme.Unknown", "acme.Unknown"), ("t/google.protobuf.StringValue", "")):
        inner = ProtobufAny(type_url=url, value=b"\xff").SerializeToString()
        data = head + bytes([20 << 3 & 0x7F | 0x82, 1, len(inner)]) + inner
        with pytest.raises(SchemaMismatchError, match=f"schema id 100: a message All cannot be read: .*{complaint}"):
            SchemaDeserializer(SchemaRegistry(server.url)).decode(data)


def test_a_protobuf_schema_that_cannot_be_used_names_the_place(server: RegistryServer) -> None:
    pytest.importorskip("google.protobuf", reason="protobuf is not installed: pip install 'purekafka[registry]'")
    registry = SchemaRegistry(server.url)
    for text, complaint in (
        ('syntax = "proto3";\nmessage A { int32 x = ; }', r"line 2 of the \.proto file: ';' instead of a number"),
        ('syntax = "proto3"; import "acme/a.proto"; message A { acme.B b = 1; }', r"acme\.B"),
        ("// orders", "no message with the indexes .0."),
    ):
        number = server.add("orders-value", text, "PROTOBUF")
        with pytest.raises((SchemaRegistryError, SchemaMismatchError), match=complaint) as failed:
            SchemaDeserializer(registry).decode(b"\0" + number.to_bytes(4, "big") + b"\0")
        assert f"schema id {number}" in str(failed.value)


def test_protobuf_without_its_package_names_the_extra(server: RegistryServer, monkeypatch: Any) -> None:
    import sys

    for name in [name for name in sys.modules if name.startswith("google.protobuf")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "google.protobuf", None)
    number = server.add("orders-value", "// orders", "PROTOBUF")
    with pytest.raises(SchemaRegistryError, match=r"protobuf: pip install 'purekafka\[registry\]'"):
        SchemaDeserializer(SchemaRegistry(server.url)).decode(b"\0" + number.to_bytes(4, "big") + b"\0")


def test_a_reader_s_schema_has_its_fields_whatever_version_wrote_the_value(server: RegistryServer) -> None:
    registry = SchemaRegistry(server.url)
    old = SchemaSerializer(registry, Schema(USER)).encode("events", {"id": 1, "name": "ada"})
    newer = {
        "type": "record",
        "name": "User",
        "fields": [{"name": "id", "type": "double"}, {"name": "mail", "type": "string", "default": "none"}],
    }
    deserializer = SchemaDeserializer(registry, schema=Schema(json.dumps(newer)))
    assert deserializer.decode(old) == {"id": 1.0, "mail": "none"}
    other = SchemaSerializer(registry, Schema('"string"')).encode("words", "x")
    with pytest.raises(SchemaMismatchError, match="schema id 101: the reader's type record does not read string"):
        deserializer.decode(other)
    with pytest.raises(IllegalArgumentError, match="must be of Avro, not JSON"):
        SchemaDeserializer(registry, schema=Schema("{}", "JSON"))


def generated(*messages: str) -> list[Any]:
    """Return classes as the code that protoc generates has them, each with a number and a text."""
    descriptors = pytest.importorskip("google.protobuf.descriptor_pb2")
    from google.protobuf import descriptor_pool
    from google.protobuf.message_factory import GetMessageClass

    file = descriptors.FileDescriptorProto(name="shop_of_tests.proto", package="shop.tests", syntax="proto3")
    for name in messages:
        kind = file.message_type.add(name=name)
        kind.field.add(name="id", number=1, type=3, label=1)
        kind.field.add(name="note", number=2, type=9, label=1)
    pool = descriptor_pool.Default()
    pool.AddSerializedFile(file.SerializeToString())
    known = pool.FindFileByName(file.name).message_types_by_name
    return [GetMessageClass(known[name]) for name in messages]


def test_messages_of_generated_classes_are_written_and_read(server: RegistryServer) -> None:
    first, order = generated("First", "Order")
    registry = SchemaRegistry(server.url)
    serializer = SchemaSerializer(registry, message_schema(order))
    data = serializer.encode("orders", order(id=7, note="x"))
    assert data[5:].hex() == "0202" + "0807120178", "the class is the second message of its file"
    assert serializer.encode("orders", first(id=7))[5:].hex() == "00" + "0807"
    assert SchemaDeserializer(registry).decode(data) == {"id": 7, "note": "x"}
    deserializer = SchemaDeserializer(registry, message=order)
    found = deserializer.decode(data)
    assert type(found) is order
    assert (found.id, found.note) == (7, "x")
    assert deserializer.decode(serializer.encode("orders", order())) == order(), "zero fields"
    with pytest.raises(SchemaMismatchError, match=r"the message is a shop\.tests\.First, not a shop\.tests\.Order"):
        deserializer.decode(serializer.encode("orders", first()))
    named = SchemaSerializer(registry, message_schema(order), message=order)
    assert named.encode("orders", {"id": 7, "note": "x"}) == data
    empty = pytest.importorskip("google.protobuf.empty_pb2")
    with pytest.raises(SchemaMismatchError, match=r"the schema has no message 'google\.protobuf\.Empty'"):
        serializer.encode("orders", empty.Empty())


class SlowRegistry(SchemaRegistry):
    """Answers when another task of the event loop has allowed it."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.asked = 0
        self.allowed = threading.Event()

    def _request(self, *given: Any, **more: Any) -> Any:
        self.asked += 1
        assert self.allowed.wait(30), "the event loop is blocked"
        return super()._request(*given, **more)


def test_lookups_leave_the_event_loop_to_other_tasks(server: RegistryServer) -> None:
    server.add("events-value", USER)

    async def main() -> None:
        registry = SlowRegistry(server.url)
        serializer, deserializer = SchemaSerializer(registry), SchemaDeserializer(registry)

        async def answer_when_asked(times: int) -> None:
            registry.allowed.clear()
            while registry.asked < times:
                await asyncio.sleep(0.001)
            registry.allowed.set()

        writing = [serializer.serialize_async("events", [], {"id": number}) for number in range(50)]
        written, _ = await asyncio.wait_for(asyncio.gather(asyncio.gather(*writing), answer_when_asked(1)), 60)
        assert registry.asked == 1, "all tasks wait for one lookup"
        # A task that is cancelled while it waits leaves the lookup to the others.
        reading = [asyncio.create_task(deserializer.deserialize_async("events", [], one)) for one in written]
        registry.allowed.clear()
        while registry.asked < 2:
            await asyncio.sleep(0.001)
        reading[0].cancel()
        registry.allowed.set()
        values = await asyncio.wait_for(asyncio.gather(*reading[1:]), 60)
        assert [value["id"] for value in values] == list(range(1, 50))
        assert reading[0].cancelled()
        assert registry.asked == 2
        assert deserializer.deserialize("events", [], written[0]) == {"id": 0, "name": None}, "no lookup is left to do"
        assert await deserializer.deserialize_async("events", [], None) is None
        with pytest.raises(SchemaMismatchError, match="schema id 999"):
            await deserializer.deserialize_async("events", [], bytes.fromhex("00000003e702"))

    asyncio.run(main())
