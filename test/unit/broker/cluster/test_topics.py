"""Where replicas go and who leads."""

from __future__ import annotations

import uuid
from collections import Counter
from random import Random

from kafka.broker.cluster.topics import (
    NO_LEADER,
    Partition,
    Topic,
    elect_leader,
    move_leader,
    place_replicas,
    replace_replicas,
)
from kafka.broker.storage.log import Log
from kafka.broker.storage.segment import MemorySegment


def partition(*replicas: int) -> Partition:
    return Partition(Topic("t", uuid.uuid4()), 0, list(replicas), Log(MemorySegment, lambda: 0))


def test_leaders_and_replicas_are_spread_evenly() -> None:
    placed = place_replicas(12, 2, [1, 2, 3], Random(1))
    assert set(Counter(replicas[0] for replicas in placed).values()) == {4}
    assert set(Counter(node for replicas in placed for node in replicas).values()) == {8}
    assert all(len(set(replicas)) == 2 for replicas in placed)


def test_the_next_replica_that_runs_leads() -> None:
    one = partition(1, 2, 3)
    assert elect_leader(one, {2, 3})
    assert (one.leader, one.isr, one.leader_epoch) == (2, [2, 3], 1)
    assert not elect_leader(one, {2, 3})
    assert elect_leader(one, {1, 2, 3})
    assert (one.leader, one.isr, one.leader_epoch) == (2, [2, 3, 1], 1)  # who joins the ISR comes last


def test_without_a_replica_there_is_no_leader_and_the_last_one_is_remembered() -> None:
    one = partition(1, 2)
    elect_leader(one, {2})
    elect_leader(one, set())
    assert (one.leader, one.isr, one.leader_epoch) == (NO_LEADER, [2], 2)
    elect_leader(one, {1, 2})
    assert (one.leader, one.leader_epoch) == (1, 3)


def test_a_move_takes_the_old_leaders_place() -> None:
    one = partition(1, 2)
    move_leader(one, 3)
    assert (one.leader, one.replicas, one.leader_epoch) == (3, [3, 2], 1)
    move_leader(one, 3)
    assert one.leader_epoch == 1
    move_leader(one, 2)
    assert (one.leader, one.replicas, one.leader_epoch) == (2, [3, 2], 2)


def test_other_replicas_keep_a_leader_that_is_among_them() -> None:
    one = partition(1, 2)
    replace_replicas(one, [3, 1], {1, 2, 3})
    assert (one.leader, one.replicas, one.isr) == (1, [3, 1], [1, 3])
    replace_replicas(one, [2, 3], {1, 2, 3})
    assert (one.leader, one.isr) == (2, [2, 3])


def test_a_new_leader_begins_an_epoch_in_the_log() -> None:
    one = partition(1, 2)
    move_leader(one, 2)
    assert one.log.epochs == [(1, 0)]
    seen: list[int] = []
    one.watch(lambda changed: seen.append(changed.leader))
    move_leader(one, 1)
    assert seen == [1]
