"""Which partitions a query reads: by the names of topics, by a pattern, or one by one. Needs no cluster."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kafka.spark.errors import KafkaSparkOptionError
from kafka.spark.offsets import parse_assignment
from kafka.structs import TopicPartition

__all__ = ["Subscription", "parse_subscription"]


_STRATEGIES: Final = ("subscribe", "subscribepattern", "assign")


@dataclass(frozen=True)
class Subscription:
    """One of the three is set."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: frozenset[TopicPartition] = frozenset()


def parse_subscription(options: Mapping[str, str]) -> Subscription:
    """Read the one of the three options that is given; names are in lower case.

    >>> parse_subscription({"subscribe": "a, b"}).topics
    ('a', 'b')
    """
    given = [name for name in _STRATEGIES if name in options]
    names = ", ".join(_STRATEGIES)
    if not given:
        raise KafkaSparkOptionError(
            f"One of the following options must be specified for Kafka source: {names}. See the docs for more details."
        )
    if len(given) > 1:
        raise KafkaSparkOptionError(
            f"Only one of the following options can be specified for Kafka source: {names}. "
            "See the docs for more details."
        )
    value = options[given[0]]
    if given[0] == "assign":
        if not value.strip().startswith("{"):
            raise KafkaSparkOptionError(
                f"No topicpartitions to assign as specified value for option 'assign' is '{value}'"
            )
        return Subscription(partitions=parse_assignment(value))
    if given[0] == "subscribe":
        topics = tuple(dict.fromkeys(filter(None, (topic.strip() for topic in value.split(",")))))
        if not topics:
            raise KafkaSparkOptionError(
                f"No topics to subscribe to as specified value for option 'subscribe' is '{value}'"
            )
        return Subscription(topics=topics)
    if not value.strip():
        raise KafkaSparkOptionError(
            f"Pattern to subscribe is empty as specified value for option 'subscribePattern' is '{value}'"
        )
    try:
        re.compile(value.strip())
    except re.error as error:
        raise KafkaSparkOptionError(
            f"The value '{value}' of the option 'subscribePattern' is not a valid regular expression: {error}",
            option="subscribePattern",
        ) from None
    return Subscription(pattern=value.strip())
