"""The state of a partition's producers: sequence numbers, epochs, open and aborted transactions.

Each producer id has its epoch and the last five batches (as many as a producer may have in flight), by which a
repeated batch is recognised and answered with the offset it has already, and a gap is refused.
"""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

from kafka.errors import (
    InvalidProducerEpochError,
    InvalidTxnStateError,
    OutOfOrderSequenceNumberError,
    TransactionCoordinatorFencedError,
)
from kafka.record.header import BatchHeader

#: Batches remembered per producer; more than this in flight cannot be distinguished (KIP-98, KAFKA-5494).
WINDOW: Final = 5
_SEQUENCES: Final = 2**31


class BatchMark(NamedTuple):
    """One remembered batch."""

    first_sequence: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def base_offset(self) -> int:
        """The batch's first offset."""
        return self.last_offset - self.offset_delta


class Aborted(NamedTuple):
    """An aborted transaction of this partition."""

    producer_id: int
    first_offset: int
    last_offset: int
    """That of its marker."""
    stable_offset: int
    """The last stable offset after the marker: readers below need not know of it."""


class Attempt(NamedTuple):
    """A producer's attempt to begin a transaction on this partition, until it has written or the transaction ends."""

    epoch: int
    lowest_sequence: int
    is_v2: bool
    """The partition joins the transaction by the attempt (KIP-890)."""


class ProducerState:
    """One producer id on this partition."""

    __slots__ = ("batches", "coordinator_epoch", "epoch", "last_timestamp", "producer_id", "transaction_start")

    def __init__(self, producer_id: int, epoch: int) -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.batches: deque[BatchMark] = deque(maxlen=WINDOW)
        self.last_timestamp = -1
        self.coordinator_epoch = -1
        #: First offset of the open transaction, or None.
        self.transaction_start: int | None = None

    @property
    def last_sequence(self) -> int:
        """The last sequence number, -1 if none is known."""
        return self.batches[-1].last_sequence if self.batches else -1


