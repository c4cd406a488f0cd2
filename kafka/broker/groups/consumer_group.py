"""A consumer group of KIP-848: members say what they want, the group says what they get.

Three numbers tell how far a change has come: the *group epoch* counts changes of what is wanted, the *assignment
epoch* says for which of them the target assignment was computed, and each *member epoch* says for which of them the
member has what it is to have. Each heartbeat of a member takes it one step further (``reconcile``).

Classic members are in ``migration``. Lives on the broker's loop and takes no lock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from uuid import UUID

from kafka.broker.groups.assignors import ASSIGNORS, Assignment, Subscriber
from kafka.broker.groups.consumer_member import (
    LEAVE_STATIC,
    ConsumerMember,
    HeartbeatAsk,
    HeartbeatResult,
    Holding,
    MemberState,
    step,
)
from kafka.broker.groups.epoch_group import JOIN, EpochGroup
from kafka.broker.groups.pattern import compile_re2
from kafka.errors import (
    FencedInstanceIdError,
    IllegalGenerationError,
    StaleMemberEpochError,
    UnknownMemberIdError,
    UnreleasedInstanceIdError,
    UnsupportedVersionError,
)

if TYPE_CHECKING:
    from kafka.broker.groups.group import ClassicMembers, Commit
    from kafka.structs import TopicPartition


@dataclass(frozen=True)
class ConsumerGroupSnapshot:
    """The state of a consumer group that outlives the broker."""

    epoch: int
    assignment_epoch: int
    members: list[ConsumerMember]
    targets: dict[str, Assignment]


class ConsumerGroup(EpochGroup[ConsumerMember]):
    """One group of the consumer protocol.

    ``classic`` makes what its members of the classic protocol see of it; without it there are none.
    """

    kind = "consumer"

    def __init__(
        self, *args: Any, classic: Callable[[ConsumerGroup], ClassicMembers] | None = None, **options: Any
    ) -> None:
        super().__init__(*args, **options)
        self.static: dict[str, str] = {}
        self.targets: dict[str, Assignment] = {}
        self._classic_members = None if classic is None else classic(self)
        self._held: dict[tuple[UUID, int], str] = {}
        self._metadata: dict[UUID, int] = {}
        self._resolved: dict[str, tuple[frozenset[str], frozenset[str]]] = {}

    @property
    def state(self) -> str:
        """Kafka's name of where the group is."""
        if not self.members:
            return "Empty"
        if self.epoch > self.assignment_epoch:
            return "Assigning"
        for member in self.members.values():
            if member.holding.state is not MemberState.STABLE or member.epoch != self.assignment_epoch:
                return "Reconciling"
        return "Stable"

    @property
    def assignor(self) -> str:
        """The server-side assignor that most members name, else the broker's first."""
        votes = Counter(member.assignor for member in self.members.values() if member.assignor is not None)
        return votes.most_common(1)[0][0] if votes else self.settings.consumer_assignors[0]

    @property
    def gives_way(self) -> bool:
        """Whether a classic group takes its place when a classic member joins."""
        return self.is_empty

    @property
    def classic_members(self) -> ClassicMembers | None:
        """The group as its classic members see it."""
        return self._classic_members

    def session_timeout_of(self, member: ConsumerMember) -> float:
        """Return after how many seconds without a heartbeat a member is removed."""
        return super().session_timeout_of(member) if member.classic is None else member.classic.session_timeout

    # Heartbeats

    def heartbeat(self, ask: HeartbeatAsk) -> HeartbeatResult:
        """Serve a member that joins or is there; raises what it has to know."""
        if ask.regex:
            compile_re2(ask.regex)
        member = self._member_for(ask)
        before = member.holding
        epoch_before = self.epoch
        changed = self._take_terms(member, ask)
        self.advance(member, ask.owned, changed=changed)
        self.watch(member)
        if ask.epoch == JOIN or self.epoch != epoch_before or member.holding != before:
            self._on_change(self)
        wants_all = ask.epoch == JOIN or (
            ask.rebalance_timeout is not None
            and (ask.names is not None or ask.regex is not None)
            and ask.owned is not None
        )
        is_new = before.assigned != member.holding.assigned
        return HeartbeatResult(member.member_id, member.epoch, member.assigned if wants_all or is_new else None)

    def _member_for(self, ask: HeartbeatAsk) -> ConsumerMember:
        if ask.instance_id is not None:
            return self._static_member(ask, ask.instance_id)
        if ask.epoch == JOIN:
            # A member that joins again has given up everything, as the error demanded; it is still a member.
            return self.members.get(ask.member_id) or self.add(ConsumerMember(ask.member_id))
        return self._at_epoch(self.expect(ask.member_id), ask)

    def _static_member(self, ask: HeartbeatAsk, instance_id: str) -> ConsumerMember:
        present = self.members.get(self.static.get(instance_id, ""))
        if ask.epoch == JOIN:
            if present is None:
                return self.add(ConsumerMember(ask.member_id, instance_id))
            if present.epoch != LEAVE_STATIC:
                # Its own member id makes no difference: only who has left may come back before the session ends.
                raise UnreleasedInstanceIdError(
                    f"Static member {ask.member_id} with instance id {instance_id} cannot join the group because the"
                    f" instance id is still owned by member {present.member_id}."
                )
            return self.replace_static(present, ask.member_id)
        return self._at_epoch(self.expect_static(instance_id, ask.member_id), ask)

    def _at_epoch(self, member: ConsumerMember, ask: HeartbeatAsk) -> ConsumerMember:
        self.check_epoch(member, ask.epoch, is_previous_enough=_within(ask.owned, member.holding.assigned))
        return member

    def expect_static(self, instance_id: str, member_id: str) -> ConsumerMember:
        """Return the static member that a request names, or raise the error for the reply."""
        present = self.members.get(self.static.get(instance_id, ""))
        if present is None:
            raise UnknownMemberIdError(f"Instance id {instance_id} is unknown.")
        if present.member_id != member_id:
            raise FencedInstanceIdError(
                f"Static member {member_id} with instance id {instance_id} was fenced by member {present.member_id}."
            )
        return present

    def _take_terms(self, member: ConsumerMember, ask: HeartbeatAsk) -> bool:
        """Take what the heartbeat says; return whether the member's subscription changed."""
        names_before, regex_before = member.names, member.regex
        member.client_id, member.client_host = ask.client_id, ask.client_host
        member.classic = None
        if ask.rack_id is not None:
            member.rack_id = ask.rack_id
        if ask.rebalance_timeout is not None:
            member.rebalance_timeout = ask.rebalance_timeout
        if ask.assignor is not None:
            member.assignor = ask.assignor
        if ask.names is not None:
            member.names = frozenset(ask.names)
        if ask.regex is not None:
            member.regex = ask.regex or None
        return self.subscription_changed(member, names_before, regex_before)

    def subscription_changed(
        self, member: ConsumerMember, names_before: frozenset[str], regex_before: str | None = None
    ) -> bool:
        """Count up the group's epoch if a member, or the topics that it means, are not what they were.

        Whether the member's own subscription is another.
        """
        metadata = self._subscribed_metadata()
        changed = member.names != names_before or member.regex != regex_before
        if changed or metadata != self._metadata:
            self._metadata = metadata
            self.epoch += 1
        return changed

    # Members

    def add(self, member: ConsumerMember) -> ConsumerMember:
        """Add a member."""
        super().add(member)
        if member.instance_id is not None:
            self.static[member.instance_id] = member.member_id
        return member

    def replace_static(self, old: ConsumerMember, member_id: str) -> ConsumerMember:
        """Put a new incarnation in a static member's place; it gets what the old one was to have."""
        old.stop_timers()
        del self.members[old.member_id]
        fresh = replace(old, member_id=member_id, session=None, rebalance=None)
        fresh.holding = replace(old.holding, epoch=0, previous_epoch=0, state=MemberState.STABLE, pending_revocation={})
        self.add(fresh)
        self.targets[member_id] = self.targets.pop(old.member_id, {})
        self._hold(old, Holding())
        self._hold(fresh, fresh.holding)
        return fresh

    def remove(self, member_id: str) -> None:
        """Remove a member; what it had is free for the others from now on."""
        member = self.members.pop(member_id)
        member.stop_timers()
        if member.instance_id is not None and self.static.get(member.instance_id) == member_id:
            del self.static[member.instance_id]
        self.targets.pop(member_id, None)
        self._hold(member, Holding())
        self._metadata = self._subscribed_metadata()
        if not self.can_downgrade:
            self.epoch += 1
        self._on_change(self)

    @property
    def can_downgrade(self) -> bool:
        """Whether all that are left speak the classic protocol, and may go back to it."""
        return (
            self.settings.consumer_migration_policy in ("downgrade", "bidirectional")
            and bool(self.members)
            and all(member.classic is not None for member in self.members.values())
            and len(self.members) <= self.settings.max_size
        )

    def leave(self, member_id: str, instance_id: str | None, epoch: int) -> None:
        """Leave: for good, or, a static member, for as long as its session lasts (epoch -2)."""
        member = self.expect(member_id) if instance_id is None else self.expect_static(instance_id, member_id)
        if epoch != LEAVE_STATIC:
            self.remove(member.member_id)
            return
        holding = member.holding
        self._hold(
            member,
            replace(
                holding,
                epoch=LEAVE_STATIC,
                previous_epoch=holding.epoch,
                state=MemberState.STABLE,
                pending_revocation={},
            ),
        )
        self._on_change(self)

    # Towards the target

    def advance(
        self, member: ConsumerMember, owned: Mapping[UUID, frozenset[int]] | None, *, changed: bool = False
    ) -> None:
        """Compute the target assignment if it is out of date, and take the member one step towards it.

        Topics to which the member does not subscribe any more are not for it, also while the target still has them.
        """
        if self.is_assignment_due():
            self._assign()
        before = member.holding
        topics = self._topic_ids(member)
        target = {
            topic: indexes for topic, indexes in self.targets.get(member.member_id, {}).items() if topic in topics
        }
        subscription = topics if changed else None
        self._hold(member, step(before, target, self.assignment_epoch, owned, self._is_free, subscription))
        if member.holding != before and member.classic is None:
            self._expect_revocation(member)

    def _assign(self) -> None:
        subscribers = {
            member.member_id: Subscriber(
                self._topic_ids(member), member.instance_id, self.targets.get(member.member_id, {})
            )
            for member in self.members.values()
        }
        self.targets = ASSIGNORS[self.assignor](subscribers, self._metadata)
        self.assignment_epoch = self.epoch

    def _hold(self, member: ConsumerMember, holding: Holding) -> None:
        held = self._held
        for topic, indexes in member.holding.owned.items():
            for index in indexes:
                if held.get((topic, index)) == member.member_id:
                    del held[topic, index]
        member.holding = holding
        for topic, indexes in holding.owned.items():
            for index in indexes:
                held[topic, index] = member.member_id

    def _is_free(self, topic: UUID, index: int) -> bool:
        return (topic, index) not in self._held

    def waits_for_others(self, member: ConsumerMember) -> bool:
        """Whether all that the member is still to get is held by others."""
        target = self.targets.get(member.member_id, {})
        revoked = member.holding.pending_revocation
        return not any(
            self._is_free(topic, index) or index in revoked.get(topic, frozenset())
            for topic, indexes in target.items()
            for index in indexes - member.holding.assigned.get(topic, frozenset())
        )

    def adopt(self, member: ConsumerMember, holding: Holding) -> None:
        """Record the partitions that a member held before this group was made from another."""
        self.targets[member.member_id] = dict(holding.assigned)
        self._hold(member, holding)

    def note_topics(self) -> None:
        """Take the present topics as the ones that the present assignment was computed for."""
        self._metadata = self._subscribed_metadata()

    # What topics are meant

    def _names(self, member: ConsumerMember) -> frozenset[str]:
        if member.regex is None:
            return member.names
        return member.names | self._matching(member.regex)

    def _matching(self, regex: str) -> frozenset[str]:
        present = frozenset(self._topics.topic_names())
        known = self._resolved.get(regex)
        if known is None or known[0] != present:
            before, matched = known or (frozenset(), frozenset())
            pattern = compile_re2(regex)
            # Each name is matched once, however often topics come and go.
            fresh = frozenset(name for name in present - before if pattern.fullmatch(name))
            known = (present, (matched & present) | fresh)
            self._resolved[regex] = known
        return known[1]

    def _topic_ids(self, member: ConsumerMember) -> frozenset[UUID]:
        found = (self._topics.topic_id(name) for name in self._names(member))
        return frozenset(topic_id for topic_id in found if topic_id is not None)

    def _subscribed_metadata(self) -> dict[UUID, int]:
        in_use = {member.regex for member in self.members.values()}
        self._resolved = {regex: known for regex, known in self._resolved.items() if regex in in_use}
        metadata: dict[UUID, int] = {}
        for name in {name for member in self.members.values() for name in self._names(member)}:
            topic_id = self._topics.topic_id(name)
            if topic_id is not None:
                metadata[topic_id] = self._topics.partition_count(name) or 0
        return metadata

    def expects(self, topic: str) -> bool:
        """Whether a member reads the topic."""
        return any(topic in self._names(member) for member in self.members.values())

    # Timers

    def _expect_revocation(self, member: ConsumerMember) -> None:
        """A member that must give partitions up has its rebalance timeout for it."""
        member.stop_rebalance()
        if member.holding.state is MemberState.UNREVOKED_PARTITIONS:
            self.expel_after(member, member.rebalance_timeout)

    # Commits

    def check_commit(self, commit: Commit) -> None:
        """Raise if a member may not commit these partitions now.

        A commit that was under way while the member's epoch went up counts, for partitions that it has had since that
        epoch (KIP-1251).
        """
        epoch = commit.epoch
        if epoch < 0 and not self.members:
            return
        is_outside = not commit.member_id and commit.instance_id is None
        if commit.is_transactional and epoch == -1 and is_outside:
            return
        member = self.expect(commit.member_id)
        if not commit.is_transactional and member.classic is None and commit.version < 9:
            raise UnsupportedVersionError(
                "OffsetCommit version 9 or above must be used by members using the modern group protocol"
            )
        if epoch < member.epoch and all(self._had_since(member, partition, epoch) for partition in commit.partitions):
            return
        try:
            self._check_commit_epoch(member, epoch)
        except StaleMemberEpochError as error:
            if not commit.is_transactional:
                raise
            raise IllegalGenerationError(*error.args) from None

    def _had_since(self, member: ConsumerMember, partition: TopicPartition, epoch: int) -> bool:
        """Whether the member has had the partition since that epoch, or an earlier one."""
        topic_id = self._topics.topic_id(partition.topic)
        since = None if topic_id is None else member.holding.assignment_epoch(topic_id, partition.partition)
        return since is not None and since <= epoch

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """Raise if a member may not read committed offsets now (v9)."""
        if member_id is None and epoch < 0:
            return
        self._check_commit_epoch(self.expect(member_id or ""), epoch)

    def _check_commit_epoch(self, member: ConsumerMember, epoch: int) -> None:
        """Raise if a member is not at that epoch."""
        if epoch != member.epoch and member.classic is not None:
            raise IllegalGenerationError(
                f"The received generation id {epoch} does not match the expected member epoch {member.epoch}."
            )
        self.check_present_epoch(member, epoch)

    def resume(self) -> None:
        """Continue at the new coordinator: sessions start again."""
        super().resume()
        for member in self.members.values():
            if member.classic is None:
                self._expect_revocation(member)

    # On disk

    def snapshot(self) -> ConsumerGroupSnapshot:
        """Return the state of the group that outlives the broker."""
        return ConsumerGroupSnapshot(self.epoch, self.assignment_epoch, list(self.members.values()), self.targets)

    def load(self, snapshot: ConsumerGroupSnapshot) -> None:
        """Take a fresh group to the state of a snapshot."""
        self.epoch, self.assignment_epoch = snapshot.epoch, snapshot.assignment_epoch
        for member in snapshot.members:
            self.add(member)
            self._hold(member, member.holding)
        self.targets.update(snapshot.targets)
        self.note_topics()
        self.resume()


def _within(owned: Mapping[UUID, frozenset[int]] | None, assigned: Mapping[UUID, frozenset[int]]) -> bool:
    if owned is None:
        return False
    return all(indexes <= assigned.get(topic, frozenset()) for topic, indexes in owned.items())
