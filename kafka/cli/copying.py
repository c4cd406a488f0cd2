"""``purekafka topics copy``, ``dump`` and ``load``: records to another topic, to a file, and back."""

from __future__ import annotations

import sys
import zlib
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from kafka.cli.arguments import CommandError, UsageError
from kafka.cli.connection import Connection
from kafka.cli.delivery import Delivery, Record
from kafka.cli.files import standard_output, whole_file
from kafka.cli.grammar import Verb, arg
from kafka.cli.output import Progress, complain, counted
from kafka.cli.produce import NO_TOPIC, record_of
from kafka.cli.ranges import PLACES, parse_partitions
from kafka.cli.record_input import pieces_of
from kafka.cli.source import Source, bounds, partitions_of
from kafka.structs import OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from kafka.producer import FutureRecordMetadata
    from kafka.record import ConsumerRecord

#: Records in one transaction of a copy that can be resumed.
_IN_TRANSACTION: Final = 5000
_RANGE: Final = (
    arg("--from PLACE", "where to begin (beginning)", dest="begin"),
    arg("--to PLACE", "where to end, before that place (the present end)", dest="end"),
    arg("-p, --partition N[,N-M]...", "only these partitions"),
    arg("--progress", "show counts on standard error even without a terminal"),
)
_TOPIC: Final = arg("TOPIC", "the topic to read", complete="topic")


def _source(arguments: Namespace, connection: Connection, topic: str) -> Source:
    """Return the source of the records of a topic, in the range of --from and --to."""
    consumer = connection.reader(isolation_level="read_committed")
    partitions = partitions_of(consumer, [topic], parse_partitions(arguments.partition))
    return Source(consumer, *bounds(arguments, consumer, partitions))


@Verb(
    "copy: copy the records of a topic to another one, here or in another cluster",
    _TOPIC,
    arg("to_topic TO", "the topic to write to", complete="topic"),
    arg("--create", "create the topic with as many partitions, if it is missing"),
    arg("--repartition", "choose partitions again, by the keys"),
    arg("--to-context NAME", "write to the cluster of this context", complete="context"),
    arg("--resume NAME", "copy each record once, and continue where the last copy of this name ended"),
    _RANGE,
    examples=[
        "events events-2 --create --sandbox",
        "orders events --repartition --from 2026-01-01T02:00Z --sandbox",
        "events copy --create --resume nightly --sandbox",
    ],
    epilog=PLACES,
)
def _copy(arguments: Namespace, connection: Connection) -> int:
    return _copy_records(arguments, connection, connection.target())


def _copy_records(arguments: Namespace, connection: Connection, target: Connection) -> int:
    original = connection.admin().describe_topics([arguments.topic])[0]
    original.raise_for_error()
    wanted = {int(one.partition_index) for one in original.partitions}
    found = target.admin().describe_topics([arguments.to_topic])[0]
    # Two clusters may have one id, where their configuration was copied; each topic has an id since Kafka 2.8.
    same_topic = found.ok and (found.name, found.topic_id) == (original.name, original.topic_id)
    if same_topic and connection.cluster_id == target.cluster_id:
        raise UsageError(
            f"both topics are in cluster {target.cluster()}: a copy of a topic to itself doubles its records"
        )
    if not found.ok:
        if not arguments.create:
            raise CommandError(f"topic {arguments.to_topic!r} does not exist; --create makes it")
        from kafka.admin import NewTopic

        target.admin().create_topics([NewTopic(arguments.to_topic, len(wanted))], wait_for_metadata=True)
    elif len(found.partitions) < len(wanted) and not arguments.repartition:
        raise CommandError(
            f"topic {arguments.to_topic!r} has {counted(len(found.partitions), 'partition')}, not {len(wanted)}: "
            "give --repartition to choose partitions again, by the keys"
        )
    if arguments.resume:
        return _copy_resumably(arguments, connection, target, len(wanted))
    source = _source(arguments, connection, arguments.topic)
    delivery = Delivery(arguments, target.producer(), "record", total=source.total)
    line = 0

    def write(records: Sequence[ConsumerRecord]) -> None:
        nonlocal line
        for r in records:
            line += 1
            delivery.send(arguments.to_topic, _copy_of(arguments, r), line)

    code = delivery.run(lambda: source.run(write))
    return _copied(arguments, connection, target, delivery.delivered) or code


def _copy_of(arguments: Namespace, r: ConsumerRecord) -> Record:
    stamp = r.timestamp if r.timestamp is not None and r.timestamp >= 0 else None
    return r.key, r.value, list(r.headers) or None, None if arguments.repartition else r.partition, stamp


def _copied(arguments: Namespace, connection: Connection, target: Connection, records: int) -> int:
    where = f" from cluster {connection.cluster()} to cluster {target.cluster()}" if arguments.to_context else ""
    print(f"{arguments.to_topic}: {counted(records, 'record')} copied{where}")
    return 0


def _resumed(
    arguments: Namespace, connection: Connection, stored: Mapping[TopicPartition, OffsetAndMetadata]
) -> Source:
    """Return the source of a topic, from the offsets that are stored for the partitions of the copy."""
    consumer = connection.reader(isolation_level="read_committed")
    partitions = partitions_of(consumer, [arguments.topic], parse_partitions(arguments.partition))
    starts, ends = bounds(arguments, consumer, partitions)
    first = consumer.beginning_offsets(list(starts))
    for tp in starts:
        place = stored.get(TopicPartition(arguments.to_topic, tp.partition))
        if place is None or place.offset < 0:
            continue
        if place.offset < first[tp]:
            gone = f"offsets {place.offset} to {first[tp] - 1} were deleted before they were copied"
            complain(arguments, f"{tp.topic}-{tp.partition}: {gone}")
        starts[tp] = max(place.offset, first[tp])
    return Source(consumer, starts, ends)


