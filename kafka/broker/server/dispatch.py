"""From a frame to the reply's frame: version check, decoding, the test's faults, the API's handler, error replies.

Whatever a frame holds, the worst that comes of it is a closed connection, as with Kafka: an API or version that is not
served closes it (ApiVersions is answered in v0 with UNSUPPORTED_VERSION, KIP-511), and so does a frame that cannot be
decoded. Where a whole request is refused, the reply holds one error for each element that the request asked for.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import Awaitable
from functools import cache
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from kafka.broker.faults import CLOSE, NO_REPLY, Exchange, SeenRequest
from kafka.broker.server.apis import handler
from kafka.broker.server.call import Call
from kafka.errors import Code, KafkaError
from kafka.protocol.admin import ApiVersionsResponse
from kafka.protocol.api import Request
from kafka.protocol.fields import Array, Field
from kafka.protocol.headers import RequestHeader
from kafka.protocol.registry import APIS, ApiKey, request_class
from kafka.protocol.struct import Struct

if TYPE_CHECKING:
    from kafka.broker.cluster.cluster import Cluster
    from kafka.broker.faults import Order
    from kafka.broker.server.connection import Connection, Frame, Parts
    from kafka.protocol.api import Response

__all__ = ["error_reply"]

ResponseT = TypeVar("ResponseT", bound="Response")

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


def error_reply(request: Request[ResponseT], code: int) -> ResponseT:
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


def _holds_errors(element: object, version: int) -> bool:
    if not isinstance(element, type) or not issubclass(element, Struct):
        return False
    return _error_field(element, version) is not None or any(
        _holds_errors(field.element, version) for field in _arrays(element, version)
    )


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
        if field.name in _CODES or version not in field.versions or isinstance(field.type, Array):
            continue
        for name in _SAME.get(field.name, (field.name,)):
            if name in theirs and version in theirs[name].versions:
                value = getattr(item, name)
                if value is not None or version in field.nullable:
                    setattr(element, field.name, value)
                break


log = logging.getLogger("kafka.broker")

#: The APIs that a client may use before it has authenticated.
_BEFORE_SASL: Final = frozenset({ApiKey.SaslHandshake, ApiKey.ApiVersions, ApiKey.SaslAuthenticate})
_START: Final = struct.Struct(">hhi")
#: Where the client's name begins in a header, behind its length.
_NAME_AT: Final = 10
_NO_NAME: Final = 0xFFFF
_LONGEST_NAME: Final = 0x7FFF


class Dispatcher:
    """Serves the requests of all connections of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def handle(self, connection: Connection, frame: Frame) -> Parts | Awaitable[Parts | None] | None:
        """Serve one frame: return the pieces of the reply's frame, or an awaitable of them, or None for no reply.

        Closes the connection where Kafka does; never raises.
        """
        try:
            if connection.bare_frames is not None:
                return _bare(connection, frame)
            return self._serve(connection, frame)
        except KafkaError as error:
            connection.refuse(str(error))
        except Exception:  # a bug of ours must cost this connection and no more
            log.exception("closing connection %d from %s: the broker failed", connection.number, connection.host)
            connection.close()
        return None

    def _serve(self, connection: Connection, frame: Frame) -> Parts | Awaitable[Parts | None] | None:
        if len(frame) < _START.size:
            connection.refuse(f"a request of {len(frame)} bytes, which is less than a header has")
            return None
        api_key, version, correlation_id = _START.unpack_from(frame)
        offered = self._cluster.apis.get(api_key)
        if offered is None or not offered[0] <= version <= offered[1]:
            return self._unsupported(connection, api_key, version, correlation_id)
        if not connection.is_authenticated and api_key not in _BEFORE_SASL:
            connection.refuse(f"{APIS[api_key].name} before the client has authenticated with SASL")
            return None
        header, request = _read(frame, api_key, version, correlation_id)
        response = _classes(api_key, version).response
        call = Call(self._cluster, connection.node, connection, header, version, response)
        faults = self._cluster.faults
        faults.note(
            SeenRequest(
                request,
                api_key,
                version,
                header.client_id,
                connection.node.node_id,
                connection.number,
                correlation_id,
                self._cluster.clock.time(),
                len(frame),
            )
        )
        if faults.is_active:
            return self._serve_with_orders(call, request, api_key)
        reply = handler(api_key)(call, request)
        if isawaitable(reply):
            return _finish(reply, correlation_id)
        return None if reply is None else reply.frame_parts(correlation_id)

    def _unsupported(self, connection: Connection, api_key: int, version: int, correlation_id: int) -> Parts | None:
        if api_key != ApiKey.ApiVersions or self._cluster.apis.get(ApiKey.ApiVersions) is None:
            connection.refuse(self._not_served(api_key, version))
            return None
        # The reply has the range of ApiVersions alone: enough for the client to choose again.
        low, high = self._cluster.apis.get(ApiKey.ApiVersions) or (0, 0)
        reply = ApiVersionsResponse[0](error_code=Code.UNSUPPORTED_VERSION, api_keys=[(ApiKey.ApiVersions, low, high)])
        return reply.frame_parts(correlation_id)

    def _not_served(self, api_key: int, version: int) -> str:
        name = APIS[api_key].name if api_key in APIS else f"the API with key {api_key}"
        offered = self._cluster.apis.get(api_key)
        if offered is None:
            return f"{name} is not served"
        return f"{name} version {version} is not served, only {offered[0]} to {offered[1]}"

    # With orders of a test in force

    def _serve_with_orders(
        self, call: Call, request: Request[Response], api_key: int
    ) -> Awaitable[Parts | None] | Parts | None:
        orders = list(self._cluster.faults.matching(api_key, call.node.node_id))
        if not orders:
            reply = handler(api_key)(call, request)
            if isawaitable(reply):
                return _finish(reply, call.header.correlation_id)
            return None if reply is None else reply.frame_parts(call.header.correlation_id)
        return self._obey(call, request, api_key, orders)

    async def _obey(self, call: Call, request: Request[Response], api_key: int, orders: list[Order]) -> Parts | None:
        exchange = Exchange(request, None, call)
        for order in orders:
            if order.delay:
                self._cluster.faults.use(order)
                await self._cluster.sleep(order.delay)
        reply = self._before(exchange, orders)
        if reply is None:
            reply = handler(api_key)(call, request)
            if isawaitable(reply):
                reply = await reply
            if reply is None:
                return None
            exchange.reply = reply
            reply = self._after(exchange, orders)
        if reply is CLOSE:
            call.connection.abort()
            return None
        if reply is NO_REPLY:
            await asyncio.get_running_loop().create_future()
        if not request.expect_response():
            return None
        # A reply that a test returns need not be bound to a version.
        version = call.version if getattr(reply, "API_VERSION", None) is None else None
        parts: Parts = reply.frame_parts(call.header.correlation_id, version)
        return parts

    def _before(self, exchange: Exchange, orders: list[Order]) -> Any:
        """Let the orders answer that come before the handler: errors, drops, interceptors."""
        for order in orders:
            answer = None
            if order.drops:
                self._cluster.faults.use(order)
                return CLOSE
            if order.errors:
                code = order.errors.popleft()
                if not order.errors:
                    self._cluster.faults.remove(order)
                if code is not None:
                    answer = error_reply(exchange.request, code)
            elif order.interceptor is not None and order.before:
                self._cluster.faults.use(order)
                answer = order.interceptor(exchange)
            if answer is not None:
                return answer
        return None

    def _after(self, exchange: Exchange, orders: list[Order]) -> Any:
        """Let the interceptors see the reply, and put another in its place."""
        for order in orders:
            if order.interceptor is not None and not order.before:
                self._cluster.faults.use(order)
                answer = order.interceptor(exchange)
                if answer is CLOSE or answer is NO_REPLY:
                    return answer
                if answer is not None:
                    exchange.reply = answer
        return exchange.reply


