"""Whatever the bytes: records that are right, or CorruptRecordError, in bounded time and memory (promise P10)."""

from __future__ import annotations

import tracemalloc
import zlib
from contextlib import suppress

import pytest
from hypothesis import example
from hypothesis import strategies as st

from kafka import codec
from kafka.codec._common import bounded
from kafka.errors import CorruptRecordError, KafkaError, UnsupportedCodecError
from kafka.record.batch import decode_batch
from kafka.record.batch_builder import BatchBuilder
from kafka.record.batch_reader import RecordReader
from kafka.record.header import read_header, scan
from kafka.record.log_append import down_convert, up_convert, validate_produced_batch
from kafka.record.message_v0_v1 import LegacyBuilder

from . import reference
from .strategies import given

NOW = 1_700_000_000_000
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


def sample(magic: int, name: str) -> bytes:
    builder = BatchBuilder(10_000, name) if magic == 2 else LegacyBuilder(magic, 10_000, name)
    builder.extend([b"some value that repeats " * 3] * 20, NOW)
    if magic == 2:
        builder.append(NOW + 5, b"key", None, [("name", b"value"), ("none", None)])
        builder.append(NOW + 5, b"key", b"", [])
    return builder.seal().data


SAMPLES = {
    f"v{magic}-{name}": sample(magic, name)
    for magic in (0, 1, 2)
    for name in CODECS
    if not (magic < 2 and name == "zstd")
}


def read_all(data: bytes, **options) -> list:
    """Take everything there is, skipping what is damaged; it must come to an end by itself."""
    one = RecordReader(data, "topic", 0, 0, **options)
    found = []
    for _ in range(2 * len(data) + 2):
        try:
            some = one.take(5)
        except CorruptRecordError as err:
            assert err.offset is not None
            assert err.reason
            one.skip()
            continue
        except UnsupportedCodecError:  # one of the numbers 5 to 7
            one.skip()
            continue
        if not some:
            assert one.exhausted
            return found
        found += some
    raise AssertionError("it goes on for ever")


@st.composite
def mutations(draw: st.DrawFn) -> tuple[bytes, bytes]:
    whole = draw(st.sampled_from(sorted(SAMPLES)))
    data = bytearray(SAMPLES[whole])
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data) - 1))
        what = draw(st.sampled_from(["set", "cut", "drop", "double"]))
        if what == "set":
            data[at] = draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF, data[at] ^ 1, data[at] ^ 0x80]))
        elif what == "cut":
            del data[at:]
        elif what == "drop":
            del data[at : at + draw(st.integers(1, 9))]
        else:
            data[at:at] = data[at : at + draw(st.integers(1, 9))]
        if not data:
            break
    return SAMPLES[whole], bytes(data)


@given(mutations(), examples=150)
def test_damaged_batches_give_records_or_corrupt_record_error(both: tuple[bytes, bytes]) -> None:
    whole, data = both
    good = {(row.key, row.value) for row in read_all(whole)}
    found = read_all(data)
    # A checksum of 32 bits covers all but offset, length, epoch and magic, so nothing else can have changed.
    assert {(row.key, row.value) for row in found} <= good


@given(mutations(), examples=150)
def test_damage_that_the_checksum_does_not_show_does_no_harm(both: tuple[bytes, bytes]) -> None:
    read_all(both[1], check_crcs=False, max_batch_bytes=1 << 20)


@given(mutations(), st.booleans(), examples=100)
def test_columns_of_damaged_batches_agree_with_plain_ones(both: tuple[bytes, bytes], check_crcs: bool) -> None:
    outcomes = []
    for numpy in (True, False):
        found = []
        one = RecordReader(both[1], "topic", 0, 0, check_crcs=check_crcs, max_batch_bytes=1 << 20)
        try:
            for part in one.columns(numpy=numpy):
                found += zip(part.offsets, part.keys, part.values, strict=True)
        except (CorruptRecordError, UnsupportedCodecError):
            found.append("damage")
        outcomes.append(found)
    assert outcomes[0] == outcomes[1]


@given(mutations(), examples=100)
def test_broker_side_raises_kafka_errors_only(both: tuple[bytes, bytes]) -> None:
    for act in (
        lambda data: validate_produced_batch(data, limit=1 << 20),
        lambda data: up_convert(data, 0, 0, limit=1 << 20),
        lambda data: down_convert(data, 0, limit=1 << 20),
    ):
        with suppress(KafkaError):
            act(both[1])


