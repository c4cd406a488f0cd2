"""`BrokerConnection`, the historic face of one connection: names, units and calling rules of kafka-python.

The connection itself is a `kafka.net.connection.Connection`, on a loop that each call turns a little. Times are in
milliseconds; `connect()` is called until connected; `send()` and `recv()` do not wait.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from kafka._arguments import check_host, check_port, check_request, check_time
from kafka._runtime.network_thread import run_here
from kafka.config import Config, collect_hosts, defaults, get_ip_port_afi, given_options, resolve
from kafka.errors import KafkaConnectionError, KafkaError, KafkaTimeoutError, NodeNotReadyError, TooManyInFlightRequests
from kafka.future import Future
from kafka.net.connection import Connection
from kafka.net.environment import Environment
from kafka.net.settings import ConnectionContext, ConnectionSettings
from kafka.net.states import ConnectionStates
from kafka.protocol.negotiation import ApiVersions

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from kafka.options import ConnectionOptions
    from kafka.protocol.api import Request, Response

__all__ = ["BrokerConnection", "ConnectionStates", "collect_hosts", "get_ip_port_afi"]

log = logging.getLogger(__name__)

ResponseT = TypeVar("ResponseT", bound="Response")

DEFAULT_KAFKA_PORT: Final = 9092
AFI_NAMES: Final = {socket.AF_UNSPEC: "unspecified", socket.AF_INET: "IPv4", socket.AF_INET6: "IPv6"}

# What `connection_delay` returns when there is nothing to wait for: "a very large number", in ms.
_NO_DELAY_MS: Final = float("inf")


class BrokerConnection:
    """A connection to one broker, driven by the calls of its methods.

    ::

        conn = BrokerConnection("localhost", 9092, socket.AF_INET)
        conn.connect_blocking()
        future = conn.send(MetadataRequest[1](["events"]))
        while not future.is_done:
            conn.recv()

    Keyword arguments are the options of a connection (``BrokerConnection.DEFAULT_CONFIG``).
    """

    DEFAULT_CONFIG: ClassVar[dict[str, Any]] = defaults("connection")
    SECURITY_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
    SASL_MECHANISMS: Final = ("PLAIN", "GSSAPI", "OAUTHBEARER", "SCRAM-SHA-256", "SCRAM-SHA-512", "AWS_MSK_IAM")

    def __init__(
        self,
        host: str,
        port: int,
        afi: int = socket.AF_UNSPEC,
        *,
        config: Config | None = None,
        environment: Environment | None = None,
        **configs: Unpack[ConnectionOptions],
    ) -> None:
        check_host(host)
        check_port(port)
        if config is None:
            config = resolve("connection", given_options("BrokerConnection", None, configs), self.DEFAULT_CONFIG)
        self.config = config
        environment = environment or Environment()
        self._loop = environment.make_loop(self.config["selector"])
        context = ConnectionContext(self._loop, ConnectionSettings(self.config), environment)
        if self.config["metrics"] is not None:
            from kafka._core.metrics import measure

            measure(context, self.config["metrics"], self.config["metric_group_prefix"])
        self.connection = Connection(context, host, port, family=afi, node_id=self.config["node_id"])
        """The connection itself."""
        callback = self.config["state_change_callback"]
        if callback is not None:
            self.connection.on_state = lambda _: self._tell_state(callback)
        received: list[tuple[Any, Future[Any]]] = []
        self._received = received
        self.connection.delivered = lambda future, response: received.append((response, future))

    def _tell_state(self, callback: Callable[[int | str, Any, BrokerConnection], object]) -> None:
        try:
            callback(self.node_id, self.sock, self)
        except Exception:  # the requests of the connection must have their outcome
            log.exception("The state_change_callback of %s failed", self)

    # The broker…

    @property
    def host(self) -> str:
        """The broker's host."""
        return self.connection.host

    @property
    def port(self) -> int:
        """The broker's port."""
        return self.connection.port

    @property
    def afi(self) -> int:
        """The address family given to the constructor."""
        return self.connection.family

    @property
    def node_id(self) -> int | str:
        """The broker's id, as in the option ``node_id``."""
        return self.connection.node_id

    @property
    def state(self) -> ConnectionStates:
        """The state of the connection."""
        return self.connection.state

    @property
    def sock(self) -> Any:
        """The socket, or the TLS stream over it; None while disconnected."""
        return self.connection.sock

    @property
    def error(self) -> KafkaError | None:
        """Why the last attempt failed or the last connection ended; None while all is well."""
        return self.connection.error

    # Connecting…

    def connect(self) -> ConnectionStates:
        """Continue to connect, if needed, and return the state. Does not block; call it until connected."""
        if self.disconnected() and not self.blacked_out():
            self.connection.open()
        self._turn()
        return self.state

    def connect_blocking(self, timeout: float = float("inf")) -> bool:
        """Connect and wait until that is done, for `timeout` seconds at most; return whether it is connected."""
        check_time("timeout", timeout, unit="seconds")
        loop = self._loop
        deadline = loop.time() + timeout
        while not self.connected() and loop.time() < deadline:
            delay = self.connection.backing_off()
            task = loop.spawn(loop.sleep(delay) if delay else _opened(self.connection.open()))
            try:
                run_here(loop, task, None if timeout == float("inf") else deadline)
            except KafkaTimeoutError:
                break
            except KafkaError:
                if self.connection.fatal is not None:
                    raise
        return self.connected()

    def connected(self) -> bool:
        """Whether it is connected and, where that is configured, authenticated."""
        return self.connection.ready

    def connecting(self) -> bool:
        """Whether an attempt to connect is under way."""
        return self.connection.is_opening

    def disconnected(self) -> bool:
        """Whether there is neither a connection nor an attempt to connect."""
        return self.connection.is_disconnected

    def blacked_out(self) -> bool:
        """Whether it is disconnected and must wait before the next attempt."""
        return self.connection.backing_off() > 0

    def connection_delay(self) -> float:
        """Milliseconds to wait before trying to send: the backoff, 0 while connecting, infinity when connected."""
        return connection_delay_ms(self.connection)

    def throttle_delay(self) -> float:
        """Milliseconds until the broker accepts more requests; 0 for now."""
        return self.connection.throttled() * 1000

    # Sending and receiving…

    def can_send_more(self) -> bool:
        """Whether fewer requests are in flight than max_in_flight_requests_per_connection allows."""
        return can_send_more(self.connection)

    @property
    def in_flight_requests(self) -> int:
        """How many requests are under way."""
        return self.connection.in_flight_requests

    def send(
        self, request: Request[ResponseT], blocking: bool = True, request_timeout_ms: float | None = None
    ) -> Future[ResponseT]:
        """Send a request; the future resolves to the response.

        The future fails at once with NodeNotReadyError, KafkaConnectionError or TooManyInFlightRequests if the
        connection cannot send it. With `blocking`, the socket has taken the bytes when the call returns, as far as they
        fit; otherwise `send_pending_requests` does that.
        """
        check_request(request)
        if request_timeout_ms is not None:
            check_time("request_timeout_ms", request_timeout_ms)
        future = send_if_connected(
            self.connection, request, None if request_timeout_ms is None else request_timeout_ms / 1000
        )
        if blocking:
            self.send_pending_requests()
        return future

    def send_pending_requests(self) -> bool:
        """Give the queued bytes to the socket; return whether it took all of them."""
        return self.connection.flush()

    def recv(self) -> list[tuple[Any, Future[Any]]]:
        """Receive what has arrived, without waiting; return the responses with the futures that they resolved.

        Programs for kafka-python 2 call ``future.success(response)`` for each, which is allowed and does nothing here.
        """
        self._turn()
        received = list(self._received)
        self._received.clear()
        return received

    def requests_timed_out(self) -> bool:
        """Whether the oldest request has waited for longer than its timeout."""
        deadline = self.connection.pipeline.next_deadline()
        return deadline is not None and deadline <= self._loop.time()

    # Versions…

    def get_api_versions(self) -> dict[int, tuple[int, int]]:
        """API keys with the lowest and highest version that the broker has; connects first if needed."""
        return dict(self._versions(0, KafkaConnectionError(f"{self} is not connected")).ranges)

    def check_version(self, timeout: float = 2, strict: bool = False, **_historic: Any) -> tuple[int, ...]:  # noqa: ARG002
        """The broker's release, such as (2, 8); blocks. KafkaError if it cannot connect."""
        check_time("timeout", timeout, unit="seconds")
        return self._versions(timeout, KafkaTimeoutError(f"{self} did not answer in time")).release

    def _versions(self, timeout: float, unknown: KafkaError) -> ApiVersions:
        connection = self.connection
        if connection.versions is None:
            self.connect_blocking(max(timeout, connection.context.settings.discovery_timeout))
        if connection.versions is None:
            raise (connection.error or unknown).with_traceback(None)
        return connection.versions

    # Ending…

    def close(self, error: KafkaError | None = None) -> None:
        """Close; requests under way fail with `error`. The next `connect` connects again."""
        if error is not None and not isinstance(error, KafkaError):
            raise TypeError(f"error must be a KafkaError or None, not {error!r}")
        self.connection.disconnect(error)
        if not self._loop.closed:
            self._turn()

    def __del__(self) -> None:
        loop = getattr(self, "_loop", None)
        if loop is not None and not loop.closed:
            if hasattr(self, "_received"):  # the constructor has completed
                self.connection.disconnect()
            loop.close(0.0)

    def _turn(self) -> None:
        if not self._loop.in_pass:
            self._loop.turn(0)

    def __str__(self) -> str:
        return str(self.connection)

    def __repr__(self) -> str:
        return f"<BrokerConnection {self} {self.state.value} in_flight={self.in_flight_requests}>"


# The historic rules, for `KafkaClient` too…


def connection_delay_ms(connection: Connection) -> float:
    """Return the milliseconds to wait before trying to send."""
    if connection.is_disconnected:
        return connection.backing_off() * 1000
    return _NO_DELAY_MS if connection.ready else 0


def can_send_more(connection: Connection) -> bool:
    """Return whether fewer requests are in flight than max_in_flight_requests_per_connection allows."""
    return connection.in_flight_requests < connection.context.settings.max_in_flight


def send_if_connected(
    connection: Connection, request: Request[ResponseT], timeout: float | None = None
) -> Future[ResponseT]:
    """Send a request, or return a failed future if the connection cannot send it now."""
    if connection.is_opening:
        return Future[ResponseT]().failure(NodeNotReadyError(f"{connection} is still connecting"))
    if not connection.ready:
        return Future[ResponseT]().failure(KafkaConnectionError(f"{connection} is not connected"))
    if not can_send_more(connection):
        error = TooManyInFlightRequests(f"{connection} has {connection.in_flight_requests} requests under way")
        return Future[ResponseT]().failure(error)
    return connection.submit(request, timeout)


async def _opened(future: Future[None]) -> None:
    await future
