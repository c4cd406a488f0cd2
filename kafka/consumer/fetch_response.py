"""One partition's part of a fetch response: its records, and errors in their place. No I/O.

The bytes of a response are copied once per partition, so that a slow partition does not keep the others' bytes in
memory; keys and values are cut from the copy later.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import suppress
from functools import cache, partial
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka.consumer.partition_state import AssignedPartition, CompletedFetch, Cursor
from kafka.errors import (
    CorruptRecordError,
    KafkaError,
    LogTruncationError,
    RecordTooLargeError,
)
from kafka.record.batch_reader import RecordReader
from kafka.record.consumer_record import ConsumerRecord
from kafka.structs import OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from kafka.config import Config
    from kafka.protocol.fetch import FetchResponse
    from kafka.record.deserialization import Deserialize
    from kafka.serializer import Bound

__all__ = [
    "FetchTarget",
    "ReaderSettings",
    "keep_freed_memory",
    "topic_recreated",
    "open_reply",
    "truncated",
]

# The first version whose brokers send a first record that is larger than what was asked for (KIP-74).
_WHOLE_FIRST_RECORD: Final = 3


class FetchTarget:
    """A partition in a request that is under way, and the cursor that it was sent for."""

    __slots__ = ("cursor", "offset", "state")

    def __init__(self, state: AssignedPartition, cursor: Cursor | None = None) -> None:
        self.state = state
        self.cursor = cursor or state.cursor
        self.offset = self.cursor.fetch_offset

    @property
    def stale(self) -> bool:
        """Whether the position was moved, or another response was faster."""
        return self.state.cursor is not self.cursor or self.cursor.fetch_offset != self.offset


class ReaderSettings(NamedTuple):
    """The settings of a record reader."""

    check_crcs: bool
    read_committed: bool
    max_batch_bytes: int
    key_deserializer: Callable[[str], Deserialize] | None
    """Returns the key deserializer for a topic; None without one."""
    value_deserializer: Callable[[str], Deserialize] | None
    with_headers: bool = False
    """Whether the deserializers take the headers of a record first."""
    skip_double_compressed: bool = False
    record_type: type[ConsumerRecord] = ConsumerRecord

    @classmethod
    def of(
        cls,
        config: Config,
        key: Bound | None,
        value: Bound | None,
        record_type: type[ConsumerRecord] = ConsumerRecord,
    ) -> ReaderSettings:
        """Return the settings of a configuration, with its deserializers bound."""
        with_headers = any(bound is not None and not bound.plain for bound in (key, value))
        return cls(
            check_crcs=config["check_crcs"],
            read_committed=config.get("isolation_level") == "read_committed",
            max_batch_bytes=config["max_decompressed_bytes"],
            key_deserializer=_per_topic(key, with_headers=with_headers),
            value_deserializer=_per_topic(value, with_headers=with_headers),
            with_headers=with_headers,
            skip_double_compressed=config.get("skip_double_compressed_messages", False),
            record_type=record_type,
        )


def _per_topic(bound: Bound | None, *, with_headers: bool) -> Callable[[str], Deserialize] | None:
    """Return a function that returns a topic's deserializer in the form that a reader calls."""
    if bound is None:
        return None
    call = bound.call
    if not bound.plain:
        return lambda topic: partial(call, topic)
    if with_headers:
        return lambda _topic: lambda _headers, data: call(data)
    return lambda _topic: call


# From this size on records are not copied out of their response if they are most of it.
_LARGE: Final = 4 << 20
# Bytes of records whose checksums are checked in one piece, in a fraction of a millisecond.
_CHECKED_AT_ONCE: Final = 1 << 20


