"""Whole consumers in a group under a random model: records are written, fetched, processed and committed meanwhile.

As `test_model`, which is about membership alone; seeds are given and replayed in the same way. Checked from what the
applications see:

P5  a consumer gets each record of a partition that it has once and in order, from where the group had come to;
P6  whatever is committed was handed to some application before, and committed offsets never go back;
P7  no partition is owned by two members that the coordinator both counts;
P8  once nothing fails any more, all that was written is read and committed.
"""

from __future__ import annotations

import random
import time
from typing import Any

import pytest

from kafka._runtime.application import complete
from kafka.broker import Broker
from kafka.consumer import KafkaConsumer
from kafka.coordinator.membership import Membership
from kafka.errors import CommitFailedError, KafkaTimeoutError
from kafka.structs import TopicPartition
from test.embedded.faces import AIOConsumer

from .member import calm_down
from .test_model import CONFIGS, KINDS, live_through

FACES = "both"

PARTITIONS = 4
STEPS = 30
ALL = [TopicPartition("t", number) for number in range(PARTITIONS)]
PATIENCE = 30.0
# What passes, as a broker says it while leaders and coordinators move.
COMMIT_ERRORS = (14, 15, 16, 7)
GROUP_ERRORS = (14, 15, 16)
FETCH_ERRORS = (6, 3, 75, 76)


class Application:
    """A consumer, and what its application has been told and given."""

    def __init__(self, world: World, name: str, **configs: Any) -> None:
        self.world = world
        self.name = name
        self.owned: set[TopicPartition] = set()
        self.next: dict[TopicPartition, int] = {}
        self.consumer = KafkaConsumer(bootstrap_servers=world.broker.bootstrap_servers, **configs)
        self.consumer.subscribe(["t"], listener=self)

    # What it is told

    def on_partitions_assigned(self, assigned: Any) -> None:
        assert not assigned & self.owned
        self.owned |= assigned
        self.world.check_owners(self, assigned)
        for partition in assigned:
            self.next.pop(partition, None)
            self.world.saw_committed(partition, self.consumer.committed(partition) or 0)

    def on_partitions_revoked(self, revoked: Any) -> None:
        assert revoked <= self.owned
        self.owned -= revoked

    on_partitions_lost = on_partitions_revoked

    # What it does

    @property
    def membership(self) -> Membership:
        core = self.consumer._core
        assert core is not None
        return core.check_group().membership

    def poll(self) -> None:
        for partition, records in self.consumer.poll(timeout_ms=0).items():
            assert partition in self.owned, f"{self.name} got records of {partition}"
            for record in records:
                self.world.saw_record(self, partition, record)

    def commit(self) -> None:
        try:
            self.consumer.commit(timeout_ms=2000)
        except (CommitFailedError, KafkaTimeoutError) as error:
            self.world.log(f"{self.name} could not commit: {error}")

    def crash(self) -> None:
        """Be gone without a word."""
        if isinstance(self.consumer, AIOConsumer):
            self.consumer.crash()
            return
        core = self.consumer._core
        assert core is not None
        if not core.closed:
            core.closed = True

            async def end() -> None:
                core.client.shut_down()

            complete(core.application.run(end()))
            complete(core.application.close(1.0))
            if core.metrics is not None:
                core.metrics.close()


