"""Processes of Spark that are killed: each row of an exactly-once sink is seen once, whatever died and when.

Each is several minutes of Spark starting, so they run with ``-m soak``.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from kafka.broker import Broker
from kafka.producer import KafkaProducer

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'purekafka[spark]'")
pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]

ROWS = 20_000
PATIENCE = 300.0


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(nodes=2, topics={"events": 2, "out": 2}) as running:
        with KafkaProducer(bootstrap_servers=running.bootstrap_servers) as producer:
            for number in range(ROWS):
                producer.send("events", b"%d" % number, partition=number % 2)
        yield running


def start(broker: Broker, checkpoint: Path, master: str) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "test.embedded.spark.job", broker.bootstrap_servers, str(checkpoint), master]
    with (checkpoint.parent / "job.log").open("ab") as log:
        return subprocess.Popen(words, stdout=log, stderr=log)


def kill_all(job: subprocess.Popen[bytes]) -> None:
    """Kill the driver and all that it started, as when the machine is gone."""
    for pid in (job.pid, *descendants(job.pid)):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    job.wait()


def descendants(root: int) -> Iterator[int]:
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            parents.setdefault(parent, []).append(int(entry.name))
    found = [root]
    for pid in found:
        found += parents.get(pid, [])
    return iter(found[1:])


def workers(root: int) -> list[int]:
    """Return the processes in which tasks run: the daemons' children."""

    def is_daemon(pid: int) -> bool:
        try:
            return b"pyspark.daemon" in Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return False

    daemons = [pid for pid in descendants(root) if is_daemon(pid)]
    return [pid for pid in daemons if any(pid in descendants(other) for other in daemons if other != pid)]


def wait_for(condition: Callable[[], bool], job: subprocess.Popen[bytes]) -> bool:
    """Wait until something holds; False if the job ended before."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if job.poll() is not None:
            return False
        assert time.monotonic() < deadline, "the job does not get on"
        time.sleep(0.1)
    return True


def run_to_the_end(broker: Broker, checkpoint: Path, master: str) -> None:
    for _ in range(5):  # on a busy machine Spark's own processes may be too slow for it to start
        job = start(broker, checkpoint, master)
        try:
            if job.wait(PATIENCE) == 0:
                return
        finally:
            if job.poll() is None:
                kill_all(job)
    raise AssertionError((checkpoint.parent / "job.log").read_text()[-4000:])


def written(broker: Broker) -> int:
    return sum(broker.offsets("out", partition)[1] for partition in range(2))


def assert_each_once(broker: Broker) -> None:
    found = sorted(int(record.value or b"") for record in broker.records("out", committed=True))
    assert found == list(range(ROWS))


def test_a_driver_that_is_killed_again_and_again(broker: Broker, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    rng = random.Random(1)
    for _ in range(3):
        before = written(broker)
        job = start(broker, checkpoint, "local[2]")
        try:
            wait_for(lambda before=before: written(broker) > before, job)  # type: ignore[misc]
            time.sleep(rng.uniform(0, 1.5))  # anywhere within a batch
        finally:
            kill_all(job)
    run_to_the_end(broker, checkpoint, "local[2]")
    assert_each_once(broker)


def test_workers_that_are_killed_in_their_tasks(broker: Broker, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    rng = random.Random(2)
    killed = 0
    job = start(broker, checkpoint, "local[2,20]")
    try:
        while killed < 8 and wait_for(lambda: bool(workers(job.pid)), job):
            time.sleep(rng.uniform(0, 1.0))
            for pid in workers(job.pid)[:1]:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    killed += 1
        job.wait(PATIENCE)
    finally:
        if job.poll() is None:
            kill_all(job)
    run_to_the_end(broker, checkpoint, "local[2,20]")
    assert killed
    assert_each_once(broker)


def test_two_executors_on_a_cluster(broker: Broker, tmp_path: Path) -> None:
    run_to_the_end(broker, tmp_path / "checkpoint", "local-cluster[2,1,1024]")
    assert_each_once(broker)
