"""``purekafka health``: whether brokers answer and partitions can be read and written, by the exit code."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from kafka.cli.arguments import reason
from kafka.cli.connection import Connection
from kafka.cli.grammar import Verb, arg
from kafka.cli.output import Column, complain, counted, emit
from kafka.cli.quorum import controller
from kafka.errors import KafkaError

if TYPE_CHECKING:
    from kafka.admin import KafkaAdminClient, TopicDescription

#: The exit code of a cluster that is not healthy.
UNHEALTHY: Final = 4
#: The faults of partitions, the worst first, and what they mean.
FAULTS: Final = {
    "offline": "have no leader, and cannot be read or written",
    "under-min-isr": "have fewer replicas in sync than min.insync.replicas: acks=all fails",
    "under-replicated": "have replicas that are not in sync",
    "at-min-isr": "have as many replicas in sync as min.insync.replicas: the next loss stops acks=all",
}
_PAUSE: Final = 0.5
_SHOWN: Final = 5


def least_in_sync(admin: KafkaAdminClient, topics: Iterable[TopicDescription]) -> dict[str, int]:
    """Return min.insync.replicas of topics; one whose settings may not be described is left out."""
    from kafka.admin import ConfigResource

    name = "min.insync.replicas"
    resources = [ConfigResource("topic", str(topic.name), [name]) for topic in topics]
    found = admin.describe_configs(resources, config_filter="all", raise_errors=False) if resources else {}
    return {
        topic: int(settings[name].value or 1) for topic, settings in found.get("topic", {}).items() if name in settings
    }


def faults(partition: Any, least: int | None) -> list[str]:
    """Return the faults of a partition, given min.insync.replicas of its topic where that is known.

    As Kafka's script has it, a partition without leader is under min.insync.replicas too.
    """
    in_sync, replicas = len(partition.isr_nodes), len(partition.replica_nodes)
    leaderless = partition.leader_id < 0
    holds = {
        "offline": leaderless,
        "under-min-isr": leaderless or (least is not None and in_sync < least),
        "under-replicated": in_sync < replicas,
        "at-min-isr": least is not None and in_sync == least,
    }
    return [name for name in FAULTS if holds[name]]


def _check(admin: KafkaAdminClient) -> list[dict[str, Any]]:
    """Return a row for each thing that is looked at."""
    cluster = admin.describe_cluster()
    topics = [topic for topic in admin.describe_topics() if topic.ok]
    least = least_in_sync(admin, topics)
    alive = {int(one.broker_id) for one in cluster.brokers}
    assigned = {node for topic in topics for one in topic.partitions for node in one.replica_nodes}
    rows = [
        _row("brokers", [f"broker {broker} has replicas and is down" for broker in sorted(assigned - alive)]),
        _row("controller", ["the cluster has no controller"] if controller(admin, cluster) == -1 else []),
        _row("log-dirs", _directories(admin)),
    ]
    rows[0]["detail"] = rows[0]["detail"] or f"{counted(len(alive), 'broker')}"
    found: dict[str, list[str]] = {name: [] for name in FAULTS}
    for topic in topics:
        for one in topic.partitions:
            for fault in faults(one, least.get(str(topic.name))):
                if fault != "at-min-isr" or len(one.isr_nodes) < len(one.replica_nodes):  # one replica of one is fine
                    found[fault].append(f"{topic.name}-{one.partition_index}")
    for fault, places in found.items():
        text = (
            [f"{', '.join(places[:_SHOWN])}{', …' if len(places) > _SHOWN else ''} {FAULTS[fault]}"] if places else []
        )
        rows.append({**_row(fault, text), "count": len(places)})
    return rows


def _row(check: str, wrong: list[str]) -> dict[str, Any]:
    return {"check": check, "ok": not wrong, "count": len(wrong), "detail": "; ".join(wrong)}


def _directories(admin: KafkaAdminClient) -> list[str]:
    found = admin.describe_log_dirs(raise_errors=False)
    wrong = [f"broker {broker}: {reason(error)}" for broker, error in found.failed.items()]
    for broker in found:
        wrong += [
            f"broker {broker.broker}, {one.log_dir or 'a directory'}: {reason(one.error)}"
            for one in broker.log_dirs
            if one.error is not None
        ]
    return wrong


def _is_healthy(rows: Iterable[Mapping[str, Any]], allowed: Iterable[str]) -> bool:
    return all(row["ok"] or row["check"] in allowed for row in rows)


@Verb(
    "health",
    arg("-w, --wait", "wait until it is healthy, or until the time of --timeout is over"),
    arg("--allow CHECK...", f"healthy all the same: {', '.join(FAULTS)}; may be repeated", choices=tuple(FAULTS)),
    examples=["--sandbox", "--wait --timeout 60 --allow under-replicated --sandbox"],
    lists=True,
    epilog=f"The exit code is 0 if it is healthy, {UNHEALTHY} if it is not, and 1 if that cannot be known. "
    "-q prints only the checks that make it unhealthy.",
)
def _run(arguments: Namespace, connection: Connection) -> int:
    allowed = {"at-min-isr", *arguments.allow}
    while True:
        try:
            rows = _check(connection.admin())
        except KafkaError as error:
            if not arguments.wait or not getattr(error, "retriable", False):
                raise
            complain(arguments, f"{reason(error)}; looking again")
        else:
            if _is_healthy(rows, allowed) or not arguments.wait:
                break
        time.sleep(_PAUSE)
    if arguments.quiet:
        rows = [row for row in rows if not (row["ok"] or row["check"] in allowed)]
    code = emit(arguments, rows, Column.of("check", "ok", "detail"))
    return code if _is_healthy(rows, allowed) else UNHEALTHY


COMMAND = _run
