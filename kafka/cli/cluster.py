"""``purekafka cluster`` and ``purekafka brokers``: the cluster, its brokers, and the requests that they support."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import TYPE_CHECKING, Any, Final

from kafka.cli.arguments import CommandError, UsageError, pairs
from kafka.cli.connection import Connection
from kafka.cli.grammar import TABLE, Noun, Verb, arg
from kafka.cli.offsets import partitions
from kafka.cli.output import (
    Column,
    agreed,
    complain,
    counted,
    emit,
    print_table,
    report,
    report_brokers,
    report_failed,
    row_of,
)
from kafka.cli.quorum import VERBS, controller, controller_text

if TYPE_CHECKING:
    from kafka.admin import KafkaAdminClient, UpdateFeatureType

_BROKER_COLUMNS: Final = Column.of("broker_id=BROKER", "host", "port", "rack", "controller", "leaders", "replicas")


def _brokers(admin: KafkaAdminClient) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return a row for the cluster and one for each broker."""
    cluster = admin.describe_cluster()
    active = controller(admin, cluster)
    leaders: dict[int, int] = {}
    replicas: dict[int, int] = {}
    for topic in admin.describe_topics():
        for partition in topic.partitions:
            leaders[partition.leader_id] = leaders.get(partition.leader_id, 0) + 1
            for broker in partition.replica_nodes:
                replicas[broker] = replicas.get(broker, 0) + 1
    found = {"cluster_id": cluster.cluster_id, "controller_id": active, "broker_count": len(cluster.brokers)}
    return found, [
        {
            **row_of(broker, "broker_id", "host", "port", "rack"),
            "controller": broker.broker_id == active,
            "leaders": leaders.get(broker.broker_id, 0),
            "replicas": replicas.get(broker.broker_id, 0),
        }
        for broker in cluster.brokers
    ]


@Verb(
    "list: list the brokers with their leaders and replicas",
    examples=["--sandbox", "--sandbox --format '{host}:{port}'"],
    lists=True,
)
def _list(arguments: Namespace, connection: Connection) -> int:
    _, rows = _brokers(connection.admin())
    return emit(arguments, rows, _BROKER_COLUMNS)


@Verb(
    "describe: show brokers with the settings that differ from the defaults",
    arg("ids [ID...]", "the ids of brokers; all if none", int),
    examples=["1 --sandbox", "--sandbox --format json"],
    lists=True,
)
def _describe_brokers(arguments: Namespace, connection: Connection) -> int:
    admin = connection.admin()
    _, rows = _brokers(admin)
    known = {row["broker_id"] for row in rows}
    missing = sorted(set(arguments.ids) - known)
    for broker in missing:
        complain(arguments, f"broker {broker} does not exist; the brokers are {', '.join(map(str, sorted(known)))}")
    rows = [row for row in rows if not arguments.ids or row["broker_id"] in arguments.ids]
    items = [{**row, "settings": _settings(admin, row["broker_id"])} for row in rows]
    code = emit(arguments, rows, _BROKER_COLUMNS, items=items, table=lambda: _print_brokers(arguments, items))
    return 1 if missing else code


def _settings(admin: KafkaAdminClient, broker: int) -> dict[str, str | None]:
    from kafka.admin import ConfigResource

    found = admin.describe_configs([ConfigResource("broker", broker)], config_filter="all").resources[0].configs
    return {
        name: "***" if entry.is_sensitive else entry.value
        for name, entry in sorted(found.items())
        if entry.config_source.name != "DEFAULT_CONFIG"
    }


def _print_brokers(arguments: Namespace, items: list[dict[str, Any]]) -> None:
    for number, item in enumerate(items):
        if number:
            print()
        rack = f", rack {item['rack']}" if item["rack"] else ""
        print(f"Broker {item['broker_id']} at {item['host']}:{item['port']}{rack}")
        leads = f"leads {counted(item['leaders'], 'partition')}, has {counted(item['replicas'], 'replica')}"
        print(f"  {leads}{', is the controller' if item['controller'] else ''}")
        rows = [{"setting": name, "value": value} for name, value in item["settings"].items()]
        if rows:
            print_table(arguments, rows, Column.of("setting", "value"))


