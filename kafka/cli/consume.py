"""``purekafka consume`` and ``purekafka tail``: print records, from any place to any place, alone or in a group."""

from __future__ import annotations

import re
import sys
import time
from bisect import bisect_left
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from kafka.cli.arguments import CommandError, UsageError, count
from kafka.cli.connection import Connection, Interrupts
from kafka.cli.grammar import Argument, Verb
from kafka.cli.output import Progress, complain
from kafka.cli.ranges import HELP, Places, parse_partitions, resolve
from kafka.cli.record_types import HELP as TYPES_HELP
from kafka.structs import MemberState

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Collection, Mapping, Sequence

    from kafka.cli.record_format import Print
    from kafka.consumer import KafkaConsumer
    from kafka.record import ConsumerRecord
    from kafka.structs import TopicPartition

__all__ = ["COMMAND", "Printer", "Source", "partitions_of", "record_printer"]

_OFFSET: Final = itemgetter(2)
_COMMIT_EVERY: Final = 1.0
_POLL_MS: Final = 500
_RECORDS: Final = 5000
_LAYOUTS: Final = ("value", "json", "jsonl", "console")


# Printing…


def record_printer(arguments: Namespace, connection: Connection) -> Print:
    """Return the function that prints a record in the format of the command line."""
    from kafka.cli.record_format import compile_format, console_layout, record_json
    from kafka.cli.record_types import decoder, key_decoder

    key, value = key_decoder(arguments.key_type, connection), decoder(arguments.value_type, connection)
    header = decoder(arguments.header_type, connection)
    layout = arguments.format
    null = arguments.null.encode()
    if layout == "value":
        text = "%k" + arguments.key_delimiter + "%s\\n" if arguments.key_delimiter else "%s\\n"
        return compile_format(text, key=key, value=value, header=header, null=null)
    if layout in {"json", "jsonl"}:
        return record_json(key, value, header)
    if layout == "console":
        return console_layout
    if "%" not in layout:
        raise UsageError(
            f"--format takes {', '.join(_LAYOUTS)}, or a format with tokens such as '%k %s\\n', not {layout!r}"
        )
    return compile_format(layout, key=key, value=value, header=header, null=null)


class Printer:
    """Writes records to standard output, a part of a batch at once; counts what it wrote."""

    def __init__(self, arguments: Namespace, show: Print, chosen: Callable[[ConsumerRecord], bool] | None) -> None:
        self._arguments = arguments
        self._show = show
        self._chosen = chosen
        self._left: float = float("inf") if arguments.max_records is None else arguments.max_records
        self._out = sys.stdout.buffer
        self.progress = Progress(arguments, "consumed")
        self.undecodable = 0
        sys.stdout.flush()

    @property
    def full(self) -> bool:
        """Whether as many records were printed as --max-records asks for."""
        return self._left <= 0

    def write(self, records: Sequence[ConsumerRecord]) -> int | None:
        """Print records of a partition; return the offset behind the last one that was dealt with."""
        taken: Sequence[ConsumerRecord] = records
        if self._chosen is not None:
            taken = list(filter(self._chosen, records))
        behind = records[-1][2] + 1 if records else None
        if len(taken) >= self._left:
            taken = taken[: int(self._left)]
            behind = taken[-1][2] + 1 if taken else None
        try:
            text = b"".join(map(self._show, taken))
        except ValueError:
            text = b"".join(map(self._shown, taken))
        self._out.write(text)
        self._out.flush()
        self._left -= len(taken)
        self.progress.add(len(taken), len(text))
        return behind

    def _shown(self, record: ConsumerRecord) -> bytes:
        """Print a record, or the error and its bytes if it is not of the type that the user named."""
        from kafka.cli.record_format import record_json

        try:
            return self._show(record)
        except ValueError as error:
            self.undecodable += 1
            place = f"{record.topic}-{record.partition} offset {record.offset}"
            complain(self._arguments, f"{place} cannot be decoded: {error}")
            return record_json()(record)


def _filter(arguments: Namespace) -> Callable[[ConsumerRecord], bool] | None:
    """Return the function that chooses records by key, value and headers; None if all are chosen."""
    from fnmatch import translate

    from kafka.cli.record_types import INTERNAL, is_of_internal_type

    tests: list[Callable[[ConsumerRecord], bool]] = []

    def matches(field: int, pattern: str) -> Callable[[ConsumerRecord], bool]:
        match: Callable[[Any], object] = re.compile(translate(pattern).encode(), re.DOTALL).match
        return lambda r: r[field] is not None and match(r[field]) is not None

    def has(name: str, data: bytes | None) -> Callable[[ConsumerRecord], bool]:
        return lambda r: any(one == name and (data is None or value == data) for one, value in r[10])

    for pattern, field in ((arguments.filter_key, 5), (arguments.filter_value, 6)):
        if pattern:
            tests.append(matches(field, pattern))
    tests += [is_of_internal_type(name) for name in {arguments.key_type, arguments.value_type} & INTERNAL.keys()]
    for word in arguments.filter_header:
        name, colon, wanted = word.partition(":")
        tests.append(has(name, wanted.encode() if colon else None))
    if not tests:
        return None
    return lambda record: all(test(record) for test in tests)


