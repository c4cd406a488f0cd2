"""The broker's properties that concern groups and committed offsets, with Kafka's names and defaults.

The defaults of the delays differ, because a test waits for them: ``group.initial.rebalance.delay.ms`` and its twin for
streams groups are 0 here and 3000 in Kafka; ``assignment.interval.ms`` of consumer, share and streams groups is 0 here
and 1000 in Kafka.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields


@dataclass(frozen=True)
class GroupSettings:
    """How the group coordinator behaves; times are in seconds.

    >>> GroupSettings.from_properties({"group.min.session.timeout.ms": "10"}).min_session_timeout
    0.01
    """

    initial_rebalance_delay: float = 0.0
    min_session_timeout: float = 6.0
    max_session_timeout: float = 1800.0
    max_size: int = 2147483647
    new_member_join_timeout: float = 300.0
    consumer_session_timeout: float = 45.0
    consumer_heartbeat_interval: float = 5.0
    consumer_assignment_interval: float = 0.0
    consumer_max_size: int = 2147483647
    consumer_assignors: tuple[str, ...] = ("uniform", "range")
    consumer_migration_policy: str = "bidirectional"
    share_session_timeout: float = 45.0
    share_heartbeat_interval: float = 5.0
    share_assignment_interval: float = 0.0
    share_max_size: int = 200
    share_max_sessions: int = 2000
    share_record_lock_duration: float = 30.0
    share_delivery_count_limit: int = 5
    share_partition_max_record_locks: int = 2000
    share_auto_offset_reset: str = "latest"
    share_isolation_level: str = "read_uncommitted"
    share_renew_enable: str = "true"
    streams_session_timeout: float = 45.0
    streams_heartbeat_interval: float = 5.0
    streams_assignment_interval: float = 0.0
    streams_initial_rebalance_delay: float = 0.0
    streams_max_size: int = 2147483647
    streams_standby_replicas: int = 0
    protocols: tuple[str, ...] = ("classic", "consumer", "streams")
    offset_metadata_max_bytes: int = 4096
    offsets_retention: float = 7 * 24 * 3600.0
    offsets_check_interval: float = 600.0

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> GroupSettings:
        """Read the properties that concern groups; others are ignored."""
        known = {field.name: field.type for field in fields(cls)}
        given: dict[str, object] = {}
        for name, attribute in PROPERTIES.items():
            text = properties.get(name)
            if text is None:
                continue
            kind = known[attribute]
            if kind == "float":
                given[attribute] = float(text) * _UNITS[name.rpartition(".")[2]]
            elif kind == "int":
                given[attribute] = int(text)
            elif kind == "str":
                given[attribute] = text.lower()
            else:
                given[attribute] = tuple(part.strip().lower() for part in text.split(",") if part.strip())
        return cls(**given)  # type: ignore[arg-type]


_UNITS = {"ms": 0.001, "minutes": 60.0}
#: Kafka's name -> the attribute here.
PROPERTIES = {
    "group.initial.rebalance.delay.ms": "initial_rebalance_delay",
    "group.min.session.timeout.ms": "min_session_timeout",
    "group.max.session.timeout.ms": "max_session_timeout",
    "group.max.size": "max_size",
    "group.consumer.session.timeout.ms": "consumer_session_timeout",
    "group.consumer.heartbeat.interval.ms": "consumer_heartbeat_interval",
    "group.consumer.assignment.interval.ms": "consumer_assignment_interval",
    "group.consumer.max.size": "consumer_max_size",
    "group.consumer.assignors": "consumer_assignors",
    "group.consumer.migration.policy": "consumer_migration_policy",
    "group.share.session.timeout.ms": "share_session_timeout",
    "group.share.heartbeat.interval.ms": "share_heartbeat_interval",
    "group.share.assignment.interval.ms": "share_assignment_interval",
    "group.share.max.size": "share_max_size",
    "group.share.max.share.sessions": "share_max_sessions",
    "group.share.record.lock.duration.ms": "share_record_lock_duration",
    "group.share.delivery.count.limit": "share_delivery_count_limit",
    "group.share.partition.max.record.locks": "share_partition_max_record_locks",
    # These three can be set for a group only.
    "group.share.auto.offset.reset": "share_auto_offset_reset",
    "group.share.isolation.level": "share_isolation_level",
    "group.share.renew.acknowledge.enable": "share_renew_enable",
    "group.streams.session.timeout.ms": "streams_session_timeout",
    "group.streams.heartbeat.interval.ms": "streams_heartbeat_interval",
    "group.streams.assignment.interval.ms": "streams_assignment_interval",
    "group.streams.initial.rebalance.delay.ms": "streams_initial_rebalance_delay",
    "group.streams.max.size": "streams_max_size",
    "group.streams.num.standby.replicas": "streams_standby_replicas",
    "group.coordinator.rebalance.protocols": "protocols",
    "offset.metadata.max.bytes": "offset_metadata_max_bytes",
    "offsets.retention.minutes": "offsets_retention",
    "offsets.retention.check.interval.ms": "offsets_check_interval",
}
