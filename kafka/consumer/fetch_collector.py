"""Takes fetched records out of the buffers and returns them, a bounded number at a time.

Runs in the application's thread or task. Partitions with data wait in a queue; one that was served goes to its end, so
that none starves. Only the first partitions of the queue are looked at, and only records that are returned are decoded.

Records that were taken have left the buffers, and do not belong to the application before poll() returns. If an
exception comes in between (Ctrl-C in a deserializer, mostly), `take_back` restores the positions; otherwise the next
commit would cover records that were never returned. This is the one place that handles such exceptions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Final

from kafka.consumer.partition_state import AssignedPartition, Chunk, CompletedFetch, Cursor
from kafka.errors import KafkaError, LogTruncationError, OffsetOutOfRangeError
from kafka.record.batch_reader import TAKEN_BYTES
from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from kafka.consumer.fetcher import Fetcher
    from kafka.consumer.positions import Positions
    from kafka.consumer.subscription_state import SubscriptionState
    from kafka.record.columns import Columns
    from kafka.record.consumer_record import ConsumerRecord

__all__ = ["PIECE_BYTES", "FetchCollector"]

#: The bytes of records that are decoded ahead where the application takes them one by one: 500 of 2 KB.
PIECE_BYTES: Final = 1 << 20


class FetchCollector:
    """Takes records out of the buffers of one consumer."""

    def __init__(
        self,
        subscription: SubscriptionState,
        fetcher: Fetcher,
        positions: Positions,
        time: Callable[[], float] = monotonic,
    ) -> None:
        self._time = time
        self._subscription = subscription
        self._fetcher = fetcher
        self._positions = positions
        self._queue: deque[AssignedPartition] = deque()
        self.begun: list[tuple[AssignedPartition, Cursor, int | None, int]] = []
        """The partitions that the last call took records of, with the position and its epoch before.

        To be cleared before the next taking where an exception does not lead to `take_back`: it would repeat what the
        last call returned.
        """
        self.given_back: set[TopicPartition] = set()
        """The partitions whose records, of those taken last, an iteration had given back."""

    def last_count(self) -> int:
        """Return how many offsets the last call that returned records has moved over. From any thread."""
        return sum(
            (cursor.position or 0) - position for _, cursor, position, _ in tuple(self.begun) if position is not None
        )

    def take_back(self) -> None:
        """Restore the positions in `begun`: the records have not reached the application."""
        for state, cursor, position, epoch in self.begun:
            if state.cursor is cursor and position is not None:
                self._subscription.move(state, Cursor(position, epoch))
        self.begun.clear()
        # A partition that was taken from the queue may have been lost too.
        self._queue.clear()
        for state in self._subscription.partitions.values():
            state.in_rotation = False
            self.enter(state)
        self._fetcher.kick()

    @property
    def may_have_data(self) -> bool:
        """Whether `take` may return something."""
        return bool(self._queue or self._fetcher.arrivals or self._subscription.chunk)

    def enter(self, state: AssignedPartition) -> None:
        """Put a partition with data back into the queue, unless it is there."""
        cursor = state.cursor
        if not state.in_rotation and (cursor.current is not None or cursor.fetched or cursor.given_back):
            state.in_rotation = True
            self._queue.append(state)

    def take(
        self,
        limit: int,
        only: Collection[TopicPartition] | None = None,
        *,
        room: int = TAKEN_BYTES,
        ends: float = inf,
        defer_errors: bool = False,
    ) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Return up to `limit` records, partition after partition in the order of the queue, or of those in `only`.

        Fewer come if their bytes amount to about `room`, or at a time: the rest stays as it was fetched, compressed.

        An error comes after the records before it, in the next call; with `defer_errors`, if the caller has taken
        records already, it comes in the next call in any case.
        """
        taken: dict[TopicPartition, list[ConsumerRecord]] = {}
        self.given_back.clear()
        for state in self._served(only):
            rows: list[ConsumerRecord] = []
            try:
                room = self._take_rows(state, rows, limit, room)
            except KafkaError as error:
                # Records before the error are returned first; the next call meets the error again.
                if rows or taken or defer_errors:
                    if rows:
                        taken[state.topic_partition] = rows
                    self._queue.appendleft(state)
                    state.in_rotation = True
                    break
                self.enter(state)
                self._handle_error(state, error)
                continue
            self.enter(state)
            if rows:
                taken[state.topic_partition] = rows
                limit -= len(rows)
                if limit <= 0 or room <= 0 or self._time() >= ends:
                    break
        return taken

    def take_chunk(self, limit: int) -> Chunk | None:
        """Return records of one partition for an iteration, which moves the position over them one by one."""
        for rows in self.take(limit, room=PIECE_BYTES, ends=-inf).values():
            state, _, start, epoch = self.begun[-1]
            return Chunk(state, rows, start, epoch)
        return None

    def take_columns(self, at_least: int) -> dict[TopicPartition, Columns]:
        """Return columns of whole batches, about `at_least` records in all."""
        taken: dict[TopicPartition, Columns] = {}
        room = TAKEN_BYTES
        for state in self._served():
            try:
                columns, room = self._take_columns(state, at_least, room)
            except KafkaError as error:
                self.enter(state)
                if taken:
                    break
                self._handle_error(state, error)
                continue
            self.enter(state)
            if columns is not None:
                taken[state.topic_partition] = columns
                at_least -= len(columns)
                if at_least <= 0 or room <= 0:
                    break
        return taken

    # The queue…

    def _served(self, only: Collection[TopicPartition] | None = None) -> Iterator[AssignedPartition]:
        """Yield the partitions in turn; the caller puts each back with `enter`.

        All taking begins here, so an iteration ends here: the rest of its records comes first.
        """
        if self._subscription.chunk is not None:
            self._subscription.end_iteration()
        row, arrivals, partitions = self._queue, self._fetcher.arrivals, self._subscription.partitions
        while arrivals:
            state = arrivals.popleft()
            if not state.in_rotation:
                state.in_rotation = True
                row.append(state)
        for _ in range(len(row)):
            state = row[0]
            if only is not None and state.topic_partition not in only:
                row.rotate(-1)
                continue
            cursor = state.cursor
            self.begun.append((state, cursor, cursor.position, cursor.epoch))
            row.popleft()
            state.in_rotation = False
            if partitions.get(state.topic_partition) is state and not state.paused and not state.leaving:
                yield state

    # Taking from one partition…

    def _next(self, state: AssignedPartition, cursor: Cursor) -> CompletedFetch:
        """Return the response to take records from, or raise the error that came in place of records."""
        current = cursor.current
        if current is None:
            current = cursor.fetched[0]
            if current.error is not None:
                raise current.error.with_traceback(None)
            cursor.fetched.popleft()
            cursor.current = current
            cursor.taken += current.size
            if state.full or self._fetcher.starved:
                self._fetcher.freed(state)
        return current

    def _take_rows(self, state: AssignedPartition, rows: list[ConsumerRecord], limit: int, room: int) -> int:
        """Append records to `rows`; return how much of `room` is left."""
        cursor = state.cursor
        if cursor.given_back:  # alone, as interceptors have seen these
            self.given_back.add(state.topic_partition)
            _take_given_back(cursor, rows, limit)
            return room
        while len(rows) < limit and room > 0 and (cursor.current is not None or cursor.fetched):
            current = cursor.current or self._next(state, cursor)
            reader = current.reader
            assert reader is not None
            decoded = reader.decoded
            try:
                new = reader.take(limit - len(rows), room)
            finally:
                cursor.follow(reader)
            rows += new
            room -= reader.decoded - decoded
            self._fetcher.drained(cursor, current, len(new), at_end=reader.exhausted)
        return room

    def _take_columns(self, state: AssignedPartition, at_least: int, room: int) -> tuple[Columns | None, int]:
        """Return columns, and how much of `room` is left."""
        cursor = state.cursor
        if cursor.given_back:  # these have passed the deserializers: fetch them again
            self._subscription.move(state, Cursor(cursor.position, cursor.epoch))
            return None, room
        while cursor.current is not None or cursor.fetched:
            current = self._next(state, cursor)
            reader = current.reader
            assert reader is not None
            decoded = reader.decoded
            try:
                columns = next(reader.columns(at_least=at_least, room=room), None)
            finally:
                cursor.follow(reader)
            self._fetcher.drained(cursor, current, 0 if columns is None else len(columns), at_end=columns is None)
            if columns is not None:
                return columns, room - (reader.decoded - decoded)
        return None, room

    # Errors…

    def _handle_error(self, state: AssignedPartition, error: KafkaError) -> None:
        """Act on an error that came in place of records: reset the position, or raise."""
        cursor = state.cursor
        if cursor.current is None and cursor.fetched:
            cursor.fetched.popleft()
        partition = state.topic_partition
        if isinstance(error, OffsetOutOfRangeError):
            reset = self._positions.policy()
            if reset is not None:
                self._subscription.move(state, Cursor(reset=reset))
                return
            error = OffsetOutOfRangeError(
                {partition: cursor.position},
                f"offset {cursor.position} is outside of the log, and auto_offset_reset is 'none': seek first",
                topic_partition=partition,
            )
        elif isinstance(error, LogTruncationError) and (reset := self._positions.policy()) is not None:
            if error.divergent_offsets:
                target = error.divergent_offsets[partition]
                assert cursor.position is not None
                self._subscription.move(state, Cursor(min(cursor.position, target.offset), target.leader_epoch))
            else:
                self._subscription.move(state, Cursor(reset=reset))
            return
        if not cursor.current:  # it came in place of records; nothing can be read behind damaged ones
            cursor.blocked = False
            self._fetcher.kick()
        raise error


def _take_given_back(cursor: Cursor, rows: list[ConsumerRecord], limit: int) -> None:
    rows += cursor.given_back[:limit]
    del cursor.given_back[:limit]
    if cursor.given_back:
        cursor.advance(rows[-1].offset + 1, rows[-1].leader_epoch)
    else:
        cursor.advance(*cursor.given_back_end)
