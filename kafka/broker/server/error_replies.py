"""The reply to a request that fails as a whole, in the shape in which Kafka sends the error.

Most replies have one place for an error: the reply itself, or each element (topic, partition, group) that the request
asked for. Where a reply has several, Kafka gives some codes to the whole and others to the elements: the tables below
say which. An API whose reply needs the broker's state for this (Fetch, Metadata) has a second
function. A handler that raises a broker's error is answered so, too::

    def refuse_fetch(call: Call, request: FetchRequest, code: int) -> FetchResponse | None: ...

"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kafka.broker.server.apis import refusal
from kafka.errors import BrokerResponseError, Code
from kafka.protocol.fields import Field
from kafka.protocol.registry import ApiKey
from kafka.protocol.struct import Struct

if TYPE_CHECKING:
    from kafka.broker.server.call import Call
    from kafka.protocol.api import Request, Response

ResponseT = TypeVar("ResponseT", bound="Response")

_TOPIC_CODES: Final = frozenset(
    {Code.UNKNOWN_TOPIC_OR_PARTITION, Code.TOPIC_AUTHORIZATION_FAILED, Code.UNKNOWN_TOPIC_ID}
)
#: The codes that Kafka gives to the innermost elements; the group's or the whole reply's place has all others.
_INNERMOST: Final = {
    ApiKey.OffsetFetch: _TOPIC_CODES | {Code.UNSTABLE_OFFSET_COMMIT},
    ApiKey.LeaveGroup: {Code.UNKNOWN_MEMBER_ID, Code.FENCED_INSTANCE_ID},
    ApiKey.ElectLeaders: _TOPIC_CODES
    | {Code.PREFERRED_LEADER_NOT_AVAILABLE, Code.ELIGIBLE_LEADERS_NOT_AVAILABLE, Code.ELECTION_NOT_NEEDED},
    ApiKey.AlterPartitionReassignments: _TOPIC_CODES
    | {Code.INVALID_REPLICATION_FACTOR, Code.INVALID_REPLICA_ASSIGNMENT, Code.NO_REASSIGNMENT_IN_PROGRESS},
    ApiKey.OffsetDelete: _TOPIC_CODES | {Code.GROUP_SUBSCRIBED_TO_TOPIC},
    ApiKey.DescribeQuorum: _TOPIC_CODES | {Code.NOT_LEADER_OR_FOLLOWER},
    ApiKey.DescribeShareGroupOffsets: _TOPIC_CODES,
    ApiKey.AlterShareGroupOffsets: _TOPIC_CODES,
    ApiKey.DeleteShareGroupOffsets: _TOPIC_CODES,
}
#: The only codes that the reply's own place can have; all others go to the innermost elements.
_OUTERMOST: Final = {
    ApiKey.Fetch: {
        Code.FETCH_SESSION_ID_NOT_FOUND,
        Code.INVALID_FETCH_SESSION_EPOCH,
        Code.FETCH_SESSION_TOPIC_ID_ERROR,
    },
    ApiKey.Metadata: {Code.REBOOTSTRAP_REQUIRED},
    ApiKey.AddPartitionsToTxn: {Code.CLUSTER_AUTHORIZATION_FAILED},
}
#: APIs whose replies repeat the error of the whole in each element.
_REPEATED: Final = frozenset({ApiKey.ElectLeaders, ApiKey.AlterPartitionReassignments})
#: What else Kafka writes where there is an error, if it is not the field's default.
_BESIDE_ERRORS: Final[dict[int, dict[str, Any]]] = {
    ApiKey.Produce: {"base_offset": -1},
    ApiKey.Fetch: {"high_watermark": -1},
    ApiKey.OffsetFetch: {"committed_offset": -1},
    ApiKey.FindCoordinator: {"node_id": -1, "port": -1},
    ApiKey.DeleteRecords: {"low_watermark": -1},
    ApiKey.InitProducerId: {"producer_epoch": -1},
    ApiKey.CreateDelegationToken: {"issue_timestamp_ms": -1, "expiry_timestamp_ms": -1, "max_timestamp_ms": -1},
    ApiKey.DescribeClientQuotas: {"entries": None},
}

#: The fields by which a reply's element names what was asked for -> their names in requests.
_SAME: Final = {
    "name": ("name", "topic", "topic_name", "transactional_id"),
    "topic": ("topic", "name"),
    "partition_index": ("partition_index", "partition", "index"),
    "partition": ("partition", "partition_index"),
    "index": ("index", "partition_index"),
    "user": ("user", "name"),
} | {
    name: (name,)
    for name in (
        *("feature", "group_id", "group_instance_id", "key", "member_id", "producer_id", "resource_name"),
        *("resource_type", "topic_id", "topic_name", "transactional_id"),
    )
}
#: Names of the field with an error; AddPartitionsToTxn has another one.
_CODES: Final = ("error_code", "partition_error_code")


def refuse(call: Call, request: Request[Response], code: int) -> Response | None:
    """Return the reply to ``request`` that consists of this error; None if it asks for nothing that could have it."""
    special = refusal(request.API_KEY)
    return error_reply(request, code) if special is None else special(call, request, code)


def reply_to_error(call: Call, request: Request[Response], error: BrokerResponseError) -> Response:
    """Return the reply to a request whose handler has raised an error; its message is the error's, if that has one."""
    reply = refuse(call, request, error.code) or call.response()
    message = type(reply)._fields.get("error_message")
    if message is not None and call.version in message.versions:
        reply.error_message = str(error.args[0]) if error.args else None  # type: ignore[attr-defined]
    return reply


