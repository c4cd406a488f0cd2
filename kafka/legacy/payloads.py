"""The values that the Simple* clients take and return: a payload for each partition of a request or a response.

Programs import them from ``kafka.structs`` or ``kafka.common``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from typing import Protocol

    class OfPartition(Protocol):
        """The first fields of payloads, and of the parts of responses that answer them."""

        @property
        def topic(self) -> str: ...  # noqa: D102
        @property
        def partition(self) -> int: ...  # noqa: D102


class RetryOptions(NamedTuple):
    """How often and how fast the legacy asynchronous producers retry; ``limit=None`` is for ever."""

    limit: int | None
    backoff_ms: int
    retry_on_timeouts: bool


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
    messages: Sequence[OffsetAndMessage]


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
    """The record that the consumer of 0.9.x yielded."""

    topic: str
    partition: int
    offset: int
    key: Any
    value: Any
