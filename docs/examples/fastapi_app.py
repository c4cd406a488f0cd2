"""An HTTP service that writes each order to Kafka, and counts the orders of each customer.

KAFKA_BOOTSTRAP_SERVERS=localhost:9092 uvicorn fastapi_app:app
"""

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Response

from kafka import JsonSerializer
from kafka.aio import AIOKafkaConsumer, AIOKafkaProducer

SERVERS = os.environ.get("KAFKA_BOOTSTRAP_SERVERS", "localhost:9092")
# Clients may be made at import: they connect in start(). With this timeout they start without a cluster, and wait.
producer = AIOKafkaProducer(bootstrap_servers=SERVERS, bootstrap_timeout_ms=0, value_serializer=JsonSerializer())
# Without a group: each copy of the service counts all orders, from the first one on.
consumer = AIOKafkaConsumer("orders", bootstrap_servers=SERVERS, bootstrap_timeout_ms=0, auto_offset_reset="earliest")
counts: dict[str, int] = {}
broken: list[str] = []


async def count() -> None:
    try:
        async for record in consumer:
            customer = (record.key or b"").decode()
            counts[customer] = counts.get(customer, 0) + 1
    except Exception as error:  # no task awaits this one before the end, so /health reports that it has ended
        logging.exception("orders are not counted any more")
        broken.append(f"orders are not counted any more: {error!r}")


@asynccontextmanager
async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
    async with producer, consumer:
        counting = asyncio.create_task(count())
        yield
        counting.cancel()
        await asyncio.wait([counting])


app = FastAPI(lifespan=lifespan)


@app.post("/orders/{customer}")
async def order(customer: str, item: dict[str, Any]) -> dict[str, int]:
    metadata = await producer.send_and_wait("orders", item, key=customer.encode())
    return {"partition": metadata.partition, "offset": metadata.offset}


@app.get("/orders/{customer}")
async def orders(customer: str) -> int:
    return counts.get(customer, 0)


@app.get("/health")
async def health(response: Response) -> list[str]:
    problems = [*broken, *producer.health()["problems"], *consumer.health()["problems"]]
    problems = list(dict.fromkeys(problems))  # both clients may have the same cause
    response.status_code = 503 if problems else 200
    return problems
