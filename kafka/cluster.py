"""`ClusterMetadata`: the metadata of a client with the questions of applications, assignors and partitioners.

The state, and when it must be refreshed, is that of `kafka._core.metadata.Metadata`.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from random import Random
from typing import Any, ClassVar, Final
from uuid import UUID

from kafka._arguments import explain_key, explain_partition
from kafka._core.metadata import Metadata
from kafka._historic import historic_names
from kafka._runtime.clock import SYSTEM_CLOCK, Clock
from kafka._runtime.timers import Backoff
from kafka.config import Config, collect_hosts, get_ip_port_afi, parse_servers, part_of_defaults, resolve_part
from kafka.errors import Code, for_code
from kafka.structs import BrokerMetadata, PartitionMetadata, TopicPartition

__all__ = ["ClusterMetadata", "NodeId", "collect_hosts", "get_ip_port_afi"]

log = logging.getLogger(__name__)

GROUP: Final = 0
TRANSACTION: Final = 1


class NodeId(int):
    """A broker's id that is true even for broker 0: older programs test it as a bool.

    >>> bool(NodeId(0)), NodeId(0) == 0
    (True, True)
    """

    def __bool__(self) -> bool:
        return True


@historic_names("kafka.legacy.private_names:ClusterNames")
class ClusterMetadata(Metadata):
    """The cluster as far as it is known.

    Keyword arguments are the options in ``ClusterMetadata.DEFAULT_CONFIG``.

    >>> cluster = ClusterMetadata(bootstrap_servers="b1:9092")
    >>> cluster.bootstrap_brokers()[0].host
    'b1'
    >>> cluster.topics(), cluster.partitions_for_topic("events"), cluster.ttl()
    (set(), None, 0.0)
    """

    DEFAULT_CONFIG: ClassVar[dict[str, Any]] = part_of_defaults(
        "client",
        "bootstrap_servers",
        "client_dns_lookup",
        "retry_backoff_ms",
        "retry_backoff_max_ms",
        "metadata_max_age_ms",
        "allow_auto_create_topics",
    )

    def __init__(
        self, *, config: Config | None = None, clock: Clock = SYSTEM_CLOCK, rng: Random | None = None, **configs: Any
    ) -> None:
        if rng is None:
            from random import Random as SystemSeeded

            rng = SystemSeeded()  # noqa: S311 - jitter
        if config is None:
            config = resolve_part("ClusterMetadata", "client", configs, self.DEFAULT_CONFIG)
        self.config = config
        super().__init__(
            [(address.host, address.port) for address in parse_servers(config["bootstrap_servers"])],
            clock,
            Backoff(config.seconds("retry_backoff_ms"), config.seconds("retry_backoff_max_ms"), rng),
            max_age=config.seconds("metadata_max_age_ms"),
            auto_create_topics=config.get("allow_auto_create_topics", True),  # an admin client has no such option
        )

    # Brokers…

    def brokers(self) -> set[BrokerMetadata]:
        """All brokers; the bootstrap servers as long as no broker is known."""
        return set(self.topology.brokers.values()) or set(self._bootstrap)

    def broker_metadata(self, broker_id: int | str) -> BrokerMetadata | None:
        """The address of a broker, a coordinator or a bootstrap server; None if it is not known."""
        if isinstance(broker_id, str):
            return next((broker for broker in self._bootstrap if broker.nodeId == broker_id), None)
        try:
            return self.topology.brokers.get(broker_id) or self._coordinator_brokers.get(broker_id)
        except TypeError:  # not hashable
            explain_key("broker_id", broker_id, "a broker's id")

    @property
    def controller(self) -> BrokerMetadata | None:
        """The broker to send administrative requests to."""
        return self.topology.brokers.get(self.topology.controller_id)

    # aiokafka 0.8 fills these and the tables of `ClusterNames` itself.

    @controller.setter
    def controller(self, broker: BrokerMetadata | None) -> None:
        self.topology = self.topology.changed(controller_id=-1 if broker is None else broker.nodeId)

    @property
    def cluster_id(self) -> str | None:
        """The cluster's own name for itself."""
        return self.topology.cluster_id

    # Topics…

    def topics(self, exclude_internal_topics: bool = True) -> set[str]:
        """The topics known, with or without the cluster's internal ones."""
        found = set(self.topology.topics)
        return found - self.topology.internal_topics if exclude_internal_topics else found

    @property
    def internal_topics(self) -> set[str]:
        """The topics that the cluster keeps for itself."""
        return set(self.topology.internal_topics)

    @internal_topics.setter
    def internal_topics(self, topics: Collection[str]) -> None:
        self.topology = self.topology.changed(internal_topics=frozenset(topics))

    @property
    def unauthorized_topics(self) -> set[str]:
        """The topics that this client may not describe."""
        return {name for name, code in self.topology.errors.items() if code == Code.TOPIC_AUTHORIZATION_FAILED}

    @unauthorized_topics.setter
    def unauthorized_topics(self, topics: Collection[str]) -> None:
        errors = {name: code for name, code in self.topology.errors.items() if name not in self.unauthorized_topics}
        refused = dict.fromkeys(topics, int(Code.TOPIC_AUTHORIZATION_FAILED))
        self.topology = self.topology.changed(errors={**errors, **refused})

    def topic_error(self, topic: str) -> type[Exception] | None:
        """The error with which the cluster last answered for a topic, None if there was none."""
        try:
            code = self.topology.errors.get(topic)
        except TypeError:  # not hashable
            explain_key("topic", topic, "a topic's name")
        return None if code is None else for_code(code)

    def topic_id(self, topic: str) -> UUID | None:
        """The id of a topic (KIP-516), where brokers have them."""
        try:
            return self.topology.topic_ids.get(topic)
        except TypeError:  # not hashable
            explain_key("topic", topic, "a topic's name")

    def topic_name_for_id(self, topic_id: UUID) -> str | None:
        """The name of the topic with an id."""
        try:
            return self.topology.names_by_id.get(topic_id)
        except TypeError:  # not hashable
            explain_key("topic_id", topic_id, "a topic's UUID")

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        """All partitions of a topic, with a leader or not; None if the topic is not known."""
        try:
            partitions = self.topology.topics.get(topic)
        except TypeError:  # not hashable
            explain_key("topic", topic, "a topic's name")
        return None if partitions is None else set(partitions)

    def available_partitions_for_topic(self, topic: str) -> set[int] | None:
        """The partitions of a topic that have a leader; None if the topic is not known."""
        try:
            partitions = self.topology.topics.get(topic)
        except TypeError:  # not hashable
            explain_key("topic", topic, "a topic's name")
        if partitions is None:
            return None
        return {number for number, partition in partitions.items() if partition.leader != -1}

    def leader_for_partition(self, partition: TopicPartition) -> int | None:
        """The leader's id; -1 if there is none now, None if the partition is not known."""
        try:
            known = self.topology.partition(partition.topic, partition.partition)
        except (AttributeError, TypeError):
            explain_partition(partition)
        return None if known is None else known.leader

    def leader_epoch_for_partition(self, partition: TopicPartition) -> int:
        """The epoch of the leader; -1 if it is not known."""
        try:
            known = self.topology.partition(partition.topic, partition.partition)
        except (AttributeError, TypeError):
            explain_partition(partition)
        return -1 if known is None else known.leader_epoch

    def partition_metadata(self, partition: TopicPartition) -> PartitionMetadata | None:
        """Leader, replicas and state of a partition."""
        try:
            return self.topology.partition(partition.topic, partition.partition)
        except (AttributeError, TypeError):
            explain_partition(partition)

    def partitions_for_broker(self, broker_id: int) -> set[TopicPartition] | None:
        """The partitions that a broker leads; None if there are none."""
        try:
            return set(self.topology.led_by(broker_id)) or None
        except TypeError:  # not hashable
            explain_key("broker_id", broker_id, "a broker's id")

    def is_replica_node(self, partition: TopicPartition, node_id: int) -> bool:
        """Whether a broker has a copy of a partition that is online."""
        try:
            known = self.topology.partition(partition.topic, partition.partition)
        except (AttributeError, TypeError):
            explain_partition(partition)
        return known is not None and node_id in known.replicas and node_id not in known.offline_replicas

    def with_partitions(self, partitions_to_add: Iterable[PartitionMetadata]) -> ClusterMetadata:
        """A copy that has some partitions more."""
        copy = ClusterMetadata(config=self.config, clock=self._clock)
        copy.need_all_topic_metadata = self.need_all_topic_metadata
        topics = {name: dict(partitions) for name, partitions in self.topology.topics.items()}
        for partition in partitions_to_add:
            topics.setdefault(partition.topic, {})[partition.partition] = partition
        copy.topology = self.topology.changed(topics=topics)
        copy._coordinators = dict(self._coordinators)
        copy._bootstrap = self._bootstrap
        return copy

    # Coordinators…

    def coordinator_for_group(self, group: str) -> int | None:
        """The id of a group's coordinator; -1 if it has none now, None if it was not looked up."""
        try:
            return self._coordinators.get((GROUP, group))
        except TypeError:  # not hashable
            explain_key("group", group, "a group's id")

    def get_coordinator(self, key_type: int, key: str) -> int | None:
        """The id of the coordinator of a group (key type 0), a transaction (1) or a share group (2)."""
        try:
            return self._coordinators.get((key_type, key))
        except TypeError:  # not hashable
            explain_key("key", key, "a group's or transaction's id")

    def add_group_coordinator(self, group: str, response: object) -> NodeId | None:
        """Take a reply about a group's coordinator; its id, or None if the reply is an error."""
        return self.add_coordinator(response, GROUP, group)

    def add_coordinator(self, response: Any, key_type: int, key: str) -> NodeId | None:
        """Take a reply about a coordinator; its id, or None if the reply is an error."""
        entries = getattr(response, "coordinators", None)
        entry = next((entry for entry in entries or () if entry.key == key), None) or response
        if entry.error_code:
            log.debug("No coordinator for %s: %s", key, for_code(entry.error_code).__name__)
            self._coordinators[key_type, key] = -1
            return None
        node_id = NodeId(entry.node_id)
        self._coordinator_brokers[node_id] = BrokerMetadata(int(node_id), entry.host, entry.port, None)
        self._coordinators[key_type, key] = node_id
        return node_id

    def forget_coordinator(self, key_type: int, key: str) -> None:
        """Look a coordinator up again the next time."""
        try:
            self._coordinators.pop((key_type, key), None)
        except TypeError:  # not hashable
            explain_key("key", key, "a group's or transaction's id")

    # Times, in milliseconds…

    def ttl(self) -> float:
        """Milliseconds until metadata should be refreshed; 0 for now."""
        return self.due_in() * 1000

    def refresh_backoff(self) -> float:
        """Milliseconds to wait after the last failure before the next attempt."""
        return self.wait * 1000 if self._failures else float(self.config["retry_backoff_ms"])

    def __str__(self) -> str:
        topology = self.topology
        return (
            f"ClusterMetadata(brokers: {len(topology.brokers)}, topics: {len(topology.topics)}, "
            f"coordinators: {len(self._coordinators)})"
        )
