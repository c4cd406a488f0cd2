"""One collection of the exporter: the topics, groups and brokers of a cluster, and how it asks for them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafka.cli.arguments import reason
from kafka.cli.edges import edges_of
from kafka.cli.group_lag import is_marker_group
from kafka.errors import GroupIdNotFoundError, KafkaError, LeaderNotAvailableError
from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from kafka.admin import GroupDescription, KafkaAdminClient, ListedGroup, TopicDescription
    from kafka.cli.exporter.lag_history import LagHistory

#: Groups that are asked about at a time: a request to each of their coordinators.
_GROUPS: Final = 1000


class Choice(NamedTuple):
    """Which groups and topics are looked at, and which groups are shown as one."""

    groups: re.Pattern[str] | None = None
    no_groups: re.Pattern[str] | None = None
    topics: re.Pattern[str] | None = None
    folds: tuple[tuple[re.Pattern[str], str], ...] = ()

    def group(self, name: str) -> str | None:
        """Return the name under which a group is shown, None if it is not looked at."""
        if self.groups is not None and not self.groups.search(name):
            return None
        if self.no_groups is not None and self.no_groups.search(name):
            return None
        return next((shown for pattern, shown in self.folds if pattern.fullmatch(name)), name)

    def topic(self, name: str, internal: bool) -> bool:
        """Whether a topic is looked at; Kafka's own topics only if a pattern was given."""
        return not internal if self.topics is None else bool(self.topics.search(name))


class TopicFacts(NamedTuple):
    """A topic: its partitions' first and last offsets, where these are known."""

    partitions: int
    leaderless: int
    under_replicated: int
    begins: dict[int, int]
    ends: dict[int, int]
    size: int | None
    """Bytes on all brokers; None if the brokers do not tell."""


class TopicLag:
    """How far a group, or the groups that are shown as one, are behind in a topic."""

    __slots__ = ("lags", "lost", "offsets", "ratio", "seconds", "uncommitted", "unknown")

    def __init__(self) -> None:
        self.offsets: dict[int, int] = {}
        self.lags: dict[int, int] = {}
        self.seconds: float | None = 0.0
        """The age of the oldest unread record; None where that is not known."""
        self.ratio = 0.0
        """The largest share of a partition's records that is not read."""
        self.lost = 0
        """Records that were deleted before they were read."""
        self.uncommitted = 0
        """Partitions that a member has, without a committed offset."""
        self.unknown = 0
        """Partitions with a committed offset whose lag is not known."""

    def add(
        self, number: int, offset: int, begin: int | None, end: int | None, seconds: float | None, known: int | None
    ) -> None:
        """Add a partition with a committed offset; a share group's coordinator may know the lag itself."""
        self.offsets[number] = self.offsets.get(number, 0) + offset
        if begin is None or end is None:
            self.unknown += 1
            return
        lag = lag_of(offset, begin, end) if known is None else min(known, end - begin)
        self.lags[number] = self.lags.get(number, 0) + lag
        self.lost += max(0, begin - offset)
        if lag:
            self.ratio = max(self.ratio, lag / (end - begin))
            self.seconds = None if self.seconds is None or seconds is None else max(self.seconds, seconds)


class GroupFacts:
    """A group, or the groups that are shown as one: its members and its lag by topic."""

    __slots__ = ("folded", "kind", "members", "state", "topics")

    def __init__(self, kind: str, state: str, *, folded: bool) -> None:
        self.kind, self.state, self.folded = kind, state, folded
        self.members: int | None = 0
        self.topics: dict[str, TopicLag] = {}

    def topic(self, name: str) -> TopicLag:
        """Return the lag in a topic, which is made when it is first needed."""
        return self.topics.setdefault(name, TopicLag())


class Facts(NamedTuple):
    """What one collection found."""

    brokers: list[dict[str, Any]]
    topics: dict[str, TopicFacts]
    groups: dict[str, GroupFacts]
    failed_groups: int
    errors: list[str]
    """What could not be found out, a line for each."""


def lag_of(offset: int, begin: int, end: int) -> int:
    """Return how many records of a log are behind an offset, without deleted ones; never fewer than 0.

    >>> lag_of(100, 500, 1000), lag_of(2000, 500, 1000)
    (500, 0)
    """
    return max(0, min(end - offset, end - begin))


