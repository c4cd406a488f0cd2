"""Clients that are made with ``bootstrap_timeout_ms=0`` before a broker is there: it comes later, never, or refuses."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from kafka import KafkaAdminClient, KafkaClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.aio import AIOKafkaConsumer, AIOKafkaProducer
from kafka.aio.admin import AIOKafkaAdminClient
from kafka.broker import Broker
from kafka.errors import (
    KafkaTimeoutError,
    NoBrokersAvailable,
    SaslAuthenticationFailedError,
    SslAuthenticationError,
    UnsupportedVersionError,
)
from kafka.net.resolver import Resolver

from .config.servers import free_port
from .faces import Loop

PATIENCE = 60  # seconds
WRONG = {
    "security_protocol": "SASL_PLAINTEXT",
    "sasl_mechanism": "PLAIN",
    "sasl_plain_username": "ada",
    "sasl_plain_password": "wrong",
}


class Face:
    """Producers and consumers of one face, called from the thread of a test."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._loop = Loop() if name == "asyncio" else None
        self._made: list[Any] = []

    def _start(self, kind: Any, *args: Any, **options: Any) -> Any:
        async def start() -> Any:
            client = kind(*args, bootstrap_timeout_ms=0, **options)
            await client.start()
            return client

        client = kind(*args, bootstrap_timeout_ms=0, **options) if self._loop is None else self._loop.run(start)
        self._made.append(client)
        return client

    def producer(self, **options: Any) -> Any:
        return self._start(KafkaProducer if self._loop is None else AIOKafkaProducer, **options)

    def consumer(self, *topics: str, **options: Any) -> Any:
        return self._start(
            KafkaConsumer if self._loop is None else AIOKafkaConsumer, *topics, auto_offset_reset="earliest", **options
        )

    def admin(self, **options: Any) -> Any:
        return self._start(KafkaAdminClient if self._loop is None else AIOKafkaAdminClient, **options)

    def call(self, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        if self._loop is None:
            return function(*args, **options)
        return self._loop.run(lambda: function(*args, **options))

    def send(self, producer: Any, value: bytes) -> int:
        """Send a record and return its offset."""
        if self._loop is None:
            return int(producer.send("events", value).get(PATIENCE).offset)
        return int(self._loop.run(lambda: producer.send_and_wait("events", value)).offset)

    def poll(self, consumer: Any, timeout_ms: float) -> list[bytes]:
        found = self.call(consumer.poll if self._loop is None else consumer.getmany, timeout_ms=timeout_ms)
        return [record.value for records in found.values() for record in records]

    def read(self, consumer: Any, count: int) -> list[bytes]:
        found: list[bytes] = []
        deadline = time.monotonic() + PATIENCE
        while len(found) < count and time.monotonic() < deadline:
            found += self.poll(consumer, 200)
        return found

    def wait_for(self, problem: str, client: Any) -> None:
        """Wait until `health()` reports a problem."""
        deadline = time.monotonic() + PATIENCE
        while not any(problem in each for each in self.call(client.health)["problems"]):
            assert time.monotonic() < deadline, self.call(client.health)
            time.sleep(0.01)

    def close(self, client: Any) -> None:
        if client in self._made:
            self._made.remove(client)
        self.call(client.close if self._loop is None else client.stop)

    def close_all(self) -> None:
        for client in list(self._made):
            self.close(client)
        if self._loop is not None:
            self._loop.close()


@pytest.fixture(params=["threads", "asyncio"])
def of(request: pytest.FixtureRequest) -> Iterator[Face]:
    face = Face(request.param)
    yield face
    face.close_all()


@pytest.fixture
def later() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


def test_a_record_that_is_sent_before_the_broker_is_there_is_delivered(of: Face, later: ThreadPoolExecutor) -> None:
    port = free_port()
    producer = of.producer(bootstrap_servers=f"127.0.0.1:{port}")
    sent = [later.submit(of.send, producer, value) for value in (b"a", b"b")]
    of.wait_for("refused", producer)
    assert not any(each.done() for each in sent)
    with Broker(topics=["events"], port=port) as broker:
        assert sorted(each.result(PATIENCE) for each in sent) == [0, 1]
        assert {record.value for record in broker.records("events")} == {b"a", b"b"}
        assert of.call(producer.health)["ok"]
        of.close(producer)


def test_a_client_whose_release_is_given_needs_no_broker_either() -> None:
    """As in kafka-python 1.x and 2.x, where programs set api_version to start before their brokers."""
    port = free_port()
    with KafkaProducer(bootstrap_servers=f"127.0.0.1:{port}", api_version=(2, 6)) as producer:
        assert not producer.bootstrap_connected()
        with Broker(topics=["events"], port=port):
            assert producer.send("events", b"a").get(PATIENCE).offset == 0


@pytest.mark.parametrize("group", [None, "readers"])
def test_a_consumer_reads_when_the_broker_has_come(of: Face, group: str | None) -> None:
    port = free_port()
    consumer = of.consumer("events", bootstrap_servers=f"127.0.0.1:{port}", group_id=group)
    assert of.poll(consumer, 50) == []
    of.wait_for("refused", consumer)
    with Broker(topics=["events"], port=port) as broker:
        broker.append("events", b"hello")
        assert of.read(consumer, 1) == [b"hello"]
        of.close(consumer)


def test_an_admin_client_serves_when_the_broker_has_come(of: Face, later: ThreadPoolExecutor) -> None:
    port = free_port()
    admin = of.admin(bootstrap_servers=f"127.0.0.1:{port}")
    listed = later.submit(of.call, admin.list_topics)
    of.wait_for("refused", admin)
    with Broker(topics=["events"], port=port):
        assert listed.result(PATIENCE) == ["events"]
        of.close(admin)


def test_the_clients_are_used_at_once_if_a_broker_is_there(of: Face) -> None:
    with Broker(topics=["events"]) as broker:
        producer = of.producer(bootstrap_servers=f"127.0.0.1:1,{broker.bootstrap_servers}")
        assert producer.bootstrap_connected()
        assert of.send(producer, b"hello") == 0
        of.close(producer)


def test_a_transaction_is_written_when_the_broker_has_come(of: Face, later: ThreadPoolExecutor) -> None:
    port = free_port()

    def write() -> None:
        producer = of.producer(bootstrap_servers=f"127.0.0.1:{port}", transactional_id="mover")
        if of.name == "threads":  # start() of the other has done it
            producer.init_transactions()
        of.call(producer.begin_transaction)
        assert of.send(producer, b"hello") == 0
        of.call(producer.commit_transaction)
        of.close(producer)

    written = later.submit(write)
    with pytest.raises(TimeoutError):
        written.result(0.3)
    with Broker(topics=["events"], port=port) as broker:
        written.result(PATIENCE)
        assert [record.value for record in broker.records("events", committed=True)] == [b"hello"]


@pytest.mark.parametrize(
    ("servers", "cause"), [("127.0.0.1:1", "Connection refused"), ("no-such-host.invalid:9092", "no-such-host.invalid")]
)
def test_without_a_broker_for_ever_calls_end_by_their_limits_and_say_why(
    of: Face, servers: str, cause: str, caplog: pytest.LogCaptureFixture
) -> None:
    began, used = time.monotonic(), time.process_time()
    with caplog.at_level(logging.WARNING):
        producer = of.producer(bootstrap_servers=servers, max_block_ms=700)
        reader = of.consumer("events", bootstrap_servers=servers)
        member = of.consumer("events", bootstrap_servers=servers, group_id="readers")
    assert any("No broker is there yet" in each.message and cause in each.message for each in caplog.records)
    with pytest.raises(KafkaTimeoutError, match=cause):
        of.send(producer, b"x")
    assert of.poll(reader, 700) == of.poll(member, 700) == []
    for client in (producer, reader, member):
        assert any(cause in problem for problem in of.call(client.health)["problems"])
        closing = time.monotonic()
        of.close(client)
        assert time.monotonic() - closing < 10
    waited = time.monotonic() - began
    assert waited >= 2.1
    # Three clients that wait do little: a busy loop would take all of the time.
    assert time.process_time() - used < 0.75 * waited


def test_a_name_that_is_unknown_at_first_is_looked_up_again(
    of: Face, later: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = threading.Event()
    real = socket.getaddrinfo

    def getaddrinfo(host: Any, *args: Any, **options: Any) -> Any:
        if host in {"kafka", b"kafka"}:
            if not known.is_set():
                raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
            host = "127.0.0.1"
        return real(host, *args, **options)

    monkeypatch.setattr(
        "kafka.net.settings.Resolver",
        lambda loop, workers, _lookup, reverse: Resolver(loop, workers, getaddrinfo, reverse),
    )
    with Broker(topics=["events"]) as broker:
        port = broker.bootstrap_servers.rpartition(":")[2]
        producer = of.producer(bootstrap_servers=f"kafka:{port}")
        sent = later.submit(of.send, producer, b"hello")
        of.wait_for("kafka", producer)
        known.set()
        assert sent.result(PATIENCE) == 0
        of.close(producer)


def test_wrong_credentials_and_tls_at_a_plaintext_port_are_errors_of_the_constructor(of: Face) -> None:
    with Broker(sasl=[("PLAIN", "ada", "secret")]) as broker:
        for make in (of.producer, of.consumer, of.admin):
            with pytest.raises(SaslAuthenticationFailedError):
                make(bootstrap_servers=broker.bootstrap_servers, **WRONG)
    with Broker() as broker:
        for make in (of.producer, of.consumer, of.admin):
            with pytest.raises(SslAuthenticationError, match="security_protocol to PLAINTEXT"):
                make(bootstrap_servers=broker.bootstrap_servers, security_protocol="SSL")


@pytest.mark.parametrize("group", [None, "readers"])
def test_a_broker_that_comes_and_refuses_the_credentials_ends_calls_at_once(of: Face, group: str | None) -> None:
    port = free_port()
    options = {"bootstrap_servers": f"127.0.0.1:{port}", **WRONG}
    producer, consumer = of.producer(**options), of.consumer("events", group_id=group, **options)
    with Broker(sasl=[("PLAIN", "ada", "secret")], port=port):
        with pytest.raises(SaslAuthenticationFailedError):
            of.send(producer, b"x")
        with pytest.raises(SaslAuthenticationFailedError):
            of.poll(consumer, PATIENCE * 1000)
        of.wait_for("SaslAuthenticationFailed", consumer)
        of.close(producer)
        of.close(consumer)


def test_a_version_that_the_brokers_do_not_support_is_an_error_of_send(of: Face, later: ThreadPoolExecutor) -> None:
    port = free_port()
    producer = of.producer(bootstrap_servers=f"127.0.0.1:{port}", compression_type="zstd")
    sent = later.submit(of.send, producer, b"x")
    of.wait_for("refused", producer)
    with Broker(topics=["events"], port=port, as_version="2.0"):
        with pytest.raises(UnsupportedVersionError, match="zstd"):
            sent.result(PATIENCE)
        of.close(producer)


def test_a_client_that_asks_for_the_release_of_the_brokers_raises() -> None:
    with pytest.raises(NoBrokersAvailable, match="within 0 seconds"):
        KafkaClient(bootstrap_servers="127.0.0.1:1", bootstrap_timeout_ms=0)


def test_the_default_raises_as_kafka_python_and_aiokafka_do() -> None:
    async def start() -> None:
        await AIOKafkaProducer(bootstrap_servers="127.0.0.1:1").start()

    with pytest.raises(NoBrokersAvailable, match="bootstrap_timeout_ms"):
        KafkaProducer(bootstrap_servers="127.0.0.1:1")
    with pytest.raises(NoBrokersAvailable, match="bootstrap_timeout_ms"):
        asyncio.run(start())


def test_a_partition_that_is_assigned_by_hand_has_its_position_when_the_broker_has_come(of: Face) -> None:
    port = free_port()
    consumer = of.consumer(bootstrap_servers=f"127.0.0.1:{port}")
    of.call(consumer.assign, [TopicPartition("events", 0)])
    assert of.poll(consumer, 50) == []
    with Broker(topics=["events"], port=port) as broker:
        broker.append("events", b"hello")
        assert of.read(consumer, 1) == [b"hello"]
        of.close(consumer)
