"""Records in runs of all kinds: what the fast ways read is what the plain loop reads, and so is what they refuse."""

from __future__ import annotations

import random
from collections import deque

import pytest
from hypothesis import strategies as st

from kafka.errors import CorruptRecordError
from kafka.record._decode import Origin, decode_rows, take_rows
from kafka.record._rows_runs import RunIndex
from kafka.record.batch_reader import RecordReader
from kafka.record.consumer_record import ConsumerRecord
from test.unit.record import reference
from test.unit.record.strategies import given

NOW = 1_700_000_000_000
ORIGIN = Origin("events", 3, 50, NOW, None, 7)
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


def by_the_loop(data: bytes, pos: int, end: int, count: int) -> list[ConsumerRecord] | None:
    rows: list[ConsumerRecord] = []
    try:
        return rows if decode_rows(data, pos, end, count, ORIGIN, rows) == end else None
    except CorruptRecordError:
        return None


def by_runs(data: bytes, pos: int, end: int, count: int) -> list[ConsumerRecord] | None:
    rows: list[ConsumerRecord] = []
    try:
        return rows if take_rows(data, pos, end, count, ORIGIN, rows) == end else None
    except CorruptRecordError:
        return None


def by_an_index(data: bytes, pos: int, end: int, count: int) -> list[ConsumerRecord] | None:
    numpy_rows = pytest.importorskip("kafka.record._rows_numpy")
    rows: list[ConsumerRecord] = []
    try:
        index = numpy_rows.BatchIndex(data, pos, end, count, ORIGIN)
        taken = 0
        while taken < count:
            taken += (step := min(count - taken, 77))
            after = index.take(step, rows)
    except CorruptRecordError:
        return None
    return rows if after == end else None


KINDS = st.tuples(*(st.sampled_from(list(table)) for table in (TIMES, KEYS, SIZES, HEADERS)))
BYTES = st.sampled_from([0, 1, 2, 3, 126, 127, 128, 129, 255])
COUNTS = st.sampled_from([1, 11, 12, 13, 40, 70, 140, 600])


@given(KINDS, COUNTS, st.integers(0, 99), examples=150)
def test_records_of_all_kinds_are_read_as_by_the_loop(kind: tuple[str, str, str, str], count: int, seed: int) -> None:
    if kind[3] == "many":
        count = min(count, 40)
    rows = rows_of(kind, count, seed)
    front = b"\xff" * 5  # records seldom begin where the buffer does, or end where it ends
    body = body_of(rows)
    data = front + body + b"\0" * (seed % 3 * 20)
    where = len(front), len(front) + len(body), count
    plain = by_the_loop(data, *where)
    assert plain is not None
    assert as_rows(plain) == rows
    assert by_runs(data, *where) == plain
    assert by_an_index(data, *where) == plain


@given(KINDS, st.sampled_from([13, 40, 140]), st.integers(0, 99), st.data(), examples=300)
def test_damage_is_damage_to_the_fast_ways_too(
    kind: tuple[str, str, str, str], count: int, seed: int, data: st.DataObject
) -> None:
    body = bytearray(body_of(rows_of(kind, min(count, 40) if kind[3] == "many" else count, seed)))
    for _ in range(data.draw(st.integers(1, 3))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(
            st.sampled_from([0, 1, 2, 3, 126, 127, 128, 129, 255])
        )
    whole = bytes(body)
    behind = b"\0\2" * 40
    for buffer in (whole, whole + behind):
        plain = by_the_loop(buffer, 0, len(whole), count)
        assert by_runs(buffer, 0, len(whole), count) == plain
        assert by_an_index(buffer, 0, len(whole), count) == plain


@given(KINDS, st.sampled_from([40, 140]), st.integers(0, 99), st.integers(1, 60))
def test_parts_of_runs_make_up_the_whole(kind: tuple[str, str, str, str], count: int, seed: int, step: int) -> None:
    if kind[3] == "many":
        count = 40
    rows = rows_of(kind, count, seed)
    body = body_of(rows)
    index = RunIndex(body, 0, len(body), count, ORIGIN)
    found: list[ConsumerRecord] = []
    end = 0
    while index.left:
        end = index.take(min(step, index.left), found)
        assert body[:end] == body_of(rows[: len(found)])
    assert as_rows(found) == rows[: len(found)]
    assert end == index.end


def test_columns_of_records_with_headers_and_without_are_as_long_as_there_are_records() -> None:
    rows = rows_of(("same", "none", "usual", "same"), 20, 1) + rows_of(("same", "none", "usual", "none"), 60, 1)[20:]
    (found,) = RecordReader(reference.batch(rows, base_offset=50), "events", 0, 0).columns(numpy=False)
    assert [found.headers[at] for at in range(60)] == [row[4] for row in rows]


@pytest.mark.parametrize("times", ["same", "steps", "rising"])
@pytest.mark.parametrize("step", [1, 3, 50])
def test_a_run_taken_in_pieces_is_not_gone_through_for_each_of_them(times: str, step: int) -> None:
    count = 600
    rnd = random.Random(1)
    rows = [(50 + at, TIMES[times](rnd, at), None, b"x" * 100, []) for at in range(count)]
    body = b"".join(reference.record(row, 50, NOW) for row in rows)
    index = RunIndex(body, 0, len(body), count, ORIGIN)
    looked_at = 0

    class Watched(list):  # type: ignore[type-arg]
        def __iter__(self):
            nonlocal looked_at
            for one in super().__iter__():
                looked_at += 1
                yield one

    index._runs = deque(run._replace(timestamp_deltas=Watched(run.timestamp_deltas)) for run in index._runs)
    groups = sum(sum(times > 1 for _, times in run.timestamp_deltas) for run in index._runs)
    looked_at, pieces, found = 0, 0, []
    while index.left:
        index.take(min(step, index.left), found)
        pieces += 1
    assert [row.timestamp for row in found] == [row[1] for row in rows]
    assert looked_at <= (pieces + len(rows)) + pieces * (groups + 3)
