"""The client of a schema registry and its serializers against a real registry, Apache Kafka and confluent-kafka."""

from __future__ import annotations

import json
import os
import subprocess
import uuid
from pathlib import Path
from typing import Any, Final

import pytest

from kafka import KafkaConsumer, KafkaProducer
from kafka.schema_registry import (
    Reference,
    Schema,
    SchemaDeserializer,
    SchemaMismatchError,
    SchemaRegistry,
    SchemaRegistryError,
    SchemaSerializer,
    schema_id,
)
from test.real import jvm, kafka_jars
from test.real.broker.peer_venvs import run_peer
from test.real.kafka_jars import KafkaUnavailable
from test.real.kafka_process import KafkaCluster
from test.real.spark_jars import fetched

from .apicurio import NEW
from .conftest import OURS, start

AVRO: Final = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "note", "type": ["null", "string"], "default": None},
            {"name": "lines", "type": {"type": "array", "items": {"type": "map", "values": "double"}}},
        ],
    }
)
JSON: Final = json.dumps(
    {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Order",
        "type": "object",
        "properties": {"id": {"type": "integer"}, "note": {"type": ["string", "null"]}, "lines": {"type": "array"}},
        "required": ["id"],
    }
)
PROTOBUF: Final = """\
syntax = "proto3";
package shop;

import "google/protobuf/timestamp.proto";

message Before {
  message Nested { int32 x = 1; }
}
message Order {
  int64 id = 1;
  optional string note = 2;
  repeated Line lines = 3;
  map<string, Status> states = 4;
  google.protobuf.Timestamp at = 5;
  oneof pay { string card = 6; bytes cash = 7; }
  message Line { string sku = 1; sint32 count = 2; repeated double prices = 3; }
  enum Status { UNKNOWN = 0; PAID = 1; }
}
"""
SCHEMAS: Final = {"AVRO": AVRO, "JSON": JSON, "PROTOBUF": PROTOBUF}
VALUES: Final[dict[str, list[Any]]] = {
    "AVRO": [{"id": 1, "note": "grün", "lines": [{"a": 0.5}, {}]}, {"id": -(2**40), "note": None, "lines": []}],
    "JSON": [{"id": 1, "note": "grün", "lines": [1, {"a": [None]}]}, {"id": 2}],
    "PROTOBUF": [
        {
            "id": "1",
            "note": "grün",
            "lines": [{"sku": "a", "count": -7, "prices": [0.5, 2.0]}, {"sku": "b"}],
            "states": {"x": "PAID"},
            "at": "2026-01-01T00:00:00Z",
            "cash": "AP8=",
        },
        {"id": "2", "note": "", "card": "c"},
    ],
}
#: What ours reads of these: all fields of Protobuf that are not optional, and integers of 64 bits as numbers.
READ: Final[dict[str, list[Any]]] = {
    **VALUES,
    "PROTOBUF": [
        {
            **VALUES["PROTOBUF"][0],
            "id": 1,
            "lines": [{"sku": "a", "count": -7, "prices": [0.5, 2.0]}, {"sku": "b", "count": 0, "prices": []}],
        },
        {"id": 2, "note": "", "lines": [], "states": {}, "card": "c"},
    ],
}
#: Confluent's own jars are not in Maven's own repository. This one, of 134 MB, has its serializers of Avro 7.2.1,
#: Kafka's client and all that they use; those of JSON Schema and Protobuf are in none there that was found.
CONFLUENT_JAVA: Final = ("com.snowflake:snowflake-kafka-connector:2.2.2",)
KINDS = pytest.mark.parametrize("kind", list(SCHEMAS))
PACKAGES = {"JSON": "jsonschema", "PROTOBUF": "google.protobuf"}
# The first test fetches the registry and confluent-kafka, some hundred megabytes: make test-registry.
pytestmark = [pytest.mark.timeout(900), pytest.mark.soak]


@pytest.fixture(autouse=True)
def packages(request: pytest.FixtureRequest) -> None:
    """Skip what needs a package of the extra `registry` that is not installed."""
    kind = getattr(request.node, "callspec", None) and request.node.callspec.params.get("kind")
    if kind in PACKAGES:
        pytest.importorskip(PACKAGES[kind], reason=f"{kind} needs a package: pip install 'purekafka[registry]'")


