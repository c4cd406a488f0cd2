from __future__ import annotations

import copy
import gc
import pickle
import struct
import tracemalloc
from itertools import permutations

import pytest
from hypothesis import strategies as st

from kafka.errors import CorruptRecordError, RecordDeserializationError
from kafka.record import batch as batch_module
from kafka.record import batch_reader as reader_module
from kafka.record.batch_builder import BatchBuilder
from kafka.record.batch_reader import RecordReader
from kafka.record.consumer_record import ConsumerRecord
from kafka.record.control import ABORT, COMMIT, encode_marker
from kafka.record.header import CONTROL, DELETE_HORIZON, LOG_APPEND_TIME, TRANSACTIONAL, scan
from kafka.record.message_v0_v1 import LegacyBuilder, encode_message

from . import reference
from .strategies import PLAIN_RECORDS, RECORDS, given

NOW = 1_700_000_000_000


def rows(count: int, start: int = 0) -> list[reference.Row]:
    return [(start + index, NOW + index, None, b"value %d" % (start + index), []) for index in range(count)]


def batch(start: int, count: int, **options) -> bytes:
    return reference.batch(rows(count, start), base_offset=start, **options)


def marker(offset: int, kind: int, producer: int) -> bytes:
    data = bytearray(encode_marker(kind, producer_id=producer, producer_epoch=0, coordinator_epoch=0, timestamp=NOW))
    data[:8] = offset.to_bytes(8, "big")
    return bytes(data)


def reader(data, offset: int = 0, **options) -> RecordReader:
    return RecordReader(data, "topic", 3, offset, **options)


def offsets(found) -> list[int]:
    return [row.offset for row in found]


def take_all(one: RecordReader, step: int = 7) -> list:
    found = []
    while some := one.take(step):
        found += some
    return found


@given(st.one_of(RECORDS, PLAIN_RECORDS), st.integers(1, 100), st.sampled_from([bytes, bytearray, memoryview]))
def test_records_come_back_as_they_were(records: list[tuple], step: int, kind: type) -> None:
    data = reference.batch([(50 + at, *record) for at, record in enumerate(records)], base_offset=50, leader_epoch=4)
    one = reader(kind(data))
    found = take_all(one, step)
    assert [(row.timestamp, row.key, row.value, row.headers) for row in found] == [tuple(record) for record in records]
    assert offsets(found) == list(range(50, 50 + len(records)))
    for row in found:
        assert (row.topic, row.partition, row.timestamp_type, row.checksum, row.leader_epoch) == (
            "topic",
            3,
            0,
            None,
            4,
        )
        assert row.serialized_key_size == (-1 if row.key is None else len(row.key))
        assert row.serialized_value_size == (-1 if row.value is None else len(row.value))
        total = sum(len(name.encode()) + len(value or b"") for name, value in row.headers)
        assert row.serialized_header_size == (total if row.headers else -1)
        assert type(row.key) in (bytes, type(None))
    assert one.exhausted
    assert one.next_offset == 50 + len(records)


@given(st.lists(st.integers(-8192, 8191), min_size=1, max_size=90), st.sampled_from([1, 40]), st.integers(1, 150))
def test_pieces_of_any_size_are_as_good_as_the_whole(deltas: list[int], repeats: int, step: int) -> None:
    times = [NOW, *(NOW + delta for delta in deltas for _ in range(repeats))][:200]
    records = [(at, time, b"key %d" % (at % 2), bytes(100), []) for at, time in enumerate(times)]
    data = reference.batch(records)
    pieces = take_all(reader(data), step)
    assert pieces == reader(data).take(len(records))
    assert [(row.offset, row.timestamp, row.key, row.value) for row in pieces] == [row[:4] for row in records]


@pytest.mark.parametrize("verified", [False, True])
def test_a_batch_that_only_damage_makes_a_marker_is_not_passed_over(verified: bool) -> None:
    bad = bytearray(batch(3, 3))
    bad[22] |= CONTROL
    one = reader(batch(0, 3) + bytes(bad) + batch(6, 3))
    if verified:
        one.verify()
    assert offsets(one.take(3)) == [0, 1, 2]
    with pytest.raises(CorruptRecordError) as caught:
        one.take(3)
    assert caught.value.offset == 3
    one.skip()
    assert offsets(take_all(one)) == [6, 7, 8]
    with pytest.raises(CorruptRecordError):
        list(reader(bytes(bad), 3).columns())


