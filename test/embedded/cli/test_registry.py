"""Types of keys and values that need a schema registry, from the shell."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka.broker import Broker
from test.embedded.schema_registry.registry_server import RegistryServer

from .conftest import Shell

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
    ],
}


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[RegistryServer]:
    server = RegistryServer()
    monkeypatch.setenv("PUREKAFKA_SCHEMA_REGISTRY_URL", server.url)
    yield server
    server.close()


@pytest.fixture
def schema(tmp_path: Path) -> str:
    path = tmp_path / "order.avsc"
    path.write_text(json.dumps(ORDER))
    return str(path)


def test_c10_avro_is_written_from_json_and_printed_as_json(
    shell: Shell, broker: Broker, registry: RegistryServer, schema: str
) -> None:
    lines = b'{"id": 1, "note": "a", "price": "12.50"}\n{"id": 2, "price": "-0.01"}\n'
    made = shell(f"purekafka produce orders --value-type avro --value-schema {schema}", stdin=lines)
    assert (made.code, made.err) == (0, "")
    assert broker.records("orders")[0].value == bytes.fromhex("00 00000064 02 0202 61 04 04e2")
    # The newest schema of the subject is used if none is named, and one with an id if that is given.
    assert shell("purekafka produce orders --value-type avro", stdin=b'{"id": 3, "price": "1"}').code == 0
    by_id = shell("purekafka produce orders --value-type avro --value-schema 100", stdin=b'{"id": 4, "price": "1"}')
    assert by_id.code == 0
    assert registry.subjects == {"orders-value": [100]}
    shown = shell("purekafka consume orders --value-type avro")
    assert (shown.code, shown.err) == (0, "")
    assert [json.loads(line) for line in shown.lines] == [
        {"id": 1, "note": "a", "price": "12.50"},
        {"id": 2, "note": None, "price": "-0.01"},
        {"id": 3, "note": None, "price": "1.00"},
        {"id": 4, "note": None, "price": "1.00"},
    ]
    assert shell("purekafka consume orders -n 2 -f '%o %s{schema} %k{schema}\\n'").lines == ["0 100 ", "1 100 "]


def test_c6_c10_a_topic_of_avro_is_copied_through_json(shell: Shell, broker: Broker, registry: RegistryServer) -> None:
    registry.add("events-key", '"long"')
    registry.add("events-value", json.dumps(ORDER))
    for subject in ("copy-key", "copy-value"):
        registry.add(subject, '"long"' if subject == "copy-key" else json.dumps(ORDER))
    lines = b'{"key": 7, "value": {"id": 1, "price": "5.00"}}\n{"key": null, "value": null}\n'
    types = "--key-type avro --value-type avro -f jsonl"
    assert shell(f"purekafka produce events {types}", stdin=lines).code == 0
    broker.create_topic("copy", 3)
    assert shell(f"purekafka consume events {types} | purekafka produce copy {types}").code == 0
    before, after = broker.records("events"), broker.records("copy")
    assert sorted((one.key or b"", one.value or b"") for one in before) == [
        (b"", b""),
        (bytes.fromhex("00 00000064 0e"), bytes.fromhex("00 00000065 02 00 04 01f4")),
    ]
    assert [record._replace(topic="copy", offset=record.offset) for record in before] == after


def test_c10_a_value_that_does_not_fit_names_its_line_subject_and_field(
    shell: Shell, broker: Broker, registry: RegistryServer
) -> None:
    registry.add("orders-value", json.dumps(ORDER))
    outcome = shell("purekafka produce orders --value-type avro", stdin=b'{"id": 1, "price": "1"}\n{"id": "x"}\n{\n')
    assert outcome.code == 1
    first, second = outcome.err.splitlines()
    assert first == "purekafka produce: line 2: subject 'orders-value': id: 'x' does not fit into long"
    assert second.startswith("purekafka produce: line 3: Expecting property name")
    assert len(broker.records("orders")) == 1


def test_c10_records_that_are_not_of_a_schema_are_printed_with_the_error_and_counted(
    shell: Shell, broker: Broker, registry: RegistryServer
) -> None:
    registry.add("orders-value", '"long"')
    for value in ("00 00000064 0e", b"plain".hex(), "00 00000063 0e", "00 00000064"):
        broker.append("orders", bytes.fromhex(value))
    outcome = shell("purekafka consume orders --value-type avro --strict")
    assert outcome.code == 1
    assert outcome.lines[0] == "7"
    assert len(outcome.lines) == 4
    complaints = outcome.err.splitlines()
    assert "orders-0 offset 1 cannot be decoded: the bytes begin with 706c61696e, not with 00" in complaints[0]
    unknown = f"schema registry {registry.url}: schema id 99: Schema 99 not found"
    assert f"offset 2 cannot be decoded: {unknown}" in complaints[1]
    assert "offset 3 cannot be decoded: schema id 100: the value ends after 5 bytes" in complaints[2]
    assert complaints[3:] == ["purekafka consume: 3 records could not be decoded"]
    assert shell("purekafka consume orders --value-type avro").code == 0
    wrong = shell("purekafka consume orders --value-type jsonschema -n 1")
    assert "schema id 100 is of type AVRO, not JSON" in wrong.err


def test_c10_a_registry_that_does_not_answer_ends_the_command(
    shell: Shell, broker: Broker, registry: RegistryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.append("orders", bytes.fromhex("00 00000064 0e"))
    outcome = shell("purekafka consume orders --value-type avro --registry http://ada:hush@127.0.0.1:1")
    assert (outcome.code, outcome.out) == (1, "")
    assert "the schema registry does not answer about schema id 100" in outcome.err
    assert "127.0.0.1:1" in outcome.err
    assert "hush" not in outcome.err
    monkeypatch.delenv("PUREKAFKA_SCHEMA_REGISTRY_URL")
    missing = shell("purekafka consume orders --value-type avro")
    assert (missing.code, "the type avro needs a schema registry: give --registry URL" in missing.err) == (2, True)
    assert shell("purekafka produce orders --value-schema x", stdin=b"a").code == 2
    assert shell("purekafka produce orders --value-type offsets", stdin=b"a").code == 2


def test_c4_c10_the_registry_of_a_context_hides_its_password(
    shell: Shell, broker: Broker, registry: RegistryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PUREKAFKA_SCHEMA_REGISTRY_URL")
    registry.add("orders-value", '"long"')
    broker.append("orders", bytes.fromhex("00 00000064 0e"))
    words = f"-X schema.registry.url={registry.url} -X schema.registry.basic.auth.user.info=ada:hush"
    assert shell(f"purekafka contexts add prod -b {broker.bootstrap_servers} {words}").code == 0
    shown = shell("purekafka contexts show prod")
    assert ("hush" in shown.out, "schema_registry_user_info" in shown.out) == (False, True)
    assert shell("purekafka consume orders --context prod --value-type avro").lines == ["7"]
    assert registry.requests[-1][2] == "Basic YWRhOmh1c2g="
    assert shell("purekafka consume orders --value-type avro -X schema.registry.ulr=x").code == 2


def test_c10_internal_topics_are_printed_by_type(shell: Shell, broker: Broker) -> None:
    group_key = bytes.fromhex("0002 0001 67")
    group = bytes.fromhex("0003 0008 636f6e73756d6572 00000001 ffff ffff ffffffffffffffff 00000000")
    commit_key = bytes.fromhex("0001 0001 67 0001 74 00000005")
    commit = bytes.fromhex("0003 0000000000000007 ffffffff 0000 0000000000000009")
    for key, value in ((group_key, group), (commit_key, commit), (commit_key, None), (commit_key, b"\0\x09")):
        broker.append("orders", value, key=key)
    shown = shell("purekafka consume orders --key-type offsets --value-type offsets -f jsonl")
    rows = shown.records
    assert [row["offset"] for row in rows] == [1, 2, 3]
    assert rows[0]["key"] == {"group": "g", "topic": "t", "partition": 5}
    assert (rows[0]["value"]["offset"], rows[1]["value"]) == (7, None)
    assert "orders-0 offset 3 cannot be decoded" in shown.err
    shown = shell("purekafka consume orders --key-type group-metadata -f '%k\\n'")
    assert shown.lines == ['{"group": "g"}']
    (row,) = shell("purekafka consume orders --value-type group-metadata -f jsonl").records
    assert row["value"]["protocolType"] == "consumer"


def test_c10_headers_have_a_type(shell: Shell, broker: Broker) -> None:
    broker.append("orders", "v", headers=[("n", b"\0\0\0\5"), ("none", None)])
    (row,) = shell("purekafka consume orders --header-type int -f jsonl").records
    assert row["headers"] == [["n", 5], ["none", None]]
    assert shell("purekafka consume orders --header-type int -f '%h\\n'").lines == ["n=5,none=NULL"]
    assert shell("purekafka consume orders --header-type long -f jsonl --strict").code == 1


def test_c19_kcat_reads_avro(shell: Shell, broker: Broker, registry: RegistryServer) -> None:
    text = json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": ["null", "string"]}]})
    registry.add("orders-value", text)
    broker.append("orders", bytes.fromhex("00 00000064 02 02 61"))
    words = f"-C -b {broker.bootstrap_servers} -t orders -e -q -s value=avro -r {registry.url}"
    done = subprocess.run(
        [sys.executable, "-m", "kafka.cli.kcat", *words.split()], capture_output=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b'{"a": {"string": "a"}}\n', b"")
