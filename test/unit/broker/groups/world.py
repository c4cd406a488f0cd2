"""A world for the coordinators under test: a clock that is pushed, timers on it, topics, predictable ids."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from itertools import count
from typing import Any
from uuid import UUID, uuid5

from kafka.broker.groups.classic_member import JoinAsk


class FakeTimer:
    def __init__(self, call: Callable[..., object], args: tuple[Any, ...]) -> None:
        self.call: Callable[..., object] | None = call
        self.args = args

    def cancel(self) -> None:
        self.call = None


class World:
    """Clock, timers, topics and ids in one."""

    def __init__(self, **topics: int) -> None:
        self.now = 1_000.0
        self.topics = dict(topics)
        self._heap: list[tuple[float, int, FakeTimer]] = []
        self._order = count()
        self._ids = count(1)

    # Clock and timers

    def now_ms(self) -> int:
        return int(self.now * 1000)

    def call_later(self, delay: float, call: Callable[..., object], *args: Any) -> FakeTimer:
        timer = FakeTimer(call, args)
        heappush(self._heap, (self.now + delay, next(self._order), timer))
        return timer

    def advance(self, seconds: float) -> None:
        """Let time pass; what falls due runs at its own time, in order."""
        until = self.now + seconds
        while self._heap and self._heap[0][0] <= until:
            when, _, timer = heappop(self._heap)
            self.now = max(self.now, when)
            if timer.call is not None:
                call, timer.call = timer.call, None
                call(*timer.args)
        self.now = until

    @property
    def timers_pending(self) -> int:
        return sum(timer.call is not None for _, _, timer in self._heap)

    # Ids

    def new_id(self) -> str:
        return f"id{next(self._ids)}"

    # Topics

    def topic_names(self) -> Iterable[str]:
        return list(self.topics)

    def topic_id(self, name: str) -> UUID | None:
        return uuid5(UUID(int=7), name) if name in self.topics else None

    def topic_name(self, topic_id: UUID) -> str | None:
        return next((name for name in self.topics if self.topic_id(name) == topic_id), None)

    def partition_count(self, name: str) -> int | None:
        return self.topics.get(name)


def join_ask(
    member_id: str = "",
    *,
    instance_id: str | None = None,
    protocols: Iterable[tuple[str, bytes]] = (("range", b""),),
    session_timeout: float = 10.0,
    rebalance_timeout: float = 60.0,
    needs_id_first: bool = False,
    can_skip_assignment: bool = True,
    protocol_type: str = "consumer",
) -> JoinAsk:
    return JoinAsk(
        member_id,
        instance_id,
        "client",
        "/127.0.0.1",
        session_timeout,
        rebalance_timeout,
        protocol_type,
        list(protocols),
        needs_id_first,
        can_skip_assignment,
    )
