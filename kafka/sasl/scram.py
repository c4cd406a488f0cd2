"""The historic place of `kafka.net.sasl.scram`; the same objects."""

from __future__ import annotations

from kafka.net.sasl.scram import SaslMechanismScram

__all__ = ["SaslMechanismScram"]
