"""What type checkers find in applications: wrong options, the types of keys and values, calls that are not awaited.

mypy --strict and pyright read the same programs, all in one run of each: every example of the documentation, in the
page's own order and alone, and the programs below.
"""

from __future__ import annotations

import doctest
import importlib
import inspect
import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from kafka import KafkaAdminClient, KafkaProducer
from kafka.aio import AIOKafkaConsumer
from kafka.aio import ConsumerRecord as AIOConsumerRecord
from kafka.consumer.group import KafkaConsumer
from kafka.options import ConsumerOptions, ProducerOptions
from kafka.record import ConsumerRecord
from test.embedded.docs.blocks import blocks, pages
from tools.generate_options import OUTPUT, render

ROOT = Path(__file__).parents[2]

# Each line that ends in an error comment must be refused, by both checkers; no other line.
PROGRAM = """
import json
from collections.abc import Sequence
from typing import Any

from typing_extensions import assert_type

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafka.aio import AIOKafkaAdminClient, AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord
from kafka.aio.structs import RecordMetadata
from kafka.options import ConsumerOptions
from kafka.producer.future import RecordMetadata as SentMetadata
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
for other in KafkaConsumer(mixed, "events"):
    print(other.value)
own: ConsumerOptions = {"group_id": "readers", "session_timeout_ms": 10_000}
for other in KafkaConsumer("events", **own):
    assert_type(other.headers, Sequence[tuple[str, bytes | None]])
    assert_type((other.offset, other.topic, other.timestamp), tuple[int, str, int | None])
for other in KafkaConsumer(own, "events"):
    print(other.value)
assert_type(KafkaProducer({"linger.ms": 5}).send("events", b"x").get(), SentMetadata)


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


# A call with one wrong option each: both checkers must refuse each line.
WRONG_OPTIONS = """
KafkaProducer(lingerms=5)
KafkaProducer(linger_ms="abc")
KafkaProducer(acks="most")
KafkaProducer(compression_type="brotli")
KafkaProducer(value_serializer=5)
KafkaProducer(security_protocol="TLS")
KafkaProducer(group_id="readers")
KafkaProducer({"acks": 1}, batch_size="16k")
KafkaConsumer("events", group_protocol="new")
KafkaConsumer("events", isolation_level="commited")
KafkaConsumer("events", enable_auto_commit="false")
KafkaConsumer("events", bootstrap_server="localhost:9092")
KafkaConsumer("events", bootstrap_servers=9092)
KafkaConsumer("events", value_deserializer=bytes.decode, max_poll_record=5)
KafkaConsumer("events", max_poll_records=None)
KafkaConsumer("events", partition_assignment_strategy=[5])
KafkaAdminClient(client_idd="me")
KafkaAdminClient(request_timeout_ms="30s")
KafkaClient(api_version=2.8)
BrokerConnection("localhost", 9092, ssl_check_hostname="no")
AIOKafkaProducer(max_batch_size=None)
AIOKafkaProducer(enable_idempotent=True)
AIOKafkaConsumer("events", rebalance_timeout="10s")
AIOKafkaConsumer("events", auto_commit_interval_ms=[5])
AIOKafkaAdminClient(ssl_context="context.pem")
AIOKafkaClient(acks=1)
"""

# Options that are right, of each form.
RIGHT_OPTIONS = """
KafkaProducer(acks="all", linger_ms=0.5, compression_type="zstd", value_serializer=str.encode, retries=math.inf)
KafkaProducer({"linger.ms": 5, "acks": 1}, value_serializer=JsonSerializer(), partitioner=Murmur2Partitioner())
KafkaProducer(partitioner=lambda key, everything, available: 0, key_serializer=Upper(), interceptors=[object()])
KafkaProducer(ssl_context=ssl.create_default_context(), sasl_plain_password=lambda: "secret", client_id=None)
KafkaProducer(ssl_cafile=pathlib.Path("ca.pem"), api_version_auto_timeout_ms=5, metadata_broker_list="b1,b2")
KafkaProducer(sasl_oauth_token_provider=Tokens(), bootstrap_servers=[("b1", 9092), "b2:9093"], api_version=(2, 8))
KafkaConsumer("events", auto_offset_reset="by_duration:PT1H", bootstrap_servers=("b1", 9092))
KafkaConsumer(partition_assignment_strategy=[RoundRobinPartitionAssignor, "sticky"], bootstrap_servers={"b1", "b2"})
KafkaConsumer({"group.id": "readers"}, "events", "orders", default_offset_commit_callback=lambda offsets, result: None)
KafkaConsumer("events", sasl_mechanism="MY-OWN", socket_options=[(6, 1, 1)], selector=selectors.SelectSelector)
KafkaAdminClient({"bootstrap.controllers": "c1:9093"}, metric_reporters=[DictReporter])
KafkaClient({"client.id": "me"}, metrics=Metrics())
AIOKafkaProducer({"linger.ms": 5}, max_batch_size=100, sasl_oauth_token_provider=AwaitedTokens())
AIOKafkaConsumer({"group.id": "readers"}, "events", rebalance_timeout_ms=None, max_poll_records=None)
AIOKafkaAdminClient({"client.id": "me"}, request_timeout_ms=5)
AIOKafkaClient({"client.id": "me"}, sasl_oauth_token_provider=Tokens())
"""

IMPORTS = """
import math, pathlib, selectors, ssl
from kafka import BrokerConnection, JsonSerializer, KafkaAdminClient, KafkaClient, KafkaConsumer, KafkaProducer
from kafka.aio import AIOKafkaClient, AIOKafkaConsumer, AIOKafkaProducer
from kafka.aio.admin import AIOKafkaAdminClient
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.metrics import DictReporter, Metrics
from kafka.oauth import AbstractTokenProvider
from kafka.partitioner import Murmur2Partitioner
class Upper:
    def serialize(self, topic: str, headers: object, data: str) -> bytes:
        return data.upper().encode()
