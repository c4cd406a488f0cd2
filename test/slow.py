"""Which unit tests ``make test-quick`` leaves out: those that took a tenth of a second of a processor, by a list.

``test/unit/slow.txt`` has their names, all parameters together. ``make test-times`` runs the unit tests and writes it.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from functools import cache
from pathlib import Path

import pytest

FILE = Path(__file__).parent / "unit" / "slow.txt"
LIMIT = 0.1


def processor_time() -> float:
    """Return the seconds that this process has used, and the ones that it has started and that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def function(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]


_dearest: dict[str, float] = {}


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Measure a test: with ``-p test.slow`` alone this module is a plugin."""
    before = processor_time()
    result = yield
    _dearest[function(item)] = max(_dearest.get(function(item), 0.0), processor_time() - before)
    return result


def pytest_sessionfinish() -> None:
    """Write the list, after a whole run in one process."""
    slow = sorted(name for name, seconds in _dearest.items() if seconds >= LIMIT)
    FILE.write_text("".join(f"{name}\n" for name in slow), encoding="utf-8")


@cache
def listed() -> frozenset[str]:
    return frozenset(FILE.read_text(encoding="utf-8").split())


def mark_slow(item: pytest.Item) -> None:
    """Mark a test of the list."""
    if function(item) in listed():
        item.add_marker("slow")
