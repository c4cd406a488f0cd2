"""The child's side of a benchmark: what a workload script declares, and how one run of it is timed.

Role: a workload (benchmarks/records.py, ...) declares its cases, its targets and a ``prepare`` function, and hands
them to :func:`main`, which gives every workload the same command line::

    python benchmarks/records.py --list
    python benchmarks/records.py --describe
    python benchmarks/records.py --impl aiokafka --case NAME --count N

The last prints one JSON line. A workload whose libraries have to share one process (a Spark session, say) gives
``together`` in place of ``prepare``, and is called once for all runs; it prints a line for each::

    python benchmarks/spark.py --together --rounds 5 --only 'batch-*'

Either runs inside the venv of whichever library is measured, so this file needs the standard
library alone, and a workload imports a library in ``prepare``, never at its top. Workloads that need a broker also take
``--bootstrap HOST:PORT``, and ``--set-up`` to make their topics.

What is timed, for everyone alike: ``Job.run(count)`` and nothing else, after a warm-up, after a full collection and
``gc.freeze()``, with the cyclic collector left on as in any user's process. CPU is user plus system time of all threads
of the process, so that work hidden in a C library's own threads counts too.
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

OURS = "purekafka"


class Unsupported(Exception):
    """This library cannot do this case; the text says why and is shown in place of figures."""


@dataclass(frozen=True)
class Case:
    """One row group of the table.

    ``start`` is the count that calibration begins with: choose what takes around 10 ms. ``same_count`` keeps the count
    equal for all libraries even where the slowest then takes long (for work that costs more the longer it lasts).
    """

    name: str
    about: str = ""
    start: int = 1000
    same_count: bool = False
    impls: tuple[str, ...] = ()


@dataclass(frozen=True)
class Target:
    """A claim that the harness checks on every case that the pattern ``case`` matches.

    With ``peer`` (a pattern too) it is a ratio, the peer's ``metric`` divided by ours, the median over paired rounds;
    every metric is one of which less is better. ``peer_case`` takes the peer's side from another case, so that ours can
    be held against ours. Without ``peer`` it is a bound on our own figure.
    """

    case: str
    peer: str = ""
    peer_case: str = ""
    metric: str = "cpu_us"
    at_least: float | None = None
    at_most: float | None = None


def own_cpu_s() -> float:
    """User and system time of this process, all its threads."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


@dataclass(frozen=True)
class Job:
    """One prepared case: ``run(count)`` does the operation that many times.

    ``records`` and ``bytes`` say how much one operation handles. Libraries that make or read the same bytes give the
    same ``digest``; the harness refuses to time a case on which they differ. ``extra`` is asked after the run for
    figures of the workload's own (p99 in ms, ...), and ``close`` is called last; neither is timed.
    """

    run: Callable[[int], object]
    records: float = 1
    bytes: float = 0
    digest: str = ""
    extra: Callable[[], Mapping[str, float]] | None = None
    close: Callable[[], object] | None = None
    warm_up: int = -1  # operations before the clock starts; -1: a tenth of the count, at least one
    cpu_s: Callable[[], float] = own_cpu_s  # another clock where the work is done by child processes


@dataclass(frozen=True)
class Workload:
    """All that a script declares. ``unit`` names what a record is here ("message", "record", "call")."""

    title: str
    unit: str
    impls: tuple[str, ...]
    cases: Sequence[Case]
    prepare: Callable[[str, str, argparse.Namespace], Job] | None = None
    together: Callable[[argparse.Namespace], Iterator[Mapping[str, Any]]] | None = None  # all runs, a line for each
    together_impl: str = ""  # the library in whose environment that is done
    targets: Sequence[Target] = ()
    settings: Mapping[str, object] = field(default_factory=dict)
    run_s: float = 0.35  # how long a run of the fastest library takes; others take three times that at most
    notes: Sequence[str] = ()  # what there is to say where a target is missed; printed below the targets
    needs_broker: bool = False  # then there is an option --bootstrap, and the harness starts a broker if given none
    set_up: Callable[[argparse.Namespace], object] | None = None  # makes topics and the like, once per invocation
    set_up_impl: str = ""  # the library in whose environment that is done

    def describe(self) -> dict[str, Any]:
        """Everything but ``prepare``, as JSON-able values for the harness."""
        return {
            "title": self.title,
            "unit": self.unit,
            "impls": list(self.impls),
            "cases": [asdict(case) for case in self.cases],
            "targets": [asdict(target) for target in self.targets],
            "settings": dict(self.settings),
            "run_s": self.run_s,
            "notes": list(self.notes),
            "needs_broker": self.needs_broker,
            "set_up_impl": self.set_up_impl if self.set_up else "",
            "together_impl": self.together_impl,
        }


