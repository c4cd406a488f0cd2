from __future__ import annotations

import gzip
import struct
import zlib

import pytest
from hypothesis import strategies as st

from kafka import codec
from kafka.errors import CorruptRecordError, IllegalStateError, UnsupportedCodecError
from kafka.record.batch import decode_batch
from kafka.record.batch_builder import FULL
from kafka.record.batch_reader import RecordReader
from kafka.record.header import LOG_APPEND_TIME, read_header, scan
from kafka.record.message_v0_v1 import LegacyBuilder, encode_message, message_size

from .strategies import given

NOW = 1_700_000_000_000
PAIRS = st.lists(
    st.tuples(st.one_of(st.none(), st.binary(max_size=9)), st.one_of(st.none(), st.binary(max_size=99))),
    min_size=1,
    max_size=9,
)


def message(
    magic: int, offset: int, value: bytes | None, key: bytes | None = None, attributes: int = 0, timestamp: int = NOW
) -> bytes:
    """Spelled out, apart from the library's own."""
    content = struct.pack(">bb", magic, attributes) + (struct.pack(">q", timestamp) if magic else b"")
    for field in (key, value):
        content += struct.pack(">i", -1) if field is None else struct.pack(">i", len(field)) + field
    return struct.pack(">qiI", offset, len(content) + 4, zlib.crc32(content)) + content


def wrapper(
    magic: int, offset: int, inner: bytes, name: str = "gzip", attributes: int = 0, timestamp: int = NOW
) -> bytes:
    number = codec.codec_id(name)
    packed = codec.compressor(number, broken_lz4_checksum=magic == 0)(inner)
    return message(magic, offset, packed, None, number | attributes, timestamp)


def read(data: bytes, offset: int = 0) -> list:
    return RecordReader(data, "topic", 0, offset).take(99)


@given(st.sampled_from([0, 1]), st.sampled_from([None, "gzip", "snappy", "lz4"]), PAIRS)
def test_messages_come_back_as_they_were(magic: int, name: str | None, pairs: list) -> None:
    builder = LegacyBuilder(magic, 1 << 20, name)
    for at, (key, value) in enumerate(pairs):
        assert builder.append(NOW + at, key, value) == at
    size = builder.size
    sealed = builder.seal()
    assert sealed.uncompressed_size == size == sum(message_size(magic, *pair) for pair in pairs)
    found = read(sealed.data)
    assert [(row.key, row.value) for row in found] == pairs
    assert [row.timestamp for row in found] == [NOW + at if magic else None for at in range(len(pairs))]
    assert [row.offset for row in found] == list(range(len(pairs)))
    assert len(sealed.data) <= size


@given(
    st.sampled_from([0, 1]), st.one_of(st.none(), st.binary(max_size=9)), st.one_of(st.none(), st.binary(max_size=99))
)
def test_message_has_the_bytes_of_the_format(magic: int, key: bytes | None, value: bytes | None) -> None:
    assert encode_message(magic, 5, NOW, key, value) == message(magic, 5, value, key)


def test_inner_offsets_of_v1_count_from_the_first() -> None:
    inner = message(1, 0, b"a") + message(1, 1, b"b") + message(1, 4, b"c")
    assert [row.offset for row in read(wrapper(1, 1004, inner))] == [1000, 1001, 1004]


def test_inner_offsets_of_v1_may_be_absolute() -> None:
    inner = message(1, 1000, b"a") + message(1, 1004, b"c")
    assert [row.offset for row in read(wrapper(1, 1004, inner))] == [1000, 1004]


def test_inner_offsets_of_v0_are_absolute() -> None:
    inner = message(0, 1000, b"a") + message(0, 1004, b"c")
    assert [row.offset for row in read(wrapper(0, 1004, inner), 1001)] == [1004]


def test_wrapper_tells_the_time_where_the_broker_set_it() -> None:
    inner = message(1, 0, b"a", timestamp=NOW - 5) + message(1, 1, b"b", timestamp=NOW - 4)
    found = read(wrapper(1, 1, inner, attributes=LOG_APPEND_TIME, timestamp=NOW))
    assert [(row.timestamp, row.timestamp_type) for row in found] == [(NOW, 1), (NOW, 1)]
    found = read(wrapper(1, 1, inner, timestamp=NOW))
    assert [(row.timestamp, row.timestamp_type) for row in found] == [(NOW - 5, 0), (NOW - 4, 0)]


