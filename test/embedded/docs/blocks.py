"""The code blocks of a page of the documentation, and a way to run those in Python against the embedded broker."""

from __future__ import annotations

import logging
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any, TypeVar
from unittest.mock import patch

import pytest

from kafka import KafkaConsumer
from kafka.broker import Broker
from kafka.config import OPTIONS

ROOT = Path(__file__).resolve().parents[3]
# Addresses of the examples; the embedded broker stands behind all of them.
ADDRESSES = re.compile(r"localhost:9092|kafka:9092|b1:9092(?:,b2:9092)?")
# At the end of a topic an example waits no longer than this.
LONGEST_POLL_MS = 250
_DIRECTIVE = re.compile(
    r"^(?P<indent> *)\.\. (?P<kind>code-block|doctest|testsetup|testcleanup)::(?: (?P<language>\S+))?\s*$"
)
_LANGUAGES = {"doctest": "pycon", "testsetup": "python", "testcleanup": "python"}
_LITERAL = re.compile(r"^(?P<indent> *)(?!\.\. )\S?.*::\s*$")
Test = TypeVar("Test", bound=Callable[..., object])
# The blocks for which a test prepares what they need, and that test: see `runs`.
PREPARED: dict[Block, str] = {}


class EndOfExample(BaseException):
    """Ends an example that polls for ever, when there is nothing left to read."""


@dataclass(frozen=True)
class Block:
    """A code block: `language` is None for a literal block, `hidden` is one that readers do not see."""

    page: Path
    line: int
    language: str | None
    text: str
    hidden: bool = False

    @property
    def is_code(self) -> bool:
        """Whether a reader would run it, or give it to a program: everything but plain text and preparations."""
        return not self.hidden and self.language not in {None, "text"}

    @property
    def is_doctest(self) -> bool:
        """Whether the doctest run takes it."""
        return ">>>" in self.text

    @property
    def place(self) -> str:
        """Where it stands."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def pages() -> list[Path]:
    """Return all pages that people read."""
    front = [ROOT / name for name in ("README.rst", "CONTRIBUTING.rst", "CHANGES.rst", "SECURITY.rst")]
    return [page for page in front if page.exists()] + sorted(
        page for page in (ROOT / "docs").rglob("*.rst") if "_build" not in page.parts
    )


def blocks(page: Path) -> list[Block]:
    """Return the code blocks of a page, in order."""
    lines = page.read_text(encoding="utf-8").split("\n")
    found = []
    at = 0
    while at < len(lines):
        line = lines[at]
        match = _DIRECTIVE.match(line) or (_LITERAL.match(line) if ".. " not in line.lstrip()[:3] else None)
        at += 1
        if match is None:
            if line.lstrip().startswith(">>> ") and not (at > 1 and lines[at - 2].strip()):
                end = next((number for number in range(at, len(lines)) if not lines[number].strip()), len(lines))
                found.append(Block(page, at, "pycon", dedent("\n".join(lines[at - 1 : end])) + "\n"))
                at = end
            continue
        depth = len(match["indent"])
        body = []
        start = at
        while at < len(lines) and (not lines[at].strip() or _indent(lines[at]) > depth):
            body.append(lines[at])
            at += 1
        body = [text for text in body if not re.match(r"^ +:\w+:", text)]
        kind = match.groupdict().get("kind")
        language = match.groupdict().get("language") or _LANGUAGES.get(kind or "")
        found.append(
            Block(
                page,
                start + 1,
                language,
                dedent("\n".join(body)).strip("\n") + "\n",
                kind in {"testsetup", "testcleanup"},
            )
        )
    return found


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def runs(*places: tuple[str, str]) -> Callable[[Test], Test]:
    """Give a test, as `shown`, the blocks of pages that begin with some text, and count them as blocks that it runs."""
    found = []
    for page, beginning in places:
        (block,) = (one for one in blocks(ROOT / page) if one.is_code and one.text.startswith(beginning))
        found.append(block)

    def mark(test: Test) -> Test:
        PREPARED.update(dict.fromkeys(found, f"{test.__module__}::{test.__name__}"))
        marked: Test = pytest.mark.parametrize("shown", [found], ids=[Path(places[0][0]).stem])(test)
        return marked

    return mark


def python_blocks(page: Path) -> list[Block]:
    """Return what `run` executes of a page."""
    return [block for block in blocks(page) if block.language == "python" and not block.is_doctest]


def run(page: Path, names: dict[str, Any], broker: Broker, scratch: str = "/tmp") -> int:
    """Execute the Python blocks of a page one after another in one namespace; return how many there are.

    Files that a page has in ``/tmp`` are in the directory `scratch`.
    """
    done = 0
    with examples_end(broker):
        for block in python_blocks(page):
            code = ADDRESSES.sub(broker.bootstrap_servers, block.text).replace('"/tmp/', f'"{scratch}/')
            try:
                if (file := re.match(r"# (\w+\.py)\n", code)) is not None:
                    _run_file(Path(file[1]), code)
                else:
                    exec(compile("\n" * (block.line - 1) + code, str(page), "exec", dont_inherit=True), names)
            except EndOfExample:
                pass
            except BaseException as error:
                raise AssertionError(f"{block.place} does not run: {error!r}") from error
            done += 1
    return done


def _run_file(path: Path, code: str) -> None:
    """Write a file that the page shows, and run pytest on it if it is a file of tests."""
    path.write_text(code, encoding="utf-8")
    if path.name.startswith("test_"):
        search = os.pathsep.join((str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])))
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(path)]
        done = subprocess.run(
            command, check=False, env={**os.environ, "PYTHONPATH": search}, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def examples_end(broker: Broker) -> Iterator[None]:
    """Let consumers read from the beginning, and end an example when there is nothing left to read."""
    poll = KafkaConsumer.poll
    empty = 0

    def polled(self: KafkaConsumer[Any, Any], timeout_ms: Any = 0, *args: Any, **kwargs: Any) -> Any:
        nonlocal empty
        records = poll(self, min(timeout_ms, LONGEST_POLL_MS), *args, **kwargs)
        empty = 0 if records or not self.assignment() else empty + 1
        if empty >= 2:
            empty = 0
            raise EndOfExample
        return records

    terminate = signal.getsignal(signal.SIGTERM)
    with ExitStack() as stack:
        # An example may configure logging.
        for logger in (logging.getLogger(), logging.getLogger("kafka")):
            stack.callback(logger.setLevel, logger.level)
            stack.enter_context(patch.object(logger, "handlers", list(logger.handlers)))
        stack.enter_context(patch.object(sys, "path", list(sys.path)))
        stack.callback(signal.signal, signal.SIGTERM, terminate)
        for name, value in {
            "bootstrap_servers": broker.bootstrap_servers,
            "auto_offset_reset": "earliest",
            "consumer_timeout_ms": 500,
        }.items():
            stack.enter_context(patch.object(OPTIONS[name], "default", value))
        stack.enter_context(patch.object(KafkaConsumer, "poll", polled))
        yield
