"""Commits and their attempts, reading committed offsets, and the schedule of automatic commits."""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import pytest

from kafka.coordinator.offset_commits import AutoCommitTask
from kafka.errors import (
    CommitFailedError,
    GroupAuthorizationFailedError,
    KafkaTimeoutError,
    TopicAuthorizationFailedError,
)
from kafka.structs import OffsetAndMetadata, TopicPartition
from test.unit.consumer.scripted import SILENCE, T0, T1, Cluster, MakeConsumer, read, rest

OFFSET = OffsetAndMetadata(5)


def manual(make: MakeConsumer, **configs: Any) -> Any:
    consumer = make(group_id="g", enable_auto_commit=False, **configs)
    consumer.assign([T0, T1])
    return consumer


@pytest.mark.parametrize("code", [14, 15, 16, 7])
def test_a_retriable_error_is_retried(cluster: Cluster, make: MakeConsumer, code: int) -> None:
    cluster.script["OffsetCommit"] = deque([code, code])
    manual(make).commit({T0: OFFSET})
    assert cluster.committed == {T0: 5}
    assert len(cluster.asked("OffsetCommit")) == 3


def test_a_fatal_error_is_raised_at_once(cluster: Cluster, make: MakeConsumer) -> None:
    cluster.script["OffsetCommit"] = deque([GroupAuthorizationFailedError.errno])
    consumer = manual(make)
    with pytest.raises(GroupAuthorizationFailedError):
        consumer.commit({T0: OFFSET})
    assert len(cluster.asked("OffsetCommit")) == 1


def test_topics_without_the_right_are_named_together(cluster: Cluster, make: MakeConsumer) -> None:
    cluster.script["OffsetCommit"] = deque([TopicAuthorizationFailedError.errno])
    with pytest.raises(TopicAuthorizationFailedError, match="committing t"):
        manual(make).commit({T0: OFFSET, T1: OFFSET})


def test_a_commit_ends_at_its_deadline_with_the_last_error(cluster: Cluster, make: MakeConsumer) -> None:
    cluster.script["OffsetCommit"] = deque([14] * 1000)
    consumer = manual(make)
    began = cluster.now
    with pytest.raises(KafkaTimeoutError, match="offsets of g could not be committed"):
        consumer.commit({T0: OFFSET}, timeout_ms=5000)
    assert cluster.now - began <= 5


def test_commits_arrive_in_the_order_in_which_they_were_begun(cluster: Cluster, make: MakeConsumer) -> None:
    cluster.script["OffsetCommit"] = deque([14])
    consumer = manual(make)
    consumer.commit_async({T0: OffsetAndMetadata(1)})
    consumer.commit_async({T0: OffsetAndMetadata(2)})
    consumer.commit({T0: OffsetAndMetadata(3)})
    offsets = [request.topics[0].partitions[0].committed_offset for request in cluster.asked("OffsetCommit")]
    assert offsets[-1] == 3
    assert cluster.committed == {T0: 3}


def test_a_commit_without_waiting_is_tried_once_and_calls_back_from_poll(cluster: Cluster, make: MakeConsumer) -> None:
    cluster.script["OffsetCommit"] = deque([14])
    consumer, seen = manual(make), []
    consumer.commit_async({T0: OFFSET}, lambda offsets, outcome: seen.append((offsets, type(outcome).__name__)))
    rest(consumer, 1)
    assert not seen
    consumer.poll(timeout_ms=10)
    assert seen == [({T0: OFFSET}, "CoordinatorLoadInProgressError")]
    assert len(cluster.asked("OffsetCommit")) == 1


def test_offsets_of_a_lost_partition_are_not_sent(cluster: Cluster, make: MakeConsumer) -> None:
    cluster.fill(3)
    consumer = make("t", group_id="g", enable_auto_commit=False, heartbeat_interval_ms=1000)
    read(consumer, 3)
    cluster.script["Heartbeat"] = deque([25])
    rest(consumer, 1.5)
    with pytest.raises(CommitFailedError, match="t-0"):
        consumer.commit({T0: OFFSET})
    assert not cluster.asked("OffsetCommit")


def test_committed_offsets_are_read_with_retries(cluster: Cluster, make: MakeConsumer) -> None:
    cluster.committed[T1] = 8
    cluster.script["OffsetFetch"] = deque([14, 16])
    consumer = manual(make)
    assert consumer.committed([T0, T1]) == {T0: None, T1: OffsetAndMetadata(8)}
    cluster.script["OffsetFetch"] = deque([SILENCE] * 100)
    with pytest.raises(KafkaTimeoutError):
        consumer.committed(T0, timeout_ms=3000)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def time(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def task(clock: Clock) -> AutoCommitTask:
    return AutoCommitTask(SimpleNamespace(loop=clock), 5.0)  # type: ignore[arg-type]


def test_an_automatic_commit_is_due_after_its_interval_unless_one_is_under_way(
    clock: Clock, task: AutoCommitTask
) -> None:
    assert not task.due(clock.now)
    assert task.due(clock.now + 5)
    task.under_way = True
    assert not task.due(clock.now + 5)
    task.under_way = False
    clock.now += 100
    task.reschedule()
    assert not task.due(clock.now + 4)


def offsets(**found: int) -> dict[TopicPartition, OffsetAndMetadata]:
    return {TopicPartition("t", int(name[1:])): OffsetAndMetadata(offset) for name, offset in found.items()}


def test_stored_offsets_are_not_committed_again(task: AutoCommitTask) -> None:
    owned = {T0: 1, T1: 2}
    task.stored(offsets(t0=5, t1=7), owned)
    assert task.changed(offsets(t0=5, t1=8), owned, expiring=False) == offsets(t1=8)


def test_in_a_topic_that_was_created_again_they_are(clock: Clock) -> None:
    ids: dict[str, UUID | None] = {"t": None}
    task = AutoCommitTask(SimpleNamespace(loop=clock), 5.0, ids.get)  # type: ignore[arg-type]
    task.stored(offsets(t0=5), None)
    ids["t"] = uuid4()
    assert task.changed(offsets(t0=5), None, expiring=False) == {}, "it was not known before"
    task.stored(offsets(t0=5), None)
    assert task.changed(offsets(t0=5), None, expiring=False) == {}
    ids["t"] = None
    assert task.changed(offsets(t0=5), None, expiring=False) == {}
    ids["t"] = uuid4()
    assert task.changed(offsets(t0=5), None, expiring=False) == offsets(t0=5)


def test_in_a_later_ownership_they_are(task: AutoCommitTask) -> None:
    task.stored(offsets(t0=5), {T0: 1})
    assert task.changed(offsets(t0=5), {T0: 3}, expiring=False) == offsets(t0=5)


def test_offsets_that_expire_are_refreshed_after_an_hour(clock: Clock, task: AutoCommitTask) -> None:
    task.stored(offsets(t0=5), None)
    clock.now += 3599
    assert task.changed(offsets(t0=5), None, expiring=True) == {}
    clock.now += 2
    assert task.changed(offsets(t0=5), None, expiring=True) == offsets(t0=5)
    assert task.changed(offsets(t0=5), None, expiring=False) == {}
