"""``purekafka groups``: list and describe groups, their lag, and their committed offsets."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kafka.cli.connection import Connection
from kafka.cli.grammar import Argument, Noun, Verb
from kafka.cli.output import Column, agreed, complain, counted, emit, print_table
from kafka.cli.ranges import HELP, AdminOffsets, Place, Places, parse_topic_partitions, resolve
from kafka.cli.words import Failed, WrongWord, reason
from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from argparse import Namespace

    from kafka.admin import GroupDescription, KafkaAdminClient

__all__ = ["COMMAND", "lag_rows"]

Offsets = dict[TopicPartition, int]

_LIST_COLUMNS: Final = [
    Column("group_id", "GROUP"),
    *Column.of("state", "type"),
    Column("protocol_type", "PROTOCOL"),
]
_LAG_COLUMNS: Final = [
    Column("group_id", "GROUP"),
    *Column.of("topic", "partition", "offset", "end", "lag"),
    Column("client_id", "CLIENT"),
    Column("host", "HOST"),
]
_PLAN_COLUMNS: Final = [
    *Column.of("topic", "partition", "offset"),
    Column("new_offset", "NEW OFFSET"),
    *Column.of("lag"),
    Column("new_lag", "NEW LAG"),
]
_NOT_FOUND: Final = {"", "Dead"}


def _list(arguments: Namespace) -> int:
    with Connection(arguments) as connection:
        found = connection.admin().list_groups(
            states_filter=arguments.state, types_filter=arguments.type, raise_errors=False
        )
    code = 0
    for broker, error in found.failed.items():
        complain(arguments, f"broker {broker}: {error}")
        code = 1
    rows = [
        {
            "group_id": group.group_id,
            "state": group.group_state,
            "type": group.group_type,
            "protocol_type": group.protocol_type,
        }
        for group in sorted(found, key=lambda one: str(one.group_id))
    ]
    return emit(arguments, rows, _LIST_COLUMNS) or code


def _known(arguments: Namespace, admin: KafkaAdminClient, names: Sequence[str]) -> dict[str, GroupDescription]:
    """Return the groups that exist; complain about the others."""
    found = admin.describe_groups(list(names))
    known = {}
    for name, group in found.items():
        if group.error is not None and group.group_state not in _NOT_FOUND:
            complain(arguments, group.error)
        elif group.error is not None or group.group_state in _NOT_FOUND:
            complain(arguments, f"there is no group {name!r}")
        else:
            known[name] = group
    return known


def _describe(arguments: Namespace) -> int:
    with Connection(arguments) as connection:
        known = _known(arguments, connection.admin(), arguments.groups)
    items = [
        {
            "group_id": group.group_id,
            "state": group.group_state,
            "type": group.group_type,
            "protocol_type": group.protocol_type,
            "assignor": group.protocol_data,
            "members": [_member(member) for member in group.members],
        }
        for group in known.values()
    ]
    rows = [{"group_id": group.group_id, **_member(member)} for group in known.values() for member in group.members]
    columns = [Column("group_id", "GROUP"), *_MEMBER_COLUMNS]
    code = emit(arguments, rows, columns, items=items, table=lambda: _print_groups(arguments, items))
    return 1 if len(known) < len(arguments.groups) else code


_MEMBER_COLUMNS: Final = [
    Column("client_id", "CLIENT"),
    Column("host", "HOST"),
    Column("assignment", "PARTITIONS"),
    Column("member_id", "MEMBER"),
]


def _member(member: Any) -> dict[str, Any]:
    assigned = getattr(member.member_assignment, "assigned_partitions", None)
    return {
        "member_id": member.member_id,
        "client_id": member.client_id,
        "host": member.client_host,
        "group_instance_id": member.group_instance_id,
        "assignment": None
        if assigned is None
        else {entry.topic: sorted(entry.partitions) for entry in sorted(assigned, key=lambda one: str(one.topic))},
    }


def _print_groups(arguments: Namespace, items: list[dict[str, Any]]) -> None:
    for number, item in enumerate(items):
        if number:
            print()
        assignor = f", {item['assignor']}" if item["assignor"] else ""
        members = item["members"]
        print(f"Group {item['group_id']}: {item['state']}, {item['type']}{assignor}, {counted(len(members), 'member')}")
        if members:
            rows = [
                {
                    **member,
                    "assignment": _assigned(member),
                }
                for member in members
            ]
            print_table(arguments, rows, _MEMBER_COLUMNS)


def _assigned(member: dict[str, Any]) -> str:
    assignment: dict[str, list[int]] = member["assignment"] or {}
    return " ".join(f"{topic}:{','.join(map(str, numbers))}" for topic, numbers in assignment.items())


# Lag…


def lag_rows(
    admin: KafkaAdminClient, groups: Sequence[str] | None, topics: Sequence[str] | None = None
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return a row for each partition of the groups, of all groups for None; and lines about what is not known."""
    lags = admin.group_lag(groups, topics or None)
    trouble = [f"broker {broker}: {reason(error)}" for broker, error in lags.failed_brokers.items()]
    rows = []
    for name, lag in sorted(lags.items()):
        described = lag.description
        if lag.error is not None:
            trouble.append(f"group {name!r}: {reason(lag.error)}")
        elif described is None or (described.group_state in _NOT_FOUND and not lag.partitions):
            trouble.append(f"there is no group {name!r}")
        members = {} if described is None else {member.member_id: member for member in described.members}
        for one in lag:
            if one.error is not None:
                trouble.append(f"group {name!r}, {one.topic}-{one.partition}: {reason(one.error)}")
            owner = members.get(one.member_id or "")
            rows.append(
                {
                    "group_id": name,
                    "topic": one.topic,
                    "partition": one.partition,
                    "offset": one.committed,
                    "end": one.end,
                    "lag": one.lag,
                    "client_id": None if owner is None else owner.client_id,
                    "host": None if owner is None else owner.client_host,
                    "member_id": one.member_id,
                }
            )
    return rows, trouble


