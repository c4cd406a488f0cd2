from __future__ import annotations

import random
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import FrameType
from typing import Any

import pytest
from hypothesis import strategies as st

from kafka.errors import IllegalArgumentError, IllegalStateError, UnsupportedCodecError
from kafka.record import batch_builder as builder_module
from kafka.record.batch import decode_batch, split_batch
from kafka.record.batch_builder import FULL, BatchBuilder, record_size
from kafka.record.header import read_header, scan

from . import reference
from .strategies import PLAIN_RECORDS, RECORDS, given

NOW = 1_700_000_000_000


def expected(records: list[tuple]) -> bytes:
    return reference.batch([(index, *record) for index, record in enumerate(records)])


@given(st.one_of(RECORDS, PLAIN_RECORDS))
def test_batch_has_the_bytes_of_the_reference(records: list[tuple]) -> None:
    builder = BatchBuilder(limit=1 << 30)
    for index, (timestamp, key, value, headers) in enumerate(records):
        assert builder.append(timestamp, key, value, headers) == index
    size = builder.size
    data = builder.seal().data
    assert data == expected(records)
    assert len(data) == size


@given(st.one_of(RECORDS, PLAIN_RECORDS), st.integers(61, 5000))
def test_refused_record_leaves_no_trace(records: list[tuple], limit: int) -> None:
    builder = BatchBuilder(limit)
    taken = []
    for record in records:
        before = builder.size
        if builder.append(*record) == FULL:
            assert builder.size == before
        else:
            assert len(taken) == 0 or builder.size <= limit
            taken.append(record)
    assert builder.count == len(taken)
    assert builder.seal().data == expected(taken)


@given(
    st.lists(
        st.lists(st.one_of(st.none(), st.binary(max_size=5), st.just(b"v" * 100), st.just(b"v" * 5000)), max_size=150),
        max_size=4,
    ),
    st.integers(61, 20_000),
)
def test_extend_is_append_repeated(lists: list[list[bytes | None]], limit: int) -> None:
    bulk, single = BatchBuilder(limit), BatchBuilder(limit)
    for step, values in enumerate(lists):
        timestamp = NOW + step // 2
        taken = bulk.extend(values, timestamp)
        for index, value in enumerate(values):
            full = single.append(timestamp, None, value) == FULL
            assert full == (index >= taken)
            if full:
                break
    assert (bulk.count, bulk.size) == (single.count, single.size)
    if bulk.count:
        assert bulk.seal().data == single.seal().data


@pytest.mark.parametrize("limit", [300, 16_384, 200_000])
@pytest.mark.parametrize(
    "most",
    [pytest.param((1, 1), id="equal"), pytest.param((20, 300), id="different"), pytest.param((0, 3000), id="far")],
)
@pytest.mark.parametrize("kind", ["plain", "keys", "headers", "changing"])
def test_batch_is_full_exactly_when_a_record_does_not_fit(limit: int, most: tuple[int, int], kind: str) -> None:
    rnd = random.Random(f"{limit}{most}{kind}")
    builder = BatchBuilder(limit)
    size, count, timestamp = 61, 0, NOW
    for _ in range(3000):
        if count % 50 == 49:
            timestamp += rnd.choice([0, 1, 200])
        value = b"v" * (100 if most == (1, 1) else rnd.choice([most[0], rnd.randint(*most), 30]))
        keyed = kind == "keys" or (kind == "changing" and count % 100 > 50)
        headers = [("a", b"1")] if kind == "headers" or (kind == "changing" and count % 40 == 7) else []
        key = b"k" * rnd.randint(0, 9) if keyed else None
        own = record_size(key, value, headers, index=count, timestamp_delta=timestamp - NOW)
        index = builder.append(timestamp, key, value, headers)
        if not count or size + own <= limit:
            assert index == count
            size, count = size + own, count + 1
        else:
            assert index == FULL
    assert (builder.count, builder.size) == (count, size)
    assert builder.seal().size == size
    assert (builder.count, builder.size) == (count, size)


@pytest.mark.parametrize("kind", [bytearray, memoryview])
@pytest.mark.parametrize("count", [1, 3, 80])
def test_values_of_other_kinds_are_left_as_they_are(kind: Callable[[bytes], Any], count: int) -> None:
    values = [kind(b"value %3d" % at) for at in range(count)]
    builder = BatchBuilder(limit=1 << 20)
    for value in values:
        builder.append(NOW, None, value)
    assert builder.seal().data == expected([(NOW, None, b"value %3d" % at, []) for at in range(count)])
    assert [bytes(value) for value in values] == [b"value %3d" % at for at in range(count)]


