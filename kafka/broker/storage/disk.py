"""Records and tables in a directory, found again by the next broker, also after a crash.

Layout, version 1::

    DIR/layout          one line that says what this is
    DIR/lock            held (flock) while a broker uses the directory
    DIR/tables          the store: topics, configuration, offsets of groups ...
    DIR/topics/<topic id>-<partition>/<base offset>.log      batches of format v2, as they go over the wire
    DIR/topics/<topic id>-<partition>/<base offset>.index    their headers, written when a segment is complete

An index is the 61 bytes of each batch's header in a row and their CRC-32. It counts only if the batches it tells of
fill the log file exactly; without one the file itself is read, each batch with its checksum, and cut off at the first
that is not whole. So after a crash one segment of each partition is read, after an orderly end none. Producers, open
transactions and leader epochs follow from the headers.
"""

from __future__ import annotations

import os
import shutil
import sys
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from kafka.broker.storage import Storage
from kafka.broker.storage.log import Log
from kafka.broker.storage.segment import DiskSegment
from kafka.broker.store import Store
from kafka.errors import CorruptRecordError, IllegalStateError, KafkaConfigurationError
from kafka.record.batch import decode_batch
from kafka.record.control import decode_marker
from kafka.record.header import LOG_OVERHEAD, V2_HEADER, V2_HEADER_SIZE, BatchHeader, read_header

if TYPE_CHECKING:
    from kafka.broker.clock import BrokerClock
    from kafka.broker.configs import Configs
    from kafka.broker.topics import Topic

__all__ = ["DiskStorage", "write_index"]

_LAYOUT: Final = "purekafka broker data, layout 1\n"
_CRC_SIZE: Final = 4


class DiskStorage(Storage):
    """Everything in a directory."""

    is_durable = True

    def __init__(self, path: Path, *, fsync: bool = False) -> None:
        self._path = path
        self._fsync = fsync
        self._lock = _open_directory(path)
        try:
            self.store = Store(path / "tables", fsync=fsync)
        except BaseException:
            self._lock.close()
            raise
        self._starts = self.store.table("log_starts")

    def open_log(self, topic: Topic, index: int, configs: Configs, clock: BrokerClock) -> Log:
        """Open a partition's log, or make an empty one."""
        name = f"{topic.id}-{index}"
        directory = self._path / "topics" / name
        directory.mkdir(parents=True, exist_ok=True)
        if self._fsync:
            _sync_directory(directory.parent)

        def make_segment(base_offset: int, created_ms: int) -> DiskSegment:
            segment = DiskSegment(directory / f"{base_offset:020}.log", base_offset, created_ms)
            if self._fsync:
                _sync_directory(directory)
            return segment

        def start_moved(offset: int) -> None:
            self._starts[name] = offset

        log = Log(
            make_segment,
            clock.now_ms,
            configs.log_config(topic),
            directory=directory,
            on_complete=write_index,
            on_start_moved=start_moved,
        )
        log.fsync = self._fsync
        _recover(log, directory, self._starts.get(name, 0))
        return log

    def delete_log(self, log: Log) -> None:
        """Remove the files of a log."""
        super().delete_log(log)
        shutil.rmtree(log.directory, ignore_errors=True)
        self._starts.pop(log.directory.name, None)

    @property
    def directory_name(self) -> str:
        """The directory's path."""
        return str(self._path.absolute())

    def space(self) -> tuple[int, int]:
        """Total and free bytes of the file system."""
        usage = shutil.disk_usage(self._path)
        return usage.total, usage.free

    def close(self, topics: Iterable[Topic]) -> None:
        """Write the indexes, close the files, let go of the directory."""
        try:
            for topic in topics:
                for partition in topic.partitions:
                    log = partition.log
                    if log.segments:
                        write_index(log.segments[-1])
                    if self._fsync:
                        log.flush()
            super().close(topics)
        finally:
            self._lock.close()


# The directory


