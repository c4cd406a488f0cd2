"""The historic place of the OAuth token provider; see `kafka.net.sasl.oauth`."""

from __future__ import annotations

from kafka.oauth.abstract import AbstractTokenProvider

__all__ = ["AbstractTokenProvider"]
