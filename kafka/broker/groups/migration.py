"""From a classic group to a consumer group and back while its members are at work (KIP-848, "migration").

Up: the first member that speaks the consumer protocol turns the group; the classic members stay in it and keep what
they read. Down: when the last such member is gone, the classic members that are left form a classic group and
rebalance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka.broker.groups.classic_members import read_assignment, write_assignment
from kafka.broker.groups.classic_types import State
from kafka.broker.groups.consumer_types import ClassicTerms, ConsumerMember
from kafka.broker.groups.members import CONSUMER, Member, read_subscription
from kafka.broker.groups.pattern import compile_re2
from kafka.broker.groups.reconcile import Holding
from kafka.errors import (
    Code,
    GroupIdNotFoundError,
    GroupMaxSizeReachedError,
    UnreleasedInstanceIdError,
)

if TYPE_CHECKING:
    from kafka.broker.groups.classic import ClassicGroup
    from kafka.broker.groups.consumer import ConsumerGroup
    from kafka.broker.groups.consumer_types import HeartbeatAsk
    from kafka.broker.groups.interfaces import Topics

__all__ = ["check_first_join", "downgrade", "upgrade", "why_no_upgrade"]


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
                subscription.rack_id,
                old.client_id,
                old.client_host,
                old.rebalance_timeout,
                frozenset(subscription.topics),
                classic=ClassicTerms(old.session_timeout, old.protocols),
            )
        )
        assigned = read_assignment(old.assignment, topics) if knows_assignments else {}
        into.adopt(member, Holding(group.generation, group.generation, assigned=assigned))
        into.watch(member, old.session_timeout)
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
                old.classic.session_timeout,
                old.rebalance_timeout,
                old.classic.protocols,
                write_assignment(old.assigned, topics, int.from_bytes(old.classic.metadata[:2], "big")),
            )
        )
    group.resign()
    into.generation = group.epoch
    into.restore(members, CONSUMER, None, None)
    into.force_rebalance()
