"""Random histories of raw requests, lived through by the embedded broker and Apache Kafka in lockstep.

A history is a list of steps made from a seed before anything is sent; a step says what is asked in words that both
sides understand ("the producer id that p1 got last"), never in what one broker answered. After each step the replies of
both sides are compared, with names in place of ids that a broker makes up. A history ends at its first difference, and
is then made shorter as long as the same step still differs.
"""

from __future__ import annotations

import itertools
import random
import select
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar
from uuid import UUID

from kafka.protocol.admin import CreateTopicsRequest
from kafka.protocol.api import Request
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.offset import ListOffsetsRequest
from kafka.protocol.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from kafka.protocol.struct import Struct

#: How long both sides may take to say the same, where a broker works on after its reply, in seconds.
PATIENCE = 5.0
#: Codes of what passes by itself: coordinators that are being loaded, a transaction that is being ended.
PASSING = {14, 15, 16, 51}
CLOSED = "closed the connection"

_MADE_UP = {"member_id": "member", "leader": "member", "topic_id": "topic", "producer_id": "pid", "group_id": "group"}
_IGNORED = {"throttle_time_ms", "host", "port", "client_host", "cluster_id", "transaction_start_time_ms"}
#: Names that histories choose are shorter than those that brokers make up.
_LONG = 20

Address = tuple[str, int]


class Conversation:
    """One connection to one broker; several requests may wait for their replies."""

    def __init__(self, address: Address, user: str | None = None) -> None:
        self._address, self._user = address, user
        self._numbers = itertools.count(1)
        self._waiting: dict[int, Request[Any]] = {}
        self._data = b""
        self._open()

    def _open(self) -> None:
        self.socket = socket.create_connection(self._address, 30)
        self._data, self._waiting = b"", {}
        if self._user is not None:
            self.ask(SaslHandshakeRequest[1]("PLAIN"))
            self.ask(SaslAuthenticateRequest[2](b"\0%b\0secret" % self._user.encode()))

    @property
    def is_waiting(self) -> bool:
        return bool(self._waiting)

    def send(self, request: Request[Any]) -> None:
        number = next(self._numbers)
        self._waiting[number] = request
        self.socket.sendall(request.frame(number, "history"))

    def receive(self, seconds: float) -> Any:
        """Return the next reply, None after some seconds without; ConnectionError if the broker closed."""
        deadline = time.monotonic() + seconds
        while True:
            if len(self._data) >= 4:
                size = int.from_bytes(self._data[:4], "big")
                if len(self._data) >= 4 + size:
                    frame, self._data = self._data[4 : 4 + size], self._data[4 + size :]
                    request = self._waiting.pop(int.from_bytes(frame[:4], "big"))
                    return type(request).RESPONSE_TYPE.unframe(frame)[1]
            left = deadline - time.monotonic()
            if not select.select([self.socket], [], [], max(left, 0))[0]:
                return None
            piece = self.socket.recv(1 << 20)
            if not piece:
                raise ConnectionError(CLOSED)
            self._data += piece

    def ask(self, request: Request[Any]) -> Any:
        self.send(request)
        reply = self.receive(30)
        assert reply is not None, f"no reply to {request}"
        return reply

    def reopen(self) -> None:
        self.close()
        self._open()

    def close(self) -> None:
        self.socket.close()


class Side:
    """One broker, and what a history knows of it."""

    def __init__(self, address: Address, history: str) -> None:
        self.address = address
        #: Stands in the names of topics and groups, so that histories can share a broker.
        self.history = history
        self.topic_ids: dict[str, UUID] = {}
        self._conversations: dict[str, Conversation] = {}
        self._names: dict[tuple[str, Any], str] = {}
        self._counts: dict[str, int] = {}

    def connection(self, name: str = "", user: str | None = None) -> Conversation:
        if name not in self._conversations:
            self._conversations[name] = Conversation(self.address, user)
        return self._conversations[name]

    def ask(self, request: Request[Any], name: str = "", user: str | None = None) -> Any:
        """Return a reply; None if the broker closed the connection."""
        connection = self.connection(name, user)
        try:
            return connection.ask(request)
        except ConnectionError:
            connection.reopen()
            return None

    def settled(self, make: Callable[[], Request[Any]], codes: Callable[[Any], set[int]], name: str = "") -> Any:
        """Ask until no code of the reply is one of those that pass."""
        deadline = time.monotonic() + PATIENCE * 2
        while True:
            reply = self.ask(make(), name)
            if reply is None or not codes(reply) & PASSING or time.monotonic() > deadline:
                return reply
            time.sleep(0.01)  # a broker has no event to wait for from outside

    def make_topics(self, user: str | None = None, **topics: int) -> None:
        """Create topics, and wait until their leaders serve them."""
        wanted: list[Any] = [(self.name(topic), partitions, 1, [], []) for topic, partitions in topics.items()]
        self.ask(CreateTopicsRequest[7](topics=wanted, timeout_ms=30_000), user or "", user)
        deadline = time.monotonic() + 60
        for topic, partitions in topics.items():
            while not self._is_served(self.name(topic), partitions, user):
                assert time.monotonic() < deadline, f"{topic} has no leaders"
                time.sleep(0.02)

    def _is_served(self, topic: str, partitions: int, user: str | None) -> bool:
        found = self.ask(MetadataRequest[12]([(UUID(int=0), topic)], False), user or "", user).topics[0]
        if found.error_code or len(found.partitions) != partitions:
            return False
        self.topic_ids[topic] = found.topic_id
        parts = [(number, -1, -1) for number in range(partitions)]
        reply = self.ask(ListOffsetsRequest[5](replica_id=-1, topics=[(topic, parts)]), user or "", user)
        return not any(part.error_code for part in reply.topics[0].partitions)

    def name(self, name: str) -> str:
        return f"{name}{self.history}"

    def close(self) -> None:
        for conversation in self._conversations.values():
            conversation.close()

    # What a reply says, without what is up to chance

    def plain(self, value: Any, name: str = "") -> Any:
        if isinstance(value, Struct):
            shown = {
                one: self.plain(getattr(value, one), one)
                for one in type(value)._wire_names()
                if one not in _IGNORED and not (one == "producer_id" and getattr(value, "error_code", False))
            }
            return {key: entry for key, entry in shown.items() if entry is not None}
        if isinstance(value, (list, tuple)):
            return sorted((self.plain(one, name) for one in value), key=repr)
        if name in _MADE_UP and value not in ("", None, -1):
            return self._named(_MADE_UP[name], value)
        if isinstance(value, (bytes, bytearray, memoryview)):
            return bytes(value)
        return bool(value) if name == "error_message" else value

    def _named(self, kind: str, value: Any) -> Any:
        if isinstance(value, str) and len(value) < _LONG:
            return value  # one that the history chose
        if isinstance(value, UUID):
            names = {topic_id: topic for topic, topic_id in self.topic_ids.items()}
            return names.get(value, "unknown" if value.int else "none")
        key = (kind, value)
        if key not in self._names:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._names[key] = f"{kind}-{self._counts[kind]}"
        return self._names[key]


