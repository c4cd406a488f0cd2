"""The small values that are passed around: partitions, offsets, brokers, groups.

Plain named tuples: immutable, cheap, comparable, picklable, and usable as keys. Fields that later releases added come
last and have defaults, so that code written for the older forms goes on working.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, NamedTuple

# TopicPartition is a key in every hot path. A tuple subclass hashes and compares in C; nothing is overridden.


class TopicPartition(NamedTuple):
    """A partition of a topic.

    >>> TopicPartition("events", 0) in {TopicPartition("events", 0)}
    True
    """

    topic: str
    partition: int


class SubscriptionPattern(NamedTuple):
    """A pattern of topic names in RE2's syntax, which the group's coordinator matches against whole names (KIP-848).

    For ``consumer.subscribe(pattern=SubscriptionPattern("log-.*"))`` with ``group_protocol='consumer'``. Any other
    pattern is matched by the consumer itself, which has to know all topics of the cluster for that.

    >>> SubscriptionPattern("log-[0-9]+")
    SubscriptionPattern(pattern='log-[0-9]+')
    """

    pattern: str


class TopicPartitionReplica(NamedTuple):
    """One broker's copy of a partition."""

    topic: str
    partition: int
    broker_id: int


class BrokerMetadata(NamedTuple):
    """A broker's address, as the cluster advertises it."""

    nodeId: int | str  # noqa: N815 - the historic spelling; ``node_id`` reads the same
    host: str
    port: int
    rack: str | None = None

    @property
    def node_id(self) -> int | str:
        """The broker's id; a string such as ``bootstrap-0`` as long as the real one is not known."""
        return self.nodeId

    def __str__(self) -> str:
        return f"broker {self.nodeId} ({self.host}:{self.port})"


class PartitionMetadata(NamedTuple):
    """What the cluster says about a partition."""

    topic: str
    partition: int
    leader: int
    replicas: Sequence[int]
    isr: Sequence[int]
    error: Any = None
    leader_epoch: int = -1
    offline_replicas: Sequence[int] = ()


class OffsetAndMetadata(NamedTuple):
    """A position to commit, or one that was committed, with a free text beside it.

    >>> OffsetAndMetadata(42)
    OffsetAndMetadata(offset=42, metadata='', leader_epoch=-1)
    """

    offset: int
    metadata: str | None = ""
    leader_epoch: int = -1


class OffsetAndTimestamp(NamedTuple):
    """The first record at or after a point in time."""

    offset: int
    timestamp: int
    leader_epoch: int = -1


class ConsumerGroupMetadata(NamedTuple):
    """Who a consumer is within its group; ``send_offsets_to_transaction`` takes it, so that brokers can fence."""

    group_id: str | None = None
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    state: str = "<unjoined>"


class MemberState:
    """The states of a group member, as found in ``ConsumerGroupMetadata.state``."""

    UNJOINED: Final = "<unjoined>"
    REBALANCING: Final = "<rebalancing>"
    STABLE: Final = "<stable>"


class MemberInformation(NamedTuple):
    """A member of a group that was described."""

    member_id: str
    client_id: str
    client_host: str
    member_metadata: Any
    member_assignment: Any


class GroupInformation(NamedTuple):
    """A group that was described."""

    error_code: int
    group: str
    state: str
    protocol_type: str
    protocol: str
    members: Sequence[MemberInformation]
    authorized_operations: Any = None


class RetryOptions(NamedTuple):
    """How often and how fast the legacy asynchronous producers retry; ``limit=None`` is for ever."""

    limit: int | None
    backoff_ms: int
    retry_on_timeouts: bool


# The legacy Simple* API: payloads that go into a request for many partitions, and what comes back for each.


class MetadataRequest(NamedTuple):
    """Topics to describe."""

    topics: Sequence[str]


class MetadataResponse(NamedTuple):
    """Brokers, and topics with their partitions."""

    brokers: Sequence[Any]
    topics: Sequence[Any]


class ConsumerMetadataRequest(NamedTuple):
    """The group whose coordinator is asked for."""

    groups: str


class ConsumerMetadataResponse(NamedTuple):
    """Where a group's coordinator is."""

    error: int
    nodeId: int  # noqa: N815 - the historic spelling
    host: str
    port: int


class ProduceRequestPayload(NamedTuple):
    """Messages to append to one partition."""

    topic: str
    partition: int
    messages: Sequence[Any]


class ProduceResponsePayload(NamedTuple):
    """The offset of the first message appended."""

    topic: str
    partition: int
    error: int
    offset: int


class FetchRequestPayload(NamedTuple):
    """Where to read a partition from."""

    topic: str
    partition: int
    offset: int
    max_bytes: int


class FetchResponsePayload(NamedTuple):
    """Messages read from one partition."""

    topic: str
    partition: int
    error: int
    highwaterMark: int  # noqa: N815 - the historic spelling
    messages: Sequence[Any]


class OffsetRequestPayload(NamedTuple):
    """Which offsets of a partition to look up; ``time`` is in ms, -1 for the latest, -2 for the earliest."""

    topic: str
    partition: int
    time: int
    max_offsets: int


class ListOffsetRequestPayload(NamedTuple):
    """A timestamp to look up in a partition."""

    topic: str
    partition: int
    time: int


class OffsetResponsePayload(NamedTuple):
    """The offsets found."""

    topic: str
    partition: int
    error: int
    offsets: Sequence[int]


class ListOffsetResponsePayload(NamedTuple):
    """The offset found for a timestamp."""

    topic: str
    partition: int
    error: int
    timestamp: int
    offset: int


class OffsetCommitRequestPayload(NamedTuple):
    """A position to commit."""

    topic: str
    partition: int
    offset: int
    metadata: str | bytes | None


class OffsetCommitResponsePayload(NamedTuple):
    """Whether a position was committed."""

    topic: str
    partition: int
    error: int


class OffsetFetchRequestPayload(NamedTuple):
    """A partition whose committed position is asked for."""

    topic: str
    partition: int


class OffsetFetchResponsePayload(NamedTuple):
    """A committed position."""

    topic: str
    partition: int
    offset: int
    metadata: str | None
    error: int


class Message(NamedTuple):
    """A message of the formats before 0.11, as the legacy API makes and shows it."""

    magic: int
    attributes: int
    key: bytes | None
    value: bytes | None


class OffsetAndMessage(NamedTuple):
    """A message with its offset."""

    offset: int
    message: Message


class KafkaMessage(NamedTuple):
    """What the consumer of 0.9.x yielded."""

    topic: str
    partition: int
    offset: int
    key: Any
    value: Any


OnCommit = Callable[[dict[TopicPartition, OffsetAndMetadata], Any], object]
"""What ``commit_async`` calls: ``(offsets, response or error)``."""

IsolationLevelName = Literal["read_uncommitted", "read_committed"]
