"""What a source distribution needs so that its checks run: the files that its own commands name."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_files_that_tox_and_make_name_are_in_the_source_distribution() -> None:
    named = set(re.findall(r"--config (\S+)", text("tox.ini") + text("Makefile")))
    included = {
        name for line in text("MANIFEST.in").splitlines() if line.startswith("include ") for name in line.split()
    }
    assert named
    assert named <= included


def test_every_benchmark_is_run_by_tox_and_make() -> None:
    scripts = {path.stem for path in (ROOT / "benchmarks").glob("*.py")}
    (by_tox,) = re.findall(r"python -m benchmarks \{posargs:(.+)\}", text("tox.ini"))
    (by_make,) = re.findall(r"^bench: .*\n\t\$\(BENCH\) (.+)$", text("Makefile"), re.MULTILINE)
    assert by_tox == by_make
    assert set(by_tox.split()) <= scripts


def test_the_documentation_has_each_extra_that_users_install() -> None:
    (extras,) = re.findall(r"^EXTRAS = \{\n(.*?)^\}", text("setup.py"), re.MULTILINE | re.DOTALL)
    offered = {*re.findall(r'^    "(\w+)": ', extras, re.MULTILINE), "all"} - {"dev", "docs"}
    table = text("docs/dependencies.rst").split("Installed only when they are asked for")[1].split("``pip show")[0]
    assert set(re.findall(r"^``(\w+)``", table, re.MULTILINE)) == offered
