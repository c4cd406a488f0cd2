"""The historic place of `kafka.net.sasl.abc`; the same objects."""

from __future__ import annotations

from kafka.net.sasl.abc import SaslMechanism

__all__ = ["SaslMechanism"]
