"""Charts of RESULTS.md for the documentation: HTML that the style sheet of the documentation draws as bars.

Bars and figures are text and boxes of the page, not a picture: they have the colours of the page's scheme, fit the
width of a phone, and can be searched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from benchmarks.report import Published, Result

OURS = "purekafka"
# Other builds of a library; the tables of RESULTS.md have them.
_VARIANTS = ("-no-numpy",)
_UNITS = {"CPU": "µs", "records/s": "/s", "messages/s": "/s", "events/s": "/s"}
_RATIO = "CPU / ours"


def chart(section: Published, title: str, labels: Mapping[str, str], column: str) -> str:
    """A group of bars per case: the figures of a column, and for CPU the ratio to ours."""
    chosen = {case: label for case, label in labels.items() if case in section.cases}
    bars = {label: _bars(section.cases[case], column) for case, label in chosen.items()}
    most = max((value for group in bars.values() for _, value in group), default=0)
    parts = [f'<figure class="benchmark"><figcaption>{escape(title)}</figcaption>']
    for label, group in bars.items():
        parts.append(f'<div class="benchmark-case"><p>{escape(label)}</p>')
        parts += [_bar(result, value, most, column) for result, value in group]
        parts.append("</div>")
    return "".join([*parts, "</figure>"])


def _bars(results: Sequence[Result], column: str) -> list[tuple[Result, float]]:
    shown = [(result, result.figure(column)) for result in results if not result.library.endswith(_VARIANTS)]
    return [(result, value) for result, value in shown if value is not None]


def _bar(result: Result, value: float, most: float, column: str) -> str:
    heading = next(name for name in result.cells if name.startswith(column))
    unit = _UNITS.get(column) or heading.rpartition(" ")[2]
    words = f"{result.cells[heading]} {unit}".replace(" /", "/")
    ratio = result.figure(_RATIO)
    if column == "CPU" and ratio is not None and result.library != OURS:
        words += f" · {ratio:.3g}x"
    kind = "benchmark-bar benchmark-ours" if result.library == OURS else "benchmark-bar"
    return (
        f'<div class="{kind}"><span class="benchmark-library">{escape(result.library)}</span>'
        f'<span class="benchmark-track"><span style="width:{100 * value / most:.1f}%"></span></span>'
        f'<span class="benchmark-figure">{escape(words)}</span></div>'
    )


def missed(sections: Mapping[str, Published]) -> str:
    """The targets that the last runs missed, as a list per section, and how many hold."""
    parts = []
    for section in sections.values():
        total = len(section.holds) + len(section.missed)
        if not total:
            continue
        parts.append(
            f"<details><summary><code>{section.name}</code>: {len(section.holds)} of {total} targets hold"
            f" ({section.date})</summary>"
        )
        claims = "".join(f"<li>{escape(claim)}</li>" for claim in section.missed)
        parts.append(f"<ul>{claims}</ul></details>" if claims else "<p>None is missed.</p></details>")
    return "".join(parts)
