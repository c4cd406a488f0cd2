"""The command: environments, children in turn, one table, the targets, and the section of RESULTS.md.

``python -m benchmarks imports records --check`` measures two sub-targets and exits with 1 where a target is missed,
with 2 where something could not be measured. Each sub-target is a workload script of that name beside this file.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timezone
from fnmatch import fnmatchcase
from pathlib import Path

from benchmarks import machine, ours, report, table, targets
from benchmarks.broker import NoBroker, broker
from benchmarks.runner import CaseResult, ChildError, Description, Pace, Runner, describe, new_seed, run_script
from benchmarks.together import measure_together
from benchmarks.venvs import LIBRARIES, Library, Venv, VenvError, ensure
from benchmarks.workload import OURS

HERE = Path(__file__).resolve().parent
SUB_TARGETS = (
    *("imports", "records", "produce", "consume", "groups", "share"),
    *("latency", "idle", "aio", "scale", "spark"),
)
# What `--main` measures: the rows that say how services live, with those that README.rst and docs/benchmarks.rst show.
MAIN = {
    "latency": ("send-get-mix", "send-poll-mix", "lone-*"),
    "idle": ("*",),
    "produce": (
        *("send-mix-p1", "send-mix-p6", "send-mix-p6-lz4", "send-json-p6"),
        *("callback-mix-p6", "flush20-mix-p1", "paced-mix-p1"),
    ),
    "consume": ("poll-mix-p6", "poll-json-p6", "poll-json-p6-*", "iterate-mix-p6", "iterate-json-p6"),
    "aio": ("send-mix", "wait100-mix", "iterate-mix", "getmany-mix"),
    "scale": ("send-*-p1", "send-*-p1000", "poll-p1", "poll-p?000", "first-*-p1", "first-*-p1000", "*-5MB"),
}
LEAST_ROUNDS = 5  # fewer say too little about the spread to be kept


def available() -> list[str]:
    """The sub-targets whose workload exists."""
    return [name for name in SUB_TARGETS if (HERE / f"{name}.py").exists()]


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("sub_targets", nargs="*", metavar="SUB_TARGET", help=" ".join(available()))
    parser.add_argument("--main", action="store_true", help="only the main rows, in a section of their own")
    parser.add_argument("--runs", type=int, default=LEAST_ROUNDS, help="rounds per case (default: %(default)s)")
    parser.add_argument("--case", default="*", metavar="GLOB", help="only the cases that match")
    parser.add_argument("--peers", default="", metavar="A,B", help="only these peers beside ours")
    parser.add_argument("--quick", action="store_true", help="short runs, two rounds: to see that it works")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a target is missed")
    parser.add_argument("--refresh", action="store_true", help="look for newer versions of the peers now")
    parser.add_argument("--no-write", action="store_true", help="leave RESULTS.md alone")
    parser.add_argument("--bootstrap", metavar="HOST:PORT", help="a broker to use in place of one started for the run")
    args = parser.parse_args(argv)
    args.sub_targets = args.sub_targets or (list(MAIN) if args.main else [])
    strange = set(args.sub_targets) - set(MAIN if args.main else available())
    if strange or not args.sub_targets:
        parser.error(f"name one or more of {', '.join(MAIN if args.main else available())}; not {', '.join(strange)}")
    if args.runs < 1:
        parser.error("--runs must be at least 1")
    unknown = set(filter(None, args.peers.split(","))) - set(LIBRARIES)
    if unknown:
        parser.error(f"no such peer: {', '.join(sorted(unknown))}; there are {', '.join(LIBRARIES)}")
    return args


def main(argv: Sequence[str] | None = None) -> int:
    """Run what the command line asks for; the exit code says how it went."""
    argv = sys.argv[1:] if argv is None else argv
    args = parse(argv)
    try:
        return max([run_sub_target(name, args, argv) for name in args.sub_targets])
    except (ChildError, VenvError, NoBroker) as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def run_sub_target(name: str, args: argparse.Namespace, argv: Sequence[str]) -> int:
    """Measure one workload, print it, keep it where it is complete, and give the exit code."""
    script = HERE / f"{name}.py"
    told = describe(script)
    asked = ((told.together_impl,), "") if told.together_impl else (told.impls, args.peers)
    libraries = prepare(*asked, refresh=args.refresh)
    versions = {library.venv_name: venv.versions for library, venv in libraries.values()}
    versions[OURS] = {**versions.get(OURS, {}), OURS: ours.version()}
    with ours.snapshot() as package, ready_broker(script, told, args) as (options, facts):
        host = told.together_impl or OURS  # in whose environment our package is looked for
        for impl, (library, venv) in libraries.items():
            if impl == host or impl.startswith(OURS):
                libraries[impl] = (replace(library, env={"PYTHONPATH": str(package)}), venv)
        if told.together_impl:
            outcome, more = in_one_process(script, told, libraries[host], args, options)
            facts.update(more)
        else:
            outcome = measure(script, told, libraries, args, options)
    samples = {case: result.samples for case, result in outcome.items()}
    unsupported = {case: result.unsupported for case, result in outcome.items()}
    failures = [result.failure for result in outcome.values() if result.failure]
    judged = targets.check(told.targets, samples, told.impls if told.together_impl else list(libraries))
    section = report.Section(
        name=f"main-{name}" if args.main else name,
        title=told.title,
        date=datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        command=shlex.join(["python", "-m", "benchmarks", *argv]),
        machine=machine.facts(),
        versions=versions,
        settings={**told.settings, **facts, "rounds": f"{_rounds(args)}, in turn, {_where(told)}"},
        table=table.results(samples, told.unit),
        absences=table.absences(unsupported),
        verdicts=table.verdicts(judged),
        notes=told.notes,
    )
    print(section.text())
    for failure in failures:
        print(f"\nnot measured: {failure}", file=sys.stderr)
    if _is_complete(args) and not failures:
        report.write(section)
        print(f"\nkept in benchmarks/{report.RESULTS.name}", file=sys.stderr)
    if failures:
        return 2
    return int(args.check and not all(verdict.holds for verdict in judged))


def prepare(impls: Sequence[str], peers: str, *, refresh: bool) -> dict[str, tuple[Library, Venv]]:
    """An environment for ours and each peer that was asked for, ours first."""
    asked = set(filter(None, peers.split(",")))
    names = [impl for impl in impls if impl == OURS or not asked or impl in asked]
    names.sort(key=lambda impl: impl != OURS)
    made: dict[str, Venv] = {}
    for impl in names:
        library = LIBRARIES[impl]
        if library.venv_name not in made:
            made[library.venv_name] = ensure(library, refresh=refresh)
    return {impl: (LIBRARIES[impl], made[LIBRARIES[impl].venv_name]) for impl in names}


@contextmanager
def ready_broker(
    script: Path, told: Description, args: argparse.Namespace
) -> Iterator[tuple[list[str], dict[str, str]]]:
    """The options that name the broker, with its topics made, and what to print of it; nothing where none is needed."""
    if not told.needs_broker:
        yield [], {}
        return
    with broker(args.bootstrap) as (bootstrap, about):
        options = ["--bootstrap", bootstrap]
        if told.set_up_impl:
            library = LIBRARIES[told.set_up_impl]
            venv = ensure(library, refresh=args.refresh)
            run_script(
                script, library, venv, ["--set-up", "--seed", str(new_seed()), *options], f"the set-up of {script.name}"
            )
        yield options, {"broker": about}


def measure(
    script: Path,
    told: Description,
    libraries: dict[str, tuple[Library, Venv]],
    args: argparse.Namespace,
    options: Sequence[str] = (),
) -> dict[str, CaseResult]:
    """Every case that the command line lets through; a line on stderr when each is done."""
    patterns = MAIN[script.stem] if args.main else ("*",)
    cases = [
        case
        for case in told.cases
        if fnmatchcase(case.name, args.case) and any(fnmatchcase(case.name, pattern) for pattern in patterns)
    ]
    if not cases:
        raise ChildError(f"no case matches {args.case!r}; there are {', '.join(case.name for case in told.cases)}")
    pace = Pace(_rounds(args), 0.05, 0.25) if args.quick else Pace(_rounds(args), told.run_s, 3 * told.run_s)
    outcome = {}
    for number, case in enumerate(cases, 1):
        place = f"[{number}/{len(cases)}] {case.name}"
        runner = Runner(script, libraries, options, lambda text, place=place: _progress(f"{place}: {text}"))  # type: ignore[misc]
        result = outcome[case.name] = runner.measure(case, pace)
        _progress("")
        print(f"{place}: {result.failure or table.one_line(result.samples, told.unit)}", file=sys.stderr)
    return outcome


def in_one_process(
    script: Path, told: Description, place: tuple[Library, Venv], args: argparse.Namespace, options: Sequence[str]
) -> tuple[dict[str, CaseResult], dict[str, str]]:
    """The same for a workload that does all of its runs itself; also the settings that it tells."""
    words = ["--rounds", str(_rounds(args)), "--only", args.case, *options]
    outcome, settings = measure_together(script, *place, words, _progress)
    _progress("")
    for case, result in outcome.items():
        print(f"{case}: {result.failure or table.one_line(result.samples, told.unit)}", file=sys.stderr)
    if not outcome:
        raise ChildError(f"no case matches {args.case!r}; there are {', '.join(case.name for case in told.cases)}")
    return outcome, settings


def _where(told: Description) -> str:
    return "all runs in one process" if told.together_impl else "each run a fresh process"


def _rounds(args: argparse.Namespace) -> int:
    return 2 if args.quick else int(args.runs)


def _is_complete(args: argparse.Namespace) -> bool:
    """Only a whole run with enough rounds may replace what is kept."""
    partial = args.quick or args.no_write or args.peers or args.case != "*"
    return not partial and args.runs >= LEAST_ROUNDS


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
