"""benchmarks/RESULTS.md: one section per sub-target between markers, so that a run replaces its own section only.

:func:`write` puts a section in, :func:`read` returns the sections for the charts of the documentation and the table of
the README.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

RESULTS = Path(__file__).resolve().parent / "RESULTS.md"

_HEAD = """# Benchmark results

What `python -m benchmarks` printed last, section by section; docs/benchmarks.rst says how to read it. Absolute figures
belong to the machine and the hour; the ratios to ours, taken pair by pair in the same run, are what counts.
"""


@dataclass(frozen=True)
class Section:
    """All parts of one sub-target's section, rendered."""

    name: str
    title: str
    date: str
    command: str
    machine: Mapping[str, str]
    versions: Mapping[str, Mapping[str, str]]
    settings: Mapping[str, object]
    table: str
    absences: str
    verdicts: str
    notes: Sequence[str] = ()

    def text(self) -> str:
        """The section as Markdown."""
        machine = ", ".join(f"{value} cores" if key == "cores" else value for key, value in self.machine.items())
        parts = [
            f"## {self.name}: {self.title}",
            f"{self.date}, `{self.command}`  \n{machine}",
            "\n".join(f"- {key}: {value}" for key, value in self.settings.items()),
            self.table,
            self.absences,
            f"Targets:\n\n{self.verdicts}" if self.verdicts else "",
            "\n".join(f"- {note}" for note in self.notes),
            "Versions:\n\n" + "\n".join(_versions(library, found) for library, found in self.versions.items()),
        ]
        return "\n\n".join(part for part in parts if part)


def _versions(library: str, found: Mapping[str, str]) -> str:
    return f"- {library}: " + ", ".join(f"{name} {version}" for name, version in sorted(found.items()))


def replace_section(document: str, name: str, text: str) -> str:
    """The document with that section put in place of the old one, or added at the end.

    Raises:
        ValueError: the markers of the section are damaged (one without the other, twice, in the wrong order): better
            to stop than to cut away a neighbour.
    """
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    block = f"{begin}\n{text.strip()}\n{end}"
    if begin not in document and end not in document:
        return f"{document.rstrip()}\n\n{block}\n"
    if document.count(begin) != 1 or document.count(end) != 1 or document.index(begin) > document.index(end):
        raise ValueError(f"RESULTS.md: the markers of the section {name!r} are damaged; repair them by hand")
    pattern = re.escape(begin) + r".*?" + re.escape(end)
    return re.sub(pattern, lambda _match: block, document, flags=re.DOTALL)


def write(section: Section, path: Path = RESULTS) -> None:
    """Put the section into the file; a reader sees the old file or the new one, never half of it."""
    document = path.read_text(encoding="utf-8") if path.exists() else _HEAD
    new = path.with_name(path.name + ".new")
    new.write_text(replace_section(document, section.name, section.text()), encoding="utf-8")
    os.replace(new, path)


class Result(NamedTuple):
    """One library in one case: its cells by the headings of the table."""

    library: str
    cells: Mapping[str, str]

    def figure(self, column: str) -> float | None:
        """The number in the column whose heading begins so; of a ratio with its spread, the median."""
        heading = next((name for name in self.cells if name.startswith(column)), None)
        number = re.match(r"-?[\d,.]*\d", self.cells[heading]) if heading is not None else None
        return float(number[0].replace(",", "")) if number else None


@dataclass(frozen=True)
class Published:
    """A section as RESULTS.md shows it: the results of each case, and its targets."""

    name: str
    title: str
    date: str
    machine: str
    settings: Mapping[str, str]
    cases: Mapping[str, Sequence[Result]]
    holds: Sequence[str]
    missed: Sequence[str]


def read(path: Path = RESULTS) -> dict[str, Published]:
    """The sections of the file, by name."""
    document = path.read_text(encoding="utf-8")
    found = re.findall(r"<!-- begin ([\w-]+) -->\n(.*?)<!-- end \1 -->", document, flags=re.DOTALL)
    return {name: _section(name, text) for name, text in found}


def _section(name: str, text: str) -> Published:
    lines = text.split("\n")
    head = re.search(r"^(\d{4}-\d\d-\d\d), .*  \n(.*)$", text, flags=re.MULTILINE)
    targets = [line[2:].split(": ", 1) for line in lines if line.startswith(("- holds: ", "- MISSED: "))]
    before_table = lines[: next((at for at, line in enumerate(lines) if line.startswith("|")), len(lines))]
    return Published(
        name,
        lines[0].partition(": ")[2],
        head[1] if head else "",
        head[2] if head else "",
        dict(line[2:].split(": ", 1) for line in before_table if line.startswith("- ") and ": " in line),
        _cases(lines),
        [claim for mark, claim in targets if mark == "holds"],
        [claim for mark, claim in targets if mark == "MISSED"],
    )


def _cases(lines: Sequence[str]) -> dict[str, list[Result]]:
    """The rows of the table; a row without a case belongs to the case above it."""
    cases: dict[str, list[Result]] = {}
    heading: list[str] = []
    case = ""
    for line in lines:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|") or cells[0].startswith("---"):
            continue
        if not heading:
            heading = cells
            continue
        case = cells[0] or case
        cases.setdefault(case, []).append(Result(cells[1], dict(zip(heading[2:], cells[2:], strict=True))))
    return cases
