"""What the application has, and what it has said about it."""

from __future__ import annotations

import threading

import pytest

from kafka.errors import IllegalStateError, UnsupportedVersionError
from kafka.share.acknowledgements import AcknowledgeType
from kafka.share.held_records import HeldRecords

from .test_acquired_records import PARTITION, AcquiredRecords, acquired, batch

ACCEPT, RELEASE, REJECT, RENEW = AcknowledgeType


def source(*, node_id: int = 1, version: int = 2) -> AcquiredRecords:
    found = acquired(batch(0, [b"a", b"b", b"c"]), (0, 2, 1))
    found.node_id, found.version = node_id, version
    return found


def test_the_last_acknowledgement_before_they_are_taken_counts() -> None:
    held = HeldRecords()
    held.add(source(), [0, 1, 2])
    held.acknowledge(PARTITION, 0, ACCEPT)
    held.acknowledge(PARTITION, 0, REJECT)
    held.acknowledge(PARTITION, 1, RELEASE)
    assert held.unacknowledged() == {PARTITION: [2]}
    (ready,) = held.take()
    assert (ready.partition, ready.node_id, dict(ready.types)) == (PARTITION, 1, {0: REJECT, 1: RELEASE})
    assert held.take() == []
    for offset in (0, 7):
        with pytest.raises(IllegalStateError, match=f"offset {offset} of jobs-0 is not waiting"):
            held.acknowledge(PARTITION, offset, ACCEPT)


def test_a_renewed_record_is_held_and_not_open() -> None:
    held = HeldRecords()
    held.add(source(), [0])
    held.acknowledge(PARTITION, 0, RENEW)
    (ready,) = held.take()
    assert ready.renews
    assert held.unacknowledged() == {}
    held.acknowledge(PARTITION, 0, ACCEPT)
    assert [dict(one.types) for one in held.take()] == [{0: ACCEPT}]


def test_older_brokers_renew_nothing() -> None:
    held = HeldRecords()
    held.add(source(version=1), [0])
    with pytest.raises(UnsupportedVersionError, match=r"Kafka 4\.2"):
        held.acknowledge(PARTITION, 0, RENEW)
    assert held.unacknowledged() == {PARTITION: [0]}


def test_a_record_that_cannot_be_read_is_released_unless_it_is_acknowledged() -> None:
    held = HeldRecords()
    held.add(source(), [0, 1], unreadable=True)
    held.acknowledge(PARTITION, 1, REJECT, unreadable_only=True)
    held.release_unreadable()
    assert [dict(one.types) for one in held.take()] == [{0: RELEASE, 1: REJECT}]
    held.add(source(), [2])
    with pytest.raises(IllegalStateError, match="share_acknowledgement_mode='implicit'"):
        held.acknowledge(PARTITION, 2, REJECT, unreadable_only=True)


def test_acknowledgements_go_to_the_broker_that_gave_the_records() -> None:
    held = HeldRecords()
    held.add(source(node_id=1), [0, 1])
    held.acknowledge(PARTITION, 0, ACCEPT)
    held.add(source(node_id=2), [1, 2])  # the leader has moved
    held.accept_open()
    assert [(one.node_id, dict(one.types)) for one in held.take()] == [(1, {0: 1}), (2, {1: 1, 2: 1})]


def test_what_workers_say_while_another_thread_sends_is_neither_lost_nor_sent_twice() -> None:
    held, rounds, workers = HeldRecords(), 40, 4
    sent: list[int] = []
    for number in range(rounds):
        offsets = range(number * 100, number * 100 + 100)
        held.add(source(), offsets)

        def work(first: int, offsets: range = offsets) -> None:
            for offset in offsets[first::workers]:
                held.acknowledge(PARTITION, offset, RENEW)
                held.acknowledge_if_open(PARTITION, offset, ACCEPT)

        threads = [threading.Thread(target=work, args=(first,)) for first in range(workers)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads) or held.unacknowledged():
            sent += [offset for one in held.take() for offset, kind in one.types.items() if kind == ACCEPT]
        sent += [offset for one in held.take() for offset, kind in one.types.items() if kind == ACCEPT]
    assert sorted(sent) == list(range(rounds * 100))
    assert held.take() == []
    with pytest.raises(IllegalStateError, match="not waiting"):
        held.acknowledge(PARTITION, 0, ACCEPT)


def test_records_that_stay_open_do_not_keep_those_after_them() -> None:
    held = HeldRecords()
    for first in range(0, 100_000, 500):
        held.add(source(), [*range(first, first + 500)])
        for offset in range(first + (first == 0), first + 500):
            held.acknowledge(PARTITION, offset, ACCEPT)
        assert sum(one.count for one in held.take()) == 500 - (first == 0)
    assert held.unacknowledged() == {PARTITION: [0]}
    assert len(held._partitions[PARTITION]) < 3
    held.add(source(), [0, 7, 100_000, 10**12])  # acquired again, and far apart: compaction
    assert held.unacknowledged() == {PARTITION: [0, 7, 100_000, 10**12]}
    held.acknowledge(PARTITION, 10**12, REJECT)
    held.acknowledge(PARTITION, 7, RELEASE)
    assert [one.types for one in held.take()] == [{7: 2, 10**12: 3}]
