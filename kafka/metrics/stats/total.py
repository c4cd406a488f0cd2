"""A running total, and values per unit of time."""

# ruff: noqa: ARG002 - the interface names what it passes

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kafka.metrics.metric import AbstractMeasurableStat, MetricConfig
from kafka.metrics.stats.sampled import AbstractSampledStat, SampledTotal

__all__ = ["Rate", "TimeUnit", "Total"]


class Total(AbstractMeasurableStat):
    """The sum of all values since the beginning."""

    __slots__ = ("_total",)

    def __init__(self, value: float = 0.0) -> None:
        self._total = value

    def record(self, config: MetricConfig, value: float, time_ms: float) -> None:
        """Add a value."""
        self._total += value

    def record_all(self, config: MetricConfig, values: Sequence[float], times_ms: Sequence[float]) -> None:
        """Add some values."""
        self._total += sum(values)

    def measure(self, config: MetricConfig, now: float) -> float:
        """The sum."""
        return float(self._total)


class TimeUnit:
    """The unit of time of a rate."""

    NANOSECONDS: Final = 0
    MICROSECONDS: Final = 1
    MILLISECONDS: Final = 2
    SECONDS: Final = 3
    MINUTES: Final = 4
    HOURS: Final = 5
    DAYS: Final = 6

    _NAMES: Final = ("nanosecond", "microsecond", "millisecond", "second", "minute", "hour", "day")

    @staticmethod
    def get_name(time_unit: int) -> str:
        """The unit's name.

        >>> TimeUnit.get_name(TimeUnit.SECONDS)
        'second'
        """
        return TimeUnit._NAMES[time_unit]


_MILLISECONDS_PER_UNIT: Final = (1e-6, 1e-3, 1.0, 1e3, 60e3, 3600e3, 86400e3)


class Rate(AbstractMeasurableStat):
    """Values per unit of time: their sum, or what another windowed stat makes of them, by the time looked back on.

    >>> from kafka.metrics import MetricConfig
    >>> rate, config = Rate(), MetricConfig(samples=2, time_window_ms=1000)
    >>> rate.record(config, 100, 0)
    >>> rate.record(config, 100, 1000)
    >>> rate.measure(config, 1500)
    133.33333333333334
    """

    __slots__ = ("_stat", "_unit")

    def __init__(self, time_unit: int = TimeUnit.SECONDS, sampled_stat: AbstractSampledStat | None = None) -> None:
        self._stat = sampled_stat or SampledTotal()
        self._unit = time_unit

    def unit_name(self) -> str:
        """What it is per."""
        return TimeUnit.get_name(self._unit)

    def record(self, config: MetricConfig, value: float, time_ms: float) -> None:
        """Take a value."""
        self._stat.record(config, value, time_ms)

    def record_all(self, config: MetricConfig, values: Sequence[float], times_ms: Sequence[float]) -> None:
        """Take some values."""
        self._stat.record_all(config, values, times_ms)

    def measure(self, config: MetricConfig, now: float) -> float:
        """The rate."""
        value = self._stat.measure(config, now)
        elapsed = self.convert(self.window_size(config, now))
        # One window that was opened this very moment has no length yet.
        return value / elapsed if elapsed > 0 else 0.0

    def window_size(self, config: MetricConfig, now: float) -> float:
        """The milliseconds looked back on.

        At least all windows but one: a rate over the first moments of the first window would be far too high.
        """
        self._stat.purge_obsolete_samples(config, now)
        elapsed = max(0.0, now - self._stat.oldest(now).last_window_ms)
        missing = config.samples - 1 - int(elapsed // config.time_window_ms)
        return elapsed + max(0, missing) * config.time_window_ms

    def convert(self, time_ms: float) -> float:
        """Milliseconds in the unit of the rate."""
        return time_ms / _MILLISECONDS_PER_UNIT[self._unit]
