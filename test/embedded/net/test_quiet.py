"""Clients that have nothing to do do nothing: no requests, and no turns of the loop but for deadlines."""

from __future__ import annotations

import time

import pytest

from kafka import KafkaConsumer
from kafka._core.client import Client
from kafka._runtime.network_thread import ThreadDriver, complete
from kafka.broker import Broker
from kafka.config import resolve
from kafka.protocol.metadata import MetadataRequest
from kafka.structs import TopicPartition

SPAN = 1.0


pytestmark = pytest.mark.kafka_broker(topics={"t": 50})


def names(broker: Broker) -> list[str]:
    return [request.name for request in broker.requests]


@pytest.mark.slow
def test_a_consumer_whose_partitions_are_paused_asks_for_nothing(broker: Broker) -> None:
    with KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, fetch_max_wait_ms=100) as consumer:
        partitions = [TopicPartition("t", number) for number in range(50)]
        consumer.assign(partitions)
        consumer.seek_to_beginning()
        assert {consumer.position(partition) for partition in partitions} == {0}
        consumer.poll(timeout_ms=500)
        consumer.pause(*partitions)
        deadline = time.monotonic() + 60
        while names(broker):  # a fetch was under way
            assert time.monotonic() < deadline
            broker.forget_requests()
            consumer.poll(timeout_ms=500)
        turns = consumer._core.loop.turns
        assert not consumer.poll(timeout_ms=SPAN * 1000)
        assert names(broker) == []
        assert consumer._core.loop.turns - turns <= 4
        consumer.resume(*partitions)
        broker.append("t", b"x", partition=7)
        deadline = time.monotonic() + 60
        while not (found := consumer.poll(timeout_ms=500)):
            assert time.monotonic() < deadline
        assert [record.value for records in found.values() for record in records] == [b"x"]


@pytest.mark.slow
def test_an_unused_client_sleeps(broker: Broker) -> None:
    client = Client(resolve("consumer", {"bootstrap_servers": broker.bootstrap_servers}))
    driver = ThreadDriver(client.loop)
    try:
        complete(driver.run(client.bootstrap()))
        complete(driver.run(client.request(MetadataRequest(topics=[]))))
        turns = client.loop.turns
        time.sleep(SPAN)  # nothing is waited for: it is the absence of events that is looked at
        assert client.loop.turns - turns <= 2
    finally:
        complete(driver.close())


@pytest.mark.slow
def test_a_client_whose_brokers_are_gone_makes_few_attempts(broker: Broker) -> None:
    client = Client(
        resolve(
            "consumer",
            {"bootstrap_servers": broker.bootstrap_servers, "reconnect_backoff_ms": 200, "retry_backoff_ms": 200},
        )
    )
    driver = ThreadDriver(client.loop)
    try:
        complete(driver.run(client.bootstrap()))
        broker.close()
        time.sleep(0.2)
        turns = client.loop.turns
        client.loop.call_soon(client.cluster.request_update)
        time.sleep(SPAN)
        assert client.loop.turns - turns <= 40
    finally:
        complete(driver.close())