class World:
    def __init__(self, seed: int, kind: str) -> None:
        self.rng = random.Random(f"whole/{kind}/{seed}")
        self.kind = kind
        self.history: list[str] = []
        self.broker = Broker(nodes=2, topics={"t": PARTITIONS}, configs=CONFIGS, seed=seed)
        self.applications: list[Application] = []
        self.stalled: set[Application] = set()
        self.born = 0
        self.written = dict.fromkeys(ALL, 0)
        self.given = dict.fromkeys(ALL, 0)
        """For each partition the offset up to which all records were handed to somebody."""
        self.committed = dict.fromkeys(ALL, 0)

    def log(self, line: str) -> None:
        self.history.append(line)

    # What must hold

    def saw_record(self, who: Application, partition: TopicPartition, record: Any) -> None:
        assert record.value == b"%d" % record.offset
        expected = who.next.get(partition)
        if expected is None:
            assert record.offset <= self.given[partition], f"{who.name} begins {partition} behind what nobody got"
        else:
            assert record.offset == expected, f"{who.name} got {record.offset} of {partition} and not {expected}"
        who.next[partition] = record.offset + 1
        self.given[partition] = max(self.given[partition], record.offset + 1)

    def saw_committed(self, partition: TopicPartition, offset: int) -> None:
        before = self.committed[partition]
        assert before <= offset <= self.given[partition], f"{partition}: {before} {offset} {self.given[partition]}"
        self.committed[partition] = offset

    def counts(self, who: Application) -> bool:
        generation = who.membership.generation
        return generation.is_member and generation.member_id in self.broker.group_members("g")

    def check_owners(self, who: Application, assigned: set[TopicPartition]) -> None:
        for other in self.applications:
            if other is not who and (both := other.owned & assigned):
                self.log(f"{other.name} has yet to hear that {who.name} has {sorted(both)}")
                assert not (self.counts(who) and self.counts(other)), f"{who.name} and {other.name} have {both}"

    # What happens

    def join(self) -> None:
        if len(self.applications) < 3:
            self.born += 1
            config = {
                "group_id": "g",
                "auto_offset_reset": "earliest",
                "max_poll_records": 5,
                "max_poll_interval_ms": 1500,
                "auto_commit_interval_ms": 20,
                "request_timeout_ms": 1500,
                "retry_backoff_ms": 20,
                "fetch_max_wait_ms": 50,
                **KINDS[self.kind],
            }
            if self.kind != "consumer":
                config |= {"session_timeout_ms": 300, "heartbeat_interval_ms": 30}
            if issubclass(KafkaConsumer, AIOConsumer):  # the listener asks the broker, which a busy machine delays
                config["rebalance_timeout_ms"] = PATIENCE * 1000
            self.applications.append(Application(self, f"c{self.born}", **config))

    def _part_with(self) -> Application | None:
        if len(self.applications) < 2:
            return None
        application = self.applications.pop(self.rng.randrange(len(self.applications)))
        self.stalled.discard(application)
        return application

    def leave(self) -> None:
        if (application := self._part_with()) is not None:
            application.consumer.close(timeout_ms=5000)

    def crash(self) -> None:
        if (application := self._part_with()) is not None:
            application.crash()

    def stall(self) -> None:
        self.stalled.add(self.rng.choice(self.applications))

    def resume(self) -> None:
        self.stalled.clear()

    def commit(self) -> None:
        self.rng.choice(self.applications).commit()

    def write(self) -> None:
        for partition in self.rng.sample(ALL, self.rng.randint(1, PARTITIONS)):
            begin, count = self.written[partition], self.rng.randint(1, 30)
            values = [b"%d" % number for number in range(begin, begin + count)]
            self.broker.append_many("t", values, partition=partition.partition)
            self.written[partition] += count

    def fail_commits(self) -> None:
        self.broker.fail("OffsetCommit", [self.rng.choice(COMMIT_ERRORS)])

    def fail_fetches(self) -> None:
        self.broker.fail("Fetch", [self.rng.choice(FETCH_ERRORS)])

    def fail_group(self) -> None:
        classic = ["JoinGroup", "SyncGroup", "Heartbeat", "OffsetFetch"]
        api = self.rng.choice(["ConsumerGroupHeartbeat", "OffsetFetch"] if self.kind == "consumer" else classic)
        self.broker.fail(api, [self.rng.choice(GROUP_ERRORS)])

    def cut(self) -> None:
        self.broker.drop_connections()

    def move_coordinator(self) -> None:
        self.broker.rehash_coordinators()

    def move_leaders(self) -> None:
        self.broker.shuffle_leaders()

    def step(self) -> None:
        actions = [self.join, self.join, self.leave, self.crash, self.stall, self.resume, self.commit]
        actions += [self.write, self.write, self.write, self.fail_commits, self.fail_fetches, self.fail_group]
        actions += [self.cut, self.move_coordinator, self.move_leaders]
        action = self.rng.choice(actions)
        self.log(action.__name__)
        action()
        until = time.monotonic() + self.rng.choice([0.0, 0.02, 0.15])
        while True:
            self.poll()
            if time.monotonic() >= until:
                return
            time.sleep(0.002)  # the consumers' own threads need the interpreter

    def poll(self) -> None:
        for application in self.applications:
            if application not in self.stalled:
                application.poll()

    def run(self) -> None:
        with self.broker:
            try:
                self.join()
                for _ in range(STEPS):
                    self.step()
                self.log("settle")
                self.broker.clear_faults()
                self.resume()
                self.write()
                calm_down(self.broker, *(application.membership for application in self.applications))
                self.settle()
            finally:
                for application in self.applications:
                    application.crash()

    def settle(self) -> None:
        """All is read and committed by those that are left, who share the partitions."""
        deadline = time.monotonic() + PATIENCE
        while True:
            self.poll()
            owned = [partition for application in self.applications for partition in application.owned]
            if self.given == self.written and sorted(owned) == ALL:
                for application in self.applications:
                    application.commit()
                found = {partition: self.applications[0].consumer.committed(partition) or 0 for partition in ALL}
                for partition, offset in found.items():
                    self.saw_committed(partition, offset)
                if found == self.written:
                    return
            assert time.monotonic() < deadline, (self.given, self.written, self.healths())
            time.sleep(0.002)

    def healths(self) -> list[Any]:
        return [(who.name, who.owned, who.consumer.health()) for who in self.applications]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_promises_hold_in_a_few_histories(seed: int) -> None:
    live_through(World, seed, list(KINDS)[seed % len(KINDS)])


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.seeds("100-499")
def test_promises_hold_whatever_happens(seed: int, kind: str) -> None:
    live_through(World, seed, kind)