def test_extend_takes_keys_and_a_start() -> None:
    builder = BatchBuilder(limit=10_000)
    assert builder.extend([b"a", b"b", b"c"], NOW, keys=[b"1", None, b"3"], start=1) == 2
    data = builder.seal().data
    assert [(row.key, row.value) for row in decode_batch(data, next(scan(data)))] == [(None, b"b"), (b"3", b"c")]


def test_offset_deltas_grow_over_their_widths() -> None:
    builder = BatchBuilder(limit=1 << 30)
    values = [b"%d" % index for index in range(9000)]
    assert builder.extend(values, NOW) == 9000
    assert builder.append(NOW, None, b"last") == 9000
    data = builder.seal().data
    rows = decode_batch(data, next(scan(data)))
    assert [row.offset for row in rows] == list(range(9001))
    assert [row.value for row in rows] == [*values, b"last"]


def test_extend_goes_around_what_does_not_fit_its_tables() -> None:
    values = ([b"v" * 30] * 1500 + [None, b"w" * 5000]) * 3
    bulk, single = BatchBuilder(1 << 30), BatchBuilder(1 << 30)
    assert bulk.extend(values, NOW) == len(values)
    for value in values:
        single.append(NOW, None, value)
    assert bulk.seal().data == single.seal().data


@pytest.mark.parametrize("timestamp", [2**63, -(2**63) - 1, 2**63 - 1])
def test_timestamp_that_does_not_fit_is_refused_alone(timestamp: int) -> None:
    builder = BatchBuilder(1000)
    builder.append(-1, None, b"a")
    with pytest.raises(IllegalArgumentError, match="64 bits"):
        builder.append(timestamp, None, b"b")
    assert builder.append(5, None, b"c") == 1
    sealed = builder.seal()
    assert sealed.max_timestamp == 5
    assert sealed.data == reference.batch([(0, -1, None, b"a", []), (1, 5, None, b"c", [])])


def test_first_record_is_taken_whatever_its_size() -> None:
    builder = BatchBuilder(limit=100)
    assert builder.append(NOW, None, b"x" * 1000) == 0
    assert builder.append(NOW, None, b"") == FULL
    assert BatchBuilder(limit=100).extend([b"x" * 1000, b"y"], NOW) == 1


def test_greatest_timestamp_is_that_of_records_taken() -> None:
    builder = BatchBuilder(limit=150)
    builder.append(NOW, None, b"x" * 50)
    assert builder.append(NOW + 9, None, b"x" * 50) == FULL
    assert builder.append(NOW + 9, b"k", b"x" * 50) == FULL
    builder.append(NOW + 1, None, b"")
    sealed = builder.seal()
    assert (sealed.base_timestamp, sealed.max_timestamp) == (NOW, NOW + 1)
    assert read_header(sealed.data).max_timestamp == NOW + 1


@given(
    st.one_of(st.none(), st.binary(max_size=200)),
    st.one_of(st.none(), st.binary(max_size=200)),
    st.lists(st.tuples(st.text(max_size=5), st.none()), max_size=3),
)
def test_record_size_is_what_a_record_adds(key: bytes | None, value: bytes | None, headers: list) -> None:
    builder = BatchBuilder(limit=10_000)
    before = builder.size
    builder.append(NOW, key, value, headers)
    assert builder.size - before == record_size(key, value, headers)


def test_sealed_batch_does_not_change() -> None:
    builder = BatchBuilder(limit=1000)
    builder.append(NOW, None, b"v")
    sealed = builder.seal(producer_id=5, producer_epoch=1, base_sequence=2**31 - 1, transactional=True)
    for act in (
        lambda: builder.append(NOW, None, b"w"),
        lambda: builder.append(NOW, b"k", b"w"),
        builder.seal,
        lambda: builder.extend([b"w"], NOW),
    ):
        with pytest.raises(IllegalStateError):
            act()
    header = read_header(sealed.data)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (5, 1, 2**31 - 1)
    assert header.is_transactional
    assert not header.is_control
    assert header.last_sequence == 2**31 - 1


