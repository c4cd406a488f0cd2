"""Records and tables in a directory, found again by the next broker, also after a crash.

Layout, version 2::

    DIR/layout          one line that says what this is
    DIR/lock            held (flock) while a broker uses the directory
    DIR/tables          the store: topics, configuration, offsets of groups ...
    DIR/topics/<topic id>-<partition>/<base offset>.log      batches of format v2, as they go over the wire
    DIR/topics/<topic id>-<partition>/<base offset>.index    their headers, written when a segment is complete

An index is the 61 bytes of each batch's header in a row and their CRC-32. It counts only if the batches it tells of
fill the log file exactly; without one the file itself is read, each batch with its checksum. So after a crash one
segment of each partition is read, after an orderly end none. Producers, open transactions and leader epochs follow from
the headers.

A batch that a crash has cut short, at the end of the last segment, is cut off: it was not acknowledged. Anything else
that is not a whole batch is damage: the file is kept as ``<base offset>.damaged``, and the whole batches go into a new
one. Both are logged as warnings. Directories and files are for their owner only.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Final

from kafka.broker.cluster.clock import BrokerClock
from kafka.broker.cluster.store import Store, open_private, sync_directory
from kafka.broker.cluster.topics import Topic
from kafka.broker.configs import Configs
from kafka.broker.storage import Storage
from kafka.broker.storage.log import Log
from kafka.broker.storage.segment import DiskSegment, Segment
from kafka.errors import CorruptRecordError, IllegalStateError, KafkaConfigurationError
from kafka.record.batch import decode_batch
from kafka.record.control import decode_marker
from kafka.record.header import LOG_OVERHEAD, MAGIC_AT, V2_HEADER, V2_HEADER_SIZE, BatchHeader, read_header

_LAYOUT: Final = "purekafka broker data, layout 2\n"
_CRC_SIZE: Final = 4
_NO_OFFSET: Final = 2**63 - 1

logger = logging.getLogger("kafka.broker")


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
        directory.parent.mkdir(mode=0o700, exist_ok=True)
        directory.mkdir(mode=0o700, exist_ok=True)
        if self._fsync:
            sync_directory(self._path)
            sync_directory(directory.parent)

        def make_segment(base_offset: int, created_ms: int) -> DiskSegment:
            segment = DiskSegment(directory / f"{base_offset:020}.log", base_offset, created_ms)
            if self._fsync:
                sync_directory(directory)
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


def _open_directory(path: Path) -> IO[bytes]:
    """Check the layout and take the lock; return the file that holds it."""
    try:
        layout = path / "layout"
        if path.exists() and not path.is_dir():
            raise KafkaConfigurationError(f"{path} is not a directory")
        is_new = not path.exists() or not any(path.iterdir())
        if not is_new:
            _check_layout(path, layout)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=True)
        handle = open_private(path / "lock", "ab+")
        try:
            _lock(handle, path)
            if is_new:
                _write(layout, _LAYOUT.encode())
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
            _write(layout, _LAYOUT.encode())
            return
        raise KafkaConfigurationError(f"{path} holds no data of this broker, and it is not empty") from None
    if text != _LAYOUT:
        found = text.splitlines()[0][:80] if text.strip() else "nothing"
        raise KafkaConfigurationError(f"{path} has a layout that this release does not know: {found}")


def _lock(handle: IO[bytes], path: Path) -> None:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(handle.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise IllegalStateError(f"{path} is in use by another broker") from None


def _write(path: Path, data: bytes, *, fsync: bool = False) -> None:
    """Write a file for its owner only."""
    with open_private(path, "wb") as file:
        file.write(data)
        if fsync:
            file.flush()
            os.fsync(file.fileno())


# Indexes


def write_index(segment: Segment) -> None:
    """Write the index of a segment beside it."""
    assert isinstance(segment, DiskSegment)
    path = segment.path.with_suffix(".index")
    if not len(segment):
        path.unlink(missing_ok=True)
        return
    heads = b"".join(bytes(segment.read(at, at + V2_HEADER_SIZE)) for at in segment.positions)
    fresh = path.with_suffix(".new")
    _write(fresh, heads + zlib.crc32(heads).to_bytes(_CRC_SIZE, "big"))
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
    paths = sorted(directory.glob("*.log"))
    bases = [int(path.stem) for path in paths]
    for path, base, next_base in zip(paths, bases, [*bases, None][1:], strict=True):
        status = path.stat()
        headers = _read_index(path.with_suffix(".index"), status.st_size)
        if headers is None:
            headers = _read_batches(path, base, next_base)
        segment = DiskSegment(path, base, int(status.st_mtime * 1000))
        for header in headers:
            committed = None
            if header.is_control:
                data = segment.read(header.position, header.end)
                local = header._replace(position=0)
                marker = decode_marker(data, local)
                committed = (marker.is_commit, marker.coordinator_epoch) if marker.type in {0, 1} else None
            log.recovered(segment, header, committed)
        # One without batches, which compaction emptied or nothing was appended to, says what offsets there have been.
        log.end_offset = max(log.end_offset, base)
        log.segments.append(segment)
        if next_base is not None:
            segment.rest()
    log.restored(start)


def _read_batches(path: Path, base: int, next_base: int | None) -> list[BatchHeader]:
    """Return the headers of the whole batches of a segment; afterwards its file holds these and nothing else."""
    data = path.read_bytes()
    headers, gaps = _whole_batches(data, base, _NO_OFFSET if next_base is None else next_base)
    if not gaps:
        return headers
    if next_base is None and gaps == [(gaps[0][0], len(data))] and _is_torn(data, gaps[0][0]):
        start = gaps[0][0]
        logger.warning(
            "%s: cut off at byte %d: the last %d bytes are a batch that a crash interrupted; it was not acknowledged",
            *(path, start, len(data) - start),
        )
        os.truncate(path, start)
        return headers
    kept = _copy_name(path)
    shutil.copyfile(path, kept)
    kept.chmod(0o600)
    for start, end in gaps:
        before = max((header.last_offset for header in headers if header.end <= start), default=base - 1)
        after = min((header.base_offset for header in headers if header.position >= end), default=next_base)
        until = "the end of the log" if after is None else f"offset {after}"
        logger.warning(
            "%s: %d bytes at byte %d are damaged: the records between offset %d and %s are lost. "
            "The damaged file is kept as %s",
            *(path, end - start, start, before, until, kept.name),
        )
    fresh = path.with_suffix(".new")
    _write(fresh, b"".join(data[header.position : header.end] for header in headers), fsync=True)
    path.with_suffix(".index").unlink(missing_ok=True)
    fresh.replace(path)
    moved = []
    position = 0
    for header in headers:
        moved.append(header._replace(position=position))
        position += header.size
    return moved


def _copy_name(path: Path) -> Path:
    name = path.with_suffix(".damaged")
    number = 1
    while name.exists():
        number += 1
        name = path.with_suffix(f".damaged-{number}")
    return name


def _whole_batches(data: bytes, base: int, limit: int) -> tuple[list[BatchHeader], list[tuple[int, int]]]:
    """Return the headers of the whole batches with offsets from ``base`` to ``limit``, and the gaps between them."""
    headers: list[BatchHeader] = []
    gaps: list[tuple[int, int]] = []
    position, expected = 0, base
    while position < len(data):
        header = _whole_batch(data, position, expected, limit)
        if header is None:
            end = _next_whole(data, position, expected, limit)
            gaps.append((position, end))
            position = end
            continue
        if header.base_offset > expected:
            # Offsets are not covered by the checksum. Compaction leaves gaps, damage an offset that what follows is
            # behind.
            follower = _whole_batch(data, header.end, expected, limit)
            if follower is not None and follower.base_offset <= header.last_offset:
                gaps.append((position, header.end))
                position = header.end
                continue
        headers.append(header)
        position, expected = header.end, header.last_offset + 1
    return headers, gaps


def _whole_batch(data: bytes, position: int, expected: int, limit: int) -> BatchHeader | None:
    try:
        header = read_header(data, position)
        if header is None or header.magic < 2 or header.base_offset < expected or header.last_offset >= limit:
            return None
        decode_batch(data, header)
    except CorruptRecordError:
        return None
    return header


def _next_whole(data: bytes, position: int, expected: int, limit: int) -> int:
    """Return where the next whole batch begins behind a damaged one; the end if there is none."""
    if len(data) - position >= LOG_OVERHEAD:
        # The length of the damaged batch is right if a whole batch is behind it, or nothing.
        end = position + LOG_OVERHEAD + int.from_bytes(data[position + 8 : position + LOG_OVERHEAD], "big", signed=True)
        if position < end <= len(data) and (end == len(data) or _whole_batch(data, end, expected, limit) is not None):
            return end
    magic = data.find(2, position + 1 + MAGIC_AT)
    while magic >= 0:
        start = magic - MAGIC_AT
        offset = int.from_bytes(data[start : start + 8], "big", signed=True)
        if expected <= offset < limit and _whole_batch(data, start, expected, limit) is not None:
            return start
        magic = data.find(2, magic + 1)
    return len(data)


def _is_torn(data: bytes, start: int) -> bool:
    """Whether what begins there continues behind the end of the file, as an append that was interrupted does."""
    try:
        return read_header(data, start) is None
    except CorruptRecordError:
        return False