# Reading…


def partitions_of(consumer: KafkaConsumer, topics: Sequence[str], numbers: set[int] | None) -> list[TopicPartition]:
    """Return the partitions of topics; an unknown topic or partition is an error."""
    from kafka.structs import TopicPartition

    found = []
    for topic in topics:
        known = consumer.partitions_for_topic(topic)
        if known is None:
            raise CommandError(f"topic {topic!r} does not exist")
        if numbers is not None and numbers - known:
            missing = min(numbers - known)
            raise CommandError(f"topic {topic!r} has no partition {missing}; it has {len(known)} partitions")
        found += [TopicPartition(topic, number) for number in sorted(known if numbers is None else numbers)]
    return found


class Source:
    """Reads partitions from their starts to their ends, or on and on; alone, or as a member of a group."""

    def __init__(
        self, consumer: KafkaConsumer, ends: Mapping[TopicPartition, int] | None, *, in_group: bool = False
    ) -> None:
        self.consumer = consumer
        self._in_group = in_group
        self._ends = ends
        """Where reading ends, fixed before it begins; None to follow."""
        self._interrupts = Interrupts()
        self._done: set[TopicPartition] = set()
        self._printed: dict[TopicPartition, int] = {}
        self._committed = time.monotonic()

    def run(
        self, write: Callable[[Sequence[ConsumerRecord]], int | None], full: Callable[[], bool] = lambda: False
    ) -> None:
        """Hand all records over, up to the ends; in a group, commit the offsets of the records that were written."""
        try:
            with self._interrupts:
                self._read(write, full)
        finally:
            if self._in_group and self._printed:
                self._commit()

    def _read(self, write: Callable[[Sequence[ConsumerRecord]], int | None], full: Callable[[], bool]) -> None:
        consumer, ends = self.consumer, self._ends
        while not full() and not self._at_end():
            for tp, found in consumer.poll(_POLL_MS, max_records=_RECORDS).items():
                records: Sequence[ConsumerRecord] = found
                end = None if ends is None else ends.get(tp, 0)
                if end is not None and records[-1][2] >= end:
                    records = records[: bisect_left(records, end, key=_OFFSET)]
                if records:
                    with self._interrupts.held():
                        behind = write(records)
                        if behind is not None:
                            self._printed[tp] = behind
                if full():
                    break
            if self._in_group and self._printed and time.monotonic() - self._committed > _COMMIT_EVERY:
                self._commit()

    def _at_end(self) -> bool:
        """Whether all partitions have been read to their ends; such partitions are read no further."""
        if self._ends is None:
            return False
        consumer = self.consumer
        assigned = consumer.assignment()
        for tp in assigned - self._done:
            if consumer.position(tp) >= self._ends.get(tp, 0):
                self._done.add(tp)
                consumer.pause(tp)
        if not assigned:  # other members may have all partitions
            return self._in_group and consumer.group_metadata().state == MemberState.STABLE
        return assigned <= self._done

    def before_loss(self, revoked: set[TopicPartition]) -> None:
        """Commit before a rebalance takes partitions away."""
        self._done -= revoked
        if self._printed:
            self._commit()

    def _commit(self) -> None:
        from kafka.structs import OffsetAndMetadata

        mine = self.consumer.assignment()
        offsets = {tp: OffsetAndMetadata(offset) for tp, offset in self._printed.items() if tp in mine}
        if offsets:
            self.consumer.commit(offsets)
        self._printed.clear()
        self._committed = time.monotonic()


def _run(arguments: Namespace) -> int:
    if not arguments.topics and not arguments.pattern:
        raise UsageError("name a topic, or give --pattern")
    with Connection(arguments) as connection:
        printer = Printer(arguments, record_printer(arguments, connection), _filter(arguments))
        try:
            if arguments.group:
                _consume_in_group(arguments, connection, printer)
            else:
                _consume_alone(arguments, connection, printer)
        except KeyboardInterrupt:
            printer.progress.end(always=True)
            raise
        printer.progress.end()
    if printer.undecodable:
        complain(arguments, f"{printer.undecodable} records could not be decoded")
        if arguments.strict:
            return 1
    return 3 if arguments.fail_if_empty and not printer.progress.records else 0


