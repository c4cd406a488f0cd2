"""Commands that move data, interrupted in every way: what they printed, committed and said is the same, to the record.

Tests run with a buffer of Python in front of standard output and without one (PYTHONUNBUFFERED), where a system call
may write a part only. What is tested with two signals, or to two kinds of files, has one of each with a buffer and the
other without: what a signal does and what is written at the end do not depend on each other.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

from kafka.broker import Broker
from test import quick_start

RECORDS = 4000
SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
BUFFERED = ["", "1"]
each_signal = pytest.mark.parametrize(
    ("number", "code", "unbuffered"), [(*each, how) for each, how in zip(SIGNALS, BUFFERED, strict=True)]
)

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")


@pytest.fixture(params=BUFFERED, ids=["buffered", "unbuffered"])
def unbuffered(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def filled(broker: Broker) -> Broker:
    """A topic with lines of all lengths, more than pipes and buffers take."""
    broker.append_many("orders", [f"{number} " + "x" * (number * 7 % 1500) for number in range(RECORDS)])
    return broker


@contextmanager
def started(
    broker: Broker,
    unbuffered: str,
    *words: str,
    stdin: int | IO[Any] = subprocess.DEVNULL,
    stdout: int | IO[Any] = subprocess.PIPE,
    limit: int | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a command; `limit` is the size above which a file cannot grow."""
    env = {
        **os.environ,
        "KAFKA_BOOTSTRAP_SERVERS": broker.bootstrap_servers,
        "PYTHONUNBUFFERED": unbuffered,
    }
    command = [sys.executable, "-m", "kafka", *words]
    if limit is not None:
        env["PYTHONDONTWRITEBYTECODE"] = "1"  # the limit would cut the files that all programs import
        command = ["sh", "-c", f'trap "" XFSZ; ulimit -f {limit // 512}; exec "$@"', "sh", *command]
    with quick_start.Program(command, env=env, stdin=stdin, stdout=stdout, stderr=subprocess.PIPE) as process:
        patience = threading.Timer(100, process.kill)
        patience.start()
        try:
            yield process
        finally:
            patience.cancel()
            process.kill()


def read(process: subprocess.Popen[bytes], size: int) -> bytes:
    """Read a part of what a command prints; it is blocked in a write then, or soon."""
    assert process.stdout is not None
    data = b""
    while len(data) < size:
        piece = os.read(process.stdout.fileno(), size - len(data))
        assert piece, process.communicate()[1]
        data += piece
    return data


def numbers(data: bytes) -> list[int]:
    """Return the numbers of the records that were printed whole."""
    return [int(line.split()[0]) for line in data.split(b"\n")[:-1]]


def eventually(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def hand_over(process: subprocess.Popen[bytes], data: bytes) -> None:
    """Write to the standard input of a command, and wait until it has read that."""
    import fcntl
    import termios

    assert process.stdin is not None
    process.stdin.write(data)
    process.stdin.flush()
    number = process.stdin.fileno()
    eventually(lambda: fcntl.ioctl(number, termios.FIONREAD, bytes(4)) == bytes(4))


# consume…


@each_signal
def test_a_signal_while_the_reader_is_slow_commits_what_was_printed(
    number: signal.Signals, code: int, filled: Broker, unbuffered: str
) -> None:
    with started(filled, unbuffered, "consume", "orders", "-g", "readers") as process:
        printed = read(process, 300_001)
        process.send_signal(number)
        begun = time.monotonic()
        process.wait(60)
        assert time.monotonic() - begun < 10  # a second of its own, on a machine that is busy
        rest, err = process.communicate()
    assert process.returncode == code
    found = numbers(printed + rest)
    assert found == list(range(len(found)))
    assert 0 < len(found) < RECORDS
    assert filled.committed("readers", "orders") == len(found)
    assert err.startswith(f"consumed {len(found):,} records".encode())


def test_a_disk_that_is_full_commits_what_is_on_it(filled: Broker, unbuffered: str, tmp_path: Path) -> None:
    path = tmp_path / "printed"
    with (
        open(path, "wb") as file,
        started(filled, unbuffered, "consume", "orders", "-g", "readers", stdout=file, limit=300_000) as process,
    ):
        _, err = process.communicate()
    assert (process.returncode, err) == (1, b"purekafka consume: standard output: File too large\n")
    found = numbers(path.read_bytes())
    assert found == list(range(len(found)))
    assert 0 < len(found) < RECORDS
    assert filled.committed("readers", "orders") == len(found)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    ("line", "unbuffered"), [("consume orders", "1"), ("consume orders -g g", ""), ("topics dump orders -", "1")]
)
def test_a_device_that_takes_nothing_is_an_error(line: str, filled: Broker, unbuffered: str) -> None:
    with open("/dev/full", "wb") as full, started(filled, unbuffered, *line.split(), stdout=full) as process:
        _, err = process.communicate()
    assert process.returncode == 1
    assert err.endswith(b": standard output: No space left on device\n")
    assert filled.committed("g", "orders") is None


