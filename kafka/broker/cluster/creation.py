"""Whether a topic, or more partitions of one, can be made as asked; in Kafka's own words where not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka.broker.cluster.coordinators import PARTITIONS
from kafka.broker.cluster.topics import INTERNAL_TOPICS, name_problem, place_replicas
from kafka.broker.configs.definitions import SETTABLE_TOPIC_OPTIONS
from kafka.broker.configs.option import check_value
from kafka.errors import (
    InvalidConfigurationError,
    InvalidPartitionsError,
    InvalidReplicationAssignmentError,
    InvalidReplicationFactorError,
    InvalidRequestError,
    InvalidTopicError,
    TopicAlreadyExistsError,
    UnknownError,
)

if TYPE_CHECKING:
    from kafka.broker.cluster.cluster import Cluster
    from kafka.broker.cluster.topics import Topic

_DEFAULT = -1
#: The most partitions that one request makes: Kafka's MAX_PARTITIONS_PER_BATCH.
MOST_PARTITIONS: Final = 10_000


class TopicPlan(NamedTuple):
    """A topic that can be created so."""

    name: str
    assignment: list[list[int]]
    configs: dict[str, str]


def plan_topic(
    cluster: Cluster,
    name: str,
    partitions: int,
    replication_factor: int,
    assignments: Mapping[int, Sequence[int]],
    configs: Mapping[str, str | None],
) -> TopicPlan:
    """Return how to create the topic; raise the error that Kafka would answer. -1 takes the brokers' default."""
    problem = name_problem(name)
    if problem:
        raise InvalidTopicError(problem)
    if name in cluster.topics:
        raise TopicAlreadyExistsError(f"Topic '{name}' already exists.")
    twin = twin_of(cluster, name)
    if twin is not None:
        raise InvalidTopicError(f"Topic '{name}' collides with existing topic: {twin}")
    checked = check_topic_configs(cluster, configs)
    if assignments:
        return TopicPlan(name, _manual(cluster, partitions, replication_factor, assignments), checked)
    if replication_factor < _DEFAULT or replication_factor == 0:
        raise InvalidReplicationFactorError("Replication factor must be larger than 0, or -1 to use the default value.")
    if partitions < _DEFAULT or partitions == 0:
        raise InvalidPartitionsError("Number of partitions was set to an invalid non-positive value.")
    if partitions == _DEFAULT:
        partitions = cluster.configs.broker_int("num.partitions")
    if replication_factor == _DEFAULT:
        replication_factor = cluster.configs.broker_int("default.replication.factor")
    nodes = sorted(cluster.nodes)
    _check_copies(replication_factor, len(nodes))
    return TopicPlan(name, place_replicas(partitions, replication_factor, nodes, cluster.random), checked)


def create_on_demand(cluster: Cluster, name: str) -> Topic | None:
    """Create the topic that a client names which does not exist; None where the broker's configuration forbids it."""
    if not cluster.configs.broker_bool("auto.create.topics.enable") or is_too_much(cluster, [_DEFAULT]):
        return None
    problem = name_problem(name)
    if problem:
        raise InvalidTopicError(problem)
    if twin_of(cluster, name) is not None:
        return None
    return cluster.create_topic(name, PARTITIONS if name in INTERNAL_TOPICS else None)


def twin_of(cluster: Cluster, name: str) -> str | None:
    """Return the topic that a new one of this name would collide with.

    Metric names have '_' for '.', so two topics that differ in that alone would be mixed up.
    """
    plain = name.replace(".", "_")
    return next((other for other in cluster.topics if other.replace(".", "_") == plain), None)


def is_too_much(cluster: Cluster, counts: Iterable[int]) -> bool:
    """Whether these are more partitions than Kafka makes for one request; -1 takes the default."""
    default = cluster.configs.broker_int("num.partitions")
    return sum(default if count == _DEFAULT else count for count in counts) > MOST_PARTITIONS


