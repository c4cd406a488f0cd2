"""Histories of members of KIP-848 groups: heartbeats of any epoch, revocations in parts, commits, static members."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from kafka.protocol.commit import FindCoordinatorRequest, OffsetCommitRequest, OffsetFetchRequest
from kafka.protocol.group import ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest
from kafka.protocol.transaction import EndTxnRequest, InitProducerIdRequest, TxnOffsetCommitRequest

from .lockstep import Kind, Side, Step

TOPICS = {"a": 1, "b": 3, "c": 4}
MEMBERS = ("m1", "m2", "m3")
#: What a member names as its partitions: all that it was assigned, none, nothing (null), or the first half.
OWNED = ("all",) * 8 + ("none", "null", "half")
EPOCHS = ("now",) * 14 + ("before", "ahead", "zero")
#: Long enough that no member is removed in the middle of a history.
REBALANCE_TIMEOUT = 300_000


class _Member:
    def __init__(self) -> None:
        self.epoch = self.before = 0
        self.assigned: list[tuple[str, int]] = []


class ConsumerGroups(Kind):
    """Three members of one group, and three topics."""

    length = 50

    def __init__(self, side: Side) -> None:
        super().__init__(side)
        self._members = {name: _Member() for name in MEMBERS}

    def prepare(self) -> None:
        self.side.make_topics(None, **TOPICS)
        for kind in (0, 1):
            self.side.settled(
                lambda kind=kind: FindCoordinatorRequest[2](key=self.side.name("g"), key_type=kind),  # type: ignore[misc]
                lambda reply: {reply.error_code},
            )
        # The coordinator learns of topics a little after their leaders.
        probe = self.side.name("probe")
        for topic in TOPICS:
            while True:
                reply = self._ask(probe, "m", 0, [topic], [])
                if reply.assignment and reply.assignment.topic_partitions:
                    break
            self._ask(probe, "m", -1, None, None)

    @staticmethod
    def steps(rng: random.Random, length: int) -> list[Step]:
        static = rng.random() < 0.3
        assignor = rng.choice(["uniform", "range"])
        everything = list(TOPICS)
        steps = []
        for _ in range(length):
            name = rng.choice(MEMBERS)
            # With several topics the uniform assignor's choice of partitions depends on the topics' random ids.
            topics = ["c"] if assignor == "uniform" else rng.sample(everything, rng.randint(1, 3))
            what = rng.choice(
                ["beat"] * 14 + ["join", "join", "join", "leave", "commit", "commit", "change", "describe"]
            )
            if what == "join":
                asked = {"name": name, "topics": topics, "static": static, "assignor": assignor}
                steps.append(Step("join", asked))
            elif what == "leave":
                steps.append(Step("leave", {"name": name, "epoch": rng.choice([-1, -1, -2 if static else -1])}))
            elif what == "commit":
                place = rng.choice(list(TOPICS))
                epoch = rng.choice(["now", "now", "before", "before", "ahead", "zero"])
                asked = {"name": name, "epoch": epoch, "topic": place, "offset": rng.randint(0, 99)}
                asked |= {"partition": rng.randrange(TOPICS[place]), "transactional": rng.random() < 0.25}
                steps.append(Step("commit", asked))
            elif what == "describe":
                steps.append(Step("describe"))
            else:
                asked = {"name": name, "epoch": rng.choice(EPOCHS), "owned": rng.choice(OWNED)}
                steps.append(Step("beat", asked | {"topics": topics if what == "change" else None}))
        return steps

    def _ask(
        self,
        group: str,
        name: str,
        epoch: int,
        topics: Sequence[str] | None,
        owned: Sequence[tuple[str, int]] | None,
        instance: str | None = None,
        assignor: str | None = None,
    ) -> Any:
        request: Any = ConsumerGroupHeartbeatRequest[1](group, name, epoch)
        request.instance_id, request.rack_id, request.server_assignor = instance, None, assignor
        request.rebalance_timeout_ms = REBALANCE_TIMEOUT if topics is not None else -1
        request.subscribed_topic_names = None if topics is None else [self.side.name(topic) for topic in topics]
        request.subscribed_topic_regex = None
        if owned is None:
            request.topic_partitions = None
        else:
            by_topic: dict[str, list[int]] = {}
            for topic, partition in owned:
                by_topic.setdefault(topic, []).append(partition)
            request.topic_partitions = [(self.side.topic_ids[topic], parts) for topic, parts in by_topic.items()]
        return self.side.ask(request)

    def _said(self, name: str, reply: Any) -> Any:
        """Note what a member learns from a reply, and return what is compared."""
        member = self._members[name]
        parts = None
        if reply.assignment is not None:
            names = {topic_id: topic for topic, topic_id in self.side.topic_ids.items()}
            parts = sorted(
                (names[one.topic_id], number) for one in reply.assignment.topic_partitions for number in one.partitions
            )
        if not reply.error_code:
            if reply.member_epoch != member.epoch:
                member.before, member.epoch = member.epoch, reply.member_epoch
            if parts is not None:
                member.assigned = parts
        return reply.error_code, reply.member_epoch, parts

    def _epoch(self, name: str, epoch: str) -> int:
        member = self._members[name]
        return {"now": member.epoch, "before": member.before, "ahead": member.epoch + 1, "zero": 0}[epoch]

    def join(self, name: str, topics: Sequence[str], static: bool, assignor: str) -> Any:
        member = self._members[name]
        member.assigned = []
        instance = f"i-{name}" if static else None
        return self._said(name, self._ask(self.side.name("g"), name, 0, topics, [], instance, assignor))

    def beat(self, name: str, epoch: str, owned: str, topics: Sequence[str] | None) -> Any:
        member = self._members[name]
        sent = self._epoch(name, epoch)
        if sent == 0:  # joining is a step of its own
            return None
        parts = {
            "all": member.assigned,
            "none": [],
            "null": None,
            "half": member.assigned[: (len(member.assigned) + 1) // 2],
        }[owned]
        return self._said(name, self._ask(self.side.name("g"), name, sent, topics, parts))

    def leave(self, name: str, epoch: int) -> Any:
        instance = f"i-{name}" if epoch == -2 else None
        reply = self._ask(self.side.name("g"), name, epoch, None, None, instance)
        if not reply.error_code:
            self._members[name] = _Member()
        return reply.error_code, reply.member_epoch

    def commit(self, name: str, epoch: str, topic: str, partition: int, offset: int, transactional: bool) -> Any:
        request: Any = OffsetCommitRequest[9](self.side.name("g"), self._epoch(name, epoch), name, None)
        parts = sorted({0, partition})
        if transactional:
            return self._commit_in_transaction(name, self._epoch(name, epoch), topic, parts, offset)
        request.topics = [(self.side.name(topic), [(number, offset, -1, "") for number in parts])]
        codes = [part.error_code for part in self.side.ask(request).topics[0].partitions]
        look: Any = OffsetFetchRequest[8]()
        look.groups = [(self.side.name("g"), [(self.side.name(topic), parts)])]
        look.require_stable = False
        group = self.side.ask(look).groups[0]
        return codes, group.error_code, [part.committed_offset for one in group.topics for part in one.partitions]

    def _commit_in_transaction(self, name: str, epoch: int, topic: str, parts: list[int], offset: int) -> Any:
        """Commit with a transaction that is then aborted, so that nothing is left of it."""
        transaction = self.side.name("t")
        producer = self.side.settled(
            lambda: InitProducerIdRequest[5](transaction, 60_000, -1, -1), lambda reply: {reply.error_code}
        )
        who = (producer.producer_id, producer.producer_epoch)

        def make() -> Any:
            request: Any = TxnOffsetCommitRequest[5](transaction, self.side.name("g"), *who)
            request.generation_id, request.member_id, request.group_instance_id = epoch, name, None
            request.topics = [(self.side.name(topic), [(number, offset, -1, "") for number in parts])]
            return request

        def codes(reply: Any) -> set[int]:
            return {part.error_code for one in reply.topics for part in one.partitions}

        said = codes(self.side.settled(make, codes))
        self.side.settled(lambda: EndTxnRequest[5](transaction, *who, False), lambda reply: {reply.error_code})
        return sorted(said)

    def describe(self) -> Any:
        return self.side.plain(self.side.ask(ConsumerGroupDescribeRequest[1]([self.side.name("g")], False)).groups)
