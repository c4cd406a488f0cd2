"""Where partitions start, and who is asked for it."""

from __future__ import annotations

from collections import deque
from itertools import pairwise

import pytest

from kafka.errors import KafkaTimeoutError, NoOffsetForPartitionError, TopicAuthorizationFailedError
from test.unit.consumer.scripted import SILENCE, T0, T1, Cluster, MakeConsumer, read


def test_a_partition_starts_at_the_committed_offset(cluster: Cluster, make: MakeConsumer) -> None:
    cluster.fill(10)
    cluster.committed[T0] = 6
    consumer = make(group_id="g")
    consumer.assign([T0])
    assert consumer.position(T0) == 6
    assert not cluster.asked("ListOffsets")


@pytest.mark.parametrize(("policy", "position"), [("earliest", 0), ("latest", 10)])
def test_without_a_committed_offset_auto_offset_reset_decides(
    cluster: Cluster, make: MakeConsumer, policy: str, position: int
) -> None:
    cluster.fill(10)
    consumer = make(group_id="g", auto_offset_reset=policy)
    consumer.assign([T0])
    assert consumer.position(T0) == position


def test_with_the_policy_none_poll_raises_until_the_application_seeks(cluster: Cluster, make: MakeConsumer) -> None:
    cluster.fill(10)
    consumer = make(group_id="g", auto_offset_reset="none")
    consumer.assign([T0])
    with pytest.raises(NoOffsetForPartitionError, match="seek first"):
        consumer.poll(timeout_ms=1000)
    consumer.seek(T0, 8)
    assert [record.offset for record in read(consumer, 2)] == [8, 9]


def test_a_retriable_error_is_retried_with_backoff(cluster: Cluster, make: MakeConsumer) -> None:
    cluster.script["ListOffsets"] = deque([6, 6, 6])
    consumer = make(retry_backoff_ms=100, retry_backoff_max_ms=100)
    consumer.assign([T0])
    assert consumer.position(T0, timeout_ms=10_000) == 0
    times = cluster.times["ListOffsets"]
    assert len(times) == 4
    assert all(later - earlier > 0.07 for earlier, later in pairwise(times))


def test_another_error_is_raised_once_in_place_of_records(cluster: Cluster, make: MakeConsumer) -> None:
    cluster.script["ListOffsets"] = deque([TopicAuthorizationFailedError.errno])
    consumer = make()
    consumer.assign([T0])
    with pytest.raises(TopicAuthorizationFailedError):
        consumer.poll(timeout_ms=1000)
    assert consumer.position(T0) == 0


def test_a_group_that_does_not_answer_does_not_delay_other_partitions(cluster: Cluster, make: MakeConsumer) -> None:
    cluster.fill(3, T1)
    cluster.script["OffsetFetch"] = deque([SILENCE] * 100)
    consumer = make(group_id="g")
    consumer.assign([T0, T1])
    consumer.seek_to_beginning(T1)
    assert len(read(consumer, 3)) == 3
    with pytest.raises(KafkaTimeoutError, match="the position of t-0"):
        consumer.position(T0, timeout_ms=2000)
    assert "looked up" in consumer.health()["partitions"]["t-0"]["problem"]


def test_a_seek_wins_over_a_look_up_that_is_under_way(cluster: Cluster, make: MakeConsumer) -> None:
    cluster.fill(10)
    cluster.script["ListOffsets"] = deque([SILENCE])
    consumer = make()
    consumer.assign([T0])
    consumer.poll(timeout_ms=100)
    consumer.seek(T0, 7)
    assert [record.offset for record in read(consumer, 3)] == [7, 8, 9]
