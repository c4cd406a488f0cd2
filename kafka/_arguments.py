"""Checks of the arguments of `KafkaClient`, `BrokerConnection` and `ClusterMetadata`.

A wrong type is a TypeError, a wrong value an IllegalArgumentError; both name the argument, its value, and what it must
be. Functions that are called for each batch do not check beforehand: there the checks only explain a failure.
"""

from __future__ import annotations

from collections.abc import Iterable
from reprlib import Repr
from typing import Final, NoReturn

from kafka.errors import IllegalArgumentError
from kafka.structs import TopicPartition, check_topic

__all__ = [
    "check_callable",
    "check_host",
    "check_node",
    "check_port",
    "check_request",
    "check_time",
    "checked_topics",
    "explain_key",
    "explain_partition",
]

_SHORT: Final = Repr()
_SHORT.maxstring = _SHORT.maxother = 120
_LARGEST_PORT: Final = 65_535


def check_node(node_id: object) -> None:
    """Check a broker's id.

    >>> check_node("bootstrap-0")
    >>> check_node([1])
    Traceback (most recent call last):
    TypeError: node_id must be a broker's id, an integer, or a bootstrap server's, a str; not [1]
    """
    if isinstance(node_id, bool) or not isinstance(node_id, (int, str)):
        raise TypeError(
            f"node_id must be a broker's id, an integer, or a bootstrap server's, a str; not {_SHORT.repr(node_id)}"
        )


def check_request(request: object) -> None:
    """Check a request.

    >>> check_request("Metadata")
    Traceback (most recent call last):
    TypeError: request must be a request of kafka.protocol, such as MetadataRequest(topics=None), not 'Metadata'
    """
    if not isinstance(getattr(request, "API_KEY", None), int) or not hasattr(request, "frame_parts"):
        raise TypeError(
            "request must be a request of kafka.protocol, such as MetadataRequest(topics=None), "
            f"not {_SHORT.repr(request)}"
        )
    if isinstance(request, type):
        raise TypeError(f"request must be an instance, as in {request.__name__}(...), not the class")


def check_time(name: str, value: object, *, unit: str = "milliseconds", least: float = 0.0) -> None:
    """Check a length of time, or a point in time.

    >>> check_time("timeout_ms", -1)
    Traceback (most recent call last):
    kafka.errors.IllegalArgumentError: timeout_ms must not be negative, not -1
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} must be a number of {unit}, not {_SHORT.repr(value)}")
    if value != value:  # noqa: PLR0124 - NaN
        raise IllegalArgumentError(f"{name} must be a number of {unit}, not nan")
    if value < least:
        raise IllegalArgumentError(f"{name} must not be negative, not {value!r}")


def check_callable(name: str, value: object) -> None:
    """Check a function that will be called later."""
    if not callable(value):
        raise TypeError(f"{name} must be callable, not {_SHORT.repr(value)}")


def check_host(host: object) -> None:
    """Check a host's name or address."""
    if not isinstance(host, str):
        raise TypeError(f"host must be a str, not {_SHORT.repr(host)}")
    if not host:
        raise IllegalArgumentError("host must not be empty")


def check_port(port: object) -> None:
    """Check a port's number."""
    if isinstance(port, bool) or not isinstance(port, int):
        raise TypeError(f"port must be an integer, not {_SHORT.repr(port)}")
    if not 0 < port <= _LARGEST_PORT:
        raise IllegalArgumentError(f"port must be from 1 to {_LARGEST_PORT}, not {port}")


def checked_topics(topics: object, one: str) -> list[str]:
    """Return the topics of a list; `one` is the method for a single topic."""
    if isinstance(topics, str):
        raise TypeError(f"topics must be a list of names; for one topic, call {one}({_SHORT.repr(topics)})")
    if not isinstance(topics, Iterable):
        raise TypeError(f"topics must be a list of names, not {_SHORT.repr(topics)}")
    found: list[str] = list(topics)
    for topic in found:
        check_topic(topic)
    return found


def explain_key(name: str, value: object, expected: str) -> NoReturn:
    """Raise for a value that could not be looked up."""
    raise TypeError(f"{name} must be {expected}, not {_SHORT.repr(value)}") from None


def explain_partition(partition: object) -> NoReturn:
    """Raise for what could not be looked up as a partition."""
    topic = getattr(partition, "topic", None)
    if isinstance(partition, TopicPartition) and not isinstance(topic, str):
        raise TypeError(f"the topic of a TopicPartition must be a str, not {_SHORT.repr(topic)}") from None
    hint = ", as in TopicPartition('events', 0)"
    raise TypeError(f"partition must be a TopicPartition{hint}, not {_SHORT.repr(partition)}") from None
