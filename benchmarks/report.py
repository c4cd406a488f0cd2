"""benchmarks/RESULTS.md: one section per sub-target between markers, so that a run replaces its own and no other."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

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
        raise ValueError(f"RESULTS.md: the markers of the section {name!r} are damaged; mend them by hand")
    pattern = re.escape(begin) + r".*?" + re.escape(end)
    return re.sub(pattern, lambda _match: block, document, flags=re.DOTALL)


def write(section: Section, path: Path = RESULTS) -> None:
    """Put the section into the file; a reader sees the old file or the new one, never half of it."""
    document = path.read_text(encoding="utf-8") if path.exists() else _HEAD
    new = path.with_name(path.name + ".new")
    new.write_text(replace_section(document, section.name, section.text()), encoding="utf-8")
    os.replace(new, path)