@pytest.mark.parametrize("count", [1, 3, 30, 300])
def test_a_header_key_that_is_not_utf_8_does_not_stop_the_reading(count: int) -> None:
    named = [(*row[:4], [("z\u00e4", b"1")]) for row in rows(count)]
    body = b"".join(reference.record(row, 0, NOW) for row in named).replace("\u00e4".encode(), b"\xff\xfe")
    data = reference.batch([], body=body, count=count, base_timestamp=NOW, last_offset_delta=count - 1)
    assert [row.headers for row in take_all(reader(data))] == [[("z\ufffd\ufffd", b"1")]] * count
    for numpy in (True, False):
        (columns,) = reader(data).columns(numpy=numpy)
        assert [columns.headers[at] for at in range(count)] == [[("z\ufffd\ufffd", b"1")]] * count


@pytest.mark.parametrize("count", [3, 30])
def test_headers_of_one_record_do_not_become_another_s(count: int) -> None:
    found = reader(batch(0, count)).take(count)
    with pytest.raises(TypeError, match="copy it first"):
        found[0].headers.append(("retry", b"1"))
    with pytest.raises(TypeError, match="copy it first"):
        found[0].headers[:] = [("retry", b"1")]
    extra = [("retry", b"1")]
    assert found[0].headers + extra == extra
    for same in (pickle.loads(pickle.dumps(found[0])), copy.deepcopy(found[0])):
        assert same == found[0]
        same.headers.append(("mine", None))
    assert found[1].headers == []
    written = reference.batch([(at, NOW, None, b"v", [("a", b"1")]) for at in range(count)])
    found = reader(written).take(count)
    found[0].headers.append(("retry", b"1"))
    assert found[1].headers == [("a", b"1")]


@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(0, 5)), min_size=1, max_size=6),
    st.integers(0, 200),
    st.integers(1, 60),
)
def test_taking_begins_at_the_offset_and_misses_none(batches: list[tuple[int, int]], first: int, step: int) -> None:
    data, offset, present = b"", 0, []
    for count, gap in batches:
        data += batch(offset, count, last_offset_delta=count - 1 + gap)
        present += range(offset, offset + count)
        offset += count + gap
    one = reader(data, first)
    assert offsets(take_all(one, step)) == [at for at in present if at >= first]
    assert one.next_offset == max(offset, first)


def test_next_offset_passes_what_compaction_removed() -> None:
    # KAFKA-5443: the last record of the batch is gone; its offset must not be asked for again and again.
    one = reader(batch(10, 2, last_offset_delta=9))
    assert offsets(one.take(1)) == [10]
    assert one.next_offset == 11
    assert offsets(one.take(1)) == [11]
    assert one.next_offset == 20


def test_empty_compacted_batch_is_passed() -> None:
    empty = reference.batch([], base_offset=5, last_offset_delta=4)
    one = reader(empty + batch(10, 1), 5)
    assert offsets(one.take(10)) == [10]
    one = reader(empty, 5)
    assert one.take(10) == []
    assert one.next_offset == 10
    assert one.exhausted


def test_gaps_between_records_are_kept() -> None:
    some = [row for row in rows(100) if row[0] % 3]
    assert offsets(reader(reference.batch(some)).take(200)) == [row[0] for row in some]


@pytest.mark.parametrize("missing", [1, 20, 60, 100])
def test_batch_that_is_cut_off_is_left_for_the_next_fetch(missing: int) -> None:
    data = batch(0, 3) + batch(3, 20)
    one = reader(data[:-missing])
    assert one.is_cut_off
    assert not reader(data).is_cut_off
    assert offsets(one.take(100)) == [0, 1, 2]
    assert one.exhausted
    assert one.next_offset == 3


def test_append_time_stands_for_all_records() -> None:
    data = batch(0, 30, attributes=LOG_APPEND_TIME, max_timestamp=NOW + 999)
    assert {(row.timestamp, row.timestamp_type) for row in reader(data).take(99)} == {(NOW + 999, 1)}


