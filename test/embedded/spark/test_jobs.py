"""Jobs from a shell: copies, dumps, lag, plans, and a pipeline that is stopped and goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from kafka.broker import Broker
from kafka.cli import main
from kafka.producer import KafkaProducer
from kafka.spark.progress import committed_offsets
from test.spark_runs.quick_start import QUICK_JAVA

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

#: How long a job may take to do what is waited for, on a machine with much other work.
PATIENCE = 400.0
TOO_BUSY = "Python worker failed to connect back"
LOCAL = ("--master", "local[2]", "-c", "spark.driver.memory=1g", "-c", f"spark.driver.extraJavaOptions={QUICK_JAVA}")
BEGIN, MINUTE = datetime(2026, 1, 1, tzinfo=timezone.utc), timedelta(minutes=1)
SCHEMA = "number bigint, user string, at timestamp"


class ClientCache:
    """The session of all tests, which a job may not stop."""

    def __init__(self, session: Any) -> None:
        self._session = session

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def stop(self) -> None:
        pass


@pytest.fixture
def job(spark: Any, broker: Broker, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Return what runs a job in this process, over ``events`` of the broker."""
    monkeypatch.setattr("kafka.spark.session.local_session", lambda *_, **__: ClientCache(spark))

    def run(name: str, *words: str) -> int:
        for _ in range(8):  # where the machine was too busy to start Spark's process in 10 seconds
            code = main(["spark", name, "-b", broker.bootstrap_servers, "--source", "events", *words])
            if code == 0:
                break
        return code

    return run


def fill(broker: Broker, numbers: range) -> None:
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for number in numbers:
            key = b"k%d" % number if number % 2 else None
            headers = [("n", b"%d" % number)] if number % 3 else None
            producer.send("events", event(number), key, headers, partition=number % 2)


def event(number: int) -> bytes:
    at = BEGIN + number // 100 * MINUTE
    return json.dumps({"number": number, "user": f"u{number % 3}", "at": at.isoformat()}).encode()


def contents(broker: Broker, topic: str) -> list[tuple[Any, ...]]:
    return sorted((record.value, record.key, tuple(record.headers)) for record in broker.records(topic))


# Without Spark.


