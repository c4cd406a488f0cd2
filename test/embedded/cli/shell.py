"""Runs command lines as a shell would, pipes included, but purekafka in this process."""

from __future__ import annotations

import io
import json
import shlex
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from kafka.cli import main


class Outcome(NamedTuple):
    """What a command line printed, and its exit code."""

    code: int
    raw: bytes
    err: str

    @property
    def out(self) -> str:
        return self.raw.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.raw)

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def records(self) -> list[Any]:
        return [json.loads(line) for line in self.lines]


def run(line: str, *more: str, stdin: bytes = b"") -> Outcome:
    """Run a command line; `more` are words for its last command."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|")
    lexer.whitespace_split = True
    commands: list[list[str]] = [[]]
    for word in lexer:
        if word == "|":
            commands.append([])
        else:
            commands[-1].append(word)
    commands[-1] += more
    target = None
    if ">" in commands[-1]:
        at = commands[-1].index(">")
        commands[-1], target = commands[-1][:at], commands[-1][at + 1]
    outcome = Outcome(0, stdin, "")
    for words in commands:
        outcome = call(words, outcome.raw)
    if target is not None:
        Path(target).write_bytes(outcome.raw)
    return outcome


def call(words: list[str], stdin: bytes = b"", stdout: TextIO | None = None) -> Outcome:
    """Run one command, given by its words; with `stdout` it writes there."""
    if words[0] != "purekafka":
        done = subprocess.run(words, input=stdin, capture_output=True, check=False, timeout=60)
        return Outcome(done.returncode, done.stdout, done.stderr.decode())
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    err = io.StringIO()
    before, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")
    try:
        with redirect_stdout(stdout or out), redirect_stderr(err):
            try:
                code = main(words[1:])
            except SystemExit as ended:
                code = int(ended.code or 0)
        raw = out.buffer.getvalue()
    finally:
        sys.stdin = before
    return Outcome(code, raw, err.getvalue())
