"""``purekafka groups offsets``, ``reset-offsets``, ``delete-offsets`` and ``copy``: the offsets of groups.

They are the committed offsets; of a share group, the start offsets.
"""

from __future__ import annotations

import csv
import io
import sys
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from kafka.cli.arguments import CommandError, UsageError, text_of
from kafka.cli.connection import Connection
from kafka.cli.edges import Edges, edges
from kafka.cli.files import whole_file
from kafka.cli.grammar import TABLE, Verb, arg
from kafka.cli.group_lag import NOT_FOUND, TOPIC
from kafka.cli.offsets import partitions
from kafka.cli.output import Column, agreed, complain, counted, emit, report, report_failed
from kafka.cli.ranges import PLACES, AdminOffsets, Place, Places, parse_topic_partitions, resolve
from kafka.cli.share_groups import existing, start_offsets
from kafka.structs import OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from kafka.admin import GroupDescription, KafkaAdminClient, ShareGroupDescription, StreamsGroupDescription

Offsets = dict[TopicPartition, int]
Commits = dict[TopicPartition, OffsetAndMetadata]

_PLAN_COLUMNS: Final = Column.of("topic", "partition", "offset", "new_offset", "lag", "new_lag")


Described: TypeAlias = "GroupDescription | ShareGroupDescription | StreamsGroupDescription"
GROUP: Final = arg("GROUP", "the name of the group", complete="group")


def known_groups(arguments: Namespace, admin: KafkaAdminClient, names: Sequence[str]) -> dict[str, Described]:
    """Return the groups that exist, of any kind; complain about the others."""
    found = admin.describe_groups(list(names))
    others = [name for name, group in found.items() if group.group_state in NOT_FOUND]
    special: dict[str, Described] = {**existing(admin.describe_share_groups, others)}
    special |= existing(admin.describe_streams_groups, [name for name in others if name not in special])
    known: dict[str, Described] = {}
    for name, group in found.items():
        if name in special:
            known[name] = special[name]
        elif group.error is not None and group.group_state not in NOT_FOUND:
            complain(arguments, group.error)
        elif group.error is not None or group.group_state in NOT_FOUND:
            complain(arguments, f"group {name!r} does not exist")
        else:
            known[name] = group
    return known


_EXPORT: Final = arg(
    "--export FILE",
    "write topic,partition,offset lines, not a table: Kafka's own script reads them too; - is standard output",
    dest="export_file",
    complete="file",
)


@Verb(
    "offsets: show the committed offsets of a group, or export them as CSV",
    GROUP,
    _EXPORT,
    examples=["billing --sandbox", "billing --export - --sandbox"],
    lists=True,
)
def _offsets(arguments: Namespace, connection: Connection) -> int:
    admin = connection.admin()
    if not known_groups(arguments, admin, [arguments.group]):
        return 1
    rows = [
        {**tp._asdict(), "offset": place.offset, "metadata": place.metadata}
        for tp, place in sorted(_stored(admin, arguments.group).items())
    ]
    if arguments.export_file:
        _export(arguments.export_file, [(row["topic"], row["partition"], row["offset"]) for row in rows])
        return 0
    return emit(arguments, rows, Column.of("topic", "partition", "offset", "metadata"))


def _stored(admin: KafkaAdminClient, group: str) -> Commits:
    """Return the committed offsets of a group; of a share group its start offsets."""
    if existing(admin.describe_share_groups, [group]):
        return start_offsets(admin, group)
    return {tp: place for tp, place in admin.list_group_offsets(group)[group].items() if place.offset >= 0}


def _export(path: str, rows: Iterable[tuple[object, ...]]) -> None:
    """Write CSV as Kafka's own script does: topic,partition,offset without a heading."""
    if path == "-":
        csv.writer(sys.stdout, lineterminator="\n").writerows(rows)
        return
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    with whole_file(path) as file:
        file.write(text.getvalue().encode())


