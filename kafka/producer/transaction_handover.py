"""A producer that takes over one transactional id after another, and may leave a transaction for another to end.

For workers that run many tasks, each of which writes under a separate id (`kafka.spark`): a task costs a worker no new
connections, and is fenced as if each task had a new producer.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from kafka._runtime.application import complete
from kafka.errors import KafkaTimeoutError
from kafka.producer.kafka import KafkaProducer
from kafka.producer.transaction_coordinator import CoordinatorClient

if TYPE_CHECKING:
    from kafka._core.client import Client

__all__ = ["OpenTransaction", "HandoverProducer"]

T = TypeVar("T")

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
        # Not the one of the transactions, whose problem() is about them.
        self._coordinator = CoordinatorClient(self._core.client, self._core.config)

    def take_over(self, transactional_id: str, timeout: float | None = None) -> None:
        """Use an id, which may be the present one: its former producer is fenced, its open transaction aborted.

        In place of `init_transactions()`, and between any two transactions. Waits for `timeout` seconds, `max_block_ms`
        by default, then raises `KafkaTimeoutError`; `init_transactions()` waits for the rest.
        """
        work = self._calls.transactions.take_over(transactional_id)
        complete(self._calls.transact(work, "take_over()", "txn-init", timeout))

    def leave_open(self) -> OpenTransaction:
        """Write all of the transaction and leave it open; close this producer then.

        Raises `AbortableTransactionError` if a record or an offset could not be written.
        """
        work = self._calls.transactions.leave_open()
        who, is_v2 = self._driver.run(work, self._core.now() + self._calls.max_block, "leave_open()")
        self._is_left_open = True
        return OpenTransaction(*who, is_v2)

    def request(self, work: Callable[[Client, CoordinatorClient], Coroutine[Any, Any, T]], what: str) -> T:
        """Run requests over the producer's connections, for `max_block_ms` at most."""
        self._calls.check_open()
        seconds = self._calls.max_block
        try:
            return self._driver.run(work(self._core.client, self._coordinator), self._core.now() + seconds, what)
        except KafkaTimeoutError as error:
            raise self._coordinator.timeout_error(what, seconds) from error

    def close(self, timeout: float | None = None, null_logger: bool = False) -> None:
        """Close as every producer does, but do not abort a transaction that was left open."""
        super().close(0 if self._is_left_open else timeout, null_logger)
