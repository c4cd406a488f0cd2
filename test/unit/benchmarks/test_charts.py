"""The charts of the documentation come from RESULTS.md, and name cases that the benchmarks have."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.charts import chart, missed
from benchmarks.report import Published, Result

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "benchmarks.rst"


def published(**changes) -> Published:
    values = {
        "name": "produce",
        "title": "records",
        "date": "2026-01-02",
        "machine": "A CPU",
        "settings": {},
        "cases": {
            "send": [
                Result("purekafka", {"CPU µs/record": "2.00", "records/s": "300,000", "CPU / ours": "1"}),
                Result("peer", {"CPU µs/record": "8.00", "records/s": "90,000", "CPU / ours": "4.1x (3..5)"}),
                Result("peer-no-numpy", {"CPU µs/record": "80.0", "records/s": "9,000", "CPU / ours": "40x (30..50)"}),
                Result("absent", {"CPU µs/record": "-", "records/s": "-", "CPU / ours": "-"}),
            ],
            "other": [Result("purekafka", {"CPU µs/record": "1.00", "records/s": "7", "CPU / ours": "1"})],
        },
        "holds": ["a"],
        "missed": ["b < c"],
    }
    return Published(**{**values, **changes})


def words(html: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())


def test_a_chart_has_a_bar_per_library_and_the_ratio_to_ours():
    drawn = chart(published(), "CPU & more", {"send": "one by one", "not measured": "left out"}, "CPU")
    assert words(drawn) == "CPU &amp; more one by one purekafka 2.00 µs peer 8.00 µs · 4.1x"
    assert re.findall(r"width:([\d.]+)%", drawn) == ["25.0", "100.0"]


def test_a_chart_of_throughput_has_its_unit():
    assert "purekafka 300,000/s peer 90,000/s" in words(chart(published(), "t", {"send": "x"}, "records/s"))


def test_missed_targets_are_listed_with_their_number():
    assert words(missed({"produce": published()})) == "produce : 1 of 2 targets hold (2026-01-02) b &lt; c"
    assert "None is missed" in missed({"produce": published(missed=[])})
    assert missed({"produce": published(holds=[], missed=[])}) == ""


def named_cases() -> dict[str, set[str]]:
    """Return the cases that the page's charts name, by section."""
    found: dict[str, set[str]] = {}
    for body in re.findall(r"^\.\. benchmark:: .*\n((?:   .*\n|\n)*)", PAGE.read_text(encoding="utf-8"), re.MULTILINE):
        section = re.search(r":section: (\S+)", body)
        assert section is not None, body
        found.setdefault(section[1], set()).update(re.findall(r"^   ([\w-]+) = ", body, re.MULTILINE))
    return found


def declared(section: str) -> set[str]:
    command = [sys.executable, str(ROOT / "benchmarks" / f"{section.removeprefix('main-')}.py"), "--list"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {line.split()[0] for line in listed.splitlines() if line.strip()}


@pytest.mark.parametrize("section", sorted(named_cases()))
def test_the_charts_name_cases_of_the_benchmarks(section):
    assert named_cases()[section] <= declared(section)
