"""How each library builds a batch of the content and reads a fetched buffer."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from records_content import CODECS, NOW_MS, SAME_TIME, Content
from workload import OURS, Unsupported

Build = Callable[[], bytes]
Read = Callable[[bytes], Sequence[Any]]

_LIMIT = 1 << 24
_TOPIC = "bench"
_HEADER = 61  # bytes of a batch in front of its records


def writer(impl: str, content: Content, *, bulk: bool) -> Build:
    """What builds the batch, record by record or all at once where there is a way."""
    if impl == OURS:
        return _ours_bulk(content) if bulk else _ours(content)
    if impl == "kafka-python":
        return _kafka_python(content)
    return _aiokafka(impl, content)


def reader(impl: str, *, raw: bool) -> Read:
    """What reads a buffer to a list of records."""
    if impl == OURS:
        return _read_ours()
    if impl == "kafka-python":
        return _read_kafka_python(raw)
    return _read_aiokafka(raw)


def codec(impl: str, content: Content, *, unpack: bool) -> Callable[[], object]:
    """What packs the bytes of the records, or unpacks them, and nothing else."""
    names = importlib.import_module("aiokafka.codec" if impl == "aiokafka" else "kafka.codec")
    name = next(name for name, number in CODECS.items() if number == content.codec)
    encode, decode = getattr(names, f"{name}_encode"), getattr(names, f"{name}_decode")
    body = writer(impl, replace(content, codec=0), bulk=False)()[_HEADER:]
    packed = encode(body)
    if bytes(decode(packed)) != body:
        raise AssertionError("what was unpacked is not what was packed")
    return (lambda: decode(packed)) if unpack else (lambda: encode(body))


# purekafka


def _ours(content: Content) -> Build:
    from kafka.record.batch_builder import BatchBuilder

    rows = list(zip(content.timestamps(), content.keys or [None] * len(content.values), content.values, strict=True))
    headers, codec = content.headers, content.codec

    def build() -> bytes:
        builder = BatchBuilder(_LIMIT, codec)
        append = builder.append
        for timestamp, key, value in rows:
            append(timestamp, key, value, headers)
        return builder.seal().data

    return build


def _ours_bulk(content: Content) -> Build:
    from kafka.record.batch_builder import BatchBuilder

    values = content.values

    def build() -> bytes:
        builder = BatchBuilder(_LIMIT, content.codec)
        for at in range(0, len(values), SAME_TIME):
            builder.extend(values[at : at + SAME_TIME], NOW_MS + at // SAME_TIME)
        return builder.seal().data

    return build


def _read_ours() -> Read:
    from kafka.record.batch_reader import RecordReader

    return lambda data: RecordReader(data, _TOPIC, 0, 0).take(1 << 30)


# kafka-python


def _kafka_python(content: Content) -> Build:
    from kafka.record.memory_records import MemoryRecordsBuilder

    rows = list(zip(content.timestamps(), content.keys or [None] * len(content.values), content.values, strict=True))
    headers, codec = content.headers, content.codec

    def build() -> bytes:
        builder = MemoryRecordsBuilder(2, codec, _LIMIT)
        append = builder.append
        for timestamp, key, value in rows:
            append(timestamp, key, value, headers)
        builder.close()
        return bytes(builder.buffer())

    return build


def _read_kafka_python(raw: bool) -> Read:
    from kafka.consumer.fetcher import ConsumerRecord
    from kafka.record.memory_records import MemoryRecords

    def each(data: bytes) -> Any:
        batches = MemoryRecords(data)
        while batches.has_next():
            batch = batches.next_batch()
            if not batch.validate_crc():
                raise AssertionError("checksum")
            yield batch

    if raw:
        return lambda data: [record for batch in each(data) for record in batch]

    def read(data: bytes) -> list[Any]:
        # As its fetcher does it, without the calls to deserializers.
        records = []
        for batch in each(data):
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


def _aiokafka(impl: str, content: Content) -> Build:
    from aiokafka.record.default_records import DefaultRecordBatchBuilder

    is_compiled = "_crecords" in DefaultRecordBatchBuilder.__module__
    if is_compiled != (impl == "aiokafka") or is_compiled == bool(os.environ.get("AIOKAFKA_NO_EXTENSIONS")):
        raise Unsupported("its C extension is not as this case wants it; set or unset AIOKAFKA_NO_EXTENSIONS")
    rows = list(zip(content.timestamps(), content.keys or [None] * len(content.values), content.values, strict=True))
    headers, codec = content.headers, content.codec

    def build() -> bytes:
        builder = DefaultRecordBatchBuilder(
            magic=2,
            compression_type=codec,
            is_transactional=0,
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
            batch_size=_LIMIT,
        )
        append = builder.append
        for offset, (timestamp, key, value) in enumerate(rows):
            append(offset, timestamp, key, value, headers)
        return bytes(builder.build())

    return build


def _read_aiokafka(raw: bool) -> Read:
    from aiokafka.record.memory_records import MemoryRecords
    from aiokafka.structs import ConsumerRecord

    def each(data: bytes) -> Any:
        batches = MemoryRecords(data)
        while batches.has_next():
            batch = batches.next_batch()
            if not batch.validate_crc():
                raise AssertionError("checksum")
            yield batch

    if raw:
        return lambda data: [record for batch in each(data) for record in batch]

    def read(data: bytes) -> list[Any]:
        # As its fetcher does it, without the calls to deserializers.
        records = []
        for batch in each(data):
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
