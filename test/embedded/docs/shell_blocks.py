"""Runs the shell blocks of a page, with two embedded brokers behind the addresses that pages name.

Commands of purekafka and pipes of these run in this process, which takes a fraction of the time; others run in bash.
"""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from kafka.broker import Broker
from kafka.cli.sandbox import start
from test.embedded.cli.shell import run

from .blocks import ROOT, Block

CERTIFICATES = ROOT / "test" / "unit" / "net" / "certs"
SHELL = {"sh", "console"}
TIMEOUT_S = 100
# Commands that run until somebody stops them: they are interrupted when they have printed their first line.
_ENDLESS = re.compile(
    r"purekafka (broker\b(?!.* -- )|top(?!.* --count)|tail(?!.* --(no-follow|timeout))|.* --(follow|watch)\b)"
)
# Commands that ask at a terminal; the answer is yes.
_ASKS = re.compile(r"purekafka (groups reset-offsets|records delete-before|partitions reassign(-| )apply)(?!.* --yes)")
# Commands without anything for which a shell is needed but a pipe.
_PLAIN = re.compile(r"purekafka (?!.* -- )[^<>$`|&;]*(\| *purekafka [^<>$`|&;]*)*")
# Programs of the reader, in place of which stands what they would do first.
_STAND_INS = {
    "purekafka": f'exec "{sys.executable}" -m kafka "$@"',
    "npm": "exec purekafka topics describe orders",
    "go": "exec purekafka topics describe orders",
    "make": f'exec /usr/bin/make --dry-run -C "{ROOT}" "$@" > /dev/null',
}
# What an example takes for granted.
_BEFORE = {
    "purekafka acls delete": "purekafka acls allow --principal ada --consumer --topic events --group billing",
    "purekafka metrics delete": "purekafka metrics set latency --metrics org.apache.kafka.producer. --interval 30000",
    "purekafka users delete": "purekafka users set-password ada --password @env:ADA_PASSWORD",
}
_FILES = {
    "lines.txt": "first\nsecond\n",
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
    """A directory, an environment and two brokers: a plain one, and one with TLS and users."""

    def __init__(self, directory: Path, plain: Broker, secured: Broker) -> None:
        self._directory = directory
        self._plain = plain.bootstrap_servers
        self._secured = secured.bootstrap_servers
        programs = directory / "programs"
        programs.mkdir()
        for name, script in _STAND_INS.items():
            (programs / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
            (programs / name).chmod(0o755)
        (directory / ".config" / "fish" / "completions").mkdir(parents=True)
        for name, text in _FILES.items():
            (directory / name).parent.mkdir(exist_ok=True)
            (directory / name).write_text(text, encoding="utf-8")
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("PUREKAFKA", "KAFKA"))},
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join((str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")]))),
            "HOME": str(directory),
            "XDG_CONFIG_HOME": str(directory),
            "KAFKA_BOOTSTRAP_SERVERS": self._plain,
            "ADA_PASSWORD": "ada-secret",
            "SSL_CERT_FILE": str(CERTIFICATES / "ca.pem"),
        }

    def run(self, block: Block) -> int:
        """Run the commands of a block; return how many there are."""
        found = commands(block)
        for command in found:
            try:
                for beginning, preparation in _BEFORE.items():
                    if command.text.startswith(beginning):
                        self.run_line(preparation)
                printed = self.run_line(command.text)
            except AssertionError as error:
                raise AssertionError(f"{block.place}: {command.text}\n{error}") from None
            if command.shown:
                shown, printed = (re.sub(r":\d{4,5}\b", ":PORT", text.rstrip()) for text in (command.shown, printed))
                assert printed == shown, block.place
        return len(found)

    def run_line(self, line: str) -> str:
        """Run a command; return what it printed, of an endless one the first line."""
        text = self._here(line)
        if _ENDLESS.match(text):
            return self._until_line(text)
        return self._in_process(text) if _PLAIN.fullmatch(text) and not _ASKS.match(text) else self._to_end(text)

    def _here(self, text: str) -> str:
        """Return the command with the addresses and paths of this shell."""
        text = re.sub(r"\b(localhost|b1):9092\b", self._plain, text)
        text = re.sub(r"\bb1:9093\b", self._secured, text)
        text = re.sub(r"purekafka broker (?!.*--port)", "purekafka broker --port 0 ", text)
        return text.replace("--port 9092", "--port 0").replace("/run/secrets", str(self._directory / "secrets"))

    def _variables(self, text: str) -> dict[str, str]:
        """Return the environment: the address is in it, except for a command that takes it from a context."""
        hidden = {"KAFKA_BOOTSTRAP_SERVERS"} if "--context" in text else set()
        return {name: value for name, value in self._environment.items() if name not in hidden}

    def _in_process(self, text: str) -> str:
        with patch.dict(os.environ, self._variables(text), clear=True), chdir(self._directory):
            outcome = run(text)
        assert outcome.code == 0, f"exit code {outcome.code}\n{outcome.out}{outcome.err}"
        return outcome.out

    def _to_end(self, text: str) -> str:
        with _terminal(b"y\n") if _ASKS.match(text) else _nothing() as stdin:
            done = subprocess.run(
                ["bash", "-e", "-o", "pipefail", "-c", text],
                cwd=self._directory,
                env=self._variables(text),
                stdin=stdin,
                capture_output=True,
                check=False,
                timeout=TIMEOUT_S,
            )
        printed = done.stdout.decode(errors="replace")
        assert done.returncode == 0, f"exit code {done.returncode}\n{printed}{done.stderr.decode()}"
        return printed

    def _until_line(self, text: str) -> str:
        child = subprocess.Popen(
            ["bash", "-c", f"exec {text}"],
            cwd=self._directory,
            env=self._variables(text),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # A test run in the background has SIGINT ignored, which a child would keep.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
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
    users = [("PLAIN", "ada", "ada-secret"), ("SCRAM-SHA-256", "ada", "ada-secret")]
    plain = start()
    try:
        with Broker(topics={"events": 3}, ssl_context=context, sasl=users) as secured:
            yield Shell(directory, plain, secured)
    finally:
        plain.close()
