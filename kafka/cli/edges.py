"""The edges of partitions, their first and last offsets: the known ones, and why the others are not known."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from kafka.errors import KafkaError, LeaderNotAvailableError, UnknownTopicOrPartitionError

if TYPE_CHECKING:
    from kafka.admin import KafkaAdminClient, TopicDescription
    from kafka.structs import TopicPartition


class Edges(NamedTuple):
    """Where a partition starts and ends, or the error of asking its leader."""

    start: int | None
    end: int | None
    error: KafkaError | None = None


def edges(admin: KafkaAdminClient, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Edges]:
    """Return the edges of partitions; one that has no leader is not waited for."""
    wanted = list(partitions)
    if not wanted:
        return {}
    return edges_of(admin, admin.describe_topics(sorted({tp.topic for tp in wanted})), wanted)


def edges_of(
    admin: KafkaAdminClient, topics: Iterable[TopicDescription], partitions: Iterable[TopicPartition] | None = None
) -> dict[TopicPartition, Edges]:
    """Return the edges of the partitions of topics that were just described, or of some of these partitions."""
    from kafka.structs import TopicPartition

    leaders: dict[TopicPartition, int] = {}
    errors: dict[str, KafkaError] = {}
    for topic in topics:
        name = str(topic.name)
        if topic.error is not None:
            errors[name] = topic.error
        leaders |= {TopicPartition(name, one.partition_index): one.leader_id for one in topic.partitions}
    wanted = list(leaders if partitions is None else partitions)
    found: dict[TopicPartition, Edges] = {}
    for tp in wanted:
        if tp not in leaders:
            absent = UnknownTopicOrPartitionError(f"partition {tp.partition} of topic {tp.topic!r} does not exist")
            found[tp] = Edges(None, None, errors.get(tp.topic, absent))
        elif leaders[tp] < 0:
            found[tp] = Edges(None, None, LeaderNotAvailableError("it has no leader"))
    asked = [tp for tp in wanted if tp not in found]
    ends = _ask(admin, asked, "latest")
    # The leader of a partition that did not answer is not waited for a second time.
    starts = _ask(admin, [tp for tp in asked if not isinstance(ends[tp], KafkaError)], "earliest")
    for tp in asked:
        start, end = starts.get(tp), ends[tp]
        if isinstance(end, KafkaError):
            found[tp] = Edges(None, None, end)
        elif isinstance(start, KafkaError):
            found[tp] = Edges(None, end, start)
        else:
            found[tp] = Edges(start, end)
    return {tp: found[tp] for tp in wanted}


def _ask(
    admin: KafkaAdminClient, partitions: list[TopicPartition], place: str
) -> dict[TopicPartition, int | KafkaError]:
    answers = admin.list_partition_offsets(dict.fromkeys(partitions, place), raise_errors=False) if partitions else {}
    return {tp: one if isinstance(one, KafkaError) else one.offset for tp, one in answers.items()}
