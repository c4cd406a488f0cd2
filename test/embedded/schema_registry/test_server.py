"""The schema registry for tests over HTTP: what it answers, and what it refuses."""

from __future__ import annotations

import http.client
import json
import logging
import threading
from base64 import b64decode
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from kafka.errors import IllegalStateError
from kafka.schema_registry import (
    Reference,
    Schema,
    SchemaDeserializer,
    SchemaRegistry,
    SchemaRegistryError,
    SchemaRegistryServer,
    SchemaSerializer,
)
from kafka.testing.memory import FakeClock

if TYPE_CHECKING:
    from typing_extensions import Self

LONG = Schema('"long"')


def user(*fields: str) -> Schema:
    """A record whose fields may be null and have a default, so that each version reads all others."""
    shown = [{"name": name, "type": ["null", "long"], "default": None} for name in fields]
    return Schema(json.dumps({"type": "record", "name": "User", "fields": shown}))


@pytest.fixture
def running() -> Iterator[SchemaRegistryServer]:
    with SchemaRegistryServer() as server:
        yield server


@pytest.fixture
def registry(running: SchemaRegistryServer) -> SchemaRegistry:
    return SchemaRegistry(running.url)


def ask(server: SchemaRegistryServer, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=30)
    try:
        connection.request(method, path, None if body is None else json.dumps(body))
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def code(call: Any, *arguments: Any, **more: Any) -> tuple[int, int]:
    with pytest.raises(SchemaRegistryError) as failed:
        call(*arguments, **more)
    return failed.value.status, failed.value.error_code


def test_an_id_belongs_to_a_schema_and_a_version_to_a_subject(
    running: SchemaRegistryServer, registry: SchemaRegistry
) -> None:
    first = registry.register("a", user("x"))
    assert registry.register("b", user("x")) == first, "an equal schema has an equal id"
    assert registry.register("b", Schema(json.dumps(json.loads(user("x").text), indent=4))) == first
    assert registry.register("b", user("x", "y")) == first + 1
    assert (registry.versions("a"), registry.versions("b")) == ([1], [1, 2])
    assert ask(running, "GET", f"/schemas/ids/{first}/versions") == (
        200,
        [{"subject": "a", "version": 1}, {"subject": "b", "version": 1}],
    )
    assert ask(running, "GET", f"/schemas/ids/{first}/subjects") == (200, ["a", "b"])
    assert ask(running, "GET", f"/schemas/ids/{first}/schema") == (200, json.loads(user("x").text))
    assert ask(running, "GET", "/schemas/types") == (200, ["JSON", "PROTOBUF", "AVRO"])
    _, found = ask(running, "GET", "/subjects/b/versions/latest")
    assert (found["version"], found["id"]) == (2, first + 1)
    assert "schemaType" not in found, "Avro is the type of a schema without one"
    assert ask(running, "GET", f"/schemas/guids/{found['guid']}") == (
        200,
        {"schema": found["schema"], "guid": found["guid"]},
    )
    listed = ask(running, "GET", "/schemas?subjectPrefix=b&latestOnly=true")[1]
    assert [one["id"] for one in listed] == [first + 1]


def test_a_schema_must_be_compatible_by_the_level_of_its_subject(registry: SchemaRegistry) -> None:
    assert registry.compatibility() == "BACKWARD"
    registry.register("s", user("a"))
    needed = Schema(json.dumps({"type": "record", "name": "User", "fields": [{"name": "b", "type": "long"}]}))
    assert code(registry.register, "s", needed) == (409, 409)
    registry.set_compatibility("FORWARD", "s")
    assert registry.register("s", needed)
    wider = Schema(json.dumps({"type": "record", "name": "User", "fields": [{"name": "b", "type": "double"}]}))
    assert not registry.is_compatible("s", wider), "the reader of longs does not read doubles"
    registry.set_compatibility("BACKWARD", "s")
    assert registry.is_compatible("s", wider)
    registry.set_compatibility("FULL_TRANSITIVE", "s")
    assert code(registry.register, "s", wider) == (409, 409)
    registry.set_compatibility("NONE", "s")
    assert registry.register("s", LONG)
    assert code(registry.set_compatibility, "SOMETIMES", "s") == (422, 42203)
    assert code(registry.compatibility, "other") == (404, 40408)


