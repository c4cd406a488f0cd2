"""Members of one group, on both faces, under a random history; each seed is a run, and a failure prints it.

They poll, acknowledge, crash and close; locks run out, leaders move, sessions are lost. PUREKAFKA_SEEDS="7 100-120"
replays those with `pytest -m soak` and this file.

- A record whose acceptance or rejection was confirmed is never acquired again. (One that was acquired before may still
  be returned: that its lock was ended, or its leader moved, the member learns with its acknowledgement.)
- A record is delivered at most as often as the group allows, and as often as its delivery count says, while its leader
  stays.
- In the end each record was accepted or rejected, or was delivered as often as the group allows.
"""

from __future__ import annotations

import random
import time
from collections import defaultdict, deque
from typing import Any

import pytest

from kafka import AcknowledgeType, KafkaShareConsumer, TopicPartition
from kafka.broker import Broker
from kafka.errors import IllegalStateError, KafkaError
from test.embedded.faces import AIOShareConsumer

from .conftest import GROUP, configure
from .test_share_consumer import crash

ACCEPT, RELEASE, REJECT, RENEW = AcknowledgeType
PARTITIONS = [TopicPartition("jobs", number) for number in (0, 1)]
LIMIT = 5
STEPS = 60
TIMEOUT = 60.0
FAULTS = ("SHARE_SESSION_NOT_FOUND", "INVALID_SHARE_SESSION_EPOCH", "SHARE_SESSION_LIMIT_REACHED")

Place = tuple[TopicPartition, int]


class Member:
    """A member, the records that it has, and what it has said about them, in the order in which it is answered."""

    def __init__(self, model: Model, kind: Any, **options: Any) -> None:
        self.model = model
        self.consumer = kind(
            "jobs",
            bootstrap_servers=model.broker.bootstrap_servers,
            group_id=GROUP,
            share_acknowledgement_mode="explicit",
            retry_backoff_ms=10,
            reconnect_backoff_ms=10,
            **options,
        )
        self.said: dict[Place, AcknowledgeType] = {}
        self.sent: dict[Place, deque[AcknowledgeType]] = defaultdict(deque)
        self.open: dict[Place, Any] = {}
        self.consumer.set_acknowledgement_commit_callback(self.told)
        self.name: str = self.consumer._core.member.member_id

    def told(self, offsets: dict[TopicPartition, set[int]], error: KafkaError | None) -> None:
        """Take the outcome of acknowledgements."""
        for partition, numbers in offsets.items():
            for offset in numbers:
                waiting = self.sent[partition, offset]
                kind = waiting.popleft() if waiting else None  # a gap, or a record that was not returned
                if error is None and kind in {ACCEPT, REJECT}:
                    self.model.finished.setdefault((partition, offset), len(self.model.acquired))

    def acknowledge(self, place: Place, kind: AcknowledgeType) -> None:
        try:
            self.consumer.acknowledge(self.open[place], kind)
        except IllegalStateError:  # renewed, and then its leader moved
            assert place[0] in self.model.moved
            del self.open[place]
            return
        self.said[place] = kind
        if kind is not RENEW:
            del self.open[place]

    def send(self) -> None:
        """Note that the next call sends what was said."""
        for place, kind in self.said.items():
            self.sent[place].append(kind)
        self.said.clear()

    def poll(self, timeout_ms: float, rng: random.Random) -> int:
        """Acknowledge what is open, and poll; return how many records came."""
        for place in tuple(self.open):
            self.acknowledge(place, rng.choice((ACCEPT, ACCEPT, RELEASE, REJECT, RENEW)))
        self.send()
        found = self.consumer.poll(timeout_ms)
        for partition, records in found.items():
            for record in records:
                self.model.delivered(self.name, (partition, record.offset), record.delivery_count)
                self.open[partition, record.offset] = record
        return sum(map(len, found.values()))


