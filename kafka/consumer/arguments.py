"""Checks of the arguments of a `KafkaConsumer`: errors name the argument, its value, and what it must be."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from operator import index
from reprlib import Repr
from typing import Any, Final, TypeVar

from kafka.errors import IllegalArgumentError
from kafka.structs import OffsetAndMetadata, SubscriptionPattern, TopicPartition, check_topic

__all__ = [
    "checked_callback",
    "checked_limit",
    "checked_listener",
    "checked_offsets",
    "checked_partition",
    "checked_partitions",
    "checked_pattern",
    "checked_place",
    "checked_reason",
    "checked_timeout",
    "checked_timestamp",
    "checked_timestamps",
    "checked_topics",
    "hint_for_attribute",
    "options_before_topics",
]

T = TypeVar("T")

_MOST_INT32: Final = (1 << 31) - 1
_MOST_INT64: Final = (1 << 63) - 1
# The longest string of a request; brokers allow less (offset.metadata.max.bytes).
_LONGEST_METADATA: Final = 32_767

_PAIR: Final = 2

_SHORT: Final = Repr()
_SHORT.maxstring = _SHORT.maxother = 120


def _shown(value: object) -> str:
    """Return the representation of a value, short enough for a message."""
    return _SHORT.repr(value)


# Options, topics and partitions…


def options_before_topics(client: str, given: tuple[Any, ...]) -> tuple[Mapping[str, object] | None, tuple[Any, ...]]:
    """Return the mapping of options that may stand before the topics of a constructor, and the topics.

    >>> options_before_topics("KafkaConsumer", ({"group.id": "readers"}, "events"))
    ({'group.id': 'readers'}, ('events',))
    """
    options = given[0] if given and isinstance(given[0], Mapping) else None
    topics = given if options is None else given[1:]
    for topic in topics:
        if isinstance(topic, (Mapping, list, tuple, set, frozenset)):
            raise TypeError(
                f"{client}() takes names of topics and options by name, or one dict of options before the topics, not "
                f"{type(topic).__name__}: "
                f"{client}('events', 'orders', bootstrap_servers='localhost:9092', group_id='readers')"
            )
    return options, topics


def checked_topics(topics: Any) -> tuple[str, ...]:
    """Return the topics of a subscription.

    >>> checked_topics(["events"]), checked_topics("events"), checked_topics(None)
    (('events',), ('events',), ())
    """
    if isinstance(topics, str):  # as kafka-python takes it
        topics = (topics,) if topics else ()
    found = () if topics is None else _elements(topics, "topics", "a list of names")
    for topic in found:
        check_topic(topic)
    return found


def checked_pattern(pattern: object) -> re.Pattern[str] | SubscriptionPattern:
    """Return the pattern of a subscription, compiled if the consumer matches it."""
    text = pattern if isinstance(pattern, str) else getattr(pattern, "pattern", None)
    if not isinstance(text, str) or not isinstance(pattern, (str, re.Pattern, SubscriptionPattern)):
        raise TypeError(
            f"pattern must be a str, what re.compile() makes of one, or a SubscriptionPattern, not {_shown(pattern)}"
        )
    if not text:
        raise IllegalArgumentError("pattern must not be empty, since each topic matches that; for all topics pass '.*'")
    if not isinstance(pattern, str):
        return pattern
    try:
        return re.compile(pattern)
    except re.error as error:
        raise IllegalArgumentError(
            f"pattern must be a regular expression, {_shown(pattern)} is not: {error}"
        ) from error


def checked_listener(listener: T) -> T:
    """Return the rebalance listener."""
    if listener is not None and not callable(getattr(listener, "on_partitions_assigned", None)):
        raise TypeError(f"listener must be a ConsumerRebalanceListener, not {_shown(listener)}")
    return listener


def checked_partition(partition: object, name: str = "partition") -> TopicPartition:
    """Return a partition, if its topic and number can be ones."""
    if not isinstance(partition, TopicPartition):
        hint = (
            ": pass them one by one, as in pause(*partitions)" if isinstance(partition, (list, set, frozenset)) else ""
        )
        raise TypeError(f"{name} must be a TopicPartition, not {_shown(partition)}{hint}")
    check_topic(partition.topic)
    number = _whole(partition.partition, "the partition of a TopicPartition", _MOST_INT32)
    return partition if number is partition.partition else TopicPartition(partition.topic, number)


def checked_partitions(partitions: Any, name: str = "partitions") -> list[TopicPartition]:
    """Return partitions as a list; one alone is not a list."""
    if isinstance(partitions, (TopicPartition, str)):
        raise TypeError(f"{name} must be a list of TopicPartitions, not {_shown(partitions)}")
    return [
        checked_partition(partition, f"each of {name}")
        for partition in _elements(partitions, name, "a list of TopicPartitions")
    ]


def _elements(value: Iterable[T], name: str, expected: str) -> tuple[T, ...]:
    try:
        return tuple(value)
    except TypeError:
        raise TypeError(f"{name} must be {expected}, not {_shown(value)}") from None


# Offsets and times…


class OffsetTypeError(IllegalArgumentError, TypeError):
    """An offset is not a number. It is the AssertionError of kafka-python's manual, and a TypeError."""


