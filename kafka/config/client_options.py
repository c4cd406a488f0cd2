"""Options of all clients: where the cluster is, connections, time limits, metadata, metrics."""

from __future__ import annotations

import re
import socket
from typing import Final

from kafka.config.checks import (
    INT32,
    ApiVersion,
    Choice,
    Custom,
    Flag,
    Items,
    Number,
    Servers,
    SocketOptions,
    Text,
    Whole,
)
from kafka.config.option import FACES, LINKS, NETWORK, Lazy, Option
from kafka.version import __version__


def _is_node(value: object) -> bool:
    return isinstance(value, (int, str)) and not isinstance(value, bool)


def _is_proxy(value: object) -> bool:
    return value is None or (isinstance(value, str) and value.partition("://")[0] in {"socks5", "socks5h", "http"})


def _is_socks(value: object) -> bool:
    return value is None or (isinstance(value, str) and value.partition("://")[0] in {"socks5", "socks5h"})


def _is_reporter(value: object) -> bool:
    return callable(getattr(value, "metric_change", None))


def _is_software(value: object) -> bool:
    """Whether brokers take it for a client's software (KIP-511)."""
    return (
        isinstance(value, str) and re.fullmatch(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]{0,250}[a-zA-Z0-9])?", value) is not None
    )


_SOFTWARE: Final = Custom("letters, digits, '-' and '.', with a letter or digit at both ends", "str", _is_software)
# Each client has a buffer of this size from its beginning.
_LARGEST_CHUNK: Final = 1 << 28

