"""Random histories of membership, on both faces and in each protocol of groups.

One or two members start, are cancelled while they start, change their subscription while they join and after
max_poll_interval_ms, take records, commit, are removed, close while they join. Each seed is a whole run; a failure
prints it, and PUREKAFKA_SEEDS="7 1200-1300" replays just those, with `pytest -m soak` and this file. Checked:

P6  a commit() that returned covers every record that was returned before; what is committed was returned to some
    application, and committed offsets never go back;
P7  no partition is owned by two members that the coordinator both counts, and listeners get each partition once;
P8  in the end the members that subscribe share all partitions;
P13 whatever was cancelled or closed, no member, thread, task or socket is left, and no internal error is logged.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import random
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Iterable
from contextlib import suppress
from typing import Any

import pytest

from kafka import KafkaConsumer
from kafka.aio import AIOKafkaConsumer
from kafka.broker import Broker
from kafka.consumer import ConsumerRebalanceListener
from kafka.errors import CommitFailedError, ConsumerStoppedError, IllegalStateError, KafkaError, KafkaTimeoutError
from kafka.structs import TopicPartition
from test.embedded.coordinator.test_model import seeds

PATIENCE = 20.0
STEPS = 25
PARTITIONS = {"a": 3, "b": 2}
ALL = [TopicPartition(topic, number) for topic, count in PARTITIONS.items() for number in range(count)]
# Long sessions: a member that does not leave is still there at the end.
SESSION = 45_000
CONFIGS = {
    "group.consumer.heartbeat.interval.ms": 30,
    "group.consumer.min.heartbeat.interval.ms": 30,
    "group.consumer.session.timeout.ms": SESSION,
    "group.initial.rebalance.delay.ms": 0,
}
KINDS: dict[str, dict[str, Any]] = {
    "eager": {"partition_assignment_strategy": ["range"]},
    "cooperative": {"partition_assignment_strategy": ["cooperative-sticky"]},
    "consumer": {"group_protocol": "consumer"},
}
JOINS = {"eager": "SyncGroup", "cooperative": "SyncGroup", "consumer": "ConsumerGroupHeartbeat"}
FACES = ("sync", "asyncio")


class Member(ConsumerRebalanceListener):
    """One consumer, what its application has seen, and what it may still expect of a commit."""

    def __init__(self, world: World, name: str, topics: Collection[str], automatic: bool) -> None:
        self.world = world
        self.name = name
        self.topics = set(topics)
        self.owned: set[TopicPartition] = set()
        self.uncommitted: dict[TopicPartition, int] = {}
        """Partition -> offset behind the last record that a commit must cover."""
        options = {
            "bootstrap_servers": world.broker.bootstrap_servers,
            "group_id": "g",
            "client_id": name,
            "auto_offset_reset": "earliest",
            "enable_auto_commit": automatic,
            "auto_commit_interval_ms": 50,
            "max_poll_interval_ms": 300,
            "retry_backoff_ms": 20,
            **KINDS[world.kind],
        }
        if world.kind != "consumer":
            options |= {"session_timeout_ms": SESSION, "heartbeat_interval_ms": 30}
        if world.face == "asyncio":
            self.consumer: Any = AIOKafkaConsumer(rebalance_timeout_ms=SESSION, **options)
        else:
            self.consumer = KafkaConsumer(consumer_timeout_ms=20, **options)
        self.consumer.subscribe(topics, listener=self)

    async def call(self, name: str, *args: Any, **options: Any) -> Any:
        """Call a method of the consumer, and wait for what it returns."""
        found = getattr(self.consumer, name)(*args, **options)
        return await found if isinstance(found, Awaitable) else found

    # Its listener

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        assert not self.owned & set(assigned), f"{self.name} got {sorted(assigned)} twice"
        self.world.check_owners(self, set(assigned))
        self.owned |= set(assigned)

    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        assert set(revoked) <= self.owned, f"{self.name} lost {sorted(revoked)}, which it did not have"
        self.owned -= set(revoked)

    on_partitions_lost = on_partitions_revoked

    # What its application does

    async def take(self, how: str) -> None:
        records: list[Any] = []
        if how == "poll":
            for batch in (await self.call("poll", timeout_ms=20)).values():
                records += batch
        elif self.world.face == "sync":
            record = next(self.consumer, None)
            records = [] if record is None else [record]
        else:
            with suppress(asyncio.TimeoutError):
                records = [await asyncio.wait_for(self.consumer.getone(), 0.02)]
        for record in records:
            partition = TopicPartition(record.topic, record.partition)
            self.world.given[partition] = max(self.world.given[partition], record.offset + 1)
            self.uncommitted[partition] = record.offset + 1

    async def commit(self) -> None:
        covers = dict(self.uncommitted)
        try:
            await self.call("commit", timeout_ms=5000)
        except (CommitFailedError, IllegalStateError) as error:
            self.world.log(f"{self.name}: {error}")
            self.uncommitted.clear()
            return
        for partition, offset in covers.items():
            stored = self.world.broker.committed("g", *partition) or 0
            assert stored >= offset, f"{self.name}: commit() returned, {partition} is at {stored} and not {offset}"
        self.uncommitted.clear()


class World:
    def __init__(self, seed: int, kind: str, face: str) -> None:
        self.rng = random.Random(f"membership/{face}/{kind}/{seed}")
        self.kind = kind
        self.face = face
        self.history: list[str] = []
        self.broker = Broker(topics=PARTITIONS, configs=CONFIGS, seed=seed)
        self.members: list[Member] = []
        self.born = 0
        self.given = dict.fromkeys(ALL, 0)
        self.stored = dict.fromkeys(ALL, 0)

    def log(self, line: str) -> None:
        self.history.append(line)

    # What must hold

    def counted(self, member: Member) -> bool:
        """Whether the coordinator counts it as a member, and it knows of nothing else."""
        generation = member.consumer._core.check_group().generation
        return generation.is_member and generation.member_id in self.broker.group_members("g")

    def check_owners(self, member: Member, assigned: set[TopicPartition]) -> None:
        for other in self.members:
            if other is not member and (both := other.owned & assigned):
                assert not (self.counted(member) and self.counted(other)), f"{member.name}, {other.name}: {both}"

    def check(self) -> None:
        for member in self.members:
            assert set(member.consumer.assignment()) <= member.owned, member.name
        for partition in ALL:
            stored = self.broker.committed("g", *partition) or 0
            assert self.stored[partition] <= stored <= self.given[partition], partition
            self.stored[partition] = stored

    # What happens

    def topics(self) -> list[str]:
        return self.rng.choice([["a"], ["b"], ["a", "b"]])

    def any(self) -> Member | None:
        return self.rng.choice(self.members) if self.members else None

    def make(self) -> Member:
        self.born += 1
        return Member(self, f"m{self.born}", self.topics(), self.rng.random() < 0.5)

    async def start(self) -> None:
        if len(self.members) < 2:
            member = self.make()
            self.members.append(member)
            if self.face == "asyncio":
                await self.start_soon(member)
            else:
                await member.take("poll")

    async def start_soon(self, member: Member) -> None:
        """Start it while the others take records: they must give partitions up."""
        starting = asyncio.ensure_future(member.consumer.start())
        while not starting.done():
            await self.others_take(member)
            await asyncio.wait({starting}, timeout=0.005)
        await starting

    async def others_take(self, member: Member) -> None:
        for other in self.members:
            if other is not member:
                await other.take("poll")

    async def start_and_give_up(self) -> None:
        """Cancel a start after some turns of the loop, fail it, or close a member that has just begun to join."""
        member = self.make()
        if self.face == "sync":
            with suppress(KafkaError):
                member.consumer.poll(timeout_ms=self.rng.choice([0, 1, 5, 20]))
            member.consumer.close()
            return
        starting = asyncio.ensure_future(member.consumer.start())
        for _ in range(self.rng.choice([0, 1, 3, 10, 30, 100])):
            await asyncio.sleep(0)
        again = self.rng.random() < 0.3 and len(self.members) < 2
        if self.rng.random() < 0.3:
            await member.consumer.stop()
        cancelled = starting.cancel()
        with suppress(asyncio.CancelledError, ConsumerStoppedError):
            await starting
        member.owned.clear()
        if again and cancelled and not member.consumer.closed:
            self.log("and start it again")
            self.members.append(member)
            await self.start_soon(member)
        else:
            await member.consumer.stop()

    async def close(self) -> None:
        if (member := self.any()) is not None:
            self.members.remove(member)
            await member.call("close", timeout_ms=20_000)
            member.owned.clear()

    async def subscribe(self) -> None:
        if (member := self.any()) is not None:
            member.topics = set(self.topics())
            member.consumer.subscribe(sorted(member.topics), listener=member)

    async def unsubscribe(self) -> None:
        if (member := self.any()) is not None:
            member.topics = set()
            member.uncommitted.clear()
            member.consumer.unsubscribe()

    async def resubscribe(self) -> None:
        await self.unsubscribe()
        if self.rng.random() < 0.5:
            await self.rest()
        for member in self.members:
            if not member.topics:
                member.topics = set(self.topics())
                member.consumer.subscribe(sorted(member.topics), listener=member)

    async def take(self) -> None:
        for _ in range(self.rng.randint(1, 5)):
            for member in tuple(self.members):
                if member.topics:
                    await member.take(self.rng.choice(["poll", "one"]))

    async def commit(self) -> None:
        if (member := self.any()) is not None and member.topics:
            await member.commit()

    async def rest(self) -> None:
        """Let the brokers and the event loop work, but not the applications."""
        await self.sleep(self.rng.choice([0.0, 0.01, 0.05]))

    async def stall(self) -> None:
        """Call poll() later than max_poll_interval_ms."""
        await self.sleep(0.45)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)  # the threads of synchronous consumers run meanwhile

    async def expire(self) -> None:
        for name in self.broker_members():
            if self.rng.random() < 0.5:
                with suppress(KafkaError):
                    self.broker.expire_member("g", name)

    def broker_members(self) -> Iterable[str]:
        try:
            return list(self.broker.group_members("g"))
        except KafkaError:  # there is no group yet
            return []

    async def write(self) -> None:
        for partition in self.rng.sample(ALL, 3):
            self.broker.append_many(partition.topic, [b"x"] * self.rng.randint(1, 20), partition=partition.partition)

    async def delay_joins(self) -> None:
        self.broker.delay(JOINS[self.kind], self.rng.choice([0.02, 0.1]), times=1)

    async def step(self) -> None:
        actions: list[Callable[[], Awaitable[None]]] = [self.start, self.start, self.start_and_give_up, self.close]
        actions += [self.subscribe, self.unsubscribe, self.resubscribe, self.take, self.take, self.take, self.commit]
        actions += [self.commit, self.rest, self.stall, self.expire, self.write, self.delay_joins]
        action = self.rng.choice(actions)
        self.log(action.__name__)
        await action()
        self.check()

    async def run(self) -> None:
        with self.broker:
            try:
                await self.write()
                for _ in range(STEPS):
                    await self.step()
                self.log("settle")
                self.broker.clear_faults()
                await self.settle()
                self.log("close")
                while self.members:
                    await self.close()
                deadline = time.monotonic() + 10  # much less than a session
                while left := self.broker_members():
                    assert time.monotonic() < deadline, f"members are left: {left}"
                    await asyncio.sleep(0.01)
                self.check()
            finally:
                for member in self.members:
                    with suppress(Exception):
                        await member.call("close", timeout_ms=0)

    async def settle(self) -> None:
        """All that subscribe share the partitions of their topics, and can commit."""
        deadline = time.monotonic() + PATIENCE
        while True:
            for member in self.members:
                if member.topics:
                    await member.take("poll")
            await asyncio.sleep(0.002)  # tasks and threads of consumers that are not called work, too
            self.check()
            owned = [partition for member in self.members for partition in member.owned]
            wanted = {topic for member in self.members for topic in member.topics}
            if sorted(owned) == [partition for partition in ALL if partition.topic in wanted]:
                break
            assert time.monotonic() < deadline, [
                (member.name, member.topics, member.owned, member.consumer.health()) for member in self.members
            ]
        for member in self.members:
            if member.topics:
                with suppress(KafkaTimeoutError):
                    await member.commit()


class InternalErrors(logging.Handler):
    """Errors with a traceback: an exception that no application gets."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info is not None:
            self.texts.append(self.format(record))


