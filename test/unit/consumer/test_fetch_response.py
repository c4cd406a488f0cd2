"""What a reply's partition turns into."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from kafka.consumer.fetch_response import FetchTarget, ReaderSettings, open_reply
from kafka.consumer.partition_state import AssignedPartition, CompletedFetch, Cursor
from kafka.errors import RecordTooLargeError
from kafka.record.batch_builder import BatchBuilder
from kafka.structs import TopicPartition

SETTINGS = ReaderSettings(
    check_crcs=True,
    read_committed=False,
    max_batch_bytes=1 << 20,
    key_deserializer=lambda _topic: None,
    value_deserializer=lambda _topic: None,
)


def batch(first: int, count: int) -> bytes:
    builder = BatchBuilder(limit=10_000)
    builder.extend([b"v"] * count, 0)
    sealed = bytearray(builder.seal().data)
    sealed[:8] = first.to_bytes(8, "big")
    return bytes(sealed)


def reply(records: bytes | None) -> Any:
    return SimpleNamespace(records=records, aborted_transactions=None)


def asked(offset: int) -> FetchTarget:
    state = AssignedPartition(TopicPartition("t", 0))
    state.cursor = Cursor(offset)
    return FetchTarget(state)


def opened(target: FetchTarget, data: Any, settings: ReaderSettings, version: int) -> CompletedFetch | None:
    """Open a reply; it yields after each MiB."""
    opening = open_reply(target, data, settings, version)
    with pytest.raises(StopIteration) as stop:  # noqa: PT012 - the end of a generator
        while True:
            next(opening)
    return cast("CompletedFetch | None", stop.value.value)


def test_the_next_fetch_continues_behind_the_last_whole_batch() -> None:
    entry = asked(12)
    data = batch(10, 5) + batch(15, 5) + batch(20, 5)[:-1]
    fetched = opened(entry, reply(data), SETTINGS, 12)
    assert fetched is not None
    assert fetched.reader is not None
    assert entry.cursor.fetch_offset == 20
    assert [record.offset for record in fetched.reader.take(99)] == list(range(12, 20))
    assert fetched.reader.next_offset == 20


def test_nothing_whole_is_nothing_and_on_old_brokers_too_large() -> None:
    assert opened(asked(0), reply(None), SETTINGS, 12) is None
    assert opened(asked(0), reply(batch(0, 5)[:-1]), SETTINGS, 12) is None
    fetched = opened(asked(0), reply(batch(0, 5)[:-1]), SETTINGS, 2)
    assert fetched is not None
    assert isinstance(fetched.error, RecordTooLargeError)


def test_behind_a_header_that_cannot_be_nothing_more_is_asked_for() -> None:
    entry = asked(0)
    data = bytearray(batch(0, 5) + batch(5, 5))
    data[len(batch(0, 5)) + 16] = 9  # the magic number
    fetched = opened(entry, reply(bytes(data)), SETTINGS, 12)
    assert fetched is not None
    assert fetched.damaged
    assert entry.cursor.fetch_offset == 0
    assert fetched.reader is not None
    assert len(fetched.reader.take(5)) == 5
