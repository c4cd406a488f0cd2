"""Options and arguments of other clients, with what to use here: for the errors that refuse them, and the docs.

Options that have the same name here, such as linger.ms and ssl.ca.location, are not in here: they are accepted. The
module is imported by the first error that may need it.
"""

from __future__ import annotations

from typing import Final

_LOGGING: Final = "set the level of logging.getLogger('kafka')"
_TOKENS: Final = "sasl_oauth_token_provider is an object with a method token()"
_NOT_NEEDED: Final = "leave it out: each connection asks its broker for the API versions"
_KINIT: Final = "kinit gets the ticket, which GSSAPI finds in the system's cache"

_ADVICE: Final = {
    # Other names
    "max.in.flight": "max_in_flight_requests_per_connection",
    "message.timeout.ms": "delivery_timeout_ms",
    "queue.buffering.max.ms": "linger_ms",
    "sasl.mechanisms": "sasl_mechanism",
    "socket.timeout.ms": "request_timeout_ms",
    "topic.metadata.refresh.interval.ms": "metadata_max_age_ms",
    "broker.version.fallback": "api_version",
    "fetch.error.backoff.ms": "retry_backoff_ms",
    # Other units
    "queue.buffering.max.kbytes": "buffer_memory, in bytes",
    "queue.buffering.max.messages": "buffer_memory, in bytes; send() waits for room, for max_block_ms",
    "batch.num.messages": "batch_size, in bytes",
    "queued.max.messages.kbytes": "fetch_buffer_memory, in bytes",
    "queued.min.messages": "fetch_buffer_memory, in bytes; the consumer fetches ahead up to it",
    # Other means
    "enable.ssl.certificate.verification": "ssl_context, with verify_mode=ssl.CERT_NONE, in tests only",
    "ssl.endpoint.identification.algorithm": "ssl_check_hostname, True or False",
    "ssl.providers": "ssl_context, which has the settings of OpenSSL",
    "ssl.curves.list": "ssl_context, which has the settings of OpenSSL",
    "ssl.sigalgs.list": "ssl_context, which has the settings of OpenSSL",
    "enable.auto.offset.store": "enable_auto_commit=False, and commit({partition: offset + 1}) for what is done",
    "enable.partition.eof": "position(partition) == end_offsets([partition])[partition]",
    "offset.store.method": "nothing: brokers store committed offsets",
    "auto.commit.interval.messages": "enable_auto_commit=False, and commit() after any number of records",
    "statistics.interval.ms": "metrics(), at any time",
    "stats_cb": "metrics(), at any time",
    "error_cb": "health(), at any time; calls raise what concerns them",
    "throttle_cb": "metrics(), which have the time that brokers have throttled the client",
    "logger": "logging.getLogger('kafka'), with the handlers of the application",
    "log_cb": "logging.getLogger('kafka'), with the handlers of the application",
    "debug": _LOGGING,
    "log_level": _LOGGING,
    "log.connection.close": _LOGGING,
    "log.queue": _LOGGING,
    "oauth_cb": _TOKENS,
    "sasl.oauthbearer.config": _TOKENS,
    "enable.sasl.oauthbearer.unsecure.jwt": _TOKENS,
    "sasl.oauthbearer.method": "nothing: sasl_oauthbearer_token_endpoint_url alone selects OIDC",
    "sasl.kerberos.keytab": _KINIT,
    "sasl.kerberos.principal": _KINIT,
    "sasl.kerberos.kinit.cmd": _KINIT,
    "dr_cb": "send(...).add_callback(f).add_errback(g), or on_delivery for whole batches",
    "dr_msg_cb": "send(...).add_callback(f).add_errback(g), or on_delivery for whole batches",
    "delivery.report.only.error": "send(...).add_errback(f)",
    "on_commit": "default_offset_commit_callback",
    "offset_commit_cb": "default_offset_commit_callback",
    "rebalance_cb": "subscribe(topics, listener=ConsumerRebalanceListener)",
    "default.topic.config": "nothing: its options stand beside the others",
    "topic.blacklist": "subscribe(pattern=...), with a pattern that leaves these topics out",
    "partitioner_cb": "partitioner, a function of the key, all partitions and the available ones",
    "sticky.partitioning.linger.ms": "nothing: records without a key fill one batch after another",
    "enable.gapless.guarantee": "nothing: records of a partition are in order, and a lost one fails its future",
    # Without a need
    "api.version.request": _NOT_NEEDED,
    "api.version.request.timeout.ms": _NOT_NEEDED,
    "api.version.fallback.ms": _NOT_NEEDED,
    "socket.keepalive.enable": "nothing: it is on; socket_options switches it off",
    "socket.nagle.disable": "nothing: TCP_NODELAY is on; socket_options switches it off",
    "message.copy.max.bytes": "nothing: the client copies no message twice",
    "enable.sparse.connections": "nothing: the client connects to brokers when it needs them",
    "enable.random.seed": "nothing: Python seeds its own generator",
}