@pytest.fixture
def registry(registry_url: str) -> SchemaRegistry:
    return SchemaRegistry(registry_url)


@pytest.fixture
def subject() -> str:
    return f"s-{uuid.uuid4().hex[:8]}"


def refused(error: pytest.ExceptionInfo[SchemaRegistryError]) -> tuple[int, int]:
    return error.value.status, error.value.error_code


def record_of(*fields: str) -> Schema:
    return Schema(json.dumps({"type": "record", "name": "R", "fields": [{"name": f, "type": "long"} for f in fields]}))


# Subjects and versions…


@KINDS
def test_a_schema_is_registered_and_found_by_its_id_version_and_text(
    kind: str, registry: SchemaRegistry, registry_url: str, subject: str
) -> None:
    # A registry knows equal schemas as one, so each subject has a schema of another text.
    text = SCHEMAS[kind].replace("Order", f"Order{subject[2:]}")
    number = registry.register(subject, Schema(text, kind))
    fresh = SchemaRegistry(registry_url)
    assert fresh.register(subject, Schema(text, kind)) == number, "it keeps its id"
    by_id = fresh.schema(number)
    assert (by_id.id, by_id.kind) == (number, kind)
    found = fresh.latest(subject)
    assert (found.id, found.kind, found.subject, found.version) == (number, kind, subject, 1)
    assert fresh.version(subject, 1) == found
    known = fresh.lookup(subject, Schema(text, kind))
    assert (known.id, known.version, known.kind) == (number, 1, kind)
    assert subject in fresh.subjects()
    assert fresh.versions(subject) == [1]


def test_a_schema_must_be_compatible_with_the_one_before(registry: SchemaRegistry, subject: str) -> None:
    first, second = record_of("a", "b"), record_of("a")
    wrong = Schema(json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": "string"}]}))
    registry.register(subject, first)
    for level in ("FULL", "BACKWARD"):
        registry.set_compatibility(level, subject)
        assert registry.compatibility(subject) == level
    assert registry.is_compatible(subject, second)
    assert not registry.is_compatible(subject, wrong)
    assert not registry.is_compatible(subject, wrong, 1)
    with pytest.raises(SchemaRegistryError, match=r"[Ii]ncompatible") as error:
        registry.register(subject, wrong)
    assert refused(error) == (409, 409)
    assert registry.register(subject, second) != registry.register(subject, first)
    assert registry.versions(subject) == [1, 2]
    assert registry.latest(subject).version == 2
    registry.set_compatibility("NONE", subject)
    assert registry.is_compatible(subject, wrong)
    assert registry.lookup(subject, Schema(wrong.text, id=registry.register(subject, wrong))).version == 3


def test_the_global_compatibility_is_read_and_set(registry: SchemaRegistry) -> None:
    before = registry.compatibility()
    try:
        registry.set_compatibility("FULL_TRANSITIVE")
        assert registry.compatibility() == "FULL_TRANSITIVE"
    finally:
        registry.set_compatibility(before)
    assert registry.compatibility() == before


def test_deleted_versions_are_read_by_their_ids_until_they_are_deleted_permanently(
    registry: SchemaRegistry, registry_url: str, subject: str
) -> None:
    name = f"R{subject[2:]}"
    schemas = [Schema(record_of(*fields).text.replace('"R"', f'"{name}"')) for fields in ("a", "ab", "abc")]
    numbers = [registry.register(subject, schema) for schema in schemas]
    assert registry.versions(subject) == [1, 2, 3]
    assert registry.version(subject, 2).id == numbers[1]
    assert registry.delete(subject, 2) == [2]
    assert registry.versions(subject) == [1, 3]
    assert registry.versions(subject, deleted=True) == [1, 2, 3]
    with pytest.raises(SchemaRegistryError) as error:
        registry.version(subject, 2)
    assert refused(error) == (404, 40402), "what was remembered of the version is forgotten"
    assert SchemaRegistry(registry_url).schema(numbers[1]).id == numbers[1]
    assert registry.delete(subject, 2, permanent=True) == [2]
    with pytest.raises(SchemaRegistryError) as error:
        SchemaRegistry(registry_url).schema(numbers[1])
    assert refused(error) == (404, 40403)
    assert registry.delete(subject) == [1, 3]
    assert subject not in registry.subjects()
    assert subject in registry.subjects(deleted=True)
    with pytest.raises(SchemaRegistryError) as error:
        registry.latest(subject)
    assert refused(error) == (404, 40401)
    assert registry.delete(subject, permanent=True) == [1, 3]
    with pytest.raises(SchemaRegistryError) as error:
        registry.versions(subject)
    assert refused(error) == (404, 40401)


def test_errors_have_the_status_and_the_code_of_the_registry(registry: SchemaRegistry, subject: str) -> None:
    def code(call: Any, *arguments: Any) -> tuple[int, int]:
        with pytest.raises(SchemaRegistryError) as error:
            call(*arguments)
        return refused(error)

    assert code(registry.schema, 2_000_000_000) == (404, 40403)
    assert code(registry.latest, subject) == (404, 40401)
    assert code(registry.lookup, subject, record_of("a"))[0] == 404
    assert code(registry.delete, subject) == (404, 40401)
    registry.register(subject, record_of("a"))
    assert code(registry.version, subject, 9) == (404, 40402)
    assert code(registry.lookup, subject, record_of("b")) == (404, 40403)
    for kind, text in (("AVRO", "{nope"), ("AVRO", '{"type": "nope"}'), ("PROTOBUF", "message {"), ("JSON", "{nope")):
        assert code(registry.register, f"{subject}-{kind}", Schema(text, kind)) == (422, 42201), (kind, text)


def test_an_unknown_id_fails_the_record_and_not_the_program(registry: SchemaRegistry) -> None:
    with pytest.raises(SchemaMismatchError, match="schema id 2000000000"):
        SchemaDeserializer(registry).decode(b"\0" + (2_000_000_000).to_bytes(4, "big") + b"x")


# Values…


@KINDS
def test_values_are_read_back_from_kafka(
    kind: str, registry: SchemaRegistry, registry_url: str, kafka: KafkaCluster, subject: str
) -> None:
    topic = kafka.create_topic(subject)
    serializer = SchemaSerializer(registry, Schema(SCHEMAS[kind], kind), message=_message(kind))
    with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers, value_serializer=serializer) as producer:
        for value in VALUES[kind]:
            producer.send(topic, value)
    assert _values(topic, kafka, SchemaDeserializer(SchemaRegistry(registry_url), kind=kind)) == READ[kind]


