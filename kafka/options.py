"""The options of each client with their types, as typed dictionaries: for editors and type checkers.

Written by tools/generate_options.py from the table in kafka.config. The constructors take them by name, so a type
checker finds a misspelt or mistyped option. A program that keeps its options in a dict annotates it:

>>> from kafka.options import ProducerOptions
>>> options: ProducerOptions = {"bootstrap_servers": "localhost:9092", "linger_ms": 20}

and passes it as ``KafkaProducer(options)`` or ``KafkaProducer(**options)``. No client imports this module.
"""

# ruff: noqa: PYI051 - names beside str are what editors offer

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from os import PathLike
from selectors import BaseSelector
from ssl import SSLContext
from typing import Any, Literal, TypedDict

from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor, Assignor
from kafka.metrics import Metrics
from kafka.metrics.reporters import AbstractMetricsReporter
from kafka.partitioner.abc import ChoosesPartition
from kafka.producer.delivery import DeliveryReport
from kafka.sasl.oauth import AIOTokenProvider, TokenProvider
from kafka.serializer.abstract import Deserializes, Serializes
from kafka.structs import OnCommit

__all__ = [
    "ConnectionOptions",
    "ClientOptions",
    "AIOClientOptions",
    "AdminOptions",
    "AIOAdminOptions",
    "ProducerOptions",
    "AIOProducerOptions",
    "BytesConsumerOptions",
    "ConsumerOptions",
    "AIOBytesConsumerOptions",
    "AIOConsumerOptions",
    "BytesShareConsumerOptions",
    "ShareConsumerOptions",
    "AIOBytesShareConsumerOptions",
    "AIOShareConsumerOptions",
]


