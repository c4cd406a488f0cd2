"""From a classic group to a consumer group and back while its members work (KIP-848, "migration").

During the move some members of a consumer group speak the classic protocol. To them the group's epochs are
generations, JoinGroup reconciles them by one step, and a heartbeat answers REBALANCE_IN_PROGRESS whenever there is a
further step to take. No member waits for another: each is answered at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final
from uuid import UUID

from kafka.broker.groups.assignors import Assignment
from kafka.broker.groups.classic_group import ClassicGroup
from kafka.broker.groups.classic_member import (
    CONSUMER,
    JoinAsk,
    JoinResult,
    Member,
    State,
    SyncAsk,
    SyncResult,
    read_subscription,
)
from kafka.broker.groups.consumer_group import ConsumerGroup
from kafka.broker.groups.consumer_member import ClassicTerms, ConsumerMember, HeartbeatAsk, Holding, MemberState
from kafka.broker.groups.epoch_group import Topics
from kafka.broker.groups.group import Answer
from kafka.broker.groups.pattern import compile_re2
from kafka.errors import (
    BrokerResponseError,
    Code,
    FencedInstanceIdError,
    GroupIdNotFoundError,
    GroupMaxSizeReachedError,
    IllegalGenerationError,
    InconsistentGroupProtocolError,
    KafkaError,
    RebalanceInProgressError,
    UnknownMemberIdError,
    UnreleasedInstanceIdError,
)
from kafka.protocol.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription

_NEWEST: Final = 3


class ClassicFace:
    """What classic members see of a consumer group."""

    def __init__(
        self,
        group: ConsumerGroup,
        topics: Topics,
        new_id: Callable[[], str],
        on_join: Callable[[ConsumerGroup], object],
    ) -> None:
        self._group = group
        self._topics = topics
        self._new_id = new_id
        self._on_join = on_join

    # Joining

    def join(self, ask: JoinAsk) -> Answer[JoinResult]:
        """Join, or take the next step; answered at once."""
        try:
            result = self._join(ask)
        except BrokerResponseError as error:
            result = JoinResult(error.code, ask.member_id)
        self._on_join(self._group)
        return Answer.of(result)

    def _join(self, ask: JoinAsk) -> JoinResult:
        group = self._group
        subscription = self._subscription(ask)
        if not ask.member_id and ask.instance_id is None and ask.needs_id_first:
            return JoinResult(Code.MEMBER_ID_REQUIRED, self._make_id(ask))
        member = self._member_for(ask)
        names_before, regex_before = member.names, member.regex
        owned = self._owned(member, subscription)
        member.client_id, member.client_host = ask.client_id, ask.client_host
        member.rack_id = subscription.rack_id
        member.rebalance_timeout = ask.rebalance_timeout
        member.names, member.regex = frozenset(subscription.topics), None
        member.classic = ClassicTerms(ask.session_timeout, ask.protocols)
        changed = group.subscription_changed(member, names_before, regex_before)
        group.advance(member, owned, changed=changed)
        group.watch(member)
        group.expel_after(member, ask.rebalance_timeout)
        return JoinResult(0, member.member_id, member.epoch, CONSUMER, member.classic.protocol_name)

    def _subscription(self, ask: JoinAsk) -> ConsumerProtocolSubscription:
        if ask.protocol_type != CONSUMER or not ask.protocols:
            raise InconsistentGroupProtocolError
        mine = {name for name, _ in ask.protocols}
        for member in self._group.members.values():
            if member.classic is not None and member.member_id != ask.member_id:
                mine &= {name for name, _ in member.classic.protocols}
        subscription = read_subscription(ask.protocols[0][1])
        if not mine or subscription is None:
            raise InconsistentGroupProtocolError
        return subscription

    def _make_id(self, ask: JoinAsk) -> str:
        return f"{ask.instance_id or ask.client_id}-{self._new_id()}"

    def _member_for(self, ask: JoinAsk) -> ConsumerMember:
        group = self._group
        if ask.instance_id is None:
            known = group.members.get(ask.member_id)
            # An id that is not known was given out with MEMBER_ID_REQUIRED; the coordinator keeps no list of such ids.
            return known or group.add(ConsumerMember(ask.member_id or self._make_id(ask)))
        present = group.members.get(group.static.get(ask.instance_id, ""))
        if ask.member_id:
            return group.expect_static(ask.instance_id, ask.member_id)
        if present is None:
            return group.add(ConsumerMember(self._make_id(ask), ask.instance_id))
        fresh = group.replace_static(present, self._make_id(ask))
        fresh.holding = replace(fresh.holding, epoch=group.assignment_epoch)
        return fresh

    def _owned(self, member: ConsumerMember, subscription: ConsumerProtocolSubscription) -> Assignment:
        # What it says it owns counts for the generation that it was at; else it has lost it.
        if subscription.generation_id not in (-1, member.epoch):
            return {}
        found: Assignment = {}
        for topic, partitions in subscription.owned_partitions:
            topic_id = self._topics.topic_id(topic)
            if topic_id is not None and partitions:
                found[topic_id] = frozenset(partitions)
        return found

    # Synchronising, staying, leaving

    def sync(self, ask: SyncAsk) -> Answer[SyncResult]:
        """Tell a member what it has; answered at once."""
        try:
            return Answer.of(self._sync(ask))
        except BrokerResponseError as error:
            return Answer.of(SyncResult(error.code))

    def _sync(self, ask: SyncAsk) -> SyncResult:
        member = self._expect(ask.member_id, ask.instance_id)
        classic = self._at_generation(member, ask.generation)
        if (ask.protocol_type or CONSUMER) != CONSUMER or (
            ask.protocol_name is not None and ask.protocol_name != classic.protocol_name
        ):
            raise InconsistentGroupProtocolError
        behind = self._group.epoch > member.epoch
        if behind and member.holding.state is not MemberState.UNREVOKED_PARTITIONS:
            self._expect_join(member)
            raise RebalanceInProgressError
        member.stop_rebalance()
        self._group.watch(member)
        version = int.from_bytes(classic.metadata[:2], "big")
        assignment = write_assignment(member.assigned, self._topics, version)
        return SyncResult(0, assignment, CONSUMER, classic.protocol_name)

    def heartbeat(self, member_id: str, instance_id: str | None, generation: int) -> None:
        """Record that a member is alive; raise the error for its reply."""
        member = self._expect(member_id, instance_id)
        self._at_generation(member, generation)
        self._group.watch(member)
        state = member.holding.state
        if (
            member.epoch < self._group.epoch
            or state is MemberState.UNREVOKED_PARTITIONS
            or (state is MemberState.UNRELEASED_PARTITIONS and not self._group.waits_for_others(member))
        ):
            self._expect_join(member)
            raise RebalanceInProgressError

    def leave(self, members: Iterable[tuple[str, str | None]]) -> list[int]:
        """Let members go; return an error code for each."""
        return [self._leave(member_id, instance_id) for member_id, instance_id in members]

    def _leave(self, member_id: str, instance_id: str | None) -> int:
        try:
            if instance_id is not None and not member_id:
                member_id = self._group.static.get(instance_id, "")
            member = self._expect(member_id, instance_id, classic_only=False)
        except BrokerResponseError as error:
            return error.code
        self._group.remove(member.member_id)
        return 0

    def _expect(self, member_id: str, instance_id: str | None, *, classic_only: bool = True) -> ConsumerMember:
        group = self._group
        if instance_id is not None:
            known = group.static.get(instance_id)
            if known is None:
                raise UnknownMemberIdError
            if known != member_id:
                raise FencedInstanceIdError
        member = group.members.get(member_id)
        if member is None or (classic_only and member.classic is None):
            raise UnknownMemberIdError
        return member

    def _at_generation(self, member: ConsumerMember, generation: int) -> ClassicTerms:
        assert member.classic is not None
        if generation != member.epoch:
            raise IllegalGenerationError
        return member.classic

    def _expect_join(self, member: ConsumerMember) -> None:
        if member.rebalance is None:
            self._group.expel_after(member, member.rebalance_timeout)


def write_assignment(assigned: Mapping[UUID, frozenset[int]], topics: Topics, version: int) -> bytes:
    """Return an assignment in the form in which classic consumers tell each other."""
    version = min(max(version, 0), _NEWEST)
    named = [
        (name, sorted(partitions))
        for topic_id, partitions in assigned.items()
        if (name := topics.topic_name(topic_id)) is not None
    ]
    return version.to_bytes(2, "big") + ConsumerProtocolAssignment[version](sorted(named), None).encode()


def read_assignment(data: bytes, topics: Topics) -> Assignment:
    """Read what a classic leader has assigned; what cannot be read is nothing."""
    version = int.from_bytes(data[:2], "big", signed=True)
    if len(data) < 2 or version < 0:
        return {}
    try:
        assignment = ConsumerProtocolAssignment[min(version, _NEWEST)].decode_prefix(bytes(data), start=2)[0]
    except KafkaError:
        return {}
    found: Assignment = {}
    for topic, partitions in assignment.assigned_partitions:
        topic_id = topics.topic_id(topic)
        if topic_id is not None and partitions:
            found[topic_id] = frozenset(partitions)
    return found


def why_no_upgrade(group: ClassicGroup) -> str | None:
    """Return why a group in use cannot become a consumer group; None if it can."""
    settings = group.settings
    if settings.consumer_migration_policy not in ("upgrade", "bidirectional"):
        return "the online upgrade is disabled"
    if group.protocol_type != CONSUMER:
        return "it does not use the consumer embedded protocol"
    if len(group.roster) > settings.consumer_max_size:
        return "it exceeds the maximum size of a consumer group"
    if any(read_subscription(member.metadata(member.protocols[0][0])) is None for member in group.roster):
        return "a subscription cannot be read"
    return None


def check_first_join(group: ClassicGroup | None, ask: HeartbeatAsk, max_size: int) -> None:
    """Raise what a member's join would be refused with, before a group is made, or made of another, for its sake."""
    if ask.regex:
        compile_re2(ask.regex)
    if group is None:
        return
    if len(group.roster) >= max_size and ask.member_id not in group.roster:
        raise GroupMaxSizeReachedError(f"The consumer group has reached its maximum capacity of {max_size} members.")
    if ask.instance_id in group.roster.static:
        raise UnreleasedInstanceIdError(f"Instance id {ask.instance_id} is still owned by a classic member.")


