"""The series of one client: counts with labels, and gauges that are read at a scrape.

Clients count per request, batch, call or event, never per record. `kafka.metrics.catalog` explains the names;
`kafka.metrics.prometheus` and `kafka.otel` show the series.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TypeAlias

__all__ = ["Labels", "Series"]

Labels: TypeAlias = tuple[str, ...]
"""The values of a series' labels, in the order of the catalog."""
Values: TypeAlias = Mapping[Labels, float]


class Series:
    """See the head of this file. Any thread may count and read.

    >>> series = Series("producer", "billing")
    >>> series.count("kafka_producer_records_total", ("orders",), 20)
    >>> series.count("kafka_producer_records_total", ("orders",), 5)
    >>> series.gauge("kafka_producer_buffer_total_bytes", lambda: {(): 1024})
    >>> series.collect()
    {'kafka_producer_records_total': {('orders',): 25}, 'kafka_producer_buffer_total_bytes': {(): 1024}}
    """

    def __init__(self, kind: str, client_id: str, group: str = "") -> None:
        self.kind = kind
        self.client_id = client_id
        """The name of the client; with a number behind it where another client of the process has this name too."""
        self.group = group
        self._counts: dict[str, dict[Labels, float]] = {}
        self._gauges: dict[str, Callable[[], Values]] = {}
        # Re-entrant: the cycle collector may close another client within `count`.
        self._lock = threading.RLock()

    def count(self, name: str, labels: Labels = (), by: float = 1) -> None:
        """Add to a counter."""
        with self._lock:
            values = self._counts.get(name)
            if values is None:
                values = self._counts[name] = {}
            values[labels] = values.get(labels, 0) + by

    def gauge(self, name: str, read: Callable[[], Values]) -> None:
        """Show what `read` returns, by labels. Any thread calls it: it must not wait."""
        self._gauges[name] = read

    def gauges(self, **reads: Callable[[], float]) -> None:
        """Show single numbers, by the names of their metrics."""
        for name, read in reads.items():
            self._gauges[name] = lambda read=read: {(): read()}  # type: ignore[assignment, misc]

    def collect(self, only: str | None = None) -> dict[str, dict[Labels, float]]:
        """Return the values now, by name and labels; a gauge that cannot be read at the moment is left out.

        `only` names a single metric.
        """
        with self._lock:
            found = {name: dict(values) for name, values in self._counts.items() if only in {None, name}}
        for name, read in tuple(self._gauges.items()):
            for _ in range(3 if only in {None, name} else 0):
                try:
                    found[name] = dict(read())
                    break
                except RuntimeError:  # a dict of the client has changed while it was read
                    continue
        return found
