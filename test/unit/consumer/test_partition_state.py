"""A partition's cursor, what an iteration gives back, and the places that are looked up."""

from __future__ import annotations

from typing import Any

import pytest

from kafka.consumer.partition_state import (
    EARLIEST,
    LATEST,
    AssignedPartition,
    Chunk,
    CompletedFetch,
    Cursor,
    Reset,
    policy,
)
from kafka.record.consumer_record import ConsumerRecord
from kafka.structs import TopicPartition

T0 = TopicPartition("t", 0)


def record(offset: int, epoch: int = 3) -> Any:
    return ConsumerRecord("t", 0, offset, 0, 0, None, b"v", None, -1, 1, [], epoch, -1)


def chunk_of(*offsets: int, start: int, end: int) -> tuple[Cursor, Chunk]:
    state = AssignedPartition(T0)
    state.cursor = Cursor(end, 3)
    return state.cursor, Chunk(state, [record(offset) for offset in offsets], start, 2)


def test_a_cursor_has_a_place_first_and_a_position_once_it_is_found() -> None:
    cursor = Cursor(reset=EARLIEST)
    assert cursor.position is None
    assert not cursor.has_data
    cursor.place(10, 3)
    assert (cursor.position, cursor.epoch, cursor.fetch_offset, cursor.fetch_epoch) == (10, 3, 10, 3)


def test_buffered_bytes_are_counted_until_they_are_taken() -> None:
    cursor = Cursor(0)
    cursor.fetched.append(CompletedFetch(None, 100))
    cursor.received += 100
    assert (cursor.waiting, cursor.held, cursor.has_data) == (100, 100, True)
    cursor.current = cursor.fetched.popleft()
    cursor.taken += 100
    assert (cursor.waiting, cursor.held) == (0, 100)


def test_an_iteration_moves_the_position_with_each_record() -> None:
    cursor, chunk = chunk_of(4, 5, 7, start=4, end=9)
    assert cursor.position == 4
    for each, position in zip(chunk.records, (5, 6, 8), strict=True):
        cursor.returned = each
        assert (cursor.position, cursor.epoch) == (position, 3)
    assert not chunk.give_back()
    assert cursor.position == 9  # behind offsets without records, too


def test_records_that_an_iteration_did_not_return_are_given_back() -> None:
    cursor, chunk = chunk_of(4, 5, 7, start=4, end=9)
    cursor.returned = chunk.records[0]
    assert chunk.give_back()
    assert chunk.interrupted
    assert ([each.offset for each in cursor.given_back], cursor.given_back_end[0]) == ([5, 7], 9)
    assert cursor.position == 5


def test_the_last_record_alone_is_given_back() -> None:
    cursor, chunk = chunk_of(4, 5, 6, start=4, end=7)
    cursor.returned = chunk.records[1]
    assert chunk.give_back()
    assert ([each.offset for each in cursor.given_back], cursor.position) == ([6], 6)


def test_advance_replaces_the_record_that_was_returned_last() -> None:
    cursor, chunk = chunk_of(4, start=4, end=5)
    cursor.returned = chunk.records[0]
    cursor.advance(20, 6)
    assert (cursor.position, cursor.epoch, cursor.returned) == (20, 6, None)


@pytest.mark.parametrize(
    ("name", "place"),
    [("earliest", EARLIEST), ("latest", LATEST), ("none", None), ("by_duration:PT10S", Reset(50_000))],
)
def test_auto_offset_reset_names_a_place(name: str, place: Reset | None) -> None:
    assert policy(name, 60.0) == place


def test_a_duration_longer_than_the_epoch_starts_at_its_beginning() -> None:
    assert policy("by_duration:P1D", 60.0) == Reset(0)
