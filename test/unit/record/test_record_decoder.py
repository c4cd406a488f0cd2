"""The decoder reads records of all kinds as the plain reference does, and refuses what that refuses."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import strategies as st

from kafka.errors import CorruptRecordError
from kafka.record.batch_reader import RecordReader
from kafka.record.consumer_record import ConsumerRecord
from kafka.record.header import BatchHeader
from kafka.record.record_decoder import decode_rows, record_ends, skip_rows
from test.unit.record import reference
from test.unit.record.strategies import given

NOW = 1_700_000_000_000
HEADER = BatchHeader(0, 50, 0, 7, 2, 0, 0, 2**31 - 1, NOW, NOW, -1, -1, -1, 1)
SIZES = {
    "none": lambda rnd: 0,
    "few": lambda rnd: rnd.randint(0, 3),
    "small": lambda rnd: rnd.randint(0, 70),
    "usual": lambda rnd: rnd.randint(20, 300),
    "turn": lambda rnd: rnd.choice([62, 63, 64, 65]),
    "large": lambda rnd: rnd.choice([8100, 8180, 8191, 8192, 8200]) if rnd.random() < 0.1 else 100,
}
KEYS = {
    "none": lambda rnd, at: None,
    "fixed": lambda rnd, at: b"key%05d" % at,
    "empty": lambda rnd, at: b"",
    "varying": lambda rnd, at: b"%d" % at,
    "long": lambda rnd, at: bytes(rnd.choice([63, 64, 65])),
    "mixed": lambda rnd, at: None if rnd.random() < 0.05 else b"k" * rnd.randint(0, 9),
}
HEADERS = {
    "none": lambda rnd, at: [],
    "same": lambda rnd, at: [("source", b"billing"), ("nothing", None)],
    "alike": lambda rnd, at: [("trace", b"%016d" % at), ("source", b"billing")],
    "varying": lambda rnd, at: [("attempt", b"%d" % at), ("ü" * rnd.randint(0, 2), None)],
    "mixed": lambda rnd, at: [("a", b"1")] * rnd.choice([0, 0, 0, 1]),
    "many": lambda rnd, at: [(f"h{one}", b"") for one in range(70)],
}
TIMES = {
    "same": lambda rnd, at: NOW,
    "steps": lambda rnd, at: NOW + at // 20,
    "rising": lambda rnd, at: NOW + at,
    "any": lambda rnd, at: NOW + rnd.randint(-9000, 9000),
}


def rows_of(kind: tuple[str, str, str, str], count: int, seed: int) -> list[reference.Row]:
    times, keys, sizes, headers = kind
    rnd = random.Random(seed)
    filler = rnd.choice([b"x", b"\0", b"\1"])
    return [
        (
            50 + at,
            TIMES[times](rnd, at),
            KEYS[keys](rnd, at),
            filler * SIZES[sizes](rnd),
            HEADERS[headers](rnd, at),
        )
        for at in range(count)
    ]


def body_of(rows: list[reference.Row]) -> bytes:
    return b"".join(reference.record(row, 50, NOW) for row in rows)


def as_rows(found: list[ConsumerRecord]) -> list[reference.Row]:
    return [(row.offset, row.timestamp, row.key, row.value, list(row.headers)) for row in found]


def decoded(data: bytes, pos: int, end: int, count: int, step: int | None = None) -> list[ConsumerRecord] | None:
    """The records, taken ``step`` at a time, or None for damage."""
    rows: list[ConsumerRecord] = []
    try:
        if step is not None:
            record_ends(data, pos, end, count, 50)
        while count:
            pos = decode_rows(data, pos, end, min(count, step or count), HEADER, "events", 3, rows)
            count -= min(count, step or count)
    except CorruptRecordError:
        return None
    return rows if pos == end else None


def expected(body: bytes, count: int) -> list[reference.Row] | None:
    try:
        return reference.rows_of_body(body, count, 50, NOW)
    except reference.Damaged:
        return None


KINDS = st.tuples(*(st.sampled_from(list(table)) for table in (TIMES, KEYS, SIZES, HEADERS)))
BYTES = st.sampled_from([0, 1, 2, 3, 126, 127, 128, 129, 255])
COUNTS = st.sampled_from([1, 11, 12, 13, 40, 70, 140, 600])


@given(KINDS, COUNTS, st.integers(0, 99), examples=80)
def test_records_of_all_kinds_are_read(kind: tuple[str, str, str, str], count: int, seed: int) -> None:
    if kind[3] == "many":
        count = min(count, 40)
    rows = rows_of(kind, count, seed)
    front = b"\xff" * 5  # records seldom begin where the buffer does, or end where it ends
    body = body_of(rows)
    data = front + body + b"\0" * (seed % 3 * 20)
    where = len(front), len(front) + len(body), count
    found = decoded(data, *where)
    assert found is not None
    assert as_rows(found) == rows
    for row in found:
        assert row[:2] == ("events", 3)
        assert row.serialized_key_size == (-1 if row.key is None else len(row.key))
        assert row.serialized_value_size == len(row.value)
        sizes = [len(name.encode()) + len(data or b"") for name, data in row.headers]
        assert row.serialized_header_size == (sum(sizes) if sizes else -1)
        assert (row.timestamp_type, row.checksum, row.leader_epoch) == (0, None, 7)
    assert decoded(data, *where, step=1 + seed % 70) == found


@given(KINDS, st.sampled_from([1, 13, 40, 140]), st.integers(0, 99), st.data(), examples=120)
def test_damage_to_the_reference_decoder_is_damage_here(
    kind: tuple[str, str, str, str], count: int, seed: int, data: st.DataObject
) -> None:
    count = min(count, 40) if kind[3] == "many" else count
    body = bytearray(body_of(rows_of(kind, count, seed)))
    for _ in range(data.draw(st.integers(1, 3))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(BYTES)
    whole = bytes(body)
    wanted = expected(whole, count)
    for buffer in (whole, whole + b"\0\2" * 40):
        found = decoded(buffer, 0, len(whole), count)
        assert (found if found is None else as_rows(found)) == wanted


@given(KINDS, st.integers(1, 140), st.integers(0, 99), st.integers(0, 150))
def test_records_before_an_offset_are_skipped(
    kind: tuple[str, str, str, str], count: int, seed: int, wanted: int
) -> None:
    rows = rows_of(kind, min(count, 40) if kind[3] == "many" else count, seed)
    body = body_of(rows)
    skipped, at = skip_rows(body, 0, len(body), len(rows), wanted)
    assert skipped == min(wanted, len(rows))
    assert at == len(body_of(rows[:skipped]))


@pytest.mark.parametrize("delta", [2**31 - 1, 2**31, 2**62])
@pytest.mark.parametrize("numpy", [True, False])
def test_offset_deltas_beyond_31_bits_are_damage(delta: int, numpy: bool) -> None:
    data = reference.batch([(delta, NOW, None, b"v", [])], last_offset_delta=2**31 - 1)
    rows, columns = RecordReader(data, "t", 0, 0), RecordReader(data, "t", 0, 0)
    if delta < 2**31:
        assert rows.take(1)[0].offset == next(columns.columns(numpy=numpy)).offsets[0] == delta
        return
    with pytest.raises(CorruptRecordError):
        rows.take(1)
    with pytest.raises(CorruptRecordError):
        next(columns.columns(numpy=numpy))


@pytest.mark.parametrize("numpy", [True, False])
def test_offsets_and_timestamps_beyond_64_bits_are_damage(numpy: bool) -> None:
    # The header claims a last offset that can be; the record is beyond that.
    body = reference.record((3, NOW, None, b"v", []), 0, NOW)
    data = reference.batch([], body=body, count=1, base_offset=2**63 - 3, base_timestamp=NOW, last_offset_delta=0)
    with pytest.raises(CorruptRecordError):
        RecordReader(data, "t", 0, 0).take(1)
    with pytest.raises(CorruptRecordError):
        next(RecordReader(data, "t", 0, 0).columns(numpy=numpy))
    body = reference.record((0, 5, None, b"v", []), 0, 0)
    data = reference.batch([], body=body, count=1, base_timestamp=2**63 - 3)
    with pytest.raises(CorruptRecordError):
        next(RecordReader(data, "t", 0, 0).columns(numpy=numpy))


def test_timestamps_beyond_64_bits_are_damage_in_columns_of_a_batch_that_was_begun() -> None:
    body = b"".join(reference.record((at, at * 5, None, b"v", []), 0, 0) for at in range(2))
    one = RecordReader(
        reference.batch([], body=body, count=2, base_timestamp=2**63 - 3, last_offset_delta=1), "t", 0, 0
    )
    assert len(one.take(1)) == 1
    with pytest.raises(CorruptRecordError):
        next(one.columns(numpy=False))


@pytest.mark.parametrize("step", [1, 300, 700])
def test_batches_taken_in_pieces_give_each_record_once(step: int) -> None:
    rows = [(at, NOW, None, b"%d" % at, []) for at in range(2000)]
    one = RecordReader(
        reference.batch(rows) + reference.batch([(2000, NOW, None, b"", [])], base_offset=2000), "t", 0, 7
    )
    found: list[int] = []
    while some := one.take(step):
        assert len(some) == min(step, 2001 - 7 - len(found))
        found += [row.offset for row in some]
        assert one.next_offset == found[-1] + 1
        assert one.exhausted == (len(found) == 2001 - 7)
    assert found == list(range(7, 2001))


def test_columns_of_records_with_headers_and_without_are_as_long_as_there_are_records() -> None:
    rows = rows_of(("same", "none", "usual", "same"), 20, 1) + rows_of(("same", "none", "usual", "none"), 60, 1)[20:]
    (found,) = RecordReader(reference.batch(rows, base_offset=50), "events", 0, 0).columns(numpy=False)
    assert [found.headers[at] for at in range(60)] == [row[4] for row in rows]


def test_a_header_key_that_is_not_utf_8_is_replaced() -> None:
    body = b"\x14\0\0\0\1\2v\2\2\xff\1"
    rows: list[Any] = []
    decode_rows(body, 0, len(body), 1, HEADER, "events", 3, rows)
    assert rows[0].headers == [("\ufffd", None)]
