"""The options of topics, brokers, groups and client metrics: name, type, default, and the values that Kafka takes.

All are Kafka's. The brokers' options that mean nothing to this broker are in ``without_effect``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from kafka.broker.configs.option import Kind, Option
from kafka.broker.configs.without_effect import OPTIONS_WITHOUT_EFFECT

_LONG_MAX: Final = 2**63 - 1
_INT_MAX: Final = 2**31 - 1
_LONG: Final = str(_LONG_MAX)


_TOPIC: Final = (
    Option("cleanup.policy", Kind.LIST, "delete", "Whether old segments are deleted, compacted or both.",
           "log.cleanup.policy", choices=("compact", "delete")),
    Option("compression.gzip.level", Kind.INT, "-1", "The level for gzip, if the broker compresses.",
           "compression.gzip.level", low=-1, high=9),
    Option("compression.lz4.level", Kind.INT, "9", "The level for lz4, if the broker compresses.",
           "compression.lz4.level", low=1, high=17),
    Option("compression.type", Kind.STRING, "producer", "The codec of the topic; 'producer' keeps the producer's.",
           "compression.type", choices=("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")),
    Option("compression.zstd.level", Kind.INT, "3", "The level for zstd, if the broker compresses.",
           "compression.zstd.level", low=-131072, high=22),
    Option("delete.retention.ms", Kind.LONG, "86400000", "How long tombstones of compacted topics are kept.",
           "log.cleaner.delete.retention.ms", low=0),
    Option("file.delete.delay.ms", Kind.LONG, "60000", "How long files outlive their deletion.",
           "log.segment.delete.delay.ms", low=0),
    Option("flush.messages", Kind.LONG, _LONG, "After how many records they are forced to the disk.",
           "log.flush.interval.messages", low=1),
    Option("flush.ms", Kind.LONG, _LONG, "After how long records are forced to the disk.",
           "log.flush.interval.ms", low=0),
    Option("follower.replication.throttled.replicas", Kind.LIST, "", "Followers whose replication is throttled."),
    Option("index.interval.bytes", Kind.INT, "4096", "Bytes between entries of the offset index.",
           "log.index.interval.bytes", low=0),
    Option("leader.replication.throttled.replicas", Kind.LIST, "", "Leaders whose replication is throttled."),
    Option("local.retention.bytes", Kind.LONG, "-2", "Bytes kept locally with tiered storage.",
           "log.local.retention.bytes", low=-2),
    Option("local.retention.ms", Kind.LONG, "-2", "Time kept locally with tiered storage.",
           "log.local.retention.ms", low=-2),
    Option("max.compaction.lag.ms", Kind.LONG, _LONG, "The longest a record stays uncompacted.",
           "log.cleaner.max.compaction.lag.ms", low=1),
    Option("max.message.bytes", Kind.INT, "1048588", "The largest batch that is taken.", "message.max.bytes", low=0),
    Option("message.timestamp.after.max.ms", Kind.LONG, "3600000", "How far in the future a timestamp may be.",
           "log.message.timestamp.after.max.ms", low=0),
    Option("message.timestamp.before.max.ms", Kind.LONG, _LONG, "How far in the past a timestamp may be.",
           "log.message.timestamp.before.max.ms", low=0),
    Option("message.timestamp.type", Kind.STRING, "CreateTime", "Whose timestamp records have.",
           "log.message.timestamp.type", choices=("CreateTime", "LogAppendTime")),
    Option("min.cleanable.dirty.ratio", Kind.DOUBLE, "0.5", "The share of uncompacted bytes that starts compaction.",
           "log.cleaner.min.cleanable.ratio", low=0, high=1),
    Option("min.compaction.lag.ms", Kind.LONG, "0", "The least time before a record is compacted.",
           "log.cleaner.min.compaction.lag.ms", low=0),
    Option("min.insync.replicas", Kind.INT, "1", "Replicas that must be in sync for acks=all.",
           "min.insync.replicas", low=1),
    Option("preallocate", Kind.BOOLEAN, "false", "Whether files are allocated at their full size.",
           "log.preallocate"),
    Option("remote.log.copy.disable", Kind.BOOLEAN, "false", "Whether tiered storage is read only."),
    Option("remote.log.delete.on.disable", Kind.BOOLEAN, "false", "Whether disabling tiered storage deletes it."),
    Option("remote.storage.enable", Kind.BOOLEAN, "false", "Whether the topic uses tiered storage."),
    Option("retention.bytes", Kind.LONG, "-1", "The size beyond which old segments go.", "log.retention.bytes"),
    Option("retention.ms", Kind.LONG, "604800000", "The age beyond which old segments go.", "log.retention.ms", low=-1),
    Option("segment.bytes", Kind.INT, "1073741824", "The size of a segment.", "log.segment.bytes", low=1048576),
    Option("segment.index.bytes", Kind.INT, "10485760", "The size of a segment's index.",
           "log.index.size.max.bytes", low=4),
    Option("segment.jitter.ms", Kind.LONG, "0", "By how much segment.ms is spread.", "log.roll.jitter.ms", low=0),
    Option("segment.ms", Kind.LONG, "604800000", "The age at which a new segment is begun.", "log.roll.ms", low=1),
    Option("unclean.leader.election.enable", Kind.BOOLEAN, "false", "Whether a replica out of sync may lead.",
           "unclean.leader.election.enable"),
)  # fmt: skip

TOPIC_OPTIONS: Final = {option.name: option for option in _TOPIC}

#: What can be set for a topic beside them and is not described: in Kafka's tests segments are smaller than its users'.
SETTABLE_TOPIC_OPTIONS: Final = {
    **TOPIC_OPTIONS,
    "internal.segment.bytes": Option("internal.segment.bytes", Kind.INT, None, "The size of a segment, without limit."),
}


def _broker(
    name: str, kind: Kind, default: str | None, doc: str, *, is_dynamic: bool = False, low: float | None = None
) -> Option:
    return Option(name, kind, default, doc, low=low, is_dynamic=is_dynamic)


def _limit(name: str, default: int) -> Option:
    return Option(name, Kind.INT, str(default), "A limit of what can be set for a group.", low=0, is_dynamic=False)


_BROKER: Final = (
    _broker("advertised.listeners", Kind.LIST, None, "Where clients reach this node."),
    _broker("allow.everyone.if.no.acl.found", Kind.BOOLEAN, "false", "Whether what no ACL is about is allowed."),
    _broker("authorizer.class.name", Kind.STRING, "", "What decides about rights; if set, ACLs are enforced."),
    _broker("auto.create.topics.enable", Kind.BOOLEAN, "true", "Whether Metadata and Produce create topics."),
    _broker("broker.id", Kind.INT, "-1", "This node's number."),
    _broker("broker.rack", Kind.STRING, None, "Where this node stands."),
    _broker("connections.max.idle.ms", Kind.LONG, "600000", "After how long idle connections are closed."),
    _broker("connections.max.reauth.ms", Kind.LONG, "0", "How long a SASL session lasts; 0 for ever.", low=0),
    _broker("controller.quorum.voters", Kind.LIST, "", "The controllers."),
    _broker("default.replication.factor", Kind.INT, "1", "Replicas of a topic that does not say.", low=1),
    _broker("delegation.token.expiry.time.ms", Kind.LONG, "86400000", "How long a token lives if not renewed.", low=1),
    _broker("delegation.token.max.lifetime.ms", Kind.LONG, "604800000", "How long a token can live.", low=1),
    _broker("delegation.token.secret.key", Kind.PASSWORD, None, "Makes delegation tokens; without it none."),
    _broker("delete.topic.enable", Kind.BOOLEAN, "true", "Whether topics can be deleted."),
    _broker("fetch.max.bytes", Kind.INT, "57671680", "The most that one fetch gets.", low=1024),
    _broker("group.consumer.assignment.interval.ms", Kind.INT, "0", "The least time between two assignments.",
            is_dynamic=True, low=0),
    _broker("group.consumer.assignors", Kind.LIST, "uniform,range", "The assignors offered, the first by default."),
    _broker("group.consumer.heartbeat.interval.ms", Kind.INT, "5000", "Heartbeats of the new protocol."),
    _broker("group.consumer.max.size", Kind.INT, str(_INT_MAX), "The most members in the new protocol.", low=1),
    _broker("group.consumer.migration.policy", Kind.STRING, "bidirectional", "Which groups may change protocols."),
    _broker("group.consumer.session.timeout.ms", Kind.INT, "45000", "The session timeout of the new protocol."),
    _limit("group.consumer.max.assignment.interval.ms", 15000),
    _limit("group.consumer.max.heartbeat.interval.ms", 15000),
    _limit("group.consumer.max.session.timeout.ms", 60000),
    _limit("group.consumer.min.assignment.interval.ms", 0),
    _limit("group.consumer.min.heartbeat.interval.ms", 5000),
    _limit("group.consumer.min.session.timeout.ms", 45000),
    _broker("group.coordinator.rebalance.protocols", Kind.LIST, "classic,consumer,streams", "The protocols of groups."),
    _broker("group.initial.rebalance.delay.ms", Kind.INT, "0", "How long a new group waits for more members."),
    _broker("group.max.session.timeout.ms", Kind.INT, "1800000", "The longest session timeout of a member."),
    _broker("group.max.size", Kind.INT, str(_INT_MAX), "The most members of a group."),
    _broker("group.min.session.timeout.ms", Kind.INT, "6000", "The shortest session timeout of a member."),
    _broker("group.share.assignment.interval.ms", Kind.INT, "0", "The least time between two assignments.",
            is_dynamic=True, low=0),
    _broker("group.share.delivery.count.limit", Kind.INT, "5", "How often a record is delivered.", low=2),
    _broker("group.share.heartbeat.interval.ms", Kind.INT, "5000", "Heartbeats of share groups."),
    _limit("group.share.max.assignment.interval.ms", 15000),
    _limit("group.share.max.delivery.count.limit", 10),
    _limit("group.share.max.heartbeat.interval.ms", 15000),
    _limit("group.share.max.partition.max.record.locks", 4000),
    _limit("group.share.max.record.lock.duration.ms", 60000),
    _limit("group.share.max.session.timeout.ms", 60000),
    _broker("group.share.max.share.sessions", Kind.INT, "2000", "The most share sessions of a node.", low=1),
    _broker("group.share.max.size", Kind.INT, "200", "The most members of a share group.", low=1),
    _limit("group.share.min.assignment.interval.ms", 0),
    _limit("group.share.min.delivery.count.limit", 2),
    _limit("group.share.min.heartbeat.interval.ms", 5000),
    _limit("group.share.min.partition.max.record.locks", 100),
    _limit("group.share.min.record.lock.duration.ms", 15000),
    _limit("group.share.min.session.timeout.ms", 45000),
    _broker("group.share.partition.max.record.locks", Kind.INT, "2000", "The most records in delivery.", low=100),
    _broker("group.share.record.lock.duration.ms", Kind.INT, "30000", "How long a delivery is locked.", low=1000),
    _broker("group.share.session.timeout.ms", Kind.INT, "45000", "The session timeout of share groups."),
    _broker("group.streams.assignment.interval.ms", Kind.INT, "0", "The least time between two assignments.",
            is_dynamic=True, low=0),
    _broker("group.streams.heartbeat.interval.ms", Kind.INT, "5000", "Heartbeats of streams groups."),
    _broker("group.streams.initial.rebalance.delay.ms", Kind.INT, "0", "How long a new group waits.", low=0),
    _limit("group.streams.max.assignment.interval.ms", 15000),
    _limit("group.streams.max.heartbeat.interval.ms", 15000),
    _limit("group.streams.max.session.timeout.ms", 60000),
    _broker("group.streams.max.size", Kind.INT, str(_INT_MAX), "The most members of a streams group.", low=1),
    _limit("group.streams.max.standby.replicas", 2),
    _limit("group.streams.min.assignment.interval.ms", 0),
    _limit("group.streams.min.heartbeat.interval.ms", 5000),
    _limit("group.streams.min.session.timeout.ms", 45000),
    _broker("group.streams.num.standby.replicas", Kind.INT, "0", "Standby tasks of a task.", low=0),
    _broker("group.streams.session.timeout.ms", Kind.INT, "45000", "The session timeout of streams groups."),
    _broker("listeners", Kind.LIST, "PLAINTEXT://:9092", "Where this node listens.", is_dynamic=True),
    _broker("log.dirs", Kind.LIST, None, "Where records are kept."),
    _broker("log.retention.check.interval.ms", Kind.LONG, "300000", "How often old segments are looked for.", low=1),
    _broker("log.cleaner.backoff.ms", Kind.LONG, "15000", "How often compaction looks for work.", is_dynamic=True),
    _broker("max.incremental.fetch.session.cache.slots", Kind.INT, "1000", "The most fetch sessions of a node.", low=0),
    _broker("metric.reporters", Kind.LIST, "org.apache.kafka.common.metrics.JmxReporter",
            "Classes that take metrics; with another one than the default, clients push theirs (KIP-714).",
            is_dynamic=True),
    _broker("node.id", Kind.INT, "-1", "This node's number."),
    _broker("num.partitions", Kind.INT, "1", "Partitions of a topic that does not say.", low=1),
    _broker("offset.metadata.max.bytes", Kind.INT, "4096", "The longest text that comes with an offset."),
    _broker("offsets.retention.check.interval.ms", Kind.LONG, "600000", "How often old offsets are looked for.", low=1),
    _broker("offsets.retention.minutes", Kind.INT, "10080", "How long offsets of empty groups are kept."),
    _broker("process.roles", Kind.LIST, "broker,controller", "What this node does."),
    _broker("replica.selector.class", Kind.STRING, None, "How a reader's nearest replica is found (KIP-392)."),
    _broker("sasl.enabled.mechanisms", Kind.LIST, "GSSAPI", "The SASL mechanisms that are offered.", is_dynamic=True),
    _broker("super.users", Kind.LIST, "", "Principals that may do everything, separated by semicolons."),
    _broker("socket.request.max.bytes", Kind.INT, "104857600", "The largest request.", low=1),
    _broker("telemetry.max.bytes", Kind.INT, "1048576", "The most that a client pushes at once.", low=1),
    _broker("transaction.max.timeout.ms", Kind.INT, "900000", "The longest transaction timeout."),
    _broker("transactional.id.expiration.ms", Kind.INT, "604800000", "How long an idle transactional id is kept."),
)  # fmt: skip


#: Where a broker's default for topics is written in another unit.
_DERIVED: Final = (("log.retention.hours", Kind.INT, "168"), ("log.roll.hours", Kind.INT, "168"))


#: Broker options that give a topic's default only where they are set: without them the topic's own counts.
_UNSET: Final = frozenset({"log.flush.interval.ms", "log.retention.ms", "log.roll.jitter.ms", "log.roll.ms"})


def _broker_options() -> dict[str, Option]:
    options = {**OPTIONS_WITHOUT_EFFECT, **{option.name: option for option in _BROKER}}
    for topic in _TOPIC:
        if topic.broker_name:
            default = None if topic.broker_name in _UNSET else topic.default
            options[topic.broker_name] = replace(topic, name=topic.broker_name, default=default, broker_name=None)
    for name, kind, default in _DERIVED:
        options[name] = Option(name, kind, default, "As the option in milliseconds, in hours.", is_dynamic=False)
    return dict(sorted(options.items()))


BROKER_OPTIONS: Final = _broker_options()

#: Broker options that are described only where they are set (KIP-73, KIP-113): nothing is throttled here.
REPLICATION_QUOTAS: Final = {
    name: Option(name, Kind.LONG, None, "Bytes a second; not enforced.", low=0, has_effect=False)
    for name in (
        "follower.replication.throttled.rate",
        "leader.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    )
}


def _bounded(name: str, doc: str, low: float = 0, *, is_bounded_below: bool = True) -> Option:
    """Return a group's option that the brokers give a default and limits: ``group.consumer.min.session.timeout.ms``."""
    kind, _, rest = name.partition(".")
    of_brokers = f"group.{name}"
    return Option(
        name,
        Kind.INT,
        BROKER_OPTIONS[of_brokers].default,
        doc,
        of_brokers,
        low,
        least=f"group.{kind}.min.{rest}" if is_bounded_below else None,
        most=f"group.{kind}.max.{rest}" if f"group.{kind}.max.{rest}" in BROKER_OPTIONS else None,
    )


