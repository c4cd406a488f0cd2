"""What calls of an administrator take: new topics and partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from uuid import UUID

from kafka.acl import ACLOperation
from kafka.errors import IllegalArgumentError
from kafka.structs import check_topic

_NOT_ASKED = -(2**31)


def operations(bits: int) -> list[str] | None:
    """Return the names of allowed operations, None if the broker was not asked for them.

    >>> operations(1 << ACLOperation.READ | 1 << ACLOperation.DELETE)
    ['READ', 'DELETE']
    """
    if bits == _NOT_ASKED:
        return None
    return list(_names(bits))


@lru_cache(maxsize=64)
def _names(bits: int) -> list[str]:
    return [operation.name for operation in ACLOperation if bits >> operation & 1]


def _check_number(name: str, value: object, default: int | None = None) -> None:
    """Refuse what is not a number of partitions or replicas."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be a whole number, not {value!r}")
    if value < 1 and value != default:
        instead = "" if default is None else f", or {default} for the broker's default"
        raise IllegalArgumentError(f"{name} must be at least 1{instead}, not {value}")


class NewTopic:
    """A topic to create.

    -1 for the partitions or the replication factor means the cluster's default (since Kafka 2.4). With
    `replica_assignments`, a dict from partition to brokers, both stay -1.

    >>> NewTopic("events", num_partitions=3)
    NewTopic(name='events', num_partitions=3, replication_factor=-1, replica_assignments={}, topic_configs={})
    """

    __slots__ = ("name", "num_partitions", "replica_assignments", "replication_factor", "topic_configs")

    def __init__(
        self,
        name: str,
        num_partitions: int = -1,
        replication_factor: int = -1,
        replica_assignments: Mapping[int, Sequence[int]] | None = None,
        topic_configs: Mapping[str, object] | None = None,
    ) -> None:
        check_topic(name)
        _check_number("num_partitions", num_partitions, default=-1)
        _check_number("replication_factor", replication_factor, default=-1)
        if replica_assignments and (num_partitions != -1 or replication_factor != -1):
            raise IllegalArgumentError(
                "replica_assignments say how many partitions and replicas there are: leave num_partitions and "
                "replication_factor out"
            )
        self.name = name
        self.num_partitions = num_partitions
        self.replication_factor = replication_factor
        self.replica_assignments = dict(replica_assignments or {})
        self.topic_configs = dict(topic_configs or {})

    def __repr__(self) -> str:
        shown = ("name", "num_partitions", "replication_factor", "replica_assignments", "topic_configs")
        return f"NewTopic({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"


class NewPartitions:
    """How many partitions a topic is to have, and on which brokers the additional ones are.

    >>> NewPartitions(6)
    NewPartitions(total_count=6, new_assignments=None)
    """

    __slots__ = ("new_assignments", "total_count")

    def __init__(self, total_count: int, new_assignments: Sequence[Sequence[int]] | None = None) -> None:
        _check_number("total_count", total_count)
        self.total_count = total_count
        self.new_assignments = None if new_assignments is None else [list(brokers) for brokers in new_assignments]

    def __repr__(self) -> str:
        return f"NewPartitions(total_count={self.total_count}, new_assignments={self.new_assignments})"


def as_new_topics(topics: Iterable[object]) -> list[NewTopic]:
    """Return topics to create, from `NewTopic` objects, names, or a dict from name to its settings.

    >>> [topic.num_partitions for topic in as_new_topics(["a", {"b": {"num_partitions": 2}}.popitem()])]
    [-1, 2]
    """
    if isinstance(topics, (str, NewTopic)) or not isinstance(topics, Iterable):
        raise TypeError(f"new_topics must be a list or a dict, not {topics!r}; for one topic, a list with one element")
    entries: Iterable[object] = topics.items() if isinstance(topics, Mapping) else topics
    found = [_new_topic(entry) for entry in entries]
    names = [topic.name for topic in found]
    for name in names:
        if names.count(name) > 1:
            raise IllegalArgumentError(f"new_topics has topic {name!r} more than once")
    return found


_SETTINGS = {
    "num_partitions": "num_partitions",
    "replication_factor": "replication_factor",
    "assignments": "replica_assignments",
    "configs": "topic_configs",
}


def _new_topic(entry: object) -> NewTopic:
    if isinstance(entry, NewTopic):
        return entry
    if isinstance(entry, str):
        return NewTopic(entry)
    if isinstance(entry, tuple) and len(entry) == 2:
        name, settings = entry
        if isinstance(settings, NewTopic):
            return settings
        for setting in settings or ():
            if setting not in _SETTINGS:
                raise IllegalArgumentError(
                    f"topic {name!r} has the unknown setting {setting!r}; there are {', '.join(_SETTINGS)}"
                )
        return NewTopic(name, **{_SETTINGS[setting]: value for setting, value in (settings or {}).items()})
    raise TypeError(f"new_topics must have names or NewTopic objects, not {entry!r}")


def as_new_partitions(topics: object) -> dict[str, NewPartitions]:
    """Return how many partitions topics are to have, from a dict whose values are counts or `NewPartitions`.

    >>> as_new_partitions({"events": 6, "logs": {"count": 2}})["logs"]
    NewPartitions(total_count=2, new_assignments=None)
    """
    if not isinstance(topics, Mapping):
        raise TypeError(f"topic_partitions must be a dict from topic to the number of partitions, not {topics!r}")
    found = {}
    for name, wanted in topics.items():
        check_topic(name)
        if isinstance(wanted, Mapping):
            unknown = wanted.keys() - {"count", "assignments"}
            if unknown or "count" not in wanted:
                raise IllegalArgumentError(f"topic {name!r} must have 'count' and may have 'assignments', not {wanted}")
            found[name] = NewPartitions(wanted["count"], wanted.get("assignments"))
        else:
            found[name] = wanted if isinstance(wanted, NewPartitions) else NewPartitions(wanted)
    return found


def config_text(value: object) -> str | None:
    """Return the value of a setting as Kafka writes it.

    >>> [config_text(value) for value in (True, 5, "compact", ["compact", "delete"], None)]
    ['true', '5', 'compact', 'compact,delete', None]
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return ",".join(str(config_text(part)) for part in value)
    return str(value)


def as_topics(topics: Iterable[str | UUID], what: str = "topics") -> list[str | UUID]:
    """Return names and ids of topics.

    >>> as_topics("events")
    Traceback (most recent call last):
    TypeError: topics must be a list of names or ids, not 'events'; for one topic, a list with one element
    """
    if isinstance(topics, (str, UUID)) or not isinstance(topics, Iterable):
        raise TypeError(
            f"{what} must be a list of names or ids, not {topics!r}; for one topic, a list with one element"
        )
    found = list(topics)
    for topic in found:
        if not isinstance(topic, UUID):
            check_topic(topic)
    return list(dict.fromkeys(found))
