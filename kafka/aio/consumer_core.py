"""The core of an asyncio consumer: several tasks may wait for records, and a task of the client's serves the group.

The synchronous consumer serves its group inside `poll()`. Here that is the work of one task per consumer, `attend`:
it calls rebalance listeners, joins and assigns, whether or not the application takes records, and what fails there
comes out of the next call that takes records. While it serves, no record is handed out. Those calls look for records
and wait; nothing is awaited between taking records and returning them, so a call that is cancelled has taken none.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import math
from collections import deque
from collections.abc import Callable, Iterator
from operator import length_hint
from typing import TYPE_CHECKING, Any, Final, cast

from kafka._runtime.asyncio_driver import call_user
from kafka.aio.structs import ConsumerRecord
from kafka.consumer.core import ConsumerCore, Only
from kafka.consumer.fetch_collector import PIECE_BYTES
from kafka.errors import (
    ConsumerStoppedError,
    InvalidRegularExpressionError,
    InvalidTopicError,
    KafkaError,
    TopicAuthorizationFailedError,
)

if TYPE_CHECKING:
    from kafka._core.client import Client
    from kafka._runtime.asyncio_driver import AsyncioDriver, ThreadedAsyncioDriver
    from kafka.config import Config
    from kafka.consumer.partition_state import Chunk
    from kafka.consumer.subscription_state import SubscriptionState
    from kafka.future import Future
    from kafka.record.consumer_record import ConsumerRecord as PlainRecord
    from kafka.structs import ConsumerGroupMetadata, TopicPartition

__all__ = ["AIOConsumerCore", "ListenerCalls"]

log = logging.getLogger(__name__)

# How many records are decoded between two looks at the clock: so few that taking them does not start the cycle
# collector (0.4 of 1.6 µs per record, November 2026).
_PIECE: Final = 500
# From when on the event loop may have been blocked, in seconds, and how many passes a heartbeat that is due takes.
_BLOCKED: Final = 0.1
_PASSES_TO_SEND: Final = 4
# Errors that say that what was subscribed to cannot be read.
_OF_THE_SUBSCRIPTION: Final = (InvalidRegularExpressionError, InvalidTopicError, TopicAuthorizationFailedError)
# Errors that wait for the next call that takes records, at most.
_MOST_ERRORS: Final = 16


class ListenerCalls:
    """Calls listeners in the context of `subscribe()`, within a time limit."""

    def __init__(self, inside: contextvars.ContextVar[object], owner: object) -> None:
        self._inside = inside
        self._owner = owner
        self.context: contextvars.Context | None = None
        """That of the last `subscribe()` with a listener."""
        self.timeout: float | None = None
        """The seconds that a listener may take."""

    async def call(self, function: Callable[..., object], *args: object) -> Any:
        """Call user code; an awaitable result is awaited, in a task that the first cancellation does not reach."""
        context = contextvars.Context() if self.context is None else self.context.copy()
        context.run(self._inside.set, self._owner)
        return await call_user(function, *args, context=context, timeout=self.timeout)


class AIOConsumerCore(ConsumerCore):
    """See the head of this file."""

    record_type = ConsumerRecord
    face = "AIOKafkaConsumer"
    application: AsyncioDriver | ThreadedAsyncioDriver

    def __init__(
        self,
        config: Config,
        client: Client,
        application: AsyncioDriver | ThreadedAsyncioDriver,
        subscription: SubscriptionState,
    ) -> None:
        super().__init__(config, client, application, subscription)
        self.serving = False
        self.departing = False
        """Whether unsubscribe() was called and `attend` has not left the group yet."""
        self.stopping = False
        self.errors: deque[tuple[Exception, int]] = deque(maxlen=_MOST_ERRORS)
        """With the version of the subscription that was served."""
        self.rows: Iterator[ConsumerRecord] = iter(())
        """The records of the present chunk that were not handed out."""
        self.identity: ConsumerGroupMetadata | None = None
        """That of the member when a call last returned records: it ends with the next rebalance."""
        self.slice_ends = 0.0
        """Until when calls return records without letting the other tasks of the event loop run."""
        self._getters = 0
        self._uncommitted = False
        self._next_commit: float | None = None
        """The time that `attend` waits until."""
        if self.group is not None:
            self.group.membership.is_polling = lambda: self._getters > 0

    # The task that serves the group…

    async def attend(self) -> None:
        """Serve the group until the consumer stops."""
        while not self.stopping or self.departing:
            future = self.waiting.armed()
            if self._is_due():
                await self._attend_once()
                continue
            self._next_commit = self._commit_time()
            await self.application.wait(future, self._next_commit)
            if self._commit_time() is not None and self._commit_is_late():
                self._begin_commit()

    async def _attend_once(self) -> None:
        self.look_at_subscription()
        version = self.subscription.subscription_version
        self.serving = True
        try:
            if self.departing:
                await self._leave_group()
            if not self.stopping:
                await self._serve()
        except Exception as error:
            if not isinstance(error, KafkaError):
                log.exception("A rebalance listener or a callback of group %s failed", self.config["group_id"])
            self._note(error, version)
        finally:
            self.serving = False
            self.waiting.notify()
        self.look_at_subscription()
        if self._is_due():
            await asyncio.sleep(0)

    def depart(self) -> None:
        """Unsubscribe; `attend` commits, calls the listener, and leaves the group."""
        self.subscription.depart()
        self.departing = self.group is not None
        self.topics.look_again()
        self.waiting.notify()

    async def _leave_group(self) -> None:
        assert self.group is not None
        try:
            await self.group.unsubscribed(self.deadline(self.close_timeout))
        finally:
            self.departing = False

    def _is_due(self) -> bool:
        return self.departing or super()._is_due()

    def look_at_subscription(self) -> None:
        """Have the group served if it has not seen the present subscription; a pattern may match others now."""
        if self.group is not None and self.group.has_new_subscription:
            self.group.due = True

    def _note(self, error: Exception, version: int) -> None:
        """Let the next call that takes records raise this."""
        if self.errors:
            last, _ = self.errors[-1]
            if type(last) is type(error) and last.args == error.args:
                self.errors.pop()
        self.errors.append((error, version))

    def raise_error(self) -> None:
        """Raise the first error of the task that serves the group, unless the application has subscribed since."""
        while self.errors:
            error, version = self.errors.popleft()
            if version == self.subscription.subscription_version or not isinstance(error, _OF_THE_SUBSCRIPTION):
                raise error
            log.warning("An error of the subscription before is passed over: %s", error)

    def _commit_time(self) -> float | None:
        """Return when to commit, while a call waits for more records: then those before are processed."""
        task = None if self.group is None else self.group.offsets.auto_commit
        return task.due_at if task is not None and self._uncommitted and self._getters else None

    def _commit_is_late(self) -> bool:
        assert self.group is not None
        return self.group.offsets.is_due

    def _begin_commit(self) -> None:
        assert self.group is not None
        self._uncommitted = False
        self.group.due = True

    # The calls that take records…

    async def shared_chunk(self) -> Chunk:
        """Return the chunk to iterate over: the present one, or the next; `rows` are its records."""
        chunk = await self.poll(self._share_chunk, _PIECE, math.inf, None)
        assert chunk is not None
        return chunk

    def _share_chunk(self, limit: int, only: Only) -> Chunk | None:
        chunk = self.subscription.chunk
        if chunk is not None and not chunk.interrupted and length_hint(self.rows):
            return chunk  # another task has taken it meanwhile
        chunk = self.take_chunk(limit, only)
        if chunk is not None:
            self.rows = iter(cast("list[ConsumerRecord]", chunk.records))  # of `record_type`
        return chunk

    def _is_held(self) -> bool:
        return bool(
            self.stopping
            or self.errors
            or self.serving
            or self._is_due()
            or (self.collector.may_have_data and self.loop.time() >= self.slice_ends)
        )

    async def _serve_first(self) -> bool:
        late = self.loop.time() - self.slice_ends
        if late >= 0:
            if late > _BLOCKED:
                # The application may have blocked the event loop, and may do so again: a heartbeat goes out now.
                for _ in range(_PASSES_TO_SEND):
                    self.application.pass_now()
            await asyncio.sleep(0)
            self.slice_ends = self.loop.slice_end()
        if self.stopping:
            raise ConsumerStoppedError("The consumer was stopped")
        self.raise_error()
        if not self.serving:
            if not self._is_due():
                return True
            self.waiting.notify()  # `attend` serves
        return False

    def _taken(self) -> None:
        self._uncommitted = True
        if self.group is not None:
            self.identity = self.group.metadata()

    async def _wait(self, future: Future[None], deadline: float, only: Only) -> bool:
        self._getters += 1
        if self._commit_time() != self._next_commit and not future.is_done:
            self.waiting.notify()  # `attend` waits until the next commit from now on
            future = self.waiting.armed()
        try:
            return await super()._wait(future, deadline, only)
        finally:
            self.slice_ends = self.loop.slice_end()  # the others had their turn
            self._getters -= 1
            if self.group is not None:
                self.group.membership.heartbeat.poll()

    def take(
        self, limit: int, only: Only, *, room: int = PIECE_BYTES, ends: float = math.inf, defer_errors: bool = False
    ) -> dict[TopicPartition, list[PlainRecord]] | None:
        """Take records by partition until there are enough, or time is up: the event loop has other tasks."""
        ends = min(ends, self.loop.slice_end())
        found = super().take(min(limit, _PIECE), only, room=room, ends=ends, defer_errors=defer_errors)
        if not found:
            return found
        left = limit - sum(map(len, found.values()))
        while left > 0 and self.loop.time() < ends:
            more = super().take(min(left, _PIECE), only, room=room, ends=ends, defer_errors=True)
            if not more:
                break
            for partition, rows in more.items():
                left -= len(rows)
                if partition in found:
                    found[partition] += rows
                else:
                    found[partition] = rows
        return found

    # When it ends…

    def stop_waiting(self) -> None:
        """Let each call that waits for records end with ConsumerStoppedError."""
        self.stopping = True
        self.waiting.notify()
