"""Decoding of messages in formats v0 and v1 (before Kafka 0.11), plain and in compressed wrappers.

A wrapper is a message whose value is a compressed set of messages. In v0 these carry their own offsets; in v1 they
count from the first one and the wrapper has the last one's offset, so that the broker need not repack them
(KIP-31). With LOG_APPEND_TIME the wrapper's timestamp holds for all within (KIP-32).
"""

from __future__ import annotations

from enum import Enum, auto

from kafka.codec import decompressor
from kafka.errors import CorruptRecordError
from kafka.record._errors import corrupt
from kafka.record.consumer_record import NO_HEADERS, ConsumerRecord
from kafka.record.header import CODEC_MASK, LAST_OFFSET, BatchHeader, Buffer, read_header
from kafka.record.legacy_message import check_message, read_key_value

Message = tuple[int, "int | None", "int | None", int, "bytes | None", "bytes | None"]
"""Offset, timestamp, timestamp type, CRC-32, key, value."""


class Nested(Enum):
    """What to do with a message that was compressed, and then compressed again in a set with others.

    kafka-python up to 1.2.4 wrote such, when it tried again to send what it had compressed. Brokers refuse them since
    they look into message sets, but older logs have them.
    """

    REFUSE = auto()
    KEEP = auto()
    """It is a message whose value is the inner set, still compressed."""
    SKIP = auto()


def read_messages(
    buffer: Buffer, header: BatchHeader, *, check_crcs: bool, limit: int, nested: Nested = Nested.REFUSE
) -> list[Message]:
    """Return the message with this header, or those that it wraps."""
    if check_crcs:
        check_message(buffer, header)
    key, value = read_key_value(buffer, header)
    if not header.codec:
        timestamp = header.base_timestamp if header.magic else None
        return [(header.base_offset, timestamp, header.timestamp_type, header.crc, key, value)]
    if value is None:
        raise corrupt("a compressed message without a value", header.base_offset)
    try:
        inner = decompressor(header.codec, broken_lz4_checksum=header.magic == 0)(value, limit)
        return _unwrap(inner, header, check_crcs, nested)
    except CorruptRecordError as err:
        if err.offset is None:
            err.offset = header.base_offset
        raise


def _unwrap(inner: bytes, wrapper: BatchHeader, check_crcs: bool, nested: Nested) -> list[Message]:
    headers: list[BatchHeader] = []
    pos = 0
    while pos < len(inner):
        header = read_header(inner, pos)
        if header is None:
            raise corrupt("the last message of a compressed set is cut off", wrapper.base_offset)
        if header.magic != wrapper.magic or (nested is Nested.REFUSE and header.attributes & CODEC_MASK):
            raise corrupt("a compressed set with a message of another format or compressed again", wrapper.base_offset)
        headers.append(header)
        pos = header.end
    if not headers:
        raise corrupt("an empty compressed set", wrapper.base_offset)
    # Absolute inner offsets in v1, as some producers wrote them, come out right as well: the last one then is the
    # wrapper's, and the base is 0.
    base = wrapper.base_offset - headers[-1].base_offset if wrapper.magic else 0
    if base + max(header.base_offset for header in headers) > LAST_OFFSET:
        raise corrupt("a compressed set with an offset beyond 64 bits", wrapper.base_offset)
    append_time = wrapper.base_timestamp if wrapper.timestamp_type == 1 else None
    messages: list[Message] = []
    for header in headers:
        if nested is Nested.SKIP and header.attributes & CODEC_MASK:
            continue
        if check_crcs:
            check_message(inner, header)
        key, value = read_key_value(inner, header)
        timestamp = None if not wrapper.magic else header.base_timestamp if append_time is None else append_time
        messages.append((base + header.base_offset, timestamp, wrapper.timestamp_type, header.crc, key, value))
    return messages


def to_rows(messages: list[Message], topic: str, partition: int) -> list[ConsumerRecord]:
    """Make records of messages."""
    return [
        ConsumerRecord(
            topic,
            partition,
            offset,
            timestamp,
            timestamp_type,
            key,
            value,
            crc,
            -1 if key is None else len(key),
            -1 if value is None else len(value),
            NO_HEADERS,
        )
        for offset, timestamp, timestamp_type, crc, key, value in messages
    ]