def upgrade(group: ClassicGroup, into: ConsumerGroup, topics: Topics) -> None:
    """Move the members of a classic group into a consumer group, with all that they have."""
    reason = why_no_upgrade(group)
    if reason is not None:
        raise GroupIdNotFoundError(f"Cannot upgrade classic group {group.group_id} to consumer group because {reason}.")
    knows_assignments = group.state is State.STABLE or group.state is State.PREPARING
    members = list(group.roster)
    group.resign(Code.REBALANCE_IN_PROGRESS)
    into.epoch = into.assignment_epoch = group.generation
    for old in members:
        subscription = read_subscription(old.protocols[0][1])
        assert subscription is not None
        member = into.add(
            ConsumerMember(
                old.member_id,
                old.instance_id,
                old.client_id,
                old.client_host,
                subscription.rack_id,
                old.rebalance_timeout,
                names=frozenset(subscription.topics),
                classic=ClassicTerms(old.session_timeout, old.protocols),
            )
        )
        assigned = read_assignment(old.assignment, topics) if knows_assignments else {}
        into.adopt(member, Holding(group.generation, group.generation, assigned=assigned))
        into.watch(member)
    into.note_topics()


def downgrade(group: ConsumerGroup, into: ClassicGroup, topics: Topics) -> None:
    """Move the members of a consumer group, all of them classic, into a classic group; they rebalance at once."""
    members = []
    for old in group.members.values():
        assert old.classic is not None
        members.append(
            Member(
                old.member_id,
                old.instance_id,
                old.client_id,
                old.client_host,
                rebalance_timeout=old.rebalance_timeout,
                session_timeout=old.classic.session_timeout,
                protocols=old.classic.protocols,
                assignment=write_assignment(old.assigned, topics, int.from_bytes(old.classic.metadata[:2], "big")),
            )
        )
    group.resign()
    into.generation = group.epoch
    into.become_stable(members, CONSUMER, None, None)
    into.force_rebalance()
