"""``purekafka partitions``: reassign replicas, elect leaders, move replicas between directories."""

from __future__ import annotations

import json
import os
import sys
import time
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from kafka.cli.arguments import CommandError, UsageError, count, from_json, text_of
from kafka.cli.connection import Connection
from kafka.cli.files import whole_file
from kafka.cli.grammar import TABLE, Noun, Verb, arg
from kafka.cli.offsets import partitions
from kafka.cli.output import Column, agreed, complain, counted, emit, report, row_of
from kafka.cli.throttle import rate_of, remove, throttle, throttled_topics
from kafka.structs import TopicPartition, TopicPartitionReplica

if TYPE_CHECKING:
    from kafka.admin import KafkaAdminClient

Replicas = dict[TopicPartition, list[int]]

_PLAN_COLUMNS: Final = Column.of("topic", "partition", "replicas", "new_replicas")
_LIMIT_STAYS: Final = "the limit stays until: purekafka partitions reassign-throttle none"
_CHOSEN: Final = arg("partitions TOPIC[:N,N-M]...", "topics or patterns, or partitions of them", complete="topic")
_SOME: Final = arg(
    "partitions [TOPIC[:N,N-M]...]", "topics or patterns, or partitions of them; all if none", complete="topic"
)


def spread(
    partitions_: Mapping[TopicPartition, Sequence[int]], brokers: Mapping[int, str | None], factor: int
) -> Replicas:
    """Return replicas for partitions: leaders and replicas even over brokers, racks apart, few replicas moved.

    >>> spread({TopicPartition("t", 0): [1], TopicPartition("t", 1): [1]}, {1: None, 2: None}, 1)
    {TopicPartition(topic='t', partition=0): [1], TopicPartition(topic='t', partition=1): [2]}
    """
    if factor > len(brokers):
        raise UsageError(
            f"topic {min(partitions_).topic!r}: {factor} replicas need as many brokers; there are {len(brokers)}: "
            f"-r {len(brokers)} has fewer"
        )
    room = -(-len(partitions_) * factor // len(brokers))
    leaders_room = -(-len(partitions_) // len(brokers))
    load = dict.fromkeys(brokers, 0)
    leads = dict.fromkeys(brokers, 0)
    found: Replicas = {}
    for tp, before in sorted(partitions_.items()):
        kept = [broker for broker in before if broker in brokers and load[broker] < room][:factor]
        while len(kept) < factor:
            racks = {brokers[broker] for broker in kept} - {None}
            kept.append(
                min(
                    (broker for broker in brokers if broker not in kept),
                    key=lambda broker: (brokers[broker] in racks, load[broker], leads[broker], broker),
                )
            )
        for broker in kept:
            load[broker] += 1
        if leads[kept[0]] >= leaders_room:  # lead by the replica that leads least
            kept.sort(key=lambda broker: leads[broker])
        leads[kept[0]] += 1
        found[tp] = kept
    return found


def _current(admin: KafkaAdminClient, words: Sequence[str]) -> Replicas:
    chosen = set(partitions(admin, words))
    names = sorted({tp.topic for tp in chosen})
    return {
        TopicPartition(str(topic.name), each.partition_index): list(each.replica_nodes)
        for topic in admin.describe_topics(names)
        for each in topic.partitions
        if TopicPartition(str(topic.name), each.partition_index) in chosen
    }


def _file_of(replicas: Mapping[TopicPartition, Sequence[int]]) -> str:
    """Return the JSON of Kafka's own script."""
    entries = [
        {**tp._asdict(), "replicas": list(brokers), "log_dirs": ["any"] * len(brokers)}
        for tp, brokers in sorted(replicas.items())
    ]
    return json.dumps({"version": 1, "partitions": entries})


def _read_plan(path: str) -> Replicas:
    text = text_of(path, "the plan")
    try:
        entries = from_json(text)["partitions"]
        return {
            TopicPartition(entry["topic"], int(entry["partition"])): [int(broker) for broker in entry["replicas"]]
            for entry in entries
        }
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path} is not a plan of a reassignment: {error!r}") from None


def _ids(option: str, text: str) -> list[int]:
    """Return the ids of brokers.

    >>> _ids("--brokers", "1, 2")
    [1, 2]
    """
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"{option} takes ids such as 1,2,3, not {text!r}") from None


