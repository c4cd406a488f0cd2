"""Arguments of confluent-kafka's calls are refused with what to use here, on both faces."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import kafka
from kafka import KafkaConsumer, KafkaProducer
from kafka.aio import AIOKafkaConsumer, AIOKafkaProducer
from kafka.broker import Broker

ARGUMENTS: dict[str, tuple[str, Callable[[Any], Any], str]] = {
    "on_delivery": ("producer", lambda producer: producer.send("events", b"x", on_delivery=print), "add_callback"),
    "on_delivery, with a key": (
        "producer",
        lambda producer: producer.send("events", b"x", b"k", on_delivery=print),
        "add_errback",
    ),
    "callback": ("producer", lambda producer: producer.send("events", b"x", callback=print), "add_callback"),
    "timestamp": ("producer", lambda producer: producer.send("events", b"x", b"k", timestamp=5), "use timestamp_ms="),
    "on_assign": ("consumer", lambda consumer: consumer.subscribe(["events"], on_assign=print), "listener="),
    "on_revoke": (
        "consumer",
        lambda consumer: consumer.subscribe(["events"], on_revoke=print),
        "on_partitions_revoked",
    ),
    "on_lost": ("consumer", lambda consumer: consumer.subscribe(["events"], on_lost=print), "on_partitions_lost"),
    "asynchronous": ("consumer", lambda consumer: consumer.commit(asynchronous=False), "commit_async"),
    "message": ("consumer", lambda consumer: consumer.commit(message=None), "record.offset + 1"),
    "timeout": ("consumer", lambda consumer: consumer.poll(timeout=1.0), "use timeout_ms="),
    "anything": ("consumer", lambda consumer: consumer.commit(anything=1), "unexpected keyword argument 'anything'"),
}


NAMES = {
    "producer": {
        "produce": "send(topic, value, key)",
        "poll": "flush()",
        "list_topics": "partitions_for(topic)",
    },
    "consumer": {
        "consume": "poll(timeout_ms=..., max_records=...)",
        "store_offsets": "commit(offsets)",
        "get_watermark_offsets": "beginning_offsets() and end_offsets()",
        "list_topics": "topics()",
        "incremental_assign": "assign()",
        "incremental_unassign": "assign()",
        "consumer_group_metadata": "group_metadata()",
        "memberid": "group_metadata().member_id",
        "assignment_lost": "subscribe(topics, listener=...)",
    },
}


def test_methods_of_confluent_kafka_are_refused_with_what_to_use_here() -> None:
    with Broker(topics={"events": 1}) as broker:
        options = {"bootstrap_servers": broker.bootstrap_servers}
        with KafkaProducer(options) as producer, KafkaConsumer(options) as consumer:
            for client, kind in ((producer, "producer"), (consumer, "consumer")):
                for name, use in NAMES[kind].items():
                    with pytest.raises(AttributeError, match=name) as caught:
                        getattr(client, name)
                    assert f"use {use}" in str(caught.value)


@pytest.mark.parametrize(
    "name",
    [
        "AdminClient",
        "Consumer",
        "DeserializingConsumer",
        "KafkaException",
        "OFFSET_BEGINNING",
        "OFFSET_END",
        "Producer",
        "SerializingProducer",
    ],
)
def test_names_of_confluent_kafka_are_refused_with_what_to_use_here(name: str) -> None:
    with pytest.raises(ImportError, match=f"cannot import name '{name}' from 'kafka': use .*Kafka"):
        getattr(kafka, name)


@pytest.mark.parametrize("argument", ARGUMENTS)
def test_an_argument_of_confluent_kafka_is_refused_with_what_to_use_here(argument: str) -> None:
    kind, call, advice = ARGUMENTS[argument]
    name = argument.split(",", maxsplit=1)[0]
    with Broker(topics={"events": 1}) as broker:
        options = {"bootstrap_servers": broker.bootstrap_servers}
        with KafkaProducer(options) as producer, KafkaConsumer(options, group_id="readers") as consumer:
            producer.send("events", b"opens a batch").get(timeout=30)
            with pytest.raises(TypeError, match=name) as caught:
                call({"producer": producer, "consumer": consumer}[kind])
        assert advice in str(caught.value)
        assert [record.value for record in broker.records("events")] == [b"opens a batch"]

        async def main() -> None:
            async with (
                AIOKafkaProducer(options) as producer,
                AIOKafkaConsumer(options, group_id="aio") as consumer,
            ):
                with pytest.raises(TypeError, match=name) as caught:
                    await call({"producer": producer, "consumer": consumer}[kind])
                assert advice in str(caught.value)

        asyncio.run(main())
