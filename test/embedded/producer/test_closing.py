"""close() while nothing works: it returns by its time, every future has its outcome, nothing is left (P3, P13)."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kafka import KafkaProducer
from kafka.broker import Broker
from kafka.broker.faults import CLOSE, NO_REPLY
from kafka.errors import ClientClosedError, KafkaError
from test.embedded.holding import held_up
from test.embedded.threads import nothing_left

from .conftest import WAIT

FACES = "both"

TIMEOUT = 0.5
# What a busy machine may add; unbounded, requests have 30 seconds.
SLACK = 12


@contextmanager
def all_down(broker: Broker) -> Iterator[None]:
    for node in broker.node_ids:
        broker.stop_node(node, crash=True)
    try:
        yield
    finally:
        for node in broker.node_ids:
            broker.start_node(node)


@contextmanager
def all_frozen(broker: Broker) -> Iterator[None]:
    with broker.intercept(None, lambda _exchange: NO_REPLY, before=True):
        yield
        broker.drop_connections()  # what is still in its sockets must not be served once the trouble is over


@contextmanager
def all_hanging_up(broker: Broker) -> Iterator[None]:
    with broker.intercept(None, lambda _exchange: CLOSE, before=True):
        yield
        broker.drop_connections()


@contextmanager
def no_reply_after_the_append(broker: Broker) -> Iterator[None]:
    with broker.intercept("Produce", lambda _exchange: NO_REPLY):
        yield


TROUBLES = [all_down, all_frozen, all_hanging_up, no_reply_after_the_append]


pytestmark = pytest.mark.kafka_broker(nodes=3, topics={"events": 3})


def closed_in_time(producer: KafkaProducer, timeout: float) -> bool:
    began = time.monotonic()
    producer.close(timeout=timeout)
    return time.monotonic() - began < timeout + SLACK


@pytest.mark.parametrize("idempotent", [True, False])
@pytest.mark.parametrize("timeout", [0, TIMEOUT])
@pytest.mark.parametrize("trouble", TROUBLES)
def test_close_returns_by_its_time_and_every_future_has_failed(broker, caplog, trouble, timeout, idempotent):
    with nothing_left():
        producer = KafkaProducer(
            bootstrap_servers=broker.bootstrap_servers, batch_size=200, linger_ms=0, enable_idempotence=idempotent
        )
        producer.send("events", b"first").get(WAIT)
        before = sum(len(broker.records("events", index)) for index in range(3))
        with trouble(broker):
            futures = [producer.send("events", b"%d" % number) for number in range(200)]
            assert closed_in_time(producer, timeout)
        assert all(isinstance(future.exception, KafkaError) for future in futures)
        written = {record.value for index in range(3) for record in broker.records("events", index)}
        for number, future in enumerate(futures):
            assert future.exception.outcome_unknown or b"%d" % number not in written
        assert (
            trouble is no_reply_after_the_append or sum(len(broker.records("events", at)) for at in range(3)) == before
        )
    errors = [record for record in caplog.records if record.levelname == "ERROR"]
    assert {record.name for record in errors} == {"kafka.producer.lost_records"}
    producer.close()  # again
    assert errors == [record for record in caplog.records if record.levelname == "ERROR"]


@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_waiting_call_gets_the_error_of_a_close(broker, trouble):
    producer = KafkaProducer(
        bootstrap_servers=broker.bootstrap_servers, buffer_memory=2000, batch_size=500, linger_ms=0
    )
    producer.send("events", b"first").get(WAIT)
    heard: dict[str, BaseException | None] = {}
    with trouble(broker):
        future = producer.send("events", b"x" * 400)

        def fill() -> None:
            while True:
                producer.send("events", b"x" * 400)

        waits = {"send": fill, "flush": producer.flush, "get": future.get}

        def wait(name: str) -> None:
            try:
                waits[name]()
                heard[name] = None
            except KafkaError as error:
                heard[name] = error

        threads = [threading.Thread(target=wait, args=(name,)) for name in waits]
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + WAIT
        while not producer.health()["buffer_waited_for"]:
            assert time.monotonic() < deadline
        assert closed_in_time(producer, TIMEOUT)
        for thread in threads:
            thread.join(WAIT)
    assert not any(thread.is_alive() for thread in threads)
    assert isinstance(heard["send"], ClientClosedError)
    assert isinstance(heard["get"], KafkaError)


def test_a_producer_that_never_got_to_its_cluster_is_gone_at_once():
    with nothing_left(), socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        with pytest.raises(KafkaError):
            KafkaProducer(bootstrap_servers=f"127.0.0.1:{silent.getsockname()[1]}", bootstrap_timeout_ms=500)
        assert time.monotonic() - began < 0.5 + 2 * SLACK


def test_accepted_records_are_written_though_another_thread_sends_during_close(broker):
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, batch_size=500)
    with held_up(broker, "Produce"):
        sent = [producer.send("events", b"first")]
        closing = threading.Thread(target=producer.close)
        closing.start()
        deadline = time.monotonic() + WAIT
        try:
            while time.monotonic() < deadline:
                sent.append(producer.send("events", b"x" * 100))
                time.sleep(0.001)
            pytest.fail("close() waits, and the producer accepts records")
        except ClientClosedError:
            pass
        assert closing.is_alive()
    closing.join(WAIT)
    assert all(future.succeeded() for future in sent)
    assert sum(len(broker.records("events", index)) for index in range(3)) == len(sent)


@pytest.mark.parametrize("patience", [None, WAIT, TIMEOUT])
def test_a_second_close_waits_for_the_first_and_ends_it_after_its_own_time(broker, patience):
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    heard: dict[str, bool] = {}

    def close(timeout: float | None) -> None:
        producer.close(timeout=timeout)
        heard[threading.current_thread().name] = future.done()

    with held_up(broker, "Produce") as let_go:
        future = producer.send("events", b"x")
        closing = [
            threading.Thread(target=close, args=(timeout,), name=name)
            for name, timeout in (("first", WAIT), ("second", patience))
        ]
        for thread in closing:
            thread.start()
            time.sleep(TIMEOUT / 2)
        if patience == TIMEOUT:
            for thread in closing:
                thread.join(WAIT / 2)
        assert (patience == TIMEOUT) == (not any(thread.is_alive() for thread in closing))
        let_go()
    for thread in closing:
        thread.join(WAIT)
    assert heard == {"first": True, "second": True}
    assert future.succeeded() == (patience != TIMEOUT)


@pytest.mark.one_face  # a callback on the event loop cannot wait
def test_close_in_a_callback_returns_at_once_and_ends_the_producer(broker):
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    took: list[float] = []

    def close(_: object) -> None:
        began = time.monotonic()
        producer.close()
        took.append(time.monotonic() - began)

    producer.send("events", b"x").add_callback(close).get(WAIT)
    deadline = time.monotonic() + WAIT
    while not took:
        assert time.monotonic() < deadline
    assert took[0] < SLACK
    with pytest.raises(ClientClosedError):
        producer.send("events", b"y")