def _check_brokers(ids: Iterable[int], known: Iterable[int]) -> None:
    missing = sorted(set(ids) - set(known))
    if missing:
        raise CommandError(f"broker {missing[0]} does not exist; the brokers are {', '.join(map(str, sorted(known)))}")


@Verb(
    "reassign-plan: plan which brokers have the replicas: evenly, racks apart, with few moves",
    _SOME,
    arg("--brokers ID,ID", "the brokers that may have replicas (all)"),
    arg("--without ID,ID", "the brokers that are to have none, for maintenance"),
    arg("-r, --replication-factor N", "how many replicas (as many as now)", count),
    arg("--output FILE", "write the plan as JSON, which Kafka's own script reads too"),
    examples=["events --sandbox", "'*' --without 3 --output plan.json --sandbox"],
    lists=True,
)
def _plan(arguments: Namespace, connection: Connection) -> int:
    admin = connection.admin()
    before = _current(admin, arguments.partitions)
    known = {int(broker.broker_id): broker.rack for broker in admin.describe_cluster().brokers}
    chosen = sorted(set(_ids("--brokers", arguments.brokers))) if arguments.brokers else sorted(known)
    _check_brokers(chosen, known)
    chosen = [broker for broker in chosen if broker not in _ids("--without", arguments.without or "-1")]
    by_factor: dict[int, Replicas] = {}
    for tp, replicas in before.items():
        by_factor.setdefault(arguments.replication_factor or len(replicas), {})[tp] = replicas
    after = {
        tp: replicas
        for factor, some in by_factor.items()
        for tp, replicas in spread(some, {broker: known[broker] for broker in chosen}, factor).items()
    }
    moved = {tp: replicas for tp, replicas in after.items() if replicas != before[tp]}
    if arguments.output:
        with whole_file(arguments.output) as file:
            file.write(f"{_file_of(moved)}\n".encode())
    rows = _plan_rows(before, moved)
    if not rows:
        complain(arguments, "nothing needs to move")
    return emit(arguments, rows, _PLAN_COLUMNS)


def _plan_rows(
    before: Mapping[TopicPartition, Sequence[int]], after: Mapping[TopicPartition, Sequence[int]]
) -> list[dict[str, object]]:
    return [
        {**tp._asdict(), "replicas": list(before.get(tp, ())), "new_replicas": list(replicas)}
        for tp, replicas in sorted(after.items())
    ]


@Verb(
    "reassign-apply: move partitions as a plan says, after showing it",
    arg("plan FILE", "a plan as JSON, of this command or of Kafka's script", complete="file"),
    arg("--rollback FILE", "write the present replicas as a plan to this new file"),
    arg("--replace", "overwrite the file of --rollback if it exists"),
    arg("--throttle RATE", "limit the bandwidth of each broker, such as 50MB a second", rate_of),
    arg("--wait", "wait until the partitions have moved, and remove the limit of --throttle"),
    TABLE,
    examples=["plan.json --yes --sandbox", "plan.json --rollback old.json --dry-run --sandbox"],
    asks=True,
)
def _apply(arguments: Namespace, connection: Connection) -> int:
    wanted = _read_plan(arguments.plan)
    if arguments.rollback and not arguments.replace and os.path.lexists(arguments.rollback):
        raise UsageError(f"--rollback {arguments.rollback}: the file exists; --replace overwrites it")
    admin = connection.admin()
    before = _current(admin, sorted({tp.topic for tp in wanted}))
    for tp in wanted:
        if tp not in before:
            raise CommandError(f"partition {tp.partition} of topic {tp.topic!r} does not exist")
    rows = _plan_rows(before, wanted)
    if not agreed(connection, f"Move {counted(len(wanted), 'partition')}?", rows, _PLAN_COLUMNS):
        return 0
    if arguments.rollback:
        # Never in place of the way back of an earlier move, which this may be the second half of.
        way_back = _file_of({tp: before[tp] for tp in wanted})
        with whole_file(arguments.rollback, replace=arguments.replace) as file:
            file.write(f"{way_back}\n".encode())
    return _move(arguments, admin, {tp: (before[tp], wanted[tp]) for tp in wanted})


