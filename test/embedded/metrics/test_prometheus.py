"""What Prometheus sees of the clients: names, labels, numbers; which series there are, and when they end."""

from __future__ import annotations

import gc
import math
import re
import time
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.admin import ConfigResource
from kafka.broker import Broker
from kafka.errors import KafkaError
from kafka.metrics import prometheus
from kafka.metrics.catalog import CATALOG
from kafka.version import __version__

from .conftest import WAIT, shown, value

FACES = "both"


def read(consumer, count):
    found = []
    deadline = time.monotonic() + WAIT
    while len(found) < count and time.monotonic() < deadline:
        for rows in consumer.poll(1000).values():
            found += rows
    assert len(found) == count
    return found


def until(check):
    """Wait until the samples satisfy a check, and return them."""
    deadline = time.monotonic() + WAIT
    while True:
        found = shown()
        try:
            if check(found):
                return found
        except (KeyError, ValueError):
            pass
        assert time.monotonic() < deadline, found
        time.sleep(0.01)


def test_a_producer_and_a_consumer_are_counted_by_topic(make):
    producer = make("producer", client_id="shop")
    consumer = make("consumer", "orders", "payments", group_id="billing", client_id="biller")
    producer.send_many("orders", [b"x"] * 100).get(WAIT)
    producer.send("payments", b"x").get(WAIT)
    read(consumer, 101)
    consumer.commit()
    consumer.poll(50)  # which waits, as there is nothing left
    name = "kafka_consumer_records_total"
    found = until(lambda found: (value(found, name, topic="payments"), value(found, name, topic="orders")) == (1, 100))
    assert value(found, "kafka_producer_records_total", client_id="shop", topic="orders") == 100
    assert value(found, "kafka_producer_records_total", client_id="shop", topic="payments") == 1
    assert value(found, "kafka_producer_bytes_total", topic="payments") > 0
    assert value(found, "kafka_producer_batch_records_sum", client_id="shop") == 101
    assert value(found, "kafka_producer_batch_records_count", client_id="shop") >= 2
    assert value(found, "kafka_producer_queue_seconds_sum", client_id="shop") > 0
    assert value(found, "kafka_producer_blocked_seconds_total", client_id="shop", reason="metadata") > 0
    assert value(found, name, client_id="biller", topic="orders") == 100
    assert value(found, "kafka_consumer_assigned_partitions", topic="orders") == 2
    assert value(found, "kafka_consumer_rebalances_total", group="billing") == 1
    assert value(found, "kafka_consumer_commits_total", group="billing", result="ok") >= 1
    assert value(found, "kafka_consumer_commit_seconds_count", group="billing") >= 1
    assert value(found, "kafka_consumer_wait_seconds_total", client_id="biller") > 0
    assert value(found, "kafka_consumer_last_poll_seconds", client_id="biller") < WAIT
    assert value(found, "kafka_client_info", client_id="biller", group="billing", kind="consumer") == 1
    assert value(found, "kafka_client_info", client_id="shop", version=__version__) == 1
    assert value(found, "kafka_client_healthy", client_id="shop") == 1
    assert value(found, "kafka_client_connections", client_id="shop") >= 1
    sent = [number for labels, number in found["kafka_client_sent_bytes_total"].items() if ("node_id", "1") in labels]
    assert all(sent)


def test_the_lag_of_each_partition_is_that_of_the_position(broker, make):
    for number in range(10):
        broker.append("orders", value=b"%d" % number, partition=0)
    consumer = make("consumer", group_id=None, client_id="reader", enable_auto_commit=False)
    consumer.assign([TopicPartition("orders", 0), TopicPartition("orders", 1)])
    assert sum(map(len, consumer.poll(WAIT * 1000, max_records=4).values())) == 4
    found = until(lambda found: value(found, "kafka_consumer_lag_records", partition="1") == 0)
    assert value(found, "kafka_consumer_lag_records", topic="orders", partition="0") == 6
    assert consumer.current_lag(TopicPartition("orders", 0)) == 6


def test_the_series_of_a_closed_client_end(make):
    producer = make("producer", client_id="short")
    producer.send("orders", b"x").get(WAIT)
    assert value(shown(), "kafka_producer_records_total", client_id="short") == 1
    producer.close()
    assert "short" not in prometheus.text()


