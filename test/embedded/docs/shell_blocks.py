"""Runs shell blocks, with embedded brokers behind the addresses that pages name.

Commands of purekafka and pipes of these run in this process, which takes a fraction of the time; others run in bash.
"""

from __future__ import annotations

import os
import pty
import re
import select
import shlex
import signal
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from kafka.broker import Broker
from kafka.cli.sandbox import start
from test import quick_start
from test.embedded.cli.shell import run

from .blocks import ROOT, Block

CERTIFICATES = ROOT / "test" / "unit" / "net" / "certs"
SHELL = {"sh", "console"}
TIMEOUT_S = 800
USERS = [("PLAIN", "ada", "ada-secret"), ("SCRAM-SHA-256", "ada", "ada-secret")]
# Commands that run until somebody stops them: they are interrupted when they have printed their first line.
_ENDLESS = re.compile(
    r"purekafka (broker\b(?!.* -- )|top(?!.* --count)|tail(?!.* --(no-follow|timeout))|.* --(follow|watch)\b)"
)
# Commands that ask at a terminal; the answer is yes.
_ASKS = re.compile(
    r"purekafka (groups reset-offsets|records delete-before|partitions reassign(-| )apply|cluster voters add)"
    r"(?!.* --(yes|dry-run))"
)
# Commands without anything for which a shell is needed but a pipe.
_PLAIN = re.compile(r"purekafka (?!.* -- )[^<>$`|&;]*(\| *purekafka [^<>$`|&;]*)*")
# Programs of the reader, in place of which stands what they would do first.
_STAND_INS = {
    "purekafka": f'exec "{sys.executable}" -m kafka "$@"',
    "npm": "exec purekafka topics describe orders",
    "go": "exec purekafka topics describe orders",
    "python": f'exec "{sys.executable}" "$@"',
    "vault": """echo 'org.apache.kafka.PlainLoginModule required username="ada" password="ada-secret";'""",
    "make": f'exec /usr/bin/make --dry-run -C "{ROOT}" "$@" > /dev/null',
}
# What an example takes for granted.
_BEFORE = {
    "purekafka acls delete": "purekafka acls allow --principal ada --consumer --topic events --group billing --yes",
    "purekafka users delete": "purekafka users set-password ada --password @env:ADA_PASSWORD",
}
_COMMITTED = '{"events": {"0": 0, "1": 0, "2": 0}}'
_FILES = {
    "data/copy/offsets/0": 'v1\n{"batchWatermarkMs":0}\n' + _COMMITTED,
    "data/copy/commits/0": 'v1\n{"nextBatchWatermarkMs":0}',
    "lines.txt": "first\nsecond\n",
    "users.csv": "id,name\n7,Ada\n",
    "secrets/ada": "ada-secret",
}


@dataclass(frozen=True)
class Command:
    """A line of a shell block, and the output that a console block shows for it."""

    text: str
    shown: str = ""


def commands(block: Block) -> list[Command]:
    """Return the commands of a block: a console block has them behind prompts, any other line is output."""
    text = re.sub(r"\\\n\s*", "", block.text)
    lines = [line for line in text.split("\n") if line.strip() and not line.startswith("#")]
    if block.language != "console":
        return [Command(line) for line in lines]
    found: list[Command] = []
    for line in lines:
        if line.startswith("$ "):
            found.append(Command(line[2:]))
        else:
            assert found, f"{block.place}: output without a command"
            found[-1] = Command(found[-1].text, found[-1].shown + line + "\n")
    return found


