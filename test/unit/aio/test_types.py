"""What type checkers infer for applications: the types of keys and values, and that a call must be awaited."""

from __future__ import annotations

import doctest
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kafka.aio import AIOKafkaConsumer
from kafka.aio import ConsumerRecord as AIOConsumerRecord
from kafka.consumer.group import KafkaConsumer
from kafka.record import ConsumerRecord

ROOT = Path(__file__).parents[3]

# Each line that ends in an error comment must be refused, by both checkers; no other line.
PROGRAM = """
import json
from typing import Any

from typing_extensions import assert_type

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafka.aio import AIOKafkaAdminClient, AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord
from kafka.aio.structs import RecordMetadata
from kafka.record import ConsumerRecord as PlainRecord

TP = TopicPartition("events", 0)


class Point:
    def __init__(self, data: bytes) -> None:
        self.x = data[0]


class Points:
    def deserialize(self, topic: str, headers: object, data: bytes) -> Point:
        return Point(data)


def count(data: bytes) -> int:
    return len(data)


plain = KafkaConsumer("events", bootstrap_servers="localhost:9092")
assert_type(plain, KafkaConsumer[bytes | None, bytes | None])
for record in plain:
    assert_type(record, PlainRecord[bytes | None, bytes | None])
    assert_type(record.value, bytes | None)
    record.value.decode()  # error: None is a tombstone
typed = KafkaConsumer("events", key_deserializer=count, value_deserializer=Points())
for tp, records in typed.poll(100).items():
    assert_type(tp, TopicPartition)
    assert_type(records, list[PlainRecord[int, Point]])
    records[0].value.y  # error: a point has no y
assert_type(next(KafkaConsumer(key_deserializer=count)), PlainRecord[int, bytes | None])
assert_type(next(KafkaConsumer(value_deserializer=bytes.decode)), PlainRecord[bytes | None, str])
assert_type(next(KafkaConsumer(value_deserializer=json.loads)).value, Any)
options: dict[str, Any] = {"group_id": "readers"}
unparameterised: KafkaConsumer = KafkaConsumer("events", **options)
assert_type(next(unparameterised).value, Any)
mixed = {"group_id": "readers", "session_timeout_ms": 10_000}
for other in KafkaConsumer("events", **mixed):
    print(other.value)


def handle(record: ConsumerRecord[str, Point]) -> int:
    return record.value.x + len(record.key) + record.offset


def handle_any(record: ConsumerRecord) -> None:
    record.value.anything()


async def main() -> None:
    async with AIOKafkaConsumer("events", key_deserializer=bytes.decode, value_deserializer=Point) as consumer:
        assert_type(consumer, AIOKafkaConsumer[str, Point])
        record = await consumer.getone()
        assert_type(record, ConsumerRecord[str, Point])
        handle(record)
        handle_any(record)
        assert_type(await consumer.getmany(timeout_ms=5), dict[TopicPartition, list[ConsumerRecord[str, Point]]])
        async for each in consumer:
            assert_type(each.key, str)
        for wrong in consumer:  # error: it is an asynchronous iterator
            pass
        consumer.getone().value  # error: it is not awaited
        consumer.commit()  # error: it is not awaited
    async with AIOKafkaConsumer("events") as untyped:
        handle(await untyped.getone())  # error: keys and values are bytes
        assert_type((await untyped.getone()).value, bytes | None)
    async with AIOKafkaProducer() as producer:
        assert_type(await producer.send_and_wait("events", b"x"), RecordMetadata)
        assert_type(await (await producer.send("events", b"x")), RecordMetadata)
        producer.send("events", b"x")  # error: it is not awaited
        assert_type(await (await producer.send_many("events", [b"x"])), list[RecordMetadata])
        producer.flush()  # error: it is not awaited


def calls(consumer: KafkaConsumer[str, Point], producer: KafkaProducer, admin: KafkaAdminClient) -> None:
    assert_type(consumer.position(TP), int)
    assert_type(consumer.committed([TP]), dict[TopicPartition, OffsetAndMetadata | None])
    assert_type(consumer.commit({TP: 5}), None)
    assert_type(consumer.health(), dict[str, Any])
    assert_type(producer.partitions_for("events"), set[int])
    assert_type(producer.purge(in_flight=True), int)
    assert_type(admin.list_topics(), list[str])
    consumer.position("events")  # error: it is not a partition
    producer.flush(timeout="5")  # error: it is not a number


async def awaited_calls(
    consumer: AIOKafkaConsumer[str, Point], producer: AIOKafkaProducer, admin: AIOKafkaAdminClient
) -> None:
    assert_type(await consumer.position(TP), int)
    assert_type(await consumer.committed([TP]), dict[TopicPartition, OffsetAndMetadata | None])
    assert_type(await consumer.commit({TP: 5}), None)
    assert_type(await consumer.poll(100), dict[TopicPartition, list[ConsumerRecord[str, Point]]])
    assert_type(consumer.health(), dict[str, Any])
    assert_type(await producer.partitions_for("events"), set[int])
    assert_type(await producer.purge(in_flight=True), int)
    assert_type(await admin.list_topics(), list[str])
    await consumer.position("events")  # error: it is not a partition
    await producer.flush(timeout="5")  # error: it is not a number
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM, encoding="utf-8")
    return file


def refused(program: Path) -> list[int]:
    return [number for number, line in enumerate(program.read_text().splitlines(), 1) if "# error:" in line]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_mypy_infers_types_from_deserializers_and_reports_a_missing_await(program: Path) -> None:
    api = pytest.importorskip("mypy.api", reason="needs mypy")
    words = ["--strict", "--enable-error-code", "unused-awaitable", "--config-file", str(ROOT / "pyproject.toml")]
    out, err, _ = api.run([*words, str(program)])
    assert err == ""
    assert sorted({int(number) for number in re.findall(r"program\.py:(\d+): error", out)}) == refused(program), out


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_pyright_infers_types_from_deserializers_and_reports_a_missing_await(program: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyright", reason="needs pyright")
    settings = {
        "typeCheckingMode": "standard",
        "reportUnusedCoroutine": "error",
        "reportUnusedExpression": "none",
        "extraPaths": [str(ROOT)],
        "include": [str(program)],
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    words = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=250, check=False)
    found = json.loads(done.stdout)["generalDiagnostics"]
    errors = sorted({each["range"]["start"]["line"] + 1 for each in found if each["severity"] == "error"})
    assert errors == refused(program), done.stdout


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_examples_of_the_manual_pass_a_strict_type_check(tmp_path: Path) -> None:
    """They are run by the tests of the manual."""
    api = pytest.importorskip("mypy.api", reason="needs mypy")
    page = (ROOT / "docs" / "asyncio.rst").read_text(encoding="utf-8")
    examples = [example.source for example in doctest.DocTestParser().get_examples(page)]
    imports = "".join(source for source in examples if "import " in source)
    programs = []
    for number, source in enumerate(source for source in examples if "async def" in source):
        programs.append(tmp_path / f"example{number}.py")
        programs[-1].write_text(imports + source, encoding="utf-8")
    assert len(programs) == 3
    out, err, status = api.run(["--strict", "--config-file", str(ROOT / "pyproject.toml"), *map(str, programs)])
    assert (status, err) == (0, ""), out


@pytest.mark.parametrize("kind", [ConsumerRecord, AIOConsumerRecord, KafkaConsumer, AIOKafkaConsumer])
def test_parameters_of_types_may_be_written_at_run_time(kind: type) -> None:
    assert kind[bytes, str].__origin__ is kind  # type: ignore[index]


def test_a_record_is_as_small_as_a_tuple() -> None:
    record = ConsumerRecord("events", 0, 17, 1700000000000, 0, None, b"hello")
    assert sys.getsizeof(record) == sys.getsizeof(tuple(record))
    assert not hasattr(record, "__dict__")
    assert record._replace(value=b"x") == (*record[:6], b"x", *record[7:])
