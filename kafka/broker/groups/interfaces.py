"""The topics of the cluster as the coordinators see them, and the answer that may come later."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Generic, TypeVar
from uuid import UUID

if TYPE_CHECKING:
    from kafka.broker.cluster.cluster import Cluster

T = TypeVar("T")


class Topics:
    """The cluster's topics, as the coordinators ask for them."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def topic_names(self) -> Iterable[str]:
        """Every topic's name, save the internal ones, which no pattern means."""
        return [name for name, topic in self._cluster.topics.items() if not topic.is_internal]

    def topic_id(self, name: str) -> UUID | None:
        """Return a topic's id."""
        topic = self._cluster.topic(name)
        return None if topic is None else topic.id

    def topic_name(self, topic_id: UUID) -> str | None:
        """Return the name of the topic of that id."""
        topic = self._cluster.topic(topic_id=topic_id)
        return None if topic is None else topic.name

    def partition_count(self, name: str) -> int | None:
        """Return how many partitions a topic has."""
        topic = self._cluster.topic(name)
        return None if topic is None else len(topic.partitions)

    def create_topic(
        self, name: str, partitions: int, replication_factor: int | None, configs: Mapping[str, str]
    ) -> object:
        """Create a topic."""
        return self._cluster.create_topic(name, partitions, replication_factor, configs)


class Answer(Generic[T]):
    """A value that is there at once or comes later; it comes once.

    >>> answer = Answer()
    >>> answer.then(print)
    >>> answer.set("joined")
    joined
    >>> answer.is_set, answer.value
    (True, 'joined')
    """

    __slots__ = ("_callbacks", "_value", "is_set")

    def __init__(self) -> None:
        self.is_set = False
        self._value: T | None = None
        self._callbacks: list[Callable[[T], object]] = []

    @classmethod
    def of(cls, value: T) -> Answer[T]:
        """Return an answer that is there at once."""
        answer = cls()
        answer.set(value)
        return answer

    @property
    def value(self) -> T:
        """The value; asking before it is there is an error of the caller."""
        if not self.is_set:
            raise ValueError("the answer is not there yet")
        return self._value  # type: ignore[return-value]

    def set(self, value: T) -> None:
        """Give the value to the callback that waits for it."""
        if self.is_set:
            raise ValueError("the answer was given already")
        self.is_set = True
        self._value = value
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(value)

    def then(self, callback: Callable[[T], object]) -> None:
        """Call ``callback`` with the value, now or when it comes."""
        if self.is_set:
            callback(self.value)
        else:
            self._callbacks.append(callback)