def test_a_plan_shows_the_offsets_of_each_task(broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    fill(broker, range(100))
    words = ["spark", "plan", "-b", broker.bootstrap_servers, "--source", "events"]
    assert main([*words, "--batch", "-O", "minPartitions=4"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "100 offsets in 2 partitions",
        "task 0: events-0 0 to 25",
        "task 1: events-0 25 to 50",
        "task 2: events-1 0 to 25",
        "task 3: events-1 25 to 50",
    ]
    assert main([*words, "-O", 'startingOffsets={"events":{"0":40,"1":-2}}']) == 0
    assert capsys.readouterr().out.splitlines() == [
        "60 offsets in 2 partitions",
        "task 0: events-0 40 to 50, events-1 0 to 50",
    ]
    assert main(words) == 0  # as `run` and `copy` would
    assert capsys.readouterr().out.splitlines() == [
        "100 offsets in 2 partitions",
        "task 0: events-0 0 to 50, events-1 0 to 50",
    ]
    assert main([*words, "-O", "maxOffsetsPerTrigger=10"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "10 offsets in 2 partitions, the first batch of 100",
        "task 0: events-0 0 to 5, events-1 0 to 5",
    ]
    assert main([*words, "--batch", "-O", "startingOffsets=latest"]) == 2
    assert "starting offset can't be latest for batch queries on Kafka" in capsys.readouterr().err


def test_lag_is_what_the_checkpoints_have_not_reached(
    broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(broker, range(100))

    def lag(directory: Path | str) -> str:
        words = ["spark", "lag", "-b", broker.bootstrap_servers, "--checkpoint", str(directory)]
        assert main(words) == 0
        return capsys.readouterr().out

    def note(directory: Path, batch: int, offsets: dict[str, int], *, done: bool) -> None:
        for name in ("offsets", "commits"):
            (directory / name).mkdir(parents=True, exist_ok=True)
        text = json.dumps({"events": offsets})
        (directory / "offsets" / str(batch)).write_text(f'v1\n{{"batchWatermarkMs":0}}\n{text}', encoding="utf-8")
        if done:
            (directory / "commits" / str(batch)).write_text('v1\n{"nextBatchWatermarkMs":0}', encoding="utf-8")

    note(tmp_path / "topic", 0, {"0": 20, "1": 30}, done=True)
    note(tmp_path / "topic", 1, {"0": 50, "1": 50}, done=False)
    assert lag(tmp_path / "topic").split()[-2:] == ["all", "50"]
    # Of several queries in a directory the one that is behind counts; partitions that none has seen count whole.
    note(tmp_path / "parquet", 0, {"0": 45}, done=True)
    lines = [line.split() for line in lag(tmp_path).splitlines()]
    assert lines == [
        ["partition", "processed", "latest", "lag"],
        ["events-0", "20", "50", "30"],
        ["events-1", "30", "50", "20"],
        ["all", "50"],
    ]
    words = ["spark", "lag", "-b", broker.bootstrap_servers, "--checkpoint", str(tmp_path), "-f", "json"]
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out) == [
        {"topic": "events", "partition": 0, "processed": 20, "latest": 50, "lag": 30},
        {"topic": "events", "partition": 1, "processed": 30, "latest": 50, "lag": 20},
    ]
    for limit, code in (("29", 4), ("30", 0)):
        assert main([*words, "--fail-above", limit]) == code
        assert len(json.loads(capsys.readouterr().out)) == 2
    assert main([*words, "--fail-above", "25", "--min-lag", "30", "-q"]) == 4
    assert main([*words, "--fail-above", "25", "--min-lag", "31"]) == 4, "rows that are not shown fail too"
    capsys.readouterr()
    assert lag(f"file:{tmp_path}") == lag(f"file://{tmp_path}") == lag(tmp_path)
    for place, said in ((str(tmp_path / "no"), "is not a checkpoint"), ("hdfs://n/c", "commitOffsetsToGroup")):
        assert main(["spark", "lag", "-b", broker.bootstrap_servers, "--checkpoint", place]) == 2
        assert said in capsys.readouterr().err


# In the session of all tests.


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("how", [[], pytest.param(["--exactly-once"], marks=pytest.mark.soak)], ids=len)
def test_a_copy_has_keys_and_headers_and_continues_where_it_was(
    job: Any, broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str], how: list[str]
) -> None:
    for numbers in (range(50), range(50, 70)):
        fill(broker, numbers)
        words = ["--sink", "out", "--checkpoint", str(tmp_path / "c"), "--trigger", "available-now", *how]
        assert job("copy", *words) == 0
        shown = capsys.readouterr().err
        assert f"{len(numbers)} rows" in shown.splitlines()[-1]
        assert "copy: batch" in shown
        assert "lag 0" in shown
    assert contents(broker, "out") == contents(broker, "events")
    assert main(["spark", "lag", "-b", broker.bootstrap_servers, "--checkpoint", str(tmp_path / "c")]) == 0
    assert capsys.readouterr().out.split()[-2:] == ["all", "0"]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_dump_has_every_column_and_is_not_written_over(
    job: Any, broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import pyarrow.parquet as pq

    fill(broker, range(100))
    target = tmp_path / "events"
    assert job("dump", "--parquet", str(target)) == 0
    assert f"100 records in {target}" in capsys.readouterr().out
    rows = pq.read_table(target).to_pylist()
    found = sorted(
        (row["value"], row["key"], tuple((each["key"], each["value"]) for each in row["headers"] or ())) for row in rows
    )
    assert found == contents(broker, "events")
    assert {(row["topic"], row["partition"], row["offset"]) for row in rows} == {
        ("events", number % 2, number // 2) for number in range(100)
    }
    words = ["spark", "dump", "-b", broker.bootstrap_servers, "--source", "events", "--parquet", str(target)]
    assert main(words) == 1
    said = capsys.readouterr().err
    assert "already exists" in said
    assert "Traceback" not in said
    assert len(said.splitlines()) < 5


# In processes of their own.


class Job:
    """A job that runs until it is asked to stop."""

    def __init__(self, log: Path, words: list[str]) -> None:
        self._log = log
        with log.open("ab") as out:
            self.process = subprocess.Popen([sys.executable, "-m", "kafka", "spark", *words], stdout=out, stderr=out)

    @property
    def shown(self) -> str:
        return self._log.read_text(errors="replace", encoding="utf-8")

    def reaches(self, *words: str) -> bool:
        """Wait until it has shown some words; False where the machine was too busy to start Spark's processes."""
        deadline = time.monotonic() + PATIENCE
        while not all(each in self.shown for each in words):
            if self.process.poll() is not None:
                assert TOO_BUSY in self.shown, self.shown[-4000:]
                return False
            assert time.monotonic() < deadline, self.shown[-4000:]
            time.sleep(0.05)
        return True

    def stop(self, number: int) -> None:
        os.kill(self.process.pid, number)
        assert self.process.wait(PATIENCE) == 0, self.shown[-4000:]


@contextmanager
def running(log: Path, *words: str) -> Iterator[Job]:
    job = Job(log, list(words))
    try:
        yield job
    finally:
        if job.process.poll() is None:
            job.process.kill()
            job.process.wait()


@contextmanager
def filling(broker: Broker, first: int) -> Iterator[list[int]]:
    """Produce events one after the other; the list has where it ended."""
    done, ended = threading.Event(), [first]

    def produce() -> None:
        while not done.is_set():
            fill(broker, range(ended[0], ended[0] + 20))
            ended[0] += 20
            done.wait(0.2)

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        yield ended
    finally:
        done.set()
        thread.join()


def pipeline(broker: Broker, checkpoint: Path, parquet: Path, trigger: str) -> list[str]:
    words = ["run", "-b", broker.bootstrap_servers, "--source", "events", "--schema", SCHEMA, "--event-time", "at"]
    words += ["--window", "1 minute", "--watermark", "0 seconds", "--group-by", "user", "--sum", "number"]
    words += ["--sink", "out", "--parquet", str(parquet), "--checkpoint", str(checkpoint), "--trigger", trigger]
    return words


def assert_counted_once(found: list[dict[str, Any]], numbers: int) -> None:
    """Each window and user is there once, with all events of it; the last one is not over yet."""
    expected: Counter[tuple[int, str]] = Counter((number // 100, f"u{number % 3}") for number in range(numbers))
    last = max(window for window, _ in expected)
    events = {(each["window"], each["user"]): each["events"] for each in found}
    assert len(events) == len(found)
    assert events == {key: count for key, count in expected.items() if key[0] < last}


def assert_all_counted(broker: Broker, parquet: Path, numbers: int) -> None:
    import pyarrow.parquet as pq

    rows = [json.loads(record.value or b"") for record in broker.records("out")]
    for row in rows:
        start = datetime.fromisoformat(row["window_start"].replace("Z", "+00:00"))
        row["window"] = (start - BEGIN) // MINUTE
    assert_counted_once(rows, numbers)
    rows = pq.read_table(parquet, columns=["window_start", "user", "events"]).to_pylist()
    for row in rows:
        row["window"] = (row["window_start"].replace(tzinfo=timezone.utc) - BEGIN) // MINUTE
    assert_counted_once(rows, numbers)


def run_until_stopped(log: Path, number: int, words: list[str], *shown: str) -> str:
    """Run a job until it has shown some words, and stop it by a signal; return all that it showed."""
    for _ in range(8):
        log.write_bytes(b"")
        with running(log, *words, *LOCAL) as process:
            if process.reaches(*shown):
                process.stop(number)
                return process.shown
    raise AssertionError(log.read_text(encoding="utf-8")[-4000:])


@contextmanager
def signalled(number: int, *when: Path) -> Iterator[None]:
    """Send this process a signal as soon as some files are there."""
    done = threading.Event()
    before = signal.signal(number, lambda *_: None)  # should the job not listen, the tests go on

    def send() -> None:
        deadline = time.monotonic() + PATIENCE
        while not all(path.exists() for path in when) and time.monotonic() < deadline:
            if done.wait(0.05):
                return
        os.kill(os.getpid(), number)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        signal.signal(number, before)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_pipeline_that_is_stopped_continues_without_loss_or_repeat(
    job: Any, broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint, parquet = tmp_path / "checkpoint", tmp_path / "parquet"
    fill(broker, range(1000))
    words = pipeline(broker, checkpoint, parquet, "1 second")
    with filling(broker, 1000) as ended, signalled(signal.SIGTERM, checkpoint / "topic" / "commits" / "2"):
        assert job("run", *words[5:]) == 0
    shown = capsys.readouterr().err
    assert "stopping after the batch in hand" in shown
    assert "rows/s, lag " in shown
    go_on_and_count(job, broker, checkpoint, parquet, ended[0])


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_copy_that_is_stopped_with_much_to_read_repeats_nothing(
    job: Any, broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(broker, range(2000))
    checkpoint = tmp_path / "checkpoint"
    words = ["--sink", "out", "--checkpoint", str(checkpoint), "-O", "maxOffsetsPerTrigger=20"]
    with signalled(signal.SIGTERM, checkpoint / "commits" / "2"):
        assert job("copy", *words, "--trigger", "0 seconds") == 0
    shown = capsys.readouterr().err
    assert "stopping after the batch in hand" in shown
    assert "done again" not in shown
    read = sum(committed_offsets(checkpoint).values())
    assert read == len(contents(broker, "out")) < 2000
    assert not (checkpoint / "offsets" / str(last_batch(checkpoint) + 1)).exists()


def last_batch(checkpoint: Path) -> int:
    return max(int(path.name) for path in (checkpoint / "commits").iterdir() if path.name.isdigit())


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_process_that_is_stopped_continues_without_loss_or_repeat(
    job: Any, broker: Broker, tmp_path: Path, number: int
) -> None:
    checkpoint, parquet = tmp_path / "checkpoint", tmp_path / "parquet"
    fill(broker, range(1000))
    with filling(broker, 1000) as ended:
        words = pipeline(broker, checkpoint, parquet, "1 second")
        run_until_stopped(tmp_path / "log", number, words, "topic: batch 2", "parquet: batch 1")
    go_on_and_count(job, broker, checkpoint, parquet, ended[0])


def go_on_and_count(job: Any, broker: Broker, checkpoint: Path, parquet: Path, numbers: int) -> None:
    # A later event ends the windows before it; the last batch of available-now writes them.
    fill(broker, range(numbers, numbers + 100))
    assert job("run", *pipeline(broker, checkpoint, parquet, "available-now")[5:]) == 0
    assert_all_counted(broker, parquet, numbers + 100)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_copy_that_is_stopped_repeatedly_has_each_record_once(broker: Broker, tmp_path: Path, number: int) -> None:
    words = ["copy", "-b", broker.bootstrap_servers, "--source", "events", "--sink", "out"]
    words += ["--checkpoint", str(tmp_path / "checkpoint"), "--trigger", "500 milliseconds"]
    ended = [0]
    for turn in range(3):
        with filling(broker, ended[0]) as ended:
            # Batches are numbered on from the checkpoint.
            run_until_stopped(tmp_path / "log", number, words, f"copy: batch {3 * turn + 2}")
    while contents(broker, "out") != contents(broker, "events"):
        with running(tmp_path / "last", *words[:-1], "available-now", *LOCAL) as process:
            assert process.process.wait(PATIENCE) == 0 or TOO_BUSY in process.shown, process.shown[-4000:]
    assert len(contents(broker, "events")) == ended[0]
