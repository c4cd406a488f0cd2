"""Names of kafka-python's inner classes that programs, tracers and other instrumentation read or call.

They are not part of the interface. Each stands for the object that has the same name there, as far as others use it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Protocol

    # `KafkaProducer` and `KafkaConsumer`, which a module below their packages cannot import.

    class _Producer(Protocol):
        _core: Any
        _calls: Any
        config: Any

        @property
        def _metadata(self) -> Any: ...
        def partitions_for(self, topic: str, timeout: float | None = ...) -> set[int]: ...

    class _Consumer(Protocol):
        _core: Any

    class _Cluster(Protocol):
        topology: Any

        def partitions_for_broker(self, broker_id: int) -> set[Any] | None: ...


__all__ = ["ClusterNames", "ConsumerNames", "ProducerNames"]


class ProducerNames:
    """Names of `KafkaProducer`."""

    __slots__ = ()

    @property
    def _metadata(self: _Producer) -> Any:
        """The cluster's metadata; ``_metadata.controller`` is a broker with its host and port."""
        return self._core.client.cluster

    @property
    def _client(self: _Producer) -> Any:
        return self._core.client

    @property
    def _sender(self: _Producer) -> Any:
        return self._core.sender

    @property
    def _closed(self: _Producer) -> bool:
        return bool(self._calls.closed)

    @property
    def _metrics(self: _Producer) -> Any:
        return self._calls.metrics

    def _serialize(self, f: Any, topic: str, data: Any) -> Any:
        """Serialize a key or a value with a serializer of either kind."""
        if f is None:
            return data
        return f.serialize(topic, data) if hasattr(f, "serialize") else f(data)

    def _partition(
        self: _Producer,
        topic: str,
        partition: int | None,
        key: Any,
        value: Any,
        serialized_key: bytes | None,
        serialized_value: bytes | None,
    ) -> int:
        """Return the partition that is given, or one that the partitioner chooses."""
        if partition is not None:
            return partition
        from kafka.partitioner import DefaultPartitioner, bind_partitioner

        self.partitions_for(topic)  # waits until they are known
        choose = bind_partitioner(self.config["partitioner"] or DefaultPartitioner())
        return choose(topic, key, serialized_key, value, serialized_value, self._metadata)

    def _wait_on_metadata(self: _Producer, topic: str, max_wait: float) -> set[int]:
        """Return the partitions of a topic; waits for ``max_wait`` seconds at most."""
        return self.partitions_for(topic, max_wait)


class ConsumerNames:
    """Names of `KafkaConsumer`."""

    __slots__ = ()

    @property
    def _client(self: _Consumer) -> Any:
        return self._core.client

    @property
    def _fetcher(self: _Consumer) -> Any:
        return self._core.fetcher

    @property
    def _coordinator(self: _Consumer) -> Any:
        """A `ConsumerCoordinator` over the group; None without a group."""
        group = self._core.group
        if group is None:
            return None
        made = vars(self).get("_historic_coordinator")
        if made is None:
            from kafka.legacy.coordinators import ConsumerCoordinator

            made = vars(self)["_historic_coordinator"] = ConsumerCoordinator.of(group, self._core.config)
        return made

    @property
    def _closed(self: _Consumer) -> bool:
        return self._core is None or bool(self._core.closed)


class ClusterNames:
    """Tables of `ClusterMetadata`, which aiokafka 0.8 fills in its own `update_metadata`."""

    @property
    def _brokers(self: _Cluster) -> Mapping[int, Any]:
        return dict(self.topology.brokers)

    @_brokers.setter
    def _brokers(self: _Cluster, brokers: Mapping[int, Any]) -> None:
        self.topology = self.topology.changed(brokers=brokers)

    @property
    def _partitions(self: _Cluster) -> Mapping[str, Mapping[int, Any]]:
        return dict(self.topology.topics)

    @_partitions.setter
    def _partitions(self: _Cluster, topics: Mapping[str, Mapping[int, Any]]) -> None:
        self.topology = self.topology.changed(topics=topics)

    @property
    def _broker_partitions(self: _Cluster) -> Mapping[int, set[Any]]:
        return {broker: self.partitions_for_broker(broker) or set() for broker in self.topology.brokers}

    @_broker_partitions.setter
    def _broker_partitions(self: _Cluster, _led: Mapping[int, set[Any]]) -> None:
        """Ignore it: the leaders are known from the partitions."""