@dataclass(frozen=True)
class Step:
    """What is asked of both brokers: the name of a method of the `Kind`, and its arguments."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    #: Whether the replies may need a while to become the same: a broker works on after it has answered a change.
    eventually: bool = False

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{key}={value!r}' for key, value in self.arguments.items())})"


class Kind(ABC):
    """What may happen in histories of one kind, with the state of one side."""

    #: How many steps a history has.
    length: ClassVar[int] = 40
    #: Whether a history goes on after a difference: then no step depends on the replies before.
    goes_on: ClassVar[bool] = False

    def __init__(self, side: Side) -> None:
        self.side = side

    @staticmethod
    @abstractmethod
    def steps(rng: random.Random, length: int) -> list[Step]:
        """Make a history."""

    @abstractmethod
    def prepare(self) -> None:
        """Create what the history is about."""

    def do(self, step: Step) -> Any:
        """Ask what a step says, and return what is to be compared."""
        return getattr(self, step.name)(**step.arguments)

    def again(self, step: Step) -> Any:
        """Look again at what an `eventually` step is about."""
        return self.do(step)

    def finish(self) -> None:  # noqa: B027 - most kinds leave nothing
        """Remove what would be in the way of other histories."""


@dataclass
class Outcome:
    """How a history ended."""

    steps: list[Step]
    done: int = 0
    differences: list[tuple[int, Step, Any, Any]] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"  {number}. {step}" for number, step in enumerate(self.steps[: self.done])]
        for number, step, real, ours in self.differences:
            lines += [f"differs at {number}. {step}", f"  Kafka:    {real}", f"  embedded: {ours}"]
        return "\n".join(lines)


_runs = itertools.count(1)


def live(kind: type[Kind], steps: Sequence[Step], real: Address, ours: Address, patience: float = PATIENCE) -> Outcome:
    """Take both sides through a history, as far as they agree."""
    label = f"-{next(_runs)}"
    sides = [Side(real, label), Side(ours, label)]
    outcome = Outcome(list(steps))
    try:
        two = [kind(side) for side in sides]
        for one in two:
            one.prepare()
        for number, step in enumerate(steps):
            outcome.done = number + 1
            said = [one.do(step) for one in two]
            deadline = time.monotonic() + patience
            while said[0] != said[1] and step.eventually and time.monotonic() < deadline:
                time.sleep(0.02)
                said = [one.again(step) for one in two]
            if said[0] != said[1]:
                outcome.differences.append((number, step, said[0], said[1]))
                if not kind.goes_on:
                    break
        for one in two:
            one.finish()
    finally:
        for side in sides:
            side.close()
    return outcome


def shortened(kind: type[Kind], outcome: Outcome, real: Address, ours: Address, tries: int = 60) -> Outcome:
    """Leave out steps for as long as the last step still differs."""
    if kind.goes_on or not outcome.differences:
        return outcome
    best = outcome
    size = max(1, (len(best.steps[: best.done]) - 1) // 2)
    while size and tries:
        steps = best.steps[: best.done]
        for begin in range(0, len(steps) - 1, size):
            tries -= 1
            less = [*steps[:begin], *steps[min(begin + size, len(steps) - 1) :]]
            found = live(kind, less, real, ours, 1.0)
            if found.differences and found.differences[0][1].name == best.differences[0][1].name:
                best = found
                break
            if not tries:
                break
        else:
            size //= 2
    return best
