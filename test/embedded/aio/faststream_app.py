"""An application of FastStream whose Kafka broker runs on `kafka.aio`: every import of aiokafka leads there.

Run as ``python -m test.embedded.aio.faststream_app ADDRESS``; it prints what its handlers were given.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from kafka.aio import AIOKafkaConsumer, AIOKafkaProducer
from kafka.consumer.subscription_state import SubscriptionState

# Modules in which aiokafka's classes are defined; here they are one level up.
INNER = {"aiokafka.producer.producer", "aiokafka.consumer.consumer", "aiokafka.admin.client"}


class Replacing(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `kafka.aio` where aiokafka is imported."""

    def find_spec(
        self, name: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name.partition(".")[0] != "aiokafka":
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        name = spec.name.rpartition(".")[0] if spec.name in INNER else spec.name
        module = importlib.import_module("kafka.aio" + name.removeprefix("aiokafka"))
        if spec.name == "aiokafka.producer.producer":
            # FastStream's default for acks, a private name of aiokafka: "as the library has it".
            vars(module)["_missing"] = AIOKafkaProducer.DEFAULT_CONFIG["acks"]
        if spec.name == "aiokafka.admin":
            vars(module)["client"] = module  # aiokafka's package has imported it
        return module

    def exec_module(self, module: ModuleType) -> None:
        pass


def add_private_names() -> None:
    """Give the clients the private names of aiokafka's that FastStream reads for its log and its health check."""
    names: dict[str, Any] = {
        "_coordinator": property(lambda consumer: consumer),  # for its member_id
        "_group_id": AIOKafkaConsumer.group_id,
        "_closed": AIOKafkaConsumer.closed,
    }
    for name, value in names.items():
        setattr(AIOKafkaConsumer, name, value)
    SubscriptionState.topics = property(lambda subscription: subscription.wanted_topics)  # type: ignore[attr-defined]
    AIOKafkaProducer._closed = AIOKafkaProducer.closed  # type: ignore[attr-defined]


async def main(address: str) -> None:
    from faststream.kafka import KafkaBroker, KafkaMessage

    broker = KafkaBroker(address)
    answered = asyncio.Event()
    batched = asyncio.Event()
    seen: list[object] = []

    @broker.subscriber("orders", group_id="shop", auto_offset_reset="earliest")
    @broker.publisher("answers")
    async def order(body: dict[str, int], message: KafkaMessage) -> dict[str, int]:
        seen.append(("order", body, message.headers["source"], message.raw_message.offset))
        return {"total": body["count"] * 3}

    @broker.subscriber("answers", auto_offset_reset="earliest")
    async def answer(body: dict[str, int]) -> None:
        seen.append(("answer", body))
        answered.set()

    @broker.subscriber("many", batch=True, max_records=3, group_id="batches", auto_offset_reset="earliest")
    async def many(bodies: list[str]) -> None:
        seen.extend(("batch", body) for body in bodies)
        if len([what for what in seen if what[0] == "batch"]) == 3:  # type: ignore[index]
            batched.set()

    async with broker:
        await broker.start()
        await broker.publish({"count": 2}, "orders", key=b"ada", headers={"source": "web"})
        await broker.publish_batch("a", "b", "c", topic="many")
        await asyncio.wait_for(asyncio.gather(answered.wait(), batched.wait()), 30)
        assert await broker.ping(5)
    for what in sorted(map(repr, seen)):
        print(what)
    assert all(module.__name__.startswith("kafka.") for name, module in sys.modules.items() if name == "aiokafka")


if __name__ == "__main__":
    sys.meta_path.insert(0, Replacing())
    add_private_names()
    version = importlib.metadata.version
    importlib.metadata.version = lambda name: "0.14.0" if name == "aiokafka" else version(name)
    asyncio.run(main(sys.argv[1]))
