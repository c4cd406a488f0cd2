"""Stats that look back over a few windows of time: average, count, maximum, minimum, total.

A value goes into the newest window. A window ends after its time or its number of events, and the oldest window is then
reused. Only a value opens a window, so a metric without values costs nothing.
"""

# ruff: noqa: ARG002 - the interface names what it passes

from __future__ import annotations

import math
import sys
from abc import abstractmethod
from collections.abc import Sequence

from kafka.metrics.metric import AbstractMeasurableStat, MetricConfig

__all__ = ["AbstractSampledStat", "Avg", "Count", "Max", "Min", "Window", "SampledStat", "SampledTotal"]


class Window:
    """One window."""

    __slots__ = ("event_count", "initial_value", "last_window_ms", "value")

    def __init__(self, initial_value: float, now: float) -> None:
        self.initial_value = initial_value
        self.value = initial_value
        self.event_count = 0
        self.last_window_ms = now
        """When the window was opened."""

    def reset(self, now: float) -> None:
        """Empty the window, and open it again."""
        self.value = self.initial_value
        self.event_count = 0
        self.last_window_ms = now

    def is_complete(self, time_ms: float, config: MetricConfig) -> bool:
        """Whether no more values go into it."""
        return time_ms - self.last_window_ms >= config.time_window_ms or self.event_count >= config.event_window


class AbstractSampledStat(AbstractMeasurableStat):
    """Base of the windowed stats: `update` takes a value into a window, `combine` makes one value of all windows.

    A subclass defines `update` or, for many values at once, `joined`.
    """

    __slots__ = ("_current", "_initial_value", "_samples")

    Sample = Window  # the name of older releases

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if "update" in vars(cls):  # what it inherits would pass its `update` over
            cls.update_all = AbstractSampledStat.update_each  # type: ignore[method-assign]

    def __init__(self, initial_value: float) -> None:
        self._initial_value = initial_value
        # Opened in the order of the ring; _current is the newest.
        self._samples: list[Window] = []
        self._current = 0

    def joined(self, before: float, values: Sequence[float]) -> float:
        """Return the value of a window with some values more."""
        raise NotImplementedError

    def update(self, sample: Window, config: MetricConfig, value: float, time_ms: float) -> None:
        """Take a value into a window."""
        sample.value = self.joined(sample.value, (value,))

    def update_all(
        self, sample: Window, config: MetricConfig, values: Sequence[float], times_ms: Sequence[float]
    ) -> None:
        """Take some values into a window."""
        sample.value = self.joined(sample.value, values)

    def update_each(
        self, sample: Window, config: MetricConfig, values: Sequence[float], times_ms: Sequence[float]
    ) -> None:
        """Take some values into a window with `update`, one after the other."""
        for value, time_ms in zip(values, times_ms, strict=True):
            self.update(sample, config, value, time_ms)

    @abstractmethod
    def combine(self, samples: Sequence[Window], config: MetricConfig, now: float) -> float:
        """One value of all windows that are not too old."""

    def record(self, config: MetricConfig, value: float, time_ms: float) -> None:
        """Take a value into the newest window."""
        self.record_all(config, (value,), (time_ms,))

    def record_all(self, config: MetricConfig, values: Sequence[float], times_ms: Sequence[float]) -> None:
        """Take some values: at once if the newest window takes all of them."""
        sample = self.current(times_ms[0])
        if (
            max(times_ms) - sample.last_window_ms < config.time_window_ms
            and sample.event_count + len(values) <= config.event_window
        ):
            self.update_all(sample, config, values, times_ms)
            sample.event_count += len(values)
            return
        for value, time_ms in zip(values, times_ms, strict=True):
            if sample.is_complete(time_ms, config):
                sample = self._advance(config, time_ms)
            self.update_all(sample, config, (value,), (time_ms,))
            sample.event_count += 1

    def measure(self, config: MetricConfig, now: float) -> float:
        """One value of all windows that are not too old."""
        self.purge_obsolete_samples(config, now)
        return float(self.combine(self._samples, config, now))

    def new_sample(self, time_ms: float) -> Window:
        """A window."""
        return Window(self._initial_value, time_ms)

    def current(self, time_ms: float) -> Window:
        """The newest window."""
        if not self._samples:
            self._samples.append(self.new_sample(time_ms))
        return self._samples[self._current]

    def oldest(self, now: float) -> Window:
        """The oldest window."""
        if not self._samples:
            self._samples.append(self.new_sample(now))
        return min(self._samples, key=lambda sample: sample.last_window_ms)

    def purge_obsolete_samples(self, config: MetricConfig, now: float) -> None:
        """Empty the windows that lie too far back."""
        horizon = now - config.samples * config.time_window_ms
        for sample in self._samples:
            if sample.last_window_ms <= horizon:
                sample.reset(now)

    def _advance(self, config: MetricConfig, time_ms: float) -> Window:
        self._current = (self._current + 1) % config.samples
        if self._current >= len(self._samples):
            self._current = len(self._samples)
            self._samples.append(self.new_sample(time_ms))
        else:
            self._samples[self._current].reset(time_ms)
        return self._samples[self._current]


SampledStat = AbstractSampledStat


class SampledTotal(AbstractSampledStat):
    """The sum of the values.

    >>> from kafka.metrics import MetricConfig
    >>> total, config = SampledTotal(), MetricConfig(samples=2, time_window_ms=1000)
    >>> for second in range(4):
    ...     total.record(config, 10, second * 1000)
    >>> total.measure(config, 3000)
    20.0
    """

    __slots__ = ()

    def __init__(self, initial_value: float | None = None) -> None:
        if initial_value is not None:
            raise ValueError("A windowed total starts at zero")
        super().__init__(0.0)

    def joined(self, before: float, values: Sequence[float]) -> float:
        """Add the values."""
        return before + sum(values)

    def combine(self, samples: Sequence[Window], config: MetricConfig, now: float) -> float:
        """The sum of sums."""
        return sum(sample.value for sample in samples)


class Avg(SampledTotal):
    """The average of the values; 0 where there are none."""

    __slots__ = ()

    def combine(self, samples: Sequence[Window], config: MetricConfig, now: float) -> float:
        """The sum by the number."""
        count = sum(sample.event_count for sample in samples)
        return super().combine(samples, config, now) / count if count else 0.0


class Count(SampledTotal):
    """How many values there were."""

    __slots__ = ()

    def joined(self, before: float, values: Sequence[float]) -> float:
        """Count the values."""
        return before + len(values)


class Max(AbstractSampledStat):
    """The largest value; `empty` where there is none, which no value is below."""

    __slots__ = ()

    def __init__(self, empty: float = -math.inf) -> None:
        super().__init__(empty)

    def joined(self, before: float, values: Sequence[float]) -> float:
        """Keep the largest."""
        return max(before, *values)

    def combine(self, samples: Sequence[Window], config: MetricConfig, now: float) -> float:
        """The largest of all."""
        return max((sample.value for sample in samples), default=self._initial_value)


class Min(AbstractSampledStat):
    """The smallest value; ``float(sys.maxsize)`` where there is none, as in kafka-python."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(float(sys.maxsize))

    def joined(self, before: float, values: Sequence[float]) -> float:
        """Keep the smallest."""
        return min(before, *values)

    def combine(self, samples: Sequence[Window], config: MetricConfig, now: float) -> float:
        """The smallest of all."""
        return min((sample.value for sample in samples), default=self._initial_value)
