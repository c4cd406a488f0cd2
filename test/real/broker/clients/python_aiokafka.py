"""aiokafka: each capability in turn; run with its interpreter."""

import asyncio
import sys

import aiokafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

SERVERS, NAME = sys.argv[1:3]


async def read(count, group, topics=(), pattern=None):
    consumer = AIOKafkaConsumer(
        *topics, bootstrap_servers=SERVERS, group_id=group, auto_offset_reset="earliest", enable_auto_commit=False
    )
    if pattern is not None:
        consumer.subscribe(pattern=pattern)
    await consumer.start()
    try:
        seen = [await asyncio.wait_for(consumer.getone(), 40) for _ in range(count)]
        await consumer.commit()
    finally:
        await consumer.stop()
    return {record.topic for record in seen}


async def list_topics():
    consumer = AIOKafkaConsumer(bootstrap_servers=SERVERS)
    await consumer.start()
    topics = await consumer.topics()
    await consumer.stop()
    assert {NAME + "-a", NAME + "-b"} <= topics, topics


async def produce():
    async with AIOKafkaProducer(bootstrap_servers=SERVERS, enable_idempotence=True) as producer:
        for number in range(100):
            await producer.send(NAME + "-a", b"v%d" % number, b"k%d" % number)
        await producer.send_and_wait(NAME + "-b", b"v")
        await producer.flush()


async def pattern():
    found = await read(101, NAME + "-pattern", pattern=f"^{NAME}-[ab]$")
    assert found == {NAME + "-a", NAME + "-b"}


async def classic():
    await read(100, NAME + "-classic", [NAME + "-a"])


async def transaction():
    async with AIOKafkaProducer(bootstrap_servers=SERVERS, transactional_id=NAME + "-tid") as producer:
        for value in (b"committed", b"aborted"):
            await producer.begin_transaction()
            await producer.send_and_wait(NAME + "-tx", value)
            await (producer.commit_transaction if value == b"committed" else producer.abort_transaction)()


async def main():
    print("version", aiokafka.__version__)
    for step in (list_topics, produce, pattern, classic, transaction):
        await step()
        print("can", step.__name__, flush=True)


asyncio.run(main())