def test_checksum_is_that_of_the_message_itself() -> None:
    one = message(1, 0, b"a")
    row = read(wrapper(1, 0, one))[0]
    assert row.checksum == struct.unpack_from(">I", one, 12)[0]
    assert row.leader_epoch == -1


@pytest.mark.parametrize("magic", [0, 1])
def test_lz4_in_v0_has_the_old_header_checksum(magic: int) -> None:
    builder = LegacyBuilder(magic, 1 << 20, "lz4")
    builder.extend([b"some value" * 9] * 9, NOW)
    data = builder.seal().data
    frame = data[data.index(b"\x04\x22\x4d\x18") :]
    if magic:
        assert len(codec.lz4_decode(frame)) > 900
    else:
        with pytest.raises(CorruptRecordError):
            codec.lz4_decode(frame)
    assert len(read(data)) == 9
    # A newer client may have written the right one into v0.
    inner = codec.lz4_encode(message(0, 0, b"a"))
    assert [row.value for row in read(message(0, 0, inner, attributes=3))] == [b"a"]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (wrapper(1, 1, b""), "empty"),
        (wrapper(1, 1, message(1, 0, b"a")[:-1]), "cut off"),
        (wrapper(1, 1, message(0, 0, b"a")), "another format"),
        (message(1, 1, None, attributes=1), "without a value"),
        (message(1, 1, b"not gzip", attributes=1), "gzip"),
        (message(1, 1, b"a")[:-1] + b"b", "checksum"),
        (wrapper(1, 1, message(1, 0, b"a")[:-1] + b"b"), "checksum"),
    ],
)
def test_damage_is_named(data: bytes, reason: str) -> None:
    with pytest.raises(CorruptRecordError, match=reason) as caught:
        read(data)
    assert caught.value.offset == (0 if reason == "checksum" and read_header(data).codec else 1)


@pytest.mark.parametrize("magic", [0, 1])
def test_values_compressed_twice_come_unchanged_or_not_at_all(magic: int) -> None:
    again = wrapper(magic, 6, message(magic, 6, b"b"))
    data = wrapper(magic, 6, message(magic, 5, b"a") + again) + message(magic, 7, b"c")
    first, second, third = read(data)
    assert (first.value, third.value) == (b"a", b"c")
    assert gzip.decompress(second.value) == message(magic, 6, b"b")
    one = RecordReader(data, "topic", 3, 0, skip_double_compressed=True)
    assert [row.value for row in one.take(1)] == [b"a"]
    assert one.next_offset == 7
    assert [row.value for row in one.take(9)] == [b"c"]
    with pytest.raises(CorruptRecordError, match="compressed again"):
        decode_batch(data, next(scan(data)))


@pytest.mark.parametrize("where", ["key", "value"])
@pytest.mark.parametrize("size", [-2, 2**31 - 1, 100])
def test_lengths_within_a_message_are_checked(where: str, size: int) -> None:
    data = bytearray(message(1, 3, b"value", b"key"))
    struct.pack_into(">i", data, 26 if where == "key" else 33, size)
    struct.pack_into(">I", data, 12, zlib.crc32(data[16:]))
    with pytest.raises(CorruptRecordError, match=f"length {size}"):
        decode_batch(bytes(data), next(scan(data)))


def test_builder_says_full_and_seals_once() -> None:
    builder = LegacyBuilder(1, 100)
    assert builder.extend([b"x" * 30] * 3, NOW) == 1
    assert builder.append(NOW, None, b"x" * 40) == FULL
    assert builder.append(NOW + 1, None, b"") == 1
    sealed = builder.seal()
    assert (sealed.base_timestamp, sealed.max_timestamp, sealed.count) == (NOW, NOW + 1, 2)
    for act in (builder.seal, lambda: builder.append(NOW, None, b"")):
        with pytest.raises(IllegalStateError):
            act()


def test_what_old_formats_do_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="no headers"):
        LegacyBuilder(1, 100).append(NOW, None, b"", [("a", b"")])
    with pytest.raises(UnsupportedCodecError, match="zstd"):
        LegacyBuilder(1, 100, "zstd")
