"""The tests as a whole: each module of the packages below has a test module of its name, and a run leaves nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from test.slow import listed

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("consumer", "coordinator")
# Historic paths, which only pass names on.
_SHORTEST = 20


@pytest.mark.parametrize("package", PACKAGES)
def test_each_module_has_its_own_tests(package: str) -> None:
    missing = [
        path.stem
        for path in sorted((ROOT / "kafka" / package).glob("[!_]*.py"))
        if len(path.read_text(encoding="utf-8").splitlines()) > _SHORTEST
        and not (ROOT / "test" / "unit" / package / f"test_{path.stem}.py").exists()
    ]
    assert missing == []


def test_the_slow_tests_of_the_list_exist() -> None:
    for name in listed():
        file, *parts = name.split("::")
        text = (ROOT / file).read_text(encoding="utf-8")
        assert all(part == "runTest" or re.search(rf"\b{part}\b", text) for part in parts), name


LEAVING = """
import subprocess, sys, tempfile

PROGRAM = "import os, signal, tempfile; tempfile.mkdtemp(); os.kill(os.getpid(), signal.SIGKILL)"

def test_that_kills_a_program():
    tempfile.mkdtemp()
    assert subprocess.run([sys.executable, "-c", PROGRAM]).returncode == -9
"""


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_what_killed_programs_leave_in_the_temporary_directory_goes_with_the_run(tmp_path: Path) -> None:
    temporary, file = tmp_path / "temporary", tmp_path / "test_leaving.py"
    temporary.mkdir()
    file.write_text(LEAVING, encoding="utf-8")
    words = ["-q", "-c", os.devnull, "-p", "test.conftest", "-p", "no:cacheprovider", "--rootdir", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words, "--basetemp", str(tmp_path / "base"), str(file)],
        cwd=ROOT, env={**os.environ, "TMPDIR": str(temporary)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "1 passed" in done.stdout, done.stdout + done.stderr
    assert list(temporary.iterdir()) == []
