"""Where commands read records from: partitions between two places, alone or as a member of a group.

One loop serves ``consume``, ``tail``, ``topics copy`` and ``dump``, ``perf`` and the mode of kcat.
"""

from __future__ import annotations

import re
import time
from argparse import Namespace
from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from kafka.cli.arguments import CommandError, UsageError, reason
from kafka.cli.connection import HASTE, Connection
from kafka.cli.edges import edges
from kafka.cli.output import complain, report_failed
from kafka.cli.ranges import Places, resolve
from kafka.errors import CommitFailedError, KafkaError, KafkaTimeoutError
from kafka.structs import MemberState, OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from kafka.consumer import ConsumerRebalanceListener, KafkaConsumer
    from kafka.record import ConsumerRecord

_OFFSET: Final = itemgetter(2)
_COMMIT_EVERY: Final = 1.0
_POLL_MS: Final = 500
_LEADER_MS: Final = 5000
_RECORDS: Final = 5000


def topics_of(arguments: Namespace, known: Collection[str]) -> list[str]:
    """Return the topics that a command line names, and the known ones that --pattern chooses."""
    topics: list[str] = list(dict.fromkeys(arguments.topics))
    if arguments.pattern:
        try:
            pattern = re.compile(arguments.pattern)
        except re.error as error:
            raise UsageError(f"--pattern {arguments.pattern!r}: {error}") from None
        topics += sorted(name for name in known if pattern.fullmatch(name) and name not in topics)
        if not topics:
            raise UsageError(f"no topic matches {arguments.pattern!r}")
    return topics


def partitions_of(consumer: KafkaConsumer, topics: Sequence[str], numbers: set[int] | None) -> list[TopicPartition]:
    """Return the partitions of topics; an unknown topic or partition is an error."""
    found = []
    for topic in topics:
        known = consumer.partitions_for_topic(topic)
        if known is None:
            hidden = "" if consumer.config["security_protocol"] == "PLAINTEXT" else ", or this user may not describe it"
            raise CommandError(f"topic {topic!r} does not exist{hidden}")
        if numbers is not None and numbers - known:
            missing = min(numbers - known)
            raise CommandError(f"topic {topic!r} has no partition {missing}; it has {len(known)} partitions")
        found += [TopicPartition(topic, number) for number in sorted(known if numbers is None else numbers)]
    return found


def led(
    arguments: Namespace, connection: Connection, consumer: KafkaConsumer, partitions: Sequence[TopicPartition]
) -> list[TopicPartition]:
    """Return the partitions whose leaders answer soon; the others are named."""
    try:
        consumer.end_offsets(partitions, timeout_ms=_LEADER_MS)
    except KafkaTimeoutError:
        found = edges(connection.admin(), partitions)
        report_failed(arguments, found)
        return [tp for tp in partitions if found[tp].error is None]
    return list(partitions)


