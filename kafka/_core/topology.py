"""A snapshot of the cluster: brokers, topics, partitions and their leaders, and how a response changes it. Sans-IO.

A snapshot is immutable; a response makes a new one. So any thread may read and iterate over one without a lock.

Rules of merging: the response replaces the old state, except that a leader epoch never goes back for the same topic id
(KIP-320: brokers learn of a change one after another, and a broker that is behind must not send the client back to the
old leader). Leader epochs count from version 9 of the response on. A topic with an error keeps its old state; a topic
that is unknown twice in a row is removed.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, cast
from uuid import UUID

from kafka.errors import Code, for_code
from kafka.structs import BrokerMetadata, PartitionMetadata, TopicPartition

if TYPE_CHECKING:
    from kafka.protocol.metadata import MetadataResponse

__all__ = ["Topology", "merged", "merging"]

_NO_ID: Final = UUID(int=0)
_NONE: Final[Mapping[Any, Any]] = {}
# KAFKA-9212: brokers before 2.4, whose newest Metadata is version 8, may report an old leader epoch for as long as a
# reassignment runs. A fetch or a lookup with that epoch is fenced, so their epochs are not used.
_EPOCHS_SINCE: Final = 9

Partitions = Mapping[int, PartitionMetadata]


class Topology:
    """One snapshot."""

    __slots__ = (
        "_by_leader",
        "brokers",
        "cluster_id",
        "controller_id",
        "errors",
        "internal_topics",
        "named",
        "names_by_id",
        "topic_ids",
        "topics",
    )

    def __init__(
        self,
        *,
        brokers: Mapping[int, BrokerMetadata] = _NONE,
        topics: Mapping[str, Partitions] = _NONE,
        errors: Mapping[str, int] = _NONE,
        topic_ids: Mapping[str, UUID] = _NONE,
        internal_topics: frozenset[str] = frozenset(),
        controller_id: int = -1,
        cluster_id: str | None = None,
        names_by_id: Mapping[UUID, str] | None = None,
        named: Collection[str] = (),
    ) -> None:
        self.brokers = brokers
        self.topics = topics
        self.errors = errors
        """Topics whose last answer was an error, with its code."""
        self.topic_ids = topic_ids
        if names_by_id is None:
            names_by_id = {topic_id: name for name, topic_id in topic_ids.items()}
        self.names_by_id = names_by_id
        self.named = named
        """Topics that the last response was about."""
        self.internal_topics = internal_topics
        self.controller_id = controller_id
        self.cluster_id = cluster_id
        self._by_leader: dict[int, frozenset[TopicPartition]] | None = None

    def changed(self, **changes: Any) -> Topology:
        """Return a snapshot that differs in some parts."""
        parts = {
            name: getattr(self, name)
            for name in ("brokers", "topics", "errors", "topic_ids", "internal_topics", "controller_id", "cluster_id")
        }
        parts["named"] = self.named
        if "topic_ids" not in changes:  # the index of the ids stays as it is: it costs more than all the rest
            parts["names_by_id"] = self.names_by_id
        return Topology(**{**parts, **changes})

    def led_by(self, broker_id: int) -> frozenset[TopicPartition]:
        """Return the partitions that a broker leads."""
        found = self._by_leader
        if found is None:
            sets: dict[int, set[TopicPartition]] = {}
            for topic, partitions in self.topics.items():
                for number, partition in partitions.items():
                    sets.setdefault(partition.leader, set()).add(TopicPartition(topic, number))
            found = self._by_leader = {leader: frozenset(led) for leader, led in sets.items()}
        return found.get(broker_id, frozenset())

    def partition(self, topic: str, number: int) -> PartitionMetadata | None:
        """Return what is known about a partition."""
        return self.topics.get(topic, _NONE).get(number)

    def leader_of(self, partition: TopicPartition) -> int | None:
        """Return the leader's id; -1 if there is none now, None if the partition is not known."""
        known = self.topics.get(partition.topic, _NONE).get(partition.partition)
        return None if known is None else known.leader

    def with_leader(
        self, topic: str, number: int, leader: int, epoch: int, brokers: Iterable[BrokerMetadata] = ()
    ) -> Topology | None:
        """Return the snapshot with the leader from a response (KIP-951), or None if that leader is not newer."""
        known = self.partition(topic, number)
        if known is None or leader < 0 or epoch <= known.leader_epoch:
            return None
        partitions = {**self.topics[topic], number: known._replace(leader=leader, leader_epoch=epoch, error=None)}
        added = {int(broker.nodeId): broker for broker in brokers}
        return self.changed(topics={**self.topics, topic: partitions}, brokers={**self.brokers, **added})


