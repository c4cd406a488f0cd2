"""The errors, at the place where programs for aiokafka import them from: all of `kafka.errors`."""

from __future__ import annotations

from kafka.errors import *  # noqa: F403
