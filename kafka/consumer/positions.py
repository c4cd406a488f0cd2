"""Finds the position where a partition starts: the committed offset, else the place that auto_offset_reset names.

Runs on the client's loop. Positions have sources: the group for committed offsets, and each leader for its partitions.
A source has one task at a time, and only while one of its partitions has no position; so a source that hangs, or that
is in backoff after a failure, does not delay the partitions of others.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from kafka._core.offset_lookup import Failed, OffsetLookup, no_leader
from kafka._text import printable
from kafka.consumer.partition_state import LATEST, AssignedPartition, CompletedFetch, Cursor, Reset, policy
from kafka.consumer.subscription_state import SubscriptionState
from kafka.errors import KafkaError, LeaderNotAvailableError, NoOffsetForPartitionError
from kafka.structs import OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from kafka._core.client import Client
    from kafka._runtime.tasks import Task
    from kafka.coordinator.consumer_group import ConsumerGroup

__all__ = ["Positions"]

log = logging.getLogger(__name__)

# A leader's id, or one of the next two.
_Source = int | str
_GROUP: Final = "the group"
_NO_LEADER: Final = "no leader yet"
# How many partitions a line of the log names.
_NAMED: Final = 20

Places = dict[TopicPartition, tuple[AssignedPartition, Cursor]]


class Positions:
    """Finds the positions of one consumer's partitions."""

    def __init__(
        self,
        client: Client,
        subscription: SubscriptionState,
        lookup: OffsetLookup,
        reset: str,
        placed: Callable[[], object],
        failed: Callable[[AssignedPartition], object],
    ) -> None:
        self.group: ConsumerGroup | None = None
        self._client = client
        self._subscription = subscription
        self._lookup = lookup
        self._reset = reset
        self._placed = placed
        self._failed = failed
        self._tasks: dict[_Source, Task[object]] = {}
        self._failures: dict[_Source, int] = {}
        self._stopped = False

    def policy(self) -> Reset | None:
        """Return the place to go to without a valid position; None if the application must seek."""
        return policy(self._reset, self._client.environment.clock.time())

    def look(self) -> None:
        """Look for the positions that are missing, unless that is under way."""
        if self._stopped:
            return
        by_source: dict[_Source, Places] = {}
        for partition, state in self._subscription.partitions.items():
            cursor = state.cursor
            if cursor.position is None and not cursor.fetched and not state.leaving:
                by_source.setdefault(self._source(partition, cursor), {})[partition] = state, cursor
        if self._client.cluster.need_update:
            by_source.pop(_NO_LEADER, None)  # the response leads here again
        for source, places in by_source.items():
            if source not in self._tasks:
                self._tasks[source] = self._client.loop.spawn_logged(self._run(source, places), "find positions")

    def stop(self) -> None:
        """Stop looking."""
        self._stopped = True
        for task in tuple(self._tasks.values()):
            task.cancel()

    def _source(self, partition: TopicPartition, cursor: Cursor) -> _Source:
        """Return the source of a partition's position."""
        if cursor.reset is None:
            return _GROUP
        leader = self._client.cluster.leader_for_partition(partition)
        return _NO_LEADER if leader is None or leader < 0 else leader

    async def _run(self, source: _Source, places: Places) -> None:
        """Ask a source once, and back off after an error."""
        loop = self._client.loop
        deadline = loop.time() + self._client.settings.request_timeout
        try:
            failed = await self._ask(source, places, deadline)
            if failed:
                self._report(places, failed)
                failures = self._failures[source] = self._failures.get(source, 0) + 1
                if any(error.invalid_metadata for error in failed.values()):
                    self._client.cluster.request_update()
                await loop.sleep(self._client.backoff.delay(failures))
            else:
                self._failures.pop(source, None)
        finally:
            del self._tasks[source]
        self.look()

    async def _ask(self, source: _Source, places: Places, deadline: float) -> Failed:
        """Set the positions that the source knows; return the errors."""
        if source == _GROUP:
            return await self._from_commits(places, deadline)
        if source == _NO_LEADER:
            leader_of = self._client.cluster.leader_for_partition
            return {partition: no_leader(partition, leader_of(partition)) for partition in places}
        assert isinstance(source, int)
        return await self._from_leader(source, places, deadline)

    async def _from_leader(self, leader: int, places: Places, deadline: float) -> Failed:
        wanted = {
            partition: cursor.reset.timestamp for partition, (_, cursor) in places.items() if cursor.reset is not None
        }
        found, failed = await self._lookup.ask(leader, wanted, deadline)
        for partition, offset in found.items():
            state, cursor = places[partition]
            if cursor.position is not None:  # its leader changed meanwhile, and the new one answered first
                continue
            if offset is not None:
                cursor.place(offset.offset)
                state.problem = None
            elif cursor.reset != LATEST:
                cursor.reset = LATEST  # all records are earlier: look the end up
            else:
                failed[partition] = LeaderNotAvailableError(
                    "its leader returned no end offset", topic_partition=partition
                )
        if found:
            self._placed()
        return failed

    async def _from_commits(self, places: Places, deadline: float) -> Failed:
        committed: Mapping[TopicPartition, OffsetAndMetadata | None] = {}
        if self.group is not None:
            try:
                committed = await self.group.offsets.committer.fetch(list(places), deadline)
            except KafkaError as error:
                return dict.fromkeys(places, error)
        failed: Failed = {}
        placed: list[str] = []
        unplaced: list[str] = []
        for partition, (_, cursor) in places.items():
            found = committed.get(partition)
            name = f"{partition.topic}-{partition.partition}"
            if found is not None:
                cursor.place(found.offset, found.leader_epoch)
                placed.append(f"{name} at {found.offset}")
                continue
            cursor.reset = self.policy()
            unplaced.append(name)
            if cursor.reset is None:
                failed[partition] = NoOffsetForPartitionError(
                    partition,
                    "there is no committed offset, and auto_offset_reset is 'none': seek first",
                    topic_partition=partition,
                )
        self._log_places(placed, unplaced)
        self._placed()
        return failed

    def _log_places(self, placed: list[str], unplaced: list[str]) -> None:
        """Log where partitions start, and why: a consumer that starts at the end looks like an empty topic."""
        config = self._client.config
        fields = {"kafka_client_id": config["client_id"], "kafka_group": config["group_id"]}
        if placed:
            log.info("Reading starts at committed offsets: %s", _some(placed), extra=fields)
        if unplaced:
            at = {
                "latest": "at the end, with records that are written from now on",
                "earliest": "at the beginning",
                "none": "where the application seeks to",
            }.get(self._reset, "at a point in time")
            lacks = "there is no group_id" if self.group is None else "the group has no committed offsets of them"
            log.info(
                "Reading starts %s, as %s and auto_offset_reset is %r: %s",
                at,
                lacks,
                self._reset,
                _some(unplaced),
                extra=fields,
            )

    def _report(self, places: Places, failed: Mapping[TopicPartition, KafkaError]) -> None:
        """Note why positions are missing; errors that are not retriable go to the application."""
        for partition, error in failed.items():
            state, cursor = places[partition]
            if state.cursor is not cursor or cursor.position is not None:
                continue  # the position was moved, or found elsewhere
            state.problem = str(error)
            if error.retriable or error.invalid_metadata:
                log.debug("The position of %s-%s is not known yet: %s", *partition, error)
            else:
                cursor.fetched.append(CompletedFetch(None, 0, error))
                self._failed(state)


def _some(names: list[str]) -> str:
    """Name the first of many.

    >>> _some(["t-0", "t-1"])
    't-0, t-1'
    """
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return printable(", ".join(names[:_NAMED])) + more
