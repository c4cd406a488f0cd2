"""Writes the tables of speed in README.rst, between its markers, from benchmarks/RESULTS.md.

``python tools/generate_speed_table.py`` writes; with ``--check`` it exits with 1 if README.rst would change. Run it
after the benchmarks (``make generated`` does); a unit test compares.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from benchmarks.report import RESULTS, Published, Result, read  # noqa: E402

README = ROOT / "README.rst"
BEGIN = ".. Speed: written by tools/generate_speed_table.py from benchmarks/RESULTS.md.\n"
END = ".. End of speed.\n"
MISSED = "https://purekafka.readthedocs.io/en/stable/benchmarks.html#missed-targets"


class Row(NamedTuple):
    """A row of a table: the case of a section, and its words."""

    section: str
    case: str
    label: str
    column: str = "CPU"


CLIENTS = ("purekafka", "kafka-python", "aiokafka", "confluent-kafka")
CLIENT_ROWS = (
    Row("main-produce", "send-mix-p6", "send(), values of 20 to 300 B"),
    Row("main-produce", "send-json-p6", "send(), JSON of 80 to 2,000 B"),
    Row("main-consume", "poll-mix-p6", "poll(), values of 20 to 300 B"),
    Row("main-consume", "poll-json-p6", "poll(), JSON of 80 to 2,000 B"),
    Row("main-consume", "iterate-mix-p6", "for record in consumer"),
    Row("main-latency", "send-get-mix", "send().get(), p50", "p50 ms"),
    Row("main-latency", "send-poll-mix", "send() to poll(), p50", "p50 ms"),
)
SPARK = ("purekafka", "spark-sql-kafka")
SPARK_ROWS = (
    Row("spark", "batch-count", "batch, count and sum"),
    Row("spark", "batch-columns", "batch, all columns"),
    Row("spark", "stream-add-batch", "streaming query"),
    Row("spark", "sink", "writing"),
    Row("spark", "small-trigger", "trigger of 40 records, p50", "p50 ms"),
)
_HEADINGS = {"spark-sql-kafka": "Spark's own connector"}


def tables(sections: Mapping[str, Published]) -> str:
    """The block between the markers."""
    clients = _table("CPU per record; records per second", CLIENTS, CLIENT_ROWS, sections)
    spark = _table("The same on Spark", SPARK, SPARK_ROWS, sections)
    used = [sections[name] for name in ("main-produce", "main-consume", "main-latency", "spark") if name in sections]
    holds = sum(len(section.holds) for section in sections.values())
    missed = sum(len(section.missed) for section in sections.values())
    dates = sorted({section.date for section in used})
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    about = (
        f"Medians of {when} with Apache Kafka on the same machine ({used[0].machine}). "
        f"Of {holds + missed} declared targets {holds} hold; `{missed} are missed`_."
    )
    return f"\n{clients}\n{spark}\n{_wrapped(about)}\n.. _{missed} are missed: {MISSED}\n\n"


def _wrapped(text: str, width: int = 120) -> str:
    lines = [""]
    for word in text.split(" "):
        if len(lines[-1]) + len(word) + 1 > width:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    return "\n".join(lines) + "\n"


def _table(title: str, libraries: Sequence[str], rows: Sequence[Row], sections: Mapping[str, Published]) -> str:
    """A simple table of reStructuredText; a row that RESULTS.md does not have is left out."""
    body = [[title, *(_HEADINGS.get(name, name) for name in libraries)]]
    for row in _measured(rows, sections, libraries):
        by_library = {result.library: result for result in sections[row.section].cases[row.case]}
        body.append([row.label, *(_cell(by_library.get(name), row.column) for name in libraries)])
    if len(body) == 1:
        return ""
    widths = [max(len(line[at]) for line in body) for at in range(len(libraries) + 1)]
    rule = "  ".join("=" * width for width in widths)
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in body]
    return "\n".join([rule, lines[0], rule, *lines[1:], rule]) + "\n"


def _measured(rows: Sequence[Row], sections: Mapping[str, Published], libraries: Sequence[str]) -> list[Row]:
    """The rows that RESULTS.md has; of a section whose cases were all renamed, its first case with every library."""
    found = []
    for section in dict.fromkeys(row.section for row in rows if row.section in sections):
        cases = sections[section].cases
        wanted = [row for row in rows if row.section == section]
        known = [row for row in wanted if row.case in cases]
        complete = (case for case, results in cases.items() if {*libraries} <= {result.library for result in results})
        first = next(complete, None)
        found += known or ([wanted[0]._replace(case=first, label=f"{section}: {first}")] if first else [])
    return found


def _cell(result: Result | None, column: str) -> str:
    """CPU and throughput of a library, or its latency."""
    if result is None:
        return "n/a"
    heading = next(name for name in result.cells if name.startswith(column))
    if column != "CPU":
        return f"{result.cells[heading]} {column.rpartition(' ')[2]}"
    return f"{result.cells[heading]} µs; {result.cells['records/s']}"


def replaced(text: str, block: str) -> str:
    """The text of README.rst with the block between its markers."""
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise ValueError(f"README.rst needs the lines {BEGIN.strip()!r} and {END.strip()!r}, each once")
    head, rest = text.split(BEGIN)
    return head + BEGIN + block + END + rest.split(END)[1]


def main(argv: Sequence[str] | None = None) -> int:
    """Write README.rst, or compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if README.rst would change")
    options = parser.parse_args(argv)
    old = README.read_text(encoding="utf-8")
    new = replaced(old, tables(read(RESULTS)))
    if new == old:
        return 0
    print("differs:" if options.check else "wrote:", README.relative_to(ROOT))
    if not options.check:
        README.write_text(new, encoding="utf-8")
    return int(options.check)


if __name__ == "__main__":
    sys.exit(main())
