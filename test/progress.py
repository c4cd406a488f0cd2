"""Shows how far a run of tests is: a line for each twentieth of it, and one for each failure at once.

``make test`` runs three tiers beside each other and shows what each has printed when it has ended. Until then these
lines go to the file descriptor that TEST_PROGRESS_FD names and the caller has opened.
"""

from __future__ import annotations

import os
import time

import pytest

STEPS = 20


class Progress:
    """Counts the tests of a run, in the process that shows its results."""

    def __init__(self, name: str, descriptor: int) -> None:
        self.name, self.descriptor = name, descriptor
        self.total = self.done = self.failed = self.shown = 0
        self.began = time.monotonic()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.found(len(session.items))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        self.found(len(ids))  # by one process of several

    def found(self, count: int) -> None:
        if count and not self.total:
            self.total = count
            self.say(f"  0 %       0 of {count:6,} tests")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed += 1
            self.say(f"FAILED {report.nodeid}" + (f" ({report.when})" if report.when != "call" else ""))
        if report.when == "teardown":
            self.done += 1
            step = self.done * STEPS // max(self.total, 1)
            if step > self.shown:
                self.shown = step
                minutes, seconds = divmod(int(time.monotonic() - self.began), 60)
                of_all = f"{self.done:6,} of {self.total:6,} tests, {self.failed} failed"
                self.say(f"{100 * step // STEPS:3} %  {of_all}  {minutes:2}:{seconds:02}")

    def say(self, text: str) -> None:
        os.write(self.descriptor, f"{self.name:14} {text}\n".encode())  # whole, beside the lines of other runs


def pytest_configure(config: pytest.Config) -> None:
    descriptor = os.environ.get("TEST_PROGRESS_FD")
    if descriptor is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Progress(os.environ.get("TEST_PROGRESS_NAME", "tests"), int(descriptor)))
