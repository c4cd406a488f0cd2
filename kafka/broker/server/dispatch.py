"""From a frame to the reply's frame: version check, decoding, the test's faults, the API's handler, error replies.

Whatever a frame holds, the worst that comes of it is a closed connection, as with Kafka: an API or version that is not
served closes it (ApiVersions is answered in v0 with UNSUPPORTED_VERSION, KIP-511), and so does a frame that cannot be
decoded.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import Awaitable, Iterable
from functools import cache
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafka.broker.faults import CLOSE, NO_REPLY, Exchange, SeenRequest
from kafka.broker.server.apis import handler
from kafka.broker.server.apis.handshake import unsupported_version
from kafka.broker.server.call import Call
from kafka.broker.server.error_replies import refuse, reply_to_error
from kafka.errors import BrokerResponseError, KafkaError
from kafka.protocol.api import Request
from kafka.protocol.headers import RequestHeader
from kafka.protocol.registry import APIS, ApiKey, request_class

if TYPE_CHECKING:
    from kafka.broker.cluster.cluster import Cluster
    from kafka.broker.faults import Interceptor, Taken
    from kafka.broker.server.connection import Connection, Frame, Parts
    from kafka.protocol.api import Response

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
                assert connection.bare_frames is not None
                reply = connection.bare_frames(frame)
                if reply is None:
                    return None
                return [len(reply).to_bytes(4, "big"), reply]
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
        reply = _serve(call, request, api_key)
        if isawaitable(reply):
            return _finish(reply, correlation_id)
        return None if reply is None else reply.frame_parts(correlation_id)

    def _unsupported(self, connection: Connection, api_key: int, version: int, correlation_id: int) -> Parts | None:
        if api_key != ApiKey.ApiVersions or self._cluster.apis.get(ApiKey.ApiVersions) is None:
            connection.refuse(self._not_served(api_key, version))
            return None
        return unsupported_version(self._cluster.apis).frame_parts(correlation_id)

    def _not_served(self, api_key: int, version: int) -> str:
        name = APIS[api_key].name if api_key in APIS else f"the API with key {api_key}"
        offered = self._cluster.apis.get(api_key)
        if offered is None:
            return f"{name} is not served"
        return f"{name} version {version} is not served, only {offered[0]} to {offered[1]}"

    # With orders of a test in force, or a watcher

    def _serve_with_orders(
        self, call: Call, request: Request[Response], api_key: int
    ) -> Awaitable[Parts | None] | Parts | None:
        faults = self._cluster.faults
        if faults.watcher is not None:
            faults.watcher.arrived(call, request)
        taken = faults.take(api_key, call.node.node_id, lambda code: refuse(call, request, code))
        reply = _serve(call, request, api_key) if taken is None else self._obey(call, request, api_key, taken)
        return self._answer_later(call, request, reply) if isawaitable(reply) else self._answer(call, request, reply)

    async def _answer_later(self, call: Call, request: Request[Response], reply: Awaitable[Any]) -> Parts | None:
        return self._answer(call, request, await reply)

    def _answer(self, call: Call, request: Request[Response], reply: Any) -> Parts | None:
        if reply is CLOSE:
            call.connection.abort()
            return None
        watcher = self._cluster.faults.watcher
        if watcher is not None:
            watcher.answered(call, request, reply)
        if reply is None:
            return None
        # A reply that a test returns need not be bound to a version.
        version = call.version if getattr(reply, "API_VERSION", None) is None else None
        parts: Parts = reply.frame_parts(call.header.correlation_id, version)
        return parts

    async def _obey(self, call: Call, request: Request[Response], api_key: int, taken: Taken) -> Any:
        """Return the reply that orders leave of the API's; CLOSE, or None where the request has none."""
        for seconds in taken.delays:
            await self._cluster.sleep(seconds)
        exchange = Exchange(request, None, call)
        reply = next(filter(None, (look(exchange) for look in taken.before)), None) or taken.reply
        if reply is None:
            reply = _serve(call, request, api_key)
            if isawaitable(reply):
                reply = await reply
            if reply is None:
                return None
            exchange.reply = reply
            reply = _after(exchange, taken.after)
        if reply is NO_REPLY:
            await asyncio.get_running_loop().create_future()
        if reply is CLOSE or request.expect_response():
            return reply
        if reply is taken.reply:
            call.connection.refuse("a Produce request with acks=0, which has no reply, failed as a test ordered")
        return None


def _serve(call: Call, request: Request[Response], api_key: int) -> Any:
    """Return what the API's handler returns, or the reply to the error that it raises."""
    try:
        return handler(api_key)(call, request)
    except BrokerResponseError as error:
        return reply_to_error(call, request, error)


def _after(exchange: Exchange, interceptors: Iterable[Interceptor]) -> Any:
    """Let the interceptors see the reply, and put another in its place."""
    for look in interceptors:
        answer = look(exchange)
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


async def _finish(reply: Awaitable[Response | None], correlation_id: int) -> Parts | None:
    finished = await reply
    return None if finished is None else finished.frame_parts(correlation_id)
