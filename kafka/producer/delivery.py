"""The documented path of `DeliveryReport`, which lives in `kafka.producer.future`."""

from kafka.producer.future import DeliveryReport, reporter

__all__ = ["DeliveryReport", "reporter"]
