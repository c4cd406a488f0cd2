"""The historic place of `kafka.legacy.util`."""

from __future__ import annotations

from kafka.legacy.util import *  # noqa: F403
