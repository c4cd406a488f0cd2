"""Shared state of the connections of a client: options in the units of the code, loop, resolver and workers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from kafka._runtime.timers import Backoff
from kafka.net.pipeline import Traffic, mapped_memory
from kafka.net.resolver import Resolver

if TYPE_CHECKING:
    import ssl

    from kafka._runtime.loop import Loop
    from kafka.metrics.sensor import Journal, Sensor
    from kafka.net.environment import Environment
    from kafka.net.proxy import ProxyUrl
    from kafka.net.states import ConnectionStates

__all__ = ["ConnectionContext", "ConnectionSettings"]

# The limits where bootstrap_timeout_ms is None, in seconds. If all servers refuse connections, bootstrap_servers is
# most often wrong, and the error should come soon; slow servers get more time.
_DISCOVERY: Final = 30.0
_REFUSAL: Final = 2.0


class ConnectionSettings:
    """The options of a client for its connections, in seconds and bytes. Immutable by convention."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        protocol = config["security_protocol"]
        proxy = config["proxy_url"] or config["socks5_proxy"]
        self.client_id: str | None = config["client_id"]
        self.software: tuple[str, str] = (config["client_software_name"], config["client_software_version"])
        self.api_version: tuple[int, ...] | None = config["api_version"]
        self.request_timeout: float = config["request_timeout_ms"] / 1000
        self.setup_timeout: float = config["socket_connection_setup_timeout_ms"] / 1000
        self.setup_timeout_max: float = config["socket_connection_setup_timeout_max_ms"] / 1000
        bootstrap_timeout_ms: float | None = config["bootstrap_timeout_ms"]
        if bootstrap_timeout_ms is None and self.api_version is not None:
            bootstrap_timeout_ms = 0  # nothing must be asked: programs set api_version to start before their brokers
        self.discovery_timeout: float = _DISCOVERY if bootstrap_timeout_ms is None else bootstrap_timeout_ms / 1000
        """How long to look for the first broker."""
        self.refusal_timeout: float = _REFUSAL if bootstrap_timeout_ms is None else bootstrap_timeout_ms / 1000
        """How long to look for it where every server refuses connections."""
        self.reconnect_backoff: float = config["reconnect_backoff_ms"] / 1000
        self.reconnect_backoff_max: float = config["reconnect_backoff_max_ms"] / 1000
        self.max_idle: float = config.get("connections_max_idle_ms", math.inf) / 1000
        self.max_in_flight: int = config["max_in_flight_requests_per_connection"]
        self.receive_max: int = config["receive_message_max_bytes"]
        self.chunk_size: int = config["sock_chunk_bytes"]
        self.chunk_count: int = config["sock_chunk_buffer_count"]
        self.receive_buffer: int | None = config["receive_buffer_bytes"]
        self.send_buffer: int | None = config["send_buffer_bytes"]
        self.socket_options: tuple[tuple[Any, ...], ...] = tuple(config["socket_options"])
        self.use_tls = protocol in {"SSL", "SASL_SSL"}
        self.sasl_mechanism: str | None = config["sasl_mechanism"] if protocol.startswith("SASL") else None
        self.proxy = _parse_proxy(proxy) if proxy else None
        self.security: Mapping[str, Any] = {
            name: config[name] for name in config if name.startswith(("ssl_", "sasl_")) and name != "sasl_mechanism"
        }
        """The ssl_* and sasl_* options, as contexts and mechanisms take them."""

    @cached_property
    def tls_context(self) -> ssl.SSLContext:
        """The context, made when the first connection is and shared by all."""
        from kafka.net.tls import tls_context

        return tls_context(self.security)

    @cached_property
    def lenient_tls_context(self) -> ssl.SSLContext | None:
        """A context that takes any name, to find out which names a certificate has; None for the application's own."""
        if self.security.get("ssl_context") is not None:
            return None
        from kafka.net.tls import tls_context

        return tls_context(self.security, check_hostname=False)


class ConnectionContext:
    """The shared state of a client's connections; observers see all of them."""

    def __init__(self, loop: Loop, settings: ConnectionSettings, environment: Environment) -> None:
        self.loop = loop
        self.settings = settings
        self.workers = environment.workers
        self.resolver = Resolver(loop, environment.lookup_workers, environment.lookup, environment.reverse)
        self.make_socket = environment.make_socket
        self.backoff = Backoff(settings.reconnect_backoff, settings.reconnect_backoff_max, loop.rng)
        # Mapped: a client with small responses has the first pages only.
        self.scratch = mapped_memory(settings.chunk_size)
        self.probed_releases: dict[tuple[str, int], tuple[int, ...]] = {}
        """Releases of brokers before 0.10, found by probing: these do not know ApiVersions."""
        self.api_versions_seen = False
        """Whether a broker has answered ApiVersions. A broker that closes the connection now is not an old one."""
        self.reported: dict[tuple[str, int], tuple[str, float, int]] = {}
        """The last failure by address, its time and its connection's id: several connections fail for one reason."""
        self.warned_of_clear_text = False
        """Whether the log has the warning that the password is not encrypted on its way."""
        self.traffic: dict[int | str, Traffic] = {}
        """By node id."""
        self.measures_of: Callable[[int | str], tuple[Journal, Sensor]] | None = None
        """Returns what measures the requests to a node, as `Traffic` takes it, if they are measured."""
        self.on_state: Callable[[int | str, ConnectionStates, ConnectionStates], object] | None = None
        """Called with the node id, the state before and the new state of a connection."""

    def traffic_of(self, node_id: int | str) -> Traffic:
        """Return the numbers of a node, which its connections count up."""
        found = self.traffic.get(node_id)
        if found is None:
            measures = (None, None) if self.measures_of is None else self.measures_of(node_id)
            found = self.traffic[node_id] = Traffic(*measures)
        return found


def _parse_proxy(url: str) -> ProxyUrl:
    # Imported here because few clients have a proxy, and urllib.parse and ipaddress take a millisecond each to import.
    from kafka.net.proxy import ProxyUrl

    return ProxyUrl.parse(url)