class Tokens(AbstractTokenProvider):
    def token(self) -> str:
        return "t"
class AwaitedTokens:
    async def token(self) -> str:
        return "t"
"""

# Packages load their names when they are first used: checkers see each of them, and refuse others.
LAZY = [
    "kafka",
    *(f"kafka.{name}" for name in ("admin", "aio", "broker", "consumer", "coordinator.assignors", "metrics", "oauth")),
    *(f"kafka.{name}" for name in ("partitioner", "producer", "record", "sasl", "schema_registry", "serializer")),
    *(f"kafka.{name}" for name in ("share", "spark", "testing")),
]
NAMES = "import kafka\n" + "".join(
    f"def from_{module.replace('.', '_')}() -> None:\n"
    f"    from {module} import {', '.join(importlib.import_module(module).__all__)}\n"
    f"    from {module} import Misspelt  # error:\n"
    # Checkers need not read pyspark for `import kafka`.
    f"    {'kafka' if module in ('kafka.spark', 'kafka.coordinator.assignors') else module}\n"
    for module in LAZY
)

# What the tests of the documentation have for all pages, and what a page has in place of its hidden blocks, which put
# something simpler into the place of a client.
ALL_PAGES = "from typing import Any\nbroker: Any = None\n"
# Examples are short: their functions have no annotations, use a name twice, and read for ever.
RELAXED = (
    "# mypy: allow-untyped-defs, allow-untyped-calls, allow-any-generics, allow-redefinition, no-warn-unreachable\n"
    '# mypy: enable-error-code="unused-awaitable", disable-error-code="no-redef"\n'
)
PRELUDES = {
    "quickstart.rst": "",
    "security.rst": "import os\nfrom kafka import KafkaProducer\n",
    "testing.rst": """
