"""Share groups in commands: which groups they are, their start offsets, and a member that prints records."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kafka.cli.arguments import CommandError, UsageError, reason
from kafka.cli.connection import HASTE
from kafka.cli.output import complain
from kafka.cli.source import topics_of
from kafka.errors import UnsupportedVersionError
from kafka.structs import OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from kafka.admin import KafkaAdminClient, ShareGroupDescription, StreamsGroupDescription
    from kafka.cli.connection import Connection
    from kafka.cli.consume import Printer
    from kafka.share import KafkaShareConsumer, ShareRecord

#: A queue is empty when no record has come for this long, in seconds. A broker waits half a second for records.
_EMPTY_AFTER: Final = 1.5
_POLL_MS: Final = 500
_RECORDS: Final = 500
_G = TypeVar("_G", bound="ShareGroupDescription | StreamsGroupDescription")


# Administration…


def existing(describe: Callable[[list[str]], Mapping[str, _G]], names: Iterable[str]) -> dict[str, _G]:
    """Return the groups that are of a kind, given what describes that; none on brokers that have no such groups."""
    wanted = list(names)
    try:
        found = describe(wanted) if wanted else {}
    except UnsupportedVersionError:
        return {}
    return {name: group for name, group in found.items() if group.ok}


def start_offsets(admin: KafkaAdminClient, group: str) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return the start offsets of a share group, of the partitions that have one."""
    found = admin.list_share_group_offsets(group)[group]
    return {tp: OffsetAndMetadata(one.start_offset) for tp, one in found.items() if one.start_offset >= 0}


# A member…


def consume(arguments: Namespace, connection: Connection, printer: Printer) -> bool:
    """Print the records of a queue, and acknowledge each that is out; return whether some will be delivered again."""
    _check(arguments)
    known = connection.admin().list_topics()
    for topic in arguments.topics:
        if topic not in known:
            raise CommandError(f"topic {topic!r} does not exist")
    topics = topics_of(arguments, known)
    limit = min(_RECORDS, arguments.max_records or _RECORDS)
    consumer = connection.share_consumer(
        *topics,
        group_id=arguments.share,
        share_acknowledgement_mode="explicit",
        share_acquire_mode="record_limit" if arguments.max_records else "batch_optimized",
        max_poll_records=limit,
    )
    member = _Member(arguments, consumer, printer)
    consumer.set_acknowledgement_commit_callback(member.answered)
    try:
        member.run()
    except BaseException:
        consumer.commit(1000 * HASTE)
        raise
    consumer.commit()
    return member.repeats


def _check(arguments: Namespace) -> None:
    if arguments.group:
        raise UsageError("--share and --group exclude each other")
    if arguments.partition or arguments.begin or arguments.end:
        raise UsageError("--share excludes --partition, --from and --to: the group decides which records come")
    if arguments.filter_key or arguments.filter_value or arguments.filter_header:
        raise UsageError("--share excludes the filters: the records that they leave out would be lost")
    if arguments.ack == "release" and arguments.follow:
        raise UsageError("--ack release keeps the records until the end, and --follow has none")


class _Member:
    """Prints what it acquires, and acknowledges what is out."""

    def __init__(
        self, arguments: Namespace, consumer: KafkaShareConsumer[bytes | None, bytes | None], printer: Printer
    ) -> None:
        from kafka.share import AcknowledgeType

        self.repeats = False
        self._arguments = arguments
        self._consumer = consumer
        self._printer = printer
        # Records that are to stay in the queue are kept, so that they do not come again, and close() releases them.
        self._type = AcknowledgeType.RENEW if arguments.ack == "release" else AcknowledgeType[arguments.ack.upper()]

    def run(self) -> None:
        empty_since: float | None = None
        while not self._printer.full():
            found = self._consumer.poll(_POLL_MS)
            if found:
                empty_since = None
                for tp, rows in found.items():
                    if not self._printer.full():
                        self._show(tp, sorted(rows, key=lambda row: row.offset))
                if self._printer.full():
                    break
                self._consumer.commit()
            elif not self._arguments.follow and self._consumer.health()["partitions"]:
                now = time.monotonic()
                empty_since = now if empty_since is None else empty_since
                if now - empty_since >= _EMPTY_AFTER:
                    break

    def _show(self, tp: TopicPartition, rows: Sequence[ShareRecord[Any, Any]]) -> None:
        printed = self._printer.printed()
        printed.pop(tp, None)
        try:
            self._printer.write(rows)
        finally:
            behind = self._printer.printed().get(tp, -1)
            for row in rows:
                if row.offset < behind:
                    self._consumer.acknowledge(row, self._type)

    def answered(self, offsets: Mapping[TopicPartition, set[int]], error: Exception | None) -> None:
        """Say that records were printed and will be delivered again."""
        if error is not None:
            for tp, numbers in offsets.items():
                complain(
                    self._arguments,
                    f"{len(numbers)} records of {tp.topic}-{tp.partition} were printed and not acknowledged, and will "
                    f"be delivered again: {reason(error)}",
                )
            self.repeats = True
