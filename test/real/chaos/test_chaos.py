"""Producing, copying and consuming while nodes are killed and frozen and the network fails, and what came of it.

PUREKAFKA_SECONDS (300) says how long faults come in each test, PUREKAFKA_SEED (1) which. With ``-rP`` each test prints
a row for the table in docs/reliability.rst. ``make soak-chaos`` runs them all.
"""

from __future__ import annotations

import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from kafka import AcknowledgeType, KafkaAdminClient, KafkaConsumer, KafkaShareConsumer
from kafka.admin import ConfigResource
from kafka.structs import TopicPartition
from test.embedded.faces import AIOShareConsumer
from test.real.chaos.asyncio_load import AsyncioLoad
from test.real.chaos.conftest import Site
from test.real.chaos.faults import Chaos, Fault, Tally
from test.real.child import Child
from test.real.groups.conftest import KINDS
from test.real.groups.judge import judge
from test.real.groups.members import Group
from test.real.groups.writer import Writer
from test.real.producer.load import PARTITIONS, WAIT, Load, new_topic, read_log, until

if TYPE_CHECKING:
    from typing_extensions import Self

pytestmark = [pytest.mark.soak, pytest.mark.timeout(7200)]

RATE = 1000
NEVER = 1 << 40
REPOSITORY = Path(__file__).parents[3]


def fresh(name: str) -> str:
    return f"{name}-{uuid.uuid4().hex[:6]}"


# Producing


@pytest.mark.parametrize("face", ["ours", "ours-asyncio"])
def test_producing(site: Site, seconds: float, rng: Random, face: str) -> None:
    """Records that were acknowledged are in the log, once, in order, at their offsets; the failed ones are not."""
    tally = Tally(f"produce, acks=all, idempotent, {face}")
    topic = new_topic(site.cluster, fresh("produced"))
    faces: dict[str, Callable[[], Load | AsyncioLoad]] = {
        "ours": lambda: Load(site.cluster, topic, NEVER, rate=RATE),
        "ours-asyncio": lambda: AsyncioLoad(site.cluster, topic, rate=RATE),
    }
    with faces[face]() as load:

        def reached(mark: int) -> bool:
            numbers = range(mark, mark + PARTITIONS)
            return load.sent > numbers[-1] and all(load.futures[number].succeeded() for number in numbers)

        Chaos(site, {topic: PARTITIONS}, rng, tally, lambda: load.sent, reached).run(seconds)
        load.stop_sending()
        load.finish()
        tally.notes["longest send()"] = f"{load.longest_send:.1f} s"
        _judge_log(read_log(site.cluster, topic), load, tally)
    tally.check()


def _judge_log(logs: dict[int, list[int]], load: Load | AsyncioLoad, tally: Tally) -> None:
    unknown = 0
    for partition, log in logs.items():
        there = set(log)
        expected = []
        for number, future in enumerate(load.futures[partition::PARTITIONS]):
            if future.succeeded():
                expected.append(number)
                if log[future.value.offset : future.value.offset + 1] != [number]:
                    tally.wrong.append(f"partition {partition}: {number} is not at {future.value.offset}")
            elif future.exception is not None and future.exception.outcome_unknown:
                unknown += 1
                if number in there:
                    expected.append(number)
            elif number in there:
                tally.wrong.append(f"partition {partition}: {number} is there, but: {future.exception!r}")
        tally.compare(log, expected)
    if unknown:
        tally.notes["outcome unknown"] = unknown


# Copying