def _edges(admin: KafkaAdminClient, partitions: Iterable[TopicPartition], place: str) -> Offsets:
    """Return offsets of the partitions that exist."""
    from kafka.errors import KafkaError

    chosen = list(partitions)
    if not chosen:
        return {}
    found = admin.list_partition_offsets(dict.fromkeys(chosen, place), raise_errors=False)
    return {tp: answer.offset for tp, answer in found.items() if not isinstance(answer, KafkaError)}


def _lag(arguments: Namespace) -> int:
    with Connection(arguments) as connection:
        admin = connection.admin()
        if arguments.watch:
            from kafka.cli.screen import watch

            return watch(lambda: _summed(_rows(arguments, admin)[0], arguments.by)[0], arguments.interval)
        rows, trouble = _rows(arguments, admin)
    for line in trouble:
        complain(arguments, line)
    rows, columns = _summed(rows, arguments.by)
    return emit(arguments, rows, columns) or (1 if trouble else 0)


def _rows(arguments: Namespace, admin: KafkaAdminClient) -> tuple[list[dict[str, Any]], list[str]]:
    return lag_rows(admin, arguments.groups or None, arguments.topic)


def _summed(rows: list[dict[str, Any]], by: str) -> tuple[list[dict[str, Any]], list[Column]]:
    if by == "partition":
        return rows, _LAG_COLUMNS
    keys = ["group_id"] if by == "group" else ["group_id", "topic"]
    sums: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        key = tuple(row[name] for name in keys)
        total = sums.setdefault(key, {**{name: row[name] for name in keys}, "partitions": 0, "lag": 0, "largest": 0})
        total["partitions"] += 1
        total["lag"] += row["lag"] or 0
        total["largest"] = max(total["largest"], row["lag"] or 0)
    return list(sums.values()), [
        Column("group_id", "GROUP"),
        *Column.of(*keys[1:], "partitions", "lag"),
        Column("largest", "LARGEST"),
    ]


# Offsets…


def _offsets(arguments: Namespace) -> int:
    with Connection(arguments) as connection:
        admin = connection.admin()
        if arguments.import_file:
            return _import(arguments, admin)
        known = _known(arguments, admin, [arguments.group])
        if not known:
            return 1
        found = admin.list_group_offsets(arguments.group)[arguments.group]
        rows = [
            {"topic": tp.topic, "partition": tp.partition, "offset": place.offset, "metadata": place.metadata}
            for tp, place in sorted(found.items())
            if place.offset >= 0
        ]
    if arguments.export_file:
        _export(arguments.export_file, [(row["topic"], row["partition"], row["offset"]) for row in rows])
        return 0
    return emit(arguments, rows, Column.of("topic", "partition", "offset", "metadata"))


def _export(path: str, rows: Iterable[tuple[Any, ...]]) -> None:
    """Write CSV as Kafka's own script does: topic,partition,offset without a heading."""
    if path == "-":
        csv.writer(sys.stdout, lineterminator="\n").writerows(rows)
        return
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def _read_csv(path: str, group: str) -> Offsets:
    """Read what `_export` or Kafka's script wrote; lines with a group in front are chosen by it."""
    found = {}
    with sys.stdin if path == "-" else open(path, encoding="utf-8", newline="") as file:
        for number, row in enumerate(csv.reader(file), 1):
            if len(row) == 4:
                if row[0] != group:
                    continue
                row = row[1:]  # noqa: PLW2901 - without the group
            if len(row) != 3 or not row[1].strip().isdigit() or not row[2].strip().isdigit():
                raise WrongWord(f"{path}, line {number}: write topic,partition,offset, not {','.join(row)!r}")
            found[TopicPartition(row[0], int(row[1]))] = int(row[2])
    return found