_DURATION: Final = r"P(?=[0-9T])([0-9]+D)?(T(?=[0-9])([0-9]+H)?([0-9]+M)?([0-9]+(\.[0-9]{1,9})?S)?)?"
_GROUP: Final = (
    _bounded("consumer.assignment.interval.ms", "The least time between two assignments of a consumer group."),
    _bounded("consumer.heartbeat.interval.ms", "The heartbeat interval of a consumer group's members.", 1),
    _bounded("consumer.session.timeout.ms", "After how long a silent member of a consumer group is out.", 1),
    _bounded("share.assignment.interval.ms", "The least time between two assignments of a share group."),
    Option(
        "share.auto.offset.reset",
        Kind.STRING,
        "latest",
        "Where a share group begins to read a partition.",
        pattern=f"earliest|latest|by_duration:{_DURATION}",
        refusal="Invalid value `{value}` for configuration share.auto.offset.reset. The value must be either"
        " 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'.",
    ),
    _bounded("share.delivery.count.limit", "How often a record is delivered to a share group.", 2),
    _bounded("share.heartbeat.interval.ms", "The heartbeat interval of a share group's members.", 1),
    Option(
        "share.isolation.level",
        Kind.STRING,
        "read_uncommitted",
        "Whether a share group reads records of transactions that are not committed.",
        choices=("read_committed", "read_uncommitted"),
    ),
    _bounded("share.partition.max.record.locks", "The most records of a partition in delivery.", 100),
    _bounded("share.record.lock.duration.ms", "How long a delivery is locked.", 1000),
    Option("share.renew.acknowledge.enable", Kind.BOOLEAN, "true", "Whether members may prolong a delivery's lock."),
    _bounded("share.session.timeout.ms", "After how long a silent member of a share group is out.", 1),
    _bounded("streams.assignment.interval.ms", "The least time between two assignments of a streams group."),
    _bounded("streams.heartbeat.interval.ms", "The heartbeat interval of a streams group's members.", 1),
    _bounded("streams.initial.rebalance.delay.ms", "How long a new group waits for members.", is_bounded_below=False),
    Option(
        "streams.num.standby.replicas",
        Kind.INT,
        "0",
        "Standby tasks of a task.",
        "group.streams.num.standby.replicas",
        low=0,
        most="group.streams.max.standby.replicas",
    ),
    _bounded("streams.session.timeout.ms", "After how long a silent member of a streams group is out.", 1),
)
#: What can be set for a single group (KIP-848, KIP-932, KIP-1071).
GROUP_OPTIONS: Final = {option.name: option for option in _GROUP}

_CLIENT_METRICS: Final = (
    Option("interval.ms", Kind.INT, "300000", "How often clients push, in milliseconds."),
    Option("match", Kind.LIST, "", "Which clients push: name=pattern, all of them must match."),
    Option("metrics", Kind.LIST, "", "Prefixes of the names of the metrics that are pushed."),
)
#: What can be set for a subscription to clients' metrics (KIP-714).
CLIENT_METRICS_OPTIONS: Final = {option.name: option for option in _CLIENT_METRICS}
