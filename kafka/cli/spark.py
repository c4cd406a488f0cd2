"""``purekafka spark``: ready jobs on Spark.

SIGINT and SIGTERM stop a job between two batches; started again with the same checkpoint it continues there.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from kafka.cli.arguments import SECRETS, pairs
from kafka.cli.grammar import CONNECTION, LISTING, Argument, Noun, Verb, arg
from kafka.cli.group_lag import LIMITS, limited
from kafka.cli.output import Column, emit
from kafka.errors import KafkaConfigurationError
from kafka.spark.errors import concise

if TYPE_CHECKING:
    from pathlib import Path

    from kafka.spark.jobs.runner import Progress
    from kafka.spark.offset_ranges import OffsetRange
    from kafka.spark.offset_reader import KafkaOffsetReader
    from kafka.spark.options import SourceOptions

T = TypeVar("T")

_STARTS = {"startingoffsets", "startingtimestamp", "startingoffsetsbytimestamp"}
_CLIENTS = {"producer", "consumer", "admin"}
_LAG_COLUMNS = Column.of("topic", "partition", "processed", "latest", "lag")
_RATE_COLUMNS = "{:<30} {:>14} {:>14} {:>10}"


_CLUSTER = (
    # -v shows Spark's log here, and the embedded broker would end with the command, not with the query.
    *(one for one in CONNECTION if one.names[0] not in {"-v", "--sandbox"}),
    arg(
        "-O NAME=VALUE...",
        "an option of the source, such as minPartitions=8; freezeWorkers and kafka.* hold for the sink too",
        dest="source_options",
    ),
)
_SOURCE = arg("--source TOPIC[,TOPIC]", "the topics to read", required=True)
_FROM = arg("--from earliest|latest", "where a query without a checkpoint starts (earliest)", dest="begin")
_SESSION = (
    arg("-v, --verbose", "show Spark's log, and errors as a whole"),
    arg("--master MASTER", "the Spark master (of its configuration, or this machine)"),
    arg("-c, --conf NAME=VALUE...", "a property of Spark, such as spark.cores.max=4"),
)
_CHECKPOINT = arg("--checkpoint DIR", "where the query records its progress", required=True)
_TRIGGER = arg("--trigger TRIGGER", "the time between batches, or available-now (%(default)s)", default="10 seconds")
_EXACTLY_ONCE = arg("--exactly-once", "write to the topic in transactions, each row once")
_PIPELINE = (
    arg("--schema DDL", 'the fields: "user string, amount double"', required=True),
    arg("--event-time COLUMN", "the field with the event's time (that of the record)"),
    arg("--window WINDOW", "length of a window (%(default)s)", default="1 minute"),
    arg("--watermark WATERMARK", "how late events may be (%(default)s)", default="2 minutes"),
    arg("--group-by COLUMN[,COLUMN]", "count separately for each value of these fields", default=""),
    arg("--sum COLUMN[,COLUMN]", "sum these fields", default="", dest="sums"),
    arg("--dead-letter TOPIC", "where to write events that do not match the schema"),
    arg("--dead-letter-column NAME", "the column of the result for such events instead"),
    arg("--complete", "write the whole result with each batch"),
)


def _parquet(*, required: bool) -> Argument:
    return arg("--parquet DIR", "the directory to write Parquet to", required=required)


def _sink(*, required: bool) -> Argument:
    return arg("--sink TOPIC", "the topic to write to", required=required)


def _job(
    words: str, *arguments: Argument | Sequence[Argument], examples: Sequence[str], epilog: str = ""
) -> Callable[[Callable[[argparse.Namespace], int]], Verb]:
    """Return the decorator of the function of a job, which may raise Spark's errors in one line."""
    about = f"{epilog}\n\n{SECRETS}" if epilog else SECRETS
    verb = Verb(words, *arguments, _CLUSTER, examples=examples, connects=False, epilog=about)

    def decorated(job: Callable[[argparse.Namespace], int]) -> Verb:
        @concise
        def run(arguments: argparse.Namespace) -> int:
            arguments.job = verb.name
            _connect(arguments)
            if "conf" in arguments:
                arguments.conf = pairs(arguments.conf, "-c")
            return job(arguments)

        return verb(run)

    return decorated


