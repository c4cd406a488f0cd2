"""The broker's properties that concern groups and committed offsets, with Kafka's names and defaults.

The defaults of the delays differ, because a test waits for them: ``group.initial.rebalance.delay.ms`` and its twin for
streams groups are 0 here and 3000 in Kafka; ``assignment.interval.ms`` of consumer, share and streams groups is 0 here
and 1000 in Kafka.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final

_UNITS: Final = {"ms": 0.001, "minutes": 60.0}


def _property(name: str, default: object) -> Any:
    """Return a field that a property of the broker sets."""
    return field(default=default, metadata={"property": name})


@dataclass(frozen=True)
class GroupSettings:
    """How the group coordinator behaves; times are in seconds.

    >>> GroupSettings.from_properties({"group.min.session.timeout.ms": "10"}).min_session_timeout
    0.01
    """

    initial_rebalance_delay: float = _property("group.initial.rebalance.delay.ms", 0.0)
    min_session_timeout: float = _property("group.min.session.timeout.ms", 6.0)
    max_session_timeout: float = _property("group.max.session.timeout.ms", 1800.0)
    max_size: int = _property("group.max.size", 2147483647)
    new_member_join_timeout: float = 300.0
    consumer_session_timeout: float = _property("group.consumer.session.timeout.ms", 45.0)
    consumer_heartbeat_interval: float = _property("group.consumer.heartbeat.interval.ms", 5.0)
    consumer_assignment_interval: float = _property("group.consumer.assignment.interval.ms", 0.0)
    consumer_max_size: int = _property("group.consumer.max.size", 2147483647)
    consumer_assignors: tuple[str, ...] = _property("group.consumer.assignors", ("uniform", "range"))
    consumer_migration_policy: str = _property("group.consumer.migration.policy", "bidirectional")
    share_session_timeout: float = _property("group.share.session.timeout.ms", 45.0)
    share_heartbeat_interval: float = _property("group.share.heartbeat.interval.ms", 5.0)
    share_assignment_interval: float = _property("group.share.assignment.interval.ms", 0.0)
    share_max_size: int = _property("group.share.max.size", 200)
    share_max_sessions: int = _property("group.share.max.share.sessions", 2000)
    share_record_lock_duration: float = _property("group.share.record.lock.duration.ms", 30.0)
    share_delivery_count_limit: int = _property("group.share.delivery.count.limit", 5)
    share_partition_max_record_locks: int = _property("group.share.partition.max.record.locks", 2000)
    # These three can be set for a group only.
    share_auto_offset_reset: str = _property("group.share.auto.offset.reset", "latest")
    share_isolation_level: str = _property("group.share.isolation.level", "read_uncommitted")
    share_renew_enable: str = _property("group.share.renew.acknowledge.enable", "true")
    streams_session_timeout: float = _property("group.streams.session.timeout.ms", 45.0)
    streams_heartbeat_interval: float = _property("group.streams.heartbeat.interval.ms", 5.0)
    streams_assignment_interval: float = _property("group.streams.assignment.interval.ms", 0.0)
    streams_initial_rebalance_delay: float = _property("group.streams.initial.rebalance.delay.ms", 0.0)
    streams_max_size: int = _property("group.streams.max.size", 2147483647)
    streams_standby_replicas: int = _property("group.streams.num.standby.replicas", 0)
    protocols: tuple[str, ...] = _property("group.coordinator.rebalance.protocols", ("classic", "consumer", "streams"))
    offset_metadata_max_bytes: int = _property("offset.metadata.max.bytes", 4096)
    offsets_retention: float = _property("offsets.retention.minutes", 7 * 24 * 3600.0)
    offsets_check_interval: float = _property("offsets.retention.check.interval.ms", 600.0)

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> GroupSettings:
        """Read the properties that concern groups; others are ignored."""
        given: dict[str, object] = {}
        for name, found in PROPERTIES.items():
            text = properties.get(name)
            if text is None:
                continue
            if found.type == "float":
                given[found.name] = float(text) * _UNITS[name.rpartition(".")[2]]
            elif found.type == "int":
                given[found.name] = int(text)
            elif found.type == "str":
                given[found.name] = text.lower()
            else:
                given[found.name] = tuple(part.strip().lower() for part in text.split(",") if part.strip())
        return cls(**given)  # type: ignore[arg-type]


#: The properties by Kafka's names.
PROPERTIES: Final = {each.metadata["property"]: each for each in fields(GroupSettings) if each.metadata}
