"""The messages of the protocol benchmark as plain values: a struct is a tuple in wire order, an array is a list.

The versions are the newest that all three libraries know. Sizes are those of a busy client: a produce request to six
partitions, a fetch over one and over 500 partitions in ten topics, a cluster of 1,000 topics with six partitions each,
a group of 50 members. Records are opaque bytes here, 1,000 a partition: what is measured is the protocol around them.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

NONE_KNOWN = -(2**31)  # authorized operations that nobody asked for


@dataclass(frozen=True)
class Message:
    """One message: the family and class that libraries know it by, the version, what it holds."""

    name: str
    family: str
    cls: str
    version: int
    make: Callable[[], tuple[Any, ...]]
    size: str = ""


def _uuid(number: int) -> uuid.UUID:
    return uuid.UUID(bytes=random.Random(number).randbytes(16))


def _records(number: int) -> bytes:
    return random.Random(number).randbytes(1000)


def produce_request() -> tuple[Any, ...]:
    """One topic, six partitions, a small batch for each."""
    partitions = [(index, _records(index)) for index in range(6)]
    return (None, -1, 30_000, [(_uuid(1), partitions)])


def produce_response() -> tuple[Any, ...]:
    """The answer to it, without errors."""
    partitions = [(index, 0, 1_234_567 + index, -1, 17, [], None) for index in range(6)]
    return ([(_uuid(1), partitions)], 0)


def fetch_request(topics: int, partitions: int) -> tuple[Any, ...]:
    """A full fetch: every partition is listed."""
    wanted = [(index, 5, 1_234_567 + index, -1, -1, 1_048_576) for index in range(partitions)]
    return (500, 1, 52_428_800, 0, 77, 3, [(_uuid(topic), wanted) for topic in range(topics)], [], "rack-a")


def fetch_response(topics: int, partitions: int) -> tuple[Any, ...]:
    """Data for every partition."""

    def found(topic: int, index: int) -> tuple[Any, ...]:
        return (index, 0, 1_234_567 + index, 1_234_560 + index, 17, None, -1, _records(topic * partitions + index))

    return (0, 0, 77, [(_uuid(topic), [found(topic, index) for index in range(partitions)]) for topic in range(topics)])


def metadata_request() -> tuple[Any, ...]:
    """1,000 topics by name."""
    return ([(uuid.UUID(int=0), f"orders-of-region-{topic:04}") for topic in range(1000)], True, False)


def metadata_response() -> tuple[Any, ...]:
    """1,000 topics, six partitions each on three of nine brokers."""
    brokers = [(node, f"broker-{node}.example", 9092, f"rack-{node % 3}") for node in range(9)]

    def partition(topic: int, index: int) -> tuple[Any, ...]:
        replicas = [(topic + index + step) % 9 for step in range(3)]
        return (0, index, replicas[0], 5, replicas, list(replicas), [])

    topics = [
        (0, f"orders-of-region-{topic:04}", _uuid(topic), False, [partition(topic, i) for i in range(6)], NONE_KNOWN)
        for topic in range(1000)
    ]
    return (0, brokers, "c1uster-of-the-benchmark", 3, topics, 0)


def join_group_request() -> tuple[Any, ...]:
    """Two assignors with a subscription each."""
    protocols = [(name, random.Random(name).randbytes(150)) for name in ("range", "cooperative-sticky")]
    return ("orders", 45_000, 300_000, "member-17-of-the-group", None, "consumer", protocols, "asked to")


def join_group_response() -> tuple[Any, ...]:
    """What the leader of 50 members gets."""
    members = [(f"member-{number}-{_uuid(number)}", None, random.Random(number).randbytes(150)) for number in range(50)]
    return (0, 0, 42, "consumer", "cooperative-sticky", members[0][0], False, members[0][0], members)


MESSAGES = (
    Message("produce-request", "produce", "ProduceRequest", 13, produce_request, "6 partitions"),
    Message("produce-response", "produce", "ProduceResponse", 13, produce_response, "6 partitions"),
    Message("fetch-request-1", "fetch", "FetchRequest", 18, lambda: fetch_request(1, 1), "1 partition"),
    Message("fetch-request-500", "fetch", "FetchRequest", 18, lambda: fetch_request(10, 50), "500 partitions"),
    Message("fetch-response-1", "fetch", "FetchResponse", 18, lambda: fetch_response(1, 1), "1 partition"),
    Message("fetch-response-500", "fetch", "FetchResponse", 18, lambda: fetch_response(10, 50), "500 partitions"),
    Message("metadata-request", "metadata", "MetadataRequest", 13, metadata_request, "1,000 topics"),
    Message("metadata-response", "metadata", "MetadataResponse", 13, metadata_response, "1,000 topics"),
    Message("join-group-request", "join_group", "JoinGroupRequest", 9, join_group_request, "2 assignors"),
    Message("join-group-response", "join_group", "JoinGroupResponse", 9, join_group_response, "50 members"),
)
