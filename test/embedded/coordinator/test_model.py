"""Groups under a random model: members come, go, stall and crash, commits fail, coordinators move.

Each seed is a whole run; a failure prints it, and PUREKAFKA_SEEDS="7 1200-1300" replays just those, with
`pytest -m soak` and this file. One of each kind is in every run of the tests, two thousand in `make soak`. Threads and
the machine's load have a say in what happens, so a seed is a kind of history rather than one history.
Checked all the time, from what members' applications see:

P7  no partition is owned by two live members after both ran their callbacks. A member that the coordinator
    put out of the group (nobody polled in time, or the machine was busy for longer than a session) hears of that
    after another has its partitions; two that the coordinator both counts as members never have the same;
P6  committed offsets never go back. Every owner begins at the committed offset and only moves on, so an
    offset that is lower than one seen before came from a member that had lost the partition;
P8  once nothing fails any more, the members that are left share all partitions and commit them.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from kafka.broker import Broker
from kafka.errors import CommitFailedError, KafkaError
from kafka.structs import OffsetAndMetadata, TopicPartition

from .member import PATIENCE, Member, calm_down, poll_until, stable

FACES = "both"

PARTITIONS = 6
STEPS = 30
ALL = [TopicPartition("t", number) for number in range(PARTITIONS)]
CONFIGS = {
    "group.min.session.timeout.ms": 100,
    "group.consumer.heartbeat.interval.ms": 30,
    "group.consumer.session.timeout.ms": 300,
}
KINDS: dict[str, dict[str, Any]] = {
    name: {"partition_assignment_strategy": [name]} for name in ("range", "roundrobin", "sticky", "cooperative-sticky")
}
KINDS["consumer"] = {"group_protocol": "consumer"}


class Actor(Member):
    """A member whose application processes records one by one and knows what it owns."""

    def __init__(self, world: World, name: str, **configs: Any) -> None:
        self.world = world
        self.name = name
        self.owned: set[TopicPartition] = set()
        super().__init__(world.broker.bootstrap_servers, listener=self, **configs)

    def on_partitions_assigned(self, assigned: Any) -> None:
        self.owned |= assigned
        self.world.check_owners(self, assigned)
        for partition, offset in zip(sorted(assigned), self.committed(*sorted(assigned)), strict=True):
            self.world.saw_committed(partition, offset or 0)
            self.consume(partition, offset or 0)

    def on_partitions_revoked(self, revoked: Any) -> None:
        assert revoked <= self.owned
        self.owned -= revoked

    def on_partitions_lost(self, lost: Any) -> None:
        assert lost <= self.owned
        self.owned -= lost

    def process(self, rng: random.Random) -> None:
        """As if some records had been handed out; none are of a partition that is about to go."""
        for partition, state in sorted(self.subscription.partitions.items()):
            if rng.random() < 0.5 and not state.leaving:
                position = self.subscription.consumed().get(partition)
                self.consume(partition, (position.offset if position else 0) + rng.randint(1, 9))

    def commit_all(self) -> None:
        offsets = {
            partition: OffsetAndMetadata(offset.offset) for partition, offset in self.subscription.consumed().items()
        }
        try:
            self.coordinator.commit_offsets_sync(offsets, timeout_ms=2000)
            for partition, offset in offsets.items():
                self.world.saw_committed(partition, offset.offset)
        except CommitFailedError:
            self.world.log(f"{self.name} may not commit")
        except KafkaError as error:
            self.world.log(f"{self.name} could not commit: {error}")


class World:
    def __init__(self, seed: int, kind: str) -> None:
        self.rng = random.Random(f"{kind}/{seed}")
        self.kind = kind
        self.history: list[str] = []
        self.broker = Broker(nodes=2, topics={"t": PARTITIONS}, configs=CONFIGS, seed=seed)
        self.actors: list[Actor] = []
        self.stalled: set[Actor] = set()
        self.born = 0
        self.lowest: dict[TopicPartition, int] = {}

    def log(self, line: str) -> None:
        self.history.append(line)

    def saw_committed(self, partition: TopicPartition, offset: int) -> None:
        before = self.lowest.get(partition, 0)
        assert offset >= before, f"{partition} went back from {before} to {offset}"
        self.lowest[partition] = offset

    def counts(self, actor: Actor) -> bool:
        """Whether the coordinator has it for a member, and it knows of nothing else."""
        generation = actor.coordinator.generation
        return generation.is_member and generation.member_id in self.broker.group_members("g")

    def check_owners(self, actor: Actor, assigned: set[TopicPartition]) -> None:
        for other in self.actors:
            if other is not actor and (both := other.owned & assigned):
                self.log(f"{other.name} has yet to hear that {actor.name} has {sorted(both)}")
                assert not (self.counts(actor) and self.counts(other)), f"{actor.name} and {other.name} have {both}"

    # What happens

    def join(self) -> None:
        if len(self.actors) < 4:
            self.born += 1
            config = {
                "max_poll_interval_ms": 400,
                "auto_commit_interval_ms": 20,
                "request_timeout_ms": 1500,
                **KINDS[self.kind],
            }
            if self.kind != "consumer":
                config |= {"session_timeout_ms": 300, "heartbeat_interval_ms": 30}
            self.actors.append(Actor(self, f"m{self.born}", **config))

    def leave(self) -> None:
        if len(self.actors) > 1:
            actor = self.actors.pop(self.rng.randrange(len(self.actors)))
            self.stalled.discard(actor)
            actor.close()

    def crash(self) -> None:
        if len(self.actors) > 1:
            actor = self.actors.pop(self.rng.randrange(len(self.actors)))
            self.stalled.discard(actor)
            actor.crash()

    def stall(self) -> None:
        self.stalled.add(self.rng.choice(self.actors))

    def resume(self) -> None:
        self.stalled.clear()

    def commit(self) -> None:
        self.rng.choice(self.actors).commit_all()

    def fail_commits(self) -> None:
        self.broker.fail("OffsetCommit", [self.rng.choice([14, 15, 16, 7])])

    def fail_group(self) -> None:
        api = (
            "ConsumerGroupHeartbeat"
            if self.kind == "consumer"
            else self.rng.choice(["JoinGroup", "SyncGroup", "Heartbeat"])
        )
        self.broker.fail(api, [self.rng.choice([14, 15, 16])])

    def cut(self) -> None:
        self.broker.drop_connections()

    def move_coordinator(self) -> None:
        self.broker.rehash_coordinators()

    def step(self) -> None:
        actions = [self.join, self.join, self.leave, self.crash, self.stall, self.resume, self.commit]
        actions += [self.fail_commits, self.fail_group, self.cut, self.move_coordinator]
        action = self.rng.choice(actions)
        self.log(action.__name__)
        action()
        until = time.monotonic() + self.rng.choice([0.0, 0.02, 0.15])
        while True:
            for actor in self.actors:
                if actor not in self.stalled:
                    actor.poll()
                    actor.process(self.rng)
                    self.check_progress()
            if time.monotonic() >= until:
                return
            time.sleep(0.002)

    def check_progress(self) -> None:
        """Nobody who polls has more than its application was told, nor less."""
        for actor in self.actors:
            if actor not in self.stalled:
                assert actor.subscription.assigned() == actor.owned

    def run(self) -> None:
        with self.broker:
            try:
                self.join()
                for _ in range(STEPS):
                    self.step()
                self.broker.clear_faults()
                self.resume()
                calm_down(self.broker, *(actor.coordinator for actor in self.actors))
                self.settle()
            finally:
                for actor in self.actors:
                    actor.crash()

    def settle(self) -> None:
        """All get their partitions; what owners commit is what everybody reads, perhaps after one more rebalance."""
        deadline = time.monotonic() + PATIENCE
        for attempt in count(1):
            poll_until(stable(*self.actors, partitions=PARTITIONS), *self.actors)
            base = attempt * 1_000_000
            for actor in self.actors:
                for partition in actor.owned:
                    actor.consume(partition, base + partition.partition)
                actor.commit_all()
            if self.actors[0].committed(*ALL) == [base + number for number in range(PARTITIONS)]:
                return
            self.log("once more")
            assert time.monotonic() < deadline, "commits do not come through"


def live_through(make_world: Callable[[int, str], Any], seed: int, kind: str) -> None:
    """Run a world; how to replay it and what happened are printed if a promise is broken."""
    world = make_world(seed, kind)
    try:
        world.run()
    except BaseException:
        print(f"PUREKAFKA_SEEDS={seed} kind={kind}")
        print("\n".join(world.history))
        raise


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(len(KINDS)))
def test_promises_hold_in_a_history_of_each_kind(seed: int) -> None:
    live_through(World, seed, list(KINDS)[seed])


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.seeds("100-499")
def test_promises_hold_whatever_happens(seed: int, kind: str) -> None:
    live_through(World, seed, kind)
