"""Commands that follow partitions print each record that arrives, once: tail, consume --follow, kcat -C."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kafka.broker import Broker
from test import quick_start

FORMAT = "%p:%o\\n"
FOLLOWERS = {
    "tail": ["kafka", "tail", "events", "-n", "4", "-f", FORMAT],
    "consume --follow": ["kafka", "consume", "events", "--follow", "-f", FORMAT],
    "consume --follow --group": ["kafka", "consume", "events", "--follow", "-g", "readers", "-f", FORMAT],
    "kcat -C": ["kafka.cli.kcat", "-C", "-t", "events", "-u", "-q", "-f", FORMAT],
    "kcat -G": ["kafka.cli.kcat", "-q", "-u", "-f", FORMAT, "-o", "beginning", "-G", "readers", "events"],
}


@contextmanager
def following(name: str, broker: Broker) -> Iterator[subprocess.Popen[str]]:
    module, *words = FOLLOWERS[name]
    command = [sys.executable, "-m", module, "-b", broker.bootstrap_servers, *words]
    if module == "kafka":
        command = [sys.executable, "-m", module, *words, "-b", broker.bootstrap_servers]
    with quick_start.Program(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        limit = threading.Timer(90, process.kill)  # or a record that never comes would be waited for
        limit.start()
        try:
            yield process
        finally:
            limit.cancel()
            process.kill()


def read(process: subprocess.Popen[str], wanted: set[tuple[int, int]], least: int = 0) -> list[tuple[int, int]]:
    """Return the partitions and offsets that a command prints, until the wanted ones, and so many, were there."""
    found: list[tuple[int, int]] = []
    while len(found) < least or wanted - set(found):
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, f"it has ended without {sorted(wanted - set(found))}"
        partition, _, offset = line.partition(":")
        found.append((int(partition), int(offset)))
    return found


def ended(process: subprocess.Popen[str]) -> None:
    """End a command with Ctrl-C; it has nothing more to print."""
    process.send_signal(signal.SIGINT)
    rest, err = process.communicate(timeout=60)
    assert (process.returncode, rest) == (130, ""), err


@pytest.mark.parametrize("name", FOLLOWERS)
@pytest.mark.parametrize("earlier", [(1, 0, 0), (2, 1, 1)])
def test_records_that_arrive_are_printed_once(name: str, earlier: tuple[int, ...], broker: Broker) -> None:
    expected = {(partition, offset) for partition, count in enumerate(earlier) for offset in range(count)}
    for partition, _ in sorted(expected):
        broker.append("events", "early", partition=partition)
    with following(name, broker) as process:
        found = read(process, expected)
        for offset in range(5):
            new = {(partition, earlier[partition] + offset) for partition in range(3)}
            for partition, _ in sorted(new):
                broker.append("events", "late", partition=partition)
            found += read(process, new)
            expected |= new
        ended(process)
    assert sorted(found) == sorted(expected)


def test_tail_of_an_empty_topic_prints_what_arrives(broker: Broker) -> None:
    with following("tail", broker) as process:
        while not any(seen.name == "Fetch" for seen in broker.requests):
            assert process.poll() is None, "it has ended"
        for partition in range(3):
            broker.append("events", "late", partition=partition)
        assert sorted(read(process, {(0, 0), (1, 0), (2, 0)})) == [(0, 0), (1, 0), (2, 0)]
        ended(process)


def test_tail_loses_and_repeats_nothing_while_it_goes_over_from_the_last_records_to_new_ones(broker: Broker) -> None:
    for number in range(30):
        broker.append("events", "early", partition=number % 3)
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.wait(0.002):
            broker.append("events", "now", partition=number % 3)
            number += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        with following("tail", broker) as process:
            found = read(process, set(), 300)
            stop.set()
            writer.join()
            ends = [broker.offsets("events", partition)[1] for partition in range(3)]
            last = {(partition, end - 1) for partition, end in enumerate(ends)}
            found += read(process, last - set(found))
            ended(process)
    finally:
        stop.set()
    for partition, end in enumerate(ends):
        offsets = [offset for number, offset in found if number == partition]
        assert offsets == list(range(offsets[0], end))
