"""Metrics of all clients of this process for Prometheus.

`text` returns what a ``/metrics`` page shows, and needs no package. `register` adds the metrics to the registry of
prometheus-client (``pip install 'purekafka[prometheus]'``). Both show the clients that are open at the moment of a
scrape, whenever they were made, without asking a broker: a scrape never waits for the network.

>>> from kafka import KafkaProducer
>>> from kafka.broker import Broker
>>> from kafka.metrics.prometheus import text
>>> with Broker(topics=["orders"]) as broker:
...     with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, client_id="shop") as producer:
...         _ = producer.send("orders", b"1").get(timeout=10)
...         shown = text()
>>> [line for line in shown.splitlines() if "producer_records_total{" in line]
['kafka_producer_records_total{client_id="shop",topic="orders"} 1']
>>> text()
''
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from kafka import _hooks
from kafka.metrics.catalog import CATALOG, CLIENT_LABEL
from kafka.version import __version__

if TYPE_CHECKING:
    from prometheus_client.core import Metric
    from prometheus_client.registry import CollectorRegistry

    from kafka.metrics.catalog import MetricDescription
    from kafka.metrics.series import Labels, Series

__all__ = ["CONTENT_TYPE", "MAX_SERIES", "register", "samples", "text"]

#: The type of `text` for the header of an HTTP response.
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
#: How many series one client has at most, unless the caller says otherwise.
MAX_SERIES: Final = 2000
_WHOLE: Final = 2.0**53
_NOTHING: Final = ("",) * max(len(metric.labels) for metric in CATALOG.values())
# Characters that the text format escapes in the values of labels.
_ESCAPED: Final = re.compile(r'["\\\n]')
_ESCAPES: Final = str.maketrans({'"': r"\"", "\\": r"\\", "\n": r"\n"})
# By the name of the metric, its line: the client, the other labels, the value.
_FORMS: Final = {
    name: name + "{" + ",".join(f'{label}="%s"' for label in (CLIENT_LABEL, *metric.labels)) + "} %s\n"
    for name, metric in CATALOG.items()
}


def samples(max_series: int = MAX_SERIES, *, only: str | None = None) -> dict[str, list[tuple[Labels, float]]]:
    """Return the samples of all open clients by the name of the metric; the first label is the client's.

    A client with more than `max_series` shows sums in place of its largest metrics: over the partitions of a topic,
    then over topics. The label that is summed over is empty then, and kafka_client_series_dropped says how many series
    are missing. Numbers that are not finite are left out. With `only` there is one metric.
    """
    found: dict[str, list[tuple[Labels, float]]] = {name: [] for name in CATALOG}
    for client, name, values in _of_clients(max_series, only):
        of_name = found[name]
        of_name += [((client, *labels), value) for labels, value in values.items() if isfinite(value)]
    return {name: of_name for name, of_name in found.items() if of_name}


def _of_clients(max_series: int, only: str | None = None) -> Iterator[tuple[str, str, dict[Labels, float]]]:
    """Go through the metrics of all open clients: the client, the name, the values."""
    for series in _hooks.living():
        for name, values in _of_client(series, max_series, only).items():
            yield series.client_id, name, values


def _of_client(series: Series, max_series: int, only: str | None) -> dict[str, dict[Labels, float]]:
    found = series.collect(only)
    if only in {None, "kafka_client_info"}:
        found["kafka_client_info"] = {(__version__, series.kind, series.group): 1}
    if not found:
        return found
    total = before = sum(map(len, found.values())) + 1  # how many are missing is a series too
    while total > max_series:
        largest = max(found, key=lambda name: len(found[name]))
        folded = _folded(found[largest])
        if len(folded) == len(found[largest]):
            break  # nothing is left to sum over
        total -= len(found[largest]) - len(folded)
        found[largest] = folded
    found["kafka_client_series_dropped"] = {(): before - total}
    return found


def _folded(values: dict[Labels, float]) -> dict[Labels, float]:
    """Return sums over the last label that is not empty."""
    sums: dict[Labels, float] = {}
    for labels, value in values.items():
        at = len(labels)
        while at and not labels[at - 1]:
            at -= 1
        key = labels[: at - 1] + _NOTHING[: len(labels) - at + 1] if at else labels
        sums[key] = sums.get(key, 0) + value
    return sums


def text(max_series: int = MAX_SERIES) -> str:
    r"""Return the metrics in the text format of Prometheus, as a ``/metrics`` page shows them.

    See `samples` for `max_series`.
    """
    found: dict[str, list[str]] = {name: [] for name in CATALOG}
    for client, name, values in _of_clients(max_series):
        form, shown, rows = _FORMS[name], client, values
        if _ESCAPED.search("".join((client, *map("".join, values)))):  # rare, so one search for all labels
            shown = client.translate(_ESCAPES)
            rows = {tuple(label.translate(_ESCAPES) for label in labels): value for labels, value in values.items()}
        # For each series of each client, once a scrape: an int, as most are, is written by the form.
        found[name] += [
            form % (shown, *labels, value if type(value) is int else _number(value))
            for labels, value in rows.items()
            if isfinite(value)
        ]
    lines: list[str] = []
    before = ""
    for name, of_name in found.items():
        metric = CATALOG[name]
        family, kind = _family(metric)
        if of_name and family != before:  # the parts of a summary are one family
            lines.append(f"# HELP {family} {metric.text}\n# TYPE {family} {kind}\n")
            before = family
        lines += of_name
    return "".join(lines)


def _family(metric: MetricDescription) -> tuple[str, str]:
    """Return the name and the type that stand above the samples of a metric."""
    for part in ("_sum", "_count"):
        if metric.name.endswith(part):
            return metric.name.removesuffix(part), "summary"
    return metric.name, metric.kind


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < _WHOLE else repr(float(value))


def register(registry: CollectorRegistry | None = None, *, max_series: int = MAX_SERIES) -> ClientCollector:
    """Add the metrics of all clients to a registry of prometheus-client, its default one if none is given.

    Call it once, before or after clients are made. ``registry.unregister()`` takes the result, to undo it. Raises
    ImportError without prometheus-client. See `samples` for `max_series`.

    >>> from prometheus_client import CollectorRegistry
    >>> from kafka.metrics.prometheus import register
    >>> collector = register(CollectorRegistry())
    """
    if registry is None:
        from prometheus_client import REGISTRY

        registry = REGISTRY
    collector = ClientCollector(max_series)
    registry.register(collector)
    return collector


class ClientCollector:
    """The metrics of all clients as a collector of prometheus-client; `register` makes one."""

    def __init__(self, max_series: int = MAX_SERIES) -> None:
        self._max_series = max_series

    def describe(self) -> list[Any]:
        """Return nothing: the registry would collect instead, to find names that are taken."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics now."""
        from prometheus_client.core import Metric

        families: dict[str, Metric] = {}
        for name, of_name in samples(self._max_series).items():
            metric = CATALOG[name]
            names = (CLIENT_LABEL, *metric.labels)
            base, kind = _family(metric)
            if base not in families:
                families[base] = Metric(base.removesuffix("_total"), metric.text, kind)
            for labels, value in of_name:
                families[base].add_sample(name, dict(zip(names, labels, strict=True)), value)
        for family in families.values():
            if family.type == "summary":  # OpenMetrics wants the sum and the count of a series side by side
                family.samples.sort(key=lambda sample: tuple(sample.labels.values()))
            yield family
