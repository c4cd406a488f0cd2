"""Batches that Kafka's own Java classes write are read by ours, ours by theirs, and where that is determined the
bytes are equal: all formats, all codecs. Kafka 3.9 is the last release that writes formats v0 and v1."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka.codec import CODEC_NAMES
from kafka.record.batch import decode_batch
from kafka.record.batch_builder import BatchBuilder
from kafka.record.consumer_record import ConsumerRecord
from kafka.record.control import ABORT, COMMIT, decode_marker, encode_marker
from kafka.record.header import BatchHeader, scan
from kafka.record.log_append import down_convert, up_convert
from kafka.record.message_v0_v1 import LegacyBuilder
from test.real import jvm
from test.real.conftest import need_kafka

pytestmark = pytest.mark.real

VERSION = "3.9.1"
SOURCE = Path(__file__).parent.parent / "java" / "RecordsGolden.java"
NOW = 1_700_000_000_000

Headers = list[tuple[str, "bytes | None"]]
Content = tuple[int, "bytes | None", "bytes | None", Headers]

# Timestamp, key, value, headers. The offsets are 0, 1, 2, ...
RECORDS: dict[str, list[Content]] = {
    "one": [(NOW, None, b"v", [])],
    "fields": [
        (NOW, b"key", b"value", []),
        (NOW + 100, b"", b"", []),
        (NOW - 70_000, None, None, []),
        (NOW + 2**40, b"k" * 64, b"v" * 8192, []),
        (0, b"k" * 8192, None, []),
    ],
    "run": [(NOW + at // 10, None, b"the same size %04d" % at, []) for at in range(200)],
    "keyed run": [(NOW, b"%04d" % at, b"the same size %04d" % at, []) for at in range(100)],
    "wide": [(NOW, None, bytes([at % 26 + 97]) * (at % 150), []) for at in range(9000)],
    "headers": [
        (NOW, None, b"v", [("name", b"value"), ("näme", None), ("", b"")]),
        (NOW, b"k", b"v", [(f"h{at}", b"x" * at) for at in range(70)]),
        (NOW, None, None, []),
    ],
}
CASES = [
    (magic, codec, name)
    for magic in (0, 1, 2)
    for codec in CODEC_NAMES.values()
    for name in RECORDS
    if (magic == 2 or name != "headers") and not (magic < 2 and codec == "zstd")
]


@pytest.fixture(scope="module")
def java() -> Java:
    return Java(need_kafka(VERSION))


class Java:
    def __init__(self, version: str) -> None:
        self._version = version

    def ask(self, lines: list[str]) -> list[str]:
        done = jvm.run(self._version, str(SOURCE), text="".join(line + "\n" for line in lines), timeout=110)
        answers = done.stdout.splitlines()
        assert len(answers) == len(lines), done.stderr
        return answers


def hexed(data: bytes | None) -> str:
    return "-" if data is None else data.hex()


def record_word(offset: int, content: Content) -> str:
    timestamp, key, value, headers = content
    pairs = ",".join(f"{name.encode().hex()}={hexed(data)}" for name, data in headers)
    return f"{offset}:{timestamp}:{hexed(key)}:{hexed(value)}:{pairs}"


def write_line(magic: int, codec: str, records: list[Content], *, base: int = 0, append_time: int = -1) -> str:
    words = [record_word(base + at, content) for at, content in enumerate(records)]
    return " ".join(["write", str(magic), codec, str(base), str(append_time), "-1 -1 -1 false", *words])


def ours(magic: int, codec: str, records: list[Content]) -> bytes:
    builder = BatchBuilder(1 << 30, codec) if magic == 2 else LegacyBuilder(magic, 1 << 30, codec)
    for content in records:
        builder.append(*content)
    return builder.seal().data


def read_ours(data: bytes) -> tuple[list[BatchHeader], list[ConsumerRecord]]:
    headers = list(scan(data))
    assert headers
    assert headers[-1].end == len(data)
    return headers, [row for header in headers for row in decode_batch(data, header)]


def contents(rows: list[ConsumerRecord]) -> list[Content]:
    return [(row.timestamp if row.timestamp is not None else -1, row.key, row.value, row.headers) for row in rows]


def timeless(magic: int, records: list[Content]) -> list[Content]:
    return records if magic else [(-1, *content[1:]) for content in records]


def test_ours_reads_what_java_writes(java: Java) -> None:
    answers = java.ask([write_line(magic, codec, RECORDS[name]) for magic, codec, name in CASES])
    for (magic, codec, name), answer in zip(CASES, answers, strict=True):
        headers, rows = read_ours(bytes.fromhex(answer))
        assert {(header.magic, CODEC_NAMES[header.codec]) for header in headers} == {(magic, codec)}, name
        assert contents(rows) == timeless(magic, RECORDS[name]), (magic, codec, name)
        assert [row.offset for row in rows] == list(range(len(rows)))


def test_java_reads_what_ours_writes(java: Java) -> None:
    answers = java.ask([f"read {ours(magic, codec, RECORDS[name]).hex()}" for magic, codec, name in CASES])
    for (magic, codec, name), answer in zip(CASES, answers, strict=True):
        words = [word for word in answer.split(" ") if "/" not in word]
        expected = timeless(magic, RECORDS[name])
        assert words == [record_word(at, content) for at, content in enumerate(expected)], (magic, codec, name)


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_uncompressed_bytes_are_equal(java: Java, magic: int) -> None:
    names = [name for case, codec, name in CASES if case == magic and codec == "none"]
    answers = java.ask([write_line(magic, "none", RECORDS[name]) for name in names])
    for name, answer in zip(names, answers, strict=True):
        assert answer == ours(magic, "none", RECORDS[name]).hex(), name


def test_offsets_and_brokers_times_of_java_are_understood(java: Java) -> None:
    kinds = [(magic, codec) for magic in (1, 2) for codec in ("none", "gzip", "lz4")]
    lines = [write_line(*kind, RECORDS["run"], base=5000, append_time=NOW + 77) for kind in kinds]
    for kind, answer in zip(kinds, java.ask(lines), strict=True):
        _, rows = read_ours(bytes.fromhex(answer))
        assert [row.offset for row in rows] == list(range(5000, 5200)), kind
        assert {(row.timestamp, row.timestamp_type) for row in rows} == {(NOW + 77, 1)}, kind


def test_transactional_fields_and_markers(java: Java) -> None:
    builder = BatchBuilder(1000)
    builder.append(NOW, None, b"v")
    batch = builder.seal(producer_id=2**40, producer_epoch=32767, base_sequence=2**31 - 1, transactional=True).data
    answers = java.ask(
        [
            f"read {batch.hex()}",
            f"write 2 none 0 -1 {2**40} 32767 {2**31 - 1} true 0:{NOW}:-:76:",
            f"marker COMMIT 7 2 5 {NOW}",
            f"marker ABORT 7 2 5 {NOW}",
        ]
    )
    assert answers[0].startswith(f"2/none/0/0/0/{2**40}/32767/{2**31 - 1}/t ")
    assert bytes.fromhex(answers[1]) == batch
    for kind, answer in zip((COMMIT, ABORT), answers[2:], strict=True):
        data = bytes.fromhex(answer)
        assert data == encode_marker(kind, producer_id=7, producer_epoch=2, coordinator_epoch=5, timestamp=NOW)
        assert decode_marker(data, next(scan(data))) == (kind, 5, NOW)


def test_java_reads_what_ours_converts(java: Java) -> None:
    records = RECORDS["run"]
    cases = [(magic, codec) for magic in (0, 1) for codec in ("none", "gzip", "snappy", "lz4")]
    lines = []
    for magic, codec in cases:
        new = bytearray(ours(2, codec, records))
        new[:8] = (700).to_bytes(8, "big")
        lines.append(f"read {down_convert(new, magic).hex()}")
        lines.append(f"read {up_convert(ours(magic, codec, records), 700, 0).hex()}")
    answers = iter(java.ask(lines))
    for case in cases:
        expected = [record_word(700 + at, content) for at, content in enumerate(timeless(case[0], records))]
        for _ in ("down", "up"):
            words = [word for word in next(answers).split(" ") if "/" not in word]
            assert words == expected, case
