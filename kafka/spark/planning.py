"""Planning of a batch: bounds become offsets, offsets become ranges, and lost records are reported.

Runs on the driver. `KafkaOffsetReader` alone asks the cluster, so that every rule here can be tried without one.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, TypeVar

from kafka.errors import IllegalStateError, KafkaError, UnknownTopicOrPartitionError
from kafka.spark.errors import (
    CROSSED_ADVICE,
    GROUP_ID_ADVICE,
    KafkaAvailableNowError,
    KafkaDataLossError,
    KafkaSparkOptionError,
)
from kafka.spark.offset_ranges import OffsetLimit, OffsetRange, group, split
from kafka.spark.offsets import EARLIEST, LATEST, Offsets, format_partitions, to_json
from kafka.spark.options import SourceOptions
from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from kafka.spark.offset_reader import KafkaOffsetReader

__all__ = [
    "DataLoss",
    "batch_ranges",
    "check_available",
    "find_bound",
    "stream_ranges",
    "tell_lost",
    "tasks",
]

log = logging.getLogger(__name__)

T = TypeVar("T")


class DataLoss:
    """Reports lost records: raises an error, or with failOnDataLoss=false logs what the query does instead."""

    def __init__(self, *, fail: bool, has_group_id: bool = False) -> None:
        self._fail = fail
        self._has_group_id = has_group_id

    @classmethod
    def of(cls, options: SourceOptions) -> DataLoss:
        """Return what tells of losses as the options say."""
        return cls(fail=options.fail_on_data_loss, has_group_id=options.has_group_id)

    def report(self, condition: str, reason: str, instead: str) -> None:
        """Report a loss; ``condition`` is Spark's name for it, ``instead`` how the query continues if it may."""
        if self._fail:
            raise KafkaDataLossError.because(condition, reason)
        log.warning("[KAFKA_DATA_LOSS.%s] %s failOnDataLoss is false: %s", condition, reason, instead)

    def deleted(self, partitions: Collection[TopicPartition]) -> None:
        """Tell of partitions that are not there any more."""
        reason = f"Partitions {format_partitions(partitions)} have been deleted."
        instead = f"continuing without {format_partitions(partitions)}"
        if self._has_group_id:
            self.report("PARTITIONS_DELETED_AND_GROUP_ID_CONFIG_PRESENT", f"{reason} {GROUP_ID_ADVICE}", instead)
        else:
            self.report("PARTITIONS_DELETED", reason, instead)


# Bounds.


def find_bound(source: KafkaOffsetReader, bound: OffsetLimit, options: SourceOptions, *, starting: bool) -> Offsets:
    """Return the offset of each partition at a bound."""
    if bound.everywhere is not None:
        return source.everywhere(bound.everywhere)
    partitions = source.partitions()
    if bound.timestamp is not None:
        return _at_times(source, dict.fromkeys(partitions, bound.timestamp), options, starting=starting)
    edge = "start" if starting else "end"
    if bound.timestamps:
        _check_assigned(
            bound.timestamps,
            partitions,
            f"[KAFKA_TIMESTAMP_OFFSET_DOES_NOT_MATCH_ASSIGNED] Partitions specified for Kafka timestamp based {edge} "
            "offsets don't match what are assigned. Maybe topic partitions are created or deleted while the query is "
            "running, or you didn't specify all the partitions.",
        )
        return _at_times(source, bound.timestamps, options, starting=starting)
    _check_assigned(
        bound.offsets,
        partitions,
        f"[KAFKA_START_OFFSET_DOES_NOT_MATCH_ASSIGNED] Partitions specified for Kafka {edge} offsets don't match what "
        "are assigned. Maybe topic partitions are created or deleted while the query is running. Use -1 for latest, "
        "-2 for earliest.",
    )
    edges = {tp: offset for tp, offset in bound.offsets.items() if offset < 0}
    return {**bound.offsets, **_whole(source.edges(edges), edges)}


def _check_assigned(given: Collection[TopicPartition], assigned: Collection[TopicPartition], sentence: str) -> None:
    if set(given) != set(assigned):
        raise KafkaSparkOptionError(
            f"{sentence} Specified: {format_partitions(given) or 'none'}. "
            f"Assigned: {format_partitions(assigned) or 'none'}."
        )