def _read_csv(path: str, group: str) -> Commits:
    """Read what `_export` or Kafka's script wrote; lines with a group in front are chosen by it."""
    found = {}
    for number, row in enumerate(csv.reader(text_of(path, "--from-file").splitlines()), 1):
        if len(row) == 4:
            if row[0] != group:
                continue
            row = row[1:]  # noqa: PLW2901 - without the group
        if len(row) != 3 or not row[1].strip().isdecimal() or not row[2].strip().isdecimal():
            raise UsageError(f"{path}, line {number}: write topic,partition,offset, not {','.join(row)!r}")
        found[TopicPartition(row[0], int(row[1]))] = OffsetAndMetadata(int(row[2]))
    return found


@Verb(
    "reset-offsets: change the committed offsets of a group without members, after showing the plan",
    GROUP,
    TOPIC,
    arg("--to PLACE", "where the group continues"),
    arg("--shift-by N", "move by N records; negative: back", int),
    arg("--from-file FILE", "take the offsets of an exported file; - is standard input", complete="file"),
    _EXPORT,
    examples=["billing --to beginning --dry-run --sandbox", "billing --topic orders --shift-by -1 --yes --sandbox"],
    lists=True,
    asks=True,
    epilog=PLACES,
)
def _reset(arguments: Namespace, connection: Connection) -> int:
    ways = [arguments.to, arguments.shift_by, arguments.from_file]
    if sum(way is not None for way in ways) != 1:
        raise UsageError("give one of --to, --shift-by and --from-file")
    admin = connection.admin()
    if arguments.from_file is not None:
        return _apply(arguments, connection, arguments.group, _read_csv(arguments.from_file, arguments.group))
    committed = {tp: place.offset for tp, place in _stored(admin, arguments.group).items()}
    chosen = partitions(admin, arguments.topic) if arguments.topic else sorted(committed)
    if not chosen:
        raise CommandError(f"group {arguments.group!r} has no committed offsets: name topics with --topic")
    if report_failed(arguments, edges(admin, chosen)):  # a partition that has no leader is not waited for
        return 1
    places: dict[TopicPartition, Place] = {}
    if arguments.shift_by is not None:
        without = sorted(tp for tp in chosen if tp not in committed)
        if without:
            first = f"{without[0].topic}-{without[0].partition}"
            raise CommandError(f"--shift-by needs a committed offset; {first} has none")
        places = {tp: Place("offset", max(0, committed[tp] + arguments.shift_by)) for tp in chosen}
    else:
        wanted = Places(arguments.to)
        places = {tp: place for tp in chosen if (place := wanted.of(tp.partition)) is not None}
    new = resolve(AdminOffsets(admin), places, committed, say=partial(complain, arguments))
    commits = {tp: OffsetAndMetadata(offset) for tp, offset in new.items()}
    return _apply(arguments, connection, arguments.group, commits, committed)


def _apply(
    arguments: Namespace,
    connection: Connection,
    group: str,
    new: Commits,
    committed: Mapping[TopicPartition, int] | None = None,
    *,
    is_share: bool = False,
) -> int:
    """Show the plan of a change of offsets, and do it; `is_share`: of a share group, which may not exist yet."""
    admin = connection.admin()
    share_group = existing(admin.describe_share_groups, [group]).get(group)
    if committed is None:
        committed = {tp: place.offset for tp, place in _stored(admin, group).items()}
    logs = edges(admin, new)
    if report_failed(arguments, logs):
        return 1
    new = {tp: _within(arguments, tp, place, logs[tp]) for tp, place in sorted(new.items())}
    ends = {tp: one.end or 0 for tp, one in logs.items()}
    rows = [
        {
            **tp._asdict(),
            "offset": committed.get(tp),
            "new_offset": place.offset,
            "lag": max(0, ends[tp] - committed[tp]) if tp in committed else None,
            "new_lag": max(0, ends[tp] - place.offset),
        }
        for tp, place in new.items()
    ]
    if getattr(arguments, "export_file", None):
        _export(arguments.export_file, [(row["topic"], row["partition"], row["new_offset"]) for row in rows])
    else:
        emit(arguments, rows, _PLAN_COLUMNS)
    state = admin.describe_groups([group])[group] if share_group is None else share_group
    if state.members:
        members = counted(len(state.members), "member")
        raise CommandError(f"group {group!r} has {members}, which would commit over it: stop them first")
    if not agreed(connection, f"Change {counted(len(rows), 'offset')} of group {group}?"):
        return 0
    answers: Mapping[TopicPartition, object]
    if is_share or share_group is not None:
        starts = {tp: place.offset for tp, place in new.items()}
        answers = admin.alter_share_group_offsets(group, starts, raise_errors=False)
    else:
        answers = admin.alter_group_offsets(group, new, raise_errors=False)
    code = report(arguments, answers)
    if not code:  # standard output has the plan, maybe as JSON
        complain(arguments, f"group {group!r}: {counted(len(answers), 'offset')} changed")
    return code


