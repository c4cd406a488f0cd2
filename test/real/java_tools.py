"""Kafka's own command line tools, all in one long-lived JVM: a start of each would take a second.

>>> tools = JavaTools("4.3.1")                                                          # doctest: +SKIP
>>> tools.run("TopicCommand", "--bootstrap-server", kafka.bootstrap_servers, "--list")  # doctest: +SKIP
Ended(code=0, out='events\\n', err='')
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from test.scratch import Scratch

from . import jvm
from .child import Child

if TYPE_CHECKING:
    from typing_extensions import Self

SOURCE = Path(__file__).parent / "java" / "Tools.java"
QUIET = Path(__file__).parent / "broker" / "quiet.properties"
PACKAGE = "org.apache.kafka.tools."


class Ended(NamedTuple):
    """What a tool printed, and its exit code; -1 if it did not end in time."""

    code: int
    out: str
    err: str


class JavaTools:
    """Runs one tool at a time; Java's system properties may be given."""

    def __init__(self, version: str, properties: Mapping[str, str] | None = None) -> None:
        self._scratch = Scratch()
        flags = [f"-D{key}={value}" for key, value in {"log4j2.configurationFile": QUIET, **(properties or {})}.items()]
        command = jvm.command(version, *jvm.QUICK_START, "-Xmx512m", *flags, str(SOURCE))
        self._java = Child(f"Tools.java with Kafka {version}", command, self._scratch.path / "log", pipes=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End the JVM; may be called twice."""
        self._java.kill()
        self._scratch.close()

    def run(self, main: str, *args: str, text: str = "", timeout: float = 200.0) -> Ended:
        """Run a tool, given by its class in Kafka's package of tools, to its end."""
        name = main if main.startswith(("kafka.", "org.")) else PACKAGE + main
        request = {"main": name, "args": args, "stdin": text, "timeout_ms": int(timeout * 1000)}
        self._java.stdin.write(json.dumps(request).encode() + b"\n")
        self._java.stdin.flush()
        answer = self._java.stdout.readline()
        if not answer:
            raise RuntimeError(f"the JVM of the tools ended:\n{self._java.log_tail()}")
        return Ended(**json.loads(answer))
