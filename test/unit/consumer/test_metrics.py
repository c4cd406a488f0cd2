"""The metrics of fetching: per response, and gauges of the assignment."""

from __future__ import annotations

from kafka.consumer.metrics import FetchMetrics
from kafka.consumer.subscription_state import SubscriptionState
from kafka.metrics import Metrics
from kafka.metrics.series import Series
from kafka.structs import TopicPartition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def test_responses_and_records_are_counted() -> None:
    metrics, subscription = Metrics(), SubscriptionState()
    series = Series("consumer", "reader")
    fetching = FetchMetrics(metrics, series, "consumer", subscription, committed_only=False)
    fetching.answered(0.25, 30)
    fetching.answered(0.75, 10)
    for topic, records, size in (("t", 500, 64_000), ("u", 100, 16_000)):
        fetching.taken(topic, records, size, records)
    fetching.waited(2.5)
    found = metrics.snapshot()["consumer-fetch-manager-metrics"]
    assert (found["fetch-latency-avg"], found["fetch-latency-max"]) == (500, 750)
    assert found["fetch-throttle-time-max"] == 30
    assert (found["bytes-consumed-total"], found["fetch-size-max"]) == (80_000, 64_000)
    assert (found["records-consumed-total"], found["records-per-request-avg"]) == (600, 300)
    shown = series.collect()
    assert shown["kafka_consumer_records_total"] == {("t",): 500, ("u",): 100}
    assert shown["kafka_consumer_bytes_total"] == {("t",): 64_000, ("u",): 16_000}
    assert shown["kafka_consumer_wait_seconds_total"] == {(): 2.5}


def test_gauges_follow_the_assignment() -> None:
    metrics, subscription = Metrics(), SubscriptionState()
    series = Series("consumer", "reader")
    FetchMetrics(metrics, series, "consumer", subscription, committed_only=False)
    subscription.assign_by_user([T0, T1])
    for partition, position, end in ((T0, 5, 30), (T1, 8, 9)):
        subscription.seek(partition, position)
        subscription.get(partition).high_watermark = end
    found = metrics.snapshot()["consumer-fetch-manager-metrics"]
    assert (found["assigned-partitions"], found["records-lag-max"]) == (2, 25)
    shown = series.collect()
    assert shown["kafka_consumer_lag_records"] == {("t", "0"): 25, ("t", "1"): 1}
    assert shown["kafka_consumer_assigned_partitions"] == {("t",): 2}
    subscription.get(T0).stable_offset = 7
    assert series.collect()["kafka_consumer_lag_records"]["t", "0"] == 25
    subscription.unsubscribe()
    assert metrics.snapshot()["consumer-fetch-manager-metrics"]["records-lag-max"] == 0
    assert series.collect()["kafka_consumer_lag_records"] == {}


def test_with_read_committed_the_lag_ends_at_the_first_open_transaction() -> None:
    subscription, series = SubscriptionState(), Series("consumer", "reader")
    FetchMetrics(Metrics(), series, "consumer", subscription, committed_only=True)
    subscription.assign_by_user([T0])
    assert series.collect()["kafka_consumer_lag_records"] == {}  # neither position nor end is known
    subscription.seek(T0, 5)
    subscription.get(T0).high_watermark = 30
    subscription.get(T0).stable_offset = 7
    assert series.collect()["kafka_consumer_lag_records"] == {("t", "0"): 2}
