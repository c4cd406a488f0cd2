"""The parts of the broker that the coordinators need, as protocols, and the answer that may come later."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Generic, Protocol, TypeVar
from uuid import UUID

T = TypeVar("T")


class Clock(Protocol):
    """The broker's time."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        ...


class Timer(Protocol):
    """Something that will be called unless it is cancelled before."""

    def cancel(self) -> None:
        """Forget it; harmless once it has been called."""
        ...


class Timers(Protocol):
    """Calls functions after a delay by the broker's clock."""

    def call_later(self, delay: float, call: Callable[..., object], *args: object) -> Timer:
        """Call ``call(*args)`` in ``delay`` seconds."""
        ...


class Topics(Protocol):
    """The questions of the coordinators about topics."""

    def topic_names(self) -> Iterable[str]:
        """Every topic's name."""
        ...

    def topic_id(self, name: str) -> UUID | None:
        """Return a topic's id; None if the topic does not exist."""
        ...

    def topic_name(self, topic_id: UUID) -> str | None:
        """Return the name of the topic of that id; None if there is none."""
        ...

    def partition_count(self, name: str) -> int | None:
        """Return how many partitions a topic has; None if the topic does not exist."""
        ...

    def create_topic(
        self, name: str, partitions: int, replication_factor: int | None, configs: Mapping[str, str]
    ) -> object:
        """Create a topic; without a replication factor it has the brokers' default."""
        ...


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
