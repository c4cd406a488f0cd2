"""An unchanged program: it has no line about traces. Sends three orders, reads them, commits."""

import os

from kafka import KafkaConsumer, KafkaProducer

SERVERS = os.environ.get("KAFKA_BOOTSTRAP_SERVERS", "localhost:9092")

with KafkaProducer(bootstrap_servers=SERVERS) as producer:
    producer.send("orders", b"tea", key=b"ada").get(timeout=30)
    producer.send_many("orders", [b"coffee", b"cake"]).get(timeout=30)

with KafkaConsumer(
    "orders", bootstrap_servers=SERVERS, group_id="kitchen", auto_offset_reset="earliest", enable_auto_commit=False
) as consumer:
    for count, record in enumerate(consumer, 1):
        print("cooking", record.value.decode())
        if count == 3:
            break
    consumer.commit()
