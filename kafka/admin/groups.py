"""Groups: list and delete them; list, alter and delete their committed offsets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from kafka.admin.config_resource import Outcome
from kafka.admin.core import AdminCore
from kafka.admin.results import Result
from kafka.cluster import GROUP
from kafka.errors import (
    CoordinatorLoadInProgressError,
    IllegalArgumentError,
    InvalidCoordinatorError,
    KafkaError,
    NoError,
    for_code,
)
from kafka.protocol.admin import DeleteGroupsRequest, ListGroupsRequest
from kafka.protocol.commit import OffsetCommitRequest, OffsetDeleteRequest, OffsetFetchRequest
from kafka.structs import OffsetAndMetadata, TopicPartition

__all__ = ["Groups", "ListedGroup", "ListedGroups", "as_groups", "as_offsets", "as_partitions"]

_STATES_SINCE: Final = 4
_TYPES_SINCE: Final = 5
_MANY_GROUPS_SINCE: Final = 8
_ALL_PARTITIONS_SINCE: Final = 2
# Newer versions name topics by id, which says nothing about a topic that was deleted.
_NEWEST_BY_NAME: Final = 9

# The coordinator is another broker, or is not ready; what other codes say is final.
_MOVED: Final = (InvalidCoordinatorError, CoordinatorLoadInProgressError)

Offsets = dict[TopicPartition, OffsetAndMetadata]


class ListedGroup(Result):
    """A group; its state and type are empty where the broker does not tell (before 2.6 and 3.8)."""

    __slots__ = ()
    group_id: str
    protocol_type: str
    group_state: str
    group_type: str


class ListedGroups(list[ListedGroup]):
    """The groups of the brokers that answered; `failed` has the error of each broker that did not."""

    __slots__ = ("failed",)

    def __init__(self, groups: Iterable[ListedGroup], failed: Mapping[int, KafkaError]) -> None:
        super().__init__(groups)
        self.failed: dict[int, KafkaError] = dict(failed)

    @property
    def ok(self) -> bool:
        """Whether every broker answered."""
        return not self.failed


def as_groups(groups: Any) -> list[str]:
    """Return the names of groups, each once.

    >>> as_groups("g")
    Traceback (most recent call last):
    TypeError: group_ids must be a list of names, not 'g'; for one group, a list with one element
    """
    if isinstance(groups, str):
        raise TypeError(f"group_ids must be a list of names, not {groups!r}; for one group, a list with one element")
    return list(dict.fromkeys(_group(group) for group in groups))


def _group(group: Any) -> str:
    if not isinstance(group, str):
        raise TypeError(f"the id of a group must be a str, not {group!r}")
    return group


def as_partitions(partitions: Any) -> list[TopicPartition]:
    """Return partitions, from `TopicPartition` objects, tuples, or a dict from topic to numbers.

    >>> as_partitions({"events": [0, 1]})
    [TopicPartition(topic='events', partition=0), TopicPartition(topic='events', partition=1)]
    """
    if isinstance(partitions, Mapping):
        partitions = [(topic, number) for topic, numbers in partitions.items() for number in numbers]
    found = []
    for partition in partitions:
        if not isinstance(partition, tuple) or [type(part) for part in partition] != [str, int]:
            raise TypeError(f"partitions must be TopicPartition objects, not {partition!r}")
        found.append(TopicPartition(*partition))
    return list(dict.fromkeys(found))


def as_offsets(offsets: Any) -> Offsets:
    """Return offsets to commit, from a dict whose values are `OffsetAndMetadata` or integers."""
    if not isinstance(offsets, Mapping):
        raise TypeError(f"offsets must be a dict from TopicPartition to OffsetAndMetadata, not {offsets!r}")
    found = {}
    for partition, offset in zip(as_partitions(list(offsets)), offsets.values(), strict=True):
        if isinstance(offset, int) and not isinstance(offset, bool):
            offset = OffsetAndMetadata(offset)  # noqa: PLW2901
        if not isinstance(offset, OffsetAndMetadata):
            raise TypeError(f"the offset of {partition} must be an OffsetAndMetadata or an int, not {offset!r}")
        if offset.offset < 0:
            raise IllegalArgumentError(f"the offset of {partition} must not be negative, not {offset.offset}")
        found[partition] = offset
    return found


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, number in partitions:
        found.setdefault(topic, []).append(number)
    return found


class Groups:
    """The calls about groups, as coroutines."""

    def __init__(self, core: AdminCore) -> None:
        self._core = core

    async def list_all(
        self, brokers: list[int] | None, states: list[str], types: list[str], deadline: float, *, raise_errors: bool
    ) -> ListedGroups:
        """List the groups that the brokers coordinate."""
        version = await self._core.version_of(ListGroupsRequest(), deadline)
        if states and version < _STATES_SINCE:
            raise self._core.unsupported("states_filter", "2.6")
        if types and version < _TYPES_SINCE:
            raise self._core.unsupported("types_filter", "3.8")
        nodes = await self._core.brokers(deadline) if brokers is None else brokers

        async def ask(node_id: int) -> list[ListedGroup] | KafkaError:
            response: Any = None
            try:
                async for attempt in self._core.client.attempts(deadline, "list_groups()"):
                    with attempt:
                        request = ListGroupsRequest(states_filter=states, types_filter=types)
                        response = await self._core.client.request(request, node_id=node_id, deadline=attempt.deadline)
                        if response.error_code:
                            raise for_code(response.error_code)(f"the groups of broker {node_id}")
            except KafkaError as error:
                return error
            return [
                ListedGroup(
                    group_id=group.group_id,
                    protocol_type=group.protocol_type,
                    group_state=group.group_state,
                    group_type=group.group_type,
                )
                for group in response.groups
            ]

        answers = dict(zip(nodes, await self._core.gather([ask(node) for node in nodes]), strict=True))
        failed = {node: answer for node, answer in answers.items() if isinstance(answer, KafkaError)}
        # Both brokers may list a group whose coordinator moves meanwhile.
        groups = {
            group.group_id: group
            for answer in answers.values()
            if not isinstance(answer, KafkaError)
            for group in answer
        }
        found = ListedGroups(groups.values(), failed)
        if failed and raise_errors:
            error = next(iter(failed.values()))
            error.results = found
            raise error
        return found

    async def delete(self, groups: list[str], deadline: float, node_id: int | None) -> dict[str, Outcome]:
        """Delete groups without members."""

        async def delete(group: str) -> Outcome:
            try:
                await self.ask(
                    group,
                    lambda: DeleteGroupsRequest(groups_names=[group]),
                    lambda response: response.results[0].error_code,
                    deadline,
                    node_id,
                )
            except KafkaError as error:
                return Outcome(error)
            return Outcome(None)

        outcomes = await self._core.gather([delete(group) for group in groups])
        return dict(zip(groups, outcomes, strict=True))

    async def offsets(
        self, wanted: Mapping[str, list[TopicPartition] | None], deadline: float, node_id: int | None = None
    ) -> dict[str, Offsets]:
        """Return the committed offsets of groups, of all partitions that have one for None."""
        found = await self._core.gather(
            [self._offsets(group, partitions, deadline, node_id) for group, partitions in wanted.items()]
        )
        return dict(zip(wanted, found, strict=True))

    async def _offsets(
        self, group: str, partitions: list[TopicPartition] | None, deadline: float, node_id: int | None
    ) -> Offsets:
        version = min(await self._core.version_of(OffsetFetchRequest(), deadline), _NEWEST_BY_NAME)
        if partitions is None and version < _ALL_PARTITIONS_SINCE:
            raise self._core.unsupported("listing the offsets of all partitions", "0.10.2")
        topics = None
        if partitions is not None:
            topics = [{"name": topic, "partition_indexes": found} for topic, found in _by_topic(partitions).items()]
        kind: Any = OffsetFetchRequest[version]

        def request() -> Any:
            if version < _MANY_GROUPS_SINCE:
                return kind(group_id=group, topics=topics)
            return kind(groups=[{"group_id": group, "topics": topics}])

        def answer(response: Any) -> Any:
            return response if version < _MANY_GROUPS_SINCE else response.groups[0]

        response = await self.ask(group, request, lambda found: answer(found).error_code, deadline, node_id)
        offsets = {}
        for topic in answer(response).topics:
            for entry in topic.partitions:
                partition = TopicPartition(topic.name, entry.partition_index)
                if entry.error_code:
                    raise for_code(entry.error_code)(
                        f"the offset of group {group!r} for {topic.name}-{entry.partition_index}"
                    )
                offsets[partition] = OffsetAndMetadata(
                    entry.committed_offset, entry.metadata, entry.committed_leader_epoch
                )
        return offsets

    async def alter_offsets(
        self, group: str, offsets: Offsets, deadline: float, node_id: int | None
    ) -> dict[TopicPartition, type[KafkaError]]:
        """Commit offsets for a group without members."""
        version = min(await self._core.version_of(OffsetCommitRequest(), deadline), _NEWEST_BY_NAME)
        if not offsets:
            return {}
        topics = [
            {
                "name": topic,
                "partitions": [
                    {
                        "partition_index": number,
                        "committed_offset": offsets[TopicPartition(topic, number)].offset,
                        "committed_leader_epoch": offsets[TopicPartition(topic, number)].leader_epoch,
                        "committed_metadata": offsets[TopicPartition(topic, number)].metadata,
                    }
                    for number in numbers
                ],
            }
            for topic, numbers in _by_topic(offsets).items()
        ]

        def code(response: Any) -> int:
            # The coordinator says for each partition that it is not one; these are one answer.
            codes = {entry.error_code for topic in response.topics for entry in topic.partitions}
            return min(codes) if len(codes) == 1 and issubclass(for_code(min(codes)), _MOVED) else 0

        response = await self.ask(
            group, lambda: OffsetCommitRequest[version](group_id=group, topics=topics), code, deadline, node_id
        )
        return _outcomes(response)

    async def delete_offsets(
        self, group: str, partitions: list[TopicPartition], deadline: float, node_id: int | None
    ) -> dict[TopicPartition, type[KafkaError]]:
        """Delete committed offsets of topics that no member of the group is subscribed to."""
        topics = [
            {"name": topic, "partitions": [{"partition_index": number} for number in numbers]}
            for topic, numbers in _by_topic(partitions).items()
        ]
        response = await self.ask(
            group,
            lambda: OffsetDeleteRequest(group_id=group, topics=topics),
            lambda response: response.error_code,
            deadline,
            node_id,
        )
        return _outcomes(response)

    async def ask(
        self,
        group: str,
        request: Callable[[], Any],
        code: Callable[[Any], int],
        deadline: float,
        node_id: int | None,
    ) -> Any:
        """Ask the coordinator of a group, and the next one if it has moved."""
        client = self._core.client
        await self._core.versions(deadline)
        response: Any = None
        async for attempt in client.attempts(deadline, f"the call about group {group!r}"):
            with attempt:
                response = await client.request(request(), node_id=node_id, deadline=attempt.deadline)
                error_code = code(response)
                if error_code:
                    error = for_code(error_code)
                    if issubclass(error, _MOVED):
                        client.cluster.forget_coordinator(GROUP, group)
                    raise error(f"group {group!r}: {error.description}")
        return response


def _outcomes(response: Any) -> dict[TopicPartition, type[KafkaError]]:
    return {
        TopicPartition(topic.name, entry.partition_index): for_code(entry.error_code) if entry.error_code else NoError
        for topic in response.topics
        for entry in topic.partitions
    }
