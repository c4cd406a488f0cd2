"""The small values that are passed around: partitions, offsets, brokers, groups.

Plain named tuples: immutable, cheap, comparable, picklable, and usable as keys. Fields that later releases added come
last and have defaults, so that code written for the older forms still works.
"""

# ruff: noqa: PLC0414 - an import "X as X" is what tells a type checker that a name is public here

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from kafka.errors import IllegalArgumentError

if TYPE_CHECKING:
    from kafka.legacy.payloads import ConsumerMetadataRequest as ConsumerMetadataRequest
    from kafka.legacy.payloads import ConsumerMetadataResponse as ConsumerMetadataResponse
    from kafka.legacy.payloads import FetchRequestPayload as FetchRequestPayload
    from kafka.legacy.payloads import FetchResponsePayload as FetchResponsePayload
    from kafka.legacy.payloads import KafkaMessage as KafkaMessage
    from kafka.legacy.payloads import ListOffsetRequestPayload as ListOffsetRequestPayload
    from kafka.legacy.payloads import ListOffsetResponsePayload as ListOffsetResponsePayload
    from kafka.legacy.payloads import Message as Message
    from kafka.legacy.payloads import MetadataRequest as MetadataRequest
    from kafka.legacy.payloads import MetadataResponse as MetadataResponse
    from kafka.legacy.payloads import OffsetAndMessage as OffsetAndMessage
    from kafka.legacy.payloads import OffsetCommitRequestPayload as OffsetCommitRequestPayload
    from kafka.legacy.payloads import OffsetCommitResponsePayload as OffsetCommitResponsePayload
    from kafka.legacy.payloads import OffsetFetchRequestPayload as OffsetFetchRequestPayload
    from kafka.legacy.payloads import OffsetFetchResponsePayload as OffsetFetchResponsePayload
    from kafka.legacy.payloads import OffsetRequestPayload as OffsetRequestPayload
    from kafka.legacy.payloads import OffsetResponsePayload as OffsetResponsePayload
    from kafka.legacy.payloads import ProduceRequestPayload as ProduceRequestPayload
    from kafka.legacy.payloads import ProduceResponsePayload as ProduceResponsePayload
    from kafka.legacy.payloads import RetryOptions as RetryOptions

_TOPIC_NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_LONGEST_SHOWN: Final = 80


def check_topic(topic: object) -> None:
    """Raise TypeError or IllegalArgumentError for a value that cannot be the name of a topic.

    Brokers would refuse it, and a request that cannot be encoded would fail for the other topics in it too.

    >>> check_topic("events")
    >>> check_topic("tenant 7")
    Traceback (most recent call last):
    kafka.errors.IllegalArgumentError: 'tenant 7' is not a legal name of a topic: ...
    """
    if not isinstance(topic, str):
        raise TypeError(f"a topic's name must be a str, not {_shown(topic)}")
    if not _TOPIC_NAME.fullmatch(topic) or topic in {".", ".."}:
        raise IllegalArgumentError(
            f"{_shown(topic)} is not a legal name of a topic: names have 1 to 249 characters of "
            "a-z, A-Z, 0-9, '.', '_' and '-', and are not '.' or '..'"
        )


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}... ({len(text)} characters)"


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
    pattern is matched by the consumer itself, which must know all topics of the cluster for that.

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
    """The cluster's metadata of a partition."""

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
    """A consumer's identity within its group, for ``send_offsets_to_transaction``: brokers fence by it."""

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


OnCommit = Callable[[dict[TopicPartition, OffsetAndMetadata], Any], object]
"""What ``commit_async`` calls: ``(offsets, response or error)``."""

IsolationLevelName = Literal["read_uncommitted", "read_committed"]


# The payloads of the Simple* clients, at the place where programs of the 1.x generation import them from. They are
# loaded on first use: nineteen named tuples take as long to make as the rest of this module.
_PAYLOADS: Final = frozenset(
    (
        "ConsumerMetadataRequest",
        "ConsumerMetadataResponse",
        "FetchRequestPayload",
        "FetchResponsePayload",
        "KafkaMessage",
        "ListOffsetRequestPayload",
        "ListOffsetResponsePayload",
        "Message",
        "MetadataRequest",
        "MetadataResponse",
        "OffsetAndMessage",
        "OffsetCommitRequestPayload",
        "OffsetCommitResponsePayload",
        "OffsetFetchRequestPayload",
        "OffsetFetchResponsePayload",
        "OffsetRequestPayload",
        "OffsetResponsePayload",
        "ProduceRequestPayload",
        "ProduceResponsePayload",
        "RetryOptions",
    )
)


if not TYPE_CHECKING:  # checkers report a name that is not here

    def __getattr__(name: str) -> Any:
        if name not in _PAYLOADS:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module("kafka.legacy.payloads"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PAYLOADS})
