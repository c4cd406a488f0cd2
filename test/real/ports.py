"""Free loopback ports that stay ours: a Kafka node must know its ports, and its peers', before it starts.

They are taken below the range from which the kernel hands out ephemeral ports, so no outgoing
connection can sit on one, and each is held by a lock on a byte of a file, so neither can another test run.
"""

from __future__ import annotations

import fcntl
import os
import random
import socket
from pathlib import Path

from . import kafka_jars

HOST = "127.0.0.1"
FIRST = 15000
DEFAULT_EPHEMERAL = 32768  # Linux's default; other systems start higher

_rng = random.Random(os.urandom(8))  # not the seed of the test run: two runs may share it
_held: set[int] = set()
_locks: dict[int, int] = {}  # the file, by the process that has opened it: these locks do not outlive a fork


def reserve() -> int:
    """A port on which nothing listens, ours until :func:`release` or the end of the process."""
    while True:
        port = _rng.randrange(FIRST, _first_ephemeral())
        if port in _held:
            continue
        try:
            _lock(fcntl.LOCK_EX | fcntl.LOCK_NB, port)
        except (BlockingIOError, PermissionError):  # of another run; which of both is raised depends on the system
            continue
        if _listenable(port):
            _held.add(port)
            return port
        _lock(fcntl.LOCK_UN, port)


def release(port: int) -> None:
    """Give a port back."""
    _held.remove(port)
    _lock(fcntl.LOCK_UN, port)


def _lock(command: int, port: int) -> None:
    if os.getpid() not in _locks:
        kafka_jars.cache_dir().mkdir(parents=True, exist_ok=True)
        _locks[os.getpid()] = os.open(kafka_jars.cache_dir() / "ports.lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.lockf(_locks[os.getpid()], command, 1, port)


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
