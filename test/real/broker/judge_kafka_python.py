"""What kafka-python does with a broker; run with its interpreter and the broker's address."""

import sys
import time

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic

SERVERS, TOPIC = sys.argv[1].split(","), sys.argv[2]


def administer():
    admin = KafkaAdminClient(bootstrap_servers=SERVERS)
    admin.create_topics([NewTopic(TOPIC, 3, 1), NewTopic(TOPIC + "-tx", 1, 1)])
    while not {TOPIC, TOPIC + "-tx"} <= set(admin.list_topics()):  # Kafka's other nodes hear of them a moment later
        time.sleep(0.05)
    admin.close()


def produce():
    producer = KafkaProducer(bootstrap_servers=SERVERS, acks="all", compression_type="gzip")
    futures = [producer.send(TOPIC, b"value %d" % n, key=b"key %d" % (n % 20)) for n in range(500)]
    producer.flush(20)
    places = {(future.get(10).partition, future.get(10).offset) for future in futures}
    assert len(places) == 500
    producer.close()


def consume_in_a_group():
    consumer = KafkaConsumer(
        TOPIC,
        bootstrap_servers=SERVERS,
        group_id=TOPIC + "-group",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        consumer_timeout_ms=20000,
    )
    got = set()
    for record in consumer:
        got.add((record.partition, record.offset, record.value))
        if len(got) == 500:
            break
    assert len(got) == 500
    consumer.commit()
    parts = [TopicPartition(TOPIC, number) for number in range(3)]
    assert sum(consumer.committed(part) for part in parts) == 500
    assert sum(consumer.end_offsets(parts).values()) == 500
    consumer.close()


def transactions():
    topic = TOPIC + "-tx"
    producer = KafkaProducer(bootstrap_servers=SERVERS, transactional_id=TOPIC + "-tid")
    producer.init_transactions()
    for committed in (True, False, True):
        producer.begin_transaction()
        producer.send(topic, b"committed" if committed else b"aborted").get(10)
        (producer.commit_transaction if committed else producer.abort_transaction)()
    producer.close()
    reader = KafkaConsumer(
        topic,
        bootstrap_servers=SERVERS,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    )

    def read():
        return [record.value for records in reader.poll(timeout_ms=500).values() for record in records]

    got = []
    deadline = time.monotonic() + 20
    while len(got) < 2 and time.monotonic() < deadline:
        got += read()
    got += read()  # what should not come
    assert got == [b"committed", b"committed"], got
    reader.close()


for step in (administer, produce, consume_in_a_group, transactions):
    begun = time.monotonic()
    step()
    print(f"{step.__name__}: {time.monotonic() - begun:.1f} s", flush=True)