class Model:
    """The group, as an onlooker knows it."""

    def __init__(self, broker: Broker, rng: random.Random) -> None:
        self.broker = broker
        self.rng = rng
        self.written: dict[TopicPartition, int] = dict.fromkeys(PARTITIONS, 0)
        self.finished: dict[Place, int] = {}
        """With the number of acquisitions before it was known."""
        self.acquired: list[tuple[str, Place, int]] = []
        """Each acquisition: the member, the record, and its delivery count. The broker's loop appends."""
        self.most: dict[Place, int] = defaultdict(int)
        self.moved: set[TopicPartition] = set()
        self.unknown: set[Place] = set()
        """The records of acknowledgements that were under way when their member died."""
        self.members: list[Member] = []

    def look(self, exchange: Any) -> None:
        """Note what the broker says that a member has acquired."""
        for topic in exchange.reply.responses:
            for data in topic.partitions:
                for one in data.acquired_records:
                    for offset in range(one.first_offset, one.last_offset + 1):
                        place = PARTITIONS[data.partition_index], offset
                        self.acquired.append((exchange.request.member_id, place, one.delivery_count))

    def delivered(self, name: str, place: Place, count: int) -> None:
        """Check that a member returns what it has acquired."""
        ours = [at for at, (who, what, _) in enumerate(self.acquired) if (who, what) == (name, place)]
        assert ours, f"{place} is returned to {name}, which has not acquired it"
        assert self.acquired[ours[-1]][2] == count

    def check(self) -> None:
        """Check what the broker has given, in its order."""
        for at, (_, place, count) in enumerate(self.acquired):
            assert at < self.finished.get(place, at + 1), f"{place} was finished, and is acquired again"
            assert 1 <= count <= LIMIT
            if place[0] not in self.moved:
                assert count == self.most[place] + 1, f"{place}: delivery {count} after {self.most[place]}"
            self.most[place] = max(count, self.most[place])

    # Steps…

    def join(self) -> None:
        if len(self.members) < 4:
            limited = self.rng.random() < 0.5
            options = {"share_acquire_mode": "record_limit" if limited else "batch_optimized", "max_poll_records": 4}
            self.members.append(Member(self, self.rng.choice((KafkaShareConsumer, AIOShareConsumer)), **options))

    def produce(self) -> None:
        partition = self.rng.choice(PARTITIONS)
        count = self.rng.randint(1, 6)
        self.broker.append_many("jobs", [b"x"] * count, partition=partition.partition)
        self.written[partition] += count

    def poll(self) -> None:
        if self.members:
            self.rng.choice(self.members).poll(self.rng.choice((0, 20, 100)), self.rng)

    def commit(self) -> None:
        if self.members:
            member = self.rng.choice(self.members)
            for place in tuple(member.open):
                if self.rng.random() < 0.7:
                    member.acknowledge(place, self.rng.choice((ACCEPT, RELEASE, REJECT)))
            member.send()
            if self.rng.random() < 0.5:
                member.consumer.commit()
            else:
                member.consumer.commit_async()

    def leave(self) -> None:
        if len(self.members) > 1:
            member = self.members.pop(self.rng.randrange(len(self.members)))
            self.end(member, crashes=self.rng.random() < 0.5)

    def end(self, member: Member, *, crashes: bool = False) -> None:
        if crashes:
            crash(member.consumer)
            for place, kinds in member.sent.items():
                if {ACCEPT, REJECT} & set(kinds):
                    self.unknown.add(place)
            self.expire_session(member.name)
        else:
            member.send()
            member.consumer.close()

    def expire_session(self, name: str) -> None:
        """End a dead member's session: until then no other member has its partitions."""
        if name in self.broker.group_members(GROUP):
            self.broker.expire_member(GROUP, name)

    def expire(self) -> None:
        partition = self.rng.choice(PARTITIONS)
        self.broker.expire_share_locks(GROUP, *partition)

    def move(self) -> None:
        partition = self.rng.choice(PARTITIONS)
        self.moved.add(partition)
        self.broker.move_leader(partition, 3 - self.broker.leader(*partition))

    def fail(self) -> None:
        self.broker.fail(self.rng.choice(("ShareFetch", "ShareAcknowledge")), self.rng.choice(FAULTS))

    def drain(self) -> None:
        """Have one member finish all that is left."""
        self.broker.clear_faults()
        self.broker.intercept("ShareFetch", self.look)
        while self.members:
            self.end(self.members.pop())
        for name in self.broker.group_members(GROUP):  # one that died while it joined
            self.expire_session(name)
        self.join()
        (last,) = self.members
        deadline = time.monotonic() + TIMEOUT
        while self.left():
            assert time.monotonic() < deadline, f"{sorted(self.left())} are not finished: {last.consumer.health()}"
            for place in tuple(last.open):
                last.acknowledge(place, ACCEPT)
            last.send()
            last.consumer.commit()
            last.poll(100, self.rng)

    def left(self) -> set[Place]:
        """The records that a member can still get."""
        return {
            (partition, offset)
            for partition, count in self.written.items()
            for offset in range(count)
            if (partition, offset) not in self.finished.keys() | self.unknown
            and not any(place == (partition, offset) and number == LIMIT for _, place, number in tuple(self.acquired))
        }


WEIGHTS = {"poll": 14, "produce": 5, "commit": 6, "join": 3, "leave": 2, "expire": 1, "move": 1, "fail": 2}


def play(seed: int) -> None:
    rng = random.Random(seed)
    with Broker(nodes=2, topics={"jobs": 2}, seed=seed) as broker:
        configure(broker, share_auto_offset_reset="earliest")
        model = Model(broker, rng)
        try:
            broker.intercept("ShareFetch", model.look)
            model.join()
            for name in rng.choices(list(WEIGHTS), WEIGHTS.values(), k=STEPS):
                getattr(model, name)()
            model.drain()
            model.check()
        finally:
            for member in model.members:
                member.consumer.close(timeout_ms=1000)


@pytest.mark.parametrize("seed", range(4))
def test_each_record_is_finished_and_none_comes_after_that(seed: int) -> None:
    play(seed)


@pytest.mark.soak
@pytest.mark.seeds("100-129")
def test_more_histories(seed: int) -> None:
    play(seed)
