"""A stretch of a partition's log: batches in a row, and an index with an entry for each of them.

:class:`MemorySegment` holds the bytes in one buffer that is never changed in place once written, so what a reader was
given stays right; growing makes a new buffer. :class:`DiskSegment` appends to a file. Both find a batch by bisection.

An index entry is first offset, last offset, position, and the greatest timestamp up to here: 32 bytes a batch, which
for batches of a few kilobytes is under one percent.
"""

from __future__ import annotations

import os
import struct
from array import array
from bisect import bisect_left, bisect_right
from pathlib import Path
from typing import Final, NamedTuple

from kafka.record.header import BatchHeader, Buffer

_OFFSET: Final = struct.Struct(">q")
_EPOCH: Final = struct.Struct(">i")
_EPOCH_AT: Final = 12
#: The fields that an append overwrites: base offset (8), length (4, kept), leader epoch (4).
_PATCHED: Final = 16
_FIRST_CAPACITY: Final = 4096


class Entry(NamedTuple):
    """Where a batch is in a segment."""

    first: int
    last: int
    position: int
    end: int
    max_timestamp: int
    """The greatest timestamp of this and all earlier batches of the segment."""


class Segment:
    """What both kinds share: the index."""

    __slots__ = ("base_offset", "created_ms", "firsts", "is_gone", "lasts", "positions", "size", "timestamps")

    def __init__(self, base_offset: int, created_ms: int) -> None:
        self.base_offset = base_offset
        self.created_ms = created_ms
        self.size = 0
        #: Whether the log has removed it: its file must not be opened again.
        self.is_gone = False
        self.firsts = array("q")
        self.lasts = array("q")
        self.positions = array("q")
        self.timestamps = array("q")

    # Writing

    def append(self, data: Buffer, header: BatchHeader, offset: int, leader_epoch: int) -> None:
        """Append one batch, with this first offset and epoch in the place of what the producer wrote there."""
        position = self.size
        self._write(data, header.position, header.end, offset, leader_epoch, header.magic)
        self.note(offset, offset + header.last_offset_delta, position, header.size, header.max_timestamp)

    def note(self, first: int, last: int, position: int, size: int, timestamp: int) -> None:
        """Enter a batch into the index."""
        if self.timestamps and self.timestamps[-1] > timestamp:
            timestamp = self.timestamps[-1]
        self.firsts.append(first)
        self.lasts.append(last)
        self.positions.append(position)
        self.timestamps.append(timestamp)
        self.size = position + size

    def _write(self, data: Buffer, start: int, end: int, offset: int, leader_epoch: int, magic: int) -> None:
        raise NotImplementedError

    # Reading

    def read(self, start: int, end: int) -> Buffer:
        """Return the bytes between two positions."""
        raise NotImplementedError

    @property
    def last_offset(self) -> int:
        """The last offset in it; one less than its base if it is empty."""
        return self.lasts[-1] if self.lasts else self.base_offset - 1

    @property
    def max_timestamp(self) -> int:
        """The greatest timestamp in it, -1 if there is none."""
        return self.timestamps[-1] if self.timestamps else -1

    def __len__(self) -> int:
        return len(self.firsts)

    def __bool__(self) -> bool:
        return True

    def entry(self, number: int) -> Entry:
        """Return an entry of the index."""
        last = number + 1 == len(self.positions)
        end = self.size if last else self.positions[number + 1]
        return Entry(self.firsts[number], self.lasts[number], self.positions[number], end, self.timestamps[number])

    def find(self, offset: int) -> int:
        """Return the number of the first batch that reaches ``offset``; their count if none does."""
        return bisect_left(self.lasts, offset)

    def find_position(self, offset: int) -> int:
        """Return where the first batch that reaches ``offset`` begins; the end if none does."""
        number = bisect_left(self.lasts, offset)
        return self.positions[number] if number < len(self.positions) else self.size

    def find_timestamp(self, timestamp: int) -> int:
        """Return the number of the first batch up to which a record is as late as ``timestamp``."""
        return bisect_left(self.timestamps, timestamp)

    def batch_end(self, position: int) -> int:
        """Return where the batch at ``position`` ends."""
        number = bisect_right(self.positions, position)
        return self.positions[number] if number < len(self.positions) else self.size

    # Being rewritten

    def replacement(self) -> Segment:
        """Return an empty segment that will take this one's place."""
        raise NotImplementedError

    def put_in_place(self, old: Segment) -> Segment:
        """Take the place of ``old``, which is gone then."""
        raise NotImplementedError

    # Ending

    def flush(self) -> None:
        """Have all that was appended on the disk, if there is one."""

    def rest(self) -> None:
        """Nothing will be appended any more."""

    def close(self) -> None:
        """Release what it holds."""

    def delete(self) -> None:
        """Free the data of a segment that was removed from its log."""
        self.is_gone = True
        self.close()


