"""Taking partitions and giving them up, in the order that keeps the promises to the application.

Giving up: the application comes by (so all that it was given is processed, and no more is given of what
goes), then what it consumed is committed if that is automatic, then its listener runs, then the
partitions are gone; only then may the group hear of it. Taking: the partitions are there, then the
listener runs, and nothing of them was handed out before. Losing: nothing may be committed any more, and
the next thing that the application does in poll() is to hear of it.

The subscription is changed in the application's thread only, the tenures on the loop only.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

from kafka.coordinator.callbacks import CallKind, RebalanceCall, Rendezvous, tell
from kafka.coordinator.commits import Tenures
from kafka.coordinator.subscription import Subscription
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from kafka._runtime.application import Application

__all__ = ["Assignments"]

log = logging.getLogger(__name__)

Commit = Callable[[Mapping[TopicPartition, OffsetAndMetadata]], Awaitable[Any]]


class Assignments:
    """The assignment of one member, whichever protocol it comes by."""

    def __init__(self, subscription: Subscription, rendezvous: Rendezvous, commit: Commit | None) -> None:
        self.tenures = Tenures()
        self._subscription = subscription
        self._rendezvous = rendezvous
        self._commit = commit
        """Commits what was consumed before it goes; None if that is not automatic."""
        self._losing: RebalanceCall | None = None

    def held(self) -> set[TopicPartition]:
        """The partitions that the group gave to this member."""
        return self.tenures.held()

    async def give_up(self, partitions: Collection[TopicPartition]) -> None:
        """Let go of partitions that the member still holds."""
        if not partitions:
            return
        if self._commit is not None:
            consumed: dict[TopicPartition, OffsetAndMetadata] = {}

            def pause() -> None:
                self._subscription.mark_leaving(partitions)
                consumed.update(self._subscription.consumed())

            await self._rendezvous.ask(RebalanceCall(CallKind.PAUSE, partitions, pause))
            await self._commit_before_loss({tp: consumed[tp] for tp in consumed if tp in self.held()})
        if self._losing is not None:  # it was put out of the group meanwhile, and hears of that instead
            return
        await self._rendezvous.ask(
            RebalanceCall(
                CallKind.REVOKED,
                partitions,
                # It may be put out of the group while this waits for the application.
                lambda: self._told(CallKind.REVOKED if self._losing is None else CallKind.LOST, partitions),
                self._without(partitions),
            )
        )
        self.tenures.replace(self.held() - set(partitions))

    async def take(self, partitions: Collection[TopicPartition]) -> None:
        """Hold exactly these partitions; the listener hears which of them are new."""
        added = set(partitions) - self.held()
        self.tenures.replace(partitions)

        def assign() -> Any:
            if not self._subscription.is_automatic:
                return None  # it unsubscribed a moment ago
            self._subscription.assign_from_group(sorted(partitions))
            return tell(self._subscription.listener, CallKind.ASSIGNED, added)

        await self._rendezvous.ask(RebalanceCall(CallKind.ASSIGNED, added, assign))

    def lose(self) -> None:
        """Hold nothing any more, because the group went on without this member."""
        if not self.held():
            return
        lost = self.held()
        self.tenures.replace(())
        if self._losing is None:
            self._losing = self._rendezvous.post(
                RebalanceCall(CallKind.LOST, lost, lambda: self._told(CallKind.LOST, lost), self._without(lost))
            )

    async def lost(self) -> None:
        """Wait until the application has heard of what it lost."""
        while self._losing is not None:
            call = self._losing
            await call.done
            if self._losing is call:
                self._losing = None

    async def revoke_all(self, application: Application) -> None:
        """Let go of everything, in the application's thread or task, which waits for nothing else."""
        partitions = self._subscription.assigned() if self._subscription.is_automatic else set()
        kind = CallKind.REVOKED if self.held() else CallKind.LOST
        while (call := self._rendezvous.take()) is not None:
            call.done.try_success(None)  # overtaken by what is done now
        self._losing = None
        try:
            if partitions:
                await application.call(tell, self._subscription.listener, kind, partitions)
        finally:
            self.tenures.replace(())
            if partitions:
                self._subscription.assign_from_group(())

    def _told(self, kind: CallKind, partitions: Collection[TopicPartition]) -> Any:
        here = self._subscription.assigned() & set(partitions)
        return tell(self._subscription.listener, kind, here) if here else None

    def _without(self, partitions: Collection[TopicPartition]) -> Callable[[], object]:
        def unassign() -> None:
            if self._subscription.is_automatic:
                self._subscription.assign_from_group(sorted(self._subscription.assigned() - set(partitions)))

        return unassign

    async def _commit_before_loss(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        if self._commit is None or not offsets:
            return
        try:
            await self._commit(offsets)
        except KafkaError as error:
            log.warning(
                "Offsets could not be committed before the rebalance; the records since the last commit will be read "
                "again: %s",
                error,
            )