class Producers:
    """The producers of one partition."""

    def __init__(self) -> None:
        self.states: dict[int, ProducerState] = {}
        self.aborted: list[Aborted] = []
        #: First offset of each open transaction, by producer id.
        self.open: dict[int, int] = {}
        #: By producer id.
        self._attempts: dict[int, Attempt] = {}

    # Before an append

    def attempt(self, header: BatchHeader, *, is_v2: bool) -> None:
        """Remember a transactional batch that the coordinator may refuse: no later one may be accepted without it."""
        state = self.states.get(header.producer_id)
        if state is not None and (
            header.producer_epoch < state.epoch
            or (header.producer_epoch == state.epoch and state.transaction_start is not None)
        ):
            return  # it is fenced, or the transaction has begun
        before = self._attempts.get(header.producer_id)
        this = Attempt(header.producer_epoch, header.base_sequence, is_v2)
        if before is None or this.epoch > before.epoch:
            self._attempts[header.producer_id] = this
        elif this.epoch == before.epoch and this.lowest_sequence < before.lowest_sequence:
            self._attempts[header.producer_id] = before._replace(lowest_sequence=this.lowest_sequence)

    def find_duplicate(self, header: BatchHeader) -> BatchMark | None:
        """Return the batch that this one repeats, if it is among the remembered ones."""
        state = self.states.get(header.producer_id)
        if state is None or state.epoch != header.producer_epoch or header.base_sequence < 0:
            return None
        for mark in state.batches:
            if mark.first_sequence == header.base_sequence and mark.last_sequence == header.last_sequence:
                return mark
        return None

    def check(self, header: BatchHeader, *, begins_at_zero: bool = False) -> None:
        """Raise unless the batch may follow what its producer has written here.

        ``begins_at_zero``: transactions follow KIP-890 and begin with a new epoch and so with sequence 0.
        """
        state, attempt = self.states.get(header.producer_id), self._attempts.get(header.producer_id)
        if state is not None:
            if header.producer_epoch < state.epoch:
                raise InvalidProducerEpochError(
                    f"Epoch of producer {header.producer_id} is {header.producer_epoch}, "
                    f"which is smaller than the last seen epoch {state.epoch}"
                )
        # KIP-360: the producer may be known elsewhere, or its state may have expired; any sequence may begin.
        elif begins_at_zero and header.base_sequence > 0:
            raise OutOfOrderSequenceNumberError(
                f"Producer {header.producer_id} is not known here, and begins with sequence number "
                f"{header.base_sequence} instead of 0"
            )
        if attempt is not None and header.base_sequence > attempt.lowest_sequence:
            raise OutOfOrderSequenceNumberError(
                f"Out of order sequence number for producer {header.producer_id}: "
                f"{header.base_sequence} (incoming seq. number), {attempt.lowest_sequence} (earliest seen sequence)"
            )
        if state is None:
            return
        self._check_sequence(state, header)
        if state.transaction_start is not None and not header.is_transactional:
            raise InvalidTxnStateError(
                f"Producer {header.producer_id} has a transaction open here, and this batch is not of it"
            )

    def _check_sequence(self, state: ProducerState, header: BatchHeader) -> None:
        if header.base_sequence < 0:
            return
        if header.producer_epoch > state.epoch:
            if header.base_sequence != 0:
                raise OutOfOrderSequenceNumberError(
                    f"Invalid sequence number for new epoch of producer {header.producer_id}: "
                    f"{header.producer_epoch} (request epoch), {header.base_sequence} (seq. number), "
                    f"{state.epoch} (current producer epoch)"
                )
            return
        last = state.last_sequence
        if header.base_sequence != (last + 1) % _SEQUENCES:
            raise OutOfOrderSequenceNumberError(
                f"Out of order sequence number for producer {header.producer_id}: "
                f"{header.base_sequence} (incoming seq. number), {last} (current end sequence number)"
            )

    def check_marker(self, producer_id: int, epoch: int, coordinator_epoch: int) -> None:
        """Raise unless a marker of this epoch may end the producer's transaction."""
        state = self.states.get(producer_id)
        if state is None:
            return
        if epoch < state.epoch:
            raise InvalidProducerEpochError(
                f"Epoch of producer {producer_id} is {epoch}, which is smaller than the last seen epoch {state.epoch}"
            )
        if coordinator_epoch < state.coordinator_epoch:
            raise TransactionCoordinatorFencedError(
                f"Invalid coordinator epoch for producer {producer_id}: {coordinator_epoch} (zombie), "
                f"{state.coordinator_epoch} (current)"
            )

    # After an append

    def appended(self, header: BatchHeader, offset: int) -> None:
        """Remember a batch that was appended at ``offset``."""
        producer_id, epoch = header.producer_id, header.producer_epoch
        state = self.states.get(producer_id)
        if state is None:
            state = self.states[producer_id] = ProducerState(producer_id, epoch)
        elif state.epoch != epoch:
            state.epoch = epoch
            state.batches.clear()
        state.last_timestamp = header.max_timestamp
        delta = header.last_offset_delta
        if header.base_sequence >= 0:
            state.batches.append(
                BatchMark(header.base_sequence, header.last_sequence, offset + delta, delta, header.max_timestamp)
            )
        if header.is_transactional:
            self._attempts.pop(producer_id, None)
            if state.transaction_start is None:
                state.transaction_start = offset
                self.open[producer_id] = offset

    def ended(
        self, producer_id: int, epoch: int, offset: int, timestamp: int, *, committed: bool, coordinator_epoch: int
    ) -> None:
        """Remember a marker that was appended at ``offset``."""
        state = self.states.get(producer_id)
        if state is None:
            state = self.states[producer_id] = ProducerState(producer_id, epoch)
        if epoch > state.epoch:
            state.epoch = epoch
            state.batches.clear()
        state.coordinator_epoch = max(state.coordinator_epoch, coordinator_epoch)
        state.last_timestamp = timestamp
        state.transaction_start = None
        attempt = self._attempts.get(producer_id)
        if attempt is not None and not (attempt.is_v2 and attempt.epoch == epoch):
            del self._attempts[producer_id]
        first = self.open.pop(producer_id, None)
        if first is not None and not committed:
            stable = min(self.open.values(), default=offset + 1)
            self.aborted.append(Aborted(producer_id, first, offset, stable))

    # Asking

    def first_open(self) -> int | None:
        """The first offset of any open transaction."""
        return min(self.open.values()) if self.open else None

    def aborted_between(self, start: int, end: int) -> list[Aborted]:
        """Return the aborted transactions with records in the offsets from ``start`` up to, not including, ``end``."""
        return [one for one in self.aborted if one.last_offset >= start and one.first_offset < end]

    # Forgetting

    def forget_before(self, start: int) -> None:
        """Records before ``start`` are gone: so are the aborted transactions that ended there."""
        if self.aborted and self.aborted[0].last_offset < start:
            self.aborted = [one for one in self.aborted if one.last_offset >= start]

    def expire(self, before_ms: int) -> None:
        """Forget producers that have written nothing since then and have no transaction open."""
        gone = [
            state.producer_id
            for state in self.states.values()
            if state.transaction_start is None and state.last_timestamp < before_ms
        ]
        for producer_id in gone:
            del self.states[producer_id]
