"""What aiokafka does with a broker; run with its interpreter and the broker's address."""

import asyncio
import sys
import time

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

SERVERS, TOPIC = sys.argv[1:3]


async def administer():
    admin = AIOKafkaAdminClient(bootstrap_servers=SERVERS)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(TOPIC, 3, 1), NewTopic(TOPIC + "-tx", 1, 1)])
        # The others of Kafka's nodes hear of a new topic a moment later.
        while len((await admin.describe_topics([TOPIC]))[0]["partitions"]) != 3:
            await asyncio.sleep(0.05)
        while not {TOPIC, TOPIC + "-tx"} <= set(await admin.list_topics()):
            await asyncio.sleep(0.05)
    finally:
        await admin.close()


async def produce():
    producer = AIOKafkaProducer(bootstrap_servers=SERVERS, enable_idempotence=True, linger_ms=5)
    await producer.start()
    try:
        sent = [await producer.send(TOPIC, b"value %d" % n, key=b"key %d" % (n % 20)) for n in range(1000)]
        places = [await future for future in sent]
        assert len({(one.partition, one.offset) for one in places}) == 1000
    finally:
        await producer.stop()


def consumer(**options):
    return AIOKafkaConsumer(
        TOPIC,
        bootstrap_servers=SERVERS,
        group_id=TOPIC + "-group",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=6000,
        heartbeat_interval_ms=300,
        **options,
    )


async def consume_in_a_group():
    first, second = consumer(), consumer()
    await first.start()
    got = []
    try:
        while len(got) < 1000:
            for records in (await first.getmany(timeout_ms=5000)).values():
                got += [(one.partition, one.offset) for one in records]
        assert len(set(got)) == 1000
        await first.commit()
        await second.start()
        try:
            while not (first.assignment() and second.assignment()) or first.assignment() & second.assignment():
                await first.getmany(timeout_ms=100)
                await second.getmany(timeout_ms=100)
            assert len(first.assignment() | second.assignment()) == 3
        finally:
            await second.stop()
        committed = [await first.committed(TopicPartition(TOPIC, number)) for number in range(3)]
        assert sum(committed) == 1000, committed
    finally:
        await first.stop()


async def transactions():
    topic = TOPIC + "-tx"
    producer = AIOKafkaProducer(bootstrap_servers=SERVERS, transactional_id=TOPIC + "-tid")
    await producer.start()
    try:
        async with producer.transaction():
            await producer.send_and_wait(topic, b"committed")
        try:
            async with producer.transaction():
                await producer.send_and_wait(topic, b"aborted")
                raise ValueError
        except ValueError:
            pass
        async with producer.transaction():
            await producer.send_and_wait(topic, b"committed too")
            await producer.send_offsets_to_transaction({TopicPartition(TOPIC, 0): 3}, TOPIC + "-other")
    finally:
        await producer.stop()
    reader = AIOKafkaConsumer(
        topic, bootstrap_servers=SERVERS, auto_offset_reset="earliest", isolation_level="read_committed"
    )
    await reader.start()
    try:
        got = [(await asyncio.wait_for(reader.getone(), 10)).value for _ in range(2)]
        assert got == [b"committed", b"committed too"], got
    finally:
        await reader.stop()


async def main():
    for step in (administer, produce, consume_in_a_group, transactions):
        begun = time.monotonic()
        await asyncio.wait_for(step(), 30)
        print(f"{step.__name__}: {time.monotonic() - begun:.1f} s", flush=True)


asyncio.run(main())
