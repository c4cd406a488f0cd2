"""`copier.py` with the asyncio clients: ``python asyncio_copier.py SERVERS SOURCE TARGET GROUP NAME PROTOCOL``."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from typing import Any

from kafka.aio import AIOKafkaConsumer, AIOKafkaProducer
from kafka.errors import AbortableTransactionError


async def main(servers: str, source: str, target: str, group: str, name: str, protocol: str) -> None:
    logging.basicConfig(level="WARNING", format="%(asctime)s %(name)s %(message)s")
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    options: dict[str, Any] = {"group_protocol": "consumer"} if protocol == "consumer" else {"session_timeout_ms": 6000}
    consumer = AIOKafkaConsumer(
        source,
        bootstrap_servers=servers,
        bootstrap_timeout_ms=60_000,
        group_id=group,
        isolation_level="read_committed",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        request_timeout_ms=10_000,
        **options,
    )
    producer = AIOKafkaProducer(
        bootstrap_servers=servers,
        bootstrap_timeout_ms=60_000,
        transactional_id=f"{group}-{name}",
        transaction_timeout_ms=20_000,
        request_timeout_ms=10_000,
    )
    async with producer, consumer:
        while not stopped.is_set():
            found = await consumer.getmany(timeout_ms=200)
            if found:
                await copied(consumer, producer, target, found)


async def copied(consumer: AIOKafkaConsumer, producer: AIOKafkaProducer, target: str, found: dict[Any, Any]) -> None:
    """Write what was read, and commit it, in one transaction."""
    try:
        async with producer.transaction():
            for where, records in found.items():
                for record in records:
                    await producer.send(target, record.value, partition=where.partition)
            offsets = {where: records[-1].offset + 1 for where, records in found.items()}
            await producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
    except AbortableTransactionError as error:
        print("aborted", error, file=sys.stderr, flush=True)
        await consumer.seek_to_committed()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