def _copy_resumably(arguments: Namespace, connection: Connection, target: Connection, partitions: int) -> int:
    """Copy in transactions, each of which also commits in the target how far the source is copied."""
    group = f"purekafka-copy-{arguments.resume}"
    producer, admin = target.producer(transactional_id=group), target.admin()
    if len(admin.describe_topics([arguments.to_topic])[0].partitions) < partitions:
        raise CommandError(f"--resume needs at least {counted(partitions, 'partition')} in {arguments.to_topic!r}")
    copied = 0
    waiting: dict[TopicPartition, OffsetAndMetadata] = {}
    futures: list[FutureRecordMetadata] = []

    def write(records: Sequence[ConsumerRecord]) -> None:
        if not futures:
            producer.begin_transaction()
        for r in records:
            key, value, *rest = _copy_of(arguments, r)
            futures.append(producer.send(arguments.to_topic, value, key, *rest))
        waiting[TopicPartition(arguments.to_topic, records[-1].partition)] = OffsetAndMetadata(records[-1].offset + 1)
        if len(futures) >= _IN_TRANSACTION:
            commit()

    def commit() -> None:
        nonlocal copied
        if futures:
            producer.send_offsets_to_transaction(waiting, group)
            producer.commit_transaction()
            copied += len(futures)
            futures.clear()
            waiting.clear()

    try:
        producer.init_transactions()  # ends the last transaction of a copy that was killed, and fences one that runs
        _resumed(arguments, connection, admin.list_group_offsets(group, require_stable=True)[group]).run(write)
        commit()
    finally:
        _copied(arguments, connection, target, copied)
    return 0


# `consume --format jsonl` and `produce --format jsonl` exchange the same lines as streams. A backup is a file: it holds
# the committed records up to the present end, appears whole under its name or not at all, and may be compressed.
@Verb(
    "dump: write the records of a topic to a file of JSON lines, compressed if its name ends in .gz",
    [_TOPIC, arg("FILE", "the file to write; - is standard output", complete="file"), *_RANGE],
    examples=["events events.jsonl.gz --sandbox", "orders - --from -2 --sandbox"],
    epilog=PLACES,
)
def _dump(arguments: Namespace, connection: Connection) -> int:
    from kafka.cli.record_format import record_json

    show = record_json()
    source = _source(arguments, connection, arguments.topic)
    progress = Progress(arguments, "read", source.total, alone=True)
    with _to_write(arguments.file) as file:

        def write(found: Sequence[ConsumerRecord]) -> None:
            text = b"".join(map(show, found))
            file.write(text)
            progress.add(len(found), len(text))

        source.run(write)
    progress.end()
    print(
        f"{arguments.file}: {counted(progress.records, 'record')}",
        file=sys.stderr if arguments.file == "-" else sys.stdout,
    )
    return 0


@contextmanager
def _to_write(path: str) -> Iterator[Any]:
    """Open the file of a dump, compressed if its name ends in .gz; - is standard output."""
    if path == "-":
        yield standard_output()
        return
    with whole_file(path) as file:
        if path.endswith(".gz"):
            import gzip

            with gzip.open(file, "wb") as compressed:
                yield compressed
        else:
            yield file


@contextmanager
def _to_read(path: str) -> Iterator[Any]:
    """Open the file of a load, decompressed if its name ends in .gz; - is standard input, which stays open."""
    if path == "-":
        yield sys.stdin.buffer
    elif path.endswith(".gz"):
        import gzip

        with gzip.open(path, "rb") as compressed:
            try:
                yield compressed
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise CommandError(f"{path} is damaged, or not compressed by gzip: {error}") from None
    else:
        with open(path, "rb") as file:
            yield file


@Verb(
    "load: write the records of a file of JSON lines to a topic",
    arg("FILE", "the file to read; - is standard input", complete="file"),
    arg("[TOPIC]", "the topic to write to (the one of each record)", complete="topic"),
    arg("--repartition", "choose partitions again, by the keys"),
    arg("--progress", "show counts on standard error even without a terminal"),
    examples=[
        "purekafka topics dump events - --sandbox | purekafka topics load - events --sandbox",
        "records.jsonl orders --repartition --sandbox",
    ],
)
def _load(arguments: Namespace, connection: Connection) -> int:
    with _to_read(arguments.file) as file:
        delivery = Delivery(arguments, connection.producer())
        try:
            code = delivery.run(lambda: _send_lines(arguments, file, delivery))
        finally:
            print(f"{counted(delivery.delivered, 'record')} loaded")
    if code:
        complain(arguments, f"{counted(delivery.failures, 'record')} failed")
    return code


def _send_lines(arguments: Namespace, file: BinaryIO, delivery: Delivery) -> None:
    line = 0
    for pieces in pieces_of(file, b"\n"):
        for piece in pieces:
            line += 1
            try:
                own, record = record_of(piece, partitions=not arguments.repartition)
                topic = arguments.topic or own
                if topic is None:
                    raise ValueError(NO_TOPIC)
            except (ValueError, TypeError) as error:
                delivery.fail(line, error)
            else:
                delivery.send(topic, record, line)


VERBS: Final = [_copy, _dump, _load]
