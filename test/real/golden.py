"""The official Java client's own encoders and decoders, as the judge of ours.

>>> with Golden("4.3.1") as java:                          # doctest: +SKIP
...     java.read("MetadataRequest", 1, bytes.fromhex("00000000"))
Read(json={'topics': []}, data=b'\\x00\\x00\\x00\\x00', rest=0)

One JVM per release answers any number of requests; ``read_many`` and ``write_many`` send a whole batch
at once, which is some hundred times faster than one call each. JSON is that of Kafka's generated
JsonConverters: camelCase field names, bytes as base64, uuids as theirs. Records are base64 when
written; when read they show only as ``recordsSizeInBytes`` (compare them in ``data``).
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from test.scratch import Scratch

from . import jvm
from .child import Child

if TYPE_CHECKING:
    from typing_extensions import Self

SOURCE = Path(__file__).parent / "java" / "Golden.java"
STARTING_TIMEOUT = 60.0


Answer = TypeVar("Answer")


class GoldenError(Exception):
    """Java refused; the message is its exception's class and text."""


@dataclass(frozen=True, slots=True)
class Read:
    """What Java made of some bytes: as JSON, written again as bytes, and how many bytes it left unread."""

    json: Any
    data: bytes
    rest: int


class Golden:
    """The messages of one release of kafka-clients. Not for use by several threads."""

    def __init__(self, version: str) -> None:
        self.version = version
        self._scratch = Scratch()
        self._lock = threading.Lock()  # two threads that ask at once would read each other's answers
        self._java = Child(
            f"Golden.java with Kafka {version}",
            jvm.command(version, *jvm.QUICK_START, "-Xmx384m", str(SOURCE)),
            self._scratch.path / "log",
            pipes=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End the JVM; may be called twice."""
        self._java.kill()
        self._scratch.close()

    # Bytes and JSON

    def read(self, name: str, version: int, data: bytes) -> Read:
        """Decode one message, ``read("FetchRequest", 12, data)``; raises :class:`GoldenError`."""
        return _value(self.read_many([(name, version, data)])[0])

    def read_many(self, messages: Iterable[tuple[str, int, bytes]]) -> list[Read | GoldenError]:
        """Decode many messages; an error takes the place of its result."""
        answers = self._ask([f"read\t{name}\t{version}\t{data.hex()}" for name, version, data in messages])
        return [
            answer
            if isinstance(answer, GoldenError)
            else Read(json.loads(answer[0]), bytes.fromhex(answer[1]), int(answer[2]))
            for answer in answers
        ]

    def write(self, name: str, version: int, obj: Any) -> bytes:
        """Encode one message from its JSON; raises :class:`GoldenError`."""
        return _value(self.write_many([(name, version, obj)])[0])

    def write_many(self, messages: Iterable[tuple[str, int, Any]]) -> list[bytes | GoldenError]:
        """Encode many messages; an error takes the place of its result."""
        answers = self._ask([f"write\t{name}\t{version}\t{json.dumps(obj)}" for name, version, obj in messages])
        return [answer if isinstance(answer, GoldenError) else bytes.fromhex(answer[0]) for answer in answers]

    def refuse_many(self, requests: Iterable[tuple[int, int, int, bytes]]) -> list[bytes | GoldenError]:
        """For each API key, version, error code and request: the response in which Kafka says that error."""
        answers = self._ask(
            [f"refuse\t{key}\t{version}\t{code}\t{data.hex()}" for key, version, code, data in requests]
        )
        return [answer if isinstance(answer, GoldenError) else bytes.fromhex(answer[0]) for answer in answers]

    # Facts

    def versions(self, name: str) -> tuple[int, int]:
        """The lowest and highest version that the release has of a message."""
        lowest, highest = _value(self._ask([f"range\t{name}"])[0])
        return int(lowest), int(highest)

    def schema(self, name: str, version: int) -> list[dict[str, Any]]:
        """The fields in wire order: name, type, nullable, tag, and the fields of structs."""
        fields: list[dict[str, Any]] = json.loads(_value(self._ask([f"schema\t{name}\t{version}"])[0])[0])
        return fields

    def apis(self) -> list[dict[str, Any]]:
        """All APIs: name, key, lowest, highest, latest_stable, listeners, header versions from the lowest on."""
        apis: list[dict[str, Any]] = json.loads(_value(self._ask(["apis"])[0])[0])
        return apis

    # The pipe

    def _ask(self, lines: Sequence[str]) -> list[list[str] | GoldenError]:
        """Send lines, get as many answers; a thread writes, so that neither side waits for a full pipe."""
        writer = threading.Thread(target=self._send, args=(lines,), daemon=True)
        answers: list[list[str] | GoldenError] = []
        with self._lock:
            writer.start()
            for _ in lines:
                line = self._java.stdout.readline()
                if not line:
                    raise GoldenError(f"{self._java.name} ended\n{self._java.log_tail()}")
                status, *words = line.decode().rstrip("\n").split("\t")
                answers.append(words if status == "ok" else GoldenError(": ".join(words)))
            writer.join()
        return answers

    def _send(self, lines: Sequence[str]) -> None:
        with contextlib.suppress(BrokenPipeError):  # the reader finds out
            self._java.stdin.write("".join(line + "\n" for line in lines).encode())
            self._java.stdin.flush()


def _value(answer: Answer | GoldenError) -> Answer:
    if isinstance(answer, GoldenError):
        raise answer
    return answer
