"""Histories of consumers: alone or in a group, every way to read, seek, pause, subscribe and commit, mixed.

The model knows what was ever written to each partition (`Log`), and for each consumer where it may continue. Checked:

P5  each owner gets each offset once and in order, and passes only what no reader is to see;
P6  what is committed was returned to an application, and a commit() that returned covers all that was;
P7  no partition is owned by two members that the coordinator both counts, and listeners get each partition once;
P8  while no broker is there health() says so, and in the end all is read by those that share the partitions;
P11 a call that is cancelled or interrupted has taken nothing;
P13 calls end within their limits, and nothing is left: thread, task, socket, member.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import threading
import time
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import replace
from typing import Any

from kafka import KafkaConsumer
from kafka._runtime.network_thread import complete
from kafka.aio import AIOKafkaConsumer
from kafka.broker import Broker
from kafka.broker.groups.service import GroupService
from kafka.errors import (
    CommitFailedError,
    IllegalStateError,
    KafkaError,
    KafkaTimeoutError,
    LogTruncationError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
    RecordDeserializationError,
    TopicAuthorizationFailedError,
    WakeupError,
)
from kafka.record.batch_builder import BatchBuilder
from kafka.structs import OffsetAndMetadata, TopicPartition
from test.embedded.consumer.unclean import cut_log

from . import faults
from .history import CutShort, Kind, Step, chooser, now

PATIENCE = 40.0
NODES = 3
TOPICS = {"a": 3, "b": 2}
ALL = [TopicPartition(topic, number) for topic, count in TOPICS.items() for number in range(count)]
WAIT_MS = 20
#: Long: a member that does not leave is still there at the end.
SESSION = 45_000
#: Over before a stalled application polls, and on a busy machine at any time.
SHORT_SESSION = 300
GROUP = "readers"
BROKER = {
    "group.consumer.heartbeat.interval.ms": 30,
    "group.consumer.min.heartbeat.interval.ms": 30,
    "group.consumer.min.session.timeout.ms": 100,
    "group.min.session.timeout.ms": 100,
    "group.initial.rebalance.delay.ms": 0,
}
#: How members come to their partitions; "alone" they name them.
MODES: dict[str, dict[str, Any]] = {
    "alone": {},
    "range": {"partition_assignment_strategy": ["range"]},
    "roundrobin": {"partition_assignment_strategy": ["roundrobin"]},
    "sticky": {"partition_assignment_strategy": ["sticky"]},
    "cooperative": {"partition_assignment_strategy": ["cooperative-sticky"]},
    "consumer": {"group_protocol": "consumer"},
}
#: Mode, whether sessions are short, and the flavour if it is not random: seeds take turns.
TURNS: list[tuple[str, bool, str | None]] = [
    ("alone", False, None),
    ("range", True, None),
    ("consumer", False, None),
    ("alone", False, "cut"),
    ("cooperative", True, None),
    ("sticky", True, None),
    ("alone", False, "transactions"),
    ("consumer", True, None),
    ("cooperative", False, None),
    ("roundrobin", True, None),
    ("range", False, None),
]
REFUSALS = (
    RecordDeserializationError,
    OffsetOutOfRangeError,
    NoOffsetForPartitionError,
    LogTruncationError,
    TopicAuthorizationFailedError,
)
CODES = {
    "Fetch": faults.FETCH,
    "ListOffsets": faults.OFFSETS,
    "OffsetForLeaderEpoch": faults.EPOCHS,
    "Metadata": (5,),
    "OffsetCommit": (*faults.GROUP, 7),
    "OffsetFetch": faults.GROUP,
    "JoinGroup": faults.CLASSIC_MEMBER,
    "SyncGroup": faults.CLASSIC_MEMBER,
    "Heartbeat": faults.CLASSIC_MEMBER,
    "ConsumerGroupHeartbeat": faults.CONSUMER_MEMBER,
}
WAYS = {"poll": 5, "peek": 1, "iterate": 4, "getone": 3, "getmany": 3, "columns": 4}
STEPS = {
    "take": 30,
    "cut_take": 10,
    "wake": 3,
    "write": 14,
    "seek": 5,
    "seek_all": 3,
    "pause": 4,
    "resume": 2,
    "skip": 2,
    "commit": 6,
    "commit_async": 4,
    "commit_offsets": 2,
    "cut_commit": 2,
    "look": 4,
    "fault": 16,
    "trim": 1,
    "compact": 2,
    "cut_log": 2,
    "transact": 6,
    "join": 6,
    "leave": 3,
    "give_up": 3,
    "subscribe": 3,
    "unsubscribe": 2,
    "expire": 2,
    "rest": 2,
    "stall": 1,
    "crash": 3,
    "outage": 1,
}


def deserialize(data: bytes) -> bytes:
    if data.startswith(b"refused"):
        raise ValueError("refused")
    return data


class Log:
    """What was ever in a partition: some of it is for all readers, some for none, some for early ones."""

    def __init__(self) -> None:
        self.shown: dict[int, set[bytes]] = {}
        self.hidden: set[int] = set()
        """Offsets that a reader may pass: deleted, compacted, or never for readers."""
        self.positions = {0}
        """Where an application has ever come to: what may be committed."""

    def show(self, first: int, values: list[bytes]) -> None:
        for offset, value in enumerate(values, first):
            self.shown.setdefault(offset, set()).add(value)
            self.hidden.discard(offset)

    def missed(self, first: int, end: int) -> list[int]:
        """Return the offsets in a range that no reader may pass."""
        return [offset for offset in range(first, end) if offset in self.shown and offset not in self.hidden]

    def may_be_at(self, offset: int, positions: Collection[int]) -> bool:
        """Whether a reader that was at one of the positions may be at an offset without having got more."""
        before = [position for position in positions if position <= offset]
        return bool(before) and not self.missed(max(before), offset)


class Member:
    """One consumer, and what its application knows."""

    def __init__(self, world: Consumers, name: str, topics: Collection[str], listens: int) -> None:
        self.world = world
        self.name = name
        self.topics = set(topics)
        self.listens = listens
        """What its listener does besides: a number, to choose from."""
        self.skips = True
        self.owned: set[TopicPartition] = set()
        #: Revoked: in asyncio the consumer unassigns them when the task of the listener has ended.
        self.revoked: set[TopicPartition] = set()
        #: Where each partition may continue; None if that is not known.
        self.at: dict[TopicPartition, set[int] | None] = {}
        #: Assigned, and not known yet where it continues: at the committed offset.
        self.fresh: set[TopicPartition] = set()
        #: What a commit() must cover: returned since the assignment.
        self.moved: set[TopicPartition] = set()
        self.paused: set[TopicPartition] = set()
        #: The calls of callbacks of commit_async.
        self.callbacks: list[list[Any]] = []
        self.is_alone = world.mode == "alone"
        made: Any = KafkaConsumer if world.face == "threads" else AIOKafkaConsumer
        more = {"consumer_timeout_ms": WAIT_MS} if world.face == "threads" else {"rebalance_timeout_ms": SESSION}
        self.consumer: Any = made(
            bootstrap_servers=world.broker.bootstrap_servers, client_id=name, **world.options, **more
        )
        if self.is_alone:
            self.consumer.assign(ALL)
            self.assigned(ALL)
        else:
            self.consumer.subscribe(sorted(topics), listener=self)

    async def call(self, name: str, *args: Any, **options: Any) -> Any:
        return await self.world.call(getattr(self.consumer, name), *args, **options)

    # Its listener

    def assigned(self, partitions: Collection[TopicPartition]) -> None:
        for partition in partitions:
            self.owned.add(partition)
            self.revoked.discard(partition)
            self.at[partition] = {self.world.committed(partition)}
            self.fresh.add(partition)

    def lost(self, partitions: Collection[TopicPartition]) -> None:
        for partition in partitions:
            self.owned.discard(partition)
            self.revoked.add(partition)
            self.at.pop(partition, None)
            for known in (self.fresh, self.moved, self.paused):
                known.discard(partition)

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> Any:
        assert not self.owned & set(partitions), f"{self.name} got {sorted(partitions)} twice"
        self.world.check_owners(self, set(partitions))
        self.assigned(partitions)
        return self.listened(self.when_assigned(partitions))

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> Any:
        assert set(partitions) <= self.owned, f"{self.name} lost {sorted(partitions)}, which it did not have"
        return self.listened(self.when_revoked(partitions))

    def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> None:
        assert set(partitions) <= self.owned, f"{self.name} lost {sorted(partitions)}, which it did not have"
        self.lost(partitions)

    def listened(self, work: Any) -> Any:
        return now(work) if self.world.face == "threads" else work

    async def when_assigned(self, partitions: Collection[TopicPartition]) -> None:
        if self.listens & 1:
            for partition in sorted(partitions)[:1]:
                await self.look(partition)

    async def when_revoked(self, partitions: Collection[TopicPartition]) -> None:
        try:
            if self.listens & 2:
                await self.commit(within=True)
        finally:
            self.lost(partitions)

    # What it is given

    def see(self, partition: TopicPartition, offset: int, value: bytes, *, decoded: bool = True) -> None:
        log = self.world.logs[partition]
        self.world.saw(self.name, partition, offset)
        self.check(partition, offset)
        assert bytes(value) in log.shown.get(offset, ()), f"{partition}: {value!r} was never at {offset}"
        assert not decoded or not value.startswith(b"refused")
        self.moved.add(partition)
        self.place(partition, offset + 1)

    def check(self, partition: TopicPartition, offset: int) -> None:
        assert partition in self.owned, f"{self.name} got {offset} of {partition}, which it does not own"
        assert partition not in self.paused, f"{self.name} got {offset} of {partition}, which is paused"
        self.check_at(partition, offset)

    def check_at(self, partition: TopicPartition, offset: int) -> None:
        at, log = self.at[partition], self.world.logs[partition]
        if at is None:
            return
        if partition in self.fresh:
            at |= {self.world.committed(partition)} | self.world.observed[partition]
        assert log.may_be_at(offset, at), f"{self.name}: {offset} of {partition} came, {sorted(at)} is next"

    def place(self, partition: TopicPartition, offset: int) -> None:
        self.fresh.discard(partition)
        self.at[partition] = {offset}
        self.world.logs[partition].positions.add(offset)

    def see_records(self, found: dict[TopicPartition, list[Any]]) -> int:
        for partition, records in found.items():
            for record in records:
                self.see(partition, record.offset, record.value)
        return sum(map(len, found.values()))

    def see_record(self, record: Any) -> int:
        self.see(TopicPartition(record.topic, record.partition), record.offset, record.value)
        return 1

    def see_columns(self, found: dict[TopicPartition, Any]) -> int:
        for partition, columns in found.items():
            for offset, value in zip(columns.offsets, columns.values, strict=True):
                self.see(partition, int(offset), bytes(value), decoded=False)
        return sum(len(columns) for columns in found.values())

    def peek(self, found: dict[TopicPartition, list[Any]]) -> int:
        count = self.see_records(found)
        for partition, records in found.items():
            if records:
                self.place(partition, records[0].offset)
        return count

    async def refused(self, error: Any) -> None:
        """What an application does with an error in the place of records."""
        if isinstance(error, TopicAuthorizationFailedError):
            return
        partition = error.topic_partition
        log = self.world.logs[partition]
        if isinstance(error, RecordDeserializationError):
            self.check(partition, error.offset)
            assert any(value.startswith(b"refused") for value in log.shown[error.offset])
            self.place(partition, error.offset)
            if self.skips:
                self.consumer.seek(partition, error.offset + 1)
                self.place(partition, error.offset + 1)
                self.moved.add(partition)
            return
        assert self.is_alone, f"{error!r} despite of auto_offset_reset"
        start = self.world.broker.offsets(*partition)[0]
        at = self.at[partition]
        self.world.note(f"{self.name}: {error!r}"[:200])
        nowhere = self.world.flavour == "cut" or isinstance(error, NoOffsetForPartitionError)
        assert nowhere or at is None or min(at) < start, f"{error!r} but the log begins at {start}"
        target = start
        if isinstance(error, LogTruncationError) and error.divergent_offsets:
            target = error.divergent_offsets[partition].offset
            target = target if at is None else min(target, *at)
        self.consumer.seek(partition, target)
        self.place(partition, target)

    # What it calls

    def way(  # noqa: C901 - one line for each
        self, way: str, count: int, partition: TopicPartition
    ) -> Callable[[], Awaitable[int]]:
        """Return a call that takes records and looks at them, or at the error in their place."""
        threads = self.world.face == "threads"

        async def look() -> int:
            try:
                return await take()
            except REFUSALS as error:  # here: before a task that serves the group revokes the partition
                await self.refused(error)
                return 0

        async def take() -> int:
            if way == "poll":
                return self.see_records(await self.call("poll", WAIT_MS, max_records=count))
            if way == "peek":
                return self.peek(await self.call("poll", WAIT_MS, max_records=count, update_offsets=False))
            if way == "columns":
                return self.see_columns(await self.call("poll_batches", WAIT_MS, max_records=count))
            if threads and way == "iterate":
                for record in itertools.islice(self.consumer, count):
                    self.see_record(record)
                return 1
            if threads:
                record = next(self.consumer, None)
                return 0 if record is None else self.see_record(record)
            if way == "getmany":
                chosen = () if count == 1 or partition not in self.owned else (partition,)
                return self.see_records(await self.call("getmany", *chosen, timeout_ms=WAIT_MS, max_records=count))
            if way == "getone":
                chosen = () if count < 500 or partition not in self.owned else (partition,)
                return self.see_record(await self.call("getone", *chosen))
            for _ in range(min(count, 30)):
                self.see_record(await self.call("__anext__"))
            return 1

        return look

    async def take(self, way: str, count: int, partition: TopicPartition) -> int:
        """Take records, for a moment if there are none."""
        work = self.way(way, count, partition)
        self.world.story.append(f"    {self.name}.{way}")
        if self.world.face == "threads" or way in {"poll", "peek", "columns", "getmany"}:
            return await work()
        task = asyncio.ensure_future(work())
        await asyncio.wait({task}, timeout=2 * WAIT_MS / 1000)
        task.cancel()
        with suppress(asyncio.CancelledError):
            return await task
        return 0

    async def cut_take(self, way: str, count: int, partition: TopicPartition, cut: float) -> None:
        try:
            await self.world.cut(cut, self.way(way, count, partition))
        except CutShort:
            self.interrupted()

    def interrupted(self) -> None:
        """Ctrl-C may have come in the place of a call of the listener: the rebalance continues without it."""
        if not self.is_alone and self.world.face == "threads":
            assigned = set(self.consumer.assignment())
            self.lost(self.owned - assigned)
            self.assigned(assigned - self.owned)

    async def look(self, partition: TopicPartition) -> None:
        """Ask for the position: it is known afterwards."""
        if partition not in self.owned:
            return
        try:
            position = await self.call("position", partition, timeout_ms=3000, limit=3)
        except (KafkaTimeoutError, IllegalStateError):
            return
        except REFUSALS as error:
            await self.refused(error)
            return
        if partition in self.owned:
            self.check_at(partition, position)
            if self.at[partition] is None or partition in self.fresh:
                self.place(partition, position)

    def covers(self) -> dict[TopicPartition, int]:
        found = {}
        for partition in self.moved & self.owned:
            at = self.at[partition]
            if at is not None and len(at) == 1:
                found[partition] = next(iter(at))
        return found

    async def commit(self, *, within: bool = False, cut: float | None = None) -> None:
        covers, began = self.covers(), dict(self.at)
        try:
            if cut is None:
                await self.call("commit", timeout_ms=5000, limit=5)
            else:
                await self.world.cut(cut, lambda: self.call("commit", timeout_ms=5000, limit=5))
        except CutShort:
            self.interrupted()
            return
        except (CommitFailedError, KafkaTimeoutError, IllegalStateError) as error:
            self.world.note(f"{self.name}: {type(error).__name__}: {error}")
            if isinstance(error, CommitFailedError):
                assert not self.is_alone
                self.moved.clear()
            return
        for partition, offset in covers.items():
            if not within and (partition not in self.owned or self.at[partition] is not began[partition]):
                continue  # a listener has been called meanwhile
            stored = self.world.committed(partition)
            assert self.world.logs[partition].may_be_at(stored, {offset}), (
                f"{self.name}: commit() returned, {partition} is stored as {stored} and not {offset}"
            )

    def commit_async(self) -> None:
        called: list[Any] = []
        self.callbacks.append(called)
        with suppress(CommitFailedError, IllegalStateError):
            try:
                self.consumer.commit_async(callback=lambda offsets, answer: called.append(answer))
            except BaseException:
                self.callbacks.remove(called)
                raise

    async def crash(self) -> None:
        """Be gone without a word."""
        self.may_be_committed()
        core = self.consumer._core
        if self.world.face == "asyncio":
            core.client.shut_down()
            await core.application.close(1.0)
            self.consumer._stopped()
        elif not core.closed:
            core.closed = True

            async def end() -> None:
                core.client.shut_down()

            complete(core.application.run(end()))
            complete(core.application.close(1.0))
            if core.metrics is not None:
                core.metrics.close()
        self.lost(tuple(self.owned))

    def may_be_committed(self) -> None:
        for partition in self.owned:
            self.world.logs[partition].positions |= self.at[partition] or set()

    async def close(self, timeout: float = 20.0) -> None:
        self.may_be_committed()
        await self.call("close", timeout_ms=timeout * 1000, limit=timeout)
        self.lost(tuple(self.owned))
        assert all(len(called) <= 1 for called in self.callbacks), f"a callback was called twice: {self.callbacks}"


class Consumers(faults.Faults, Kind):
    """One consumer that names its partitions, or up to three in a group."""

    length = 30

    def __init__(self, seed: int, face: str) -> None:
        super().__init__(seed, face)
        rng = self.rng
        self.mode, self.is_short, flavour = TURNS[seed % len(TURNS)]
        self.flavour = flavour or rng.choice(["plain", "transactions", "transactions", "compacted"])
        session = SHORT_SESSION if self.is_short else SESSION
        self.options: dict[str, Any] = {
            "group_id": GROUP,
            "auto_offset_reset": "none" if self.mode == "alone" else "earliest",
            "enable_auto_commit": rng.random() < 0.5,
            "auto_commit_interval_ms": 40,
            "isolation_level": "read_committed" if self.flavour == "transactions" else "read_uncommitted",
            "value_deserializer": deserialize,
            "fetch_max_wait_ms": 10,
            "max_partition_fetch_bytes": rng.choice([200, 2000, 1 << 20]),
            "fetch_buffer_memory": rng.choice([500, 20_000, 1 << 20]),
            "max_poll_records": rng.choice([5, 500]),
            "retry_backoff_ms": 5,
            "retry_backoff_max_ms": 50,
            "reconnect_backoff_ms": 5,
            "reconnect_backoff_max_ms": 20,
            "request_timeout_ms": 1500,
            **MODES[self.mode],
        }
        if self.mode != "alone":
            self.options["max_poll_interval_ms"] = 600
        if "partition_assignment_strategy" in self.options:
            self.options |= {"session_timeout_ms": session, "heartbeat_interval_ms": 30}
        self.fetch_version = rng.choice([17, 17, 12, 11, 6])
        configs = BROKER | {"group.consumer.session.timeout.ms": session}
        self.broker = Broker(nodes=NODES, configs=configs, seed=seed)
        self.logs = {partition: Log() for partition in ALL}
        #: What was seen as committed, and when the last look was: all of it is checked.
        self.observed: dict[TopicPartition, set[int]] = {partition: set() for partition in ALL}
        #: What was stored at any time, also for a moment between two looks.
        self.stored: dict[TopicPartition, set[int]] = {partition: set() for partition in ALL}
        self.members: list[Member] = []
        self.born = self.count = 0
        self.run = (0, 0)
        """The offsets in the last line of the story."""
        self.sequences: dict[tuple[int, TopicPartition], int] = {}
        self.open: dict[TopicPartition, tuple[int, list[tuple[int, list[bytes]]]]] = {}

    def settings(self) -> str:
        some = {name: value for name, value in self.options.items() if name != "value_deserializer"}
        sessions = "short sessions, " if self.is_short else ""
        return f"{self.mode}, {sessions}{self.flavour}, Fetch v{self.fetch_version}: {some}"

    # The steps

    @classmethod
    def steps(cls, rng: random.Random, length: int) -> list[Step]:  # noqa: C901, PLR0912 - two lines for each kind
        name_of, way_of = chooser(rng, STEPS), chooser(rng, WAYS)
        found = [Step("write", {"partition": number, "sizes": [20], "bad": [3]}) for number in range(len(ALL))]
        found.append(Step("join", {"topics": ["a", "b"], "listens": 0}))
        while len(found) < length:
            name = name_of()
            who, partition = rng.randrange(3), rng.randrange(len(ALL))
            count = rng.choice([1, 2, 7, 100, 2000])
            topics = rng.choice([["a"], ["b"], ["a", "b"]])
            reading = {"member": who, "way": way_of(), "count": count, "partition": partition}
            arguments: dict[str, Any] = {"member": who}
            if name == "take":
                arguments = reading
            elif name == "cut_take":
                arguments = {**reading, "cuts": [round(rng.random() ** 2, 3) for _ in range(4)]}
            elif name == "write":
                sizes = rng.choice([[1], [5], [10, 10, 10], [300], [1, 700, 2]])
                bad = sorted(rng.sample(range(sum(sizes)), min(sum(sizes), rng.choice([0, 0, 1, 3]))))
                arguments = {"partition": partition, "sizes": sizes, "bad": bad}
            elif name == "seek":
                arguments |= {"partition": partition, "where": rng.choice([0.0, 0.1, 0.5, rng.random(), 1.0])}
            elif name == "seek_all":
                arguments |= {"where": rng.choice(["beginning", "end", "committed"]), "partition": partition}
            elif name in {"pause", "resume", "look"}:
                arguments |= {"partition": partition}
            elif name == "skip":
                arguments |= {"skips": rng.random() < 0.5}
            elif name == "cut_commit":
                arguments |= {"cut": rng.random()}
            elif name == "commit_offsets":
                arguments |= {"partition": partition}
            elif name == "fault":
                found.append(rng.choice(faults.steps(rng, CODES, NODES)))
                continue
            elif name in {"trim", "cut_log"}:
                arguments = {"partition": partition, "where": rng.random()}
            elif name == "transact":
                how = rng.choice(["write", "write", "commit", "abort"])
                arguments = {"partition": partition, "size": rng.choice([1, 3, 60, 400]), "how": how}
            elif name == "join":
                arguments = {"topics": topics, "listens": rng.randrange(4)}
            elif name == "leave":
                arguments |= {"timeout": rng.choice([0, 0.5, 20])}
            elif name == "give_up":
                arguments = {"topics": topics, "cut": rng.random(), "again": rng.random() < 0.3}
            elif name == "subscribe":
                arguments |= {"topics": topics, "pattern": rng.random() < 0.2}
            elif name == "unsubscribe":
                arguments |= {"seconds": rng.choice([0.0, 0.0, 0.03])}
            elif name in {"compact", "outage"}:
                arguments = {}
            elif name == "rest":
                arguments = {"seconds": rng.choice([0.0, 0.01, 0.06])}
            elif name == "stall":
                arguments = {"seconds": 0.8}
            found.append(Step(name, arguments))
        return found

    async def begin(self) -> None:
        self.broker.start()
        self.broker.advertise("Fetch", 0, self.fetch_version)
        self.broker.intercept("OffsetCommit", self.note_stored)
        config = {"cleanup.policy": "compact"} if self.flavour == "compacted" else {}
        for topic, count in TOPICS.items():
            self.broker.create_topic(topic, count, configs=config)

    async def do(self, step: Step) -> None:
        await super().do(step)
        for member in self.members:
            if not member.is_alone:
                told = member.owned | member.revoked
                assert set(member.consumer.assignment()) <= told, f"{member.name} was not told"
        self.check_committed()

    def member(self, number: int) -> Member | None:
        return self.members[number % len(self.members)] if self.members else None

    # What must hold

    def committed(self, partition: TopicPartition) -> int:
        return self.broker.committed(GROUP, *partition) or 0

    def note_stored(self, _exchange: object) -> None:
        for partition in ALL:
            self.stored[partition].add(self.committed(partition))

    def check_committed(self) -> None:
        for partition, log in self.logs.items():
            stored = self.committed(partition)
            if stored not in self.observed[partition]:
                assert log.may_be_at(stored, log.positions), f"{partition}: {stored} is committed, nobody came so far"
                self.observed[partition].add(stored)

    def goes_elsewhere(self, partition: TopicPartition) -> None:
        """Tell the rules of commits, if they are checked, that an application chooses a position."""
        watcher: Any = self.broker.run(lambda cluster: cluster.faults.watcher)
        if watcher is not None:
            self.broker.run(lambda _: watcher.commits.sought(partition))

    def counted(self, member: Member) -> bool:
        """Whether the coordinator counts it as a member, and it knows of nothing else."""
        generation = member.consumer._core.check_group().membership.generation
        return generation.is_member and generation.member_id in self.broker.group_members(GROUP)

    def check_owners(self, member: Member, assigned: set[TopicPartition]) -> None:
        for other in self.members:
            if other is not member and (both := other.owned & assigned):
                assert not (self.counted(member) and self.counted(other)), f"{member.name}, {other.name}: {both}"

    # What is written

    def values(self, count: int, bad: Collection[int] = ()) -> list[bytes]:
        self.count += count
        return [
            b"%b%d" % (b"refused " if number in bad else b"", self.count - count + number) for number in range(count)
        ]

    async def write(self, partition: int, sizes: list[int], bad: list[int]) -> None:
        """Append batches, with some records that the deserializer refuses."""
        where = ALL[partition]
        values = self.values(sum(sizes), bad)
        for size in sizes:
            batch, values = values[:size], values[size:]
            keys = [b"%d" % (number % 7) for number in range(size)]
            first = self.broker.append_many(where.topic, list(zip(keys, batch, strict=True)), partition=where.partition)
            self.logs[where].show(first, batch)

    async def transact(self, partition: int, size: int, how: str) -> None:
        """Write within a transaction, or end the one that is open."""
        where = ALL[partition]
        if self.flavour != "transactions":
            return
        if how != "write":
            if where in self.open:
                self.end_transaction(where, committed=how == "commit")
            return
        producer, written = self.open.setdefault(where, (self.count + 1000, []))
        values = self.values(size)
        builder = BatchBuilder(1 << 20)
        for value in values:
            builder.append(1_700_000_000_000, None, value)
        sequence = self.sequences.get((producer, where), 0)
        self.sequences[producer, where] = sequence + len(values)
        data = builder.seal(producer_id=producer, producer_epoch=0, base_sequence=sequence, transactional=True).data
        first = self.broker.run(lambda cluster: cluster.append(cluster.partition(*where), data))
        written.append((first, values))

    def end_transaction(self, partition: TopicPartition, *, committed: bool) -> None:
        producer, written = self.open.pop(partition)
        # Before the marker is there: from then on a reader may have them.
        for first, values in written:
            if committed:
                self.logs[partition].show(first, values)
            else:
                self.logs[partition].hidden.update(range(first, first + len(values)))
        self.broker.run(
            lambda cluster: cluster.append_marker(cluster.partition(*partition), producer, 0, committed=committed)
        )

    async def trim(self, partition: int, where: float) -> None:
        """Delete the records before an offset."""
        chosen = ALL[partition]
        start, stable, _ = self.broker.offsets(*chosen)
        offset = start + int(where * max(0, stable - start))
        self.logs[chosen].hidden.update(range(offset))
        self.broker.run(lambda cluster: cluster.partition(*chosen).log.delete_before(offset))

    async def compact(self) -> None:
        """Compact all topics."""
        if self.flavour != "compacted":
            return
        for partition, log in self.logs.items():
            log.hidden.update(range(self.broker.offsets(*partition)[2]))
        for topic in TOPICS:
            self.broker.roll(topic)
        self.broker.compact()
        for partition, log in self.logs.items():
            for record in self.broker.records(*partition):
                log.hidden.discard(record.offset)

    async def cut_log(self, partition: int, where: float) -> None:
        """Have a broker lead whose log is shorter."""
        if self.flavour != "cut":
            return
        chosen = ALL[partition]
        start, _, end = self.broker.offsets(*chosen)
        leader = self.broker.leader(*chosen)
        cut_log(self.broker, chosen, start + int(where * (end - start)), leader % NODES + 1)

    # What members do

    async def join(self, topics: list[str], listens: int) -> None:
        """Have one more member."""
        if len(self.members) >= (1 if self.mode == "alone" else 3):
            return
        member = self.make(topics, listens)
        self.members.append(member)
        if self.face == "asyncio":
            await self.start(member)

    def make(self, topics: list[str], listens: int) -> Member:
        self.born += 1
        return Member(self, f"m{self.born}", topics, listens)

    async def start(self, member: Member) -> None:
        """Start it while the others take records: they must give partitions up."""
        starting = asyncio.ensure_future(member.consumer.start())
        begun = time.monotonic()
        while not starting.done():
            for other in self.members:
                if other is not member and other.topics:
                    await other.take("poll", 5, ALL[0])
            await asyncio.wait({starting}, timeout=0.005)
            assert time.monotonic() < begun + 60 + 20, (
                f"start() of {member.name} takes {time.monotonic() - begun:.1f} s"
            )
        try:
            await starting
        except KafkaError as error:  # faults may last as long as it waits
            self.note(f"{member.name} does not start: {error!r}")
            self.members.remove(member)

    async def give_up(self, topics: list[str], cut: float, again: bool) -> None:
        """Cancel the start of a member, or close one that has just begun to join."""
        if self.mode == "alone" or len(self.members) >= 3:
            return
        member = self.make(topics, 0)
        if self.face == "threads":
            try:
                member.see_records(member.consumer.poll(timeout_ms=int(30 * cut)))
            except REFUSALS as error:
                await member.refused(error)
            await member.close()
            return
        try:
            await self.cut(cut, member.consumer.start)
        except CutShort:
            if again:  # a start() that was cancelled may be called again
                member.lost(tuple(member.owned))
                self.members.append(member)
                await self.start(member)
                return
        await member.close()

    async def leave(self, member: int, timeout: float) -> None:
        """Close a member."""
        if len(self.members) > 1 and (found := self.member(member)) is not None:
            self.members.remove(found)
            if timeout < 20 and self.mode != "alone":
                timeout = 20  # one that cannot leave stays in the group until its session ends
            await found.close(timeout)

    async def crash(self, member: int) -> None:
        """End a member without a word: the coordinator finds out when its session ends."""
        if self.is_short and len(self.members) > 1 and (found := self.member(member)) is not None:
            self.members.remove(found)
            await found.crash()

    async def subscribe(self, member: int, topics: list[str], pattern: bool) -> None:
        """Subscribe to other topics, by their names or by a pattern; alone, assign."""
        if (found := self.member(member)) is None:
            return
        found.topics = set(topics)
        if found.is_alone:
            wanted = [partition for partition in ALL if partition.topic in topics]
            found.lost([partition for partition in found.owned if partition not in wanted])
            found.consumer.assign(wanted)
            found.assigned([partition for partition in wanted if partition not in found.owned])
        elif pattern:
            found.consumer.subscribe(pattern=f"[{''.join(topics)}]", listener=found)
        else:
            found.consumer.subscribe(topics, listener=found)

    async def unsubscribe(self, member: int, seconds: float) -> None:
        """Read nothing, and after a moment something again."""
        if (found := self.member(member)) is None:
            return
        await found.call("unsubscribe")
        await asyncio.sleep(seconds)
        if found.is_alone:
            found.lost(tuple(found.owned))
            await self.subscribe(member, sorted(found.topics), False)
        else:
            found.consumer.subscribe(sorted(found.topics), listener=found)

    async def expire(self, member: int) -> None:
        """End the session of a member."""
        if (found := self.member(member)) is not None and self.mode != "alone":
            with suppress(KafkaError):
                self.broker.expire_member(GROUP, found.name)

    async def take(self, member: int, way: str, count: int, partition: int) -> None:
        """Take records, in one of many ways; the others poll meanwhile, as they must."""
        for other in self.members:
            if other is self.member(member):
                await other.take(way, count, ALL[partition])
            elif other.topics:
                await other.take("poll", 5, ALL[partition])

    async def cut_take(self, member: int, way: str, count: int, partition: int, cuts: list[float]) -> None:
        """Take records, and be cancelled or interrupted, some times in a row."""
        if (found := self.member(member)) is not None:
            for cut in cuts:
                await found.cut_take(way, count, ALL[partition], cut)

    async def wake(self, member: int) -> None:
        """Call wakeup() from another thread, during a poll() or before one."""
        if (found := self.member(member)) is None:
            return
        waker = threading.Timer(0.002, found.consumer.wakeup)
        waker.start()
        begun = time.monotonic()
        try:
            while time.monotonic() < begun + PATIENCE:
                if self.face == "threads":
                    await found.take("poll", 5, ALL[0])
                else:
                    await found.take("getmany", 5, ALL[0])
        except WakeupError:
            return
        finally:
            waker.join()
        raise AssertionError("wakeup() woke nothing")

    async def seek(self, member: int, partition: int, where: float) -> None:
        """Go to an offset between the start and the end of the log."""
        found, chosen = self.member(member), ALL[partition]
        if found is None or chosen not in found.consumer.assignment():
            return
        start, stable, _ = self.broker.offsets(*chosen)
        offset = start + int(where * max(0, stable - start))
        self.goes_elsewhere(chosen)
        found.consumer.seek(chosen, offset)
        found.place(chosen, offset)
        found.moved.add(chosen)

    async def seek_all(self, member: int, where: str, partition: int) -> None:
        """Go to the beginning or the end of a partition, or to the committed offset."""
        found, chosen = self.member(member), ALL[partition]
        if found is None or chosen not in found.consumer.assignment():
            return
        before = self.broker.offsets(*chosen)
        possible: set[int] | None = {before[0]} if where == "beginning" else None
        if where == "committed":
            if self.broker.committed(GROUP, *chosen) is None and (found.is_alone or self.face == "asyncio"):
                return  # auto_offset_reset is none; or the position stays, as with aiokafka
            possible = {self.committed(chosen)}
        self.goes_elsewhere(chosen)
        with suppress(IllegalStateError if self.mode != "alone" else ()):
            with suppress(KafkaTimeoutError):
                await found.call(f"seek_to_{where}", chosen)
            if chosen not in found.owned or chosen not in found.consumer.assignment():
                return
            if where == "end":
                self.logs[chosen].positions.update(range(before[1], before[2] + 1))
            found.at[chosen] = possible
            found.fresh.discard(chosen)
            found.moved.discard(chosen)
            if where == "committed":
                found.fresh.add(chosen)  # a commit that is under way may come first
            await found.look(chosen)
            after = self.broker.offsets(*chosen)
            at = found.at.get(chosen)
            if where == "end" and at is not None:
                assert min(at) >= before[1], f"seek_to_end() went to {at}, the end was {before[1]}"
                assert max(at) <= after[2]

    async def pause(self, member: int, partition: int) -> None:
        """Pause a partition."""
        found, chosen = self.member(member), ALL[partition]
        if found is not None and chosen in found.consumer.assignment():
            found.consumer.pause(chosen)
            if chosen in found.owned:
                found.paused.add(chosen)

    async def resume(self, member: int, partition: int) -> None:
        """Resume a partition."""
        found, chosen = self.member(member), ALL[partition]
        if found is not None and chosen in found.consumer.assignment():
            found.consumer.resume(chosen)
            found.paused.discard(chosen)

    async def skip(self, member: int, skips: bool) -> None:
        """Step over records that the deserializer refuses, from now on, or meet them again and again."""
        if (found := self.member(member)) is not None:
            found.skips = skips

    async def commit(self, member: int) -> None:
        """Commit, and look at what is stored."""
        if (found := self.member(member)) is not None:
            await found.commit()

    async def cut_commit(self, member: int, cut: float) -> None:
        """Commit, and be cancelled or interrupted; it continues."""
        if (found := self.member(member)) is not None:
            await found.commit(cut=cut)

    async def commit_async(self, member: int) -> None:
        """Commit without waiting."""
        if (found := self.member(member)) is not None:
            found.commit_async()

    async def commit_offsets(self, member: int, partition: int) -> None:
        """Commit the offset of one partition by name."""
        found, chosen = self.member(member), ALL[partition]
        if found is None or chosen not in found.covers():
            return
        offset = found.covers()[chosen]
        try:
            await found.call("commit", {chosen: OffsetAndMetadata(offset, "", -1)}, timeout_ms=5000, limit=5)
        except (CommitFailedError, KafkaTimeoutError, IllegalStateError) as error:
            self.note(f"{found.name}: {error!r}")
            return
        if found.covers().get(chosen) == offset:
            assert self.committed(chosen) == offset, f"commit() returned, {self.committed(chosen)} is stored"

    def saw(self, name: str, partition: TopicPartition, offset: int) -> None:
        """Note which offsets came, in one line as long as they follow each other."""
        line, (begun, end) = f"    {name} got {partition.topic}-{partition.partition} ", self.run
        if self.story and end == offset and self.story[-1] == f"{line}{begun}..{end - 1}":
            self.story.pop()
        else:
            begun = offset
        self.run = begun, offset + 1
        self.story.append(f"{line}{begun}..{offset}")

    async def look(self, member: int, partition: int) -> None:
        """Ask for position, committed offset, lag, paused partitions and health."""
        found, chosen = self.member(member), ALL[partition]
        if found is None:
            return
        await found.look(chosen)
        with suppress(KafkaTimeoutError):
            said = await found.call("committed", chosen, timeout_ms=3000, limit=3)
            assert said is None or said in self.stored[chosen] | {0}, f"{said} was never committed for {chosen}"
        paused = set(found.consumer.paused())
        assert paused & found.owned == found.paused & set(found.consumer.assignment()), f"paused: {paused}"
        found.consumer.health()

    # What happens to all

    async def rest(self, seconds: float) -> None:
        """Let brokers, threads and tasks work, but no application."""
        await asyncio.sleep(seconds)

    stall = rest

    async def outage(self) -> None:
        """Stop all brokers: health() says that nothing can be read. Then start them again."""
        for node in range(1, NODES + 1):
            self.broker.stop_node(node, crash=True)
        deadline = time.monotonic() + PATIENCE
        try:
            while any((health := member.consumer.health())["ok"] for member in self.members):
                for member in self.members:  # each, or it leaves the group, and no broker hears of it
                    await member.take("poll", 500, ALL[0])
                assert time.monotonic() < deadline, f"no broker is there, and health() says {health}"
            assert all(member.consumer.health()["problems"] for member in self.members)
        finally:
            for node in range(1, NODES + 1):
                self.broker.start_node(node)

    # The end

    async def finish(self) -> None:
        self.broker.clear_faults()
        for partition in list(self.open):
            self.end_transaction(partition, committed=True)
        for number in range(len(ALL)):
            await self.write(number, [3], [1])
        if not self.members:
            await self.join(["a", "b"], 0)
        for member in self.members:
            member.skips = True
        if self.mode != "alone":
            self.give_time()
        await self.read_all()
        while self.members:
            member = self.members.pop()
            await member.close()
        deadline = time.monotonic() + 10  # much less than a session
        while self.mode != "alone" and (left := self.broker.group_members(GROUP)):
            assert time.monotonic() < deadline, f"members are left in the group: {left}"
            await asyncio.sleep(0.01)
        self.check_committed()

    def give_time(self) -> None:
        """Give members and their coordinator as much time as in life.

        On a busy machine some hundred milliseconds may be over each time before anything was done.
        """

        def raise_session(cluster: Any) -> None:
            coordinator = cluster.service(GroupService).coordinator
            for keeper in (coordinator, *coordinator.groups.values()):
                keeper.settings = replace(keeper.settings, consumer_session_timeout=SESSION / 1000)

        self.broker.run(raise_session)
        for member in self.members:
            membership = member.consumer._core.check_group().membership
            membership.heartbeat.timeout = membership.heartbeat.poll_interval = SESSION / 1000
            membership.request_rejoin("there is time from now on")

    async def read_all(self) -> None:
        """All that subscribe share the partitions, read them to the end, and can commit."""
        deadline = time.monotonic() + PATIENCE
        wanted = [partition for partition in ALL if any(partition.topic in member.topics for member in self.members)]
        while True:
            for member in self.members:
                found = member.consumer.assignment()
                if found:
                    member.consumer.resume(*found)
                member.paused.clear()
                for way in ("poll", "iterate", "columns", "getmany"):
                    await member.take(way, 2000, ALL[0])
            await asyncio.sleep(0.002)  # tasks and threads of consumers that are not called work too
            self.check_committed()
            owned = sorted(partition for member in self.members for partition in member.owned)
            behind = [
                partition
                for member in self.members
                for partition in member.owned
                if await self.is_behind(member, partition)
            ]
            if owned == wanted and not behind:
                return
            assert time.monotonic() < deadline, f"behind: {behind}, owned: {owned}, {self.healths()}"

    async def is_behind(self, member: Member, partition: TopicPartition) -> bool:
        end = self.broker.offsets(*partition)[1]
        at = member.at.get(partition)
        return at is None or bool(self.logs[partition].missed(max(at), end))

    def healths(self) -> list[Any]:
        return [(member.name, sorted(member.topics), member.at, member.consumer.health()) for member in self.members]

    async def free(self) -> None:
        for member in self.members:
            with suppress(Exception):
                await member.call("close", timeout_ms=0)
        self.broker.close()
