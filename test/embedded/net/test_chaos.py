"""Clients behind a network that misbehaves at any byte: they recover, lose and repeat nothing, leave nothing."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kafka import KafkaConsumer, KafkaProducer
from kafka.broker import Broker
from kafka.client_async import KafkaClient
from kafka.errors import KafkaError
from kafka.protocol.metadata import MetadataRequest
from kafka.structs import TopicPartition
from test.embedded.chaos import END, HALF, MANNERS, RESET, SILENCE, ChaosProxy
from test.embedded.cutting import DOWN, UP
from test.embedded.threads import nothing_left

QUICK: dict[str, Any] = {"retry_backoff_ms": 5, "reconnect_backoff_ms": 5, "reconnect_backoff_max_ms": 20}
# A request that is met with silence is given up after this; long enough for a busy machine to answer.
PATIENT = {**QUICK, "request_timeout_ms": 500}
PATIENCE = 30


pytestmark = pytest.mark.kafka_broker(topics={"t": 2}, seed=1)


@pytest.fixture
def proxy(broker: Broker) -> Iterator[ChaosProxy]:
    with nothing_left(), ChaosProxy(broker) as proxy:
        yield proxy


# Every byte of a connection's life


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("step", [67, pytest.param(1, marks=pytest.mark.soak)])
@pytest.mark.parametrize("direction", [UP, DOWN])
@pytest.mark.parametrize("manner", MANNERS)
def test_a_connection_that_breaks_at_any_byte_costs_one_attempt(proxy, manner, direction, step):
    """From the first byte of the first handshake to the last of the reply."""
    proxy.manner = manner
    if manner == SILENCE:
        step = min(23 * step, 200)  # each takes as long as a request may
    with KafkaClient(bootstrap_servers=proxy.bootstrap_servers, **QUICK) as client:
        newest = client.api_version
    for count in range(0, 1000 if direction == DOWN else 200, step):
        proxy.cut_after(count, direction)
        began = time.monotonic()
        with KafkaClient(bootstrap_servers=proxy.bootstrap_servers, **PATIENT) as client:
            try:
                answer = client.ask(MetadataRequest(topics=None), timeout_ms=500)
            except KafkaError as error:  # it was under way: whether to ask again is for the caller to say
                assert error.retriable
                answer = client.ask(MetadataRequest(topics=None), timeout_ms=PATIENCE * 1000)
            assert answer.topics[0].name == "t"
            assert client.api_version == newest
        assert time.monotonic() - began < PATIENCE
        proxy.stop_cutting()


@pytest.mark.parametrize("manner", MANNERS)
def test_a_network_that_never_lets_an_answer_through_ends_in_an_error(proxy, manner):
    proxy.manner = manner
    proxy.cut_after(100, DOWN, times=1_000_000)
    began = time.monotonic()
    with pytest.raises(KafkaError):
        KafkaClient(bootstrap_servers=proxy.bootstrap_servers, bootstrap_timeout_ms=1000, **PATIENT)
    assert time.monotonic() - began < 10


CERTS = Path(__file__).parents[2] / "unit" / "net" / "certs"
SECURE = {
    "security_protocol": "SASL_SSL",
    "ssl_cafile": str(CERTS / "ca.pem"),
    "sasl_mechanism": "SCRAM-SHA-256",
    "sasl_plain_username": "ann",
    "sasl_plain_password": "secret",
}


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("step", [487, pytest.param(17, marks=pytest.mark.soak)])
@pytest.mark.parametrize("direction", [UP, DOWN])
@pytest.mark.parametrize("manner", [END, RESET])
def test_nor_does_one_with_tls_and_sasl(manner, direction, step):
    """A break is never taken for wrong credentials or a wrong certificate, which would be final."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTS / "server.pem", CERTS / "server.key")
    users = [("SCRAM-SHA-256", "ann", "secret")]
    with Broker(topics={"t": 1}, ssl_context=context, sasl=users) as broker, ChaosProxy(broker) as proxy:
        proxy.manner = manner
        for count in range(0, 4000 if direction == DOWN else 1600, step):
            proxy.cut_after(count, direction)
            with KafkaClient(bootstrap_servers=proxy.bootstrap_servers, **PATIENT, **SECURE) as client:
                try:
                    answer = client.ask(MetadataRequest(topics=None), timeout_ms=PATIENCE * 1000)
                except KafkaError as error:
                    assert error.retriable, count
                    answer = client.ask(MetadataRequest(topics=None), timeout_ms=PATIENCE * 1000)
                assert answer.topics[0].name == "t"
            proxy.stop_cutting()


