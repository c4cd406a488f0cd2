"""Records for tests: values into batches of a topic, and a topic's batches back into records."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Final

from kafka.broker.cluster.cluster import Cluster
from kafka.broker.cluster.creation import create_on_demand
from kafka.broker.cluster.topics import Partition, Topic
from kafka.broker.storage.validation import Refused, accept
from kafka.errors import Code, KafkaTimeoutError, for_code
from kafka.partitioner.murmur2_hash import murmur2
from kafka.record.batch import decode_batch
from kafka.record.batch_builder import FULL, BatchBuilder
from kafka.record.consumer_record import ConsumerRecord
from kafka.record.header import Buffer, scan

_NO_LIMIT: Final = 2**31 - 1
_NEWEST_PRODUCE: Final = 13


def encode(records: Iterable[object], timestamp_ms: int, limit: int = _NO_LIMIT) -> list[bytes]:
    """Return batches of the records: values, or tuples of key, value and perhaps headers; text becomes UTF-8.

    A batch has no more than ``limit`` bytes, unless one record alone has more.

    >>> from kafka.record.header import read_header
    >>> [read_header(batch).count for batch in encode(["a", ("key", "b")], 1700000000000)]
    [2]
    """
    sealed = []
    builder = BatchBuilder(limit)
    for key, value, headers in map(fields_of, records):
        if builder.append(timestamp_ms, key, value, headers or None) == FULL:
            sealed.append(builder.seal().data)
            builder = BatchBuilder(limit)
            builder.append(timestamp_ms, key, value, headers or None)
    return [*sealed, builder.seal().data]


def checked(partition: Partition, data: Buffer, now_ms: int) -> Buffer:
    """Return a batch as the topic's configuration has it stored; raise the error that a producer would get."""
    log, name = partition.log, partition.topic.name
    try:
        return accept(data, _NEWEST_PRODUCE, log.config, partition.tp, now_ms).data
    except Refused as refused:
        option, limit = ("max.message.bytes", log.config.max_message_bytes)
        if refused.code == Code.RECORD_LIST_TOO_LARGE:
            option, limit = ("segment.bytes", log.config.segment_bytes)
        reason = refused.message or f"it has {len(data)} bytes, {option} is {limit}"
        raise for_code(refused.code)(f"topic {name!r} takes no such record: {reason}") from None


def append(
    cluster: Cluster, topic: str, rows: list[Fields], *, partition: int | None, timestamp_ms: int | None, raw: bool
) -> int:
    """Append records to a topic, which may not exist yet; return the first one's offset. See `Broker.append_many`."""
    broker_time = cluster.clock.now_ms()
    now = broker_time if timestamp_ms is None else timestamp_ms
    if isinstance(topic, str) and topic not in cluster.topics:
        create_on_demand(cluster, topic)
    rows_of: dict[Partition, list[Fields]] = {}
    if partition is not None:
        rows_of[cluster.existing_partition(topic, partition)] = rows
    else:
        for row in rows:
            rows_of.setdefault(_partition_for(cluster.existing_topic(topic), row[0], rows_of), []).append(row)
    sealed: list[tuple[Partition, Buffer]]
    if raw:
        sealed = [(one, data) for one, chosen in rows_of.items() for data in encode(chosen, now)]
    else:
        sealed = [
            (one, checked(one, data, broker_time))
            for one, chosen in rows_of.items()
            for data in encode(chosen, now, one.log.config.max_message_bytes)
        ]
    offsets = [cluster.append(one, data) for one, data in sealed]
    return offsets[0]


def _partition_for(topic: Topic, key: bytes | None, added: Mapping[Partition, list[Fields]]) -> Partition:
    if key is not None:
        return topic.partitions[(murmur2(key) & 0x7FFFFFFF) % len(topic.partitions)]
    return min(topic.partitions, key=lambda one: one.log.end_offset + len(added.get(one, ())))


Fields = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]


def fields_of(record: object) -> Fields:
    """Return key, value and headers of a record as tests give it; raise TypeError for what cannot be one.

    >>> fields_of(("key", "value", {"trace": "1"}))
    (b'key', b'value', [('trace', b'1')])
    """
    if not isinstance(record, tuple):
        record = (None, record)
    if len(record) not in {2, 3}:
        raise TypeError(
            f"a record is a value, (key, value) or (key, value, headers), not a tuple of {len(record)}: {record!r:.100}"
        )
    key, value, headers = record if len(record) == 3 else (*record, ())
    return _bytes(key, "key"), _bytes(value, "value"), _headers(headers)


def _bytes(value: object, name: str) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    advice = "json.dumps(...)" if isinstance(value, (dict, list, tuple, int, float)) else "bytes(...)"
    raise TypeError(f"the {name} of a record must be bytes, str or None, not {type(value).__name__}; give {advice}")


def _headers(headers: Any) -> list[tuple[str, bytes | None]]:
    pairs = headers.items() if isinstance(headers, Mapping) else headers or ()
    found = []
    for pair in pairs:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not isinstance(pair[0], str):
            raise TypeError(f"headers are a dict, or pairs of a str and bytes, str or None, not {headers!r:.100}")
        found.append((pair[0], _bytes(pair[1], f"header {pair[0]!r}")))
    return found


async def wait_for_records(
    cluster: Cluster, name: str, count: int, timeout: float, *, committed: bool
) -> list[ConsumerRecord]:
    """Return a topic's records once there are that many; the topic may not exist yet."""
    try:
        return await asyncio.wait_for(_records(cluster, name, count, committed=committed), timeout)
    except asyncio.TimeoutError:
        topic = cluster.topic(name)
        has = f"topic {name!r} does not exist"
        if topic is not None:
            found = sum(len(decode(one, committed=committed)) for one in topic.partitions)
            has = f"{name!r} has {found} records"
        raise KafkaTimeoutError(f"waited {timeout} s for {count} records: {has}") from None


async def _records(cluster: Cluster, name: str, count: int, *, committed: bool) -> list[ConsumerRecord]:
    change = asyncio.Event()

    def changed(_: object) -> None:
        change.set()

    watched: set[Partition] = set()
    cluster.on_partitions_added.append(changed)
    try:
        while True:
            change.clear()
            topic = cluster.topic(name)
            partitions = [] if topic is None else topic.partitions
            for partition in partitions:
                partition.watch(changed)
                watched.add(partition)
            # Markers, aborted records and what was compacted count here, so it is a bound only.
            if sum(one.log.end_offset - one.log.start_offset for one in partitions) >= count:
                found = [record for one in partitions for record in decode(one, committed=committed)]
                if len(found) >= count:
                    return found
            await change.wait()
    finally:
        cluster.on_partitions_added.remove(changed)
        for partition in watched:
            partition.unwatch(changed)


def decode(partition: Partition, *, committed: bool = False) -> list[ConsumerRecord]:
    """Return what a reader from the start sees; with ``committed`` a reader of committed records."""
    log = partition.log
    upper = log.stable_offset if committed else log.high_watermark
    aborted = log.producers.aborted if committed else []
    rows: list[ConsumerRecord] = []
    for segment, number in log.batches_from(log.start_offset):
        entry = segment.entry(number)
        if entry.first >= upper:
            break
        data = segment.read(entry.position, entry.end)
        for header in scan(data):
            hidden = header.is_control or any(
                one.producer_id == header.producer_id and one.first_offset <= header.base_offset < one.last_offset
                for one in aborted
                if header.is_transactional
            )
            if not hidden:
                found = decode_batch(data, header, partition.topic.name, partition.index)
                rows += [row for row in found if row.offset >= log.start_offset]
    return rows
