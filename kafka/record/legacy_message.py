"""One message of format v0 or v1: its checksum, its key and its value as they stand there."""

from __future__ import annotations

import struct
import zlib
from typing import Final

from kafka.record._errors import corrupt
from kafka.record.header import BatchHeader, Buffer

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
    >>> from kafka.record.legacy_builder import LegacyBuilder
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
