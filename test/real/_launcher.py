"""Become another program that dies with the process that started it. Run as ``python -I _launcher.py PID ARGV...``.

The kernel's parent-death signal is set here, after the fork and before the exec, so that not even a
test run killed with SIGKILL leaves a broker behind. PID is the parent expected: if it has died before
the signal was set, nobody would send it.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    parent, *argv = sys.argv[1:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != int(parent):
            sys.exit(f"the parent {parent} is gone")
    os.execv(argv[0], argv)


main()
