"""The state of the cluster besides records: small tables of JSON values, kept in memory and, with a data
directory, in one append-only file.

``store.table("topics")`` behaves as a dict with ``str`` keys whose values are JSON data; assigning is what makes a
change durable, so a value is replaced, never changed in place. Each part that keeps state takes
a table, and no other part reads it. What cannot be written raises OSError and is not in the table either.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import sys
import zlib
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import IO, Any, Final, Literal

from kafka.errors import IllegalStateError

log = logging.getLogger("kafka.broker")

#: The file is rewritten when it has this many times as many lines as there are values.
_REWRITE_FACTOR: Final = 4
_REWRITE_FROM: Final = 1000


class Table(MutableMapping[str, Any]):
    """One table of the store.

    >>> table = Store().table("offsets")
    >>> table["g/events/0"] = {"offset": 7}
    >>> table["g/events/0"], len(table)
    ({'offset': 7}, 1)
    """

    __slots__ = ("_data", "_name", "_store")

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        self._name = name
        self._data: dict[str, Any] = {}

    def __getitem__(self, key: str) -> Any:
        return self._data[key]

    def __setitem__(self, key: str, value: object) -> None:
        self._store.write(self._name, key, value)
        self._data[key] = value

    def __delitem__(self, key: str) -> None:
        if key not in self._data:
            raise KeyError(key)
        self._store.write(self._name, key, None)
        del self._data[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def load(self, key: str, value: object) -> None:
        """Take a value from the file."""
        if value is None:
            self._data.pop(key, None)
        else:
            self._data[key] = value


class Store:
    """All tables; with a path, durable."""

    def __init__(self, path: Path | None = None, *, fsync: bool = False) -> None:
        self._tables: dict[str, Table] = {}
        self._path = path
        self._fsync = fsync
        self._file: IO[bytes] | None = None
        self._size = self._lines = 0
        self._is_torn = False
        #: Counts the changes since the start.
        self.changes = 0
        if path is not None:
            self._read(path)

    def table(self, name: str) -> Table:
        """Return the table of that name, empty if it is new."""
        found = self._tables.get(name)
        if found is None:
            found = self._tables[name] = Table(self, name)
        return found

    def contents(self) -> dict[str, dict[str, Any]]:
        """Return what is in all tables; values are replaced, never changed, so it stays as it is."""
        return {name: dict(table) for name, table in self._tables.items()}

    def write(self, name: str, key: str, value: object) -> None:
        """Append a change; None deletes."""
        if self._file is not None:
            if self._lines > _REWRITE_FROM and self._lines > _REWRITE_FACTOR * sum(map(len, self._tables.values())):
                self._rewrite()
            self._append(_line(name, key, value))
            self._lines += 1
        self.changes += 1

    def close(self) -> None:
        """Close the file, in its shortest form."""
        if self._file is not None:
            self._rewrite()
            self._file.close()
            self._file = None

    def _append(self, line: bytes) -> None:
        """Append to the file, whose end is cut off first if the last line was not written whole: the disk was full."""
        assert self._file is not None
        if self._is_torn:
            self._file.truncate(self._size)
        self._is_torn = True
        if self._file.write(line) < len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))
        if self._fsync:
            os.fsync(self._file.fileno())
        self._is_torn = False
        self._size += len(line)

    def _read(self, path: Path) -> None:
        """Read the file. A line that a crash has cut short is dropped; a damaged one is not passed over.

        Each line is acknowledged once it is written, so only the last one can be unfinished, and that has no newline.
        """
        data = path.read_bytes() if path.exists() else b""
        *lines, rest = data.split(b"\n")
        entries = [_parse(line) for line in lines]
        if None in entries:
            raise IllegalStateError(_damage(path, lines, entries))
        if rest and (last := _parse(rest)) is not None:
            entries.append(last)  # whole but for its newline
        for entry in entries:
            assert entry is not None
            name, key, value = entry
            self.table(name).load(key, value)
        self._lines = len(entries)
        self._open()
        if len(entries) > len(lines):
            self._append(b"\n")
        elif rest:
            self._size -= len(rest)
            log.warning(
                "%s: cut off at byte %d: the last %d bytes are a line that a crash interrupted",
                path, self._size, len(rest),
            )  # fmt: skip
            self._is_torn = True

    def _open(self) -> None:
        assert self._path is not None
        self._file = open_private(self._path, "ab", buffering=0)
        self._size = self._file.tell()
        # Have the file's name on the disk: after a loss of power a file without one is gone, with all its changes.
        if self._fsync:
            assert self._path is not None
            sync_directory(self._path.parent)

    def _rewrite(self) -> None:
        """Write the file again, shorter; where there is no room for that, the one that there is has everything."""
        assert self._path is not None
        assert self._file is not None
        fresh = self._path.with_suffix(".new")
        try:
            with open_private(fresh, "wb") as out:
                for name, table in self._tables.items():
                    out.writelines(_line(name, key, value) for key, value in table.items())
                out.flush()
                os.fsync(out.fileno())
        except OSError as error:
            log.warning("%s stays longer than it need be: %s cannot be written: %s", self._path, fresh, error)
            return
        self._file.close()
        fresh.replace(self._path)
        self._open()
        self._is_torn = False
        self._lines = sum(map(len, self._tables.values()))


def sync_directory(path: Path) -> None:
    """Have the names in a directory on the disk."""
    if sys.platform == "win32":
        return  # directories cannot be opened there, and need not be
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def open_private(path: Path, mode: Literal["ab", "ab+", "wb"], buffering: int = -1) -> IO[bytes]:
    """Open a file in binary mode; if that creates it, for its owner only: tables hold credentials, segments records."""
    return open(path, mode, buffering, opener=lambda name, flags: os.open(name, flags, 0o600))


def _damage(path: Path, lines: list[bytes], entries: list[tuple[str, str, Any] | None]) -> str:
    number = entries.index(None)
    start = sum(len(line) + 1 for line in lines[:number])
    others = entries.count(None) - 1
    more = f", and {others} more" if others else ""
    return (
        f"{path} is damaged: line {number + 1} (byte {start}, {len(lines[number])} bytes) has a wrong checksum{more}. "
        "Restore the file from a copy; or, to continue without the topic, setting or offset that the line held, "
        "delete it"
    )


def _line(name: str, key: str, value: object) -> bytes:
    text = json.dumps([name, key, value], separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _parse(line: bytes) -> tuple[str, str, Any] | None:
    checksum, _, text = line.partition(b" ")
    if checksum != b"%08x" % zlib.crc32(text):
        return None
    name, key, value = json.loads(text)
    return name, key, value
