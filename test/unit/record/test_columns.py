from __future__ import annotations

import os
import subprocess
import sys
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import strategies as st

from kafka.errors import CorruptRecordError, IllegalArgumentError
from kafka.record import arrow_encoder, numpy_decoder
from kafka.record.arrow_encoder import encode_arrow, encode_divided, larger_chunks
from kafka.record.batch_builder import BatchBuilder
from kafka.record.batch_reader import RecordReader
from kafka.record.columns import BatchRecords, BinaryColumn, column_decoder
from kafka.record.header import LOG_APPEND_TIME, TRANSACTIONAL, BatchHeader
from kafka.record.message_v0_v1 import LegacyBuilder

from . import reference
from .strategies import PLAIN_RECORDS, RECORDS, given
from .test_reader import LOG

NOW = 1_700_000_000_000


def flat(parts) -> list[tuple]:
    found = []
    for part in parts:
        headers = [part.headers[at] for at in range(len(part))]
        found += zip(part.offsets, part.timestamps, part.timestamp_types, part.keys, part.values, headers, strict=True)
    return found


def rows_of(data: bytes, offset: int = 0, **options) -> list[tuple]:
    found = RecordReader(data, "topic", 0, offset, **options).take(1 << 20)
    return [(row.offset, row.timestamp, row.timestamp_type, row.key, row.value, row.headers) for row in found]


@st.composite
def logs(draw: st.DrawFn) -> bytes:
    data, offset = b"", 0
    for records in draw(st.lists(st.one_of(RECORDS, PLAIN_RECORDS), min_size=1, max_size=4)):
        codec = draw(st.sampled_from([None, None, "gzip", "lz4"]))
        builder = BatchBuilder(1 << 30, codec)
        for record in records:
            builder.append(*record)
        append_time = draw(st.sampled_from([None, None, NOW]))
        data += offset.to_bytes(8, "big") + builder.seal(log_append_time=append_time).data[8:]
        offset += len(records)
    return data


@given(logs(), st.booleans(), st.integers(0, 30), st.sampled_from([bytes, bytearray, memoryview]))
def test_columns_hold_what_records_hold(data: bytes, numpy: bool, first: int, kind: type) -> None:
    one = RecordReader(kind(data), "topic", 0, first)
    assert flat(one.columns(numpy=numpy, at_least=50)) == rows_of(data, first)
    assert one.exhausted


@given(logs())
def test_arrow_holds_what_records_hold(data: bytes) -> None:
    expected = rows_of(data)
    for numpy in (True, False):
        found = []
        for part in RecordReader(data, "topic", 0, 0).columns(numpy=numpy):
            batch = part.to_arrow()
            batch.validate(full=True)
            offsets, stamps = batch["offset"].to_pylist(), batch["timestamp"].cast(pa.int64()).to_pylist()
            headers = [[(pair["key"], pair["value"]) for pair in row] for row in batch["headers"].to_pylist()]
            kinds = batch["timestamp_type"].to_pylist()
            found += zip(
                offsets, stamps, kinds, batch["key"].to_pylist(), batch["value"].to_pylist(), headers, strict=True
            )
        assert found == expected


