"""Names of older generations' message modules that are not messages. ``historic_names`` finds them there."""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

from kafka.protocol.registry import APIS
from kafka.protocol.struct import Struct
from kafka.protocol.types import Array, Bytes, Int16, Int32, Schema, String
from kafka.structs import TopicPartition

#: API key -> name.
API_KEYS: Final = {api.key: api.name for api in APIS.values()}

#: ListOffsets: there is no offset, and what a request may have in the place of a timestamp.
UNKNOWN_OFFSET: Final = -1


class OffsetResetStrategy:
    """Where to begin without a committed offset; the numbers stand in the place of a timestamp in ListOffsets."""

    LATEST: Final = -1
    EARLIEST: Final = -2
    NONE: Final = 0


class AbortedTransaction(NamedTuple):
    """A transaction whose records, from ``first_offset`` on, do not count."""

    producer_id: int
    first_offset: int


class ElectionType(IntEnum):
    """How ElectLeaders chooses."""

    PREFERRED = 0
    UNCLEAN = 1


#: The generation of a consumer that belongs to none, and the member id of one that has none yet.
DEFAULT_GENERATION_ID: Final = -1
UNKNOWN_MEMBER_ID: Final = ""


class GroupMember(NamedTuple):
    """A member of a group, as its leader sees it."""

    member_id: str | None = None
    group_instance_id: str | None = None
    metadata_bytes: bytes | None = None


class ProtocolMetadata(Struct):
    """The subscription of a member of a classic group, with the version in front.

    >>> ProtocolMetadata(0, ["events"], b"").encode().hex(" ")
    '00 00 00 00 00 01 00 06 65 76 65 6e 74 73 00 00 00 00'
    """

    SCHEMA = Schema(("version", Int16), ("subscription", Array(String("utf-8"))), ("user_data", Bytes))


class MemberAssignment(Struct):
    """The assignment of a member of a classic group, with the version in front.

    >>> MemberAssignment(0, [("events", [0, 1])], b"").partitions()
    [TopicPartition(topic='events', partition=0), TopicPartition(topic='events', partition=1)]
    """

    SCHEMA = Schema(
        ("version", Int16),
        ("assignment", Array(("topic", String("utf-8")), ("partitions", Array(Int32)))),
        ("user_data", Bytes),
    )

    def partitions(self) -> list[TopicPartition]:
        """Return the partitions one by one."""
        return [TopicPartition(topic, partition) for topic, partitions in self.assignment for partition in partitions]
