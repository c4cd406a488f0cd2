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
from collections.abc import Callable, Iterator, Mapping
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
        self.have_run = False
        """Whether a program has run: what Spark prints when it starts is no part of the next one's output."""

    def run(
        self, program: Path, *words: str, heard: Callable[[subprocess.Popen[str], str], None] | None = None
    ) -> tuple[int, str]:
        """Run a program; return its exit code, and what it printed, to the standard error as well.

        ``heard`` is called with the process and each line.
        """
        for _ in range(ATTEMPTS):
            code, shown = self._run([str(program), *words], heard)
            if TOO_BUSY not in shown:
                break
        return code, shown

    def _run(self, words: list[str], heard: Callable[[subprocess.Popen[str], str], None] | None) -> tuple[int, str]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(words) + "\n")
        self._process.stdin.flush()
        self.have_run = True
        lines: list[str] = []
        for line in self._process.stdout:
            before, end, code = line.partition(_END)
            lines.append(before)
            if end:
                return int(code), "".join(lines)
            if heard is not None:
                heard(self._process, line)
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
    before: str | None = None
    environment = dict(os.environ)
    for line in sys.stdin:
        program, *words = json.loads(line)
        if program != before:
            _end_session()  # a program that runs again finds its own
            before = program
        os.environ.clear()
        os.environ.update(environment)  # what a program set is not for the next one
        code = _run(program, words)
        sys.stderr.flush()
        print(f"{_END}{code}", flush=True)
    _end_session()


def _end_session() -> None:
    """Stop the session of another program, and take its log level back, which is the Java machine's."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    if session is not None:
        session.stop()
    if SparkContext._jvm is not None:
        log4j = SparkContext._jvm.org.apache.logging.log4j
        log4j.core.config.Configurator.setRootLevel(log4j.Level.WARN)


def _run(program: str, words: list[str]) -> int:
    sys.argv = [program, *words]
    try:
        runpy.run_path(program, run_name="__main__")
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except Exception as error:
        at = error.__traceback__
        while at is not None and at.tb_frame.f_code.co_filename != program:
            at = at.tb_next
        traceback.print_exception(error.with_traceback(at))
        return 1
    return 0


if __name__ == "__main__":
    os.environ["PYTHONUNBUFFERED"] = "1"
    _main()
