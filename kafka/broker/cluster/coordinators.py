"""Which node coordinates a group or a transaction: by the hash of its name, as Kafka's internal topics do it.

A coordinator's state belongs to the cluster, so a move costs nothing but the client's knowledge of where to ask; that
is what ``rehash`` is for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kafka.broker.cluster.cluster import Cluster
    from kafka.broker.server.node import Node

#: Kinds of keys, as FindCoordinator numbers them.
GROUP: Final = 0
TRANSACTION: Final = 1
SHARE: Final = 2

PARTITIONS: Final = 50


def java_hash(text: str) -> int:
    """Return Java's ``String.hashCode``, by which Kafka spreads groups over partitions.

    >>> java_hash("hello"), java_hash("polygenelubricants")
    (99162322, -2147483648)
    """
    code = 0
    data = text.encode("utf-16-be")
    for at in range(0, len(data), 2):
        code = (31 * code + (data[at] << 8 | data[at + 1])) & 0xFFFFFFFF
    return code - (1 << 32) if code & 0x80000000 else code


class Coordinators:
    """The assignment of groups and transactional ids to nodes."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._turn = 0
        self._on_move: list[Callable[[], None]] = []

    def partition_for(self, key: str) -> int:
        """Return the partition of the internal topic that would hold the key."""
        return (java_hash(key) & 0x7FFFFFFF) % PARTITIONS

    def node_for(self, kind: int, key: str) -> Node | None:
        """Return the running node that coordinates ``key``; None while no node runs."""
        running = [node for node in self._cluster.nodes.values() if node.is_live]
        if not running:
            return None
        return running[(self.partition_for(key) + kind + self._turn) % len(running)]

    def is_at(self, node: Node, kind: int, key: str) -> bool:
        """Whether ``node`` is the one to ask; others answer NOT_COORDINATOR."""
        return self.node_for(kind, key) is node

    def rehash(self) -> None:
        """Move every group and transaction to another node, where there is one."""
        self._turn += 1
        self.moved()

    def moved(self) -> None:
        """Call the listeners: assignments have changed (a node stopped or started, or a rehash)."""
        for call in self._on_move:
            call()

    def on_move(self, call: Callable[[], None]) -> None:
        """Call ``call`` whenever coordinators have moved, so that waiting requests can be answered NOT_COORDINATOR."""
        self._on_move.append(call)
