"""The historic face of a connection: one broker, one socket, driven by hand or by a client.

The work is done in `kafka.net.link`; here are the names, units and calling rules that programs have
used since 1.0: milliseconds, `connect()` until connected, `send()` and `recv()`.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Iterable
from typing import Any, Final

from kafka._arguments import check_host, check_port, check_request, check_time
from kafka._runtime.loop import Loop
from kafka._runtime.network_thread import run_here
from kafka.config import Config, defaults, parse_servers, resolve
from kafka.errors import KafkaConnectionError, KafkaError, KafkaTimeoutError, NodeNotReadyError, TooManyInFlightRequests
from kafka.future import Future
from kafka.net.environment import Environment
from kafka.net.link import Link, LinkContext
from kafka.net.settings import ConnectionSettings
from kafka.net.states import ConnectionStates

__all__ = ["BrokerConnection", "ConnectionStates", "collect_hosts", "get_ip_port_afi"]

DEFAULT_KAFKA_PORT: Final = 9092
AFI_NAMES: Final = {
    socket.AF_UNSPEC: "unspecified",
    socket.AF_INET: "IPv4",
    socket.AF_INET6: "IPv6",
}

# What `connection_delay` says when there is nothing to wait for: "a very large number", in ms.
_NO_DELAY_MS: Final = float("inf")


class BrokerConnection(Link):
    """A connection to one broker.

    Made by `KafkaClient` for its brokers. Made by hand it is driven by hand: each of its methods
    turns its own loop a little.

    ::

        conn = BrokerConnection("localhost", 9092, socket.AF_INET)
        conn.connect_blocking()
        future = conn.send(MetadataRequest[1](["events"]))
        while not future.is_done:
            conn.recv()

    Keyword arguments are the options of a connection (``BrokerConnection.DEFAULT_CONFIG``).
    """

    DEFAULT_CONFIG: Final[dict[str, Any]] = defaults("connection")
    SECURITY_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
    SASL_MECHANISMS: Final = ("PLAIN", "GSSAPI", "OAUTHBEARER", "SCRAM-SHA-256", "SCRAM-SHA-512", "AWS_MSK_IAM")

    def __init__(
        self,
        host: str,
        port: int,
        afi: int = socket.AF_UNSPEC,
        *,
        context: LinkContext | None = None,
        config: Config | None = None,
        environment: Environment | None = None,
        **configs: Any,
    ) -> None:
        check_host(host)
        check_port(port)
        self.config = config if config is not None else resolve("connection", configs)
        self._own_loop = None
        if context is None:
            environment = environment or Environment()
            self._own_loop = environment.make_loop(self.config["selector"])
            context = LinkContext(self._own_loop, ConnectionSettings(self.config), environment)
        super().__init__(context, host, port, family=afi, node_id=self.config["node_id"])
        if self.config["metrics"] is not None and self._own_loop is not None:
            from kafka._core.metrics import measure

            measure(context, self.config["metrics"], self.config["metric_group_prefix"])
        callback = self.config["state_change_callback"]
        if callback is not None:
            self.on_state = lambda link: callback(self.node_id, link.sock, self)
        self._received: list[tuple[Any, Future[Any]]] = []
        if self._own_loop is not None:
            self.delivered = lambda future, response: self._received.append((response, future))

    @property
    def afi(self) -> int:
        """The address family asked for."""
        return self.family

    # Connecting…

    def connect(self) -> ConnectionStates:
        """Go on connecting, if need be, and return the state. Does not block; call it until connected."""
        if self.disconnected() and not self.blacked_out():
            self.open()
        self._turn(0)
        return self.state

    def connect_blocking(self, timeout: float = float("inf")) -> bool:
        """Connect and wait until that is done, for `timeout` seconds at most; whether it is connected."""
        check_time("timeout", timeout, unit="seconds")
        loop = self._need_own_loop("connect_blocking")
        deadline = loop.time() + timeout
        while not self.connected() and loop.time() < deadline:
            delay = self.backing_off()
            task = loop.spawn(loop.sleep(delay) if delay else _opened(self.open()))
            try:
                run_here(loop, task, None if timeout == float("inf") else deadline)
            except KafkaTimeoutError:
                break
            except KafkaError:
                if self.fatal is not None:
                    raise
        return self.connected()

    def connected(self) -> bool:
        """Whether it is connected and, where that is asked for, authenticated."""
        return self.state in {ConnectionStates.CONNECTED, ConnectionStates.REAUTHENTICATING}

    def connecting(self) -> bool:
        """Whether it is on the way there."""
        return self.is_opening

    def disconnected(self) -> bool:
        """Whether there is no connection, nor one in the making."""
        return self.state is ConnectionStates.DISCONNECTED and not self.is_opening

    def blacked_out(self) -> bool:
        """Whether it is disconnected and has to wait before the next attempt."""
        return self.backing_off() > 0

    def connection_delay(self) -> float:
        """Milliseconds to wait before trying to send: the backoff, 0 while connecting, very many when connected."""
        if self.disconnected():
            return self.backing_off() * 1000
        return _NO_DELAY_MS if self.connected() else 0

    def throttle_delay(self) -> float:
        """Milliseconds until the broker wants more requests; 0 for now."""
        return self.throttled() * 1000

    # Sending and receiving…

    def can_send_more(self) -> bool:
        """Whether fewer requests are in flight than max_in_flight_requests_per_connection allows."""
        pipeline = self.pipeline
        return pipeline.in_flight + pipeline.waiting < self.context.settings.max_in_flight

    @property
    def in_flight_requests(self) -> int:
        """How many requests are under way."""
        return self.pipeline.in_flight + self.pipeline.waiting

    def send(self, request: Any, blocking: bool = True, request_timeout_ms: float | None = None) -> Future[Any]:
        """Send a request; the future resolves to the response.

        Fails at once with NodeNotReadyError, KafkaConnectionError or TooManyInFlightRequests when the
        connection cannot take it. With `blocking` the bytes are handed to the socket before it returns,
        as far as they fit; otherwise `send_pending_requests` does that.
        """
        check_request(request)
        if request_timeout_ms is not None:
            check_time("request_timeout_ms", request_timeout_ms)
        future: Future[Any] = Future()
        if self.is_opening:
            return future.failure(NodeNotReadyError(f"{self} is still connecting"))
        if not self.connected():
            return future.failure(KafkaConnectionError(f"{self} is not connected"))
        if not self.can_send_more():
            return future.failure(TooManyInFlightRequests(f"{self} has {self.in_flight_requests} requests under way"))
        future = self.submit(request, None if request_timeout_ms is None else request_timeout_ms / 1000)
        if blocking:
            self.send_pending_requests()
        return future

    def send_pending_requests(self) -> bool:
        """Hand what was queued to the socket; whether all of it went."""
        self._flush()
        return not self.pipeline.outgoing

    def recv(self) -> list[tuple[Any, Future[Any]]]:
        """Receive what has come in, without waiting; the responses with the futures that they resolved."""
        self._turn(0)
        received, self._received = self._received, []
        return received

    def requests_timed_out(self) -> bool:
        """Whether the oldest request waits for longer than its time limit."""
        deadline = self.pipeline.next_deadline()
        return deadline is not None and deadline <= self._loop.time()

    # Versions…

    def get_api_versions(self) -> dict[int, tuple[int, int]]:
        """API keys with the lowest and highest version that the broker has; connects first when used alone."""
        if self.versions is None:
            self.connect_blocking(self.context.settings.discovery_timeout)
        if self.versions is None:
            raise self.error or KafkaConnectionError(f"{self} is not connected")
        return dict(self.versions.ranges)

    def check_version(self, timeout: float = 2, strict: bool = False, **_historic: Any) -> tuple[int, ...]:  # noqa: ARG002
        """The broker's release, such as (2, 8); blocks. KafkaError if there is no connection to be had."""
        check_time("timeout", timeout, unit="seconds")
        if self.versions is None:
            self.connect_blocking(max(timeout, self.context.settings.discovery_timeout))
        if self.versions is None:
            raise self.error or KafkaTimeoutError(f"{self} did not answer in time")
        return self.versions.release

    # Ending…

    def close(self, error: KafkaError | None = None) -> None:
        """Close; requests under way fail with `error`. The next `connect` connects anew."""
        if error is not None and not isinstance(error, KafkaError):
            raise TypeError(f"error must be a KafkaError or None, not {error!r}")
        super().close(error)
        if self._own_loop is not None and not self._own_loop.closed:
            self._turn(0)

    def __del__(self) -> None:
        own = getattr(self, "_own_loop", None)
        if own is not None and not own.closed:
            if hasattr(self, "_received"):  # the constructor got to its end
                super().close(None)
            own.close(0.0)

    def _turn(self, timeout: float) -> None:
        if self._own_loop is not None and not self._own_loop.in_pass:
            self._own_loop.turn(timeout)

    def _need_own_loop(self, name: str) -> Loop:
        if self._own_loop is None:
            raise RuntimeError(f"{name} is for a connection of your own; this one is driven by its client")
        return self._own_loop


async def _opened(future: Future[None]) -> None:
    await future


# Addresses…


def get_ip_port_afi(host_and_port_str: str) -> tuple[str, int, int]:
    """Take `host[:port]` apart; AF_INET or AF_INET6 for an address, AF_UNSPEC for a name.

    >>> get_ip_port_afi("[::1]:9094") == ("::1", 9094, socket.AF_INET6)
    True
    >>> get_ip_port_afi("broker") == ("broker", 9092, socket.AF_UNSPEC)
    True
    """
    host, port = parse_servers(host_and_port_str)[0]
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except (OSError, ValueError):
            continue
        return host, port, family
    return host, port, socket.AF_UNSPEC


def collect_hosts(hosts: str | Iterable[str], randomize: bool = True) -> list[tuple[str, int, int]]:
    """Take servers apart, in any order unless `randomize` is false.

    >>> [host for host, _, _ in collect_hosts("b1:9092, b2", randomize=False)]
    ['b1', 'b2']
    """
    given = hosts if isinstance(hosts, str) else list(hosts)
    found = [get_ip_port_afi(str(address)) for address in parse_servers(given)]
    if randomize:
        random.shuffle(found)
    return found
