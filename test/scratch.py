"""Temporary directories that go away even when the run that made them was killed.

Each is locked while its owner lives. Nobody can clean up for a process ended by SIGKILL at that
moment, so the next run removes what it finds unlocked.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path

PREFIX = "purekafka-test-"
GRACE = 60.0  # seconds: a directory this young may be between its creation and its lock


class Scratch:
    """A fresh directory; :meth:`close` removes it, unless ``KAFKA_TEST_KEEP`` is set."""

    def __init__(self) -> None:
        _sweep()
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
        self._lock: int | None = _lock(self.path)

    def close(self) -> None:
        """Remove it; may be called twice."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
            if not os.environ.get("KAFKA_TEST_KEEP"):
                shutil.rmtree(self.path, ignore_errors=True)


def _lock(path: Path) -> int:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _sweep() -> None:
    if os.environ.get("KAFKA_TEST_KEEP"):
        return
    for left in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        try:
            descriptor = _lock(left)
        except OSError:  # in use, somebody else's, or just gone
            continue
        if time.time() - os.fstat(descriptor).st_mtime > GRACE:
            shutil.rmtree(left, ignore_errors=True)
        os.close(descriptor)
