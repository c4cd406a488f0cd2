"""What producers send: taken as it is, rewritten, or refused, but never a surprise."""

from __future__ import annotations

import random
import struct
import tracemalloc

import pytest

from kafka.broker.storage.log import LogConfig
from kafka.broker.storage.validation import Heavy, Refused, accept, is_transactional
from kafka.record.batch import decode_batch
from kafka.record.batch_builder import BatchBuilder
from kafka.record.crc32c import crc32c
from kafka.record.header import scan
from kafka.record.message_v0_v1 import LegacyBuilder
from kafka.structs import TopicPartition

NOW = 1_700_000_000_000
TP = TopicPartition("events", 3)


def batch(
    *values: bytes | None, codec: str | None = None, key: bytes | None = b"k", at: int = NOW, **seal: object
) -> bytes:
    builder = BatchBuilder(2**30, codec)
    for number, value in enumerate(values):
        builder.append(at + number, key, value, [("h", b"1")])
    return builder.seal(**seal).data  # type: ignore[arg-type]


def take(data: bytes, version: int = 9, **config: object) -> list[tuple[int, bytes | None]]:
    taken = accept(data, version, LogConfig(**config), TP, NOW)  # type: ignore[arg-type]
    (header,) = scan(taken.data)
    assert header == taken.header
    return [(row.timestamp or 0, row.value) for row in decode_batch(taken.data, header)]


def test_a_good_batch_is_taken_byte_for_byte() -> None:
    data = batch(b"a", b"b", codec="gzip")
    assert accept(data, 9, LogConfig(), TP, NOW).data is data


def test_another_codec_keeps_producer_and_records() -> None:
    data = batch(b"a" * 500, b"b", producer_id=7, producer_epoch=1, base_sequence=40, transactional=True)
    for compression, codec in (("zstd", 4), ("gzip", 1), ("lz4", 3), ("snappy", 2)):
        header = accept(data, 9, LogConfig(compression=compression), TP, NOW).header
        assert (header.codec, header.producer_id, header.producer_epoch, header.base_sequence) == (codec, 7, 1, 40)
        assert header.is_transactional
        assert take(data, compression=compression) == [(NOW, b"a" * 500), (NOW + 1, b"b")]
    packed = accept(data, 9, LogConfig(compression="zstd"), TP, NOW).data
    assert accept(bytes(packed), 9, LogConfig(compression="uncompressed"), TP, NOW).header.codec == 0


def test_the_brokers_time_takes_the_place_of_the_producers() -> None:
    taken = accept(batch(b"a", at=5), 9, LogConfig(append_time=True), TP, NOW)
    assert (taken.append_time, taken.header.max_timestamp, taken.header.timestamp_type) == (NOW, NOW, 1)
    assert take(batch(b"a", at=5), append_time=True, compression="lz4") == [(NOW, b"a")]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [None, "gzip"])
def test_old_formats_become_new_ones(magic: int, codec: str | None) -> None:
    old = LegacyBuilder(magic, 10_000, codec)
    old.append(NOW, b"k", b"v")
    old.append(NOW, b"k", None)
    data = old.seal().data
    assert take(data, version=1 + magic) == [(NOW if magic else -1, b"v"), (NOW if magic else -1, None)]
    assert take(data, version=1 + magic, append_time=True) == [(NOW, b"v"), (NOW, None)]
    with pytest.raises(Refused) as refused:
        accept(data, 3, LogConfig(), TP, NOW)
    assert refused.value.code == 87


def test_a_refused_request_gets_the_reason() -> None:
    def refused(data: bytes, version: int = 9, **config: object) -> Refused:
        with pytest.raises(Refused) as caught:
            accept(data, version, LogConfig(**config), TP, NOW)  # type: ignore[arg-type]
        return caught.value

    assert refused(b"").code == 87
    assert refused(batch(b"a" * 500, codec="zstd"), 6).code == 76
    assert refused(batch(b"a" * 100), max_message_bytes=100).code == 10
    # What grows when the broker unpacks it, and what no segment can hold.
    grows = batch(b"a" * 1000, codec="gzip")
    assert len(grows) < 200
    assert refused(grows, max_message_bytes=200, compression="uncompressed").code == 10
    assert take(grows, max_message_bytes=200)
    too_long = refused(batch(b"a" * 1000), segment_bytes=1000)
    assert (too_long.code, too_long.by_log) == (18, False)
    assert refused(grows, segment_bytes=1000, compression="uncompressed").code == 18
    assert refused(batch(b"a", at=NOW + 10**9)).records[0][0] == 0
    assert refused(batch(b"a", at=NOW - 5000), timestamp_before_max_ms=100).code == 32
    keyless = refused(batch(b"a", b"b", key=None), compacts=True)
    assert [index for index, _ in keyless.records] == [0, 1]
    assert "events-3" in str(keyless.records[0][1])
    assert refused(batch(b"a", control=True, producer_id=1, producer_epoch=0, base_sequence=0)).code == 87


