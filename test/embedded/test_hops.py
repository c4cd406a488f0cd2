"""tools/hops.py counts the functions on the way of a record between a client and a broker."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


# Before 3.12 the program follows the main thread alone, and either thread may take the answer to a record.
@pytest.mark.parametrize(("way", "passed"), [("send", "Sender.wait_for"), ("poll", "FetchCollector.take")])
def test_the_program_counts_a_record_s_way(way: str, passed: str) -> None:
    command = [sys.executable, "tools/hops.py", way, "--list"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True, timeout=120)
    output = ended.stdout
    assert output.startswith(f"{way}: ")
    assert passed in output