class Copiers:
    """Processes of one group that copy a topic; those that end by themselves are started again, as services are."""

    def __init__(self, home: Path, site: Site, source: str, target: str, protocol: str, program: str) -> None:
        self.ended_by_themselves = 0
        self._home = home
        self._words = [site.cluster.bootstrap_servers, source, target, fresh("copiers")]
        self._protocol = protocol
        self._program = Path(__file__).with_name(program)
        self._running: dict[str, Child] = {}

    def start(self, name: str) -> None:
        words = [sys.executable, str(self._program), *self._words, name, self._protocol]
        log = self._home / f"{name}.log"
        self._running[name] = Child(name, words, log, env={"PYTHONPATH": str(REPOSITORY)})

    def kill(self, name: str) -> None:
        self._running.pop(name).kill()

    def keep(self) -> None:
        """Start those again that ended by themselves."""
        for name, child in list(self._running.items()):
            if not child.running():
                self.ended_by_themselves += 1
                print(f"{name} ended by itself:\n{child.log_tail(15)}", flush=True)
                self.start(name)

    def faults(self) -> list[Fault]:
        return [
            fault
            for name, child in self._running.items()
            for fault in (
                Fault("copier killed", lambda name=name: self.kill(name), lambda name=name: self.start(name), 0.1, 3),
                Fault("copier frozen", child.pause, child.resume, 2, 9),
            )
        ]

    def close(self) -> None:
        """Let all end in order."""
        for child in self._running.values():
            child.stop(30)

    def __enter__(self) -> Self:
        for name in ("one", "two"):
            self.start(name)
        return self

    def __exit__(self, *_exc: object) -> None:
        for child in self._running.values():
            child.kill()


class CommittedReader:
    """Reads the copy while it grows, committed records only."""

    def __init__(self, servers: str, topic: str) -> None:
        self.found: dict[int, list[int]] = {partition: [] for partition in range(PARTITIONS)}
        self.gone_wrong: BaseException | None = None
        self._stopped = threading.Event()
        self._consumer = KafkaConsumer(
            bootstrap_servers=servers, isolation_level="read_committed", auto_offset_reset="earliest"
        )
        self._consumer.assign([TopicPartition(topic, partition) for partition in self.found])
        self._thread = threading.Thread(target=self._read, name="committed reader")

    def _read(self) -> None:
        try:
            while not self._stopped.is_set():
                for where, records in self._consumer.poll(200).items():
                    self.found[where.partition] += [int(record.value.split()[0]) for record in records]
        except BaseException as error:
            self.gone_wrong = error

    def reached(self, mark: dict[int, int]) -> bool:
        assert self.gone_wrong is None, self.gone_wrong
        return all(self.found[partition] and self.found[partition][-1] >= number for partition, number in mark.items())

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._stopped.set()
        self._thread.join()
        self._consumer.close()


