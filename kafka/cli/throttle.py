"""The limit of the bandwidth of moving replicas, which is in the settings of brokers and topics."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from kafka.cli.arguments import size_of

if TYPE_CHECKING:
    from kafka.admin import ConfigResource, KafkaAdminClient
    from kafka.structs import TopicPartition

_RATES: Final = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
_REPLICAS: Final = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")


def rate_of(word: str) -> int | None:
    """Read bytes per second, None for "none".

    >>> rate_of("50MB"), rate_of("1MiB/s"), rate_of("1000"), rate_of("none")
    (50000000, 1048576, 1000, None)
    """
    if word == "none":
        return None
    rate = size_of(word.upper().removesuffix("/S"))
    if rate is None or rate < 1:
        raise argparse.ArgumentTypeError(f"{word!r} is not a number of bytes per second, such as 50MB")
    return rate


def throttle(
    admin: KafkaAdminClient, rate: int, moves: Mapping[TopicPartition, tuple[Iterable[int], Iterable[int]]]
) -> list[tuple[str, object, str]]:
    """Limit moves, given the present and the new replicas of each partition; return outcomes for `report`.

    The limit holds for the replicas that move alone: a replica that only fell behind catches up at full speed.
    """
    from kafka.admin import ConfigResource

    brokers: set[int] = set()
    leaders: dict[str, list[str]] = {}
    followers: dict[str, list[str]] = {}
    for tp, (before, after) in sorted(moves.items()):
        present, new = list(before), [broker for broker in after if broker not in set(before)]
        brokers.update(present, new)
        leaders.setdefault(tp.topic, []).extend(f"{tp.partition}:{broker}" for broker in present)
        followers.setdefault(tp.topic, []).extend(f"{tp.partition}:{broker}" for broker in new)
    running = {one.broker_id for one in admin.describe_cluster().brokers}
    away = [(f"broker {broker}", None, "is not running, and has no limit") for broker in sorted(brokers - running)]
    resources = [
        ConfigResource("broker", str(broker), dict.fromkeys(_RATES, str(rate))) for broker in sorted(brokers & running)
    ]
    resources += [
        ConfigResource(
            "topic", topic, {_REPLICAS[0]: ",".join(leaders[topic]), _REPLICAS[1]: ",".join(followers[topic])}
        )
        for topic in leaders
    ]
    return [*away, *_alter(admin, resources, f"limited to {rate:,} bytes per second")]


def throttled_topics(admin: KafkaAdminClient) -> list[str]:
    """Return the topics that have replicas with a limit."""
    from kafka.admin import ConfigResource

    resources = [ConfigResource("topic", str(topic.name), list(_REPLICAS)) for topic in admin.describe_topics()]
    found = admin.describe_configs(resources, config_filter="dynamic", raise_errors=False) if resources else {}
    return sorted(name for name, settings in found.get("topic", {}).items() if any(map(settings.get, _REPLICAS)))


def remove(admin: KafkaAdminClient, topics: Iterable[str]) -> list[tuple[str, object, str]]:
    """Remove the limit of topics, and the rates of all brokers; return outcomes for `report`."""
    from kafka.admin import ConfigResource

    brokers = {one.broker_id for one in admin.describe_cluster().brokers}
    assigned = {node for topic in admin.describe_topics() for one in topic.partitions for node in one.replica_nodes}
    resources = [ConfigResource("topic", topic, dict.fromkeys(_REPLICAS)) for topic in topics]
    resources += [ConfigResource("broker", str(broker), dict.fromkeys(_RATES)) for broker in sorted(brokers)]
    stays = "is not running; if it has a limit, that stays until reassign-throttle none is run again"
    away = [(f"broker {broker}", None, stays) for broker in sorted(assigned - brokers)]
    return [*_alter(admin, resources, "limit removed"), *away]


def _alter(admin: KafkaAdminClient, resources: Sequence[ConfigResource], done: str) -> list[tuple[str, object, str]]:
    altered = admin.alter_configs(resources, raise_on_unknown=False, raise_errors=False)
    return [(f"{kind} {name}", one.error, done) for kind, found in altered.items() for name, one in found.items()]
