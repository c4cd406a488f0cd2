"""``python -m kafka broker``: how it starts, refuses to start, and stops."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kafka.protocol.metadata import MetadataRequest

from .wire import Wire

COMMAND = [sys.executable, "-m", "kafka", "broker"]


@contextmanager
def running(*words: str) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """A broker process and the ports it listens on."""
    with subprocess.Popen([*COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("listening on "), process.communicate()
            yield process, [int(one.rpartition(":")[2]) for one in line.split()[-1].split(",")]
        finally:
            if process.poll() is None:
                process.kill()


def seconds_of(pid: int) -> float:
    """The processor time that a process has used; endless where it cannot be seen."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return float("inf")
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def refused(*words: str, code: int = 1) -> str:
    """Run a broker that cannot start; the one line that it says."""
    result = subprocess.run([*COMMAND, *words], capture_output=True, text=True, timeout=30, check=False)
    assert (result.returncode, result.stdout) == (code, ""), result
    (line,) = result.stderr.splitlines()
    return line.removeprefix("purekafka broker: ")


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_told_to_stop(how: signal.Signals) -> None:
    with running("--port", "0", "--nodes", "2", "--topic", "events:4", "--topic", "other") as (process, ports):
        assert len(ports) == 2
        with Wire(ports[1]) as client:
            topics = client.ask(MetadataRequest[1](None)).topics
            assert {topic.name: len(topic.partitions) for topic in topics} == {"events": 4, "other": 1}
            process.send_signal(how)
            assert client.is_closed()
        assert process.wait(10) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_a_port_in_use_is_said_in_one_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert refused("--port", str(port)) == f"cannot listen: Address already in use (host=127.0.0.1, port={port})"


def test_a_directory_in_use_or_of_something_else_is_said_in_one_line(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    with running("--port", "0", "--data", data):
        assert refused("--port", "0", "--data", data) == f"{data} is in use by another broker"
    (tmp_path / "strange").mkdir()
    (tmp_path / "strange" / "file").touch()
    assert "holds no data of this broker" in refused("--port", "0", "--data", str(tmp_path / "strange"), code=2)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--topic", "a:b"), "'b' is no number of partitions"),
        (("--topic", "a b"), "'a b' is no name for a topic"),
        (("--config", "no.such=1"), "'no.such' is no option of the embedded broker"),
        (("--config", "num.partitions=few"), "Invalid value few for configuration num.partitions"),
        (("--config", "num.partitions"), "--config takes NAME=VALUE, not 'num.partitions'"),
        (("--as-version", "soon"), "'soon' is no release of Kafka"),
        (("--nodes", "0"), "at least one node"),
        (("--tls", "key=x"), "needs cert"),
        (("--tls", "cert=/no/such/file"), "cert /no/such/file: No such file"),
        (("--tls", f"cert={__file__}"), f"{__file__} is no certificate in PEM form"),
        (("--as-version", "99.0"), "does not know what Kafka 99.0 does, only up to 4."),
        (("--fsync",), "--fsync needs --data"),
        (("--sasl", "PLAIN"), "write it as PLAIN:USER:PASSWORD"),
        (("--sasl", "SCRAM-SHA-256:ada"), "write it as SCRAM-SHA-256:USER:PASSWORD"),
        (("--sasl", "NTLM:ada:secret"), "no SASL mechanism NTLM"),
        (("--port", "65536"), "there is no 65536"),
        (("--port", "-1"), "there is no -1"),
        (("--port", "65535", "--nodes", "3"), "there is no 65535 to 65537"),
    ],
)
def test_words_that_mean_nothing_are_said_in_one_line(words: tuple[str, ...], says: str) -> None:
    assert says in refused("--port", "0", *words, code=2)


def test_unknown_options_are_told_with_the_command_s_own_usage() -> None:
    result = subprocess.run([*COMMAND, "--prot", "1"], capture_output=True, text=True, timeout=30, check=False)
    assert result.returncode == 2
    assert result.stderr.startswith("usage: purekafka broker ")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_an_output_that_takes_nothing_is_said_in_one_line() -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        words = [sys.executable, "-m", "kafka", "protocol", "list"]
        result = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, timeout=30, check=False)
    assert (result.returncode, result.stderr) == (1, "purekafka protocol: No space left on device\n")


def test_it_is_ready_in_half_a_second() -> None:
    best = 10.0
    for _ in range(5):
        begun = time.monotonic()
        with running("--port", "0", "--nodes", "3", "--topic", "events:3") as (process, _ports):
            # It waits for nothing, so where others use the machine its own time tells what it would take alone.
            best = min(best, time.monotonic() - begun, seconds_of(process.pid))
        if best < 0.5:
            return
    pytest.fail(f"it took {best:.2f} s at best")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc to see the time that a process takes")
def test_idle_connections_cost_nothing() -> None:
    with running("--port", "0", "--topic", "events") as (process, ports):
        connections = [socket.create_connection(("127.0.0.1", ports[0]), 10) for _ in range(500)]
        with Wire(ports[0]) as client:  # all of them have been taken when a later one is answered
            client.ask(MetadataRequest[1]([]))
        before = seconds_of(process.pid)
        threading.Event().wait(1.5)  # nothing happens: that is what is looked at
        used = seconds_of(process.pid) - before
        for connection in connections:
            connection.close()
    assert used < 0.05
