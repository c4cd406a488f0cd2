"""The reply that says one error about everything that a request asked for, as Kafka answers a request it refuses.

Where the reply has a top-level error code, that one is set and the rest stays empty; else each topic, partition,
group or resource of the request comes back with the error. What belongs together is found by name: an element of the
reply is filled from the element of the request at the same depth, where fields are called the same or nearly so.
"""

from __future__ import annotations

from typing import Any, Final

from kafka.protocol.api import Request
from kafka.protocol.fields import Array, Field
from kafka.protocol.struct import Struct

__all__ = ["error_reply"]

#: Names in replies -> the names that the same thing has in requests.
_SAME: Final = {
    "name": ("name", "topic", "topic_name", "transactional_id"),
    "topic": ("topic", "name"),
    "partition_index": ("partition_index", "partition", "index"),
    "partition": ("partition", "partition_index"),
    "index": ("index", "partition_index"),
    "key": ("key",),
    "group_id": ("group_id",),
    "user": ("user", "name"),
}
#: Names of the field with an error; AddPartitionsToTxn has another one.
_CODES: Final = ("error_code", "partition_error_code")
#: APIs whose replies have an error for each element although they have a top-level code as well.
_EACH: Final = frozenset({"ElectLeaders"})


def error_reply(request: Request[Any], code: int) -> Any:
    """Return the reply to ``request`` that consists of this error.

    >>> from kafka.protocol.metadata import MetadataRequest
    >>> error_reply(MetadataRequest[1](["events"]), 5).topics[0].error_code
    5
    """
    cls = type(request).RESPONSE_TYPE
    reply = cls()
    version = request.API_VERSION
    name = cls.__name__.removesuffix("Response")
    own = _error_field(cls, version)
    if own is not None:
        setattr(reply, own, code)
        if name not in _EACH:
            return reply
    _fill(reply, request, code, version)
    return reply


def _error_field(cls: Any, version: int) -> str | None:
    for name in _CODES:
        field = cls._fields.get(name)
        if field is not None and version in field.versions:
            return name
    return None


def _arrays(cls: Any, version: int) -> list[Field]:
    return [
        field for field in cls._fields.values() if field.is_array and version in field.versions and field.tag is None
    ]


def _fill(reply: Struct, asked: Struct, code: int, version: int) -> None:
    """Give ``reply`` an element with the error for each element of ``asked``."""
    targets = [field for field in _arrays(type(reply), version) if _holds_errors(field.element, version)]
    sources = _arrays(type(asked), version)
    if not targets or not sources:
        return
    target = targets[0]
    # A request has at most one list of what it asks for; the others refine (forgotten topics, filters).
    source = sources[0]
    element_class = target.element[version]
    elements = []
    for item in getattr(asked, source.name) or ():
        element = element_class()
        _copy_names(element, item, version)
        own = _error_field(type(element), version)
        if own is not None:
            setattr(element, own, code)
        if isinstance(item, Struct):
            _fill(element, item, code, version)
        elif own is None:
            continue
        elements.append(element)
    setattr(reply, target.name, elements)


def _holds_errors(element: Any, version: int) -> bool:
    if not isinstance(element, type) or not issubclass(element, Struct):
        return False
    return _error_field(element, version) is not None or any(
        _holds_errors(field.element, version) for field in _arrays(element, version)
    )


def _copy_names(element: Struct, item: Any, version: int) -> None:
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
        if field.name in _CODES or version not in field.versions or isinstance(field.type, Array):
            continue
        for name in _SAME.get(field.name, (field.name,)):
            if name in theirs and version in theirs[name].versions:
                value = getattr(item, name)
                if value is not None or version in field.nullable:
                    setattr(element, field.name, value)
                break
