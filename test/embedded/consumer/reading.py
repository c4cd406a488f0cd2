"""Reading with a deadline, for the tests beside it."""

from __future__ import annotations

import time
from typing import Any

from kafka.broker import Broker
from kafka.consumer import KafkaConsumer
from kafka.structs import TopicPartition

TIMEOUT = 60.0  # for what comes at once, if the machine is not busy


def tp(partition: int = 0, topic: str = "events") -> TopicPartition:
    return TopicPartition(topic, partition)


def fill(broker: Broker, count: int, partition: int = 0, *, batch: int = 10, topic: str = "events") -> None:
    """Append values b"0", b"1", ... in batches."""
    for start in range(0, count, batch):
        broker.append_many(topic, [b"%d" % n for n in range(start, min(count, start + batch))], partition=partition)


def wait_until_fetched(consumer: KafkaConsumer, *partitions: TopicPartition) -> None:
    """Wait until there is something to hand out of each partition: whoever comes first waits for no other."""
    deadline = time.monotonic() + TIMEOUT
    while True:
        found = consumer.health()["partitions"]
        if all(found[f"{topic}-{number}"]["buffered_bytes"] for topic, number in partitions):
            return
        assert time.monotonic() < deadline, found
        time.sleep(0.002)  # the network thread needs the interpreter


def read(consumer: KafkaConsumer, count: int, **options: Any) -> list[Any]:
    """Poll until there are `count` records."""
    found: list[Any] = []
    deadline = time.monotonic() + TIMEOUT
    while len(found) < count:
        assert time.monotonic() < deadline, f"{len(found)} of {count} records: {consumer.health()}"
        for records in consumer.poll(timeout_ms=1000, **options).values():
            found += records
    return found
