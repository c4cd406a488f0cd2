"""The record that a share consumer returns to the application."""

from __future__ import annotations

from typing import Any

from kafka.record.consumer_record import ConsumerRecord, K, V


class ShareRecord(ConsumerRecord[K, V]):
    """One record of a share group: a `ConsumerRecord`, and how often the group has delivered it.

    >>> record = ShareRecord("jobs", 0, 17, 1700000000000, 0, None, b"resize")
    >>> record.delivery_count, record.value
    (1, b'resize')
    """

    delivery_count: int = 1
    """How often the record was given to a member, this time included. The group has a limit, by default 5."""

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, delivery_count={self.delivery_count})"

    def _replace(self, **fields: Any) -> ShareRecord[K, V]:
        """Return a copy with other fields; the delivery count stays."""
        copy = super()._replace(**fields)
        copy.delivery_count = self.delivery_count
        return copy
