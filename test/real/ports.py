"""Free loopback ports that stay ours: a Kafka node must know its ports, and its peers', before it starts.

They are taken below the range from which the kernel hands out ephemeral ports, so no outgoing
connection can sit on one, and each is held by a file lock, so neither can another test run.
"""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from pathlib import Path
from typing import IO

HOST = "127.0.0.1"
FIRST = 15000
DEFAULT_EPHEMERAL = 32768  # Linux's default; other systems start higher

_rng = random.Random(os.urandom(8))  # not the seed of the test run: two runs may share it
_held: dict[int, IO[str]] = {}


def reserve() -> int:
    """A port on which nothing listens, ours until :func:`release` or the end of the process."""
    locks = Path(tempfile.gettempdir()) / f"purekafka-ports-{os.getuid()}"
    locks.mkdir(exist_ok=True)
    while True:
        port = _rng.randrange(FIRST, _first_ephemeral())
        if port in _held:
            continue
        handle = (locks / str(port)).open("w", encoding="utf-8")
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            handle.close()
            continue
        if _listenable(port):
            _held[port] = handle
            return port
        handle.close()


def release(port: int) -> None:
    """Give a port back."""
    _held.pop(port).close()


def _listenable(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def _first_ephemeral() -> int:
    try:
        text = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="utf-8")
    except OSError:
        return DEFAULT_EPHEMERAL
    return max(int(text.split()[0]), FIRST + 1000)
