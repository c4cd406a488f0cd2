"""Zigzag varints, as in protobuf's sint64: the integers within records of format v2.

Encoding goes through :data:`VARINT`, a list of ready-made bytes, wherever the number is small; that is what
makes a pure-Python encoder fast. Hot loops index the list themselves:

>>> VARINT[300], VARINT[-1]
(b'\\xd8\\x04', b'\\x01')
"""

from __future__ import annotations

from typing import Final

from kafka.errors import CorruptRecordError

Buffer = bytes | bytearray | memoryview

_BYTES: Final = [bytes((n,)) for n in range(0x100)]
#: ``VARINT[n]`` is the encoding of n for 0 <= n < VARINT_END (one or two bytes), ``VARINT[-1]`` that of -1.
VARINT: Final = [*_BYTES[0:0x80:2], *[low + high for high in _BYTES[1:0x80] for low in _BYTES[0x80::2]], b"\x01"]
VARINT_END: Final = 8192

_LONGEST: Final = 10


def encode_varint(value: int) -> bytes:
    """Encode a signed integer of 64 bits.

    >>> encode_varint(-65)
    b'\\x81\\x01'
    """
    if -1 <= value < VARINT_END:
        return VARINT[value]
    rest = value << 1 if value >= 0 else ~(value << 1)
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def decode_varint(buffer: Buffer, pos: int = 0) -> tuple[int, int]:
    """Decode the integer at ``pos``; return it and the position after it.

    >>> decode_varint(b"\\x81\\x01")
    (-65, 2)
    """
    value = shift = 0
    for at in range(pos, min(pos + _LONGEST, len(buffer))):
        byte = buffer[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> 64:
                break
            return value >> 1 ^ -(value & 1), at + 1
        shift += 7
    else:
        if len(buffer) - pos < _LONGEST:
            raise CorruptRecordError(reason=f"a varint is cut off at byte {pos}")
    raise CorruptRecordError(reason=f"the varint at byte {pos} has more than 64 bits")


def varint_size(value: int) -> int:
    """Return how many bytes the encoding of a signed integer of 64 bits takes.

    >>> varint_size(-1), varint_size(64)
    (1, 2)
    """
    bits = (value << 1 if value >= 0 else ~(value << 1)).bit_length()
    return (bits + 6) // 7 or 1
