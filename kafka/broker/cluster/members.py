"""The members of a group, for tests that want to see or expire them, whichever protocol the group speaks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka.broker.groups.classic import ClassicGroup
from kafka.broker.groups.service import GroupService
from kafka.errors import GroupIdNotFoundError, IllegalArgumentError

if TYPE_CHECKING:
    from kafka.broker.cluster.cluster import Cluster
    from kafka.structs import TopicPartition

__all__ = ["committed_offset", "expire_member", "members_of"]


def members_of(cluster: Cluster, group_id: str) -> dict[str, str]:
    """Return the client's name of each member, by the member's id."""
    group = cluster.service(GroupService).coordinator.groups.get(group_id)
    if group is None:
        raise GroupIdNotFoundError(f"there is no group {group_id!r}")
    members = group.roster if isinstance(group, ClassicGroup) else group.members.values()
    return {member.member_id: member.client_id for member in members}


def committed_offset(cluster: Cluster, group_id: str, partition: TopicPartition) -> int | None:
    """Return the offset that a group has committed; None if it has not."""
    offsets = cluster.service(GroupService).coordinator.offsets.get(group_id)
    found = None if offsets is None else offsets.committed.get(partition)
    return None if found is None else found.offset


def expire_member(cluster: Cluster, group_id: str, member: str | None) -> None:
    """End the session of the member with this id or client's name; with None, of the only one."""
    found = [
        member_id
        for member_id, client_id in members_of(cluster, group_id).items()
        if member is None or member in {member_id, client_id}
    ]
    if len(found) != 1:
        whose = "has" if member is None else f"called {member!r} has"
        raise IllegalArgumentError(f"the group {group_id!r} {whose} {len(found)} members: say which one")
    cluster.service(GroupService).coordinator.expel(group_id, found[0])
