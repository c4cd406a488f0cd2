"""Offsets of a group in a copy of its topics: the offset there of the record that the group would read next.

A copy that ``topics copy`` made keeps partitions, order, times, keys, values and headers of records, but not their
offsets: the copy begins elsewhere, has markers of transactions, or other records in between. The record is looked up by
its time, and then by its content; among equal records of one time it is the one of the same number.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from kafka.cli.arguments import CommandError, pairs
from kafka.cli.output import complain
from kafka.structs import OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from kafka.cli.connection import Connection
    from kafka.consumer import KafkaConsumer
    from kafka.record import ConsumerRecord

_LOG_APPEND_TIME: Final = 1

Commits = dict[TopicPartition, OffsetAndMetadata]


def translated(arguments: Namespace, connection: Connection, target: Connection, commits: Commits) -> Commits:
    """Return the offsets of a group in the copies of its topics; a line says where a record is not in the copy."""
    renamed = pairs(arguments.rename, "--rename")
    source, copy = (one.reader(isolation_level="read_committed") for one in (connection, target))
    found = {}
    for tp, place in sorted(commits.items()):
        there = TopicPartition(renamed.get(tp.topic, tp.topic), tp.partition)
        if there.partition not in (copy.partitions_for_topic(there.topic) or ()):
            raise CommandError(
                f"{there.topic}-{there.partition}, the copy of {tp.topic}-{tp.partition}, does not exist"
            )
        offset, why = _translated(source, copy, tp, there, place.offset)
        if why:
            complain(arguments, f"{tp.topic}-{tp.partition}: {why}: the group continues at {offset}")
        found[there] = OffsetAndMetadata(offset, place.metadata, -1)
    return found


def _translated(
    source: KafkaConsumer, copy: KafkaConsumer, tp: TopicPartition, there: TopicPartition, offset: int
) -> tuple[int, str]:
    """Return the offset in the copy, and why it is not that of the same record."""
    end = copy.end_offsets([there])[there]
    mark = next(_records(source, tp, offset), None)
    behind, missing = 0, ""
    if mark is not None:
        missing = f"the record at offset {mark.offset} is not copied yet"
    else:  # the group has read everything: it continues behind the last record
        mark, behind = _last_before(source, tp, offset), 1
    if mark is None:
        return end, ""
    time = max(0, mark.timestamp or 0)
    first, begin = source.offsets_for_times({tp: time})[tp], copy.offsets_for_times({there: time})[there]
    if begin is None or first is None:
        return end, missing
    before = sum(_content(one) == _content(mark) for one in _records(source, tp, first.offset, mark.offset))
    same: list[int] = []
    others: list[int] = []
    for record in _records(copy, there, begin.offset):
        if record.timestamp_type == _LOG_APPEND_TIME:
            raise CommandError(
                f"topic {there.topic!r} has the times at which records arrived (message.timestamp.type=LogAppendTime), "
                "which the original has not: its offsets cannot be translated"
            )
        if _content(record) == _content(mark):
            same.append(record.offset)
            if len(same) > before:
                return record.offset + behind, ""
        elif not others:
            others.append(record.offset)
    if not same and not others:  # what begins there is the marker of a transaction
        return end, missing
    # Rather read records again than leave one out.
    return min(same[:1] + others), f"the record at offset {mark.offset} is not in {there.topic!r}"


def _content(record: ConsumerRecord) -> tuple[object, ...]:
    return record.timestamp, record.key, record.value, list(record.headers)


def _records(
    consumer: KafkaConsumer, tp: TopicPartition, start: int, end: int | None = None
) -> Iterator[ConsumerRecord]:
    """Yield the records of a partition from an offset on, up to `end` or its present end."""
    first, last = consumer.beginning_offsets([tp])[tp], consumer.end_offsets([tp])[tp]
    last = last if end is None else min(end, last)
    consumer.assign([tp])
    consumer.seek(tp, max(start, first))
    while consumer.position(tp) < last:
        for record in consumer.poll(timeout_ms=1000).get(tp, ()):
            if record.offset >= last:
                return
            yield record


def _last_before(consumer: KafkaConsumer, tp: TopicPartition, offset: int) -> ConsumerRecord | None:
    """Return the last record before an offset; compaction and transactions leave gaps."""
    first = consumer.beginning_offsets([tp])[tp]
    step, found = 1, None
    while found is None and offset - step // 2 > first:
        for found in _records(consumer, tp, offset - step, offset):  # noqa: B007 - the last one is wanted
            pass
        step *= 2
    return found
