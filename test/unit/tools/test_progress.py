"""The lines that a run of the tests shows while it runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.skipif(os.name == "nt", reason="descriptors of a shell")
@pytest.mark.parametrize("processes", [0, 1])
def test_a_run_shows_its_beginning_each_twentieth_and_failures(processes: int, tmp_path: Path) -> None:
    (tmp_path / "test_many.py").write_text(
        "import pytest\n@pytest.mark.parametrize('n', range(40))\ndef test_one(n): assert n != 5\n"
    )
    read, write = os.pipe()
    command = [sys.executable, "-m", "pytest", "-p", "xdist", "-p", "test.progress", "-n", str(processes)]
    done = subprocess.run(
        [*command, str(tmp_path)],
        env={
            **os.environ,
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "TEST_PROGRESS_FD": str(write),
            "TEST_PROGRESS_NAME": "tier",
        },
        pass_fds=[write],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    os.close(write)
    with os.fdopen(read) as shown:
        lines = shown.read().splitlines()
    assert done.returncode == 1
    assert re.fullmatch(r"tier +0 % +0 of +40 tests", lines[0])
    assert len([line for line in lines if re.match(r"tier +FAILED \S+::test_one\[5\]", line)]) == 1
    assert [int(found[1]) for line in lines if (found := re.match(r"tier +(\d+) %", line))] == [*range(0, 101, 5)]
    assert re.fullmatch(r"tier +100 % +40 of +40 tests, 1 failed +0:\d\d", lines[-1])
