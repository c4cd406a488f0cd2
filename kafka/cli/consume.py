"""``purekafka consume`` and ``purekafka tail``: print records, from any place to any place, alone or in a group."""

from __future__ import annotations

import re
from argparse import Namespace
from bisect import bisect_right
from collections.abc import Callable, Collection, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

from kafka.cli.arguments import UsageError, count
from kafka.cli.connection import Connection
from kafka.cli.files import standard_output
from kafka.cli.grammar import Verb, arg
from kafka.cli.output import Progress, complain
from kafka.cli.ranges import PLACES, Places, parse_partitions, resolve
from kafka.cli.source import GroupSource, Source, bounds, ends_of, led, partitions_of, topics_of
from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from kafka.cli.record_format import Print
    from kafka.consumer import KafkaConsumer
    from kafka.record import ConsumerRecord

_LAYOUTS: Final = ("value", "json", "jsonl", "console")
_SHARED: Final = (
    arg("topics [TOPIC...]", "the topics to read", complete="topic"),
    arg("--pattern REGEX", "read the topics whose whole names match, as of now"),
    arg("-p, --partition N[,N-M]...", "only these partitions; may be repeated"),
    arg(
        "-f, --format FORMAT", "value, jsonl, console, or tokens of kcat and rpk: '%%k %%s\\n' (value)", default="value"
    ),
    arg("-K, --key-delimiter TEXT", "print the key too, with this text behind it", default=""),
    arg("--null TEXT", "the text for a null key or value (nothing)", default=""),
    arg("--key-type TYPE", "the type of keys (bytes)", default="bytes", section="Types"),
    arg("--value-type TYPE", "the type of values (bytes)", default="bytes", section="Types"),
    arg("--header-type TYPE", "the type of the values of headers (bytes)", default="bytes", section="Types"),
    arg("--registry URL", "the schema registry of avro, protobuf and jsonschema", section="Types"),
    arg("--strict", "end with exit code 1 if a record could not be decoded", section="Types"),
    arg("--filter-key GLOB", "only records whose key matches"),
    arg("--filter-value GLOB", "only records whose value matches"),
    arg("--filter-header NAME[:VALUE]...", "only records with this header; may be repeated"),
    arg("--read-committed", "leave records of open and aborted transactions out"),
    arg("--fail-if-empty", "end with exit code 3 if there was no record", section="Output"),
    arg("--progress", "show counts on standard error even without a terminal", section="Output"),
)


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
        between = arguments.key_delimiter.replace("%", "%%")
        text = f"%k{between}%s\\n" if between else "%s\\n"
        return compile_format(text, key=key, value=value, header=header, null=null)
    if layout in {"json", "jsonl"}:
        return record_json(key, value, header, with_deliveries=bool(getattr(arguments, "share", None)))
    if layout == "console":
        return console_layout
    if "%" not in layout:
        raise UsageError(
            f"--format takes {', '.join(_LAYOUTS)}, or a format with tokens such as '%k %s\\n', not {layout!r}"
        )
    return compile_format(layout, key=key, value=value, header=header, null=null)


class Printer:
    """Writes records to standard output, a part of a batch at once; knows which of them are out."""

    def __init__(
        self,
        arguments: Namespace,
        show: Print,
        chosen: Callable[[ConsumerRecord], bool] | None = None,
        limit: int | None = None,
    ) -> None:
        self._arguments = arguments
        self._show = show
        self._chosen = chosen
        self._left: float = float("inf") if limit is None else limit
        self._out = standard_output()
        self._behind: dict[TopicPartition, int] = {}
        self._latest: tuple[int, Sequence[ConsumerRecord], list[bytes], TopicPartition, int] | None = None
        """Where the output was before the records that were written last, and the offset behind them."""
        self.progress = Progress(arguments, "consumed")
        self.undecodable = 0

    def full(self) -> bool:
        """Whether as many records were printed as --max-records asks for."""
        return self._left <= 0

    def write(self, records: Sequence[ConsumerRecord]) -> None:
        """Print records of a partition."""
        taken: Sequence[ConsumerRecord] = records
        if self._chosen is not None:
            taken = list(filter(self._chosen, records))
        behind = records[-1][2] + 1
        if len(taken) >= self._left:
            taken = taken[: int(self._left)]
            behind = taken[-1][2] + 1
        texts: list[bytes] = []
        left = iter(taken)
        while len(texts) < len(taken):
            try:
                texts.extend(map(self._show, left))
            except (ValueError, RecursionError) as error:  # noqa: PERF203 - one try for each that fails
                texts.append(self._undecoded(taken[len(texts)], error))
        self._left -= len(taken)
        self.progress.passed += len(records) - len(taken)
        self._put(taken, texts, TopicPartition(records[0][0], records[0][1]), behind)

    def _put(self, taken: Sequence[ConsumerRecord], texts: list[bytes], tp: TopicPartition, behind: int) -> None:
        self._latest = (self._out.written, taken, texts, tp, behind)
        self._out.write(b"".join(texts))
        self.printed()

    def printed(self) -> dict[TopicPartition, int]:
        """Return the offset behind the last record of each partition that is out, also when a write was interrupted."""
        if self._latest is not None:
            begun, taken, texts, tp, behind = self._latest
            size = self._out.written - begun
            whole = len(texts)
            if size < sum(map(len, texts)):
                whole = bisect_right(list(accumulate(map(len, texts))), size)
            if whole or not texts:
                self._behind[tp] = behind if whole == len(texts) else taken[whole][2]
            self._latest = None
            self.progress.add(whole, size)
        return self._behind

    def _undecoded(self, record: ConsumerRecord, error: Exception) -> bytes:
        """Return the bytes of a record that is not of the type that the user named, after a line with the error."""
        from kafka.cli.record_format import record_json

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