def _consumer(arguments: Namespace, connection: Connection, **configs: Any) -> KafkaConsumer:
    if arguments.read_committed:
        configs["isolation_level"] = "read_committed"
    return connection.consumer(enable_auto_commit=False, allow_auto_create_topics=False, **configs)


def _topics(arguments: Namespace, consumer: KafkaConsumer) -> list[str]:
    topics: list[str] = list(dict.fromkeys(arguments.topics))
    if arguments.pattern:
        try:
            pattern = re.compile(arguments.pattern)
        except re.error as error:
            raise UsageError(f"--pattern {arguments.pattern!r}: {error}") from None
        topics += sorted(name for name in consumer.topics() if pattern.fullmatch(name) and name not in topics)
        if not topics:
            raise UsageError(f"no topic matches {arguments.pattern!r}")
    return topics


def _consume_alone(arguments: Namespace, connection: Connection, printer: Printer) -> None:
    consumer = _consumer(arguments, connection, group_id=None, auto_offset_reset="earliest")
    topics = _topics(arguments, consumer)
    partitions = partitions_of(consumer, topics, parse_partitions(arguments.partition))
    starts, ends = bounds(arguments, consumer, partitions)
    if getattr(arguments, "last", None) is not None:
        _print_last(arguments, consumer, printer, starts)
        starts = ends
        if not arguments.follow:
            return
    limits = None if arguments.follow and not arguments.end else ends
    chosen = list(starts) if limits is None else [tp for tp in starts if starts[tp] < limits[tp]]
    if not chosen:
        return
    consumer.assign(chosen)
    for tp in chosen:
        consumer.seek(tp, starts[tp])
    if limits is not None:
        printer.progress.total = sum(limits[tp] - starts[tp] for tp in chosen)
    Source(consumer, limits).run(printer.write, lambda: printer.full)


