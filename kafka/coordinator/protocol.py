"""The subscriptions and assignments that members of a classic group send each other. Sans-IO.

The classes have the form that user-defined assignors know since kafka-python 1.x; on the wire they are the versioned
messages of `kafka.protocol.consumer_protocol`. Members may run any release: of a newer version the known fields are
read, and members of an older release ignore the fields that they do not know.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import ClassVar, Final, NamedTuple

from kafka.protocol.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from kafka.protocol.versioned import decode_versioned, encode_versioned
from kafka.structs import TopicPartition

__all__ = [
    "ConsumerProtocol",
    "ConsumerProtocolMemberAssignment",
    "ConsumerProtocolMemberMetadata",
    "by_topic",
    "flat",
]

NEWEST_SUBSCRIPTION: Final = 3
NEWEST_ASSIGNMENT: Final = 3


def by_topic(partitions: Iterable[TopicPartition]) -> list[tuple[str, list[int]]]:
    """Group partitions by topic, both sorted.

    >>> by_topic([TopicPartition("b", 1), TopicPartition("a", 0), TopicPartition("b", 0)])
    [('a', [0]), ('b', [0, 1])]
    """
    found: dict[str, list[int]] = defaultdict(list)
    for topic, partition in partitions:
        found[topic].append(partition)
    return [(topic, sorted(numbers)) for topic, numbers in sorted(found.items())]


def flat(topics: Iterable[tuple[str, Iterable[int]]]) -> list[TopicPartition]:
    """Undo `by_topic`."""
    return [TopicPartition(topic, number) for topic, numbers in topics for number in numbers]


class ConsumerProtocolMemberMetadata(NamedTuple):
    """A member's subscription, the partitions that it owns, and an assignor's user data.

    >>> member = ConsumerProtocolMemberMetadata(0, ["events"], b"")
    >>> ConsumerProtocolMemberMetadata.decode(member.encode()).topics
    ['events']
    """

    version: int
    subscription: Sequence[str]
    user_data: bytes | None = b""
    owned_partitions: Sequence[TopicPartition] = ()
    """The partitions that it owns now and would keep (KIP-429)."""
    generation_id: int = -1
    """The generation in which they were assigned (KIP-792)."""
    rack_id: str | None = None
    """The rack that it runs in (KIP-881)."""
    group_instance_id: str | None = None
    """The id of a static member; the broker adds it, it is not part of the message."""

    @property
    def topics(self) -> Sequence[str]:
        """The subscription, by its later name."""
        return self.subscription

    def encode(self) -> bytes:
        """The bytes that go into a JoinGroupRequest. Older members ignore the fields that they do not know."""
        message = ConsumerProtocolSubscription[NEWEST_SUBSCRIPTION](
            topics=list(self.subscription),
            user_data=self.user_data,
            owned_partitions=by_topic(self.owned_partitions),
            generation_id=self.generation_id,
            rack_id=self.rack_id,
        )
        return encode_versioned(message)

    @classmethod
    def decode(cls, data: bytes, group_instance_id: str | None = None) -> ConsumerProtocolMemberMetadata:
        """Decode a member's subscription; raises KafkaProtocolError."""
        message = decode_versioned(ConsumerProtocolSubscription, bytes(data))
        return cls(
            int.from_bytes(data[:2], "big"),
            list(message.topics),
            message.user_data,
            flat((entry.topic, entry.partitions) for entry in message.owned_partitions or ()),
            message.generation_id,
            message.rack_id,
            group_instance_id,
        )


class ConsumerProtocolMemberAssignment(NamedTuple):
    """The assignment of a member.

    >>> ConsumerProtocolMemberAssignment(0, [("events", [0, 1])], b"").partitions()
    [TopicPartition(topic='events', partition=0), TopicPartition(topic='events', partition=1)]
    """

    version: int
    assignment: Sequence[tuple[str, Sequence[int]]]
    user_data: bytes | None = b""

    def partitions(self) -> list[TopicPartition]:
        """All partitions, as a list."""
        return flat(self.assignment)

    def encode(self) -> bytes:
        """The bytes that go into a SyncGroupRequest."""
        version = max(0, min(self.version, NEWEST_ASSIGNMENT))
        assigned = [(topic, list(numbers)) for topic, numbers in self.assignment]
        return encode_versioned(
            ConsumerProtocolAssignment[version](assigned_partitions=assigned, user_data=self.user_data)
        )

    @classmethod
    def decode(cls, data: bytes) -> ConsumerProtocolMemberAssignment:
        """Decode an assignment; no bytes mean no partitions. Raises KafkaProtocolError."""
        if not data:
            return cls(0, [], b"")
        message = decode_versioned(ConsumerProtocolAssignment, bytes(data))
        assigned = [(entry.topic, list(entry.partitions)) for entry in message.assigned_partitions]
        return cls(int.from_bytes(data[:2], "big"), assigned, message.user_data)


class ConsumerProtocol:
    """The historic names of the consumer protocol."""

    PROTOCOL_TYPE: ClassVar[str] = "consumer"
    ASSIGNMENT_STRATEGIES: ClassVar[tuple[str, ...]] = ("range", "roundrobin", "sticky", "cooperative-sticky")
    METADATA: ClassVar[type[ConsumerProtocolMemberMetadata]] = ConsumerProtocolMemberMetadata
    ASSIGNMENT: ClassVar[type[ConsumerProtocolMemberAssignment]] = ConsumerProtocolMemberAssignment
