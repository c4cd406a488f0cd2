"""What a consumer asks of its group, whichever protocol that speaks: the seam to `kafka.coordinator`.

A consumer with a group_id has one `Membership`; without one it has none. Coroutines run on the
client's loop; all else is called in the application's thread. In the other direction a membership
works on the `SubscriptionState` that it was made with, in the application's thread only, and calls
the `notify` that it was given, from anywhere, when `due` has become true: that ends the wait in poll.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol

from kafka.future import Future
from kafka.structs import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition

__all__ = ["Membership"]


class Membership(Protocol):
    """A member of a group, or for partitions assigned by hand just its committed offsets."""

    due: bool
    """Whether `serve` has something to do. Read by every poll, so it has to be a plain attribute."""

    def serve(self, deadline: float) -> None:
        """Do what belongs into the application's thread, by the deadline (of the loop's clock).

        Joins when the subscription asks for it, calls listeners, changes the assignment, calls back
        after commits, starts an automatic commit that is due. Raises what the application must know.
        It does not wait for a rebalance to end: poll() waits, and serves when notified.
        """
        ...

    def polled(self, now: float) -> None:
        """Take note that the application called poll() (max_poll_interval_ms)."""
        ...

    async def committed(
        self, partitions: Collection[TopicPartition], deadline: float
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the committed offsets; None where there is none."""
        ...

    async def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], deadline: float) -> None:
        """Commit, and retry what may pass until the deadline."""
        ...

    def commit_async(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], callback: Callable[..., object] | None
    ) -> Future[Any]:
        """Commit without waiting. The callback runs in the application's thread, from `serve`."""
        ...

    def request_rejoin(self, reason: str) -> None:
        """Ask the group for a rebalance."""
        ...

    def metadata(self) -> ConsumerGroupMetadata:
        """Return who this member is."""
        ...

    def health(self) -> dict[str, Any]:
        """Return its state, and what it waits for, as plain values."""
        ...

    def unsubscribed(self, deadline: float) -> None:
        """Leave the group, after the listener was called; called before the subscription is emptied."""
        ...

    def close(self, deadline: float, *, commit: bool, patient: bool) -> None:
        """Commit if that is automatic, call the listener, leave the group; raises nothing that `deadline` causes.

        Only a patient one waits until the deadline also while no broker can be reached.
        """
        ...
