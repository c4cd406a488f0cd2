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
from typing import Any

import pytest

from kafka.broker import Broker
from kafka.errors import IllegalArgumentError
from kafka.protocol.metadata import MetadataRequest
from test import quick_start

from .wire import Wire

COMMAND = [sys.executable, "-m", "kafka", "broker"]


@contextmanager
def running(*words: str) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """A broker process and the ports it listens on."""
    with quick_start.Program([*COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
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
    result = quick_start.run([*COMMAND, *words], text=True)
    assert (result.returncode, result.stdout) == (code, ""), result
    (line,) = result.stderr.splitlines()
    return line.removeprefix("purekafka broker: ")


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_stopped(how: signal.Signals) -> None:
    with running("--port", "0", "--nodes", "2", "--topic", "events:4", "--topic", "other") as (process, ports):
        assert len(ports) == 2
        with Wire(ports[1]) as client:
            topics = client.ask(MetadataRequest[1](None)).topics
            assert {topic.name: len(topic.partitions) for topic in topics} == {"events": 4, "other": 1}
            process.send_signal(how)
            assert client.is_closed()
        assert process.wait(60) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""


# Where it says that it is


@pytest.mark.parametrize(
    ("words", "host", "port"),
    [
        (("--host", "0.0.0.0"), "127.0.0.1", None),
        (("--host", "0.0.0.0", "--advertise", "kafka.test"), "kafka.test", None),
        (("--advertise", "kafka.test:19092"), "kafka.test", 19092),
        (("--advertise", "[2001:db8::7]:19092"), "2001:db8::7", 19092),
        (("--advertise", "2001:db8::7"), "2001:db8::7", None),
    ],
)
def test_clients_get_the_advertised_address(words: tuple[str, ...], host: str, port: int | None) -> None:
    command = [*COMMAND, "--port", "0", "--nodes", "2", *words]
    with quick_start.Program(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            listening, _, advertised = line.removeprefix("listening on ").strip().partition(", advertised as ")
            ports = [int(one.rpartition(":")[2]) for one in listening.split(",")]
            told = ports if port is None else [port, port + 1]
            shown = f"[{host}]" if ":" in host else host
            assert advertised == ",".join(f"{shown}:{each}" for each in told)
            with Wire(ports[0]) as client:
                brokers = client.ask(MetadataRequest[1]([])).brokers
                assert [(each.host, each.port) for each in brokers] == [(host, each) for each in told]
        finally:
            process.terminate()
        assert process.stderr is not None
        hint = "clients on other machines or in other containers need --advertise HOST\n"
        assert process.stderr.read() == ("" if "--advertise" in words else hint)


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "", ":9092", "host:", "host:99999", "host:kafka"])
def test_an_address_that_leads_nowhere_is_not_advertised(address: str) -> None:
    with pytest.raises(IllegalArgumentError, match="advertise takes HOST or HOST:PORT"):
        Broker(advertise=address)


# For programs that start it


def test_files_say_when_it_is_ready_and_where(tmp_path: Path) -> None:
    ready, port = tmp_path / "ready", tmp_path / "port"
    with running("--port", "0", "--ready-file", str(ready), "--port-file", str(port)) as (process, ports):
        assert ready.read_text(encoding="utf-8") == f"127.0.0.1:{ports[0]}\n"
        assert port.read_text(encoding="utf-8") == f"{ports[0]}\n"
        process.terminate()
        assert process.wait(60) == 0
    assert list(tmp_path.iterdir()) == []


def ran(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return quick_start.run([*COMMAND, "--port", "0", *words], text=True, **options)


CLIENT = """
import os, sys
from kafka import KafkaProducer
with KafkaProducer(bootstrap_servers=os.environ["KAFKA_BOOTSTRAP_SERVERS"]) as producer:
    print(producer.send("events", b"v").get(10).offset, *sys.argv[1:])
sys.exit(7)
"""


def test_a_command_gets_the_address_and_its_exit_code_is_returned() -> None:
    result = ran("--topic", "events", "--", sys.executable, "-c", CLIENT, "--port", "-x")
    assert (result.returncode, result.stdout) == (7, "0 --port -x\n"), result.stderr
    assert result.stderr.startswith("listening on 127.0.0.1:")


REGISTERING = """
import os
from kafka.schema_registry import Schema, SchemaRegistry
print(SchemaRegistry(os.environ["PUREKAFKA_SCHEMA_REGISTRY_URL"]).register("s", Schema('"long"')))
"""


def test_a_registry_runs_beside_the_broker() -> None:
    result = ran("--registry", "0", "--", sys.executable, "-c", REGISTERING)
    assert (result.returncode, result.stdout) == (0, "1\n"), result.stderr
    assert result.stderr.splitlines()[1].startswith("schema registry on http://127.0.0.1:")


def test_a_command_that_succeeds_or_is_not_there() -> None:
    assert ran("--", sys.executable, "-c", "").returncode == 0
    missing = ran("--", "/no/such/command")
    assert missing.returncode == 127
    assert "purekafka broker: cannot run /no/such/command: No such file or directory" in missing.stderr


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_signals_reach_the_command(how: signal.Signals) -> None:
    waits = "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); print('up', flush=True); signal.pause()"
    command = [*COMMAND, "--port", "0", "--", sys.executable, "-c", waits]
    with quick_start.Program(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "up\n"
            process.send_signal(how)
            assert process.wait(60) == 128 + how
        finally:
            if process.poll() is None:
                process.kill()


def test_the_health_check_of_the_documentation() -> None:
    check = [sys.executable, "-m", "kafka", "request", "ApiVersions", "--timeout", "10", "-b"]
    with running("--port", "0") as (process, ports):
        address = f"127.0.0.1:{ports[0]}"
        assert quick_start.run([*check, address]).returncode == 0
        process.terminate()
        process.wait(60)
        assert quick_start.run([*check, address]).returncode == 1


def test_a_port_in_use_is_reported_in_one_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert refused("--port", str(port)) == f"cannot listen: Address already in use (host=127.0.0.1, port={port})"


def test_a_directory_in_use_or_with_other_files_is_reported_in_one_line(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    with running("--port", "0", "--data", data):
        assert refused("--port", "0", "--data", data) == f"{data} is in use by another broker"
    (tmp_path / "strange").mkdir()
    (tmp_path / "strange" / "file").touch()
    assert "holds no data of this broker" in refused("--port", "0", "--data", str(tmp_path / "strange"), code=2)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--topic", "a:b"), "'b' is not a number of partitions"),
        (("--topic", "a b"), "'a b' is not a valid name for a topic"),
        (("--config", "no.such=1"), "'no.such' is not an option of the embedded broker"),
        (("--config", "num.partitions=few"), "Invalid value few for configuration num.partitions"),
        (("--config", "num.partitions"), "--config takes NAME=VALUE, not 'num.partitions'"),
        (("--as-version", "soon"), "'soon' is not a release of Kafka"),
        (("--nodes", "0"), "at least one node"),
        (("--tls", "key=x"), "needs cert"),
        (("--tls", "cert=/no/such/file"), "cert /no/such/file: No such file"),
        (("--tls", f"cert={__file__}"), f"{__file__} is not a certificate in PEM form"),
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
def test_words_that_mean_nothing_are_reported_in_one_line(words: tuple[str, ...], says: str) -> None:
    assert says in refused("--port", "0", *words, code=2)


def test_unknown_options_are_reported_with_the_command_s_own_usage() -> None:
    result = quick_start.run([*COMMAND, "--prot", "1"], text=True)
    assert result.returncode == 2
    assert result.stderr.startswith("purekafka broker: unknown option --prot: did you mean --port?")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_an_unwritable_output_is_reported_in_one_line() -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        words = [sys.executable, "-m", "kafka", "protocol", "list"]
        result = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert (result.returncode, result.stderr) == (
        1,
        "purekafka protocol list: standard output: No space left on device\n",
    )


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
