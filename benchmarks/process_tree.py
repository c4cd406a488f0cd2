"""CPU time of this process and all that descend from it: Spark's work is done by a Java machine and its workers."""

from __future__ import annotations

import os
from pathlib import Path

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_PARENT, _FIRST_TIME, _LAST_TIME = 1, 11, 15  # of the fields after the command's name: utime, stime, cutime, cstime


def tree_cpu_s() -> float:
    """User and system time so far, with that of descendants that have ended and were waited for."""
    stats = dict(filter(None, map(_stat, Path("/proc").glob("[0-9]*/stat"))))
    children: dict[int, list[int]] = {}
    for pid, (parent, _) in stats.items():
        children.setdefault(parent, []).append(pid)
    total, found = 0.0, [os.getpid()]
    while found:
        pid = found.pop()
        total += stats[pid][1] if pid in stats else 0.0
        found += children.get(pid, ())
    return total


def _stat(path: Path) -> tuple[int, tuple[int, float]] | None:
    """A process's parent and CPU time; None if it is gone."""
    try:
        text = path.read_text()
    except OSError:
        return None
    # The command's name is in brackets and may have anything in it.
    fields = text[text.rindex(")") + 2 :].split()
    spent = sum(map(int, fields[_FIRST_TIME:_LAST_TIME])) * _TICK_S
    return int(path.parent.name), (int(fields[_PARENT]), spent)
