"""README.rst shows the figures of benchmarks/RESULTS.md."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.report import Published, Result
from tools import generate_speed_table
from tools.generate_speed_table import BEGIN, CLIENT_ROWS, CLIENTS, END, SPARK, SPARK_ROWS, replaced, tables

ROOT = Path(__file__).resolve().parents[3]


def test_the_readme_is_in_step_with_the_results(capsys):
    assert generate_speed_table.main(["--check"]) == 0, "README.rst: run make generated"


@pytest.mark.parametrize("section", sorted({row.section for row in (*CLIENT_ROWS, *SPARK_ROWS)}))
def test_every_row_is_a_case_of_the_benchmarks(section):
    command = [sys.executable, str(ROOT / "benchmarks" / f"{section.removeprefix('main-')}.py"), "--list"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    cases = {line.split()[0] for line in listed.splitlines() if line.strip()}
    assert {row.case for row in (*CLIENT_ROWS, *SPARK_ROWS) if row.section == section} <= cases


def results(libraries, number: int) -> list[Result]:
    return [
        Result(name, {"CPU µs/record": f"{number}.{at}", "records/s": f"{number},{at}00", "p50 ms": f"0.{number}{at}"})
        for at, name in enumerate(libraries)
    ]


def test_a_new_run_makes_new_tables():
    sections = {}
    for libraries, rows in ((CLIENTS, CLIENT_ROWS), (SPARK, SPARK_ROWS)):
        for number, row in enumerate(rows):
            section = sections.setdefault(
                row.section,
                Published(row.section, "t", f"2026-12-0{len(sections) + 1}", "A CPU", {}, {}, ["x"] * 3, ["y"]),
            )
            section.cases[row.case] = results(libraries, number)
    block = tables(sections)
    for number, row in enumerate(CLIENT_ROWS):
        line = next(line for line in block.split("\n") if line.startswith(row.label))
        expected = f"{number}.1 µs; {number},100" if row.column == "CPU" else f"0.{number}1 ms"
        assert expected in line
    assert "2026-12-01 to 2026-12-04" in block
    assert "Of 16 declared targets 12 hold; `4 are missed`_." in " ".join(block.split())
    assert all(len(line) <= 120 for line in block.split("\n") if "://" not in line)


def test_a_case_or_library_that_was_not_measured_is_left_out():
    sections = {
        "main-produce": Published(
            "main-produce", "t", "2026-12-01", "m", {}, {"send-mix-p6": results(CLIENTS[:2], 1)}, ["x"], []
        )
    }
    block = tables(sections)
    assert block.count("send(), values") == 1
    line = next(line for line in block.split("\n") if line.startswith("send()"))
    assert line.split()[-2:] == ["n/a", "n/a"]


def test_a_section_whose_cases_were_renamed_shows_its_first_case_with_every_library():
    cases = {"alone": results(CLIENTS[:1], 1), "all": results(CLIENTS, 2)}
    block = tables({"main-produce": Published("main-produce", "t", "2026-12-01", "m", {}, cases, ["x"], [])})
    line = next(line for line in block.split("\n") if line.startswith("main-produce: all"))
    assert "2.1 µs; 2,100" in line
    assert "alone" not in block


def test_the_block_needs_its_markers():
    assert replaced(f"a\n{BEGIN}old{END}b", "new\n") == f"a\n{BEGIN}new\n{END}b"
    with pytest.raises(ValueError, match="each once"):
        replaced("a", "new")
