"""A broker in memory that answers as a test prescribes: for cases that a real broker does not produce on demand.

It listens on a `MemoryNetwork` and speaks the protocol with the library's message classes. It stores nothing; to test
an application, use the embedded broker (`kafka.broker`).

>>> from kafka.testing.memory import MemoryNetwork
>>> broker = ScriptedBroker(MemoryNetwork())
>>> broker.on("Metadata", lambda request, session: {"controller_id": 7})
>>> broker.ranges[3]
(0, 13)
"""

# ruff: noqa: SLF001 - unbound classes have no public name

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from kafka.errors import KafkaError
from kafka.protocol.api import Request
from kafka.protocol.registry import APIS, ApiKey, api_named
from kafka.testing.memory import MemoryNetwork, MemorySocket

if TYPE_CHECKING:
    from kafka.protocol.api import Response
    from kafka.protocol.headers import RequestHeader
    from kafka.protocol.metadata import MetadataResponse

__all__ = ["ScriptedBroker", "Session"]

Handler = Callable[[Any, "Session"], Any]

_LARGEST_REQUEST: Final = 100 << 20

#: A handler returns this to leave a request without a reply.
SILENCE: Final = object()
#: A handler returns this to close the connection.
HANG_UP: Final = object()


class Session:
    """One accepted connection."""

    def __init__(self, broker: ScriptedBroker, sock: MemorySocket) -> None:
        self.broker = broker
        self.sock = sock
        self.raw: Callable[[bytes, Session], Any] | None = None
        """When set, frames are bare SASL tokens."""
        self.unanswered: list[tuple[RequestHeader, Request[Response]]] = []
        """Headers and requests without an answer so far; `reply` answers one."""
        self._data = bytearray()
        sock.on_data = self._arrived

    def _arrived(self, sock: MemorySocket) -> None:
        self._data += sock.take()
        while len(self._data) >= 4 and not sock.closed:
            size = int.from_bytes(self._data[:4], "big")
            if size > _LARGEST_REQUEST:
                sock.close()  # as brokers do: socket.request.max.bytes
                return
            if len(self._data) < 4 + size:
                return
            frame = bytes(self._data[4 : 4 + size])
            del self._data[: 4 + size]
            self._frame(frame)

    def _frame(self, frame: bytes) -> None:
        if self.raw is not None:
            answer = self.raw(frame, self)
            if answer is HANG_UP:
                self.sock.close()
            else:
                self.sock.send(len(answer).to_bytes(4, "big") + answer)
            return
        key, version = int.from_bytes(frame[:2], "big"), int.from_bytes(frame[2:4], "big")
        low, high = self.broker.ranges.get(key, (0, -1))
        if not low <= version <= high and key != 18:
            self.broker.unknown(self, key, version)
            return
        try:
            header, request = Request.unframe(frame)
        except KafkaError:
            self.broker.unknown(self, key, version)
            return
        name = APIS[key].name
        self.broker.requests.append((name, version, request))
        handler = self.broker.handlers.get(name)
        answer = SILENCE if handler is None else handler(request, self)
        if answer is SILENCE:
            self.unanswered.append((header, request))
        elif answer is HANG_UP:
            self.sock.close()
        else:
            self.reply(header, request, answer)

    def reply(self, header: RequestHeader, request: Request[Response], answer: Any) -> None:
        """Answer a request: with the response's fields, a response, or bytes as they are."""
        if ApiKey.Produce == request.API_KEY and not request.expect_response():
            return
        if isinstance(answer, (bytes, bytearray)):
            self.sock.send(answer)
            return
        version = header.request_api_version
        response: Any = type(request)._unbound.RESPONSE_TYPE
        if isinstance(answer, Mapping):
            if "v0" in answer:
                version, answer = 0, answer["v0"]
            answer = response(**answer)
        self.sock.send(answer.frame(header.correlation_id, version))


class ScriptedBroker:
    """Listens in memory, records the requests and answers from a table of handlers.

    A handler gets the request and the session and returns the response's fields as a dict, a response, raw bytes,
    `SILENCE` or `HANG_UP`. ApiVersions is answered from `ranges` without a handler.
    """

    def __init__(self, network: MemoryNetwork, host: str = "broker", port: int = 9092) -> None:
        self.network = network
        self.host = host
        self.port = port
        # A broker offers client metrics (KIP-714) only with a plugin that takes them.
        self.ranges: dict[int, tuple[int, int]] = {
            api.key: (api.min_version, api.max_version)
            for api in APIS.values()
            if "broker" in api.listeners.split()
            and api.key not in (ApiKey.GetTelemetrySubscriptions, ApiKey.PushTelemetry)
        }
        self.handlers: dict[str, Handler] = {"ApiVersions": self._api_versions}
        self.requests: list[tuple[str, int, Any]] = []
        self.sessions: list[Session] = []
        self.ignores_unknown = False
        """Whether it ignores unknown requests, as brokers 0.9.0 do, or closes the connection."""
        self.start()

    def start(self) -> None:
        """Listen (again)."""
        self.network.listen(self.host, self.port, self._connected)

    def stop(self) -> None:
        """Refuse new connections and close the open ones."""
        self.network.listeners.pop((self.host, self.port), None)
        for session in self.sessions:
            session.sock.close()

    def on(self, api: str, handler: Handler | Mapping[str, object]) -> None:
        """Answer an API with a handler, or always with the same fields."""
        fixed = handler
        self.handlers[api_named(api).name] = handler if callable(handler) else lambda _request, _session: fixed

    def node(self, node_id: int) -> MetadataResponse.MetadataResponseBroker:
        """Return this broker's entry for the `brokers` of a MetadataResponse."""
        from kafka.protocol.metadata import MetadataResponse

        return MetadataResponse.MetadataResponseBroker(node_id=node_id, host=self.host, port=self.port, rack=None)

    def asked(self, api: str) -> list[Any]:
        """Return the requests of one API received so far."""
        return [request for name, _, request in self.requests if name == api]

    def unknown(self, session: Session, key: int, version: int) -> None:
        """Treat a request with an unknown API or version as the broker's release would."""
        self.requests.append(("unknown", version, key))
        if not self.ignores_unknown:
            session.sock.close()

    def _connected(self, sock: MemorySocket) -> None:
        self.sessions.append(Session(self, sock))

    def _api_versions(self, request: Request[Response], session: Session) -> object:
        low, high = self.ranges.get(ApiKey.ApiVersions, (0, -1))
        version = type(request).API_VERSION
        if high < 0:
            self.requests.pop()
            self.unknown(session, 18, version)
            return SILENCE
        if not low <= version <= high:
            # KIP-511: in version 0, and since 2.4 with the versions of this one API
            keys = [{"api_key": 18, "min_version": low, "max_version": high}] if high >= 3 else []
            return {"v0": {"error_code": 35, "api_keys": _entries(request, keys)}}
        keys = [{"api_key": k, "min_version": a, "max_version": b} for k, (a, b) in self.ranges.items()]
        return {"api_keys": _entries(request, keys)}


def _entries(request: Request[Response], keys: list[dict[str, int]]) -> list[object]:
    entry = type(request)._unbound.RESPONSE_TYPE.ApiVersion
    return [entry(**fields) for fields in keys]