@KINDS
def test_schemas_use_schemas_of_other_subjects(kind: str, registry: SchemaRegistry, subject: str) -> None:
    money: dict[str, tuple[str, str, str]] = {  # text, the name by which it is used, text of what uses it
        "AVRO": (
            json.dumps({"type": "record", "name": "Money", "fields": [{"name": "cents", "type": "int"}]}),
            "Money",
            json.dumps({"type": "record", "name": "Bill", "fields": [{"name": "total", "type": "Money"}]}),
        ),
        "JSON": (
            json.dumps({"type": "object", "properties": {"cents": {"type": "integer"}}}),
            "money.json",
            json.dumps({"type": "object", "properties": {"total": {"$ref": "money.json"}}}),
        ),
        "PROTOBUF": (
            'syntax = "proto3"; package shop; message Money { int32 cents = 1; }',
            "money.proto",
            'syntax = "proto3"; package shop; import "money.proto"; message Bill { Money total = 1; }',
        ),
    }
    text, name, using = money[kind]
    registry.register(f"{subject}-money", Schema(text, kind))
    reference = Reference(name, f"{subject}-money", 1)
    schema = Schema(using, kind, (reference,))
    serializer = SchemaSerializer(registry, schema, subject=subject)
    data = serializer.encode("t", {"total": {"cents": 5}})
    number = schema_id(data)
    assert registry.schema(number or 0).references == (reference,)
    assert registry.lookup(subject, schema).id == number
    assert SchemaDeserializer(registry).decode(data) == {"total": {"cents": 5}}
    with pytest.raises(SchemaMismatchError, match="total"):
        serializer.encode("t", {"total": {"cents": "x"}})
    with pytest.raises(SchemaRegistryError) as error:  # a subject that something uses must stay
        registry.register(f"{subject}-other", Schema(using, kind, (Reference(name, f"{subject}-nope", 1),)))
    assert error.value.status in {404, 422}


