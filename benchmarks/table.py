"""Figures as text: one aligned table that reads well in a terminal and is Markdown at the same time. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.stats import Sample, Spread, ratio, summary
from benchmarks.targets import Verdict
from benchmarks.workload import OURS

_NONE = "-"


def figure(value: float | None) -> str:
    """Three significant digits, thousands separated, no exponents: 0.00123, 4.56, 78.9, 12,300."""
    if value is None:
        return _NONE
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 100:
        digits = len(str(int(size)))
        return f"{round(value, 3 - digits):,.0f}"
    places = 1 if size >= 10 else 2
    while size < 1:
        size *= 10
        places += 1
    return f"{value:.{places}f}"


def times(spread: Spread | None) -> str:
    """A ratio with its spread: 4.02x (3.90..4.13)."""
    if spread is None:
        return _NONE
    return f"{figure(spread.mid)}x ({figure(spread.low)}..{figure(spread.high)})"


def grid(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 2) -> str:
    """An aligned Markdown table; the first ``left`` columns are text, the others are figures."""
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        aligned = [
            cell.ljust(width) if column < left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return "| " + " | ".join(aligned) + " |"

    rule = ["-" * width if column < left else "-" * (width - 1) + ":" for column, width in enumerate(widths)]
    return "\n".join([line(header), line(rule), *map(line, rows)])


def results(samples: Mapping[str, Mapping[str, Sequence[Sample]]], unit: str) -> str:
    """The table of one sub-target: a row per case and library, in the order of the samples."""
    extras = sorted({name for runs in _all_runs(samples) for run in runs for name in run.extra})
    header = ["case", "library", f"CPU µs/{unit}", f"{unit}s/s", "MB/s", "peak MB", *map(_heading, extras)]
    header += ["CPU / ours", "wall / ours"]
    rows = []
    for case, by_library in samples.items():
        ours = by_library.get(OURS, ())
        title = case
        for library, runs in by_library.items():
            rows.append([title, library, *_figures(runs, extras), *_against(library, runs, ours)])
            title = ""
    return grid(header, rows)


def absences(unsupported: Mapping[str, Mapping[str, str]]) -> str:
    """What has no row and why: one line per case and library."""
    return "\n".join(
        f"- {case}: not with {library}: {why}" for case, by in unsupported.items() for library, why in by.items()
    )


def one_line(samples: Mapping[str, Sequence[Sample]], unit: str) -> str:
    """A case in short, for the eye that waits: purekafka 1.20 µs/record, kafka-python 4.80 (4.00x)."""
    words = []
    for library, runs in samples.items():
        cost = f"{library} {_mid(summary(runs, 'cpu_us'))}"
        against = ratio(runs, samples.get(OURS, ()), "cpu_us") if library != OURS else None
        words.append(f"{cost} ({figure(against.mid)}x)" if against else cost)
    return f"µs/{unit}: " + ", ".join(words)


def verdicts(judged: Sequence[Verdict]) -> str:
    """One line per target: whether it holds, what it asks for, what was seen."""
    lines = []
    for verdict in judged:
        mark = "holds" if verdict.holds else "MISSED"
        if verdict.seen is None:
            seen = "not measured"
        else:
            seen = f"seen {figure(verdict.seen.mid)} ({figure(verdict.seen.low)}..{figure(verdict.seen.high)})"
        lines.append(f"- {mark}: {verdict.claim}; {seen}")
    return "\n".join(lines)


def _all_runs(samples: Mapping[str, Mapping[str, Sequence[Sample]]]) -> list[Sequence[Sample]]:
    return [runs for by_library in samples.values() for runs in by_library.values()]


def _figures(runs: Sequence[Sample], extras: Sequence[str]) -> list[str]:
    wall = summary(runs, "wall_us")
    rate = 1e6 / wall.mid if wall else None
    bytes_each = runs[0].bytes / runs[0].records
    cells = [
        _mid(summary(runs, "cpu_us")),
        figure(rate),
        figure(rate * bytes_each / 1e6) if rate and bytes_each else _NONE,
        _mid(summary(runs, "rss_mb")),
    ]
    return cells + [_mid(summary(runs, name)) for name in extras]


def _against(library: str, runs: Sequence[Sample], ours: Sequence[Sample]) -> list[str]:
    if library == OURS:
        return ["1", "1"]
    return [times(ratio(runs, ours, "cpu_us")), times(ratio(runs, ours, "wall_us"))]


def _mid(spread: Spread | None) -> str:
    return figure(spread.mid if spread else None)


def _heading(name: str) -> str:
    stem, _, unit = name.rpartition("_")
    return f"{stem.replace('_', ' ')} {unit}" if stem else name
