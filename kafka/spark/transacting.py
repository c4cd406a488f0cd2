"""The transactional producer of a Spark worker process: one connection set for the tasks of all numbers.

Each task has a transactional id of its own. Here a producer that is between two transactions goes on under another id,
or under the same once more: it asks the coordinator for that id anew, as a producer that was just made would, which
locks out whoever had it and ends what they left open. So nothing that a process has kept makes a task less fenced, and
a task that comes to a worker costs no new connections.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafka.errors import IllegalStateError
from kafka.producer import KafkaProducer
from kafka.producer.asking import Asker
from kafka.producer.transaction_states import State
from kafka.spark.connections import Kept
from kafka.spark.marks import Mark, read_mark, read_marks, task_numbers

if TYPE_CHECKING:
    from kafka.structs import TopicPartition

__all__ = ["TIMEOUT_MS", "Held", "Transactor", "transactors"]

#: As long as brokers allow unless they are told otherwise: a transaction is open while its task runs.
TIMEOUT_MS: Final = 900_000
_CLOSE_TIMEOUT: Final = 10.0


class Held(NamedTuple):
    """A transaction that is whole and open, for somebody else to end."""

    transactional_id: str
    producer_id: int
    epoch: int
    is_v2: bool
    """Whether it runs by the second version of the protocol (KIP-890)."""


class Transactor:
    """See the head of this file."""

    def __init__(self, configs: Mapping[str, Any]) -> None:
        # The id is a task's when there is one.
        self.producer = KafkaProducer(
            **{"transaction_timeout_ms": TIMEOUT_MS, **configs, "transactional_id": "purekafka"}
        )
        self._core = self.producer._core  # noqa: SLF001 - of the same library; no face changes its id
        self._driver = self.producer._driver  # noqa: SLF001
        found = self._core.transactions
        assert found is not None
        self._transactions = found
        self._asker = Asker(self._core.client, self._core.config)
        self._is_held = False
        self._known: tuple[object, bool] | None = None
        """A question, and whether another run has written that batch."""

    def take_over(self, transactional_id: str) -> None:
        """Go on under an id: whoever had it is locked out, what they left open is aborted."""
        self._transactions.identity.transactional_id = transactional_id
        if self._transactions.state is State.UNINITIALIZED:
            self.producer.init_transactions()
        else:
            self._run(self._obtain(), "taking over a transactional id")

    async def _obtain(self) -> None:
        await self._transactions.ready()
        if self._transactions.state is not State.READY:
            raise IllegalStateError(f"the producer is {self._transactions.state.value}")
        await self._transactions.identity.obtain(lambda: not self._core.closed)

    def mark(self, where: TopicPartition) -> Mark | None:
        """Return the mark of the task whose id this is."""
        name = self._transactions.identity.transactional_id
        found: Mark | None = self._run(read_mark(self._asker, name, where), f"reading the mark of {name}")
        return found

    def others_wrote(self, family: str, where: TopicPartition, batch: int, run: str | None) -> bool:
        """Whether another run has written a batch, or some of it; it is looked up once for all tasks of a process."""
        asked = (family, where, batch, run)
        if self._known is None or self._known[0] != asked:
            answer = self._run(self._others_wrote(*asked), f"looking for what was written of batch {batch}")
            self._known = asked, bool(answer)
        return self._known[1]

    async def _others_wrote(self, family: str, where: TopicPartition, batch: int, run: str | None) -> bool:
        client = self._core.client
        marks = await read_marks(client, self._asker, family, await task_numbers(client, family), where)
        return any(mark.next_batch > batch and (run is None or mark.run != run) for mark in marks.values())

    def hold(self) -> Held:
        """Leave the transaction open, with all that is in it; this producer ends with that."""
        self._is_held = True
        who = self._transactions.identity.who
        return Held(*who, self._transactions.current.is_v2)

    def close(self) -> None:
        """Close the producer, which aborts its transaction unless somebody else is to end it."""
        self.producer.close(timeout=0 if self._is_held else _CLOSE_TIMEOUT)

    def _run(self, work: Any, what: str) -> Any:
        return self._driver.run(work, self._core.now() + self._core.config.seconds("max_block_ms"), what)


transactors: Final = Kept(Transactor)
