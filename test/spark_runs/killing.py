"""Running `test.spark_runs.job`, killing it or parts of it, and what its copy has to be."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kafka import KafkaConsumer, KafkaProducer
from kafka.structs import TopicPartition

__all__ = [
    "Job",
    "Plan",
    "copied",
    "executors",
    "fill",
    "job",
    "kill_all",
    "kill_at",
    "log_end",
    "log_tail",
    "run_to_the_end",
    "wait_for",
    "was_too_slow",
    "workers",
]

#: How long the first thing may take: Spark is in its second batch after 20 s here, after 280 s on a starved machine.
PATIENCE = 600.0
ATTEMPTS = 5  # on a busy machine
TOO_SLOW = "Timed out while waiting for the Python worker to connect back"
PARTITIONS = 2
_DIES_WITH_US = [sys.executable, "-I", str(Path(__file__).parents[1] / "real" / "_launcher.py")]


@dataclass
class Plan:
    """What the program does."""

    servers: str
    home: str
    """A directory of this copy's own: for the checkpoint, the log, and the files of those that stand still."""
    master: str = "local[2,8]"
    source: str = "events"
    target: str = "out"
    exactly_once: bool = True
    start: str = "earliest"
    batch: int = 2000

    @property
    def checkpoint(self) -> Path:
        """Where the query keeps how far it is."""
        return Path(self.home, "checkpoint")

    def stalled(self, point: str) -> int | None:
        """The process that stands still at a point; None as long as there is none."""
        with suppress(FileNotFoundError):
            return int(Path(self.home, point).read_text(encoding="utf-8"))
        return None

    def command(self, stalls: Sequence[str]) -> list[str]:
        """What to run."""
        given = {**asdict(self), "checkpoint": str(self.checkpoint), "stalls": list(stalls), "stalls_in": self.home}
        return [sys.executable, "-m", "test.spark_runs.job", json.dumps(given)]


class Job(subprocess.Popen[bytes]):
    """The running program."""

    def __init__(self, *words: Any, **how: Any) -> None:
        self._began = time.monotonic()
        super().__init__(*words, **how)

    @property
    def patience(self) -> float:
        """How long the next thing may take: three times as long as it took to come so far, on a slow machine.

        Executors that are killed are started again, with Python, which is most of what the job did before. That takes
        7 s here, and took 305 where Java alone took 76 s to start: each step was as slow, and none was a timeout.
        """
        return max(PATIENCE, 3 * (time.monotonic() - self._began))


@contextmanager
def job(plan: Plan, *stalls: str) -> Iterator[Job]:
    """Run the program; whatever is left of it at the end is killed."""
    for point in stalls:
        Path(plan.home, point).unlink(missing_ok=True)
    with Path(plan.home, "job.log").open("wb") as log:
        command = [*_DIES_WITH_US, str(os.getpid()), *plan.command(stalls)]
        # Whoever is killed leaves its temporary files.
        temporary = {"TMPDIR": plan.home, "JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={plan.home}"}
        process = Job(command, stdout=log, stderr=log, env={**os.environ, **temporary})
    try:
        yield process
    finally:
        kill_all(process)


def kill_all(process: Job) -> None:
    """Kill the driver and all that it started, as when the machine is gone."""
    if process.poll() is None:
        for pid in (process.pid, *descendants(process.pid)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    process.wait()


def descendants(root: int) -> list[int]:
    """All processes that a process has started, and these in turn."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                parent = int((entry / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])
                parents.setdefault(parent, []).append(int(entry.name))
    found = [root]
    for pid in found:
        found += parents.get(pid, [])
    return found[1:]


def _command_of(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def workers(root: int) -> list[int]:
    """Return the processes in which tasks run: the daemons' children."""
    daemons = [pid for pid in descendants(root) if b"pyspark.daemon" in _command_of(pid)]
    return [pid for pid in daemons if any(pid in descendants(other) for other in daemons if other != pid)]


def executors(root: int) -> list[int]:
    """Return the Java machines of a cluster's executors."""
    return [pid for pid in descendants(root) if b"CoarseGrainedExecutorBackend" in _command_of(pid)]


def wait_for(condition: Callable[[], object], process: Job, plan: Plan | None = None) -> bool:
    """Wait until something holds; False if the job ended before."""
    deadline = time.monotonic() + process.patience
    while not condition():
        if process.poll() is not None:
            return False
        assert time.monotonic() < deadline, f"the job does not get on\n{log_tail(plan)}"
        time.sleep(0.02)
    return True


def kill_at(plan: Plan, point: str, ready: Callable[[], object] = lambda: True) -> None:
    """Run the program until it stands still at a point (and something else holds); kill all of it there."""
    for _ in range(ATTEMPTS):
        with job(plan, point) as process:
            if wait_for(lambda: plan.stalled(point) is not None and ready(), process, plan):
                return
        assert was_too_slow(plan), f"the job ended before {point}\n{log_tail(plan)}"
    raise AssertionError(log_tail(plan))


def run_to_the_end(plan: Plan) -> None:
    """Run the program and wait until it is done."""
    for _ in range(ATTEMPTS):
        with job(plan) as process, suppress(subprocess.TimeoutExpired):
            if process.wait(PATIENCE) == 0:
                return
    raise AssertionError(log_tail(plan))


def was_too_slow(plan: Plan) -> bool:
    """Whether the last run ended because Spark gives its own processes ten seconds to start."""
    return TOO_SLOW in log_tail(plan, 20_000)


def log_tail(plan: Plan | None, length: int = 4000) -> str:
    if plan is None:
        return ""
    with suppress(FileNotFoundError):
        return Path(plan.home, "job.log").read_text(errors="replace", encoding="utf-8")[-length:]
    return "(no log)"


# What is copied.


def fill(servers: str, topic: str, numbers: range) -> None:
    """Write numbers to the two partitions of a topic in turn."""
    with KafkaProducer(bootstrap_servers=servers) as producer:
        for number in numbers:
            producer.send(topic, b"%d" % number, partition=number % PARTITIONS)


def log_end(servers: str, topic: str) -> int:
    """How long a topic's log is, with all that is not committed in it."""
    with KafkaConsumer(bootstrap_servers=servers) as consumer:
        return sum(consumer.end_offsets([TopicPartition(topic, partition) for partition in range(PARTITIONS)]).values())


def copied(servers: str, topic: str, *, committed: bool = True) -> Counter[int]:
    """How often each number is in a topic, as a consumer of committed records sees it."""
    where = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
    found: Counter[int] = Counter()
    deadline = time.monotonic() + PATIENCE
    level = "read_committed" if committed else "read_uncommitted"
    with KafkaConsumer(bootstrap_servers=servers, isolation_level=level, auto_offset_reset="earliest") as reader:
        reader.assign(where)
        ends = reader.end_offsets(where)
        while any(reader.position(each) < ends[each] for each in where):
            assert time.monotonic() < deadline, "reading the copy takes too long"
            for records in reader.poll(500).values():
                found.update(int(record.value or b"-1") for record in records)
    return found