def _import(arguments: Namespace, admin: KafkaAdminClient) -> int:
    return _apply(arguments, admin, arguments.group, _read_csv(arguments.import_file, arguments.group))


def _reset(arguments: Namespace) -> int:
    ways = [arguments.to, arguments.shift_by, arguments.from_file]
    if sum(way is not None for way in ways) != 1:
        raise WrongWord("give one of --to, --shift-by and --from-file")
    with Connection(arguments) as connection:
        admin = connection.admin()
        if arguments.from_file is not None:
            return _apply(arguments, admin, arguments.group, _read_csv(arguments.from_file, arguments.group))
        found = admin.list_group_offsets(arguments.group)[arguments.group]
        committed = {tp: place.offset for tp, place in found.items() if place.offset >= 0}
        chosen = _chosen(arguments, admin, committed)
        if not chosen:
            raise Failed(f"group {arguments.group!r} has no committed offsets: name topics with --topic")
        places: dict[TopicPartition, Place] = {}
        if arguments.shift_by is not None:
            without = sorted(tp for tp in chosen if tp not in committed)
            if without:
                raise Failed(f"--shift-by needs a committed offset; {without[0].topic}-{without[0].partition} has none")
            places = {tp: Place("offset", max(0, committed[tp] + arguments.shift_by)) for tp in chosen}
        else:
            wanted = Places(arguments.to)
            places = {tp: place for tp in chosen if (place := wanted.of(tp.partition)) is not None}
        return _apply(arguments, admin, arguments.group, resolve(AdminOffsets(admin), places, committed), committed)


def _chosen(arguments: Namespace, admin: KafkaAdminClient, committed: Offsets) -> list[TopicPartition]:
    """Return the partitions that --topic names, or all with a committed offset."""
    if not arguments.topic:
        return sorted(committed)
    wanted = parse_topic_partitions(arguments.topic)
    chosen = []
    for topic in admin.describe_topics(list(wanted)):
        topic.raise_for_error()
        numbers = wanted[str(topic.name)]
        known = {int(each.partition_index) for each in topic.partitions}
        if numbers is not None and numbers - known:
            raise Failed(f"topic {topic.name!r} has no partition {min(numbers - known)}")
        chosen += [TopicPartition(str(topic.name), number) for number in sorted(known if numbers is None else numbers)]
    return chosen


def _apply(
    arguments: Namespace,
    admin: KafkaAdminClient,
    group: str,
    new: Offsets,
    committed: Mapping[TopicPartition, int] | None = None,
) -> int:
    """Show the plan of a change of offsets, and do it."""
    from kafka.errors import NoError

    if committed is None:
        found = admin.list_group_offsets(group)[group]
        committed = {tp: place.offset for tp, place in found.items() if place.offset >= 0}
    ends = _edges(admin, new, "latest")
    missing = sorted(set(new) - set(ends))
    if missing:
        raise Failed(f"partition {missing[0].partition} of topic {missing[0].topic!r} is not known")
    rows = [
        {
            "topic": tp.topic,
            "partition": tp.partition,
            "offset": committed.get(tp),
            "new_offset": offset,
            "lag": max(0, ends[tp] - committed[tp]) if tp in committed else None,
            "new_lag": max(0, ends[tp] - offset),
        }
        for tp, offset in sorted(new.items())
    ]
    if getattr(arguments, "export_file", None):
        _export(arguments.export_file, [(row["topic"], row["partition"], row["new_offset"]) for row in rows])
    else:
        emit(arguments, rows, _PLAN_COLUMNS)
    state = admin.describe_groups([group])[group]
    if state.members:
        members = counted(len(state.members), "member")
        raise Failed(f"group {group!r} has {members}, which would commit over it: stop them first")
    if not agreed(arguments, f"Change {counted(len(rows), 'offset')} of group {group}?"):
        return 0
    answers = admin.alter_group_offsets(group, new)
    failed = {tp: error for tp, error in answers.items() if error is not NoError}
    for tp, error in sorted(failed.items()):
        complain(arguments, f"{tp.topic}-{tp.partition}: {_why(error)}")
    return 1 if failed else 0


