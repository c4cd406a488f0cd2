"""Dashboards for Grafana and alert rules for Prometheus, made of the metrics of the exporter."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
_WIDTH, _HEIGHT = 12, 8

#: Panels of a dashboard: title, query ($ stands for the choice of the cluster), the label that names a line, unit.
_OVERVIEW: Final = (
    ("Clusters that are reached", "kafka_exporter_up$", "cluster", "none"),
    ("Brokers", "kafka_brokers$", "cluster", "none"),
    ("Records written per second", "sum by (topic) (rate(kafka_topic_current_offset_sum$[5m]))", "topic", "ops"),
    ("Size of topics", "kafka_topic_size_bytes$", "topic", "bytes"),
    ("Partitions without leader", "sum by (topic) (kafka_topic_leaderless_partitions$) > 0", "topic", "none"),
    (
        "Partitions with replicas out of sync",
        "sum by (topic) (kafka_topic_under_replicated_partitions$) > 0",
        "topic",
        "none",
    ),
    (
        "Lag of the ten groups that are most behind",
        "topk(10, sum by (consumergroup) (kafka_consumergroup_lag_sum$))",
        "consumergroup",
        "none",
    ),
    (
        "Age of the oldest unread record",
        "topk(10, max by (consumergroup) (kafka_consumergroup_lag_seconds$))",
        "consumergroup",
        "s",
    ),
    ("Time of a collection", "kafka_exporter_collect_seconds$", "cluster", "s"),
    ("Series", "kafka_exporter_series$", "cluster", "none"),
)
#: The same of the groups that are chosen: title, query, label, unit.
_GROUP: Final = (
    ("Lag", "kafka_consumergroup_lag_sum$", "topic", "none"),
    ("Age of the oldest unread record", "kafka_consumergroup_lag_seconds$", "topic", "s"),
    ("Records read per second", "rate(kafka_consumergroup_current_offset_sum$[5m])", "topic", "ops"),
    ("Members", "kafka_consumergroup_members$", "", "none"),
    ("Share of a partition that is not read", "kafka_consumergroup_retention_ratio$", "topic", "percentunit"),
    ("Records deleted before they were read", "kafka_consumergroup_lost_records$", "topic", "none"),
    ("Partitions without a committed offset", "kafka_consumergroup_uncommitted_partitions$", "topic", "none"),
    ("Largest lag of a partition", "kafka_consumergroup_lag_max$", "topic", "none"),
)

#: Alert -> query, how long it must hold, severity, what an operator reads.
RULES: Final = {
    "KafkaUnreachable": (
        "kafka_exporter_up == 0",
        "2m",
        "critical",
        "The exporter cannot reach cluster {{ $labels.cluster }}; its series are old, or absent.",
    ),
    "KafkaPartitionsWithoutLeader": (
        "kafka_topic_leaderless_partitions > 0",
        "2m",
        "critical",
        "{{ $value }} partitions of topic {{ $labels.topic }} have no leader.",
    ),
    "KafkaPartitionsUnderReplicated": (
        "kafka_topic_under_replicated_partitions > 0",
        "10m",
        "warning",
        "{{ $value }} partitions of topic {{ $labels.topic }} have replicas out of sync.",
    ),
    "KafkaGroupFallsBehind": (
        "kafka_consumergroup_lag_sum > 1000 and deriv(kafka_consumergroup_lag_sum[15m]) > 0",
        "15m",
        "warning",
        "Group {{ $labels.consumergroup }} is {{ $value }} records behind in {{ $labels.topic }}, and the lag grows.",
    ),
    "KafkaGroupIsLate": (
        "kafka_consumergroup_lag_seconds > 600",
        "5m",
        "warning",
        (
            "The oldest record of topic {{ $labels.topic }} that group {{ $labels.consumergroup }} has not read is "
            "{{ $value | humanizeDuration }} old."
        ),
    ),
    "KafkaGroupHasNoMembers": (
        (
            "kafka_consumergroup_members == 0 and on (cluster, consumergroup) "
            "sum by (cluster, consumergroup) (kafka_consumergroup_lag_sum) > 0"
        ),
        "15m",
        "warning",
        "Group {{ $labels.consumergroup }} has records to read, and no members.",
    ),
    "KafkaRecordsNearDeletion": (
        "kafka_consumergroup_retention_ratio > 0.9 and kafka_consumergroup_lag_max > 1000",
        "10m",
        "critical",
        (
            "Group {{ $labels.consumergroup }} has not read 90 % of a partition of {{ $labels.topic }}: "
            "the next deletion may take records that it never saw."
        ),
    ),
    "KafkaRecordsLost": (
        "delta(kafka_consumergroup_lost_records[10m]) > 0",  # a gauge: it falls when the group commits behind them
        "0m",
        "critical",
        "Records of {{ $labels.topic }} were deleted before group {{ $labels.consumergroup }} read them.",
    ),
    "KafkaExporterSeriesDropped": (
        "kafka_exporter_series_dropped > 0",
        "10m",
        "warning",
        "{{ $value }} series of cluster {{ $labels.cluster }} are left out: raise --max-series, or choose groups.",
    ),
}


def _variable(name: str, query: str) -> dict[str, Any]:
    return {
        "name": name,
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "includeAll": True,
        "multi": True,
        "current": {"text": ["All"], "value": ["$__all"]},
    }


def _dashboard(title: str, uid: str, panels: tuple[tuple[str, str, str, str], ...], *variables: Any) -> dict[str, Any]:
    chosen = "{cluster=~'$cluster',consumergroup=~'$group'}" if variables else "{cluster=~'$cluster'}"
    source = {"name": "datasource", "type": "datasource", "query": "prometheus"}
    cluster = _variable("cluster", "label_values(kafka_exporter_up, cluster)")
    return {
        "title": title,
        "uid": uid,
        "tags": ["kafka"],
        "schemaVersion": 39,
        "time": {"from": "now-6h", "to": "now"},
        "refresh": "30s",
        "templating": {"list": [source, cluster, *variables]},
        "panels": [
            {
                "id": at + 1,
                "title": name,
                "type": "timeseries",
                "datasource": _SOURCE,
                "gridPos": {"x": at % 2 * _WIDTH, "y": at // 2 * _HEIGHT, "w": _WIDTH, "h": _HEIGHT},
                "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
                "targets": [
                    {
                        "refId": "A",
                        "datasource": _SOURCE,
                        "expr": query.replace("$", chosen),
                        "legendFormat": " ".join(
                            f"{{{{{name}}}}}" for name in ("consumergroup" if variables else "", label) if name
                        ),
                    }
                ],
            }
            for at, (name, query, label, unit) in enumerate(panels)
        ],
    }


def dashboards() -> dict[str, dict[str, Any]]:
    """Return the dashboards by the names of their files."""
    group = _variable("group", "label_values(kafka_consumergroup_info{cluster=~'$cluster'}, consumergroup)")
    return {
        "kafka-overview.json": _dashboard("Kafka: overview", "purekafka-overview", _OVERVIEW),
        "kafka-groups.json": _dashboard("Kafka: groups", "purekafka-groups", _GROUP, group),
    }


def rules() -> str:
    """Return the alert rules as Prometheus reads them: JSON, which is YAML."""
    listed = [
        {
            "alert": name,
            "expr": query,
            "for": lasting,
            "labels": {"severity": severity},
            "annotations": {"summary": text},
        }
        for name, (query, lasting, severity, text) in RULES.items()
    ]
    return json.dumps({"groups": [{"name": "kafka", "rules": listed}]}, indent=2) + "\n"


def write(directory: Path) -> list[Path]:
    """Write all files into a directory, and return their paths."""
    files = {name: json.dumps(found, indent=2) + "\n" for name, found in dashboards().items()}
    files["kafka-alerts.yml"] = rules()
    for name, text in files.items():
        (directory / name).write_text(text, encoding="utf-8")
    return [directory / name for name in files]