def open_reply(
    target: FetchTarget, data: FetchResponse.PartitionData, settings: ReaderSettings, version: int
) -> Generator[None, None, CompletedFetch | None]:
    """Open the records of a partition, None if there are none, and advance the cursor's fetch offset.

    It yields after each piece of the checks.
    """
    records = data.records
    if not records:
        return None
    cursor, partition = target.cursor, target.state.topic_partition
    # A copy of 50 MB takes 20 ms in one pass of the loop. A view keeps the response alive, so it must be most of that.
    is_large = (
        len(records) >= _LARGE
        and isinstance(records, memoryview)
        and 2 * len(records) >= memoryview(records.obj).nbytes
    )
    buffer = records if is_large else bytes(records)
    reader = RecordReader(
        buffer,
        partition.topic,
        partition.partition,
        cursor.fetch_offset,
        check_crcs=settings.check_crcs,
        read_committed=settings.read_committed,
        aborted=[(entry.producer_id, entry.first_offset) for entry in data.aborted_transactions or ()],
        max_batch_bytes=settings.max_batch_bytes,
        key_deserializer=settings.key_deserializer and settings.key_deserializer(partition.topic),
        value_deserializer=settings.value_deserializer and settings.value_deserializer(partition.topic),
        deserialize_with_headers=settings.with_headers,
        skip_double_compressed=settings.skip_double_compressed,
        record_type=settings.record_type,
    )
    try:
        checked = reader.verify(_CHECKED_AT_ONCE)
        while not checked.at_end:
            yield
            checked = reader.verify(_CHECKED_AT_ONCE, checked)
    except CorruptRecordError:
        # The ends of its batches are unknown; the reader returns the intact records, and then raises.
        return CompletedFetch(reader, len(buffer), damaged=True)
    if checked.offset == cursor.fetch_offset:
        if version < _WHOLE_FIRST_RECORD:
            return CompletedFetch(None, 0, _too_large(partition, cursor.fetch_offset, len(buffer)))
        return None
    cursor.fetch_offset, cursor.fetch_epoch = checked.offset, checked.leader_epoch
    return CompletedFetch(reader, len(buffer))


def _too_large(partition: TopicPartition, offset: int, size: int) -> KafkaError:
    return RecordTooLargeError(
        f"the record at offset {offset} does not fit in {size} bytes, and brokers before 0.10.1 send it no other way: "
        "raise max_partition_fetch_bytes, or seek past it",
        topic_partition=partition,
        offset=offset,
    )


def truncated(partition: TopicPartition, offset: int, end_offset: int, epoch: int) -> KafkaError:
    """Return the error for a log that was cut before the offset of the next fetch (KIP-320).

    The records of the leader epoch in which the last one was read end at `end_offset` now; -1 if there are none.
    """
    if end_offset < 0:
        return LogTruncationError(
            f"the log has nothing of the leader epoch in which the records before offset {offset} were read",
            topic_partition=partition,
            offset=offset,
        )
    return LogTruncationError(
        f"the log was cut at offset {end_offset} by a change of leader, before offset {offset}",
        topic_partition=partition,
        offset=offset,
        divergent_offsets={partition: OffsetAndMetadata(end_offset, "", epoch)},
    )


def topic_recreated(target: FetchTarget) -> KafkaError:
    """Return the error for a topic that was deleted and created again since the position was found (KIP-516)."""
    partition = target.state.topic_partition
    return LogTruncationError(
        f"topic {partition.topic!r} was deleted and created again: offset {target.offset} belongs to the deleted topic",
        topic_partition=partition,
        offset=target.offset,
    )


#: Half of that left 0.07 page faults a record for responses of six partitions; twice as much saved no more.
_BLOCK: Final = 8 << 20


@cache
def keep_freed_memory() -> None:
    """Let the C library keep some 16 MiB of freed memory for the next response.

    The block is not written to, so it takes no memory. Where MALLOC_TRIM_THRESHOLD_ or MALLOC_MMAP_THRESHOLD_ is set in
    the environment, the setting holds and this does nothing, as with other C libraries than glibc.
    """
    with suppress(MemoryError):
        bytes(_BLOCK)