def _delete_offsets(arguments: Namespace) -> int:
    from kafka.errors import NoError

    with Connection(arguments) as connection:
        admin = connection.admin()
        if not _known(arguments, admin, [arguments.group]):
            return 1
        found = admin.list_group_offsets(arguments.group)[arguments.group]
        wanted = parse_topic_partitions(arguments.topic)
        rows = [
            {"topic": tp.topic, "partition": tp.partition, "offset": place.offset}
            for tp, place in sorted(found.items())
            if tp.topic in wanted and (wanted[tp.topic] is None or tp.partition in (wanted[tp.topic] or ()))
        ]
        if not rows:
            raise Failed(f"group {arguments.group!r} has no offsets of {', '.join(arguments.topic)}")
        print_table(arguments, rows, Column.of("topic", "partition", "offset"))
        if not agreed(arguments, f"Delete {counted(len(rows), 'offset')} of group {arguments.group}?"):
            return 0
        partitions = [TopicPartition(str(row["topic"]), int(str(row["partition"]))) for row in rows]
        code = 0
        for tp, error in admin.delete_group_offsets(arguments.group, partitions).items():
            if error is not NoError:
                complain(arguments, f"{tp.topic}-{tp.partition}: {_why(error)}")
                code = 1
        return code


def _delete(arguments: Namespace) -> int:
    with Connection(arguments) as connection:
        admin = connection.admin()
        known = _known(arguments, admin, arguments.groups)
        code = 1 if len(known) < len(set(arguments.groups)) else 0
        if not known:
            return code
        rows = [
            {"group_id": name, "state": group.group_state, "members": len(group.members)}
            for name, group in known.items()
        ]
        print_table(arguments, rows, [Column("group_id", "GROUP"), *Column.of("state", "members")])
        if not agreed(arguments, f"Delete {counted(len(known), 'group')} with all offsets?"):
            return code
        for name, outcome in admin.delete_groups(list(known)).items():
            if outcome.error is None:
                print(f"{name}: deleted")
            else:
                complain(arguments, f"group {name!r}: {_why(outcome.error)}")
                code = 1
        return code


def _remove_members(arguments: Namespace) -> int:
    from kafka.errors import NoError

    with Connection(arguments) as connection:
        admin = connection.admin()
        known = _known(arguments, admin, [arguments.group])
        if not known:
            return 1
        members = [_member(member) for member in known[arguments.group].members]
        if arguments.member:
            members = [one for one in members if {one["member_id"], one["group_instance_id"]} & set(arguments.member)]
        if not members:
            raise Failed(f"group {arguments.group!r} has no such members")
        print_table(arguments, members, [*_MEMBER_COLUMNS[:2], _MEMBER_COLUMNS[3]])
        if not agreed(arguments, f"Remove {counted(len(members), 'member')} of group {arguments.group}?"):
            return 0
        answers = admin.remove_group_members(arguments.group, [one["member_id"] for one in members])
        failed = {member: error for member, error in answers.items() if error is not NoError}
        for member, error in failed.items():
            complain(arguments, f"member {member}: {_why(error)}")
        return 1 if failed else 0


def _copy(arguments: Namespace) -> int:
    with Connection(arguments) as connection:
        admin = connection.admin()
        if not _known(arguments, admin, [arguments.group]):
            return 1
        found = admin.list_group_offsets(arguments.group)[arguments.group]
        offsets = {tp: place.offset for tp, place in found.items() if place.offset >= 0}
        if not offsets:
            raise Failed(f"group {arguments.group!r} has no committed offsets")
        return _apply(arguments, admin, arguments.to_group, offsets)


def _why(error: Any) -> str:
    """Return what an error of a broker means."""
    return str(getattr(error, "description", "") or getattr(error, "__name__", error))


_GROUPS: Final = Argument("groups", metavar="GROUP", nargs="+", complete="group", help="names of the groups")
_GROUP: Final = Argument("group", metavar="GROUP", complete="group", help="the name of the group")
_TOPIC: Final = Argument(
    "--topic",
    action="append",
    default=[],
    metavar="TOPIC[:N,N-M]",
    complete="topic",
    help="only these topics, or partitions of them; may be repeated",
)
_PLAIN: Final = (
    Argument("--no-headers", action="store_true", help="leave the heading of the table out"),
    Argument("--color", choices=("auto", "always", "never"), default="auto", help="when to use colours (auto)"),
)

