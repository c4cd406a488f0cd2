"""Interceptors of a consumer (KIP-42)."""

from __future__ import annotations

import threading
from types import MappingProxyType
from typing import Any

import pytest

from kafka.broker import Broker
from kafka.interceptors import ConsumerInterceptor
from kafka.structs import OffsetAndMetadata

from .conftest import MakeConsumer
from .reading import fill, read, tp

FACES = "both"


class Upper(ConsumerInterceptor):
    """Changes values, and leaves out what is empty."""

    closed = False

    def on_consume(self, records: Any) -> Any:
        return {
            partition: [row._replace(value=row.value.upper()) for row in rows if row.value]
            for partition, rows in records.items()
        }

    def close(self) -> None:
        self.closed = True


class Witness(ConsumerInterceptor):
    def __init__(self) -> None:
        self.configs: Any = None
        self.commits: list[tuple[dict[Any, Any], str]] = []

    def configure(self, configs: Any) -> None:
        self.configs = configs

    def on_commit(self, offsets: Any) -> None:
        self.commits.append((dict(offsets), threading.current_thread().name))


class Broken(ConsumerInterceptor):
    def on_consume(self, records: Any) -> Any:
        raise RuntimeError("no")


def test_records_pass_through_interceptors_in_order(
    broker: Broker, make_consumer: MakeConsumer, caplog: pytest.LogCaptureFixture
) -> None:
    for value in (b"a", b"", b"b"):
        broker.append("events", value)
    upper = Upper()
    consumer = make_consumer("events", interceptors=[Broken, upper])
    assert [record.value for record in read(consumer, 2)] == [b"A", b"B"]
    assert consumer.position(tp()) == 3
    assert "interceptor" in caplog.text
    consumer.close()
    assert upper.closed


def test_an_iteration_passes_through_them_too(broker: Broker, make_consumer: MakeConsumer) -> None:
    for value in (b"a", b"", b"b", b""):
        broker.append("events", value)
    consumer = make_consumer("events", interceptors=[Upper()], consumer_timeout_ms=3000)
    iteration = iter(consumer)
    assert next(iteration).value == b"A"
    assert consumer.position(tp()) == 1
    assert [record.value for record in iteration] == [b"B"]
    assert consumer.position(tp()) == 4


@pytest.mark.parametrize("how", ["commit", "commit_async", "automatic"])
def test_they_are_notified_of_commits_in_the_application_s_thread(
    broker: Broker, make_consumer: MakeConsumer, how: str, face: str
) -> None:
    fill(broker, 10)
    witness = Witness()
    consumer = make_consumer(
        "events", group_id="readers", interceptors=[witness], enable_auto_commit=how == "automatic", client_id="me"
    )
    read(consumer, 10)
    if how == "commit":
        consumer.commit()
    elif how == "commit_async":
        consumer.commit_async()
    consumer.close()
    assert witness.configs["client_id"] == "me"
    assert witness.commits
    offsets, thread = witness.commits[-1]
    assert offsets[tp()] == OffsetAndMetadata(10, "", 0)
    assert thread == (threading.current_thread().name if face == "threads" else "event loop")


def test_on_consume_may_return_any_mapping(
    broker: Broker, make_consumer: MakeConsumer, caplog: pytest.LogCaptureFixture
) -> None:
    class Frozen(ConsumerInterceptor):
        def on_consume(self, records: Any) -> Any:
            return MappingProxyType({partition: tuple(rows[1:]) for partition, rows in records.items()})

    class Wrong(ConsumerInterceptor):
        def on_consume(self, records: Any) -> Any:
            return list(records)

    for value in (b"a", b"b", b"c"):
        broker.append("events", value)
    consumer = make_consumer("events", interceptors=[Frozen, Wrong])
    assert [record.value for record in read(consumer, 2)] == [b"b", b"c"]
    assert caplog.text.count("is not a mapping") == 1
    consumer.close()


def test_an_iteration_returns_returned_records_once(broker: Broker, make_consumer: MakeConsumer) -> None:
    class Counting(ConsumerInterceptor):
        seen = 0

        def on_consume(self, records: Any) -> Any:
            self.seen += sum(map(len, records.values()))
            return {
                partition: [row._replace(value=row.value + b"!") for row in rows] for partition, rows in records.items()
            }

    fill(broker, 20)
    counting = Counting()
    consumer = make_consumer(interceptors=[counting])
    consumer.assign([tp()])
    consumer.seek(tp(), 0)
    found = []
    for number, record in enumerate(consumer, 1):
        found.append(record)
        if number % 3 == 0:  # gives back what is left
            consumer.pause(tp())
            consumer.resume(tp())
        if number == 10:
            break
    found += read(consumer, 10)
    assert [record.value for record in found] == [b"%d!" % number for number in range(20)]
    assert counting.seen == 20
