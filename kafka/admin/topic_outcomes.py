"""Results of the calls about topics."""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from kafka.admin.results import ItemResult, Result, Results


class PartitionDescription(ItemResult):
    """A partition: its leader and replicas."""

    __slots__ = ()
    _item = "partition {0.partition_index}"
    _aliases: ClassVar = {
        "partition": "partition_index",
        "leader": "leader_id",
        "replicas": "replica_nodes",
        "isr": "isr_nodes",
    }
    partition_index: int
    leader_id: int
    leader_epoch: int
    replica_nodes: list[int]
    isr_nodes: list[int]
    offline_replicas: list[int]


class TopicDescription(ItemResult):
    """A topic and its partitions."""

    __slots__ = ()
    _aliases: ClassVar = {"topic": "name"}
    name: str | None
    topic_id: UUID
    is_internal: bool
    partitions: list[PartitionDescription]
    authorized_operations: list[str] | None

    def item(self) -> str:
        """Return what the outcome is about, for error messages."""
        return f"topic {str(self.name or self.topic_id)!r}"


class TopicPartitionsPage(Result):
    """Topics with some of their partitions, and where the next page begins, None on the last one."""

    __slots__ = ()
    topics: Results[TopicDescription]
    next_cursor: Result | None


class CreatedTopic(ItemResult):
    """A topic that was created, or why it was not; -1 and None for what the broker does not tell (before 2.4)."""

    __slots__ = ()
    _item = "topic {0.name!r}"
    _aliases: ClassVar = {"topic": "name"}
    name: str
    topic_id: UUID
    num_partitions: int
    replication_factor: int
    configs: list[Result] | None


class CreateTopicsResult(Result):
    """The outcome of `create_topics()` for each topic."""

    __slots__ = ()
    topics: Results[CreatedTopic]

    @property
    def topic_errors(self) -> list[tuple[str, int, str | None]]:
        """Name, error code and message of each topic, as kafka-python 2 has them."""
        return [(topic.name, topic.error_code, topic.error_message) for topic in self.topics]


class DeletedTopic(ItemResult):
    """A topic that was deleted, or why it was not."""

    __slots__ = ()
    _aliases: ClassVar = {"topic": "name"}
    name: str | None
    topic_id: UUID

    def item(self) -> str:
        """Return what the outcome is about, for error messages."""
        return f"topic {str(self.name or self.topic_id)!r}"


class DeleteTopicsResult(Result):
    """The outcome of `delete_topics()` for each topic."""

    __slots__ = ()
    topics: Results[DeletedTopic]

    @property
    def topic_error_codes(self) -> list[tuple[str | None, int]]:
        """Name and error code of each topic, as kafka-python 2 has them."""
        return [(topic.name, topic.error_code) for topic in self.topics]


class ResizedTopic(ItemResult):
    """A topic whose number of partitions was raised, or why it was not."""

    __slots__ = ()
    _item = "topic {0.name!r}"
    _aliases: ClassVar = {"topic": "name"}
    name: str


class CreatePartitionsResult(Result):
    """The outcome of `create_partitions()` for each topic."""

    __slots__ = ()
    results: Results[ResizedTopic]

    @property
    def topic_errors(self) -> list[tuple[str, int, str | None]]:
        """Name, error code and message of each topic, as kafka-python 2 has them."""
        return [(topic.name, topic.error_code, topic.error_message) for topic in self.results]