def _check_copies(copies: int, nodes: int) -> None:
    if copies > nodes:
        raise InvalidReplicationFactorError(
            f"Unable to replicate the partition {copies} time(s): The target replication factor of {copies} "
            f"cannot be reached because only {nodes} broker(s) are registered or some brokers have all their log "
            "directories cordoned."
        )


def check_topic_configs(cluster: Cluster, configs: Mapping[str, str | None]) -> dict[str, str]:
    """Return the configuration if all of it may be set for a topic."""
    checked: dict[str, str] = {}
    for key, value in configs.items():
        option = SETTABLE_TOPIC_OPTIONS.get(key)
        if option is None:
            raise InvalidConfigurationError(f"Unknown topic config name: {key}")
        if value is None:
            raise InvalidConfigurationError(f"Null value not supported for topic configs: {key}")
        check_value(option, value)
        checked[key] = value
    cluster.configs.check_lags(checked)
    return checked


def _manual(
    cluster: Cluster, partitions: int, replication_factor: int, assignments: Mapping[int, Sequence[int]]
) -> list[list[int]]:
    if replication_factor != _DEFAULT:
        raise InvalidRequestError(
            "A manual partition assignment was specified, but replication factor was not set to -1."
        )
    if partitions != _DEFAULT:
        raise InvalidRequestError("A manual partition assignment was specified, but numPartitions was not set to -1.")
    if sorted(assignments) != list(range(len(assignments))):
        raise InvalidReplicationAssignmentError("partitions should be a consecutive 0-based integer sequence")
    replicas = [list(assignments[index]) for index in range(len(assignments))]
    check_assignment(cluster, replicas)
    for index, nodes in enumerate(replicas):
        if not any(cluster.nodes[node_id].is_live for node_id in nodes):
            raise InvalidReplicationAssignmentError(
                f"All brokers specified in the manual partition assignment for partition {index} are fenced or in "
                "controlled shutdown."
            )
    return replicas


def check_assignment(cluster: Cluster, assignment: list[list[int]], copies: int | None = None) -> None:
    """Raise unless these can be the replicas of partitions."""
    for replicas in assignment:
        if not replicas:
            raise InvalidReplicationAssignmentError("The manual partition assignment includes an empty replica list.")
        for node_id in replicas:
            if node_id not in cluster.nodes:
                raise InvalidReplicationAssignmentError(
                    f"The manual partition assignment includes broker {node_id}, but no such broker is registered."
                )
            if replicas.count(node_id) > 1:
                raise InvalidReplicationAssignmentError(
                    f"The manual partition assignment includes the broker {node_id} more than once."
                )
        expected = copies if copies is not None else len(assignment[0])
        if len(replicas) != expected:
            raise InvalidReplicationAssignmentError(
                f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but this "
                f"is not consistent with previous partitions, which have {expected} replica(s)."
            )


def plan_partitions(
    cluster: Cluster, topic: Topic, count: int, assignments: Sequence[Sequence[int]] | None
) -> list[list[int]]:
    """Return the replicas of the partitions to be added so that there are ``count``."""
    have = len(topic.partitions)
    if count == have:
        raise InvalidPartitionsError(f"Topic already has {count} partition(s).")
    if count < have:
        raise InvalidPartitionsError(
            f"The topic {topic.name} currently has {have} partition(s); {count} would not be an increase."
        )
    more = count - have
    if more > MOST_PARTITIONS:
        raise UnknownError(None)  # Kafka has no better word for it here
    copies = len(topic.partitions[0].replicas)
    if assignments is None:
        nodes = sorted(cluster.nodes)
        _check_copies(copies, len(nodes))
        return place_replicas(more, copies, nodes, cluster.random)
    if len(assignments) != more:
        raise InvalidReplicationAssignmentError(
            f"Attempted to add {more} additional partition(s), but only {len(assignments)} assignment(s) "
            "were specified."
        )
    replicas = [list(nodes) for nodes in assignments]
    check_assignment(cluster, replicas, copies)
    return replicas