def test_records_that_failed_are_counted_by_the_class_of_their_error(make, broker):
    producer = make("producer", client_id="failing", max_request_size=1000)
    sent = producer.send("orders", b"x" * 2000)
    assert sent.exception is not None
    name = type(sent.exception).__name__
    found = shown()
    if name == "RecordTooLargeError":  # the asyncio producer refuses it, and its program has the error
        assert value(found, "kafka_producer_record_errors_total", topic="orders", error=name) == 1
    broker.create_topic("small", configs={"max.message.bytes": "100"})
    large = producer.send("small", b"x" * 500)
    with pytest.raises(KafkaError) as raised:
        large.get(WAIT)
    found = shown()
    assert value(found, "kafka_producer_record_errors_total", topic="small", error=type(raised.value).__name__) == 1


def test_transactions_are_counted_by_how_they_ended(make):
    producer = make("producer", client_id="mover", transactional_id="mover")
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("orders", b"x")
    producer.commit_transaction()
    producer.begin_transaction()
    producer.abort_transaction()
    found = shown()
    assert value(found, "kafka_producer_transactions_total", result="committed") == 1
    assert value(found, "kafka_producer_transactions_total", result="aborted") == 1
    assert value(found, "kafka_producer_blocked_seconds_total", reason="transaction") > 0


def test_a_share_consumer_is_counted(make, broker):
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.alter_configs([ConfigResource("GROUP", "workers", {"share.auto.offset.reset": "earliest"})])
    broker.append("orders", value=b"a", partition=0)
    broker.append("orders", value=b"b", partition=1)
    share = make("share", "orders", group_id="workers", client_id="worker")
    taken = 0
    deadline = time.monotonic() + WAIT
    while taken < 2 and time.monotonic() < deadline:
        taken += sum(map(len, share.poll(1000).values()))
    share.commit()
    found = until(lambda found: value(found, "kafka_share_acknowledgements_total", result="ok") == 2)
    assert value(found, "kafka_consumer_records_total", client_id="worker", topic="orders") == 2
    assert value(found, "kafka_consumer_assigned_partitions", client_id="worker", topic="orders") == 2
    assert value(found, "kafka_share_acknowledgements_total", topic="orders", result="ok") == 2
    assert value(found, "kafka_client_info", client_id="worker", kind="share", group="workers") == 1


@pytest.mark.one_face  # the asyncio client is made in the other test
def test_the_calls_of_an_administrator_are_counted(make):
    admin = make("admin", client_id="root")
    admin.list_topics()
    with pytest.raises(KafkaError):
        admin.delete_topics(["nothing"])
    found = shown()
    assert value(found, "kafka_admin_calls_total", call="list_topics", result="ok") == 1
    assert value(found, "kafka_admin_calls_total", call="delete_topics", result="UnknownTopicOrPartitionError") == 1
    assert value(found, "kafka_admin_call_seconds_total", call="list_topics") > 0


def test_two_clients_with_one_client_id_have_different_labels(make):
    first, second = make("producer", client_id="same"), make("producer", client_id="same")
    first.send("orders", b"x").get(WAIT)
    second.send_many("orders", [b"x"] * 2).get(WAIT)
    found = shown()
    assert value(found, "kafka_producer_records_total", client_id="same") == 1
    assert value(found, "kafka_producer_records_total", client_id="same#2") == 2


def test_records_are_counted_as_they_are_taken(make):
    """An application that is slow may be at the records of one response for hours."""
    make("producer").send_many("payments", [b"x"] * 100).get(WAIT)
    consumer = make("consumer", "payments")
    until(lambda _: consumer.poll(100, max_records=10))
    assert value(shown(), "kafka_consumer_records_total", topic="payments") == 10
    read(consumer, 90)
    assert value(shown(), "kafka_consumer_records_total", topic="payments") == 100


def test_a_pause_that_a_quota_asks_for_is_counted(make, broker):
    producer = make("producer", client_id="throttled", linger_ms=0)
    producer.send("orders", b"x").get(WAIT)

    def throttle(exchange):
        exchange.reply.throttle_time_ms = 20

    with broker.intercept("Produce", throttle):
        producer.send("orders", b"x").get(WAIT)
    found = until(lambda found: sum(found["kafka_client_throttled_seconds_total"].values()) > 0)
    assert sum(found["kafka_client_throttled_seconds_total"].values()) == pytest.approx(0.02)