class MemorySegment(Segment):
    """A segment in memory."""

    __slots__ = ("_data", "_view")

    def __init__(self, base_offset: int, created_ms: int) -> None:
        super().__init__(base_offset, created_ms)
        self._data = bytearray(_FIRST_CAPACITY)
        self._view = memoryview(self._data)

    def _write(self, data: Buffer, start: int, end: int, offset: int, leader_epoch: int, magic: int) -> None:
        position = self.size
        after = position + end - start
        if after > len(self._data):
            # Readers may hold views of the old buffer, so it cannot grow; they keep it alive as long as they need it.
            grown = bytearray(max(after, 2 * len(self._data)))
            grown[:position] = self._view[:position]
            self._data = grown
            self._view = memoryview(grown)
        self._view[position:after] = memoryview(data)[start:end]
        _OFFSET.pack_into(self._data, position, offset)
        if magic > 1:
            _EPOCH.pack_into(self._data, position + _EPOCH_AT, leader_epoch)

    def read(self, start: int, end: int) -> Buffer:
        """Return a view; it costs no copy and stays as it is."""
        return self._view[start:end]

    def replacement(self) -> Segment:
        """Return an empty one."""
        return MemorySegment(self.base_offset, self.created_ms)

    def put_in_place(self, _old: Segment) -> Segment:
        """Nothing is to be done: the log names its segments."""
        return self


def _read_at(fd: int, size: int, position: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(fd, size, position)
    os.lseek(fd, position, os.SEEK_SET)
    return os.read(fd, size)


def _write_at(fd: int, data: memoryview, position: int) -> int:
    if hasattr(os, "pwrite"):
        return os.pwrite(fd, data, position)
    os.lseek(fd, position, os.SEEK_SET)
    return os.write(fd, data)


class DiskSegment(Segment):
    """A segment in a file, ``<base offset>.log``."""

    __slots__ = ("_fd", "_rests", "path")

    def __init__(self, path: Path, base_offset: int, created_ms: int) -> None:
        super().__init__(base_offset, created_ms)
        self.path = path
        self._fd = -1
        self._rests = False
        self._open()

    def _open(self) -> int:
        """Return the file's descriptor."""
        if self._fd < 0:
            self._fd = os.open(
                self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0), 0o600
            )
        return self._fd

    def _write(self, data: Buffer, start: int, end: int, offset: int, leader_epoch: int, magic: int) -> None:
        view = memoryview(data)
        head = bytearray(view[start : start + _PATCHED])
        _OFFSET.pack_into(head, 0, offset)
        if magic > 1:
            _EPOCH.pack_into(head, _EPOCH_AT, leader_epoch)
        self._write_all([head, view[start + _PATCHED : end]])

    def _write_all(self, parts: list[Buffer]) -> None:
        at, fd = self.size, self._open()
        for part in parts:
            rest = memoryview(part)
            while rest:
                written = _write_at(fd, rest, at)
                at += written
                rest = rest[written:]

    def read(self, start: int, end: int) -> Buffer:
        """Return a copy of that part of the file."""
        data = _read_at(self._open(), end - start, start)
        if self._rests:
            self.close()
        return data

    def replacement(self) -> Segment:
        """Return one in a file beside this one's; after a crash it is not looked at."""
        path = self.path.with_suffix(".log.new")
        path.unlink(missing_ok=True)
        return DiskSegment(path, self.base_offset, self.created_ms)

    def put_in_place(self, old: Segment) -> Segment:
        """Rename the file over the old one's."""
        assert isinstance(old, DiskSegment)
        self.flush()
        # Neither may be open: not every system renames files that are.
        self.close()
        old.close()
        # Between this and the new index the file is read without one, as after a crash.
        old.path.with_suffix(".index").unlink(missing_ok=True)
        self.path.replace(old.path)
        self.path = old.path
        return self

    def flush(self) -> None:
        """Have the file on the disk."""
        os.fsync(self._open())

    def rest(self) -> None:
        """Free the descriptor, now and after each read: there may be thousands of such segments."""
        self._rests = True
        self.close()

    def close(self) -> None:
        """Close the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def delete(self) -> None:
        """Close and remove the file and its index."""
        super().delete()
        self.path.unlink(missing_ok=True)
        self.path.with_suffix(".index").unlink(missing_ok=True)