def bounds(
    arguments: Namespace, consumer: KafkaConsumer, partitions: Sequence[TopicPartition]
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    """Return where to begin and where to end in each partition, by --from and --to."""
    first = Places(arguments.begin or "beginning")
    begin = {tp: place for tp in partitions if (place := first.of(tp.partition)) is not None}
    if any(place.kind == "stored" for place in begin.values()):
        raise UsageError("the place stored needs --group")
    if not begin:
        raise UsageError(f"--from {arguments.begin} names no partition of the topic")
    starts = resolve(consumer, begin, say=lambda text: complain(arguments, f"--from: {text}"))
    return starts, ends_of(arguments, consumer, list(begin), starts)


def ends_of(
    arguments: Namespace,
    consumer: KafkaConsumer,
    partitions: Sequence[TopicPartition],
    starts: Mapping[TopicPartition, int] | None = None,
) -> dict[TopicPartition, int]:
    """Return where to end in each partition, by --to; +N counts from the starts."""
    last = Places(arguments.end or "end")
    finish = {tp: place for tp in partitions if (place := last.of(tp.partition)) is not None}
    if any(place.kind == "stored" for place in finish.values()):
        raise UsageError("--to: the place stored is where a group begins")
    ends = resolve(consumer, finish, base=starts, say=lambda text: complain(arguments, f"--to: {text}"))
    others = [tp for tp in partitions if tp not in finish]
    return {**(consumer.end_offsets(others) if others else {}), **ends}


class Source:
    """Reads partitions from their starts to their ends; without ends it waits for more records."""

    def __init__(
        self,
        consumer: KafkaConsumer,
        starts: Mapping[TopicPartition, int],
        ends: Mapping[TopicPartition, int] | None = None,
    ) -> None:
        self.consumer = consumer
        self._ends = ends
        self._done: set[TopicPartition] = set()
        chosen = [tp for tp in starts if ends is None or starts[tp] < ends.get(tp, 0)]
        self.total = None if ends is None else sum(ends[tp] - starts[tp] for tp in chosen)
        """How many offsets there are to read, None if there is no end."""
        consumer.assign(chosen)
        for tp in chosen:
            consumer.seek(tp, starts[tp])
        if chosen:  # which a consumer that read them before may have paused at their ends
            consumer.resume(*chosen)

    def run(self, write: Callable[[Sequence[ConsumerRecord]], object], full: Callable[[], bool] | None = None) -> None:
        """Hand over all records, of one partition at a time, until the ends or until it is full."""
        ends = self._ends
        while not (full is not None and full()) and not self._at_end():
            for tp, found in self.consumer.poll(_POLL_MS, max_records=_RECORDS).items():
                records: Sequence[ConsumerRecord] = found
                end = None if ends is None else ends.get(tp, 0)
                if end is not None and records[-1][2] >= end:
                    records = records[: bisect_left(records, end, key=_OFFSET)]
                if records:
                    write(records)
                if full is not None and full():
                    break
            self._polled()

    def _at_end(self) -> bool:
        """Whether all partitions have been read to their ends; such partitions are read no further."""
        if self._ends is None:
            return False
        consumer = self.consumer
        assigned = consumer.assignment()
        for tp in assigned - self._done:
            if tp not in self._ends or consumer.position(tp) >= self._ends[tp]:  # without an end: no leader
                self._done.add(tp)
                consumer.pause(tp)
        return assigned <= self._done and (bool(assigned) or self._may_be_empty())

    def _may_be_empty(self) -> bool:
        return True

    def _polled(self) -> None:
        pass


class GroupSource(Source):
    """Reads as a member of a group; commits the offsets of records that are out, and of no others."""

    def __init__(
        self,
        arguments: Namespace,
        consumer: KafkaConsumer,
        topics: Sequence[str],
        ends: Mapping[TopicPartition, int] | None,
        printed: Callable[[], dict[TopicPartition, int]],
        start: Callable[[Collection[TopicPartition]], Mapping[TopicPartition, int]],
        tell: Callable[[str, Collection[TopicPartition]], object] = lambda _what, _partitions: None,
    ) -> None:
        """Join a group.

        `printed` returns the offsets behind the records that are out, `start` the offsets to begin at in partitions
        that this member gets for the first time, and `tell` is notified of rebalances.
        """
        self.consumer = consumer
        self.total = None
        self.repeats = False
        """Whether records were printed whose offsets are not committed."""
        self._arguments = arguments
        self._ends = ends
        self._done = set()
        self._printed = printed
        self._committed: dict[TopicPartition, int] = {}
        self._next_commit = time.monotonic() + _COMMIT_EVERY
        consumer.subscribe(topics, listener=_listener(self, start, tell))

    def run(self, write: Callable[[Sequence[ConsumerRecord]], object], full: Callable[[], bool] | None = None) -> None:
        """Hand over records as `Source` does, and commit; also when Ctrl-C or an error of the output ends it."""
        try:
            super().run(write, full)
        except BaseException:
            try:
                self.commit(1000 * HASTE)
            except KafkaError as error:
                self.give_up(self._uncommitted(), error)
            raise
        self.commit()

    def _may_be_empty(self) -> bool:
        """Whether other members have all partitions."""
        return self.consumer.group_metadata().state == MemberState.STABLE

    def _polled(self) -> None:
        now = time.monotonic()
        if now >= self._next_commit:
            self._next_commit = now + _COMMIT_EVERY
            with suppress(KafkaTimeoutError):  # the brokers are away: the next commit covers the same records
                self.commit()

    def _uncommitted(self) -> dict[TopicPartition, int]:
        return {tp: offset for tp, offset in self._printed().items() if self._committed.get(tp) != offset}

    def commit(self, timeout_ms: float | None = None) -> None:
        """Commit the offsets behind the records that are out."""
        offsets = self._uncommitted()
        if not offsets:
            return
        try:
            self.consumer.commit({tp: OffsetAndMetadata(offset) for tp, offset in offsets.items()}, timeout_ms)
        except CommitFailedError as error:
            self.give_up(offsets, error)
        else:
            self._committed.update(offsets)

    def give_up(self, partitions: Collection[TopicPartition], why: object) -> None:
        """Say that the last records of partitions were printed and not committed, so that they are printed again."""
        gone = self._uncommitted().keys() & set(partitions)
        if gone:
            names = ", ".join(f"{tp.topic}-{tp.partition}" for tp in sorted(gone))
            lost = f"the last records of {names} are not committed and will be read again"
            complain(self._arguments, f"{lost}: {reason(why)}")
            self.repeats = True
        self.forget(partitions)

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        """Begin again with partitions that this member no longer has."""
        self._done -= set(partitions)
        for tp in partitions:
            self._printed().pop(tp, None)
            self._committed.pop(tp, None)


def _listener(
    source: GroupSource,
    start: Callable[[Collection[TopicPartition]], Mapping[TopicPartition, int]],
    tell: Callable[[str, Collection[TopicPartition]], object],
) -> ConsumerRebalanceListener:
    from kafka.consumer import ConsumerRebalanceListener

    begun: set[TopicPartition] = set()

    class Listener(ConsumerRebalanceListener):
        def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
            tell("assigned", assigned)
            new = sorted(set(assigned) - begun)
            begun.update(assigned)
            for tp, offset in start(new).items():
                source.consumer.seek(tp, offset)

        def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
            try:
                source.commit()
            except KafkaError as error:
                source.give_up(revoked, error)
            source.forget(revoked)
            tell("revoked", revoked)

        def on_partitions_lost(self, lost: Collection[TopicPartition]) -> None:
            source.give_up(lost, "the group gave them to another member")
            tell("revoked", lost)

    return Listener()
