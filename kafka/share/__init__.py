"""Share groups (KIP-932): members of a group read the same partitions together, and acknowledge record by record.

`KafkaShareConsumer` is the member of a program with threads, `kafka.aio.AIOKafkaShareConsumer` that of asyncio.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafka.share.acknowledgements import AcknowledgeType as AcknowledgeType
    from kafka.share.consumer import KafkaShareConsumer as KafkaShareConsumer
    from kafka.share.record import ShareRecord as ShareRecord

# Where each name lives.
_EXPORTS = {
    "AcknowledgeType": "kafka.share.acknowledgements",
    "KafkaShareConsumer": "kafka.share.consumer",
    "ShareRecord": "kafka.share.record",
}

__all__ = ["AcknowledgeType", "KafkaShareConsumer", "ShareRecord"]


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        from kafka._lazy import module_in

        return module_in(__name__, name)
    value = getattr(import_module(_EXPORTS[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
