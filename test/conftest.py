"""What holds for all tests."""

from __future__ import annotations

import gc
import logging
import os
import signal
import tempfile
from collections.abc import Iterator

import pytest

from test import slow
from test.invariants import plugin
from test.scheduling import import_in_another_order, pytest_collection_modifyitems, pytest_xdist_make_scheduler

__all__ = ["pytest_collection_modifyitems", "pytest_xdist_make_scheduler"]

# An exception that these log as an error is a mistake of ours, whatever the test did.
WATCHED = ("kafka._runtime.loop", "kafka._runtime.network_thread", "kafka.consumer.fetch_connection", "kafka.broker")


class _Kept(logging.Handler):
    """Keeps what is logged as text: a record holds on to the frames of its error, and what these refer to."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info is None:  # said to an operator: a disk is full
            return
        self.texts.append(self.format(record))


def pytest_configure(config: pytest.Config) -> None:
    """Check the invariants. And let Ctrl-C be heard, by the tests of it and by the programs that they start.

    A shell that starts the run in the background has it ignored, and that is inherited.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    plugin.pytest_configure(config)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test its seeds: the ones of PUREKAFKA_SEEDS or of its mark; only the first one if it is not run anyway.

    Thousands of items that are deselected again cost each worker of each run some seconds.
    """
    mark = metafunc.definition.get_closest_marker("seeds")
    if mark is None:
        return
    seeds: list[int] = []
    for part in os.environ.get("PUREKAFKA_SEEDS", mark.args[0]).split():
        low, _, high = part.partition("-")
        seeds += range(int(low), int(high or low) + 1)
    expression = metafunc.config.option.markexpr or ""
    metafunc.parametrize("seed", seeds[:1] if "not soak" in expression else seeds)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Have ``-m 'not slow'`` leave out the unit tests that were slow."""
    slow.mark_slow(item)


def pytest_collection(session: pytest.Session) -> None:
    """Let examples take the time that a busy machine takes for them: what they cost is not what they are about."""
    from hypothesis import HealthCheck, settings

    settings.register_profile("purekafka", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("purekafka")
    import_in_another_order(session.config)


def pytest_collection_finish() -> None:
    """Leave the modules and thousands of tests out of what a full collection looks through: most of its time."""
    gc.collect()
    gc.freeze()


def pytest_runtest_teardown() -> None:
    """Give Ctrl-C back to the tests that come next: a Spark driver in the process keeps it for itself."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.default_int_handler)


invariants_hold = plugin.invariants_hold


@pytest.fixture(scope="session", autouse=True)
def what_is_left_is_removed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Give the run a temporary directory of its own: programs that tests kill leave theirs there."""
    if os.name == "nt":
        yield
        return
    from test.scratch import Scratch

    tmp_path_factory.getbasetemp()  # stays where it is: three runs can be looked at
    scratch = Scratch()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(scratch.path))
        patch.setattr(tempfile, "tempdir", str(scratch.path))
        yield
    scratch.close()


@pytest.fixture(autouse=True)
def nothing_fails_inside(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test in which a callback raised on a network loop, or a broker while it answered.

    These are logged and life goes on, so nothing else might show it. A test that wants it bears ``internal_errors``.
    """
    kept = _Kept()
    for name in WATCHED:
        logging.getLogger(name).addHandler(kept)
    yield
    for name in WATCHED:
        logging.getLogger(name).removeHandler(kept)
    if kept.texts and request.node.get_closest_marker("internal_errors") is None:
        pytest.fail("\n".join(kept.texts), pytrace=False)
