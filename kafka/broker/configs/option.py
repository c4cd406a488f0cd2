"""One option of a topic, a broker, a group or a subscription to client metrics, and the check of its values.

A refusal has the words of Apache Kafka.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from kafka.errors import InvalidConfigurationError


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
    #: The broker's option that gives the default to one of a topic, a group or a listener.
    broker_name: str | None = None
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    is_dynamic: bool = True
    #: For an option of a group: the brokers' options that limit it.
    least: str | None = None
    most: str | None = None
    #: The form of a string, and Kafka's message about another one, with the value as ``{value}``.
    pattern: str | None = None
    refusal: str = ""
    #: Whether the embedded broker does anything with it.
    has_effect: bool = True


#: Python's int() and float() take more than Java's do: underscores between digits, "nan" and "inf" in any case.
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,40}")
_DECIMAL: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_WHOLE: Final = {Kind.INT: 31, Kind.SHORT: 15, Kind.LONG: 63}


def check_value(option: Option, value: str) -> None:
    """Raise :class:`~kafka.errors.InvalidConfigurationError` unless the value is one that the option takes.

    >>> from kafka.broker.configs.definitions import TOPIC_OPTIONS
    >>> check_value(TOPIC_OPTIONS["retention.ms"], "1000")
    >>> check_value(TOPIC_OPTIONS["retention.ms"], "soon")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    kafka.errors.InvalidConfigurationError: ... Invalid value soon for configuration retention.ms: ...
    """
    text = value.strip()
    if option.kind in _WHOLE:
        number = _whole(option, text, value)
    elif option.kind is Kind.DOUBLE:
        if not _DECIMAL.fullmatch(text):
            raise _refuse(option, value, f"Not a number of type {option.kind.name}")
        number = float(text)
    else:
        _check_words(option, text, value)
        return
    if option.low is not None and number < option.low:
        raise _refuse(option, value, f"Value must be at least {option.low}")
    if option.high is not None and number > option.high:
        raise _refuse(option, value, f"Value must be no more than {option.high}")


def _whole(option: Option, text: str, value: str) -> float:
    if not _INTEGER.fullmatch(text):
        raise _refuse(option, value, f"Not a number of type {option.kind.name}")
    number = int(text)
    if not -(1 << _WHOLE[option.kind]) <= number < 1 << _WHOLE[option.kind]:
        raise _refuse(option, value, f"Not a number of type {option.kind.name}")
    return number


def _check_words(option: Option, text: str, value: str) -> None:
    if option.kind is Kind.BOOLEAN:
        if text.lower() not in {"true", "false"}:
            raise _refuse(option, value, "Expected value to be either true or false")
    elif option.pattern is not None:
        if not re.fullmatch(option.pattern, text):
            raise _refuse(option, value, option.refusal.format(value=value))
    elif option.choices:
        # A list may be empty, but none of its words.
        words = [word.strip() for word in text.split(",")] if option.kind is Kind.LIST and text else [text]
        if any(word not in option.choices for word in words) and (text or option.kind is not Kind.LIST):
            raise _refuse(option, value, f"String must be one of: {', '.join(option.choices)}")


def _refuse(option: Option, value: str, reason: str) -> InvalidConfigurationError:
    return InvalidConfigurationError(f"Invalid value {value} for configuration {option.name}: {reason}")


def parse_bool(value: str) -> bool:
    """Read a checked boolean."""
    return value.strip().lower() == "true"


def parse_list(value: str) -> list[str]:
    """Read a list: words between commas.

    >>> parse_list("compact, delete")
    ['compact', 'delete']
    """
    return [word.strip() for word in value.split(",") if word.strip()]
