"""Group membership: the assignment of partitions, and committed offsets. See docs/internals/groups.rst for the map."""

from __future__ import annotations

from kafka._lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, {})
