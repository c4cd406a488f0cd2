"""Members of groups as processes of their own, of any library, and what they say of themselves."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from test.real import jvm
from test.real.broker.peer_venvs import python_of
from test.real.child import Child
from test.real.releases import NEWEST

if TYPE_CHECKING:
    from typing_extensions import Self

HERE = Path(__file__).parent
REPOSITORY = HERE.parent.parent.parent
JAVA_LINE = re.compile(r"Partition:(\d+)\tOffset:(\d+)\t(\d+)")


@dataclass(frozen=True)
class Event:
    """Something that a member said."""

    time: float
    kind: str
    what: dict[str, Any]

    @property
    def numbers(self) -> set[int]:
        """The partitions of a call of the listener."""
        return set(self.what["p"])


class Member:
    """A process that is a member of a group.

    ``ours``, ``ours-asyncio``, ``kafka-python``, ``aiokafka``, ``confluent-kafka`` or ``java``.
    """

    def __init__(self, name: str, home: Path, servers: str, topic: str, group: str, **plan: Any) -> None:
        self.name = name
        self.kind: str = plan.setdefault("kind", "ours")
        self.plan = plan
        self.killed_at: float | None = None
        self.ended_at: float | None = None
        self._diary = home / f"{name}.jsonl"
        self._diary.touch()
        self._place = 0
        self._events: list[Event] = []
        if self.kind == "java":
            self._child = self._start_java(home, servers, topic, group, plan.get("java", {}))
            return
        python = sys.executable if self.is_ours else str(python_of(self.kind))
        where = {"servers": servers, "topic": topic, "group": group, "diary": str(self._diary)}
        usual = {"protocol": "classic", "assignors": ["range"], "commit": "sync", "options": {}, "process_s": 0.15}
        whole = where | usual | plan
        env = {"PYTHONPATH": str(REPOSITORY) if self.is_ours else ""}
        self._child = Child(name, [python, str(HERE / "program.py"), json.dumps(whole)], home / f"{name}.log", env=env)

    @property
    def is_ours(self) -> bool:
        """Whether it runs this library, either face."""
        return self.kind.startswith("ours")

    def _start_java(self, home: Path, servers: str, topic: str, group: str, java: Mapping[str, str]) -> Child:
        words = ["--bootstrap-server", servers, "--topic", topic, "--group", group, "--from-beginning"]
        for shown in ("partition", "offset", "value"):
            words += ["--formatter-property", f"print.{shown}=true"]
        for option, value in {"auto.commit.interval.ms": "500", **java}.items():
            words += ["--command-property", f"{option}={value}"]
        main = "org.apache.kafka.tools.consumer.ConsoleConsumer"
        command = jvm.command(NEWEST, *jvm.QUICK_START, "-Xmx128m", main, *words)
        child = Child(self.name, command, home / f"{self.name}.log", pipes=True)
        child.follow(self._write_for_java)
        return child

    def _write_for_java(self, output: IO[bytes]) -> None:
        """Turn what the console consumer prints into lines such as ours."""
        with self._diary.open("a", buffering=1) as diary:
            for line in output:
                match = JAVA_LINE.match(line.decode())
                if match:
                    number, offset, value = map(int, match.groups())
                    row = {"t": time.monotonic(), "e": "read", "p": number, "o": [[offset] * 2], "v": [[value] * 2]}
                    diary.write(json.dumps(row) + "\n")

    # What it said

    def events(self) -> list[Event]:
        """All that it said so far."""
        with self._diary.open() as diary:
            diary.seek(self._place)
            for line in diary:
                if not line.endswith("\n"):
                    break
                self._place += len(line)
                told = json.loads(line)
                self._events.append(Event(told.pop("t"), told.pop("e"), told))
        return self._events

    @property
    def owned(self) -> set[int]:
        """The partitions that its listener was given and not asked back."""
        owned: set[int] = set()
        for event in self.events():
            if event.kind == "assigned":
                owned |= event.numbers
            elif event.kind in {"revoked", "lost"}:
                owned -= event.numbers
        return owned

    def said(self, kind: str, after: float = 0.0) -> list[Event]:
        """What it said of one kind, later than a time."""
        return [event for event in self.events() if event.kind == kind and event.time > after]

    def log(self, lines: int = 30) -> str:
        """The end of what it logged."""
        return self._child.log_tail(lines)

    def running(self) -> bool:
        """Whether its process runs."""
        return self._child.running()

    # What is done to it

    def stop(self) -> None:
        """Let it commit, leave the group and end."""
        if self.ended_at is None:
            code = self._child.stop(30)
            self.ended_at = time.monotonic()
            assert code in {0, 130, 143}, f"{self.name} ended with {code}:\n{self.log()}"

    def kill(self) -> None:
        """End it at once, as a crash does."""
        if self.ended_at is None:
            self._child.kill()
            self.killed_at = self.ended_at = time.monotonic()

    def freeze(self) -> None:
        """SIGSTOP: it says nothing more and its connections stay."""
        self._child.pause()

    def thaw(self) -> None:
        """Let it run again."""
        self._child.resume()


@dataclass
class Group:
    """Some members of one group, those that are gone included."""

    home: Path
    servers: str
    topic: str
    group: str
    partitions: int
    plan: dict[str, Any] = field(default_factory=dict)
    members: list[Member] = field(default_factory=list)

    def join(self, count: int = 1, **plan: Any) -> list[Member]:
        """Let members join; they are on their way when this returns."""
        made = []
        for _ in range(count):
            name = f"{self.group}-{plan.get('kind', 'ours')}-{len(self.members)}"
            member = Member(name, self.home, self.servers, self.topic, self.group, **{**self.plan, **plan})
            self.members.append(member)
            made.append(member)
        return made

    @property
    def live(self) -> list[Member]:
        """Those that were not ended."""
        return [member for member in self.members if member.ended_at is None]

    def shared_out(self) -> bool:
        """Whether each partition has one owner among those that live, and each of those has its share.

        What a member that does not say it (Java's) has is what the others leave.
        """
        owners = [member.owned for member in self.live if member.kind != "java"]
        least, rest = divmod(self.partitions, len(self.live))
        every = sum(map(len, owners))
        return (
            all(least <= len(owned) <= least + bool(rest) for owned in owners)
            and len(set().union(*owners)) == every
            and (every == self.partitions or len(owners) < len(self.live))
        )

    def wait(self, condition: Callable[[], bool], what: str, seconds: float = 60.0) -> float:
        """Wait until something holds; how long that took. A member that died ends the wait."""
        began = time.monotonic()
        while not condition():
            for member in self.live:
                assert member.running(), f"{member.name} died:\n{member.log(120)}"
            assert time.monotonic() < began + seconds, f"{self.group}: {what} did not come\n{self.report()}"
            time.sleep(0.05)
        return time.monotonic() - began

    def wait_shared_out(self, seconds: float = 60.0) -> float:
        """Wait until the partitions are shared out."""
        return self.wait(self.shared_out, "an owner for each partition", seconds)

    def report(self) -> str:
        """What the members have, and what they logged last."""
        return "\n".join(f"{one.name} owns {sorted(one.owned)}, logged:\n{one.log(12)}" for one in self.live)

    def stop(self) -> None:
        """Let all leave."""
        for member in self.live:
            member.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for member in self.members:
            member.kill()


def each_offset(ranges: Sequence[Sequence[int]]) -> Iterator[int]:
    """Go through ranges, ends included."""
    for low, high in ranges:
        yield from range(low, high + 1)
