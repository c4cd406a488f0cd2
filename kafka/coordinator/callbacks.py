"""What the network loop asks of the application: calls that poll() makes, in the application's thread or task.

The loop asks (`Rendezvous.ask`) and waits; poll() takes the calls and runs them (`take`, `run`). The loop keeps turning
meanwhile: heartbeats are sent, and a listener may commit or call any other method.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from enum import Enum
from typing import TYPE_CHECKING, Any

from kafka.future import Future
from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from kafka._runtime.application import Application

__all__ = ["CallKind", "RebalanceCall", "Rendezvous", "tell"]


class CallKind(Enum):
    """What the application is asked for."""

    PAUSE = "return no more records of partitions that are about to go"
    ASSIGNOR = "ask an assignor of its own"
    WATCH = "know the topics that the group is about"
    REVOKED = "on_partitions_revoked"
    ASSIGNED = "on_partitions_assigned"
    LOST = "on_partitions_lost"


class RebalanceCall:
    """A call to be made once, in the application's thread or task; the rebalance waits for `done`."""

    __slots__ = ("_action", "_after", "done", "kind", "partitions")

    def __init__(
        self,
        kind: CallKind,
        partitions: Iterable[TopicPartition],
        action: Callable[[], Any],
        after: Callable[[], object] = lambda: None,
    ) -> None:
        self.kind = kind
        self.partitions = frozenset(partitions)
        self.done: Future[None] = Future()
        self._action = action
        self._after = after

    async def run(self, application: Application) -> None:
        """Make the call. What a listener raises comes out; the rebalance continues in any case."""
        try:
            await application.call(self._action)
        finally:
            self.finish()

    def finish(self) -> None:
        """Do what follows the listener, and let the rebalance continue."""
        try:
            self._after()
        finally:
            self.done.try_success(None)

    def __repr__(self) -> str:
        return f"<RebalanceCall {self.kind.name} {sorted(self.partitions)}>"


class Rendezvous:
    """What waits for the application.

    >>> meeting = Rendezvous()
    >>> meeting.take() is None
    True
    """

    def __init__(self) -> None:
        self._waiting: deque[RebalanceCall] = deque()
        self.on_waiting: Callable[[], object] = lambda: None
        """Called on the loop when something begins to wait; wakes a poll() that sleeps."""

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def take(self) -> RebalanceCall | None:
        """Return what is to be done next, for the caller to do."""
        try:
            return self._waiting.popleft()
        except IndexError:
            return None

    def post(self, call: RebalanceCall) -> RebalanceCall:
        """Have it done, without waiting for it here."""
        self._waiting.append(call)
        self.on_waiting()
        return call

    async def ask(self, call: RebalanceCall) -> None:
        """Wait until it was done. If the wait is cancelled, what did not begin does not happen."""
        self.post(call)
        try:
            await call.done
        finally:
            if not call.done.is_done and call in self._waiting:
                self._waiting.remove(call)


def tell(listener: Any, kind: CallKind, partitions: Iterable[TopicPartition]) -> Any:
    """Call a listener's method; one without on_partitions_lost is told that they were revoked.

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
