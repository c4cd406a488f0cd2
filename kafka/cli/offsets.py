"""``purekafka offsets`` and ``purekafka records``: offsets at a place, and deleting the records before it."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kafka.cli.arguments import CommandError, UsageError, reason
from kafka.cli.connection import Connection
from kafka.cli.edges import Edges, edges
from kafka.cli.grammar import TABLE, Noun, Verb, arg
from kafka.cli.output import Column, agreed, complain, counted, emit, report, report_failed
from kafka.cli.ranges import PLACES, AdminOffsets, Place, Places, parse_topic_partitions, resolve
from kafka.errors import KafkaError
from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from kafka.admin import KafkaAdminClient, TopicDescription

_CHOSEN: Final = "topics or patterns, or partitions of them"


def _is_pattern(word: str) -> bool:
    return bool(set(word) & set("*?["))


def chooses(topic: TopicDescription, word: str, *, hidden: bool = False) -> bool:
    """Whether a name or a pattern chooses a topic; an internal one only if it begins with _, or with `hidden`."""
    from fnmatch import fnmatchcase

    if _is_pattern(word):
        shown = hidden or not topic.is_internal or word.startswith("_")
        return shown and fnmatchcase(str(topic.name), word)
    return str(topic.name) == word


def chosen_topics(admin: KafkaAdminClient, words: Sequence[str]) -> list[str]:
    """Return the topics that names and patterns choose; a pattern that matches none is an error."""
    if not any(map(_is_pattern, words)):
        return list(dict.fromkeys(words))
    known = sorted(admin.describe_topics(), key=lambda topic: str(topic.name))
    found: list[str] = []
    for word in words:
        matching = [str(topic.name) for topic in known if chooses(topic, word)] if _is_pattern(word) else [word]
        if not matching:
            raise UsageError(f"no topic matches {word!r}")
        found += matching
    return list(dict.fromkeys(found))


def find_partitions(
    admin: KafkaAdminClient, words: Sequence[str]
) -> tuple[list[TopicPartition], list[tuple[str, object, str]]]:
    """Return the partitions that words such as ``events`` and ``orders:0,2-3`` name, and what does not exist.

    Without words: all partitions of the cluster that are not internal. The errors are as `report` takes them.
    """
    given = parse_topic_partitions(words)
    wanted = {name: numbers for word, numbers in given.items() for name in chosen_topics(admin, [word])}
    found: list[TopicPartition] = []
    errors: list[tuple[str, object, str]] = []
    for topic in admin.describe_topics(list(wanted) if words else None):
        name = str(topic.name)
        if topic.error is not None:
            errors.append((name, topic.error, ""))
        if topic.error is not None or (not words and topic.is_internal):
            continue
        known = {int(each.partition_index) for each in topic.partitions}
        numbers = wanted.get(name)
        chosen = known if numbers is None else numbers
        absent = sorted(chosen - known)
        errors += [(name, CommandError(f"topic {name!r} has no partition {number}"), "") for number in absent]
        found += [TopicPartition(name, number) for number in sorted(chosen & known)]
    return found, errors


def partitions(admin: KafkaAdminClient, words: Sequence[str]) -> list[TopicPartition]:
    """Return the partitions that words name; one that does not exist is an error."""
    found, errors = find_partitions(admin, words)
    for _, error, _ in errors:
        raise CommandError(reason(error))
    return found


@Verb(
    "list: show the first and last offsets of partitions, or the offsets at a place",
    arg("partitions [TOPIC[:N,N-M]...]", f"{_CHOSEN}; all if none", complete="topic"),
    arg("--at PLACE", "a place to look up, such as a time; also max-timestamp, earliest-local, latest-tiered"),
    examples=["--sandbox", "events:0,2 --at 2026-01-01T00:10Z --sandbox --format csv"],
    lists=True,
    epilog=PLACES,
)
def _offsets(arguments: Namespace, connection: Connection) -> int:
    admin = connection.admin()
    chosen, absent = find_partitions(admin, arguments.partitions)
    code = report(arguments, absent)
    looked = AdminOffsets(admin)
    rows: list[dict[str, Any]]
    if arguments.at is None:
        found = edges(admin, chosen)
        rows = [
            {**tp._asdict(), "start": one.start, "end": one.end, "records": _between(one)} for tp, one in found.items()
        ]
        code |= report_failed(arguments, found)
        return emit(arguments, rows, Column.of("topic", "partition", "start", "end", "records")) or code
    if arguments.at in _SPECS:
        answers = admin.list_partition_offsets(dict.fromkeys(chosen, arguments.at), raise_errors=False)
        rows = [
            {**tp._asdict(), "offset": one.offset, "timestamp": one.timestamp}
            for tp, one in answers.items()
            if not isinstance(one, KafkaError)
        ]
        code |= report_failed(arguments, answers)
        return emit(arguments, rows, Column.of("topic", "partition", "offset", "timestamp")) or code
    places = Places(arguments.at)
    wanted = {tp: place for tp in chosen if (place := places.of(tp.partition)) is not None}
    if any(place.kind == "stored" for place in wanted.values()):
        raise UsageError("the place stored belongs to a group: see purekafka groups offsets")
    logs = edges(admin, wanted)
    known = {tp: place for tp, place in wanted.items() if logs[tp].error is None}
    offsets = resolve(looked, known, say=partial(complain, arguments))
    rows = [{**tp._asdict(), "offset": offset} for tp, offset in offsets.items()]
    code |= report_failed(arguments, logs)
    return emit(arguments, rows, Column.of("topic", "partition", "offset")) or code


def _between(one: Edges) -> int | None:
    return None if one.start is None or one.end is None else one.end - one.start


#: Places that brokers know, and the clients' ranges do not.
_SPECS: Final = ("max-timestamp", "earliest-local", "latest-tiered")


@Verb(
    "delete-before: delete the records before a place, after showing the plan",
    arg("partitions TOPIC[:N,N-M]...", _CHOSEN, complete="topic"),
    arg("--place, --to PLACE", "the first record to keep", required=True, dest="place"),
    TABLE,
    examples=["events --place -3 --yes --sandbox", "orders:0 --place 2026-01-01T02:00Z --dry-run --sandbox"],
    asks=True,
    epilog=PLACES,
)
def _delete_before(arguments: Namespace, connection: Connection) -> int:
    admin = connection.admin()
    chosen = partitions(admin, arguments.partitions)
    places = Places(arguments.place)
    wanted: dict[TopicPartition, Place] = {tp: place for tp in chosen if (place := places.of(tp.partition)) is not None}
    logs = edges(admin, wanted)
    if report_failed(arguments, logs):  # a partition that has no leader is not waited for
        return 1
    new = resolve(AdminOffsets(admin), wanted, say=partial(complain, arguments))
    for tp, place in wanted.items():
        if place.kind == "offset" and place.number > new[tp]:
            raise UsageError(f"{tp.topic}-{tp.partition} ends at {new[tp]}: --place {place.number} is behind that")
    rows = [
        {**tp._asdict(), "start": logs[tp].start, "new_start": offset, "records": offset - (logs[tp].start or 0)}
        for tp, offset in new.items()
    ]
    columns = Column.of("topic", "partition", "start", "new_start", "records")
    if not agreed(connection, f"Delete {counted(sum(row['records'] for row in rows), 'record')}?", rows, columns):
        return 0
    answers = admin.delete_records(new, raise_errors=False)
    return report(arguments, ((tp, one, f"begins at {new[tp]}") for tp, one in sorted(answers.items())))


COMMAND = {"offsets": Noun("offsets", [_offsets]), "records": Noun("records", [_delete_before])}
