"""Idempotence: the producer id, its epochs, and the sequence numbers of batches (KIP-98, KIP-360).

By these a broker recognises a batch that it has already. Runs on the loop only. The rules that the numbers follow are
in the head of `kafka.producer.sender`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from kafka.errors import ClusterAuthorizationFailedError, KafkaError, UnsupportedVersionError, for_code
from kafka.producer.diagnostics import no_answers
from kafka.producer.producer_batch import Partition, ProducerBatch
from kafka.protocol.registry import ApiKey
from kafka.record.batch_builder import SealedBatch

if TYPE_CHECKING:
    from kafka._core.client import Client
    from kafka._runtime.timers import Backoff
    from kafka.producer.record_accumulator import RecordAccumulator

__all__ = ["SEQUENCES", "ProducerId", "SequenceNumbers", "WaitsForProducerId"]

log = logging.getLogger(__name__)

# The longest timeout: it has no meaning without transactions, but the broker checks the field.
_NO_TIMEOUT_MS: Final = 2**31 - 1
_LAST_EPOCH: Final = 2**15 - 1
SEQUENCES: Final = 2**31
"""After the last sequence number comes 0."""


class WaitsForProducerId(Protocol):
    """What cannot send before there is a producer id: the sender."""

    def resume(self) -> None:
        """Continue: there is a producer id, or no batch needs one."""
        ...

    def give_up(self, partition: Partition, error: KafkaError) -> None:
        """Fail all batches of a partition that are not sent."""
        ...


class ProducerId:
    """The producer id and its first epoch; requested when the first batch is to be sent."""

    sender: WaitsForProducerId
    """Set by the core, which makes the sender after this."""

    def __init__(
        self, client: Client, accumulator: RecordAccumulator, backoff: Backoff, *, enabled: bool, required: bool
    ) -> None:
        self.enabled = enabled
        """Whether batches are numbered."""
        self.producer_id = -1
        self.epoch = -1
        self.error: KafkaError | None = None
        """Why the last request for an id failed."""
        self._client = client
        self._accumulator = accumulator
        self._backoff = backoff
        self._required = required
        """The application has set enable_idempotence: records fail where it is not possible."""
        self._requesting = False

    def check_supported(self) -> None:
        """Disable idempotence where the brokers do not support it, unless it is required."""
        versions = self._client.versions
        if not self.enabled or versions is None or versions.reaches(ApiKey.InitProducerId):
            return
        if self._required:
            release = ".".join(map(str, versions.release))
            raise UnsupportedVersionError(
                f"enable_idempotence=True needs brokers of Kafka 0.11 or newer; this one is {release}"
            )
        self.enabled = False

    def ready(self) -> bool:
        """Whether batches can be numbered, or need not be; requests the id otherwise."""
        if not self.enabled or self.producer_id >= 0:
            return True
        if not self._requesting:
            self._requesting = True
            self._client.loop.spawn_logged(self._obtain(), "get a producer id")
        return False

    def renew(self) -> None:
        """Request another id: the epochs of this one are used up, or a broker has fenced it."""
        self.producer_id = self.epoch = -1
        self.ready()

    def problem(self) -> str:
        """Return why there is no producer id; empty if there is one, or none is needed."""
        if not self.enabled or self.producer_id >= 0:
            return ""
        if self.error is not None:
            return f"no producer id yet: {self.error}"
        silent = no_answers(self._client)
        return f"no producer id yet, which was requested{f': {silent}' if silent else ''}"

    async def _obtain(self) -> None:
        failures = 0
        try:
            while not self._is_closed():
                try:
                    await self._request_id()
                    return
                except KafkaError as error:  # noqa: PERF203 - each attempt may fail
                    if self._is_closed():
                        return
                    failures += 1
                    self.error = error
                    if not error.retriable:
                        self._refused(error)
                        if not isinstance(error, ClusterAuthorizationFailedError) or not self.enabled:
                            return
                    elif failures == 1:
                        log.warning("No producer id yet: %s", error)
                    await self._client.loop.sleep(self._backoff.delay(failures))
        finally:
            self._requesting = False
            self.sender.resume()

    def _is_closed(self) -> bool:
        return self._accumulator.closed

    async def _request_id(self) -> None:
        from kafka.protocol.transaction import InitProducerIdRequest

        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=_NO_TIMEOUT_MS)
        response = await self._client.request(request)
        if response.error_code:
            raise for_code(response.error_code)
        self.producer_id, self.epoch = response.producer_id, response.producer_epoch
        self.error = None

    def _refused(self, error: KafkaError) -> None:
        """Continue without sequence numbers, or fail the records where they are required."""
        if isinstance(error, ClusterAuthorizationFailedError) and not self._required:
            # Brokers before 2.8 need a separate permission for it (KIP-679).
            log.warning("This principal may not write idempotently: continuing without idempotence (%s)", error)
            self.enabled = False
            return
        log.error("Cannot obtain a producer id: %s", error)
        for batch in self._accumulator.unsettled():
            if batch.outcome is None:
                self.sender.give_up(batch.partition, error)


class SequenceNumbers:
    """Which sequence number a batch gets, under which epoch, and when a partition restarts from 0."""

    def __init__(
        self,
        producer_id: ProducerId,
        accumulator: RecordAccumulator,
        postpone: Callable[[Partition], None],
        *,
        is_transactional: bool,
    ) -> None:
        self._id = producer_id
        self._accumulator = accumulator
        self._postpone = postpone
        self._is_transactional = is_transactional

    def ensure_epoch(self, partition: Partition, head: ProducerBatch) -> bool:
        """Ensure that the broker will accept the partition's next sequence number; False if it must wait."""
        if self._is_transactional:
            return self._ensure_epoch_of_transaction(partition)
        if partition.producer_id < 0 or (partition.sequence_gap and not head.unsure):
            return not partition.in_flight and self._begin_epoch(partition)
        return True

    def _begin_epoch(self, partition: Partition) -> bool:
        """Number the partition's batches from 0 under an epoch that its leader has not seen yet."""
        producer = self._id
        if partition.producer_id != producer.producer_id:
            partition.producer_id, partition.epoch = producer.producer_id, producer.epoch
        elif partition.epoch < _LAST_EPOCH:
            partition.epoch += 1
        else:
            producer.renew()
            self._postpone(partition)
            return False
        partition.sequence_gap = partition.epoch_accepted = False
        partition.next_sequence = 0
        self._renumber(partition)
        return True

    def _ensure_epoch_of_transaction(self, partition: Partition) -> bool:
        """Number from 0 when the transaction has another epoch; after a gap nothing is sent until it is aborted."""
        producer = self._id
        if (partition.producer_id, partition.epoch) != (producer.producer_id, producer.epoch):
            # A leader that had the epoch before this one accepts nothing but 0 from this one.
            partition.epoch_accepted = (
                partition.epoch_accepted
                and partition.producer_id == producer.producer_id
                and partition.epoch == producer.epoch - 1
            )
            partition.producer_id, partition.epoch = producer.producer_id, producer.epoch
            partition.sequence_gap = False
            partition.next_sequence = partition.acknowledged = 0
        return not partition.sequence_gap

    def _renumber(self, partition: Partition) -> None:
        """Give new numbers to the batches that were sealed with the old ones, and to all before them."""
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
        """Close a batch for records, and give it its sequence number and its final bytes."""
        partition = batch.partition
        self._accumulator.close_for_sending(batch)
        if self._id.enabled and isinstance(batch.builder.magic, int) and batch.builder.magic > 1:
            batch.sealed = batch.builder.seal(  # type: ignore[call-arg]
                producer_id=partition.producer_id,
                producer_epoch=partition.epoch,
                base_sequence=partition.next_sequence,
                transactional=self._is_transactional,
            )
            partition.next_sequence = (partition.next_sequence + batch.sealed.count) % SEQUENCES
        else:
            batch.sealed = batch.builder.seal()

    def seal_parts(self, whole: ProducerBatch, parts: list[ProducerBatch]) -> None:
        """Give the parts of a batch its numbers, as it is not in the log: the batches behind it keep theirs."""
        partition = whole.partition
        assert isinstance(whole.sealed, SealedBatch)
        following, partition.next_sequence = partition.next_sequence, whole.sealed.base_sequence
        for part in parts:
            self.seal(part)
        partition.next_sequence = following
