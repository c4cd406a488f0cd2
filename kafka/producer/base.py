"""The historic place of what the producers of the Simple* era share, `kafka.legacy.simple_producer`."""

from __future__ import annotations

from kafka.legacy.simple_producer import *  # noqa: F403
