"""When an automatic commit is due. The commit itself begins inside poll(), so it covers what was processed by then."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafka.coordinator.consumer import ConsumerCoordinator

__all__ = ["AutoCommitTask"]


class AutoCommitTask:
    """The schedule of one consumer's automatic commits. No timer: without poll() there is nothing new to commit."""

    def __init__(self, coordinator: ConsumerCoordinator, interval: float) -> None:
        self._loop = coordinator.loop
        self.interval = interval
        """Seconds between commits."""
        self.due_at = self._loop.time() + interval
        self.under_way = False

    def due(self, now: float) -> bool:
        """Whether the next commit should begin."""
        return now >= self.due_at and not self.under_way

    def reschedule(self, at: float | None = None) -> None:
        """Commit next at a time of the loop's clock, or an interval from now."""
        self.due_at = self._loop.time() + self.interval if at is None else at
