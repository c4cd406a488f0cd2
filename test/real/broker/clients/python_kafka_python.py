"""kafka-python: each capability in turn; run with its interpreter."""

import sys

import kafka
from kafka import KafkaConsumer, KafkaProducer

SERVERS, NAME = sys.argv[1].split(","), sys.argv[2]


def read(count, group, *topics, pattern=None):
    consumer = KafkaConsumer(
        *topics,
        bootstrap_servers=SERVERS,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        consumer_timeout_ms=40000,
    )
    if pattern is not None:
        consumer.subscribe(pattern=pattern)
    seen = []
    for record in consumer:
        seen.append(record.topic)
        if len(seen) == count:
            break
    assert len(seen) == count, f"{len(seen)} of {count} records came"
    consumer.commit()
    consumer.close()
    return set(seen)


def list_topics():
    consumer = KafkaConsumer(bootstrap_servers=SERVERS)
    topics = consumer.topics()
    consumer.close()
    assert {NAME + "-a", NAME + "-b"} <= set(topics), topics


def produce():
    producer = KafkaProducer(bootstrap_servers=SERVERS, acks="all")
    sent = [producer.send(NAME + "-a", b"v%d" % n, key=b"k%d" % n) for n in range(100)]
    sent.append(producer.send(NAME + "-b", b"v"))
    for one in sent:
        one.get(20)
    producer.close()


def pattern():
    assert read(101, NAME + "-pattern", pattern=f"^{NAME}-[ab]$") == {NAME + "-a", NAME + "-b"}


def classic():
    read(100, NAME + "-classic", NAME + "-a")


def transaction():
    producer = KafkaProducer(bootstrap_servers=SERVERS, transactional_id=NAME + "-tid")
    producer.init_transactions()
    for value in (b"committed", b"aborted"):
        producer.begin_transaction()
        producer.send(NAME + "-tx", value).get(10)
        (producer.commit_transaction if value == b"committed" else producer.abort_transaction)()
    producer.close()


print("version", kafka.__version__)
for step in (list_topics, produce, pattern, classic, transaction):
    step()
    print("can", step.__name__, flush=True)
