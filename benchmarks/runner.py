"""Runs the children: asks a workload what it has, calibrates, and takes samples in turn, A B C A B C.

Every run is a process of its own, with the library's interpreter and a clean environment, and only one runs at a time.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import SystemRandom
from typing import Any

from benchmarks.stats import Sample, plan_counts
from benchmarks.venvs import CACHE, Library, Venv, child_env
from benchmarks.workload import Case, Target

HERE = Path(__file__).resolve().parent
TIMEOUT_S = 300.0  # one child; a calibrated run takes about a second
_GROWTH = 50.0  # how much one calibration step may multiply the count
_STEPS = 8


class ChildError(Exception):
    """A child failed, or what it printed was no result."""


@dataclass(frozen=True)
class Description:
    """What a workload script says of itself (see workload.Workload.describe)."""

    title: str
    unit: str
    impls: tuple[str, ...]
    cases: tuple[Case, ...]
    targets: tuple[Target, ...]
    settings: Mapping[str, object]
    run_s: float
    notes: tuple[str, ...]
    needs_broker: bool
    set_up_impl: str
    together_impl: str = ""


@dataclass(frozen=True)
class Pace:
    """How long a run should take, and how many rounds there are."""

    rounds: int
    want_s: float
    most_s: float


@dataclass
class CaseResult:
    """All that came of one case."""

    samples: dict[str, list[Sample]] = field(default_factory=dict)
    unsupported: dict[str, str] = field(default_factory=dict)
    failure: str = ""


def describe(script: Path) -> Description:
    """Ask the script; it needs no library for this, so any interpreter serves."""
    done = subprocess.run(
        [sys.executable, str(script), "--describe"], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    if done.returncode:
        raise ChildError(f"{script.name} --describe failed:\n{_tail(done.stderr)}")
    told = json.loads(done.stdout)
    return Description(
        title=told["title"],
        unit=told["unit"],
        impls=tuple(told["impls"]),
        cases=tuple(Case(**{**case, "impls": tuple(case["impls"])}) for case in told["cases"]),
        targets=tuple(Target(**target) for target in told["targets"]),
        settings=told["settings"],
        run_s=told.get("run_s", 0.35),
        notes=tuple(told.get("notes", ())),
        needs_broker=told["needs_broker"],
        set_up_impl=told["set_up_impl"],
        together_impl=told.get("together_impl", ""),
    )


class Runner:
    """Runs one workload's children."""

    def __init__(
        self,
        script: Path,
        libraries: Mapping[str, tuple[Library, Venv]],
        options: Sequence[str] = (),
        progress: Callable[[str], object] = lambda _text: None,
    ) -> None:
        self._script = script
        self._libraries = libraries
        self._options = list(options)
        self._progress = progress
        self._seed = new_seed()

    def measure(self, case: Case, pace: Pace) -> CaseResult:
        """Calibrate the case for every library, compare what they make, and take the samples round by round."""
        result = CaseResult()
        try:
            counts = self._calibrate(case, pace, result)
            for number in range(pace.rounds if counts else 0):
                self._seed = new_seed()
                for impl, count in counts.items():
                    sample = Sample.from_line(self._child(impl, case, count))
                    result.samples.setdefault(impl, []).append(sample)
                    self._progress(f"round {number + 1}: {impl} {sample.metric('cpu_us'):.3g} µs")
        except ChildError as error:
            result.samples.clear()
            result.failure = str(error)
        return result

    def _calibrate(self, case: Case, pace: Pace, result: CaseResult) -> dict[str, int]:
        seconds_each: dict[str, float] = {}
        digests: dict[str, str] = {}
        for impl in self._libraries:
            if case.impls and impl not in case.impls:
                continue
            self._progress(f"calibrating {impl}")
            line = self._grow(impl, case, pace)
            if "unsupported" in line:
                result.unsupported[impl] = line["unsupported"]
                continue
            seconds_each[impl] = line["wall_s"] / line["count"]
            if line.get("digest"):
                digests[impl] = line["digest"]
        if len(set(digests.values())) > 1:
            raise ChildError(f"{case.name}: the libraries make different bytes of the same content: {digests}")
        if not seconds_each:
            return {}
        return plan_counts(seconds_each, want_s=pace.want_s, most_s=pace.most_s, same=case.same_count)

    def _grow(self, impl: str, case: Case, pace: Pace) -> dict[str, Any]:
        """Run with ever larger counts until a run is long enough to be judged by."""
        count = case.start
        line: dict[str, Any] = {}
        for _step in range(_STEPS):
            line = self._child(impl, case, count)
            if "unsupported" in line or line["wall_s"] >= pace.want_s / 4:
                break
            count = max(count + 1, round(count * min(_GROWTH, pace.want_s / max(line["wall_s"], 1e-9))))
        return line

    def _child(self, impl: str, case: Case, count: int) -> dict[str, Any]:
        who = f"{case.name} with {impl}"
        arguments = ["--impl", impl, "--case", case.name, "--count", str(count), "--seed", str(self._seed)]
        return parse_line(run_script(self._script, *self._libraries[impl], arguments + self._options, who), who, count)


def new_seed() -> int:
    """The seed of a round. All libraries get the same content and each round gets other, so nothing is tuned to it."""
    return SystemRandom().getrandbits(32)


def run_script(script: Path, library: Library, venv: Venv, arguments: Sequence[str], who: str) -> str:
    """Run a workload script in that environment to its end and give what it printed."""
    CACHE.mkdir(exist_ok=True)
    try:
        done = subprocess.run(
            [str(venv.python), str(script), *arguments],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
            env=child_env(library),
            cwd=CACHE,
        )
    except subprocess.TimeoutExpired:
        raise ChildError(f"{who}: no end within {TIMEOUT_S:g} s") from None
    if done.returncode:
        raise ChildError(f"{who} exited with {done.returncode}:\n{_tail(done.stderr)}")
    return done.stdout


def parse_line(stdout: str, who: str, count: int) -> dict[str, Any]:
    """The JSON line of a run: the last line, whatever a library may have printed before it."""
    lines = stdout.strip().splitlines()
    try:
        line = json.loads(lines[-1]) if lines else None
    except ValueError:
        line = None
    if not isinstance(line, dict):
        raise ChildError(f"{who} printed no result, but {stdout[-200:]!r}")
    return {"count": count, **line}


def _tail(text: str, lines: int = 12) -> str:
    return "\n".join(text.strip().splitlines()[-lines:])