def _connect(arguments: argparse.Namespace) -> None:
    """Put the options of the cluster, from flags, variables, a context and a file, under the ones of -O."""
    from kafka.cli.connection import DEFAULT_SERVERS
    from kafka.cli.options import settings
    from kafka.config import OPTIONS

    given = pairs(arguments.source_options, "-O")  # once: a value may come from standard input
    cluster = settings(arguments)
    arguments.bootstrap_servers = cluster.pop("bootstrap_servers", DEFAULT_SERVERS)
    overridden = _names_of({name[6:]: text for name, text in given.items() if name.lower().startswith("kafka.")})
    # What all clients have; the source reads without a group, from where its own options say.
    shared = {name: text for name, text in cluster.items() if name in OPTIONS and OPTIONS[name].kinds >= _CLIENTS}
    arguments.options = {
        f"kafka.{name.replace('_', '.')}": text for name, text in shared.items() if name not in overridden
    } | given


def _names_of(given: dict[str, str]) -> set[str]:
    """Return the options of the table that Java's options set; an error in them is the source's to report."""
    from kafka.config import find_option, translate

    known = {}
    for name, text in given.items():
        with suppress(KeyError):
            find_option(name)
            known[name] = text
    with suppress(KafkaConfigurationError):
        return set(translate(known))
    return set(known)


# Jobs that need no Spark.


@_job(
    "lag: show how far a query is behind, from its checkpoint",
    [_CHECKPOINT, *LIMITS, *LISTING],
    examples=[
        "-b b1:9092 --checkpoint /data/copy",
        "-b localhost:9092 --checkpoint /data/copy --fail-above 10000 --format json",
    ],
)
def _lag(arguments: argparse.Namespace) -> int:
    from kafka.spark.offset_reader import KafkaOffsetReader
    from kafka.spark.offsets import EARLIEST, LATEST, lowest
    from kafka.spark.progress import committed_offsets, local_path

    done = lowest(committed_offsets(each) for each in _checkpoints(local_path(arguments.checkpoint)))
    topics = ",".join(sorted({tp.topic for tp in done}))
    if not topics:
        print("no batch is done yet", file=sys.stderr if arguments.format != "table" else sys.stdout)
        return emit(arguments, [], _LAG_COLUMNS, table=lambda: None)
    offsets = KafkaOffsetReader(_source(arguments, topics, streaming=True))
    try:
        latest = offsets.edges(dict.fromkeys(offsets.partitions(), LATEST))
        earliest = offsets.edges(dict.fromkeys(set(latest) - set(done), EARLIEST))
    finally:
        offsets.close()
    rows: list[dict[str, Any]] = [
        {**tp._asdict(), "processed": at, "latest": offset, "lag": max(0, offset - at)}
        for tp, offset in sorted(latest.items())
        for at in [done.get(tp, earliest.get(tp, 0))]
    ]
    total = sum(row["lag"] for row in rows)
    rows, above = limited(arguments, rows)

    def table() -> None:
        print(_RATE_COLUMNS.format("partition", "processed", "latest", "lag"))
        for row in rows:
            counts = [f"{row[name]:,}" for name in ("processed", "latest", "lag")]
            print(_RATE_COLUMNS.format(f"{row['topic']}-{row['partition']}", *counts))
        print(_RATE_COLUMNS.format("all", "", "", f"{total:,}"))

    code = emit(arguments, rows, _LAG_COLUMNS, table=table)
    return 4 if above else code


def _checkpoints(root: Path) -> list[Path]:
    """Return the checkpoints in a directory: itself, or the checkpoints of the queries that `run` starts."""
    below = sorted(path.parent for path in root.glob("*/offsets"))
    return [root] if (root / "offsets").is_dir() or not below else below


@_job(
    "plan: show which offsets a query's first batch would read, and in which tasks",
    [_SOURCE, _FROM, arg("--batch", "plan a batch query instead of a streaming one")],
    examples=["-b b1:9092 --source events -O minPartitions=8"],
)
def _plan(arguments: argparse.Namespace) -> int:
    from kafka.spark.offset_reader import KafkaOffsetReader
    from kafka.spark.planning import batch_ranges, tasks

    options = _source(arguments, arguments.source, streaming=not arguments.batch)
    offsets = KafkaOffsetReader(options)
    try:
        if arguments.batch:
            ranges, available = batch_ranges(offsets, options), None
        else:
            ranges, available = _first_batch(offsets, options)
    finally:
        offsets.close()
    size = sum(each.size for each in ranges)
    of_more = "" if available in {None, size} else f", the first batch of {available:,}"
    print(f"{size:,} offsets in {len(ranges)} partitions{of_more}")
    for number, task in enumerate(tasks(ranges, options)):
        parts = ", ".join(f"{each.topic}-{each.partition} {each.start:,} to {each.end:,}" for each in task)
        print(f"task {number}: {parts}")
    return 0


