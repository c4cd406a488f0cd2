"""A batch of records on its way: open, closed, sealed, sent, settled.

The accumulator fills it, under its lock and on the threads of the application; the sender seals it, sends it and
settles it, on the loop. It is settled once, with one of three outcomes: where it was written, an error, or the smaller
batches that it was divided into.

As a `Future` it is the latch that `flush()` and `get()` wait for: done after its callbacks have run.
"""

# ruff: noqa: SLF001 - a batch and the futures of its records are one thing in two modules

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from kafka._runtime.application import complete
from kafka._runtime.callback_errors import raise_after_pass
from kafka.future import Future
from kafka.record.batch_builder import FULL, BatchBuilder, SealedBatch
from kafka.record.message_v0_v1 import LegacyBuilder, SealedMessages

if TYPE_CHECKING:
    from kafka._runtime.timers import Timer
    from kafka.producer.accumulator import Partition
    from kafka.producer.future import RecordFuture

__all__ = ["Delivered", "Divided", "ProducerBatch", "taken_up"]

log = logging.getLogger(__name__)

Back = Callable[[Any], object]


def taken_up(*_: object) -> int:
    """Stand in for a batch's `append` while a record is added to it.

    A signal handler or a finalizer can interrupt that, and send: for it the batch is full. The same holds for
    everybody after one that raised.
    """
    return FULL


class Delivered(NamedTuple):
    """The batch is written."""

    base_offset: int
    append_time: int
    """The broker's timestamp for all records, -1 where they keep their own."""


class Divided(NamedTuple):
    """The batch was too large; its records go on in these, in order."""

    parts: tuple[ProducerBatch, ...]


class ProducerBatch(Future[None]):
    """See the head of this file."""

    __slots__ = (
        "_record_backs",
        "_turn",
        "answer",
        "append",
        "attempts",
        "builder",
        "created",
        "error",
        "expected",
        "hurried",
        "keeper",
        "outcome",
        "partition",
        "reserved",
        "sealed",
        "timer",
        "unsure",
    )

    def __init__(
        self, partition: Partition, builder: BatchBuilder | LegacyBuilder, created: float, reserved: int
    ) -> None:
        super().__init__()
        self.partition = partition
        self.builder = builder
        # Bound once: the one call per record.
        self.append: Callable[..., int] = builder.append
        self.created = created
        """When it was opened, as the loop counts: linger_ms and delivery_timeout_ms run from here."""
        self.reserved = reserved
        """Bytes of buffer_memory that it holds."""
        self.hurried = False
        """Somebody waits for it: it is sent without waiting for more records."""
        self.expected = 0
        """How many calls were woken because their records fit into it, and have not added them yet."""
        self.keeper: object = None
        """Keeps the face alive as long as records are under way, so that a producer nobody holds still delivers."""
        self.sealed: SealedBatch | SealedMessages | None = None
        """The bytes as they were sent; a retry sends the same."""
        self.attempts = 0
        self.unsure = False
        """A broker may have it: it was sent, and the last attempt has no definite answer."""
        self.answer: Delivered | BaseException | None = None
        """A final answer that came while an earlier batch of the partition has none."""
        self.error: BaseException | None = None
        """What the last attempt failed with."""
        self.timer: Timer | None = None
        self.outcome: Delivered | Divided | BaseException | None = None
        # Future, on success, on failure, and so on: flat, as a tuple for each would be one object more for the cycle
        # collector to look at, which took half the time of programs with callbacks. It grows by `extend`, which is
        # atomic; whoever has the turn takes off the front.
        self._record_backs: list[Any] = []
        self._turn: list[None] = [None]

    @property
    def count(self) -> int:
        """How many records it has."""
        return self.builder.count if self.sealed is None else self.sealed.count

    def locate(self, index: int) -> tuple[ProducerBatch, int, Delivered | BaseException | None]:
        """Return the batch that a record is in now, its index there, and the outcome if there is one."""
        outcome = self.outcome
        if not isinstance(outcome, Divided):
            return self, index, outcome
        for part in outcome.parts:
            if index < part.count:
                return part.locate(index)
            index -= part.count
        raise AssertionError("a divided batch has all its records in its parts")

    def extend(self, values: list[bytes | None], timestamp: int, start: int) -> tuple[int, int]:
        """Add as many values as fit, from `start` on; return the index of the first one and how many. As `append`."""
        append, self.append = self.append, taken_up
        try:
            if append is taken_up:
                return 0, 0
            return self.builder.count, self.builder.extend(values, timestamp, start=start)
        finally:
            self.append = append

    def wait(self, timeout: float | None) -> None:
        """Send it now and wait in this thread until it is settled, `timeout` seconds at most."""
        complete(self.partition.core.wait_for(self, timeout))

    # Following…

    def follow(self, future: RecordFuture, on_success: Back | None, on_failure: Back | None) -> None:
        """Call one of the two when the record's outcome is there: at once if it is."""
        # As in kafka.future: append first and look second, so that either this thread or the one that settles runs it.
        self._record_backs.extend((future, on_success, on_failure))
        if self.outcome is not None:
            self._run_backs_of_records()

    def settle(self, outcome: Delivered | Divided | BaseException) -> None:
        """Give it its outcome, once."""
        assert self.outcome is None, f"settled twice: {self.outcome!r}, {outcome!r}"
        self.outcome = outcome
        self.keeper = None
        if self.sealed is not None:  # programs keep futures, and shall not keep what they have sent with them
            self.sealed.forget()
        self._run_backs_of_records()
        if isinstance(outcome, Divided):
            self._await_parts(outcome.parts)
        else:
            self.success(None)

    def _await_parts(self, parts: tuple[ProducerBatch, ...]) -> None:
        left = [len(parts)]

        def one_less(_: object) -> None:
            left[0] -= 1
            if not left[0]:
                self.success(None)

        for part in parts:
            part.add_both(one_less)

    def _run_backs_of_records(self) -> None:
        while self._record_backs:
            try:
                self._turn.pop()
            except IndexError:
                return  # somebody is at it, and looks again afterwards
            try:
                self._run_some_backs(self._record_backs)
            finally:
                self._turn.append(None)

    def _run_some_backs(self, backs: list[Any]) -> None:
        # Hot, if there are callbacks.
        outcome = self.outcome
        failed = isinstance(outcome, BaseException)
        ending: BaseException | None = None
        at = 0
        try:
            while at < len(backs):
                future, back = backs[at], backs[at + 2 if failed else at + 1]
                at += 3
                if isinstance(outcome, Divided):
                    batch, index, _ = self.locate(future._index)
                    batch.follow(future._moved(batch, index), backs[at - 2], backs[at - 1])
                elif back is not None:
                    try:
                        back(outcome if failed else future._metadata(self, future._index, outcome))
                    except Exception:
                        log.exception("A callback of a record failed: %r", back)
                    except BaseException as error:  # sys.exit(): not at the cost of other records
                        ending = ending or error
        finally:
            del backs[:at]
        if ending is not None:
            raise_after_pass(ending)

    def __repr__(self) -> str:
        tp = self.partition.tp
        state = "open or waiting" if self.sealed is None else "sent" if self.attempts else "sealed"
        return f"<ProducerBatch {tp.topic}-{tp.partition} records={self.count} {self.outcome or state}>"
