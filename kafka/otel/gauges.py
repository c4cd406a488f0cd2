"""The metrics of `kafka.metrics.catalog` as instruments of OpenTelemetry, under the names of its Java agent.

They are read by the reader's thread, of the clients that are open at that moment, without asking a broker.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from opentelemetry.metrics import CallbackOptions, Observation

from kafka.metrics.catalog import CATALOG, CLIENT_LABEL, MetricDescription
from kafka.metrics.prometheus import samples

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter

# They are of a scrape by Prometheus.
_LEFT_OUT = frozenset({"kafka_client_series_dropped"})


def observe(meter: Meter, is_enabled: Callable[[], bool]) -> None:
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
