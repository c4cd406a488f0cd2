"""The application's own code that a record passes on its way into a batch: serializers, partitioner, interceptors.

It runs in the thread or the task that calls `send()`, before the record is added.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from kafka.errors import IllegalArgumentError
from kafka.interceptors import Interceptors, ProducerRecord
from kafka.partitioner import DefaultPartitioner, Partitioner, bind_partitioner
from kafka.producer.arguments import as_bytes, checked_partition
from kafka.producer.future import RecordFuture, RecordMetadata
from kafka.producer.partition import Partition, Topic
from kafka.producer.producer_batch import UNSEEN
from kafka.serializer import bind_serializer
from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from kafka._runtime.tasks import Coro
    from kafka.cluster import ClusterMetadata
    from kafka.config import Config
    from kafka.producer.arguments import Headers

__all__ = ["Interception", "Plugins"]

FutureT = TypeVar("FutureT", bound=RecordFuture)


class Plugins:
    """The serializers and the partitioner of a producer."""

    cluster: ClusterMetadata
    """The metadata for the application's partitioner; set by the calls, which make the core after this."""

    def __init__(self, config: Config) -> None:
        self._serialize_key = bind_serializer(config["key_serializer"], "key_serializer")
        self._serialize_value = bind_serializer(config["value_serializer"], "value_serializer")
        partitioner = config["partitioner"]
        self._partitioner = partitioner
        self.is_default = type(partitioner) is DefaultPartitioner and partitioner.partitions is None
        """Whether the accumulator places records without a key."""
        self._ignores_keys = bool(config["partitioner_ignore_keys"] and self.is_default)
        self._choose = bind_partitioner(partitioner)
        self._on_new_batch: Callable[..., object] | None = getattr(partitioner, "on_new_batch", None)
        if getattr(self._on_new_batch, "__func__", None) is Partitioner.on_new_batch:
            # It does nothing. A second choice for each batch would make a partitioner that counts skip partitions.
            self._on_new_batch = None
        self.has_serializers = self._serialize_key is not None or self._serialize_value is not None
        self.hashes: bool = self.is_default and not self._ignores_keys
        """Whether a key's hash alone chooses the partition."""
        self.plain: bool = self.is_default and not self.has_serializers
        """Whether there is no serializer, and no partitioner but the default one."""

    def serialize(self, topic: str, key: Any, value: Any, headers: Headers | None) -> tuple[bytes | None, bytes | None]:
        """Return a record's key and value as bytes."""
        serialize = self._serialize_key
        if serialize is not None:
            key = serialize.call(key) if serialize.plain else serialize.call(topic, headers, key)
        serialize = self._serialize_value
        if serialize is not None:
            value = serialize.call(value) if serialize.plain else serialize.call(topic, headers, value)
        return (
            as_bytes(key, "key", self._serialize_key is not None),
            as_bytes(value, "value", self._serialize_value is not None),
        )

    def place(
        self,
        state: Topic,
        key: object,
        key_bytes: bytes | None,
        value: object,
        value_bytes: bytes | None,
        asked: int | None,
    ) -> Partition | None:
        """Return the partition of a record; None leaves it to the accumulator."""
        if asked is None:
            if self.is_default and (key_bytes is None or self._ignores_keys):
                return None
            if self.is_default:
                index = self._partitioner.choose(state.name, key_bytes, state.indexes, ())
            else:
                cluster = self.cluster
                index = self._choose(state.name, key, key_bytes, value, value_bytes, cluster)
                if self._on_new_batch is not None and _opens_batch(state, index):
                    # A sticky partitioner may choose another partition now (KIP-480).
                    self._on_new_batch(state.name, cluster, index)
                    index = self._choose(state.name, key, key_bytes, value, value_bytes, cluster)
        else:
            index = asked if type(asked) is int else checked_partition(asked)
        found = state.partitions.get(index)
        if found is None:
            source = "the partitioner chose" if asked is None else "there is no"
            raise IllegalArgumentError(
                f"{source} partition {index!r} of topic {state.name!r}; it has {len(state.indexes)} partitions"
            )
        return found

    def close(self) -> None:
        """Close the serializers and the partitioner, if they can be closed."""
        for bound in (self._serialize_key, self._serialize_value):
            if bound is not None and bound.close is not None:
                bound.close()
        closer = getattr(self._partitioner, "close", None)
        if callable(closer):
            closer()


def _opens_batch(state: Topic, index: int) -> bool:
    partition = state.partitions.get(index)
    return partition is not None and partition.open is None


class Interception:
    """The interceptors of a producer, which see each record, and its outcome before other callbacks do (KIP-42)."""

    def __init__(self, config: Config) -> None:
        self._interceptors = Interceptors(config["interceptors"], config)
        self.close = self._interceptors.close

    def send(self, send: Callable[..., FutureT | Coro[FutureT]], *given: Any) -> FutureT | Coro[FutureT]:
        """Pass a record through the interceptors and then to `send`."""
        record = self._interceptors.through("on_send", ProducerRecord(*given))
        try:
            sent = send(*record)
        except Exception as error:
            self._refused(record, error)
            raise
        return self._follow(sent) if isinstance(sent, RecordFuture) else self._send_later(record, sent)

    async def _send_later(self, record: ProducerRecord, sent: Coro[FutureT]) -> FutureT:
        try:
            return self._follow(await sent)
        except BaseException as error:
            self._refused(record, error)
            raise

    def _follow(self, future: FutureT) -> FutureT:
        batch = future._batch  # noqa: SLF001 - of one package

        def written(metadata: RecordMetadata | None) -> None:
            if metadata is None:  # acks=0
                metadata = _unknown_place(batch.partition.tp)
            self._interceptors.tell("on_acknowledgement", metadata, None)

        def given_up(error: BaseException) -> object:
            self._failed(batch.partition.tp, error)
            return UNSEEN  # interceptors observe

        batch.follow(future, written, given_up)
        return future

    def _refused(self, record: ProducerRecord, error: BaseException) -> None:
        partition = -1 if record.partition is None else record.partition
        self._failed(TopicPartition(record.topic, partition), error)

    def _failed(self, where: TopicPartition, error: BaseException) -> None:
        self._interceptors.tell("on_acknowledgement", _unknown_place(where), error)


def _unknown_place(where: TopicPartition) -> RecordMetadata:
    return RecordMetadata(where.topic, where.partition, where, -1, -1, None, -1, -1, -1)
