"""The historic place of the OAuth token provider; see `kafka.sasl.oauth`."""

from __future__ import annotations

from kafka.sasl.oauth import AbstractTokenProvider

__all__ = ["AbstractTokenProvider"]
