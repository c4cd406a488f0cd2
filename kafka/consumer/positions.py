"""Finding out where partitions start: the committed offset, else what auto_offset_reset says.

Runs on the client's loop. One task at a time, as long as there is a partition without a position.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from kafka.consumer.offsets import OffsetLookup
from kafka.consumer.partition import AssignedPartition, Cursor, Fetched
from kafka.consumer.reset import LATEST, Reset, policy
from kafka.consumer.subscription import SubscriptionState
from kafka.errors import KafkaError, NoOffsetForPartitionError
from kafka.net.backoff import Backoff
from kafka.structs import OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from kafka._client import Client
    from kafka._tasks import Task
    from kafka.consumer.membership import Membership

__all__ = ["Positions"]

log = logging.getLogger(__name__)

Places = dict[TopicPartition, tuple[AssignedPartition, Cursor]]


class Positions:
    """Gives positions to the partitions of one consumer."""

    def __init__(
        self,
        client: Client,
        subscription: SubscriptionState,
        lookup: OffsetLookup,
        reset: str,
        placed: Callable[[], object],
        failed: Callable[[AssignedPartition], object],
    ) -> None:
        self.membership: Membership | None = None
        self._client = client
        self._subscription = subscription
        self._lookup = lookup
        self._reset = reset
        self._placed = placed
        self._failed = failed
        self._task: Task[object] | None = None
        self._failures = 0
        self._backoff = Backoff(
            client.config.seconds("retry_backoff_ms"),
            client.config.seconds("retry_backoff_max_ms"),
            client.loop.rng,
        )

    def policy(self) -> Reset | None:
        """Return where to go without a valid position; None: the application decides."""
        return policy(self._reset, self._client.environment.clock.time())

    def look(self) -> None:
        """Start looking for what has no position, unless that is under way."""
        if self._task is None and self._homeless():
            self._task = self._client.loop.spawn_logged(self._run(), "find positions")

    def stop(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()

    def _homeless(self) -> Places:
        return {
            partition: (state, state.cursor)
            for partition, state in self._subscription.partitions.items()
            if state.cursor.position is None and not state.cursor.fetched and not state.leaving
        }

    async def _run(self) -> None:
        loop = self._client.loop
        try:
            while places := self._homeless():
                deadline = loop.time() + self._client.settings.request_timeout
                try:
                    failed = await self._round(places, deadline)
                except KafkaError as error:
                    failed = dict.fromkeys(places, error)
                if not failed:
                    self._failures = 0
                    continue
                self._report(places, failed)
                self._failures += 1
                if any(error.invalid_metadata for error in failed.values()):
                    self._client.cluster.request_update()
                await loop.sleep(self._backoff.delay(self._failures))
        finally:
            self._task = None

    async def _round(self, places: Places, deadline: float) -> dict[TopicPartition, KafkaError]:
        """Place what can be placed; return what went wrong."""
        undecided = [partition for partition, (_, cursor) in places.items() if cursor.reset is None]
        failed = await self._from_commits(places, undecided, deadline) if undecided else {}
        wanted: dict[TopicPartition, int] = {}
        for partition, (state, cursor) in places.items():
            if cursor.position is None and cursor.reset is not None and state.cursor is cursor:
                wanted[partition] = cursor.reset.timestamp
        if wanted:
            found, errors = await self._lookup.ask(wanted, deadline)
            failed.update(errors)
            for partition, offset in found.items():
                state, cursor = places[partition]
                if offset is None:  # no record is as late as that: the end is next
                    cursor.reset = LATEST
                    failed.setdefault(partition, _AGAIN)
                else:
                    cursor.place(offset.offset)
                    state.problem = None
            self._placed()
        return {partition: error for partition, error in failed.items() if error is not _AGAIN}

    async def _from_commits(
        self, places: Places, undecided: list[TopicPartition], deadline: float
    ) -> dict[TopicPartition, KafkaError]:
        committed: Mapping[TopicPartition, OffsetAndMetadata | None] = {}
        if self.membership is not None:
            committed = await self.membership.committed(undecided, deadline)
        failed: dict[TopicPartition, KafkaError] = {}
        for partition in undecided:
            cursor = places[partition][1]
            found = committed.get(partition)
            if found is not None:
                cursor.place(found.offset, found.leader_epoch)
                continue
            cursor.reset = self.policy()
            if cursor.reset is None:
                failed[partition] = NoOffsetForPartitionError(
                    "there is no committed offset, and auto_offset_reset is 'none': seek first",
                    topic_partition=partition,
                )
        self._placed()
        return failed

    def _report(self, places: Places, failed: Mapping[TopicPartition, KafkaError]) -> None:
        """Say what keeps partitions from starting; what does not pass goes to the application."""
        for partition, error in failed.items():
            state, cursor = places[partition]
            state.problem = str(error)
            if error.retriable or error.invalid_metadata:
                log.debug("The position of %s-%s is not known yet: %s", *partition, error)
            elif state.cursor is cursor:
                cursor.fetched.append(Fetched(None, 0, error))
                self._failed(state)

    def health(self) -> dict[str, Any]:
        """Return which partitions it looks for."""
        return {f"{topic}-{number}": "has no position yet" for topic, number in self._homeless()}


_AGAIN = KafkaError("looked up again")
