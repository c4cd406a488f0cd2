"""The state of one transactional id."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kafka.broker.groups.interfaces import Timer
from kafka.broker.transactions.states import Event, State, next_state
from kafka.structs import TopicPartition

__all__ = ["LAST_EPOCH", "NO_EPOCH", "NO_PRODUCER", "TransactionRecord"]

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
