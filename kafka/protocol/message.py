"""A historic module path; see `kafka.legacy.message_set`."""

from __future__ import annotations

from kafka.legacy.message_set import Message, MessageSet, PartialMessage

__all__ = ["Message", "MessageSet", "PartialMessage"]
