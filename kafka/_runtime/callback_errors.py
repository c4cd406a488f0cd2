"""Exceptions with which callbacks of the application end the program: ``sys.exit()``, Ctrl-C raised again.

Callbacks run where a future is completed: in the application's thread, or in the middle of a pass of a loop. A pass
that was cut in two there would leave answers untaken and futures open for ever, so the loop collects such errors, and
raises the first one when the pass is over, if that is in a thread of the application.
"""

from __future__ import annotations

from threading import get_ident

__all__ = ["PASSES", "raise_after_pass"]

#: Thread -> where the loop that makes a pass in it collects what is to be raised after the pass.
PASSES: dict[int, list[BaseException]] = {}


def raise_after_pass(error: BaseException) -> None:
    """Raise an error: now, or where a loop makes a pass in this thread, when that is over.

    >>> raise_after_pass(SystemExit(3))
    Traceback (most recent call last):
    SystemExit: 3
    """
    collected = PASSES.get(get_ident())
    if collected is None:
        raise error
    collected.append(error)
