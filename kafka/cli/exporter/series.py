"""The metrics of the exporter: one table, and the text of Prometheus that is made of it."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from kafka.cli.exporter.facts import Facts, GroupFacts, TopicFacts, TopicLag

#: The parts of a group that can have a lag, from coarse to fine.
LEVELS: Final = ("group", "topic", "partition")
#: Lines that are compressed together.
_BLOCK: Final = 1000


class Metric(NamedTuple):
    """A metric: its labels besides ``cluster``, and what it says. All are gauges."""

    labels: tuple[str, ...]
    meaning: str


_GROUP: Final = ("consumergroup",)
_GROUP_TOPIC: Final = ("consumergroup", "topic")
_GROUP_PARTITION: Final = ("consumergroup", "topic", "partition")
_TOPIC: Final = ("topic",)
_PARTITION: Final = ("topic", "partition")

#: Name -> metric, in the order of the output. Where kafka_exporter has a name for a thing, it has that name here.
METRICS: Final = {
    "kafka_brokers": Metric((), "Brokers of the cluster."),
    "kafka_broker_info": Metric(("id", "address", "rack"), "A broker of the cluster; always 1."),
    "kafka_topic_partitions": Metric(_TOPIC, "Partitions of a topic."),
    "kafka_topic_leaderless_partitions": Metric(_TOPIC, "Partitions of a topic that have no leader."),
    "kafka_topic_under_replicated_partitions": Metric(_TOPIC, "Partitions of a topic with replicas out of sync."),
    "kafka_topic_size_bytes": Metric(_TOPIC, "Size of the logs of a topic on all brokers."),
    "kafka_topic_current_offset_sum": Metric(_TOPIC, "End offsets of a topic's partitions, if all are known."),
    "kafka_topic_oldest_offset_sum": Metric(_TOPIC, "First offsets of a topic's partitions, if all are known."),
    "kafka_topic_partition_current_offset": Metric(_PARTITION, "End offset of a partition."),
    "kafka_topic_partition_oldest_offset": Metric(_PARTITION, "First offset of a partition."),
    "kafka_consumergroup_info": Metric(("consumergroup", "type"), "A group; always 1."),
    "kafka_consumergroup_state": Metric(("consumergroup", "state"), "The state of a group; always 1."),
    "kafka_consumergroup_members": Metric(_GROUP, "Members of a group."),
    "kafka_consumergroup_current_offset": Metric(_GROUP_PARTITION, "Committed offset of a group in a partition."),
    "kafka_consumergroup_lag": Metric(_GROUP_PARTITION, "Records of a partition that a group has not read."),
    "kafka_consumergroup_current_offset_sum": Metric(_GROUP_TOPIC, "Committed offsets of a group in a topic."),
    "kafka_consumergroup_lag_sum": Metric(
        _GROUP_TOPIC, "Records of a topic that a group has not read; absent while a partition is unknown."
    ),
    "kafka_consumergroup_lag_max": Metric(_GROUP_TOPIC, "The largest lag of a known partition."),
    "kafka_consumergroup_lag_seconds": Metric(_GROUP_TOPIC, "Age of the oldest record that a group has not read."),
    "kafka_consumergroup_retention_ratio": Metric(
        _GROUP_TOPIC, "Largest share of a partition that is not read; at 1 the next deletion loses records."
    ),
    "kafka_consumergroup_lost_records": Metric(_GROUP_TOPIC, "Records that were deleted before the group read them."),
    "kafka_consumergroup_uncommitted_partitions": Metric(
        _GROUP_TOPIC, "Partitions that a member has and that have no committed offset."
    ),
    "kafka_consumergroup_unknown_partitions": Metric(
        _GROUP_TOPIC, "Partitions with a committed offset whose end is not known."
    ),
    "kafka_exporter_up": Metric((), "Whether the last collection reached the cluster."),
    "kafka_exporter_collect_seconds": Metric((), "How long the last collection took."),
    "kafka_exporter_last_success_timestamp_seconds": Metric((), "When the last collection that succeeded ended."),
    "kafka_exporter_errors": Metric((), "Groups, partitions and brokers that the last collection could not look at."),
    "kafka_exporter_failed_groups": Metric((), "Groups that the last collection could not look at."),
    "kafka_exporter_series": Metric((), "Series of this cluster."),
    "kafka_exporter_series_dropped": Metric((), "Series that were left out because of --max-series."),
}


class Series:
    """The series of one cluster: for each metric, the lines of its samples, compressed, as they are much alike."""

    def __init__(self, cluster: str) -> None:
        self._cluster = _label("cluster", cluster)
        self._blocks: dict[str, list[bytes]] = {}
        self._lines: dict[str, list[str]] = {}
        """The last lines of each metric, which are fewer than a block."""
        self.count = 0

    def add(self, name: str, labels: str, value: float) -> None:
        """Add a sample; labels as `_label` writes them, joined by commas."""
        both = f"{self._cluster},{labels}" if labels else self._cluster
        lines = self._lines.setdefault(name, [])
        lines.append(f"{name}{{{both}}} {value!r}\n")
        self.count += 1
        if len(lines) >= _BLOCK:
            self._blocks.setdefault(name, []).append(zlib.compress("".join(lines).encode(), 1))
            lines.clear()

    def text(self, name: str) -> Iterator[bytes]:
        """Return the lines of a metric in pieces; none if it has no sample."""
        yield from map(zlib.decompress, self._blocks.get(name, ()))
        if lines := self._lines.get(name):
            yield "".join(lines).encode()

    def add_facts(self, facts: Facts, by: str, most: int, *, states: bool) -> int:
        """Add the series of brokers, topics and groups; return how many were left out to have `most` of them.

        Single partitions are the first to be left out, then topics of groups; groups at last, from the end of the
        alphabet on.
        """
        wanted = 0
        for level in reversed(LEVELS[: LEVELS.index(by) + 1]):
            self._blocks, self._lines, self.count, found = {}, {}, 0, 0
            for found, sample in enumerate(_samples(facts, level, states), 1):
                if found <= most:
                    self.add(*sample)
            wanted = wanted or found
            if found <= most:
                break
        return wanted - self.count


Sample = tuple[str, str, float]


def _samples(facts: Facts, level: str, states: bool) -> Iterator[Sample]:
    yield "kafka_brokers", "", len(facts.brokers)
    for broker in facts.brokers:
        yield "kafka_broker_info", ",".join(_label(name, str(value)) for name, value in broker.items()), 1
    for name, topic in facts.topics.items():
        yield from _topic_samples(name, topic, level)
    for name, group in facts.groups.items():
        yield from _group_samples(name, group, level, states)


def _topic_samples(name: str, topic: TopicFacts, level: str) -> Iterator[Sample]:
    label = _label("topic", name)
    yield "kafka_topic_partitions", label, topic.partitions
    yield "kafka_topic_leaderless_partitions", label, topic.leaderless
    yield "kafka_topic_under_replicated_partitions", label, topic.under_replicated
    if topic.size is not None:
        yield "kafka_topic_size_bytes", label, topic.size
    if len(topic.ends) == topic.partitions:
        yield "kafka_topic_current_offset_sum", label, sum(topic.ends.values())
        yield "kafka_topic_oldest_offset_sum", label, sum(topic.begins.values())
    if level == "partition":
        for number, end in topic.ends.items():
            both = f'{label},partition="{number}"'
            yield "kafka_topic_partition_current_offset", both, end
            yield "kafka_topic_partition_oldest_offset", both, topic.begins[number]


def _group_samples(name: str, group: GroupFacts, level: str, states: bool) -> Iterator[Sample]:
    label = _label("consumergroup", name)
    yield "kafka_consumergroup_info", f"{label},{_label('type', group.kind)}", 1
    if states and not group.folded:
        yield "kafka_consumergroup_state", f"{label},{_label('state', group.state)}", 1
    if group.members is not None:
        yield "kafka_consumergroup_members", label, group.members
    if level == "group":
        if group.topics:
            yield from _lag_samples(label, list(group.topics.values()))
        return
    for topic, lag in group.topics.items():
        both = f"{label},{_label('topic', topic)}"
        yield from _lag_samples(both, [lag])
        if level == "partition" and not group.folded:
            for number, offset in lag.offsets.items():
                yield "kafka_consumergroup_current_offset", f'{both},partition="{number}"', offset
            for number, records in lag.lags.items():
                yield "kafka_consumergroup_lag", f'{both},partition="{number}"', records


def _lag_samples(label: str, topics: list[TopicLag]) -> Iterator[Sample]:
    lags = [lag for one in topics for lag in one.lags.values()]
    unknown = sum(one.unknown for one in topics)
    if any(one.offsets for one in topics):
        yield "kafka_consumergroup_current_offset_sum", label, sum(sum(one.offsets.values()) for one in topics)
        if not unknown:
            yield "kafka_consumergroup_lag_sum", label, sum(lags)
        if lags:
            yield "kafka_consumergroup_lag_max", label, max(lags)
            ages = [one.seconds for one in topics if one.lags]
            known = [age for age in ages if age is not None]
            if len(known) == len(ages):
                yield "kafka_consumergroup_lag_seconds", label, round(max(known), 3)
            yield "kafka_consumergroup_retention_ratio", label, round(max(one.ratio for one in topics), 6)
            yield "kafka_consumergroup_lost_records", label, sum(one.lost for one in topics)
    yield "kafka_consumergroup_uncommitted_partitions", label, sum(one.uncommitted for one in topics)
    yield "kafka_consumergroup_unknown_partitions", label, unknown


def _label(name: str, value: str) -> str:
    """Return a label with its value.

    >>> print(_label("topic", 'a"b'))
    topic="a\\"b"
    """
    escaped = value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return f'{name}="{escaped}"'


def exposition(clusters: list[Series]) -> Iterator[bytes]:
    """Return the text that Prometheus reads, in pieces: each metric once, with the samples of all clusters."""
    for name, metric in METRICS.items():
        head = f"# HELP {name} {metric.meaning}\n# TYPE {name} gauge\n".encode()
        for cluster in clusters:
            for piece in cluster.text(name):
                yield head + piece
                head = b""