def test_a_transitive_level_compares_with_all_versions(registry: SchemaRegistry) -> None:
    def of(kind: str) -> Schema:
        return Schema(json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": kind}]}))

    registry.set_compatibility("NONE", "s")
    for kind in ("string", "long"):
        registry.register("s", of(kind))
    registry.set_compatibility("BACKWARD", "s")
    assert registry.is_compatible("s", of("double"))
    registry.set_compatibility("BACKWARD_TRANSITIVE", "s")
    assert code(registry.register, "s", of("double")) == (409, 409)


def test_deleting_has_two_steps(registry: SchemaRegistry) -> None:
    number = registry.register("s", user("a"))
    registry.register("s", user("a", "b"))
    assert code(registry.delete, "s", 1, permanent=True) == (404, 40407)
    assert registry.delete("s", 1) == [1]
    assert code(registry.delete, "s", 1) == (404, 40406)
    assert registry.schema(number).text, "records with its id are still read"
    assert code(registry.delete, "s", permanent=True) == (404, 40405)
    assert registry.delete("s", 1, permanent=True) == [1]
    assert code(SchemaRegistry(registry.url).schema, number) == (404, 40403)
    assert registry.delete("s") == [2]
    assert code(registry.delete, "s") == (404, 40404)
    assert registry.register("s", user("c")) > number, "numbers go on after deleted versions"
    assert registry.versions("s") == [3]
    registry.delete("s")
    assert registry.delete("s", permanent=True) == [2, 3]
    assert code(registry.delete, "s") == (404, 40401)


def test_a_schema_that_others_use_is_not_deleted(running: SchemaRegistryServer, registry: SchemaRegistry) -> None:
    registry.register("money", Schema('{"type": "record", "name": "Money", "fields": []}'))
    bill = Schema('{"type": "array", "items": "Money"}', references=(Reference("Money", "money", 1),))
    number = registry.register("bill", bill)
    assert code(registry.delete, "money") == (422, 42206)
    assert code(registry.delete, "money", 1) == (422, 42206)
    assert ask(running, "GET", "/subjects/money/versions/1/referencedby") == (200, [number])
    registry.delete("bill")
    assert registry.delete("money") == [1]
    assert code(registry.register, "x", Schema(bill.text, references=(Reference("Money", "nope", 1),))) == (422, 42201)


def test_modes_keep_schemas_as_they_are_or_take_ids(running: SchemaRegistryServer, registry: SchemaRegistry) -> None:
    registry.register("s", user("a"))
    assert ask(running, "PUT", "/mode/s", {"mode": "READONLY"}) == (200, {"mode": "READONLY"})
    assert code(registry.register, "s", user("a", "b")) == (422, 42205)
    assert code(registry.delete, "s") == (422, 42205)
    assert registry.register("s", user("a")), "what is there already may be registered"
    assert ask(running, "DELETE", "/mode/s") == (200, {"mode": "READONLY"})
    assert ask(running, "GET", "/mode/s")[1]["error_code"] == 40409
    assert ask(running, "GET", "/mode/s?defaultToGlobal=true") == (200, {"mode": "READWRITE"})
    assert ask(running, "PUT", "/mode/s", {"mode": "IMPORT"})[1]["error_code"] == 42205
    assert ask(running, "PUT", "/mode/new", {"mode": "IMPORT"}) == (200, {"mode": "IMPORT"})
    body = {"schema": '"int"', "id": 77, "version": 5}
    assert ask(running, "POST", "/subjects/new/versions", body)[1]["id"] == 77
    assert registry.version("new", 5).id == 77
    assert ask(running, "PUT", "/mode", {"mode": "NOPE"})[1]["error_code"] == 42204


@pytest.mark.parametrize(
    ("method", "path", "body", "expected"),
    [
        ("GET", "/subjects/none/versions", None, (404, 40401)),
        ("GET", "/subjects/s/versions/0", None, (422, 42202)),
        ("GET", "/subjects/s/versions/x", None, (422, 42202)),
        ("GET", "/subjects/s/versions/9", None, (404, 40402)),
        ("POST", "/subjects/s", {"schema": '"int"'}, (404, 40403)),
        ("POST", "/subjects/s/versions", {"schema": ""}, (422, 42201)),
        ("POST", "/subjects/s/versions", {"schema": "{", "schemaType": "AVRO"}, (422, 42201)),
        ("POST", "/subjects/s/versions", {"schema": "{}", "schemaType": "XML"}, (422, 42201)),
        ("POST", "/subjects/s/versions", {"schema": "{}", "references": [{}]}, (422, 42201)),
        ("GET", "/schemas/ids/99", None, (404, 40403)),
        ("GET", "/schemas/ids/x", None, (404, 404)),
        ("GET", "/nowhere", None, (404, 404)),
        ("POST", "/subjects/s/versions", [1], (400, 400)),
        ("DELETE", "/config/none", None, (404, 40401)),
    ],
)
def test_a_wrong_request_has_the_code_of_confluents_registry(
    method: str, path: str, body: Any, expected: tuple[int, int], running: SchemaRegistryServer
) -> None:
    SchemaRegistry(running.url).register("s", LONG)
    status, found = ask(running, method, path, body)
    assert (status, found["error_code"]) == expected, found
    assert found["message"]


def test_a_descriptor_is_given_where_it_is_asked_for(running: SchemaRegistryServer, registry: SchemaRegistry) -> None:
    descriptor_pb2 = pytest.importorskip("google.protobuf.descriptor_pb2", reason="protobuf is not installed")
    text = 'syntax = "proto3"; package shop; message Order { int64 id = 1; }'
    number = registry.register("s", Schema(text, "PROTOBUF"))
    _, found = ask(running, "GET", f"/schemas/ids/{number}?format=serialized")
    file = descriptor_pb2.FileDescriptorProto.FromString(b64decode(found["schema"]))
    assert file.message_type[0].name == "Order"
    assert registry.register("s", Schema(found["schema"], "PROTOBUF")) == number, "it is the same schema"


def test_only_its_users_are_let_in() -> None:
    with SchemaRegistryServer(users={"ada": "se:cret"}) as server:
        assert SchemaRegistry(server.url, user_info="ada:se:cret").register("s", LONG) == 1
        for options in ({}, {"user_info": "ada:wrong"}, {"token": "t"}):
            assert code(SchemaRegistry(server.url, **options).subjects) == (401, 401)  # type: ignore[arg-type]


def test_it_fails_and_recovers_when_a_test_says_so(running: SchemaRegistryServer, registry: SchemaRegistry) -> None:
    serializer = SchemaSerializer(registry, LONG)
    running.fail(503, b"busy")
    with pytest.raises(SchemaRegistryError, match="status 503"):
        serializer.encode("t", 1)
    running.recover()
    assert SchemaDeserializer(registry).decode(serializer.encode("t", 1)) == 1
    running.reset()
    assert (registry.subjects(), len(running.requests)) == ([], 1)


class OnWarning(logging.Handler):
    """Calls something when the registry's client warns."""

    def __init__(self, call: Callable[[], object]) -> None:
        super().__init__()
        self._call = call
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())
        self._call()

    def __enter__(self) -> Self:
        logging.getLogger("kafka.schema_registry.registry").addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger("kafka.schema_registry.registry").removeHandler(self)


