"""The asyncio clients: the same protocol logic as the synchronous ones, turned by the event loop, without a thread.

::

    async with AIOKafkaProducer(bootstrap_servers="localhost:9092") as producer:
        await producer.send_and_wait("events", b"hello")

Names and modules are the same as in aiokafka: a program moves by changing ``aiokafka`` to ``kafka.aio`` in its imports.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafka.aio.abc import ConsumerRebalanceListener as ConsumerRebalanceListener
    from kafka.aio.admin import AIOKafkaAdminClient as AIOKafkaAdminClient
    from kafka.aio.client import AIOKafkaClient as AIOKafkaClient
    from kafka.aio.cluster import Cluster as Cluster
    from kafka.aio.consumer import AIOKafkaConsumer as AIOKafkaConsumer
    from kafka.aio.producer import AIOKafkaProducer as AIOKafkaProducer
    from kafka.aio.share_consumer import AIOKafkaShareConsumer as AIOKafkaShareConsumer
    from kafka.aio.structs import ConsumerRecord as ConsumerRecord
    from kafka.errors import ConsumerStoppedError as ConsumerStoppedError
    from kafka.errors import IllegalOperation as IllegalOperation
    from kafka.structs import OffsetAndMetadata as OffsetAndMetadata
    from kafka.structs import OffsetAndTimestamp as OffsetAndTimestamp
    from kafka.structs import TopicPartition as TopicPartition

# Where each name lives.
_EXPORTS = {
    "AIOKafkaAdminClient": "kafka.aio.admin",
    "AIOKafkaClient": "kafka.aio.client",
    "AIOKafkaConsumer": "kafka.aio.consumer",
    "AIOKafkaProducer": "kafka.aio.producer",
    "AIOKafkaShareConsumer": "kafka.aio.share_consumer",
    "Cluster": "kafka.aio.cluster",
    "ConsumerRebalanceListener": "kafka.aio.abc",
    "ConsumerRecord": "kafka.aio.structs",
    "ConsumerStoppedError": "kafka.errors",
    "IllegalOperation": "kafka.errors",
    "OffsetAndMetadata": "kafka.structs",
    "OffsetAndTimestamp": "kafka.structs",
    "TopicPartition": "kafka.structs",
}

__all__ = [
    "AIOKafkaAdminClient",
    "AIOKafkaClient",
    "AIOKafkaConsumer",
    "AIOKafkaProducer",
    "AIOKafkaShareConsumer",
    "Cluster",
    "ConsumerRebalanceListener",
    "ConsumerRecord",
    "ConsumerStoppedError",
    "IllegalOperation",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "TopicPartition",
]


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        from kafka._lazy import module_in

        if f"AIO{name}" in _EXPORTS:
            raise ImportError(f"cannot import name {name!r} from {__name__!r}: use AIO{name}", name=__name__)
        return module_in(__name__, name)
    value = getattr(import_module(_EXPORTS[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
