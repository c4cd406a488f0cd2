"""confluent-kafka as users see it: one command for each line of input, one line for what the application was told.

``consume TOPIC`` reads three records from the start of partition 0, ``produce TOPIC`` writes one record, ``transact
TOPIC ID`` does so in a transaction, ``join TOPIC GROUP`` reads as a member of a group, ``list TOPIC`` asks for
metadata, ``begin TOPIC`` reads from where the partition begins, ``commit TOPIC GROUP`` commits an offset, ``committed
TOPIC GROUP`` reads it. The line is ``ok``, or the name of the first error that the application was told.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

TIMEOUT = 20.0
QUICK = {"retry.backoff.ms": 10, "reconnect.backoff.ms": 10, "fetch.error.backoff.ms": 10, "fetch.wait.max.ms": 50}
QUICK |= {"topic.metadata.refresh.fast.interval.ms": 20, "retry.backoff.max.ms": 50}
READER = {"enable.auto.commit": False, "fetch.queue.backoff.ms": 10, "heartbeat.interval.ms": 100}


def read(consumer: Consumer, seconds: float) -> None:
    """Read three records, and poll for some seconds more, in which a member sends heartbeats."""
    found, deadline, until = 0, time.monotonic() + TIMEOUT, float("inf")
    while found < 3 or time.monotonic() < until:
        if time.monotonic() > deadline:
            raise TimeoutError
        message = consumer.poll(0.1)
        if message is None:
            continue
        if message.error() is not None:
            raise KafkaException(message.error())
        found += 1
        if found == 3:
            until = time.monotonic() + seconds


def produce(servers: str, topic: str, transactional_id: str) -> None:
    options: dict[str, Any] = {"bootstrap.servers": servers, "linger.ms": 0, "message.timeout.ms": 20000, **QUICK}
    options["enable.idempotence"] = True  # the default of the others
    if transactional_id:
        options |= {"transactional.id": transactional_id, "transaction.timeout.ms": 20000}
    errors: list[KafkaError] = []
    producer = Producer({**options, "error_cb": lambda error: errors.append(error) if error.fatal() else None})
    if transactional_id:
        producer.init_transactions(TIMEOUT)
        producer.begin_transaction()
    producer.produce(topic, b"v", partition=0, on_delivery=lambda error, _: errors.append(error) if error else None)
    if transactional_id:
        producer.commit_transaction(TIMEOUT)
    else:
        if producer.flush(TIMEOUT):
            raise TimeoutError
        if errors:
            raise KafkaException(errors[-1])


def consume(servers: str, what: str, topic: str, group: str) -> None:
    begin = "earliest" if what == "join" else "error"
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": group, "auto.offset.reset": begin, **READER, **QUICK}
    )
    partition = TopicPartition(topic, 0)
    try:
        if what == "commit":
            consumer.commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False)
        elif what == "committed":
            (found,) = consumer.committed([partition], timeout=TIMEOUT)
            if found.error is not None:
                raise KafkaException(found.error)
        elif what == "join":
            consumer.subscribe([topic])
            read(consumer, 0.5)
        else:
            consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING if what == "begin" else 0)])
            read(consumer, 0.3)
    finally:
        consumer.close()


def run(servers: str, what: str, topic: str, name: str) -> None:
    if what in {"produce", "transact"}:
        produce(servers, topic, name if what == "transact" else "")
    elif what == "list":
        found = AdminClient({"bootstrap.servers": servers, **QUICK}).list_topics(topic, timeout=TIMEOUT)
        assert found.brokers
        if found.topics[topic].error is not None:
            raise KafkaException(found.topics[topic].error)
    else:
        consume(servers, what, topic, name)


def main() -> None:
    for line in sys.stdin:
        what, topic, name = line.split()
        try:
            run(sys.argv[1], what, topic, name)
            told = "ok"
        except KafkaException as error:
            told = error.args[0].name()
        except TimeoutError:
            told = "TimeoutError"
        print(told, flush=True)


if __name__ == "__main__":
    main()
