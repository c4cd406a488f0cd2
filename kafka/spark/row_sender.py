"""Writing a task's rows, in a Spark worker, with a producer that stays with the process. Needs pyarrow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from kafka import KafkaProducer
from kafka.errors import IllegalArgumentError
from kafka.spark.client_cache import ClientCache, prepare_worker

if TYPE_CHECKING:
    from typing import Protocol

    from kafka.spark.options import SinkOptions
    from kafka.structs import TopicPartition

    class _Sent(Protocol):
        @property
        def is_done(self) -> bool: ...
        def counts(self) -> Mapping[TopicPartition, int]: ...


__all__ = ["RowSender", "batches_of_rows", "write"]


# How many rows that came as objects become a batch.
_ROWS: Final = 10_000
# How much is handed over at a time. Spark sends ten thousand rows; spread over some partitions, these would make
# batches that are smaller than they may be.
_BYTES: Final = 4 << 20
_WANTED: Final = ("value", "key", "headers", "partition")
_HEADERS: Final = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
_TYPES: Final = {
    "value": pa.binary(),
    "key": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "headers": _HEADERS,
}


def _make_producer(options: Mapping[str, Any]) -> KafkaProducer:
    return KafkaProducer(**options)


_producers: Final = ClientCache(_make_producer)


def write(options: SinkOptions, batches: Iterable[object]) -> dict[str, int]:
    """Write the rows of Arrow batches; return how many went to each partition when all are acknowledged."""
    prepare_worker(freeze=options.freeze)
    producer = _producers.get(options.client)
    sender = RowSender(producer, options.topic)
    try:
        for batch in batches:
            sender.send(batch)
        return sender.finish()
    except BaseException:
        # Records that are left of this task must not go out with the next one's rows.
        try:
            producer.purge(in_flight=True)
        finally:
            _producers.drop(options.client)
        raise


# Rows that come as objects.


def batches_of_rows(names: Sequence[str], rows: Iterator[Any]) -> Iterator[Any]:
    """Yield Arrow batches of rows that come as objects, some thousand at a time."""
    places = {name: names.index(name) for name in _TYPES if name in names}
    while True:
        chunk = list(islice(rows, _ROWS))
        if not chunk:
            return
        columns = {
            name: pa.array([_plain(name, row[at]) for row in chunk], _TYPES[name]) for name, at in places.items()
        }
        yield pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def _plain(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name in {"key", "value"}:
        return value.encode() if isinstance(value, str) else bytes(value)
    if name == "headers":
        return [{"key": key, "value": None if data is None else bytes(data)} for key, data in value]
    return value


# Sending.


class RowSender:
    """Hands the rows of Arrow batches to a producer, some megabytes at a time."""

    def __init__(self, producer: KafkaProducer, topic: str | None) -> None:
        self._producer = producer
        self._topic = topic
        self._sent: list[_Sent] = []
        """The records that are not acknowledged yet."""
        self._counts: Counter[str] = Counter()
        self._held: list[Any] = []
        self._held_bytes = 0

    def send(self, batch: Any) -> None:
        """Send the rows of a batch, at once or with later ones; raises what has become of earlier ones."""
        self._held.append(batch)
        self._held_bytes += batch.nbytes
        if self._held_bytes >= _BYTES:
            self._hand_over()

    def finish(self) -> dict[str, int]:
        """Return how many rows went to each partition, when all of them are acknowledged."""
        if self._held:
            self._hand_over()
        self._producer.flush()
        self._check()
        return dict(self._counts)

    def _hand_over(self) -> None:
        rows = pa.Table.from_batches(self._held)
        self._held, self._held_bytes = [], 0
        for topic, part in _by_topic(rows, self._topic):
            value, key, headers, partition = (_column(part, name) for name in _WANTED)
            if value is None:
                value = pa.nulls(part.num_rows, pa.binary())
            self._sent.append(self._producer.send_columns(topic, value, key, headers, partition))
        self._check()

    def _check(self) -> None:
        """Count what is acknowledged; raise the first error."""
        left = []
        for sent in self._sent:
            is_done, counts = sent.is_done, sent.counts()  # in this order: more may be written between the two
            if is_done:
                self._counts.update({f"{tp.topic}-{tp.partition}": count for tp, count in counts.items()})
            else:
                left.append(sent)
        self._sent = left


def _by_topic(rows: Any, topic: str | None) -> Iterator[tuple[str, Any]]:
    """Yield the rows for each topic, in their order."""
    if topic is not None:
        yield topic, rows
        return
    names = rows.column("topic")
    if names.null_count:
        raise IllegalArgumentError(
            "[KAFKA_NULL_TOPIC_IN_DATA] The Kafka message data sent to the producer contains a null topic. Use the "
            "`topic` option for setting a default topic."
        )
    encoded = names.combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):  # older releases keep the chunks
        encoded = encoded.chunk(0)
    counts = np.bincount(encoded.indices.to_numpy())
    if len(counts) > 1:  # put in order once: to filter for each of a thousand topics takes a thousand passes
        rows = rows.take(pa.array(np.argsort(encoded.indices.to_numpy(), kind="stable")))
    for name, count, end in zip(encoded.dictionary.to_pylist(), counts, np.cumsum(counts), strict=True):
        yield name, rows.slice(end - count, count)


def _column(rows: Any, name: str) -> Any:
    """Return a column; None where there is none, or nothing in it."""
    at = rows.schema.get_field_index(name)
    if at < 0:
        return None
    column = rows.column(at)
    return None if column.null_count == len(column) else column
