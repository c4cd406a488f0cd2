"""Problems that keep a task from reading: transient errors are retried, lost records are reported.

A leader that moves or a broker that restarts is waited for until a range has not advanced for
kafkaConsumer.pollTimeoutMs; then the error names partition and offset. Turns the client's loop where it has to ask.
"""

from __future__ import annotations

import logging
from typing import Any, Final

from kafka._core.offset_lookup import OffsetLookup
from kafka._runtime.network_thread import run_here
from kafka.client_async import KafkaClient
from kafka.errors import (
    KafkaError,
    KafkaTimeoutError,
    LeaderNotAvailableError,
    OffsetOutOfRangeError,
    UnknownError,
    UnknownTopicOrPartitionError,
    for_code,
)
from kafka.spark.offsets import EARLIEST, LATEST
from kafka.spark.planning import DataLoss
from kafka.spark.range_position import RangePosition
from kafka.structs import TopicPartition

__all__ = ["FetchErrorHandler", "timed_out"]


log = logging.getLogger(__name__)

_BACKOFF: Final = 0.1
# How often a task that waits says so, in seconds.
_TELL_EVERY: Final = 10.0


def timed_out(tp: TopicPartition, offset: int, timeout: float, cause: object) -> KafkaTimeoutError:
    """Return the error of a range that did not advance for that many seconds."""
    return KafkaTimeoutError(
        f"Cannot fetch record for offset {offset} in {timeout * 1000:.0f} milliseconds: {cause}", topic_partition=tp
    )


class FetchErrorHandler:
    """The problems of one task."""

    def __init__(self, client: KafkaClient, poll_timeout: float, loss: DataLoss, *, committed: bool) -> None:
        self._client = client
        self._loop = client.core.loop
        self._poll_timeout = poll_timeout
        self._loss = loss
        self._lookup = OffsetLookup(client.core, committed_only=committed)
        self._told: dict[type | None, float] = {}
        self.leaders_only = False
        """A replica that a leader has named was no good: for the rest of the task no leader is to name one."""

    # What passes…

    def failed(self, each: RangePosition, error: KafkaError | None, began: float) -> None:
        """Try a range again soon, unless it has not advanced for too long."""
        now = self._loop.time()
        if each.failing_since is None:
            each.failing_since = began
        if each.replica is not None:  # it may be behind, or gone
            each.replica, self.leaders_only = None, True
        timeout = self._poll_timeout
        if now - each.failing_since >= timeout:
            raise timed_out(each.tp, each.position, timeout, error or "the broker sends nothing") from error
        each.not_before = now + _BACKOFF
        kind = None if error is None else type(error)
        if now - self._told.get(kind, -_TELL_EVERY) >= _TELL_EVERY:
            self._told[kind] = now
            said = error or "nothing is there"
            log.warning("Reading %s-%d from offset %d waits: %s", *each.tp, each.position, said)

    def check_leaders(self, ranges: list[RangePosition], began: float) -> None:
        """Fresh metadata has come, which need not know a leader: a topic may be gone, or all its replicas."""
        for each in ranges:
            leader = self._client.cluster.leader_for_partition(each.tp)
            if leader is None:
                told = self._client.cluster.topic_error(each.tp.topic)
                if told is not None and issubclass(told, KafkaError) and not told.retriable:
                    raise told(topic_partition=each.tp)
                self.failed(each, UnknownTopicOrPartitionError(topic_partition=each.tp), began)
            elif leader < 0:
                self.failed(each, LeaderNotAvailableError(topic_partition=each.tp), began)

    def refused(self, each: RangePosition, code: int, began: float) -> None:
        """Do what the error code of a partition means."""
        error = for_code(code)(topic_partition=each.tp)
        if isinstance(error, OffsetOutOfRangeError) and each.replica is None:
            self._out_of_range(each, began)
        elif not (error.retriable or isinstance(error, (OffsetOutOfRangeError, UnknownError))):
            raise error  # what a broker has no name for is its affair of the moment
        else:
            if error.invalid_metadata:
                self._client.cluster.request_update()
            self.failed(each, error, began)

    # Lost records…

    def check_start(self, each: RangePosition, part: Any) -> None:
        """Records before the log's start are gone; a reply may say so without an error."""
        if part.log_start_offset > each.position:
            self._lost(each, min(part.log_start_offset, each.end))

    def _out_of_range(self, each: RangePosition, began: float) -> None:
        try:
            work = self._edges(each.tp)
            earliest, latest = run_here(self._loop, self._loop.spawn(work, "look up the edges of a partition"))
        except KafkaError as error:
            if not error.retriable:
                raise
            self.failed(each, error, began)
            return
        if each.position >= latest or earliest >= each.end:
            self._lost(each, each.end)
        elif earliest > each.position:
            self._lost(each, earliest)
        else:  # it is there after all
            self.failed(each, OffsetOutOfRangeError(topic_partition=each.tp), began)

    async def _edges(self, tp: TopicPartition) -> tuple[int, int]:
        deadline = self._loop.time() + self._poll_timeout
        found = []
        for edge in (EARLIEST, LATEST):
            place = (await self._lookup.find({tp: edge}, deadline))[tp]
            found.append(0 if place is None else place.offset)
        return found[0], found[1]

    def _lost(self, each: RangePosition, until: int) -> None:
        """Report that the records from the position up to an offset are gone, and continue there."""
        partition = f"{each.tp.topic}-{each.tp.partition}"
        is_all = until >= each.end
        left = "None of them is left." if is_all else f"Those left begin at {until}."
        skipped = f"skipped {until - each.position:,} offsets of {partition}"
        self._loss.report(
            "COULD_NOT_READ_OFFSET_RANGE",
            f"Could not read records in offset [{each.position}, {each.end}) for topic partition {partition}. {left}",
            f"{skipped}, the rest of this task's range" if is_all else f"{skipped}, continuing at {until}",
        )
        each.position = until