class _AllOptions(TypedDict, total=False):
    """Options that every client and BrokerConnection have."""

    client_id: str | None
    """The client's name in the logs, metrics and quotas of the brokers. Producers, consumers and admin clients have
    numbered names by default, such as purekafka-consumer-1."""
    client_software_name: str
    """The library's name, as brokers see it."""
    client_software_version: str
    """The library's version, as brokers see it."""
    api_version: str | tuple[int, ...] | None
    """The brokers' release, if it is known beforehand. Otherwise each connection sends an ApiVersions request."""
    bootstrap_timeout_ms: float | None
    """How long a new client tries to connect to a first broker before it raises NoBrokersAvailable. A number also
    applies if all servers refuse: 120000 waits for a cluster that is starting. 0 needs no broker: the client
    continues to look for one, and calls wait for it until their own time limits. None: 30 seconds while any
    server may still respond; 2 seconds if every server refuses connections or has an unknown name; with
    api_version as 0."""
    api_version_auto_timeout_ms: float | None
    """The same as bootstrap_timeout_ms."""
    socket_connection_setup_timeout_ms: float
    """How long one connection attempt may take. Doubles with each consecutive failure."""
    socket_connection_setup_timeout_max_ms: float
    """The upper limit of the growing socket_connection_setup_timeout_ms."""
    reconnect_backoff_ms: float
    """The pause before a reconnect after a failed attempt. Doubles with each consecutive failure, with 20% jitter."""
    reconnect_backoff_max_ms: float
    """The upper limit of the growing reconnect_backoff_ms, which delays reconnecting to a restarted broker."""
    reconnect_backoff_max: float
    """The same as reconnect_backoff_max_ms."""
    proxy_url: str | None
    """Connect to all brokers through a proxy. With socks5h the proxy resolves names. May contain user:password@."""
    socks5_proxy: str | None
    """The older name for a SOCKS5 proxy_url."""
    request_timeout_ms: float
    """How long to wait for the response to one request before its connection is closed."""
    max_in_flight_requests_per_connection: int
    """How many requests may be in flight on one connection. Idempotent producers keep the order up to 5."""
    receive_message_max_bytes: int
    """The largest accepted response; a larger one closes the connection. Must exceed fetch_max_bytes."""
    receive_buffer_bytes: int | None
    """SO_RCVBUF of the sockets. None leaves it to the system."""
    socket_receive_buffer_bytes: int | None
    """The same as receive_buffer_bytes."""
    send_buffer_bytes: int | None
    """SO_SNDBUF of the sockets. None leaves it to the system."""
    socket_send_buffer_bytes: int | None
    """The same as send_buffer_bytes."""
    socket_options: Sequence[tuple[int, int, int | bytes]]
    """The arguments of setsockopt for each socket."""
    sock_chunk_bytes: int
    """How many bytes to read at once while the size of a response is unknown. The rest is read in one piece."""
    sock_chunk_buffer_count: int
    """How many reads one connection may do before other connections are served."""
    selector: Callable[[], BaseSelector]
    """The class of the selector that the network thread uses."""
    metric_group_prefix: str
    """The prefix of the names of the metrics' groups."""
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
    """The protocol to the brokers: with or without TLS, and with or without SASL. Must match the listener."""
    ssl_context: SSLContext | None
    """An application's context with all TLS settings: it excludes all other ssl_* options."""
    ssl_check_hostname: bool
    """Whether the broker's certificate must name the host of the connection. With ssl_context, the context decides."""
    ssl_cafile: str | PathLike[str] | None
    """A file with the authorities to trust: PEM, or a JKS or PKCS12 store of Java. None trusts the system's
    authorities. PKCS12 needs the package cryptography."""
    ssl_ca_location: str | PathLike[str] | None
    """The same as ssl_cafile."""
    ssl_truststore_location: str | PathLike[str] | None
    """The same as ssl_cafile."""
    ssl_truststore_password: str | None
    """The password of ssl_cafile, if that is a JKS or PKCS12 store."""
    ssl_certfile: str | PathLike[str] | None
    """A file with the client's certificate and its chain, for brokers that request one: PEM, or a JKS or PKCS12
    store of Java, which has the private key too."""
    ssl_certificate_location: str | PathLike[str] | None
    """The same as ssl_certfile."""
    ssl_keystore_location: str | PathLike[str] | None
    """The same as ssl_certfile."""
    ssl_keystore_password: str | None
    """The password of ssl_certfile, if that is a JKS or PKCS12 store."""
    ssl_keyfile: str | PathLike[str] | None
    """A PEM file with the client's private key, if it is not in ssl_certfile."""
    ssl_key_location: str | PathLike[str] | None
    """The same as ssl_keyfile."""
    ssl_password: str | bytes | bytearray | Callable[[], str | bytes] | None
    """The password of the private key, or a callable that returns it."""
    ssl_key_password: str | bytes | bytearray | Callable[[], str | bytes] | None
    """The same as ssl_password."""
    ssl_truststore_certificates: str | None
    """The authorities to trust as PEM text, instead of ssl_cafile."""
    ssl_ca_pem: str | None
    """The same as ssl_truststore_certificates."""
    ssl_keystore_certificate_chain: str | None
    """The client's certificate and its chain as PEM text, instead of ssl_certfile."""
    ssl_certificate_pem: str | None
    """The same as ssl_keystore_certificate_chain."""
    ssl_keystore_key: str | None
    """The client's private key as PEM text, instead of ssl_keyfile."""
    ssl_key_pem: str | None
    """The same as ssl_keystore_key."""
    ssl_crlfile: str | PathLike[str] | None
    """A PEM file with revoked certificates; the broker's own certificate is checked against it."""
    ssl_crl_location: str | PathLike[str] | None
    """The same as ssl_crlfile."""
    ssl_ciphers: str | None
    """The ciphers to offer for TLS 1.2, in OpenSSL's list format. The ciphers of TLS 1.3 are always offered."""
    ssl_cipher_suites: str | None
    """The same as ssl_ciphers."""
    sasl_mechanism: (
        Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI", "OAUTHBEARER", "AWS_MSK_IAM"] | str | None
    )
    """How to authenticate, with a security_protocol of SASL_PLAINTEXT or SASL_SSL."""
    sasl_plain_username: str | None
    """The user for PLAIN and SCRAM."""
    sasl_username: str | None
    """The same as sasl_plain_username."""
    sasl_plain_password: str | bytes | bytearray | Callable[[], str | bytes] | None
    """The password for PLAIN and SCRAM, or a callable that returns it, called at each authentication."""
    sasl_password: str | bytes | bytearray | Callable[[], str | bytes] | None
    """The same as sasl_plain_password."""
    sasl_scram_delegation_token: bool
    """Whether user and password are the id and the HMAC of a delegation token."""
    sasl_kerberos_name: object
    """The broker's whole name for GSSAPI, instead of the service and domain name."""
    sasl_kerberos_service_name: str
    """The service's part of the broker's name for GSSAPI."""
    sasl_kerberos_domain_name: str | None
    """The host's part of the broker's name for GSSAPI. None is the host of the connection."""
    sasl_oauthbearer_token_endpoint_url: str | None
    """The URL that issues tokens for OAUTHBEARER for the client's credentials (OIDC), without a token provider."""
    sasl_oauthbearer_client_id: str | None
    """The client id for token requests."""
    sasl_oauthbearer_client_credentials_client_id: str | None
    """The same as sasl_oauthbearer_client_id."""
    sasl_oauthbearer_client_secret: str | bytes | bytearray | Callable[[], str | bytes] | None
    """The client secret for token requests, or a callable that returns it."""
    sasl_oauthbearer_client_credentials_client_secret: str | bytes | bytearray | Callable[[], str | bytes] | None
    """The same as sasl_oauthbearer_client_secret."""
    sasl_oauthbearer_scope: str | None
    """The scope to request."""
    sasl_oauthbearer_audience: str | None
    """The audience to request, for issuers that need one."""
    sasl_oauthbearer_extensions: Mapping[str, str] | None
    """SASL extensions to send with each token."""
    sasl_oauthbearer_header_urlencode: bool
    """Whether to URL-encode id and secret in the Authorization header: RFC 6749 requires it, some issuers fail."""
    sasl_oauthbearer_connect_timeout_ms: float
    """How long one request for a token may take."""
    sasl_login_connect_timeout_ms: float
    """The same as sasl_oauthbearer_connect_timeout_ms."""
    sasl_oauthbearer_cafile: str | PathLike[str] | None
    """A PEM file with the authorities to trust at the token endpoint. None trusts the system's authorities."""
    sasl_oauthbearer_sub_claim_name: str
    """The claim of a token that names the principal."""
    sasl_oauthbearer_scope_claim_name: str
    """The claim of a token that holds its scope."""
    sasl_login_refresh_window_factor: float
    """Fetch a new token when this share of the old one's life has passed."""
    sasl_aws_region: str | None
    """The region for AWS_MSK_IAM. None takes it from the broker's name, else from AWS_REGION or AWS_DEFAULT_REGION."""
    sasl_aws_access_key_id: str | None
    """The access key for AWS_MSK_IAM. None searches the same places as AWS' own tools: environment, web identity,
    shared files, container and instance."""
    sasl_aws_secret_access_key: str | None
    """The secret key that belongs to it."""
    sasl_aws_session_token: str | None
    """The session token of temporary credentials."""


