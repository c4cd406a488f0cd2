"""A buffer of several batches gives the same records and errors whatever the number that is taken at a time."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st

from kafka.errors import KafkaError, UnsupportedCodecError
from kafka.record.batch_builder import BatchBuilder
from kafka.record.batch_reader import RecordReader
from kafka.record.control import ABORT, COMMIT, encode_marker

from .strategies import PLAIN_RECORDS, RECORDS, given


def batch(start: int, rows: list[tuple], codec: str | None = None, **options: Any) -> bytes:
    builder = BatchBuilder(1 << 30, codec)
    for row in rows:
        builder.append(*row)
    sealed = builder.seal(**options)
    return bytes(start.to_bytes(8, "big") + bytes(sealed.data)[8:])


def marker(offset: int, kind: int, producer: int) -> bytes:
    data = encode_marker(kind, producer_id=producer, producer_epoch=0, coordinator_epoch=0, timestamp=0)
    return bytes(offset.to_bytes(8, "big") + data[8:])


def read_out(data: bytes, step: int, **options: Any) -> list[Any]:
    """All records and errors, each error stepped over, and the offset to go on from."""
    reader = RecordReader(data, "t", 0, **{"fetch_offset": 0, **options})
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
    """What is read, which is the same in small steps and in large ones."""
    found = read_out(data, step, **options)
    assert found == read_out(data, 1000, **options) == read_out(data, 1, **options)
    return found


def small_batches(count: int, per: int, size: int = 1000, **options: Any) -> bytes:
    rows = [(1_700_000_000_000 + at, None, b"%0*d" % (size, at)) for at in range(count * per)]
    return b"".join(batch(at, rows[at : at + per], **options) for at in range(0, len(rows), per))


@pytest.mark.parametrize("codec", [None, "gzip"])
@pytest.mark.parametrize("per", [1, 7, 16, 64])
@pytest.mark.parametrize("step", [1, 10, 500])
def test_batches_of_one_size_are_read(per: int, step: int, codec: str | None) -> None:
    count = -(-96 // per)
    found = read_out(small_batches(count, per, codec=codec), step)
    assert [row.offset for row in found[:-1]] == list(range(count * per))
    assert [int(row.value) for row in found[:-1]] == list(range(count * per))
    assert [row.timestamp - 1_700_000_000_000 for row in found[:-1]] == list(range(count * per))
    assert found[-1] == count * per


def test_a_missing_codec_is_reported_when_its_batch_is_read() -> None:
    data = bytearray(small_batches(4, 10, 20))
    second = len(data) // 4
    data[second + 22] = 5
    found = same(bytes(data), 500, check_crcs=False)
    assert [row.offset for row in found[:10]] == list(range(10))
    assert found[10] == (UnsupportedCodecError, None)
    assert [row.offset for row in found[11:-1]] == list(range(20, 40))


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
def test_batches_of_any_kind_are_read_alike_in_steps_of_any_size(
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


@given(st.integers(1, 20), st.integers(0, 2**30), st.integers(0, 255), st.integers(1, 50), st.booleans(), examples=120)
def test_damage_is_reported_where_it_is(per: int, where: int, byte: int, step: int, check: bool) -> None:
    data = bytearray(small_batches(60 // per, per, 20))
    data[where % len(data)] = byte
    if check:
        same(bytes(data), step)
    else:  # records in front of the damage are delivered if they were asked for alone
        read_out(bytes(data), step, check_crcs=False)
