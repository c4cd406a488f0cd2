"""Messages of formats v0 and v1, for brokers and logs before Kafka 0.11: built, checked and read.

:class:`LegacyBuilder` has the verbs of :class:`kafka.record.batch_builder.BatchBuilder`. Without a codec the result is
the messages in a row; with one it is a wrapper message, whose value is the compressed set. In v0 the messages within
carry their own offsets; in v1 they count from the first one and the wrapper has the last one's offset, so that the
broker need not repack them (KIP-31). With LOG_APPEND_TIME the wrapper's timestamp holds for all within (KIP-32).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from enum import Enum, auto
from typing import Final

from kafka.codec import CODEC_NONE, CODEC_ZSTD, check_level, codec_id, compressor, decompressor
from kafka.errors import CorruptRecordError, IllegalStateError, UnsupportedCodecError
from kafka.record.batch_builder import FULL, Headers
from kafka.record.consumer_record import NO_HEADERS, ConsumerRecord
from kafka.record.header import (
    CODEC_MASK,
    LAST_OFFSET,
    LOG_APPEND_TIME,
    NO_TIMESTAMP,
    BatchHeader,
    Buffer,
    corrupt,
    read_header,
)

_INT32: Final = struct.Struct(">i")
_KEY_AT: Final = (18, 26)
_CRC_FROM: Final = 16


def check_message(buffer: Buffer, header: BatchHeader) -> None:
    """Raise unless the message's CRC-32 is right."""
    crc = zlib.crc32(memoryview(buffer)[header.position + _CRC_FROM : header.end])
    if crc != header.crc:
        raise corrupt(f"checksum {crc:#010x} where the message says {header.crc:#010x}", header.base_offset)


def read_key_value(buffer: Buffer, header: BatchHeader) -> tuple[bytes | None, bytes | None]:
    """Return key and value of the message with this header.

    >>> from kafka.record.header import read_header
    >>> from kafka.record.message_v0_v1 import LegacyBuilder
    >>> builder = LegacyBuilder(1, 1000)
    >>> builder.append(1700000000000, b"key", None)
    0
    >>> data = builder.seal().data
    >>> read_key_value(data, read_header(data))
    (b'key', None)
    """
    pos = header.position + _KEY_AT[header.magic]
    end = header.end
    fields: list[bytes | None] = []
    for name in ("key", "value"):
        size = _INT32.unpack_from(buffer, pos)[0] if pos + 4 <= end else -2
        pos += 4
        if size == -1:
            fields.append(None)
            continue
        if size < 0 or pos + size > end:
            raise corrupt(f"a {name} of length {size}", header.base_offset)
        fields.append(bytes(buffer[pos : pos + size]))
        pos += size
    if pos != end:
        raise corrupt("the message does not end where its size says", header.base_offset)
    return fields[0], fields[1]


_OFFSET_AND_SIZE: Final = struct.Struct(">qi")
_CRC: Final = struct.Struct(">I")
_V0_HEAD: Final = struct.Struct(">bb")
_V1_HEAD: Final = struct.Struct(">bbq")
_CRC_AT: Final = 12
_NULL: Final = _INT32.pack(-1)
#: Offset, size, CRC, magic, attributes, timestamp (v1), and the lengths of key and value.
OVERHEADS: Final = (26, 34)


class SealedMessages:
    """The bytes of a finished message set, with the facts that a sender needs. The twin of ``SealedBatch``."""

    __slots__ = ("base_timestamp", "codec", "count", "data", "max_timestamp", "size", "uncompressed_size")

    # What old formats do not have.
    producer_id: Final = -1
    producer_epoch: Final = -1
    base_sequence: Final = -1
    is_transactional: Final = False
    header: Final = b""

    def __init__(
        self, data: bytes, count: int, codec: int, base_timestamp: int, max_timestamp: int, uncompressed_size: int
    ) -> None:
        self.data = data
        self.size = len(data)
        self.count = count
        self.codec = codec
        self.base_timestamp = base_timestamp
        self.max_timestamp = max_timestamp
        self.uncompressed_size = uncompressed_size

    @property
    def body(self) -> bytes:
        """All of it: there is no header apart."""
        return self.data

    def forget(self) -> None:
        """Release the records, after the last attempt to send them; the facts about them stay."""
        self.data = b""


