"""Futures of records in asyncio."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from kafka.errors import BufferExhaustedError, IllegalStateError, KafkaTimeoutError, TopicAuthorizationFailedError
from kafka.testing import SILENCE
from test.unit.producer.memory_cluster import Cluster


def test_a_future_can_be_awaited(make_producer):
    producer = make_producer(Cluster({"events": 1}))
    future = producer.send("events", b"x")

    async def wait():
        waiting = asyncio.ensure_future(future)
        await asyncio.sleep(0)
        producer.flush()
        return await asyncio.wait_for(waiting, 10)

    assert asyncio.run(wait()).offset == 0


def test_an_awaited_future_raises_the_error(make_producer):
    cluster = Cluster({"events": 1})
    producer = make_producer(cluster)
    cluster.script.append(29)
    future = producer.send("events", b"x")

    async def wait():
        waiting = asyncio.gather(future)
        await asyncio.sleep(0)
        producer.flush()
        await waiting

    with pytest.raises(TopicAuthorizationFailedError):
        asyncio.run(wait())


def test_records_settled_after_the_event_loop_has_ended_are_not_logged_as_errors(make_producer, caplog):
    producer = make_producer(Cluster({"events": 1}))
    futures = [producer.send("events", b"x") for _ in range(10)]

    async def wait():
        tasks = [asyncio.ensure_future(future) for future in futures]
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()

    asyncio.run(wait())
    producer.flush()
    assert all(future.succeeded() for future in futures)
    assert not caplog.records


def test_a_future_awaited_outside_of_asyncio_says_where_it_can_be(make_producer):
    producer = make_producer(Cluster({"events": 1}))
    future = producer.send("events", b"x")
    with pytest.raises(IllegalStateError, match=r"in a task of asyncio only; call get\(\)"):
        future.__await__().send(None)
    assert future.get(1).offset == 0


def test_asyncio_need_not_have_been_imported():
    program = """if True:
        import sys
        from test.unit.producer.memory_cluster import Cluster, InlineDriver
        import kafka.producer.kafka
        kafka.producer.kafka.ThreadDriver = InlineDriver
        with Cluster({"events": 1}).producer() as producer:
            future = producer.send("events", b"x")
            assert "asyncio" not in sys.modules
            try:
                future.__await__().send(None)
            except Exception as error:
                print(type(error).__name__)
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "IllegalStateError\n"


def test_with_max_block_ms_0_send_never_waits(make_producer):
    cluster = Cluster({"events": 1, "later": 1})
    producer = make_producer(cluster, max_block_ms=0, buffer_memory=20_000, batch_size=10_000)
    assert producer.partitions_for("events", timeout=10) == {0}
    cluster.script.extend([SILENCE] * 100)
    before = cluster.now
    with pytest.raises(KafkaTimeoutError, match="'later' was not found"):
        producer.send("later", b"x")
    with pytest.raises(BufferExhaustedError):
        producer.send_many("events", [b"x" * 1000] * 100)
    assert cluster.now == before


def test_partitions_for_says_its_own_limit(make_producer):
    producer = make_producer(Cluster({"events": 1}), max_block_ms=0)
    with pytest.raises(KafkaTimeoutError, match=r"'nothing' was not found within 2\.5 seconds: UnknownTopic"):
        producer.partitions_for("nothing", timeout=2.5)
