"""`from_registry` and `to_registry` in a real Spark session, with the registry for tests and the embedded broker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kafka import KafkaProducer
from kafka.broker import Broker
from kafka.schema_registry import Schema, SchemaRegistry, SchemaRegistryServer, SchemaSerializer
from kafka.spark import KafkaSparkOptionError, cause_of, from_registry, to_registry
from kafka.spark.registry import _reading, reader_of, registry_of
from test.embedded.schema_registry.test_server import OnWarning
from test.spark_runs.sessions import finish

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), pytest.mark.filterwarnings("ignore::ResourceWarning")]

FIRST = {"type": "record", "name": "Event", "fields": [{"name": "id", "type": "long"}]}
NOTE = {"name": "note", "type": ["null", "string"], "default": None}
TAGS = {"name": "tags", "type": {"type": "array", "items": "string"}, "default": []}
SECOND = {**FIRST, "fields": [{"name": "id", "type": "long"}, NOTE, TAGS]}


@pytest.fixture
def registry() -> Iterator[SchemaRegistryServer]:
    with SchemaRegistryServer(users={"ada": "secret"}) as server:
        yield server


def write(broker: Broker, server: SchemaRegistryServer, schema: Any, values: list[Any]) -> None:
    client = SchemaRegistry(server.url, user_info="ada:secret")
    serializer = SchemaSerializer(client, Schema(json.dumps(schema)))
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, value_serializer=serializer) as producer:
        for number, value in enumerate(values):
            producer.send("events", value, partition=number % 2)


def test_values_of_all_versions_are_columns_of_the_newest(
    read: Any, broker: Broker, registry: SchemaRegistryServer
) -> None:
    write(broker, registry, FIRST, [{"id": number} for number in range(100)])
    write(broker, registry, SECOND, [{"id": 100, "note": "x", "tags": ["a", "b"]}, {"id": 101}, None])
    decoded = from_registry("value", registry.url, subject="events-value", user_info="ada:secret")
    frame = read().select(decoded.alias("event"))
    assert frame.schema["event"].dataType.simpleString() == "struct<id:bigint,note:string,tags:array<string>>"
    rows = [row.event for row in frame.collect()]
    assert sum(row is None for row in rows) == 1
    found = {row.id: (row.note, row.tags) for row in rows if row is not None}
    assert found == {**{number: (None, []) for number in (*range(100), 101)}, 100: ("x", ["a", "b"])}
    older = from_registry("value", registry.url, subject="events-value", version=1, user_info="ada:secret")
    assert read().select(older.alias("e")).select("e.*").columns == ["id"]
    assert read().select(older.alias("e")).where("e.id >= 100").count() == 2


def test_a_value_that_cannot_be_read_ends_the_query_or_is_in_a_column(
    read: Any, broker: Broker, registry: SchemaRegistryServer
) -> None:
    write(broker, registry, FIRST, [{"id": 1}, {"id": 2}])
    broker.append("events", b"poison", partition=1)
    options = {"subject": "events-value", "user_info": "ada:secret"}
    with pytest.raises(Exception, match="events-1 offset 1 cannot be read") as failed:
        read().select(from_registry("value", registry.url, **options)).collect()
    assert "the bytes begin with 706f69736f" in str(cause_of(failed.value) or failed.value)
    frame = read().select(from_registry("value", registry.url, permissive=True, **options).alias("e"))
    good, bad = frame.where("e.error is null"), frame.where("e.error is not null")
    assert sorted(row.id for row in good.select("e.value.id").collect()) == [1, 2]
    assert [tuple(row) for row in bad.select("e.error.*").collect()] == [
        ("events", 1, 1, "the bytes begin with 706f69736f, not with 00 and the id of a schema")
    ]
    bare = read().select("value")
    frame = bare.select(from_registry("value", registry.url, permissive=True, place=None, **options).alias("e"))
    assert frame.where("e.error.reason is not null and e.error.topic is null").count() == 1


@pytest.mark.parametrize("permissive", [False, True])
def test_a_task_waits_for_a_registry_that_is_away(registry: SchemaRegistryServer, permissive: bool) -> None:
    """It is an error neither of the query nor of a record. Needs no session: this is what runs in a worker."""
    client = SchemaRegistry(registry.url, user_info="ada:secret")
    value = SchemaSerializer(client, Schema(json.dumps(SECOND))).serialize("events", [], {"id": 1, "note": "x"})
    settings = registry_of(registry.url, {"user_info": "ada:secret"})
    reading = reader_of(settings, "events-value", None, Schema(json.dumps(FIRST)))
    read = _reading(reading, placed=False, permissive=permissive, headers=False)
    registry.close()
    with OnWarning(registry.start) as warned:
        (row,) = read(pa.array([value])).to_pylist()
    assert row == ({"value": {"id": 1}, "error": None} if permissive else {"id": 1})
    assert len(warned.said) == 1


def test_a_stream_is_read_and_written_with_schemas(
    stream: Any, read: Any, broker: Broker, registry: SchemaRegistryServer, tmp_path: Path
) -> None:
    write(broker, registry, SECOND, [{"id": number, "note": f"n{number}"} for number in range(50)])
    options = {"user_info": "ada:secret"}
    SchemaRegistry(registry.url, **options).register("out-value", Schema(json.dumps(SECOND)))  # type: ignore[arg-type]
    events = stream().select(from_registry("value", registry.url, subject="events-value", **options).alias("event"))
    out = events.where("event.id % 2 = 0").select(
        to_registry("event", registry.url, subject="out-value", id_in_header=True, **options).alias("made")
    )
    writer = out.select("made.value", "made.headers").writeStream.format("purekafka").option("topic", "out")
    writer = writer.option("kafka.bootstrap.servers", broker.bootstrap_servers).option("includeHeaders", "true")
    finish(writer.option("checkpointLocation", str(tmp_path)))
    again = read(subscribe="out", includeHeaders="true")
    decoded = from_registry("value", registry.url, subject="out-value", headers="headers", **options)
    rows = again.select(decoded.alias("e")).select("e.*").collect()
    assert sorted((row.id, row.note) for row in rows) == [(number, f"n{number}") for number in range(0, 50, 2)]


def test_wrong_arguments_fail_before_a_query_runs(spark: Any, registry: SchemaRegistryServer) -> None:
    with pytest.raises(KafkaSparkOptionError, match="give the subject, or the schema"):
        from_registry("value", registry.url)
    with pytest.raises(KafkaSparkOptionError, match="unknown argument 'user'; a schema registry has user_info"):
        from_registry("value", registry.url, subject="s", user="ada")
    with pytest.raises(Exception, match="subject 'none': Subject 'none' not found") as failed:
        from_registry("value", registry.url, subject="none", user_info="ada:secret")
    assert "secret" not in str(failed.value)


def test_the_option_of_the_source_gives_typed_columns(
    read: Any, stream: Any, broker: Broker, registry: SchemaRegistryServer, tmp_path: Path
) -> None:
    options = {"schemaRegistry": registry.url, "schemaRegistry.userInfo": "ada:secret"}
    write(broker, registry, SECOND, [{"id": number, "note": f"n{number}", "tags": ["a"]} for number in range(20)])
    frame = read(**options)
    assert frame.schema["value"].dataType.simpleString() == "struct<id:bigint,note:string,tags:array<string>>"
    assert frame.schema["key"].dataType.simpleString() == "binary"
    # A version that is registered while the program runs changes the types of frames that are loaded after it only.
    third = {**SECOND, "fields": [*SECOND["fields"], {"name": "extra", "type": "int", "default": 7}]}
    write(broker, registry, third, [{"id": 20, "note": None, "extra": 9}])
    rows = frame.select("value.*").collect()
    assert {row.id: row.note for row in rows} == {**{number: f"n{number}" for number in range(20)}, 20: None}
    assert {row.extra for row in read(**options).select("value.extra").collect()} == {7, 9}
    first = read(**options, **{"schemaRegistry.valueVersion": "1"})
    assert first.select("value.*").columns == ["id", "note", "tags"]

    SchemaRegistry(registry.url, user_info="ada:secret").register("out-value", Schema(json.dumps(SECOND)))
    events = (
        stream(**options)
        .where("value.id < 10")
        .selectExpr("cast('k' as binary) key", "named_struct('id', value.id, 'note', value.note) value")
    )
    writer = events.writeStream.format("purekafka").option("topic", "out").options(**options)
    writer = writer.option("kafka.bootstrap.servers", broker.bootstrap_servers)
    finish(writer.option("checkpointLocation", str(tmp_path)))
    again = read(subscribe="out", **options)
    assert sorted((row.id, row.note, row.tags) for row in again.select("value.*").collect()) == [
        (number, f"n{number}", []) for number in range(10)
    ]
    again = read(subscribe="out", **options)
    batch = again.where("value.id = 3").select("value").write.format("purekafka").options(**options).mode("append")
    batch.option("kafka.bootstrap.servers", broker.bootstrap_servers).option("topic", "out").save()
    assert read(subscribe="out", **options).where("value.id = 3").count() == 2


def test_the_option_says_what_cannot_be_read(read: Any, broker: Broker, registry: SchemaRegistryServer) -> None:
    options = {"schemaRegistry": registry.url, "schemaRegistry.userInfo": "ada:secret"}
    write(broker, registry, FIRST, [{"id": 1}, {"id": 2}])
    broker.append("events", b"poison", key=b"k", partition=1)
    with pytest.raises(
        Exception, match="the value of events-1 offset 1 cannot be read: the bytes begin with 706f69736f"
    ):
        read(**options).select("value.id").collect()
    frame = read(**options, **{"schemaRegistry.mode": "permissive"})
    assert frame.columns[-1] == "error"
    (bad,) = frame.where("error is not null").select("topic", "partition", "offset", "value", "error.*").collect()
    assert (bad.topic, bad.partition, bad.offset, bad.key) == ("events", 1, 1, b"k")
    assert bad.reason == "value: the bytes begin with 706f69736f, not with 00 and the id of a schema"
    assert sorted(row.id for row in frame.where("error is null").select("value.id").collect()) == [1, 2]


def test_wrong_options_about_a_registry_are_errors_of_load(read: Any, registry: SchemaRegistryServer) -> None:
    url = {"schemaRegistry": registry.url}
    for options, said in (
        ({"schemaRegistry.mode": "PERMISSIVE"}, "schemaRegistry.mode needs the option schemaRegistry"),
        ({**url, "subscribe": "a,b"}, "schemaRegistry.valueSubject must name the subject"),
        ({**url, "schemaRegistry.mode": "LOUD"}, "must be one of FAILFAST, PERMISSIVE, not LOUD"),
        ({**url, "schemaRegistry.valueSubjekt": "x"}, "did you mean 'schemaRegistry.valueSubject'"),
        ({**url, "schemaRegistry.valueVersion": "new"}, "schemaRegistry.valueVersion must be a number, not 'new'"),
        ({**url, "schemaRegistry.userInfo": "ada:wrong"}, "401"),
        ({**url, "schemaRegistry.userInfo": "ada:secret"}, "Subject 'events-value' not found"),
    ):
        with pytest.raises(Exception, match=said):
            read(**options)
