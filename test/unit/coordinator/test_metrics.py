"""The metrics of a group's member."""

from __future__ import annotations

from kafka.consumer.subscription_state import SubscriptionState
from kafka.coordinator.heartbeat import Heartbeat
from kafka.coordinator.metrics import ConsumerCoordinatorMetrics, GroupCoordinatorMetrics
from kafka.metrics import Metrics
from kafka.structs import TopicPartition
from kafka.testing import FakeClock

GROUP = "consumer-coordinator-metrics"


def test_joins_syncs_and_heartbeats_are_measured() -> None:
    metrics, clock = Metrics(), FakeClock()
    heartbeat = Heartbeat(clock=clock)
    member = GroupCoordinatorMetrics(heartbeat, metrics, "consumer")
    member.joined(0.2)
    member.joined(0.4)
    member.synced(0.1)
    member.heartbeat(0.03)
    heartbeat.received_heartbeat()
    clock.advance(5)
    found = metrics.snapshot()[GROUP]
    assert (round(found["join-time-avg"]), round(found["join-time-max"])) == (300, 400)
    assert (found["sync-time-max"], found["heartbeat-response-time-max"]) == (100, 30)
    assert found["last-heartbeat-seconds-ago"] == 5


def test_commits_and_assigned_partitions_are_measured() -> None:
    metrics, subscription = Metrics(), SubscriptionState()
    consumer = ConsumerCoordinatorMetrics(metrics, "consumer", subscription)
    consumer.committed(0.05)
    subscription.assign_by_user([TopicPartition("t", 0), TopicPartition("t", 1)])
    found = metrics.snapshot()[GROUP]
    assert (found["commit-latency-max"], found["assigned-partitions"]) == (50, 2)


def test_two_members_may_share_a_registry() -> None:
    metrics = Metrics()
    for _ in range(2):
        GroupCoordinatorMetrics(Heartbeat(), metrics, "consumer").joined(0.1)
        ConsumerCoordinatorMetrics(metrics, "consumer", SubscriptionState()).committed(0.1)
    assert metrics.snapshot()[GROUP]["join-time-max"] == 100