@Verb(
    "versions: show the requests that a broker supports, and the versions that this client uses",
    examples=["--sandbox", "--sandbox --format csv"],
    lists=True,
)
def _versions(arguments: Namespace, connection: Connection) -> int:
    from kafka.protocol.registry import APIS

    offered = connection.client().get_api_versions() or {}
    names = {api.key: (api.name, api.min_version, api.max_version) for api in APIS.values()}
    rows = []
    for key, (low, high) in sorted(offered.items()):
        name, ours_low, ours_high = names.get(key, (f"unknown {key}", 0, -1))
        usable = min(high, ours_high)
        rows.append(
            {
                "api": name,
                "key": key,
                "lowest": low,
                "highest": high,
                "used": usable if usable >= max(low, ours_low) else None,
            }
        )
    return emit(arguments, rows, Column.of("api", "key", "lowest", "highest", "used"))


@Verb(
    "describe: show the id of the cluster, its controller and its brokers",
    examples=["--sandbox", "--sandbox --format json"],
    lists=True,
)
def _describe(arguments: Namespace, connection: Connection) -> int:
    row, brokers = _brokers(connection.admin())
    item = {**row, "brokers": brokers}

    def table() -> None:
        print(
            f"Cluster {row['cluster_id']}: {counted(len(brokers), 'broker')}, {controller_text(row['controller_id'])}"
        )
        print_table(arguments, brokers, _BROKER_COLUMNS)

    return emit(arguments, [row], Column.of("cluster_id"), items=[item], table=table)


@Verb(
    "log-dirs: show the log directories of brokers with their sizes",
    arg("--broker ID...", "only this broker; may be repeated", int),
    arg(
        "--topic TOPIC[:N,N-M]...",
        "only replicas of these topics, or partitions of them; may be repeated",
        complete="topic",
    ),
    arg("--by directory|topic", "a row for each, the largest topic first (directory)", default="directory"),
    examples=["--by topic --sandbox", "--broker 1 --topic events --sandbox --format json"],
    lists=True,
)
def _log_dirs(arguments: Namespace, connection: Connection) -> int:
    admin = connection.admin()
    chosen = partitions(admin, arguments.topic) if arguments.topic else None
    found = admin.describe_log_dirs(chosen, arguments.broker or None, raise_errors=False)
    code = report_brokers(arguments, found.failed)
    items: list[dict[str, Any]] = []
    for one in found:
        for directory in one.log_dirs:
            code |= report_failed(arguments, {f"broker {one.broker}": directory})
            replicas = [
                {
                    "topic": topic.name,
                    **row_of(
                        part, "partition=partition_index", "bytes=partition_size", "offset_lag", "future=is_future_key"
                    ),
                }
                for topic in sorted(directory.topics, key=lambda each: str(each.name))
                for part in sorted(topic.partitions, key=lambda each: int(each.partition_index))
            ]
            items.append(
                {
                    "broker": one.broker,
                    "directory": directory.log_dir,
                    "replicas": len(replicas),
                    "bytes": sum(int(replica["bytes"]) for replica in replicas),
                    "total_bytes": None if directory.total_bytes < 0 else directory.total_bytes,
                    "usable_bytes": None if directory.usable_bytes < 0 else directory.usable_bytes,
                    "partitions": replicas,
                }
            )
    if arguments.by == "topic":
        sizes: dict[str, list[int]] = {}
        for one in (replica for item in items for replica in item["partitions"]):
            sizes.setdefault(one["topic"], []).append(one["bytes"])
        topics = [{"topic": name, "replicas": len(some), "bytes": sum(some)} for name, some in sizes.items()]
        topics.sort(key=lambda row: -int(str(row["bytes"])))
        return emit(arguments, topics, Column.of("topic", "replicas", "bytes")) or code
    rows = [{name: value for name, value in item.items() if name != "partitions"} for item in items]
    columns = Column.of("broker", "directory", "replicas", "bytes", "usable_bytes=FREE")
    return emit(arguments, rows, columns, items=items) or code


