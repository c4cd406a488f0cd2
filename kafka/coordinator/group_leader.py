"""The work of a classic group's leader: it asks an assignor, checks the result, and notices when metadata changes it.

The assignors of this library run on the loop; an application's assignor runs in the application's thread or task.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from kafka._text import printable
from kafka.coordinator.assignors import is_builtin
from kafka.coordinator.protocol import ConsumerProtocolMemberMetadata
from kafka.coordinator.rebalance import CallKind, RebalanceCall, Rendezvous
from kafka.errors import KafkaError, KafkaProtocolError, RejoinNeededError
from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from kafka.cluster import ClusterMetadata
    from kafka.coordinator.assignors.abstract import Assignor, Members
    from kafka.coordinator.protocol import ConsumerProtocolMemberAssignment
    from kafka.protocol.group import JoinGroupResponse

log = logging.getLogger(__name__)

MetadataSnapshot = Mapping[str, "Sequence[frozenset[str]] | None"]
"""Topic -> the racks of each of its partitions; None for an unknown topic."""


def read_members(
    members: Iterable[JoinGroupResponse.JoinGroupResponseMember],
) -> dict[str, ConsumerProtocolMemberMetadata]:
    """Decode the members' subscriptions. A member with an invalid one gets nothing; the group continues."""
    found = {}
    for member in members:
        try:
            found[member.member_id] = ConsumerProtocolMemberMetadata.decode(member.metadata, member.group_instance_id)
        except KafkaProtocolError as error:  # noqa: PERF203 - a dozen members, once in a rebalance
            log.warning(
                "Member %s sent a subscription that cannot be read, so it is assigned nothing: %s",
                printable(member.member_id),
                error,
            )
            found[member.member_id] = ConsumerProtocolMemberMetadata(0, [], b"")
    return found


def topics_of(members: Mapping[str, ConsumerProtocolMemberMetadata]) -> frozenset[str]:
    """Return the topics of all members."""
    return frozenset(topic for member in members.values() for topic in member.subscription)


def assign(
    assignor: Assignor, cluster: ClusterMetadata, members: Members, *, cooperative: bool
) -> Mapping[str, ConsumerProtocolMemberAssignment]:
    """Call the assignor, which may be the application's, and check its result."""
    try:
        found = assignor.assign(cluster, members)
    except Exception as error:
        raise KafkaError(f"the assignor {assignor.name!r} failed: {error!r}") from error
    unknown = found.keys() - members.keys()
    if unknown:
        raise KafkaError(f"the assignor {assignor.name!r} assigned partitions to {unknown}, which are not members")
    if cooperative:
        _check_cooperative(assignor, members, found)
    return found


def _check_cooperative(
    assignor: Assignor, members: Members, found: Mapping[str, ConsumerProtocolMemberAssignment]
) -> None:
    """Raise if a partition is assigned to a member while another still owns it (KIP-429)."""
    owners: dict[TopicPartition, set[str]] = {}
    for member, metadata in members.items():
        for partition in metadata.owned_partitions:
            owners.setdefault(partition, set()).add(member)
    for member, assignment in found.items():
        for partition in assignment.partitions():
            if owners.get(partition, {member}).isdisjoint({member}):
                raise KafkaError(
                    f"the assignor {assignor.name!r} gave {partition.topic}-{partition.partition} to {member} "
                    f"while {owners[partition]} still has it"
                )


def take_snapshot(cluster: ClusterMetadata, topics: Collection[str]) -> MetadataSnapshot:
    """Return the metadata that an assignment depends on: partitions, and the racks of their replicas."""
    from kafka.coordinator.assignors._racks import partition_racks

    numbers = {topic: cluster.partitions_for_topic(topic) for topic in topics}
    partitions = [TopicPartition(topic, number) for topic in topics for number in sorted(numbers[topic] or ())]
    racks = iter(partition_racks(cluster, partitions).values())
    return {topic: None if found is None else tuple(islice(racks, len(found))) for topic, found in numbers.items()}


T = TypeVar("T")


class AssignorCalls:
    """The assignors of one consumer, as its coordinator calls them."""

    def __init__(self, assignors: Sequence[Assignor], rendezvous: Rendezvous) -> None:
        self._assignors = assignors
        self._rendezvous = rendezvous

    def named(self, name: str) -> Assignor:
        """Return the assignor that the group chose."""
        for assignor in self._assignors:
            if assignor.name == name:
                return assignor
        raise KafkaError(f"the group chose the assignor {name!r}, which this member did not offer")

    async def tell(self, assignor: Assignor, assignment: object, generation: int) -> None:
        """Pass the assignment of this member to an assignor; both methods may be missing."""
        hears = [getattr(assignor, name, None) for name in ("on_assignment", "on_generation_assignment")]
        facts = (assignment, generation)

        def action() -> None:
            for method, fact in zip(hears, facts, strict=True):
                if method is not None:
                    method(fact)

        if any(hears):
            await self.ask(assignor, action)

    async def ask(self, assignor: Assignor | None, action: Callable[[], T]) -> T:
        """Call an assignor, or with None all of them. Errors are raised as a KafkaError that names it."""
        assignors = self._assignors if assignor is None else [assignor]
        names = ", ".join(repr(assignor.name) for assignor in assignors if not is_builtin(assignor))
        if not names:
            return action()
        results: list[T] = []
        errors: list[Exception] = []

        def run() -> None:
            try:
                results.append(action())
            except Exception as error:  # poll() raises it, and the member stops, as with any fatal error
                errors.append(error)

        await self._rendezvous.ask(RebalanceCall(CallKind.ASSIGNOR, (), run))
        if errors:
            error = errors[0]
            raise (
                error if isinstance(error, KafkaError) else KafkaError(f"the assignor {names} failed: {error!r}")
            ) from error
        if not results:
            raise RejoinNeededError("the application unsubscribed before its assignor was asked")
        return results[0]