def test_transactional_batches_are_seen_at_a_glance() -> None:
    assert is_transactional(batch(b"a", producer_id=1, producer_epoch=0, base_sequence=0, transactional=True))
    for other in (batch(b"a"), b"", b"x" * 30, None):
        assert not is_transactional(other)


def test_no_bytes_bring_anything_but_a_refusal() -> None:
    rng = random.Random(11)
    good = [batch(b"a" * 30, b"b", codec=codec) for codec in (None, "gzip", "snappy", "lz4", "zstd")]
    old = LegacyBuilder(1, 1000, "gzip")
    old.append(NOW, b"k", b"v" * 50)
    good.append(old.seal().data)
    outcomes = {"taken": 0, "refused": 0}
    for _ in range(3000):
        data = bytearray(rng.choice(good))
        for _ in range(rng.randrange(4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        if rng.random() < 0.3:
            del data[rng.randrange(len(data)) :]
        try:
            taken = accept(bytes(data), rng.randrange(14), LogConfig(compacts=rng.random() < 0.2), TP, NOW)
        except Refused as refused:
            assert refused.code > 0
            outcomes["refused"] += 1
        else:
            assert decode_batch(taken.data, taken.header)
            outcomes["taken"] += 1
    assert min(outcomes.values()) > 100


# What takes long, or would take the memory

MANY = [b""] * 20_001


@pytest.mark.parametrize(
    "data",
    [batch(*MANY), batch(b"\0" * (5 << 20), codec="gzip"), batch(b"\0" * (5 << 20), codec="zstd")],
    ids=["many records", "gzip", "zstd"],
)
def test_what_takes_long_to_check_is_left_to_a_thread(data: bytes) -> None:
    config = LogConfig(compression="producer")
    with pytest.raises(Heavy):
        accept(data, 9, config, TP, NOW, quick=True)
    assert accept(data, 9, config, TP, NOW).data is data


def test_an_old_message_set_that_takes_long_is_left_to_a_thread_as_well() -> None:
    builder = LegacyBuilder(1, 2**30, "gzip")
    builder.append(NOW, None, b"\0" * (5 << 20))
    data = builder.seal().data
    with pytest.raises(Heavy):
        accept(data, 2, LogConfig(), TP, NOW, quick=True)
    assert accept(data, 2, LogConfig(), TP, NOW).header.count == 1


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("old", [False, True], ids=["v2", "v1"])
def test_a_batch_unpacks_to_64_times_what_it_may_have(codec: str, old: bool) -> None:
    if old and codec == "zstd":
        return  # not in that format
    value = b"\0" * (65 << 20)
    if old:
        builder = LegacyBuilder(1, 2**30, codec)
        builder.append(NOW, None, value)
        data = bytes(builder.seal().data)
    else:
        data = bytes(batch(value, codec=codec))
    config = LogConfig(max_message_bytes=8 << 20 if codec == "snappy" else 1 << 20)  # it gains a factor of 20 only
    if codec == "snappy":
        assert accept(data, 2 if old else 9, config, TP, NOW).header.count == 1
        return
    tracemalloc.start()
    try:
        with pytest.raises(Refused) as refused:
            accept(data, 2 if old else 9, config, TP, NOW)
        assert tracemalloc.get_traced_memory()[1] < 3 * (64 << 20)
    finally:
        tracemalloc.stop()
    assert refused.value.code in {2, 87}


def test_a_batch_has_no_more_records_than_a_batch_may_have_bytes() -> None:
    data = bytearray(batch(b"v", codec="gzip"))
    struct.pack_into(">i", data, 23, 1 << 20)  # the last offset's delta
    struct.pack_into(">i", data, 57, (1 << 20) + 1)  # the count
    struct.pack_into(">I", data, 17, crc32c(bytes(data[21:])))
    with pytest.raises(Refused, match="1048577 records in one batch: the limit is 1048576"):
        accept(data, 9, LogConfig(max_message_bytes=1000), TP, NOW)


def test_a_message_set_of_the_first_formats_has_one_wrapper_as_in_kafka() -> None:
    builder = LegacyBuilder(1, 2**20, "gzip")
    builder.append(NOW, None, b"v" * 1000)
    data = bytes(builder.seal().data)
    with pytest.raises(Refused) as refused:
        accept(data + data, 2, LogConfig(), TP, NOW)
    assert refused.value.code == 87
