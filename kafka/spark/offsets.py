"""Offsets of a query: partition to offset, and the JSON that Spark keeps of them in its checkpoint.

The JSON is that of Spark's own connector, ``{"topic":{"0":123}}``, so that a checkpoint can be carried on by either.
Spark compares offsets as text: equal offsets must give equal text, so topics and partitions are always in order.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from kafka.spark.errors import KafkaSparkOptionError
from kafka.structs import TopicPartition

__all__ = [
    "EARLIEST",
    "LATEST",
    "Offsets",
    "from_nested",
    "lowest",
    "parse_assignment",
    "parse_offsets",
    "parse_timestamps",
    "format_partitions",
    "to_json",
    "to_nested",
]

Offsets = dict[TopicPartition, int]

LATEST: Final = -1
EARLIEST: Final = -2

_ASSIGNMENT: Final = '{"topicA":[0,1],"topicB":[0,1]}'
_OFFSETS: Final = '{"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}'
_TIMESTAMPS: Final = '{"topicA": {"0": 123456789, "1": 123456789}, "topicB": {"0": 123456789, "1": 123456789}}'


def to_nested(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """Return the offsets as the object that Spark writes as JSON.

    >>> to_nested({TopicPartition("b", 10): 1, TopicPartition("b", 9): 2, TopicPartition("a", 0): 3})
    {'a': {'0': 3}, 'b': {'9': 2, '10': 1}}
    """
    nested: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        nested.setdefault(topic, {})[str(partition)] = offset
    return nested


def from_nested(nested: Mapping[str, Mapping[str, int]]) -> Offsets:
    """Return the offsets of such an object.

    >>> from_nested({"a": {"0": 3}})
    {TopicPartition(topic='a', partition=0): 3}
    """
    return {
        TopicPartition(topic, int(partition)): int(offset)
        for topic, partitions in nested.items()
        for partition, offset in partitions.items()
    }


def to_json(offsets: Mapping[TopicPartition, int]) -> str:
    """Return the offsets as Spark's own connector writes them.

    >>> to_json({TopicPartition("a", 0): 3})
    '{"a":{"0":3}}'
    """
    return json.dumps(to_nested(offsets), separators=(",", ":"))


def lowest(several: Iterable[Mapping[TopicPartition, int]]) -> Offsets:
    """Return where several readers stand together: of a partition that more than one reads, where the last one is.

    >>> a, b = TopicPartition("a", 0), TopicPartition("b", 0)
    >>> lowest([{a: 9, b: 7}, {a: 5}]) == {a: 5, b: 7}
    True
    """
    found: Offsets = {}
    for offsets in several:
        for tp, offset in offsets.items():
            found[tp] = min(offset, found.get(tp, offset))
    return found


def format_partitions(partitions: Iterable[TopicPartition]) -> str:
    """Return partitions for people.

    >>> format_partitions([TopicPartition("b", 1), TopicPartition("a", 0)])
    'a-0, b-1'
    """
    return ", ".join(f"{topic}-{partition}" for topic, partition in sorted(partitions))


def parse_offsets(text: str) -> Offsets:
    """Read the offsets of an option; -1 stands for the latest and -2 for the earliest.

    >>> parse_offsets('{"events":{"0":-2}}')
    {TopicPartition(topic='events', partition=0): -2}
    """
    return _parse_numbers(text, _OFFSETS)


def parse_timestamps(text: str) -> Offsets:
    """Read the timestamps of an option, in milliseconds.

    >>> parse_timestamps('{"events":{"0":1700000000000}}')
    {TopicPartition(topic='events', partition=0): 1700000000000}
    """
    return _parse_numbers(text, _TIMESTAMPS)


def _parse_numbers(text: str, example: str) -> Offsets:
    nested = _parse(text, example)
    try:
        found = from_nested(nested)
        plain = all(type(n) is int for partitions in nested.values() for n in partitions.values())
    except (AttributeError, TypeError, ValueError):
        plain = False
    if not plain:
        raise KafkaSparkOptionError(f"Expected e.g. {example}, got {text}")
    return found


def parse_assignment(text: str) -> frozenset[TopicPartition]:
    """Read the partitions of the option ``assign``.

    >>> sorted(parse_assignment('{"events":[0,1]}'))
    [TopicPartition(topic='events', partition=0), TopicPartition(topic='events', partition=1)]
    """
    nested = _parse(text, _ASSIGNMENT)
    numbers = [
        number for partitions in nested.values() for number in (partitions if type(partitions) is list else [""])
    ]
    if not all(type(number) is int for number in numbers):
        raise KafkaSparkOptionError(f"Expected e.g. {_ASSIGNMENT}, got {text}")
    return frozenset(TopicPartition(topic, number) for topic, numbers in nested.items() for number in numbers)


def _parse(text: str, example: str) -> dict[str, Any]:
    try:
        nested = json.loads(text)
    except ValueError:
        nested = None
    if not isinstance(nested, dict):
        raise KafkaSparkOptionError(f"Expected e.g. {example}, got {text}")
    return nested