def _first_batch(offsets: KafkaOffsetReader, options: SourceOptions) -> tuple[list[OffsetRange], int]:
    """Return what the first batch of a streaming query reads, and how many offsets there are for all of its batches."""
    from kafka.spark.offset_ranges import OffsetRange, limited
    from kafka.spark.planning import find_bound

    start = find_bound(offsets, options.start, options, starting=True)
    latest = offsets.latest(start)
    end = latest if options.max_offsets is None else limited(options.max_offsets, start, latest)
    ranges = [OffsetRange(*tp, start.get(tp, 0), offset) for tp, offset in sorted(end.items())]
    return ranges, sum(offset - start.get(tp, 0) for tp, offset in latest.items())


def _source(arguments: argparse.Namespace, topics: str, *, streaming: bool) -> SourceOptions:
    """Return the options of the source as a job has them."""
    from kafka.spark.options import SourceOptions

    options = _source_options(arguments)
    given = {**options, "kafka.bootstrap.servers": arguments.bootstrap_servers, "subscribe": topics}
    return SourceOptions.parse(given, streaming=streaming)


def _source_options(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the options given for a read, with its start: the earliest offsets by default."""
    options = dict(arguments.options)
    starts = [name for name in options if name.lower() in _STARTS]
    begin = getattr(arguments, "begin", None)
    if starts and begin is not None:
        raise KafkaConfigurationError(f"--from {begin} and -O {starts[0]} both say where to start: give one of them")
    if not starts:
        options["startingOffsets"] = begin or "earliest"
    return options


# Jobs on Spark.


def _check_source(arguments: argparse.Namespace, *, streaming: bool) -> None:
    """Raise what is wrong with the options, the brokers or the topics, which takes a second, before Spark starts."""
    from kafka.spark.offset_reader import KafkaOffsetReader, patient_client

    options = _source(arguments, arguments.source, streaming=streaming)
    # A streaming query may be started before its brokers, and waits for them.
    offsets = KafkaOffsetReader(options, patient_client(options) if streaming else None)
    try:
        offsets.partitions()
    finally:
        offsets.close()


@_job(
    "run: count JSON events by window and columns, into a topic and into Parquet",
    [_SOURCE, _FROM, *_SESSION, _CHECKPOINT, _parquet(required=False), _TRIGGER, _sink(required=False), _EXACTLY_ONCE],
    _PIPELINE,
    examples=['-b b1:9092 --source events --schema "user string" --sink counts --checkpoint /c'],
    epilog="--sink, --parquet and --dead-letter are a query each, with its own checkpoint, and each reads the topic "
    "itself: three outputs read it three times. --complete writes topic and Parquet from one read.",
)
def _run(arguments: argparse.Namespace) -> int:
    _check_installed()
    from kafka.spark.jobs.pipeline import Pipeline

    options = _source_options(arguments)
    pipeline = Pipeline(
        servers=arguments.bootstrap_servers,
        source=arguments.source,
        schema=arguments.schema,
        checkpoint=arguments.checkpoint,
        event_time=arguments.event_time,
        window=arguments.window,
        watermark=arguments.watermark,
        group_by=_names(arguments.group_by),
        sums=_names(arguments.sums),
        sink=arguments.sink,
        parquet=arguments.parquet,
        dead_letter=arguments.dead_letter,
        dead_letter_column=arguments.dead_letter_column,
        complete=arguments.complete,
        trigger=arguments.trigger,
        kafka={name: value for name, value in options.items() if _is_shared(name)},
        source_options={name: value for name, value in options.items() if not _is_shared(name)},
        sink_options={"exactlyOnce": "true"} if arguments.exactly_once else {},
    )
    pipeline.check()
    _check_source(arguments, streaming=True)
    outputs = [name for name in ("sink", "parquet", "dead_letter") if getattr(pipeline, name) is not None]
    if len(outputs) > 1 and not pipeline.complete:
        print(f"{len(outputs)} queries ({', '.join(outputs)}) read {pipeline.source}, each for itself", file=sys.stderr)

    def start(spark: Any, held: dict[str, str]) -> list[Any]:
        return replace(pipeline, source_options={**pipeline.source_options, **held}).start(spark)

    return _watched(arguments, start)


@_job(
    "copy: copy a topic to another one, with keys and headers",
    [_SOURCE, _FROM, *_SESSION, _CHECKPOINT, _TRIGGER, _sink(required=True), _EXACTLY_ONCE],
    examples=["-b b1:9092 --source events --sink events-2 --checkpoint /data/copy"],
)
def _copy(arguments: argparse.Namespace) -> int:
    _check_installed()
    from kafka.spark.jobs.pipeline import parse_trigger
    from kafka.spark.jobs.runner import start_patiently

    if arguments.sink in _names(arguments.source):
        raise KafkaConfigurationError(f"A copy of {arguments.sink!r} to itself would never end")
    _check_source(arguments, streaming=True)
    options = {"includeHeaders": "true", **_source_options(arguments)}

    def start(spark: Any, held: dict[str, str]) -> list[Any]:
        reader = spark.readStream.format("purekafka").options(**options, **held).option("subscribe", arguments.source)
        rows = reader.option("kafka.bootstrap.servers", arguments.bootstrap_servers).load()
        shared = {name: value for name, value in options.items() if _is_shared(name)}
        writer = rows.select("key", "value", "headers").writeStream.format("purekafka").options(**shared)
        writer = writer.option("kafka.bootstrap.servers", arguments.bootstrap_servers).option("topic", arguments.sink)
        writer = writer.option("exactlyOnce", str(arguments.exactly_once))
        writer = writer.option("checkpointLocation", arguments.checkpoint).queryName("copy")
        return [start_patiently(writer.trigger(**parse_trigger(arguments.trigger)).start)]

    return _watched(arguments, start)


@_job(
    "dump: write the records that a topic has now as Parquet",
    [_SOURCE, *_SESSION, _parquet(required=True)],
    examples=["-b b1:9092 --source events --parquet /data/events"],
)
def _dump(arguments: argparse.Namespace) -> int:
    _check_installed()
    _check_source(arguments, streaming=False)
    options = {"includeHeaders": "true", **arguments.options}

    def dump(spark: Any) -> int:
        reader = spark.read.format("purekafka").options(**options).option("subscribe", arguments.source)
        rows = reader.option("kafka.bootstrap.servers", arguments.bootstrap_servers).load()
        rows.write.mode("errorifexists").parquet(arguments.parquet)
        return int(spark.read.parquet(arguments.parquet).count())

    print(f"{_on_spark(arguments, dump):,} records in {arguments.parquet}")
    return 0


def _check_installed() -> None:
    try:
        import pyarrow  # noqa: F401 - asked for
        import pyspark  # noqa: F401 - asked for
    except ImportError as error:
        raise KafkaConfigurationError(f"This needs {error.name}: pip install 'purekafka[spark]'") from None


def _watched(arguments: argparse.Namespace, start: Callable[[Any, dict[str, str]], list[Any]]) -> int:
    """Start queries, with the source options that they can be stopped by, and watch them."""
    from pathlib import Path
    from tempfile import TemporaryDirectory

    from kafka.spark.jobs.runner import asked_to_stop, watch

    def run_until_asked(spark: object) -> Progress:
        # From the first query on: a query that is stopped ends between two batches.
        with TemporaryDirectory(prefix="purekafka-") as directory, asked_to_stop() as asked:
            hold = Path(directory, "hold")
            return watch(start(spark, {"holdFile": str(hold)}), asked=asked, hold=hold)

    print(_on_spark(arguments, run_until_asked), file=sys.stderr)
    return 0


def _on_spark(arguments: argparse.Namespace, work: Callable[[Any], T]) -> T:
    """Do something with a session; an error of Spark ends the job with its cause in one line."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    from kafka.spark.errors import cause_of
    from kafka.spark.jobs.runner import QueryFailedError
    from kafka.spark.session import end_session, local_session

    if arguments.verbose:
        os.environ.setdefault("PUREKAFKA_TRACEBACK", "1")  # Spark's Python processes inherit it
    try:
        spark = local_session(
            f"purekafka {arguments.job}", master=arguments.master, configs=arguments.conf, quiet=not arguments.verbose
        )
        try:
            return work(spark)
        finally:
            end_session(spark)
    except (PySparkException, Py4JError) as error:
        if arguments.verbose:
            print(error, file=sys.stderr)
        raise QueryFailedError(cause_of(error)) from error
    except QueryFailedError as error:
        if arguments.verbose:
            print(error.__cause__, file=sys.stderr)
        raise


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _is_shared(name: str) -> bool:
    """Whether an option of the source is one of the sink too, which must be the same where they share workers."""
    return name.lower().startswith("kafka.") or name.lower() == "freezeworkers"


COMMAND = Noun("spark", [_run, _copy, _dump, _lag, _plan])