def test_a_reader_that_has_seen_enough_leaves_what_it_did_not_take(filled: Broker, unbuffered: str) -> None:
    """A pipe has taken more than its reader read: a few records, which count as printed."""
    with started(filled, unbuffered, "consume", "orders", "-g", "readers") as process:
        printed = read(process, 300_001)
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(60) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""
    committed = filled.committed("readers", "orders")
    assert committed is not None
    assert len(numbers(printed)) <= committed < RECORDS


def test_after_kill_9_the_next_member_repeats_records_and_loses_none(filled: Broker, unbuffered: str) -> None:
    with started(filled, unbuffered, "consume", "orders", "-g", "readers", "--follow") as process:
        printed = read(process, 300_001)
        process.kill()
        rest, _ = process.communicate()
    found = numbers(printed + rest)
    committed = filled.committed("readers", "orders") or 0
    assert committed <= len(found)
    filled.expire_member("readers")
    with started(filled, unbuffered, "consume", "orders", "-g", "readers") as process:
        again, _ = process.communicate()
    assert process.returncode == 0
    assert numbers(again) == list(range(committed, RECORDS))
    assert filled.committed("readers", "orders") == RECORDS


def test_a_member_that_was_stopped_for_too_long_says_what_it_could_not_commit(filled: Broker, unbuffered: str) -> None:
    with started(filled, unbuffered, "consume", "orders", "-g", "readers") as process:
        printed = read(process, 300_001)
        process.send_signal(signal.SIGSTOP)
        filled.expire_member("readers")
        with started(filled, unbuffered, "consume", "orders", "-g", "readers") as other:
            again, _ = other.communicate()
        assert (other.returncode, len(numbers(again))) == (0, RECORDS)
        process.send_signal(signal.SIGCONT)
        rest, err = process.communicate()
    assert numbers(printed + rest) == list(range(len(numbers(printed + rest))))
    assert process.returncode == 1
    assert b"the last records of orders-0 are not committed and will be read again" in err
    assert filled.committed("readers", "orders") == RECORDS


@pytest.mark.parametrize("line", ["consume orders --follow -g readers", "consume orders --follow", "tail orders"])
def test_a_signal_ends_a_reader_while_brokers_are_away(line: str, broker: Broker) -> None:
    for number in range(10):
        broker.append("orders", f"{number} ")
    with started(broker, "", *line.split()) as process:
        printed = read(process, len(b"0 \n" * 10))
        broker.stop_node(1)
        process.send_signal(signal.SIGTERM)
        begun = time.monotonic()
        process.wait(60)
        assert time.monotonic() - begun < 15  # two seconds of its own: a last commit, and leaving the group
        _, err = process.communicate()
    assert (process.returncode, numbers(printed)) == (143, list(range(10)))
    said = b"the last records of orders-0 are not committed and will be read again" in err
    broker.start_node(1)
    assert said or "-g" not in line or broker.committed("readers", "orders") == 10


# topics dump…


@each_signal
def test_a_dump_that_is_interrupted_leaves_the_file_of_yesterday(
    number: signal.Signals, code: int, filled: Broker, unbuffered: str, tmp_path: Path
) -> None:
    path = tmp_path / "backup.jsonl"
    path.write_text("yesterday\n")
    filled.delay("Fetch", 0.5, times=1000)
    with started(filled, unbuffered, "topics", "dump", "orders", str(path)) as process:
        eventually(lambda: len(list(tmp_path.glob(".backup.jsonl.*"))) > 0)
        process.send_signal(number)
        _, err = process.communicate()
    assert process.returncode == code, err
    assert path.read_text() == "yesterday\n"
    assert [each.name for each in tmp_path.iterdir()] == ["backup.jsonl"]


