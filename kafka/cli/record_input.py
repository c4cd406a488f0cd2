"""What records are made of: the pieces of a stream between delimiters, and the rows of CSV as JSON objects."""

from __future__ import annotations

import csv
import json
import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import BinaryIO, Final

from kafka.cli.arguments import CommandError

_CHUNK: Final = 256 * 1024
#: Characters of a cell; a quote that nothing closes must not take memory without end.
_LARGEST_CELL: Final = 1 << 27


def pieces_of(source: BinaryIO, delimiter: bytes) -> Iterator[list[bytes]]:
    """Yield the pieces of a stream between delimiters, as many at a time as are there."""
    rest = b""
    read: Callable[[int], bytes] = getattr(source, "read1", source.read)
    with _input_or_signal(source) as wait:
        while not wait() and (data := read(_CHUNK)):
            found = (rest + data).split(delimiter)
            rest = found.pop()
            if found:
                yield found
    if rest:
        yield [rest]


@contextmanager
def _input_or_signal(source: BinaryIO) -> Iterator[Callable[[], None]]:
    """Give a function that waits for input, and that a signal ends whenever it comes.

    One that comes right before a read that blocks does not end that: its handler runs after the read, which may be
    never.
    """
    try:
        number = source.fileno()
    except OSError:  # not a file of the system
        number = -1
    if number < 0 or sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    previous = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)

    def wait() -> None:
        while number not in select.select([number, reader], [], [])[0]:
            os.read(reader, _CHUNK)  # no handler has raised

    try:
        yield wait
    finally:
        signal.set_wakeup_fd(previous)
        os.close(reader)
        os.close(writer)


def objects_of(
    pieces: Iterable[list[bytes]], null: str | None = None, seen: Callable[[bytes], object] | None = None
) -> Iterator[tuple[int, bytes | ValueError]]:
    """Yield the line each row begins on, and its JSON object or what is wrong with it; cells like `null` are null.

    >>> list(objects_of([[b"user,city", b'7,"Ulm, south"']]))
    [(2, b'{"user":"7","city":"Ulm, south"}')]
    """
    line = 0

    def text(piece: bytes) -> str:
        nonlocal line
        line += 1
        if seen is not None:
            seen(piece + b"\n")
        return piece.decode("utf-8-sig" if line == 1 else "utf-8") + "\n"

    csv.field_size_limit(_LARGEST_CELL)  # of the process; the default refuses cells above 128 KiB
    rows = csv.reader(map(text, chain.from_iterable(pieces)), strict=True)
    names: list[str] | None = None
    while True:
        begin = line + 1
        try:
            row = next(rows)
        except StopIteration:
            return
        except (csv.Error, UnicodeDecodeError) as error:
            if names is None:
                raise CommandError(f"line {begin}: the header of the CSV cannot be read: {error}") from None
            yield begin, ValueError(f"not a row of CSV: {error}")
            continue
        if not row:  # an empty line
            continue
        if names is None:
            names = _names(row, begin)
        elif len(row) != len(names):
            yield begin, ValueError(f"the row has {len(row)} cells, the header {len(names)}")
        else:
            cells = {name: None if cell == null else cell for name, cell in zip(names, row, strict=True)}
            yield begin, json.dumps(cells, ensure_ascii=False, separators=(",", ":")).encode()


def _names(row: list[str], line: int) -> list[str]:
    """Return the names of columns; they become the names of fields, so each is there once."""
    for at, name in enumerate(row):
        if not name or name in row[:at]:
            what = f"the name {name!r} is there twice" if name else f"column {at + 1} has no name"
            raise CommandError(f"line {line}: {what}; the first line of CSV names the columns")
    return row
