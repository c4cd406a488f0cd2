"""Partitions and offsets as arguments: the forms in which calls take them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from kafka.errors import IllegalArgumentError
from kafka.structs import OffsetAndMetadata, TopicPartition


def as_partitions(partitions: Iterable[object]) -> list[TopicPartition]:
    """Return partitions, from `TopicPartition` objects, tuples, or a dict from topic to numbers.

    >>> as_partitions({"events": [0, 1]})
    [TopicPartition(topic='events', partition=0), TopicPartition(topic='events', partition=1)]
    """
    if isinstance(partitions, Mapping):
        partitions = [(topic, number) for topic, numbers in partitions.items() for number in numbers]
    return list(dict.fromkeys(as_partition(partition) for partition in partitions))


def as_partition(partition: object) -> TopicPartition:
    """Return a partition, from a `TopicPartition` or a tuple."""
    if type(partition) is TopicPartition:
        return partition
    if not isinstance(partition, tuple) or [type(part) for part in partition] != [str, int]:
        raise TypeError(f"partitions must be TopicPartition objects, not {partition!r}")
    return TopicPartition(*partition)


def as_offsets(offsets: object) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return offsets to commit, from a dict whose values are `OffsetAndMetadata` or integers."""
    if not isinstance(offsets, Mapping):
        raise TypeError(f"offsets must be a dict from TopicPartition to OffsetAndMetadata, not {offsets!r}")
    found = {}
    for partition, offset in zip(as_partitions(list(offsets)), offsets.values(), strict=True):
        if isinstance(offset, int) and not isinstance(offset, bool):
            offset = OffsetAndMetadata(offset)  # noqa: PLW2901
        if not isinstance(offset, OffsetAndMetadata):
            raise TypeError(f"the offset of {partition} must be an OffsetAndMetadata or an int, not {offset!r}")
        if offset.offset < 0:
            raise IllegalArgumentError(f"the offset of {partition} must not be negative, not {offset.offset}")
        found[partition] = offset
    return found


def by_topic(
    partitions: Iterable[TopicPartition],
    topic: str,
    numbers: str,
    entry: Callable[[TopicPartition], object] | None = None,
) -> list[dict[str, object]]:
    """Return topics with their partitions, or an entry for each, under the names that a request has for them.

    >>> by_topic([TopicPartition("events", 0), TopicPartition("events", 1)], "name", "partitions")
    [{'name': 'events', 'partitions': [0, 1]}]
    """
    found: dict[str, list[object]] = {}
    for partition in partitions:
        found.setdefault(partition.topic, []).append(partition.partition if entry is None else entry(partition))
    return [{topic: name, numbers: entries} for name, entries in found.items()]
