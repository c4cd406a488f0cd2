"""confluent-kafka as users see it: one command for each line of input, one line for what the application was told.

``consume TOPIC COUNT`` reads that many records from the start of partition 0, ``seek TOPIC OFFSET`` reads one from an
offset on, ``produce TOPIC`` writes one record, ``list TOPIC`` asks for metadata, ``end TOPIC`` asks where the partition
ends, ``commit TOPIC`` commits an offset, ``committed TOPIC`` reads it. The line is ``ok``, or the names of the errors
that the application was told before it.
"""

from __future__ import annotations

import sys
import time

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

TIMEOUT = 30.0
QUICK = {"retry.backoff.ms": 10, "reconnect.backoff.ms": 10, "fetch.error.backoff.ms": 10, "fetch.wait.max.ms": 50}
QUICK |= {"topic.metadata.refresh.fast.interval.ms": 20, "retry.backoff.max.ms": 50}
READER = {"group.id": "judge", "auto.offset.reset": "error", "enable.auto.commit": False, "fetch.queue.backoff.ms": 10}


def read(consumer: Consumer, count: int) -> list[str]:
    told: list[str] = []
    found, deadline = 0, time.monotonic() + TIMEOUT
    while found < count:
        if time.monotonic() > deadline:
            return [*told, "nothing"]
        message = consumer.poll(0.1)
        if message is None:
            continue
        if message.error() is None:
            found += 1
        else:
            told.append(message.error().name())
            if message.error().name() in {"_AUTO_OFFSET_RESET", "OFFSET_OUT_OF_RANGE"}:
                return told
    return told


def consume(servers: str, topic: str, offset: int, count: int) -> list[str]:
    consumer = Consumer({"bootstrap.servers": servers, **READER, **QUICK})
    try:
        consumer.assign([TopicPartition(topic, 0, offset)])
        return read(consumer, count)
    finally:
        consumer.close()


def produce(servers: str, topic: str) -> list[str]:
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 0, "message.timeout.ms": 20000, **QUICK})
    errors: list[KafkaError | None] = []
    producer.produce(topic, b"v", partition=0, on_delivery=lambda error, _: errors.append(error))
    producer.flush(TIMEOUT)
    return [error.name() for error in errors if error is not None]


def offsets(servers: str, topic: str, what: str) -> list[str]:
    consumer = Consumer({"bootstrap.servers": servers, **READER, **QUICK})
    try:
        if what == "commit":
            consumer.commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False)
        elif what == "end":
            consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=TIMEOUT)
        else:
            (found,) = consumer.committed([TopicPartition(topic, 0)], timeout=TIMEOUT)
            if found.error is not None:
                return [found.error.name()]
    except KafkaException as error:
        return [error.args[0].name()]
    finally:
        consumer.close()
    return []


def listed(servers: str, topic: str) -> list[str]:
    metadata = AdminClient({"bootstrap.servers": servers, **QUICK}).list_topics(topic, timeout=TIMEOUT)
    error = metadata.topics[topic].error
    return ([] if error is None else [error.name()]) + [f"{len(metadata.brokers)} brokers"]


def main() -> None:
    servers = sys.argv[1]
    for line in sys.stdin:
        what, topic, *rest = line.split()
        if what == "consume":
            told = consume(servers, topic, 0, int(rest[0]))
        elif what == "seek":
            told = consume(servers, topic, int(rest[0]), 1)
        elif what == "produce":
            told = produce(servers, topic)
        elif what == "list":
            told = listed(servers, topic)
        else:
            told = offsets(servers, topic, what)
        print(" ".join(told) or "ok", flush=True)


main()
