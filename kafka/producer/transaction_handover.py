"""A producer that takes over one transactional id after another, and may leave a transaction for another to end.

For workers that run many tasks, each of which writes under a separate id (`kafka.spark`): a task costs a worker no new
connections, and is fenced as if each task had a new producer. A program that ends the transactions of another process
needs a protocol between the two, as Spark's driver and tasks have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Any, NamedTuple

from kafka._runtime.network_thread import complete, run_here
from kafka._runtime.tasks import deferred
from kafka.client_async import KafkaClient
from kafka.config import resolve
from kafka.errors import KafkaError, KafkaTimeoutError
from kafka.producer.kafka import KafkaProducer
from kafka.producer.transaction_coordinator import CoordinatorClient, end_transaction
from kafka.producer.transaction_protocol import Transaction, Who
from kafka.structs import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition

__all__ = ["HandoverProducer", "OpenTransaction", "end_transactions"]

_ID = "purekafka"


class OpenTransaction(NamedTuple):
    """A transaction that is written and open, for another producer to end."""

    transactional_id: str
    producer_id: int
    epoch: int
    is_v2: bool
    """Whether it runs by the second version of the protocol (KIP-890)."""


class HandoverProducer(KafkaProducer):
    """A producer that changes its transactional_id. See the head of this module.

    >>> from kafka.broker import Broker
    >>> with Broker(topics=["events"]) as broker:
    ...     with HandoverProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
    ...         for name in ("task-0", "task-1"):
    ...             producer.take_over(name)
    ...             with producer.transaction():
    ...                 _ = producer.send("events", name.encode())
    ...     [record.value for record in broker.records("events", committed=True)]
    [b'task-0', b'task-1']
    """

    def __init__(self, **configs: Any) -> None:
        self._is_left_open = False
        # Until the first task sets its id.
        super().__init__(**{"transactional_id": _ID, **configs})

    def take_over(self, transactional_id: str, timeout: float | None = None) -> None:
        """Use an id, which may be the present one: its former producer is fenced, its open transaction aborted.

        In place of `init_transactions()`, and between any two transactions. Waits for `timeout` seconds, `max_block_ms`
        by default, then raises `KafkaTimeoutError`; `init_transactions()` waits for the rest.
        """
        work = partial(self._calls.transactions.take_over, transactional_id)
        complete(self._calls.transact(work, "take_over()", "txn-init", timeout))

    def commit_text(self, partition: TopicPartition, text: str, group_id: str, timeout: float | None = None) -> None:
        """Have the transaction commit a text for a partition in a group which reads nothing.

        The offset beside it is -1, which clients take for none, and monitors not for lag. Waits as
        `send_offsets_to_transaction()` does, which does not take a negative offset.
        """
        offsets = {partition: OffsetAndMetadata(-1, text, -1)}
        work = partial(self._calls.transactions.send_offsets, offsets, ConsumerGroupMetadata(group_id))
        complete(self._calls.transact(work, "commit_text()", "txn-send-offsets", timeout))

    def leave_open(self) -> OpenTransaction:
        """Write all of the transaction and leave it open; close this producer then.

        Raises `AbortableTransactionError` if a record or an offset could not be written.
        """
        work = deferred(self._calls.transactions.leave_open)
        deadline = self._core.now() + self._calls.max_block
        who, is_v2 = complete(self._driver.run(work, deadline, "leave_open()"))
        self._is_left_open = True
        return OpenTransaction(*who, is_v2)

    def close(self, timeout: float | None = None, null_logger: bool = False) -> None:
        """Close as every producer does, but do not abort a transaction that was left open."""
        super().close(0 if self._is_left_open else timeout, null_logger)


def end_transactions(configs: Mapping[str, Any], opened: Sequence[OpenTransaction], *, committed: bool) -> None:
    """Commit or abort transactions that producers have left open; each is tried, the first error raised.

    `configs` are options of a producer. Waits for `max_block_ms` at most.

    >>> from kafka.broker import Broker
    >>> with Broker(topics=["events"]) as broker:
    ...     with HandoverProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
    ...         producer.take_over("task-0")
    ...         producer.begin_transaction()
    ...         sent = producer.send("events", b"record")
    ...         opened = producer.leave_open()
    ...     end_transactions({"bootstrap_servers": broker.bootstrap_servers}, [opened], committed=True)
    ...     [record.value for record in broker.records("events", committed=True)]
    [b'record']
    """
    if not opened:
        return
    config = resolve("producer", configs)
    with closing(KafkaClient(config=config)) as client:
        coordinator = CoordinatorClient(client.core, config)
        loop, limit = client.core.loop, config.seconds("max_block_ms")
        deadline = loop.time() + limit
        try:
            run_here(loop, loop.spawn(_end_all(coordinator, opened, committed), "ending transactions"), deadline)
        except KafkaTimeoutError as error:
            if loop.time() < deadline:  # of a request
                raise
            raise coordinator.timeout_error("ending transactions", limit) from error


async def _end_all(coordinator: CoordinatorClient, opened: Sequence[OpenTransaction], committed: bool) -> None:
    loop = coordinator.client.loop
    tasks = [loop.spawn(_end(coordinator, each, committed), "end a transaction") for each in opened]
    first: KafkaError | None = None
    for task in tasks:
        try:
            await task
        except KafkaError as error:  # noqa: PERF203 - each may fail
            first = first or error
    if first is not None:
        raise first


async def _end(coordinator: CoordinatorClient, opened: OpenTransaction, committed: bool) -> None:
    who = Who(opened.transactional_id, opened.producer_id, opened.epoch)
    try:
        await end_transaction(coordinator, who, Transaction(0.0, is_v2=opened.is_v2), committed=committed)
    except KafkaError as error:
        raise type(error)(f"the transaction {who.transactional_id!r} was not ended: {error}") from error
