"""Programs on Spark, each as a user starts it, one after the other in one process: Java starts once for all of them.

``python -m test.embedded.spark.programs`` reads lines, each a JSON list of a program's file and its words. What the
program prints stands before a line with its exit code; an exception is printed as the interpreter does at its end. A
program that Spark gives no Python process within its ten seconds, on a busy machine, is run again.
"""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

TOO_BUSY = "Python worker failed to connect back"
ATTEMPTS = 8
ROOT = Path(__file__).parents[3]
_END = "===== exit code "


class Programs:
    """The process that runs them."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, program: Path, *words: str) -> tuple[int, str]:
        """Run a program; return its exit code, and what it printed, to the standard error as well."""
        for _ in range(ATTEMPTS):
            code, shown = self._run([str(program), *words])
            if TOO_BUSY not in shown:
                break
        return code, shown

    def _run(self, words: list[str]) -> tuple[int, str]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(words) + "\n")
        self._process.stdin.flush()
        lines: list[str] = []
        for line in self._process.stdout:
            before, end, code = line.partition(_END)
            lines.append(before)
            if end:
                return int(code), "".join(lines)
        raise AssertionError(f"the process ended within {words}:\n{''.join(lines)[-4000:]}")


@contextmanager
def programs(environment: Mapping[str, str]) -> Iterator[Programs]:
    """Give what runs programs with an environment, in the directory of the checkout."""
    words = [sys.executable, "-m", "test.embedded.spark.programs"]
    pipe, out = subprocess.PIPE, subprocess.STDOUT
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=out, text=True, env=environment, cwd=ROOT) as process:
        try:
            yield Programs(process)
        except BaseException:
            process.kill()
            raise


def _main() -> None:
    for line in sys.stdin:
        code = _run(*json.loads(line))
        sys.stderr.flush()
        print(f"{_END}{code}", flush=True)


def _run(program: str, *words: str) -> int:
    from pyspark.sql import SparkSession

    sys.argv = [program, *words]
    code = 0
    try:
        runpy.run_path(program, run_name="__main__")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except Exception:
        code = 1
        traceback.print_exc()
    session = SparkSession.getActiveSession()
    if session is not None:  # its settings are not for the next one
        session.stop()
    return code


if __name__ == "__main__":
    os.environ["PYTHONUNBUFFERED"] = "1"
    _main()
