"""A range that a task is reading: how far it has come, how much to ask for, and what keeps it from advancing.

Transient errors are retried, lost records are reported. A leader that moves or a broker that restarts is waited for
until a range has not advanced for kafkaConsumer.pollTimeoutMs; then the error names partition and offset.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kafka import KafkaClient
from kafka.errors import (
    CorruptRecordError,
    KafkaError,
    KafkaTimeoutError,
    LeaderNotAvailableError,
    OffsetOutOfRangeError,
    UnknownError,
    UnknownTopicOrPartitionError,
    for_code,
)
from kafka.record import scan
from kafka.spark.offset_ranges import OffsetRange
from kafka.spark.offsets import EARLIEST, LATEST
from kafka.spark.planning import DataLoss
from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from kafka.protocol.fetch import FetchResponse

__all__ = ["FetchErrorHandler", "RangePosition", "timed_out"]


log = logging.getLogger(__name__)

# The size of a record, as long as none of its range is known. A short range in front of a long backlog shall not bring
# megabytes of it along; where the guess is too low, the rest takes another request.
_GUESS: Final = 4 << 10
# The bytes of offset and size, which stand before each batch and are not counted in the size.
_OVERHEAD: Final = 12
# How many bytes to fetch beyond the estimated rest of a range.
_SPARE: Final = 64 << 10
_BACKOFF: Final = 0.1
# How often a task that waits says so, in seconds.
_TELL_EVERY: Final = 10.0


class RangePosition:
    """A range, and the offset that a task reads next.

    >>> each = RangePosition(OffsetRange("events", 0, 5, 9))
    >>> each.position, each.is_done
    (5, False)
    """

    __slots__ = ("_bytes_each", "_bytes_least", "end", "failing_since", "not_before", "position", "replica", "tp")

    def __init__(self, whole: OffsetRange) -> None:
        self.tp = whole.tp
        self.position = whole.start
        self.end = whole.end
        self.failing_since: float | None = None
        """When the first of the attempts was made that failed since it last advanced."""
        self.not_before = 0.0
        """When it may be asked for again."""
        self.replica: int | None = None
        """The nearer replica that the leader has named, to fetch from instead of the leader (KIP-392)."""
        self._bytes_each = 0.0
        self._bytes_least = 0

    @property
    def is_done(self) -> bool:
        """Whether nothing is left of it."""
        return self.position >= self.end

    def wanted_bytes(self, most: int) -> int:
        """Return how much to ask for: no more than is left of the range, as far as one can tell."""
        bytes_each = self._bytes_each or _GUESS
        wanted = min(most, int((self.end - self.position) * bytes_each * 1.1) + _SPARE)
        return max(wanted, self._bytes_least)

    def advance(self, buffer: bytes) -> int:
        """Move on to behind the batches of a reply; return where those end that are of the range."""
        start = self.position
        end = self._scan(buffer)
        if self.position > start:
            self._bytes_each = len(buffer) / (self.position - start)
            self.failing_since = None
        return end

    def needs_more(self, buffer: bytes, most: int) -> bool:
        """Whether a reply has only a part of its first batch, all of which is asked for from now on."""
        size = _size_of_first(buffer)
        if size <= self.wanted_bytes(most):
            return False
        self._bytes_least = size
        return True

    def _scan(self, buffer: bytes) -> int:
        try:
            for header in scan(buffer):
                if header.magic > 1 and header.base_offset >= self.end:
                    # The rest of the range was compacted away.
                    self.position = self.end
                    return header.position
                self.position = max(self.position, header.last_offset + 1)
        except CorruptRecordError as error:
            error.topic_partition = self.tp
            raise
        return len(buffer)


def _size_of_first(buffer: bytes) -> int:
    """Return the size of the batch that a buffer begins with, which brokers before 0.10.1 cut to what was asked for."""
    if len(buffer) < _OVERHEAD:
        return 0
    return int.from_bytes(buffer[_OVERHEAD - 4 : _OVERHEAD], "big", signed=True) + _OVERHEAD


# Errors.


def timed_out(tp: TopicPartition, offset: int, timeout: float, cause: object) -> KafkaTimeoutError:
    """Return the error of a range that did not advance for that many seconds."""
    return KafkaTimeoutError(
        f"Cannot fetch record for offset {offset} in {timeout * 1000:.0f} milliseconds: {cause}", topic_partition=tp
    )


class FetchErrorHandler:
    """The problems of one task."""

    def __init__(
        self,
        client: KafkaClient,
        poll_timeout: float,
        loss: DataLoss,
        *,
        committed_only: bool,
        now: Callable[[], float],
    ) -> None:
        self._client = client
        self._poll_timeout = poll_timeout
        self._loss = loss
        self._committed_only = committed_only
        self._now = now
        self._told: dict[type | None, float] = {}
        self.leaders_only = False
        """A replica that a leader has named was no good: for the rest of the task no leader is to name one."""

    # What passes…

    def failed(self, each: RangePosition, error: KafkaError | None, began: float) -> None:
        """Try a range again soon, unless it has not advanced for too long."""
        now = self._now()
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
            raise error  # UnknownError is a broker's passing trouble without a name
        else:
            if error.invalid_metadata:
                self._client.cluster.request_update()
            self.failed(each, error, began)

    # Lost records…

    def check_start(self, each: RangePosition, part: FetchResponse.PartitionData) -> None:
        """Records before the log's start are gone; a reply may say so without an error."""
        if part.log_start_offset > each.position:
            self._lost(each, min(part.log_start_offset, each.end))

    def _out_of_range(self, each: RangePosition, began: float) -> None:
        try:
            earliest, latest = self._edge(each.tp, EARLIEST), self._edge(each.tp, LATEST)
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

    def _edge(self, tp: TopicPartition, edge: int) -> int:
        timeout_ms = self._poll_timeout * 1000
        place = self._client.list_offsets({tp: edge}, committed_only=self._committed_only, timeout_ms=timeout_ms)[tp]
        return 0 if place is None else place.offset

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