def bounds(
    arguments: Namespace, consumer: KafkaConsumer, partitions: Sequence[TopicPartition]
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    """Return where to begin and where to end in each partition, by --from and --to."""
    first, last = Places(arguments.begin or "beginning"), Places(arguments.end or "end")
    places = [place for tp in partitions for place in (first.of(tp.partition), last.of(tp.partition)) if place]
    if any(place.kind == "stored" for place in places):
        raise UsageError("the place stored needs --group")
    begin = {tp: place for tp in partitions if (place := first.of(tp.partition)) is not None}
    if not begin:
        raise UsageError(f"--from {arguments.begin} names no partition of the topic")
    starts = resolve(consumer, begin)
    finish = {tp: place for tp in begin if (place := last.of(tp.partition)) is not None}
    ends = resolve(consumer, finish, base=starts)
    if len(finish) < len(begin):
        ends = {**consumer.end_offsets([tp for tp in begin if tp not in finish]), **ends}
    return starts, ends


def _print_last(
    arguments: Namespace, consumer: KafkaConsumer, printer: Printer, starts: Mapping[TopicPartition, int]
) -> None:
    """Print the last records of all partitions together, in the order of their times."""
    ends = consumer.end_offsets(starts)
    chosen = [tp for tp in starts if starts[tp] < ends[tp]]
    if not chosen or not arguments.last:
        return
    records: list[ConsumerRecord] = []
    consumer.assign(chosen)
    for tp in chosen:
        consumer.seek(tp, starts[tp])

    def keep(found: Sequence[ConsumerRecord]) -> None:
        records.extend(found)

    Source(consumer, ends).run(keep)
    records.sort(key=lambda r: (r.timestamp or 0, r.topic, r.partition, r.offset))
    last = records[-arguments.last :]
    for record in last:
        printer.write([record])


def _consume_in_group(arguments: Namespace, connection: Connection, printer: Printer) -> None:
    from kafka.consumer import ConsumerRebalanceListener

    if arguments.partition:
        raise UsageError("--partition and --group exclude each other: the group assigns the partitions")
    places = Places(arguments.begin or "stored")
    consumer = _consumer(arguments, connection, group_id=arguments.group, auto_offset_reset="earliest")
    topics = _topics(arguments, consumer)
    partitions = partitions_of(consumer, topics, None)
    ends = None
    if not arguments.follow or arguments.end:
        last = Places(arguments.end or "end")
        finish = {tp: place for tp in partitions if (place := last.of(tp.partition)) is not None}
        ends = {**consumer.end_offsets(partitions), **resolve(consumer, finish)}
    begun: set[TopicPartition] = set()
    source = Source(consumer, ends, in_group=True)

    class Start(ConsumerRebalanceListener):
        """Goes to the places of --from in partitions that this member gets for the first time."""

        def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
            new = {
                tp: place
                for tp in set(assigned) - begun
                if (place := places.of(tp.partition)) is not None and place.kind != "stored"
            }
            begun.update(assigned)
            for tp, offset in resolve(consumer, new).items() if new else ():
                consumer.seek(tp, offset)

        def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
            source.before_loss(set(revoked))

    consumer.subscribe(topics, listener=Start())
    source.run(printer.write, lambda: printer.full)


# The words…

_SHARED: Final = (
    Argument("topics", metavar="TOPIC", nargs="*", complete="topic", help="the topics to read"),
    Argument("--pattern", metavar="REGEX", help="read the topics whose whole names match, as of now"),
    Argument(
        "-p",
        "--partition",
        action="append",
        default=[],
        metavar="N[,N-M]",
        help="only these partitions; may be repeated",
    ),
    Argument(
        "-f",
        "--format",
        default="value",
        metavar="FORMAT",
        help="value, jsonl, console, or a format with %%-tokens of kcat and rpk, such as '%%T %%k %%s\\n' (value)",
    ),
    Argument(
        "-K",
        "--key-delimiter",
        default="",
        metavar="TEXT",
        help="print the key too, with this text behind it",
    ),
    Argument("--null", default="", metavar="TEXT", help="what to print for a key or value that is null (nothing)"),
    Argument(
        "--key-type",
        default="bytes",
        metavar="TYPE",
        help="bytes, str, hex, base64, json, uuid, short, int, long, float, double, pack:FORMAT, avro, protobuf, "
        "jsonschema, offsets, group-metadata or transaction-log (bytes)",
    ),
    Argument("--value-type", default="bytes", metavar="TYPE", help="the same for values"),
    Argument("--header-type", default="bytes", metavar="TYPE", help="the same for the values of headers"),
    Argument("--registry", metavar="URL", help="the schema registry of avro, protobuf and jsonschema"),
    Argument("--strict", action="store_true", help="end with exit code 1 if a record could not be decoded"),
    Argument("--filter-key", metavar="GLOB", help="only records whose key matches"),
    Argument("--filter-value", metavar="GLOB", help="only records whose value matches"),
    Argument(
        "--filter-header",
        action="append",
        default=[],
        metavar="NAME[:VALUE]",
        help="only records with this header; may be repeated",
    ),
    Argument("--read-committed", action="store_true", help="leave records of open and aborted transactions out"),
    Argument("--fail-if-empty", action="store_true", help="end with exit code 3 if there was no record"),
    Argument("--progress", action="store_true", help="show counts on standard error even without a terminal"),
)


def _tail(arguments: Namespace) -> int:
    arguments.begin = f"-{arguments.last}"
    arguments.end = arguments.group = None
    arguments.max_records = None
    arguments.follow = not arguments.no_follow
    return _run(arguments)


COMMAND = {
    "consume": Verb(
        "consume",
        "print records of topics, from any place to any place",
        _run,
        [
            *_SHARED,
            Argument(
                "--from",
                dest="begin",
                metavar="PLACE",
                help="where to begin (beginning; in a group: stored)",
            ),
            Argument("--to", dest="end", metavar="PLACE", help="where to end, before that place (the present end)"),
            Argument("--follow", action="store_true", help="do not end: wait for new records"),
            Argument("-n", "--max-records", type=count, metavar="N", help="end after this number of records"),
            Argument(
                "-g",
                "--group",
                metavar="GROUP",
                complete="group",
                help="read as a member of a group, and commit the offsets of the records that were printed",
            ),
        ],
        [
            "purekafka consume events --sandbox --from -2 --format '%t %p %o %k %s\\n'",
            "purekafka consume orders --sandbox --format jsonl --from 2026-01-01T02:00Z",
            "purekafka consume events --sandbox --group billing",
            "purekafka consume __consumer_offsets --key-type offsets --value-type offsets -f jsonl -b localhost:9092",
            "purekafka consume orders --value-type avro --registry http://localhost:8081 -b localhost:9092",
        ],
        epilog=f"{HELP}\n\n{TYPES_HELP}",
    ),
    "tail": Verb(
        "tail",
        "print the last records of topics, and new ones as they arrive",
        _tail,
        [
            *_SHARED,
            Argument(
                "-n",
                "--last",
                type=int,
                default=10,
                metavar="N",
                help="how many of the last records of all partitions together (%(default)s)",
            ),
            Argument("--no-follow", action="store_true", help="end after these records"),
        ],
        ["purekafka tail events -n 3 --no-follow --sandbox", "purekafka tail orders --sandbox --timeout 1 -K ' = '"],
    ),
}
