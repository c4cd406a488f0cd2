"""The asyncio clients: the same protocol logic as the synchronous ones, turned by the event loop, without a thread.

::

    async with AIOKafkaProducer(bootstrap_servers="localhost:9092") as producer:
        await producer.send_and_wait("events", b"hello")

Names and modules are the same as in aiokafka: a program moves by changing ``aiokafka`` to ``kafka.aio`` in its imports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka._lazy import lazy_names

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
_MODULES = {
    "abc": "ConsumerRebalanceListener",
    "admin": "AIOKafkaAdminClient",
    "client": "AIOKafkaClient",
    "cluster": "Cluster",
    "consumer": "AIOKafkaConsumer",
    "errors": "ConsumerStoppedError IllegalOperation",
    "producer": "AIOKafkaProducer",
    "share_consumer": "AIOKafkaShareConsumer",
    "structs": "ConsumerRecord OffsetAndMetadata OffsetAndTimestamp TopicPartition",
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

# Names of the synchronous face.
_ELSEWHERE = {name.removeprefix("AIO"): name for name in __all__ if name.startswith("AIO")}

if not TYPE_CHECKING:  # checkers report a name that is not here
    __getattr__, __dir__ = lazy_names(__name__, _MODULES, _ELSEWHERE)
