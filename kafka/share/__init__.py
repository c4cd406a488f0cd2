"""Share groups (KIP-932): members of a group read the same partitions together, and acknowledge record by record.

`KafkaShareConsumer` is the member of a program with threads, `kafka.aio.AIOKafkaShareConsumer` that of asyncio.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka._lazy import lazy_names

if TYPE_CHECKING:
    from kafka.share.acknowledgements import AcknowledgeType as AcknowledgeType
    from kafka.share.consumer import KafkaShareConsumer as KafkaShareConsumer
    from kafka.share.record import ShareRecord as ShareRecord

__all__ = ["AcknowledgeType", "KafkaShareConsumer", "ShareRecord"]

_MODULES = {"acknowledgements": "AcknowledgeType", "consumer": "KafkaShareConsumer", "record": "ShareRecord"}

if not TYPE_CHECKING:  # checkers report a name that is not here
    __getattr__, __dir__ = lazy_names(__name__, _MODULES)