def error_reply(request: Request[ResponseT], code: int) -> ResponseT | None:
    """Return the reply to ``request`` that consists of this error, as far as that follows from the request alone.

    >>> from kafka.protocol.metadata import MetadataRequest
    >>> error_reply(MetadataRequest[1](["events"]), 5).topics[0].error_code
    5
    """
    reply = type(request).RESPONSE_TYPE()
    is_said = _Writer(request.API_KEY, request.API_VERSION, code).fill(reply, request)
    return reply if is_said else None


class _Writer:
    """Writes one error into one reply."""

    def __init__(self, key: int, version: int, code: int) -> None:
        self._version = version
        self._code = code
        whole = _OUTERMOST.get(ApiKey(key))
        self._is_outermost = code in whole if whole is not None else code not in _INNERMOST.get(ApiKey(key), ())
        self._is_repeated = key in _REPEATED
        self._beside = _BESIDE_ERRORS.get(key, {})

    def fill(self, reply: Struct, asked: object) -> bool:
        """Put the error into ``reply`` or its elements, of which there is one for each of ``asked``.

        Whether there was a place for it.
        """
        own = _error_field(type(reply), self._version)
        sources = _arrays(type(asked), self._version) if isinstance(asked, Struct) else []
        targets = [field for field in _arrays(type(reply), self._version) if self._holds_errors(field.element)]
        has_elements = bool(sources and targets)
        is_own = own is not None and (self._is_outermost or not has_elements)
        if own is not None and is_own:
            setattr(reply, own, self._code)
            for name, value in self._beside.items():
                if name in type(reply)._fields and self._version in type(reply)._fields[name].versions:
                    setattr(reply, name, value)
        if has_elements and (not is_own or self._is_repeated):
            # A request has at most one list of what it asks for; the others refine (forgotten topics, filters).
            return self._fill_elements(reply, targets[0], getattr(asked, sources[0].name) or ()) or is_own
        return is_own

    def _fill_elements(self, reply: Struct, target: Field, asked: Iterable[object]) -> bool:
        elements = []
        for item in asked:
            element = target.element[self._version]()
            _copy_names(element, item, self._version)
            if self.fill(element, item):
                elements.append(element)
        setattr(reply, target.name, elements)
        return bool(elements)

    def _holds_errors(self, element: object) -> bool:
        if not isinstance(element, type) or not issubclass(element, Struct):
            return False
        return _error_field(element, self._version) is not None or any(
            self._holds_errors(field.element) for field in _arrays(element, self._version)
        )


def _error_field(cls: type[Struct], version: int) -> str | None:
    for name in _CODES:
        field = cls._fields.get(name)
        if field is not None and version in field.versions:
            return name
    return None


def _arrays(cls: type[Struct], version: int) -> list[Field]:
    return [
        field for field in cls._fields.values() if field.is_array and version in field.versions and field.tag is None
    ]


def _copy_names(element: Struct, item: object, version: int) -> None:
    fields = type(element)._fields
    if not isinstance(item, Struct):
        # A bare value, as a partition's number or a group's name, goes to the field that can hold it.
        for field in fields.values():
            if field.name not in _CODES and version in field.versions and isinstance(field.default, type(item)):
                setattr(element, field.name, item)
                return
        return
    theirs = type(item)._fields
    for field in fields.values():
        if version not in field.versions:
            continue
        for name in _SAME.get(field.name, ()):
            if name in theirs and version in theirs[name].versions:
                value = getattr(item, name)
                if value is not None or version in field.nullable:
                    setattr(element, field.name, value)
                break
