"""Each statement of the README's table of features about this package is true."""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection

import pytest

from kafka import ConsumerRebalanceListener, KafkaConsumer, KafkaProducer, KafkaShareConsumer, TopicPartition
from kafka.aio import AIOKafkaConsumer, AIOKafkaProducer
from kafka.broker import Broker
from kafka.broker.faults import NO_REPLY, SeenRequest
from test.embedded.schema_registry.registry_server import RegistryServer

from .blocks import ROOT, blocks

DEADLINE_S = 30.0
WIDEST = 88


def statements() -> dict[str, str]:
    """Return the rows of the table: the feature, and what is said of this package."""
    text = (ROOT / "README.rst").read_text(encoding="utf-8")
    section = text.split("\nFeatures\n--------\n")[1].split(".. End of features.")[0]
    rule, _head, _rule, *rows = section[section.index("\n====") :].strip().split("\n")
    begin, end = re.search(r" +(=+)", rule).span(1)  # type: ignore[union-attr]
    found = {}
    for row in rows:
        if row == rule:
            return found
        found[row[: begin - 1].strip()] = row[begin:end].strip()
    raise AssertionError("the table has no end")


def seen(broker: Broker, api: str) -> list[SeenRequest]:
    return [each for each in broker.requests if each.name == api]


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def send(broker: Broker, *values: bytes) -> None:
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for value in values:
            producer.send("events", value).get(DEADLINE_S)


