"""Start-up, throughput, completion and views: the promises with a figure."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.broker import Broker
from kafka.cli.completion import candidates
from test.speed import slowness

from .conftest import Shell
from .shell import run

# The measure is CPU time beside that of modules of Python itself: a processor may take 1.5 times as long in one minute
# as in another. Where the limits were set, these took 0.1 s.
_RUNS = 5
_REFERENCE = "import asyncio, argparse, email.message, http.client, inspect, ssl, unittest.mock, xml.dom.minidom"


def cpu(words: list[str]) -> float:
    """Return the CPU seconds of a process."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], env=env, check=True, capture_output=True, timeout=60)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def assert_takes(limit: float, words: list[str]) -> None:
    """Compare the least of some runs each: what else a machine does only adds to them."""
    cpu(words)  # compiles the modules
    rounds = [(cpu(words), cpu(["-c", _REFERENCE])) for _ in range(_RUNS)]
    spent, reference = map(min, zip(*rounds, strict=True))
    assert spent < limit * max(1.0, reference / 0.1), f"{spent * 1000:.0f} ms, the reference {reference * 1000:.0f} ms"


@pytest.mark.parametrize(
    "words", [["--version"], ["--help"], ["topics", "--help"], ["completion", "words", "--", "top"]]
)
def test_c1_help_version_and_completion_take_100_ms(words: list[str]) -> None:
    assert_takes(0.1, ["-m", "kafka", *words])


@pytest.mark.alone
def test_c1_a_list_of_topics_takes_300_ms(broker: Broker) -> None:
    assert_takes(0.3, ["-m", "kafka", "topics", "list", "-b", broker.bootstrap_servers])


def test_c1_no_command_imports_rich_and_help_imports_no_client() -> None:
    script = (
        "import sys; from kafka.cli import main; main(['--help']); "
        "heavy = {'rich', 'kafka.producer', 'kafka.consumer', 'kafka.admin', 'kafka.broker', 'asyncio', 'ssl'}; "
        "sys.exit(', '.join(sorted(heavy & set(sys.modules))) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.alone
def test_c14_consume_prints_at_half_the_rate_of_poll(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """CPU of reading and printing 100,000 records against poll() alone, in one process each time."""
    values = [b'{"user": %d, "text": "%s"}' % (number, b"x" * (number % 200)) for number in range(20_000)]
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for _ in range(5):
            producer.send_many("orders", values)
    count = len(values) * 5
    servers = broker.bootstrap_servers

    def polled() -> float:
        begun = time.thread_time()
        with KafkaConsumer(bootstrap_servers=servers, group_id=None, auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition("orders", 0)])
            read = 0
            while read < count:
                read += sum(map(len, consumer.poll(500, max_records=5000).values()))
        return time.thread_time() - begun

    def printed(layout: str) -> float:
        begun = time.thread_time()
        assert len(run(f"purekafka consume orders -f {layout} -b {servers}").raw.splitlines()) == count
        return time.thread_time() - begun

    for layout, share in (("value", 0.5), ("jsonl", 0.25)):
        # The best of three: on a busy machine the network thread does more of poll()'s work, which is not counted.
        ratios: list[float] = []
        while max(ratios, default=0.0) < share and len(ratios) < 3:
            ratios.append(polled() / printed(layout))
        assert max(ratios) >= share, f"{layout}: {ratios} of the rate of poll()"


def test_produce_writes_lines_at_half_the_rate_of_send(broker: Broker) -> None:
    """CPU of this thread for 40,000 lines against send() for each."""
    lines = [b'{"user": %d, "text": "%s"}' % (number, b"x" * (number % 200)) for number in range(40_000)]
    data = b"\n".join(lines)
    servers = broker.bootstrap_servers

    def sent() -> float:
        begun = time.thread_time()
        with KafkaProducer(bootstrap_servers=servers) as producer:
            for line in lines:
                producer.send("orders", line)
            producer.flush()
        return time.thread_time() - begun

    def produced() -> float:
        begun = time.thread_time()
        assert run(f"purekafka produce orders -b {servers}", stdin=data).code == 0
        return time.thread_time() - begun

    # The least of up to three each: what else the machine does only adds to them.
    rounds: list[tuple[float, float]] = []
    ratio = 0.0
    while ratio < 0.5 and len(rounds) < 3:
        rounds.append((sent(), produced()))
        ratio = min(one for one, _ in rounds) / min(other for _, other in rounds)
    assert ratio >= 0.5, f"{ratio:.2f} of the rate of send()"


# Completion…


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["to"], {"top", "topics", "tokens"}),
        (["topics", "d"], {"describe", "delete", "dump"}),
        (["topic", "list", "--form"], {"--format"}),
        (["partitions", "reassign", ""], {"plan", "apply", "status", "throttle", "cancel"}),
        (["acls", "list", "--pattern", "pre"], {"prefixed"}),
        (["request", "Metad"], {"Metadata"}),
        (["topics", "list", "-X", "sasl.mech"], {"sasl.mechanism="}),
        (["frobnicate", ""], set()),
    ],
)
def test_c17_words_options_and_values_are_completed(words: list[str], expected: set[str]) -> None:
    assert set(candidates(words)) == expected


