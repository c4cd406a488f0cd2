"""One transactional id: its state, the events that change the state, its producer and its partitions.

An end has two steps: *Prepare* is the decision, which stands whatever happens after it; *Complete* says that the
markers are on all partitions. From a complete state the next transaction starts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from kafka.broker.cluster.clock import Timer
from kafka.errors import IllegalStateError
from kafka.structs import TopicPartition


class State(Enum):
    """Where a transactional id is; the values are Kafka's names."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"

    @property
    def is_ending(self) -> bool:
        """Whether the end is decided but not written everywhere."""
        return self in (State.PREPARE_COMMIT, State.PREPARE_ABORT)

    @property
    def is_idle(self) -> bool:
        """Whether a transaction does not exist."""
        return self in (State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT)


class Event(Enum):
    """What moves it."""

    INIT = "a producer starts"
    ADD = "a partition is added"
    COMMIT = "it is committed"
    ABORT = "it is aborted"
    FENCE = "its producer is fenced"
    WRITTEN = "the markers are written"
    EXPIRE = "it is forgotten"


_NEXT: Final[Mapping[tuple[State, Event], State]] = {  # an absent pair is a bug of ours
    (State.EMPTY, Event.INIT): State.EMPTY,
    (State.COMPLETE_COMMIT, Event.INIT): State.EMPTY,
    (State.COMPLETE_ABORT, Event.INIT): State.EMPTY,
    (State.EMPTY, Event.ADD): State.ONGOING,
    (State.COMPLETE_COMMIT, Event.ADD): State.ONGOING,
    (State.COMPLETE_ABORT, Event.ADD): State.ONGOING,
    (State.ONGOING, Event.ADD): State.ONGOING,
    (State.ONGOING, Event.COMMIT): State.PREPARE_COMMIT,
    (State.ONGOING, Event.ABORT): State.PREPARE_ABORT,
    # KIP-890: an abort of nothing counts up the epoch, so that late writes of the past are kept out.
    (State.EMPTY, Event.ABORT): State.PREPARE_ABORT,
    (State.COMPLETE_COMMIT, Event.ABORT): State.PREPARE_ABORT,
    (State.COMPLETE_ABORT, Event.ABORT): State.PREPARE_ABORT,
    (State.ONGOING, Event.FENCE): State.PREPARE_EPOCH_FENCE,
    (State.PREPARE_EPOCH_FENCE, Event.ABORT): State.PREPARE_ABORT,
    (State.PREPARE_COMMIT, Event.WRITTEN): State.COMPLETE_COMMIT,
    (State.PREPARE_ABORT, Event.WRITTEN): State.COMPLETE_ABORT,
    (State.EMPTY, Event.EXPIRE): State.DEAD,
    (State.COMPLETE_COMMIT, Event.EXPIRE): State.DEAD,
    (State.COMPLETE_ABORT, Event.EXPIRE): State.DEAD,
}


def next_state(state: State, event: Event) -> State:
    """Return where an event leads.

    >>> next_state(State.ONGOING, Event.COMMIT)
    <State.PREPARE_COMMIT: 'PrepareCommit'>
    """
    try:
        return _NEXT[state, event]
    except KeyError:
        raise IllegalStateError(f"a transaction in {state.value} cannot take that {event.value}") from None


NO_PRODUCER: Final = -1
NO_EPOCH: Final = -1
#: The last epoch that a producer gets; the one after it is for fencing alone.
LAST_EPOCH: Final = 32766


@dataclass(eq=False)
class TransactionRecord:
    """One transactional id: its producer, its epoch, its present transaction."""

    transactional_id: str
    producer_id: int
    epoch: int = NO_EPOCH
    #: The epoch before the last bump, so that a repeated InitProducerId is recognised (KIP-360).
    last_epoch: int = NO_EPOCH
    #: The producer id before the epochs of the last one were used up.
    previous_producer_id: int = NO_PRODUCER
    timeout: float = 60.0
    state: State = State.EMPTY
    partitions: set[TopicPartition] = field(default_factory=set)
    groups: set[str] = field(default_factory=set)
    start_ms: int = -1
    updated_ms: int = -1
    #: Whether the client ends transactions by KIP-890: each end counts up the epoch.
    bumps_epoch: bool = False
    #: Producer id and epoch of the next transaction when the epochs are used up.
    successor: tuple[int, int] | None = None
    timer: Timer | None = None

    @property
    def is_exhausted(self) -> bool:
        """Whether the epochs of the producer id are used up."""
        return self.epoch >= LAST_EPOCH

    def move(self, event: Event, now_ms: int) -> None:
        """Take an event; raises IllegalStateError where it makes no sense."""
        self.state = next_state(self.state, event)
        self.updated_ms = now_ms

    def stop_timer(self) -> None:
        """Watch its timeout no more."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def to_json(self) -> list[Any]:
        """Return what has to outlive the process."""
        return [
            self.producer_id,
            self.epoch,
            self.last_epoch,
            self.previous_producer_id,
            self.timeout,
            self.state.value,
            sorted(self.partitions),
            sorted(self.groups),
            self.start_ms,
            self.updated_ms,
            self.bumps_epoch,
            self.successor,
        ]

    @classmethod
    def from_json(cls, transactional_id: str, saved: Sequence[Any]) -> TransactionRecord:
        """Return what was saved."""
        producer_id, epoch, last_epoch, previous, timeout, state, partitions, groups, start, updated, bumps, succ = (
            saved
        )
        return cls(
            transactional_id,
            producer_id,
            epoch,
            last_epoch,
            previous,
            timeout,
            State(state),
            {TopicPartition(*each) for each in partitions},
            set(groups),
            start,
            updated,
            bumps,
            None if succ is None else (succ[0], succ[1]),
        )