CLIENT_OPTIONS: Final = (
    # Connecting
    Option(
        "bootstrap_servers",
        NETWORK,
        "localhost",
        Servers(),
        "The brokers to connect to first. The list need not contain the whole cluster; one that responds is enough.",
        aliases=("metadata_broker_list",),
    ),
    Option(
        "bootstrap_controllers",
        frozenset({"admin"}),
        None,
        Servers(optional=True),
        "The controllers to connect to first, instead of bootstrap_servers. Such a client can make the calls that "
        "controllers serve, also while no broker runs.",
        since="3.7",
    ),
    Option(
        "client_id",
        LINKS,
        f"purekafka-{__version__}",
        Text(sent=True),
        "The client's name in the logs, metrics and quotas of the brokers. Producers, consumers and admin clients "
        "have numbered names by default, such as purekafka-consumer-1.",
        defaults={"producer": None},
    ),
    Option(
        "client_software_name", LINKS, "purekafka", _SOFTWARE, "The library's name, as brokers see it.", since="2.4"
    ),
    Option(
        "client_software_version",
        LINKS,
        __version__,
        _SOFTWARE,
        "The library's version, as brokers see it.",
        since="2.4",
    ),
    Option(
        "node_id",
        frozenset({"connection"}),
        0,
        Custom("an integer or a str", "int | str", _is_node),
        "The broker's id.",
    ),
    Option(
        "api_version",
        LINKS,
        None,
        ApiVersion(),
        "The brokers' release, if it is known beforehand. Otherwise each connection sends an ApiVersions request.",
    ),
    Option(
        "bootstrap_timeout_ms",
        LINKS,
        None,
        Number(optional=True),
        "How long a new client tries to connect to a first broker before it raises NoBrokersAvailable. A number also "
        "applies if all servers refuse: 120000 waits for a cluster that is starting. 0 needs no broker: the client "
        "continues to look for one, and calls wait for it until their own time limits. None: 30 seconds while any "
        "server may still respond; 2 seconds if every server refuses connections or has an unknown name; with "
        "api_version as 0.",
        aliases=("api_version_auto_timeout_ms",),
    ),
    Option(
        "client_dns_lookup",
        NETWORK,
        "use_all_dns_ips",
        Choice(
            ("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"), synonyms={"default": "use_all_dns_ips"}
        ),
        "Whether all addresses of a name are tried, or each bootstrap name is first replaced by its canonical names.",
    ),
    Option(
        "socket_connection_setup_timeout_ms",
        LINKS,
        10000,
        Number(),
        "How long one connection attempt may take. Doubles with each consecutive failure.",
    ),
    Option(
        "socket_connection_setup_timeout_max_ms",
        LINKS,
        30000,
        Number(),
        "The upper limit of the growing socket_connection_setup_timeout_ms.",
    ),
    Option(
        "reconnect_backoff_ms",
        LINKS,
        50,
        Number(),
        "The pause before a reconnect after a failed attempt. Doubles with each consecutive failure, with 20% jitter.",
    ),
    Option(
        "reconnect_backoff_max_ms",
        LINKS,
        1000,
        Number(),
        "The upper limit of the growing reconnect_backoff_ms, which delays reconnecting to a restarted broker.",
        aliases=("reconnect_backoff_max",),
    ),
    Option(
        "connections_max_idle_ms",
        NETWORK,
        540000,
        Number(),
        "Close connections after this time without use, before the broker does (connections.max.idle.ms).",
    ),
    Option(
        "proxy_url",
        LINKS,
        None,
        Custom("None or a URL of scheme socks5, socks5h or http", "str | None", _is_proxy),
        "Connect to all brokers through a proxy. With socks5h the proxy resolves names. May contain user:password@.",
        secret=True,
    ),
    Option(
        "socks5_proxy",
        LINKS,
        None,
        Custom("None or a URL of scheme socks5 or socks5h", "str | None", _is_socks),
        "The older name for a SOCKS5 proxy_url.",
        secret=True,
    ),
    # Requests
    Option(
        "request_timeout_ms",
        LINKS,
        30000,
        Number(least=1, most=INT32, finite=True),
        "How long to wait for the response to one request before its connection is closed.",
    ),
    Option(
        "default_api_timeout_ms",
        FACES - {"producer"},
        60000,
        Number(),
        "How long a call with a parameter timeout_ms may block if it is not given. At least request_timeout_ms.",
    ),
    Option(
        "retry_backoff_ms",
        NETWORK,
        100,
        Number(),
        "The pause before a request is retried. Doubles with each consecutive failure, with 20% jitter.",
    ),
    Option("retry_backoff_max_ms", NETWORK, 1000, Number(), "The upper limit of the growing retry_backoff_ms."),
    Option(
        "max_in_flight_requests_per_connection",
        LINKS,
        5,
        Whole(least=1),
        "How many requests may be in flight on one connection. Idempotent producers keep the order up to 5.",
    ),
    Option(
        "receive_message_max_bytes",
        LINKS,
        100_000_000,
        Whole(least=1024, most=INT32),
        "The largest accepted response; a larger one closes the connection. Must exceed fetch_max_bytes.",
    ),
    Option(
        "receive_buffer_bytes",
        LINKS,
        None,
        Whole(most=INT32, optional=True),
        "SO_RCVBUF of the sockets. None leaves it to the system.",
        aliases=("socket_receive_buffer_bytes",),
    ),
    Option(
        "send_buffer_bytes",
        LINKS,
        None,
        Whole(most=INT32, optional=True),
        "SO_SNDBUF of the sockets. None leaves it to the system.",
        aliases=("socket_send_buffer_bytes",),
    ),
    Option(
        "socket_options",
        LINKS,
        ((socket.IPPROTO_TCP, socket.TCP_NODELAY, 1), (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)),
        SocketOptions(),
        "The arguments of setsockopt for each socket.",
    ),
    Option(
        "sock_chunk_bytes",
        LINKS,
        65536,
        Whole(least=64, most=_LARGEST_CHUNK),
        "How many bytes to read at once while the size of a response is unknown. The rest is read in one piece.",
    ),
    Option(
        "sock_chunk_buffer_count",
        LINKS,
        1000,
        Whole(least=1),
        "How many reads one connection may do before other connections are served.",
    ),
    Option(
        "selector",
        LINKS,
        Lazy("selectors", "DefaultSelector"),
        Custom("a class as in the module selectors", "Callable[[], BaseSelector]", callable),
        "The class of the selector that the network thread uses.",
    ),
    Option(
        "state_change_callback",
        frozenset({"connection"}),
        None,
        Custom(
            "a callable or None",
            "Callable[[Any, Any, Any], object] | None",
            lambda value: value is None or callable(value),
        ),
        "Called as callback(node_id, sock, connection) whenever the connection's state changes.",
    ),
    Option(
        "kafka_client",
        FACES,
        None,
        Custom("a callable or None", "Callable[..., object] | None", lambda value: value is None or callable(value)),
        "Creates the network client, for example a subclass of KafkaClient; called with the given options that "
        "KafkaClient accepts. None: the library creates it.",
    ),
    # Metadata
    Option(
        "metadata_max_age_ms",
        NETWORK,
        300000,
        Number(),
        "Refresh the metadata of topics and brokers after this time, even without an error.",
    ),
    Option(
        "allow_auto_create_topics",
        NETWORK - {"admin"},
        True,
        Flag(),
        "Whether reading or writing an unknown topic may create it, if the brokers allow it. Lookups create no topic.",
        since="0.11",
    ),
    Option(
        "metadata_recovery_strategy",
        NETWORK,
        "rebootstrap",
        Choice(("rebootstrap", "none")),
        "What to do when no known broker can be reached: start again from bootstrap_servers, or retry the known ones.",
    ),
    Option(
        "metadata_recovery_rebootstrap_trigger_ms",
        NETWORK,
        300000,
        Number(),
        "Start again from bootstrap_servers when metadata could not be refreshed for this time.",
    ),
    Option(
        "client_rack",
        frozenset({"consumer", "share"}),
        "",
        Text(optional=False, sent=True),
        "The rack where this client runs: it reads from a replica in that rack, and assignors receive it.",
        since="2.4",
        aliases=("rack_id",),
    ),
    # Metrics
    Option(
        "metrics",
        frozenset({"client", "connection"}),
        None,
        Custom(
            "a kafka.metrics.Metrics or None", "Metrics | None", lambda value: value is None or hasattr(value, "sensor")
        ),
        "The registry to record into.",
    ),
    Option("metrics_enabled", FACES, True, Flag(), "Whether the client keeps metrics at all."),
    Option(
        "enable_metrics_push",
        FACES,
        True,
        Flag(),
        "Whether the client pushes its metrics to brokers that ask for them (KIP-714); few brokers have the plugin for "
        "that. Needs metrics_enabled.",
    ),
    Option(
        "metric_reporters",
        FACES,
        (),
        Items(
            "a list of classes or instances of AbstractMetricsReporter",
            "Sequence[AbstractMetricsReporter | type[AbstractMetricsReporter]]",
            _is_reporter,
        ),
        "Reporters that are notified when a metric is added or removed.",
    ),
    Option("metrics_num_samples", FACES, 2, Whole(least=1), "How many windows a windowed metric covers."),
    Option("metrics_sample_window_ms", FACES, 30000, Number(least=1), "The length of one window."),
    Option(
        "metric_group_prefix",
        LINKS,
        "",
        Text(optional=False),
        "The prefix of the names of the metrics' groups.",
        defaults={"producer": "producer", "consumer": "consumer", "share": "consumer-share", "admin": "admin-client"},
    ),
    # Historical
    Option(
        "wakeup_timeout_ms",
        frozenset({"client"}),
        3000,
        Number(),
        "Limited how long a wake-up of the network thread could block.",
        obsolete="waking the network thread never blocks",
    ),
    Option(
        "bootstrap_topics_filter",
        frozenset({"client", "producer"}),
        frozenset(),
        Custom("a set of topics", "Collection[str]", lambda value: isinstance(value, (set, frozenset, list, tuple))),
        "Named the topics of the first metadata request.",
        obsolete="the first metadata request names no topics",
    ),
    Option(
        "net",
        FACES,
        None,
        Choice(("selector", "asyncio"), optional=True),
        "Chose the event loop of the network thread.",
        obsolete="each client has its own event loop, which any thread may run",
    ),
)
