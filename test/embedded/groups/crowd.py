"""Many consumers of one group in one process, polled in turn, and what moved between them."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from kafka.consumer import ConsumerRebalanceListener, KafkaConsumer
from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from typing_extensions import Self


class Person(ConsumerRebalanceListener):
    """A member, what it owns, and what it has read of each partition."""

    def __init__(self, servers: str, topic: str, **configs: Any) -> None:
        self.owned: set[TopicPartition] = set()
        self.given: set[TopicPartition] = set()
        self.taken: set[TopicPartition] = set()
        self.read: dict[TopicPartition, int] = {}
        self.consumer = KafkaConsumer(bootstrap_servers=servers, auto_offset_reset="earliest", **configs)
        self.consumer.subscribe([topic], listener=self)

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        assert not self.owned & set(assigned)
        self.owned |= set(assigned)
        self.given |= set(assigned)

    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        assert set(revoked) <= self.owned
        self.owned -= set(revoked)
        self.taken |= set(revoked)

    def poll(self) -> None:
        for partition, records in self.consumer.poll().items():
            assert partition in self.owned
            self.read[partition] = records[-1].offset + 1

    @property
    def state(self) -> str:
        """Its state in the group, in words."""
        return str(self.consumer.health()["group"]["state"])


class Crowd:
    """The members of one group."""

    def __init__(self, servers: str, topic: str, partitions: int, **configs: Any) -> None:
        self.partitions = partitions
        self.people: list[Person] = []
        self._make: Callable[[], Person] = lambda: Person(servers, topic, **configs)
        self._opened = ExitStack()

    def join(self, count: int = 1) -> None:
        """Let so many more join."""
        for _ in range(count):
            person = self._make()
            self._opened.callback(person.consumer.close, timeout_ms=2000)
            self.people.append(person)
            self.poll()  # those that are there keep working

    def leave(self) -> set[TopicPartition]:
        """Let the first one leave; what it had."""
        person = self.people.pop(0)
        had = set(person.owned)
        person.consumer.close()
        return had

    def poll(self) -> None:
        for person in self.people:
            person.poll()

    def poll_until(self, condition: Callable[[], bool], what: str, seconds: float) -> float:
        """Poll in turn until something holds; how long that took."""
        began = time.monotonic()
        while not condition():
            self.poll()
            assert time.monotonic() < began + seconds, f"no {what}: {sorted(len(one.owned) for one in self.people)}"
            time.sleep(0.002)  # the members' own threads need the interpreter
        return time.monotonic() - began

    def shared_out(self) -> bool:
        """Whether everything is owned, evenly."""
        counts = [len(person.owned) for person in self.people]
        return sum(counts) == self.partitions and max(counts) - min(counts) <= 1

    def forget(self) -> None:
        """Count from now on."""
        for person in self.people:
            person.given, person.taken = set(), set()

    def moved(self) -> int:
        """How many partitions were taken from members since then."""
        return sum(len(person.taken) for person in self.people)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()
