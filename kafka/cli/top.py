"""``purekafka top``: brokers, topics and groups with their rates and lag, redrawn each second."""

from __future__ import annotations

import time
from argparse import Namespace
from typing import TYPE_CHECKING, Any

from kafka.cli.arguments import count, reason
from kafka.cli.connection import Connection
from kafka.cli.edges import edges_of
from kafka.cli.grammar import Verb, arg, positive
from kafka.cli.group_lag import lag_rows
from kafka.cli.output import counted
from kafka.cli.quorum import controller, controller_text
from kafka.cli.screen import Rates, lag_lines, rate_text, redraw, trouble_lines, view
from kafka.errors import LeaderNotAvailableError

if TYPE_CHECKING:
    from kafka.admin import KafkaAdminClient

_TOPICS = 10


@Verb(
    "top",
    arg("--interval SECONDS", "the time between redraws (1)", positive, default=1.0),
    arg("--count N", "end after this number of redraws", count),
    examples=["--count 1 --sandbox", "--count 2 --interval 0.2 --sandbox"],
    reads=True,
)
def _run(arguments: Namespace, connection: Connection) -> int:
    admin = connection.admin()
    return redraw(lambda rates: lines(_look(admin), rates), arguments.interval, arguments.count)


def _look(admin: KafkaAdminClient) -> dict[str, Any]:
    """Return what is shown: the cluster, its topics, the edges of their partitions, and the lag of groups."""
    cluster = admin.describe_cluster()
    active = controller(admin, cluster)
    topics = [topic for topic in admin.describe_topics() if topic.ok and not topic.is_internal]
    found = edges_of(admin, topics)
    # A partition that has no leader is counted in the heading.
    trouble = [
        f"{tp.topic}-{tp.partition}: {reason(one.error)}"
        for tp, one in found.items()
        if one.error is not None and not isinstance(one.error, LeaderNotAvailableError)
    ]
    rows, unknown = lag_rows(admin, None)
    known = {tp: (one.start, one.end) for tp, one in found.items() if one.start is not None and one.end is not None}
    return {
        "cluster": cluster,
        "controller": active,
        "topics": topics,
        "edges": known,
        "rows": rows,
        "trouble": [*trouble, *unknown],
    }


def lines(found: dict[str, Any], rates: Rates) -> list[str]:
    """Return the lines of the view."""
    cluster, topics = found["cluster"], found["topics"]
    written: dict[str, list[tuple[object, int]]] = {}
    sizes: dict[str, int] = {}
    for tp, (start, end) in found["edges"].items():
        written.setdefault(tp.topic, []).append((tp, end))
        sizes[tp.topic] = sizes.get(tp.topic, 0) + max(0, end - start)
    every = [one for topic in topics for one in topic.partitions]
    behind = sum(len(one.isr_nodes) < len(one.replica_nodes) for one in every)
    headless = sum(one.leader_id < 0 for one in every)
    busy = [(name, sizes[name], rates.sum(some)) for name, some in written.items()]
    busy.sort(key=lambda one: (-(one[2] or 0), -one[1]))
    found_rates = [rate for *_, rate in busy if rate is not None]
    total = sum(found_rates) if found_rates else None
    counts = [counted(len(cluster.brokers), "broker"), counted(len(topics), "topic"), counted(len(every), "partition")]
    counts += [f"{behind} under-replicated", f"{headless} without leader"]
    now = time.strftime("%H:%M:%S")
    shown = [
        f"Cluster {cluster.cluster_id}, {controller_text(found['controller'])}, {now}, {rate_text(total)} records/s",
        ", ".join(counts),
        "",
    ]
    brokers = [
        [
            str(broker.broker_id),
            f"{broker.host}:{broker.port}",
            str(sum(one.leader_id == broker.broker_id for one in every)),
            str(sum(broker.broker_id in one.replica_nodes for one in every)),
        ]
        for broker in cluster.brokers
    ]
    shown += view(["BROKER", "ADDRESS", "LEADERS", "REPLICAS"], brokers, ["ADDRESS"])
    topics_shown = [[name, f"{count:,}", rate_text(rate)] for name, count, rate in busy[: _topics_shown()]]
    shown += ["", *view(["TOPIC", "RECORDS", "WRITE/s"], topics_shown, ["TOPIC"])]
    return [*shown, "", *lag_lines(found["rows"], rates, ["group_id", "topic"]), *trouble_lines(found["trouble"])]


def _topics_shown() -> int:
    """Return how many topics leave room for the groups below them."""
    import shutil

    return max(_TOPICS, shutil.get_terminal_size().lines // 3)


COMMAND = _run