class _Classes(NamedTuple):
    """What belongs to one version of an API."""

    request: type[Request[Response]]
    response: type[Response]
    header: type[RequestHeader]
    has_tags: bool


@cache
def _classes(api_key: int, version: int) -> _Classes:
    request = request_class(api_key)[version]
    number = request.header_version()
    return _Classes(request, request.RESPONSE_TYPE, RequestHeader[number], number > 1)


def _read(frame: Frame, api_key: int, version: int, correlation_id: int) -> tuple[RequestHeader, Request[Response]]:
    """Read a request; a header without tags, as nearly all are, in a few steps.

    Bytes behind the last field of a request are ignored, as Kafka does: librdkafka 2.16 sends three behind Metadata 12
    and 13.
    """
    classes = _classes(api_key, version)
    size = len(frame)
    if size < _NAME_AT or classes.header is RequestHeader[0]:
        return _read_slowly(frame, classes)
    length = frame[_NAME_AT - 2] << 8 | frame[_NAME_AT - 1]
    name: str | None = None
    start = _NAME_AT
    if length != _NO_NAME:
        start += length
        if length > _LONGEST_NAME or start > size:
            return _read_slowly(frame, classes)
        try:
            name = str(frame[_NAME_AT:start], "utf-8")
        except UnicodeDecodeError:
            return _read_slowly(frame, classes)
    if classes.has_tags:
        if start >= size or frame[start]:
            return _read_slowly(frame, classes)
        start += 1
    header = classes.header(api_key, version, correlation_id, name)
    return header, classes.request.decode_prefix(frame, start=start)[0]


def _read_slowly(frame: Frame, classes: _Classes) -> tuple[RequestHeader, Request[Response]]:
    """Read any header and the request behind it; raise KafkaProtocolError for what is not one."""
    header, start = classes.header.decode_prefix(frame)
    return header, classes.request.decode_prefix(frame, start=start)[0]


def _bare(connection: Connection, frame: Frame) -> Parts | None:
    assert connection.bare_frames is not None
    reply = connection.bare_frames(frame)
    if reply is None:
        return None
    return [len(reply).to_bytes(4, "big"), reply]


async def _finish(reply: Awaitable[Response | None], correlation_id: int) -> Parts | None:
    finished = await reply
    return None if finished is None else finished.frame_parts(correlation_id)
