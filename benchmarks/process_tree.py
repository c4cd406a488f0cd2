"""CPU time of this process and all its descendants: Spark's work is done by a Java machine and its Python workers.

A process's own time moves to its parent when that waits for it, and is lost when nobody does or the parent is outside
the tree. So this process adopts orphans, which then stay in the tree, as zombies once they have ended; and a reading
counts only if no process ended while it was taken. The sum never decreases then.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import NamedTuple

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
# Of the fields after the command's name: utime, stime, cutime, cstime stand from 11 to 14.
_PARENT, _FIRST_TIME, _LAST_TIME, _START = 1, 11, 15, 19
_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
_ATTEMPTS = 100


class Process(NamedTuple):
    """A process; the time of its start tells it from another one that gets its number."""

    pid: int
    started: int


def adopt_orphans() -> None:
    """Become the parent of descendants whose parent ends, from now on."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def tree_cpu_s() -> float:
    """User and system time so far, with that of descendants that have ended; see `adopt_orphans`."""
    first, second = _tree(), _tree()
    for _ in range(_ATTEMPTS):
        third = _tree()
        # One that ended while the second was taken may be in it twice, or not at all.
        if first.keys() <= second.keys() <= third.keys():
            return sum(second.values())
        first, second = second, third
    raise RuntimeError(f"processes ended during each of {_ATTEMPTS} readings of their times")


def _tree() -> dict[Process, float]:
    """Return this process and its descendants, each with its time and that of children for which it waited."""
    found = list(filter(None, map(_stat, Path("/proc").glob("[0-9]*/stat"))))
    children: dict[int, list[tuple[Process, float]]] = {}
    for process, parent, spent in found:
        children.setdefault(parent, []).append((process, spent))
    tree = {process: spent for process, _, spent in found if process.pid == os.getpid()}
    pending = [os.getpid()]
    while pending:
        for process, spent in children.get(pending.pop(), ()):
            tree[process] = spent
            pending.append(process.pid)
    return tree


def _stat(path: Path) -> tuple[Process, int, float] | None:
    """A process, its parent and its CPU time; None if it is gone."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError:
        return None
    # The command's name is in brackets and may have anything in it.
    fields = text[text.rindex(")") + 2 :].split()
    spent = sum(map(int, fields[_FIRST_TIME:_LAST_TIME])) * _TICK_S
    return Process(int(path.parent.name), int(fields[_START])), int(fields[_PARENT]), spent