@KINDS
def test_confluents_serializers_and_ours_read_each_other(
    kind: str, registry: SchemaRegistry, registry_url: str, kafka: KafkaCluster, subject: str, tmp_path: Path
) -> None:
    schema = tmp_path / "order.proto"
    schema.write_text(SCHEMAS[kind])
    values = VALUES[kind]
    theirs, ours = kafka.create_topic(f"{subject}-theirs"), kafka.create_topic(f"{subject}-ours")

    def confluent(mode: str, topic: str, last: str) -> str:
        words = (mode, kind, registry_url, kafka.bootstrap_servers, topic, str(schema), last)
        return run_peer("confluent-registry", "confluent_side.py", *words, where=Path(__file__).parent)

    confluent("write", theirs, json.dumps(values))
    assert _values(theirs, kafka, SchemaDeserializer(registry, kind=kind)) == READ[kind]
    # A serializer without a schema takes the newest one of the subject, which confluent-kafka registered.
    by_newest = SchemaSerializer(registry, subject=f"{theirs}-value", message=_message(kind))
    by_text = SchemaSerializer(registry, Schema(SCHEMAS[kind], kind), message=_message(kind))
    with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
        for serializer in (by_newest, by_text):
            for value in values:
                producer.send(ours, serializer.encode(ours, value))
    assert json.loads(confluent("read", ours, str(2 * len(values)))) == [*values, *values]
    with KafkaConsumer(theirs, ours, **_reading(kafka)) as consumer:
        raw: dict[str, list[bytes]] = {theirs: [], ours: []}
        for record in consumer:
            raw[record.topic].append(record.value)
            if sum(map(len, raw.values())) == 3 * len(values):
                break
    assert raw[theirs] == raw[ours][: len(values)], "the bytes are equal, with the id of the schema"


