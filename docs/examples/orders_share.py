"""An unchanged program with a share group: each order is acknowledged, and one that cannot be done is rejected."""

import os

from kafka import KafkaAdminClient, KafkaProducer, KafkaShareConsumer
from kafka.admin import ConfigResource

SERVERS = os.environ.get("KAFKA_BOOTSTRAP_SERVERS", "localhost:9092")

with KafkaAdminClient(bootstrap_servers=SERVERS) as admin:
    admin.alter_configs([ConfigResource("GROUP", "kitchen", {"share.auto.offset.reset": "earliest"})])
with KafkaProducer(bootstrap_servers=SERVERS) as producer:
    producer.send("orders", b"tea").get(timeout=30)
    producer.send("orders", b"petrol").get(timeout=30)

with KafkaShareConsumer(
    "orders", bootstrap_servers=SERVERS, group_id="kitchen", share_acknowledgement_mode="explicit"
) as consumer:
    for count, record in enumerate(consumer, 1):
        with consumer.processing(record, max_deliveries=1):
            if record.value == b"petrol":
                raise ValueError("it cannot be drunk")
        if count == 2:
            break
    consumer.commit()
