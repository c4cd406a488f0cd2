"""What a connection is told once: a client's options in the units and types that the code works with."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import ssl

    from kafka.net.proxy import ProxyUrl

__all__ = ["ConnectionSettings"]

# The limits where bootstrap_timeout_ms is None, in seconds. Servers that all refuse are most often a mistake in
# bootstrap_servers, which a person wants to hear of soon; servers that are slow are given the time that they need.
_DISCOVERY: Final = 30.0
_REFUSAL: Final = 2.0


class ConnectionSettings:
    """Shared by all connections of a client; seconds and bytes throughout. Not to be changed."""

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


def _parse_proxy(url: str) -> ProxyUrl:
    # Imported here because few clients have a proxy, and urllib.parse and ipaddress take a millisecond each to import.
    from kafka.net.proxy import ProxyUrl

    return ProxyUrl.parse(url)