def test_a_wrong_checksum_is_damage_with_every_codec() -> None:
    for name, whole in SAMPLES.items():
        data = bytearray(whole)
        data[17 if name.startswith("v2") else 12] ^= 1
        assert len(read_all(bytes(data))) < len(read_all(whole)), name


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_every_truncation_is_seen(name: str) -> None:
    whole = SAMPLES[name]
    for size in range(len(whole)):
        found = RecordReader(whole[:size], "topic", 0, 0).take(99)
        if name not in ("v0-none", "v1-none"):  # there each message stands for itself
            assert found == []


@given(st.binary(max_size=60), st.integers(0, 9), examples=120)
@example(b"\x80" * 40, 1)
@example(b"\xff" * 11 + b"\x01", 1)
# Numbers in more bytes than they need: lengths of -1, 0 and 1, a timestamp of 0, two headers.
@example(b"\x90\x00\x00\x80\x00\x00\x81\x00\x81\x00\x00", 1)
@example(b"\x92\x80\x00\x00\x80\x80\x00\x00\x81\x80\x80\x00\x81\x80\x00"[:-1] + b"\x00\x00", 1)
@example(b"\x9e\x00\x00\x00\x00\x01\x01\x84\x00\x82\x00a\x81\x80\x00\x00\x00", 1)
@example(b"\x96\x00\x00\x00\x00\x03\x01\x00\x00\x00\x00\x00\x00", 1)
# A null in two bytes, and nothing where the number of headers should be.
@example(b"\x0c\x00\x00\x00\x01\x81\x00", 1)
@example(b"\x0e\x00\x00\x00\x01\x81\x80\x00", 1)
def test_decoder_agrees_with_the_reference_on_any_content(body: bytes, count: int) -> None:
    """All that a right checksum can cover: the same records, or refused by both."""
    if not count:
        return
    data = reference.batch([], body=body, count=count, base_offset=7, base_timestamp=NOW, last_offset_delta=2**31 - 1)
    try:
        expected = reference.rows_of_body(body, count, 7, NOW)
    except reference.Damaged:
        with pytest.raises(CorruptRecordError):
            decode_batch(data, read_header(data))
        return
    found = decode_batch(data, read_header(data))
    assert [(row.offset, row.timestamp, row.key, row.value, row.headers) for row in found] == expected


@st.composite
def nearly_right(draw: st.DrawFn) -> tuple[bytes, int]:
    """Records of equal shape with a few bytes changed: what the fast path for runs must not misread."""
    width = draw(st.sampled_from([0, 1, 5, 70]))
    key = draw(st.sampled_from([None, b"", b"key"]))
    count = draw(st.integers(13, 90))
    headers = draw(st.sampled_from([[], [], [("a", b"1")], [("n\u00e4me", b"value"), ("", None), ("b", b"")]]))
    rows = [(at, NOW + at * draw(st.sampled_from([0, 1, 70])), key, b"v" * width, headers) for at in range(count)]
    body = bytearray(b"".join(reference.record(row, 0, NOW) for row in rows))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(body) - 1))
        body[at] = draw(st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xFF, body[at] ^ 1, body[at] ^ 2, body[at] ^ 0x80]))
    return bytes(body), count


@given(nearly_right(), examples=150)
@example((b"".join(b"\x12\0\0%b\x06key\0\0" % bytes((25 if at == 12 else 2 * at,)) for at in range(13)), 13))
def test_runs_agree_with_the_reference(both: tuple[bytes, int]) -> None:
    body, count = both
    data = reference.batch([], body=body, count=count, base_timestamp=NOW, last_offset_delta=2**31 - 1)
    columns = {}
    for numpy in (True, False):
        try:
            parts = list(RecordReader(data, "", 0, 0).columns(numpy=numpy))
            columns[numpy] = [
                (part.offsets[at], part.timestamps[at], part.keys[at], part.values[at], part.headers[at])
                for part in parts
                for at in range(len(part))
            ]
        except CorruptRecordError:  # noqa: PERF203
            columns[numpy] = "damage"
    try:
        expected = reference.rows_of_body(body, count, 0, NOW)
    except reference.Damaged:
        with pytest.raises(CorruptRecordError):
            decode_batch(data, read_header(data))
        assert columns == {True: "damage", False: "damage"}
        return
    found = decode_batch(data, read_header(data))
    assert [(row.offset, row.timestamp, row.key, row.value, row.headers) for row in found] == expected
    assert columns == {True: expected, False: expected}