def _move(
    arguments: Namespace, admin: KafkaAdminClient, moves: Mapping[TopicPartition, tuple[Sequence[int], Sequence[int]]]
) -> int:
    """Move partitions, given their present and new replicas; with a limit before anything moves, if one is wanted."""
    if arguments.throttle is not None and report(arguments, throttle(admin, arguments.throttle, moves)):
        return 1
    answers = admin.alter_partition_reassignments({tp: after for tp, (_, after) in moves.items()}, raise_errors=False)
    limited = arguments.throttle is not None
    code = report(arguments, answers, "moves")
    try:
        if arguments.wait and not code:
            _wait(admin, set(moves))
            if limited:
                code = report(arguments, remove(admin, sorted({tp.topic for tp in moves})))
                limited = False
    finally:  # also after Ctrl-C, and when the time of --timeout is over
        if limited:
            complain(arguments, _LIMIT_STAYS)
    return code


@Verb(
    "reassign-throttle: limit the bandwidth of moving partitions, or remove the limit",
    [arg("RATE", "bytes per second of each broker, such as 50MB; none removes the limit", rate_of), *TABLE],
    examples=["none --yes --sandbox", "none --dry-run -b localhost:9092"],
    asks=True,
)
def _throttle(arguments: Namespace, connection: Connection) -> int:
    admin, rate = connection.admin(), arguments.rate
    moving = admin.list_partition_reassignments()
    if rate is None:
        topics = throttled_topics(admin)
        if moving:
            complain(arguments, f"{counted(len(moving), 'partition')} still moving, from now on without a limit")
        question = f"Remove the limit of {counted(len(topics), 'topic')} and of all brokers?"
        if not agreed(connection, question, [{"topic": topic} for topic in topics], Column.of("topic")):
            return 0
        return report(arguments, remove(admin, topics))
    if not moving:
        raise CommandError("no partition is moving")
    moves = {
        tp: ([broker for broker in one.replicas if broker not in one.adding_replicas], one.replicas)
        for tp, one in moving.items()
    }
    rows = [{**tp._asdict(), "replicas": one.replicas} for tp, one in moving.items()]
    question = f"Limit the move of {counted(len(moves), 'partition')} to {rate:,} bytes per second?"
    if not agreed(connection, question, rows):
        return 0
    return report(arguments, throttle(admin, rate, moves))


def _wait(admin: KafkaAdminClient, chosen: set[TopicPartition]) -> None:
    while True:
        moving = chosen & set(admin.list_partition_reassignments())
        if sys.stderr.isatty():
            print(f"\r\x1b[K{counted(len(moving), 'partition')} still moving", end="", file=sys.stderr, flush=True)
        if not moving:
            print("\r\x1b[Kmoved" if sys.stderr.isatty() else "moved", file=sys.stderr)
            return
        time.sleep(0.5)


@Verb(
    "reassign-status: show the partitions that are moving, and compare with a plan",
    arg("plan [FILE]", "a plan to compare the replicas with", complete="file"),
    examples=["--sandbox", "plan.json --sandbox --format json"],
    lists=True,
)
def _status(arguments: Namespace, connection: Connection) -> int:
    admin = connection.admin()
    found = admin.list_partition_reassignments()
    rows = [
        {
            **tp._asdict(),
            "replicas": list(one.replicas),
            "adding": list(one.adding_replicas),
            "removing": list(one.removing_replicas),
        }
        for tp, one in sorted(found.items())
    ]
    code = 0
    if arguments.plan:
        wanted = _read_plan(arguments.plan)
        now = _current(admin, sorted({tp.topic for tp in wanted}))
        for tp, replicas in sorted(wanted.items()):
            if tp not in found and now.get(tp) != replicas:
                complain(arguments, f"{tp.topic}-{tp.partition} has replicas {now.get(tp)}, not {replicas}")
                code = 1
    if not rows and arguments.format == "table":
        complain(arguments, "no partition is moving" + (", all are as planned" if arguments.plan and not code else ""))
    return emit(arguments, rows, Column.of("topic", "partition", "replicas", "adding", "removing")) or code


