"""What the deliveries of a partition cost, and what is stored of them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any
from uuid import UUID

import pytest

from kafka.broker.cluster.store import Store
from kafka.broker.cluster.topics import Partition, Topic, move_leader
from kafka.broker.groups.settings import GroupSettings
from kafka.broker.groups.share_offsets import RecordState, ShareOffsets
from kafka.broker.sharing.share_partition import ACCEPT, RELEASE, Acknowledgement, SharePartition
from kafka.broker.storage.log import Log, LogConfig
from kafka.broker.storage.segment import MemorySegment
from kafka.errors import Code
from test.unit.broker.groups.world import World
from test.unit.broker.storage.test_log import batch

TOPIC = UUID(int=1)


def reading(count: int, *, table: Any = None, pieces: int | None = None, **options: Any) -> SharePartition:
    """A partition of so many records, one in a batch unless `pieces` says in how many, all of which `m` has."""
    topic = Topic("jobs", TOPIC)
    log = Log(MemorySegment, World().now_ms, LogConfig())
    for _ in range(pieces or count):
        log.append(batch(*[b"x"] * (count // (pieces or count))), 0)
    settings = GroupSettings(share_auto_offset_reset="earliest", share_partition_max_record_locks=count, **options)
    world: Any = World()
    partition = Partition(topic, 0, [1], log)
    offsets = ShareOffsets({} if table is None else table, "g")
    shared = SharePartition(partition, offsets, lambda: settings, world, world)
    size = count // (pieces or 1)
    assert shared.acquire("m", most=count, batch_size=size, max_bytes=1 << 30, exactly=False).count == count
    return shared


def say(shared: SharePartition, kind: int, first: int, last: int | None = None) -> None:
    outcome = shared.check("m", [Acknowledgement(first, first if last is None else last, [kind])])
    assert isinstance(outcome, dict)
    assert shared.acknowledge("m", outcome) == Code.NONE


def instructions(call: Callable[[], object]) -> int:
    """Count the instructions of Python that a call takes, and those of the functions that it calls."""
    count = 0

    def step(frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return step

    before = sys.gettrace()
    sys.settrace(step)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


def working(shared: SharePartition, middle: int) -> None:
    """What members do all the time, in the middle of what is in delivery, and at its start."""
    say(shared, ACCEPT, middle)
    say(shared, RELEASE, middle + 1)
    shared.acquirable_bytes(1)
    shared.acquire("other", most=1, batch_size=1, max_bytes=100, exactly=True)
    shared.release("other")
    say(shared, ACCEPT, shared.start)


def test_it_ends_when_the_leader_moves() -> None:
    shared, calls = reading(2), []
    shared.watch(lambda: calls.append(1))
    move_leader(shared.partition, 2)
    assert shared.is_closed
    assert calls, "fetches that wait find out"


@pytest.mark.parametrize("work", [working, lambda shared, middle: say(shared, ACCEPT, middle, middle + 9)])
def test_an_acknowledgement_costs_the_same_however_many_records_are_in_delivery(
    work: Callable[[SharePartition, int], None],
) -> None:
    # The first is not counted: Python 3.14 tells of a function's instructions from its second call on.
    few, many = reading(200), reading(2000)
    # In a block of offsets of its own, of which nothing was stored; the first one finds all else at its start.
    costs = [instructions(lambda: work(shared, shared.end // 2 // 64 * 64)) for shared in (reading(200), few, many)]  # noqa: B023
    assert 0 < costs[2] < 1.1 * costs[1], costs


def test_the_stored_state_is_read_again_without_finished_records() -> None:
    table = Store().table("share")
    shared = reading(300, table=table)
    say(shared, ACCEPT, 0, 199)
    say(shared, RELEASE, 250)
    say(shared, ACCEPT, 252, 259)
    stored = ShareOffsets(table, "g").of_topic(TOPIC)[0]
    assert (stored.start, stored.finished) == (200, 8)
    done = dict.fromkeys(range(252, 260), (RecordState.ACKNOWLEDGED, 1))
    assert stored.deliveries == {250: (RecordState.AVAILABLE, 1), **done}
    assert len(table) == 3, "the start, and the blocks of offsets from it on"
    offsets = ShareOffsets(table, "g")
    offsets.set(TOPIC, 0, 7)
    again = ShareOffsets(table, "g").of_topic(TOPIC)[0]
    assert (again.start, again.deliveries) == (7, {})
    offsets.clear()
    assert not table


def test_the_first_available_offset_is_found_through_releases_and_locks_that_end() -> None:
    shared = reading(20)
    assert shared.next_offset() == 20
    for offset in (9, 4, 12):
        say(shared, RELEASE, offset)
    assert shared.next_offset() == 4
    taken = [shared.acquire("m", most=1, batch_size=1, max_bytes=100, exactly=True).ranges[0].first for _ in range(3)]
    assert taken == [4, 9, 12]
    shared.expire_locks()
    assert shared.next_offset() == 0
    assert {one.state for one in shared.records().values()} == {"available"}


@pytest.mark.parametrize(
    ("limit", "sizes"),
    [("2", [8, 8]), ("3", [8, 8, 1]), ("5", [8, 8, 8, 4, 1]), ("10", [8] * 5 + [4, 2, 1, 1, 1])],
)
def test_deliveries_are_halved_after_half_of_the_limit_and_the_last_is_of_one_record(
    limit: str, sizes: list[int]
) -> None:
    shared = reading(8, pieces=1, share_delivery_count_limit=int(limit))
    taken = [8]
    while True:
        shared.release("m")
        found = shared.acquire("m", most=8, batch_size=8, max_bytes=1 << 20, exactly=False)
        if not found.count or found.ranges[0].first > 0:
            break
        taken.append(found.count)
    assert taken == sizes


@pytest.mark.parametrize(("kept", "taken"), [(0, 4), (2, 4), (3, 4), (5, 8)])
def test_the_half_of_a_batch_counts_the_records_that_did_not_fail_often_as_kafka_does(kept: int, taken: int) -> None:
    """Records from `kept` on have failed twice: four of eight are delivered, or all if more than four come before."""
    shared = reading(8, pieces=1, share_delivery_count_limit=4)
    say(shared, RELEASE, kept, 7)
    shared.acquire("m", most=8, batch_size=8, max_bytes=1 << 20, exactly=False)
    shared.release("m")
    found = shared.acquire("m", most=8, batch_size=8, max_bytes=1 << 20, exactly=False)
    assert (found.ranges[0].first, found.count) == (0, taken)


def test_a_batch_with_records_that_failed_often_is_delivered_alone_also_when_their_turn_has_not_come() -> None:
    shared = reading(8, pieces=2, share_delivery_count_limit=4)
    say(shared, RELEASE, 6, 7)
    shared.acquire("m", most=8, batch_size=8, max_bytes=1 << 20, exactly=False)
    shared.release("m")
    sizes = [shared.acquire("m", most=6, batch_size=8, max_bytes=1 << 20, exactly=True).ranges for _ in range(2)]
    assert [(rows[0].first, rows[-1].last) for rows in sizes] == [(0, 3), (4, 7)]