@Verb(
    "consume",
    _SHARED,
    arg("--from PLACE", "where to begin (beginning; in a group: stored)", dest="begin"),
    arg("--to PLACE", "where to end, before that place (the present end)", dest="end"),
    arg("--follow", "do not end: wait for new records"),
    arg("-n, --max-records N", "end after this number of records", count),
    arg("-g, --group GROUP", "read in a group, and commit what was printed", complete="group"),
    arg("--share GROUP", "read in a share group (a queue); %%D: deliveries", complete="group"),
    arg("--ack accept|release|reject", "with --share: how records are acknowledged (%(default)s)", default="accept"),
    examples=[
        "events --sandbox --from -2 --format '%t %p %o %k %s\\n'",
        "orders --sandbox --format jsonl --from 2026-01-01T02:00Z",
        "events --sandbox --group billing",
        "orders --sandbox --share workers -n 10 --format '%D %s\\n'",
        "__consumer_offsets --key-type offsets --value-type offsets -b localhost:9092",
        "orders --value-type avro --registry http://localhost:8081 -b localhost:9092",
    ],
    epilog=PLACES,
)
def _run(arguments: Namespace, connection: Connection) -> int:
    if not arguments.topics and not arguments.pattern:
        raise UsageError("name a topic, or give --pattern")
    show = record_printer(arguments, connection)
    printer = Printer(arguments, show, _filter(arguments), arguments.max_records)
    try:
        if arguments.share:
            from kafka.cli.share_groups import consume

            failed = consume(arguments, connection, printer)
        else:
            failed = (_consume_in_group if arguments.group else _consume_alone)(arguments, connection, printer)
    except KeyboardInterrupt:
        printer.printed()
        printer.progress.end(always=True)
        raise
    printer.progress.end()
    if printer.undecodable:
        complain(arguments, f"{printer.undecodable} records could not be decoded")
    if failed or (printer.undecodable and arguments.strict):
        return 1
    return 3 if arguments.fail_if_empty and not printer.progress.records else 0


def _consumer(arguments: Namespace, connection: Connection, **configs: Any) -> KafkaConsumer:
    if arguments.read_committed:
        configs["isolation_level"] = "read_committed"
    return connection.consumer(enable_auto_commit=False, allow_auto_create_topics=False, **configs)


def _consume_alone(arguments: Namespace, connection: Connection, printer: Printer) -> bool:
    consumer = _consumer(arguments, connection, group_id=None, auto_offset_reset="earliest")
    partitions = partitions_of(
        consumer,
        topics_of(arguments, consumer.topics() if arguments.pattern else ()),
        parse_partitions(arguments.partition),
    )
    answering = led(arguments, connection, consumer, partitions)
    if not answering:
        return True
    starts, ends = bounds(arguments, consumer, answering)
    if getattr(arguments, "last", None) is not None:
        # Print the last records of all partitions together, in the order of their times.
        records: list[ConsumerRecord] = []
        Source(consumer, starts, ends).run(records.extend)
        records.sort(key=lambda r: (r.timestamp or 0, r.topic, r.partition, r.offset))
        for record in records[-arguments.last :] if arguments.last else ():
            printer.write([record])
        starts = ends
    source = Source(consumer, starts, None if arguments.follow and not arguments.end else ends)
    printer.progress.total = source.total
    source.run(printer.write, printer.full)
    return len(answering) < len(partitions)


def _consume_in_group(arguments: Namespace, connection: Connection, printer: Printer) -> bool:
    if arguments.partition:
        raise UsageError("--partition and --group exclude each other: the group assigns the partitions")
    places = Places(arguments.begin or "stored")
    consumer = _consumer(arguments, connection, group_id=arguments.group, auto_offset_reset="earliest")
    topics = topics_of(arguments, consumer.topics() if arguments.pattern else ())
    partitions = partitions_of(consumer, topics, None)
    answering = led(arguments, connection, consumer, partitions)
    ends = None if arguments.follow and not arguments.end else ends_of(arguments, consumer, answering)

    def start(new: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        chosen = {tp: place for tp in new if (place := places.of(tp.partition)) is not None and place.kind != "stored"}
        return resolve(consumer, chosen, say=lambda text: complain(arguments, f"--from: {text}"))

    source = GroupSource(arguments, consumer, topics, ends, printer.printed, start)
    source.run(printer.write, printer.full)
    return source.repeats or len(answering) < len(partitions)


@Verb(
    "tail",
    _SHARED,
    arg("-n, --last N", "how many of the last records of all partitions together (%(default)s)", int, default=10),
    arg("--no-follow", "end after these records"),
    examples=["events -n 3 --no-follow --sandbox", "orders --sandbox --timeout 1 -K ' = '"],
)
def _tail(arguments: Namespace, connection: Connection) -> int:
    if arguments.last < 0:
        raise UsageError(f"-n takes a number of records, not {arguments.last}")
    arguments.begin = f"-{arguments.last}"
    arguments.end = arguments.group = arguments.share = None
    arguments.max_records = None
    arguments.follow = not arguments.no_follow
    return _run.run(arguments, connection)


COMMAND = {"consume": _run, "tail": _tail}
