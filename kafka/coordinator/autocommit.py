"""When an automatic commit is due, and of which offsets.

The commit itself begins inside poll(), so it covers what was processed by then. Offsets that the group has stored are
not committed again: an idle consumer commits nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from kafka.structs import OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from kafka.coordinator.consumer import ConsumerCoordinator

__all__ = ["AutoCommitTask"]

# Seconds after which unchanged offsets are committed again where the broker counts their retention from the commit. It
# is at least a day by default (offsets.retention.minutes).
_REFRESH_INTERVAL: Final = 3600.0


class AutoCommitTask:
    """The schedule of one consumer's automatic commits. No timer: without poll() there is nothing new to commit."""

    def __init__(self, coordinator: ConsumerCoordinator, interval: float) -> None:
        self._loop = coordinator.loop
        self.interval = interval
        """Seconds between commits."""
        self.due_at = self._loop.time() + interval
        self.under_way = False
        # Partition -> offset, stay, and when that was seen. Set on the loop, read in the application's thread.
        self._stored: dict[TopicPartition, tuple[int, int, float]] = {}

    def due(self, now: float) -> bool:
        """Whether the next commit should begin."""
        return now >= self.due_at and not self.under_way

    def reschedule(self, at: float | None = None) -> None:
        """Commit next at a time of the loop's clock, or an interval from now."""
        self.due_at = self._loop.time() + self.interval if at is None else at

    def stored(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata | None], stays: Mapping[TopicPartition, int] | None
    ) -> None:
        """Take note of what the group has stored, as seen during these stays."""
        now = self._loop.time()
        for partition, offset in offsets.items():
            if offset is not None:
                self._stored[partition] = (offset.offset, _stay(stays, partition), now)

    def changed(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        stays: Mapping[TopicPartition, int] | None,
        *,
        expiring: bool,
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the offsets that the group has not stored; `expiring` if stored ones expire while a member lives."""
        oldest = self._loop.time() - _REFRESH_INTERVAL if expiring else float("-inf")
        for partition in tuple(self._stored):
            if partition not in offsets:
                self._stored.pop(partition, None)
        found = {}
        for partition, offset in offsets.items():
            number, stay, seen = self._stored.get(partition, (-1, -1, oldest))
            # What was stored in an earlier stay may have been replaced by another member since.
            if number != offset.offset or stay != _stay(stays, partition) or seen <= oldest:
                found[partition] = offset
        return found


def _stay(stays: Mapping[TopicPartition, int] | None, partition: TopicPartition) -> int:
    return 0 if stays is None else stays.get(partition, 0)