from test.embedded.config.proofs import proves
from test.real import sasl
from test.real.certificates import broker_tls
""",
}

# Modules of the reader's own that examples import.
OWN_MODULES = {
    "shop": "from typing import Any\nhandle: Any\nbill: Any\n",
    "workload": "from typing import Any\nCase: Any\nJob: Any\nTarget: Any\nWorkload: Any\nmain: Any\n",
}


def write_programs(where: Path) -> None:
    """Write the programs above, one for each page of the documentation with all its examples, and each block alone."""
    program = PROGRAM + IMPORTS + "".join(f"{line}  # error:\n" for line in WRONG_OPTIONS.split("\n") if line)
    (where / "program.py").write_text(RELAXED + program + RIGHT_OPTIONS, encoding="utf-8")
    (where / "names.py").write_text(RELAXED + NAMES, encoding="utf-8")
    for name, text in OWN_MODULES.items():
        (where / f"{name}.py").write_text(text, encoding="utf-8")
    for page in pages():
        found = [block for block in blocks(page) if block.is_doctest or block.language == "python"]
        if page.name in PRELUDES:
            found = [block for block in found if not block.hidden]
        sources = [
            "".join(each.source for each in doctest.DocTestParser().get_examples(block.text))
            if block.is_doctest
            else block.text
            for block in found
        ]
        if sources:
            (where / f"page_{name_of(page)}.py").write_text(
                "\n".join([RELAXED, ALL_PAGES, PRELUDES.get(page.name, ""), *sources]), encoding="utf-8"
            )
        for block in blocks(page):
            if block.language == "python" and not block.hidden and not block.is_doctest:
                text = "# pyright: strict\n" + block.text
                (where / f"{ALONE}{name_of(page)}_{block.line}.py").write_text(text, encoding="utf-8")


def name_of(page: Path) -> str:
    return re.sub(r"\W", "_", str(page.relative_to(ROOT).with_suffix("")))


#: How the names of files begin that have one block of a page.
ALONE = "alone_"
#: Each block of these is strict in every respect; short code of others leaves something out.
FIRST_PAGES = ("README.rst", "docs/index.rst", "docs/quickstart.rst")
FIRST = tuple(f"{ALONE}{name_of(ROOT / page)}_" for page in FIRST_PAGES)
#: What strict pyright says of short code: functions without annotations, and names that the text around it has.
OF_SHORT_CODE = re.compile(
    r"report(Unknown\w+|Missing(Parameter|Type)\w+|UndefinedVariable|Untyped\w+|Unused(Import|Variable))"
)


Found = dict[str, dict[int, str]]
"""Errors by file and line."""


@pytest.fixture(scope="module")
def found_by_mypy(tmp_path_factory: pytest.TempPathFactory) -> Found:
    pytest.importorskip("mypy", reason="needs mypy")
    where = tmp_path_factory.mktemp("mypy")
    write_programs(where)
    files = [path for path in sorted(where.glob("*.py")) if path.name.startswith(FIRST) or ALONE not in path.name]
    # In a process of its own: what mypy keeps would make each collection of garbage in this one take seconds.
    words = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml")]
    words += ["--cache-dir", str(ROOT / ".mypy_cache"), *map(str, files)]
    environment = {**os.environ, "MYPYPATH": f"{ROOT}:{where}"}
    done = subprocess.run(words, capture_output=True, text=True, timeout=280, check=False, env=environment)
    assert done.stderr == ""
    found: Found = defaultdict(dict)
    for file, line, said in re.findall(r"(\w+)\.py:(\d+): error: (.*)", done.stdout):
        if file == "program" or "[unused-awaitable]" not in said:  # send() returns a future, which may be awaited
            found[file].setdefault(int(line), said)
    return found


@pytest.fixture(scope="module")
def found_by_pyright(tmp_path_factory: pytest.TempPathFactory) -> Found:
    pytest.importorskip("pyright", reason="needs pyright")
    where = tmp_path_factory.mktemp("pyright")
    write_programs(where)
    settings = {
        "typeCheckingMode": "standard",
        "reportUnusedCoroutine": "error",
        "reportUnusedExpression": "none",
        "reportRedeclaration": "none",
        "reportPossiblyUnboundVariable": "none",
        "extraPaths": [str(ROOT)],
    }
    (where / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    words = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(where)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=280, check=False)
    found: Found = defaultdict(dict)
    for each in json.loads(done.stdout)["generalDiagnostics"]:
        file, line = Path(each["file"]).stem, each["range"]["start"]["line"] + 1
        is_short = file.startswith(ALONE) and not file.startswith(FIRST)
        if each["severity"] == "error" and not (is_short and OF_SHORT_CODE.match(each.get("rule", ""))):
            found[file].setdefault(line, each["message"])
    return found


CHECKERS = pytest.mark.parametrize("checker", ["found_by_mypy", "found_by_pyright"])


@pytest.mark.slow
@CHECKERS
def test_types_are_inferred_and_wrong_names_options_and_missing_awaits_are_found(
    checker: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    found: Found = request.getfixturevalue(checker)
    write_programs(tmp_path)
    for name, count in (("program", 30), ("names", len(LAZY))):
        lines = (tmp_path / f"{name}.py").read_text(encoding="utf-8").splitlines()
        wrong = {number: line for number, line in enumerate(lines, 1) if "# error:" in line}
        assert len(wrong) >= count
        assert {number: lines[number - 1] for number in found[name]} == wrong, found[name]


@pytest.mark.slow
@CHECKERS
def test_the_examples_of_the_documentation_pass(checker: str, request: pytest.FixtureRequest) -> None:
    found: Found = request.getfixturevalue(checker)
    assert {
        page: errors for page, errors in found.items() if page not in ("program", "names") and ALONE not in page
    } == {}


@pytest.mark.slow
@CHECKERS
def test_each_example_alone_is_strict_as_it_is_copied(
    checker: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Of the first pages in every respect, of the others with pyright apart from what short code leaves out."""
    found: Found = request.getfixturevalue(checker)
    write_programs(tmp_path)
    assert len(list(tmp_path.glob(f"{ALONE}*.py"))) > 70
    assert sum(path.name.startswith(FIRST) for path in tmp_path.iterdir()) > 9
    assert {block: errors for block, errors in found.items() if ALONE in block} == {}


