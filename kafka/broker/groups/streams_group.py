"""A streams group (KIP-1071): the group knows the application's topology and assigns its tasks to the members.

A task that moves is revoked from one member before another has it, as partitions are in a consumer group: a member that
must give tasks up stays at its epoch until its heartbeat no longer lists them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from kafka.broker.groups.epoch_group import JOIN, EpochGroup, EpochMember
from kafka.broker.groups.group import Commit
from kafka.broker.groups.streams_topology import PartitionCount, Task, Topology
from kafka.errors import InvalidRequestError

MISSING_SOURCE_TOPICS: Final = 1
INCORRECTLY_PARTITIONED_TOPICS: Final = 2
SHUTDOWN_APPLICATION: Final = 4

Tasks = frozenset[Task]
_NO_TASKS: Final[Tasks] = frozenset()


class Status(NamedTuple):
    """A problem of the group that its members are notified of."""

    code: int
    detail: str


@dataclass(frozen=True)
class StreamsAsk:
    """A StreamsGroupHeartbeat request; None stands for a field that did not change."""

    member_id: str
    epoch: int
    endpoint_epoch: int = 0
    rack_id: str | None = None
    rebalance_timeout: float | None = None
    topology: Topology | None = None
    active: Tasks | None = None
    process_id: str | None = None
    endpoint: tuple[str, int] | None = None
    tags: tuple[tuple[str, str], ...] | None = None
    shutdown: bool = False
    client_id: str = ""
    client_host: str = ""


@dataclass(eq=False, kw_only=True)
class StreamsMember(EpochMember):
    """One member of a streams group."""

    topology_epoch: int = 0
    process_id: str = ""
    endpoint: tuple[str, int] | None = None
    tags: tuple[tuple[str, str], ...] = ()
    active: Tasks = _NO_TASKS
    standby: Tasks = _NO_TASKS
    #: Active tasks that it must give up before it reaches the next epoch.
    revoking: Tasks = _NO_TASKS

    @property
    def owned(self) -> Tasks:
        """The active tasks that no other member may have yet."""
        return self.active | self.revoking


@dataclass(frozen=True)
class StreamsResult:
    """The response to a member; it has tasks only if they changed or the member joined."""

    member: StreamsMember
    has_tasks: bool
    status: Sequence[Status]
    endpoint_epoch: int
    #: Each member with an endpoint, None if the member knows them.
    endpoints: Sequence[StreamsMember] | None


@dataclass(frozen=True)
class Target:
    """The tasks that a member is to have."""

    active: Tasks = _NO_TASKS
    standby: Tasks = _NO_TASKS


@dataclass(frozen=True)
class StreamsGroupSnapshot:
    """The state of a streams group that outlives the broker."""

    epoch: int
    assignment_epoch: int
    topology: Topology | None
    members: list[StreamsMember]
    targets: dict[str, Target]


class StreamsGroup(EpochGroup[StreamsMember]):
    """One streams group."""

    kind = "streams"

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.topology: Topology | None = None
        self.targets: dict[str, Target] = {}
        self.endpoint_epoch = 0
        self._status: list[Status] = []
        self._counts: Mapping[str, int | None] = {}
        self._shutdown_by: str | None = None

    @property
    def state(self) -> str:
        """Kafka's name of the group's state."""
        if not self.members:
            return "Empty"
        if self._status:
            return "NotReady"
        if self.epoch > self.assignment_epoch:
            return "Assigning"
        is_done = all(self._is_done(member) for member in self.members.values())
        return "Stable" if is_done else "Reconciling"

    def _is_done(self, member: StreamsMember) -> bool:
        target = self.targets.get(member.member_id, Target())
        return member.epoch == self.assignment_epoch and (member.active, member.revoking) == (target.active, _NO_TASKS)

    @property
    def gives_way(self) -> bool:
        """Whether a classic group takes its place when a classic member joins."""
        return self.is_empty

    def expects(self, topic: str) -> bool:
        """Whether the members read the topic."""
        return bool(self.members) and self.topology is not None and topic in self.topology.source_topics()

    def check_commit(self, commit: Commit) -> None:
        """Raise if a member may not commit now."""
        if commit.epoch >= 0 or self.members:
            self.check_present_epoch(self.expect(commit.member_id), commit.epoch)

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """Raise if a member may not read committed offsets now (OffsetFetch v9)."""
        if epoch >= 0 or (member_id is not None and self.members):
            self.check_present_epoch(self.expect(member_id or ""), epoch)

    # Heartbeats

    def heartbeat(self, ask: StreamsAsk) -> StreamsResult:
        """Serve a member that joins or is a member."""
        self._check_topology(ask)
        is_known = ask.member_id in self.members
        member = self._member(ask)
        before = (member.active, member.standby, member.endpoint)
        epoch_before = self.epoch
        self._take_terms(member, ask)
        self._look_at_topics()
        if not self._status and self.is_assignment_due():
            self._assign()
        self._advance(member, ask.active)
        self.watch(member)
        changed = (member.active, member.standby, member.endpoint) != before
        if is_known and member.endpoint is not None and (changed or ask.epoch == JOIN):
            self.endpoint_epoch += 1
        if changed or ask.epoch == JOIN or self.epoch != epoch_before:
            self._on_change(self)
        return StreamsResult(
            member,
            ask.epoch == JOIN or changed,
            self._statuses(),
            self.endpoint_epoch,
            None if ask.endpoint_epoch == self.endpoint_epoch and ask.epoch != JOIN else self._with_endpoints(),
        )

    def _check_topology(self, ask: StreamsAsk) -> None:
        if ask.topology is None or ask.topology == self.topology:
            return
        if self.topology is not None and (self.members or ask.topology.epoch <= self.topology.epoch):
            raise InvalidRequestError("Topology updates are not supported yet.")

    def _member(self, ask: StreamsAsk) -> StreamsMember:
        if ask.epoch == JOIN:
            return self.members.get(ask.member_id) or self.add(StreamsMember(ask.member_id))
        member = self.expect(ask.member_id)
        has_no_more = ask.active is not None and ask.active <= member.active
        self.check_epoch(member, ask.epoch, is_previous_enough=has_no_more)
        return member

    def _take_terms(self, member: StreamsMember, ask: StreamsAsk) -> None:
        before = (member.process_id, member.rack_id, member.tags, member.topology_epoch)
        member.client_id, member.client_host = ask.client_id, ask.client_host
        if ask.topology is not None:
            self.topology = ask.topology
            member.topology_epoch = ask.topology.epoch
        if ask.rebalance_timeout is not None:
            member.rebalance_timeout = ask.rebalance_timeout
        if ask.rack_id is not None:
            member.rack_id = ask.rack_id
        if ask.process_id is not None:
            member.process_id = ask.process_id
        if ask.endpoint is not None:
            member.endpoint = ask.endpoint
        if ask.tags is not None:
            member.tags = ask.tags
        if ask.shutdown:
            self._shutdown_by = member.member_id
        is_new = member.member_id not in self.targets
        if is_new or (member.process_id, member.rack_id, member.tags, member.topology_epoch) != before:
            self.targets.setdefault(member.member_id, Target())
            self.epoch += 1

    def _statuses(self) -> list[Status]:
        if self._shutdown_by is None:
            return self._status
        detail = (
            f"Streams group member {self._shutdown_by} encountered a fatal error and requested a shutdown for the"
            " entire application."
        )
        return [*self._status, Status(SHUTDOWN_APPLICATION, detail)]

    def _with_endpoints(self) -> list[StreamsMember] | None:
        return [member for member in self.members.values() if member.endpoint is not None] or None

    def remove(self, member_id: str) -> None:
        """Remove a member; its tasks are free for the others."""
        self.targets.pop(member_id, None)
        self.endpoint_epoch += 1
        super().remove(member_id)
        if not self.members:
            self._shutdown_by = None

    # Topics

    def _look_at_topics(self) -> None:
        """Compare the topics with what the topology needs; create internal topics, which Kafka does a little later."""
        topology = self.topology
        assert topology is not None
        count = self._topics.partition_count
        self._status = _problems(topology, count)
        if not self._status:
            for topic in topology.internal_topics(count):
                if count(topic.name) is None:
                    factor = topic.replication_factor or None
                    self._topics.create_topic(topic.name, topic.partitions, factor, dict(topic.configs))
        counts = {name: count(name) for name in topology.source_topics()}
        if counts != self._counts:
            if self._counts:
                self.epoch += 1
            self._counts = counts
        if self._status and self.epoch > self.assignment_epoch:
            # There is nothing to assign: the members are at the group's epoch without any task.
            self.targets = {member_id: Target() for member_id in self.members}
            self.assignment_epoch = self.epoch

    # Assignments

    def _assign(self) -> None:
        assert self.topology is not None
        self.targets = assign_tasks(
            {member.member_id: self.targets.get(member.member_id, Target()) for member in self.members.values()},
            {member.member_id: member.process_id or member.member_id for member in self.members.values()},
            self.topology.tasks(self._topics.partition_count),
            self.topology.stateful(),
            self.settings.streams_standby_replicas,
        )
        self.assignment_epoch = self.epoch

    def _advance(self, member: StreamsMember, owned: Tasks | None) -> None:
        """Take a member one step towards its target."""
        target = self.targets.get(member.member_id, Target())
        member.standby = target.standby
        if member.revoking:
            if owned is None or owned & member.revoking:
                return
            member.revoking = _NO_TASKS
        revoked = member.active - target.active
        if revoked and (owned is None or owned & revoked):
            member.active -= revoked
            member.revoking = revoked
            self.expel_after(member, member.rebalance_timeout)
            return
        held = {task for other in self.members.values() if other is not member for task in other.owned}
        member.active = (member.active & target.active) | (target.active - held)
        member.at_epoch(self.assignment_epoch)
        member.stop_rebalance()

    # On disk

    def snapshot(self) -> StreamsGroupSnapshot:
        """Return the state of the group that outlives the broker."""
        return StreamsGroupSnapshot(
            self.epoch, self.assignment_epoch, self.topology, list(self.members.values()), self.targets
        )

    def load(self, snapshot: StreamsGroupSnapshot) -> None:
        """Take a fresh group to the state of a snapshot."""
        self.epoch, self.assignment_epoch = snapshot.epoch, snapshot.assignment_epoch
        self.topology = snapshot.topology
        for member in snapshot.members:
            self.add(member)
        self.targets.update(snapshot.targets)
        self.resume()


def _problems(topology: Topology, count: PartitionCount) -> list[Status]:
    missing = topology.missing_sources(count)
    if missing:
        return [Status(MISSING_SOURCE_TOPICS, f"Source topics {', '.join(missing)} are missing.")]
    unequal = topology.unequal(count)
    if unequal:
        shown = ", ".join(f"{name}={partitions}" for name, partitions in sorted(unequal.items()))
        detail = f"Following topics do not have the same number of partitions: [{{{shown}}}]"
        return [Status(INCORRECTLY_PARTITIONED_TOPICS, detail)]
    return []


def assign_tasks(
    members: Mapping[str, Target],
    processes: Mapping[str, str],
    tasks: Iterable[Task],
    stateful: Iterable[str],
    standbys: int,
) -> dict[str, Target]:
    """Give each task to one member, as evenly as that allows, and leave a task where it was if that is even enough.

    Each task of a stateful subtopology has ``standbys`` standby tasks on other processes, as far as there are some.

    >>> before = {"a": Target(frozenset({("0", 0), ("0", 1)})), "b": Target()}
    >>> after = assign_tasks(before, {"a": "p1", "b": "p2"}, [("0", 0), ("0", 1)], (), 0)
    >>> {member: sorted(target.active) for member, target in after.items()}
    {'a': [('0', 0)], 'b': [('0', 1)]}
    """
    wanted = sorted(tasks)
    most = -(-len(wanted) // len(members)) if members else 0
    active: dict[str, set[Task]] = {member: set() for member in members}
    free = []
    for task in wanted:
        keeper = next((member for member in members if task in members[member].active), None)
        if keeper is not None and len(active[keeper]) < most:
            active[keeper].add(task)
        else:
            free.append(task)
    for task in free:
        active[min(active, key=lambda member: (len(active[member]), member))].add(task)
    standby: dict[str, set[Task]] = {member: set() for member in members}
    with_state = set(stateful)
    for task in wanted:
        if task[0] not in with_state:
            continue
        taken = {processes[member] for member in members if task in active[member]}
        for _ in range(standbys):
            others = [member for member in members if processes[member] not in taken]
            if not others:
                break
            chosen = min(others, key=lambda member: (len(active[member]) + len(standby[member]), member))
            standby[chosen].add(task)
            taken.add(processes[chosen])
    return {member: Target(frozenset(active[member]), frozenset(standby[member])) for member in members}
