"""How values are spread: histograms with a fixed number of bins, and percentiles over windows of them."""

# ruff: noqa: ARG002 - the interface names what it passes

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Protocol

from kafka.metrics.metric import AbstractCompoundStat, AnonMeasurable, MetricConfig, MetricName, NamedMeasurable
from kafka.metrics.stats.sampled import AbstractSampledStat, Window

__all__ = ["BinScheme", "BucketSizing", "Histogram", "Percentile", "Percentiles"]


class BinScheme(Protocol):
    """Which value falls into which bin."""

    @property
    def bins(self) -> int:
        """How many bins there are."""
        ...

    def to_bin(self, x: float) -> int:
        """The bin of a value."""
        ...

    def from_bin(self, b: int) -> float:
        """The lower end of a bin."""
        ...


class ConstantBinScheme:
    """Bins of one width between two values, and one bin each for what is below and above."""

    def __init__(self, bins: int, min_val: float, max_val: float) -> None:
        if bins < 3:
            raise ValueError(f"A histogram needs at least 3 bins, not {bins!r}")
        self.bins = int(bins)
        self._min = float(min_val)
        self._max = float(max_val)
        self._width = (self._max - self._min) / (self.bins - 2)

    def from_bin(self, b: int) -> float:
        """The lower end of a bin."""
        if b == 0:
            return -math.inf
        return math.inf if b == self.bins - 1 else self._min + (b - 1) * self._width

    def to_bin(self, x: float) -> int:
        """The bin of a value."""
        if x < self._min:
            return 0
        if x >= self._max:
            return self.bins - 1
        # Rounding must not carry a value just below the end into the bin above it.
        return min(int((x - self._min) / self._width) + 1, self.bins - 2)


class LinearBinScheme:
    """Bins from zero on, each one wider than the last by the same amount, and one bin for what is above."""

    def __init__(self, num_bins: int, max_val: float) -> None:
        if num_bins < 2:
            raise ValueError(f"A histogram needs at least 2 bins, not {num_bins!r}")
        self.bins = int(num_bins)
        self._max = float(max_val)
        self._scale = self._max / (self.bins * (self.bins - 1) / 2)

    def from_bin(self, b: int) -> float:
        """The lower end of a bin."""
        return math.inf if b == self.bins - 1 else self._scale * b * (b + 1) / 2

    def to_bin(self, x: float) -> int:
        """The bin of a value."""
        if x < 0:
            raise ValueError(f"A linear histogram takes no values below 0, such as {x!r}")
        if x >= self._max:
            return self.bins - 1
        return min(int(math.sqrt(2 * x / self._scale + 0.25) - 0.5), self.bins - 2)


class Histogram:
    """Counts per bin.

    >>> histogram = Histogram(Histogram.ConstantBinScheme(12, 0, 100))
    >>> for value in range(100):
    ...     histogram.record(value)
    >>> histogram.value(0.5)
    50.0
    """

    ConstantBinScheme = ConstantBinScheme
    LinearBinScheme = LinearBinScheme

    def __init__(self, bin_scheme: BinScheme) -> None:
        self._scheme = bin_scheme
        self._counts = [0.0] * bin_scheme.bins
        self._count = 0.0

    def record(self, value: float) -> None:
        """Count a value."""
        self._counts[self._scheme.to_bin(value)] += 1
        self._count += 1

    def value(self, quantile: float) -> float:
        """The lower end of the bin that holds the quantile; NaN where nothing was counted."""
        return quantile_of([self._counts], self._scheme, self._count, quantile)

    @property
    def counts(self) -> list[float]:
        """The counts, from the lowest bin up."""
        return self._counts

    def clear(self) -> None:
        """Forget all counts."""
        self._counts[:] = [0.0] * len(self._counts)
        self._count = 0.0

    def __str__(self) -> str:
        bins = (f"{self._scheme.from_bin(b):.10f}:{count:.0f}" for b, count in enumerate(self._counts[:-1]))
        return "{" + ",".join((*bins, f"inf:{self._counts[-1]:.0f}")) + "}"


def quantile_of(counts: Sequence[Sequence[float]], scheme: BinScheme, total: float, quantile: float) -> float:
    """The quantile over several lists of counts at once."""
    if not total:
        return math.nan
    below = 0.0
    for b, column in enumerate(zip(*counts, strict=True)):
        below += sum(column)
        if below / total > quantile:
            return scheme.from_bin(b)
    return math.inf


class Percentile:
    """The name of a percentile's metric, and which it is: 99 for the 99th."""

    __slots__ = ("name", "percentile")

    def __init__(self, metric_name: MetricName, percentile: float) -> None:
        self.name = metric_name
        self.percentile = percentile


class BucketSizing:
    """How the bins of `Percentiles` are laid out."""

    CONSTANT: Final = 0
    LINEAR: Final = 1


class HistogramWindow(Window):
    """A window that holds a histogram."""

    __slots__ = ("histogram",)

    def __init__(self, scheme: BinScheme, now: float) -> None:
        super().__init__(0.0, now)
        self.histogram = Histogram(scheme)

    def reset(self, now: float) -> None:
        """Empty it."""
        super().reset(now)
        self.histogram.clear()


class Percentiles(AbstractSampledStat, AbstractCompoundStat):
    """Percentiles over windows; ``size_in_bytes`` is four times the number of bins."""

    HistogramSample = HistogramWindow  # the name of older releases

    def __init__(
        self,
        size_in_bytes: int,
        bucketing: int,
        max_val: float,
        min_val: float = 0.0,
        percentiles: Sequence[Percentile] | None = None,
    ) -> None:
        super().__init__(0.0)
        self._percentiles = tuple(percentiles or ())
        bins = int(size_in_bytes / 4)
        self._scheme: BinScheme
        if bucketing == BucketSizing.CONSTANT:
            self._scheme = ConstantBinScheme(bins, min_val, max_val)
        elif bucketing == BucketSizing.LINEAR:
            if min_val != 0:
                raise ValueError(f"Linear buckets begin at 0, not at {min_val!r}")
            self._scheme = LinearBinScheme(bins, max_val)
        else:
            raise ValueError(f"bucketing must be BucketSizing.CONSTANT or LINEAR, not {bucketing!r}")

    def stats(self) -> list[NamedMeasurable]:
        """The percentiles."""
        return [NamedMeasurable(wanted.name, self._measurable(wanted.percentile / 100)) for wanted in self._percentiles]

    def _measurable(self, quantile: float) -> AnonMeasurable:
        return AnonMeasurable(lambda config, now: self.value(config, now, quantile))

    def value(self, config: MetricConfig, now: float, quantile: float) -> float:
        """One quantile over all windows that are not too old."""
        self.purge_obsolete_samples(config, now)
        samples = [sample for sample in self._samples if isinstance(sample, HistogramWindow)]
        total = sum(sample.event_count for sample in samples)
        return quantile_of([sample.histogram.counts for sample in samples], self._scheme, total, quantile)

    def combine(self, samples: Sequence[Window], config: MetricConfig, now: float) -> float:
        """The median."""
        return self.value(config, now, 0.5)

    def new_sample(self, time_ms: float) -> HistogramWindow:
        """A window."""
        return HistogramWindow(self._scheme, time_ms)

    def update(self, sample: Window, config: MetricConfig, value: float, time_ms: float) -> None:
        """Count a value."""
        assert isinstance(sample, HistogramWindow)
        sample.histogram.record(value)
