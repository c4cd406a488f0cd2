"""Committed offsets of groups: list, alter, reset and delete them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from kafka.admin.calls import call
from kafka.admin.groups import as_group, as_groups
from kafka.admin.offsets import IsolationLevel, Offsets, OffsetSpec, OffsetTimestamp, as_timestamp
from kafka.admin.partitions import as_offsets, as_partition, as_partitions, by_topic
from kafka.admin.results import Result, error_of, raise_first, raise_refused
from kafka.errors import (
    CoordinatorLoadInProgressError,
    IllegalArgumentError,
    InvalidCoordinatorError,
    KafkaError,
    NoError,
    UnstableOffsetCommitError,
    for_code,
)
from kafka.protocol.commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from kafka.structs import OffsetAndMetadata, TopicPartition

_MANY_GROUPS_SINCE: Final = 8
_ALL_PARTITIONS_SINCE: Final = 2
_STABLE_SINCE: Final = 7
# Newer versions name topics by id, which says nothing about a topic that was deleted.
_NEWEST_BY_NAME: Final = 9

# The coordinator is another broker, or is not ready; what other codes say is final.
_MOVED: Final = (InvalidCoordinatorError, CoordinatorLoadInProgressError)

Commits = dict[TopicPartition, OffsetAndMetadata]
# The committed offsets of a group and the errors of its partitions, or the error of the group.
Answer = KafkaError | tuple[Commits, dict[TopicPartition, KafkaError]]


class ListedOffsets(dict[str, Commits]):
    """Committed offsets by group and partition; `failed` has the error of each group that is missing.

    `failed_partitions` has, by group, the error of each partition that is missing from it.
    """

    __slots__ = ("failed", "failed_partitions")

    def __init__(self, answers: Mapping[str, Answer]) -> None:
        found = {group: answer for group, answer in answers.items() if not isinstance(answer, KafkaError)}
        super().__init__((group, commits) for group, (commits, _) in found.items())
        self.failed: dict[str, KafkaError] = {
            group: answer for group, answer in answers.items() if isinstance(answer, KafkaError)
        }
        self.failed_partitions: dict[str, dict[TopicPartition, KafkaError]] = {
            group: failed for group, (_, failed) in found.items() if failed
        }

    @property
    def ok(self) -> bool:
        """Whether nothing is missing."""
        return not self.failed and not self.failed_partitions

    def raise_for_error(self) -> None:
        """Raise the first error, if there is one; ``error.results`` is this dict."""
        raise_first(self.failed.values(), self)
        for errors in self.failed_partitions.values():
            raise_first(errors.values(), self)


class ResetOffset(Result):
    """What became of a partition: the error class, and the new offset; `previous` is the one before, None without."""

    __slots__ = ("previous",)
    error: type[KafkaError]
    offset: int
    previous: int | None


class Shift(NamedTuple):
    """A number of records to go forward, or back if it is negative, from the committed offset."""

    by: int


def as_group_specs(
    given: str | Iterable[str] | Mapping[str, Iterable[TopicPartition] | None],
) -> dict[str, list[TopicPartition] | None]:
    """Return the partitions that are wanted of each group, None for all of them.

    >>> as_group_specs({"g": [("events", 0)], "h": None})
    {'g': [TopicPartition(topic='events', partition=0)], 'h': None}
    """
    if not isinstance(given, Mapping):
        return dict.fromkeys(as_groups([given] if isinstance(given, str) else given))
    return {
        as_group(group): None if partitions is None else as_partitions(partitions)
        for group, partitions in given.items()
    }


class GroupOffsets(Offsets):
    """The calls about committed offsets."""

    @call
    async def list_group_offsets(
        self,
        group_specs: str | Iterable[str] | Mapping[str, Iterable[TopicPartition] | None],
        timeout_ms: float | None = None,
        *,
        require_stable: bool = False,
        raise_errors: bool = True,
    ) -> ListedOffsets:
        """Return the committed offsets of a group, of groups, or of some partitions of groups.

        >>> from kafka import KafkaAdminClient
        >>> from kafka.broker import Broker
        >>> with Broker(topics=["events"]) as broker:
        ...     with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        ...         committed = admin.alter_group_offsets("readers", {("events", 0): 7})
        ...         admin.list_group_offsets("readers")["readers"][("events", 0)].offset
        7

        With `require_stable` the offsets of transactions that are not decided yet are waited for (Kafka 2.5). The
        first error is raised, with the rest of the answer in ``error.results``; with ``raise_errors=False`` the result
        has the errors in ``failed`` and ``failed_partitions``.
        """
        wanted = as_group_specs(group_specs)
        found = await self._list_group_offsets(self._core.deadline(timeout_ms), wanted, stable=require_stable)
        if raise_errors:
            found.raise_for_error()
        return found

    @call
    async def list_consumer_group_offsets(
        self,
        group_id: str,
        group_coordinator_id: int | None = None,
        partitions: Iterable[TopicPartition] | None = None,
        timeout_ms: float | None = None,
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the committed offsets of one group, as kafka-python 2 does; -1 for a partition without one."""
        wanted = {as_group(group_id): None if partitions is None else as_partitions(partitions)}
        found = await self._list_group_offsets(self._core.deadline(timeout_ms), wanted, group_coordinator_id)
        found.raise_for_error()
        return found[group_id]

    async def _list_group_offsets(
        self,
        deadline: float,
        wanted: Mapping[str, list[TopicPartition] | None],
        node_id: int | None = None,
        *,
        stable: bool = False,
    ) -> ListedOffsets:
        version = min(await self._core.version_of(OffsetFetchRequest(), deadline), _NEWEST_BY_NAME)
        if version < _ALL_PARTITIONS_SINCE and None in wanted.values():
            raise self._core.unsupported("listing the offsets of all partitions", "0.10.2")
        if stable and version < _STABLE_SINCE:
            raise self._core.unsupported("require_stable", "2.5")
        kind: type[OffsetFetchRequest] = OffsetFetchRequest[version]
        more = {"require_stable": stable} if version >= _STABLE_SINCE else {}
        many = version >= _MANY_GROUPS_SINCE
        names: dict[TopicPartition, TopicPartition] = {}  # one object for a partition, however many groups read it

        def topics(group: str) -> list[dict[str, object]] | None:
            partitions = wanted[group]
            return None if partitions is None else by_topic(partitions, "name", "partition_indexes")

        def request(groups: list[str]) -> OffsetFetchRequest:
            if many:
                return kind(groups=[{"group_id": group, "topics": topics(group)} for group in groups], **more)
            return kind(group_id=groups[0], topics=topics(groups[0]), **more)

        async def ask(groups: list[str]) -> dict[str, Answer]:
            def read(response: OffsetFetchResponse) -> dict[str, Answer]:
                if not many:
                    return {groups[0]: _commits(groups[0], response, names)}
                return {answer.group_id: _commits(answer.group_id, answer, names) for answer in response.groups}

            return await self._core.ask_coordinators(
                groups, request, read, deadline, "list_group_offsets()", node_id=node_id
            )

        shares = [list(wanted)] if many else [[group] for group in wanted]
        answers = {
            group: answer
            for share in await self._core.gather([ask(share) for share in shares])
            for group, answer in share.items()
        }
        return ListedOffsets(answers)

    @call
    async def alter_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | Mapping[tuple[str, int], OffsetAndMetadata | int],
        group_coordinator_id: int | None = None,
        timeout_ms: float | None = None,
        *,
        raise_errors: bool = True,
    ) -> dict[TopicPartition, type[KafkaError]]:
        """Commit offsets for a group without members.

        The first error of a partition is raised; with ``raise_errors=False`` the class of each error is returned.
        """
        deadline = self._core.deadline(timeout_ms)
        group, wanted = as_group(group_id), as_offsets(offsets)
        version = min(await self._core.version_of(OffsetCommitRequest(), deadline), _NEWEST_BY_NAME)
        if not wanted:
            return {}

        def entry(partition: TopicPartition) -> dict[str, object]:
            offset = wanted[partition]
            return {
                "partition_index": partition.partition,
                "committed_offset": offset.offset,
                "committed_leader_epoch": offset.leader_epoch,
                "committed_metadata": offset.metadata,
            }

        topics = by_topic(wanted, "name", "partitions", entry)

        def code(response: OffsetCommitResponse) -> int:
            # The coordinator says for each partition that it is not one; these are one answer.
            codes = {entry.error_code for topic in response.topics for entry in topic.partitions}
            return min(codes) if len(codes) == 1 and issubclass(for_code(min(codes)), _MOVED) else 0

        response = await self._core.ask_coordinator(
            group,
            lambda: OffsetCommitRequest[version](group_id=group, topics=topics),
            code,
            deadline,
            "alter_group_offsets()",
            node_id=group_coordinator_id,
        )
        found = _outcomes(response)
        if raise_errors:
            raise_refused(f"alter_group_offsets(): group {group_id!r}", found.items(), found)
        return found

    @call
    async def delete_group_offsets(
        self,
        group_id: str,
        partitions: Iterable[TopicPartition],
        group_coordinator_id: int | None = None,
        timeout_ms: float | None = None,
        *,
        raise_errors: bool = True,
    ) -> dict[TopicPartition, type[KafkaError]]:
        """Delete committed offsets of topics that no member is subscribed to.

        The first error of a partition is raised; with ``raise_errors=False`` the class of each error is returned.
        """
        deadline = self._core.deadline(timeout_ms)
        group = as_group(group_id)
        wanted = as_partitions(partitions)
        await self._core.require(deadline, OffsetDeleteRequest.API_KEY, 0, "delete_group_offsets()", "2.4")
        topics = by_topic(wanted, "name", "partitions", lambda one: {"partition_index": one.partition})
        response = await self._core.ask_coordinator(
            group,
            lambda: OffsetDeleteRequest(group_id=group, topics=topics),
            lambda response: response.error_code,
            deadline,
            "delete_group_offsets()",
            node_id=group_coordinator_id,
        )
        found = _outcomes(response)
        if raise_errors:
            raise_refused(f"delete_group_offsets(): group {group_id!r}", found.items(), found)
        return found

    alter_consumer_group_offsets = alter_group_offsets  # as in Java

    delete_consumer_group_offsets = delete_group_offsets  # as in Java

    @call
    async def reset_group_offsets(
        self,
        group_id: str,
        offset_specs: Mapping[TopicPartition | str, object] | OffsetSpec | datetime | timedelta | Shift | str,
        group_coordinator_id: int | None = None,
        timeout_ms: float | None = None,
        *,
        dry_run: bool = False,
        raise_errors: bool = True,
    ) -> dict[TopicPartition, ResetOffset]:
        """Move the committed offsets of a group without members; return the new offset of each partition.

        The first error of a partition is raised, after the others were moved; with ``raise_errors=False`` the outcome
        has its class.

        `offset_specs` is a dict from partitions, or from topics for all of their partitions, to places; or one place
        for all partitions for which the group has committed an offset; there must be one then. A place is an
        `OffsetSpec` or its name, an offset, an `OffsetTimestamp` or a datetime (the first record at or after it), a
        timedelta before now, a `Shift`, or ``"current"``. Offsets outside of the log become its beginning or its end,
        and so does a time after the last record. With `dry_run` nothing is committed.

        >>> from kafka import KafkaAdminClient
        >>> from kafka.broker import Broker
        >>> with Broker(topics=["events"]) as broker:
        ...     with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        ...         admin.reset_group_offsets("readers", {"events": "earliest"})
        {TopicPartition(topic='events', partition=0): ResetOffset(error=<class 'kafka.errors.NoError'>, offset=0)}
        """
        deadline = self._core.deadline(timeout_ms)
        group = as_group(group_id)
        places = _as_places(offset_specs)
        listed = await self._list_group_offsets(deadline, {group: None}, group_coordinator_id)
        listed.raise_for_error()
        committed = {partition: commit.offset for partition, commit in listed[group].items() if commit.offset >= 0}
        if not committed and not isinstance(places, Mapping):
            raise IllegalArgumentError(
                f"reset_group_offsets(): group {group!r} has no committed offsets to move: name topics or partitions, "
                'as in {"events": "earliest"}'
            )
        wanted = await self._places_by_partition(deadline, places, committed)
        level = IsolationLevel.READ_UNCOMMITTED
        # A timestamp for each partition whose place is one; the ends of the log bound all of them.
        times = {
            partition: as_timestamp(int(place) if isinstance(place, OffsetTimestamp) else place)
            for partition, place in wanted.items()
            if isinstance(place, (OffsetTimestamp, OffsetSpec, datetime, timedelta))
        }
        begins, ends, at_times = await self._core.gather(
            [
                self._ends(deadline, wanted, level, OffsetSpec.EARLIEST),
                self._ends(deadline, wanted, level, OffsetSpec.LATEST),
                self._places_in_time(deadline, times, level),
            ]
        )
        found: dict[TopicPartition, ResetOffset] = {}
        moved: Commits = {}
        for partition, place in wanted.items():
            first, last, at_time = begins[partition], ends[partition], at_times.get(partition, 0)
            error = next((one for one in (first, last, at_time) if isinstance(one, KafkaError)), None)
            previous = committed.get(partition)
            found[partition] = outcome = ResetOffset(error=NoError if error is None else type(error), offset=-1)
            outcome.previous = previous
            if isinstance(first, KafkaError) or isinstance(last, KafkaError) or isinstance(at_time, KafkaError):
                continue
            if partition in times:
                offset = at_time if at_time >= 0 else last
            elif isinstance(place, Shift):
                offset = (first if previous is None else previous) + place.by
            elif place == "current":
                offset = last if previous is None else previous
            else:
                offset = place
            outcome["offset"] = max(first, min(offset, last))
            moved[partition] = OffsetAndMetadata(outcome.offset)
        if not dry_run:
            altered = await self.alter_group_offsets(group, moved, group_coordinator_id, deadline, raise_errors=False)
            for partition, kind in altered.items():
                found[partition]["error"] = kind
        if raise_errors:
            outcomes = ((partition, outcome.error) for partition, outcome in found.items())
            raise_refused(f"reset_group_offsets(): group {group_id!r}", outcomes, found)
        return found

    async def _places_in_time(
        self, deadline: float, times: Mapping[TopicPartition, int], level: IsolationLevel
    ) -> dict[TopicPartition, int | KafkaError]:
        found = await self._look_up_offsets(deadline, times, level) if times else {}
        return {one: at if isinstance(at, KafkaError) else at.offset for one, at in found.items()}

    async def _places_by_partition(
        self, deadline: float, places: object, committed: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, Any]:
        if not isinstance(places, Mapping):
            return dict.fromkeys(committed, places)
        topics = [name for name in places if isinstance(name, str)]
        found: dict[TopicPartition, Any] = {}
        if topics:
            for topic in await self._core.topic_metadata(topics, deadline, "reset_group_offsets()"):
                error = error_of(topic.error_code, f"reset_group_offsets(): topic {topic.name!r}")
                if error is not None:
                    raise error
                if topic.name is not None and topic.name in places:
                    for entry in topic.partitions:
                        found[TopicPartition(topic.name, entry.partition_index)] = places[topic.name]
        found.update({name: place for name, place in places.items() if isinstance(name, TopicPartition)})
        return found


