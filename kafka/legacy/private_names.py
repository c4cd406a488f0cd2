"""Private names of kafka-python's clients that tracers and other instrumentation read or call.

They are not part of the interface. Each stands for what is behind the same name there, as far as others use it.
"""

from __future__ import annotations

from typing import Any

__all__ = ["ConsumerNames", "ProducerNames"]


class ProducerNames:
    """Names that `KafkaProducer` inherits. ``self`` is one, which a module below kafka.producer cannot name."""

    __slots__ = ()

    @property
    def _metadata(self: Any) -> Any:
        """The cluster's metadata; ``_metadata.controller`` is a broker with its host and port."""
        return self._core.client.cluster

    @property
    def _client(self: Any) -> Any:
        return self._core.client

    @property
    def _sender(self: Any) -> Any:
        return self._core.sender

    @property
    def _closed(self: Any) -> bool:
        return bool(self._calls.closed)

    @property
    def _metrics(self: Any) -> Any:
        return self._calls.metrics

    def _serialize(self: Any, f: Any, topic: str, data: Any) -> Any:
        """Serialize a key or a value with a serializer of either kind."""
        if f is None:
            return data
        return f.serialize(topic, data) if hasattr(f, "serialize") else f(data)

    def _partition(
        self: Any,
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

    def _wait_on_metadata(self: Any, topic: str, max_wait: float) -> set[int]:
        """Return the partitions of a topic; waits for ``max_wait`` seconds at most."""
        found: set[int] = self.partitions_for(topic, max_wait)
        return found


class ConsumerNames:
    """Names that `KafkaConsumer` inherits."""

    __slots__ = ()

    @property
    def _client(self: Any) -> Any:
        return self._engine.client

    @property
    def _fetcher(self: Any) -> Any:
        return self._engine.fetcher

    @property
    def _coordinator(self: Any) -> Any:
        """The member of the group; None without a group."""
        return self._engine.membership

    @property
    def _closed(self: Any) -> bool:
        return self._engine is None or bool(self._engine.closed)
