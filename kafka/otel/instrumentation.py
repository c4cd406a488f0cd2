"""Turning the tracer of all clients on and off, and the block in which an application processes records."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from kafka import _hooks
from kafka.otel.gauges import observe
from kafka.otel.tracer import KafkaTracer, Telemetry, process_block

if TYPE_CHECKING:
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
            observe(made.meter, lambda: made.enabled)


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
