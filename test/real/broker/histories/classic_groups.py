"""Histories of members of classic groups: joins and syncs that wait for others, static members, commits."""

from __future__ import annotations

import random
import time
from typing import Any

from kafka.protocol.admin import DescribeGroupsRequest
from kafka.protocol.commit import FindCoordinatorRequest, OffsetCommitRequest, OffsetFetchRequest
from kafka.protocol.group import HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest
from kafka.protocol.struct import Struct

from .lockstep import Kind, Side, Step

MEMBERS = ("c1", "c2", "c3", "c4")
GENERATIONS = ("now",) * 9 + ("before", "ahead")
PROTOCOLS = ("range", "roundrobin")
#: Long enough that no time of the group's ends in the middle of a history.
LONG = 300_000
MEMBER_ID_REQUIRED = 79
#: Replies that waited for others come within this time, in seconds, or they wait for a further step.
QUIET = 0.05


class ClassicGroups(Kind):
    """Four members of one group. What a member has asked may wait until others ask; then it asks nothing else."""

    length = 40

    def __init__(self, side: Side) -> None:
        super().__init__(side)
        #: The member id that each member got, "" before.
        self._ids = dict.fromkeys(MEMBERS, "")
        self._generations = dict.fromkeys(MEMBERS, -1)
        self._leads = dict.fromkeys(MEMBERS, False)
        self._said: list[Any] = []

    def prepare(self) -> None:
        self.side.make_topics(read=2)
        self.side.settled(
            lambda: FindCoordinatorRequest[2](key=self.side.name("g"), key_type=0), lambda reply: {reply.error_code}
        )
        probe = HeartbeatRequest[3](self.side.name("g"), 1, "m", None)
        self.side.settled(lambda: probe, lambda reply: {reply.error_code})

    @staticmethod
    def steps(rng: random.Random, length: int) -> list[Step]:
        static = rng.random() < 0.3
        kinds = ["consumer"] * 12 + ["connect"]
        steps = []
        for _ in range(length):
            name = rng.choice(MEMBERS)
            asked: dict[str, Any] = {"name": name}
            what = rng.choice(["join"] * 6 + ["sync"] * 6 + ["beat"] * 3 + ["leave", "commit", "commit", "describe"])
            if what == "join":
                asked |= {
                    "protocols": rng.sample(PROTOCOLS, rng.choice([1, 2, 2, 2])) if rng.random() < 0.3 else ["range"],
                    "kind": rng.choice(kinds),
                    "version": rng.randint(5, 9) if static else rng.randint(2, 9),
                    "static": static and name in MEMBERS[:2],
                    "fresh": rng.random() < 0.1,
                    "data": b"%d" % rng.randrange(3),
                }
            elif what != "describe":
                asked["generation"] = rng.choice(GENERATIONS)
            if what == "sync":
                asked["version"] = rng.randint(3, 5)
            if what == "leave":
                asked = {"name": name, "version": rng.randint(2, 5)}
            if what == "commit":
                asked |= {"offset": rng.randint(0, 99), "alone": rng.random() < 0.2}
            if what == "describe":
                asked = {}
            steps.append(Step(what, asked, eventually=True))
        return steps

    def do(self, step: Step) -> Any:
        self._said = []
        super().do(step)
        return self.again(step)

    def again(self, step: Step) -> Any:
        """Gather the replies that came meanwhile, members in order; what was said before stays said."""
        if step.name == "describe":
            return self.describe()
        quiet = time.monotonic() + QUIET
        while time.monotonic() < quiet:
            for name in MEMBERS:
                connection = self.side.connection(name)
                if connection.is_waiting and (reply := connection.receive(0.005)) is not None:
                    self._learn(name, reply)
                    self._said.append((name, reply))
                    quiet = time.monotonic() + QUIET
        return sorted(((name, type(reply).__name__, self._shown(reply)) for name, reply in self._said), key=repr)

    def _learn(self, name: str, reply: Any) -> None:
        if type(reply).__name__ != "JoinGroupResponse":
            return
        if reply.error_code in (0, MEMBER_ID_REQUIRED):
            self._ids[name] = reply.member_id
        if not reply.error_code:
            self._generations[name] = reply.generation_id
            self._leads[name] = reply.leader == reply.member_id

    def _shown(self, value: Any) -> Any:
        """What a reply says, with the names of members in place of the ids that the broker made."""
        if isinstance(value, Struct):
            fields = type(value)._wire_names()
            return {one: self._shown(getattr(value, one)) for one in fields if one != "throttle_time_ms"}
        if isinstance(value, (list, tuple)):
            return sorted((self._shown(one) for one in value), key=repr)
        if isinstance(value, str):
            known = {member: own for own, member in self._ids.items() if member}
            return known.get(value, "somebody" if len(value) >= 20 else value)
        return bytes(value) if isinstance(value, memoryview) else value

    def _ask(self, name: str, request: Any) -> None:
        connection = self.side.connection(name)
        if not connection.is_waiting:
            connection.send(request)

    def _generation(self, name: str, generation: str) -> int:
        return self._generations[name] + {"now": 0, "before": -1, "ahead": 1}[generation]

    def join(
        self, name: str, protocols: list[str], kind: str, version: int, static: bool, fresh: bool, data: bytes
    ) -> None:
        request = JoinGroupRequest[version](
            group_id=self.side.name("g"),
            session_timeout_ms=LONG,
            rebalance_timeout_ms=LONG,
            member_id="" if fresh else self._ids[name],
            protocol_type=kind,
            protocols=[(protocol, data) for protocol in protocols],
        )
        if static:
            request.group_instance_id = f"i-{name}"
        self._ask(name, request)

    def sync(self, name: str, generation: str, version: int) -> None:
        plan = [(member, b"of %s" % own.encode()) for own, member in self._ids.items() if member]
        request = SyncGroupRequest[version](
            group_id=self.side.name("g"),
            generation_id=self._generation(name, generation),
            member_id=self._ids[name],
            assignments=plan if self._leads[name] else [],
        )
        if version >= 5:
            request.protocol_type, request.protocol_name = "consumer", "range"
        self._ask(name, request)

    def beat(self, name: str, generation: str) -> None:
        self._ask(
            name, HeartbeatRequest[3](self.side.name("g"), self._generation(name, generation), self._ids[name], None)
        )

    def leave(self, name: str, version: int) -> None:
        request: Any = LeaveGroupRequest[version](self.side.name("g"))
        if version < 3:
            request.member_id = self._ids[name]
        else:
            request.members = [(self._ids[name], None, None) if version >= 5 else (self._ids[name], None)]
        # Which member leads after the leader has left is up to chance, if there are several.
        others = [other for other in MEMBERS if other != name]
        there = [other for other in others if self._ids[other] or self.side.connection(other).is_waiting]
        decides = self._leads[name] and len(there) > 1
        if not decides and not self.side.connection(name).is_waiting:
            self._ask(name, request)
            self._ids[name], self._leads[name] = "", False

    def commit(self, name: str, generation: str, offset: int, alone: bool) -> None:
        member = (-1, "") if alone else (self._generation(name, generation), self._ids[name])
        request: Any = OffsetCommitRequest[7](self.side.name("g"), *member, None)
        request.topics = [(self.side.name("read"), [(0, offset, -1, "")])]
        self._ask(name, request)

    def describe(self) -> Any:
        """How the group stands, and what it has committed."""
        group = self.side.ask(DescribeGroupsRequest[5]([self.side.name("g")], False)).groups[0]
        members = {member: own for own, member in self._ids.items() if member}
        shown = sorted(
            (members.get(one.member_id, "somebody"), one.group_instance_id or "", bytes(one.member_assignment))
            for one in group.members
        )
        committed = self.side.ask(OffsetFetchRequest[7](self.side.name("g"), [(self.side.name("read"), [0])], False))
        offsets = [part.committed_offset for topic in committed.topics for part in topic.partitions]
        return group.error_code, group.group_state, group.protocol_data, shown, offsets