def _at_times(
    source: KafkaOffsetReader, wanted: Mapping[TopicPartition, int], options: SourceOptions, *, starting: bool
) -> Offsets:
    found = _whole(source.at_times(wanted), wanted)
    late = {tp: LATEST for tp in wanted if found[tp] is None}
    if late and starting and options.strict_timestamps:
        raise KafkaSparkOptionError(
            "No offset matched from request of topic-partition "
            + ", ".join(f"{format_partitions([tp])} and timestamp {wanted[tp]}" for tp in sorted(late))
            + ". To read partitions with later records only, set startingOffsetsByTimestampStrategy to latest."
        )
    return {**{tp: offset for tp, offset in found.items() if offset is not None}, **_whole(source.edges(late), late)}


def _whole(found: dict[TopicPartition, T], wanted: Collection[TopicPartition]) -> dict[TopicPartition, T]:
    """Return what was found; raise if it is not all that was wanted."""
    gone = set(wanted) - set(found)
    if gone:
        raise UnknownTopicOrPartitionError(f"the offsets of {format_partitions(gone)} cannot be found")
    return found


# Ranges.


def batch_ranges(source: KafkaOffsetReader, options: SourceOptions) -> list[OffsetRange]:
    """Return what a batch query reads."""
    _check_pair(options)
    start = find_bound(source, options.start, options, starting=True)
    end = find_bound(source, options.end, options, starting=False)
    if set(start) != set(end):
        raise IllegalStateError(
            f"different topic partitions for starting offsets topics[{format_partitions(start)}] and ending offsets "
            f"topics[{format_partitions(end)}]"
        )
    for tp in sorted(end):
        if start[tp] > end[tp]:
            raise _crossed("RESOLVED", tp, start[tp], end[tp])
    return [OffsetRange(tp.topic, tp.partition, start[tp], end[tp]) for tp in sorted(end)]


def _check_pair(options: SourceOptions) -> None:
    """If both edges name partitions, they must name the same ones, and each start must not exceed its end."""
    for start, end, what in (
        (options.start.offsets, options.end.offsets, "offset"),
        (options.start.timestamps, options.end.timestamps, "timestamp"),
    ):
        if not start or not end:
            continue
        if set(start) != set(end):
            raise KafkaSparkOptionError(
                "[MISMATCHED_TOPIC_PARTITIONS_BETWEEN_START_OFFSET_AND_END_OFFSET] The specified start offset and end "
                "offset should have the same topic-partitions. Topic-partitions for start offset: "
                f"{format_partitions(start)}, topic-partitions for end offset: {format_partitions(end)}."
            )
        for tp, first in start.items():
            if end[tp] >= 0 and first > end[tp]:
                raise _crossed("UNRESOLVED", tp, first, end[tp], what)


def _crossed(condition: str, tp: TopicPartition, start: int, end: int, what: str = "offset") -> KafkaSparkOptionError:
    given, resolved, advice = ("specified", "", "")
    if condition == "RESOLVED":
        given, resolved, advice = "resolved", "resolved ", f" {CROSSED_ADVICE}"
    return KafkaSparkOptionError(
        f"[{condition}_START_OFFSET_GREATER_THAN_END_OFFSET] The {given} start {what} {start} is greater than the "
        f"{resolved}end {what} {end} for topic {tp.topic} partition {tp.partition}.{advice}"
    )


def stream_ranges(
    source: KafkaOffsetReader, start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int], loss: DataLoss
) -> list[OffsetRange]:
    """Return what a micro-batch reads; partitions that are new in it begin at their earliest offset."""
    new = set(end) - set(start)
    earliest = source.edges(dict.fromkeys(new, EARLIEST)) if new else {}
    gone = new - set(earliest)
    if gone:
        loss.report(
            "INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS",
            f"Cannot find initial offsets for partitions {format_partitions(gone)}. They may have been deleted.",
            f"continuing without {format_partitions(gone)}",
        )
    for tp, offset in sorted(earliest.items()):
        if offset:
            loss.report(
                "ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO",
                f"Added partition {format_partitions([tp])} starts from {offset} instead of 0.",
                f"skipped {offset:,} offsets of {format_partitions([tp])}, starting at {offset}",
            )
    deleted = set(start) - set(end)
    if deleted:
        loss.deleted(deleted)
    begin = {**start, **earliest}
    ranges = []
    for tp in sorted(set(end) & set(begin)):
        if end[tp] < begin[tp]:
            loss.report(
                "PARTITION_OFFSET_CHANGED",
                f"Partition {format_partitions([tp])} offset was changed from {begin[tp]} to {end[tp]}. "
                "This could be either 1) a user error that the start offset is set beyond available offset when "
                "starting query, or 2) the kafka topic-partition is deleted and re-created.",
                f"this batch reads nothing of {format_partitions([tp])}, the next one continues at {end[tp]}",
            )
        ranges.append(OffsetRange(tp.topic, tp.partition, begin[tp], end[tp]))
    return ranges