class _Tokens(TypedDict, total=False):
    """What synchronous clients accept for tokens."""

    sasl_oauth_token_provider: TokenProvider | None
    """Gives the tokens for OAUTHBEARER; may also have extensions()."""


class _AIOTokens(TypedDict, total=False):
    """What asyncio's clients accept for tokens."""

    sasl_oauth_token_provider: AIOTokenProvider | TokenProvider | None
    """Gives the tokens for OAUTHBEARER; may also have extensions()."""


class ConnectionOptions(_AllOptions, _Tokens, total=False):
    """Options of `BrokerConnection`."""

    node_id: int | str
    """The broker's id."""
    state_change_callback: Callable[[Any, Any, Any], object] | None
    """Called as callback(node_id, sock, connection) whenever the connection's state changes."""
    metrics: Metrics | None
    """The registry to record into."""


class _ClusterOptions(_AllOptions, total=False):
    """Options of every client."""

    bootstrap_servers: str | tuple[str, int] | Sequence[str | tuple[str, int]] | AbstractSet[str]
    """The brokers to connect to first. The list need not contain the whole cluster; one that responds is enough."""
    metadata_broker_list: str | tuple[str, int] | Sequence[str | tuple[str, int]] | AbstractSet[str]
    """The same as bootstrap_servers."""
    client_dns_lookup: Literal["use_all_dns_ips", "resolve_canonical_bootstrap_servers_only", "default"]
    """Whether all addresses of a name are tried, or each bootstrap name is first replaced by its canonical names."""
    connections_max_idle_ms: float
    """Close connections after this time without use, before the broker does (connections.max.idle.ms)."""
    retry_backoff_ms: float
    """The pause before a request is retried. Doubles with each consecutive failure, with 20% jitter."""
    retry_backoff_max_ms: float
    """The upper limit of the growing retry_backoff_ms."""
    metadata_max_age_ms: float
    """Refresh the metadata of topics and brokers after this time, even without an error."""
    metadata_recovery_strategy: Literal["rebootstrap", "none"]
    """What to do when no known broker can be reached: start again from bootstrap_servers, or retry the known ones."""
    metadata_recovery_rebootstrap_trigger_ms: float
    """Start again from bootstrap_servers when metadata could not be refreshed for this time."""


