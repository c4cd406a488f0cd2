"""Members of a group, each library's in its own way: threads for those that block, one event loop for aiokafka.

A member polls all the time, does nothing else, and says how many partitions it has. It is closed where it polls, since
most libraries allow no other place.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

from traffic import TIMEOUT_S

POLL_S = 0.05
_HEARTBEAT_MS = 100  # how soon members hear of a rebalance: the same for all, and short, so that it is not what counts


class Members:
    """Members that share the partitions of a topic."""

    def __init__(self, bootstrap: str, topic: str, group: str, partitions: int) -> None:
        self.bootstrap, self.topic, self.group = bootstrap, topic, group
        self._partitions = partitions
        self.shares: dict[int, int] = {}  # how many partitions each has
        self._next = 0

    def join(self) -> int:
        """Let one more join; return its number."""
        number, self._next = self._next, self._next + 1
        self.shares[number] = 0
        self._start(number)
        return number

    def leave(self, number: int) -> None:
        """Let one go, and wait until it has gone."""
        self._stop(number)
        del self.shares[number]

    def settle(self) -> None:
        """Wait until all have their share: as many as the others, or one more."""
        least = self._partitions // len(self.shares)
        deadline = time.monotonic() + TIMEOUT_S
        while sum(self.shares.values()) != self._partitions or min(self.shares.values()) < least:
            if time.monotonic() > deadline:
                raise RuntimeError(f"no balance within {TIMEOUT_S:g} s: {self.shares}")
            self._turn()

    def close(self) -> None:
        for number in list(self.shares):
            self.leave(number)

    def _start(self, number: int) -> None:
        raise NotImplementedError

    def _stop(self, number: int) -> None:
        raise NotImplementedError

    def _turn(self) -> None:
        time.sleep(0.001)


class ThreadMembers(Members):
    """A thread for each member. ``make`` gives a poll, a count of the partitions, and a close."""

    def __init__(self, *args: Any, make: Callable[[Members], tuple[Callable[[], Any], Callable[[], int], Any]]) -> None:
        super().__init__(*args)
        self._make = make
        self._threads: dict[int, tuple[threading.Thread, threading.Event]] = {}

    def _start(self, number: int) -> None:
        over = threading.Event()
        thread = threading.Thread(target=self._live, args=(number, over), daemon=True)
        self._threads[number] = thread, over
        thread.start()

    def _live(self, number: int, over: threading.Event) -> None:
        poll, count, close = self._make(self)
        while not over.is_set():
            poll()
            self.shares[number] = count()
        close()

    def _stop(self, number: int) -> None:
        thread, over = self._threads.pop(number)
        over.set()
        thread.join(TIMEOUT_S)


def classic(members: Members) -> tuple[Callable[[], Any], Callable[[], int], Any]:
    """KafkaConsumer, ours and kafka-python's."""
    from kafka import KafkaConsumer
    from kafka.coordinator.assignors.range import RangePartitionAssignor

    consumer = KafkaConsumer(
        members.topic,
        bootstrap_servers=members.bootstrap,
        group_id=members.group,
        auto_offset_reset="earliest",
        heartbeat_interval_ms=_HEARTBEAT_MS,
        partition_assignment_strategy=[RangePartitionAssignor],
    )
    return (lambda: consumer.poll(timeout_ms=POLL_S * 1000)), (lambda: len(consumer.assignment())), consumer.close


def confluent(members: Members) -> tuple[Callable[[], Any], Callable[[], int], Any]:
    from confluent_kafka import Consumer

    consumer = Consumer(
        {
            "bootstrap.servers": members.bootstrap,
            "group.id": members.group,
            "auto.offset.reset": "earliest",
            "heartbeat.interval.ms": _HEARTBEAT_MS,
            "partition.assignment.strategy": "range",
        }
    )
    consumer.subscribe([members.topic])
    return (lambda: consumer.poll(POLL_S)), (lambda: len(consumer.assignment())), consumer.close


class AiokafkaMembers(Members):
    """A task for each member, on a loop that runs while somebody waits."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._loop = asyncio.new_event_loop()
        self._tasks: dict[int, tuple[asyncio.Task[None], asyncio.Event]] = {}

    def _start(self, number: int) -> None:
        over = asyncio.Event()
        self._tasks[number] = self._loop.create_task(self._live(number, over)), over

    async def _live(self, number: int, over: asyncio.Event) -> None:
        from aiokafka import AIOKafkaConsumer
        from aiokafka.coordinator.assignors.range import RangePartitionAssignor

        consumer = AIOKafkaConsumer(
            self.topic,
            bootstrap_servers=self.bootstrap,
            group_id=self.group,
            auto_offset_reset="earliest",
            heartbeat_interval_ms=_HEARTBEAT_MS,
            partition_assignment_strategy=[RangePartitionAssignor],
        )
        await consumer.start()
        while not over.is_set():
            await consumer.getmany(timeout_ms=POLL_S * 1000)
            self.shares[number] = len(consumer.assignment())
        await consumer.stop()

    def _stop(self, number: int) -> None:
        task, over = self._tasks.pop(number)
        over.set()
        self._loop.run_until_complete(asyncio.wait_for(task, TIMEOUT_S))

    def _turn(self) -> None:
        self._loop.run_until_complete(asyncio.sleep(0.001))

    def close(self) -> None:
        super().close()
        self._loop.close()
