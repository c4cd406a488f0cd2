"""Reading records from a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka._lazy import lazy_names

if TYPE_CHECKING:
    from kafka.consumer.group import KafkaConsumer
    from kafka.consumer.listener import ConsumerRebalanceListener

__all__ = ["ConsumerRebalanceListener", "KafkaConsumer"]

_HOMES = {
    "ConsumerRebalanceListener": "listener",
    "KafkaConsumer": "group",
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
