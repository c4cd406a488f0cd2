"""Records that fail while no call looks at them are in the log when the producer is closed, on both faces."""

from __future__ import annotations

import asyncio
import logging

import pytest

from kafka import KafkaProducer
from kafka.aio import AIOKafkaProducer
from kafka.errors import InvalidRecordError

FACES = "both"

LOST = "kafka.producer.lost_records"


pytestmark = pytest.mark.kafka_broker(topics=["small"])


@pytest.fixture
def broker(kafka_broker):
    kafka_broker.create_topic("compacted", configs={"cleanup.policy": "compact"})
    return kafka_broker


def lines(caplog):
    return [each.getMessage() for each in caplog.records if (each.name, each.levelname) == (LOST, "ERROR")]


def test_a_record_that_is_too_large_for_the_topic(broker, caplog):
    caplog.set_level(logging.INFO)
    value = b"x" * 2_000_000
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, max_request_size=4_000_000) as producer:
        producer.send("small", value)
        producer.flush()
    (line,) = lines(caplog)
    assert line.startswith("1 record to topic 'small' failed, and the program has not looked at the error: ")
    assert "MessageSizeTooLargeError" in line


def test_tombstones_that_fail_with_the_batch_of_another_record(broker, caplog):
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, linger_ms=60_000) as producer:
        producer.partitions_for("compacted")
        for key in (b"a", b"b", b"c"):
            producer.send("compacted", key=key)
        with pytest.raises(InvalidRecordError):
            producer.send("compacted", b"without a key").get(60)
    (line,) = lines(caplog)
    assert line.startswith("3 records to topic 'compacted' failed")


def test_tasks_that_are_cancelled_while_they_wait_for_a_record_that_fails(broker, caplog):
    async def main():
        async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
            await producer.partitions_for("small")
            with broker.fail("Produce", "TOPIC_AUTHORIZATION_FAILED"), broker.delay("Produce", 0.2):
                task = asyncio.ensure_future(producer.send_and_wait("small", b"x"))
                while not any(seen.name == "Produce" for seen in broker.requests):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait([task])
                await producer.flush()

    asyncio.run(main())
    (line,) = lines(caplog)
    assert line.startswith("1 record to topic 'small' failed")


def test_an_aborted_transaction_loses_nothing(broker, caplog):
    options = {"bootstrap_servers": broker.bootstrap_servers, "transactional_id": "id", "linger_ms": 60_000}
    with KafkaProducer(**options) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("small", b"x")
        producer.abort_transaction()
        producer.begin_transaction()
        producer.send("small", b"x")
    assert lines(caplog) == []
