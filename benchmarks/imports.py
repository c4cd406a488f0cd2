"""What ``import kafka`` costs: whole processes, and the share that -X importtime gives to the import."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping

_WHOLE = [sys.executable, "-c", "import kafka"]
_TRACED = [sys.executable, "-X", "importtime", "-c", "import kafka"]
_BARE = [sys.executable, "-c", "pass"]
_TRACES = 7
_NEUTRAL = sys.prefix  # python -c looks for modules in the current directory first, so stand where there are none


class Imports:
    """One operation is one process that imports the package."""

    def run(self, count: int) -> None:
        """Start them one after the other."""
        for _ in range(count):
            subprocess.run(_WHOLE, check=True, cwd=_NEUTRAL)

    def figures(self) -> Mapping[str, float]:
        """Medians: what the report gives to the import, and what a process takes more than one that imports nothing."""
        traced = [self._traced_ms() for _ in range(_TRACES)]
        whole = [self._elapsed_ms(_WHOLE) - self._elapsed_ms(_BARE) for _ in range(_TRACES)]
        return {"import_ms": statistics.median(traced), "over_bare_ms": statistics.median(whole)}

    @staticmethod
    def _traced_ms() -> float:
        report = subprocess.run(_TRACED, check=True, cwd=_NEUTRAL, capture_output=True, text=True).stderr
        return cumulative_us(report, "kafka") / 1000

    @staticmethod
    def _elapsed_ms(command: list[str]) -> float:
        began = time.perf_counter()
        subprocess.run(command, check=True, cwd=_NEUTRAL)
        return (time.perf_counter() - began) * 1000


def cumulative_us(report: str, module: str) -> int:
    """The cumulative microseconds of a top-level module in what -X importtime wrote."""
    for line in report.splitlines():
        columns = line.removeprefix("import time:").split("|")
        if len(columns) == 3 and columns[2].strip() == module:
            return int(columns[1])
    raise ValueError(f"{module} is not in the report of -X importtime")


def cpu_s() -> float:
    """CPU time of the children that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
