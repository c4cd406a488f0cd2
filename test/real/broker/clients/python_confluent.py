"""confluent-kafka (librdkafka): each capability in turn; run with its interpreter."""

import sys
import time

import confluent_kafka
from confluent_kafka import Consumer, Producer

SERVERS, NAME = sys.argv[1:3]
QUICK = {"bootstrap.servers": SERVERS, "socket.timeout.ms": 10000}


def read(count, topics, **options):
    consumer = Consumer({**QUICK, "auto.offset.reset": "earliest", "enable.auto.commit": False, **options})
    consumer.subscribe(topics)
    seen, deadline = [], time.monotonic() + 40
    while len(seen) < count:
        assert time.monotonic() < deadline, f"{len(seen)} of {count} records came"
        message = consumer.poll(0.2)
        if message is not None:
            assert not message.error(), message.error()
            seen.append(message.topic())
    consumer.commit(asynchronous=False)
    consumer.close()
    return set(seen)


def list_topics():
    topics = Producer(QUICK).list_topics(timeout=10).topics
    assert {NAME + "-a", NAME + "-b"} <= set(topics), topics


def produce():
    errors = []
    producer = Producer({**QUICK, "enable.idempotence": True})
    for number in range(100):
        producer.produce(NAME + "-a", b"v%d" % number, b"k%d" % number, on_delivery=lambda e, _: errors.append(e))
    producer.produce(NAME + "-b", b"v")
    assert producer.flush(20) == 0
    assert not any(errors), errors


def pattern():
    assert read(101, [f"^{NAME}-[ab]$"], **{"group.id": NAME + "-pattern"}) == {NAME + "-a", NAME + "-b"}


def pattern_consumer():
    options = {"group.id": NAME + "-pattern-consumer", "group.protocol": "consumer"}
    assert read(101, [f"^{NAME}-[ab]$"], **options) == {NAME + "-a", NAME + "-b"}


def classic():
    read(100, [NAME + "-a"], **{"group.id": NAME + "-classic"})


def consumer():
    read(100, [NAME + "-a"], **{"group.id": NAME + "-consumer", "group.protocol": "consumer"})


def transaction():
    producer = Producer({**QUICK, "transactional.id": NAME + "-tid"})
    producer.init_transactions(20)
    for value in (b"committed", b"aborted"):
        producer.begin_transaction()
        producer.produce(NAME + "-tx", value)
        producer.flush(10)
        (producer.commit_transaction if value == b"committed" else producer.abort_transaction)(20)


print("version", confluent_kafka.__version__)
for step in (list_topics, produce, pattern, pattern_consumer, classic, consumer, transaction):
    step()
    print("can", step.__name__, flush=True)
