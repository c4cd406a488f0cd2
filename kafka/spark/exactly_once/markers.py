"""The markers of an exactly-once sink: how far each of its tasks has written, as committed offsets of a group.

A task's group has the name of its transactional id. The offset is the number of the batch after the one that is
written; the rest is in the offset's metadata. What was committed before markers had metadata is read as a number alone.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from kafka._runtime.timers import Backoff
from kafka.cluster import GROUP
from kafka.coordinator.offset_requests import Identity, fetch_request, fetched_entries, fetched_group_code
from kafka.errors import KafkaError, for_code
from kafka.producer.transaction_coordinator import CoordinatorRequest
from kafka.producer.transaction_protocol import Step
from kafka.protocol.admin import ListGroupsRequest
from kafka.protocol.commit import OffsetFetchRequest
from kafka.structs import OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from kafka._core.client import Client
    from kafka.producer.transaction_coordinator import CoordinatorClient

__all__ = ["Marker", "read_marker", "read_markers", "task_numbers"]


log = logging.getLogger(__name__)

# From OffsetFetch 10 on topics go by ids.
_LAST_WITH_NAMES = 9


class Marker(NamedTuple):
    """How far a task has written.

    >>> Marker.of(Marker(8, rows=100, run="r").offset())
    Marker(next_batch=8, rows=100, run='r')
    >>> Marker.of(OffsetAndMetadata(8, "", -1))
    Marker(next_batch=8, rows=None, run=None)
    """

    next_batch: int
    rows: int | None = None
    """How many rows of the batch before it were this task's; None is not known."""
    run: str | None = None
    """The run of the query that wrote them: from one start to its end."""

    @classmethod
    def of(cls, offset: OffsetAndMetadata) -> Marker:
        """Read it from a committed offset."""
        try:
            said = json.loads(offset.metadata or "")
            return cls(offset.offset, int(said["rows"]), said["run"])
        except (KeyError, TypeError, ValueError):
            return cls(offset.offset)

    def offset(self) -> OffsetAndMetadata:
        """Return what is to be committed."""
        return OffsetAndMetadata(self.next_batch, json.dumps({"rows": self.rows, "run": self.run}), -1)


async def read_marker(
    asker: CoordinatorClient, name: str, where: TopicPartition, *, stable: bool = True
) -> Marker | None:
    """Return the marker of a task, None if it has none.

    With ``stable`` a transaction that has one and is not over yet is waited for.
    """
    response = await asker.send(
        CoordinatorRequest(
            Step.OFFSETS,
            GROUP,
            name,
            OffsetFetchRequest,
            lambda version: fetch_request(version, Identity(name), [where], lambda _: None, stable=stable),
            _error,
            newest=_LAST_WITH_NAMES,
        )
    )
    found = [offset for _, _, offset in _entries(response) if offset is not None]
    return Marker.of(found[0]) if found else None


async def read_markers(
    client: Client, asker: CoordinatorClient, id_prefix: str, numbers: Iterable[int], where: TopicPartition
) -> dict[int, Marker]:
    """Return the markers that tasks with these numbers have; of what is under way only the markers before."""
    reads = {number: read_marker(asker, f"{id_prefix}{number}", where, stable=False) for number in numbers}
    tasks = {number: client.loop.spawn(read, "read a marker") for number, read in reads.items()}
    found = {number: await task for number, task in tasks.items()}
    return {number: marker for number, marker in found.items() if marker is not None}


async def task_numbers(client: Client, id_prefix: str) -> set[int]:
    """Return the numbers of all tasks that have ever left a marker, by the names of the groups that the cluster has."""
    config = client.config
    backoff = Backoff(config.seconds("retry_backoff_ms"), config.seconds("retry_backoff_max_ms"), client.loop.rng)
    failures = 0
    while True:
        try:
            if failures:  # a broker may be gone, and what it had with others
                await client.refresh(client.loop.time() + client.settings.request_timeout)
            return await _listed(client, id_prefix)
        except KafkaError as error:
            if not error.retriable:
                raise
            log.warning("Listing the groups of tasks failed, asking again: %s", error)
        failures += 1
        await client.loop.sleep(backoff.delay(failures))


async def _listed(client: Client, id_prefix: str) -> set[int]:
    found: set[int] = set()
    for broker in tuple(client.cluster.brokers()):
        deadline = client.loop.time() + client.settings.request_timeout
        response = await client.request(ListGroupsRequest(), node_id=broker.nodeId, deadline=deadline)
        if response.error_code:
            error = for_code(response.error_code)
            raise error(f"broker {broker.nodeId} does not list its groups")
        names = (each.group_id for each in response.groups)
        ends = (name.removeprefix(id_prefix) for name in names if name.startswith(id_prefix))
        found |= {int(end) for end in ends if end.isdecimal()}
    return found


def _entries(response: Any) -> Any:
    return fetched_entries(response, lambda _: None)


def _error(response: Any) -> KafkaError | None:
    codes = [fetched_group_code(response), *(code for _, code, _ in _entries(response))]
    return next((for_code(code)() for code in codes if code), None)
