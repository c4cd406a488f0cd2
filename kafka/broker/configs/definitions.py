"""The configuration that topics and brokers have: name, type, default, what is allowed, what it is called elsewhere.

Topic options are Kafka's, all of them. Of the brokers' only those are here that mean something to this broker, or that
clients are known to ask for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

__all__ = ["BROKER_OPTIONS", "GROUP_OPTIONS", "SETTABLE_TOPIC_OPTIONS", "TOPIC_OPTIONS", "Kind", "Option"]


class Kind(IntEnum):
    """Types of values, as DescribeConfigs numbers them."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


@dataclass(frozen=True)
class Option:
    """One option."""

    name: str
    kind: Kind
    default: str | None
    doc: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    #: For a topic's option: the broker's that gives the default.
    broker_name: str | None = None
    #: How the broker's value becomes the topic's (hours to milliseconds).
    convert: Callable[[str], str] | None = None
    is_dynamic: bool = True


_LONG_MAX: Final = 2**63 - 1
_INT_MAX: Final = 2**31 - 1
_LONG: Final = str(_LONG_MAX)


def _topic(
    name: str,
    kind: Kind,
    default: str,
    doc: str,
    broker_name: str | None = None,
    *,
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] = (),
) -> Option:
    return Option(name, kind, default, doc, low, high, choices, broker_name)


