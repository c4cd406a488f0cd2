from __future__ import annotations

import subprocess
import sys

import pytest

from kafka.errors import IllegalStateError
from kafka.record import MemoryRecords, MemoryRecordsBuilder
from kafka.record.control import COMMIT, encode_marker
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from kafka.record.legacy_records import LegacyRecordBatchBuilder
from kafka.record.util import calc_crc32, calc_crc32c, decode_varint, encode_varint, size_of_varint

NOW = 1_700_000_000_000


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("codec", [0, 1, 3])
def test_memory_records_read_what_their_builder_makes(magic: int, codec: int) -> None:
    builder = MemoryRecordsBuilder(magic, codec, 4000)
    added = 0
    while (metadata := builder.append(NOW + added, b"k", b"v" * 100)) is not None:
        assert metadata.offset == added
        added += 1
        assert builder.next_offset() == added
    assert builder.is_full()
    builder.close()
    builder.close()
    assert builder.append(NOW, None, b"") is None
    assert builder.size_in_bytes() == len(builder.buffer())
    assert (builder.compression_rate() < 1) == bool(codec)
    records = MemoryRecords(bytes(builder.buffer()) + b"cut off")
    assert records.size_in_bytes() == len(builder.buffer()) + 7
    assert records.valid_bytes() == len(builder.buffer())
    found = []
    while records.has_next():
        batch = records.next_batch()
        assert batch.validate_crc()
        assert batch.magic == magic
        assert not batch.is_control_batch
        found += list(batch)
    assert records.next_batch() is None
    assert [(record.offset, record.key, record.value) for record in found] == [
        (at, b"k", b"v" * 100) for at in range(added)
    ]
    assert found[0].timestamp == (NOW if magic else None)
    assert found[0].headers == []
    assert found[0].validate_crc()
    assert "key=b'k'" in repr(found[0])
    assert found[0].size_in_bytes > 100


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("codec", [0, 1])
def test_a_builder_that_begins_at_an_offset_writes_it(magic: int, codec: int) -> None:
    builder = MemoryRecordsBuilder(magic, codec, 4000, offset=100)
    assert [builder.append(NOW, None, b"v" * 100).offset for _ in range(3)] == [100, 101, 102]
    assert [record.offset for batch in builder.records() for record in batch] == [100, 101, 102]


def test_batch_shows_its_header() -> None:
    builder = MemoryRecordsBuilder(
        2, None, 4000, offset=7, transactional=True, producer_id=5, producer_epoch=1, base_sequence=3
    )
    builder.append(NOW, None, b"a")
    builder.append(NOW + 5, None, b"b", [("h", b"1")])
    (batch,) = builder.records()
    assert (batch.base_offset, batch.last_offset, batch.next_offset, batch.records_count) == (7, 8, 9, 2)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.last_sequence) == (5, 1, 3, 4)
    assert (batch.first_timestamp, batch.max_timestamp, batch.timestamp_type) == (NOW, NOW + 5, 0)
    assert batch.is_transactional
    assert batch.has_producer_id()
    assert batch.has_sequence()
    assert next(batch).offset == 7
    assert next(batch).headers == [("h", b"1")]


def test_control_records_tell_their_kind() -> None:
    (record,) = DefaultRecordBatch(
        encode_marker(COMMIT, producer_id=5, producer_epoch=1, coordinator_epoch=0, timestamp=NOW)
    )
    assert (record.version, record.type, record.commit, record.abort) == (0, 1, True, False)


def test_wrong_checksum_is_reported() -> None:
    builder = MemoryRecordsBuilder(2, 0, 4000)
    builder.append(NOW, None, b"a")
    builder.close()
    data = builder.buffer()
    data[-1] ^= 1
    assert not DefaultRecordBatch(data).validate_crc()


def test_estimates_are_no_less_than_what_a_record_takes() -> None:
    for key, value, headers in ((None, b"", []), (b"k" * 100, b"v" * 9000, [("h", b"x" * 70)]), (b"", None, [])):
        builder = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 1 << 20)
        size = builder.append(0, NOW, key, value, headers).size
        assert builder.size_in_bytes(0, 0, key, value, headers) == size
        assert len(builder.build()) <= DefaultRecordBatchBuilder.estimate_size_in_bytes(key, value, headers)
        assert builder.header_size_in_bytes() + size == builder.size()
        for magic in (0, 1):
            old = LegacyRecordBatchBuilder(magic, 0, 1 << 20)
            metadata = old.append(0, NOW, key, value)
            assert old.size_in_bytes(0, NOW, key, value) == metadata.size == len(old.build())
            assert metadata.size <= LegacyRecordBatchBuilder.estimate_size_in_bytes(magic, 0, key, value)
            assert old.record_size(magic, key, value) == metadata.size - 12
            assert old.record_overhead(magic) == (14, 22)[magic]


def test_records_out_of_order_are_refused() -> None:
    builder = MemoryRecordsBuilder(2, 0, 4000)
    for act in (builder.buffer, builder.compression_rate):
        with pytest.raises(IllegalStateError):
            act()
    builder.close()
    with pytest.raises(IllegalStateError):
        builder.set_producer_state(1, 0, 0, False)
    with pytest.raises(IllegalStateError):
        MemoryRecordsBuilder(1, 0, 4000).set_producer_state(1, 0, 0, False)
    with pytest.raises(ValueError, match="producer ids"):
        MemoryRecordsBuilder(1, 0, 4000, producer_id=5)
    with pytest.raises(ValueError, match="v2"):
        DefaultRecordBatchBuilder(1, 0, False, -1, -1, -1, 1)
    with pytest.raises(ValueError, match="offset 5"):
        DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 1).append(5, NOW, None, b"", [])
    with pytest.raises(ValueError, match="headers"):
        LegacyRecordBatchBuilder(1, 0, 100).append(0, NOW, None, b"", [("h", b"")])


def test_producer_can_be_set_before_the_end() -> None:
    builder = MemoryRecordsBuilder(2, 0, 4000)
    builder.append(NOW, None, b"a")
    builder.set_producer_state(5, 1, 3, True)
    (batch,) = builder.records()
    assert (batch.producer_id, batch.is_transactional) == (5, True)


def test_util() -> None:
    out = bytearray()
    assert encode_varint(-12345, out.append) == size_of_varint(-12345) == len(out)
    assert decode_varint(out, 0) == (-12345, len(out))
    assert calc_crc32c(memoryview(b"123456789")) == 0xE3069283
    assert calc_crc32(b"123456789") == 0xCBF43926


def test_importing_the_layer_imports_nothing_heavy() -> None:
    program = (
        "import kafka.record.batch_reader, kafka.record.batch_builder, sys;"
        "print([name for name in ('numpy', 'pyarrow', 'lz4', 'snappy', 'zstandard', 'crc32c') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
