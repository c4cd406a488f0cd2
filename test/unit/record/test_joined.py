"""Small batches are decoded together: with the same result as one by one, whatever the batches are like."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st

from kafka.errors import KafkaError, UnsupportedCodecError
from kafka.record import _joined as joined_module
from kafka.record.batch_builder import BatchBuilder
from kafka.record.batch_reader import RecordReader
from kafka.record.control import ABORT, COMMIT, encode_marker

from .strategies import PLAIN_RECORDS, RECORDS, given

ALONE = 1 << 60


def batch(start: int, rows: list[tuple], codec: str | None = None, **options: Any) -> bytes:
    builder = BatchBuilder(1 << 30, codec)
    for row in rows:
        builder.append(*row)
    sealed = builder.seal(**options)
    return bytes(start.to_bytes(8, "big") + bytes(sealed.data)[8:])


def marker(offset: int, kind: int, producer: int) -> bytes:
    data = encode_marker(kind, producer_id=producer, producer_epoch=0, coordinator_epoch=0, timestamp=0)
    return bytes(offset.to_bytes(8, "big") + data[8:])


def read_out(data: bytes, step: int, *, alone: bool, **options: Any) -> list[Any]:
    """All records and errors, each error stepped over, and the offset to go on from."""
    reader = RecordReader(data, "t", 0, options.pop("fetch_offset", 0), **options)
    if alone:
        reader._alone_to = ALONE
    found: list[Any] = []
    while not reader.exhausted:
        try:
            rows = reader.take(step)
            assert len(rows) <= step
            found += rows
        except KafkaError as error:  # noqa: PERF203 - that is what is looked for
            found.append((type(error), getattr(error, "offset", None)))
            reader.skip()
    return [*found, reader.next_offset]


def same(data: bytes, step: int, **options: Any) -> list[Any]:
    """What is read, which is the same with and without joining."""
    found = read_out(data, step, alone=False, **options)
    assert found == read_out(data, step, alone=True, **options)
    return found


@pytest.fixture
def joins(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many batches were joined each time, 0 where that came to nothing."""
    counts: list[int] = []
    real = joined_module.decode_joined

    def decode_joined(parts: Any, origin: Any) -> Any:
        rows = real(parts, origin)
        counts.append(0 if rows is None else len(parts))
        return rows

    monkeypatch.setattr(joined_module, "decode_joined", decode_joined)
    return counts


def small_batches(count: int, per: int, size: int = 1000, **options: Any) -> bytes:
    rows = [(1_700_000_000_000 + at, None, b"%0*d" % (size, at)) for at in range(count * per)]
    return b"".join(batch(at, rows[at : at + per], **options) for at in range(0, len(rows), per))


@pytest.mark.parametrize("codec", [None, "gzip"])
@pytest.mark.parametrize("per", [1, 7, 16, 64])
def test_batches_of_one_size_are_joined(joins: list[int], per: int, codec: str | None) -> None:
    count = -(-96 // per)
    found = read_out(small_batches(count, per, codec=codec), 500, alone=False)
    assert [row.offset for row in found[:-1]] == list(range(count * per))
    assert [int(row.value) for row in found[:-1]] == list(range(count * per))
    assert [row.timestamp - 1_700_000_000_000 for row in found[:-1]] == list(range(count * per))
    assert found[-1] == count * per
    assert joins
    assert all(joined > 1 for joined in joins)


def test_a_codec_that_is_not_there_is_told_when_its_turn_has_come() -> None:
    data = bytearray(small_batches(4, 10, 20))
    second = len(data) // 4
    data[second + 22] = 5
    found = same(bytes(data), 500, check_crcs=False)
    assert [row.offset for row in found[:10]] == list(range(10))
    assert found[10] == (UnsupportedCodecError, None)
    assert [row.offset for row in found[11:-1]] == list(range(20, 40))


def test_what_is_decoded_ahead_is_bounded(joins: list[int]) -> None:
    data = small_batches(200, 16)
    reader = RecordReader(data, "t", 0, 0)
    assert [row.offset for row in reader.take(3)] == [0, 1, 2]
    assert joins == [8]
    assert reader.next_offset == 3
    assert [row.offset for row in reader.take(3000)] == list(range(3, 3003))
    assert max(joins) == 32


def test_large_batches_are_not_joined(joins: list[int]) -> None:
    read_out(small_batches(4, 65, 10), 500, alone=False)
    assert joins == []


def test_where_it_comes_to_nothing_it_is_not_tried_with_each_batch(joins: list[int]) -> None:
    rows = [(at * at % 1009, b"k" * (at % 5), b"x" * (at * 7 % 300), [("h", b"1")] * (at % 3)) for at in range(300)]
    data = b"".join(batch(at, rows[at : at + 10]) for at in range(0, 300, 10))
    assert len(same(data, 500)) == 301
    assert joins == [0]


@given(
    st.lists(
        st.tuples(
            st.one_of(RECORDS, PLAIN_RECORDS),
            st.integers(0, 3),  # the gap in front of it
            st.sampled_from([None, None, None, "gzip"]),
            st.sampled_from([-1, -1, 5]),  # a transaction's producer
            st.sampled_from([None, None, None, 12345]),  # the time of the broker
        ),
        min_size=1,
        max_size=6,
    ),
    st.integers(1, 40),
    st.integers(0, 30),
    st.booleans(),
)
def test_batches_of_any_kind_are_read_as_they_are_one_by_one(
    batches: list[tuple], step: int, begin: int, committed: bool
) -> None:
    data, offset = b"", 0
    for rows, gap, codec, producer, time in batches:
        offset += gap
        kept = [row for row in rows if abs(row[0]) < 2**40] or [(0, None, b"")]
        options = {} if producer < 0 else {"producer_id": producer, "producer_epoch": 0, "transactional": True}
        data += batch(offset, kept, codec, log_append_time=time, **options)
        offset += len(kept)
        if producer >= 0:
            data += marker(offset, COMMIT if gap else ABORT, producer)
            offset += 1
    same(data, step, fetch_offset=begin, read_committed=committed, aborted=[(5, 0)] if committed else ())


@given(st.integers(1, 20), st.integers(0, 2**30), st.integers(0, 255), st.integers(1, 50), st.booleans(), examples=300)
def test_damage_is_told_where_it_is(per: int, where: int, byte: int, step: int, check: bool) -> None:
    data = bytearray(small_batches(60 // per, per, 20))
    data[where % len(data)] = byte
    same(bytes(data), step, check_crcs=check)
