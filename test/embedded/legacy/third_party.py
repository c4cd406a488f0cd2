"""Programs that use packages made for kafka-python, one for each: ``python third_party.py NAME SERVERS``.

They run in an environment that has these packages and ours, but no kafka-python.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import Any

servers = sys.argv[2]
TOPIC = "events"


def check(claim: object, shown: object = "") -> None:
    if not claim:
        raise SystemExit(f"{sys.argv[1]}: {shown!r}")


def produce(value: bytes) -> Any:
    from kafka import KafkaProducer

    with KafkaProducer(bootstrap_servers=[servers]) as producer:
        return producer.send(TOPIC, value, key=b"key").get(timeout=30)


def consume(how: str, group: str | None = None) -> list[Any]:
    """Read one record by an iteration or by poll()."""
    from kafka import KafkaConsumer

    consumer = KafkaConsumer(
        TOPIC, bootstrap_servers=[servers], group_id=group, auto_offset_reset="earliest", consumer_timeout_ms=30_000
    )
    try:
        if how == "poll":
            return [record for records in consumer.poll(timeout_ms=30_000).values() for record in records]
        for record in consumer:
            return [record]
        return []
    finally:
        consumer.close()


def opentelemetry() -> None:
    from opentelemetry import trace
    from opentelemetry.instrumentation.kafka import KafkaInstrumentor
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    KafkaInstrumentor().instrument(skip_dep_check=True)  # it looks for a distribution called kafka-python
    produce(b"traced")
    (record,) = consume("iteration", "group")
    check("traceparent" in dict(record.headers), record.headers)
    spans = exporter.get_finished_spans()
    check([span.name for span in spans] == ["events send", "events receive"], [span.name for span in spans])
    for span in spans:
        check(span.attributes["messaging.url"] == f'["{servers}"]', span.attributes)
        check(span.attributes["messaging.kafka.partition"] == 0, span.attributes)


def elasticapm() -> None:
    import elasticapm as apm

    events: list[tuple[str, Any]] = []

    class Client(apm.Client):
        def queue(self, event_type: str, data: Any, flush: bool = False) -> None:
            events.append((event_type, data))

    client = Client(
        {"SERVICE_NAME": "service", "CENTRAL_CONFIG": False, "CLOUD_PROVIDER": "none", "DISABLE_SEND": True}
    )
    apm.instrument()
    client.begin_transaction("messaging")
    produce(b"traced")
    (record,) = consume("poll")
    client.end_transaction("transaction", "ok")
    check("elasticapmtraceparent" in dict(record.headers), record.headers)
    names = [data["name"] for kind, data in events if kind == "span"]
    check("Kafka SEND to events" in names and any(name.startswith("Kafka POLL from events") for name in names), names)
    client.close()


def newrelic() -> None:
    import pathlib
    import tempfile

    from newrelic import agent
    from newrelic.core.agent import agent_instance

    with tempfile.TemporaryDirectory() as place:
        settings = pathlib.Path(place) / "newrelic.ini"
        settings.write_text(f"[newrelic]\napp_name = service\ndeveloper_mode = true\nlicense_key = {'0' * 40}\n")
        agent.initialize(str(settings))  # its hooks run when our modules are imported
    check(agent.register_application(timeout=30).active)

    from kafka import KafkaConsumer, KafkaProducer
    from kafka.coordinator.heartbeat import Heartbeat
    from kafka.serializer import Serializer

    class Text(Serializer):
        def serialize(self, topic: str, value: Any) -> bytes:
            return str(value).encode()

    @agent.background_task(name="sending")
    def send() -> None:
        with KafkaProducer(bootstrap_servers=[servers], key_serializer=str.encode, value_serializer=Text()) as producer:
            producer.send(TOPIC, "traced", key="key", headers=[("own", b"header")]).get(timeout=30)

    send()
    consumer = KafkaConsumer(
        TOPIC, bootstrap_servers=[servers], group_id="group", auto_offset_reset="earliest", heartbeat_interval_ms=10
    )
    record = next(consumer)
    check((record.key, record.value) == (b"key", b"traced"), record)
    check([name for name, _ in record.headers] == ["traceparent", "tracestate", "own"], record.headers)
    transaction = agent.current_transaction()
    check(transaction is consumer._nr_transaction and transaction.name == "Named/events", transaction)
    check(transaction.trace_id in dict(record.headers)["traceparent"].decode(), transaction.trace_id)
    agent.end_of_transaction()
    for method in ("poll", "sent_heartbeat", "received_heartbeat", "fail_heartbeat", "session_timeout_expired"):
        check(hasattr(getattr(Heartbeat, method), "__wrapped__"), method)
    found = agent_instance().application("service")
    expected = {f"MessageBroker/Kafka/Heartbeat/{name}" for name in ("Poll", "Sent", "Receive")}
    while not expected <= {name for name, _ in found._stats_custom_engine.stats_table}:
        consumer.poll(timeout_ms=10)  # the limit is that of the process
    consumer.close()
    consumer._nr_transaction.__exit__(None, None, None)
    metrics = {name for name, _ in found._stats_engine.stats_table}
    for metric in (
        "MessageBroker/Kafka/Topic/Produce/Named/events",
        "MessageBroker/Kafka/Topic/Named/events/Serialization/Key",
        "MessageBroker/Kafka/Topic/Named/events/Serialization/Value",
        f"MessageBroker/Kafka/Nodes/{servers}/Produce/events",
        f"MessageBroker/Kafka/Nodes/{servers}/Consume/events",
        "Message/Kafka/Topic/Named/events/Received/Messages",
        "OtherTransaction/Message/Kafka/Topic/Named/events",
    ):
        check(metric in metrics, (metric, sorted(metrics)))


def instana() -> None:
    import os

    os.environ["INSTANA_TEST"] = "1"
    from instana.singletons import get_tracer

    tracer = get_tracer()
    with tracer.start_as_current_span("test"):
        produce(b"traced")
    with tracer.start_as_current_span("test"):
        (record,) = consume("iteration", "group")
    check({"x_instana_t", "x_instana_s"} <= dict(record.headers).keys(), record.headers)
    with tracer.start_as_current_span("test"):
        check(len(consume("poll", "others")) == 1)


def aiokafka() -> None:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

    async def main() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=servers)
        await producer.start()
        metadata = await producer.send_and_wait(TOPIC, b"value", key=b"key", headers=[("name", b"header")])
        await producer.stop()
        check(metadata.offset == 0, metadata)
        consumer = AIOKafkaConsumer(TOPIC, bootstrap_servers=servers, group_id="group", auto_offset_reset="earliest")
        await consumer.start()
        record = await asyncio.wait_for(consumer.getone(), 30)
        await consumer.commit()
        await consumer.stop()
        check((record.value, record.headers) == (b"value", (("name", b"header"),)), record)

    asyncio.run(main())


def kq() -> None:
    from kq import Queue, Worker

    from kafka import KafkaConsumer, KafkaProducer

    results: list[Any] = []
    producer = KafkaProducer(bootstrap_servers=servers)
    Queue(topic="jobs", producer=producer).enqueue(len, [1, 2, 3])
    consumer = KafkaConsumer(bootstrap_servers=servers, group_id="group", auto_offset_reset="earliest")
    worker = Worker(topic="jobs", consumer=consumer, callback=lambda status, *found: results.append((status, found[2])))
    check(worker.start(max_messages=1) == 1)
    check(results == [("success", 3)], results)
    consumer.close()
    producer.close()


def robotframework() -> None:
    from KafkaLibrary import KafkaLibrary

    library = KafkaLibrary()
    library.connect_to_kafka(bootstrap_servers=servers, client_id="robot", auto_offset_reset="earliest")
    library.send(TOPIC, b"value", timeout=30)
    library.subscribe_topic(topics=[TOPIC])
    (record,) = library.poll(timeout_ms=30_000, max_records=1)
    check(record.value == b"value", record)
    library.close()


def kafka_logging_handler() -> None:
    from kafka_logger.handlers import KafkaLoggingHandler

    handler = KafkaLoggingHandler(servers, TOPIC, security_protocol="PLAINTEXT")
    logger = logging.getLogger("application")
    logger.addHandler(handler)
    logger.error("shipped to Kafka")
    handler.flush()
    handler.close()
    (record,) = consume("iteration")
    check(b"shipped to Kafka" in record.value, record)


def kafka_utils() -> None:
    from kafka_utils.util import offsets
    from kafka_utils.util.client import KafkaToolClient

    produce(b"value")
    client = KafkaToolClient(servers)
    client.load_metadata_for_topics()
    check(offsets.get_topics_watermarks(client, [TOPIC])[TOPIC][0].highmark == 1)
    check(offsets.set_consumer_offsets(client, "group", {TOPIC: {0: 1}}, raise_on_error=True) == [])
    check(offsets.get_current_consumer_offsets(client, "group", [TOPIC]) == {TOPIC: {0: 1}})
    check(consume("iteration")[0].value == b"value")
    client.close()


def pytest_kafka() -> None:
    import pathlib
    import tempfile

    import pytest

    with tempfile.TemporaryDirectory() as place:
        test = pathlib.Path(place) / "test_consumer.py"
        test.write_text(
            f"""
import pytest
from pytest_kafka import make_kafka_consumer
from kafka import KafkaProducer

@pytest.fixture(scope="session")
def server():
    return None, {servers.rpartition(":")[2]}

consumer = make_kafka_consumer("server", seek_to_beginning=True, kafka_topics=["{TOPIC}"])

def test_consumer(consumer):
    with KafkaProducer(bootstrap_servers="{servers}") as producer:
        producer.send("{TOPIC}", b"value").get(timeout=30)
    assert [record.value for records in consumer.poll(30000).values() for record in records] == [b"value"]
"""
        )
        check(pytest.main(["-q", "-p", "no:cacheprovider", str(test)]) == 0)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    print("done", flush=True)
