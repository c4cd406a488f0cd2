"""``purekafka topics``: list, describe, create, change and delete topics."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from kafka.cli.arguments import UsageError, count, kafka_uuid, setting_pairs
from kafka.cli.copying import VERBS
from kafka.cli.grammar import TABLE, Noun, Verb, arg
from kafka.cli.offsets import chooses, chosen_topics
from kafka.cli.output import Column, agreed, complain, counted, emit, print_table, report, report_failed, row_of

if TYPE_CHECKING:
    from kafka.admin import KafkaAdminClient, TopicDescription
    from kafka.cli.connection import Connection
    from kafka.cli.edges import Edges
    from kafka.structs import TopicPartition

_TOPICS = arg("topics TOPIC...", "names of topics, or patterns with *", complete="topic")
_SETTINGS = arg(
    "-c, --set NAME=VALUE...", "a setting of the topic, such as retention.ms=7d; may be repeated", complete="setting"
)
_LIST_COLUMNS = Column.of("name=TOPIC", "partition_count=PARTITIONS", "replication_factor=REPLICAS", "internal")
_DESCRIBE_COLUMNS = Column.of("topic", "partition", "leader", "replicas", "isr", "elr", "start", "end")


@Verb(
    "list: list the topics",
    arg("[PATTERN...]", "names, or patterns such as 'log-*'", complete="topic"),
    arg("-a, --all", "include the internal topics of Kafka"),
    examples=["--sandbox", "'ev*' --sandbox --format json"],
    lists=True,
)
def _list(arguments: Namespace, connection: Connection) -> int:
    found = connection.admin().describe_topics()
    words = arguments.pattern or ["*"]
    rows = [_summary(topic) for topic in found if any(chooses(topic, word, hidden=arguments.all) for word in words)]
    return emit(arguments, sorted(rows, key=lambda row: str(row["name"])), _LIST_COLUMNS)


def _summary(topic: TopicDescription) -> dict[str, Any]:
    partitions = topic.partitions
    return {
        "name": topic.name,
        "partition_count": len(partitions),
        "replication_factor": max((len(each.replica_nodes) for each in partitions), default=0),
        "internal": topic.is_internal,
        "id": kafka_uuid(topic.topic_id),
        "under_replicated": sum(len(each.isr_nodes) < len(each.replica_nodes) for each in partitions),
        "without_leader": sum(each.leader_id < 0 for each in partitions),
    }


@Verb(
    "describe: show partitions, leaders, replicas, offsets and settings of topics",
    arg("topics [TOPIC...]", "names or patterns; all if none", complete="topic"),
    arg("--under-replicated", "only partitions with replicas that are not in sync"),
    arg("--under-min-isr", "only partitions with fewer replicas in sync than min.insync.replicas"),
    arg("--at-min-isr", "only partitions with exactly min.insync.replicas replicas in sync"),
    arg("--offline", "only partitions that have no leader"),
    examples=["events --sandbox", "--sandbox --format json"],
    lists=True,
)
def _describe(arguments: Namespace, connection: Connection) -> int:
    from kafka.cli.edges import edges_of
    from kafka.cli.health import FAULTS

    admin = connection.admin()
    names = chosen_topics(admin, arguments.topics) if arguments.topics else None
    wanted = [fault for fault in FAULTS if getattr(arguments, fault.replace("-", "_"))]
    described = [topic for topic in admin.describe_topics(names) if names or wanted or not topic.is_internal]
    code = report_failed(arguments, {topic.name: topic for topic in described})
    found = edges_of(admin, described)
    code |= report_failed(arguments, found)
    items = _detailed(connection, [topic for topic in described if topic.ok], found, set(wanted))
    if wanted and not items and not code and arguments.format == "table":
        complain(arguments, f"no partition is {' or '.join(wanted)}")
    rows = [{"topic": item["name"], **row} for item in items for row in item["partitions"]]
    return emit(arguments, rows, _DESCRIBE_COLUMNS, items=items, table=lambda: _print_topics(arguments, items)) or code


def _detailed(
    connection: Connection, topics: list[TopicDescription], found: Mapping[TopicPartition, Edges], wanted: set[str]
) -> list[dict[str, Any]]:
    from kafka.admin import ConfigResource, ConfigSourceType
    from kafka.cli.health import faults, least_in_sync
    from kafka.structs import TopicPartition

    if not topics:
        return []
    least = least_in_sync(connection.admin(), topics) if wanted else {}
    resources = [ConfigResource("topic", str(topic.name)) for topic in topics]
    configs = connection.admin().describe_configs(resources, config_filter="dynamic", raise_errors=False)
    overrides = configs.get("topic", {})
    eligible = _eligible(connection.admin(), topics)
    items = []
    for topic in topics:
        name = str(topic.name)
        places = []
        for each in sorted(topic.partitions, key=lambda one: int(one.partition_index)):
            tp = TopicPartition(name, each.partition_index)
            place = {
                "partition": each.partition_index,
                "leader": each.leader_id if each.leader_id >= 0 else None,
                **row_of(each, "replicas=replica_nodes", "isr=isr_nodes"),
                "elr": eligible.get(tp, []),
                **row_of(found[tp], "start", "end"),
                **row_of(each, "leader_epoch", "offline=offline_replicas"),
            }
            if not wanted or wanted.intersection(faults(each, least.get(name))):
                places.append(place)
        changed = {
            option: entry.value
            for option, entry in sorted(overrides.get(name, {}).items())
            if entry.config_source == ConfigSourceType.DYNAMIC_TOPIC_CONFIG
        }
        if places or not wanted:
            items.append({**_summary(topic), "settings": changed, "partitions": places})
    return items


def _eligible(admin: KafkaAdminClient, topics: list[TopicDescription]) -> dict[TopicPartition, list[int]]:
    """Return the replicas that may lead although they are not in sync (KIP-966), of topics with some out of sync."""
    from kafka.errors import UnsupportedVersionError
    from kafka.structs import TopicPartition

    names = [str(topic.name) for topic in topics if _summary(topic)["under_replicated"]]
    found: dict[TopicPartition, list[int]] = {}
    cursor = None
    with suppress(UnsupportedVersionError):  # before Kafka 3.8
        while names:
            page = admin.describe_topic_partitions(names, cursor=cursor)
            for topic in page.topics:
                for one in topic.partitions:
                    found[TopicPartition(str(topic.name), one.partition_index)] = one.eligible_leader_replicas or []
            cursor = page.next_cursor
            if cursor is None:
                break
    return found


def _print_topics(arguments: Namespace, items: list[dict[str, Any]]) -> None:
    for number, item in enumerate(items):
        if number:
            print()
        settings = ", ".join(f"{name}={value}" for name, value in item["settings"].items())
        rows = item["partitions"]
        print(f"Topic {item['name']}, id {item['id']}")
        replicas = counted(item["replication_factor"], "replica")
        print(f"  {counted(len(rows), 'partition')}, {replicas}; settings: {settings or 'defaults'}")
        unused = {"topic"} if any(row["elr"] for row in rows) else {"topic", "elr"}
        print_table(arguments, rows, [column for column in _DESCRIBE_COLUMNS if column.key not in unused])


@Verb(
    "create: create topics, and wait until every broker serves them",
    arg("topics TOPIC...", "names of the topics"),
    arg("-p, --partitions N", "how many partitions (the broker's default)", count),
    arg("-r, --replication-factor N", "how many replicas (the broker's default)", count),
    _SETTINGS,
    arg("--assignment B:B,B:B", "the brokers of each partition, such as 1:2,2:3"),
    arg("--if-not-exists", "a topic that exists is not an error"),
    arg("--dry-run", "have the broker check it, and create nothing"),
    examples=["logs -p 6 --set retention.ms=86400000 --sandbox", "events --if-not-exists --sandbox"],
    changes=True,
)
def _create(arguments: Namespace, connection: Connection) -> int:
    from kafka.admin import NewTopic
    from kafka.errors import TopicAlreadyExistsError

    settings = setting_pairs(arguments.set, "--set")
    placed = _assignments(arguments.assignment) if arguments.assignment else None
    if placed and (arguments.partitions or arguments.replication_factor):
        raise UsageError("--assignment says how many partitions and replicas there are: leave -p and -r out")
    wanted = [
        NewTopic(name, arguments.partitions or -1, arguments.replication_factor or -1, placed, settings)
        for name in dict.fromkeys(arguments.topics)
    ]
    result = connection.admin().create_topics(
        wanted, validate_only=arguments.dry_run, raise_errors=False, wait_for_metadata=not arguments.dry_run
    )
    existing = [
        one.name for one in result.topics if arguments.if_not_exists and isinstance(one.error, TopicAlreadyExistsError)
    ]
    found = connection.admin().describe_topics(existing) if existing else []
    have = {one.name: len(one.partitions) for one in found if one.ok}
    asked = len(placed) if placed else arguments.partitions
    outcomes: list[tuple[str, object, str]] = []
    for topic in result.topics:
        if topic.name in existing:
            outcomes.append((topic.name, None, "exists"))
            if asked and have.get(topic.name, asked) != asked:
                there = counted(have[topic.name], "partition")
                complain(
                    arguments, f"{topic.name} keeps its {there}: purekafka topics alter {topic.name} -p N adds some"
                )
            continue
        size = f" with {counted(topic.num_partitions, 'partition')}" if topic.num_partitions > 0 else ""
        done = "would be created" if arguments.dry_run else "created"
        outcomes.append((topic.name, topic.error, f"{done}{size}"))
    return report(arguments, outcomes)


def _assignments(text: str) -> dict[int, list[int]]:
    """Read where replicas are to be: ``1:2,2:3`` has two partitions, as in Kafka's own script.

    >>> _assignments("1:2,2:3")
    {0: [1, 2], 1: [2, 3]}
    """
    try:
        return {number: [int(broker) for broker in part.split(":")] for number, part in enumerate(text.split(","))}
    except ValueError:
        raise UsageError(f"--assignment takes brokers by partition, such as 1:2,2:3, not {text!r}") from None


@Verb(
    "alter: add partitions to topics, or change their settings",
    _TOPICS,
    arg("-p, --partitions N", "raise the number of partitions to this", count),
    _SETTINGS,
    arg("--unset NAME...", "take a setting back to its default; may be repeated", complete="setting"),
    TABLE,
    examples=[
        "events --partitions 6 --yes --sandbox",
        "events --set cleanup.policy=compact --unset retention.ms --dry-run --sandbox",
    ],
    asks=True,
)
def _alter(arguments: Namespace, connection: Connection) -> int:
    changes: dict[str, object] = {**setting_pairs(arguments.set, "--set"), **dict.fromkeys(arguments.unset)}
    if not changes and not arguments.partitions:
        raise UsageError("give --partitions, --set or --unset")
    admin = connection.admin()
    names = chosen_topics(admin, arguments.topics)
    # The broker checks all of it before anything is changed.
    refused = _altered(arguments, admin, names, changes, validate_only=True)
    if any(error is not None for _, error, _ in refused):
        return report(arguments, [one for one in refused if one[1] is not None])
    rows = [{"topic": name, "change": done} for name, _, done in refused]
    if arguments.partitions:
        complain(arguments, "with more partitions, the records of a key may go to another partition than before")
    if not agreed(connection, f"Change {counted(len(names), 'topic')}?", rows, Column.of("topic", "change")):
        return 0
    return report(arguments, _altered(arguments, admin, names, changes, validate_only=False))


def _altered(
    arguments: Namespace, admin: KafkaAdminClient, names: list[str], changes: dict[str, object], *, validate_only: bool
) -> list[tuple[str, object, str]]:
    """Change partitions and settings of topics, or have the broker check that; return the outcomes for `report`."""
    from kafka.admin import ConfigResource

    found: list[tuple[str, object, str]] = []
    if arguments.partitions:
        counts = dict.fromkeys(names, arguments.partitions)
        resized = admin.create_partitions(counts, validate_only=validate_only, raise_errors=False)
        found += [(one.name, one.error, counted(arguments.partitions, "partition")) for one in resized.results]
    if changes:
        resources = [ConfigResource("topic", name, changes) for name in names]
        altered = admin.alter_configs(resources, validate_only=validate_only, raise_errors=False)
        shown = ", ".join(f"{name} unset" if value is None else f"{name}={value}" for name, value in changes.items())
        found += [(name, outcome.error, shown) for name, outcome in altered["topic"].items()]
    return found


@Verb(
    "delete: delete topics with all their records",
    [_TOPICS, arg("--if-exists", "a topic that does not exist is not an error"), *TABLE],
    examples=["orders --yes --sandbox", "'e*' --dry-run --sandbox"],
    asks=True,
)
def _delete(arguments: Namespace, connection: Connection) -> int:
    from kafka.errors import UnknownTopicOrPartitionError

    admin = connection.admin()
    names = chosen_topics(admin, arguments.topics)
    found = admin.describe_topics(names)
    there = [str(topic.name) for topic in found if topic.ok]
    missing = [
        topic for topic in found if not (arguments.if_exists and isinstance(topic.error, UnknownTopicOrPartitionError))
    ]
    code = report_failed(arguments, {topic.name: topic for topic in missing})
    if not there:
        return code
    rows = [_summary(topic) for topic in found if topic.ok]
    if not agreed(connection, f"Delete {counted(len(there), 'topic')} with all records?", rows, _LIST_COLUMNS):
        return code
    deleted = {topic.name: topic for topic in admin.delete_topics(there, raise_errors=False).topics}
    return code | report(arguments, deleted, "deleted")


COMMAND = Noun("topics", [_list, _describe, _create, _alter, _delete, *VERBS])