COMMAND = Noun(
    "groups",
    "list and describe groups, their lag, and their committed offsets",
    [
        Verb(
            "list",
            "list the groups of all brokers",
            _list,
            [
                Argument("--state", action="append", default=[], metavar="STATE", help="only groups in this state"),
                Argument("--type", action="append", default=[], metavar="TYPE", help="only groups of this type"),
            ],
            ["purekafka groups list --sandbox", "purekafka groups list --sandbox --state Empty --format '{group_id}'"],
            lists=True,
        ),
        Verb(
            "describe",
            "show the state of groups and their members with their partitions",
            _describe,
            [_GROUPS],
            ["purekafka groups describe billing --sandbox", "purekafka group describe billing --sandbox --format json"],
            lists=True,
        ),
        Verb(
            "lag",
            "show how far groups are behind the ends of their partitions",
            _lag,
            [
                Argument("groups", metavar="GROUP", nargs="*", complete="group", help="names of groups; all if none"),
                _TOPIC,
                Argument(
                    "--by",
                    choices=("partition", "topic", "group"),
                    default="partition",
                    help="a row for each (partition)",
                ),
                Argument("-w", "--watch", action="store_true", help="redraw it each second, with rates, until Ctrl-C"),
                Argument("--interval", type=float, default=1.0, metavar="SECONDS", help="the time between redraws (1)"),
            ],
            ["purekafka groups lag --sandbox", "purekafka groups lag billing --by topic --sandbox --format json"],
            lists=True,
        ),
        Verb(
            "offsets",
            "show the committed offsets of a group, or export and import them as CSV",
            _offsets,
            [
                _GROUP,
                Argument(
                    "--export",
                    dest="export_file",
                    metavar="FILE",
                    complete="file",
                    help="write topic,partition,offset lines, which Kafka's own script reads too; - is standard output",
                ),
                Argument(
                    "--import",
                    dest="import_file",
                    metavar="FILE",
                    complete="file",
                    help="commit the offsets of such a file, after showing the plan; - is standard input",
                ),
            ],
            [
                "purekafka groups offsets billing --sandbox",
                "purekafka groups offsets billing --export - --sandbox",
            ],
            lists=True,
            asks=True,
        ),
        Verb(
            "reset-offsets",
            "change the committed offsets of a group without members, after showing the plan",
            _reset,
            [
                _GROUP,
                _TOPIC,
                Argument("--to", metavar="PLACE", help="where the group continues"),
                Argument("--shift-by", type=int, metavar="N", help="move by N records; negative: back"),
                Argument("--from-file", metavar="FILE", complete="file", help="take the offsets of an exported file"),
                Argument(
                    "--export",
                    dest="export_file",
                    metavar="FILE",
                    complete="file",
                    help="write the plan as topic,partition,offset lines instead of a table; - is standard output",
                ),
            ],
            [
                "purekafka groups reset-offsets billing --to beginning --dry-run --sandbox",
                "purekafka groups reset-offsets billing --topic orders --shift-by -1 --yes --sandbox",
            ],
            lists=True,
            asks=True,
            epilog=HELP,
        ),
        Verb(
            "delete-offsets",
            "delete committed offsets of topics that no member reads",
            _delete_offsets,
            [
                _GROUP,
                Argument(
                    "--topic",
                    action="append",
                    required=True,
                    metavar="TOPIC[:N,N-M]",
                    complete="topic",
                    help="the topics, or partitions of them; may be repeated",
                ),
                *_PLAIN,
            ],
            [
                "purekafka groups delete-offsets billing --topic orders --yes --sandbox",
                "purekafka groups delete-offsets billing --topic events:0 --dry-run --sandbox",
            ],
            asks=True,
        ),
        Verb(
            "delete",
            "delete groups without members",
            _delete,
            [_GROUPS, *_PLAIN],
            ["purekafka groups delete billing --yes --sandbox", "purekafka groups delete billing --dry-run --sandbox"],
            asks=True,
        ),
        Verb(
            "remove-members",
            "remove members from a group; they may join again",
            _remove_members,
            [
                _GROUP,
                Argument(
                    "--member", action="append", default=[], metavar="ID", help="only these members; may be repeated"
                ),
                *_PLAIN,
            ],
            [
                "purekafka groups remove-members readers --yes -b localhost:9092",
                "purekafka groups remove-members readers --member consumer-1 --dry-run -b localhost:9092",
            ],
            asks=True,
        ),
        Verb(
            "copy",
            "copy the committed offsets of a group to another one, after showing the plan",
            _copy,
            [_GROUP, Argument("to_group", metavar="TO", complete="group", help="the group that gets the offsets")],
            [
                "purekafka groups copy billing billing-2 --yes --sandbox",
                "purekafka groups copy billing billing-2 --dry-run --format json --sandbox",
            ],
            lists=True,
            asks=True,
        ),
    ],
)