@pytest.mark.parametrize("program", ["copier.py", "asyncio_copier.py"], ids=["sync", "asyncio"])
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_copying_in_transactions(
    site: Site, seconds: float, rng: Random, tmp_path: Path, protocol: str, program: str
) -> None:
    """The copy has each record of the source once, in order, for a reader beside it and for one that comes later."""
    tally = Tally(f"copy in transactions, group protocol {protocol}, {program}")
    source, target = new_topic(site.cluster, fresh("source")), new_topic(site.cluster, fresh("target"))
    topics = {source: PARTITIONS, target: PARTITIONS}
    with (
        Load(site.cluster, source, NEVER, rate=RATE // 2) as load,
        CommittedReader(site.cluster.bootstrap_servers, target) as reader,
        Copiers(tmp_path, site, source, target, protocol, program) as copiers,
    ):

        def mark() -> dict[int, int]:
            return dict.fromkeys(range(PARTITIONS), load.sent // PARTITIONS + 1)

        chaos = Chaos(site, topics, rng, tally, mark, reader.reached, tick=copiers.keep)
        chaos.more = copiers.faults
        chaos.run(seconds)
        load.stop_sending()
        load.finish()
        logs = read_log(site.cluster, source)
        ends = {partition: log[-1] for partition, log in logs.items()}
        began = time.monotonic()
        while not reader.reached(ends):
            copiers.keep()
            assert time.monotonic() < began + WAIT, f"the copy does not catch up: {tally}"
            time.sleep(0.1)
        tally.notes["caught up in"] = f"{time.monotonic() - began:.1f} s"
        copiers.close()
        tally.notes["copiers that ended by themselves"] = copiers.ended_by_themselves
    with CommittedReader(site.cluster.bootstrap_servers, target) as late:
        deadline = time.monotonic() + WAIT
        while not late.reached(ends):
            assert time.monotonic() < deadline, f"the copy cannot be read: {tally}"
            time.sleep(0.1)
    for partition, log in logs.items():
        tally.compare(reader.found[partition], log)
        if late.found[partition] != reader.found[partition]:
            tally.wrong.append(f"partition {partition}: who read later read something else")
    tally.check()


# Groups


class GroupProgress:
    """The highest value that a group has read of each partition."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self._seen: dict[str, int] = {}
        self._top = dict.fromkeys(range(group.partitions), -1)

    def reached(self, mark: int) -> bool:
        for member in self._group.members:
            events = member.events()
            for event in events[self._seen.get(member.name, 0) :]:
                if event.kind == "read":
                    number = event.what["p"]
                    self._top[number] = max(self._top[number], event.what["v"][-1][1])
            self._seen[member.name] = len(events)
        return min(self._top.values()) >= mark


def member_faults(group: Group) -> list[Fault]:
    """What can happen to members; others take the place of those that are gone."""
    first, second = group.live[:2]

    def kill(*members: int) -> None:
        for member in [group.live[number] for number in members]:
            member.kill()

    def close() -> None:
        first.stop()

    return [
        Fault("member killed", lambda: kill(0), group.join, 0.1, 3),
        Fault("two members killed", lambda: kill(0, 1), lambda: group.join(2), 0.1, 3),
        Fault("member closed", close, group.join, 0.1, 1),
        Fault("member frozen", second.freeze, second.thaw, 2, 12),
    ]


@pytest.mark.parametrize("face", ["ours", "ours-asyncio"])
@pytest.mark.parametrize("kind", ["cooperative-sticky", "consumer"])
def test_consuming_in_a_group(site: Site, seconds: float, rng: Random, tmp_path: Path, kind: str, face: str) -> None:
    """A group reads every record, and again only those that were not committed when their reader went away."""
    tally = Tally(f"consume in a group, {'KIP-848' if kind == 'consumer' else kind}, {face}")
    topic, partitions = fresh("grouped"), 6
    site.cluster.create_topic(topic, partitions, 3, {"min.insync.replicas": "2"})
    options = {"request_timeout_ms": 10_000, "bootstrap_timeout_ms": 60_000}
    if kind != "consumer":
        options |= {"session_timeout_ms": 6000, "heartbeat_interval_ms": 1000}
    plan = {"kind": face, "options": options, "process_s": 0.02, "log": "WARNING", **KINDS[kind]}
    servers = site.cluster.bootstrap_servers
    with (
        Group(tmp_path, servers, topic, fresh("group"), partitions, plan) as group,
        Writer(servers, topic, partitions, rate=RATE) as writer,
    ):
        group.join(4)
        group.wait_shared_out()
        progress = GroupProgress(group)
        chaos = Chaos(site, {topic: partitions}, rng, tally, lambda: writer.sent + partitions, progress.reached)
        chaos.more = lambda: member_faults(group)
        chaos.run(seconds)
        writer.stop()
        last = min(max(values.values()) for values in writer.written.values())
        began = time.monotonic()
        group.wait(lambda: progress.reached(last), "the last record of each partition", WAIT)
        tally.notes["caught up in"] = f"{time.monotonic() - began:.1f} s"
        group.stop()
    verdict = judge(group.members, writer.written)
    tally.records, tally.lost, tally.reordered = verdict.records, verdict.lost, verdict.reordered
    tally.notes["read again, not committed before"] = verdict.doubled
    tally.notes["commits"] = f"{verdict.commits}, of which {verdict.refused.total()} refused"
    tally.wrong += verdict.wrong
    tally.check()


# Share groups


class Worker:
    """A member of a share group in a thread, on one face; it notes what it has confirmation for having finished."""

    def __init__(self, face: Any, servers: str, topic: str, rng: Random) -> None:
        self.finished: list[tuple[int, int]] = []
        """Partition and number, of records that were accepted or rejected."""
        self.refused = self.deliveries = 0
        self.gone_wrong: BaseException | None = None
        self._stopped, self._rng = threading.Event(), rng
        self._make = partial(
            face, topic, bootstrap_servers=servers, group_id=topic, share_acknowledgement_mode="explicit"
        )
        self._thread = threading.Thread(target=self._work, name="worker")

    def _work(self) -> None:
        try:
            while not self._stopped.is_set():
                member = self._make(max_poll_records=50, request_timeout_ms=10_000)
                life = time.monotonic() + self._rng.uniform(5, 60)
                try:
                    while not self._stopped.is_set() and time.monotonic() < life:
                        self._take(member)
                finally:
                    member.close()
        except BaseException as error:
            self.gone_wrong = error

    def _take(self, member: Any) -> None:
        kinds = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT
        records = [record for found in member.poll(500).values() for record in found]
        self.deliveries += len(records)
        if self._rng.random() < 0.05:
            time.sleep(self._rng.uniform(0, 3))
        said = [
            (record, self._rng.choices(kinds, (8, record.delivery_count < 4, 1))[0])  # type: ignore[arg-type]
            for record in records
        ]
        for record, kind in said:
            member.acknowledge(record, kind)
        answers = member.commit() if said else {}
        for record, kind in said:
            if answers[TopicPartition(record.topic, record.partition)] is not None:
                self.refused += 1
            elif kind is not AcknowledgeType.RELEASE:
                self.finished.append((record.partition, int(record.value.split()[0])))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._stopped.set()
        self._thread.join(WAIT)


def test_working_in_a_share_group(site: Site, seconds: float, rng: Random) -> None:
    """Each record is finished, and no member finishes one that was finished before."""
    tally = Tally("work in a share group, both faces")
    topic, servers = new_topic(site.cluster, fresh("jobs")), site.cluster.bootstrap_servers
    with KafkaAdminClient(bootstrap_servers=servers) as admin, ExitStack() as opened:
        admin.alter_configs([ConfigResource("GROUP", topic, {"share.auto.offset.reset": "earliest"})])
        load = opened.enter_context(Load(site.cluster, topic, NEVER, rate=RATE // 5))
        workers = [
            opened.enter_context(Worker(face, servers, topic, Random(rng.random())))
            for face in (KafkaShareConsumer, AIOShareConsumer) * 2
        ]

        def newest() -> list[int]:
            found = dict.fromkeys(range(PARTITIONS), -1)
            for worker in workers:
                assert worker.gone_wrong is None, worker.gone_wrong
                for partition, number in worker.finished[-500:]:
                    found[partition] = max(found[partition], number)
            return list(found.values())

        def left() -> int:
            return sum(one.lag for one in admin.list_share_group_offsets(topic)[topic].values())

        def reached(mark: int) -> bool:
            return min(newest()) >= mark // PARTITIONS

        Chaos(site, {topic: PARTITIONS}, rng, tally, lambda: load.sent + PARTITIONS, reached).run(seconds)
        load.stop_sending()
        load.finish()
        until(lambda: left() == 0, "end of the work", WAIT)
    finished = Counter(one for worker in workers for one in worker.finished)
    tally.records = sum(map(len, read_log(site.cluster, topic).values()))
    tally.repeated = finished.total() - len(finished)
    tally.notes["deliveries"] = sum(worker.deliveries for worker in workers)
    tally.notes["refused acknowledgements"] = sum(worker.refused for worker in workers)
    tally.notes["finished without an answer"] = tally.records - len(finished)
    tally.check()
