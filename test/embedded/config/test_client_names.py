"""Clients without a client_id, and what they measure before there is a value."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.aio import AIOKafkaAdminClient, AIOKafkaConsumer, AIOKafkaProducer
from kafka.broker import Broker


def made(servers: str) -> list[tuple[str, str, Any]]:
    """Return the kind, the name and the metrics of clients of both faces, two of each."""
    found = []
    for kind in (KafkaProducer, KafkaConsumer, KafkaAdminClient) * 2:
        options: dict[str, Any] = {"group_id": "g"} if kind is KafkaConsumer else {}
        with kind(bootstrap_servers=servers, **options) as client:
            found.append((kind.__name__, client.config["client_id"], client.metrics()))

    async def main() -> None:
        for kind in (AIOKafkaProducer, AIOKafkaConsumer, AIOKafkaAdminClient) * 2:
            options: dict[str, Any] = {"group_id": "g"} if kind is AIOKafkaConsumer else {}
            async with kind(bootstrap_servers=servers, **options) as client:
                found.append((kind.__name__, client.config["client_id"], client.metrics()))

    asyncio.run(main())
    return found


def test_clients_without_a_name_have_different_ones_and_metrics_that_are_json() -> None:
    with Broker(topics=["events"]) as broker:
        found = made(broker.bootstrap_servers)
    names = [name for _, name, _ in found]
    assert len(set(names)) == len(names) == 12
    for kind, name, metrics in found:
        part = next(part for part in ("producer", "consumer", "admin") if part in kind.lower())
        assert name.startswith(f"purekafka-{part}-")
        json.dumps(metrics, allow_nan=False)


def test_a_name_that_is_given_or_declared_is_kept() -> None:
    class Mine(KafkaConsumer):
        DEFAULT_CONFIG = {**KafkaConsumer.DEFAULT_CONFIG, "client_id": "declared"}

    with Broker() as broker:
        for kind, options, expected in (
            (KafkaConsumer, {"client_id": "given"}, "given"),
            (Mine, {}, "declared"),
            (Mine, {"client_id": "given"}, "given"),
        ):
            with kind(bootstrap_servers=broker.bootstrap_servers, **options) as client:
                assert client.config["client_id"] == expected
