"""Assigning and revoking partitions, in the order that keeps the promises to the application.

Revoking: the application calls poll(), so it has processed all returned records, and no more are returned; then the
consumed offsets are committed if that is automatic, then the listener runs, then the partitions are unassigned; only
then may the group be notified. Assigning: the partitions are assigned, then the listener runs, and no record of them
was returned before. Losing: nothing may be committed any more, and the next poll() first calls the listener.

The loop asks the application for a call (`Rendezvous.ask`) and waits; poll() takes the calls and makes them. The loop
keeps turning meanwhile: heartbeats are sent, and a listener may commit or call any other method. Only the application
changes the subscription, only the loop the ownership.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import suppress
from enum import Enum
from itertools import count
from typing import TYPE_CHECKING

from kafka._runtime.signals import SignalsDeferred
from kafka.errors import KafkaError
from kafka.future import Future
from kafka.structs import OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from kafka._runtime.application import Application
    from kafka._runtime.loop import Loop
    from kafka.consumer.subscription_state import SubscriptionState
    from kafka.coordinator.group_log import GroupLog

log = logging.getLogger(__name__)

OwnershipIds = Mapping[TopicPartition, int]
"""Partition -> the id of its ownership; 0 for one that the member does not own."""
Commit = Callable[[Mapping[TopicPartition, OffsetAndMetadata]], Awaitable[object]]


class CallKind(Enum):
    """The calls that the loop asks the application for."""

    PAUSE = "return no more records of partitions that are being revoked"
    ASSIGNOR = "call the application's assignor"
    WATCH = "request metadata of the group's topics"
    REVOKED = "on_partitions_revoked"
    ASSIGNED = "on_partitions_assigned"
    LOST = "on_partitions_lost"


class RebalanceCall:
    """A call to be made once, in the application's thread or task; the rebalance waits for `done`."""

    __slots__ = ("_action", "_after", "begun", "done", "kind", "partitions")

    def __init__(
        self,
        kind: CallKind,
        partitions: Iterable[TopicPartition],
        action: Callable[[], object],
        after: Callable[[], object] = lambda: None,
    ) -> None:
        self.kind = kind
        self.partitions = frozenset(partitions)
        self.done: Future[None] = Future()
        self.begun = False
        self._action = action
        self._after = after

    async def run(self, application: Application, loop: Loop) -> None:
        """Make the call. Errors of a listener come out; the rebalance continues in any case."""
        try:
            try:
                self.begun = True  # here: from now on it comes to its end, also by Ctrl-C
                await application.call(self._action)
            finally:
                self._finish(loop)
        finally:  # Ctrl-C may have come right before that
            if not self.done.is_done:
                self._finish(loop)

    def leave_out(self) -> None:
        """Let the rebalance continue without the call."""
        self.begun = True
        self.done.try_success(None)

    def _finish(self, loop: Loop) -> None:
        """Do the step after the listener, and let the rebalance continue."""
        with SignalsDeferred(loop):
            try:
                self._after()
            finally:
                self.done.try_success(None)

    def __repr__(self) -> str:
        return f"<RebalanceCall {self.kind.name} {sorted(self.partitions)}>"


class Rendezvous:
    """The calls that wait for the application.

    >>> meeting = Rendezvous()
    >>> meeting.take() is None
    True
    """

    def __init__(self) -> None:
        self.waiting: deque[RebalanceCall] = deque()
        """Calls that have not begun, and some that have."""
        self.on_waiting: Callable[[], object] = lambda: None
        """Called on the loop when a call begins to wait; wakes a poll() that sleeps."""

    def __bool__(self) -> bool:
        return any(not call.begun for call in tuple(self.waiting))

    def take(self) -> RebalanceCall | None:
        """Return the next call, for the caller to make. It waits until it has begun: Ctrl-C may come before that."""
        for call in tuple(self.waiting):
            if not call.begun:
                return call
            with suppress(ValueError):  # the loop may have removed it
                self.waiting.remove(call)
        return None

    def post(self, call: RebalanceCall) -> RebalanceCall:
        """Add a call, without waiting for its end."""
        self.waiting.append(call)
        self.on_waiting()
        return call

    async def ask(self, call: RebalanceCall) -> None:
        """Add a call and wait for its end. If the wait is cancelled before the call began, it is removed."""
        self.post(call)
        try:
            await call.done
        finally:
            if not call.done.is_done and call in self.waiting:
                self.waiting.remove(call)