class _ClientOptions(_ClusterOptions, total=False):
    """Options of clients for raw requests."""

    allow_auto_create_topics: bool
    """Whether reading or writing an unknown topic may create it, if the brokers allow it. Lookups create no topic."""
    metrics: Metrics | None
    """The registry to record into."""


class ClientOptions(_ClientOptions, _Tokens, total=False):
    """Options of `KafkaClient`."""


class AIOClientOptions(_ClientOptions, _AIOTokens, total=False):
    """Options of `AIOKafkaClient`."""


class _FaceOptions(_ClusterOptions, total=False):
    """Options of producers, consumers and admin clients."""

    kafka_client: Callable[..., object] | None
    """Creates the network client, for example a subclass of KafkaClient; called with the given options that
    KafkaClient accepts. None: the library creates it."""
    metrics_enabled: bool
    """Whether the client keeps metrics at all."""
    enable_metrics_push: bool
    """Whether the client pushes its metrics to brokers that ask for them (KIP-714); few brokers have the plugin for
    that. Needs metrics_enabled."""
    metric_reporters: Sequence[AbstractMetricsReporter | type[AbstractMetricsReporter]]
    """Reporters that are notified when a metric is added or removed."""
    metrics_num_samples: int
    """How many windows a windowed metric covers."""
    metrics_sample_window_ms: float
    """The length of one window."""


class _AdminOptions(_FaceOptions, total=False):
    """Options of admin clients."""

    bootstrap_controllers: str | tuple[str, int] | Sequence[str | tuple[str, int]] | AbstractSet[str] | None
    """The controllers to connect to first, instead of bootstrap_servers. Such a client can make the calls that
    controllers serve, also while no broker runs."""
    default_api_timeout_ms: float
    """How long a call with a parameter timeout_ms may block if it is not given. At least request_timeout_ms."""


class AdminOptions(_AdminOptions, _Tokens, total=False):
    """Options of `KafkaAdminClient`."""


class AIOAdminOptions(_AdminOptions, _AIOTokens, total=False):
    """Options of `AIOKafkaAdminClient`."""


