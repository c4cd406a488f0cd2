"""Broker and topic configuration: what is in force, where it comes from, and how it changes.

As in Kafka, a value is looked for at the topic, then at the broker (one node's dynamic, all nodes' dynamic, what it was
started with), then among the defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from kafka.broker.configs.definitions import BROKER_OPTIONS, TOPIC_OPTIONS, Option
from kafka.broker.configs.values import check_value, parse_bool, parse_list
from kafka.broker.storage.log import LogConfig
from kafka.errors import InvalidConfigurationError, KafkaConfigurationError

if TYPE_CHECKING:
    from kafka.broker.cluster.store import Store
    from kafka.broker.cluster.topics import Topic

__all__ = ["Configs", "Source", "Value"]

_HOUR_MS = 3_600_000
_IN_HOURS = {"log.retention.ms": "log.retention.hours", "log.roll.ms": "log.roll.hours"}


class Source(IntEnum):
    """Where a value comes from, as DescribeConfigs numbers it."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    GROUP = 8


class Value(NamedTuple):
    """A value and its origin; of several for one option, the first is in force."""

    name: str
    value: str | None
    source: Source


class Configs:
    """The configuration of the cluster."""

    def __init__(self, store: Store, static: Mapping[str, str]) -> None:
        for name, value in static.items():
            option = BROKER_OPTIONS.get(name)
            if option is None:
                raise KafkaConfigurationError(f"{name!r} is not an option of the embedded broker")
            try:
                check_value(option, value)
            except InvalidConfigurationError as error:
                raise KafkaConfigurationError(str(error.args[0])) from None
        self._static = dict(static)
        #: Dynamic values by node id, "" for all nodes.
        self._dynamic = store.table("broker_configs")

    # Brokers

    def broker_values(self, option: Option, node_id: int | None = None) -> list[Value]:
        """Return all values of a broker's option, the one in force first."""
        name = option.name
        values = []
        if node_id is not None and name in (own := self._dynamic.get(str(node_id), {})):
            values.append(Value(name, own[name], Source.DYNAMIC_BROKER))
        if name in (shared := self._dynamic.get("", {})):
            values.append(Value(name, shared[name], Source.DYNAMIC_DEFAULT_BROKER))
        if name in self._static:
            values.append(Value(name, self._static[name], Source.STATIC_BROKER))
        values.append(Value(name, option.default, Source.DEFAULT))
        return values

    def broker_value(self, name: str, node_id: int | None = None) -> str | None:
        """Return the value in force of a broker's option."""
        return self.broker_values(BROKER_OPTIONS[name], node_id)[0].value

    def broker_int(self, name: str, node_id: int | None = None) -> int:
        """Return the value in force as a number."""
        return int(self.broker_value(name, node_id) or 0)

    def broker_bool(self, name: str, node_id: int | None = None) -> bool:
        """Return the value in force as a boolean."""
        return parse_bool(self.broker_value(name, node_id) or "false")

    def dynamic(self, node_id: int | None) -> dict[str, str]:
        """Return what was set at run time for a node, or with None for all of them."""
        return dict(self._dynamic.get("" if node_id is None else str(node_id), {}))

    def set_dynamic(self, node_id: int | None, values: Mapping[str, str]) -> None:
        """Set it."""
        self._dynamic["" if node_id is None else str(node_id)] = dict(values)

    # Topics

    def topic_values(self, option: Option, own: Mapping[str, str], node_id: int | None = None) -> list[Value]:
        """Return all values of a topic's option, the one in force first; ``own`` are those set for the topic.

        ``node_id`` is the node that is asked, whose own configuration comes before that of all brokers.
        """
        values = []
        if option.name in own:
            values.append(Value(option.name, own[option.name], Source.TOPIC))
        broker_name = option.broker_name
        if broker_name is not None:
            broker = self.broker_values(BROKER_OPTIONS[broker_name], node_id)
            hours = _IN_HOURS.get(broker_name)
            if hours is not None and hours in self._static and len(broker) == 1:
                milliseconds = str(int(self._static[hours]) * _HOUR_MS)
                broker.insert(0, Value(hours, milliseconds, Source.STATIC_BROKER))
            values += broker
        else:
            values.append(Value(option.name, option.default, Source.DEFAULT))
        return values

    def topic_value(self, topic: Topic, name: str) -> str:
        """Return the value in force of a topic's option."""
        own = topic.configs.get(name)
        if own is not None:
            return own
        return self.topic_values(TOPIC_OPTIONS[name], topic.configs)[0].value or ""

    def topic_int(self, topic: Topic, name: str) -> int:
        """Return the value in force as a number."""
        return int(self.topic_value(topic, name))

    def log_config(self, topic: Topic) -> LogConfig:
        """Return what the logs of a topic go by."""
        policies = parse_list(self.topic_value(topic, "cleanup.policy"))
        return LogConfig(
            segment_bytes=int(topic.configs.get("internal.segment.bytes", self.topic_value(topic, "segment.bytes"))),
            segment_ms=self.topic_int(topic, "segment.ms"),
            retention_bytes=self.topic_int(topic, "retention.bytes"),
            retention_ms=self.topic_int(topic, "retention.ms"),
            deletes="delete" in policies,
            compacts="compact" in policies,
            delete_retention_ms=self.topic_int(topic, "delete.retention.ms"),
            min_compaction_lag_ms=self.topic_int(topic, "min.compaction.lag.ms"),
            flush_messages=self.topic_int(topic, "flush.messages"),
            flush_ms=self.topic_int(topic, "flush.ms"),
            max_message_bytes=self.topic_int(topic, "max.message.bytes"),
            append_time=self.topic_value(topic, "message.timestamp.type") == "LogAppendTime",
            timestamp_after_max_ms=self.topic_int(topic, "message.timestamp.after.max.ms"),
            timestamp_before_max_ms=self.topic_int(topic, "message.timestamp.before.max.ms"),
            compression=(compression := self.topic_value(topic, "compression.type")),
            compression_level=self._level(topic, compression),
            min_insync_replicas=self.topic_int(topic, "min.insync.replicas"),
        )

    def _level(self, topic: Topic, compression: str) -> int | None:
        name = f"compression.{compression}.level"
        if name not in TOPIC_OPTIONS:
            return None
        level = self.topic_int(topic, name)
        return None if (compression, level) == ("gzip", -1) else level