def _open_directory(path: Path) -> IO[str]:
    """Check the layout and take the lock; return the file that holds it."""
    try:
        layout = path / "layout"
        if path.exists() and not path.is_dir():
            raise KafkaConfigurationError(f"{path} is not a directory")
        is_new = not path.exists() or not any(path.iterdir())
        if not is_new:
            _check_layout(path, layout)
        path.mkdir(parents=True, exist_ok=True)
        handle = (path / "lock").open("a+", encoding="utf-8")
        try:
            _lock(handle, path)
            if is_new:
                layout.write_text(_LAYOUT, encoding="utf-8")
        except BaseException:
            handle.close()
            raise
    except OSError as error:
        raise KafkaConfigurationError(f"cannot use {path}: {error.strerror or error}") from error
    return handle


def _check_layout(path: Path, layout: Path) -> None:
    try:
        text = layout.read_text(errors="replace", encoding="utf-8")
    except FileNotFoundError:
        # Two brokers may be starting in an empty directory at once; the lock decides between them.
        if {entry.name for entry in path.iterdir()} <= {"lock"}:
            layout.write_text(_LAYOUT, encoding="utf-8")
            return
        raise KafkaConfigurationError(f"{path} holds no data of this broker, and it is not empty") from None
    if text != _LAYOUT:
        found = text.splitlines()[0][:80] if text.strip() else "nothing"
        raise KafkaConfigurationError(f"{path} has a layout that this release does not know: {found}")


def _lock(handle: IO[str], path: Path) -> None:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(handle.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise IllegalStateError(f"{path} is in use by another broker") from None


def _sync_directory(path: Path) -> None:
    """Have the names in a directory on the disk."""
    if sys.platform == "win32":
        return  # directories cannot be opened there, and need not be
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


# Indexes


def write_index(segment: object) -> None:
    """Write the index of a segment beside it."""
    assert isinstance(segment, DiskSegment)
    path = segment.path.with_suffix(".index")
    if not len(segment):
        path.unlink(missing_ok=True)
        return
    heads = b"".join(bytes(segment.read(at, at + V2_HEADER_SIZE)) for at in segment.positions)
    fresh = path.with_suffix(".new")
    fresh.write_bytes(heads + zlib.crc32(heads).to_bytes(_CRC_SIZE, "big"))
    fresh.replace(path)


def _read_index(path: Path, log_size: int) -> list[BatchHeader] | None:
    """Return the headers that an index holds, or None if it is not the index of what the log file has now."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    heads = data[:-_CRC_SIZE]
    if len(heads) % V2_HEADER_SIZE or zlib.crc32(heads).to_bytes(_CRC_SIZE, "big") != data[-_CRC_SIZE:]:
        return None
    headers = []
    position = 0
    for fields in V2_HEADER.iter_unpack(heads):
        header = BatchHeader(position, *fields)
        headers.append(header)
        position += header.length + LOG_OVERHEAD
    return headers if position == log_size else None


# Recovery


def _recover(log: Log, directory: Path, start: int) -> None:
    """Open the segments that are there, and learn from them where the log stands."""
    for leftover in directory.glob("*.new"):
        leftover.unlink()
    for path in sorted(directory.glob("*.log")):
        status = path.stat()
        segment = DiskSegment(path, int(path.stem), int(status.st_mtime * 1000), status.st_size)
        headers = _read_index(path.with_suffix(".index"), status.st_size)
        is_whole = headers is not None
        size = segment.size
        segment.size = 0
        for header in headers if headers is not None else _whole_batches(segment, size):
            committed = None
            if header.is_control:
                data = segment.read(header.position, header.end)
                local = header._replace(position=0)
                marker = decode_marker(data, local)
                committed = (marker.is_commit, marker.coordinator_epoch) if marker.type in {0, 1} else None
            log.recovered(segment, header, committed)
        if not len(segment):
            segment.delete()
            continue
        if not is_whole and segment.size < size:
            segment.truncate(len(segment))
        log.segments.append(segment)
    log.restored(start)


def _whole_batches(segment: DiskSegment, size: int) -> Iterator[BatchHeader]:
    """Yield the headers of the batches that are whole; stop at the first that is not."""
    data = segment.read(0, size)
    position, expected = 0, segment.base_offset
    while True:
        try:
            header = read_header(data, position)
            if header is None or header.base_offset < expected:
                return
            decode_batch(data, header)
        except CorruptRecordError:
            return
        yield header
        expected = header.last_offset + 1
        position = header.end
