"""kafka.producer.lost_records: failures that the program has not looked at are in the log, once, with their number."""

from __future__ import annotations

import asyncio
import gc
import logging
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from kafka.errors import KafkaError
from kafka.producer.lost_records import PATIENCE, LostRecords
from test.unit.producer.asyncio_cluster import asyncio_calls
from test.unit.producer.memory_cluster import Cluster

AUTHORIZATION = 29
TOO_LARGE = 10
SECRET = b"a value that belongs into no log"


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    caplog.set_level(logging.ERROR)
    return lambda: [each.getMessage() for each in caplog.records if each.levelno >= logging.ERROR]


def fail(producer: Any, cluster: Cluster, count: int = 3, topic: str = "events", code: int = AUTHORIZATION) -> Any:
    producer.partitions_for(topic)
    cluster.script.append(code)
    return [producer.send(topic, SECRET) for _ in range(count)]


def test_close_logs_failures_once_for_each_topic_and_kind_of_error(make_producer, lines):
    cluster = Cluster({"events": 1, "other": 1})
    producer = make_producer(cluster, linger_ms=50, retries=0)
    for topic, code in (("events", AUTHORIZATION), ("events", AUTHORIZATION), ("events", 87), ("other", AUTHORIZATION)):
        fail(producer, cluster, 3, topic, code)
        producer.flush()
    assert lines() == []
    producer.close()
    producer.close()
    assert [line.partition(" failed")[0] for line in lines()] == [
        "6 records to topic 'events'",
        "3 records to topic 'events'",
        "3 records to topic 'other'",
    ]
    assert "TopicAuthorizationFailedError" in lines()[0]
    assert SECRET.decode() not in "".join(lines())


LOOKS = {
    "get": lambda future: future.get(0),
    "exception": lambda future: future.exception,
    "failed": lambda future: future.failed(),
    "succeeded": lambda future: future.succeeded(),
    "retriable": lambda future: future.retriable(),
    "await": lambda future: asyncio.run(asyncio.wait_for(future, 1)),
    "errback": lambda future: future.add_errback(lambda _: None),
    "both": lambda future: future.add_both(lambda _: None),
}


@pytest.mark.parametrize("how", LOOKS)
@pytest.mark.parametrize("count", [3, 1])
def test_a_failure_that_the_program_has_looked_at_is_not_logged(make_producer, lines, how, count):
    cluster = Cluster({"events": 1})
    producer = make_producer(cluster, linger_ms=50)
    futures = fail(producer, cluster)
    producer.flush()
    for future in futures[:count]:
        with suppress(KafkaError):
            LOOKS[how](future)
    producer.close()
    assert len(lines()) == (count < 3)
    assert all(line.startswith("2 records to topic 'events' failed") for line in lines())


@pytest.mark.parametrize("look", [lambda future: future.is_done, repr, lambda future: future.add_callback(print)])
def test_looks_that_show_no_failure_are_none(make_producer, lines, look):
    cluster = Cluster({"events": 1})
    producer = make_producer(cluster, linger_ms=50)
    futures = fail(producer, cluster)
    producer.flush()
    for future in futures:
        look(future)
    producer.close()
    assert len(lines()) == 1


def test_an_errback_that_was_there_before_is_a_look(make_producer, lines):
    cluster = Cluster({"events": 1})
    producer = make_producer(cluster, linger_ms=50)
    for future in fail(producer, cluster):
        future.add_errback(lambda _: None)
    producer.close()
    assert lines() == []


def test_the_first_error_of_many_records_tells_of_all(make_producer, lines):
    cluster = Cluster({"events": 1})
    producer = make_producer(cluster, linger_ms=50)
    producer.partitions_for("events")
    cluster.script.append(AUTHORIZATION)
    sent = producer.send_many("events", [SECRET] * 10)
    with pytest.raises(KafkaError):
        sent.get()
    producer.close()
    assert lines() == []


def test_failures_that_the_program_leaves_alone_are_logged_after_a_minute_and_not_again(make_producer, lines):
    cluster = Cluster({"events": 1})
    producer = make_producer(cluster, linger_ms=50)
    fail(producer, cluster)
    producer.rest(PATIENCE - 1)
    assert lines() == []
    producer.rest(2)
    assert len(lines()) == 1
    producer.close()
    assert len(lines()) == 1


