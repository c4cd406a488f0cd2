"""Where values are recorded: a sensor hands each to its stats, and to its parents; a journal keeps rows for sensors."""

# ruff: noqa: SLF001 - sensors, their ancestors and their journals are of one module

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from operator import itemgetter
from typing import TYPE_CHECKING, Final, TypeVar

from kafka.errors import QuotaViolationError
from kafka.metrics.metric import (
    AbstractCompoundStat,
    AbstractMeasurable,
    AbstractMeasurableStat,
    AbstractStat,
    KafkaMetric,
    MetricConfig,
    MetricName,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka._runtime.clock import Clock

__all__ = ["Journal", "Sensor"]

T = TypeVar("T")

# The most values or rows that are kept unprocessed: a client has some for each request, and its metrics are read once a
# minute. Processing them together costs a tenth per value.
_MOST_PENDING: Final = 100


class Sensor:
    """One stream of values, such as the sizes of requests. Made by `Metrics.sensor`; any thread may record.

    The lock is re-entrant: a finalizer that runs while it is held may record too.
    """

    __slots__ = (
        "__weakref__",
        "_clock",
        "_config",
        "_expiration_ms",
        "_journals",
        "_last_record_ms",
        "_lineage",
        "_lock",
        "_metrics",
        "_pending",
        "_register",
        "_stats",
        "_time",
        "name",
        "parents",
    )

    def __init__(
        self,
        clock: Clock,
        register: Callable[[KafkaMetric], object],
        name: str,
        parents: Sequence[Sensor] | None,
        config: MetricConfig,
        inactive_sensor_expiration_time_seconds: float,
    ) -> None:
        if not name:
            raise ValueError("A sensor needs a name")
        self.name = name
        self._clock = clock
        self._time = clock.time
        self._register = register
        self.parents = tuple(parents or ())
        self._config = config
        self._expiration_ms = inactive_sensor_expiration_time_seconds * 1000
        self._lock = threading.RLock()
        # A client has seventy sensors, and tuples are the smallest: two thirds of lists, a tenth of deques.
        self._metrics: tuple[KafkaMetric, ...] = ()
        self._stats: tuple[AbstractStat, ...] = ()
        self._pending: list[tuple[float, float]] = []
        self._journals: tuple[Journal, ...] = ()
        self._last_record_ms = clock.time() * 1000
        self._lineage: tuple[Sensor, ...] = (self, *(one for parent in self.parents for one in parent._lineage))
        if len(self._lineage) != len(set(self._lineage)):
            raise ValueError(f"Sensor {name!r} has an ancestor by two ways, in which its values would count twice")

    def lineage(self) -> list[Sensor]:
        """The sensor and all its ancestors."""
        return list(self._lineage)

    @property
    def metrics(self) -> tuple[KafkaMetric, ...]:
        """The metrics fed by this sensor."""
        return self._metrics

    def record(self, value: float = 1.0, time_ms: float | None = None) -> None:
        """Take a value. Raises `QuotaViolationError` where a metric leaves its bound; the value counts all the same."""
        if time_ms is None:
            time_ms = self._time() * 1000
        violation = None
        for sensor in self._lineage:
            sensor._last_record_ms = time_ms
            sensor._pending.append((value, time_ms))
            with sensor._lock:
                violation = sensor._violation(time_ms) or violation
                if len(sensor._pending) >= _MOST_PENDING:
                    sensor._take_in()
        if violation is not None:
            raise violation

    def _take_in(self) -> None:
        """Hand what was recorded to the stats. The lock is held; other threads may record meanwhile."""
        for journal in self._journals:
            journal.hand_over()
        taken = _all_of(self._pending)
        if taken:
            taken.sort(key=itemgetter(1))  # journals of several brokers
            values, times = zip(*taken, strict=True)
            for stat in self._stats:
                stat.record_all(self._config, values, times)

    def _violation(self, time_ms: float) -> QuotaViolationError | None:
        for metric in self._metrics:
            quota = metric.config.quota
            if quota is None:
                continue
            value = metric.value(time_ms)
            if not quota.is_acceptable(value):
                side = "at most" if quota.is_upper else "at least"
                return QuotaViolationError(f"{metric.metric_name} must be {side} {quota.bound}, not {value}")
        return None

    def add(self, metric_name: MetricName, stat: AbstractMeasurableStat, config: MetricConfig | None = None) -> None:
        """Feed a stat, and register it as a metric."""
        with self._lock:
            self._take_in()
            self._add(metric_name, stat, config)
            self._stats += (stat,)

    def add_compound(self, compound_stat: AbstractCompoundStat, config: MetricConfig | None = None) -> None:
        """Feed a stat that has several values, and register each as a metric."""
        if not isinstance(compound_stat, AbstractCompoundStat):
            raise TypeError(f"A compound stat has stats(), {compound_stat!r} has not")
        with self._lock:
            self._take_in()
            for named in compound_stat.stats():
                self._add(named.name, named.stat, config)
            self._stats += (compound_stat,)

    def _add(self, name: MetricName, measurable: AbstractMeasurable, config: MetricConfig | None) -> None:
        config = config or self._config
        metric = KafkaMetric(name, measurable, config, lock=self._lock, clock=self._clock, before=self._take_in)
        self._register(metric)
        self._metrics += (metric,)

    def has_expired(self) -> bool:
        """Whether nothing was recorded for so long that the sensor may go."""
        return self._time() * 1000 - self._last_record_ms > self._expiration_ms

    def expires_at_ms(self) -> float:
        """When it will have expired, if nothing more is recorded."""
        return self._last_record_ms + self._expiration_ms

    def __repr__(self) -> str:
        return f"<Sensor {self.name}>"


class Journal:
    """Events that several sensors measure: a row for each event, a column for each sensor. Any thread may add.

    A client adds a row per request, which costs less than a value for each sensor and its parents. The sensors get
    their columns when a metric of one is read. Quotas are not looked at.

    >>> from kafka.metrics import Metrics
    >>> from kafka.metrics.stats import Total
    >>> metrics = Metrics()
    >>> sent, received = metrics.sensor("sent"), metrics.sensor("received")
    >>> sent.add(metrics.metric_name("sent-total", "bytes"), Total())
    >>> received.add(metrics.metric_name("received-total", "bytes"), Total())
    >>> journal = Journal(sent, received)
    >>> journal.add(100, 20)
    >>> journal.add(50, 0)
    >>> metrics.snapshot()["bytes"]
    {'sent-total': 150.0, 'received-total': 20.0}
    """

    __slots__ = ("_lock", "_rows", "_sensors", "_time")

    def __init__(self, *sensors: Sensor) -> None:
        self._sensors = sensors
        self._time = sensors[0]._time
        self._rows: list[tuple[float, ...]] = []
        self._lock = threading.RLock()  # after that of a sensor, and no other is taken while it is held
        for each in dict.fromkeys(one for sensor in sensors for one in sensor._lineage):
            each._journals += (self,)

    def add(self, *values: float) -> None:
        """Add an event: a value for each sensor."""
        rows = self._rows
        rows.append((self._time() * 1000, *values))
        if len(rows) >= _MOST_PENDING:
            for sensor in self._sensors:
                for one in sensor._lineage:
                    with one._lock:
                        one._take_in()

    def hand_over(self) -> None:
        """Give the sensors their columns; their stats take them in later."""
        with self._lock:
            rows = _all_of(self._rows)
            if not rows:
                return
            times, *columns = zip(*rows, strict=True)
            for sensor, column in zip(self._sensors, columns, strict=True):
                for one in sensor._lineage:
                    one._pending += zip(column, times, strict=True)
                    one._last_record_ms = times[-1]


def _all_of(rows: list[T]) -> list[T]:
    """Take all out of a list to which other threads, or a finalizer in this one, may append or have taken from."""
    taken: list[T] = []
    with suppress(IndexError):
        for _ in range(len(rows)):
            taken.append(rows.pop(0))  # noqa: PERF401 - entries taken before an IndexError count
    return taken
