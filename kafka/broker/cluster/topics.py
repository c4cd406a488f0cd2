"""Topics and partitions of the cluster: logs, replicas, placement of replicas, election of leaders."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Sequence
from random import Random
from typing import Any, Final

from kafka.broker.storage.log import Log
from kafka.structs import TopicPartition

INTERNAL_TOPICS: Final = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
NO_LEADER: Final = -1
_LONGEST: Final = 249
_LEGAL: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def name_problem(name: str) -> str | None:
    """Return what Kafka says about a name that no topic can have; None if it can.

    >>> name_problem("a.b_c-1") is None
    True
    >>> name_problem("..")
    "Topic name is invalid: '..' is not allowed"
    """
    if not name:
        return "Topic name is invalid: the empty string is not allowed"
    if name in {".", ".."}:
        return f"Topic name is invalid: '{name}' is not allowed"
    if len(name) > _LONGEST:
        return f"Topic name is invalid: the length of '{name}' is longer than the max allowed length {_LONGEST}"
    if not _LEGAL.issuperset(name):
        return (
            f"Topic name is invalid: '{name}' contains one or more characters other than ASCII alphanumerics, "
            "'.', '_' and '-'"
        )
    return None


def is_valid_topic_name(name: str) -> bool:
    """Whether a topic may have that name."""
    return name_problem(name) is None


class Partition:
    """One partition: its log, shared by its notional replicas, and who leads it.

    ``replicas`` is in order of preference. ``isr`` are the replicas whose nodes run. A move of the leader, to another
    node or to none, counts up ``leader_epoch``.
    """

    __slots__ = ("_watchers", "index", "isr", "leader", "leader_epoch", "log", "partition_epoch", "replicas", "topic")

    def __init__(self, topic: Topic, index: int, replicas: list[int], log: Log) -> None:
        self.topic = topic
        self.index = index
        self.replicas = replicas
        self.isr = list(replicas)
        self.leader = replicas[0]
        self.leader_epoch = 0
        self.partition_epoch = 0
        self.log = log
        self._watchers: set[Callable[[Partition], None]] = set()

    @property
    def tp(self) -> TopicPartition:
        """Its name."""
        return TopicPartition(self.topic.name, self.index)

    @property
    def min_insync_replicas(self) -> int:
        """How many replicas must be in sync for acks=all: never more than there are (KIP-966)."""
        return min(self.log.config.min_insync_replicas, len(self.replicas))

    # Fetches that wait for records

    def watch(self, call: Callable[[Partition], None]) -> None:
        """Call ``call(partition)`` after each change that a waiting reader may care about."""
        self._watchers.add(call)

    def unwatch(self, call: Callable[[Partition], None]) -> None:
        """Stop calling."""
        self._watchers.discard(call)

    def changed(self) -> None:
        """Tell the watchers: records were appended, the leader moved, the topic was deleted, a marker was written."""
        if self._watchers:
            for call in tuple(self._watchers):
                call(self)


class Topic:
    """One topic."""

    __slots__ = ("configs", "id", "is_deleted", "is_internal", "name", "partitions")

    def __init__(self, name: str, topic_id: uuid.UUID, configs: dict[str, str] | None = None) -> None:
        self.name = name
        self.id = topic_id
        #: The options that are set for this topic.
        self.configs: dict[str, str] = dict(configs or {})
        self.partitions: list[Partition] = []
        self.is_internal = name in INTERNAL_TOPICS
        self.is_deleted = False

    def partition(self, index: int) -> Partition | None:
        """Return a partition, or None if the topic has none with that number."""
        return self.partitions[index] if 0 <= index < len(self.partitions) else None

    def to_json(self) -> dict[str, Any]:
        """Return what the store keeps of the topic."""
        return {
            "id": str(self.id),
            "configs": self.configs,
            "partitions": [[p.replicas, p.leader, p.leader_epoch] for p in self.partitions],
        }


def place_replicas(partitions: int, copies: int, nodes: Sequence[int], random: Random) -> list[list[int]]:
    """Return the replicas of each partition, leaders spread evenly from a random node on.

    >>> place_replicas(3, 2, [1, 2, 3], Random(0))
    [[2, 3], [3, 1], [1, 2]]
    """
    count = len(nodes)
    first = random.randrange(count)
    return [[nodes[(first + index + copy) % count] for copy in range(copies)] for index in range(partitions)]


def elect_leader(partition: Partition, live: Collection[int]) -> bool:
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


def move_leader(partition: Partition, node_id: int) -> None:
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


def replace_replicas(partition: Partition, replicas: list[int], live: Collection[int]) -> None:
    """Give a partition other replicas; its leader stays if it is one of them."""
    partition.replicas = list(replicas)
    partition.partition_epoch += 1
    if partition.leader not in replicas:
        partition.isr = []
    elect_leader(partition, live)


def _lead(partition: Partition, leader: int) -> None:
    partition.leader = leader
    partition.leader_epoch += 1
    if leader != NO_LEADER:
        partition.log.begin_epoch(partition.leader_epoch)
    partition.changed()