def test_the_types_of_options_match_the_table() -> None:
    assert OUTPUT.read_text(encoding="utf-8") == render(), "run tools/generate_options.py"


def test_the_types_are_not_imported_with_the_clients() -> None:
    code = (
        "import sys, kafka; kafka.KafkaProducer, kafka.KafkaConsumer, kafka.KafkaAdminClient; import kafka.aio.producer"
    )
    more = "; print('kafka.options' in sys.modules, 'typing_extensions' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code + more], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["False", "False"]


def test_a_dict_of_options_may_be_annotated_at_run_time() -> None:
    options: ProducerOptions = {"linger_ms": 5}
    more: ConsumerOptions = {"group_id": "readers"}
    assert (options, more) == ({"linger_ms": 5}, {"group_id": "readers"})
    assert ProducerOptions.__total__ is False
    assert {"linger_ms", "bootstrap_servers", "ssl_cafile"} <= set(ProducerOptions.__annotations__)


@pytest.mark.parametrize("client", [KafkaProducer, KafkaConsumer, KafkaAdminClient, AIOKafkaConsumer])
def test_signatures_stay_readable(client: Any) -> None:
    shown = str(inspect.signature(client))
    assert len(shown) < 220
    assert "configs" in shown


@pytest.mark.parametrize("kind", [ConsumerRecord, AIOConsumerRecord, KafkaConsumer, AIOKafkaConsumer])
def test_parameters_of_types_may_be_written_at_run_time(kind: type) -> None:
    assert kind[bytes, str].__origin__ is kind  # type: ignore[index]


def test_a_record_is_as_small_as_a_tuple() -> None:
    record = ConsumerRecord("events", 0, 17, 1700000000000, 0, None, b"hello")
    assert sys.getsizeof(record) == sys.getsizeof(tuple(record))
    assert not hasattr(record, "__dict__")
    assert record._replace(value=b"x") == (*record[:6], b"x", *record[7:])
