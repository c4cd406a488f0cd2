"""Pictures that the build of the documentation draws: sequence diagrams, layers, and charts of the benchmarks.

Diagrams are SVG within the page, charts are HTML. Both have the colours of the theme, so that they can be read in both
colour schemes, and words that can be searched. No other program and no network is needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from itertools import accumulate, pairwise
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive, directives

from benchmarks.charts import chart, missed
from benchmarks.report import RESULTS, read

FONT = 14
LINE = 19
STEP = 46
BOX = 34
STYLE = (
    'style="max-width:100%;height:auto;color:var(--color-foreground-primary,#000);'
    'font-family:var(--font-stack,sans-serif)"'
)


def text(x: float, y: float, words: str, *, anchor: str = "middle", size: int = FONT, bold: bool = False) -> str:
    """Return a line of text."""
    weight = ' font-weight="600"' if bold else ""
    return (
        f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-size="{size}"{weight} fill="currentColor">'
        f"{escape(words)}</text>"
    )


def box(x: float, y: float, width: float, height: float, *, opacity: float = 0.06) -> str:
    """Return a box with a border."""
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6" fill="currentColor" '
        f'fill-opacity="{opacity}" stroke="currentColor" stroke-opacity="0.45"/>'
    )


def line(x1: float, y1: float, x2: float, y2: float, more: str) -> str:
    """Return a line."""
    return f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="currentColor" {more}/>'


def width_of(words: str) -> float:
    """Return about how wide a text is."""
    return len(words) * FONT * 0.62 + 22


def svg(width: float, height: float, parts: Iterable[str], title: str) -> str:
    """Return the whole picture."""
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" width="{width:g}" role="img" aria-label="{escape(title)}" {STYLE}>'
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" fill="currentColor"/></marker></defs>'
        f"{''.join(parts)}</svg>"
    )


class Picture(Directive):
    """The base class of the pictures: a screen reader reads the title."""

    has_content = True
    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """Return the picture."""
        return [nodes.raw("", f'<div class="picture">{self.draw()}</div>', format="html")]

    def draw(self) -> str:
        """Return the SVG."""
        raise NotImplementedError


class SequenceDiagram(Picture):
    """`.. sequence:: TITLE`, a line of participants, then lines ``A -> B: message`` and ``== heading``."""

    def draw(self) -> str:
        """Return the SVG."""
        lines = [line.strip() for line in self.content if line.strip()]
        names = [name.strip() for name in lines[0].split(",")]
        messages = lines[1:]
        at = self._places(names, messages)
        height = 60 + STEP * len(messages) + 10
        parts = []
        for name, x in at.items():
            half = max(width_of(name), 90) / 2
            parts += [box(x - half, 8, 2 * half, BOX), text(x, 30, name, bold=True)]
            parts.append(line(x, 42, x, height, 'stroke-opacity="0.35" stroke-dasharray="4 4"'))
        y = 60.0
        for message in messages:
            y += STEP
            parts += self._message(message, at, y)
        beside = [
            width_of(message.split(": ", 1)[1])
            for message in messages
            if message.startswith(f"{names[-1]} -> {names[-1]}:")
        ]
        width = at[names[-1]] + max([80, *beside])
        return svg(width, height + 12, parts, self.arguments[0])

    @staticmethod
    def _places(names: Sequence[str], messages: Sequence[str]) -> dict[str, float]:
        """Return where the line of each participant stands: each gap is as wide as its own messages need."""
        gaps = [max(150, (width_of(left) + width_of(right)) / 2 + 16) for left, right in pairwise(names)]
        found = [match for match in (re.match(r"(.+?) -> (.+?): (.*)", message) for message in messages) if match]
        ways = [(*sorted((names.index(match[1]), names.index(match[2]))), match[3]) for match in found]
        for first, last, words in sorted(ways, key=lambda way: way[1] - way[0]):
            crossed = range(first, max(last, first + 1))  # words beside a line stand in the gap on its right
            if crossed.stop > len(gaps):
                continue
            missing = len(words) * 13 * 0.56 + 44 - sum(gaps[number] for number in crossed)
            for number in crossed:
                gaps[number] += max(0, missing) / len(crossed)
        return dict(zip(names, accumulate(gaps, initial=80.0), strict=True))

    @staticmethod
    def _message(message: str, at: dict[str, float], y: float) -> list[str]:
        if message.startswith("=="):
            right = max(at.values()) + 60
            rule = line(20, y - 6, right, y - 6, 'stroke-opacity="0.2"')
            return [rule, text(24, y - 12, message.strip("= "), anchor="start", size=13, bold=True)]
        match = re.match(r"(.+?) -> (.+?): (.*)", message)
        if match is None:
            raise ValueError(f"not a message: {message!r}")
        source, target = at[match[1]], at[match[2]]
        if source == target:
            way = f'd="M{source:g},{y - 14:g} h26 v14 h-22"'
            loop = f'<path {way} fill="none" stroke="currentColor" marker-end="url(#arrow)"/>'
            return [loop, text(source + 34, y - 4, match[3], anchor="start", size=13)]
        arrow = line(source, y, target, y, 'marker-end="url(#arrow)"')
        return [arrow, text((source + target) / 2, y - 8, match[3], size=13)]


class Layers(Picture):
    """`.. layers:: TITLE`, then a line per layer: ``box | box | box``, with ``name = what it is``."""

    def draw(self) -> str:
        """Return the SVG."""
        rows = [[cell.strip() for cell in line.split("|")] for line in self.content if line.strip()]
        width = max(sum(self._width(cell) + 10 for cell in row) for row in rows)
        parts = []
        y = 4.0
        for row in rows:
            share = (width - 10 * (len(row) - 1)) / sum(self._width(cell) for cell in row)
            x = 4.0
            for cell in row:
                name, _, note = (part.strip() for part in cell.partition("="))
                wide = self._width(cell) * share
                parts += [box(x, y, wide, 58), text(x + wide / 2, y + (24 if note else 34), name, bold=True)]
                if note:
                    parts.append(text(x + wide / 2, y + 24 + LINE, note, size=12))
                x += wide + 10
            y += 68
        return svg(width + 8, y, parts, self.arguments[0])

    @staticmethod
    def _width(cell: str) -> float:
        return max(width_of(part.strip()) for part in cell.split("="))


class BenchmarkChart(Picture):
    """`.. benchmark:: TITLE` with the name of a section of RESULTS.md, a column, and lines ``case = label``.

    A section that RESULTS.md does not have leaves the chart out, so that a page can name a part that has not run yet.
    """

    option_spec: ClassVar[dict[str, Any]] = {
        "section": directives.unchanged_required,
        "column": directives.unchanged_required,
    }

    def run(self) -> list[nodes.Node]:
        """Return the chart, which is HTML."""
        self.state.document.settings.env.note_dependency(str(RESULTS))
        section = read(RESULTS).get(self.options["section"])
        if section is None:
            return []
        lines = [line.partition("=") for line in self.content if line.strip()]
        labels = {case.strip(): label.strip() for case, _, label in lines}
        drawn = chart(section, self.arguments[0], labels, self.options.get("column", "CPU"))
        return [nodes.raw("", drawn, format="html")]


class MissedTargets(Directive):
    """`.. missed-targets::`: the targets of the benchmarks that the runs in RESULTS.md missed."""

    def run(self) -> list[nodes.Node]:
        """Return a list that unfolds for each section."""
        self.state.document.settings.env.note_dependency(str(RESULTS))
        return [nodes.raw("", missed(read(RESULTS)), format="html")]


def setup(app: Any) -> dict[str, Any]:
    """Register the directives."""
    app.add_directive("sequence", SequenceDiagram)
    app.add_directive("layers", Layers)
    app.add_directive("benchmark", BenchmarkChart)
    app.add_directive("missed-targets", MissedTargets)
    return {"parallel_read_safe": True}
