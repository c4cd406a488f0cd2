"""The crash matrix: who is killed, where, and what must have come of it. The broker is whoever calls."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from contextlib import suppress

from test.spark_runs.killing import (
    ATTEMPTS,
    PATIENCE,
    Job,
    Plan,
    copied,
    executors,
    fill,
    job,
    kill_all,
    kill_at,
    log_end,
    log_tail,
    run_to_the_end,
    wait_for,
    was_too_slow,
    workers,
)

__all__ = [
    "anchor_of_a_latest_start",
    "assert_copied",
    "killed_at_random",
    "killed_drivers",
    "killed_executors",
    "killed_workers",
    "workers_killed_at_random",
]


def assert_copied(plan: Plan, rows: int) -> int:
    """Everything is there, and once if that was asked for; returns how many rows are there again."""
    found = copied(plan.servers, plan.target)
    missing = set(range(rows)) - set(found)
    assert not missing, f"{len(missing)} of {rows} rows are missing: {sorted(missing)[:10]}"
    assert set(found) == set(range(rows))
    repeated = found.total() - rows
    assert repeated == 0 or not plan.exactly_once, f"{repeated} rows came twice"
    return repeated


def killed_drivers(plan: Plan) -> None:
    """Kill the driver and all of its processes at each point in turn, and let the query end."""

    def some_are_written() -> bool:
        return log_end(plan.servers, plan.target) > before

    kill_at(plan, "before:1")
    kill_at(plan, "plan:first")  # at restart
    before = log_end(plan.servers, plan.target)
    kill_at(plan, "within:1", some_are_written)
    kill_at(plan, "commit:1")
    run_to_the_end(plan)


def killed_workers(plan: Plan) -> None:
    """Kill the Python workers of tasks at each point in turn."""
    points = ["before:0", "within:1", "after:2", "within:3"]
    while points:
        with job(plan, *points) as process:
            while points and _kill_worker(plan, points[0], process):
                del points[0]
            _wait_for_the_end(plan, process)


def _kill_worker(plan: Plan, point: str, process: Job) -> bool:
    """Kill whoever stands still at a point; False if the job ended before."""
    before = log_end(plan.servers, plan.target)

    def stands() -> bool:
        if plan.stalled(point) is None:
            return False
        return not point.startswith("within") or log_end(plan.servers, plan.target) > before

    if not wait_for(stands, process, plan):
        assert was_too_slow(plan), f"the job ended before {point}"
        return False
    pid = plan.stalled(point)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    return True


def _wait_for_the_end(plan: Plan, process: Job) -> None:
    """The query ends well in spite of what was done to it, unless the machine is too busy for Spark."""
    wait_for(lambda: False, process, plan)  # says what the job has logged if it does not end
    assert process.returncode == 0 or was_too_slow(plan), log_tail(plan)


def killed_executors(plan: Plan) -> None:
    """Kill both executors of a cluster, with their workers, while some of a task's rows are written."""
    for _ in range(ATTEMPTS):
        with job(plan, "within:1") as process:
            if not wait_for(lambda: plan.stalled("within:1"), process, plan):
                assert was_too_slow(plan), log_tail(plan)
                continue
            found = executors(process.pid)
            assert len(found) == 2, found
            for pid in found:
                os.kill(pid, signal.SIGKILL)
            _wait_for_the_end(plan, process)
            break
    run_to_the_end(plan)


def killed_at_random(plan: Plan, kills: int, seed: int) -> None:
    """Kill the driver anywhere within a batch, again and again, and let the query end."""
    rng = random.Random(seed)
    for _ in range(kills):
        before = log_end(plan.servers, plan.target)
        with job(plan) as process:
            wait_for(lambda before=before: log_end(plan.servers, plan.target) > before, process, plan)  # type: ignore[misc]
            time.sleep(rng.uniform(0, 1.5))
            kill_all(process)
    run_to_the_end(plan)


def workers_killed_at_random(plan: Plan, kills: int, seed: int) -> int:
    """Kill workers anywhere in their tasks; returns how many."""
    rng = random.Random(seed)
    killed = 0
    with job(plan) as process:
        while killed < kills and wait_for(lambda: workers(process.pid), process, plan):
            time.sleep(rng.uniform(0, 1.0))
            for pid in workers(process.pid)[:1]:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    killed += 1
        process.wait(PATIENCE)
    run_to_the_end(plan)
    return killed


def anchor_of_a_latest_start(plan: Plan) -> Counter[int]:
    """A query that starts at the latest offsets dies before its first batch, and rows come while it is away.

    Numbers below 100 are there before it starts, those up to 600 come while it is away; returns what it has copied.
    """
    fill(plan.servers, plan.source, range(100))
    kill_at(plan, "plan:first")
    fill(plan.servers, plan.source, range(100, 300))
    kill_at(plan, "before:1")
    fill(plan.servers, plan.source, range(300, 600))
    run_to_the_end(plan)
    return copied(plan.servers, plan.target)