def collect(admin: KafkaAdminClient, choice: Choice, history: LagHistory, now: float) -> Facts:
    """Ask the brokers. Committed offsets come first and ends last, so that no offset is behind its partition's end."""
    brokers = admin.describe_cluster().brokers
    nodes = [one.broker_id for one in brokers]
    listed = admin.list_groups(nodes, raise_errors=False)
    errors = [f"broker {broker}: {reason(error)}" for broker, error in listed.failed.items()]
    shown = {one.group_id: name for one in listed if (name := choice.group(one.group_id)) is not None}
    chosen = [one for one in listed if one.group_id in shown]
    commits: list[_Commits] = []
    known: dict[TopicPartition, TopicPartition] = {}  # one object for each partition, not one for each group too
    for shared in (False, True):
        some = [one for one in chosen if (_kind(one) == "share") == shared]
        for at in range(0, len(some), _GROUPS):
            commits += _commits(admin, some[at : at + _GROUPS], known, errors)
    described = [one for one in admin.describe_topics() if choice.topic(str(one.name), one.is_internal)]
    topics = _topics(admin, nodes, described, history, now, errors)
    groups: dict[str, GroupFacts] = {}
    failed = sum(commit.failed for commit in commits)
    commits.sort(key=lambda one: one.group.group_id, reverse=True)
    while commits:  # it is let go of as soon as it is added
        commit = commits.pop()
        name = shown[commit.group.group_id]
        if name not in groups:
            folded = name != commit.group.group_id
            groups[name] = GroupFacts(commit.kind, commit.group.group_state, folded=folded)
        _add(groups[name], commit, topics, history)
    return Facts(
        [{"id": one.broker_id, "address": f"{one.host}:{one.port}", "rack": one.rack or ""} for one in brokers],
        topics,
        groups,
        failed,
        errors,
    )


def _kind(group: ListedGroup) -> str:
    return group.group_type.lower() or "classic"


class _Commits(NamedTuple):
    """The answers of the coordinator of a group."""

    group: ListedGroup
    kind: str
    members: int | None
    offsets: dict[TopicPartition, int]
    lags: dict[TopicPartition, int]
    """Of a share group: the lag that its coordinator knows."""
    owned: Collection[TopicPartition]
    failed: bool


def _described(
    admin: KafkaAdminClient, groups: Sequence[ListedGroup], errors: list[str]
) -> tuple[dict[str, Any], dict[str, KafkaError]]:
    """Return the descriptions of groups, which have members and an error in common, and the errors of other groups."""
    describe: dict[str, Callable[[list[str]], Mapping[str, Any]]] = {
        "classic": admin.describe_classic_groups,
        "streams": admin.describe_streams_groups,
        "share": admin.describe_share_groups,
    }
    described: dict[str, Any] = {}
    failed: dict[str, KafkaError] = {}
    for kind in dict.fromkeys(map(_kind, groups)):
        names = [one.group_id for one in groups if _kind(one) == kind]
        try:
            described.update(describe.get(kind, admin.describe_groups)(names))
        except KafkaError as error:  # brokers of Kafka 4.0 list groups of types that they do not describe yet
            errors.append(f"groups of type {kind}: {reason(error)}")
            failed.update(dict.fromkeys(names, error))
    return described, failed


def _offsets(
    admin: KafkaAdminClient,
    names: list[str],
    known: dict[TopicPartition, TopicPartition],
    failed: dict[str, KafkaError],
) -> dict[str, dict[TopicPartition, int]]:
    """Return the committed offsets of groups of all kinds but share groups, and add the errors."""
    if not names:
        return {}
    committed = admin.list_group_offsets(names, raise_errors=False)
    failed.update(committed.failed)
    failed.update({name: next(iter(some.values())) for name, some in committed.failed_partitions.items()})
    offsets = {}
    while committed:  # a group is let go of as soon as it is copied
        name, some = committed.popitem()
        if not is_marker_group(name, some):
            offsets[name] = {known.setdefault(tp, tp): at.offset for tp, at in some.items() if at.offset >= 0}
    return offsets


def _share_offsets(
    admin: KafkaAdminClient, names: list[str], failed: dict[str, KafkaError]
) -> tuple[dict[str, dict[TopicPartition, int]], dict[str, dict[TopicPartition, int]]]:
    """Return the start offsets of share groups, and the lags that their coordinators know; add the errors."""
    answers: Mapping[str, Any] = admin.list_share_group_offsets(names, raise_errors=False) if names else {}
    offsets, lags = {}, {}
    for name, found in answers.items():
        if isinstance(found, KafkaError):
            failed[name] = found
            continue
        good = {tp: one for tp, one in found.items() if not isinstance(one, KafkaError)}
        offsets[name] = {tp: one.start_offset for tp, one in good.items() if one.start_offset >= 0}
        lags[name] = {tp: one.lag for tp, one in good.items() if one.lag >= 0}
    return offsets, lags