def test_records_refused_before_a_batch_was_sent_are_lost_records_too(make_producer, lines):
    cluster = Cluster({"events": 1})
    producer = make_producer(cluster, max_request_size=1000)
    producer.send("events", SECRET * 100)
    producer.send("invalid topic", SECRET)
    producer.close()
    assert [line.partition(" failed")[0] for line in lines()] == [
        "1 record to topic 'events'",
        "1 record to topic 'invalid topic'",
    ]


def test_an_interceptor_observes_and_does_not_look(make_producer, lines):
    class Observer:
        def on_acknowledgement(self, metadata: object, exception: object) -> None:
            pass

    cluster = Cluster({"events": 1})
    producer = make_producer(cluster, linger_ms=50, interceptors=[Observer()])
    fail(producer, cluster)
    producer.close()
    assert len(lines()) == 1


def test_on_delivery_tells_the_program(make_producer, lines):
    cluster = Cluster({"events": 1})
    reports: list[Any] = []
    producer = make_producer(cluster, linger_ms=50, on_delivery=reports.append)
    fail(producer, cluster)
    producer.close()
    assert [report.count for report in reports] == [3]
    assert lines() == []


def test_records_that_the_program_has_purged_are_not_lost(make_producer, lines):
    producer = make_producer(Cluster({"events": 1}), linger_ms=1000)
    producer.partitions_for("events")
    producer.send("events", SECRET)
    assert producer.purge() == 1
    producer.close()
    assert lines() == []


def test_a_producer_that_is_closed_too_soon_says_what_it_gave_up(make_producer, lines):
    producer = make_producer(Cluster({"events": 1}), linger_ms=1000)
    producer.partitions_for("events")
    for _ in range(5):
        producer.send("events", SECRET)
    producer.close(timeout=0)
    (line,) = lines()
    assert line.startswith("5 records to topic 'events' failed")
    assert "was closed before this record was written" in line


def test_without_logging_close_prints_it(make_producer, capsys, monkeypatch):
    monkeypatch.setattr("kafka.producer.calls._logging_is_configured", lambda: False)
    cluster = Cluster({"events": 1})
    producer = make_producer(cluster, linger_ms=50)
    fail(producer, cluster)
    producer.close()
    assert capsys.readouterr().err.startswith("3 records to topic 'events' failed")


def test_records_that_are_written_cost_nothing(make_producer, monkeypatch):
    def refuse(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(LostRecords, "add", refuse)
    producer = make_producer(Cluster({"events": 1}))
    assert producer.send_many("events", [SECRET] * 1000).get(10)[-1].offset == 999


def test_in_asyncio_a_wait_that_was_cancelled_has_seen_nothing(lines):
    cluster = Cluster({"events": 1})

    async def main() -> None:
        async with asyncio_calls(cluster, linger_ms=50) as calls:
            await calls.partitions_for("events")
            cluster.script.append(AUTHORIZATION)
            awaited, cancelled, _, asked = [calls.send("events", SECRET, None) for _ in range(4)]
            assert cancelled.cancel()
            with pytest.raises(KafkaError):
                await awaited
            assert asked.exception() is not None

    asyncio.run(main())
    (line,) = lines()
    assert line.startswith("2 records to topic 'events' failed")


def test_a_program_that_never_looks_keeps_a_bounded_number_of_failed_batches(make_producer, lines, monkeypatch):
    """A million records a minute may fail at once, as without a permission."""
    monkeypatch.setattr("kafka.producer.lost_records.MOST", 2)
    cluster = Cluster({"events": 1})
    producer = make_producer(cluster, linger_ms=50, retries=0)
    batches = []
    for _ in range(20):
        batches.append(weakref.ref(fail(producer, cluster)[0]._batch))
        producer.flush()
    gc.collect()
    assert sum(batch() is not None for batch in batches) <= 10  # not 20; some may be in variables of a thread
    producer.close()
    assert [line.partition(" failed")[0] for line in lines()] == ["60 records to topic 'events'"]
