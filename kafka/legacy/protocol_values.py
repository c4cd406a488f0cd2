"""Names of older generations' message modules that are not messages: constants, tuples, headers bound to a version.

``historic_names`` finds them here. ``RequestHeader(request, correlation_id, client_id)`` and its relatives, as
``kafka.protocol.api`` had them, each stand for one version of a header of ``kafka.protocol.headers``; what such a class
makes is an instance of that header.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from kafka.protocol import headers
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


class _AliasMeta(type):
    """A class in whose place another one answers: to ``isinstance``, an index and names such as ``decode``."""

    _stands_for: Any

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls._stands_for._unbound)

    def __getitem__(cls, version: int) -> Any:
        return cls._stands_for._unbound[version]

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls._stands_for, name)


class RequestHeader(metaclass=_AliasMeta):
    """Goes before every request except flexible versions.

    >>> from kafka.protocol.metadata import MetadataRequest
    >>> RequestHeader(MetadataRequest[1](), 7, "me").encode().hex(" ")
    '00 03 00 01 00 00 00 07 00 02 6d 65'

    The header's own fields are taken by name, and in wire order where a version is given:

    >>> RequestHeader(api_key=3, api_version=1, correlation_id=7, client_id="me") == RequestHeader[1](3, 1, 7, "me")
    True
    """

    _stands_for: Any = headers.RequestHeader[1]

    def __new__(
        cls, request: Any = None, correlation_id: int = 0, client_id: str | None = "kafka-python", **fields: object
    ) -> Any:
        """Make the header of a request."""
        if request is not None:
            fields.update(api_key=request.API_KEY, api_version=request.API_VERSION)
        return cls._stands_for(correlation_id=correlation_id, client_id=client_id, **fields)


class RequestHeaderV2(metaclass=_AliasMeta):
    """Goes before requests of flexible versions: it has a tag buffer."""

    _stands_for: Any = headers.RequestHeader[2]

    def __new__(
        cls,
        request: Any = None,
        correlation_id: int = 0,
        client_id: str | None = "kafka-python",
        tags: dict[int, bytes] | None = None,
        **fields: object,
    ) -> Any:
        """Make the header of a request."""
        if request is not None:
            fields.update(api_key=request.API_KEY, api_version=request.API_VERSION)
        return cls._stands_for(correlation_id=correlation_id, client_id=client_id, unknown_tags=tags, **fields)


class ResponseHeader(metaclass=_AliasMeta):
    """Goes before every response except flexible versions.

    >>> ResponseHeader(7).encode(), ResponseHeaderV2(7).encode()
    (b'\\x00\\x00\\x00\\x07', b'\\x00\\x00\\x00\\x07\\x00')
    """

    _stands_for: Any = headers.ResponseHeader[0]

    def __new__(cls, correlation_id: int = 0) -> Any:
        """Make the header of a response."""
        return cls._stands_for(correlation_id)


class ResponseHeaderV2(metaclass=_AliasMeta):
    """Goes before responses of flexible versions: it has a tag buffer."""

    _stands_for: Any = headers.ResponseHeader[1]

    def __new__(cls, correlation_id: int = 0, tags: dict[int, bytes] | None = None) -> Any:
        """Make the header of a response."""
        return cls._stands_for(correlation_id, unknown_tags=tags)
