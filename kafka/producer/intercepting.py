"""The way of a record past the interceptors (KIP-42). Only records of producers that have some come here."""

# ruff: noqa: SLF001 - a producer and its futures are one thing in several modules

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafka.interceptors import Interceptors, ProducerRecord
from kafka.producer.future import FutureRecordMetadata, RecordMetadata
from kafka.structs import TopicPartition

__all__ = ["intercepted"]


def intercepted(
    interceptors: Interceptors, send: Callable[..., FutureRecordMetadata], record: tuple[Any, ...]
) -> FutureRecordMetadata:
    """Send what the interceptors make of a record, and have them hear of its outcome before anybody else."""
    changed = interceptors.through("on_send", ProducerRecord(*record))

    def written(metadata: RecordMetadata) -> None:
        interceptors.tell("on_acknowledgement", metadata, None)

    try:
        future = send(*changed)
    except Exception as error:
        _given_up(interceptors, changed.topic, -1 if changed.partition is None else changed.partition, error)
        raise

    def given_up(error: BaseException) -> None:
        _given_up(interceptors, changed.topic, future._batch.partition.index, error)

    future._batch.follow(future, written, given_up)
    return future


def _given_up(interceptors: Interceptors, topic: str, partition: int, error: BaseException) -> None:
    where = TopicPartition(topic, partition)
    metadata = RecordMetadata(topic, partition, where, -1, -1, None, -1, -1, -1)
    interceptors.tell("on_acknowledgement", metadata, error)
