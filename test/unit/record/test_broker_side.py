"""What the embedded broker needs: check, place, convert, mark."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st

from kafka.errors import CorruptRecordError, InvalidRecordError, UnsupportedCompressionTypeError
from kafka.record.batch import decode_batch
from kafka.record.batch_builder import BatchBuilder
from kafka.record.batch_reader import RecordReader
from kafka.record.control import ABORT, COMMIT, Marker, decode_marker, encode_marker
from kafka.record.header import CONTROL, LOG_APPEND_TIME, TRANSACTIONAL, scan
from kafka.record.log_append import assign_offsets, down_convert, next_sequence, up_convert, validate_produced_batch
from kafka.record.message_v0_v1 import LegacyBuilder, encode_message

from . import reference
from .strategies import given

NOW = 1_700_000_000_000


def rows(count: int, start: int = 0) -> list[reference.Row]:
    return [(start + at, NOW + at, None, b"value %d" % at, []) for at in range(count)]


def read(data: bytes, offset: int = 0) -> list:
    return RecordReader(data, "topic", 0, offset).take(999)


def test_placing_leaves_the_checksum_alone() -> None:
    batch = bytearray(reference.batch(rows(3)))
    assign_offsets(batch, 1000, leader_epoch=9)
    assert bytes(batch) == reference.batch(rows(3, 1000), base_offset=1000, leader_epoch=9)
    assert [(row.offset, row.leader_epoch) for row in read(bytes(batch), 1000)] == [(1000, 9), (1001, 9), (1002, 9)]


def test_placing_in_the_middle_of_a_log() -> None:
    log = bytearray(reference.batch(rows(2)) * 2)
    size = len(log) // 2
    assign_offsets(memoryview(log)[size:], 2, leader_epoch=1, append_time=NOW + 99)
    assert [(row.offset, row.timestamp, row.timestamp_type) for row in read(bytes(log))] == [
        (0, NOW, 0),
        (1, NOW + 1, 0),
        (2, NOW + 99, 1),
        (3, NOW + 99, 1),
    ]


def test_good_batch_is_accepted() -> None:
    header = validate_produced_batch(reference.batch(rows(3), producer=(5, 0, 17), attributes=TRANSACTIONAL))
    assert (header.count, header.base_sequence, header.last_sequence) == (3, 17, 19)


@pytest.mark.parametrize(
    ("data", "error", "match"),
    [
        (b"", CorruptRecordError, "cut off"),
        (reference.batch(rows(3))[:-1], CorruptRecordError, "cut off"),
        (reference.batch(rows(3)) * 2, InvalidRecordError, "one batch"),
        (reference.batch(rows(3)) + b"x", InvalidRecordError, "one batch"),
        (reference.batch(rows(3))[:-1] + b"x", CorruptRecordError, "checksum"),
        (reference.batch([]), InvalidRecordError, "0 records"),
        (reference.batch(rows(3), last_offset_delta=5), InvalidRecordError, "last offset delta"),
        (
            reference.batch([*rows(2), (3, NOW, None, b"", [])], last_offset_delta=2),
            InvalidRecordError,
            "offset delta 3",
        ),
        (reference.batch(rows(3), attributes=CONTROL), InvalidRecordError, "control"),
        (reference.batch(rows(3), attributes=LOG_APPEND_TIME), InvalidRecordError, "LOG_APPEND_TIME"),
        (reference.batch(rows(3), attributes=6), InvalidRecordError, "codec 6"),
        (reference.batch(rows(3), attributes=4, body=b"x"), InvalidRecordError, "codec 4"),
        (reference.batch(rows(3), producer=(5, -1, 0)), InvalidRecordError, "epoch -1"),
        (reference.batch(rows(3), producer=(5, 0, -1)), InvalidRecordError, "sequence -1"),
        (reference.batch(rows(3), attributes=TRANSACTIONAL), InvalidRecordError, "without a producer id"),
        (reference.batch(rows(3), count=4, last_offset_delta=3), CorruptRecordError, "cut off"),
        (encode_message(1, 0, NOW, None, b"x"), InvalidRecordError, "format v1"),
    ],
)
def test_bad_batches_are_refused(data: bytes, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        validate_produced_batch(data, zstd=False)


def test_records_need_not_be_read_to_check_the_rest() -> None:
    data = reference.batch([], body=b"junk that no one reads", count=1)
    assert validate_produced_batch(data, read_records=False).count == 1
    with pytest.raises(CorruptRecordError):
        validate_produced_batch(data)
    with pytest.raises(CorruptRecordError, match="checksum"):
        validate_produced_batch(data[:-1] + b"x", read_records=False)


def test_sequence_after_the_greatest_is_zero() -> None:
    assert next_sequence(0, 3) == 3
    assert next_sequence(2**31 - 1, 1) == 0
    assert next_sequence(2**31 - 2, 5) == 3


# Markers


@pytest.mark.parametrize("kind", [ABORT, COMMIT])
def test_marker_says_how_the_transaction_ended(kind: int) -> None:
    data = encode_marker(kind, producer_id=7, producer_epoch=2, coordinator_epoch=5, timestamp=NOW)
    header = next(scan(data))
    assert decode_marker(data, header) == Marker(kind, 5, NOW)
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.count) == (7, 2, -1, 1)
    assert header.is_control
    assert header.is_transactional
    assert decode_marker(data, header).is_commit == (kind == COMMIT)
    # KIP-98: key is version and type, value version and coordinator epoch.
    assert data[-13 - 1 : -1][-12:].endswith(b"\0\0\0\0\0\x05")


@pytest.mark.parametrize(
    "row", [(0, NOW, None, b"", []), (0, NOW, b"\0\0", b"", []), (0, NOW, b"\0\0\0\1", b"\0\0", [])]
)
def test_damaged_marker_is_refused(row: reference.Row) -> None:
    data = reference.batch([row], attributes=CONTROL)
    with pytest.raises(CorruptRecordError):
        decode_marker(data, next(scan(data)))


def test_markers_of_other_types_are_read() -> None:
    data = reference.batch([(0, NOW, b"\0\0\0\2", b"", [])], attributes=CONTROL)
    assert decode_marker(data, next(scan(data))) == Marker(2, -1, NOW)


# Conversion


@given(
    st.sampled_from([0, 1]),
    st.sampled_from([None, "gzip", "snappy", "lz4"]),
    st.lists(
        st.tuples(
            st.integers(1, 3), st.one_of(st.none(), st.binary(max_size=5)), st.one_of(st.none(), st.binary(max_size=50))
        ),
        min_size=1,
        max_size=20,
    ),
)
def test_down_converted_records_keep_offset_key_and_value(magic: int, name: str | None, content: list) -> None:
    offset, expected = 100, []
    for step, key, value in content:
        offset += step
        expected.append((offset, NOW + offset, key, value, [("lost", b"")]))
    body = b"".join(reference.record(row, 100, NOW) for row in expected)
    number = 0
    if name:
        from kafka import codec

        number = codec.codec_id(name)
        body = codec.compressor(number)(body)
    data = reference.batch(expected, base_offset=100, body=body, attributes=number, base_timestamp=NOW)
    old = down_convert(data, magic)
    assert {header.magic for header in scan(old)} == {magic}
    assert {header.codec for header in scan(old)} == {number}
    found = read(old)
    assert [(row.offset, row.key, row.value) for row in found] == [(row[0], row[2], row[3]) for row in expected]
    assert [row.timestamp for row in found] == [row[1] if magic else None for row in expected]


def test_down_conversion_keeps_the_brokers_time_and_leaves_markers_out() -> None:
    data = reference.batch(rows(2), attributes=LOG_APPEND_TIME, max_timestamp=NOW + 50)
    data += encode_marker(COMMIT, producer_id=7, producer_epoch=2, coordinator_epoch=5, timestamp=NOW)
    found = read(down_convert(data, 1))
    assert [(row.timestamp, row.timestamp_type) for row in found] == [(NOW + 50, 1)] * 2


def test_down_conversion_leaves_old_messages_as_they_are() -> None:
    builder = LegacyBuilder(0, 999, "gzip")
    builder.extend([b"a" * 99] * 9, NOW)
    data = builder.seal().data
    assert down_convert(data, 1) == data


def test_zstd_cannot_be_converted_down() -> None:
    builder = BatchBuilder(9999, "zstd")
    builder.extend([b"a" * 99] * 9, NOW)
    with pytest.raises(UnsupportedCompressionTypeError):
        down_convert(builder.seal().data, 1)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("name", [None, "gzip", "lz4"])
def test_up_converted_messages_get_the_offsets_of_the_log(magic: int, name: str | None) -> None:
    builder = LegacyBuilder(magic, 9999, name)
    builder.extend([b"a" * 99, None, b"c"] * 5, NOW, keys=[b"k", b"", None] * 5)
    batch = up_convert(builder.seal().data, 500, leader_epoch=3)
    header = check_header(batch)
    assert (header.base_offset, header.leader_epoch, header.count) == (500, 3, 15)
    assert header.codec == (0 if name is None else {"gzip": 1, "lz4": 3}[name])
    found = decode_batch(batch, header)
    assert [(row.offset, row.key, row.value) for row in found[:3]] == [
        (500, b"k", b"a" * 99),
        (501, b"", None),
        (502, None, b"c"),
    ]
    assert found[0].timestamp == (NOW if magic else -1)
    later = up_convert(old_messages(magic), 0, 0, append_time=NOW + 7)
    assert {(row.timestamp, row.timestamp_type) for row in read(later)} == {(NOW + 7, 1)}


def old_messages(magic: int) -> bytes:
    builder = LegacyBuilder(magic, 999)
    builder.extend([b"a", b"b"], NOW)
    return builder.seal().data


def check_header(batch: bytes):
    (header,) = scan(batch)
    assert header.magic == 2
    return header


@pytest.mark.parametrize("data", [b"", old_messages(1)[:-1], reference.batch(rows(1))])
def test_up_conversion_refuses_bytes_that_are_not_an_old_message_set(data: bytes) -> None:
    with pytest.raises(InvalidRecordError):
        up_convert(data, 0, 0)
