"""Sequence numbers: which one a batch gets, under which epoch, and when a partition begins anew. Runs on the loop.

The rules are at the head of `kafka.producer.sender`, which asks here before a batch goes out for the first time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka.producer.batch import ProducerBatch
from kafka.record.batch_builder import SealedBatch

if TYPE_CHECKING:
    from kafka.producer.accumulator import Partition
    from kafka.producer.sender import Sender

__all__ = ["SEQUENCES", "Numbering"]

_LAST_EPOCH: Final = 2**15 - 1
SEQUENCES: Final = 2**31
"""After the last number comes 0."""


class Numbering:
    """See the head of this file."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._core = sender.core
        self._transactions = sender.transactions

    def numbered(self, partition: Partition, head: ProducerBatch) -> bool:
        """See to it that the next sequence number is one that the broker will take; False if that has to wait."""
        if self._transactions is not None:
            return self._numbered_in_transaction(partition)
        if partition.producer_id < 0 or (partition.broken and not head.unsure):
            return not partition.in_flight and self._begin_epoch(partition)
        return True

    def _begin_epoch(self, partition: Partition) -> bool:
        """Number the partition's batches from 0 under an epoch that its leader has not seen yet."""
        identity = self._core.identity
        if partition.producer_id != identity.producer_id:
            partition.producer_id, partition.epoch = identity.producer_id, identity.epoch
        elif partition.epoch < _LAST_EPOCH:
            partition.epoch += 1
        else:
            identity.renew()
            self._sender.rest(partition, self._sender.backoff(1))
            return False
        partition.broken = partition.known = False
        partition.next_sequence = 0
        self._renumber(partition)
        return True

    def _numbered_in_transaction(self, partition: Partition) -> bool:
        """Number from 0 when the transaction has another epoch; after a gap nothing goes out until it is aborted."""
        identity = self._core.identity
        if (partition.producer_id, partition.epoch) != (identity.producer_id, identity.epoch):
            # A leader that had the epoch before this one takes nothing but 0 from this one.
            partition.known = (
                partition.known
                and partition.producer_id == identity.producer_id
                and partition.epoch == identity.epoch - 1
            )
            partition.producer_id, partition.epoch = identity.producer_id, identity.epoch
            partition.broken = False
            partition.next_sequence = partition.acknowledged = 0
        return not partition.broken

    def _renumber(self, partition: Partition) -> None:
        """Give new numbers to what was sealed under the old ones, and to what stands before it."""
        waiting = [batch for batch in tuple(partition.queue) if batch.answer is None]
        while waiting and waiting[-1].sealed is None:
            waiting.pop()
        for batch in waiting:
            if isinstance(batch.sealed, SealedBatch):
                batch.sealed = batch.sealed.with_producer(
                    partition.producer_id, partition.epoch, partition.next_sequence
                )
                partition.next_sequence = (partition.next_sequence + batch.count) % SEQUENCES
            else:
                self.seal(batch)

    def seal(self, batch: ProducerBatch) -> None:
        """Let a batch take no more records, and give it its number and its final bytes."""
        partition = batch.partition
        self._core.accumulator.close_for_sending(batch)
        if self._core.identity.wanted and isinstance(batch.builder.magic, int) and batch.builder.magic > 1:
            batch.sealed = batch.builder.seal(  # type: ignore[call-arg]
                producer_id=partition.producer_id,
                producer_epoch=partition.epoch,
                base_sequence=partition.next_sequence,
                transactional=self._transactions is not None,
            )
            partition.next_sequence = (partition.next_sequence + batch.sealed.count) % SEQUENCES
        else:
            batch.sealed = batch.builder.seal()

    def seal_parts(self, whole: ProducerBatch, parts: list[ProducerBatch]) -> None:
        """Give the parts the numbers of the whole, which is not in the log: so what follows keeps its own."""
        partition = whole.partition
        assert isinstance(whole.sealed, SealedBatch)
        following, partition.next_sequence = partition.next_sequence, whole.sealed.base_sequence
        for part in parts:
            self.seal(part)
        partition.next_sequence = following