def tell_lost(source: KafkaOffsetReader, ranges: Iterable[OffsetRange]) -> None:
    """Log from the driver what a batch will skip with failOnDataLoss=false, as the logs of workers may be elsewhere.

    The ranges stay as they are: a batch that is done again must have the same tasks, whatever was deleted meanwhile.
    """
    wanted = [each for each in ranges if each.size > 0]
    try:
        earliest = source.edges(dict.fromkeys((each.tp for each in wanted), EARLIEST)) if wanted else {}
    except KafkaError as error:  # the tasks will find out
        log.info("Whether records of the batch were deleted is not known: %s", error)
        return
    for each in wanted:
        first = earliest.get(each.tp, each.start)
        if first > each.start:
            partition = format_partitions([each.tp])
            log.warning(
                "[KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE] Records of this batch were deleted before it read them. "
                "failOnDataLoss is false: skipped %s offsets of %s, continuing at %s",
                f"{min(first, each.end) - each.start:,}",
                partition,
                first,
            )


def check_available(source: KafkaOffsetReader, target: Offsets, end: Offsets) -> None:
    """Check the end of a batch with the trigger available-now: it is within the target, and is there.

    Lost records are an error here, for every value of failOnDataLoss: a query with the trigger available-now would
    otherwise silently end before its target.
    """
    if set(target) != set(end):
        raise KafkaAvailableNowError.because(
            "MISMATCHED_TOPIC_PARTITIONS_BETWEEN_END_OFFSET_AND_PREFETCHED",
            "Kafka data source in Trigger.AvailableNow should provide the same topic partitions in pre-fetched offset "
            "to end offset for each microbatch.",
            f"topic-partitions for pre-fetched offset: {format_partitions(target)}, "
            f"topic-partitions for end offset: {format_partitions(end)}.",
        )
    if any(end[tp] > target[tp] for tp in end):
        raise KafkaAvailableNowError.because(
            "END_OFFSET_HAS_GREATER_OFFSET_FOR_TOPIC_PARTITION_THAN_PREFETCHED",
            "For Kafka data source with Trigger.AvailableNow, end offset should have lower or equal offset per each "
            "topic partition than pre-fetched offset.",
            f"pre-fetched offset: {to_json(target)}, end offset: {to_json(end)}.",
        )
    latest = source.latest(end)
    if not set(end) <= set(latest):
        raise KafkaAvailableNowError.because(
            "LOST_TOPIC_PARTITIONS_IN_END_OFFSET_WITH_TRIGGER_AVAILABLENOW",
            "Some of partitions in Kafka topic(s) have been lost during running query with Trigger.AvailableNow.",
            f"topic-partitions for latest offset: {format_partitions(latest)}, "
            f"topic-partitions for end offset: {format_partitions(end)}",
        )
    if any(end[tp] > latest[tp] for tp in end):
        raise KafkaAvailableNowError.because(
            "END_OFFSET_HAS_GREATER_OFFSET_FOR_TOPIC_PARTITION_THAN_LATEST_WITH_TRIGGER_AVAILABLENOW",
            "Some of partitions in Kafka topic(s) report available offset which is less than end offset during running "
            "query with Trigger.AvailableNow.",
            f"latest offset: {to_json(latest)}, end offset: {to_json(end)}",
        )


def tasks(ranges: Iterable[OffsetRange], options: SourceOptions) -> list[tuple[OffsetRange, ...]]:
    """Return the ranges of each task; a pure function of the ranges and the options."""
    parts = split(ranges, min_partitions=options.min_partitions, max_records=options.max_records)
    if options.min_partitions is not None or options.max_records is not None:
        return [(part,) for part in parts]
    return group(parts, options.group_rows)
