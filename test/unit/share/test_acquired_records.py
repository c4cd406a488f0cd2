"""The records of one partition in a response: acquired ones, gaps, what cannot be read."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from kafka._core.topology import Topology
from kafka.consumer.fetch_response import ReaderSettings
from kafka.errors import CorruptRecordError, RecordDeserializationError
from kafka.record.batch_builder import BatchBuilder
from kafka.share.acquired_records import AcquiredRange, AcquiredRecords
from kafka.share.session import ShareSession
from kafka.structs import TopicPartition

PARTITION = TopicPartition("jobs", 0)


def batch(base: int, values: list[bytes]) -> bytes:
    builder = BatchBuilder(limit=100_000)
    builder.extend(values, 1_700_000_000_000)
    data = bytearray(builder.seal().data)
    data[:8] = base.to_bytes(8, "big")
    return bytes(data)


def acquired(data: bytes, *ranges: tuple[int, int, int], value: Any = None) -> AcquiredRecords:
    settings = ReaderSettings(True, False, 1 << 20, lambda _topic: None, lambda _topic: value)
    of = [AcquiredRange(*one) for one in ranges]
    return AcquiredRecords(PARTITION, UUID(int=1), 1, 2, of, data, settings, 0.0, ShareSession(), Topology())


def test_records_of_others_in_the_same_batch_are_not_returned() -> None:
    found = acquired(batch(10, [b"a", b"b", b"c", b"d"]), (11, 11, 1), (13, 13, 3))
    assert [(row.offset, row.value, row.delivery_count) for row in found.take()] == [(11, b"b", 1), (13, b"d", 3)]
    assert found.exhausted
    assert found.gaps() == []


def test_records_of_others_behind_a_gap_are_not_returned() -> None:
    found = acquired(batch(0, [b"a"]) + batch(2, [b"c", b"d", b"e"]), (1, 3, 1))  # as many as there are records
    assert [row.offset for row in found.take()] == [2, 3]
    assert found.gaps() == [(1, 1, [0])]


def test_offsets_without_a_record_are_gaps() -> None:
    found = acquired(batch(0, [b"a"]) + batch(5, [b"f"]), (0, 7, 1))
    assert [row.offset for row in found.take()] == [0, 5]
    assert found.gaps() == [(1, 4, [0]), (6, 7, [0])]
    assert found.gaps() == [], "once"


def test_a_record_that_a_deserializer_refuses_comes_after_those_before_it() -> None:
    def number(data: bytes) -> int:
        return int(data)

    found = acquired(batch(0, [b"1", b"x", b"3"]), (0, 2, 1), value=number)
    assert [row.value for row in found.take()] == [1]
    for _ in range(2):  # it comes again until it is skipped
        with pytest.raises(RecordDeserializationError) as caught:
            found.take()
    assert caught.value.offset == 1
    assert found.skip(caught.value).ranges == [(1, 1, 1)]
    assert [row.value for row in found.take()] == [3]
    assert found.gaps() == []


def test_records_of_others_that_a_deserializer_refuses_are_skipped() -> None:
    found = acquired(batch(0, [b"x", b"2"]), (1, 1, 1), value=int)
    assert [row.value for row in found.take()] == [2]


def test_a_damaged_batch_is_refused_as_a_whole_and_others_are_returned() -> None:
    damaged = bytearray(batch(1, [b"b", b"c"]))
    damaged[-1] ^= 1
    found = acquired(batch(0, [b"a"]) + bytes(damaged) + batch(3, [b"d"]), (0, 3, 1))
    assert [row.offset for row in found.take()] == [0]
    with pytest.raises(CorruptRecordError) as caught:
        found.take()
    refused = found.skip(caught.value)
    assert (refused.ranges, refused.is_damaged) == ([(1, 2, 1)], True)
    assert [row.offset for row in found.take()] == [3]
    assert found.gaps() == []


def test_records_that_were_not_taken_are_released() -> None:
    found = acquired(batch(0, [b"a", b"b"]), (0, 1, 1))
    assert found.released() == [(0, 1, [2])]
