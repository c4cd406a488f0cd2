"""Options of consumers and of group membership."""

from __future__ import annotations

import math
from typing import Final

from kafka.config.checks import INT32, Choice, Custom, Flag, Items, Number, Reset, Text, Whole
from kafka.config.option import Lazy, Option

_CONSUMER: Final = frozenset({"consumer"})
_SHARE: Final = frozenset({"share"})
_BOTH: Final = _CONSUMER | _SHARE


def _is_deserializer(value: object) -> bool:
    return value is None or callable(value) or callable(getattr(value, "deserialize", None))


def _is_assignor(value: object) -> bool:
    return hasattr(value, "assign") or (isinstance(value, str) and value != "")


_DESERIALIZER: Final = Custom(
    "a callable, a Deserializer or None", "Callable[[bytes], Any] | Deserializes[Any] | None", _is_deserializer
)

CONSUMER_OPTIONS: Final = (
    Option("key_deserializer", _BOTH, None, _DESERIALIZER, "Turns the bytes of keys into objects. None: bytes."),
    Option(
        "value_deserializer",
        _BOTH,
        None,
        _DESERIALIZER,
        "Turns the bytes of values into objects. None: bytes.",
        aliases=("deserializer_class",),
    ),
    # Groups
    Option(
        "group_id",
        _BOTH,
        None,
        Text(sent=True),
        "The group to join, and to commit offsets for. None: neither.",
        since="0.8.2",
    ),
    Option(
        "group_instance_id",
        _CONSUMER,
        None,
        Text(empty=False, sent=True),
        "Makes this a static member, which may restart within session_timeout_ms without a rebalance (KIP-345).",
        since="2.3",
    ),
    Option(
        "group_protocol",
        _CONSUMER,
        "classic",
        Choice(("classic", "consumer", "auto")),
        "The group protocol: members assign partitions (classic), brokers do (consumer, KIP-848), or the newer "
        "protocol that the brokers support (auto).",
    ),
    Option(
        "group_remote_assignor",
        _CONSUMER,
        None,
        Text(empty=False, sent=True),
        "The broker's assignor for group_protocol='consumer': 'uniform', 'range', or one installed there.",
        since="4.0",
    ),
    Option(
        "partition_assignment_strategy",
        _CONSUMER,
        # As Java's; round robin for groups with members of aiokafka, which offers nothing else, as kafka-python has it.
        Lazy(
            "kafka.coordinator.assignors",
            "RangePartitionAssignor",
            "CooperativeStickyAssignor",
            "RoundRobinPartitionAssignor",
            many=True,
        ),
        Items(
            "a list of assignors, or of their names",
            "str | Sequence[str | Assignor | type[AbstractPartitionAssignor]]",
            _is_assignor,
        ),
        "The assignors that this member supports, the preferred one first. All members need one in common.",
        aliases=("assignors",),
    ),
    Option(
        "session_timeout_ms",
        _CONSUMER,
        45000,
        Number(least=1, most=INT32, finite=True),
        "The group removes a member that sends no heartbeat for this time.",
        since="0.9",
    ),
    Option(
        "heartbeat_interval_ms",
        _CONSUMER,
        3000,
        Number(least=1),
        "The time between heartbeats; should be at most a third of session_timeout_ms.",
        since="0.9",
    ),
    Option(
        "max_poll_interval_ms",
        _BOTH,
        300000,
        Number(least=1, most=INT32, finite=True),
        "A member that does not call poll() for this time leaves the group until its next poll().",
        since="0.10.1",
    ),
    Option(
        "enable_auto_commit",
        _CONSUMER,
        True,
        Flag(),
        "Whether poll() and close() commit the offsets of the records returned before.",
        aliases=("auto_commit_enable",),
    ),
    Option("auto_commit_interval_ms", _CONSUMER, 5000, Number(), "The time between automatic commits."),
    Option(
        "default_offset_commit_callback",
        _CONSUMER,
        None,
        Custom("a callable or None", "OnCommit | None", lambda value: value is None or callable(value)),
        "Called as callback(offsets, response or error) after each automatic commit, and after commit_async without "
        "a callback.",
    ),
    Option(
        "exclude_internal_topics",
        _CONSUMER,
        True,
        Flag(),
        "Whether a pattern leaves out internal topics such as __consumer_offsets.",
    ),
    # Share groups
    Option(
        "share_acknowledgement_mode",
        _SHARE,
        "implicit",
        Choice(("implicit", "explicit")),
        "With implicit, each poll() of a share consumer accepts the records that the poll() before has returned; with "
        "explicit, the application calls acknowledge() for each record.",
        since="4.2",
    ),
    Option(
        "share_acquire_mode",
        _SHARE,
        "batch_optimized",
        Choice(("batch_optimized", "record_limit")),
        "How many records a share consumer acquires at once: whole batches until there are max_poll_records "
        "(batch_optimized), or at most max_poll_records, from one broker after another (record_limit).",
        since="4.2",
    ),
    # Fetching
    Option(
        "auto_offset_reset",
        _CONSUMER,
        "latest",
        Reset(),
        "Where to start in a partition without a committed offset, or whose committed offset no longer exists.",
    ),
    Option(
        "isolation_level",
        _CONSUMER,
        "read_uncommitted",
        Choice(("read_uncommitted", "read_committed"), synonyms={0: "read_uncommitted", 1: "read_committed"}),
        "Whether to return records of open and aborted transactions (read_uncommitted), or of committed ones only.",
        since="0.11",
    ),
    Option("max_poll_records", _BOTH, 500, Whole(least=1), "The most records that poll() returns at once."),
    Option(
        "consumer_timeout_ms",
        _BOTH,
        math.inf,
        Number(least=-1),
        "Iteration ends when no record arrives for this time. -1 is the older spelling of inf.",
    ),
    Option(
        "fetch_min_bytes",
        _BOTH,
        1,
        Whole(most=INT32),
        "Brokers delay a fetch response until they have this much data, or until fetch_max_wait_ms.",
    ),
    Option(
        "fetch_max_wait_ms",
        _BOTH,
        500,
        Whole(most=INT32),
        "How long brokers may delay a fetch response.",
        aliases=("fetch_wait_max_ms",),
    ),
    Option(
        "fetch_max_bytes",
        _BOTH,
        52428800,
        Whole(most=INT32),
        "The most that one fetch response should hold. A larger first record is returned all the same.",
    ),
    Option(
        "max_partition_fetch_bytes",
        _CONSUMER,
        1048576,
        Whole(most=INT32),
        "The most of one partition that a fetch response should hold. A larger first record is returned all the same, "
        "except by brokers before 0.10.1.",
        aliases=("fetch_message_max_bytes",),
    ),
    Option(
        "fetch_buffer_memory",
        _CONSUMER,
        104857600,
        Whole(least=1),
        "How many bytes of fetched records may wait for poll(); the consumer fetches no more while they exceed this.",
    ),
    Option(
        "max_decompressed_bytes",
        _BOTH,
        268435456,
        Whole(least=1),
        "A batch that is larger than this after decompression is refused as corrupt.",
    ),
    Option("check_crcs", _BOTH, True, Flag(), "Whether the checksum of each batch is checked."),
    Option(
        "skip_double_compressed_messages",
        _CONSUMER,
        False,
        Flag(),
        "Whether to skip messages that a faulty producer of 1.2.4 and before compressed twice, instead of "
        "returning the inner, still compressed set.",
    ),
    Option(
        "enable_incremental_fetch_sessions",
        _CONSUMER,
        True,
        Flag(),
        "Whether a fetch request names only the partitions that changed since the last one (KIP-227).",
        since="1.1",
    ),
    # Historical
    Option(
        "iterator_refetch_records",
        _CONSUMER,
        1,
        Whole(),
        "Set how early iteration fetched more records.",
        obsolete="the consumer always fetches in the background",
    ),
    Option(
        "legacy_iterator",
        _CONSUMER,
        False,
        Flag(),
        "Chose the iterator of 1.4.6 and before.",
        obsolete="there is one iterator",
    ),
    Option(
        "auto_commit_interval_messages",
        _CONSUMER,
        None,
        Whole(optional=True),
        "Committed after this number of messages.",
        obsolete="commit() may be called after any number of records",
    ),
    Option(
        "socket_timeout_ms",
        _CONSUMER,
        None,
        Number(optional=True),
        "Limited the time of each read from a socket.",
        obsolete="request_timeout_ms limits each request",
    ),
    Option(
        "refresh_leader_backoff_ms",
        _CONSUMER,
        None,
        Number(optional=True),
        "Was the pause before a metadata request was retried.",
        obsolete="retry_backoff_ms is",
    ),
)
