"""The historic place of `kafka.client_async.KafkaClient`; the same class."""

from __future__ import annotations

from kafka.client_async import KafkaClient

__all__ = ["KafkaClient"]