def test_sequence_wraps_around_to_zero() -> None:
    builder = BatchBuilder(limit=1000)
    builder.extend([b"a", b"b", b"c"], NOW)
    header = read_header(builder.seal(producer_id=5, producer_epoch=1, base_sequence=2**31 - 2).data)
    assert header.last_sequence == 0


def test_empty_batch_cannot_be_sealed() -> None:
    with pytest.raises(IllegalStateError):
        BatchBuilder(limit=1000).seal()


def test_with_producer_changes_nothing_else() -> None:
    builder = BatchBuilder(limit=1000, codec="gzip")
    builder.extend([b"value" * 10] * 5, NOW)
    sealed = builder.seal(producer_id=5, producer_epoch=1, base_sequence=7, transactional=True)
    other = sealed.with_producer(6, 0, 0)
    assert other.body is sealed.body
    assert (other.count, other.codec, other.size) == (sealed.count, sealed.codec, sealed.size)
    header = read_header(other.data)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (6, 0, 0)
    assert header.is_transactional
    assert len(decode_batch(other.data, header)) == 5
    assert sealed.with_producer(5, 1, 7).data == sealed.data


def test_incompressible_batch_goes_out_as_it_is() -> None:
    builder = BatchBuilder(limit=1000, codec="gzip")
    builder.append(NOW, None, b"x")
    sealed = builder.seal()
    assert sealed.codec == 0
    assert read_header(sealed.data).codec == 0


def test_level_must_suit_the_codec() -> None:
    with pytest.raises(IllegalArgumentError, match="1 to 9"):
        BatchBuilder(1000, "gzip", 10)
    with pytest.raises(IllegalArgumentError, match="no compression levels"):
        BatchBuilder(1000, "snappy", 1)
    with pytest.raises(UnsupportedCodecError, match="brotli"):
        BatchBuilder(1000, "brotli")


@given(RECORDS, st.integers(70, 3000), st.sampled_from([None, "gzip", "lz4"]), examples=30)
def test_split_keeps_all_records_in_order(records: list[tuple], limit: int, codec: str | None) -> None:
    builder = BatchBuilder(limit=1 << 30, codec=codec)
    for record in records:
        builder.append(*record)
    parts = split_batch(builder.seal(), limit, codec)
    assert sum(part.count for part in parts) == len(records)
    found = []
    for part in parts:
        assert part.count == 1 or part.size <= limit
        data = part.seal().data
        header = read_header(data)
        assert header.base_offset == 0
        found += [(row.timestamp, row.key, row.value, row.headers) for row in decode_batch(data, header)]
    assert found == [tuple(record) for record in records]


# Ctrl-C


class Interrupted(Exception):
    pass


def interrupt_at(step: int, call: Callable[[], object]) -> bool:
    """Run a call and raise before the step-th instruction of the builder's module; whether it got that far."""
    # In a thread of its own: an exception raised between the instructions that end a handler leaves the handled one
    # behind as the context of whatever its thread raises later.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(_interrupt_at, step, call).result()


def _interrupt_at(step: int, call: Callable[[], object]) -> bool:
    left = step

    def trace(frame: FrameType, event: str, _arg: object) -> Any:
        nonlocal left
        if frame.f_code.co_filename not in FILES:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            left -= 1
            if left < 0:
                sys.settrace(None)
                raise Interrupted
        return trace

    sys.settrace(trace)
    try:
        call()
    except Interrupted:
        return True
    finally:
        sys.settrace(None)
    return False


FILES = {builder_module.__file__}
MIXED: list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]] = [
    (NOW, None, b"a", []),
    (NOW, None, b"b", []),
    (NOW + 1, None, b"c", []),
    (NOW + 9, b"k", b"d", []),
    (NOW + 9, b"l", b"e", []),
    (NOW + 9, b"m", b"f", []),
    (NOW + 9, b"m", b"g", [("h", b"1")]),
    (NOW + 9, b"m", b"h", [("h", b"1")]),
    (NOW + 9, b"m", b"i", [("h", b"1")]),
    (NOW + 5, None, None, []),
    (NOW + 6, None, b"k", [("h", None)]),
    (NOW + 6, None, b"l", []),
    (NOW + 6, None, b"m", []),
]


