"""The historic place of `kafka.net.sasl.msk`; the same objects."""

from __future__ import annotations

from kafka.net.sasl.msk import SaslMechanismAwsMskIam

__all__ = ["SaslMechanismAwsMskIam"]
