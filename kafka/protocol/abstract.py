"""The old home of the base of all wire types."""

from __future__ import annotations

from kafka.protocol.types import AbstractType

__all__ = ["AbstractType"]
