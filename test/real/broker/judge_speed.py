"""How fast confluent-kafka gets records through a broker; prints records per second, written and read, as JSON."""

import json
import sys
import time

from confluent_kafka import Consumer, Producer, TopicPartition

SERVERS, COUNT = sys.argv[1], int(sys.argv[2])
PARTITIONS = 3

producer = Producer({"bootstrap.servers": SERVERS, "linger.ms": 5, "queue.buffering.max.messages": 2 * COUNT})
producer.list_topics("events", timeout=10)
value = b"x" * 100
begun = time.perf_counter()
for _ in range(COUNT):
    producer.produce("events", value)
assert producer.flush(60) == 0
written = COUNT / (time.perf_counter() - begun)

consumer = Consumer({"bootstrap.servers": SERVERS, "group.id": "speed", "enable.auto.commit": False})
consumer.assign([TopicPartition("events", number, 0) for number in range(PARTITIONS)])
got = 0
begun = time.perf_counter()
while got < COUNT:
    messages = consumer.consume(10_000, 10)
    assert messages, f"{got} of {COUNT} came"
    got += len(messages)
read = COUNT / (time.perf_counter() - begun)
consumer.close()
print(json.dumps({"written": written, "read": read}))
