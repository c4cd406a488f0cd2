"""Metrics: a name, a measurable statistic and its configuration.

Times are milliseconds since the epoch, as in older releases, whose users pass them in.
"""

from __future__ import annotations

import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from kafka._runtime.clock import SYSTEM_CLOCK, Clock

__all__ = [
    "AbstractCompoundStat",
    "AbstractMeasurable",
    "AbstractMeasurableStat",
    "AbstractStat",
    "AnonMeasurable",
    "KafkaMetric",
    "MetricConfig",
    "MetricName",
    "NamedMeasurable",
    "Quota",
]


class MetricName:
    """A metric's name, the group it belongs to, and tags; the description is not part of the identity.

    >>> MetricName("rate", "producer", tags={"client": "a"}) == MetricName("rate", "producer", "text", {"client": "a"})
    True
    """

    __slots__ = ("_hash", "description", "group", "name", "tags")

    def __init__(
        self, name: str, group: str, description: str | None = None, tags: Mapping[str, Any] | None = None
    ) -> None:
        if not name or not group:
            raise ValueError(f"A metric needs a name and a group, not {name!r} and {group!r}")
        if tags is not None and not isinstance(tags, Mapping):
            raise TypeError(f"The tags of a metric must be a dict, not {tags!r}")
        self.name = name
        self.group = group
        self.description = description
        self.tags = dict(tags or {})
        self._hash = hash((name, group, tuple(sorted(self.tags.items()))))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MetricName):
            return NotImplemented
        return (self.name, self.group, self.tags) == (other.name, other.group, other.tags)

    def __repr__(self) -> str:
        return f"MetricName(name={self.name!r}, group={self.group!r}, tags={self.tags!r})"


class Quota(NamedTuple):
    """A bound that a metric should keep.

    >>> Quota.upper_bound(10).is_acceptable(11)
    False
    """

    bound: float
    is_upper: bool

    @staticmethod
    def upper_bound(upper_bound: float) -> Quota:
        """Values up to the bound are acceptable."""
        return Quota(upper_bound, is_upper=True)

    @staticmethod
    def lower_bound(lower_bound: float) -> Quota:
        """Values from the bound on are acceptable."""
        return Quota(lower_bound, is_upper=False)

    def is_upper_bound(self) -> bool:
        """Which of the two it is."""
        return self.is_upper

    def is_acceptable(self, value: float) -> bool:
        """Whether the value keeps the bound."""
        return value <= self.bound if self.is_upper else value >= self.bound


class MetricConfig:
    """How a metric looks back: over ``samples`` windows, each of a length in time or a number of events."""

    __slots__ = ("_samples", "event_window", "quota", "tags", "time_window_ms")

    def __init__(
        self,
        quota: Quota | None = None,
        samples: int = 2,
        event_window: int = sys.maxsize,
        time_window_ms: float = 30 * 1000,
        tags: Mapping[str, Any] | None = None,
    ) -> None:
        self.quota = quota
        self.samples = samples
        self.event_window = event_window
        self.time_window_ms = time_window_ms
        self.tags = dict(tags or {})

    @property
    def samples(self) -> int:
        """The number of windows."""
        return self._samples

    @samples.setter
    def samples(self, value: int) -> None:
        if value < 1:
            raise ValueError(f"A metric needs at least 1 sample, not {value!r}")
        self._samples = value


class AbstractMeasurable(ABC):
    """Something that has a value now."""

    __slots__ = ()

    @abstractmethod
    def measure(self, config: MetricConfig, now: float) -> float:
        """The value at a time."""


class AnonMeasurable(AbstractMeasurable):
    """A function ``f(config, now)`` as a measurable."""

    __slots__ = ("_measure_fn",)

    def __init__(self, measure_fn: Callable[[MetricConfig, float], float]) -> None:
        self._measure_fn = measure_fn

    def measure(self, config: MetricConfig, now: float) -> float:
        """Call the function."""
        return float(self._measure_fn(config, now))


class AbstractStat(ABC):
    """Something that takes values in; a subclass defines `record` or, for many values at once, `record_all`."""

    __slots__ = ()

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if "record" in vars(cls) and "record_all" not in vars(cls):  # what it inherits would pass its `record` over
            cls.record_all = AbstractStat.record_all  # type: ignore[method-assign]

    @abstractmethod
    def record(self, config: MetricConfig, value: float, time_ms: float) -> None:
        """Take a value."""

    def record_all(self, config: MetricConfig, values: Sequence[float], times_ms: Sequence[float]) -> None:
        """Take some values, each with its time, in their order."""
        for value, time_ms in zip(values, times_ms, strict=True):
            self.record(config, value, time_ms)


class AbstractMeasurableStat(AbstractStat, AbstractMeasurable):
    """Takes values in and has one value, such as their average."""

    __slots__ = ()


class AbstractCompoundStat(AbstractStat):
    """Takes values in and has several values, such as percentiles."""

    @abstractmethod
    def stats(self) -> Sequence[NamedMeasurable]:
        """The values, each with its name."""


class NamedMeasurable:
    """One of the values of a compound stat."""

    __slots__ = ("name", "stat")

    def __init__(self, metric_name: MetricName, measurable_stat: AbstractMeasurable) -> None:
        self.name = metric_name
        self.stat = measurable_stat


class KafkaMetric:
    """A metric as reporters see it.

    >>> KafkaMetric(MetricName("one", "g"), AnonMeasurable(lambda config, now: 1), MetricConfig()).value()
    1.0
    """

    __slots__ = ("_before", "_clock", "_lock", "_measurable", "config", "metric_name")

    def __init__(
        self,
        metric_name: MetricName,
        measurable: AbstractMeasurable,
        config: MetricConfig,
        *,
        lock: threading.RLock | None = None,
        clock: Clock = SYSTEM_CLOCK,
        before: Callable[[], object] | None = None,
    ) -> None:
        if not isinstance(measurable, AbstractMeasurable):
            raise TypeError(f"{metric_name} needs something with measure(config, now), not {measurable!r}")
        self.metric_name = metric_name
        self._measurable = measurable
        self._before = before  # brings the measurable up to date
        self.config = config
        # The sensor's own, so that a window is not replaced while it is summed up.
        self._lock = lock or threading.RLock()
        self._clock = clock

    @property
    def measurable(self) -> AbstractMeasurable:
        """The statistic behind the metric."""
        if self._before is not None:
            with self._lock:
                self._before()
        return self._measurable

    def value(self, time_ms: float | None = None) -> float:
        """The value now, or at a time."""
        with self._lock:
            if self._before is not None:
                self._before()
            return self._measurable.measure(self.config, self._clock.time() * 1000 if time_ms is None else time_ms)

    def __repr__(self) -> str:
        return f"<KafkaMetric {self.metric_name!r}>"
