"""The historic place of `kafka.legacy.simple_producer.SimpleProducer`."""

from __future__ import annotations

from kafka.legacy.simple_producer import *  # noqa: F403
