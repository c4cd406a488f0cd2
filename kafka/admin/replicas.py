"""Replicas of partitions: elect leaders, and move replicas to other brokers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import ClassVar, Final

from kafka.admin.calls import Calls, call
from kafka.admin.partitions import as_partition, as_partitions, by_topic
from kafka.admin.results import ItemResult, Result, Results, error_of, raise_failed, raise_first
from kafka.errors import Code, IllegalArgumentError, KafkaError
from kafka.protocol.admin import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ListPartitionReassignmentsRequest,
)
from kafka.structs import TopicPartition

_UNCLEAN_SINCE: Final = 1


class ElectionType(IntEnum):
    """Which replica ``elect_leaders()`` takes: the first one, or with UNCLEAN any, which may lose records."""

    PREFERRED = 0
    UNCLEAN = 1


class ElectedPartition(ItemResult):
    """Whether a leader was elected; a partition whose leader is the wanted one already is `ok`."""

    __slots__ = ("topic",)
    _item = "partition {0.topic}-{0.partition_id}"
    _aliases: ClassVar = {"partition": "partition_id"}
    partition_id: int
    topic: str

    @property
    def ok(self) -> bool:
        """Whether the partition has the wanted leader."""
        return self.error_code in {0, Code.ELECTION_NOT_NEEDED}

    @property
    def error(self) -> KafkaError | None:
        """The error of the partition, None if it has the wanted leader."""
        return None if self.ok else super().error


class ElectLeadersResult(Result):
    """The outcome for each partition, by topic, as the response has them, and in one list as `partitions`."""

    __slots__ = ("partitions", "throttle_time_ms")
    _aliases: ClassVar = {"throttle_time_ms": "throttle_time_ms"}
    error_code: int
    replica_election_results: list[Result]
    partitions: Results[ElectedPartition]
    throttle_time_ms: int


class Reassignment(Result):
    """The replicas of a partition while they move: all of them, the new ones, and the ones that will go."""

    __slots__ = ()
    replicas: list[int]
    adding_replicas: list[int]
    removing_replicas: list[int]


class Replicas(Calls):
    """The calls about replicas and leaders."""

    @call
    async def elect_leaders(
        self,
        election_type: ElectionType | str | int,
        topic_partitions: Mapping[str, Iterable[int]] | Iterable[TopicPartition] | None = None,
        timeout_ms: float | None = None,
        raise_errors: bool = True,
    ) -> ElectLeadersResult:
        """Elect the preferred leaders of partitions, of all partitions for None (Kafka 2.2), or unclean ones (2.4).

        A partition that has the wanted leader already is not an error.

        >>> from kafka import KafkaAdminClient
        >>> from kafka.broker import Broker
        >>> with Broker(topics=["events"]) as broker:
        ...     with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        ...         admin.elect_leaders("preferred", {"events": [0]}).partitions.ok
        True
        """
        deadline = self._core.deadline(timeout_ms)
        kind = _election_type(election_type)
        wanted = None if topic_partitions is None else as_partitions(topic_partitions)
        request_type = ElectLeadersRequest
        await self._core.require(deadline, request_type.API_KEY, 0, "elect_leaders()", "2.2")
        more: dict[str, int] = {}
        if await self._core.version_of(request_type(), deadline) >= _UNCLEAN_SINCE:
            more["election_type"] = int(kind)
        elif kind is ElectionType.UNCLEAN:
            raise self._core.unsupported("an unclean election", "2.4")
        async for attempt in self._core.attempts(deadline, "elect_leaders()"):
            with attempt:
                request = request_type(
                    topic_partitions=None if wanted is None else by_topic(wanted, "topic", "partitions"),
                    timeout_ms=self._core.left(deadline),
                    **more,
                )
                response = await self._core.client.request(request, deadline=attempt.deadline)
                attempt.check(response.error_code)
        found = _elections(response)
        if raise_errors:
            raise_failed(found.partitions, found)
        return found

    perform_leader_election = elect_leaders  # as in kafka-python 2

    @call
    async def alter_partition_reassignments(
        self,
        reassignments: Mapping[TopicPartition, Sequence[int] | None],
        timeout_ms: float | None = None,
        *,
        raise_errors: bool = True,
    ) -> dict[TopicPartition, type[KafkaError] | None]:
        """Move the replicas of partitions to brokers, or cancel the move for None (Kafka 2.4).

        The first broker is the preferred leader. Returns None or the error class for each partition; the first error is
        raised, with all of them in ``error.results``, unless `raise_errors` is false. Brokers copy the records after
        the call has returned: `list_partition_reassignments` has what is still under way.
        """
        deadline = self._core.deadline(timeout_ms)
        wanted = {as_partition(partition): _brokers(partition, brokers) for partition, brokers in reassignments.items()}
        kind = AlterPartitionReassignmentsRequest
        await self._core.require(deadline, kind.API_KEY, 0, "alter_partition_reassignments()", "2.4")
        request = kind(
            timeout_ms=self._core.left(deadline),
            topics=by_topic(
                wanted,
                "name",
                "partitions",
                lambda one: {"partition_index": one.partition, "replicas": wanted[one]},
            ),
        )
        what = "alter_partition_reassignments()"
        response = await self._core.ask(request, deadline, what, checked=True)
        errors = {
            TopicPartition(topic.name, entry.partition_index): error_of(
                entry.error_code, f"{what}: partition {topic.name}-{entry.partition_index}", entry.error_message
            )
            for topic in response.responses
            for entry in topic.partitions
        }
        found = {partition: None if error is None else type(error) for partition, error in errors.items()}
        if raise_errors:
            raise_first(errors.values(), found)
        return found

    @call
    async def list_partition_reassignments(
        self,
        topic_partitions: Mapping[str, Iterable[int]] | Iterable[TopicPartition] | None = None,
        timeout_ms: float | None = None,
    ) -> dict[TopicPartition, Reassignment]:
        """Return which of these partitions, of all for None, have replicas on the move (Kafka 2.4)."""
        deadline = self._core.deadline(timeout_ms)
        wanted = None if topic_partitions is None else as_partitions(topic_partitions)
        kind = ListPartitionReassignmentsRequest
        await self._core.require(deadline, kind.API_KEY, 0, "list_partition_reassignments()", "2.4")
        request = kind(
            timeout_ms=self._core.left(deadline),
            topics=None if wanted is None else by_topic(wanted, "name", "partition_indexes"),
        )
        response = await self._core.ask(request, deadline, "list_partition_reassignments()", checked=True)
        return {
            TopicPartition(topic.name, entry.partition_index): Reassignment.of_entry(entry)
            for topic in response.topics
            for entry in topic.partitions
        }


def _election_type(given: object) -> ElectionType:
    if isinstance(given, str) and given.upper() in ElectionType.__members__:
        return ElectionType[given.upper()]
    if isinstance(given, int) and given in list(ElectionType):
        return ElectionType(given)
    raise IllegalArgumentError(f"election_type must be PREFERRED or UNCLEAN, not {given!r}")


def _brokers(partition: object, brokers: Sequence[int] | None) -> list[int] | None:
    if brokers is None:
        return None
    found = list(brokers)
    if not found or [type(one) for one in found] != [int] * len(found) or len(set(found)) < len(found):
        raise IllegalArgumentError(f"{partition} must be given the ids of different brokers, or None, not {brokers!r}")
    return found


def _elections(response: ElectLeadersResponse) -> ElectLeadersResult:
    topics = []
    partitions: Results[ElectedPartition] = Results()
    for topic in response.replica_election_results:
        outcomes = []
        for entry in topic.partition_result:
            outcome = ElectedPartition.of_entry(entry)
            outcome.topic = topic.topic
            outcomes.append(outcome)
        partitions += outcomes
        topics.append(Result(topic=topic.topic, partition_result=outcomes))
    found = ElectLeadersResult(error_code=response.error_code, replica_election_results=topics)
    found.partitions, found.throttle_time_ms = partitions, response.throttle_time_ms
    return found
