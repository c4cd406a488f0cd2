"""The two interfaces that a user's serializer may derive from. Deriving is optional: the method is what counts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

__all__ = ["Deserializer", "Headers", "Serializer"]

T_co = TypeVar("T_co", covariant=True)

Headers = Sequence[tuple[str, bytes | None]]
"""A record's headers, as serializers see them."""


class Serializer(ABC):
    """Turns a key or a value into bytes.

    >>> class Upper(Serializer):
    ...     def serialize(self, topic, headers, data):  # or (self, topic, value), the form of 2.x
    ...         return data.upper().encode()
    >>> Upper().serialize("events", [], "a")
    b'A'
    """

    def __init__(self, **config: Any) -> None:  # noqa: B027 - subclasses of 1.x pass their configuration up
        pass

    @abstractmethod
    def serialize(self, *args: Any, **kwargs: Any) -> bytes | None:
        """``serialize(topic, headers, data)`` or ``serialize(topic, value)``; None stays a null."""

    def close(self) -> None:  # noqa: B027 - optional to override
        """Called once when the client is closed."""


class Deserializer(ABC):
    """Turns the bytes of a key or a value back into an object."""

    def __init__(self, **config: Any) -> None:  # noqa: B027 - subclasses of 1.x pass their configuration up
        pass

    @abstractmethod
    def deserialize(self, *args: Any, **kwargs: Any) -> Any:
        """``deserialize(topic, headers, data)`` or ``deserialize(topic, bytes)``."""

    def close(self) -> None:  # noqa: B027 - optional to override
        """Called once when the client is closed."""


class Serializes(Protocol):
    """An object with a method ``serialize``: for type checkers."""

    def serialize(self, *args: Any, **kwargs: Any) -> bytes | None:
        """See `Serializer.serialize`."""
        ...


class Deserializes(Protocol[T_co]):
    """An object whose ``deserialize`` returns values of a type: for type checkers."""

    def deserialize(self, *args: Any, **kwargs: Any) -> T_co:
        """See `Deserializer.deserialize`."""
        ...
