"""The historic place of `kafka.legacy.simple_consumer.SimpleConsumer`."""

from __future__ import annotations

from kafka.legacy.simple_consumer import *  # noqa: F403
