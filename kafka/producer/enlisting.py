"""Adding partitions to a classic transaction before they are written to: in one request as many as there are by then.

Runs on the loop. Batches of a partition stay in its queue until it is added. One request is under way at a time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from kafka.cluster import TRANSACTION
from kafka.errors import KafkaError
from kafka.producer.asking import Question
from kafka.producer.transaction_errors import Step
from kafka.producer.transaction_requests import NEWEST_ADD_PARTITIONS, add_partitions_request, worst_of_partitions
from kafka.protocol.transaction import AddPartitionsToTxnRequest

if TYPE_CHECKING:
    from kafka._runtime.tasks import Task
    from kafka.producer.accumulator import Partition
    from kafka.producer.transactions import Transactions
    from kafka.structs import TopicPartition

__all__ = ["Enlisting"]

log = logging.getLogger(__name__)


class Enlisting:
    """The partitions of the present transaction."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions
        self._added: set[TopicPartition] = set()
        self._pending: dict[TopicPartition, Partition] = {}
        self._task: Task[None] | None = None

    def reset(self) -> None:
        """Another transaction begins."""
        self._added.clear()
        self._pending.clear()

    def admits(self, partition: Partition) -> bool:
        """Whether a partition is added; it will be, otherwise, and the sender looks at it again then."""
        if partition.tp in self._added:
            return True
        if partition.tp not in self._pending:
            self._pending[partition.tp] = partition
            if self._task is None:
                self._task = partition.core.loop.spawn(self._add_all(partition.core.sender.look), "add partitions")
        return False

    async def over(self) -> None:
        """Wait until no request is under way; nothing more is asked for."""
        self._pending.clear()
        if self._task is not None:
            await self._task

    async def _add_all(self, look: Callable[[Partition], None]) -> None:
        transactions = self._transactions
        try:
            await transactions.ready()
            while self._pending and transactions.is_sending:
                batch = dict(self._pending)
                await self._add(batch)
                for partition in batch.values():
                    look(partition)
        except KafkaError as error:
            log.debug("Partitions were not added: %s", error)  # the transactions know, and tell
        finally:
            self._task = None

    async def _add(self, batch: dict[TopicPartition, Partition]) -> None:
        transactions, who = self._transactions, self._transactions.identity.who
        question = Question(
            Step.ADD,
            TRANSACTION,
            who.transactional_id,
            AddPartitionsToTxnRequest,
            lambda version: add_partitions_request(version, who, batch),
            worst_of_partitions,
            newest=NEWEST_ADD_PARTITIONS,
            wanted=lambda: transactions.is_sending,
        )
        current = transactions.current
        current.asked = True
        try:
            await transactions.asker.ask(question)
        except KafkaError as error:
            raise transactions.take_error(error, question) from error
        current.late = current.late or question.unanswered
        current.confirmed = True
        self._added.update(batch)
        for tp in batch:
            self._pending.pop(tp, None)
