"""Each kind of client on each kind of event loop: whichever thread brings an answer, the task that waits is woken."""

from __future__ import annotations

import asyncio

import pytest

from kafka.aio import AIOKafkaAdminClient, AIOKafkaClient, AIOKafkaConsumer, AIOKafkaProducer, Cluster
from kafka.errors import GroupAuthorizationFailedError
from kafka.protocol.metadata import MetadataRequest

# Far more than an answer takes: a task that is not woken fails here.
PATIENCE = 30.0


pytestmark = pytest.mark.kafka_broker(topics={"events": 2})


@pytest.fixture
def broker(kafka_broker):
    for api in ("Metadata", "OffsetCommit", "Produce"):
        kafka_broker.delay(api, 0.02)
    return kafka_broker


def test_a_producer(run, broker):
    async def main():
        async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
            future = await producer.send("events", b"1", partition=0)
            assert (await asyncio.wait_for(future, PATIENCE)).offset == 0
            assert (await asyncio.wait_for(producer.send_and_wait("events", b"2", partition=0), PATIENCE)).offset == 1
            sent = await producer.send_many("events", [(b"k", b"%d" % number) for number in range(10)])
            assert len(await asyncio.wait_for(sent, PATIENCE)) == 10

    run(main())


def test_a_consumer(run, broker):
    broker.append("events", b"1", partition=0)

    async def main():
        options = {"group_id": "g", "auto_offset_reset": "earliest", "enable_auto_commit": False}
        async with AIOKafkaConsumer("events", bootstrap_servers=broker.bootstrap_servers, **options) as consumer:
            assert (await asyncio.wait_for(consumer.getone(), PATIENCE)).value == b"1"
            await asyncio.wait_for(consumer.commit_async(), PATIENCE)
            assert broker.committed("g", "events", 0) == 1
            await asyncio.wait_for(consumer.commit(), PATIENCE)

    run(main())


def test_a_failed_commit_that_no_task_awaits_is_not_an_error_of_the_event_loop(run, broker):
    broker.append("events", b"1", partition=0)

    async def main():
        options = {"group_id": "g", "auto_offset_reset": "earliest", "enable_auto_commit": False}
        async with AIOKafkaConsumer("events", bootstrap_servers=broker.bootstrap_servers, **options) as consumer:
            await consumer.getone()
            with broker.fail("OffsetCommit", "GROUP_AUTHORIZATION_FAILED"):
                with pytest.raises(GroupAuthorizationFailedError):
                    await asyncio.wait_for(consumer.commit_async(), PATIENCE)
                await asyncio.wait([consumer.commit_async()], timeout=PATIENCE)

    run(main())


def test_a_client(run, broker):
    async def main():
        async with AIOKafkaClient(bootstrap_servers=broker.bootstrap_servers) as client:
            node = client.get_random_node()
            assert await asyncio.wait_for(client.ready(node), PATIENCE)
            response = await asyncio.wait_for(client.send(node, MetadataRequest(topics=[])), PATIENCE)
            assert not response.topics
            for update in (client.force_metadata_update, lambda: client.add_topic("events")):
                assert await asyncio.wait_for(update(), PATIENCE)
            assert client.cluster.partitions_for_topic("events") == {0, 1}

    run(main())


def test_an_update_of_metadata_that_fails_is_false(run_once, broker):
    async def main():
        async with AIOKafkaClient(bootstrap_servers=broker.bootstrap_servers, request_timeout_ms=500) as client:
            broker.stop_node(1, crash=True)
            assert await asyncio.wait_for(client.force_metadata_update(), PATIENCE) is False

    run_once(main())


def test_a_cluster(run, broker):
    async def main():
        async with Cluster(broker.bootstrap_servers) as cluster:
            connection = cluster[cluster.get_leader("events", 0)]
            await asyncio.wait_for(connection.connect(), PATIENCE)
            sent = [connection.send(MetadataRequest(topics=[])) for _ in range(5)]
            assert len(await asyncio.wait_for(asyncio.gather(*sent), PATIENCE)) == 5

    run(main())


def test_an_admin_client(run, broker):
    async def main():
        async with AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
            assert "events" in await asyncio.wait_for(admin.list_topics(), PATIENCE)

    run(main())
