"""The seam that the consumer knows, over a coordinator: `kafka.consumer.membership.Membership`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

from kafka.future import Future
from kafka.structs import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from kafka.coordinator.consumer import ConsumerCoordinator

__all__ = ["GroupMembership"]


class GroupMembership:
    """A consumer's membership in its group; for partitions assigned by hand just its committed offsets."""

    def __init__(self, coordinator: ConsumerCoordinator, notify: Callable[[], object]) -> None:
        self.coordinator = coordinator
        self.due = True
        """Whether `serve` has something to do."""
        self._notify = notify
        coordinator.notify = self._notified

    def _notified(self) -> None:
        self.due = True
        self._notify()

    def serve(self, deadline: float) -> None:  # noqa: ARG002 - nothing here waits
        """Do what belongs into the application's thread."""
        self.due = False
        try:
            self.coordinator.serve()
        finally:
            # Never False here: the network thread may set it while one looks.
            if self.coordinator.has_work:
                self.due = True

    def polled(self, now: float) -> None:
        """Take note that the application called poll()."""
        self.coordinator.polled(now)
        if not self.due and self.coordinator.has_work:
            self.due = True

    async def committed(
        self, partitions: Collection[TopicPartition], deadline: float
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the committed offsets; None where there is none."""
        return await self.coordinator.committed(partitions, deadline)

    async def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], deadline: float) -> None:
        """Commit, and retry what may pass until the deadline."""
        await self.coordinator.commit(offsets, deadline)

    def commit_async(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], callback: Callable[..., object] | None
    ) -> Future[Any]:
        """Commit without waiting. The callback runs in the application's thread, from `serve`."""
        return self.coordinator.commit_async(offsets, callback)

    def request_rejoin(self, reason: str) -> None:
        """Ask the group for a rebalance."""
        self.coordinator.request_rejoin(reason)

    def metadata(self) -> ConsumerGroupMetadata:
        """Return who this member is."""
        return self.coordinator.group_metadata()

    def health(self) -> dict[str, Any]:
        """Return its state, and what it waits for, as plain values."""
        return self.coordinator.health()

    def unsubscribed(self, deadline: float) -> None:
        """Leave the group, after the listener was called."""
        try:
            self.coordinator.unsubscribed(deadline)
        finally:
            self.due = True

    def close(self, deadline: float, *, commit: bool, patient: bool) -> None:
        """Commit if that is automatic, call the listener, leave the group."""
        left = max(0.0, deadline - self.coordinator.loop.time())
        self.coordinator.close(autocommit=commit, timeout_ms=left * 1000, patient=patient)