class Shell:
    """A directory, an environment, and texts that are replaced in a command, such as the address of a page's broker.

    `stdin` is what commands of this process read from standard input.
    """

    def __init__(self, directory: Path, bootstrap_servers: str, replaced: Mapping[str, str] | None = None) -> None:
        self._directory = directory
        self.stdin = b""
        self._replaced = {
            "localhost:9092": bootstrap_servers,
            "b1:9092": bootstrap_servers,
            "/run/secrets": str(directory / "secrets"),
            "/data/": f"{directory}/data/",
            "/tmp/": f"{directory}/",
            **(replaced or {}),
        }
        programs = directory / "programs"
        programs.mkdir()
        for name, script in _STAND_INS.items():
            (programs / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
            (programs / name).chmod(0o755)
        (directory / ".config" / "fish" / "completions").mkdir(parents=True)
        for name, text in _FILES.items():
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            (directory / name).write_text(text, encoding="utf-8")
        for name in ("benchmarks", "tools"):
            (directory / name).symlink_to(ROOT / name)
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("PUREKAFKA", "KAFKA"))},
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join((str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")]))),
            "HOME": str(directory),
            "XDG_CONFIG_HOME": str(directory),
            "KAFKA_BOOTSTRAP_SERVERS": bootstrap_servers,
            "ADA_PASSWORD": "ada-secret",
            "SSL_CERT_FILE": str(CERTIFICATES / "ca.pem"),
        }

    def run(self, block: Block, before: Callable[[str], None] | None = None) -> int:
        """Run the commands of a block, each after `before` was called with it; return how many there are."""
        found = commands(block)
        for command in found:
            try:
                if before is not None:
                    before(command.text)
                for beginning, preparation in _BEFORE.items():
                    if command.text.startswith(beginning):
                        self.run_line(preparation)
                printed = self.run_line(command.text, self.stdin)
            except AssertionError as error:
                raise AssertionError(f"{block.place}: {command.text}\n{error}") from None
            if command.shown:
                shown, printed = (re.sub(r":\d{4,5}\b", ":PORT", text.rstrip()) for text in (command.shown, printed))
                assert printed == shown, block.place
        return len(found)

    def run_line(self, line: str, stdin: bytes = b"") -> str:
        """Run a command; return what it printed, of an endless one the first line."""
        text = self._here(line)
        if _ENDLESS.match(text):
            return self._until_line(text)
        if _PLAIN.fullmatch(text) and not _ASKS.match(text):
            return self._in_process(text, stdin)
        return self._to_end(text)

    def run_together(self, *found: Block) -> str:
        """Run blocks as one script, whose lines may change the directory or the environment for the next."""
        return self._to_end("\n".join(self._here(command.text) for block in found for command in commands(block)))

    def _here(self, text: str) -> str:
        """Return the command with the addresses and paths of this shell."""
        names = "|".join(map(re.escape, self._replaced))
        text = re.sub(rf"(?<![\w.:-])({names})", lambda found: self._replaced[found[0]], text)
        text = re.sub(r"purekafka broker (?!.*--port)", "purekafka broker --port 0 ", text)
        return text.replace("--port 9092", "--port 0")

    def _in_process(self, text: str, stdin: bytes) -> str:
        with patch.dict(os.environ, self.environment, clear=True), chdir(self._directory):
            outcome = run(text, stdin=stdin)
        assert outcome.code == 0, f"exit code {outcome.code}\n{outcome.out}{outcome.err}"
        return outcome.out

    def _to_end(self, text: str) -> str:
        with _terminal(b"y\n") if _ASKS.match(text) else _nothing() as stdin:
            done = subprocess.run(
                ["bash", "-e", "-o", "pipefail", "-c", text],
                cwd=self._directory,
                env=self.environment,
                stdin=stdin,
                capture_output=True,
                check=False,
                timeout=TIMEOUT_S,
            )
        printed = done.stdout.decode(errors="replace")
        assert done.returncode == 0, f"exit code {done.returncode}\n{printed}{done.stderr.decode()}"
        return printed

    def _until_line(self, text: str) -> str:
        words = [sys.executable, "-m", "kafka", *shlex.split(text, comments=True)[1:]] if _PLAIN.fullmatch(text) else []
        child = quick_start.Program(
            ["bash", "-c", f"exec {text}"] if not words or "|" in text else words,
            cwd=self._directory,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert child.stdout is not None
        try:
            ready, _, _ = select.select([child.stdout], [], [], TIMEOUT_S)
            first = os.read(child.stdout.fileno(), 65536) if ready else b""
            child.send_signal(signal.SIGINT)
            _, errors = child.communicate(timeout=TIMEOUT_S)
        finally:
            child.kill()
            child.wait()
        assert first, f"printed nothing\n{errors.decode()}"
        assert child.returncode in {0, 130, -signal.SIGINT}, f"exit code {child.returncode}\n{errors.decode()}"
        return first.decode(errors="replace")


@contextmanager
def chdir(directory: Path) -> Iterator[None]:
    """Change the directory of this process for a while; contextlib has it since Python 3.11."""
    before = Path.cwd()
    os.chdir(directory)
    try:
        yield
    finally:
        os.chdir(before)


@contextmanager
def _terminal(answer: bytes) -> Iterator[int]:
    """Yield a terminal at which the answer is typed."""
    master, slave = pty.openpty()
    try:
        os.write(master, answer)
        yield slave
    finally:
        os.close(slave)
        os.close(master)


@contextmanager
def _nothing() -> Iterator[int]:
    yield subprocess.DEVNULL


@contextmanager
def shell(directory: Path) -> Iterator[Shell]:
    """Yield a shell whose brokers run until the end of the block."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATES / "server.pem", CERTIFICATES / "server.key")
    plain = start()
    try:
        with Broker(topics={"events": 3}, ssl_context=context, sasl=USERS) as secured:
            yield Shell(directory, plain.bootstrap_servers, {"b1:9093": secured.bootstrap_servers})
    finally:
        plain.close()
