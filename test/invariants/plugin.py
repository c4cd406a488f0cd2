"""Has the invariants checked in each test: a part of test/conftest.py."""

from __future__ import annotations

import gc
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from kafka.broker.faults import Faults
from test.invariants import RULES, Checker, Record
from test.invariants.clients import Clients

__all__ = ["invariants_hold", "make_checker", "pytest_configure"]

_record = Record()
_clients = Clients(_record.report)
#: Threads of others end when they come to it, which may take a busy machine a while.
_PATIENCE = 20.0
#: Threads that brokers share, or the programs of the real tier, and that the process keeps.
_SHARED = ("kafka-broker-checks", "test-forker")
_FILES = "/proc/self/fd/"


def pytest_configure(config: pytest.Config) -> None:
    """Watch all brokers and clients from now on."""
    config.addinivalue_line(
        "markers", "breaks_invariant(rule, reason): the test breaks this rule of test.invariants on purpose, and why"
    )
    if Faults.make_watcher is None:
        Faults.make_watcher = make_checker
        _clients.install()


def make_checker() -> Checker:
    """Return the watcher of a broker that starts."""
    return Checker(_clients, _record)


@pytest.fixture(autouse=True)
def invariants_hold(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test in which a rule of `test.invariants` was broken, unless it is marked for that rule."""
    _record.take()  # of a fixture that several tests share
    _clients.share()
    before = set(threading.enumerate())
    files = _open_files()
    yield
    allowed = set()
    for marker in request.node.iter_markers("breaks_invariant"):
        rule, reason = marker.args[0], marker.kwargs["reason"]
        assert rule in RULES, f"no such rule: {rule}"
        assert reason
        allowed.add(rule)
    left = _clients.check_closed()
    if "leftovers" not in allowed:
        _check_leftovers(before, files, [repr(client) for client in left])
    broken = [violation for violation in _record.take() if violation.rule not in allowed]
    if broken:
        pytest.fail("\n".join(f"{rule}: {text}" for rule, text in broken), pytrace=False)


def _open_files() -> dict[str, str]:
    """Return the open descriptors, and what each is for; none where the system does not list them."""
    if sys.platform != "linux":
        return {}
    found = {}
    for name in os.listdir(_FILES):
        try:
            found[name] = os.readlink(_FILES + name)
        except OSError:  # noqa: PERF203 - the one that lists them is closed again
            continue
    return found


def _check_leftovers(before: set[threading.Thread], files: dict[str, str], clients: list[str]) -> None:
    for client in clients:
        _record.report("leftovers", f"a client that was not closed: {client}")
    deadline = time.monotonic() + _PATIENCE
    collect_at = time.monotonic() + 0.05  # by then most threads have ended by themselves
    while left := _left(before, files):
        now = time.monotonic()
        if now > deadline:
            _record.report("leftovers", f"threads and files: {left}")
            break
        if now >= collect_at:
            gc.collect()  # what a traceback or a circle keeps
            collect_at = now + 2  # it takes long in a large run
        time.sleep(0.005)


def _left(threads: set[threading.Thread], files: dict[str, str]) -> list[object]:
    left: list[object] = [
        thread
        for thread in threading.enumerate()
        if thread not in threads and not thread.name.startswith(_SHARED) and not _is_spark(thread)
    ]
    opened = [(int(name), what) for name, what in _open_files().items() if files.get(name) != what]
    return left + sorted(what for number, what in opened if not (what.startswith("socket:") and _is_shared(number)))


def _is_spark(thread: threading.Thread) -> bool:
    """Whether a thread serves calls of Spark's JVM, whose session lives longer than a test."""
    target = getattr(thread, "_target", None)
    return type(getattr(target, "__self__", None)).__module__.startswith("py4j.")


def _is_shared(number: int) -> bool:
    """Whether a socket is that of a broker or a client that several tests share, which may open others at any time."""
    if "py4j.clientserver" in sys.modules:  # Spark's session opens and closes connections to its JVM when it likes
        return True
    try:
        with socket.socket(fileno=os.dup(number)) as sock:
            if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                return True  # a node that has come back; a broker that is left has its thread
            return _clients.is_shared(sock.getsockname()) or _clients.is_shared(sock.getpeername())
    except OSError:
        return False