class _ProducerOptions(_FaceOptions, total=False):
    """Options of producers."""

    allow_auto_create_topics: bool
    """Whether reading or writing an unknown topic may create it, if the brokers allow it. Lookups create no topic."""
    key_serializer: Callable[[Any], bytes | None] | Serializes | None
    """Turns keys into bytes. None: keys are bytes."""
    value_serializer: Callable[[Any], bytes | None] | Serializes | None
    """Turns values into bytes. None: values are bytes."""
    acks: Literal[0, 1, -1, "all", "0", "1", "-1"]
    """The replicas that must have a record before it counts as written: none (0), the leader (1), or all in-sync
    replicas ('all', or -1)."""
    request_required_acks: Literal[0, 1, -1, "all", "0", "1", "-1"]
    """The same as acks."""
    enable_idempotence: bool
    """Whether brokers recognise and drop duplicates of retried batches, and so keep the order. Needs acks='all' and
    at most 5 requests in flight; the default is off if other options or older brokers exclude it."""
    transactional_id: str | None
    """The name that identifies this producer's transactions across restarts. Two producers must not share it."""
    transaction_timeout_ms: int
    """The cluster aborts a transaction that stays open for this time."""
    delivery_timeout_ms: float
    """How long a record may take from send() to its result, with all retries. At least linger_ms plus
    request_timeout_ms."""
    retries: float
    """How often a batch is retried after a transient error. delivery_timeout_ms is the better limit."""
    message_send_max_retries: float
    """The same as retries."""
    linger_ms: float
    """How long a batch may wait for more records. flush() and future.get() end the wait."""
    batch_size: int
    """A batch of this size in bytes is sent without waiting longer. 0 sends each record alone."""
    max_request_size: int
    """The largest request, and with it the largest record before compression."""
    message_max_bytes: int
    """The same as max_request_size."""
    buffer_memory: int
    """How many bytes of records may wait to be sent. send() blocks while this is used up."""
    max_block_ms: float
    """How long send() may block for buffer_memory or metadata, and transactional calls for the coordinator."""
    compression_type: Literal["gzip", "snappy", "lz4", "zstd", "none"] | None
    """The codec for batches. zstd needs brokers of 2.1."""
    compression_codec: Literal["gzip", "snappy", "lz4", "zstd", "none"] | None
    """The same as compression_type."""
    compression_level: int | None
    """The codec's level; None is the codec's own default. snappy has none."""
    compression_gzip_level: int | None
    """The same as compression_level."""
    compression_lz4_level: int | None
    """The same as compression_level."""
    compression_zstd_level: int | None
    """The same as compression_level."""
    partitioner: Callable[..., int] | ChoosesPartition
    """Chooses the partition of a record if send() does not name one. The default hashes keys as the Java client
    does, and fills one partition's batch after another with records without a key."""
    partitioner_class: Callable[..., int] | ChoosesPartition
    """The same as partitioner."""
    partitioner_adaptive_partitioning_enable: bool
    """Whether the default partitioner gives slower brokers fewer of the records without a key (KIP-794)."""
    partitioner_availability_timeout_ms: float
    """The default partitioner avoids partitions whose broker accepts no data for this time; 0 avoids none."""
    partitioner_ignore_keys: bool
    """Whether the default partitioner ignores the keys of records."""
    metadata_max_idle_ms: float
    """Drop the metadata of a topic after this time without a record for it."""
    on_delivery: Callable[[DeliveryReport], object] | None
    """Called once per batch with the range of its records, or with its error."""
    transaction_two_phase_commit_enable: bool
    """Whether transactions stay open until an external coordinator decides, without a timeout (KIP-939)."""
    interceptors: Sequence[object]
    """Objects that observe or change records: on_send and on_acknowledgement, on_consume and on_commit (KIP-42)."""
    interceptor_classes: Sequence[object]
    """The same as interceptors."""


class ProducerOptions(_ProducerOptions, _Tokens, total=False):
    """Options of `KafkaProducer`."""


class AIOProducerOptions(_ProducerOptions, _AIOTokens, total=False):
    """Options of `AIOKafkaProducer`."""

    max_batch_size: int
    """The same as batch_size."""