def has_no_compiled_code(broker: Broker) -> None:
    """Nothing of the package is compiled, and the default path works where no other package can be imported."""
    assert not [*(ROOT / "kafka").rglob("*.so"), *(ROOT / "kafka").rglob("*.pyx"), *(ROOT / "kafka").rglob("*.c")]
    needed = importlib.metadata.requires("purekafka") or []
    names = {re.split(r"[^\w-]", each)[0] for each in needed if "extra ==" not in each}
    modules = {"crc32c": "crc32c", "lz4": "lz4", "python-snappy": "snappy", "zstandard": "zstandard"}
    assert names == set(modules)
    program = f"""
import sys
for name in {[*sorted(modules.values()), "numpy", "pyarrow", "cramjam"]}:
    sys.modules[name] = None
from kafka import KafkaConsumer, KafkaProducer
servers = {broker.bootstrap_servers!r}
with KafkaProducer(bootstrap_servers=servers) as producer:
    producer.send("events", b"plain").get(timeout=30)
with KafkaConsumer("events", bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
    print(next(consumer).value)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.stdout == "b'plain'\n", done.stderr


def is_idempotent(broker: Broker) -> None:
    send(broker, b"a")
    (produce,) = seen(broker, "Produce")
    batch = bytes(produce.request.topic_data[0].partition_data[0].records)
    assert int.from_bytes(batch[43:51], "big", signed=True) >= 0, "the batch has a producer id"


def has_five_in_flight(broker: Broker) -> None:
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, batch_size=1, linger_ms=0) as producer:
        producer.send("events", b"a", partition=0).get(DEADLINE_S)
        with broker.intercept("Produce", lambda _exchange: NO_REPLY, before=True):
            for _ in range(8):
                producer.send("events", b"b", partition=0)
            wait_until(lambda: producer.health()["brokers"]["1/produce"]["in_flight"] == 5)
            assert producer.metrics()["producer-metrics"]["record-send-total"] == 6, "the others wait"
            producer.purge()
        producer.close(timeout=0)


def has_transactions_of_kip_890(broker: Broker) -> None:
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id="features") as producer:
        producer.init_transactions()
        with producer.transaction():
            producer.send("events", b"a")
    assert not seen(broker, "AddPartitionsToTxn"), "with KIP-890 the leader adds the partition"
    assert max(each.version for each in seen(broker, "EndTxn")) >= 5
    assert [record.value for record in broker.records("events", committed=True)] == [b"a"]


def has_the_consumer_protocol(broker: Broker) -> None:
    send(broker, b"a")
    options = {"bootstrap_servers": broker.bootstrap_servers, "group_id": "readers", "group_protocol": "consumer"}
    with KafkaConsumer("events", auto_offset_reset="earliest", **options) as consumer:
        assert next(consumer).value == b"a"
    assert seen(broker, "ConsumerGroupHeartbeat")
    assert not seen(broker, "JoinGroup")


def has_share_groups(broker: Broker) -> None:
    broker.create_topic("jobs", 1)
    with KafkaShareConsumer("jobs", bootstrap_servers=broker.bootstrap_servers, group_id="queue") as consumer:

        def arrived() -> object:
            broker.append("jobs", b"job")  # a new share group begins at the end
            return consumer.poll(50)

        wait_until(arrived)
    assert seen(broker, "ShareFetch")


def rebalances_cooperatively_if_it_is_asked_to(broker: Broker) -> None:
    """What the table said once, that it does so by default, was not true: `range` comes first, as in Java."""
    for strategy, keeps in (("cooperative-sticky", True), (None, False)):
        options = {"bootstrap_servers": broker.bootstrap_servers, "group_id": f"readers-{keeps}"}
        if strategy is not None:
            options["partition_assignment_strategy"] = [strategy]
        with KafkaConsumer(**options) as first, KafkaConsumer(**options) as second:
            revoked: list[set[TopicPartition]] = []
            first.subscribe(["events"], listener=Remembers(revoked))
            wait_until(lambda: first.poll(10) is not None and len(first.assignment()) == 3)
            revoked.clear()
            second.subscribe(["events"])
            wait_until(lambda: (first.poll(10), second.poll(10)) and second.assignment() and first.assignment())
            assert revoked
            assert (len(revoked[0]) < 3) == keeps


class Remembers(ConsumerRebalanceListener):
    def __init__(self, revoked: list[set[TopicPartition]]) -> None:
        self.revoked = revoked

    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        self.revoked.append(set(revoked))

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        pass


def fetches_in_sessions_and_by_topic_id(broker: Broker) -> None:
    send(broker, b"a", b"b")
    with KafkaConsumer(
        "events", bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest", max_poll_records=1
    ) as consumer:
        assert {next(consumer).value, next(consumer).value} == {b"a", b"b"}
        wait_until(lambda: consumer.poll(10) is not None and len(seen(broker, "Fetch")) > 3)
    last = seen(broker, "Fetch")[-1].request
    assert last.session_id > 0
    assert last.session_epoch != 0
    first = seen(broker, "Fetch")[0].request
    assert first.topics[0].topic_id.int
    assert seen(broker, "Produce")[0].request.topic_data[0].topic_id.int


def has_native_asyncio(broker: Broker) -> None:
    async def main() -> None:
        before = threading.active_count()
        async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
            await producer.send_and_wait("events", b"a")
            async with AIOKafkaConsumer(
                "events", bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest"
            ) as consumer:
                assert (await consumer.getone()).value == b"a"
                assert threading.active_count() == before, "no thread"

    runner = asyncio.SelectorEventLoop()
    try:
        runner.run_until_complete(main())
    finally:
        runner.close()


def has_a_command_line(broker: Broker) -> None:
    words = [sys.executable, "-m", "kafka", "topics", "list", "-b", broker.bootstrap_servers, "-q"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.stdout == "events\n", done.stderr
    (script,) = importlib.metadata.entry_points(group="console_scripts", name="purekafka")
    assert script.value == "kafka.__main__:main"


def has_fixtures_for_pytest(_broker: Broker) -> None:
    (plugin,) = importlib.metadata.entry_points(group="pytest11", name="purekafka")
    assert {"kafka_broker", "kafka_cluster"} <= set(vars(plugin.load()))


def has_spark_and_arrow(broker: Broker) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyspark")
    from kafka.spark import KafkaDataSource

    assert KafkaDataSource.name() == "purekafka"
    send(broker, b"a")
    with KafkaConsumer("events", bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        found = {}
        wait_until(lambda: found.update(consumer.poll_batches(50)) or found)
    (columns,) = found.values()
    assert isinstance(columns.to_arrow(), pyarrow.RecordBatch)


def has_the_names_of_kafka_python(_broker: Broker) -> None:
    from kafka import SimpleClient, SimpleConsumer  # 1.x
    from kafka.admin import KafkaAdminClient, NewTopic  # 2.x
    from kafka.consumer.group import KafkaConsumer as Same

    assert Same is KafkaConsumer
    assert all(callable(each) for each in (SimpleClient, SimpleConsumer, KafkaAdminClient, NewTopic))


def has_a_schema_registry(broker: Broker) -> None:
    from kafka.schema_registry import Schema, SchemaDeserializer, SchemaRegistry, SchemaSerializer

    servers, server = broker.bootstrap_servers, RegistryServer()
    try:
        schema = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
        registry = SchemaRegistry(server.url)
        written = SchemaSerializer(registry, Schema(json.dumps(schema)))
        with KafkaProducer(bootstrap_servers=servers, value_serializer=written) as producer:
            producer.send("events", {"id": 7}).get(DEADLINE_S)
        options = {"bootstrap_servers": servers, "auto_offset_reset": "earliest"}
        with KafkaConsumer("events", value_deserializer=SchemaDeserializer(registry), **options) as consumer:
            assert next(consumer).value == {"id": 7}
    finally:
        server.close()


FEATURES: dict[str, tuple[str, Callable[[Broker], None]]] = {
    "Compiled code needed": ("no", has_no_compiled_code),
    "Idempotent producer by default": ("yes", is_idempotent),
    "Batches in flight per partition": ("5", has_five_in_flight),
    "Transactions": ("yes, KIP-890", has_transactions_of_kip_890),
    "Consumer protocol (KIP-848)": ("yes", has_the_consumer_protocol),
    "Share groups: queues (KIP-932)": ("yes", has_share_groups),
    "Cooperative rebalancing": ("yes", rebalances_cooperatively_if_it_is_asked_to),
    "Fetch sessions (KIP-227)": ("yes", fetches_in_sessions_and_by_topic_id),
    "Topic ids when reading and writing": ("yes", fetches_in_sessions_and_by_topic_id),
    "Embedded broker, pytest fixtures": ("yes", has_fixtures_for_pytest),
    "Native asyncio": ("yes", has_native_asyncio),
    "Command line": ("yes", has_a_command_line),
    "Spark data source, Arrow columns": ("yes", has_spark_and_arrow),
    "Names of kafka-python 1.x, 2.x, 3.x": ("yes", has_the_names_of_kafka_python),
    "Schema registry": ("yes", has_a_schema_registry),
}


@pytest.mark.parametrize("page", ["README.rst", "docs/index.rst", "docs/quickstart.rst"])
def test_no_line_of_code_scrolls_in_a_window_of_1280_pixels(page: str) -> None:
    """The theme has room for about 90 characters then."""
    wide = [
        line
        for block in blocks(ROOT / page)
        if (block.is_code or block.is_doctest) and not block.hidden
        for line in block.text.split("\n")
        if len(line) > WIDEST
    ]
    assert not wide


def test_each_row_of_the_table_has_its_test() -> None:
    assert statements() == {feature: said for feature, (said, _) in FEATURES.items()}


@pytest.mark.parametrize("feature", FEATURES)
def test_the_table_is_true_for_this_package(feature: str) -> None:
    with Broker(topics={"events": 3}) as broker:
        FEATURES[feature][1](broker)