@Verb(
    "unregister: remove a broker that was taken away for good from the cluster's metadata",
    arg("ID", "the id of the broker", int),
    examples=["7 --yes -b localhost:9092", "7 --dry-run -b localhost:9092"],
    asks=True,
)
def _unregister(arguments: Namespace, connection: Connection) -> int:
    admin = connection.admin()
    if arguments.id in {broker.broker_id for broker in admin.describe_cluster().brokers}:
        raise CommandError(f"broker {arguments.id} is running: stop it first")
    print(f"Broker {arguments.id} is to be unregistered; its replicas stay assigned to it.", file=sys.stderr)
    if not agreed(connection, f"Unregister broker {arguments.id}?"):
        return 0
    admin.unregister_broker(arguments.id)
    return report(arguments, {arguments.id: None}, "unregistered")


@Verb(
    "features: show the features of the cluster and their levels",
    examples=["--sandbox", "--sandbox --format csv"],
    lists=True,
)
def _features(arguments: Namespace, connection: Connection) -> int:
    found = connection.admin().describe_features()
    rows = [
        {
            "feature": name,
            "level": found.finalized_features[name].max_version if name in found.finalized_features else None,
            "lowest": supported.min_version,
            "highest": supported.max_version,
        }
        for name, supported in sorted(found.supported_features.items())
    ]
    return emit(arguments, rows, Column.of("feature", "level", "lowest", "highest"))


@Verb(
    "features-upgrade: change the levels of features, after the controller has checked them",
    arg("features FEATURE=LEVEL...", "features with their new levels; 0 stops using a feature"),
    arg("--downgrade", "a level may be lower, if nothing that is stored needs the higher one"),
    arg("--unsafe", "a level may be lower, also if that loses what it stores"),
    TABLE,
    examples=[
        "share.version=1 --yes --sandbox",
        "purekafka cluster features upgrade share.version=0 --downgrade --dry-run --sandbox",
    ],
    asks=True,
)
def _upgrade(arguments: Namespace, connection: Connection) -> int:
    wanted: dict[str, int] = {}
    for name, level in pairs(arguments.features, "a feature").items():
        if not level.isdecimal():
            raise UsageError(f"a feature takes a level, such as {name}=1, not {level!r}")
        wanted[name] = int(level)
    kind = "unsafe_downgrade" if arguments.unsafe else "safe_downgrade" if arguments.downgrade else "upgrade"
    admin = connection.admin()
    finalized = admin.describe_features().finalized_features
    updates: dict[str, tuple[UpdateFeatureType | str, int]] = {name: (kind, to) for name, to in wanted.items()}
    rows = [
        {"feature": name, "level": finalized[name].max_version if name in finalized else 0, "new_level": level}
        for name, level in wanted.items()
    ]
    # The controller checks it before the user is asked.
    checked = admin.update_features(updates, validate_only=True, raise_errors=False)
    if report_failed(arguments, checked):
        return 1
    if not agreed(
        connection, f"Change {counted(len(wanted), 'feature')}?", rows, Column.of("feature", "level", "new_level")
    ):
        return 0
    done = admin.update_features(updates, raise_errors=False)
    return report(arguments, ((name, one, f"level {wanted[name]}") for name, one in done.items()))


COMMAND = {
    "brokers": Noun("brokers", [_list, _describe_brokers, _versions, _log_dirs, _unregister]),
    "cluster": Noun("cluster", [_describe, *VERBS, _features, _upgrade]),
}