@pytest.mark.parametrize("seed", range(40))
def test_records_of_many_batches_are_found_side_by_side_as_one_after_the_other(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches of a few and of many records; every third time a bit is wrong, or a count."""
    chance = Random(seed)
    fewest, most = chance.choice([(1, 1), (1, 2), (3, 6), (1, 9), (20, 30)])
    long = 8200 if seed % 5 == 0 else 70  # with a length of three bytes
    data, places = b"\xff" * 3, []
    for _ in range(chance.choice([127, 128, 129, 300])):
        count = chance.randint(fewest, most)
        sizes = [long if chance.random() < 0.01 else chance.randint(0, 70) for _ in range(count)]
        keys = [chance.choice([None, b"k" * 9]) for _ in sizes]
        rows = [(at, 0, key, bytes(size), []) for at, (key, size) in enumerate(zip(keys, sizes, strict=True))]
        body = b"".join(reference.record(row, 0, 0) for row in rows)
        places.append((len(data), len(data) + len(body), count))
        data += body + b"\0" * chance.randint(0, 2)
    if seed % 3 == 0:
        wrong = bytearray(data)
        wrong[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        data = bytes(wrong)
    if seed % 3 == 1:
        at = chance.randrange(len(places))
        start, end, count = places[at]
        places[at] = (start, end, chance.choice([0, count, count + 1, 2**31 - 1]))
    header = BatchHeader(0, 0, 0, 0, 2, 0, 0, 1, 0, 0, -1, -1, -1, 2)
    batches = [BatchRecords(data, *place, header) for place in places]

    def found() -> object:
        try:
            return [numbers.tolist() for numbers in numpy_decoder.record_boundaries(data, batches)]
        except (CorruptRecordError, IndexError) as error:
            return str(error)

    side_by_side = found()
    monkeypatch.setattr(numpy_decoder, "_ends_side_by_side", lambda *_: None)
    assert side_by_side == found()


def test_the_positions_of_many_batches_take_no_step_for_each_record(monkeypatch: pytest.MonkeyPatch) -> None:
    body = reference.record((0, 0, None, bytes(100), []), 0, 0) * 20
    header = BatchHeader(0, 0, 0, 0, 2, 0, 0, 1, 0, 0, -1, -1, -1, 2)
    batches = [BatchRecords(b"", at * len(body), (at + 1) * len(body), 20, header) for at in range(200)]
    monkeypatch.setattr(numpy_decoder, "record_ends", None)
    starts, ends = numpy_decoder.record_boundaries(body * 200, batches)
    size = len(body) // 20
    assert starts.tolist() == list(range(0, len(body) * 200, size))
    assert ends.tolist() == list(range(size, len(body) * 200 + 1, size))


@pytest.mark.parametrize("numpy", [True, False])
def test_columns_continue_where_taking_stopped(numpy: bool) -> None:
    data = reference.batch([(at, NOW, None, b"%d" % at, []) for at in range(100)])
    one = RecordReader(data, "topic", 0, 5)
    one.take(20)
    (part,) = one.columns(numpy=numpy)
    assert list(part.offsets) == list(range(25, 100))
    assert one.next_offset == 100


@pytest.mark.parametrize("numpy", [True, False])
def test_columns_leave_out_aborted_and_control_records(numpy: bool) -> None:
    one = RecordReader(LOG, "topic", 0, 0, read_committed=True, aborted=[(7, 0), (8, 11)])
    assert [offset for part in one.columns(numpy=numpy) for offset in part.offsets] == [2, 3, 4, 6, 8, 9]


@pytest.mark.parametrize("numpy", [True, False])
def test_old_formats_make_columns_too(numpy: bool) -> None:
    old = LegacyBuilder(0, 999)
    old.extend([b"a", None], NOW)
    data = old.seal().data + reference.batch([(2, NOW, b"k", b"c", [])], base_offset=2)
    assert flat(RecordReader(data, "topic", 0, 0).columns(numpy=numpy)) == [
        (0, -1, -1, None, b"a", []),
        (1, -1, -1, None, None, []),
        (2, NOW, 0, b"k", b"c", []),
    ]


@pytest.mark.parametrize("numpy", [True, False])
def test_damage_comes_after_the_good_batches(numpy: bool) -> None:
    good = reference.batch([(0, NOW, None, b"a", [])])
    bad = reference.batch([], body=b"junk junk", count=1, base_offset=1)
    one = RecordReader(good, "topic", 0, 0)
    assert len(list(one.columns(numpy=numpy))) == 1
    one = RecordReader(good + bad[:-1] + b"x", "topic", 0, 0)
    parts = one.columns(numpy=numpy)
    assert list(next(parts).offsets) == [0]
    with pytest.raises(CorruptRecordError, match="checksum"):
        next(parts)
    with pytest.raises(CorruptRecordError):
        list(RecordReader(bad, "topic", 0, 0).columns(numpy=numpy))


@pytest.mark.parametrize("numpy", [True, False])
def test_batch_that_does_not_parse_can_be_skipped(numpy: bool) -> None:
    """The checksum is right, so it shows only when all are decoded together; the transactions must not get mixed up."""
    bad = reference.batch([], body=b"junk junk", count=1, base_offset=13)
    data = LOG + bad + reference.batch([(14, NOW, None, b"a", [])], base_offset=14)
    one = RecordReader(data, "topic", 0, 0, read_committed=True, aborted=[(7, 0), (8, 11)])
    offsets: list[int] = []

    def read() -> None:
        for part in one.columns(numpy=numpy):
            offsets.extend(part.offsets)

    with pytest.raises(CorruptRecordError) as caught:
        read()
    assert caught.value.offset == one.next_offset == 13
    assert offsets == [2, 3, 4, 6, 8, 9]
    one.skip()
    assert [list(part.offsets) for part in one.columns(numpy=numpy)] == [[14]]


@pytest.mark.parametrize("numpy", [True, False])
@pytest.mark.parametrize("good", [True, False])
def test_one_skip_passes_one_damaged_batch_whatever_stands_around_it(numpy: bool, good: bool) -> None:
    behind = LegacyBuilder(1, 10_000, "gzip")
    behind.append(NOW, None, b"x")
    before = reference.batch([(13, NOW, None, b"a", [])], base_offset=13) if good else b""
    bad = reference.batch([], body=b"junk junk", count=1, base_offset=14)
    data = LOG + LOG + before + bad + behind.seal(wrapper_offset=15).data
    one = RecordReader(data, "topic", 0, 13)
    read = one.columns(numpy=numpy)
    if good:
        assert list(next(read).offsets) == [13]
    with pytest.raises(CorruptRecordError) as caught:
        next(read)
    assert caught.value.offset == 14
    assert one.skip_target == range(15, 16)
    one.skip()
    assert [list(part.offsets) for part in one.columns(numpy=numpy)] == [[15]]


def test_large_numbers_of_headers_are_found_again() -> None:
    headers = [(f"h{at}", b"x") for at in range(9000)]
    rows = [(at, NOW, None, b"v", headers[: [0, 63, 64, 70, 8191, 8192, 9000][at]]) for at in range(7)]
    data = reference.batch(rows)
    (part,) = RecordReader(data, "topic", 0, 0).columns(numpy=True)
    assert [part.headers[at] for at in range(7)] == [row[4] for row in rows]


def test_missing_packages_leave_the_plain_way(monkeypatch: pytest.MonkeyPatch) -> None:
    import kafka.record

    monkeypatch.delattr(kafka.record, "numpy_decoder", raising=False)  # it looks for the module first, and so loads it
    monkeypatch.delitem(sys.modules, "kafka.record.numpy_decoder", raising=False)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert column_decoder().__module__ == "kafka.record.columns"
    with pytest.raises(ImportError):
        column_decoder(numpy=True)


def test_binary_column_is_a_sequence() -> None:
    column = BinaryColumn.from_values([b"a", None, b"ccc"])
    assert column[-1] == b"ccc"
    assert column[0:2] == [b"a", None]
    assert list(column) == [b"a", None, b"ccc"]
    assert len(column) == 3
    with pytest.raises(IndexError):
        column[3]


# And back


def decoded(batches) -> list[tuple]:
    found = []
    for batch in batches:
        size = batch.size
        data = batch.seal().data
        assert len(data) == size
        found += [row[1:2] + row[3:] for row in rows_of(data)]
    return found


@given(st.one_of(RECORDS, PLAIN_RECORDS), st.integers(100, 20_000))
def test_encoded_columns_are_the_records(records: list[tuple], limit: int) -> None:
    stamps, keys, values, headers = zip(*records, strict=True)
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    pairs = [[{"key": key, "value": value} for key, value in row] for row in headers]
    batches = list(
        encode_arrow(
            pa.array(values, pa.binary()),
            pa.array(keys, pa.binary()),
            timestamps=pa.array(stamps, pa.int64()),
            headers=pa.array(pairs, kind),
            limit=limit,
        )
    )
    assert all(batch.count == 1 or batch.size <= limit for batch in batches)
    assert decoded(batches) == [(stamp, key, value, row) for stamp, key, value, row in records]


@given(st.one_of(RECORDS, PLAIN_RECORDS), st.integers(100, 20_000), st.randoms())
def test_rows_in_groups_are_encoded_group_by_group(records: list[tuple], limit: int, chance: Random) -> None:
    group_of = [chance.randrange(4) for _ in records]
    stamps, keys, values, headers = zip(*records, strict=True)
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    cut = chance.randrange(len(records) + 1)
    found: list[list[tuple]] = [[] for _ in range(4)]
    for group, batch in encode_divided(
        pa.chunked_array([values[:cut], values[cut:]], pa.binary()),
        pa.chunked_array([keys[:cut], keys[cut:]], pa.binary()),
        timestamps=pa.array(stamps, pa.int64()),
        headers=pa.array([[{"key": key, "value": value} for key, value in row] for row in headers], kind),
        groups=np.array(group_of),
        limit=limit,
    ):
        assert batch.count == 1 or batch.size <= limit
        found[group] += decoded([batch])
    wanted: list[list[tuple]] = [[] for _ in range(4)]
    for group, record in zip(group_of, records, strict=True):
        wanted[group].append(record)
    assert found == wanted


def test_batches_are_filled_to_the_limit() -> None:
    values = [b"%d" % at for at in range(200_000)]
    batches = list(encode_arrow(pa.array(values), pa.array(values), timestamps=NOW, limit=1 << 16))
    assert min(batch.size for batch in batches[:-1]) > 0.9 * (1 << 16)
    assert [row[2] for row in decoded(batches)] == values


@pytest.mark.parametrize("sizes", [(10, 9_000), (70, 20_000), (1, 3 << 20), (0, 1)])
def test_values_of_very_different_sizes(sizes: tuple[int, int]) -> None:
    values = [bytes(size) for size in sizes * 3]
    assert [row[2] for row in decoded(encode_arrow(pa.array(values), timestamps=NOW, limit=1 << 23))] == values


def test_bytes_under_a_null_are_not_written() -> None:
    hidden = pa.Array.from_buffers(
        pa.binary(), 3, [pa.py_buffer(b"\x05"), pa.py_buffer(np.array([0, 1, 5, 6], np.int32)), pa.py_buffer(b"abcdef")]
    )
    assert hidden.to_pylist() == [b"a", None, b"f"]
    assert decoded(encode_arrow(hidden, hidden, timestamps=NOW)) == [
        (NOW, value, value, []) for value in (b"a", None, b"f")
    ]


def test_encoded_batch_is_the_one_that_append_makes() -> None:
    values = [b"v" * (at % 90) for at in range(9000)]
    builder = BatchBuilder(1 << 24)
    builder.extend(values, NOW)
    (batch,) = encode_arrow(pa.array(values), timestamps=NOW, limit=1 << 24)
    assert (
        batch.seal(producer_id=3, producer_epoch=0, base_sequence=0).data
        == builder.seal(producer_id=3, producer_epoch=0, base_sequence=0).data
    )


@pytest.mark.parametrize(
    "values",
    [
        pa.array(["a", None, "ç"]),
        pa.array([b"a", None, "ç".encode()], pa.large_binary()),
        pa.chunked_array([[b"a"], [None, "ç".encode()]]),
        pa.array([b"-", b"a", None, "ç".encode(), b"-"]).slice(1, 3),
        pa.array([b"a", None, "ç".encode()]).dictionary_encode(),
    ],
)
def test_columns_of_several_kinds_are_taken(values) -> None:
    found = decoded(encode_arrow(values, values, timestamps=NOW))
    assert found == [(NOW, value, value, []) for value in (b"a", None, "ç".encode())]


@pytest.mark.parametrize(
    "stamps",
    [
        pa.array([NOW, NOW + 1]),
        np.array([NOW, NOW + 1]),
        pa.array([NOW * 1000, NOW * 1000 + 1999], pa.timestamp("us", tz="UTC")),
        pa.chunked_array([[NOW], [NOW + 1]]),
    ],
)
def test_timestamps_of_several_kinds_are_taken(stamps) -> None:
    assert [row[0] for row in decoded(encode_arrow(pa.array([b"a", b"b"]), timestamps=stamps))] == [NOW, NOW + 1]


def test_large_binary_columns_are_wrapped() -> None:
    values = [b"ab", b"c", None, b"def"]
    assert list(BinaryColumn.from_arrow(pa.array(values, pa.large_binary()))) == values


def test_a_column_in_many_windows_is_encoded_without_copying_all_of_it_for_each() -> None:
    values = pa.array([bytes(16_000)] * 4000)  # 64 MB, eight windows
    groups = np.arange(4000) % 3
    before = pa.total_allocated_bytes()
    most = 0
    counts = [0, 0, 0]
    for group, batch in encode_divided(values, timestamps=NOW, groups=groups, limit=1 << 18):
        counts[group] += batch.count
        most = max(most, pa.total_allocated_bytes() - before)
    assert counts == [1334, 1333, 1333]
    assert most < 40 << 20


def calls_of(act) -> int:
    """How many functions, of Python and of C, are called in it."""
    count = 0

    def count_calls(_frame, event, _arg) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count_calls)
    try:
        act()
    finally:
        sys.setprofile(before)
    return count


def in_chunks(array, rows: int):
    return pa.chunked_array([array.slice(at, rows) for at in range(0, len(array), rows)])


def test_what_many_small_chunks_cost_is_not_by_the_chunk() -> None:
    values = pa.array([None if at % 7 == 0 else b"%0*d" % (at % 90, at) for at in range(20_000)])
    keys = pa.array([f"key {at % 50}" for at in range(20_000)])
    headers = pa.array(
        [[{"key": "a", "value": b"%d" % at}] * (at % 3) for at in range(20_000)],
        pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
    )

    def encode(*columns) -> list[bytes]:
        values, keys, headers = columns
        return [one.seal().data for one in encode_arrow(values, keys, timestamps=NOW, headers=headers, limit=1 << 18)]

    expected = encode(values, keys, headers)
    chunked = [in_chunks(column, 1) for column in (values, keys, headers)]
    assert encode(*chunked) == expected
    assert calls_of(lambda: encode(*chunked)) < 5000


def test_chunks_too_large_to_be_put_together_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_encoder, "_LARGER_CHUNK", 10)
    large = in_chunks(pa.array([bytes(1 << 28)]), 1)
    column = pa.chunked_array(large.chunks * 9)  # nine times the same 256 MiB, which fit no array of binary
    assert larger_chunks(column) is column
    assert larger_chunks(in_chunks(pa.array(range(95)), 1)).num_chunks == 10
    assert larger_chunks(in_chunks(pa.array(range(95)), 95)).num_chunks == 1
    assert larger_chunks(pa.chunked_array([], pa.binary())).num_chunks == 0


def test_a_batch_that_is_kept_does_not_keep_its_neighbours() -> None:
    values = pa.array([b"%0100d" % at for at in range(50_000)])
    before = pa.total_allocated_bytes()
    kept = [
        batch
        for group, batch in encode_divided(values, timestamps=NOW, groups=np.arange(50_000) % 50, limit=1 << 14)
        if group == 7
    ]
    assert sum(batch.count for batch in kept) == 1000
    assert pa.total_allocated_bytes() - before < 1 << 20


def test_a_null_header_is_refused_whatever_lies_under_it() -> None:
    pair = pa.StructArray.from_arrays(
        [pa.array(["a", "hidden"]), pa.array([b"1", b"hidden"])], ["key", "value"], mask=pa.array([False, True])
    )
    headers = pa.ListArray.from_arrays(pa.array([0, 2], pa.int32()), pair)
    with pytest.raises(IllegalArgumentError, match="a header without a key"):
        list(encode_arrow(pa.array([b"v"]), timestamps=NOW, headers=headers))


def test_headers_that_are_none_at_all() -> None:
    assert decoded(encode_arrow(pa.array([b"v"]), timestamps=NOW, headers=pa.nulls(1))) == [(NOW, None, b"v", [])]


def test_columns_that_do_not_fit_are_refused() -> None:
    values = pa.array([b"a", b"b"])
    one = pa.array([b"a"])
    pairs = pa.array(
        [[{"key": None, "value": b""}], []], pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    )
    for options in (
        {"keys": one},
        {"timestamps": pa.array([NOW])},
        {"timestamps": pa.array([NOW, None])},
        {"headers": pairs},
        {"keys": pa.array([1, 2])},
        {"headers": pa.array([[("a", b"1")], []], pa.map_(pa.string(), pa.binary()))},
        {"headers": pa.array([[1], []])},
        {"headers": pa.array(["a", "b"])},
        {"timestamps": 2**63},
        {"timestamps": pa.array([-(2**63), 2**63 - 1])},
    ):
        with pytest.raises(IllegalArgumentError):
            list(encode_arrow(values, **{"timestamps": NOW, **options}))


def test_no_rows_make_no_batch() -> None:
    assert list(encode_arrow(pa.array([], pa.binary()), timestamps=NOW)) == []
    assert list(encode_arrow(pa.chunked_array([], pa.binary()), timestamps=NOW)) == []
    assert len(decoded(encode_arrow(pa.nulls(3), timestamps=NOW))) == 3


def test_transactional_and_append_time_bits_reach_columns() -> None:
    data = reference.batch(
        [(0, NOW, None, b"a", [])], attributes=LOG_APPEND_TIME | TRANSACTIONAL, max_timestamp=NOW + 5
    )
    for numpy in (True, False):
        assert flat(RecordReader(data, "t", 0, 0).columns(numpy=numpy)) == [(0, NOW + 5, 1, None, b"a", [])]


@pytest.mark.parametrize("error", ["ImportError", "RuntimeError", "AttributeError"])
@pytest.mark.parametrize("package", ["numpy", "pyarrow"])
def test_a_package_that_is_broken_is_as_good_as_none(tmp_path, package, error):
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").write_text(f"raise {error}('half an upgrade')", encoding="utf-8")
    program = f"""
from kafka.record.columns import column_decoder
print(column_decoder().__module__)
try:
    column_decoder(True)
except {error} as error:
    print(error)
"""
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.splitlines() == ["kafka.record.columns", "half an upgrade"]
