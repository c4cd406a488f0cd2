"""The historic place of what the consumers of the Simple* era share, `kafka.legacy.simple_consumer`."""

from __future__ import annotations

from kafka.legacy.simple_consumer import *  # noqa: F403
