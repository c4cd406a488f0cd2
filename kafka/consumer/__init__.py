"""Reading records from a cluster."""

from __future__ import annotations

from kafka.consumer.group import KafkaConsumer
from kafka.consumer.listener import ConsumerRebalanceListener

__all__ = ["ConsumerRebalanceListener", "KafkaConsumer"]