class LegacyBuilder:
    """An open message set of format v0 or v1.

    >>> messages = LegacyBuilder(magic=1, limit=1000)
    >>> messages.append(1700000000000, None, b"hello")
    0
    >>> len(messages.seal().data) == 34 + 5
    True
    """

    __slots__ = (  # noqa: RUF023 - in the order of their use
        "_codec",
        "_last",
        "last_crc",
        "_level",
        "_parts",
        "base_timestamp",
        "count",
        "limit",
        "magic",
        "max_timestamp",
        "size",
    )

    is_slow: Final = False
    """It is compressed where it is sealed: brokers of this age are rare."""

    def __init__(self, magic: int, limit: int, codec: int | str | None = None, level: int | None = None) -> None:
        self.magic = magic
        self.count = 0
        self.size = 0
        self.limit = limit
        self.base_timestamp = self.max_timestamp = NO_TIMESTAMP
        self._codec = codec_id(codec)
        if self._codec == CODEC_ZSTD:
            raise UnsupportedCodecError(f"zstd needs format v2 (Kafka 2.1); this broker takes v{magic}", codec="zstd")
        check_level(self._codec, level)
        self._level = level
        self._parts: list[bytes] | None = []
        self._last = 0
        self.last_crc = 0

    # Filling

    def append(self, timestamp: int, key: bytes | None, value: bytes | None, headers: Headers | None = None) -> int:
        """Add a message; return its index, or :data:`~kafka.record.batch_builder.FULL`. Old formats have no headers.

        >>> LegacyBuilder(magic=0, limit=1000).append(-1, b"k", b"v")
        0
        """
        if headers:
            raise ValueError(f"format v{self.magic} has no headers; brokers have them since Kafka 0.11")
        return self.append_at(self.count, timestamp, key, value)

    def append_at(
        self,
        offset: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        attributes: int = 0,
    ) -> int:
        """Add a message that has this offset: relative to the first within a compressed v1 set, else absolute.

        >>> LegacyBuilder(magic=1, limit=1000).append_at(17, -1, None, b"v")
        0
        """
        if self._parts is None:
            raise IllegalStateError("the message set is sealed; its bytes do not change any more")
        message = encode_message(self.magic, offset, timestamp, key, value, attributes)
        size = self.size + len(message)
        if size > self.limit and self.count:
            return FULL
        self._parts.append(message)
        if not self.count:
            self.base_timestamp = self.max_timestamp = timestamp
        elif timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
        self.size = size
        self._last = offset
        self.last_crc = _CRC.unpack_from(message, _CRC_AT)[0]
        self.count += 1
        return self.count - 1

    def extend(
        self,
        values: Sequence[bytes | None],
        timestamp: int,
        keys: Sequence[bytes | None] | None = None,
        start: int = 0,
    ) -> int:
        """Add messages from ``values[start]`` on until one does not fit; return how many went in.

        >>> LegacyBuilder(magic=1, limit=1000).extend([b"a", b"b"], -1)
        2
        """
        first = self.count
        for at in range(start, len(values)):
            if self.append(timestamp, None if keys is None else keys[at], values[at]) == FULL:
                break
        return self.count - first

    # Closing

    def forget(self) -> None:
        """Release the messages of a set that is not sent; their number stays."""
        self._parts = None

    def seal(self, *, wrapper_offset: int | None = None, append_time: int | None = None) -> SealedMessages:
        """Finish the set, as a compressed wrapper if there is a codec and that makes it smaller.

        ``wrapper_offset`` and ``append_time`` are for brokers; a producer's wrapper has the last index as its offset.

        >>> messages = LegacyBuilder(magic=0, limit=10_000, codec="gzip")
        >>> messages.extend([b"0123456789" * 10] * 50, -1)
        50
        >>> messages.seal().codec
        1
        """
        if not self._parts:
            raise IllegalStateError("a message set without messages cannot be sealed")
        data = b"".join(self._parts)
        self._parts = None
        codec = CODEC_NONE
        if self._codec:
            packed = compressor(self._codec, self._level, broken_lz4_checksum=self.magic == 0)(data)
            wrapper = encode_message(
                self.magic,
                self._last if wrapper_offset is None else wrapper_offset,
                self.max_timestamp if append_time is None else append_time,
                None,
                packed,
                self._codec | (0 if append_time is None else LOG_APPEND_TIME),
            )
            # A wrapper that a broker gave an offset must stay one, as its inner offsets are relative.
            if len(wrapper) < len(data) or wrapper_offset is not None:
                codec, data = self._codec, wrapper
        return SealedMessages(data, self.count, codec, self.base_timestamp, self.max_timestamp, self.size)


def encode_message(
    magic: int, offset: int, timestamp: int, key: bytes | None, value: bytes | None, attributes: int = 0
) -> bytes:
    """Encode one message of format v0 or v1 (v0 has no timestamp).

    >>> len(encode_message(0, 0, -1, None, b""))
    26
    """
    head = _V1_HEAD.pack(1, attributes, timestamp) if magic else _V0_HEAD.pack(0, attributes)
    parts = [head]
    for field in (key, value):
        parts += (_NULL,) if field is None else (_INT32.pack(len(field)), field)
    content = b"".join(parts)
    return b"%b%b%b" % (_OFFSET_AND_SIZE.pack(offset, len(content) + 4), _CRC.pack(zlib.crc32(content)), content)


def message_size(magic: int, key: bytes | None, value: bytes | None) -> int:
    """Return how many bytes a message takes.

    >>> message_size(1, None, b"hello")
    39
    """
    return OVERHEADS[magic] + len(key or b"") + len(value or b"")


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
    """Return the message with this header, or the messages that it wraps."""
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


def to_rows(
    messages: list[Message], topic: str, partition: int, record_type: type[ConsumerRecord] = ConsumerRecord
) -> list[ConsumerRecord]:
    """Make records of messages."""
    return [
        record_type(
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
