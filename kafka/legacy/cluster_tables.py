"""The tables that ``ClusterMetadata`` of kafka-python kept, for subclasses that fill them.

aiokafka up to 0.8 derives its cluster from ours and overrides `update_metadata` with code that writes ``_brokers``,
``_partitions`` and ``_broker_partitions``. Such a subclass gets methods that read these tables.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

from kafka.structs import BrokerMetadata, TopicPartition

__all__ = ["fills_tables", "use_tables"]

_TABLE = "_partitions"


def fills_tables(cls: type) -> bool:
    """Whether a subclass overrides `update_metadata` with code that fills the tables itself."""
    code = getattr(vars(cls).get("update_metadata"), "__code__", None)
    return code is not None and _TABLE in code.co_names


def use_tables(cls: type) -> None:
    """Give a subclass the methods that read the tables, unless it has them itself."""
    for name, value in vars(_Tables).items():
        if not name.startswith("__") and name not in vars(cls):
            setattr(cls, name, value)


class _Tables:
    """The methods, and the attributes that the code of a subclass sets."""

    _brokers: dict[Any, BrokerMetadata] = {}  # noqa: RUF012 - replaced as a whole by who fills it
    _partitions: dict[str, dict[int, Any]] = {}  # noqa: RUF012
    _broker_partitions: dict[Any, set[TopicPartition]] = {}  # noqa: RUF012
    controller: BrokerMetadata | None = None
    internal_topics: Collection[str] = frozenset()
    unauthorized_topics: Collection[str] = frozenset()

    if TYPE_CHECKING:

        def bootstrap_brokers(self) -> Iterable[BrokerMetadata]: ...

    def brokers(self) -> set[BrokerMetadata]:
        """Return all brokers, or the bootstrap servers before there are any."""
        return set(self._brokers.values()) or set(self.bootstrap_brokers())

    def broker_metadata(self, broker_id: Any) -> BrokerMetadata | None:
        """Return a broker."""
        bootstrap = {broker.nodeId: broker for broker in self.bootstrap_brokers()}
        return self._brokers.get(broker_id) or bootstrap.get(broker_id)

    def topics(self, exclude_internal_topics: bool = True) -> set[str]:
        """Return the topics."""
        topics = set(self._partitions)
        return topics - set(self.internal_topics) if exclude_internal_topics else topics

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        """Return the partitions of a topic."""
        return set(self._partitions[topic]) if topic in self._partitions else None

    def available_partitions_for_topic(self, topic: str) -> set[int] | None:
        """Return the partitions of a topic that have a leader."""
        if topic not in self._partitions:
            return None
        return {number for number, found in self._partitions[topic].items() if found.leader != -1}

    def leader_for_partition(self, partition: TopicPartition) -> int | None:
        """Return the leader of a partition; -1 if it has none, None if it is not known."""
        found = self._partitions.get(partition.topic, {}).get(partition.partition)
        return None if found is None else int(found.leader)

    def partitions_for_broker(self, broker_id: int) -> set[TopicPartition] | None:
        """Return the partitions that a broker leads."""
        return self._broker_partitions.get(broker_id)