def _commits(
    admin: KafkaAdminClient,
    groups: Sequence[ListedGroup],
    known: dict[TopicPartition, TopicPartition],
    errors: list[str],
) -> list[_Commits]:
    """Ask about share groups, or about groups of other kinds: these have one request for offsets in common."""
    described, failed = _described(admin, groups, errors)
    names = [one.group_id for one in groups if one.group_id in described]
    offsets: dict[str, dict[TopicPartition, int]] = {}
    lags: dict[str, dict[TopicPartition, int]] = {}
    try:
        if groups and _kind(groups[0]) == "share":
            offsets, lags = _share_offsets(admin, names, failed)
        else:
            offsets = _offsets(admin, names, known, failed)
    except KafkaError as refused:
        errors.append(f"offsets of {len(names)} groups: {reason(refused)}")
        described = {}
    made = []
    for one in groups:
        name, kind = one.group_id, _kind(one)
        if name not in described:
            made.append(_Commits(one, kind, None, {}, {}, (), failed=True))
            continue
        description = described[name]
        error: KafkaError | None = failed.get(name) or description.error
        if error is not None and not isinstance(error, GroupIdNotFoundError):
            errors.append(f"group {name!r}: {reason(error)}")
        elif name not in offsets or error is not None:  # marks of Spark's queries; a group that was just deleted
            continue
        owned = _owned(description) if kind in {"classic", "consumer"} else ()
        members = None if description.error is not None else len(description.members)
        some = {} if error is not None else offsets[name]
        made.append(_Commits(one, kind, members, some, lags.get(name, {}), owned, error is not None))
    return made


def _topics(
    admin: KafkaAdminClient,
    nodes: list[int],
    described: Sequence[TopicDescription],
    history: LagHistory,
    now: float,
    errors: list[str],
) -> dict[str, TopicFacts]:
    sizes = _sizes(admin, nodes)
    topics = {}
    for topic in described:
        name, each = str(topic.name), topic.partitions
        if topic.error is not None:
            errors.append(f"topic {name!r}: {reason(topic.error)}")
            continue
        topics[name] = TopicFacts(
            len(each),
            sum(one.leader_id < 0 for one in each),
            sum(len(one.isr_nodes) < len(one.replica_nodes) for one in each),
            {},
            {},
            sizes.get(name, 0) if sizes is not None else None,
        )
    ends = {}
    for tp, edge in edges_of(admin, described).items():
        if tp.topic not in topics:
            continue
        if edge.start is not None and edge.end is not None:
            # The end is asked for first: records that are deleted meanwhile were there.
            topics[tp.topic].begins[tp.partition] = min(edge.start, edge.end)
            topics[tp.topic].ends[tp.partition] = ends[tp] = edge.end
        elif not isinstance(edge.error, LeaderNotAvailableError):  # such partitions are counted
            errors.append(f"{tp.topic}-{tp.partition}: {reason(edge.error)}")
    history.add(now, ends)
    return topics


def _sizes(admin: KafkaAdminClient, nodes: list[int]) -> dict[str, int] | None:
    """Return the bytes of topics on all brokers, None if a broker does not tell, for want of rights or of a release."""
    try:
        found = admin.describe_log_dirs(brokers=nodes, raise_errors=False)
    except KafkaError:
        return None
    if found.failed or any(one.error is not None for broker in found for one in broker.log_dirs):
        return None
    sizes: dict[str, int] = {}
    for one in found.log_dirs:
        for topic in one.topics:
            sizes[topic.name] = sizes.get(topic.name, 0) + sum(part.partition_size for part in topic.partitions)
    return sizes


def _add(group: GroupFacts, commit: _Commits, topics: Mapping[str, TopicFacts], history: LagHistory) -> None:
    """Add what a group has committed to what is shown of it."""
    group.members = None if group.members is None or commit.members is None else group.members + commit.members
    for tp, offset in commit.offsets.items():
        facts = topics.get(tp.topic)
        if facts is None:  # a topic that is not looked at, or was deleted
            continue
        begin, end = facts.begins.get(tp.partition), facts.ends.get(tp.partition)
        seconds = None if end is None or offset >= end else history.seconds(tp, offset)
        group.topic(tp.topic).add(tp.partition, offset, begin, end, seconds, commit.lags.get(tp))
    for tp in commit.owned:
        if tp not in commit.offsets and tp.topic in topics:
            group.topic(tp.topic).uncommitted += 1


def _owned(description: GroupDescription) -> set[TopicPartition]:
    """Return the partitions that the members of a group have."""
    from kafka.admin import MemberAssignment

    return {
        TopicPartition(topic, number)
        for member in description.members
        if isinstance(member.member_assignment, MemberAssignment)
        for topic, numbers in member.member_assignment.assignment
        for number in numbers
    }
