"""What a failing program shows: the cause on the first screen or last, and no more lines around it than Spark's own."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import kafka
from kafka.broker import Broker
from kafka.cli import main
from kafka.client_async import KafkaClient
from kafka.protocol.admin import DeleteRecordsRequest

from .programs import Programs

FAILING = Path(__file__).with_name("failing_programs.py")
#: The lines of a terminal.
SCREEN = 25
#: What Spark prints when it starts, before a program can fail, and the most that one of its Java stacks has.
BANNER = 10
#: Lines in all, most of them Java's stacks: of a batch query that fails before its tasks (a screen), of a streaming
#: query before its first batch, of one that fails while a batch is planned, and of a batch or a streaming query of
#: which a task fails, whose stack Spark prints two to four times; a task that writes has a longer one.
PLANNED, STARTED, IN_BATCH, TASK, WRITE_TASK, STREAM_TASK = 25, 85, 150, 100, 140, 280
#: Progress bars, and what Spark says of the python3 on the path, which is a wrong one here.
_NOT_OURS = re.compile(
    r"^\[Stage .*|^.* WARN DataSourceManager: Skipping the lookup.*\n\S.*\n(\tat .*\n)+", re.MULTILINE
)
JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required username='alice' password='no';"
IMPATIENT = {
    "startingOffsets": "earliest",
    "kafka.request.timeout.ms": "3000",
    "kafka.default.api.timeout.ms": "3000",
    "kafkaConsumer.pollTimeoutMs": "3000",
    "fetchOffset.numRetries": "1",
    "fetchOffset.retryIntervalMs": "10",
}


class Case(NamedTuple):
    """A program that fails."""

    name: str
    options: dict[str, str]
    cause: str
    most: dict[str, int]
    """How many lines it may print, by the kind of program."""


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Case]]:
    """Return the programs, whose brokers run until all have failed."""
    sasl = [("PLAIN", "alice", "secret")]
    with (
        Broker(topics={"events": 1}) as plain,
        Broker(topics={"events": 1}, sasl=sasl) as secure,
        Broker(topics={"events": 1}) as cut,
        Broker(topics={"events": 1}) as damaged,
    ):
        for broker in (plain, cut, damaged):
            broker.append_many("events", [b"%d" % number for number in range(200)])
        remove_before(cut, 150)
        damaged.intercept("Fetch", damage)
        early = {"batch": PLANNED, "stream": STARTED}
        task = {"batch": TASK, "stream": STREAM_TASK}

        def at(broker: Broker) -> dict[str, str]:
            return {**IMPATIENT, "kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": "events"}

        password = {"kafka.security.protocol": "SASL_PLAINTEXT", "kafka.sasl.mechanism": "PLAIN"}
        yield [
            Case("no broker", {**at(plain), "kafka.bootstrap.servers": "127.0.0.1:9"}, "127.0.0.1:9", early),
            Case("missing topic", {**at(plain), "subscribe": "evnets"}, "Topic 'evnets' does not exist", early),
            Case(
                "wrong password",
                {**at(secure), **password, "kafka.sasl.jaas.config": JAAS},
                "Invalid username or password",
                {"batch": PLANNED},  # a stream's way to the screen is the one of the missing topic
            ),
            Case(
                "wrong option",
                {**at(plain), "startingOffset": "latest"},
                "has no option 'startingoffset': did you mean 'startingOffsets'?",
                {"batch": PLANNED, "stream": PLANNED},
            ),
            Case("wrong protocol", {**at(plain), "kafka.security.protocol": "SSL"}, "TLS", {"batch": PLANNED}),
            Case(
                "beyond the end",
                {**at(plain), "startingOffsets": '{"events":{"0":1000}}'},
                "1000",
                {"batch": PLANNED, "stream": IN_BATCH},
            ),
            Case(
                "lost records",
                {**at(cut), "startingOffsets": '{"events":{"0":20}}'},
                "Could not read records in offset [20, 200) for topic partition events-0. Those left begin at 150.",
                task,
            ),
            Case("damaged records", at(damaged), "its checksum, size or layout is wrong", {"batch": TASK}),
            Case(
                "a row without a topic",
                {
                    "kafka.bootstrap.servers": plain.bootstrap_servers,
                    "sql": "select 'x' value, cast(null as string) topic",
                },
                "contains a null topic",
                {"write": WRITE_TASK},
            ),
        ]


def remove_before(broker: Broker, offset: int) -> None:
    with KafkaClient(bootstrap_servers=broker.bootstrap_servers) as client:
        topics = [{"name": "events", "partitions": [{"partition_index": 0, "offset": offset}]}]
        client.ask(DeleteRecordsRequest(topics=topics, timeout_ms=5000), broker.leader("events", 0))


def damage(exchange: Any) -> None:
    for topic in exchange.reply.responses:
        for partition in topic.partitions:
            if partition.records:
                data = bytearray(bytes(partition.records))
                data[17] ^= 0xFF  # the checksum's first byte
                partition.records = bytes(data)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_program_shows_the_cause_on_the_first_screen_or_last(
    cases: list[Case], one_process: Programs, tmp_path: Path
) -> None:
    wrong = {}
    for case in cases:
        for kind, most in case.most.items():
            name = f"{case.name}, {kind}"
            banner = 0 if one_process.have_run else BANNER
            options = {**case.options, "checkpoint": str(tmp_path / name)} if kind == "stream" else case.options
            _, shown = one_process.run(FAILING, kind, json.dumps(options))
            lines = [line for line in _NOT_OURS.sub("", shown).splitlines() if line.strip()]
            at = [index for index, line in enumerate(lines, 1) if case.cause in line]
            print(f"{name}: {len(lines)} lines, the cause in {at}")
            is_early = bool(at) and at[0] <= SCREEN - BANNER + banner
            is_last = bool(at) and len(lines) - at[-1] <= 1  # SQLSTATE has a line of its own
            # Frames of this library tell a user nothing.
            has_frames = any(re.match(rf'\s*File ".*{os.sep}kafka{os.sep}', line) for line in lines)
            if not (is_early or is_last) or len(lines) > most + banner or has_frames:
                wrong[name] = [at, len(lines), *lines]
    assert not wrong, json.dumps(wrong, indent=1)


JOB = ["spark", "copy", "--sink", "out"]


@pytest.mark.parametrize("name", ["no broker", "missing topic", "wrong password", "wrong option", "wrong protocol"])
def test_a_job_says_before_spark_starts_what_is_wrong_in_one_line(
    cases: list[Case], name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(*_: Any, **__: Any) -> None:
        raise AssertionError("Spark is not to be started")

    monkeypatch.setattr("kafka.spark.session.local_session", start)
    case = next(each for each in cases if each.name == name)
    options = dict(case.options)
    words = [*JOB, "-b", options.pop("kafka.bootstrap.servers"), "--source", options.pop("subscribe")]
    words += [word for option, value in options.items() for word in ("-O", f"{option}={value}")]
    assert main([*words, "--checkpoint", str(tmp_path)]) in {1, 2}
    lines = capsys.readouterr().err.splitlines()
    assert case.cause in lines[-1]
    assert lines[-1].startswith("purekafka spark copy: ")
    assert len([line for line in lines if line.startswith("purekafka")]) == 1


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("verbose", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_a_job_that_fails_on_spark_ends_with_the_cause_and_shows_stacks_only_where_asked_to(
    cases: list[Case], one_process: Programs, verbose: bool, tmp_path: Path
) -> None:
    case = next(each for each in cases if each.name == "lost records")
    options = dict(case.options)
    words = [*JOB, "-b", options.pop("kafka.bootstrap.servers"), "--source", options.pop("subscribe")]
    words += [word for option, value in options.items() for word in ("-O", f"{option}={value}")]
    words += ["--checkpoint", str(tmp_path / "checkpoint"), "--trigger", "available-now", "--master", "local[1]"]
    words += ["--verbose"] if verbose else []
    code, shown = one_process.run(Path(kafka.__file__).with_name("__main__.py"), *words)
    assert code == 1, shown
    lines = shown.splitlines()
    print(f"{len(lines)} lines")
    assert lines[-1].startswith("purekafka spark copy: the query copy failed: ")
    assert case.cause in lines[-1]
    if verbose:
        assert any(line.lstrip().startswith("at org.apache.spark") for line in lines)
        assert any("range_position.py" in line for line in lines)
    else:
        assert len(lines) <= SCREEN, shown
        assert sum(case.cause in line for line in lines) == 1
