"""What handlers find behind the lines that end a common question, and that no line comes for each record."""

from __future__ import annotations

import logging
import time

from kafka import KafkaConsumer, KafkaProducer
from kafka.broker import Broker
from kafka.errors import RecordTooLargeError

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
    (starts,) = found(caplog, "Reading starts")
    assert (starts.kafka_client_id, starts.kafka_group) == ("cook", "kitchen")
    assert "the group has no committed offsets of them and auto_offset_reset is 'earliest'" in starts.getMessage()
    ours = [record for record in caplog.records if not record.name.startswith("kafka.broker")]
    assert count == 200
    assert len(ours) < 20, [record.getMessage() for record in ours]


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