def _commits(
    group: str,
    answer: OffsetFetchResponse.OffsetFetchResponseGroup | OffsetFetchResponse,
    names: dict[TopicPartition, TopicPartition],
) -> Answer:
    """Return the committed offsets of a group and the errors of its partitions, or the error of the group."""
    error = error_of(answer.error_code, f"list_group_offsets(): group {group!r}")
    if error is not None:
        return error
    commits: Commits = {}
    failed: dict[TopicPartition, KafkaError] = {}
    for topic in answer.topics:
        name = topic.name
        for entry in topic.partitions:
            partition = TopicPartition(name, entry.partition_index)
            partition = names.setdefault(partition, partition)
            if entry.error_code:
                what = f"the offset of group {group!r} for {name}-{entry.partition_index}"
                failed[partition] = for_code(entry.error_code)(what)
            else:
                commits[partition] = OffsetAndMetadata(
                    entry.committed_offset, entry.metadata, entry.committed_leader_epoch
                )
    # Some errors of the coordinator come with each partition, and UNSTABLE_OFFSET_COMMIT passes.
    passing = next(
        (error for error in failed.values() if isinstance(error, (*_MOVED, UnstableOffsetCommitError))), None
    )
    return passing or (commits, failed)


def _as_places(given: object) -> object:
    """Return a place, or places by topic or partition, each in one of the forms that do not need a broker."""
    if isinstance(given, Mapping):
        return {
            name if isinstance(name, str) else as_partition(name): _as_place(place) for name, place in given.items()
        }
    return _as_place(given)


def _as_place(given: object) -> object:
    if isinstance(given, (OffsetTimestamp, OffsetSpec, datetime, timedelta, Shift)) or given == "current":
        return given
    if isinstance(given, str):
        return OffsetSpec.build_from(given)
    if isinstance(given, OffsetAndMetadata):
        return given.offset
    if isinstance(given, bool) or not isinstance(given, int):
        raise TypeError(f"an offset is reset to an OffsetSpec, an offset, a time, a Shift or 'current', not {given!r}")
    if given < 0:
        raise IllegalArgumentError(f"an offset must not be negative, not {given}; OffsetSpec names places in the log")
    return given


def _outcomes(response: OffsetCommitResponse | OffsetDeleteResponse) -> dict[TopicPartition, type[KafkaError]]:
    return {
        TopicPartition(topic.name, entry.partition_index): for_code(entry.error_code)
        for topic in response.topics
        for entry in topic.partitions
    }
