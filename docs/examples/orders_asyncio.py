"""An unchanged program for asyncio. Sends two orders and reads them."""

import asyncio
import os

from kafka.aio import AIOKafkaConsumer, AIOKafkaProducer

SERVERS = os.environ.get("KAFKA_BOOTSTRAP_SERVERS", "localhost:9092")


async def main():
    async with AIOKafkaProducer(bootstrap_servers=SERVERS) as producer:
        await producer.send_and_wait("orders", b"tea", key=b"ada")
        future = await producer.send("orders", b"coffee")
        await future
    async with AIOKafkaConsumer(
        "orders", bootstrap_servers=SERVERS, group_id="kitchen", auto_offset_reset="earliest", enable_auto_commit=False
    ) as consumer:
        for _ in range(2):
            record = await consumer.getone()
            print("cooking", record.value.decode())
        await consumer.commit()


asyncio.run(main())
