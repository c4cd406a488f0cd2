"""Reading records from a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka._lazy import lazy_names

if TYPE_CHECKING:
    from kafka.consumer.group import KafkaConsumer
    from kafka.consumer.multiprocess import MultiProcessConsumer
    from kafka.consumer.simple import SimpleConsumer
    from kafka.consumer.subscription_state import AsyncConsumerRebalanceListener, ConsumerRebalanceListener

__all__ = [
    "AsyncConsumerRebalanceListener",
    "ConsumerRebalanceListener",
    "KafkaConsumer",
    "MultiProcessConsumer",
    "SimpleConsumer",
]

_MODULES = {
    "group": "KafkaConsumer",
    "multiprocess": "MultiProcessConsumer",
    "simple": "SimpleConsumer",
    "subscription_state": "AsyncConsumerRebalanceListener ConsumerRebalanceListener",
}

if not TYPE_CHECKING:  # checkers report a name that is not here
    __getattr__, __dir__ = lazy_names(__name__, _MODULES)
