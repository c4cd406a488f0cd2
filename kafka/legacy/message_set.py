"""Messages of the formats before Kafka 0.11, one by one, as the 1.x and 2.x generations showed them.

>>> message = Message.decode(Message(b"value", key=b"key").encode())
>>> message.key, message.value, message.validate_crc()
(b'key', b'value', True)

The formats themselves are the business of ``kafka.record``, which has faster ways to build and to read them.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from io import BytesIO
from typing import TYPE_CHECKING, Any, ClassVar, Final

from kafka.codec import DEFAULT_LIMIT, decompressor
from kafka.errors import CorruptRecordError, KafkaProtocolError
from kafka.protocol.struct import Struct
from kafka.protocol.types import AbstractType, Bytes, Int8, Int32, Int64, Schema
from kafka.record.header import LOG_OVERHEAD, MAGIC_AT, read_header
from kafka.record.message_v0_v1 import encode_message, read_key_value

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Message", "MessageSet", "PartialMessage"]

_OFFSET_AND_SIZE: Final = struct.Struct(">qi")
_CRC: Final = struct.Struct(">i")  # shown signed, as Python 2 had it
_CRC_SIZE: Final = 4


class Message(Struct):
    """A key and a value in format v0, or v1, which has a timestamp (``magic=1``).

    A message whose ``attributes`` name a codec holds a compressed set of messages as its value.

    >>> Message(b"value", magic=1, timestamp=1700000000000)
    Message(crc=0, magic=1, attributes=0, timestamp=1700000000000, key=None, value=b'value')
    """

    SCHEMAS: ClassVar[list[Schema]] = [
        Schema(("crc", Int32), ("magic", Int8), ("attributes", Int8), ("key", Bytes), ("value", Bytes)),
        Schema(
            ("crc", Int32),
            ("magic", Int8),
            ("attributes", Int8),
            ("timestamp", Int64),
            ("key", Bytes),
            ("value", Bytes),
        ),
    ]
    SCHEMA = SCHEMAS[1]
    CODEC_MASK = 0x07
    CODEC_GZIP = 0x01
    CODEC_SNAPPY = 0x02
    CODEC_LZ4 = 0x03
    CODEC_ZSTD = 0x04
    TIMESTAMP_TYPE_MASK = 0x08
    HEADER_SIZE = 22  #: Bytes in front of the key and the value of a v1 message, their lengths left out.

    def __init__(
        self,
        value: bytes | None,
        key: bytes | None = None,
        magic: int = 0,
        attributes: int = 0,
        crc: int = 0,
        timestamp: int | None = None,
    ) -> None:
        for name, given in (("key", key), ("value", value)):
            if given is not None and not isinstance(given, (bytes, bytearray, memoryview)):
                raise TypeError(f"the {name} of a message is bytes or None, not {type(given).__name__}")
        if magic not in (0, 1):
            raise ValueError(f"a Message is of format v0 or v1, not v{magic}; kafka.record has the others")
        if timestamp is not None and not magic:
            raise ValueError("format v0 has no timestamps: give magic=1")
        self.crc = crc
        self.magic = magic
        self.attributes = attributes
        self.timestamp = -1 if magic and timestamp is None else timestamp
        self.key = key
        self.value = value

    @property
    def timestamp_type(self) -> int | None:
        """0: the producer's timestamp. 1: the broker's. None in v0, which has none."""
        return None if not self.magic else (self.attributes & self.TIMESTAMP_TYPE_MASK) >> 3

    def encode(self, recalc_crc: bool = True) -> bytes:  # type: ignore[override] # as it was
        """Return the message's bytes; ``recalc_crc=False`` takes ``self.crc`` as it is."""
        timestamp = -1 if self.timestamp is None else self.timestamp
        # Offset and size belong to the set.
        encoded = encode_message(self.magic, 0, timestamp, self.key, self.value, self.attributes)[LOG_OVERHEAD:]
        if not recalc_crc:
            return (self.crc & 0xFFFFFFFF).to_bytes(_CRC_SIZE, "big") + encoded[_CRC_SIZE:]
        self.crc = _CRC.unpack_from(encoded)[0]
        return encoded

    @classmethod
    def decode(cls, data: Any, version: int | None = None, *, start: int = 0) -> Self:  # noqa: ARG003 - as in Struct
        """Read one message from its bytes, or from a file that holds nothing else."""
        raw = bytes(data.read() if hasattr(data, "read") else data)[start:]
        if len(raw) + LOG_OVERHEAD > MAGIC_AT and raw[MAGIC_AT - LOG_OVERHEAD] > 1:
            raise KafkaProtocolError(f"a Message is of format v0 or v1, not v{raw[MAGIC_AT - LOG_OVERHEAD]}")
        buffer = _OFFSET_AND_SIZE.pack(0, len(raw)) + raw
        try:
            header = read_header(buffer)
            if header is None:
                raise KafkaProtocolError(f"Message: {len(raw)} bytes are not enough for one")
            key, value = read_key_value(buffer, header)
        except CorruptRecordError as error:
            raise KafkaProtocolError(f"Message: {error}") from None
        timestamp = header.base_timestamp if header.magic else None
        (crc,) = _CRC.unpack_from(raw)
        return cls(value, key, header.magic, header.attributes, crc, timestamp)

    def validate_crc(self) -> bool:
        """Whether ``crc`` is that of the content."""
        return zlib.crc32(self.encode(recalc_crc=False)[_CRC_SIZE:]) == self.crc & 0xFFFFFFFF

    def is_compressed(self) -> bool:
        """Whether the value is a compressed set of messages."""
        return bool(self.attributes & self.CODEC_MASK)

    def decompress(self) -> list[tuple[int | None, int | None, Message | PartialMessage]]:
        """Return the messages within, as ``MessageSet.decode`` does.

        >>> from kafka.codec import gzip_encode
        >>> raw = MessageSet.encode([(0, Message(b"one")), (1, Message(b"two"))], prepend_size=False)
        >>> wrapper = Message(gzip_encode(raw), attributes=Message.CODEC_GZIP)
        >>> [message.value for _, _, message in wrapper.decompress()]
        [b'one', b'two']
        """
        if not self.is_compressed() or self.value is None:
            raise KafkaProtocolError("this message holds no compressed set of messages")
        unpack = decompressor(self.attributes & self.CODEC_MASK, broken_lz4_checksum=not self.magic)
        raw = unpack(self.value, DEFAULT_LIMIT)
        return MessageSet.decode(raw, bytes_to_read=len(raw))

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.SCHEMAS[self.magic].names)
        return f"Message({values})"


