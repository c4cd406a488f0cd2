"""The configuration of brokers and topics: the value in force of each option, and where it comes from.

As in Kafka, a value is looked up at the topic, then at the broker (the node's dynamic options, the dynamic options of
all nodes, the options that the broker was started with), then among the defaults.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka.broker.configs.definitions import BROKER_OPTIONS, REPLICATION_QUOTAS, TOPIC_OPTIONS
from kafka.broker.configs.option import Kind, Option, check_value, parse_bool, parse_list
from kafka.broker.storage.log import LogConfig
from kafka.errors import InvalidConfigurationError, KafkaConfigurationError

if TYPE_CHECKING:
    from kafka.broker.cluster.store import Store
    from kafka.broker.cluster.topics import Topic

__all__ = ["MIN_ISR", "Configs", "Source", "Value", "broker_option"]

#: With eligible leader replicas (KIP-966) it is always set for all brokers.
MIN_ISR: Final = "min.insync.replicas"
#: An option of one listener, as ``listener.name.internal.ssl.keystore.location``.
_OF_LISTENER: Final = re.compile(r"listener\.name\.[^.]+\.(.+)")

_HOUR_MS = 3_600_000
_REPORTERS = "metric.reporters"
_IN_HOURS = {"log.retention.ms": "log.retention.hours", "log.roll.ms": "log.roll.hours"}


class Source(IntEnum):
    """Where a value comes from, as DescribeConfigs numbers it."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class Value(NamedTuple):
    """A value and its origin; of several for one option, the first is in force."""

    name: str
    value: str | None
    source: Source


def broker_option(name: str) -> Option:
    """Return a broker's option; one that is not known has type UNKNOWN: Kafka keeps it for plugins.

    >>> broker_option("message.max.bytes").kind.name, broker_option("listener.name.internal.ssl.protocol").kind.name
    ('INT', 'STRING')
    >>> broker_option("no.such").kind.name
    'UNKNOWN'
    """
    found = BROKER_OPTIONS.get(name) or REPLICATION_QUOTAS.get(name)
    if found is None and (of_listener := _OF_LISTENER.fullmatch(name)) and of_listener[1] in BROKER_OPTIONS:
        found = replace(BROKER_OPTIONS[of_listener[1]], name=name, broker_name=of_listener[1], has_effect=False)
    return found or Option(name, Kind.UNKNOWN, None, "", has_effect=False)


class Configs:
    """The configuration of the cluster."""

    def __init__(
        self, store: Store, static: Mapping[str, str], has_eligible_leaders: Callable[[], bool] = lambda: False
    ) -> None:
        for name, value in static.items():
            option = BROKER_OPTIONS.get(name)
            if option is None:
                raise KafkaConfigurationError(f"{name!r} is not an option of the embedded broker")
            if not option.has_effect:
                raise KafkaConfigurationError(f"the option {name!r} of Kafka has no effect on the embedded broker")
            try:
                check_value(option, value)
            except InvalidConfigurationError as error:
                raise KafkaConfigurationError(str(error.args[0])) from None
        self._static = dict(static)
        #: Whether the feature of eligible leader replicas is on.
        self.has_eligible_leaders = has_eligible_leaders
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
        elif name == MIN_ISR and self.has_eligible_leaders():
            values.append(Value(name, self._static.get(name, option.default), Source.DYNAMIC_DEFAULT_BROKER))
        if name in self._static:
            values.append(Value(name, self._static[name], Source.STATIC_BROKER))
        values.append(Value(option.broker_name or name, option.default, Source.DEFAULT))
        return values

    def broker_value(self, name: str, node_id: int | None = None) -> str | None:
        """Return the value in force of a broker's option."""
        return self.broker_values(BROKER_OPTIONS[name], node_id)[0].value

    def broker_int(self, name: str, node_id: int | None = None) -> int:
        """Return the value in force as a number."""
        return int(self.broker_value(name, node_id) or 0)

    def broker_bool(self, name: str) -> bool:
        """Return the value in force as a boolean."""
        return parse_bool(self.broker_value(name) or "false")

    def takes_client_metrics(self) -> bool:
        """Whether a reporter other than the default one is named: then clients are offered to push metrics."""
        return self.broker_value(_REPORTERS) != BROKER_OPTIONS[_REPORTERS].default

    def dynamic(self, node_id: int | None) -> dict[str, str]:
        """Return the dynamic options of a node, or with None the ones of all nodes."""
        values = dict(self._dynamic.get("" if node_id is None else str(node_id), {}))
        if node_id is None and self.has_eligible_leaders():
            values.setdefault(MIN_ISR, self.broker_value(MIN_ISR) or "")
        return values

    def set_dynamic(self, node_id: int | None, values: Mapping[str, str]) -> None:
        """Replace the dynamic options of a node, or with None the ones of all nodes."""
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
            if broker[-1].value is None:  # the brokers have no default: the topic's counts
                broker[-1] = broker[-1]._replace(value=option.default)
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

    def check_lags(self, own: Mapping[str, str]) -> None:
        """Raise if records of a topic with these values could never be compacted in time."""
        least, most = "min.compaction.lag.ms", "max.compaction.lag.ms"
        if not own.keys() & {least, most}:
            return
        low, high = (int(self.topic_values(TOPIC_OPTIONS[name], own)[0].value or 0) for name in (least, most))
        if low > high:
            raise InvalidConfigurationError(f"conflict topic config setting {least} ({low}) > {most} ({high})")

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
            max_compaction_lag_ms=self.topic_int(topic, "max.compaction.lag.ms"),
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
