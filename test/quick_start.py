"""Starts programs of Python at once: forks of a process that has imported what they import.

To start and end a Python that imports the clients takes 160 ms of a processor, a fork takes 10, and tests start many
hundreds. `Program` is `subprocess.Popen` for ``[sys.executable, "-m", MODULE, ...]``: a process of its own, a child of
the test's, with the standard streams, the environment and the directory that it is given. What begins in another way,
or with another Python by its environment, is started as ever; so is everything where the system is not Linux. Tests of
how Python starts and ends a program use `subprocess`.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import importlib
import io
import json
import os
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

__all__ = ["Program", "run", "template"]

_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
_LARGEST = 1 << 17
#: What Python reads from the environment when it starts, but for what `_become` does itself.
_AT_START = ("PYTHON", "LC_", "LANG", "TZ")
_DONE_HERE = ("PYTHONPATH", "PYTHONUNBUFFERED")


class _Template:
    """The process that forks, started when it is first needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ours, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in (self._ours, self._theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * _LARGEST)
        self._process: subprocess.Popen[bytes] | None = None
        self._prctl = ctypes.CDLL(None).prctl

    def fork(self, task: dict[str, Any], streams: list[int]) -> int:
        """Return the id of a new child of this process, which does the task."""
        with self._lock:
            if self._process is None:
                number = self._theirs.fileno()
                words = [sys.executable, "-m", "test.quick_start", str(number)]
                self._process = subprocess.Popen(words, pass_fds=[number], stdin=subprocess.DEVNULL)
            # The child's parent ends before we have an answer, and the child comes to the next one that takes orphans.
            self._prctl(_SUBREAPER, 1, 0, 0, 0)
            try:
                socket.send_fds(self._ours, [json.dumps(task).encode()], streams)
                return int(self._ours.recv(100))
            finally:
                self._prctl(_SUBREAPER, 0, 0, 0, 0)

    def close(self) -> None:
        self._ours.close()
        self._theirs.close()
        if self._process is not None:
            self._process.wait()


_template: _Template | None = None


@contextlib.contextmanager
def template() -> Iterator[None]:
    """Have programs begin at once, in this process and meanwhile."""
    global _template  # noqa: PLW0603 - one for the process, as subprocess is
    if sys.platform == "linux":
        _template = _Template()
    try:
        yield
    finally:
        if _template is not None:
            _template.close()
        _template = None


def _of_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(_AT_START) and name not in _DONE_HERE}


class Program(subprocess.Popen[Any]):
    """A program that begins at once, if it can."""

    def _execute_child(self, args: Any, *rest: Any) -> None:
        executable, preexec, _, pass_fds, cwd, env, _, _, shell, *pipes = rest
        special = executable or preexec or pass_fds or shell or any(one not in (-1, None, False) for one in pipes[7:])
        environment = dict(os.environ if env is None else env)
        words = list(map(str, args)) if isinstance(args, (list, tuple)) else []
        if (
            _template is None
            or special
            or words[:2] != [sys.executable, "-m"]
            or _of_start(environment) != _of_start(os.environ)
        ):
            super()._execute_child(args, *rest)  # type: ignore[misc]
            return
        task = {"words": words[2:], "cwd": os.fspath(cwd) if cwd is not None else os.getcwd(), "env": environment}
        streams = [pipes[0], pipes[3], pipes[5]]
        self.pid = _template.fork(task, [number if one == -1 else one for number, one in enumerate(streams)])
        self._child_created = True
        self._close_pipe_fds(*pipes[:6])  # type: ignore[attr-defined]


def run(words: Sequence[str], *, input: Any = None, timeout: float = 60, **options: Any) -> Any:  # noqa: A002 - as subprocess
    """`subprocess.run` with both outputs captured."""
    pipe = subprocess.PIPE
    options = {"stdin": pipe if input is not None else subprocess.DEVNULL, "stdout": pipe, "stderr": pipe, **options}
    with Program(words, **options) as program:
        try:
            out, err = program.communicate(input, timeout)
        except BaseException:
            program.kill()
            raise
    return subprocess.CompletedProcess(words, program.returncode, out, err)


def _serve(sock: socket.socket) -> dict[str, Any] | None:
    """Fork for each task; return it in the child, and None in the template when there are no more."""
    while True:
        data, streams, _, _ = socket.recv_fds(sock, _LARGEST, 3)
        if not data:
            return None
        task: dict[str, Any] = json.loads(data)
        read, write = os.pipe()
        if (middle := os.fork()) == 0:
            if (child := os.fork()) == 0:
                task["streams"] = streams
                return task
            os.write(write, b"%d" % child)
            os._exit(0)
        os.waitpid(middle, 0)
        sock.send(os.read(read, 100))
        for number in (read, write, *streams):
            os.close(number)


def _become(task: dict[str, Any]) -> None:
    """Make this process what Python is at the beginning of a program."""
    for number, stream in enumerate(task["streams"]):
        os.dup2(stream, number)
    os.closerange(3, 256)
    os.environ.clear()
    os.environ.update(task["env"])
    os.chdir(task["cwd"])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if os.environ.get("PYTHONUNBUFFERED"):
        out: Any = io.FileIO(1, "w", closefd=False)
        sys.stdout = io.TextIOWrapper(out, "utf-8", write_through=True)
    else:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", 1, "utf-8", "backslashreplace", closefd=False)  # noqa: SIM115
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr  # type: ignore[misc]
    path = [one for one in os.environ.get("PYTHONPATH", "").split(os.pathsep) if one]
    sys.path[:] = [task["cwd"], *path, *sys.path[1:]]
    sys.argv[:] = task["words"]


def _main(number: int) -> None:
    import kafka
    import kafka.cli

    for name in kafka.__all__:
        getattr(kafka, name)
    for package in (kafka.cli, importlib.import_module("kafka.broker")):
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            if not module.name.endswith(("__main__", "pytest_plugin")):
                importlib.import_module(module.name)
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=number) as sock:
        task = _serve(sock)
    if task is not None:
        _become(task)
        code: Any = 0
        try:
            runpy.run_module(task["words"][0], run_name="__main__", alter_sys=True)
        except SystemExit as end:
            code = end.code or 0
        _end(code)


def _end(code: Any) -> None:
    """End as Python does, but leave the modules as they are: to take them apart would cost as much as all before it.

    What goes wrong goes the long way, and is said as ever.
    """
    if isinstance(code, int):
        with contextlib.suppress(OSError):
            threading._shutdown()
            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code & 0xFF)
    sys.exit(code)


if __name__ == "__main__":
    _main(int(sys.argv[1]))
