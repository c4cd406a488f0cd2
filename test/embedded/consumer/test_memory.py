"""Memory of a consumer whose records are large and compress well: what is decoded ahead is bounded by bytes."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from kafka import KafkaConsumer
from kafka.aio import AIOKafkaConsumer
from kafka.broker import Broker
from kafka.record.batch_builder import BatchBuilder

from .reading import TIMEOUT, tp

COUNT, SIZE = 40, 5_000_000
TIMEOUT_MS = TIMEOUT * 1000


@pytest.fixture(scope="module", params=[1, 4])
def batch(request: pytest.FixtureRequest) -> int:
    """The records of a batch."""
    count: int = request.param
    return count


@pytest.fixture(scope="module")
def broker(batch: int) -> Iterator[Broker]:
    builder = BatchBuilder(1 << 30, "gzip")
    for number in range(batch):
        builder.append(1_700_000_000_000, None, b"%09d " % number * (SIZE // 10))
    data = builder.seal().data
    with Broker(topics={"events": 1}) as running:
        for _ in range(COUNT // batch):
            running.run(lambda cluster: cluster.append(cluster.partition(*tp()), data))
        yield running


def poll(consumer: KafkaConsumer[Any, bytes]) -> Iterator[bytes]:
    for records in consumer.poll(TIMEOUT_MS).values():
        for record in records:
            yield record.value


def iterate(consumer: KafkaConsumer[Any, bytes]) -> Iterator[bytes]:
    yield next(consumer).value


def columns(consumer: KafkaConsumer[Any, bytes]) -> Iterator[bytes]:
    for found in consumer.poll_batches(TIMEOUT_MS).values():
        yield from found.values


async def getmany(consumer: AIOKafkaConsumer[Any, bytes]) -> AsyncIterator[bytes]:
    for records in (await consumer.getmany(timeout_ms=TIMEOUT_MS)).values():
        for record in records:
            yield record.value


async def getone(consumer: AIOKafkaConsumer[Any, bytes]) -> AsyncIterator[bytes]:
    yield (await consumer.getone()).value


def peak_memory(read: Callable[[], int]) -> int:
    """Return how much more memory there was while all records were read, at most."""
    gc.collect()
    tracemalloc.start()
    try:
        assert read() == COUNT
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def most(batch: int) -> int:
    """Return the bytes of a batch and its parts while it is unpacked, of the records taken, and of those before.

    A getmany() takes for a millisecond, which may be three of these records.
    """
    return (2 * batch + 8) * SIZE


@pytest.mark.slow
@pytest.mark.parametrize("take", [poll, iterate, columns])
def test_large_records_are_decoded_as_they_are_returned(broker: Broker, batch: int, take: Any) -> None:
    with KafkaConsumer(
        "events",
        bootstrap_servers=broker.bootstrap_servers,
        auto_offset_reset="earliest",
        consumer_timeout_ms=TIMEOUT_MS,
    ) as consumer:

        def read() -> int:
            count = 0
            while count < COUNT:
                for value in take(consumer):
                    assert len(value) == SIZE
                    count += 1
            return count

        assert peak_memory(read) < most(batch)


@pytest.mark.slow
@pytest.mark.parametrize("take", [getmany, getone])
def test_large_records_are_decoded_as_they_are_returned_in_asyncio(broker: Broker, batch: int, take: Any) -> None:
    async def main() -> int:
        count = 0
        async with AIOKafkaConsumer(
            "events", bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest"
        ) as consumer:
            while count < COUNT:
                async for value in take(consumer):
                    assert len(value) == SIZE
                    count += 1
        return count

    assert peak_memory(lambda: asyncio.run(main())) < most(batch)
