"""The harness's side of a workload that does all of its runs in one process of its own: starts it and reads its lines.

The first line may be ``{"settings": {...}}``, what only that process knows of itself; each of the others is a run, or
says only that a run is done that does not count: without lines for too long, the process has stopped.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.runner import CaseResult, ChildError
from benchmarks.stats import Sample
from benchmarks.venvs import CACHE, Library, Venv, child_env

SILENCE_S = 600.0  # one run, on a busy machine
_ENDING_S = 30.0


def measure_together(
    script: Path,
    library: Library,
    venv: Venv,
    arguments: Sequence[str],
    progress: Callable[[str], object] = lambda _text: None,
    *,
    silence_s: float = SILENCE_S,
) -> tuple[dict[str, CaseResult], dict[str, str]]:
    """Run the workload to its end; return what came of each case, and the settings that it told.

    Raises:
        ChildError: it failed, or had no run done for so long; nothing of such a process counts.
    """
    CACHE.mkdir(exist_ok=True)
    with tempfile.TemporaryFile("w+", encoding="utf-8") as errors:
        child = subprocess.Popen(
            [str(venv.python), str(script), "--together", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=child_env(library),
            cwd=CACHE,
        )
        try:
            assert child.stdout is not None
            found = collect(_unless_silent(child, silence_s), progress)
            child.wait(_ENDING_S)
        finally:
            if child.poll() is None:
                child.terminate()
            child.wait()
            if child.stdout is not None:
                child.stdout.close()
        if child.returncode:
            errors.seek(0)
            last = "\n".join(errors.read().strip().splitlines()[-12:])
            raise ChildError(f"{script.name} exited with {child.returncode}:\n{last}")
    return found


def _unless_silent(child: subprocess.Popen[str], silence_s: float) -> Iterator[str]:
    """Yield the lines of a child. When none comes for too long, it is killed, which is an error."""
    assert child.stdout is not None
    while True:
        killed = threading.Event()
        guard = threading.Timer(silence_s, lambda killed=killed: (killed.set(), child.kill()))  # type: ignore[misc]
        guard.start()
        try:
            line = child.stdout.readline()
        finally:
            guard.cancel()
        if killed.is_set():
            raise ChildError(f"no run was done within {silence_s:g} s")
        if not line:
            return
        yield line


def collect(
    lines: Iterable[str], progress: Callable[[str], object] = lambda _text: None
) -> tuple[dict[str, CaseResult], dict[str, str]]:
    """Sort the lines of a child into the runs of each case. Whatever else is printed is passed over."""
    outcome: dict[str, CaseResult] = {}
    settings: dict[str, str] = {}
    digests: dict[str, set[str]] = {}
    for text in lines:
        line = _parsed(text)
        if line is None:
            continue
        settings.update(line.get("settings", {}))
        if "case" not in line:
            continue
        case, impl = line["case"], line["impl"]
        digests.setdefault(case, set()).add(line.get("digest", ""))
        sample = Sample.from_line(line)
        outcome.setdefault(case, CaseResult()).samples.setdefault(impl, []).append(sample)
        progress(f"{case}: {impl} {sample.wall_s:.3g} s")
    for case, different in digests.items():
        if len(different) > 1:
            outcome[case] = CaseResult(failure=f"{case}: the results differ: {sorted(different)}")
    return outcome, settings


def _parsed(text: str) -> Mapping[str, Any] | None:
    try:
        line = json.loads(text)
    except ValueError:
        return None
    return line if isinstance(line, dict) else None