def advice_for(name: str) -> str:
    """Return what is used here in place of an option, empty if this module does not know the name.

    >>> advice_for("message.timeout.ms"), advice_for("queue_buffering_max_kbytes"), advice_for("linger")
    ('delivery_timeout_ms', 'buffer_memory, in bytes', '')
    """
    return _ADVICE.get(name) or _ADVICE.get(name.replace("_", "."), "")


_TOPICS: Final = "a consumer takes topics in front of its options, KafkaConsumer('events', ...); send() takes one"

# Names that programs guess.
_JAAS: Final = "use sasl_plain_username and sasl_plain_password, or the options sasl_oauthbearer_… and sasl_kerberos_…"
_GUESSES: Final = {
    "brokers": "use bootstrap_servers",
    "loop": "leave it out; the clients for asyncio are in kafka.aio",
    "sasl.jaas.config": _JAAS,
    "sasl_jaas_config": _JAAS,
    "servers": "use bootstrap_servers",
    "ssl": "use security_protocol='SSL'",
    "timeout": "use request_timeout_ms for answers, delivery_timeout_ms for records, in milliseconds",
    "topic": _TOPICS,
    "topics": _TOPICS,
    "use_ssl": "use security_protocol='SSL'",
}


def advice_for_guess(name: str) -> str:
    """Return what to do instead of passing an option that no client has, empty if this module does not know it.

    >>> advice_for_guess("servers"), advice_for_guess("anything")
    ('use bootstrap_servers', '')
    """
    return _GUESSES.get(name, "")


# Arguments of calls.
_CALLBACKS: Final = "use send(...).add_callback(f).add_errback(g); the option on_delivery is for whole batches"
_ARGUMENTS: Final = {
    ("send", "on_delivery"): _CALLBACKS,
    ("send", "callback"): _CALLBACKS,
    ("send", "timestamp"): "use timestamp_ms=, in milliseconds",
    ("poll", "timeout"): "use timeout_ms=, in milliseconds",
    ("subscribe", "on_assign"): "use listener=, a ConsumerRebalanceListener with on_partitions_assigned(partitions)",
    ("subscribe", "on_revoke"): "use listener=, a ConsumerRebalanceListener with on_partitions_revoked(partitions)",
    ("subscribe", "on_lost"): "use listener=, a ConsumerRebalanceListener with on_partitions_lost(partitions)",
    ("commit", "asynchronous"): "commit() waits; commit_async(callback=...) does not",
    ("commit", "message"): "use commit({TopicPartition(record.topic, record.partition): record.offset + 1})",
}


def advice_for_argument(call: str, name: str) -> str:
    """Return what is used here in place of an argument of a call, empty if this module does not know it.

    >>> advice_for_argument("commit", "asynchronous")
    'commit() waits; commit_async(callback=...) does not'
    """
    return _ARGUMENTS.get((call, name), "")


def render_librdkafka_rst() -> str:
    """Return the table as reStructuredText, below entries of the index: the search shows a page first that has one.

    >>> "``message.timeout.ms``" in render_librdkafka_rst(), "! single: message.timeout.ms" in render_librdkafka_rst()
    (True, True)
    """
    rows = [(f"``{name}``", f"``{said}``" if said.isidentifier() else said) for name, said in sorted(_ADVICE.items())]
    wide = [max(len(row[column]) for row in [*rows, ("confluent-kafka", "Here")]) for column in (0, 1)]
    line = "  ".join("=" * width for width in wide)
    table = ["  ".join(cell.ljust(width) for cell, width in zip(row, wide, strict=True)).rstrip() for row in rows]
    head = "  ".join(cell.ljust(width) for cell, width in zip(("confluent-kafka", "Here"), wide, strict=True)).rstrip()
    index = [".. index::", *(f"   ! single: {name}" for name in sorted(_ADVICE)), ""]
    return "\n".join([*index, line, head, line, *table, line, ""])
