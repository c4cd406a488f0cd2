"""Spark's Python daemon, changed so that the CPU time of a worker which ends is not lost.

Spark's daemon ignores SIGCHLD, and of the children of such a process Linux keeps no times. Spark ends workers that had
nothing to do for a minute. Here they stay as zombies, which `process_tree` reads.
"""

from __future__ import annotations

import signal
from typing import Any

from pyspark import daemon

_set_handler = signal.signal


def _set_handler_but_keep_children(number: int, handler: Any) -> Any:
    if number == signal.SIGCHLD and handler == signal.SIG_IGN:
        handler = signal.SIG_DFL
    return _set_handler(number, handler)


if __name__ == "__main__":
    signal.signal = _set_handler_but_keep_children
    daemon.manager()
