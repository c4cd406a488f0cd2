"""The requests of a transaction in the form that each version has, and the errors in their answers. Sans-IO.

Versions that belong to the second version of the protocol (KIP-890) must not be used where the cluster has not
finalized it: the broker takes them to mean more than their predecessors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from kafka.errors import KafkaError, OperationNotAttemptedError, for_code
from kafka.protocol.transaction import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
)
from kafka.structs import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition

__all__ = [
    "NEWEST_ADD_PARTITIONS",
    "NEWEST_CLASSIC_END",
    "NEWEST_CLASSIC_OFFSETS",
    "NEWEST_CLASSIC_PRODUCE",
    "NEWEST_INIT",
    "OFFSETS_KNOW_MEMBERS",
    "Who",
    "add_offsets_request",
    "add_partitions_request",
    "commit_offsets_request",
    "end_request",
    "init_request",
    "plain_error",
    "worst_of_offsets",
    "worst_of_partitions",
]

NEWEST_INIT: Final = 5  # 6 is for two-phase commit (KIP-939)
NEWEST_ADD_PARTITIONS: Final = 3  # later ones are for brokers
NEWEST_CLASSIC_PRODUCE: Final = 11
NEWEST_CLASSIC_END: Final = 4
NEWEST_CLASSIC_OFFSETS: Final = 4
OFFSETS_KNOW_MEMBERS: Final = 3
"""TxnOffsetCommit from here on tells who the consumer is (KIP-447)."""
_INIT_KNOWS_EPOCHS: Final = 3


class Who(NamedTuple):
    """A transactional producer, as its requests name it."""

    transactional_id: str
    producer_id: int
    epoch: int


def init_request(version: int, who: Who, timeout: float) -> Any:
    """Return the request for a producer id; with that of `who`, for another epoch of it (KIP-360)."""
    fields: dict[str, Any] = {
        "transactional_id": who.transactional_id,
        "transaction_timeout_ms": round(timeout * 1000),
    }
    if version >= _INIT_KNOWS_EPOCHS:
        fields |= {"producer_id": who.producer_id, "producer_epoch": who.epoch}
    return InitProducerIdRequest[version](**fields)


def add_partitions_request(version: int, who: Who, partitions: Iterable[TopicPartition]) -> Any:
    """Return the request that makes partitions part of the transaction."""
    by_topic: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        by_topic.setdefault(topic, []).append(number)
    topic_type: Any = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
    return AddPartitionsToTxnRequest[version](
        v3_and_below_transactional_id=who.transactional_id,
        v3_and_below_producer_id=who.producer_id,
        v3_and_below_producer_epoch=who.epoch,
        v3_and_below_topics=[topic_type(name=topic, partitions=numbers) for topic, numbers in by_topic.items()],
    )


def add_offsets_request(version: int, who: Who, group_id: str) -> Any:
    """Return the request that makes a group's offsets part of the transaction."""
    return AddOffsetsToTxnRequest[version](
        transactional_id=who.transactional_id, producer_id=who.producer_id, producer_epoch=who.epoch, group_id=group_id
    )


def commit_offsets_request(
    version: int, who: Who, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: ConsumerGroupMetadata
) -> Any:
    """Return the request that commits offsets as soon as the transaction is."""
    partition_type: Any = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition
    topic_type: Any = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
    by_topic: dict[str, list[Any]] = {}
    for (topic, number), offset in sorted(offsets.items()):
        entry = partition_type(
            partition_index=number,
            committed_offset=offset.offset,
            committed_leader_epoch=-1 if offset.leader_epoch is None else offset.leader_epoch,
            committed_metadata=offset.metadata or "",
        )
        by_topic.setdefault(topic, []).append(entry)
    fields: dict[str, Any] = {
        "transactional_id": who.transactional_id,
        "group_id": group.group_id,
        "producer_id": who.producer_id,
        "producer_epoch": who.epoch,
        "topics": [topic_type(name=topic, partitions=entries) for topic, entries in by_topic.items()],
    }
    if version >= OFFSETS_KNOW_MEMBERS:
        fields |= {
            "generation_id": group.generation_id,
            "member_id": group.member_id,
            "group_instance_id": group.group_instance_id,
        }
    return TxnOffsetCommitRequest[version](**fields)


def end_request(version: int, who: Who, *, committed: bool) -> Any:
    """Return the request that ends the transaction."""
    return EndTxnRequest[version](
        transactional_id=who.transactional_id,
        producer_id=who.producer_id,
        producer_epoch=who.epoch,
        committed=committed,
    )


# Errors in answers


def plain_error(response: Any) -> KafkaError | None:
    """Return the error of a response that has one for all."""
    return for_code(response.error_code)() if response.error_code else None


def worst_of_partitions(response: Any) -> KafkaError | None:
    """Return the error that decides about a request to add partitions."""
    codes = {
        TopicPartition(topic.name, entry.partition_index): entry.partition_error_code
        for topic in response.results_by_topic_v3_and_below
        for entry in topic.results_by_partition
    }
    return _worst(codes)


def worst_of_offsets(response: Any) -> KafkaError | None:
    """Return the error that decides about a request to commit offsets."""
    return _worst(
        {
            TopicPartition(topic.name, entry.partition_index): entry.error_code
            for topic in response.topics
            for entry in topic.partitions
        }
    )


def _worst(codes: Mapping[TopicPartition, int]) -> KafkaError | None:
    """Return one that does not pass before one that does; those that only suffer for others say nothing."""
    found = [for_code(code)(topic_partition=partition) for partition, code in codes.items() if code]
    told = [error for error in found if not isinstance(error, OperationNotAttemptedError)] or found
    return min(told, key=lambda error: error.retriable, default=None)
