"""Figures out of samples: per-record costs, medians, and ratios to ours over paired rounds. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

# What every workload reports in its JSON line; any other number in the line is a figure of the workload's own.
_STANDARD = frozenset({"case", "impl", "count", "records", "bytes", "cpu_s", "wall_s", "rss_kb"})


@dataclass(frozen=True)
class Sample:
    """One run of one library on one case."""

    records: float
    bytes: float
    cpu_s: float
    wall_s: float
    rss_kb: float | None
    extra: dict[str, float] = field(default_factory=dict)

    @classmethod
    def from_line(cls, line: Mapping[str, Any]) -> Sample:
        """Out of the line that the child printed. Raises ValueError where the line cannot be a run."""
        extra = {
            key: float(value)
            for key, value in line.items()
            if key not in _STANDARD and isinstance(value, int | float) and not isinstance(value, bool)
        }
        sample = cls(
            records=float(line["records"]),
            bytes=float(line["bytes"]),
            cpu_s=float(line["cpu_s"]),
            wall_s=float(line["wall_s"]),
            rss_kb=float(line["rss_kb"]) if "rss_kb" in line else None,
            extra=extra,
        )
        if sample.records <= 0 or sample.wall_s <= 0:
            raise ValueError(f"a run of {sample.records:g} records in {sample.wall_s:g} s says nothing")
        if sample.cpu_s < 0:
            raise ValueError(f"a run cannot have used {sample.cpu_s:g} s of CPU time")
        return sample

    def metric(self, name: str) -> float | None:
        """A figure by name, or None where this run has none of it. Of every metric, less is better."""
        match name:
            case "cpu_us":
                return self.cpu_s / self.records * 1e6
            case "wall_us":
                return self.wall_s / self.records * 1e6
            case "rss_mb":
                return None if self.rss_kb is None else self.rss_kb / 1024
            case _:
                return self.extra.get(name)


@dataclass(frozen=True)
class Spread:
    """A median with the least and the most of what it stands for."""

    mid: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Raises StatisticsError where there are no values."""
        return cls(median(values), min(values), max(values))


def summary(samples: Sequence[Sample], metric: str) -> Spread | None:
    """The metric over all runs of one library, or None where a run lacks it."""
    values = [value for sample in samples if (value := sample.metric(metric)) is not None]
    return Spread.of(values) if values and len(values) == len(samples) else None


def ratio(theirs: Sequence[Sample], ours: Sequence[Sample], metric: str) -> Spread | None:
    """Theirs / ours per round, so that what slows the whole machine for a while slows both sides of a pair.

    Above 1: ours is better. None where either side lacks the metric or has none of it to divide by.
    """
    pairs = [(one.metric(metric), other.metric(metric)) for one, other in zip(theirs, ours, strict=False)]
    ratios = [one / other for one, other in pairs if one is not None and other]
    return Spread.of(ratios) if ratios and len(ratios) == len(pairs) else None


def plan_counts(seconds_each: Mapping[str, float], *, want_s: float, most_s: float, same: bool) -> dict[str, int]:
    """How often each library shall do the operation, from what one operation takes it.

    The same count for all, such that the fastest runs for ``want_s``; a library that would then run for longer than
    ``most_s`` gets a smaller count of its own, unless ``same`` insists.
    """
    fastest = min(seconds_each.values())
    common = max(1, math.ceil(want_s / fastest))
    if same:
        return dict.fromkeys(seconds_each, common)
    return {name: max(1, min(common, round(most_s / each))) for name, each in seconds_each.items()}
