"""An HTTP service that writes each order to Kafka, and counts the orders that it reads back.

KAFKA_BOOTSTRAP_SERVERS=localhost:9092 uvicorn fastapi_app:app
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from fastapi import FastAPI

from kafka import JsonSerializer
from kafka.aio import AIOKafkaConsumer, AIOKafkaProducer

SERVERS = os.environ.get("KAFKA_BOOTSTRAP_SERVERS", "localhost:9092")
# Clients may be made at import: they connect in start().
producer = AIOKafkaProducer(bootstrap_servers=SERVERS, value_serializer=JsonSerializer())
consumer = AIOKafkaConsumer(
    "orders", bootstrap_servers=SERVERS, group_id="counter", auto_offset_reset="earliest", session_timeout_ms=6000
)
counts: dict[str, int] = {}


async def count() -> None:
    async for record in consumer:
        customer = (record.key or b"").decode()
        counts[customer] = counts.get(customer, 0) + 1


@asynccontextmanager
async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
    async with producer, consumer:
        counting = asyncio.create_task(count())
        yield
        counting.cancel()
        with suppress(asyncio.CancelledError):
            await counting


app = FastAPI(lifespan=lifespan)


@app.post("/orders/{customer}")
async def order(customer: str, item: dict[str, Any]) -> dict[str, int]:
    metadata = await producer.send_and_wait("orders", item, key=customer.encode())
    return {"partition": metadata.partition, "offset": metadata.offset}


@app.get("/orders/{customer}")
async def orders(customer: str) -> int:
    return counts.get(customer, 0)


@app.get("/health")
async def health() -> dict[str, Any]:
    return {"producer": producer.health(), "consumer": consumer.health()}
