"""One child process with a log file, that cannot outlive the tests, whatever happens to them.

It leads a process group of its own (Ctrl-C at the terminal is for pytest alone), is killed at exit,
and carries the kernel's parent-death signal for the case that there is no exit. That signal is sent
when the *thread* that forked ends, so all children are forked by one thread that never does.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import IO

LAUNCHER = Path(__file__).with_name("_launcher.py")
COMPLAINT = re.compile(r"\b(ERROR|FATAL)\b|^Caused by|^[\w.$]+(Exception|Error)\b")
TICK = 0.02  # how often a condition outside of our process is looked at

_alive: set[Child] = set()


class ChildDied(Exception):
    """A process ended while it was waited for; the message has the end of its log."""


class Child:
    """A running program: ``Child("zookeeper", ["java", ...], log_path).stop()``."""

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        log_path: Path,
        *,
        env: Mapping[str, str] | None = None,
        pipes: bool = False,
    ) -> None:
        self.name = name
        self.log_path = log_path
        self._log_start = log_path.stat().st_size if log_path.exists() else 0
        with log_path.open("ab") as log:
            command = [sys.executable, "-I", str(LAUNCHER), str(os.getpid()), *argv]
            self._process = _fork(
                lambda: subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE if pipes else subprocess.DEVNULL,
                    stdout=subprocess.PIPE if pipes else log,
                    stderr=log,
                    env=None if env is None else {**os.environ, **env},
                    start_new_session=True,
                )
            )
        self._follower: threading.Thread | None = None
        _alive.add(self)

    @property
    def pid(self) -> int:
        """The process id, which is that of its process group too."""
        return self._process.pid

    @property
    def stdin(self) -> IO[bytes]:
        """The pipe to its standard input, when started with ``pipes=True``."""
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def stdout(self) -> IO[bytes]:
        """The pipe from its standard output, when started with ``pipes=True``."""
        assert self._process.stdout is not None
        return self._process.stdout

    def follow(self, read: Callable[[IO[bytes]], None]) -> None:
        """Have a thread read its standard output to the end; stop() and kill() wait for that."""
        self._follower = threading.Thread(target=read, args=(self.stdout,), name=f"reads-{self.name}", daemon=True)
        self._follower.start()

    # While it runs

    def running(self) -> bool:
        """True until it has ended."""
        return self._process.poll() is None

    def pause(self) -> None:
        """Freeze it (SIGSTOP): its sockets stay open and nobody answers."""
        os.killpg(self.pid, signal.SIGSTOP)
        # On a busy machine a thread runs on until it has a processor to stop on.
        self.wait_for(self._stands_still, "standstill", time.monotonic() + 30)

    def _stands_still(self) -> bool:
        tasks = Path(f"/proc/{self.pid}/task")  # not on macOS
        try:
            states = {(task / "stat").read_text(encoding="utf-8").rpartition(") ")[2][0] for task in tasks.glob("*")}
        except OSError:  # a thread that has just ended
            return False
        return states <= {"T"}

    def resume(self) -> None:
        """Let it run again after :meth:`pause`."""
        os.killpg(self.pid, signal.SIGCONT)

    def log_text(self) -> str:
        """What it logged since this start."""
        with self.log_path.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode(errors="replace")

    def wait_for(self, condition: Callable[[], bool], what: str, deadline: float) -> None:
        """Wait until a condition holds; fail early, with the log, when the process ends before."""
        while not condition():
            if not self.running():
                raise ChildDied(
                    f"{self.name} ended with {self._process.returncode} before {what}\n{self._what_it_says()}"
                )
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.name}: no {what} in time\n{self.log_tail()}")
            time.sleep(TICK)

    def log_tail(self, lines: int = 40) -> str:
        """The last lines of its log."""
        return "\n".join(self.log_text().splitlines()[-lines:])

    def _what_it_says(self) -> str:
        """Its complaints, which a long shutdown may have pushed out of the log's tail, and that tail."""
        complaints = [line for line in self.log_text().splitlines() if COMPLAINT.search(line)]
        return "\n".join([*complaints[:10], "...", self.log_tail()])

    # When it ends

    def stop(self, timeout: float = 30.0) -> int:
        """Ask it to end (SIGTERM) and wait; past the timeout it is killed. Returns the exit code."""
        self._signal(signal.SIGTERM)
        self._signal(signal.SIGCONT)
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return self.kill()
        return self._ended()

    def kill(self) -> int:
        """End it at once (SIGKILL), as a crash does. Returns the exit code."""
        self._signal(signal.SIGKILL)
        self._process.wait()
        return self._ended()

    def _signal(self, number: signal.Signals) -> None:
        if self.running():
            os.killpg(self.pid, number)

    def _ended(self) -> int:
        if self._follower is not None:  # closing the pipe while a thread reads from it raises in that thread
            self._follower.join()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):  # bytes that it never read
                    pipe.close()
        _alive.discard(self)
        return self._process.returncode


@atexit.register
def kill_all() -> None:
    """Kill every child that still runs. Called at exit; harmless at any other time."""
    for child in list(_alive):
        child.kill()


def _forget_in_fork() -> None:
    """A fork of the test process (some tests fork) has no children, and no thread that forks."""
    global _forker, _forker_lock
    _alive.clear()
    _forker, _forker_lock = None, threading.Lock()


os.register_at_fork(after_in_child=_forget_in_fork)

# The thread that forks

_Job = tuple["Future[subprocess.Popen[bytes]]", "Callable[[], subprocess.Popen[bytes]]"]
_jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()
_forker_lock = threading.Lock()
_forker: threading.Thread | None = None


def _fork(start: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
    global _forker  # noqa: PLW0603 - one per process by nature
    with _forker_lock:
        if _forker is None:
            _forker = threading.Thread(target=_fork_forever, name="test-forker", daemon=True)
            _forker.start()
    done: Future[subprocess.Popen[bytes]] = Future()
    _jobs.put((done, start))
    return done.result()


def _fork_forever() -> None:
    while True:
        done, start = _jobs.get()
        try:
            done.set_result(start())
        except BaseException as error:  # it belongs to whoever asked
            done.set_exception(error)
