"""What tracing costs, in calls of functions: they do not depend on the machine, nor on what else runs there.

Microseconds for them are in docs/observability.rst.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased, Sampler

import kafka
from kafka import KafkaConsumer, KafkaProducer
from kafka.broker import Broker

from .conftest import Telemetry

RECORDS = 500
OURS = os.path.dirname(kafka.__file__)
SDK = os.sep + "opentelemetry" + os.sep


def part_of(path: str) -> str | None:
    """Return whose code a file is, as far as tracing is concerned."""
    if SDK in path:
        return "sdk"
    if path.startswith(OURS):
        hooks = path.startswith(os.path.join(OURS, "otel")) or path.endswith(("tracing.py", "_hooks.py"))
        return "tracing" if hooks else "client"
    return None


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Count calls of functions of Python, and by them of C, in this thread and in those that begin in the block."""
    calls: Counter[str] = Counter()
    parts: dict[str, str | None] = {}

    def count(frame: Any, event: str, _: object) -> None:
        if event in {"call", "c_call"}:
            path = frame.f_code.co_filename
            if path not in parts:
                parts[path] = part_of(path)
            calls[str(parts[path])] += 1

    threading.setprofile(count)
    sys.setprofile(count)
    try:
        yield calls
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


@contextmanager
def producing(broker: Broker) -> Iterator[tuple[KafkaProducer, Counter[str]]]:
    """A producer that sends when it is flushed, and the calls since its first record was written."""
    with counted() as calls:
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, linger_ms=60_000, batch_size=1 << 20)
        producer.send("orders", b"x")
        producer.flush()
        calls.clear()
        yield producer, calls
    producer.close()


def sends(broker: Broker, around: trace.Span = trace.INVALID_SPAN) -> Counter[str]:
    """Return the calls for records that are sent one by one in one batch, until they are written."""
    with producing(broker) as (producer, calls):
        with trace.use_span(around):
            for _ in range(RECORDS):
                producer.send("orders", b"x")
        producer.flush()
        return Counter(calls)


def sends_many(broker: Broker, count: int) -> Counter[str]:
    """Return the calls for records that one call sends."""
    with producing(broker) as (producer, calls):
        producer.send_many("orders", [b"x"] * count)
        producer.flush()
        return Counter(calls)


def polls(broker: Broker) -> Counter[str]:
    """Return the calls of the poll() that returns 500 records."""
    with counted() as calls:
        consumer = KafkaConsumer("orders", bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest")
        count = 0
        while not count:
            calls.clear()
            count = sum(map(len, consumer.poll(timeout_ms=1000).values()))
        found = Counter(calls)
    consumer.close()
    assert count == RECORDS
    return found


def test_o1_without_a_tracer_a_record_takes_no_call_into_tracing(broker: Broker) -> None:
    assert sends(broker)["tracing"] == 0
    assert sends_many(broker, RECORDS)["tracing"] == 0
    assert polls(broker)["tracing"] == 0
    with counted() as calls, KafkaConsumer(
        "orders", bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest"
    ) as consumer:  # fmt: skip
        calls.clear()
        assert [next(consumer).value for _ in range(RECORDS)] == [b"x"] * RECORDS
        assert calls["tracing"] == 0


def test_o3_a_span_of_send_takes_few_calls(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a recorded span the SDK itself takes 184 calls; where it is not sampled 53, and with propagation only 7."""
    off = sends(broker)["client"]

    def share(sampler: Sampler | None, spans: bool = True, *, below: bool = False) -> tuple[float, float]:
        if not spans:
            monkeypatch.setenv("OTEL_PYTHON_KAFKA_SEND_SPANS", "none")
        telemetry = Telemetry(sampler)
        try:
            calls = sends(broker, telemetry.tracer.start_span("around") if below else trace.INVALID_SPAN)
        finally:
            telemetry.close()
        return calls["tracing"] / RECORDS, (calls["client"] - off) / RECORDS

    of_root, of_child = ParentBased(ALWAYS_OFF), ParentBased(ALWAYS_OFF)
    shares = [share(None), share(of_root), share(of_child, below=True), share(None, spans=False, below=True)]
    assert all(tracing < most for (tracing, _), most in zip(shares, (18, 13, 14, 8), strict=True)), shares
    assert all(client < 40 for _, client in shares), shares  # of a record with a header: 26


def test_o3_the_span_of_send_many_costs_the_same_for_any_number(broker: Broker, telemetry: Telemetry) -> None:
    some, more = sends_many(broker, 1000), sends_many(broker, 3000)
    assert some["tracing"] == more["tracing"] < 40  # 23
    assert some["sdk"] == more["sdk"]


def test_o4_the_span_of_a_poll_reads_contexts_until_it_has_its_links(broker: Broker, telemetry: Telemetry) -> None:
    sends(broker)  # each record has a context of its own
    calls = polls(broker)
    assert calls["tracing"] < 2 * RECORDS, calls  # 1.6: six for each of 128 links