def tell(listener: object, kind: CallKind, partitions: Iterable[TopicPartition]) -> object:
    """Call a listener's method; without on_partitions_lost it is on_partitions_revoked.

    >>> class Listener:
    ...     def on_partitions_revoked(self, revoked):
    ...         print("revoked", sorted(revoked))
    >>> tell(Listener(), CallKind.LOST, [TopicPartition("events", 0)])
    revoked [TopicPartition(topic='events', partition=0)]
    """
    method = getattr(listener, kind.value, None)
    if method is None and kind is CallKind.LOST:
        method = getattr(listener, CallKind.REVOKED.value, None)
    return None if method is None else method(set(partitions))


class Ownership:
    """The partitions that a member owns; each ownership of a partition has an id.

    >>> ownership = Ownership()
    >>> p = TopicPartition("events", 0)
    >>> ownership.replace([p]); first = ownership.ids([p])
    >>> ownership.replace([]); ownership.replace([p])
    >>> ownership.ended(first)
    [TopicPartition(topic='events', partition=0)]
    """

    def __init__(self) -> None:
        self._numbers = count(1)
        self._ids: dict[TopicPartition, int] = {}
        self._ended_because: dict[TopicPartition, str] = {}

    def replace(self, partitions: Iterable[TopicPartition], why: str = "") -> None:
        """Own these partitions; one that was owned before keeps its id. `why` others are not owned any more."""
        before = self._ids
        self._ids = {partition: before.get(partition) or next(self._numbers) for partition in sorted(partitions)}
        for partition in before.keys() - self._ids.keys():
            self._ended_because[partition] = why

    def held(self) -> set[TopicPartition]:
        """The partitions that the member owns."""
        return set(self._ids)

    def ids(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the id of the present ownership of each; 0 for partitions that the member does not own."""
        return {partition: self._ids.get(partition, 0) for partition in partitions}

    def ended(self, ids: OwnershipIds) -> list[TopicPartition]:
        """Return the partitions whose ownership with this id has ended."""
        return [partition for partition, number in ids.items() if not number or self._ids.get(partition) != number]

    def reasons(self, partitions: Iterable[TopicPartition]) -> list[str]:
        """Return why the last ownerships of these partitions have ended, each reason once."""
        found = dict.fromkeys(self._ended_because.get(partition, "") for partition in partitions)
        return [why for why in found if why]


class Assignments:
    """The assignment of one member, in either protocol."""

    def __init__(self, subscription: SubscriptionState, rendezvous: Rendezvous) -> None:
        self.ownership = Ownership()
        self._subscription = subscription
        self._rendezvous = rendezvous
        self.commit: Commit | None = None
        """Commits the consumed offsets before a revocation; None if that is not automatic."""
        self.settle: Callable[[], Awaitable[object]] | None = None
        """Waits for the commits under way, within limits."""
        self.joined_version = -1
        """The version of the subscription that the group knows."""
        self.rebalance_logged = False
        """Whether the log says that a rebalance is under way."""
        self._lost_call: RebalanceCall | None = None
        self._told: set[TopicPartition] = set()  # partitions that the listener was called for last
        self._round_begun = False
        """Whether the listener knows that an eager rebalance has begun."""

    def held(self) -> set[TopicPartition]:
        """The partitions that this member owns."""
        return self.ownership.held()

    def log_rebalance(self, group_log: GroupLog) -> None:
        """Log once for each rebalance that poll() may return nothing, which looks like an empty topic."""
        if self.rebalance_logged:
            return
        self.rebalance_logged = True
        held = len(self.held())
        returned = f"only records of the {held} partitions that this member keeps" if held else "no records"
        group_log.info("the group rebalances; until that has ended poll() returns %s", returned)

    async def revoke(self, partitions: Collection[TopicPartition]) -> None:
        """Revoke partitions that the member still owns."""
        if not partitions:
            return
        if self.commit is not None:
            consumed: dict[TopicPartition, OffsetAndMetadata] = {}

            def pause() -> None:
                self._subscription.mark_leaving(partitions)
                consumed.update(self._subscription.consumed())

            await self._rendezvous.ask(RebalanceCall(CallKind.PAUSE, partitions, pause))
            await self._commit_before_loss({tp: consumed[tp] for tp in consumed if tp in self.held()})
        if self._lost_call is not None:  # the member was removed meanwhile, and the listener is called for that
            return
        await self._rendezvous.ask(
            RebalanceCall(
                CallKind.REVOKED,
                partitions,
                # The member may be removed while this waits for the application.
                lambda: self._call_listener(CallKind.REVOKED if self._lost_call is None else CallKind.LOST, partitions),
                self._without(partitions),
            )
        )
        if self.settle is not None:
            # Also for commits that the listener began. A join has another connection, where it may overtake them: the
            # coordinator refuses commits of a generation that has ended.
            await self.settle()
        self.ownership.replace(self.held() - set(partitions), "the group rebalanced")

    async def begin_eager_round(self) -> None:
        """Revoke everything before the member joins. The listener is called also if that is nothing.

        So kafka-python and aiokafka do it (Java does not), and applications prepare themselves there. Not again when a
        join is repeated, and not after partitions were lost.
        """
        held = self.held()
        if held:
            await self.revoke(held)
        elif not self._round_begun and self._subscription.listener is not None:
            await self._rendezvous.ask(
                RebalanceCall(CallKind.REVOKED, (), lambda: tell(self._subscription.listener, CallKind.REVOKED, ()))
            )
        self._round_begun = True

    async def assign(self, partitions: Collection[TopicPartition]) -> None:
        """Own exactly these partitions; the listener gets the new ones."""
        self._round_begun = False
        added = set(partitions) - self.held()
        self.ownership.replace(partitions)

        placed = False

        def place() -> None:
            nonlocal placed
            if self._subscription.is_automatic and not placed:  # else the application unsubscribed a moment ago
                self._subscription.assign_from_group(sorted(partitions))
                placed = True

        def call() -> object:
            place()
            return tell(self._subscription.listener, CallKind.ASSIGNED, added) if placed else None

        # Once more after the call: Ctrl-C may have come before it, and the member owns these partitions all the same.
        await self._rendezvous.ask(RebalanceCall(CallKind.ASSIGNED, added, call, place))

    def mark_lost(self, why: str = "") -> None:
        """Own nothing any more, because the coordinator removed this member."""
        if not self.held():
            return
        lost = self.held()
        self._round_begun = True
        self.ownership.replace((), why)
        if self._lost_call is None:
            self._lost_call = self._rendezvous.post(
                RebalanceCall(
                    CallKind.LOST, lost, lambda: self._call_listener(CallKind.LOST, lost), self._without(lost)
                )
            )

    async def wait_lost(self) -> None:
        """Wait until the listener was called for lost partitions."""
        while self._lost_call is not None:
            call = self._lost_call
            await call.done
            if self._lost_call is call:
                self._lost_call = None

    async def revoke_all(self, application: Application) -> None:
        """Revoke everything, in the application's thread or task."""
        subscription = self._subscription
        listener = subscription.departing_listener if subscription.departing else subscription.listener
        partitions = set(subscription.departing)
        if not partitions and subscription.is_automatic:
            partitions = subscription.assigned()
        kind = CallKind.REVOKED if self.held() else CallKind.LOST
        while (call := self._rendezvous.take()) is not None:
            call.leave_out()  # this revocation replaces it
        self._lost_call = None
        try:
            if partitions:
                await application.call(tell, listener, kind, partitions)
        finally:
            self._round_begun = False
            self.ownership.replace((), "this consumer left the group")
            if subscription.departing:
                subscription.departed(partitions)
            elif partitions:
                subscription.assign_from_group(())

    def _call_listener(self, kind: CallKind, partitions: Collection[TopicPartition]) -> object:
        self._told = here = self._subscription.assigned() & set(partitions)
        return tell(self._subscription.listener, kind, here) if here else None

    def _without(self, partitions: Collection[TopicPartition]) -> Callable[[], object]:
        def unassign() -> None:
            if self._subscription.is_automatic:
                self._subscription.assign_from_group(sorted(self._subscription.assigned() - set(partitions)))
            # Where the application has unsubscribed while its listener ran, that is not called for these again.
            told, self._told = self._told, set()
            self._subscription.departed(told)

        return unassign

    async def _commit_before_loss(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        if self.commit is None or not offsets:
            return
        try:
            await self.commit(offsets)
        except KafkaError as error:
            log.warning(
                "Offsets could not be committed before the rebalance; the records since the last commit will be read "
                "again: %s",
                error,
            )