class PartialMessage(bytes):
    """Stands at the end of a decoded set for a message that the broker cut off."""

    def __repr__(self) -> str:
        return f"PartialMessage({bytes(self)!r})"


class MessageSet(AbstractType):
    """Messages with their offsets, in a row.

    >>> raw = MessageSet.encode([(0, Message(b"one").encode()), (1, Message(b"two").encode())])
    >>> [(offset, message.value) for offset, _, message in MessageSet.decode(raw)]
    [(0, b'one'), (1, b'two')]
    """

    ITEM: ClassVar[Schema] = Schema(("offset", Int64), ("message", Bytes))
    HEADER_SIZE: ClassVar[int] = LOG_OVERHEAD

    @classmethod
    def encode(cls, items: Iterable[tuple[int, object]], prepend_size: bool = True) -> bytes:
        """Return the bytes of ``(offset, message)`` pairs, with the size of it all in front.

        The messages are encoded already, or instances of :class:`Message`. A file is taken for a set with its size.
        """
        if hasattr(items, "read"):
            source: Any = items
            raw: bytes = source.read(Int32.decode(source))
        else:
            raw = b"".join([cls._encode_item(offset, message) for offset, message in items])
        return Bytes.encode(raw) if prepend_size else raw

    @classmethod
    def _encode_item(cls, offset: int, message: object) -> bytes:
        return cls.ITEM.encode((offset, message.encode() if isinstance(message, Message) else message))

    @classmethod
    def decode(
        cls, data: Any, bytes_to_read: int | None = None
    ) -> list[tuple[int | None, int | None, Message | PartialMessage]]:
        """Return ``(offset, size, message)`` of each message in bytes or in a file.

        Without ``bytes_to_read`` the size of the set stands in front. A message that is cut off at the end comes out
        as ``(None, None, PartialMessage)``.
        """
        source = data if hasattr(data, "read") else BytesIO(data)
        raw = source.read(max(Int32.decode(source) if bytes_to_read is None else bytes_to_read, 0))
        items: list[tuple[int | None, int | None, Message | PartialMessage]] = []
        position = 0
        while position < len(raw):
            content = position + LOG_OVERHEAD
            offset, size = _OFFSET_AND_SIZE.unpack_from(raw, position) if content <= len(raw) else (0, len(raw))
            if content + size > len(raw):
                items.append((None, None, PartialMessage(raw[position:])))
                break
            position = content + max(size, 0)
            items.append((offset, size, Message.decode(raw[content:position])))
        return items

    @classmethod
    def repr(cls, messages: Any) -> str:
        """Show the messages, decoded or not."""
        if isinstance(messages, (bytes, bytearray, memoryview)):
            messages = cls.decode(messages, bytes_to_read=len(messages))
        return "[" + ", ".join(str(item) for item in messages) + "]"
