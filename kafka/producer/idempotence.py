"""ID"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from kafka.errors import ClusterAuthorizationFailedError, KafkaError, UnsupportedVersionError, for_code
from kafka.producer.producer_batch import ProducerBatch
from kafka.record.batch_builder import SealedBatch

if TYPE_CHECKING:
    from kafka.producer.core import ProducerCore
    from kafka.producer.producer_batch import Partition
    from kafka.producer.sender import Sender

__all__ = ["ProducerId", "SEQUENCES", "SequenceNumbers"]

log = logging.getLogger(__name__)

_INIT_PRODUCER_ID: Final = 22
# The longest there is: it has no meaning without transactions, but the field is checked.
_NO_TIMEOUT_MS: Final = 2**31 - 1


class ProducerId:
    """Asks for the id when the first batch is to be sent."""

    def __init__(self, core: ProducerCore, wanted: bool, insisted: bool) -> None:
        self.wanted = wanted
        """Whether batches are numbered."""
        self.producer_id = -1
        self.epoch = -1
        self.error: KafkaError | None = None
        """Why the last attempt to get an id has failed."""
        self._core = core
        self._insisted = insisted
        self._asking = False

    def check_supported(self) -> None:
        """Do without where brokers do not have it, unless it was asked for by name. Called when one has answered."""
        versions = self._core.client.versions
        if not self.wanted or versions is None or versions.supports(_INIT_PRODUCER_ID):
            return
        if self._insisted:
            release = ".".join(map(str, versions.release))
            raise UnsupportedVersionError(
                f"enable_idempotence=True needs brokers of Kafka 0.11 or newer; this one is {release}"
            )
        self.wanted = False

    def ready(self) -> bool:
        """Whether batches can be numbered, or need not be; asks for the id otherwise."""
        if not self.wanted or self.producer_id >= 0:
            return True
        if not self._asking:
            self._asking = True
            self._core.loop.spawn_logged(self._obtain(), "get a producer id")
        return False

    def renew(self) -> None:
        """Get another id: this one is used up, or not ours any more."""
        self.producer_id = self.epoch = -1
        self.ready()

    async def _obtain(self) -> None:
        core = self._core
        failures = 0
        try:
            while not core.closed:
                try:
                    await self._ask()
                    return
                except KafkaError as error:  # noqa: PERF203 - each attempt may fail
                    failures += 1
                    self.error = error
                    if not error.retriable:
                        self._refused(error)
                        if not isinstance(error, ClusterAuthorizationFailedError) or not self.wanted:
                            return
                    elif failures == 1:
                        log.warning("No producer id yet: %s", error)
                    await core.loop.sleep(core.sender.backoff(failures))
        finally:
            self._asking = False
            core.sender.resume()

    async def _ask(self) -> None:
        from kafka.protocol.transaction import InitProducerIdRequest

        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=_NO_TIMEOUT_MS)
        response = await self._core.client.request(request)
        if response.error_code:
            raise for_code(response.error_code)
        self.producer_id, self.epoch = response.producer_id, response.producer_epoch
        self.error = None

    def _refused(self, error: KafkaError) -> None:
        """Trying again is in vain. Go on without numbers, unless they were asked for."""
        if isinstance(error, ClusterAuthorizationFailedError) and not self._insisted:
            # Brokers before 2.8 want a right of its own for it (KIP-679).
            log.warning("This principal may not write idempotently: going on without (%s)", error)
            self.wanted = False
            return
        log.error("No producer id can be had: %s", error)
        for batch in self._core.accumulator.unsettled():
            if batch.outcome is None:
                self._core.sender.give_up(batch.partition, error)


_LAST_EPOCH: Final = 2**15 - 1
SEQUENCES: Final = 2**31
"""After the last number comes 0."""


class SequenceNumbers:
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
