"""The share sessions of one node, and the partitions that share groups read from it (KIP-932).

A session belongs to a member of a group, and to the connection that opened it. A member names a partition once;
requests count the session's epoch up: 0 opens it, -1 closes it. The end of a session releases the records that its
member has acquired.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias
from uuid import UUID

from kafka.broker.groups.service import SHARE_SESSIONS, GroupService
from kafka.broker.sharing.share_partition import SharePartition, ShareRecord
from kafka.errors import InvalidShareSessionEpochError, ShareSessionLimitReachedError, ShareSessionNotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kafka.broker.cluster.topics import Partition
    from kafka.broker.groups.settings import GroupSettings
    from kafka.broker.server.connection import Connection
    from kafka.broker.server.node import Node

OPEN: Final = 0
CLOSE: Final = -1
_LAST_EPOCH: Final = 2**31 - 1

Place: TypeAlias = "tuple[UUID, int]"
"""Topic id and partition."""


class ShareSession:
    """The partitions that one member reads from one node."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        #: The epoch that the next request must have.
        self.epoch = 1
        self.places: OrderedDict[Place, None] = OrderedDict()

    def advance(self) -> None:
        """Count a request."""
        self.epoch = 1 if self.epoch == _LAST_EPOCH else self.epoch + 1


class ShareSessions:
    """All sessions of one node."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._cluster = node.cluster
        self._sessions: dict[tuple[str, str], ShareSession] = {}
        self._partitions: dict[tuple[str, UUID, int], SharePartition] = {}
        self._coordinator = self._cluster.service(GroupService).coordinator

    def settings_of(self, group: str) -> GroupSettings:
        """Return the settings of a group."""
        return self._coordinator.settings_of(group)

    # Sessions

    def open(self, group: str, member: str, places: Iterable[Place], connection: Connection) -> ShareSession:
        """Open a session, in the place of the one that the member has; it keeps what it has acquired."""
        key = (group, member)
        if key not in self._sessions and len(self._sessions) >= self.settings_of(group).share_max_sessions:
            raise ShareSessionLimitReachedError
        session = self._sessions[key] = ShareSession(connection)
        session.places.update(dict.fromkeys(places))
        connection.on_lost(partial(self._lost, key, connection))
        return session

    def resume(
        self, group: str, member: str, epoch: int, added: Iterable[Place], forgotten: Iterable[Place]
    ) -> ShareSession:
        """Return the session that a request continues, with its changes."""
        session = self._sessions.get((group, member))
        if session is None:
            raise ShareSessionNotFoundError
        if epoch == CLOSE:
            return session
        if epoch != session.epoch:
            raise InvalidShareSessionEpochError
        session.advance()
        session.places.update(dict.fromkeys(added))
        for place in forgotten:
            session.places.pop(place, None)
        return session

    def close(self, group: str, member: str) -> None:
        """End a session: the records that its member has are available again."""
        if self._sessions.pop((group, member), None) is None:
            return
        for (of_group, _, _), shared in list(self._partitions.items()):
            if of_group == group:
                shared.release(member)

    def _lost(self, key: tuple[str, str], connection: Connection) -> None:
        session = self._sessions.get(key)
        if session is not None and session.connection is not connection:
            return
        if self._node.memory.get(SHARE_SESSIONS) is not self:
            # The node has stopped: it stores nothing any more.
            self.stop()
            return
        self.close(*key)
        if not self._has_sessions(group := key[0]):
            # As in Kafka: the next member begins with what is stored, and so with other pieces.
            self.forget(group)

    def _has_sessions(self, group: str) -> bool:
        return any(of_group == group for of_group, _ in self._sessions)

    # Partitions

    def partition(self, group: str, place: Place) -> SharePartition | None:
        """Return a partition that the group reads from here, None if it does not."""
        key = (group, *place)
        shared = self._partitions.get(key)
        if shared is not None and shared.is_closed:
            del self._partitions[key]
            return None
        return shared

    def begin(self, group: str, partition: Partition) -> SharePartition:
        """Return a partition as the group reads it from this node, which leads it."""
        place = (partition.topic.id, partition.index)
        found = self.partition(group, place)
        if found is None:
            key = (group, *place)
            found = self._partitions[key] = self._stored(group, partition)
        return found

    def records(self, group: str, partition: Partition) -> dict[int, ShareRecord]:
        """Return the records in delivery; where the group does not read, as it would find them."""
        found = self.partition(group, (partition.topic.id, partition.index))
        if found is None:
            found = self._stored(group, partition)
            found.close()
        return found.records()

    def _stored(self, group: str, partition: Partition) -> SharePartition:
        """Return a partition as it is stored."""
        return SharePartition(
            partition,
            self._coordinator.share_offsets(group),
            partial(self._coordinator.settings_of, group),
            self._cluster.clock,
            self._cluster.timers,
        )

    def offset_set(self, group: str, place: Place) -> None:
        """Have a partition begin again: an administrator has set what is stored of it.

        While there are sessions it ends with its next change, which fails.
        """
        shared = self.partition(group, place)
        if shared is None:
            return
        shared.is_fenced = True
        if not self._has_sessions(group):
            shared.close()

    def forget(self, group: str) -> None:
        """Forget a group's partitions."""
        for (of_group, _, _), shared in self._partitions.items():
            if of_group == group:
                shared.close()

    def stop(self) -> None:
        """Forget all."""
        self._sessions.clear()
        for shared in self._partitions.values():
            shared.close()
        self._partitions.clear()


def share_sessions(node: Node) -> ShareSessions:
    """Return the sessions of a node."""
    found: ShareSessions | None = node.memory.get(SHARE_SESSIONS)
    if found is None:
        found = node.memory[SHARE_SESSIONS] = ShareSessions(node)
    return found
