"""Asking a new leader whether the log still has what was read, where a fetch does not say so itself (KIP-320).

From Fetch v12 on (2.7) each fetch names the epoch of the last record, and the reply tells of a cut. Before that, from
2.1 on, OffsetForLeaderEpoch has to be asked after each change of leader, before the next fetch. Runs on the client's
loop, on the connection that the fetch goes over.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafka.errors import (
    ClusterAuthorizationFailedError,
    KafkaError,
    TopicAuthorizationFailedError,
    UnknownLeaderEpochError,
    for_code,
)
from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from kafka.conn import BrokerConnection
    from kafka.consumer.fetch_session import Wanted
    from kafka.consumer.replies import Asked

__all__ = ["Verdict", "ask_new_leader", "unchecked"]

# The first version that checks the epoch which the asker believes in.
_EPOCHS_CHECKED_SINCE: Final = 2
# Brokers before 2.3 let other brokers alone ask, if there are rules: then there is no way to know.
_UNTOLD: Final = (TopicAuthorizationFailedError, ClusterAuthorizationFailedError)


class Verdict(NamedTuple):
    """What a leader says of one partition: where the log goes another way, or why it does not say."""

    epoch: int
    end_offset: int
    error: KafkaError | None = None


def unchecked(
    wanted: Mapping[TopicPartition, Wanted], asked: Mapping[TopicPartition, Asked]
) -> dict[TopicPartition, Wanted]:
    """Return those whose leader is new since their last record was known to be in the log; take note of the others."""
    found = {}
    for partition, entry in wanted.items():
        cursor = asked[partition].cursor
        if entry.leader_epoch <= cursor.checked_epoch:
            continue
        if entry.last_epoch < 0:  # nothing read yet that could be gone
            cursor.checked_epoch = entry.leader_epoch
        else:
            found[partition] = entry
    return found


async def ask_new_leader(
    link: BrokerConnection, doubtful: Mapping[TopicPartition, Wanted], timeout: float
) -> dict[TopicPartition, Verdict]:
    """Return what is wrong with partitions; those that are as they were are not in it."""
    from kafka.protocol.offset import OffsetForLeaderEpochRequest

    assert link.versions is not None
    if not link.versions.supports(OffsetForLeaderEpochRequest.API_KEY, _EPOCHS_CHECKED_SINCE):
        return {}
    part: Any = OffsetForLeaderEpochRequest.OffsetForLeaderPartition
    topic: Any = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    topics: dict[str, list[Any]] = {}
    for partition, entry in doubtful.items():
        topics.setdefault(partition.topic, []).append(
            part(
                partition=partition.partition,
                current_leader_epoch=entry.leader_epoch,
                leader_epoch=entry.last_epoch,
            )
        )
    request = OffsetForLeaderEpochRequest(
        replica_id=-1, topics=[topic(topic=name, partitions=parts) for name, parts in topics.items()]
    )
    return _read(await link.submit(request, timeout), doubtful)


def _read(response: Any, doubtful: Mapping[TopicPartition, Wanted]) -> dict[TopicPartition, Verdict]:
    left = dict(doubtful)
    verdicts: dict[TopicPartition, Verdict] = {}
    for topic in response.topics:
        for told in topic.partitions:
            partition = TopicPartition(topic.topic, told.partition)
            entry = left.pop(partition, None)
            if entry is None:
                continue
            if told.error_code:
                error = for_code(told.error_code)(topic_partition=partition)
                if not isinstance(error, _UNTOLD):
                    verdicts[partition] = Verdict(-1, -1, error)
            elif told.end_offset < entry.offset:  # -1 too: it knows nothing of that epoch
                verdicts[partition] = Verdict(told.leader_epoch, told.end_offset)
    for partition in left:
        verdicts[partition] = Verdict(-1, -1, UnknownLeaderEpochError("not answered", topic_partition=partition))
    return verdicts
