"""``purekafka groups lag``: how far groups are behind the ends of their partitions."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kafka.cli.arguments import UsageError, from_json, reason
from kafka.cli.connection import Connection
from kafka.cli.grammar import Verb, arg, positive
from kafka.cli.output import Column, complain, emit
from kafka.cli.ranges import parse_topic_partitions

if TYPE_CHECKING:
    from kafka.admin import KafkaAdminClient
    from kafka.structs import OffsetAndMetadata, TopicPartition

#: The states of a group that does not exist.
NOT_FOUND: Final = {"", "Dead"}
#: The names of Spark's tasks: prefix, query and number.
_TASK: Final = r"-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}-\d+$"
_LAG_COLUMNS: Final = Column.of(
    "group_id=GROUP", "topic", "partition", "offset", "end", "lag", "client_id=CLIENT", "host"
)
_PARTS: Final = {"partition": ["group_id", "topic", "partition"], "topic": ["group_id", "topic"], "group": ["group_id"]}
TOPIC: Final = arg(
    "--topic TOPIC[:N,N-M]...", "only these topics, or partitions of them; may be repeated", complete="topic"
)

#: What chooses the rows of a lag, and the exit code.
LIMITS: Final = (
    arg("--fail-above N", "end with exit code 4 if a row has a larger lag", int),
    arg("--min-lag N", "only rows with at least this lag, or with an unknown one", int),
    arg("--sort", "the largest lag first"),
)


def chosen_groups(admin: KafkaAdminClient, words: Sequence[str]) -> list[str]:
    """Return the groups that names and patterns choose, each once; a pattern that matches none is an error."""
    from fnmatch import filter as matching

    found: list[str] = []
    known: list[str] | None = None
    for word in words:
        if not set(word) & set("*?["):
            found.append(word)
            continue
        if known is None:
            known = sorted(str(group.group_id) for group in admin.list_groups())
        chosen = matching(known, word)
        if not chosen:
            raise UsageError(f"no group matches {word!r}")
        found += chosen
    return list(dict.fromkeys(found))


def is_marker_group(name: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> bool:
    """Whether a group is not a reader: tasks of Spark's queries mark there what they wrote exactly once."""
    import re

    if not offsets or not re.search(_TASK, name):
        return False
    try:
        return all({"rows", "run"} <= set(from_json(at.metadata or "")) for at in offsets.values())
    except (TypeError, ValueError):
        return False


def _markers(admin: KafkaAdminClient, names: Iterable[str]) -> set[str]:
    import re

    likely = [name for name in names if re.search(_TASK, name)]
    found = admin.list_group_offsets(likely) if likely else {}
    return {name for name, offsets in found.items() if is_marker_group(name, offsets)}


def lag_rows(
    admin: KafkaAdminClient, groups: Sequence[str] | None, topics: Sequence[str] = (), *, markers: bool = False
) -> tuple[list[dict[str, object]], list[str]]:
    """Return a row for each partition of the groups, of all groups for None; and lines about what is unknown.

    `topics` are words such as ``events`` and ``orders:0,2-3``. Without `markers` all groups are without the ones in
    which Spark's queries keep marks: their offsets are not positions in a topic.
    """
    wanted = parse_topic_partitions(topics)
    lags = admin.group_lag(groups, list(wanted) or None)
    trouble = [f"broker {broker}: {reason(error)}" for broker, error in lags.failed_brokers.items()]
    rows = []
    hidden = _markers(admin, lags) if groups is None and not markers else set()
    for name, lag in sorted(lags.items()):
        if name in hidden:
            continue
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
                text = reason(one.error)
                where = f"{one.topic}-{one.partition}"
                trouble.append(f"group {name!r}: {text if where in text else f'{where}: {text}'}")
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


@Verb(
    "lag: show how far groups are behind the ends of their partitions",
    arg("groups [GROUP...]", "names or patterns; all if none", complete="group"),
    arg("-a, --all", "include the groups in which Spark marks what it wrote exactly once; they read nothing"),
    TOPIC,
    arg("--by partition|topic|group", "a row for each (partition)", default="partition"),
    LIMITS,
    arg("-w, --watch", "redraw it each second, with rates, until Ctrl-C"),
    arg("--interval SECONDS", "the time between redraws (1)", positive, default=1.0),
    examples=["--sandbox", "billing --by topic --sandbox --format json"],
    lists=True,
)
def _lag(arguments: Namespace, connection: Connection) -> int:
    admin = connection.admin()
    if arguments.watch:
        from kafka.cli.screen import Rates, lag_lines, redraw, trouble_lines

        def look(rates: Rates) -> list[str]:
            rows, trouble = _rows(arguments, admin)
            return [*lag_lines(rows, rates, _PARTS[arguments.by]), *trouble_lines(trouble)]

        return redraw(look, arguments.interval)
    rows, trouble = _rows(arguments, admin)
    for line in trouble:
        complain(arguments, line)
    rows, columns = _summed(rows, arguments.by)
    rows, above = limited(arguments, rows)
    code = emit(arguments, rows, columns) or (1 if trouble else 0)
    return 4 if above else code


def limited(arguments: Namespace, rows: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], bool]:
    """Return the rows that `LIMITS` choose, in their order, and whether a lag is above the one that fails."""
    limit = arguments.fail_above
    above = limit is not None and any((row["lag"] or row.get("largest") or 0) > limit for row in rows)
    if arguments.min_lag is not None:
        rows = [row for row in rows if row["lag"] is None or row["lag"] >= arguments.min_lag]
    if arguments.sort:
        rows = sorted(rows, key=lambda row: -1 if row["lag"] is None else row["lag"], reverse=True)
    return rows, above


def _rows(arguments: Namespace, admin: KafkaAdminClient) -> tuple[list[dict[str, Any]], list[str]]:
    groups = chosen_groups(admin, arguments.groups) or None
    return lag_rows(admin, groups, arguments.topic, markers=arguments.all)


def _summed(rows: list[dict[str, Any]], by: str) -> tuple[list[dict[str, Any]], list[Column]]:
    if by == "partition":
        return rows, _LAG_COLUMNS
    keys = _PARTS[by]
    sums: dict[tuple[object, ...], dict[str, Any]] = {}
    for row in rows:
        key = tuple(row[name] for name in keys)
        total = sums.setdefault(key, {**{name: row[name] for name in keys}, "partitions": 0, "lag": 0, "largest": 0})
        total["partitions"] += 1
        # A sum is not known if a part of it is not; the largest part may still be above a limit.
        total["lag"] = None if row["lag"] is None or total["lag"] is None else total["lag"] + row["lag"]
        total["largest"] = max(total["largest"], row["lag"] or 0)
    return list(sums.values()), Column.of("group_id=GROUP", *keys[1:], "partitions", "lag", "largest")


LAG: Final = _lag
