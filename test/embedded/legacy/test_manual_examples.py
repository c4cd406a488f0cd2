"""The examples of the manuals, which test/manual_examples.py lists, against brokers of old and new releases."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest

from kafka.broker import Broker
from test import quick_start
from test.manual_examples import EXAMPLES, SIMPLE_EXAMPLES, TOPICS, Example, runs_on

ROOT: Final = Path(__file__).parents[3]
# On the releases between, test_simple_era.py runs the same calls.
CASES: Final = [(EXAMPLES, "0.9"), (EXAMPLES, "4.3"), (SIMPLE_EXAMPLES, "0.8.2"), (SIMPLE_EXAMPLES, "4.3")]


@pytest.mark.parametrize(("examples", "release"), CASES)
def test_the_examples_run_as_printed(examples: Mapping[str, Example], release: str) -> None:
    with Broker(topics=TOPICS, as_version=release) as broker:
        run([name for name in examples if runs_on(name, release)], broker.bootstrap_servers)


def run(names: Sequence[str], servers: str) -> None:
    """Run examples in a process; it fails the test with what it wrote."""
    done = quick_start.run(
        [sys.executable, "-m", "test.manual_examples", servers, *names], cwd=ROOT, text=True, timeout=280
    )
    assert (done.returncode, done.stdout.split()) == (0, list(names)), done.stdout + done.stderr
