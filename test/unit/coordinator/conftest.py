"""The scripted cluster of the consumer's tests, for members of a group."""

from __future__ import annotations

from test.unit.consumer.conftest import cluster, make

__all__ = ["cluster", "make"]
