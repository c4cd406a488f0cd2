"""Output: everything is written and counted, or an error says so; a file is replaced when its successor is whole."""

from __future__ import annotations

import errno
import gzip
import io
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from kafka.cli.files import Output, standard_output, whole_file, whole_output


class InParts(io.RawIOBase):
    """A raw file that takes at most `most` bytes at a time, and `room` altogether."""

    def __init__(self, most: int, room: int = 1 << 30) -> None:
        self.most = most
        self.room = room
        self.taken = b""

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        piece = bytes(memoryview(data)[: min(self.most, self.room)])  # type: ignore[arg-type]
        if not piece:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.taken += piece
        self.room -= len(piece)
        return len(piece)


def test_a_write_continues_until_everything_is_written() -> None:
    raw = InParts(7)
    out = Output(raw, "the file")
    assert [out.write(b"x" * 100), out.write(b""), out.write(b"yz")] == [100, 0, 2]
    assert raw.taken == b"x" * 100 + b"yz"
    assert out.written == 102


def test_a_write_that_fails_has_counted_what_is_out_and_names_the_file() -> None:
    raw = InParts(7, room=20)
    out = Output(raw, "the file")
    out.write(b"123")
    with pytest.raises(OSError, match="No space left on device: 'the file'"):
        out.write(b"x" * 100)
    assert out.written == len(raw.taken) == 20


def test_a_signal_in_a_write_that_blocks_leaves_an_exact_count() -> None:
    """The reader takes a little and stops; the signal comes while the write is blocked by a pipe that is full."""
    read, write = os.pipe()
    taken: list[bytes] = []

    def interrupt() -> None:
        taken.append(os.read(read, 20_000))
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    with os.fdopen(read, "rb", buffering=0) as reader, os.fdopen(write, "wb", buffering=0) as raw:
        out = Output(raw, "the pipe")
        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            out.write(b"x" * 10_000_000)
        thread.join()
        raw.close()
        while data := reader.read(1 << 20):
            taken.append(data)
    assert 0 < out.written == sum(map(len, taken))


def test_a_pipe_that_does_not_block_gets_everything() -> None:
    read, write = os.pipe()
    os.set_blocking(write, False)
    taken: list[bytes] = []

    def drain() -> None:
        while data := os.read(read, 1 << 16):
            taken.append(data)

    reader = threading.Thread(target=drain)
    reader.start()
    with os.fdopen(write, "wb", buffering=0) as raw:
        Output(raw, "the pipe").write(b"x" * 1_000_000)
    reader.join()
    os.close(read)
    assert len(b"".join(taken)) == 1_000_000


def test_text_goes_the_same_way_and_the_stream_of_the_caller_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = InParts(5)
    text = io.TextIOWrapper(raw, encoding="utf-8", write_through=True)  # type: ignore[type-var]
    monkeypatch.setattr(sys, "stdout", text)
    with whole_output():
        print("x" * 50)
        standard_output().write(b"bytes")
        print("ü")
        sys.stdout.flush()
    assert sys.stdout is text
    assert raw.taken == b"x" * 50 + b"\nbytes" + "ü\n".encode()


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_an_error_of_every_command(unbuffered: str) -> None:
    env = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with open("/dev/full", "wb") as full:
        for line in ("protocol list", "completion bash", "kcat -h", "--help", "--version", "topics list --help"):
            words = line.split()
            done = subprocess.run(
                [sys.executable, "-m", "kafka", *words], stdout=full, stderr=subprocess.PIPE, env=env, check=False
            )
            assert done.returncode == 1, words
            assert done.stderr.endswith(b": standard output: No space left on device\n")


def test_a_file_is_replaced_when_its_successor_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"yesterday")
    path.chmod(0o640)
    link = tmp_path / "link"
    link.symlink_to(path)
    with whole_file(link) as file:
        file.write(b"today")
        assert path.read_bytes() == b"yesterday"
    assert path.read_bytes() == b"today"
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    with pytest.raises(TypeError), whole_file(path) as file:
        file.write("tomor")  # type: ignore[arg-type]
    assert path.read_bytes() == b"today"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file", "link"]


def test_a_new_file_is_there_when_it_is_whole(tmp_path: Path) -> None:
    with whole_file(tmp_path / "new.gz") as file:
        with gzip.open(file, "wb") as compressed:  # type: ignore[arg-type]
            compressed.write(b"text")
        assert not (tmp_path / "new.gz").exists()
    assert gzip.decompress((tmp_path / "new.gz").read_bytes()) == b"text"
    with whole_file("/dev/null") as file:
        file.write(b"gone")
    assert not Path("/dev/null").is_file()
