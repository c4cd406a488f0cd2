"""`KafkaProducer.send_columns`: whole columns encoded, hashed and placed with no Python object per record.

Records get the partitions that `KafkaProducer.send()` would give them, and keep their order within each. Where each
record must pass a serializer, an interceptor or a partitioner of the application, or brokers need an old format, they
are sent one by one. Needs numpy and pyarrow.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from kafka.errors import IllegalArgumentError, KafkaTimeoutError
from kafka.partitioner.hash_column import murmur2_column
from kafka.producer.arguments import checked_timeout
from kafka.producer.future import wait_for_batches
from kafka.producer.producer_batch import Divided
from kafka.producer.record_accumulator import too_large
from kafka.record.arrow_encoder import binary_column, encode_arrow, encode_divided, larger_chunks

if TYPE_CHECKING:
    from kafka.producer.calls import FutureT, ProducerCalls
    from kafka.producer.partition import Partition, Topic
    from kafka.producer.producer_batch import ProducerBatch
    from kafka.producer.record_accumulator import RecordAccumulator
    from kafka.record.batch_builder import BatchBuilder
    from kafka.structs import TopicPartition

__all__ = ["SentColumns", "send_columns", "takes_columns"]

Array = Any  # neither package is typed well enough to say more

# In place of a partition: the producer chooses.
_ANY = -1
# How many bytes of batches are added at a time.
_AT_ONCE = 2 << 20


class SentColumns:
    """The records that one call of `KafkaProducer.send_columns` has sent; it keeps no batch that is acknowledged."""

    def __init__(self, batches: Mapping[ProducerBatch, int]) -> None:
        self._waiting = dict(batches)
        """How many of the records are in each batch."""
        self._counts: Counter[TopicPartition] = Counter()

    @property
    def is_done(self) -> bool:
        """Whether every record is written or given up."""
        return all(batch.is_done for batch in self._waiting)

    def counts(self) -> dict[TopicPartition, int]:
        """Return how many records are written by now, by partition; raise the error of one that was given up."""
        for batch, count in tuple(self._waiting.items()):
            if batch.is_done:  # one that waits for its leader does not hold up the others
                del self._waiting[batch]
                error = _error(batch)
                if error is not None:
                    for other in self._waiting:  # the program knows that some have failed
                        _error(other)
                    raise error.with_traceback(None)
                self._counts[batch.partition.tp] += count
        return dict(self._counts)

    def get(self, timeout: float | None = None) -> dict[TopicPartition, int]:
        """Wait for all records, `timeout` seconds at most; return how many went to each partition.

        Raises the first error of a record, or `KafkaTimeoutError` while some are still being sent.
        """
        wait_for_batches(list(self._waiting), checked_timeout(timeout, "get()"))
        counts = self.counts()
        for batch in self._waiting:
            raise KafkaTimeoutError(
                f"The records were not all acknowledged in time; {sum(self._waiting.values())} are still being sent: "
                f"{batch.partition.sender.diagnostics.why_unacknowledged(batch)}",
                topic_partition=batch.partition.tp,
            )
        return counts

    def __repr__(self) -> str:
        written, left = sum(self._counts.values()), sum(self._waiting.values())
        return f"<SentColumns {written} records written, {left} under way>"


def _error(batch: ProducerBatch) -> BaseException | None:
    """Return why a batch, or a part of it, was given up, for the program; None if it was not."""
    outcome = batch.outcome
    if isinstance(outcome, BaseException):
        batch.looked_at.update(range(batch.count))
        return outcome
    parts = outcome.parts if isinstance(outcome, Divided) else ()
    return next(filter(None, [_error(part) for part in parts]), None)


def takes_columns(calls: ProducerCalls[FutureT]) -> bool:
    """Whether whole columns can be encoded for a producer."""
    return calls.plain and calls.accumulator.magic > 1


async def send_columns(
    calls: ProducerCalls[FutureT],
    topic: str,
    values: Array,
    keys: Array | None,
    headers: Array | None,
    partitions: Array | None,
) -> SentColumns:
    """Do what `KafkaProducer.send_columns` does: an application-side coroutine."""
    if takes_columns(calls):
        batches = await _send_traced(calls, topic, values, keys, headers, partitions)
        return SentColumns({batch: batch.count for batch in batches})
    sent = await calls.send_many(topic, _rows(calls, values, keys, headers, partitions))
    return SentColumns(sent.counts_by_batch())


async def _send_traced(
    calls: ProducerCalls[FutureT],
    topic: str,
    values: Array,
    keys: Array | None,
    headers: Array | None,
    partitions: Array | None,
) -> list[ProducerBatch]:
    """Send the columns; with a tracer in one span, whose context is in each record unless the records have headers."""
    tracing = calls.tracing
    if tracing is None:
        return await _send_whole(calls, topic, values, keys, headers, partitions)
    span, more = tracing.begin_many(topic, len(values), with_headers=headers is None)
    if more:
        headers = _repeated(more, len(values))
    return await tracing.end_many(span, _send_whole(calls, topic, values, keys, headers, partitions), list)


def _repeated(headers: Sequence[tuple[str, bytes]], count: int) -> Array:
    """Return a column of `count` times the same headers."""
    names = pa.array([name for name, _ in headers] * count)
    data = pa.array([data for _, data in headers] * count, pa.binary())
    ends = np.arange(0, len(headers) * count + 1, len(headers), dtype=np.int32)
    return pa.ListArray.from_arrays(ends, pa.StructArray.from_arrays([names, data], ["key", "value"]))


def _rows(
    calls: ProducerCalls[FutureT], values: Array, keys: Array | None, headers: Array | None, partitions: Array | None
) -> list[tuple[object, object, object, object]]:
    """Return the records as `KafkaProducer.send_many` takes them."""
    serializes = [calls.config[name] is not None for name in ("value_serializer", "key_serializer")]
    columns = (_objects(column, given) for column, given in zip((values, keys), serializes, strict=True))
    more = (_objects(column, True) for column in (headers, partitions))
    return [
        (key, value, [(pair["key"], pair["value"]) for pair in pairs or ()] or None, partition)
        for value, key, pairs, partition in zip(*columns, *more, strict=False)
    ]


def _objects(column: Array | None, as_they_are: bool) -> Iterable[Any]:
    if column is None:
        return repeat(None)
    items = column.to_pylist()
    return items if as_they_are else [item.encode() if isinstance(item, str) else item for item in items]


async def _send_whole(
    calls: ProducerCalls[FutureT],
    topic: str,
    values: Array,
    keys: Array | None,
    headers: Array | None,
    partitions: Array | None,
) -> list[ProducerBatch]:
    """Send the columns in batches that have no other records."""
    found = calls.accumulator.topics.get(topic)
    state = found or await calls.find_topic(topic, calls.core.now() + calls.max_block)
    encoding = {
        "limit": calls.accumulator.batch_size,
        "codec": calls.config["compression_type"],
        "level": calls.config["compression_level"],
        "timestamps": int(calls.core.client.environment.clock.time() * 1000),
        "headers": headers,
    }
    asked = None
    if partitions is not None and partitions.null_count < len(partitions):
        asked = _asked(partitions, len(values))
        given = set(np.unique(asked[_numpy(partitions.is_valid())]).tolist())
        if unknown := given - set(state.partitions):  # or added since the last metadata
            state = await calls.find_topic(topic, calls.core.now() + calls.max_block, partition=max(unknown))
            if unknown := given - set(state.partitions):
                count = len(state.partitions)
                raise IllegalArgumentError(
                    f"there is no partition {min(unknown)} of topic {topic!r}; it has {count} partitions"
                )
    there = state.partitions  # as they are now: when partitions are added, the topic gets another dict
    placed = _places(keys if calls.hashes else None, asked, np.array(list(there)))
    if placed is None:
        return await _add(calls, state, ((None, builder) for builder in encode_arrow(values, keys, **encoding)))
    if (placed == _ANY).any():
        # They keep their order among the other records: in a topic of one partition that is expected.
        placed = np.where(placed == _ANY, calls.accumulator.sticky_partition(state).index, placed)
    built = encode_divided(values, keys, groups=placed, **encoding)
    return await _add(calls, state, ((there[index], builder) for index, builder in built))


async def _add(
    calls: ProducerCalls[FutureT], topic: Topic, built: Iterable[tuple[Partition | None, BatchBuilder]]
) -> list[ProducerBatch]:
    """Add batches, some megabytes of them at a time: each time wakes the loop. Waits for memory."""
    added: list[ProducerBatch] = []
    some: deque[tuple[Partition | None, BatchBuilder]] = deque()
    size = 0
    for one in built:
        _check_size(calls.accumulator, one[1], topic)
        some.append(one)
        size += one[1].size
        if size >= _AT_ONCE:
            added += await calls.add_built(topic, some, "send_columns()")
            size = 0
    return added + await calls.add_built(topic, some, "send_columns()")


def _check_size(accumulator: RecordAccumulator, builder: BatchBuilder, topic: Topic) -> None:
    for limit, name in (
        (accumulator.max_request_size, "max_request_size"),
        (accumulator.memory.total, "buffer_memory"),
    ):
        if builder.size > limit:  # it is one record: batches of several keep to batch_size
            raise too_large(builder.size, name, limit, topic.name)


# Placing.


def _asked(partitions: Array, count: int) -> Array:
    """Return the partitions that the caller chose, _ANY for null."""
    if len(partitions) != count:
        raise IllegalArgumentError(f"{len(partitions)} partitions for {count} values")
    try:
        return _numpy(partitions.cast(pa.int64()).fill_null(_ANY))
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as err:
        raise IllegalArgumentError(f"a column of {partitions.type} cannot be partitions: {err}") from err


def _places(keys: Array | None, asked: Array | None, indexes: Array) -> Array | None:
    """Return the partition of each record, _ANY where the accumulator chooses; None if it does for all."""
    places = None
    if keys is not None and keys.null_count < len(keys):
        places = _by_keys(keys, indexes)
    if asked is None:
        return places
    return asked if places is None else np.where(asked == _ANY, places, asked)


def _by_keys(keys: Array, indexes: Array) -> Array:
    """Return the partitions of keys by their hashes, as the Java client does; _ANY for null."""
    keys = larger_chunks(binary_column(keys))
    found = np.concatenate([_hashes(part) for part in keys.chunks])
    found &= np.uint32(0x7FFFFFFF)
    places = indexes[found % np.uint32(len(indexes))]
    if keys.null_count:
        places[_numpy(keys.is_null())] = _ANY
    return places


def _hashes(keys: Array) -> Array:
    _, bounds, data = keys.buffers()
    ends = np.frombuffer(bounds or bytes(4), np.int32)[keys.offset : keys.offset + len(keys) + 1]
    first = int(ends[0])
    return murmur2_column(memoryview(data or b"")[first : int(ends[-1])], ends - first)


def _numpy(column: Array) -> Array:
    # A chunked array takes no argument here in older releases.
    return column.to_numpy() if isinstance(column, pa.ChunkedArray) else column.to_numpy(zero_copy_only=False)