def test_c17_live_names_are_completed_and_remembered(
    broker: Broker, shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert shell("purekafka completion words -- consume ev").lines == ["events"]
    broker.forget_requests()
    assert shell("purekafka completion words -- consume or").lines == ["orders"]
    assert not broker.requests, "the names are remembered"
    assert shell("purekafka contexts add prod -b b1:9092").code == 0
    assert shell("purekafka completion words -- topics list --context p").lines == ["prod"]


def test_c17_nothing_is_completed_and_said_when_no_broker_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("kafka.cli.completion._PATIENCE_MS", 300)
    begun = time.monotonic()
    assert run("purekafka completion words -- consume -b 127.0.0.1:1 e") == (0, b"", "")
    assert time.monotonic() - begun < 10


def test_there_is_a_script_for_each_shell() -> None:
    assert "complete -o default -F _purekafka" in run("purekafka completion bash").out
    assert "compdef _purekafka" in run("purekafka completion zsh").out
    assert "complete -c purekafka" in run("purekafka completion fish").out


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_completes_words_and_files_where_a_file_stands(tmp_path: Path) -> None:
    (tmp_path / "plan.json").touch()
    (tmp_path / "purekafka").write_text(f'#!/bin/sh\nexec {sys.executable} -m kafka "$@"\n')
    (tmp_path / "purekafka").chmod(0o755)
    lines = ("topics des", "topics describe --off", "groups lag --by ", "partitions reassign-apply pla")
    program = "\n".join(["purekafka completion fish | source", *(f'complete -C "purekafka {line}"' for line in lines)])
    done = subprocess.run(
        ["fish", "--no-config", "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.stdout.split() == ["describe", "--offline", "group", "partition", "topic", "plan.json"]


def test_c17_bash_completes_words(tmp_path: Path) -> None:
    program = tmp_path / "purekafka"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m kafka "$@"\n')
    program.chmod(0o755)
    script = (
        'eval "$(purekafka completion bash)"; COMP_WORDS=(purekafka topics cre); COMP_CWORD=2; _purekafka; '
        'echo "${COMPREPLY[@]}"'
    )
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", script], env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "create\n", done.stderr


# Views that redraw…


def test_c18_top_leaves_the_terminal_as_it_was(broker: Broker) -> None:
    pty = pytest.importorskip("pty")
    master, slave = pty.openpty()
    words = [sys.executable, "-m", "kafka", "top", "--count", "2", "--interval", "0.1", "-b", broker.bootstrap_servers]
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "80", "LINES": "24"}
    with subprocess.Popen(words, stdout=slave, stderr=slave, env=env) as process:
        os.close(slave)
        shown = b""
        try:
            while data := os.read(master, 65536):
                shown += data
        except OSError:  # the end of a terminal
            pass
        assert process.wait(60) == 0
    os.close(master)
    text = shown.decode()
    assert text.startswith("\x1b[?1049h\x1b[?25l")
    assert text.endswith("\x1b[?25h\x1b[?1049l")
    assert "1 broker, 2 topics, 4 partitions" in text
    assert "CATCHES UP" in text
    lines = text.replace("\x1b[K", "").replace("\r", "").split("\n")
    assert max(len(line.rpartition("\x1b[H")[2]) for line in lines) <= 80


def test_c18_a_view_of_200_groups_takes_a_twentieth_of_a_core(broker: Broker) -> None:
    from kafka import KafkaAdminClient
    from kafka.cli.group_lag import lag_rows
    from kafka.cli.screen import Rates, lag_lines

    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        names = [f"group-{number}" for number in range(200)]
        for name in names:
            admin.alter_group_offsets(name, {("events", 0): 0})
        rates = Rates()
        lag_rows(admin, names)
        found = []
        for _ in range(5):
            begun = time.thread_time()
            rates.next()
            lag_lines(lag_rows(admin, names)[0], rates)
            found.append(time.thread_time() - begun)
    assert min(found) < 0.05 * slowness(), (
        f"{min(found) * 1000:.0f} ms of each second"
    )  # the rest is what else the machine does
