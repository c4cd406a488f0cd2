"""Histories of transactional producers: both protocol versions, zombies, offsets, readers of committed records."""

from __future__ import annotations

import random
import time
from typing import Any

from kafka.protocol.commit import FindCoordinatorRequest, OffsetFetchRequest
from kafka.protocol.transaction import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
)

from .lockstep import Kind, Side, Step
from .records import batch, batches, fetched, produced

PARTITIONS = 2
NAMES = ("t1", "t2")
CONCURRENT = 51
#: Which of the producer ids that a name got is used: the last, the one before, or one that nobody got.
WHO = ("last",) * 12 + ("before", "ahead")


class Transactions(Kind):
    """Two transactional ids, each of them used by the last producer and now and then by one that it has fenced."""

    length = 40

    def __init__(self, side: Side) -> None:
        super().__init__(side)
        #: The producer ids and epochs that each name got, in order.
        self._who: dict[str, list[tuple[int, int]]] = {name: [] for name in NAMES}
        self._sequences: dict[tuple[int, int, int], int] = {}

    def prepare(self) -> None:
        self.side.make_topics(spent=PARTITIONS)
        for kind in (0, 1):
            self.side.settled(
                lambda kind=kind: FindCoordinatorRequest[2](key=self.side.name("t"), key_type=kind),  # type: ignore[misc]
                lambda reply: {reply.error_code},
            )
        for name in NAMES:
            self.init(name, "fresh", 5)

    @staticmethod
    def steps(rng: random.Random, length: int) -> list[Step]:
        newest = rng.random() < 0.5  # the protocol of KIP-890, or the one before
        steps = []
        for _ in range(length):
            name, who, partition = rng.choice(NAMES), rng.choice(WHO), rng.randrange(PARTITIONS)
            version = 5 if newest else rng.choice([3, 4])
            what = rng.choice(
                ["write"] * 5
                + ["add"] * (1 if newest else 4)
                + ["end"] * 4
                + ["look"] * 3
                + ["init", "offsets", "offsets", "describe", "committed"]
            )
            if what == "init":
                how = rng.choice(["fresh", "fresh", "last", "before", "ahead"])
                steps.append(Step("init", {"name": name, "how": how, "version": rng.choice([3, 4, 5])}))
            elif what == "write":
                jump = rng.choice([0] * 15 + [1, 5])
                count = rng.randint(1, 3)
                # What Kafka makes of an epoch that no producer has got it keeps, and refuses the next batch.
                known = "last" if who == "ahead" else who
                asked = {"name": name, "who": known, "partition": partition, "count": count, "jump": jump}
                steps.append(Step("write", asked | {"version": 12 if newest else rng.choice([9, 11])}))
            elif what == "add":
                steps.append(Step("add", {"name": name, "who": who, "partitions": rng.choice([[0], [1], [0, 1], [7]])}))
            elif what == "end":
                steps.append(Step("end", {"name": name, "who": who, "commit": rng.random() < 0.6, "version": version}))
            elif what == "look":
                steps.append(Step("look", {"partition": partition}, eventually=True))
            elif what == "offsets":
                asked = {"name": name, "who": who, "offset": rng.randint(0, 9)}
                steps.append(Step("offsets", asked | {"version": 5 if newest else 3, "adds": rng.random() < 0.8}))
            else:
                steps.append(Step(what, {"name": name}, eventually=True))
        return steps

    def _identity(self, name: str, who: str) -> tuple[int, int]:
        known = self._who[name]
        if who == "ahead":
            return known[-1][0], known[-1][1] + 1
        return known[-1] if who == "last" or len(known) < 2 else known[-2]

    def _got(self, name: str, pid: int, epoch: int) -> None:
        if [(pid, epoch)] != self._who[name][-1:]:
            self._who[name].append((pid, epoch))

    def init(self, name: str, how: str, version: int) -> Any:
        pid, epoch = (-1, -1) if how == "fresh" else self._identity(name, how)
        reply = self.side.settled(
            lambda: InitProducerIdRequest[version](self.side.name(name), 60_000, pid, epoch),
            lambda reply: {reply.error_code},
        )
        if not reply.error_code:
            self._got(name, reply.producer_id, reply.producer_epoch)
        return self.side.plain(reply)

    def add(self, name: str, who: str, partitions: list[int]) -> Any:
        pid, epoch = self._identity(name, who)

        def make() -> Any:
            request: Any = AddPartitionsToTxnRequest[3]()
            request.v3_and_below_transactional_id = self.side.name(name)
            request.v3_and_below_producer_id, request.v3_and_below_producer_epoch = pid, epoch
            request.v3_and_below_topics = [(self.side.name("spent"), partitions)]
            return request

        def codes(reply: Any) -> set[int]:
            topics = reply.results_by_topic_v3_and_below
            return {one.partition_error_code for topic in topics for one in topic.results_by_partition}

        return self.side.plain(self.side.settled(make, codes))

    def write(self, name: str, who: str, partition: int, count: int, jump: int, version: int) -> Any:
        pid, epoch = self._identity(name, who)
        key = (pid, epoch, partition)
        sequence = self._sequences.get(key, 0) + jump

        def codes(reply: Any) -> set[int]:
            found = {one.error_code for topic in reply.responses for one in topic.partition_responses}
            # Producers before KIP-890 are answered NOT_ENOUGH_REPLICAS while a transaction is being ended.
            return {CONCURRENT if code == 19 else code for code in found}

        reply = self.side.settled(
            lambda: produced(
                version,
                self.side.name("spent"),
                partition,
                batch((pid, epoch), sequence, count, transactional=True),
                self.side.name(name),
            ),
            codes,
        )
        part = reply.responses[0].partition_responses[0]
        if not part.error_code:
            self._sequences[key] = sequence + count
        return part.error_code, part.base_offset

    def offsets(self, name: str, who: str, offset: int, version: int, adds: bool) -> Any:
        """Commit an offset with the transaction; before KIP-890 the group has to be added."""
        pid, epoch = self._identity(name, who)
        group = self.side.name("g")
        said = []
        if version < 5 and adds:
            added = self.side.settled(
                lambda: AddOffsetsToTxnRequest[3](self.side.name(name), pid, epoch, group),
                lambda reply: {reply.error_code},
            )
            said.append(added.error_code)

        def make() -> Any:
            request: Any = TxnOffsetCommitRequest[version](self.side.name(name), group, pid, epoch)
            request.generation_id, request.member_id, request.group_instance_id = -1, "", None
            request.topics = [(self.side.name("spent"), [(0, offset, -1, "")])]
            return request

        def codes(reply: Any) -> set[int]:
            return {part.error_code for topic in reply.topics for part in topic.partitions}

        said += sorted(codes(self.side.settled(make, codes)))
        return said

    def end(self, name: str, who: str, commit: bool, version: int) -> Any:
        pid, epoch = self._identity(name, who)
        reply = self.side.settled(
            lambda: EndTxnRequest[version](self.side.name(name), pid, epoch, commit), lambda reply: {reply.error_code}
        )
        if version >= 5 and not reply.error_code:
            self._got(name, reply.producer_id, reply.producer_epoch)
        # Kafka answers before it has written the markers, and takes records of older producers until then.
        ended = DescribeTransactionsRequest[0]([self.side.name(name)])
        while self.side.ask(ended).transaction_states[0].transaction_state.startswith("Prepare"):
            time.sleep(0.01)
        return self.side.plain(reply)

    def look(self, partition: int) -> Any:
        """What a reader of committed records is told, and which transactions are open."""
        topic = self.side.name("spent")
        part = fetched(self.side, topic, partition, 0, isolation=1)
        known = self.side.ask(DescribeProducersRequest[0]([(topic, [partition])])).topics[0].partitions[0]
        opened = sorted(one.current_txn_start_offset for one in known.active_producers)
        # Kafka also names transactions behind the last stable offset, which no reader comes to.
        aborted = sorted(one.first_offset for one in part.aborted_transactions or [])
        aborted = [offset for offset in aborted if offset < part.last_stable_offset]
        # The number of a marker's batch is none of a producer's.
        said = [(base, count, sequence) for base, count, _, sequence in batches(part.records)]
        return part.error_code, part.high_watermark, part.last_stable_offset, aborted, opened, said

    def describe(self, name: str) -> Any:
        reply = self.side.ask(DescribeTransactionsRequest[0]([self.side.name(name)]))
        state = reply.transaction_states[0]
        parts = sorted((one.topic, sorted(one.partitions)) for one in state.topics if one.topic[:2] != "__")
        return state.error_code, state.transaction_state, state.producer_epoch, parts

    def committed(self, name: str) -> Any:
        """The group's committed offset; `require_stable` tells whether a transaction still may change it."""
        said = []
        for stable in (True, False):
            request = OffsetFetchRequest[7](self.side.name("g"), [(self.side.name("spent"), [0])], stable)
            part = self.side.ask(request).topics[0].partitions[0]
            said.append((part.error_code, part.committed_offset))
        return name and said
