"""The asyncio producer and consumer against Apache Kafka: a group with a synchronous member."""

from __future__ import annotations

import asyncio

from kafka import KafkaConsumer
from kafka.aio import AIOKafkaConsumer, AIOKafkaProducer
from kafka.coordinator.assignors.range import RangePartitionAssignor
from test.real.kafka_process import KafkaCluster

PATIENCE = 60.0


def test_a_group_of_an_asyncio_and_a_synchronous_member_reads_each_record_once(kafka: KafkaCluster) -> None:
    topic = kafka.create_topic("aio-group", partitions=4)
    options = {
        "bootstrap_servers": kafka.bootstrap_servers,
        "group_id": topic,
        "auto_offset_reset": "earliest",
        # aiokafka's default is round robin, that of the synchronous consumer range.
        "partition_assignment_strategy": (RangePartitionAssignor,),
    }
    seen: list[bytes] = []

    async def main() -> None:
        async with AIOKafkaConsumer(topic, **options) as reader:
            with KafkaConsumer(topic, **options) as other:  # type: ignore[arg-type]
                while len(reader.assignment()) != 2 or len(other.assignment()) != 2:
                    await asyncio.to_thread(other.poll, 100)
                    await reader.getmany(timeout_ms=100)
                async with AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
                    for number in range(200):
                        await producer.send(topic, b"%d" % number, partition=number % 4)
                while len(seen) < 200:
                    for records in (await asyncio.to_thread(other.poll, 100)).values():
                        seen.extend(record.value for record in records)
                    for found in (await reader.getmany(timeout_ms=100)).values():
                        seen.extend(record.value for record in found)
                await reader.commit()
                for partition in reader.assignment():
                    assert await reader.committed(partition) == 50

    asyncio.run(asyncio.wait_for(main(), PATIENCE))
    assert sorted(seen, key=int) == [b"%d" % number for number in range(200)]
