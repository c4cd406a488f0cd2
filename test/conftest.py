"""What holds for all tests."""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    """Let Ctrl-C be heard, by the tests of it and by the programs that they start.

    A shell that starts the run in the background has it ignored, and that is inherited.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_runtest_teardown() -> None:
    """Give Ctrl-C back to the tests that come next: a Spark driver in the process keeps it for itself."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.default_int_handler)
