"""Clients on the face of the test, which are traced, and the spans and metrics that came of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import Sampler

import kafka.otel
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, KafkaShareConsumer
from kafka.admin import ConfigResource
from kafka.broker import Broker

WAIT = 60


class Telemetry:
    """What was exported."""

    def __init__(self, sampler: Sampler | None = None) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider(**({} if sampler is None else {"sampler": sampler}))
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self._reader = InMemoryMetricReader()
        self.meters = MeterProvider([self._reader])
        self.tracer = self.provider.get_tracer("the test")
        kafka.otel.instrument(self.provider, self.meters)

    def spans(self, operation: str, count: int = 1) -> list[ReadableSpan]:
        """Wait until there are spans of an operation, and return them; no more may be there."""
        deadline = time.monotonic() + WAIT
        while True:
            found = [
                span
                for span in self._exporter.get_finished_spans()
                if (span.attributes or {}).get("messaging.operation.name") == operation
            ]
            if len(found) >= count or time.monotonic() > deadline:
                assert len(found) == count, [(span.name, dict(span.attributes or {})) for span in found]
                return found
            time.sleep(0.005)

    def all(self) -> list[ReadableSpan]:
        """Return all spans that have ended."""
        return list(self._exporter.get_finished_spans())

    def metrics(self) -> dict[str, Any]:
        """Return the metrics now by name."""
        data = self._reader.get_metrics_data()
        return {
            metric.name: metric
            for resource in (data.resource_metrics if data is not None else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }

    def close(self) -> None:
        kafka.otel.uninstrument()
        self.provider.shutdown()
        self.meters.shutdown()


@pytest.fixture
def telemetry() -> Iterator[Telemetry]:
    made = Telemetry()
    yield made
    made.close()


@pytest.fixture
def kafka_broker_options() -> dict[str, Any]:
    return {"topics": {"orders": 1, "payments": 2}}


@pytest.fixture
def make(broker: Broker, face: str) -> Iterator[Callable[..., Any]]:
    """Makes clients by the name of their kind."""
    with ExitStack() as opened:

        def make(kind: str, *topics: str, **configs: Any) -> Any:
            chosen = {"bootstrap_servers": broker.bootstrap_servers, "retry_backoff_ms": 5, **configs}
            if kind == "producer":
                made = KafkaProducer(**chosen)
            elif kind == "consumer":
                made = KafkaConsumer(*topics, **{"auto_offset_reset": "earliest", **chosen})
            else:
                with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
                    config = {"share.auto.offset.reset": "earliest"}
                    admin.alter_configs([ConfigResource("GROUP", chosen["group_id"], config)])
                made = KafkaShareConsumer(*topics, **chosen)
            opened.callback(made.close)
            return made

        yield make


def read(consumer: Any, count: int) -> list[Any]:
    """Poll until there are this many records."""
    found: list[Any] = []
    deadline = time.monotonic() + WAIT
    while len(found) < count and time.monotonic() < deadline:
        for rows in consumer.poll(timeout_ms=1000).values():
            found += rows
    assert len(found) == count
    return found


def traceparent(span: ReadableSpan) -> bytes:
    """Return the header that carries a span's context."""
    context = span.get_span_context()
    assert context is not None
    return b"00-%032x-%016x-%02x" % (context.trace_id, context.span_id, context.trace_flags)


def ids(span: ReadableSpan | trace.SpanContext) -> tuple[int, int]:
    """Return the ids of a span's trace and of the span."""
    context = span if isinstance(span, trace.SpanContext) else span.get_span_context()
    assert context is not None
    return context.trace_id, context.span_id
