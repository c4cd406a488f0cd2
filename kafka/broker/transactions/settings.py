"""The broker's properties that concern transactions, with Kafka's names and defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["PROPERTIES", "TransactionSettings"]

#: Kafka's name -> the attribute here.
PROPERTIES = {
    "transaction.max.timeout.ms": "max_timeout",
    "transactional.id.expiration.ms": "id_expiration",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "expiry_interval",
}


@dataclass(frozen=True)
class TransactionSettings:
    """How the transaction coordinator behaves; times are in seconds.

    >>> TransactionSettings.from_properties({"transaction.max.timeout.ms": "1000"}).max_timeout
    1.0
    """

    max_timeout: float = 900.0
    id_expiration: float = 7 * 24 * 3600.0
    expiry_interval: float = 3600.0
    #: How long to wait before a marker is tried again whose partition has no leader.
    marker_retry: float = 0.1

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> TransactionSettings:
        """Read the properties that are ours."""
        return cls(**{own: float(properties[name]) / 1000 for name, own in PROPERTIES.items() if name in properties})
