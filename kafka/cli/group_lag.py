"""``purekafka groups lag``: how far groups are behind the ends of their partitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from kafka.cli.arguments import reason
from kafka.cli.connection import Connection
from kafka.cli.grammar import Argument, Verb
from kafka.cli.output import Column, complain, emit
from kafka.cli.ranges import parse_topic_partitions

if TYPE_CHECKING:
    from argparse import Namespace

    from kafka.admin import KafkaAdminClient

__all__ = ["LAG", "NOT_FOUND", "TOPIC", "lag_rows"]

#: The states of a group that does not exist.
NOT_FOUND: Final = {"", "Dead"}
_LAG_COLUMNS: Final = [
    Column("group_id", "GROUP"),
    *Column.of("topic", "partition", "offset", "end", "lag"),
    Column("client_id", "CLIENT"),
    Column("host", "HOST"),
]
TOPIC: Final = Argument(
    "--topic",
    action="append",
    default=[],
    metavar="TOPIC[:N,N-M]",
    complete="topic",
    help="only these topics, or partitions of them; may be repeated",
)


def lag_rows(
    admin: KafkaAdminClient, groups: Sequence[str] | None, topics: Sequence[str] = ()
) -> tuple[list[dict[str, object]], list[str]]:
    """Return a row for each partition of the groups, of all groups for None; and lines about what is unknown.

    `topics` are words such as ``events`` and ``orders:0,2-3``.
    """
    wanted = parse_topic_partitions(topics)
    lags = admin.group_lag(groups, list(wanted) or None)
    trouble = [f"broker {broker}: {reason(error)}" for broker, error in lags.failed_brokers.items()]
    rows = []
    for name, lag in sorted(lags.items()):
        described = lag.description
        if lag.error is not None:
            trouble.append(f"group {name!r}: {reason(lag.error)}")
        elif described is None or (described.group_state in NOT_FOUND and not lag.partitions):
            trouble.append(f"group {name!r} does not exist")
        members = {} if described is None else {member.member_id: member for member in described.members}
        for one in lag:
            numbers = wanted.get(one.topic)
            if numbers is not None and one.partition not in numbers:
                continue
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


def _lag(arguments: Namespace) -> int:
    with Connection(arguments) as connection:
        admin = connection.admin()
        if arguments.watch:
            return _watch(arguments, admin)
        rows, trouble = _rows(arguments, admin)
    for line in trouble:
        complain(arguments, line)
    rows, columns = _summed(rows, arguments.by)
    return emit(arguments, rows, columns) or (1 if trouble else 0)


def _watch(arguments: Namespace, admin: KafkaAdminClient) -> int:
    """Redraw the lag until Ctrl-C, with rates and the time to catch up."""
    from kafka.cli.screen import Rates, lag_lines, redraw, trouble_lines

    rates = Rates()

    def look(begun: float) -> list[str]:
        rows, trouble = _rows(arguments, admin)
        rates.next(begun)
        return [*lag_lines(_summed(rows, arguments.by)[0], rates), *trouble_lines(trouble)]

    return redraw(look, arguments.interval)


def _rows(arguments: Namespace, admin: KafkaAdminClient) -> tuple[list[dict[str, Any]], list[str]]:
    return lag_rows(admin, arguments.groups or None, arguments.topic)


def _summed(rows: list[dict[str, Any]], by: str) -> tuple[list[dict[str, Any]], list[Column]]:
    if by == "partition":
        return rows, _LAG_COLUMNS
    keys = ["group_id"] if by == "group" else ["group_id", "topic"]
    sums: dict[tuple[object, ...], dict[str, Any]] = {}
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


LAG: Final = Verb(
    "lag",
    "show how far groups are behind the ends of their partitions",
    _lag,
    [
        Argument("groups", metavar="GROUP", nargs="*", complete="group", help="names of groups; all if none"),
        TOPIC,
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
)
