"""Every metric that Prometheus and OpenTelemetry show of a client: name, kind, labels, meaning.

``docs/observability.rst`` has the same table; a test compares them, and the names with the counts of the clients.
A client does not import this: it is for programs that read the metrics.
"""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["CATALOG", "CLIENT_LABEL", "MetricDescription"]

#: The label that every metric has.
CLIENT_LABEL: Final = "client_id"


class MetricDescription(NamedTuple):
    """One metric.

    >>> CATALOG["kafka_consumer_lag_records"].kind, CATALOG["kafka_consumer_lag_records"].labels
    ('gauge', ('topic', 'partition'))
    >>> CATALOG["kafka_consumer_lag_records"].otel_name, CATALOG["kafka_client_sent_bytes_total"].otel_name
    ('kafka.consumer.records_lag', 'kafka.client.sent_bytes')
    """

    name: str
    kind: str
    """counter or gauge."""
    labels: tuple[str, ...]
    """Beside `CLIENT_LABEL`."""
    text: str
    unit: str = ""
    """As OpenTelemetry writes it (UCUM)."""
    java: str = ""
    """The name that OpenTelemetry's Java agent has for the same metric of the Java client, if there is one."""

    @property
    def otel_name(self) -> str:
        """The name for OpenTelemetry: that of the Java agent, if it has one."""
        if self.java:
            return self.java
        kafka, kind, rest = self.name.split("_", 2)
        return f"{kafka}.{kind}.{rest.removesuffix('_total')}"


def _counter(
    name: str, labels: tuple[str, ...], text: str, unit: str = "", java: str = ""
) -> tuple[str, MetricDescription]:
    return name, MetricDescription(name, "counter", labels, text, unit, java)


def _gauge(
    name: str, labels: tuple[str, ...], text: str, unit: str = "", java: str = ""
) -> tuple[str, MetricDescription]:
    return name, MetricDescription(name, "gauge", labels, text, unit, java)


_NODE: Final = ("node_id",)
_TOPIC: Final = ("topic",)

CATALOG: Final[dict[str, MetricDescription]] = dict(
    (
        _gauge("kafka_client_info", ("version", "kind", "group"), "1; kind and group of the client, to join with"),
        _gauge("kafka_client_connections", (), "Open connections", "{connection}"),
        _counter("kafka_client_connections_created_total", (), "Connections that were opened", "{connection}"),
        _counter("kafka_client_request_seconds_sum", _NODE, "Time from requests to their responses", "s"),
        _counter("kafka_client_request_seconds_count", _NODE, "Responses", "{response}"),
        _counter("kafka_client_sent_bytes_total", _NODE, "Bytes sent to a broker", "By"),
        _counter("kafka_client_received_bytes_total", _NODE, "Bytes received from a broker", "By"),
        _counter("kafka_client_throttled_seconds_total", _NODE, "Pauses that a broker asked for (quotas)", "s"),
        _gauge("kafka_client_healthy", (), "1 while health() finds no problem of connections, metadata or topics"),
        _gauge("kafka_client_series_dropped", (), "Series that max_series has folded into sums", "{series}"),
        _counter(
            "kafka_producer_records_total",
            _TOPIC,
            "Records acknowledged",
            "{record}",
            "kafka.producer.record_send_total",
        ),
        _counter(
            "kafka_producer_bytes_total",
            _TOPIC,
            "Bytes of acknowledged batches, compressed",
            "By",
            "kafka.producer.byte_total",
        ),
        _counter(
            "kafka_producer_record_errors_total",
            (*_TOPIC, "error"),
            "Records given up or refused, by the class of the error",
            "{record}",
            "kafka.producer.record_error_total",
        ),
        _counter(
            "kafka_producer_record_retries_total",
            _TOPIC,
            "Records sent again",
            "{record}",
            "kafka.producer.record_retry_total",
        ),
        _counter("kafka_producer_queue_seconds_sum", (), "Time of batches between opening and first attempt", "s"),
        _counter("kafka_producer_queue_seconds_count", (), "Batches that were sent for the first time", "{batch}"),
        _counter("kafka_producer_batch_records_sum", (), "Records in batches sent for the first time", "{record}"),
        _counter("kafka_producer_batch_records_count", (), "Batches sent for the first time", "{batch}"),
        _gauge("kafka_producer_buffer_total_bytes", (), "buffer_memory", "By", "kafka.producer.buffer_total_bytes"),
        _gauge(
            "kafka_producer_buffer_available_bytes",
            (),
            "Part of buffer_memory that is free",
            "By",
            "kafka.producer.buffer_available_bytes",
        ),
        _counter(
            "kafka_producer_blocked_seconds_total",
            ("reason",),
            "Time that calls waited: buffer, metadata, flush or transaction",
            "s",
        ),
        _counter(
            "kafka_producer_transactions_total", ("result",), "Transactions that ended: committed or aborted", "{txn}"
        ),
        _counter(
            "kafka_consumer_records_total",
            _TOPIC,
            "Records taken by the application",
            "{record}",
            "kafka.consumer.records_consumed_total",
        ),
        _counter(
            "kafka_consumer_bytes_total",
            _TOPIC,
            "Bytes fetched and taken, compressed",
            "By",
            "kafka.consumer.bytes_consumed_total",
        ),
        _gauge(
            "kafka_consumer_lag_records",
            (*_TOPIC, "partition"),
            "Offsets between the consumer's own position and the end, as of the last fetch",
            "{record}",
            "kafka.consumer.records_lag",
        ),
        _gauge(
            "kafka_consumer_assigned_partitions",
            _TOPIC,
            "Partitions assigned to this consumer",
            "{partition}",
            "kafka.consumer.assigned_partitions",
        ),
        _counter(
            "kafka_consumer_rebalances_total",
            ("group",),
            "Assignments taken",
            "{rebalance}",
            "kafka.consumer.rebalance_total",
        ),
        _counter("kafka_consumer_rebalance_seconds_total", ("group",), "Time from leaving to taking assignments", "s"),
        _counter(
            "kafka_consumer_commits_total",
            ("group", "result"),
            "Commits: ok, or the class of the error",
            "{commit}",
        ),
        _counter("kafka_consumer_commit_seconds_sum", ("group",), "Time from commits to their responses", "s"),
        _counter("kafka_consumer_commit_seconds_count", ("group",), "Responses to commits", "{response}"),
        _gauge("kafka_consumer_last_poll_seconds", (), "Time since a member of a group took records or waited", "s"),
        _counter(
            "kafka_consumer_wait_seconds_total",
            (),
            "Time that calls waited for records; its rate() is the share of idle time",
            "s",
        ),
        _counter(
            "kafka_share_acknowledgements_total",
            (*_TOPIC, "result"),
            "Acknowledgements answered: ok, or the class of the error",
            "{record}",
        ),
        _counter(
            "kafka_admin_calls_total", ("call", "result"), "Calls that ended: ok, or the class of the error", "{call}"
        ),
        _counter("kafka_admin_call_seconds_total", ("call", "result"), "Time that calls took", "s"),
    )
)
