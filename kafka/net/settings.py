"""What a connection is told once: a client's options in the units and types that the code works with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from kafka.net.proxy import ProxyUrl

if TYPE_CHECKING:
    import ssl

__all__ = ["ConnectionSettings"]


@dataclass(frozen=True)
class ConnectionSettings:
    """Shared by all connections of a client; seconds and bytes throughout."""

    client_id: str | None
    software: tuple[str, str]
    api_version: tuple[int, ...] | None
    request_timeout: float
    setup_timeout: float
    setup_timeout_max: float
    discovery_timeout: float
    reconnect_backoff: float
    reconnect_backoff_max: float
    max_idle: float
    max_in_flight: int
    receive_max: int
    chunk_size: int
    chunk_count: int
    receive_buffer: int | None
    send_buffer: int | None
    socket_options: tuple[tuple[Any, ...], ...]
    use_tls: bool
    sasl_mechanism: str | None
    proxy: ProxyUrl | None
    security: Mapping[str, Any]
    """The ssl_* and sasl_* options, as contexts and mechanisms take them."""

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> ConnectionSettings:
        """Take them from a checked configuration of a client or connection."""
        protocol = config["security_protocol"]
        proxy = config["proxy_url"] or config["socks5_proxy"]
        return cls(
            client_id=config["client_id"],
            software=(config["client_software_name"], config["client_software_version"]),
            api_version=config["api_version"],
            request_timeout=config["request_timeout_ms"] / 1000,
            setup_timeout=config["socket_connection_setup_timeout_ms"] / 1000,
            setup_timeout_max=config["socket_connection_setup_timeout_max_ms"] / 1000,
            discovery_timeout=config["bootstrap_timeout_ms"] / 1000,
            reconnect_backoff=config["reconnect_backoff_ms"] / 1000,
            reconnect_backoff_max=config["reconnect_backoff_max_ms"] / 1000,
            max_idle=config["connections_max_idle_ms"] / 1000,
            max_in_flight=config["max_in_flight_requests_per_connection"],
            receive_max=config["receive_message_max_bytes"],
            chunk_size=config["sock_chunk_bytes"],
            chunk_count=config["sock_chunk_buffer_count"],
            receive_buffer=config["receive_buffer_bytes"],
            send_buffer=config["send_buffer_bytes"],
            socket_options=tuple(config["socket_options"]),
            use_tls=protocol in {"SSL", "SASL_SSL"},
            sasl_mechanism=config["sasl_mechanism"] if protocol.startswith("SASL") else None,
            proxy=ProxyUrl.parse(proxy) if proxy else None,
            security={
                name: config[name] for name in config if name.startswith(("ssl_", "sasl_")) and name != "sasl_mechanism"
            },
        )

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