@pytest.mark.parametrize("words", [("evnts",), ("events", "-b", "127.0.0.1:1", "-X", "bootstrap.timeout.ms=300")])
@pytest.mark.parametrize("name", ["backup.jsonl", "backup.jsonl.gz"])
def test_a_dump_that_cannot_begin_leaves_the_file_of_yesterday(
    name: str, words: tuple[str, ...], broker: Broker, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text("yesterday\n")
    with started(broker, "", "topics", "dump", words[0], str(path), *words[1:]) as process:
        _, err = process.communicate()
    assert process.returncode == 1, err
    assert path.read_text() == "yesterday\n"
    assert [each.name for each in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(("name", "unbuffered"), [("backup.jsonl", ""), ("backup.jsonl.gz", "1")])
def test_a_dump_to_a_disk_that_is_full_leaves_the_file_of_yesterday(
    name: str, filled: Broker, unbuffered: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text("yesterday\n")
    with started(filled, unbuffered, "topics", "dump", "orders", str(path), limit=4096) as process:
        out, err = process.communicate()
    assert (process.returncode, out) == (1, b"")
    assert err == f"purekafka topics dump: {path}: File too large\n".encode()
    assert path.read_text() == "yesterday\n"
    assert [each.name for each in tmp_path.iterdir()] == [name]


def test_a_dump_to_a_disk_that_is_full_is_an_error(filled: Broker, unbuffered: str, tmp_path: Path) -> None:
    with (
        open(tmp_path / "file", "wb") as file,
        started(filled, unbuffered, "topics", "dump", "orders", "-", stdout=file, limit=300_000) as process,
    ):
        _, err = process.communicate()
    assert (process.returncode, err) == (1, b"purekafka topics dump: standard output: File too large\n")


@each_signal
def test_a_dump_to_a_slow_reader_is_whole_up_to_the_signal(
    number: signal.Signals, code: int, filled: Broker, unbuffered: str
) -> None:
    with started(filled, unbuffered, "topics", "dump", "orders", "-") as process:
        printed = read(process, 300_001)
        process.send_signal(number)
        process.wait(60)
        rest, _ = process.communicate()
    assert process.returncode == code
    found = [json.loads(line)["offset"] for line in (printed + rest).split(b"\n")[:-1]]
    assert found == list(range(len(found)))


# produce and topics copy…


# Each way to produce, each signal, and both with transactions.
PRODUCING = [
    ((), *SIGNALS[0]),
    (("-K", ":"), *SIGNALS[1]),
    (("--transactional-id", "t"), *SIGNALS[0]),
    (("--transactional-id", "t"), *SIGNALS[1]),
]


@pytest.mark.parametrize(
    ("words", "number", "code", "unbuffered"),
    [(*each, how) for each, how in zip(PRODUCING, [*BUFFERED, *reversed(BUFFERED)], strict=True)],
)
def test_a_signal_ends_produce_when_its_lines_are_written(
    words: tuple[str, ...], number: signal.Signals, code: int, broker: Broker, unbuffered: str
) -> None:
    with started(broker, unbuffered, "produce", "orders", *words, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(b"a:1\nb:2\nc:3\nnot a whole li")
        process.stdin.flush()
        eventually(lambda: broker.offsets("orders")[2] == 3)
        process.send_signal(number)
        process.wait(60)
        _, err = process.communicate()
    assert process.returncode == code
    assert err.startswith(b"produced 3 records")
    seen = broker.records("orders", committed=True)
    assert len(seen) == (0 if "--transactional-id" in words else 3)
    assert (b"no record is visible" in err) == ("--transactional-id" in words)


@pytest.mark.parametrize(("words", "number", "code"), PRODUCING)
@pytest.mark.parametrize("ended", [False, True], ids=["the input continues", "the input has ended"])
def test_a_signal_ends_produce_while_brokers_are_away(
    ended: bool, words: tuple[str, ...], number: signal.Signals, code: int, broker: Broker
) -> None:
    with started(broker, "", "produce", "orders", *words, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(b"".join(b"k:%d\n" % each for each in range(10)))
        process.stdin.flush()
        eventually(lambda: broker.offsets("orders")[2] == 10)
        broker.stop_node(1)
        hand_over(process, b"".join(b"k:%d\n" % each for each in range(10, 20)))
        hand_over(process, b"k:20")  # which is read when the lines before it have been sent
        if ended:
            process.stdin.close()
            process.stdin = None
        process.send_signal(number)
        begun = time.monotonic()
        process.wait(60)
        assert time.monotonic() - begun < 10  # a second or two of its own
        _, err = process.communicate()
    assert process.returncode == code
    assert err.startswith(b"produced 10 records"), err
    lost = re.search(rb"(\d+) records had no acknowledgement, and may not be written: ", err)
    assert lost is not None, err
    assert int(lost[1]) in ({10, 11} if ended else {10})


def test_a_command_that_was_stopped_for_a_moment_continues(filled: Broker, unbuffered: str) -> None:
    with started(filled, unbuffered, "topics", "copy", "orders", "events", "--repartition") as process:
        eventually(lambda: any(seen.name == "Produce" for seen in filled.requests))
        process.send_signal(signal.SIGSTOP)
        process.send_signal(signal.SIGCONT)
        out, err = process.communicate()
    assert (process.returncode, err) == (0, b"")
    assert out == f"events: {RECORDS:,} records copied\n".encode()
    assert len(filled.records("events")) == RECORDS


@each_signal
def test_a_copy_that_is_interrupted_says_how_many_records_are_written(
    number: signal.Signals, code: int, filled: Broker, unbuffered: str
) -> None:
    filled.delay("Produce", 0.2, times=10_000)
    with started(filled, unbuffered, "topics", "copy", "orders", "events", "--repartition") as process:
        eventually(lambda: len(filled.records("events")) > 0)
        process.send_signal(number)
        out, err = process.communicate()
    assert (process.returncode, out) == (code, b"")
    written = len(filled.records("events"))
    said = int(err.split()[1].replace(b",", b""))
    assert err.startswith(b"produced ")
    lost = b"had no acknowledgement" in err
    assert said <= written if lost else said == written
