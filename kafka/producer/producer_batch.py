"""Batches of records, and what a broker's answer means for them.

A batch is open, closed, sealed, sent, settled, in this order. The accumulator fills it, under its lock and on the
threads of the application; its partition seals it, sends it and settles it, on the loop. It is settled once, with one
of three outcomes: where it was written, an error, or the smaller batches that it was divided into. As a `Future` it is
what `flush()` and `get()` wait for: done after its callbacks have run.
"""

# ruff: noqa: SLF001 - a batch and the futures of its records are one thing in two modules

from __future__ import annotations

import logging
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from kafka._runtime.callback_errors import raise_after_pass
from kafka.errors import (
    DuplicateSequenceNumberError,
    InvalidProducerEpochError,
    KafkaError,
    MessageSizeTooLargeError,
    OutOfOrderSequenceNumberError,
    RecordListTooLargeError,
    UnknownProducerIdError,
    UnknownTopicIdError,
)
from kafka.future import Future
from kafka.record.batch_builder import BatchBuilder, SealedBatch
from kafka.record.message_v0_v1 import LegacyBuilder, SealedMessages

if TYPE_CHECKING:
    from kafka.producer.partition import Partition

__all__ = [
    "Delivered",
    "Divided",
    "ProduceOutcome",
    "ProducerBatch",
    "UNSEEN",
    "classify",
]

log = logging.getLogger(__name__)

Back = Callable[[Any], object]


UNSEEN: Final = object()
"""A callback returns this if the program has not seen the error: the log will have it."""


class FollowedRecord(Protocol):
    """The future of a record, as its batch knows it."""

    _index: int

    def _metadata(self, batch: ProducerBatch, index: int, outcome: Delivered) -> object: ...

    def _moved(self, batch: ProducerBatch, index: int) -> FollowedRecord: ...


class Delivered(NamedTuple):
    """The outcome of a batch that is written."""

    base_offset: int
    append_time: int
    """The broker's timestamp for all records, -1 where they keep their own."""
    log_start_offset: int = -1
    """The first offset of the partition, -1 where the broker does not say it."""


# The outcome with acks=0. It is this object: a batch that the broker had written long before has the same numbers.
NOT_ACKNOWLEDGED: Final = Delivered(-1, -1)


class Divided(NamedTuple):
    """The batch was too large; these smaller batches have its records, in order."""

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
        "compressed",
        "created",
        "error",
        "hurried",
        "keeper",
        "looked_at",
        "outcome",
        "partition",
        "reserved",
        "scheduled",
        "sealed",
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
        """A call waits for it: it is sent without waiting for more records."""
        self.scheduled = False
        """The sender has taken note of it, and will send it when it is due."""
        self.keeper: object = None
        """Keeps the face alive while records are under way, so that a producer without a reference still delivers."""
        self.compressed: Future[bytes] | None = None
        """What another thread makes of its records, if it is large."""
        self.sealed: SealedBatch | SealedMessages | None = None
        """The bytes as they were sent; a retry sends the same."""
        self.attempts = 0
        self.unsure = False
        """A broker may have it: it was sent, and an attempt has no definite answer."""
        self.answer: Delivered | BaseException | None = None
        """A final answer that came while an earlier batch of the partition has none."""
        self.error: BaseException | None = None
        """The error of the last attempt."""
        self.outcome: Delivered | Divided | BaseException | None = None
        self.looked_at: set[int]
        """The records whose failure a call or a callback has looked at; there since it failed."""
        # Future, on success, on failure, and so on: flat, as a tuple for each would be one object more for the cycle
        # collector to look at, which took half the time of programs with callbacks. It grows by `extend`, which is
        # atomic; the thread that has the turn removes from the front.
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

    # Callbacks…

    def follow(self, future: FollowedRecord, on_success: Back | None, on_failure: Back | None) -> None:
        """Call one of the two when the record has its outcome: at once if it has."""
        # As in kafka.future: append first and look second, so that either this thread or the one that settles runs it.
        self._record_backs.extend((future, on_success, on_failure))
        if self.outcome is not None:
            self._run_backs_of_records()

    def settle(self, outcome: Delivered | Divided | BaseException) -> None:
        """Give it its outcome, once."""
        assert self.outcome is None, f"settled twice: {self.outcome!r}, {outcome!r}"
        if isinstance(outcome, BaseException):
            self.looked_at = set()
        self.outcome = outcome
        self.keeper = self.compressed = None
        # Programs keep futures, which must not keep the bytes.
        (self.builder if self.sealed is None else self.sealed).forget()
        if self._record_backs:
            self._run_backs_of_records()
        if isinstance(outcome, Divided):
            self._await_parts(outcome.parts)
        else:
            self.try_success(None)

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
                return  # another thread calls them, and looks again afterwards
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
                        if not failed:
                            back(future._metadata(self, future._index, outcome))
                        elif back(outcome) is not UNSEEN:
                            self.looked_at.add(future._index)
                    except Exception:
                        log.exception("A callback of a record failed: %r", back)
                    except BaseException as error:  # sys.exit(): after the callbacks of other records
                        ending = ending or error
        finally:
            del backs[:at]
        if ending is not None:
            raise_after_pass(ending)

    def __repr__(self) -> str:
        tp = self.partition.tp
        state = "open or waiting" if self.sealed is None else "sent" if self.attempts else "sealed"
        return f"<ProducerBatch {tp.topic}-{tp.partition} records={self.count} {self.outcome or state}>"


class ProduceOutcome(Enum):
    """The meaning of a broker's answer to a batch."""

    DONE = "written"
    RETRY = "send the same bytes again"
    SEQUENCE = "not written: the broker expects another sequence number, or has forgotten the producer"
    DIVIDE = "not written: too large for the broker"
    FAIL = "not written, and it will not be"


_SEQUENCE: Final = (OutOfOrderSequenceNumberError, UnknownProducerIdError, InvalidProducerEpochError)
_TOO_LARGE: Final = (MessageSizeTooLargeError, RecordListTooLargeError)


def classify(error: KafkaError, records: int) -> ProduceOutcome:
    """Return what an error means for a batch of this many records.

    >>> from kafka.errors import for_code
    >>> [classify(for_code(code)(), records).name for code, records in ((6, 100), (10, 100), (10, 1))]
    ['RETRY', 'DIVIDE', 'FAIL']
    """
    if isinstance(error, DuplicateSequenceNumberError):
        # The broker has it, and has forgotten its offset.
        return ProduceOutcome.DONE
    if isinstance(error, _SEQUENCE):
        return ProduceOutcome.SEQUENCE
    if isinstance(error, _TOO_LARGE) and records > 1:
        return ProduceOutcome.DIVIDE
    if error.retriable or isinstance(error, UnknownTopicIdError):
        return ProduceOutcome.RETRY
    return ProduceOutcome.FAIL
