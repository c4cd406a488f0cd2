"""Members as processes through a random history, on Apache Kafka and on the embedded broker: both show the same.

They poll, acknowledge, renew, close and are killed by kill -9; others join; locks run out, and leaders move. One step
is done after another, so the same seed makes the same history of both, and what its members see is compared line by
line. Beside that, on each: no record comes again after an acceptance or a rejection that was confirmed; delivery counts
go up by one, but from a new leader, which knows the stored ones; and in the end each record was accepted, rejected, or
delivered as often as the group allows. ``PUREKAFKA_SEEDS="7 20-40"`` with ``pytest -m soak`` and this file runs others.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kafka import KafkaAdminClient, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, NewTopic
from kafka.broker import Broker
from kafka.protocol.share import ShareFetchRequest
from test.real.broker.histories.lockstep import Conversation
from test.real.kafka_process import KafkaCluster

from .conftest import QUICK

ROOT = Path(__file__).resolve().parents[3]
ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
STEPS, LIMIT = 30, 5
SEED = 2
WEIGHTS = {"produce": 5, "poll": 9, "say": 9, "join": 3, "kill": 2, "close": 2, "expire": 1, "move": 1}
#: A record's lock for polls that are to lose it, and for all others, in ms.
SHORT, LONG = 1000, 60_000


class Member:
    """A process."""

    def __init__(self, world: World, face: str) -> None:
        arguments = [world.servers, world.name, world.name, face]
        self._program = subprocess.Popen(
            [sys.executable, "-m", "test.real.share.history_member", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        self.held: set[tuple[int, int]] = set()
        self.has_polled = False
        self._answer()

    def ask(self, what: str, argument: Any = None) -> Any:
        assert self._program.stdin is not None
        self._program.stdin.write(json.dumps([what, argument]) + "\n")
        self._program.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        assert self._program.stdout is not None
        line = self._program.stdout.readline()
        if not line:
            raise AssertionError(f"the member has ended: {self._program.communicate()[1][-2000:]}")
        return json.loads(line)

    def kill(self) -> None:
        """End it by kill -9; nothing if it has ended."""
        self._program.kill()
        self._program.communicate()


class World:
    """The group on one of the brokers, and what was seen of it."""

    def __init__(self, servers: str, seed: int) -> None:
        self.servers = servers
        self.name = f"history-{seed}-{uuid.uuid4().hex[:6]}"
        self.rng = random.Random(seed)
        self.members: list[Member] = []
        self.transcript: list[Any] = []
        self.written = 0
        self.finished: set[tuple[int, int]] = set()
        self.most: Counter[tuple[int, int]] = Counter()
        """By record its greatest delivery count."""
        self.stored: Counter[tuple[int, int]] = Counter()
        """The one that a new leader finds: of records that were released."""
        self._admin = KafkaAdminClient(bootstrap_servers=servers)
        self._producer = KafkaProducer(bootstrap_servers=servers, linger_ms=1000)
        self._place = TopicPartition(self.name, 0)
        self._leaders = [1, 2, 3]
        self._admin.create_topics([NewTopic(self.name, replica_assignments={0: self._leaders})], wait_for_metadata=True)
        self._configure(**{"share.auto.offset.reset": "earliest"})
        self._lock(LONG)

    def _configure(self, **configs: str) -> None:
        self._admin.alter_configs([ConfigResource("GROUP", self.name, configs)])

    def _lock(self, milliseconds: int) -> None:
        """Have the locks of later deliveries so long, and wait until each node does that."""
        self._configure(**{"share.record.lock.duration.ms": str(milliseconds)})
        probe: Any = ShareFetchRequest[2](self.name, "probe", 0)
        probe.max_wait_ms = probe.min_bytes = probe.max_bytes = probe.max_records = probe.batch_size = 0
        probe.share_acquire_mode, probe.is_renew_ack, probe.topics = 0, False, []
        deadline = time.monotonic() + 60
        for node in self.servers.split(","):
            host, _, port = node.rpartition(":")
            asking = Conversation((host, int(port)))
            while asking.ask(probe).acquisition_lock_timeout_ms != milliseconds:
                assert time.monotonic() < deadline
                time.sleep(0.02)
            asking.close()

    def play(self) -> list[Any]:
        """Run the history; return what was seen."""
        try:
            self.join()
            for step in self.rng.choices(list(WEIGHTS), WEIGHTS.values(), k=STEPS):
                getattr(self, step)()
            self.drain()
            return self.transcript
        finally:
            for member in self.members:
                member.kill()
            self._producer.close()
            self._admin.close()

    def note(self, *said: Any) -> None:
        self.transcript.append(said)

    # Steps…

    def produce(self) -> None:
        count = self.rng.randint(1, 8)
        for _ in range(count):
            self._producer.send(self.name, b"x", partition=0)
        self._producer.flush()
        self.written += count
        self.note("produce", count)

    def join(self) -> None:
        if len(self.members) < 3:
            self.members.append(Member(self, self.rng.choice(("threads", "asyncio"))))
            self.note("join", len(self.members))

    def poll(self) -> None:
        self._poll(self.rng.randrange(len(self.members)))

    def _poll(self, number: int) -> list[tuple[int, int]]:
        member = self.members[number]
        self._say(number, member, sorted(member.held))  # a poll wants all acknowledged
        found = member.ask("poll", 700 if member.has_polled else 4000)
        member.has_polled = True
        self.note("poll", number, found)
        for partition, offset, count in found:
            place = partition, offset
            assert place not in self.finished, f"{place} was finished, and comes again"
            assert not any(place in one.held for one in self.members), f"{place} is with another member"
            assert count in {self.most[place] + 1, self.stored[place] + 1}, f"{place}: {count} after {self.most[place]}"
            assert count <= LIMIT
            self.most[place] = count
            member.held.add(place)
        return [(partition, offset) for partition, offset, _ in found]

    def say(self) -> None:
        number = self.rng.randrange(len(self.members))
        member = self.members[number]
        self._say(number, member, [place for place in sorted(member.held) if self.rng.random() < 0.6])

    def _say(self, number: int, member: Member, places: list[tuple[int, int]], renews: bool = True) -> None:
        kinds = (ACCEPT, ACCEPT, RELEASE, RELEASE, REJECT, RENEW)
        said = [(*place, self.rng.choice(kinds if renews else (ACCEPT,))) for place in places]
        if not said:
            return
        refused = member.ask("say", said)
        self.note("say", number, said, refused)
        for partition, offset, kind in said:
            place = partition, offset
            if refused or kind != RENEW:
                member.held.discard(place)
            if not refused:
                if kind in {ACCEPT, REJECT} or (kind == RELEASE and self.most[place] >= LIMIT):
                    self.finished.add(place)
                elif kind == RELEASE:
                    self.stored[place] = self.most[place]

    def _lose(self, member: Member, places: list[tuple[int, int]]) -> None:
        """Note that records of a member are available to others."""
        for place in places:
            member.held.remove(place)
            self.stored[place] = self.most[place]
            if self.most[place] >= LIMIT:
                self.finished.add(place)

    def kill(self) -> None:
        self._leave("kill")

    def close(self) -> None:
        self._leave("close")

    def _leave(self, how: str) -> None:
        if len(self.members) > 1:
            number = self.rng.randrange(len(self.members))
            member = self.members.pop(number)
            self.note(how, number)
            if how == "close":
                member.ask("close")
            member.kill()
            self._lose(member, list(member.held))
            time.sleep(0.3)  # no broker says when it has seen the end of a connection

    def expire(self) -> None:
        """Have a member lose what it has by its lock, and say something too late."""
        self._lock(SHORT)
        number = self.rng.randrange(len(self.members))
        lost, late = self._poll(number), self.members[number]
        time.sleep(SHORT / 1000 + 0.5)
        self._lock(LONG)
        if lost:
            refused = late.ask("say", [(*place, ACCEPT) for place in lost])
            self.note("late", number, lost, refused)
            # What has left the group is below its start, of which brokers take everything.
            assert refused == [[0, "InvalidRecordStateError"]] or all(self.most[place] >= LIMIT for place in lost)
            self._lose(late, lost)

    def move(self) -> None:
        """Have another node lead: what members have is not known there."""
        self._leaders = [*self._leaders[1:], self._leaders[0]]
        self._admin.alter_partition_reassignments({self._place: self._leaders})
        deadline = time.monotonic() + 60
        while self._admin.list_partition_reassignments([self._place]):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        self._admin.elect_leaders("PREFERRED", [self._place], raise_errors=False)
        while self._admin.describe_topics([self.name])[0]["partitions"][0]["leader_id"] != self._leaders[0]:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        time.sleep(0.5)  # until the members of the old leader know, and the new one has read what is stored
        self.note("move", self._leaders[0])
        for number, member in enumerate(self.members):
            places = sorted(member.held)
            if places:
                refused = bool(member.ask("say", [(*place, ACCEPT) for place in places]))
                self.note("moved", number, places, refused)
                assert refused
                member.held.clear()

    def drain(self) -> None:
        """Have one member finish all that is left."""
        while len(self.members) > 1:
            self.close()
        deadline = time.monotonic() + 60
        while len(self.finished) < self.written:
            assert time.monotonic() < deadline, f"{self.written - len(self.finished)} are not finished"
            (last,) = self.members
            self._say(0, last, sorted(last.held), renews=False)
            if len(self.finished) < self.written:
                self._poll(0)


def play_on_both(kafka: str, embedded: str, seed: int) -> None:
    print(f"seed {seed}")
    with ThreadPoolExecutor(2) as pool:
        ours, theirs = pool.map(lambda servers: World(servers, seed).play(), (embedded, kafka))
    for number, (left, right) in enumerate(zip(ours, theirs, strict=False)):
        assert left == right, (
            f"step {number}: embedded {left}, Kafka {right}, after {ours[max(0, number - 6) : number]}"
        )
    assert len(ours) == len(theirs)
    print(Counter(step[0] for step in ours))


@pytest.fixture(scope="module")
def brokers(kafka_version: str) -> Iterator[tuple[str, str]]:
    """Three nodes of each."""
    with ExitStack() as stack:
        kafka = stack.enter_context(KafkaCluster(kafka_version, nodes=3, properties=QUICK))
        embedded = stack.enter_context(Broker(nodes=3, configs=QUICK))
        yield kafka.bootstrap_servers, embedded.bootstrap_servers


@pytest.mark.soak  # what a poll of some seconds brings depends on how busy the machine is
def test_members_that_are_killed_see_the_same_on_kafka_and_on_the_embedded_broker(brokers: tuple[str, str]) -> None:
    play_on_both(*brokers, seed=SEED)


@pytest.mark.soak
@pytest.mark.seeds("100-129")
def test_more_histories(brokers: tuple[str, str], seed: int) -> None:
    play_on_both(*brokers, seed)
