"""A consumer without the fetching: a client of its own, a subscription, and its membership; polled by the test."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from kafka._core.client import Client
from kafka._runtime.network_thread import ThreadDriver, complete
from kafka.config import resolve
from kafka.consumer.subscription_state import SubscriptionState
from kafka.coordinator.consumer import ConsumerCoordinator
from kafka.structs import OffsetAndMetadata, SubscriptionPattern, TopicPartition

if TYPE_CHECKING:
    from typing_extensions import Self


PATIENCE = 60.0  # for what comes at once, if the machine is not busy


class Member:
    """Everything that a test thread needs of a group's member."""

    def __init__(
        self,
        servers: str,
        topics: Iterable[str] = ("t",),
        *,
        listener: Any = None,
        pattern: str | None = None,
        **configs: Any,
    ) -> None:
        if configs.get("group_protocol", "classic") == "classic":
            configs.setdefault("heartbeat_interval_ms", 50)
        configs = {"group_id": "g", "retry_backoff_ms": 20, **configs}
        self.config = resolve("consumer", {"bootstrap_servers": servers, **configs})
        self.client = Client(self.config)
        self.driver = ThreadDriver(self.client.loop)
        self.driver.start()
        complete(self.driver.run(self.client.begin()))
        self.subscription = SubscriptionState()
        self.coordinator = ConsumerCoordinator(
            self.client,
            self.subscription,
            config=self.config,
            application=self.driver,
        )
        self.closed = False
        if pattern is not None:
            self.client.cluster.need_all_topic_metadata = True
            self.subscription.subscribe(pattern=pattern, listener=listener)
            self.client.loop.call_soon(self.client.cluster.request_update)
        elif topics:
            self.subscribe(topics, listener)

    def subscribe(self, topics: Iterable[str], listener: Any = None) -> None:
        topics = list(topics)
        self.subscription.subscribe(topics, listener=listener)
        self.client.loop.call_soon(self.client.cluster.set_topics, topics)

    def subscribe_for_broker(self, pattern: str) -> None:
        """Subscribe to what the broker finds to match an RE2 pattern."""
        self.subscription.subscribe(pattern=SubscriptionPattern(pattern))

    def poll(self) -> None:
        self.coordinator.polled()
        if self.coordinator.due:
            complete(self.coordinator.serve())

    @property
    def assigned(self) -> set[int]:
        return {partition.partition for partition in self.subscription.assigned()}

    @property
    def state(self) -> str:
        return self.coordinator.state.name

    def consume(self, partition: TopicPartition, offset: int) -> None:
        """As if records up to here had been handed out."""
        self.subscription.seek(partition, offset)

    def run(self, coro: Any) -> Any:
        return complete(self.driver.run(coro, time.monotonic() + PATIENCE))

    def committed(self, *partitions: TopicPartition) -> list[int | None]:
        found = self.coordinator.fetch_committed_offsets(partitions)
        return [found[partition].offset if partition in found else None for partition in partitions]

    def commit(self, **offsets: int) -> None:
        """commit(t0=5) commits offset 5 of partition 0 of topic t."""
        self.coordinator.commit_offsets_sync(
            {TopicPartition(name[0], int(name[1:])): OffsetAndMetadata(offset) for name, offset in offsets.items()}
        )

    def crash(self) -> None:
        """Be gone without a word."""
        if not self.closed:
            self.closed = True

            async def end() -> None:
                self.client.shut_down()

            complete(self.driver.run(end()))
            complete(self.driver.close())

    def close(self, **how: Any) -> None:
        if not self.closed:
            try:
                self.coordinator.close(**{"timeout_ms": 5000, **how})
            finally:
                self.crash()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def poll_until(condition: Callable[[], bool], *members: Member, patience: float = PATIENCE) -> None:
    """Poll the members in turn until something holds."""
    deadline = time.monotonic() + patience
    while not condition():
        for member in members:
            member.poll()
        assert time.monotonic() < deadline, [
            (member.state, member.assigned, member.coordinator.health()) for member in members
        ]
        time.sleep(0.002)  # the members' own threads need the interpreter


def stable(*members: Member, partitions: int) -> Callable[[], bool]:
    """Whether all are in the group and the partitions are shared out evenly among them."""

    def check() -> bool:
        return all(member.state == "STABLE" and not member.coordinator.need_rejoin() for member in members) and (
            min(len(member.assigned) for member in members) >= partitions // len(members)
            and sum(len(member.assigned) for member in members) == partitions
            and len(set().union(*(member.assigned for member in members))) == partitions
        )

    return check
