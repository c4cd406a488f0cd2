"""What automatic commits store, and when they have nothing to store."""

from __future__ import annotations

from collections import deque
from typing import Any

from kafka.consumer import KafkaConsumer
from kafka.errors import RebalanceInProgressError, RequestTimedOutError
from kafka.structs import OffsetAndMetadata
from test.unit.consumer.scripted import T0, T1, Cluster, MakeConsumer, read

INTERVAL = 5.0
HOURS: Any = {
    "fetch_max_wait_ms": 60_000,
    "request_timeout_ms": 70_000,
    "default_api_timeout_ms": 70_000,
    "heartbeat_interval_ms": 40_000,
}  # little else happens meanwhile


def poll_for(consumer: KafkaConsumer, cluster: Cluster, seconds: float, step: float = 1.0) -> None:
    end = cluster.now + seconds
    while cluster.now < end:
        consumer.poll(timeout_ms=step * 1000)


def commits(cluster: Cluster) -> list[dict[Any, int]]:
    """The offsets of each commit that was sent."""
    return [
        {
            (topic.name, part.partition_index): part.committed_offset
            for topic in request.topics
            for part in topic.partitions
        }
        for request in cluster.asked("OffsetCommit")
    ]


def test_offsets_that_are_stored_are_not_committed_again(cluster: Cluster, make: MakeConsumer) -> None:
    consumer = make("t", group_id="g")
    cluster.fill(10)
    read(consumer, 10)
    poll_for(consumer, cluster, 60)
    assert commits(cluster) == [{T0: 10, T1: 0}]
    cluster.fill(1)
    poll_for(consumer, cluster, 60)
    assert commits(cluster)[1:] == [{T0: 11}]
    consumer.close()
    assert len(commits(cluster)) == 2


def test_a_consumer_that_reads_nothing_new_commits_nothing(cluster: Cluster, make: MakeConsumer) -> None:
    cluster.fill(10)
    cluster.committed = {T0: 10, T1: 0}
    consumer = make("t", group_id="g")
    poll_for(consumer, cluster, 60)
    consumer.close()
    assert commits(cluster) == []


def test_a_position_that_goes_back_is_committed(cluster: Cluster, make: MakeConsumer) -> None:
    consumer = make("t", group_id="g")
    cluster.fill(10)
    read(consumer, 10)
    poll_for(consumer, cluster, 2 * INTERVAL)
    consumer.pause(T0)
    consumer.seek(T0, 3)
    poll_for(consumer, cluster, 2 * INTERVAL)
    assert commits(cluster)[1:] == [{T0: 3}]


def test_a_commit_of_the_application_counts(cluster: Cluster, make: MakeConsumer) -> None:
    consumer = make("t", group_id="g")
    cluster.fill(10)
    read(consumer, 10)
    consumer.commit()
    poll_for(consumer, cluster, 2 * INTERVAL)
    assert len(commits(cluster)) == 1
    consumer.commit({T0: OffsetAndMetadata(4)})
    poll_for(consumer, cluster, 2 * INTERVAL)
    assert commits(cluster)[1:] == [{T0: 4}, {T0: 10}]


def test_a_commit_that_failed_is_made_again(cluster: Cluster, make: MakeConsumer) -> None:
    cluster.script["OffsetCommit"] = deque([RequestTimedOutError.errno] * 2)
    consumer = make("t", group_id="g")
    cluster.fill(10)
    read(consumer, 10)
    poll_for(consumer, cluster, 4 * INTERVAL)
    assert len(commits(cluster)) == 3
    assert cluster.committed[T0] == 10


def test_offsets_stored_before_a_rebalance_do_not_count_as_stored_after_it(
    cluster: Cluster, make: MakeConsumer
) -> None:
    """Another member had the partition in between, and has committed; then the application seeks back."""

    class SeeksToTen:
        def on_partitions_revoked(self, revoked: Any) -> None:
            cluster.committed[T0] = 20

        def on_partitions_assigned(self, assigned: Any) -> None:
            consumer.seek(T0, 10)

    consumer = make(group_id="g")
    consumer.subscribe(["t"], listener=SeeksToTen())
    poll_for(consumer, cluster, 2 * INTERVAL)
    assert cluster.committed[T0] == 10
    cluster.script["Heartbeat"] = deque([RebalanceInProgressError.errno])
    poll_for(consumer, cluster, 4 * INTERVAL)
    assert len(cluster.asked("JoinGroup")) == 2
    assert cluster.committed[T0] == 10


def test_offsets_that_may_expire_are_committed_again_after_an_hour(cluster: Cluster, make: MakeConsumer) -> None:
    """Partitions that are assigned by hand make no member, for which the broker would keep the offsets."""
    consumer = make(group_id="g", **HOURS)
    consumer.assign([T0])
    cluster.fill(10)
    read(consumer, 10)
    poll_for(consumer, cluster, 2.5 * 3600, step=60)
    assert commits(cluster) == [{T0: 10}] * 3


def test_offsets_of_members_do_not_expire_on_brokers_since_2_1(cluster: Cluster, make: MakeConsumer) -> None:
    consumer = make("t", group_id="g", **HOURS)
    cluster.fill(10)
    read(consumer, 10)
    poll_for(consumer, cluster, 2.5 * 3600, step=60)
    assert len(commits(cluster)) == 1


def test_offsets_of_members_expire_on_older_brokers(cluster: Cluster, make: MakeConsumer) -> None:
    cluster.broker.ranges = {**cluster.broker.ranges, 0: (0, 6), 1: (0, 8), 2: (0, 3), 3: (0, 6)}
    consumer = make("t", group_id="g", **HOURS)
    cluster.fill(10)
    read(consumer, 10)
    poll_for(consumer, cluster, 2.5 * 3600, step=60)
    assert len(commits(cluster)) == 3
