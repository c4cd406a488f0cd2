"""One option of a topic, a broker, a group or a subscription to client metrics."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

__all__ = ["Kind", "Option"]


class Kind(IntEnum):
    """Types of values, as DescribeConfigs numbers them."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


@dataclass(frozen=True)
class Option:
    """Name, type, default, and the values that are allowed."""

    name: str
    kind: Kind
    default: str | None
    doc: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    #: The broker's option that gives the default to one of a topic, a group or a listener.
    broker_name: str | None = None
    is_dynamic: bool = True
    #: For an option of a group: the brokers' options that limit it.
    least: str | None = None
    most: str | None = None
    #: The form of a string, and Kafka's message about another one, with the value as ``{value}``.
    pattern: str | None = None
    refusal: str = ""
    #: Whether the embedded broker does anything with it.
    has_effect: bool = True
