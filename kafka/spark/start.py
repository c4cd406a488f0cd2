"""The start and the end of a read as given in the options, before offsets are requested from the brokers."""

from __future__ import annotations

from dataclasses import dataclass, field

from kafka.spark.offsets import EARLIEST, LATEST, Offsets

__all__ = ["Bound"]


@dataclass(frozen=True)
class Bound:
    """One edge of a read: everywhere the earliest or latest offset, offsets, one timestamp, or timestamps.

    >>> Bound(everywhere=EARLIEST)
    Bound(earliest)
    """

    everywhere: int | None = None
    """EARLIEST or LATEST."""
    offsets: Offsets = field(default_factory=dict)
    """By partition; EARLIEST and LATEST may be among them."""
    timestamp: int | None = None
    """Milliseconds."""
    timestamps: Offsets = field(default_factory=dict)

    @property
    def is_fixed(self) -> bool:
        """Whether asking again later cannot give another place that is further on: nothing between is skipped then."""
        if self.everywhere is not None:
            return self.everywhere == EARLIEST
        return bool(self.offsets) and LATEST not in self.offsets.values()

    def __repr__(self) -> str:
        if self.everywhere is not None:
            return f"Bound({'earliest' if self.everywhere == EARLIEST else 'latest'})"
        if self.timestamp is not None:
            return f"Bound(timestamp {self.timestamp})"
        return f"Bound({self.offsets or self.timestamps})"