_TOPIC: Final = (
    _topic("cleanup.policy", Kind.LIST, "delete", "Whether old segments are deleted, compacted or both.",
           "log.cleanup.policy", choices=("compact", "delete")),
    _topic("compression.gzip.level", Kind.INT, "-1", "The level for gzip, if the broker compresses.",
           "compression.gzip.level", low=-1, high=9),
    _topic("compression.lz4.level", Kind.INT, "9", "The level for lz4, if the broker compresses.",
           "compression.lz4.level", low=1, high=17),
    _topic("compression.type", Kind.STRING, "producer", "The codec of the topic; 'producer' keeps the producer's.",
           "compression.type", choices=("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")),
    _topic("compression.zstd.level", Kind.INT, "3", "The level for zstd, if the broker compresses.",
           "compression.zstd.level", low=-131072, high=22),
    _topic("delete.retention.ms", Kind.LONG, "86400000", "How long tombstones of compacted topics are kept.",
           "log.cleaner.delete.retention.ms", low=0),
    _topic("file.delete.delay.ms", Kind.LONG, "60000", "How long files outlive their deletion.",
           "log.segment.delete.delay.ms", low=0),
    _topic("flush.messages", Kind.LONG, _LONG, "After how many records they are forced to the disk.",
           "log.flush.interval.messages", low=1),
    _topic("flush.ms", Kind.LONG, _LONG, "After how long records are forced to the disk.",
           "log.flush.interval.ms", low=0),
    _topic("follower.replication.throttled.replicas", Kind.LIST, "", "Followers whose replication is throttled."),
    _topic("index.interval.bytes", Kind.INT, "4096", "Bytes between entries of the offset index.",
           "log.index.interval.bytes", low=0),
    _topic("leader.replication.throttled.replicas", Kind.LIST, "", "Leaders whose replication is throttled."),
    _topic("local.retention.bytes", Kind.LONG, "-2", "Bytes kept locally with tiered storage.",
           "log.local.retention.bytes", low=-2),
    _topic("local.retention.ms", Kind.LONG, "-2", "Time kept locally with tiered storage.",
           "log.local.retention.ms", low=-2),
    _topic("max.compaction.lag.ms", Kind.LONG, _LONG, "The longest a record stays uncompacted.",
           "log.cleaner.max.compaction.lag.ms", low=1),
    _topic("max.message.bytes", Kind.INT, "1048588", "The largest batch that is taken.", "message.max.bytes", low=0),
    _topic("message.timestamp.after.max.ms", Kind.LONG, "3600000", "How far in the future a timestamp may be.",
           "log.message.timestamp.after.max.ms", low=0),
    _topic("message.timestamp.before.max.ms", Kind.LONG, _LONG, "How far in the past a timestamp may be.",
           "log.message.timestamp.before.max.ms", low=0),
    _topic("message.timestamp.type", Kind.STRING, "CreateTime", "Whose timestamp records have.",
           "log.message.timestamp.type", choices=("CreateTime", "LogAppendTime")),
    _topic("min.cleanable.dirty.ratio", Kind.DOUBLE, "0.5", "The share of uncompacted bytes that starts compaction.",
           "log.cleaner.min.cleanable.ratio", low=0, high=1),
    _topic("min.compaction.lag.ms", Kind.LONG, "0", "The least time before a record is compacted.",
           "log.cleaner.min.compaction.lag.ms", low=0),
    _topic("min.insync.replicas", Kind.INT, "1", "Replicas that must be in sync for acks=all.",
           "min.insync.replicas", low=1),
    _topic("preallocate", Kind.BOOLEAN, "false", "Whether files are allocated at their full size.",
           "log.preallocate"),
    _topic("remote.log.copy.disable", Kind.BOOLEAN, "false", "Whether tiered storage is read only."),
    _topic("remote.log.delete.on.disable", Kind.BOOLEAN, "false", "Whether disabling tiered storage deletes it."),
    _topic("remote.storage.enable", Kind.BOOLEAN, "false", "Whether the topic uses tiered storage."),
    _topic("retention.bytes", Kind.LONG, "-1", "The size beyond which old segments go.", "log.retention.bytes"),
    _topic("retention.ms", Kind.LONG, "604800000", "The age beyond which old segments go.", "log.retention.ms", low=-1),
    _topic("segment.bytes", Kind.INT, "1073741824", "The size of a segment.", "log.segment.bytes", low=1048576),
    _topic("segment.index.bytes", Kind.INT, "10485760", "The size of a segment's index.",
           "log.index.size.max.bytes", low=4),
    _topic("segment.jitter.ms", Kind.LONG, "0", "By how much segment.ms is spread.", "log.roll.jitter.ms", low=0),
    _topic("segment.ms", Kind.LONG, "604800000", "The age at which a new segment is begun.", "log.roll.ms", low=1),
    _topic("unclean.leader.election.enable", Kind.BOOLEAN, "false", "Whether a replica out of sync may lead.",
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
    return Option(name, kind, default, doc, low, is_dynamic=is_dynamic)


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
    _broker("group.consumer.assignment.interval.ms", Kind.INT, "0", "The least time between two assignments.", low=0),
    _broker("group.consumer.assignors", Kind.LIST, "uniform,range", "The assignors offered, the first by default."),
    _broker("group.consumer.heartbeat.interval.ms", Kind.INT, "5000", "Heartbeats of the new protocol."),
    _broker("group.consumer.max.size", Kind.INT, str(_INT_MAX), "The most members in the new protocol.", low=1),
    _broker("group.consumer.migration.policy", Kind.STRING, "bidirectional", "Which groups may change protocols."),
    _broker("group.consumer.session.timeout.ms", Kind.INT, "45000", "The session timeout of the new protocol."),
    _broker("group.initial.rebalance.delay.ms", Kind.INT, "0", "How long a new group waits for more members."),
    _broker("group.max.session.timeout.ms", Kind.INT, "1800000", "The longest session timeout of a member."),
    _broker("group.max.size", Kind.INT, str(_INT_MAX), "The most members of a group."),
    _broker("group.min.session.timeout.ms", Kind.INT, "6000", "The shortest session timeout of a member."),
    _broker("inter.broker.protocol.version", Kind.STRING, "4.3-IV0", "The version of the cluster."),
    _broker("listeners", Kind.LIST, "PLAINTEXT://:9092", "Where this node listens."),
    _broker("log.dirs", Kind.STRING, None, "Where records are kept."),
    _broker("log.retention.check.interval.ms", Kind.LONG, "300000", "How often old segments are looked for.", low=1),
    _broker("log.cleaner.backoff.ms", Kind.LONG, "15000", "How often compaction looks for work."),
    _broker("max.incremental.fetch.session.cache.slots", Kind.INT, "1000", "The most fetch sessions of a node.", low=0),
    _broker("node.id", Kind.INT, "-1", "This node's number."),
    _broker("num.partitions", Kind.INT, "1", "Partitions of a topic that does not say.", low=1),
    _broker("offset.metadata.max.bytes", Kind.INT, "4096", "The longest text that comes with an offset."),
    _broker("offsets.retention.check.interval.ms", Kind.LONG, "600000", "How often old offsets are looked for.", low=1),
    _broker("offsets.retention.minutes", Kind.INT, "10080", "How long offsets of empty groups are kept."),
    _broker("process.roles", Kind.LIST, "broker,controller", "What this node does."),
    _broker("replica.selector.class", Kind.STRING, None, "How a reader's nearest replica is found (KIP-392)."),
    _broker("sasl.enabled.mechanisms", Kind.LIST, "GSSAPI", "The SASL mechanisms that are offered."),
    _broker("super.users", Kind.LIST, "", "Principals that may do everything, separated by semicolons."),
    _broker("socket.request.max.bytes", Kind.INT, "104857600", "The largest request.", low=1),
    _broker("transaction.max.timeout.ms", Kind.INT, "900000", "The longest transaction timeout."),
    _broker("transactional.id.expiration.ms", Kind.INT, "604800000", "How long an idle transactional id is kept."),
)

#: Where a broker's default for topics is written in another unit.
_DERIVED: Final = (
    ("log.retention.hours", Kind.INT, "168"),
    ("log.roll.hours", Kind.INT, "168"),
)


def _broker_options() -> dict[str, Option]:
    options = {option.name: option for option in _BROKER}
    for topic in _TOPIC:
        if topic.broker_name:
            kind, default = topic.kind, topic.default
            options[topic.broker_name] = Option(
                topic.broker_name, kind, default, topic.doc, topic.low, topic.high, topic.choices
            )
    for name, kind, default in _DERIVED:
        options[name] = Option(name, kind, default, "As the option in milliseconds, in hours.", is_dynamic=False)
    return dict(sorted(options.items()))


BROKER_OPTIONS: Final = _broker_options()

#: What can be set for a single group (KIP-848).
GROUP_OPTIONS: Final = {
    "consumer.heartbeat.interval.ms": Option(
        "consumer.heartbeat.interval.ms", Kind.INT, "5000", "The heartbeat interval of the group's members.", 1
    ),
    "consumer.session.timeout.ms": Option(
        "consumer.session.timeout.ms", Kind.INT, "45000", "After how long a silent member is out.", 1
    ),
}
