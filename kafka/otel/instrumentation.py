"""Turning the tracer and the metrics of all clients on and off, and the block in which records are processed.

These are the metrics of `kafka.metrics.catalog`, under the names of OpenTelemetry's Java agent. The reader's thread
reads them, of the clients that are open at that moment, without asking a broker.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from opentelemetry.metrics import CallbackOptions, Observation

from kafka import _hooks
from kafka.metrics.catalog import CATALOG, CLIENT_LABEL, MetricDescription
from kafka.metrics.prometheus import samples
from kafka.otel.tracer import KafkaTracer, Telemetry, process_block

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter

    from kafka.otel.tracer import ProcessBlock

_lock = threading.Lock()


def instrument(tracer_provider: Any = None, meter_provider: Any = None) -> None:
    """Trace and measure the clients that are made from now on. A second call does nothing.

    The providers are OpenTelemetry's global ones by default, which may be set later.

    >>> import kafka.otel
    >>> kafka.otel.instrument()
    >>> kafka.otel.uninstrument()
    """
    with _lock:
        if _current() is None:
            made = Telemetry(tracer_provider, meter_provider)
            _hooks.tracer = KafkaTracer(made)
            _observe(made.meter, lambda: made.enabled)


def uninstrument() -> None:
    """Trace and measure nothing more, of clients that exist either."""
    with _lock:
        if (telemetry := _current()) is not None:
            telemetry.enabled = False
            _hooks.tracer = None


def _current() -> Telemetry | None:
    tracer = _hooks.tracer
    return tracer.telemetry if isinstance(tracer, KafkaTracer) else None


def process(records: Any) -> ProcessBlock:
    """Return the block in which a record is processed, or the records of a list or of the result of `poll()`.

    Its span is current inside the block, so that spans which begin there are below it, in asyncio too. An exception
    that leaves the block is in the span. Without `instrument` the block does nothing.

    ::

        async for record in consumer:
            with kafka.otel.process(record):
                await handle(record.value)

    The trace of a single record is that of its producer, unless there is a span around the block: then, and for several
    records, the span has links to the spans of the producers.

    >>> import kafka.otel
    >>> with kafka.otel.process([]) as span:
    ...     span.is_recording()
    False
    """
    return process_block(_current(), records)


class Instrumentor:
    """The form in which OpenTelemetry's loader finds `instrument`."""

    def instrument(self, **options: Any) -> None:
        """Call `instrument`, with the providers among the options."""
        instrument(options.get("tracer_provider"), options.get("meter_provider"))

    def uninstrument(self, **_options: Any) -> None:
        """Call `uninstrument`."""
        uninstrument()


# Metrics

# They are of a scrape by Prometheus.
_LEFT_OUT = frozenset({"kafka_client_series_dropped"})


def _observe(meter: Meter, is_enabled: Callable[[], bool]) -> None:
    """Make the instruments; they have no values while `is_enabled` returns false."""
    for metric in CATALOG.values():
        if metric.name in _LEFT_OUT:
            continue
        make = meter.create_observable_counter if metric.kind == "counter" else meter.create_observable_gauge
        make(metric.otel_name, [_reader(metric, is_enabled)], metric.unit or "1", metric.text)


def _reader(metric: MetricDescription, is_enabled: Callable[[], bool]) -> Callable[[CallbackOptions], Any]:
    names = [name.replace("_", "-") for name in (CLIENT_LABEL, *metric.labels)]  # as the Java agent writes them

    def read(_options: CallbackOptions) -> Iterator[Observation]:
        if is_enabled():
            for labels, value in samples(only=metric.name).get(metric.name, ()):
                if math.isfinite(value):
                    yield Observation(value, dict(zip(names, labels, strict=True)))

    return read