def test_delete_horizon_is_the_base_of_timestamps_as_well() -> None:
    # KIP-534: the field of the base timestamp holds the horizon, and the deltas count from it.
    data = batch(0, 3, attributes=DELETE_HORIZON, base_timestamp=NOW + 500)
    assert next(scan(data)).delete_horizon_ms == NOW + 500
    assert [row.timestamp for row in reader(data).take(9)] == [NOW, NOW + 1, NOW + 2]


# Transactions


def transactional(start: int, count: int, producer: int) -> bytes:
    return batch(start, count, attributes=TRANSACTIONAL, producer=(producer, 0, 0))


def test_control_batches_are_never_delivered() -> None:
    data = transactional(0, 2, 7) + marker(2, COMMIT, 7) + batch(3, 1)
    assert offsets(reader(data).take(9)) == [0, 1, 3]
    one = reader(data[: -len(batch(3, 1))])
    assert offsets(one.take(9)) == [0, 1]
    assert one.next_offset == 3


LOG = (
    transactional(0, 2, 7)
    + transactional(2, 2, 8)
    + batch(4, 1)
    + marker(5, ABORT, 7)
    + transactional(6, 1, 7)
    + marker(7, COMMIT, 8)
    + transactional(8, 2, 7)
    + marker(10, COMMIT, 7)
    + transactional(11, 1, 8)
    + marker(12, ABORT, 8)
)


@pytest.mark.parametrize("aborted", [[(7, 0), (8, 11)], [(8, 11), (7, 0)]])
def test_aborted_records_are_left_out_if_only_committed_ones_are_wanted(aborted: list) -> None:
    one = reader(LOG, read_committed=True, aborted=aborted)
    assert offsets(take_all(one, 2)) == [2, 3, 4, 6, 8, 9]
    assert one.next_offset == 13
    assert offsets(reader(LOG, aborted=aborted).take(99)) == [0, 1, 2, 3, 4, 6, 8, 9, 11]


def test_aborted_transaction_that_began_before_the_buffer_counts() -> None:
    assert offsets(reader(LOG, 1, read_committed=True, aborted=[(7, 0), (8, 11)]).take(99)) == [2, 3, 4, 6, 8, 9]


def test_batches_outside_transactions_are_not_aborted() -> None:
    # The same producer id with and without the transactional bit (idempotent only).
    data = batch(0, 1, producer=(7, 0, 0)) + marker(1, ABORT, 7)
    assert offsets(reader(data, read_committed=True, aborted=[(7, 0)]).take(9)) == [0]