def checked_place(offset: object) -> tuple[int, int]:
    """Return a position: an offset and the leader epoch before it, -1 if that is not known."""
    if isinstance(offset, OffsetAndMetadata):
        offset = _checked_offset(offset, "offset")
        return offset.offset, offset.leader_epoch
    try:
        return _whole(offset, "offset", _MOST_INT64), -1
    except TypeError as error:
        raise OffsetTypeError(*error.args) from None


def checked_offsets(offsets: object) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return offsets to commit."""
    given = _mapping(offsets, "offsets", "OffsetAndMetadata")
    return {
        checked_partition(partition, "each key of offsets"): _checked_offset(as_offset(offset), "each value of offsets")
        for partition, offset in given.items()
    }


def as_offset(offset: object) -> object:
    """Return an offset to commit that is a number, or a number and a text, as OffsetAndMetadata; others as they are.

    >>> as_offset(5), as_offset((6, "note"))  # doctest: +NORMALIZE_WHITESPACE
    (OffsetAndMetadata(offset=5, metadata='', leader_epoch=-1),
     OffsetAndMetadata(offset=6, metadata='note', leader_epoch=-1))
    """
    if isinstance(offset, OffsetAndMetadata):
        return offset
    if hasattr(offset, "__index__") and not isinstance(offset, bool):
        return OffsetAndMetadata(index(offset))
    return OffsetAndMetadata(*offset) if isinstance(offset, tuple) and len(offset) == _PAIR else offset


def _checked_offset(offset: object, name: str) -> OffsetAndMetadata:
    if not isinstance(offset, OffsetAndMetadata):
        raise TypeError(f"{name} must be an OffsetAndMetadata, not {_shown(offset)}")
    place = _whole(offset.offset, "the offset of an OffsetAndMetadata", _MOST_INT64)
    epoch = _whole(offset.leader_epoch, "the leader_epoch of an OffsetAndMetadata", _MOST_INT32, least=-1)
    text = offset.metadata
    if text is not None and not isinstance(text, str):
        raise TypeError(f"the metadata of an OffsetAndMetadata must be a str or None, not {_shown(text)}")
    try:
        size = len((text or "").encode())
    except UnicodeEncodeError as error:
        raise IllegalArgumentError(f"the metadata of an OffsetAndMetadata cannot be encoded: {error}") from None
    if size > _LONGEST_METADATA:
        raise IllegalArgumentError(
            f"the metadata of an OffsetAndMetadata must be at most {_LONGEST_METADATA} bytes long, not {size}"
        )
    return offset if place is offset.offset and epoch is offset.leader_epoch else OffsetAndMetadata(place, text, epoch)


def checked_timestamp(timestamp_ms: object, name: str = "timestamp_ms") -> int:
    """Return a time in milliseconds since 1970."""
    return _whole(timestamp_ms, name, _MOST_INT64, unit=" of milliseconds")


def checked_timestamps(timestamps: object) -> dict[TopicPartition, int]:
    """Return the time to look for in each partition."""
    given = _mapping(timestamps, "timestamps", "milliseconds")
    return {
        checked_partition(partition, "each key of timestamps"): checked_timestamp(time, "each value of timestamps")
        for partition, time in given.items()
    }


def _mapping(value: object, name: str, of: str) -> Mapping[Any, Any]:
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} must be a mapping of TopicPartitions to {of}, not {_shown(value)}")
    return value


def _whole(value: object, name: str, most: int, *, least: int = 0, unit: str = "") -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be a whole number{unit}, not {_shown(value)}")
    value = index(value)  # of numpy, too
    if not least <= value <= most:
        raise IllegalArgumentError(f"{name} must be from {least} to {most}, not {_shown(value)}")
    return value


# Callbacks, reasons, timeouts, limits…


def checked_callback(callback: T) -> T:
    """Return the callback of a commit."""
    if not callable(callback):
        raise TypeError(f"callback must be a function of offsets and the outcome, not {_shown(callback)}")
    return callback


def checked_reason(reason: object) -> str:
    """Return the reason of a rebalance."""
    if not isinstance(reason, str):
        raise TypeError(f"reason must be a str, not {_shown(reason)}")
    return reason


def checked_timeout(timeout_ms: object) -> float:
    """Return a timeout in seconds.

    >>> checked_timeout(1500)
    1.5
    """
    if not isinstance(timeout_ms, float):
        if isinstance(timeout_ms, bool) or not hasattr(timeout_ms, "__index__"):
            raise TypeError(f"timeout_ms must be a number of milliseconds, not {_shown(timeout_ms)}")
        timeout_ms = index(timeout_ms)
    if not timeout_ms >= 0:  # nor NaN
        raise IllegalArgumentError(f"timeout_ms must not be negative: {timeout_ms}")
    return timeout_ms / 1000 if timeout_ms <= _MOST_INT64 else float("inf")


def checked_limit(max_records: object) -> int:
    """Return the largest number of records to return."""
    if isinstance(max_records, bool) or not hasattr(max_records, "__index__"):
        raise TypeError(f"max_records must be a whole number, not {_shown(max_records)}")
    if (limit := index(max_records)) < 1:
        raise IllegalArgumentError(f"max_records must be at least 1, not {_shown(max_records)}")
    return limit


# Names that other clients have…

_ELSEWHERE: Final = {
    "assignment_lost": "subscribe(topics, listener=...), whose on_partitions_lost is called",
    "assignments": "assignment()",
    "consume": "poll(timeout_ms=..., max_records=...)",
    "consumer_group_metadata": "group_metadata()",
    "fetch_messages": "poll(), or iterate the consumer",
    "get_watermark_offsets": "beginning_offsets() and end_offsets()",
    "getmany": "poll(timeout_ms=..., max_records=...)",
    "getone": "next(consumer)",
    "incremental_assign": "assign(), which keeps the positions of partitions that were assigned before",
    "incremental_unassign": "assign(), which keeps the positions of partitions that were assigned before",
    "lag": "current_lag()",
    "list_topics": "topics() and partitions_for_topic()",
    "memberid": "group_metadata().member_id",
    "partitions_for": "partitions_for_topic()",
    "start": "nothing: the constructor has connected",
    "stop": "close()",
    "store_offsets": "commit(offsets), or enable_auto_commit, which commits what was returned",
}


def hint_for_attribute(name: str, known: Collection[str]) -> str:
    """Return a hint for a name that a consumer does not have.

    >>> hint_for_attribute("consumer_group_metadata", []), hint_for_attribute("seekToEnd", ["seek_to_end"])
    (': use group_metadata()', ": did you mean 'seek_to_end'?")
    """
    from difflib import get_close_matches

    spelling = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    use = _ELSEWHERE.get(spelling) or _ELSEWHERE.get(spelling.replace("_", ""))
    if use is not None:
        return f": use {use}"
    near = get_close_matches(spelling, known, n=1, cutoff=0.75)
    return f": did you mean {near[0]!r}?" if near else ""
