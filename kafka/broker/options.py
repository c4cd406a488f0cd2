"""The options of a broker as a program gives them: what cannot be meant is refused, with the reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kafka.broker.cluster.creation import MOST_PARTITIONS
from kafka.broker.cluster.topics import is_valid_topic_name
from kafka.broker.server.node import ListenerOptions
from kafka.errors import IllegalArgumentError

_LAST_PORT: Final = 65535


@dataclass(frozen=True)
class ClusterOptions:
    """The options of a :class:`~kafka.broker.Broker`, checked."""

    nodes: int
    topics: Mapping[str, int]
    listener: ListenerOptions
    port: int
    data_dir: Path | None
    fsync: bool
    configs: Mapping[str, str]
    as_version: str | None
    racks: Sequence[str]
    sasl: Sequence[tuple[str, str, str]]
    seed: int | None


def check_options(
    nodes: int,
    port: int,
    topics: Mapping[str, int] | Iterable[str],
    sasl: Sequence[tuple[str, str, str]],
    as_version: str | None,
) -> dict[str, int]:
    """Raise for what cannot be meant; return the topics with their numbers of partitions."""
    for name, value in (("nodes", nodes), ("port", port)):
        if not isinstance(value, int) or isinstance(value, bool):
            raise IllegalArgumentError(f"{name} must be an int, not {value!r}")
    if nodes < 1:
        raise IllegalArgumentError(f"a broker has at least one node, not {nodes}")
    if port and not 0 < port <= port + nodes - 1 <= _LAST_PORT:
        last = "" if nodes == 1 else f" to {port + nodes - 1}"
        raise IllegalArgumentError(f"ports go from 1 to {_LAST_PORT}, or 0 for any: there is no {port}{last}")
    if not isinstance(as_version, (str, type(None))):
        raise IllegalArgumentError(f"as_version must be a release of Kafka such as '2.8', not {as_version!r}")
    for user in sasl:
        if not isinstance(user, (tuple, list)) or len(user) != 3:
            raise IllegalArgumentError("sasl takes triples of mechanism, user and password, as ('PLAIN', 'ada', 'b')")
    if isinstance(topics, str):
        topics = (topics,)
    found = dict(topics) if isinstance(topics, Mapping) else dict.fromkeys(topics, 1)
    for name, partitions in found.items():
        check_topic(name, partitions)
    return found


def check_topic(name: str, partitions: int) -> None:
    """Raise if the name or the number of partitions is not valid for a topic."""
    if not isinstance(name, str) or not is_valid_topic_name(name):
        raise IllegalArgumentError(f"{name!r} is not a valid name for a topic")
    if not isinstance(partitions, int):
        raise IllegalArgumentError(f"topic {name!r}: the number of partitions must be an int, not {partitions!r}")
    if partitions < 1:
        raise IllegalArgumentError(f"a topic has at least one partition, not {partitions}")
    if partitions > MOST_PARTITIONS:
        raise IllegalArgumentError(f"topic {name!r}: at most {MOST_PARTITIONS:,} partitions, not {partitions:,}")


def text_of(value: object) -> str:
    """Return a configuration's value as Kafka writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