def open_files() -> int:
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


def live_through(seed: int, kind: str, face: str) -> None:
    internal = InternalErrors()
    logging.getLogger("kafka").addHandler(internal)
    gc.collect()
    loop = asyncio.SelectorEventLoop()
    threads, files = threading.active_count(), open_files()
    world = World(seed, kind, face)
    unseen: list[str] = []
    loop.set_exception_handler(lambda _loop, context: unseen.append(repr(context)))
    try:
        loop.run_until_complete(world.run())
        left = [task for task in asyncio.all_tasks(loop) if not task.done()]
        assert not left, f"tasks are left: {left}"
        gc.collect()
        assert not unseen
        assert not internal.texts, "\n".join(internal.texts)
        loop.close()
        assert threading.active_count() <= threads, [thread.name for thread in threading.enumerate()]
        assert open_files() < files, "sockets are left"  # the event loop's own files are closed, too
    except BaseException:
        print(f"PUREKAFKA_SEEDS={seed} kind={kind} face={face}")
        print("\n".join(world.history))
        raise
    finally:
        logging.getLogger("kafka").removeHandler(internal)
        loop.close()


@pytest.mark.slow
@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("seed", range(6))
def test_membership_holds_in_some_histories(seed: int, face: str) -> None:
    live_through(seed, list(KINDS)[seed % len(KINDS)], face)


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("seed", seeds())
def test_membership_holds_whatever_happens(seed: int, kind: str, face: str) -> None:
    live_through(seed, kind, face)
