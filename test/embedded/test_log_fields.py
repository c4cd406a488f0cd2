"""What handlers find behind the lines that end a common question, and that no line comes for each record."""

from __future__ import annotations

import logging
import time

import pytest

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, KafkaShareConsumer
from kafka.admin import ConfigResource
from kafka.broker import Broker
from kafka.errors import KafkaTimeoutError, RecordTooLargeError

FACES = "both"
WAIT = 60


def found(caplog, text):
    """Return the records of a line, by its constant template."""
    return [record for record in caplog.records if text in record.msg]


def test_a_member_logs_its_cluster_its_assignment_and_its_start_once(face, caplog):
    with Broker(topics={"orders": 2}) as broker, caplog.at_level(logging.INFO, "kafka"):
        for number in range(200):
            broker.append("orders", value=b"%d" % number, partition=number % 2)
        consumer = KafkaConsumer(
            "orders",
            bootstrap_servers=broker.bootstrap_servers,
            group_id="kitchen",
            client_id="cook",
            auto_offset_reset="earliest",
        )
        try:
            count, deadline = 0, time.monotonic() + WAIT
            while count < 200 and time.monotonic() < deadline:
                count += sum(map(len, consumer.poll(timeout_ms=1000).values()))
        finally:
            consumer.close()
    (connected,) = found(caplog, "is connected to cluster")
    assert connected.kafka_client_id == "cook"
    (assigned,) = found(caplog, "is assigned")
    assert assigned.kafka_group == "kitchen"
    (rebalanced,) = found(caplog, "rebalanced in")
    assert (rebalanced.kafka_client_id, rebalanced.kafka_group) == ("cook", "kitchen")
    assert rebalanced.getMessage().endswith(" s: this member has 2 of 2 partitions, because startup")
    (starts,) = found(caplog, "Reading starts")
    assert (starts.kafka_client_id, starts.kafka_group) == ("cook", "kitchen")
    assert "the group has no committed offsets of them and auto_offset_reset is 'earliest'" in starts.getMessage()
    ours = [record for record in caplog.records if not record.name.startswith("kafka.broker")]
    assert count == 200
    assert len(ours) < 20, [record.getMessage() for record in ours]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_rebalance_has_its_share_of_the_partitions_and_its_reason(face, caplog, protocol):
    options = {"group_id": "kitchen", "group_protocol": protocol, "auto_offset_reset": "earliest"}
    with Broker(topics={"orders": 4}) as broker, caplog.at_level(logging.INFO, "kafka"):
        first = KafkaConsumer("orders", bootstrap_servers=broker.bootstrap_servers, client_id="first", **options)
        deadline = time.monotonic() + WAIT
        while not found(caplog, "rebalanced in"):
            first.poll(timeout_ms=50)
            assert time.monotonic() < deadline
        second = KafkaConsumer("orders", bootstrap_servers=broker.bootstrap_servers, client_id="second", **options)
        try:
            while len(first.assignment()) != 2 or len(second.assignment()) != 2:
                first.poll(timeout_ms=50)
                second.poll(timeout_ms=50)
                assert time.monotonic() < deadline
        finally:
            second.close()
            first.close()
    lines = [record for record in found(caplog, "rebalanced in") if record.kafka_client_id == "first"]
    texts = [record.getMessage() for record in lines]
    assert "this member has 4 of 4 partitions, because startup" in texts[0]
    reason = "the group rebalances" if protocol == "classic" else "the coordinator changed the assignment"
    assert any(f"this member has 2 of 4 partitions, because {reason}" in text for text in texts[1:]), texts


@pytest.mark.parametrize("protocol", ["classic", "consumer", "share"])
def test_a_member_that_does_not_poll_leaves_with_a_line_that_has_the_records_of_its_last_poll(face, caplog, protocol):
    options = {"group_id": "kitchen", "max_poll_interval_ms": 1000, "max_poll_records": 7}
    with Broker(topics={"orders": 1}) as broker, caplog.at_level(logging.WARNING, "kafka"):
        for number in range(9):
            broker.append("orders", value=b"%d" % number)
        if protocol == "share":
            with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
                admin.alter_configs([ConfigResource("GROUP", "kitchen", {"share.auto.offset.reset": "earliest"})])
            consumer = KafkaShareConsumer("orders", bootstrap_servers=broker.bootstrap_servers, **options)
        else:
            options |= {"group_protocol": protocol, "auto_offset_reset": "earliest"}
            consumer = KafkaConsumer("orders", bootstrap_servers=broker.bootstrap_servers, **options)
        try:
            deadline = time.monotonic() + WAIT
            while not (polled := consumer.poll(timeout_ms=500)):
                assert time.monotonic() < deadline
            count = sum(map(len, polled.values()))
            while not found(caplog, "leaves the group"):
                time.sleep(0.01)
                assert time.monotonic() < deadline
        finally:
            consumer.close()
    (line,) = found(caplog, "leaves the group")
    assert (line.levelname, line.kafka_group) == ("WARNING", "kitchen")
    why = f"because poll() was not called for 1 s (max_poll_interval_ms); the last one returned {count} records. Return"
    assert why in line.getMessage()
    assert count == 7


def test_a_send_that_waits_for_a_topic_is_one_line_with_the_topic(face, caplog):
    with (
        Broker(configs={"auto.create.topics.enable": "false"}) as broker,
        caplog.at_level(logging.WARNING, "kafka.producer"),
    ):
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, max_block_ms=3000)
        with pytest.raises(KafkaTimeoutError):
            producer.send("ordres", b"x").get(WAIT)
        producer.close()
    (line,) = found(caplog, "does not have topic")
    assert (line.levelname, line.kafka_topic) == ("WARNING", "ordres")


def test_records_that_failed_unseen_are_one_line_with_topic_and_error(face, caplog):
    with Broker(topics=["orders"]) as broker, caplog.at_level(logging.ERROR, "kafka.producer"):
        broker.create_topic("small", configs={"max.message.bytes": "100"})
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, linger_ms=0)
        for _ in range(12):
            producer.send("small", b"x" * 500)
        producer.flush()
        producer.close()
    (line,) = found(caplog, "the program has not looked at the error")
    assert (line.levelname, line.kafka_topic) == ("ERROR", "small")
    assert line.kafka_error
    assert not isinstance(line.kafka_error, RecordTooLargeError)
    assert line.getMessage().startswith("12 records to topic 'small' failed")