@Verb(
    "reassign-cancel: cancel the moves of partitions",
    [_SOME, *TABLE],
    examples=["--yes -b localhost:9092", "events --dry-run -b localhost:9092"],
    asks=True,
)
def _cancel(arguments: Namespace, connection: Connection) -> int:
    admin = connection.admin()
    moving = admin.list_partition_reassignments()
    if arguments.partitions:
        chosen = set(partitions(admin, arguments.partitions))
        moving = {tp: one for tp, one in moving.items() if tp in chosen}
    if not moving:
        raise CommandError("no such partition is moving")
    rows = [{**tp._asdict(), "replicas": one.replicas} for tp, one in sorted(moving.items())]
    if not agreed(connection, f"Cancel the move of {counted(len(moving), 'partition')}?", rows):
        return 0
    answers = admin.alter_partition_reassignments(dict.fromkeys(moving), raise_errors=False)
    code = report(arguments, answers, "move cancelled")
    if throttled_topics(admin):
        complain(arguments, _LIMIT_STAYS)
    return code


@Verb(
    "elect: make the first replica of each partition its leader",
    [_SOME, arg("--unclean", "let a replica lead that is not in sync: loses records"), *TABLE],
    examples=["--yes --sandbox", "events:0 --dry-run --sandbox"],
    asks=True,
)
def _elect(arguments: Namespace, connection: Connection) -> int:
    admin = connection.admin()
    chosen = partitions(admin, arguments.partitions) if arguments.partitions else None
    kind = "unclean" if arguments.unclean else "preferred"
    rows = [
        {
            "topic": topic.name,
            **row_of(one, "partition=partition_index", "replicas=replica_nodes", "isr=isr_nodes"),
            "leader": None if one.leader_id < 0 else one.leader_id,
        }
        for topic in admin.describe_topics(sorted({tp.topic for tp in chosen}) if chosen else None)
        for one in topic.partitions
        if (one.leader_id < 0 if arguments.unclean else one.leader_id != one.replica_nodes[0])
        and (chosen is None or (topic.name, one.partition_index) in chosen)
    ]
    if not rows and chosen is None:
        complain(arguments, f"every partition has {'a' if arguments.unclean else 'its preferred'} leader")
        return 0
    columns = Column.of("topic", "partition", "leader", "replicas", "isr") if rows else ()
    if not agreed(connection, f"Elect {kind} leaders of {counted(len(chosen or rows), 'partition')}?", rows, columns):
        return 0
    result = admin.elect_leaders(kind, chosen, raise_errors=False)
    answers = ((one, "leads already" if one.error_code else "elected") for one in result.partitions)
    return report(arguments, ((f"{one.topic}-{one.partition_id}", one.error, done) for one, done in answers))


@Verb(
    "move-dir: move replicas of a broker to another of its directories",
    _CHOSEN,
    arg("--broker ID", "the broker that has the replicas", int, required=True),
    arg("--directory PATH", "the log directory to move them to", required=True),
    TABLE,
    examples=[
        "events --broker 1 --directory /data/2 --dry-run --sandbox",
        "events:0 --broker 1 --directory /data/2 --yes -b localhost:9092",
    ],
    asks=True,
)
def _move_dir(arguments: Namespace, connection: Connection) -> int:
    admin = connection.admin()
    _check_brokers([arguments.broker], [int(one.broker_id) for one in admin.describe_cluster().brokers])
    chosen = partitions(admin, arguments.partitions)
    wanted = {TopicPartitionReplica(*tp, arguments.broker): arguments.directory for tp in chosen}
    rows = [{**tp._asdict(), "broker": arguments.broker, "directory": arguments.directory} for tp in chosen]
    if not agreed(connection, f"Move {counted(len(chosen), 'replica')}?", rows):
        return 0
    return report(arguments, admin.alter_replica_log_dirs(wanted, raise_errors=False))


COMMAND = Noun("partitions", [_plan, _apply, _status, _throttle, _cancel, _elect, _move_dir])
