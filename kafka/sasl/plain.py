"""The historic place of `kafka.net.sasl.plain`; the same objects."""

from __future__ import annotations

from kafka.net.sasl.plain import SaslMechanismPlain

__all__ = ["SaslMechanismPlain"]
