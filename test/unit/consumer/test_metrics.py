"""The metrics of fetching: per response, and gauges of the assignment."""

from __future__ import annotations

from kafka.consumer.metrics import FetchMetrics
from kafka.consumer.subscription_state import SubscriptionState
from kafka.metrics import Metrics
from kafka.structs import TopicPartition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def test_responses_and_records_are_counted() -> None:
    metrics, subscription = Metrics(), SubscriptionState()
    fetching = FetchMetrics(metrics, "consumer", subscription)
    fetching.answered(0.25, 30)
    fetching.answered(0.75, 10)
    fetching.consumed(500, 64_000)
    fetching.consumed(100, 16_000)
    found = metrics.snapshot()["consumer-fetch-manager-metrics"]
    assert (found["fetch-latency-avg"], found["fetch-latency-max"]) == (500, 750)
    assert found["fetch-throttle-time-max"] == 30
    assert (found["bytes-consumed-total"], found["fetch-size-max"]) == (80_000, 64_000)
    assert (found["records-consumed-total"], found["records-per-request-avg"]) == (600, 300)


def test_gauges_follow_the_assignment() -> None:
    metrics, subscription = Metrics(), SubscriptionState()
    FetchMetrics(metrics, "consumer", subscription)
    subscription.assign_by_user([T0, T1])
    for partition, position, end in ((T0, 5, 30), (T1, 8, 9)):
        subscription.seek(partition, position)
        subscription.get(partition).high_watermark = end
    found = metrics.snapshot()["consumer-fetch-manager-metrics"]
    assert (found["assigned-partitions"], found["records-lag-max"]) == (2, 25)
    subscription.unsubscribe()
    assert metrics.snapshot()["consumer-fetch-manager-metrics"]["records-lag-max"] == 0