def interrupted(at: int, step: int) -> tuple[BatchBuilder, list[tuple], bool]:
    """A batch of MIXED of which the at-th was interrupted at that step, what is in it, and whether it came to that."""
    builder = BatchBuilder(limit=1 << 20)
    kept: list[tuple] = []
    for record in MIXED[:at]:
        assert builder.append(*record) == len(kept)
        kept.append(record)
    was = interrupt_at(step, lambda: builder.append(*MIXED[at]))
    assert builder.count - len(kept) in ((0, 1) if was else (1,))
    kept += [MIXED[at]] * (builder.count - len(kept))
    return builder, kept, was


@pytest.mark.parametrize("at", range(len(MIXED)))
def test_a_batch_counts_its_records_wherever_an_exception_comes(at: int) -> None:
    # Behind the interrupted record: the same again, those that would have come anyway, or some of other kinds.
    others = [MIXED[at]] * 3, MIXED[at + 1 :], [(NOW + 6, None, b"y", []), (NOW + 6, b"z", b"y", [])]
    step = 0
    was = True
    while was:
        builder, kept, was = interrupted(at, step)
        for record in others[(step + at) % 3]:
            assert builder.append(*record) == len(kept)
            kept.append(record)
        size = builder.size
        if kept:
            sealed = builder.seal()
            header = read_header(sealed.data)
            rows = decode_batch(sealed.data, header)
            assert [(row.timestamp, row.key, row.value, row.headers) for row in rows] == kept
            assert sealed.count == header.count == len(kept)
            assert size >= sealed.size
            # An interrupted record may have left its timestamp, as an upper bound.
            greatest = max(record[0] for record in kept)
            assert header.max_timestamp in {greatest, max(greatest, MIXED[at][0])}
        step += 1


@pytest.mark.parametrize("which", [3, 4, 6, 9])
def test_batch_keeps_to_its_limit_wherever_an_exception_comes(which: int) -> None:
    sizes = [10, 40, 5, 90, 90, 12, 12, 12]
    step = 0
    was = True
    while was:
        was = False
        builder = BatchBuilder(limit=300)
        for at, size in enumerate(sizes * 2):
            append = partial(builder.append, NOW + at // 6, None, b"v" * size)
            if at == which:
                was = interrupt_at(step, append)
            elif append() == FULL:
                break
        else:
            raise AssertionError("more was taken than can be")
        assert builder.size <= 300
        sealed = builder.seal()
        assert sealed.size <= 300
        assert sealed.count == len(decode_batch(sealed.data, read_header(sealed.data)))
        step += 1


def test_many_values_at_once_are_counted_wherever_an_exception_comes() -> None:
    step = 0
    was = True
    while was:
        builder = BatchBuilder(limit=1 << 20)
        builder.extend([b"a", b"b"], NOW)
        was = interrupt_at(step, lambda: builder.extend([b"c", None, b"d"], NOW + 1))  # noqa: B023 - called at once
        count = builder.count - 2
        assert builder.append(NOW + 1, None, b"e") == count + 2
        records = [
            (NOW, b"a"),
            (NOW, b"b"),
            *[(NOW + 1, value) for value in (b"c", None, b"d")][:count],
            (NOW + 1, b"e"),
        ]
        assert builder.seal().data == expected([(time, None, value, []) for time, value in records])
        step += 1


def test_sealing_can_be_begun_again_wherever_an_exception_comes() -> None:
    step = 0
    was = True
    while was:
        builder, kept, _ = interrupted(len(MIXED) - 1, 1 << 20)
        was = interrupt_at(step, builder.seal)
        if was and builder._records is not None:
            assert builder.seal().data == expected(kept)
        step += 1


def test_headers_that_change_after_all_are_not_taken_for_the_same() -> None:
    builder = BatchBuilder(limit=1 << 20)
    value = bytearray(b"1")
    headers: list[Any] = [("h", value)]
    pairs: list[Any] = [["h", b"1"]]
    records = []
    for step in range(6):
        value[:] = b"%d" % step
        records.append((NOW, None, b"v", [("h", bytes(value))]))
        builder.append(NOW, None, b"v", headers)
        pairs[0][1] = b"%d" % (step // 2)
        records.append((NOW, None, b"v", [("h", b"%d" % (step // 2))]))
        builder.append(NOW, None, b"v", pairs)
    own: list[tuple[str, bytes | None]] = [("h", b"1")]
    for step in range(6):
        own.append(("x", b"%d" % step))
        records.append((NOW, None, b"v", list(own)))
        builder.append(NOW, None, b"v", own)
    assert builder.seal().data == expected(records)
