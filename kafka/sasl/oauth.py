"""The historic place of `kafka.net.sasl.oauth`; the same objects."""

from __future__ import annotations

from kafka.net.sasl.oauth import AbstractTokenProvider, SaslMechanismOAuth

__all__ = ["AbstractTokenProvider", "SaslMechanismOAuth"]
