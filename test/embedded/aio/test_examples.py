"""Programs written for aiokafka, which run with their imports changed."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from kafka.broker import Broker

ROOT = Path(__file__).parents[3]


def test_a_faststream_application():
    pytest.importorskip("faststream")
    with Broker(topics=["orders", "answers", "many"]) as broker:
        done = subprocess.run(
            [sys.executable, "-m", "test.embedded.aio.faststream_app", broker.bootstrap_servers],
            capture_output=True,
            text=True,
            timeout=100,
            cwd=ROOT,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[-5:] == [
            "('answer', {'total': 6})",
            "('batch', 'a')",
            "('batch', 'b')",
            "('batch', 'c')",
            "('order', {'count': 2}, 'web', 0)",
        ]
        assert broker.committed("shop", "orders") == 1


# As people write it for aiokafka; the imports alone are changed. {0} is the address.

CONSUMER = """
from kafka.aio import AIOKafkaConsumer
import asyncio

async def consume():
    consumer = AIOKafkaConsumer(
        'my_topic', 'my_other_topic',
        bootstrap_servers='{0}',
        group_id="my-group", auto_offset_reset="earliest")
    # Get cluster layout and join group `my-group`
    await consumer.start()
    try:
        # Consume messages
        async for msg in consumer:
            found.append((msg.topic, msg.partition, msg.offset, msg.key, msg.value, msg.timestamp > 0))
            if len(found) == 2:
                break
    finally:
        # Will leave consumer group; perform autocommit if enabled.
        await consumer.stop()

asyncio.run(consume())
"""

PRODUCER = """
from kafka.aio import AIOKafkaProducer
import asyncio

async def send_one():
    producer = AIOKafkaProducer(bootstrap_servers='{0}')
    # Get cluster layout and initial topic/partition leadership information
    await producer.start()
    try:
        # Produce message
        await producer.send_and_wait("my_topic", b"Super message")
        await producer.send_and_wait("my_other_topic", b"Other message", key=b"k")
    finally:
        # Wait for all pending messages to be delivered or expire.
        await producer.stop()

asyncio.run(send_one())
"""

BATCHES = """
import asyncio, random
from kafka.aio.producer import AIOKafkaProducer

async def send_many(num):
    topic = "my_topic"
    producer = AIOKafkaProducer(bootstrap_servers='{0}')
    await producer.start()
    batch = producer.create_batch()
    i = 0
    while i < num:
        msg = ("Test message %d" % i).encode("utf-8")
        metadata = batch.append(key=None, value=msg, timestamp=None)
        if metadata is None:
            partitions = await producer.partitions_for(topic)
            partition = random.choice(tuple(partitions))
            await producer.send_batch(batch, topic, partition=partition)
            batch = producer.create_batch()
            continue
        i += 1
    partitions = await producer.partitions_for(topic)
    partition = random.choice(tuple(partitions))
    await producer.send_batch(batch, topic, partition=partition)
    await producer.stop()
    found.append(i)

asyncio.run(send_many(1000))
"""

MANUAL_COMMIT = """
import asyncio, json
from kafka.aio import AIOKafkaConsumer, TopicPartition
from kafka.aio.errors import KafkaError

async def consume():
    consumer = AIOKafkaConsumer(
        "my_topic", bootstrap_servers='{0}',
        group_id="my_group", enable_auto_commit=False, auto_offset_reset="earliest",
        key_deserializer=lambda key: key and key.decode("utf-8"))
    await consumer.start()
    try:
        while len(found) < 3:
            result = await consumer.getmany(timeout_ms=10 * 1000)
            for tp, messages in result.items():
                if messages:
                    found.extend(message.value for message in messages)
                    # Commit progress only for this partition
                    await consumer.commit({{tp: messages[-1].offset + 1}})
        assert await consumer.committed(TopicPartition("my_topic", 0)) == 3
    except KafkaError as err:
        found.append(err)
    finally:
        await consumer.stop()

asyncio.run(consume())
"""

LOCAL_STATE = """
import asyncio
from collections import Counter, defaultdict
from kafka.aio import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition

class LocalState:
    def __init__(self):
        self.offsets, self.counts = {{}}, defaultdict(Counter)

    def get_last_offset(self, tp):
        return self.offsets.get(tp, -1)

class RebalanceListener(ConsumerRebalanceListener):
    def __init__(self, consumer, local_state):
        self.consumer, self.local_state = consumer, local_state

    async def on_partitions_revoked(self, revoked):
        found.append("revoked")

    async def on_partitions_assigned(self, assigned):
        for tp in assigned:
            last_offset = self.local_state.get_last_offset(tp)
            if last_offset < 0:
                await self.consumer.seek_to_beginning(tp)
            else:
                self.consumer.seek(tp, last_offset + 1)
        found.append("assigned")