def main(workload: Workload, argv: Sequence[str] | None = None) -> None:
    """The command line of a workload script."""
    parser = argparse.ArgumentParser(description=workload.title)
    parser.add_argument("--list", action="store_true", help="print the names of the cases")
    parser.add_argument("--describe", action="store_true", help="print cases, targets and settings as JSON")
    parser.add_argument("--impl", choices=workload.impls, help="the library to run")
    parser.add_argument("--case", choices=[case.name for case in workload.cases], metavar="NAME", help="see --list")
    parser.add_argument("--count", type=int, default=1000, help="how many operations (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the random content (default: %(default)s)")
    if workload.needs_broker:
        parser.add_argument("--bootstrap", metavar="HOST:PORT", help="the broker")
    if workload.set_up:
        parser.add_argument("--set-up", action="store_true", help="make the topics that the cases need, and stop")
    if workload.together:
        parser.add_argument("--together", action="store_true", help="run everything in this process")
        parser.add_argument("--rounds", type=int, default=1, help="how often (default: %(default)s)")
        parser.add_argument("--only", default="*", metavar="GLOB", help="only the cases that match")
    args = parser.parse_args(argv)
    if args.list:
        print("\n".join(case.name for case in workload.cases))
    elif args.describe:
        print(json.dumps(workload.describe()))
    elif workload.set_up and args.set_up:
        workload.set_up(args)
    elif workload.together:
        for line in workload.together(args):
            print(json.dumps(line), flush=True)
    elif not (args.impl and args.case):
        parser.error("--impl and --case are needed for a run")
    else:
        print(json.dumps(run(workload, args)))


def run(workload: Workload, args: argparse.Namespace) -> dict[str, Any]:
    """Prepare one case, time it, and say what it cost."""
    name = {"case": args.case, "impl": args.impl}
    assert workload.prepare is not None
    try:
        job = workload.prepare(args.impl, args.case, args)
    except Unsupported as why:
        return {**name, "unsupported": str(why)}
    try:
        cost = timed(job, args.count)
        extra = job.extra() if job.extra else {}
    finally:
        if job.close:
            job.close()
    return {**name, "count": args.count, **cost, "digest": job.digest, **extra}


def timed(job: Job, count: int) -> dict[str, float]:
    """Run the job under the policy that the head of this file describes."""
    warm_up = max(1, count // 10) if job.warm_up < 0 else job.warm_up
    if warm_up:
        job.run(warm_up)
    gc.collect()
    gc.freeze()
    cpu, wall = job.cpu_s(), time.perf_counter()
    job.run(count)
    wall, cpu = time.perf_counter() - wall, job.cpu_s() - cpu
    return {
        "records": count * job.records,
        "bytes": count * job.bytes,
        "cpu_s": cpu,
        "wall_s": wall,
        "rss_kb": peak_rss_kb(),
    }


def peak_rss_kb() -> int:
    """The high-water mark of this process alone.

    ru_maxrss would not do: Linux carries it over an exec, so a small child of a large parent reports the parent's.
    """
    try:
        status = Path("/proc/self/status").read_text(encoding="utf-8")
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak // 1024 if sys.platform == "darwin" else peak
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1])
