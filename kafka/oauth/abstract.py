"""The historic place of the OAuth token provider; see `kafka.net.sasl.oauth`."""

from __future__ import annotations

from kafka.net.sasl.oauth import AbstractTokenProvider

__all__ = ["AbstractTokenProvider"]