async def consume():
    consumer = AIOKafkaConsumer(
        bootstrap_servers='{0}', group_id="my_group", enable_auto_commit=False,
        auto_offset_reset="none", key_deserializer=lambda key: key and key.decode("utf-8"))
    await consumer.start()
    state = LocalState()
    consumer.subscribe(topics=["my_topic"], listener=RebalanceListener(consumer, state))
    try:
        msg_set = {{}}
        while not msg_set:
            msg_set = await consumer.getmany(timeout_ms=1000)
        for tp, msgs in msg_set.items():
            for msg in msgs:
                state.counts[tp][msg.key] += 1
            state.offsets[tp] = msg.offset
        found.append(sum(state.counts[TopicPartition("my_topic", 0)].values()))
    finally:
        await consumer.stop()

asyncio.run(consume())
"""

TRANSACTIONS = """
import asyncio
from collections import defaultdict
from kafka.aio import AIOKafkaConsumer, AIOKafkaProducer

async def transactional_process():
    consumer = AIOKafkaConsumer(
        "my_topic", bootstrap_servers='{0}', enable_auto_commit=False, auto_offset_reset="earliest",
        group_id="process-group", isolation_level="read_committed")
    await consumer.start()
    producer = AIOKafkaProducer(bootstrap_servers='{0}', transactional_id="process-id")
    await producer.start()
    try:
        while len(found) < 3:
            msg_batch = await consumer.getmany(timeout_ms=1000)
            async with producer.transaction():
                commit_offsets = {{}}
                for tp, msgs in msg_batch.items():
                    for msg in msgs:
                        await producer.send("my_other_topic", value=b"Processed: " + msg.value)
                        found.append(msg.value)
                    commit_offsets[tp] = msgs[-1].offset + 1
                if commit_offsets:
                    await producer.send_offsets_to_transaction(commit_offsets, "process-group")
    finally:
        await consumer.stop()
        await producer.stop()

asyncio.run(transactional_process())
"""

SERIALIZING = """
import asyncio, json, zlib
from kafka.aio import AIOKafkaConsumer, AIOKafkaProducer
from kafka.aio.structs import TopicPartition

def serializer(value):
    return zlib.compress(json.dumps(value).encode())

def deserializer(serialized):
    return json.loads(zlib.decompress(serialized))

async def main():
    producer = AIOKafkaProducer(
        bootstrap_servers='{0}', value_serializer=serializer, compression_type="gzip")
    await producer.start()
    await producer.send_and_wait("my_topic", {{"a": 123.4, "b": "some string"}})
    await producer.stop()
    consumer = AIOKafkaConsumer(
        "my_topic", bootstrap_servers='{0}', value_deserializer=deserializer, auto_offset_reset='earliest')
    await consumer.start()
    data = await consumer.getmany(timeout_ms=10000)
    for messages in data.values():
        found.extend(message.value for message in messages)
    tp = TopicPartition("my_topic", 0)
    await consumer.seek_to_end(tp)
    found.append(await consumer.position(tp))
    await consumer.stop()

asyncio.run(main())
"""


def run(broker, program):
    found = []
    exec(
        compile(program.format(broker.bootstrap_servers), "<example>", "exec"), {"found": found, "__name__": "example"}
    )
    asyncio.set_event_loop(None)
    return found


pytestmark = pytest.mark.kafka_broker(topics=["my_topic", "my_other_topic"])


def test_producing_and_consuming(broker):
    assert run(broker, PRODUCER) == []
    found = sorted(run(broker, CONSUMER))
    assert found == [
        ("my_other_topic", 0, 0, b"k", b"Other message", True),
        ("my_topic", 0, 0, None, b"Super message", True),
    ]
    assert broker.committed("my-group", "my_topic") == 1


def test_batches(broker):
    assert run(broker, BATCHES) == [1000]
    assert [record.value for record in broker.records("my_topic")] == [b"Test message %d" % i for i in range(1000)]


def test_manual_commit(broker):
    for value in (b"a", b"b", b"c"):
        broker.append("my_topic", value=value, key=b"k")
    assert run(broker, MANUAL_COMMIT) == [b"a", b"b", b"c"]


def test_local_state_with_a_listener(broker):
    for value in (b"a", b"b", b"c"):
        broker.append("my_topic", value=value, key=b"k")
    assert run(broker, LOCAL_STATE) == ["revoked", "assigned", 3]  # as with aiokafka, at first of nothing


def test_transactional_processing(broker):
    for value in (b"a", b"b", b"c"):
        broker.append("my_topic", value=value)
    assert run(broker, TRANSACTIONS) == [b"a", b"b", b"c"]
    assert [record.value for record in broker.records("my_other_topic", committed=True)] == [
        b"Processed: a",
        b"Processed: b",
        b"Processed: c",
    ]
    assert broker.committed("process-group", "my_topic") == 3


def test_serializers_compression_and_positions(broker):
    assert run(broker, SERIALIZING) == [{"a": 123.4, "b": "some string"}, 1]
