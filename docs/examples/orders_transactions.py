"""An unchanged program that moves an order into another topic, exactly once."""

import os

from kafka import KafkaConsumer, KafkaProducer

SERVERS = os.environ.get("KAFKA_BOOTSTRAP_SERVERS", "localhost:9092")

with KafkaProducer(bootstrap_servers=SERVERS) as producer:
    producer.send("orders", b"tea").get(timeout=30)

consumer = KafkaConsumer(
    "orders", bootstrap_servers=SERVERS, group_id="kitchen", auto_offset_reset="earliest", enable_auto_commit=False
)
with consumer, KafkaProducer(bootstrap_servers=SERVERS, transactional_id="kitchen") as mover:
    mover.init_transactions()
    while not (found := consumer.poll(timeout_ms=1000)):
        pass
    with mover.transaction():
        for partition, records in found.items():
            for record in records:
                mover.send("meals", record.value)
            offsets = {partition: records[-1].offset + 1}
            mover.send_offsets_to_transaction(offsets, consumer.group_metadata())