# Pieces


@pytest.mark.slow
@pytest.mark.parametrize(("largest", "pause"), [(1, 0.0), (7, 0.0), (600, 0.003)])
def test_replies_and_requests_may_come_in_any_pieces(broker, proxy, largest, pause):
    proxy.largest_piece, proxy.longest_pause = largest, pause
    values = [f"{number}".encode() * 5 for number in range(60)]
    config = {"bootstrap_servers": proxy.bootstrap_servers, **QUICK}
    with KafkaProducer(acks="all", linger_ms=5, **config) as producer:
        for value in values:
            producer.send("t", value, partition=0)
        producer.flush(PATIENCE)
    assert [record.value for record in broker.records("t", 0)] == values
    assert [value for _, value in _read(config, {0: len(values)})] == values


# What is promised holds


@pytest.mark.slow
@pytest.mark.parametrize("manner", MANNERS)
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(2, 40))])
def test_a_consumer_gets_each_record_once_and_in_order(broker, proxy, manner, seed):
    for partition in (0, 1):
        for number in range(150):
            broker.append("t", f"{number}".encode(), partition=partition)
    proxy.manner = manner
    proxy.cut_all_after(Random(seed), 500, 4000 if manner != SILENCE else 12_000)
    config = {"bootstrap_servers": proxy.bootstrap_servers, **PATIENT, "fetch_max_wait_ms": 50}
    found = _read({**config, "max_partition_fetch_bytes": 800}, {0: 150, 1: 150})
    for partition in (0, 1):
        assert [int(value) for where, value in found if where == partition] == list(range(150))


@pytest.mark.slow
@pytest.mark.parametrize("manner", [RESET, HALF])
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(2, 40))])
def test_a_group_passes_no_record_and_commits_what_it_was_given(broker, proxy, manner, seed):
    for partition in (0, 1):
        broker.append_many("t", [f"{number}".encode() for number in range(100)], partition=partition)
    proxy.manner = manner
    proxy.cut_all_after(Random(seed), 1500, 9000)
    config = {
        "bootstrap_servers": proxy.bootstrap_servers,
        "group_id": "g",
        "auto_offset_reset": "earliest",
        "auto_commit_interval_ms": 20,
        "max_poll_records": 7,
        **PATIENT,
        "fetch_max_wait_ms": 50,
    }
    seen: dict[int, set[int]] = {0: set(), 1: set()}
    latest: dict[int, int] = {}
    with KafkaConsumer("t", **config) as consumer:
        deadline = time.monotonic() + PATIENCE
        while any(len(numbers) < 100 for numbers in seen.values()):
            for partition, records in consumer.poll(timeout_ms=200).items():
                for record in records:
                    # The same again is possible where the membership was lost; to pass one over is not.
                    assert record.offset <= latest.get(partition.partition, -1) + 1
                    latest[partition.partition] = record.offset
                    seen[partition.partition].add(int(record.value))
            assert time.monotonic() < deadline, consumer.health()
        proxy.stop_cutting()
        consumer.commit(timeout_ms=PATIENCE * 1000)
        assert [consumer.committed(TopicPartition("t", number)) for number in (0, 1)] == [100, 100]


def _read(config: dict[str, Any], wanted: dict[int, int]) -> list[tuple[int, bytes]]:
    """Read partitions from their beginnings until there are so many records of each."""
    found: list[tuple[int, bytes]] = []
    with KafkaConsumer(auto_offset_reset="earliest", max_poll_records=20, **config) as consumer:
        consumer.assign([TopicPartition("t", partition) for partition in wanted])
        deadline = time.monotonic() + PATIENCE
        while len(found) < sum(wanted.values()):
            for partition, records in consumer.poll(timeout_ms=200).items():
                found += [(partition.partition, record.value) for record in records]
            assert time.monotonic() < deadline, (len(found), consumer.health())
    return found
