"""How each library builds the batches of some content and reads a fetched buffer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from records_content import Batches
from workload import OURS, Unsupported

Build = Callable[[], list[bytes]]
Read = Callable[[bytes], Sequence[Any]]

_TOPIC = "bench"


def writer(impl: str, content: Batches) -> Build:
    """What builds the batches, record by record."""
    if impl.startswith(OURS):
        return _ours(content)
    if impl == "kafka-python":
        return _kafka_python(content)
    return _aiokafka(content)


def reader(impl: str) -> Read:
    """What reads a buffer to a list of records, 500 at a time as poll() does."""
    if impl.startswith(OURS):
        return read_ours()
    if impl == "kafka-python":
        return _read_kafka_python()
    return _read_aiokafka()


# purekafka


def _ours(content: Batches) -> Build:
    from kafka.record.batch_builder import BatchBuilder

    rows, codec, limit = content.rows, content.codec, content.limit

    def build() -> list[bytes]:
        batches = []
        for batch in rows:
            builder = BatchBuilder(limit, codec)
            append = builder.append
            for timestamp, key, value, headers in batch:
                append(timestamp, key, value, headers)
            batches.append(builder.seal().data)
        return batches

    return build


def bulk(content: Batches, *, extend: bool) -> Build:
    """Values alone with one timestamp a batch, by ``extend`` or by calls of ``append``."""
    from kafka.record.batch_builder import BatchBuilder

    batches = [(rows[0][0], [value for _, _, value, _ in rows]) for rows in content.rows]

    def build() -> list[bytes]:
        built = []
        for timestamp, values in batches:
            builder = BatchBuilder(content.limit, content.codec)
            if extend:
                builder.extend(values, timestamp)
            else:
                append = builder.append
                for value in values:
                    append(timestamp, None, value)
            built.append(builder.seal().data)
        return built

    return build


def read_ours() -> Read:
    """Through the reader."""
    from kafka.record.batch_reader import RecordReader

    def read(data: bytes) -> list[Any]:
        records: list[Any] = []
        one = RecordReader(data, _TOPIC, 0, 0)
        while some := one.take(500):
            records += some
        return records

    return read


# kafka-python


def _kafka_python(content: Batches) -> Build:
    from kafka.record.memory_records import MemoryRecordsBuilder

    rows, codec, limit = content.rows, content.codec, content.limit

    def build() -> list[bytes]:
        batches = []
        for batch in rows:
            builder = MemoryRecordsBuilder(2, codec, limit)
            append = builder.append
            for timestamp, key, value, headers in batch:
                append(timestamp, key, value, headers)
            builder.close()
            batches.append(bytes(builder.buffer()))
        return batches

    return build


def _read_kafka_python() -> Read:
    from kafka.consumer.fetcher import ConsumerRecord
    from kafka.record.memory_records import MemoryRecords

    def read(data: bytes) -> list[Any]:
        # As its fetcher does it, without the calls to deserializers.
        records = []
        batches = MemoryRecords(data)
        while batches.has_next():
            batch = batches.next_batch()
            if not batch.validate_crc():
                raise AssertionError("checksum")
            epoch = batch.leader_epoch
            for record in batch:
                key, value, headers = record.key, record.value, record.headers
                records.append(
                    ConsumerRecord(
                        _TOPIC,
                        0,
                        epoch,
                        record.offset,
                        record.timestamp,
                        record.timestamp_type,
                        key,
                        value,
                        headers,
                        record.checksum,
                        len(key) if key is not None else -1,
                        len(value) if value is not None else -1,
                        sum(len(name.encode()) + len(data) for name, data in headers) if headers else -1,
                    )
                )
        return records

    return read


# aiokafka


def _aiokafka(content: Batches) -> Build:
    from aiokafka.record.default_records import DefaultRecordBatchBuilder

    if "_crecords" not in DefaultRecordBatchBuilder.__module__:
        raise Unsupported("its C extension is missing")
    rows, codec, limit = content.rows, content.codec, content.limit

    def build() -> list[bytes]:
        batches = []
        for batch in rows:
            builder = DefaultRecordBatchBuilder(
                magic=2,
                compression_type=codec,
                is_transactional=0,
                producer_id=-1,
                producer_epoch=-1,
                base_sequence=-1,
                batch_size=limit + 64,  # it reckons with longer numbers than it writes
            )
            append = builder.append
            for offset, (timestamp, key, value, headers) in enumerate(batch):
                append(offset, timestamp, key, value, headers)
            batches.append(bytes(builder.build()))
        return batches

    return build


def _read_aiokafka() -> Read:
    from aiokafka.record.memory_records import MemoryRecords
    from aiokafka.structs import ConsumerRecord

    def read(data: bytes) -> list[Any]:
        # As its fetcher does it, without the calls to deserializers.
        records = []
        batches = MemoryRecords(data)
        while batches.has_next():
            batch = batches.next_batch()
            if not batch.validate_crc():
                raise AssertionError("checksum")
            for record in batch:
                key, value = record.key, record.value
                records.append(
                    ConsumerRecord(
                        _TOPIC,
                        0,
                        record.offset,
                        record.timestamp,
                        record.timestamp_type,
                        key,
                        value,
                        record.checksum,
                        len(key) if key is not None else -1,
                        len(value) if value is not None else -1,
                        tuple(record.headers),
                    )
                )
        return records

    return read