def test_emptied_control_batch_ends_nothing() -> None:
    empty = reference.batch([], base_offset=2, attributes=CONTROL | TRANSACTIONAL, producer=(7, 0, -1))
    data = transactional(0, 2, 7) + empty + transactional(3, 1, 7) + marker(4, ABORT, 7)
    assert reader(data, read_committed=True, aborted=[(7, 0)]).take(9) == []


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The base offsets of the batches whose checksum was computed, in order."""
    found: list[int] = []
    offsets_by_content = {LOG[header.position + 21 : header.end]: header.base_offset for header in scan(LOG)}
    real = batch_module.crc32c

    def checksum(data, value=0) -> int:
        found.append(offsets_by_content[bytes(data)])
        return real(data, value)

    monkeypatch.setattr(batch_module, "crc32c", checksum)
    monkeypatch.setattr(reader_module, "fastest", lambda: checksum)
    return found


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("committed", [False, True])
@pytest.mark.parametrize("offset", [0, 3])
def test_each_checksum_is_computed_once(checked: list[int], committed: bool, ahead: bool, offset: int) -> None:
    one = reader(LOG, offset, read_committed=committed, aborted=[(7, 0), (8, 11)] if committed else ())
    if ahead:
        one.verify()
    take_all(one, 2)
    assert one.exhausted
    assert checked == [header.base_offset for header in scan(LOG)]
    checked.clear()
    take_all(reader(LOG, offset, check_crcs=False, read_committed=committed, aborted=[(7, 0)] if committed else ()))
    assert checked == []


def test_a_damaged_offset_does_not_begin_transactions_that_come_later() -> None:
    damaged = bytearray(transactional(2, 1, 8))
    damaged[25] = 1  # the last offset delta
    data = transactional(0, 2, 7) + bytes(damaged) + transactional(3, 1, 7) + marker(4, COMMIT, 7) + batch(5, 1)
    one = reader(data, read_committed=True, aborted=[(7, 6)])
    assert offsets(one.take(9)) == [0, 1]
    with pytest.raises(CorruptRecordError) as caught:
        one.take(9)
    assert caught.value.offset == 2
    assert one.skip_target == range(3, 4)  # where the next one begins, whatever the damaged one says
    one.skip()
    assert offsets(take_all(one)) == [3, 5]


def test_behind_a_damaged_batch_of_a_transaction_is_where_to_continue() -> None:
    data = transactional(0, 2, 7) + transactional(2, 2, 8)[:-1] + b"?" + transactional(4, 1, 7) + marker(5, ABORT, 7)
    one = reader(data, read_committed=True, aborted=[(7, 4)])
    assert offsets(one.take(9)) == [0, 1]
    with pytest.raises(CorruptRecordError) as caught:
        one.take(9)
    assert caught.value.offset == 2
    assert one.skip_target == range(4, 5)
    one.skip()
    assert one.take(9) == []
    assert one.next_offset == 6


# Old formats and mixtures


def sealed(magic: int, records: list[tuple], start: int, codec: str | None) -> bytes:
    """Records from that offset on, as a broker stores them."""
    if magic == 2:
        builder = BatchBuilder(1 << 20, codec)
        for record in records:
            builder.append(*record)
        return start.to_bytes(8, "big") + builder.seal().data[8:]
    old = LegacyBuilder(magic, 1 << 20, codec)
    for record in records:
        old.append(*record)
    if codec:
        return old.seal(wrapper_offset=start + len(records) - 1).data
    return b"".join(
        encode_message(magic, start + at, timestamp, key, value) for at, (timestamp, key, value) in enumerate(records)
    )


@pytest.mark.parametrize("codec", [None, "gzip"])
@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("count", [1, 40], ids=["alone", "run"])
def test_tombstones_keep_their_key_and_have_none_for_a_value(magic: int, codec: str | None, count: int) -> None:
    records = [(NOW, b"k%d" % at, None) for at in range(count)] + [(NOW, b"k0", b""), (NOW, None, None)]
    data = sealed(magic, records, 0, codec)
    found = reader(data).take(99)
    assert [(row.key, row.value) for row in found] == [record[1:] for record in records]
    assert [row.serialized_value_size for row in found] == [-1] * count + [0, -1]
    (columns,) = reader(data).columns()
    assert list(zip(columns.keys, columns.values, strict=True)) == [record[1:] for record in records]


@pytest.mark.parametrize("codecs", [(None, None, None), ("gzip", None, "gzip"), (None, "gzip", None)])
@pytest.mark.parametrize("order", list(permutations([0, 1, 2])))
def test_batches_of_several_magics_in_one_buffer_come_in_their_order(
    order: tuple[int, ...], codecs: tuple[str | None, ...]
) -> None:
    data = b""
    expected = []
    for magic, codec in zip(order, codecs, strict=True):
        start = len(expected)
        records = [(NOW + at, b"k%d" % (start + at), b"v" * at) for at in range(15)]
        # The builder numbers what is within a wrapper from 0 on; in v0 these are the offsets, which a broker then sets.
        data += sealed(magic, records, start, None if magic == 0 else codec)
        expected += [
            (start + at, None if magic == 0 else timestamp, key, value)
            for at, (timestamp, key, value) in enumerate(records)
        ]
    for step in (1, 7, 100):
        found = take_all(reader(data), step)
        assert [(row.offset, row.timestamp, row.key, row.value) for row in found] == expected
    parts = list(reader(data).columns())
    assert [offset for part in parts for offset in part.offsets] == [row[0] for row in expected]
    assert [value for part in parts for value in part.values] == [row[3] for row in expected]


def test_formats_may_follow_each_other_in_one_buffer() -> None:
    v0, v1 = encode_message(0, 0, -1, b"k", b"a"), encode_message(1, 1, NOW, None, b"b")
    found = reader(v0 + v1 + batch(2, 1)).take(9)
    assert [(row.offset, row.timestamp, row.timestamp_type, row.value) for row in found] == [
        (0, None, None, b"a"),
        (1, NOW, 0, b"b"),
        (2, NOW, 0, b"value 2"),
    ]
    assert found[0].checksum is not None
    assert found[2].checksum is None


@pytest.mark.parametrize("step", [1, 2, 100])
def test_wrapped_messages_are_taken_one_by_one(step: int) -> None:
    builder = LegacyBuilder(1, 10_000, "gzip")
    builder.extend([b"value" * 20] * 5, NOW)
    one = reader(builder.seal(wrapper_offset=14).data, 11)
    assert offsets(take_all(one, step)) == [11, 12, 13, 14]
    assert one.next_offset == 15


# Damage


class Attributed(ConsumerRecord):
    """A record that takes attributes."""


@pytest.mark.parametrize("deserializer", [None, bytes.upper], ids=["bytes", "deserialized"])
def test_records_are_of_the_class_that_is_asked_for_in_every_format(deserializer) -> None:
    old = encode_message(0, 0, -1, b"k", b"a") + encode_message(1, 1, NOW, None, b"b")
    # One size, which is decoded in runs; sizes that differ, with what is decoded ahead of the step.
    data = old + batch(2, 60) + reference.batch([(62 + n, NOW, None, b"v" * n, []) for n in range(20)], base_offset=62)
    found = take_all(reader(data, record_type=Attributed, value_deserializer=deserializer))
    assert {type(record) for record in found} == {Attributed}
    assert found == take_all(reader(data, value_deserializer=deserializer))
    assert offsets(found) == list(range(82))


def damaged(data: bytes, at: int) -> bytes:
    changed = bytearray(data)
    changed[at] ^= 0x40
    return bytes(changed)


def test_damaged_batch_comes_after_the_good_ones_and_again_until_skipped() -> None:
    good, bad = batch(0, 3), batch(3, 3)
    one = reader(good + damaged(bad, len(bad) - 2) + batch(6, 1))
    assert offsets(one.take(5)) == [0, 1, 2]
    assert one.next_offset == 3
    for _ in range(2):
        with pytest.raises(CorruptRecordError, match="checksum") as caught:
            one.take(5)
        assert caught.value.offset == 3
        assert caught.value.topic_partition == ("topic", 3)
    one.skip()
    assert one.next_offset == 6
    assert offsets(one.take(5)) == [6]
    assert one.exhausted


def test_checksums_are_not_looked_at_where_not_wanted() -> None:
    bad = damaged(batch(0, 3), 20)  # within the checksum itself
    assert offsets(reader(bad, check_crcs=False).take(9)) == [0, 1, 2]
    with pytest.raises(CorruptRecordError):
        reader(bad).take(9)


@pytest.mark.parametrize("count", [0, 2, 4, 500, 2**31 - 1])
@pytest.mark.parametrize("step", [1, 9])
def test_batch_that_claims_another_number_of_records_is_refused_as_a_whole(count: int, step: int) -> None:
    data = reference.batch(rows(3), count=count, last_offset_delta=2**31 - 1)
    one = reader(data)
    with pytest.raises(CorruptRecordError):
        one.take(step)
    one.skip()
    assert one.take(9) == []


def test_length_that_no_batch_has_ends_the_buffer() -> None:
    for length in (-1, 0, 13, 48):
        data = bytearray(batch(3, 1))
        data[8:12] = length.to_bytes(4, "big", signed=True)
        one = reader(batch(0, 3) + bytes(data))
        assert offsets(one.take(9)) == [0, 1, 2]
        with pytest.raises(CorruptRecordError) as caught:
            one.take(9)
        assert caught.value.offset == 3
        one.skip()
        assert one.take(9) == []
        assert one.exhausted
        assert one.next_offset == 3


def test_prepare_keeps_what_goes_wrong_for_take() -> None:
    bad = batch(0, 1)
    one = reader(damaged(bad, len(bad) - 1))
    one.prepare()
    with pytest.raises(CorruptRecordError):
        one.take(1)
    two = reader(batch(0, 2))
    two.prepare()
    assert offsets(two.take(9)) == [0, 1]


@pytest.mark.parametrize("room", [1, 150, 1 << 20])
@pytest.mark.parametrize("wrong", [None, 0, 1, 2])
def test_batches_are_verified_in_pieces_as_in_one(room: int, wrong: int | None) -> None:
    batches = [batch(0, 3), batch(3, 1), batch(4, 5)]
    if wrong is not None:
        batches[wrong] = damaged(batches[wrong], len(batches[wrong]) - 1)
    whole, pieces = reader(b"".join(batches), 1), reader(b"".join(batches), 1)
    expected, found, count = whole.verify(), pieces.verify(room), 1
    while not found.at_end:
        found, count = pieces.verify(room, found), count + 1
    assert found == expected
    assert found.offset == 9
    assert count == {1: 3, 150: 2, 1 << 20: 1}[room]
    assert whole._verified_to == pieces._verified_to


def test_verified_batches_are_not_checked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    bad = batch(3, 1)
    one = reader(batch(0, 3) + damaged(bad, len(bad) - 1))
    one.verify()
    checked = []

    real = batch_module.check_batch
    monkeypatch.setattr(
        batch_module, "check_batch", lambda buffer, header: (checked.append(header.base_offset), real(buffer, header))
    )
    assert offsets(one.take(9)) == [0, 1, 2]
    with pytest.raises(CorruptRecordError):
        one.take(9)
    assert set(checked) == {3}


# Deserializers


def test_deserializers_make_keys_and_values() -> None:
    one = reader(batch(0, 3), value_deserializer=lambda data: data.decode())
    assert [row.value for row in one.take(2)] == ["value 0", "value 1"]
    assert one.next_offset == 2
    one = reader(batch(0, 3), key_deserializer=repr)
    row = one.take(1)[0]
    assert (row.key, row.serialized_key_size, row.value) == ("None", -1, b"value 0")


def test_refused_record_comes_after_the_good_ones_and_can_be_stepped_over() -> None:
    def picky(data: bytes) -> str:
        if data in (b"value 1", b"value 2"):
            raise ValueError("not that one")
        return data.decode()

    one = reader(batch(0, 5), value_deserializer=picky)
    assert [row.value for row in one.take(5)] == ["value 0"]
    assert not one.exhausted
    for offset in (1, 2):
        assert one.next_offset == offset
        for _ in range(2):
            with pytest.raises(RecordDeserializationError) as caught:
                one.take(5)
        error = caught.value
        assert (error.offset, error.origin, error.value_bytes, error.key_bytes) == (
            offset,
            "value",
            b"value %d" % offset,
            None,
        )
        assert error.topic_partition == ("topic", 3)
        assert isinstance(error.__cause__, ValueError)
        one.skip()
    assert [row.value for row in one.take(5)] == ["value 3", "value 4"]
    assert one.next_offset == 5
    assert one.exhausted


@pytest.mark.parametrize("count", [5, 3, 1])
def test_columns_after_a_refused_record_begin_with_that_record(count: int) -> None:
    def picky(data: bytes) -> bytes:
        if data in (b"value 1", b"value 2"):
            raise ValueError("not that one")
        return data

    one = reader(batch(0, 5) + batch(5, 3), value_deserializer=picky)
    assert offsets(one.take(count)) == [0]
    if count > 1:
        with pytest.raises(RecordDeserializationError):
            one.take(5)
    assert one.next_offset == 1
    found = list(one.columns())
    assert [offset for columns in found for offset in columns.offsets] == list(range(1, 8))
    assert one.next_offset == 8
    assert one.exhausted
    assert one.take(5) == []


def test_record_is_a_tuple_in_the_order_of_the_manual() -> None:
    row = reader(batch(0, 1)).take(1)[0]
    assert row[:8] == ("topic", 3, 0, NOW, 0, None, b"value 0", None)
    assert row._fields[8:] == (
        "serialized_key_size",
        "serialized_value_size",
        "headers",
        "leader_epoch",
        "serialized_header_size",
    )


@pytest.mark.parametrize("codec", [None, "gzip"])
def test_a_large_fetch_takes_no_more_memory_than_itself_one_batch_and_the_records_taken(codec: str | None) -> None:
    builder = BatchBuilder(1 << 30, codec)
    builder.extend([bytes(900 + at % 200) for at in range(1000)], NOW)
    one = builder.seal()
    fetched = b"".join(struct.pack(">q", at * 1000) + one.data[8:] for at in range(10))
    take_all(reader(one.data), 500)  # tables that are made once for the process are no part of it
    found = reader(fetched)
    found.take(1)
    gc.collect()
    tracemalloc.start()
    try:
        count = 1
        while taken := len(found.take(500)):
            count += taken
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == 1000 * 10
    # A batch, its keys and values while it is taken in pieces, and 500 records with the 500 before them.
    assert peak < 4 * one.uncompressed_size
