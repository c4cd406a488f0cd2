"""The examples of the manuals, which test/manual_examples.py lists, against brokers of old and new releases."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from kafka.broker import Broker
from test.manual_examples import EXAMPLES, SIMPLE_EXAMPLES, TOPICS, runs_on

ROOT: Final = Path(__file__).parents[3]
CASES: Final = [(name, release) for name in EXAMPLES for release in ("0.9", "4.3") if runs_on(name, release)]
# On the releases between, test_simple_era.py runs the same calls.
SIMPLE_CASES: Final = [(name, release) for name in SIMPLE_EXAMPLES for release in ("0.8.2", "4.3")]


@pytest.mark.parametrize(("name", "release"), CASES + SIMPLE_CASES)
def test_an_example_runs_as_printed(name: str, release: str) -> None:
    with Broker(topics=TOPICS, as_version=release) as broker:
        run(name, broker.bootstrap_servers)


def run(name: str, servers: str) -> None:
    """Run an example as a process; it fails the test with what it wrote."""
    done = subprocess.run(
        [sys.executable, "-m", "test.manual_examples", name, servers],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stdout + done.stderr