def merged(old: Topology, response: MetadataResponse, *, whole: bool, forget: Collection[str] = ()) -> Topology:
    """Return the snapshot after a MetadataResponse; `whole` if the request was for all topics.

    Topics to `forget` stay only if the response has them.
    """
    steps = merging(old, response, whole=whole, forget=forget)
    while True:
        try:
            next(steps)
        except StopIteration as end:  # noqa: PERF203 - once
            return cast("Topology", end.value)


def merging(
    old: Topology, response: MetadataResponse, *, whole: bool, forget: Collection[str] = ()
) -> Generator[None, None, Topology]:
    """Do the work of `merged`, a topic at a time."""
    topics: dict[str, Partitions] = {} if whole else dict(old.topics)
    errors: dict[str, int] = {} if whole else dict(old.errors)
    ids: dict[str, UUID] = {} if whole else dict(old.topic_ids)
    names: dict[UUID, str] = {} if whole else dict(old.names_by_id)  # hashing all ids again costs more than the rest
    internal: set[str] = set() if whole else set(old.internal_topics)
    for gone in forget:
        for table in (topics, errors):
            table.pop(gone, None)
        _drop_id(gone, ids, names)
        internal.discard(gone)
    # A response without a version is not from the wire.
    epochs = getattr(type(response), "API_VERSION", _EPOCHS_SINCE) >= _EPOCHS_SINCE
    for topic in response.topics:
        name = topic.name or old.names_by_id.get(topic.topic_id)
        if name is None:
            continue  # requested by an id that the broker does not know
        if topic.error_code:
            _keep_known(old, name, topic.error_code, topics, errors, ids, names)
            continue
        errors.pop(name, None)
        topic_id = getattr(topic, "topic_id", None) or _NO_ID
        same = old.topic_ids.get(name, topic_id) == topic_id
        known = old.topics.get(name, _NONE) if same and epochs else _NONE
        topics[name] = _partitions(name, topic.partitions, known, epochs=epochs)
        if topic_id != _NO_ID and ids.get(name) != topic_id:
            _drop_id(name, ids, names)
            ids[name], names[topic_id] = topic_id, name
        if topic.is_internal:
            internal.add(name)
        yield
    brokers = {
        broker.node_id: BrokerMetadata(broker.node_id, broker.host, broker.port, broker.rack)
        for broker in response.brokers
    }
    return Topology(
        brokers=brokers,
        topics=topics,
        errors=errors,
        topic_ids=ids,
        internal_topics=frozenset(internal),
        controller_id=response.controller_id,
        cluster_id=response.cluster_id or old.cluster_id,
        names_by_id=names,
        named=[topic.name for topic in response.topics if topic.name is not None],
    )


def _drop_id(name: str, ids: dict[str, UUID], names: dict[UUID, str]) -> None:
    topic_id = ids.pop(name, None)
    if topic_id is not None:
        names.pop(topic_id, None)


def _keep_known(
    old: Topology,
    name: str,
    code: int,
    topics: dict[str, Partitions],
    errors: dict[str, int],
    ids: dict[str, UUID],
    names: dict[UUID, str],
) -> None:
    errors[name] = code
    gone = code == Code.UNKNOWN_TOPIC_OR_PARTITION and old.errors.get(name) == Code.UNKNOWN_TOPIC_OR_PARTITION
    if gone or code == Code.TOPIC_AUTHORIZATION_FAILED:
        topics.pop(name, None)
        _drop_id(name, ids, names)
    elif name in old.topics:
        topics[name] = old.topics[name]
        if name in old.topic_ids:
            ids[name] = old.topic_ids[name]
            names[ids[name]] = name


def _partitions(
    topic: str, said: Iterable[MetadataResponse.MetadataResponsePartition], known: Partitions, *, epochs: bool
) -> Partitions:
    partitions: dict[int, PartitionMetadata] = {}
    for entry in said:
        number = entry.partition_index
        before = known.get(number)
        if before is not None and 0 <= entry.leader_epoch < before.leader_epoch:
            partitions[number] = before
            continue
        partitions[number] = PartitionMetadata(
            topic,
            number,
            entry.leader_id,
            list(entry.replica_nodes),
            list(entry.isr_nodes),
            for_code(entry.error_code) if entry.error_code else None,
            entry.leader_epoch if epochs else -1,
            list(entry.offline_replicas or ()),
        )
    return partitions
