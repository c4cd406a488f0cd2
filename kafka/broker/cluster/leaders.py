"""Where replicas go and who leads them. Pure decisions: nothing here touches a log or a connection."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from random import Random
from typing import TYPE_CHECKING

from kafka.broker.cluster.topics import NO_LEADER

if TYPE_CHECKING:
    from kafka.broker.cluster.topics import Partition

__all__ = ["elect", "move", "place", "replace"]


def place(
    partitions: int, copies: int, nodes: Sequence[int], random: Random, start: int | None = None
) -> list[list[int]]:
    """Return the replicas of each partition, leaders spread evenly from a random node on.

    >>> place(3, 2, [1, 2, 3], Random(0), start=0)
    [[1, 2], [2, 3], [3, 1]]
    """
    first = random.randrange(len(nodes)) if start is None else start
    count = len(nodes)
    return [[nodes[(first + index + copy) % count] for copy in range(copies)] for index in range(partitions)]


def elect(partition: Partition, live: Collection[int]) -> bool:
    """Bring ISR and leader in line with the nodes that run; return whether anything changed.

    Notional replicas are never behind, so each one that runs is in sync. A leader that runs stays.
    """
    ready = [node for node in partition.replicas if node in live]
    # A replica that joins the ISR comes last in it.
    isr = [node for node in partition.isr if node in ready]
    isr += [node for node in ready if node not in isr]
    leader = partition.leader if partition.leader in ready else ready[0] if ready else NO_LEADER
    # Kafka keeps the last member of the ISR: without it the replica that has all records would be unknown.
    isr = isr or partition.isr[:1] or partition.replicas[:1]
    if leader == partition.leader and isr == partition.isr:
        return False
    partition.isr = isr
    partition.partition_epoch += 1
    if leader != partition.leader:
        _lead(partition, leader)
    return True


def move(partition: Partition, node_id: int) -> None:
    """Make a node the leader; one that was no replica takes the old leader's place among them."""
    if node_id == partition.leader:
        return
    if node_id not in partition.replicas:
        at = partition.replicas.index(partition.leader) if partition.leader in partition.replicas else 0
        partition.replicas = [*partition.replicas[:at], node_id, *partition.replicas[at + 1 :]]
    if node_id not in partition.isr:
        partition.isr = [node for node in partition.replicas if node in partition.isr or node == node_id]
    partition.partition_epoch += 1
    _lead(partition, node_id)


def replace(partition: Partition, replicas: list[int], live: Collection[int]) -> None:
    """Give a partition other replicas; its leader stays if it is one of them."""
    partition.replicas = list(replicas)
    partition.partition_epoch += 1
    if partition.leader not in replicas:
        partition.isr = []
    elect(partition, live)


def _lead(partition: Partition, leader: int) -> None:
    partition.leader = leader
    partition.leader_epoch += 1
    if leader != NO_LEADER:
        partition.log.begin_epoch(partition.leader_epoch)
    partition.changed()