class _ConsumerOptions(_FaceOptions, total=False):
    """Options of consumers."""

    default_api_timeout_ms: float
    """How long a call with a parameter timeout_ms may block if it is not given. At least request_timeout_ms."""
    allow_auto_create_topics: bool
    """Whether reading or writing an unknown topic may create it, if the brokers allow it. Lookups create no topic."""
    interceptors: Sequence[object]
    """Objects that observe or change records: on_send and on_acknowledgement, on_consume and on_commit (KIP-42)."""
    interceptor_classes: Sequence[object]
    """The same as interceptors."""
    group_id: str | None
    """The group to join, and to commit offsets for. None: neither."""
    group_instance_id: str | None
    """Makes this a static member, which may restart within session_timeout_ms without a rebalance (KIP-345)."""
    group_protocol: Literal["classic", "consumer", "auto"]
    """The group protocol: members assign partitions (classic), brokers do (consumer, KIP-848), or the newer protocol
    that the brokers support (auto)."""
    group_remote_assignor: str | None
    """The broker's assignor for group_protocol='consumer': 'uniform', 'range', or one installed there."""
    partition_assignment_strategy: str | Sequence[str | Assignor | type[AbstractPartitionAssignor]]
    """The assignors that this member supports, the preferred one first. All members need one in common."""
    assignors: str | Sequence[str | Assignor | type[AbstractPartitionAssignor]]
    """The same as partition_assignment_strategy."""
    session_timeout_ms: float
    """The group removes a member that sends no heartbeat for this time."""
    heartbeat_interval_ms: float
    """The time between heartbeats; should be at most a third of session_timeout_ms."""
    max_poll_interval_ms: float
    """A member that does not call poll() for this time leaves the group until its next poll()."""
    enable_auto_commit: bool
    """Whether poll() and close() commit the offsets of the records returned before."""
    auto_commit_enable: bool
    """The same as enable_auto_commit."""
    auto_commit_interval_ms: float
    """The time between automatic commits."""
    default_offset_commit_callback: OnCommit | None
    """Called as callback(offsets, response or error) after each automatic commit, and after commit_async without a
    callback."""
    exclude_internal_topics: bool
    """Whether a pattern leaves out internal topics such as __consumer_offsets."""
    auto_offset_reset: Literal["earliest", "latest", "none"] | str
    """Where to start in a partition without a committed offset, or whose committed offset no longer exists."""
    isolation_level: Literal["read_uncommitted", "read_committed", 0, 1]
    """Whether to return records of open and aborted transactions (read_uncommitted), or of committed ones only."""
    consumer_timeout_ms: float
    """Iteration ends when no record arrives for this time. -1 is the older spelling of inf."""
    fetch_min_bytes: int
    """Brokers delay a fetch response until they have this much data, or until fetch_max_wait_ms."""
    fetch_max_wait_ms: int
    """How long brokers may delay a fetch response."""
    fetch_wait_max_ms: int
    """The same as fetch_max_wait_ms."""
    fetch_max_bytes: int
    """The most that one fetch response should hold. A larger first record is returned all the same."""
    max_partition_fetch_bytes: int
    """The most of one partition that a fetch response should hold. A larger first record is returned all the same,
    except by brokers before 0.10.1."""
    fetch_message_max_bytes: int
    """The same as max_partition_fetch_bytes."""
    fetch_buffer_memory: int
    """How many bytes of fetched records may wait for poll(); the consumer fetches no more while they exceed this."""
    max_decompressed_bytes: int
    """A batch that is larger than this after decompression is refused as corrupt."""
    check_crcs: bool
    """Whether the checksum of each batch is checked."""
    skip_double_compressed_messages: bool
    """Whether to skip messages that a faulty producer of 1.2.4 and before compressed twice, instead of returning the
    inner, still compressed set."""
    enable_incremental_fetch_sessions: bool
    """Whether a fetch request names only the partitions that changed since the last one (KIP-227)."""


class BytesConsumerOptions(_ConsumerOptions, _Tokens, total=False):
    """Options of a `KafkaConsumer` without deserializers."""

    client_rack: str
    """The rack where this client runs: it reads from a replica in that rack, and assignors receive it."""
    rack_id: str
    """The same as client_rack."""
    max_poll_records: int
    """The most records that poll() returns at once."""


class ConsumerOptions(BytesConsumerOptions, total=False):
    """Options of `KafkaConsumer`."""

    key_deserializer: Callable[[bytes], Any] | Deserializes[Any] | None
    """Turns the bytes of keys into objects. None: bytes."""
    value_deserializer: Callable[[bytes], Any] | Deserializes[Any] | None
    """Turns the bytes of values into objects. None: bytes."""
    deserializer_class: Callable[[bytes], Any] | Deserializes[Any] | None
    """The same as value_deserializer."""