# Bombs


def peak_of(act) -> int:
    tracemalloc.start()
    try:
        act()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", CODECS[1:])
def test_bomb_is_refused_within_the_bound(name: str) -> None:
    number = codec.codec_id(name)
    packed = codec.compressor(number)(bytes(64 << 20))
    data = reference.batch([], body=packed, count=1, attributes=number)

    def act() -> None:
        with pytest.raises(CorruptRecordError, match="unpack"):
            RecordReader(data, "topic", 0, 0, max_batch_bytes=1 << 20).take(1)

    assert peak_of(act) < 40 << 20


def test_lies_about_the_size_are_not_believed() -> None:
    claims = b"\xff\xff\xff\xff\x07"  # snappy: 2 GiB
    data = reference.batch([], body=claims + b"\0" * 100, count=1, attributes=2)

    def act() -> None:
        with pytest.raises(CorruptRecordError, match="unpack"):
            RecordReader(data, "topic", 0, 0).take(1)

    assert peak_of(act) < 1 << 20


def test_no_more_is_unpacked_than_the_format_can_explain() -> None:
    # Gigabytes are allowed, but 100 bytes of deflate make 103,200 at most.
    assert bounded(1, 100, 1 << 30) < 110_000
    packed = zlib.compress(bytes(100_000))
    assert len(packed) * 1032 + 1024 >= 100_000


@pytest.mark.parametrize("count", [2**31 - 1, 1_000_000])
def test_claimed_count_allocates_nothing(count: int) -> None:
    data = reference.batch([], body=b"\0" * 100, count=count, last_offset_delta=2**31 - 1)

    def act() -> None:
        with pytest.raises(CorruptRecordError):
            RecordReader(data, "topic", 0, 0).take(2**31)

    assert peak_of(act) < 1 << 20


def test_reading_a_large_fetch_keeps_one_batch_and_what_was_taken() -> None:
    """A fetch of 15 MB in compressed batches of 1 MB: beyond the fetch, one unpacked batch and 500 records."""
    builder = BatchBuilder(1 << 20, "lz4")
    values = [bytes([65 + at % 26]) * 1000 for at in range(2000)]
    taken = builder.extend(values, NOW)
    assert taken > 1000
    raw = builder.seal().data
    batches = 15
    data = b"".join((at * taken).to_bytes(8, "big") + raw[8:] for at in range(batches))
    unpacked = 1 << 20

    def act() -> None:
        one = RecordReader(data, "topic", 0, 0)
        total = 0
        while some := one.take(500):
            total += len(some)
        assert total == taken * batches

    # Twice, as a record outlives the take of the next ones; and a little for headers and lists.
    assert peak_of(act) < 2 * (unpacked + 500 * 1600) + (1 << 20)


def test_scan_neither_unpacks_nor_parses() -> None:
    data = bytearray(SAMPLES["v2-gzip"])
    data[61:] = b"\xee" * (len(data) - 61)
    header = next(scan(data))
    assert (header.count, header.codec) == (22, 1)


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("name", ["none", "gzip"])
@pytest.mark.parametrize("base_offset", [2**63 - 1, 2**63 - 2, 2**63 - 20])
def test_offsets_that_no_position_can_follow_are_refused(magic: int, name: str, base_offset: int) -> None:
    # A wrapper of the old formats has the offset of its last message.
    data = base_offset.to_bytes(8, "big") + SAMPLES[f"v{magic}-{name}"][8:]
    count = {(2, "none"): 22, (2, "gzip"): 22}.get((magic, name), 1)
    if base_offset + count - 1 > 2**63 - 2:
        with pytest.raises(CorruptRecordError) as info:
            read_header(data)
        assert info.value.offset == base_offset
    else:
        assert read_header(data) is not None


def test_a_wrapper_whose_messages_count_beyond_64_bits_is_refused() -> None:
    messages = LegacyBuilder(1, 10_000, "gzip")
    messages.append_at(2**62, NOW, None, b"v" * 100)
    messages.append_at(0, NOW, None, b"v" * 100)
    data = messages.seal(wrapper_offset=2**63 - 10).data
    with pytest.raises(CorruptRecordError, match="64 bits"):
        RecordReader(data, "topic", 0, 0).take(5)