def test_confluents_java_client_and_serializers_and_ours_read_each_other(
    registry: SchemaRegistry, registry_url: str, kafka: KafkaCluster, subject: str, request: pytest.FixtureRequest
) -> None:
    try:
        jars = fetched(CONFLUENT_JAVA, "confluent-java-serializers")
    except KafkaUnavailable as error:
        pytest.skip(str(error))
    ours, our_carts, theirs, their_carts = (
        kafka.create_topic(f"{subject}-{name}") for name in ("ours", "our-carts", "theirs", "their-carts")
    )
    order = json.loads(AVRO)
    # Apicurio has an id for each text: a schema in other words than Java's has another id there, in another subject.
    spaces = None if request.node.callspec.params["registry_url"] == OURS else (",", ":")
    original = json.dumps(order, separators=spaces)
    amount = {"name": "amount", "type": "double", "default": 1.5}
    newer = Schema(json.dumps({**order, "fields": [*order["fields"], amount]}, separators=spaces))
    wrong = json.dumps({**order, "fields": [{"name": "n", "type": "int"}]})
    cart = {"type": "record", "name": "Cart", "fields": [{"name": "order", "type": "shop.Order"}]}
    # Values of the first schema, of the newer one, and one of the cart, which refers to the first.
    old, new = VALUES["AVRO"][0], {**VALUES["AVRO"][1], "amount": 0.25}
    registry.register(f"{subject}-first", Schema(original))
    carts = Schema(json.dumps(cart, separators=spaces), references=(Reference("shop.Order", f"{subject}-first", 1),))
    registry.register(f"{their_carts}-value", carts)
    keys = SchemaSerializer(registry, Schema('"string"'), key=True)
    first, second = (SchemaSerializer(registry, schema) for schema in (Schema(original), newer))
    with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
        producer.send(ours, first.encode(ours, old), keys.encode(ours, "grün"))
        producer.send(ours, second.encode(ours, new), keys.encode(ours, "k"))
        producer.send(ours, None, keys.encode(ours, "gone"))
        producer.send(our_carts, SchemaSerializer(registry, carts).encode(our_carts, {"order": old}))
    tagged = {**old, "note": {"string": old["note"]}}
    texts = [original, newer.text, wrong, carts.text, *map(json.dumps, (tagged, new, {"order": tagged}))]
    words = [registry_url, kafka.bootstrap_servers, subject, f"{ours},{our_carts}", f"{theirs},{their_carts}", *texts]
    path = os.pathsep.join(map(str, jars))
    path = os.pathsep.join((path, str(jvm.compiled(jvm.CONFIG / "ConfluentSerializers.java", path))))
    command = [kafka_jars.java(), *jvm.FLAGS, *jvm.QUICK_START, "-cp", path, "ConfluentSerializers", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    seen = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    read = {name: seen.pop(name) for name in list(seen) if name.startswith("read_")}
    refused = seen.pop("not_written")
    assert refused.startswith("org.apache.kafka.common.errors.InvalidConfigurationException: ")
    assert refused.endswith("error code: 409")
    assert seen == {
        **dict.fromkeys(("again", "by_id", "id_of", "latest", "subjects", "references"), "true"),
        "version_of": "1",
        "versions": "[1]",
        "level": "BACKWARD BACKWARD",
        "compatible": "false",
        "refused": "409 409",
        "unknown_id": "404 40403",
        "unknown_subject": "404 40401",
        "resolved": "shop.Order",
        "deleted": "[1]",
        "deleted_again": "404 40401",
    }
    # What Java read of ours: as it was written, and as the schema before and after has it.
    assert {name: json.loads(text[text.index("{") :]) for name, text in read.items() if "{" in text} == {
        "read_0_0": old,
        "read_0_0_as_first": old,
        "read_0_0_as_second": {**old, "amount": 1.5},
        "read_0_1": new,
        "read_0_1_as_first": VALUES["AVRO"][1],
        "read_0_1_as_second": new,
        "read_1_0": {"order": old},
    }
    assert [read[f"read_0_{offset}"].split(" ")[0] for offset in range(3)] == ["grün", "k", "gone"]
    assert read["read_0_2"] == "gone null"
    # What ours reads of Java's, and the bytes of both, which are equal, with the ids of the schemas.
    written = {}
    for topic in (ours, theirs, our_carts, their_carts):
        with KafkaConsumer(topic, **_reading(kafka)) as consumer:
            records = [next(consumer) for _ in range(1 if "carts" in topic else 3)]
        written[topic] = [(record.key, record.value) for record in records]
    assert written[theirs] == written[ours]
    assert written[their_carts] == written[our_carts]
    decode, decode_key = SchemaDeserializer(registry).deserialize, SchemaDeserializer(registry, key=True).deserialize
    assert [decode_key(theirs, [], key) for key, _ in written[theirs]] == ["grün", "k", "gone"]
    assert [decode(theirs, [], value) for _, value in written[theirs]] == [old, new, None]
    as_newer = SchemaDeserializer(registry, schema=newer).deserialize
    assert [as_newer(theirs, [], value) for _, value in written[theirs]] == [{**old, "amount": 1.5}, new, None]
    assert decode(their_carts, [], written[their_carts][0][1]) == {"order": old}


def _message(kind: str) -> str | None:
    return "shop.Order" if kind == "PROTOBUF" else None


def _reading(kafka: KafkaCluster) -> dict[str, Any]:
    return {
        "bootstrap_servers": kafka.bootstrap_servers,
        "auto_offset_reset": "earliest",
        "consumer_timeout_ms": 20_000,
    }


def _values(topic: str, kafka: KafkaCluster, deserializer: SchemaDeserializer) -> list[Any]:
    with KafkaConsumer(topic, value_deserializer=deserializer, **_reading(kafka)) as consumer:
        return [next(consumer).value, next(consumer).value]


# Who may ask…


def test_a_registry_with_users_lets_in_the_one_with_the_password() -> None:
    with start(NEW, {"ada": "se:cret"}) as running:
        for registry in (
            SchemaRegistry(running.url, user_info="ada:se:cret"),
            SchemaRegistry(running.url.replace("//", "//ada:se%3Acret@")),
        ):
            number = registry.register("s", Schema('"long"'))
            assert registry.schema(number).text == '"long"'
        for registry in (
            SchemaRegistry(running.url),
            SchemaRegistry(running.url, user_info="ada:wrong"),
            SchemaRegistry(running.url, token="wrong"),
        ):
            with pytest.raises(SchemaRegistryError, match="status 401") as error:
                registry.subjects()
            assert "wrong" not in str(error.value)
