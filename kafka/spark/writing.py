"""Writing a task's rows, in a Spark worker, with a producer that stays with the process. Needs pyarrow."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kafka.errors import IllegalArgumentError
from kafka.producer import KafkaProducer
from kafka.producer.batch import Divided
from kafka.spark.connections import Kept, freeze_once

if TYPE_CHECKING:
    from kafka.producer.batch import ProducerBatch
    from kafka.spark.sink_options import SinkOptions

__all__ = ["Columns", "Deliveries", "RowSender", "columns_of", "columns_of_rows", "write_arrow", "write_rows"]

# How many rows that came as objects go to the producer at a time.
_ROWS: Final = 10_000
_WANTED: Final = ("value", "key", "topic", "partition", "headers")

Columns = dict[str, "list[Any] | None"]


def _make_producer(options: Mapping[str, Any]) -> KafkaProducer:
    return KafkaProducer(**options)


_producers: Final = Kept(_make_producer)


def write_arrow(options: SinkOptions, batches: Iterable[Any]) -> dict[str, int]:
    """Write the rows of Arrow batches; return how many went to each partition when all are acknowledged."""
    return _write(options, columns_of(batches))


def write_rows(options: SinkOptions, names: Sequence[str], rows: Iterator[Any]) -> dict[str, int]:
    """The same for rows that come as objects."""
    return _write(options, columns_of_rows(names, rows))


def _write(options: SinkOptions, chunks: Iterable[Columns]) -> dict[str, int]:
    freeze_once()
    producer = _producers.get(options.client)
    sender = RowSender(producer, options.topic)
    try:
        for columns in chunks:
            sender.send(columns)
        producer.flush()
        return sender.deliveries.finish()
    except BaseException:
        # What is left of this task must not go out with the next one's rows.
        producer.purge(in_flight=True)
        _producers.drop(options.client)
        raise


# What Spark gives, column by column.


def columns_of(batches: Iterable[Any]) -> Iterator[Columns]:
    """Yield the columns of Arrow batches."""
    for batch in batches:
        yield {name: _values(batch, name) for name in _WANTED}


def _values(batch: Any, name: str) -> list[Any] | None:
    """Return a column as a list; None where there is none, or nothing in it."""
    at = batch.schema.get_field_index(name)
    if at < 0:
        return None
    column = batch.column(at)
    if column.null_count == len(column):
        return [None] * len(column) if name in {"value", "topic"} else None
    if name in {"key", "value"} and not pa.types.is_binary(column.type):
        column = column.cast(pa.binary())
    if name == "headers":
        return [None if not pairs else [(pair["key"], pair["value"]) for pair in pairs] for pairs in column.to_pylist()]
    values: list[Any] = column.to_pylist()
    return values


def columns_of_rows(names: Sequence[str], rows: Iterator[Any]) -> Iterator[Columns]:
    """Yield the columns of rows that come as objects, some thousand at a time."""
    places = {name: names.index(name) for name in _WANTED if name in names}
    while True:
        chunk = [row for row, _ in zip(rows, range(_ROWS), strict=False)]
        if not chunk:
            return
        columns: Columns = dict.fromkeys(_WANTED)
        for name, at in places.items():
            columns[name] = [_plain(name, row[at]) for row in chunk]
        yield columns


def _plain(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name in {"key", "value"}:
        return value.encode() if isinstance(value, str) else bytes(value)
    if name == "headers":
        return [(key, None if data is None else bytes(data)) for key, data in value] or None
    return value


# Sending.


class RowSender:
    """Hands columns to a producer."""

    def __init__(self, producer: KafkaProducer, topic: str | None) -> None:
        self._producer = producer
        self._topic = topic
        self.deliveries = Deliveries()

    def send(self, columns: Columns) -> None:
        """Send the rows of some columns; raises what has become of earlier ones."""
        values = columns["value"] or []
        keys, headers, partitions = columns["key"], columns["headers"], columns["partition"]
        topics = columns["topic"] if self._topic is None else None
        if self._topic is not None and keys is None and headers is None and partitions is None:
            sent = self._producer.send_many(self._topic, values)
            for _, _, batch, _ in sent._spans:  # noqa: SLF001 - of this library; a future per record is not wanted
                self.deliveries.watch(batch)
        else:
            self._send_each(values, keys, headers, partitions, topics)
        self.deliveries.check()

    def _send_each(
        self,
        values: list[Any],
        keys: list[Any] | None,
        headers: list[Any] | None,
        partitions: list[Any] | None,
        topics: list[Any] | None,
    ) -> None:
        send, watch = self._producer.send, self.deliveries.watch
        topic = self._topic
        last: ProducerBatch | None = None
        for at, value in enumerate(values):
            if topics is not None:
                topic = topics[at]
                if topic is None:
                    raise IllegalArgumentError(
                        "[KAFKA_NULL_TOPIC_IN_DATA] The Kafka message topic cannot be null. Use the topic option for "
                        "setting a topic, or fill the column."
                    )
            future = send(
                topic,  # type: ignore[arg-type] # one of the two is given
                value,
                None if keys is None else keys[at],
                None if headers is None else headers[at],
                None if partitions is None else partitions[at],
            )
            if future[0] is not last:
                last = future[0]
                watch(last)


class Deliveries:
    """Follows the batches that a task's records went into, and keeps no more of them than are under way."""

    def __init__(self) -> None:
        self._waiting: deque[ProducerBatch] = deque()
        self._counts: Counter[str] = Counter()

    def watch(self, batch: ProducerBatch) -> None:
        """Follow a batch."""
        if not self._waiting or self._waiting[-1] is not batch:
            self._waiting.append(batch)

    def check(self) -> None:
        """Count what is acknowledged; raise the first error."""
        while self._waiting and self._waiting[0].is_done:
            self._settle(self._waiting.popleft())

    def finish(self) -> dict[str, int]:
        """Return the counts when the producer was flushed."""
        for batch in self._waiting:
            self._settle(batch)
        self._waiting.clear()
        return dict(self._counts)

    def _settle(self, batch: ProducerBatch) -> None:
        outcome = batch.outcome
        if isinstance(outcome, BaseException):
            raise outcome
        if isinstance(outcome, Divided):
            for part in outcome.parts:
                self._settle(part)
            return
        topic, partition = batch.partition.tp
        self._counts[f"{topic}-{partition}"] += batch.count
