"""The transactional producer of a Spark worker process: one connection set for the tasks of all numbers.

Each task has a transactional id of its own, which the producer takes over when the task begins, as one that was just
made would: that locks out whoever had it and ends what they left open. So nothing that a process has kept makes a task
less fenced, and a task that comes to a worker costs no new connections.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from kafka.producer.transaction_handover import HandoverProducer
from kafka.spark.client_cache import ClientCache
from kafka.spark.exactly_once.markers import Marker, read_marker, read_markers, task_numbers

if TYPE_CHECKING:
    from kafka._core.client import Client
    from kafka.producer.transaction_coordinator import CoordinatorClient
    from kafka.structs import TopicPartition

__all__ = ["TIMEOUT_MS", "Transactor", "transactors"]


#: As long as brokers allow unless they are told otherwise: a transaction is open while its task runs.
TIMEOUT_MS: Final = 900_000
_CLOSE_TIMEOUT: Final = 10.0


class Transactor:
    """A producer, and what it knows of the markers."""

    def __init__(self, configs: Mapping[str, Any]) -> None:
        self.producer = HandoverProducer(**{"transaction_timeout_ms": TIMEOUT_MS, **configs})
        self._known: tuple[object, bool] | None = None
        """A question, and whether another run has written that batch."""

    def marker(self, name: str, where: TopicPartition) -> Marker | None:
        """Return the marker of a task, by its transactional id."""
        return self.producer.request(lambda _, asker: read_marker(asker, name, where), f"reading the marker of {name}")

    def others_wrote(self, id_prefix: str, where: TopicPartition, batch: int, run: str | None) -> bool:
        """Whether another run has written a batch, or some of it; it is looked up once for all tasks of a process."""
        asked = (id_prefix, where, batch, run)

        async def look(client: Client, asker: CoordinatorClient) -> bool:
            markers = await read_markers(client, asker, id_prefix, await task_numbers(client, id_prefix), where)
            return any(marker.next_batch > batch and (run is None or marker.run != run) for marker in markers.values())

        if self._known is None or self._known[0] != asked:
            self._known = asked, self.producer.request(look, f"looking for what was written of batch {batch}")
        return self._known[1]

    def close(self) -> None:
        """Close the producer, which aborts its transaction unless somebody else is to end it."""
        self.producer.close(timeout=_CLOSE_TIMEOUT)


transactors: Final = ClientCache(Transactor)
