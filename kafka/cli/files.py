"""Standard output and the files that commands write: all of it is written, or an error says that it is not.

A system call may write a part only: the disk is nearly full, the reader of a pipe is slow, a signal arrives.
`Output` writes the rest, and counts what is out, so that a group commits exactly the records that were printed. A file
that takes the place of an older one is written beside it, and renamed when it is whole.
"""

from __future__ import annotations

import errno
import io
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import Buffer


class Output(io.BufferedIOBase):
    """A file whose `write` writes everything or raises; `written` counts the bytes that are out.

    >>> out = Output(io.BytesIO(), "memory")
    >>> out.write(b"abc"), out.written
    (3, 3)
    """

    def __init__(self, raw: Any, name: str, *, unread: bool = False) -> None:
        self._raw = raw
        self._name = name
        self._unread = unread  # whether to continue when the reader has gone
        self._sizes: list[int] = []

    @property
    def written(self) -> int:
        """How many bytes are out, also after a write that was interrupted or failed."""
        return sum(self._sizes)

    def write(self, data: Buffer) -> int:
        """Write all of the data."""
        view = memoryview(data)
        begun = self.written
        self._sizes = sizes = [begun]
        while (done := sum(sizes) - begun) < len(view):
            parts = len(sizes)
            try:
                # One call of C writes and counts, so that Ctrl-C raises before both or behind both. A file that does
                # not block returns None while it is full.
                sizes.extend(filter(None, map(self._raw.write, (view[done:],))))
            except OSError as error:
                if self._unread and error.errno in {errno.EPIPE, errno.EBADF}:
                    sizes.append(len(view) - done)
                    continue
                error.filename = self._name
                raise
            if len(sizes) == parts:
                self._wait_for_room()
        return len(view)

    def _wait_for_room(self) -> None:
        import select

        select.select((), (self._raw,), ())

    def fileno(self) -> int:
        """Return the descriptor."""
        number: int = self._raw.fileno()
        return number

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return bool(self._raw.isatty())

    def writable(self) -> bool:
        """Whether it can be written to."""
        return True


def open_streams() -> None:
    """Open the standard streams that the caller has closed: else a socket would be one, and Python has None for it.

    The input is empty then, and output cannot be written, so that printing is an error; what stderr gets is gone.
    """
    for name, flags, mode in (
        ("stdin", os.O_RDONLY, "r"),
        ("stdout", os.O_RDONLY, "w"),  # not written to, as the name says
        ("stderr", os.O_WRONLY, "w"),
    ):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.open(os.devnull, flags), mode, closefd=False))  # noqa: SIM115 - as long as it runs


@contextmanager
def whole_output(*, unread: bool = False) -> Iterator[None]:
    """Let `print` write everything or fail, also where Python has no buffer (PYTHONUNBUFFERED).

    If `unread`, it continues when the reader of a pipe has gone: a change must not stop half way for that.
    """
    before = sys.stdout
    binary = getattr(before, "buffer", None)
    raw = getattr(binary, "raw", binary)
    if not isinstance(before, io.TextIOWrapper) or not isinstance(raw, io.RawIOBase):
        yield  # a program that calls main() has its own object there
        return
    before.flush()
    sys.stdout = io.TextIOWrapper(
        Output(raw, "standard output", unread=unread),
        encoding=before.encoding,
        errors=before.errors,
        line_buffering=before.line_buffering,
        write_through=before.write_through,
    )
    try:
        yield
    finally:
        sys.stdout = before


def standard_output() -> Output:
    """Return standard output for bytes; text that was printed before is out then."""
    sys.stdout.flush()
    binary = sys.stdout.buffer
    return binary if isinstance(binary, Output) else Output(binary, "standard output")


@contextmanager
def whole_file(path: str | Path, *, replace: bool = True) -> Iterator[Output]:
    """Open a file that takes the place of the one at `path` when it is whole; an error leaves that one as it is.

    A path that is not a regular file, such as /dev/null or a named pipe, is written as it goes.
    """
    target = Path(path).resolve()
    before = target.stat() if target.exists() else None
    if before is not None and not stat.S_ISREG(before.st_mode):
        with open(target, "wb", buffering=0) as file:
            yield Output(file, str(path))
        return
    if before is not None and not replace:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    if before is not None and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    partial = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with open(partial, "wb", buffering=0) as file:
            if before is not None:
                partial.chmod(stat.S_IMODE(before.st_mode))
            yield Output(file, str(path))
            os.fsync(file.fileno())
        partial.replace(target)
    except BaseException as error:
        with suppress(OSError):
            partial.unlink()
        if isinstance(error, OSError) and error.filename == str(partial):
            error.filename = str(path)  # the name that the user knows
        raise