class AIOBytesConsumerOptions(_ConsumerOptions, _AIOTokens, total=False):
    """Options of an `AIOKafkaConsumer` without deserializers."""

    max_poll_records: int | None
    """The most records that getmany() returns at once; None: 500."""
    client_rack: str | None
    """The rack where this client runs: it reads from a replica in that rack."""
    rebalance_timeout_ms: float | None
    """How long a listener may take. None: session_timeout_ms."""


class AIOConsumerOptions(AIOBytesConsumerOptions, total=False):
    """Options of `AIOKafkaConsumer`."""

    key_deserializer: Callable[[bytes], Any] | Deserializes[Any] | None
    """Turns the bytes of keys into objects. None: bytes."""
    value_deserializer: Callable[[bytes], Any] | Deserializes[Any] | None
    """Turns the bytes of values into objects. None: bytes."""
    deserializer_class: Callable[[bytes], Any] | Deserializes[Any] | None
    """The same as value_deserializer."""


class _ShareConsumerOptions(_FaceOptions, total=False):
    """Options of share consumers."""

    default_api_timeout_ms: float
    """How long a call with a parameter timeout_ms may block if it is not given. At least request_timeout_ms."""
    allow_auto_create_topics: bool
    """Whether reading or writing an unknown topic may create it, if the brokers allow it. Lookups create no topic."""
    client_rack: str
    """The rack where this client runs: it reads from a replica in that rack, and assignors receive it."""
    rack_id: str
    """The same as client_rack."""
    group_id: str | None
    """The group to join, and to commit offsets for. None: neither."""
    max_poll_interval_ms: float
    """A member that does not call poll() for this time leaves the group until its next poll()."""
    share_acknowledgement_mode: Literal["implicit", "explicit"]
    """With implicit, each poll() of a share consumer accepts the records that the poll() before has returned; with
    explicit, the application calls acknowledge() for each record."""
    share_acquire_mode: Literal["batch_optimized", "record_limit"]
    """How many records a share consumer acquires at once: whole batches until there are max_poll_records
    (batch_optimized), or at most max_poll_records, from one broker after another (record_limit)."""
    max_poll_records: int
    """The most records that poll() returns at once."""
    consumer_timeout_ms: float
    """Iteration ends when no record arrives for this time. -1 is the older spelling of inf."""
    fetch_min_bytes: int
    """Brokers delay a fetch response until they have this much data, or until fetch_max_wait_ms."""
    fetch_max_wait_ms: int
    """How long brokers may delay a fetch response."""
    fetch_wait_max_ms: int
    """The same as fetch_max_wait_ms."""
    fetch_max_bytes: int
    """The most that one fetch response should hold. A larger first record is returned all the same."""
    max_decompressed_bytes: int
    """A batch that is larger than this after decompression is refused as corrupt."""
    check_crcs: bool
    """Whether the checksum of each batch is checked."""


class BytesShareConsumerOptions(_ShareConsumerOptions, _Tokens, total=False):
    """Options of a `KafkaShareConsumer` without deserializers."""


class ShareConsumerOptions(BytesShareConsumerOptions, total=False):
    """Options of `KafkaShareConsumer`."""

    key_deserializer: Callable[[bytes], Any] | Deserializes[Any] | None
    """Turns the bytes of keys into objects. None: bytes."""
    value_deserializer: Callable[[bytes], Any] | Deserializes[Any] | None
    """Turns the bytes of values into objects. None: bytes."""
    deserializer_class: Callable[[bytes], Any] | Deserializes[Any] | None
    """The same as value_deserializer."""


class AIOBytesShareConsumerOptions(_ShareConsumerOptions, _AIOTokens, total=False):
    """Options of an `AIOKafkaShareConsumer` without deserializers."""


class AIOShareConsumerOptions(AIOBytesShareConsumerOptions, total=False):
    """Options of `AIOKafkaShareConsumer`."""

    key_deserializer: Callable[[bytes], Any] | Deserializes[Any] | None
    """Turns the bytes of keys into objects. None: bytes."""
    value_deserializer: Callable[[bytes], Any] | Deserializes[Any] | None
    """Turns the bytes of values into objects. None: bytes."""
    deserializer_class: Callable[[bytes], Any] | Deserializes[Any] | None
    """The same as value_deserializer."""