@pytest.mark.parametrize("away", ["closed", "408", "429", "503"])
def test_a_registry_that_is_away_is_waited_for_where_wanted(running: SchemaRegistryServer, away: str) -> None:
    SchemaRegistry(running.url).register("s", LONG)
    client, impatient = SchemaRegistry(running.url, retry_for=600), SchemaRegistry(running.url)
    leave, come_back = (
        (running.close, running.start) if away == "closed" else (lambda: running.fail(int(away)), running.recover)
    )
    leave()
    with pytest.raises(SchemaRegistryError):
        impatient.schema(1)
    with OnWarning(come_back) as warned:
        assert client.schema(1).text == LONG.text
        with pytest.raises(SchemaRegistryError, match="404"):  # it has answered
            client.schema(2)
    (said,) = warned.said
    assert said.startswith("Waiting up to 600 seconds: ")
    assert "schema id 1" in said


def test_an_id_that_was_unknown_is_known_when_it_is_registered(running: SchemaRegistryServer) -> None:
    client = SchemaRegistry(running.url, clock=FakeClock())
    with pytest.raises(SchemaRegistryError, match="404"):
        client.schema(1)
    assert client.register("s", LONG) == 1
    assert client.schema(1).text == LONG.text


def test_a_registry_that_stays_away_is_an_error_after_that_time() -> None:
    clock = FakeClock()
    client = SchemaRegistry("http://127.0.0.1:1", retry_for=20, clock=clock)
    with OnWarning(lambda: clock.advance(30)) as warned, pytest.raises(SchemaRegistryError, match="does not answer"):
        client.latest("s")
    assert len(warned.said) == 1


def test_it_is_where_it_was_after_a_restart_and_closes_open_connections() -> None:
    server = SchemaRegistryServer()
    with pytest.raises(IllegalStateError, match="not running"):
        assert server.url
    before = set(threading.enumerate())
    with server:
        url = server.url
        SchemaRegistry(url).register("s", LONG)
        open_connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
        open_connection.request("GET", "/subjects")
        assert open_connection.getresponse().read() == b'["s"]'
    open_connection.close()
    with pytest.raises(SchemaRegistryError, match="does not answer"):
        SchemaRegistry(url).subjects()
    with server:
        assert (server.url, SchemaRegistry(url).subjects()) == (url, ["s"])
        with pytest.raises(OSError, match="the schema registry cannot listen on 127"):
            SchemaRegistryServer(port=urlsplit(url).port or 0).start()
    for thread in set(threading.enumerate()) - before:
        thread.join(30)
        assert not thread.is_alive()


def test_many_threads_register_one_schema_once(running: SchemaRegistryServer) -> None:
    numbers: list[int] = []
    threads = [
        threading.Thread(target=lambda: numbers.append(SchemaRegistry(running.url).register("s", LONG)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert numbers == [1] * 8
    assert SchemaRegistry(running.url).versions("s") == [1]
