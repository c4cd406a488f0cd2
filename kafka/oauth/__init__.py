"""The historic place of the OAuth token provider; see `kafka.sasl.oauth`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka._lazy import lazy_names

if TYPE_CHECKING:
    from kafka.oauth.abstract import AbstractTokenProvider as AbstractTokenProvider

__all__ = ["AbstractTokenProvider"]

if not TYPE_CHECKING:  # checkers report a name that is not here
    __getattr__, __dir__ = lazy_names(__name__, {"abstract": "AbstractTokenProvider"})
