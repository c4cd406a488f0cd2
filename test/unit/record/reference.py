"""The formats spelled out, slowly and plainly: what the fast code is held equal to.

Shares no code with kafka.record. Every record is a tuple (offset, timestamp, key, value, headers).
"""

from __future__ import annotations

import struct

Headers = list[tuple[str, "bytes | None"]]
Row = tuple[int, int, "bytes | None", "bytes | None", Headers]


class Damaged(Exception):
    pass


def _crc_of_byte(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    return byte


_CRCS = [_crc_of_byte(byte) for byte in range(256)]


def crc32c(data: bytes, value: int = 0) -> int:
    crc = value ^ 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _CRCS[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def varint(number: int) -> bytes:
    rest = number * 2 if number >= 0 else -number * 2 - 1
    out = []
    while rest >= 128:
        out.append(rest % 128 + 128)
        rest //= 128
    return bytes([*out, rest])


def field(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def record(row: Row, base_offset: int, base_timestamp: int) -> bytes:
    offset, timestamp, key, value, headers = row
    body = b"\0" + varint(timestamp - base_timestamp) + varint(offset - base_offset) + field(key) + field(value)
    body += varint(len(headers)) + b"".join(field(name.encode()) + field(content) for name, content in headers)
    return varint(len(body)) + body


def batch(
    rows: list[Row],
    *,
    base_offset: int = 0,
    attributes: int = 0,
    producer: tuple[int, int, int] = (-1, -1, -1),
    leader_epoch: int = -1,
    last_offset_delta: int | None = None,
    base_timestamp: int | None = None,
    max_timestamp: int | None = None,
    body: bytes | None = None,
    count: int | None = None,
) -> bytes:
    """A batch of format v2. ``body`` replaces the records (compressed ones, or what tests want there)."""
    if base_timestamp is None:
        base_timestamp = rows[0][1] if rows else -1
    if max_timestamp is None:
        max_timestamp = max((row[1] for row in rows), default=-1)
    if last_offset_delta is None:
        last_offset_delta = rows[-1][0] - base_offset if rows else 0
    if body is None:
        body = b"".join(record(row, base_offset, base_timestamp) for row in rows)
    checked = struct.pack(
        ">hiqqqhii",
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        *producer,
        len(rows) if count is None else count,
    )
    checked += body
    crc = crc32c(checked)
    return struct.pack(">qiibI", base_offset, len(checked) + 9, leader_epoch, 2, crc) + checked


class _Cursor:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.pos = 0

    def take(self, count: int) -> bytes:
        if count < 0 or self.pos + count > len(self.data):
            raise Damaged("cut off")
        self.pos += count
        return self.data[self.pos - count : self.pos]

    def varint(self) -> int:
        number = 0
        for place in range(10):
            byte = self.take(1)[0]
            number += (byte % 128) * 128**place
            if byte < 128:
                if number >= 2**64:
                    raise Damaged("too large")
                return number // 2 if number % 2 == 0 else -(number // 2) - 1
        raise Damaged("too long")

    def field(self) -> bytes | None:
        size = self.varint()
        return None if size == -1 else self.take(size)


def rows_of_body(body: bytes, count: int, base_offset: int, base_timestamp: int) -> list[Row]:
    """Parse an uncompressed records section; Damaged unless it is right to the last byte."""
    whole = _Cursor(body)
    rows: list[Row] = []
    for _ in range(count):
        one = _Cursor(whole.take(whole.varint()))
        one.take(1)
        timestamp = base_timestamp + one.varint()
        delta = one.varint()
        if not 0 <= delta < 2**31:
            raise Damaged("offset")
        key, value = one.field(), one.field()
        number = one.varint()
        if number < 0:
            raise Damaged("headers")
        headers: Headers = []
        for _ in range(number):
            name = one.take(one.varint())
            headers.append((name.decode(errors="replace"), one.field()))
        if one.pos != len(one.data):
            raise Damaged("too long a record")
        rows.append((base_offset + delta, timestamp, key, value, headers))
    if whole.pos != len(body):
        raise Damaged("too long a batch")
    return rows