def _within(arguments: Namespace, tp: TopicPartition, place: OffsetAndMetadata, log: Edges) -> OffsetAndMetadata:
    """Return a place that the log has, as Kafka's own script does, with a line for each change."""
    start, end = log.start or 0, log.end or 0
    nearest = min(max(place.offset, start), end)
    if nearest == place.offset:
        return place
    complain(
        arguments,
        f"{tp.topic}-{tp.partition}: the log is from {start} to {end}: offset {place.offset} becomes {nearest}",
    )
    return place._replace(offset=nearest, leader_epoch=-1)


@Verb(
    "delete-offsets: delete committed offsets of topics that no member reads",
    GROUP,
    arg(
        "--topic TOPIC[:N,N-M]...",
        "the topics, or partitions of them; may be repeated",
        required=True,
        complete="topic",
    ),
    TABLE,
    examples=["billing --topic orders --yes --sandbox", "billing --topic events:0 --dry-run --sandbox"],
    asks=True,
)
def _delete_offsets(arguments: Namespace, connection: Connection) -> int:
    admin = connection.admin()
    known = known_groups(arguments, admin, [arguments.group])
    if not known:
        return 1
    is_share = known[arguments.group].group_type == "share"
    found = _stored(admin, arguments.group)
    wanted = parse_topic_partitions(arguments.topic)
    if is_share and any(numbers is not None for numbers in wanted.values()):
        raise UsageError("the offsets of a share group are deleted by topic: give --topic without partitions")
    rows = [
        {**tp._asdict(), "offset": place.offset}
        for tp, place in sorted(found.items())
        if tp.topic in wanted and (wanted[tp.topic] is None or tp.partition in (wanted[tp.topic] or ()))
    ]
    if not rows:
        raise CommandError(f"group {arguments.group!r} has no offsets of {', '.join(arguments.topic)}")
    if not agreed(connection, f"Delete {counted(len(rows), 'offset')} of group {arguments.group}?", rows):
        return 0
    if is_share:
        deleted = admin.delete_share_group_offsets(arguments.group, list(wanted), raise_errors=False)
        return report(arguments, deleted, "offsets deleted")
    partitions = [TopicPartition(str(row["topic"]), int(str(row["partition"]))) for row in rows]
    answers = admin.delete_group_offsets(arguments.group, partitions, raise_errors=False)
    return report(arguments, answers, "offset deleted")


@Verb(
    "copy: copy the committed offsets of a group, also to another cluster, after showing the plan",
    GROUP,
    arg("to_group [TO]", "the group that gets the offsets (the same name)", complete="group"),
    arg("--to-context NAME", "the group is in the cluster of this context", complete="context"),
    arg("--rename TOPIC=NAME...", "the group reads the copy of this name; may be repeated"),
    examples=[
        "billing billing-2 --yes --sandbox",
        "billing billing-2 --dry-run --format json --sandbox",
        "billing --rename orders=events --dry-run --sandbox",
    ],
    lists=True,
    asks=True,
    epilog="Copies of a topic have other offsets. With --to-context or --rename the record that the group reads "
    "next is looked up in the copy, by its time and its content: the group continues there with the same record.",
)
def _copy(arguments: Namespace, connection: Connection) -> int:
    admin = connection.admin()
    known = known_groups(arguments, admin, [arguments.group])
    if not known:
        return 1
    is_share = known[arguments.group].group_type == "share"
    commits = _stored(admin, arguments.group)
    if not commits:
        raise CommandError(f"group {arguments.group!r} has no committed offsets")
    target = connection.target()
    if arguments.to_context or arguments.rename:
        from kafka.cli.translation import translated

        commits = translated(arguments, connection, target, commits)
    return _apply(arguments, target, arguments.to_group or arguments.group, commits, is_share=is_share)


VERBS: Final = [_offsets, _reset, _delete_offsets, _copy]