@pytest.mark.one_face  # the collector knows of no faces
def test_register_shows_the_same_through_prometheus_client(make):
    registry = CollectorRegistry()
    collector = prometheus.register(registry)
    assert generate_latest(registry) == b""
    producer = make("producer", client_id="shop")  # after register()
    producer.send("orders", b"x").get(WAIT)
    page = generate_latest(registry).decode()
    families = {family.name: family for family in openmetrics(generate_openmetrics(registry).decode())}
    assert {sample.name for sample in families["kafka_client_request_seconds"].samples} == {
        "kafka_client_request_seconds_sum",
        "kafka_client_request_seconds_count",
    }
    assert len(families["kafka_client_request_seconds"].samples) > 2  # of several brokers
    assert 'kafka_producer_records_total{client_id="shop",topic="orders"} 1.0' in page
    assert "# TYPE kafka_client_request_seconds summary" in page
    producer.close()
    assert "shop" not in generate_latest(registry).decode()
    registry.unregister(collector)


@pytest.mark.one_face  # a consumer that is not used needs no broker that answers
def test_5000_partitions_stay_within_max_series(broker):
    """O9: beyond max_series there are sums, first over the partitions of each topic, then over topics."""
    with Broker(topics={f"t{number}": 50 for number in range(100)}) as large:
        for number in range(100):
            large.append(f"t{number}", value=b"x", partition=number % 50)
        with KafkaConsumer(
            *(f"t{number}" for number in range(100)),
            bootstrap_servers=large.bootstrap_servers,
            auto_offset_reset="earliest",
            client_id="wide",
        ) as consumer:
            read(consumer, 100)
            deadline = time.monotonic() + WAIT
            while len(shown(10**6).get("kafka_consumer_lag_records", ())) < 5000 and time.monotonic() < deadline:
                consumer.poll(10)
            whole, few, fewest = shown(10**6), shown(), shown(50)
    assert len(whole["kafka_consumer_lag_records"]) == 5000
    assert value(whole, "kafka_client_series_dropped") == 0
    assert sum(map(len, few.values())) <= 2001
    assert len(few["kafka_consumer_lag_records"]) == 100
    assert {dict(labels)["partition"] for labels in few["kafka_consumer_lag_records"]} == {""}
    assert value(few, "kafka_client_series_dropped") == 4900
    assert sum(map(len, fewest.values())) <= 51
    # What was summed over is still whole.
    for found in (whole, few, fewest):
        assert sum(found["kafka_consumer_records_total"].values()) == 100
        assert sum(found["kafka_consumer_assigned_partitions"].values()) == 5000


@pytest.mark.one_face  # both faces count into the same series
def test_every_name_and_label_is_in_the_catalog_and_every_number_is_finite(make):
    producer = make("producer", metrics_num_samples=2)
    producer.send("orders", b"x").get(WAIT)
    make("consumer", "orders", group_id="g").poll(100)
    page = prometheus.text()
    assert page
    for name, found in shown().items():
        for labels, number in found.items():
            assert {key for key, _ in labels} == {"client_id", *CATALOG[name].labels}, name
            assert math.isfinite(number)
    assert "NaN" not in page
    assert "Inf" not in page


@pytest.mark.one_face  # a client without a reference
def test_a_client_that_was_dropped_is_shown_no_more(broker):
    made = [KafkaConsumer("orders", bootstrap_servers=broker.bootstrap_servers, client_id="dropped")]
    assert "dropped" in prometheus.text()
    with pytest.warns(ResourceWarning):
        made.clear()
    gc.collect()
    assert "dropped" not in prometheus.text()


def test_metrics_that_are_off_show_nothing(make):
    producer = make("producer", client_id="silent", metrics_enabled=False)
    producer.send("orders", b"x").get(WAIT)
    assert "silent" not in prometheus.text()


@pytest.mark.one_face  # the registry of a consumer is one class for both faces
def test_every_historic_metric_of_consumers_is_in_the_documentation(make):
    consumer = make("consumer", "orders", group_id="g")
    consumer.poll(100)
    share = make("share", "orders", group_id="s")
    names = {
        name
        for client in (consumer, share)
        for group, found in client.metrics().items()
        for name in found
        if group.endswith(("manager-metrics", "coordinator-metrics")) or name == "poll-idle-ratio-avg"
    }
    assert "records-lag-max" in names
    page = (Path(__file__).parents[3] / "docs" / "operations.rst").read_text(encoding="utf-8")
    section = page[page.index("Metrics of a consumer") : page.index("Why a producer is slow")]
    assert names == set(re.findall(r"^``([a-z-]+)``  ", section, re.MULTILINE))
