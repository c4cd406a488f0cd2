"""Histories of members of a share group: fetches, acknowledgements, sessions that end, records that are removed."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from typing import Any

from kafka.protocol.admin import DeleteRecordsRequest
from kafka.protocol.commit import FindCoordinatorRequest
from kafka.protocol.configs import IncrementalAlterConfigsRequest
from kafka.protocol.share import (
    AlterShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequest,
    ShareAcknowledgeRequest,
    ShareFetchRequest,
    ShareGroupHeartbeatRequest,
)
from kafka.protocol.transaction import AddPartitionsToTxnRequest, EndTxnRequest, InitProducerIdRequest

from .lockstep import Kind, Side, Step
from .records import batch, batches, produced

#: One partition: with several, which one is read first is up to Kafka.
TOPIC, PARTITIONS = "q", 1
MEMBERS = ("m1", "m2", "m3")
GROUP = 32
#: Types of acknowledgements: gap, accept, release, reject; renewals are a step of their own.
TYPES = (1, 1, 1, 2, 2, 2, 2, 3, 0)
#: With a fetch: whether this has the records that the request itself releases depends on Kafka's disk.
WITH_FETCH = (1, 1, 1, 3, 0)
EPOCHS = ("next",) * 14 + ("ahead", "old")


class _Member:
    def __init__(self) -> None:
        self.epoch = 0
        #: What it holds, by partition.
        self.held: dict[int, set[int]] = {number: set() for number in range(PARTITIONS)}


class ShareGroups(Kind):
    """Three members of one group read one partition."""

    length = 50

    def __init__(self, side: Side) -> None:
        super().__init__(side)
        self._members = {name: _Member() for name in MEMBERS}
        self._is_read = False

    def prepare(self) -> None:
        side = self.side
        side.make_topics(None, **{TOPIC: PARTITIONS})
        for kind in (0, 1):
            side.settled(
                lambda kind=kind: FindCoordinatorRequest[2](key=side.name("g"), key_type=kind),  # type: ignore[misc]
                lambda reply: {reply.error_code},
            )
        self.configure(**{"share.auto.offset.reset": "earliest"})
        # A member that joins: the coordinator begins to keep the partitions' states. It reads nothing.
        epoch = 0
        while True:
            request: Any = ShareGroupHeartbeatRequest[1](side.name("g"), "prober", epoch)
            request.rack_id, request.subscribed_topic_names = None, [side.name(TOPIC)] if not epoch else None
            reply = side.settled(lambda request=request: request, lambda reply: {reply.error_code})  # type: ignore[misc]
            epoch = reply.member_epoch
            if reply.assignment and reply.assignment.topic_partitions:
                break
        leave: Any = ShareGroupHeartbeatRequest[1](side.name("g"), "prober", -1)
        side.ask(leave)

    @staticmethod
    def steps(rng: random.Random, length: int) -> list[Step]:
        settings = {
            "share.isolation.level": ["read_committed"],
            "share.delivery.count.limit": ["2", "3", "4", "7", "10"],
            "share.partition.max.record.locks": ["100"],
        }
        steps = [
            Step("configure", {name: rng.choice(values)}) for name, values in settings.items() if rng.random() < 0.3
        ]
        steps += [_step(rng, rng.randrange(PARTITIONS)) for _ in range(length)]
        steps.append(Step("describe", eventually=True))
        if rng.random() < 0.3:
            # At the end: what Kafka makes of a start offset that was deleted under it is not a rule.
            reading = {"epoch": "next", "most": 500, "exactly": False, "size": 500, "says": None}
            steps.append(Step("remove", {"partition": 0, "share": round(rng.random(), 2)}))
            steps += [Step("fetch", {"name": name, **reading}) for name in MEMBERS]
        return steps

    # What is done beside reading

    def configure(self, **configs: str) -> Any:
        rows = [(name, 0, value) for name, value in configs.items()]
        request: Any = IncrementalAlterConfigsRequest[1]([(GROUP, self.side.name("g"), rows)], False)
        return self.side.ask(request).responses[0].error_code

    def produce(self, partition: int, count: int, times: int) -> Any:
        said = []
        for _ in range(times):
            data = batch((-1, -1), -1, count)
            reply = self.side.ask(produced(9, self.side.name(TOPIC), partition, data))
            part = reply.responses[0].partition_responses[0]
            said.append((part.error_code, part.base_offset))
        return said

    def transaction(self, partition: int, count: int, commits: bool) -> Any:
        """Write a transaction, and end it."""
        side, name = self.side, self.side.name("t")
        who = side.settled(lambda: InitProducerIdRequest[4](name, 60_000, -1, -1), lambda reply: {reply.error_code})
        parts = [(side.name(TOPIC), [partition])]
        side.settled(
            lambda: AddPartitionsToTxnRequest[3](
                v3_and_below_transactional_id=name,
                v3_and_below_producer_id=who.producer_id,
                v3_and_below_producer_epoch=who.producer_epoch,
                v3_and_below_topics=parts,
            ),
            lambda reply: {
                one.error_code for part in reply.results_by_topic_v3_and_below for one in part.results_by_partition
            },
        )
        data = batch((who.producer_id, who.producer_epoch), 0, count, transactional=True)
        side.ask(produced(9, side.name(TOPIC), partition, data, name))
        end = side.settled(
            lambda: EndTxnRequest[3](name, who.producer_id, who.producer_epoch, commits),
            lambda reply: {reply.error_code},
        )
        # The markers are written after the reply; the next transaction of the name waits for them.
        side.settled(lambda: InitProducerIdRequest[4](name, 60_000, -1, -1), lambda reply: {reply.error_code})
        return end.error_code

    def remove(self, partition: int, share: float) -> Any:
        """Delete records up to somewhere in what a member holds."""
        held = sorted(set().union(*(member.held[partition] for member in self._members.values())))
        if not held:
            return None
        offset = held[int(share * len(held))]
        topics = [(self.side.name(TOPIC), [(partition, offset)])]
        reply = self.side.ask(DeleteRecordsRequest[2](topics=topics, timeout_ms=30_000))
        part = reply.topics[0].partitions[0]
        return part.error_code, part.low_watermark

    def reset(self, partition: int, share: float) -> Any:
        """Set the start offset, before anybody reads: later Kafka goes by it only from the next change on."""
        if self._is_read:
            return None
        topics = [(self.side.name(TOPIC), [(partition, int(share * 50))])]
        reply = self.side.ask(AlterShareGroupOffsetsRequest[0](self.side.name("g"), topics))
        return reply.error_code, [part.error_code for one in reply.responses for part in one.partitions]

    def describe(self) -> Any:
        topics = [(self.side.name(TOPIC), list(range(PARTITIONS)))]
        reply = self.side.ask(DescribeShareGroupOffsetsRequest[1]([(self.side.name("g"), topics)]))
        parts = reply.groups[0].topics[0].partitions if reply.groups[0].topics else []
        return [(part.partition_index, part.error_code, part.start_offset, part.lag) for part in parts]

    # Reading

    def _epoch(self, member: _Member, epoch: str) -> int:
        return {"next": member.epoch, "ahead": member.epoch + 1, "old": max(member.epoch - 1, 0)}[epoch]

    def _acknowledged(self, member: _Member, says: dict[str, Any] | None) -> list[Any]:
        """Return what is said of records that a member holds, as batches of a request, and forget those."""
        if says is None:
            return []
        held = sorted(member.held[says["partition"]])
        begin, end = (int(part * len(held)) for part in sorted(says["part"]))
        chosen = held[begin : end + 1]
        if says["strange"]:
            chosen = sorted({*chosen, says["strange"]})
        if not chosen:
            return []
        rows: list[Any] = []
        for offset in chosen:
            if rows and rows[-1][1] == offset - 1:
                rows[-1][1] = offset
            else:
                rows.append([offset, offset])
        kinds = says["types"]
        found: list[Any] = []
        for number, (first, last) in enumerate(rows):
            if says["each"]:
                types = [kinds[offset % len(kinds)] for offset in range(first, last + 1)]
            else:
                types = [kinds[number % len(kinds)]]
            found.append((first, last, types))
        return found

    def _forget(self, member: _Member, says: dict[str, Any] | None, rows: Sequence[Any], code: int) -> None:
        if says is not None and not code:
            for first, last, _ in rows:
                member.held[says["partition"]] -= set(range(first, last + 1))

    def fetch(self, name: str, epoch: str, most: int, exactly: bool, size: int, says: dict[str, Any] | None) -> Any:
        member, side = self._members[name], self.side
        self._is_read = True
        sent = self._epoch(member, epoch)
        rows = self._acknowledged(member, says) if sent else []
        parts: list[Any] = [(number, []) for number in range(PARTITIONS)]
        if rows and says is not None:
            parts[says["partition"]] = (says["partition"], rows)
        request: Any = ShareFetchRequest[2](side.name("g"), name, sent)
        request.max_wait_ms, request.min_bytes, request.max_bytes = 200 if not sent else 50, 1, 1 << 20
        request.max_records, request.batch_size, request.share_acquire_mode = most, size, int(exactly)
        request.is_renew_ack = False
        request.topics = [(side.topic_ids[side.name(TOPIC)], parts)]
        reply = side.ask(request, name)
        said = self._said(member, reply, sent)
        self._forget(member, says, rows, 0 if reply is not None and not reply.error_code else 1)
        if reply is not None and not reply.error_code:
            for topic in reply.responses:
                for part in topic.partitions:
                    for one in part.acquired_records:
                        member.held[part.partition_index] |= set(range(one.first_offset, one.last_offset + 1))
        return said

    def _said(self, member: _Member, reply: Any, sent: int) -> Any:
        if reply is None:
            return None
        if reply.error_code:
            if sent == member.epoch and reply.error_code in {122, 123}:
                member.epoch = 0
            return reply.error_code
        member.epoch = 1 if not sent else member.epoch + 1
        said = {}
        for topic in reply.responses:
            for part in topic.partitions:
                acquired = [
                    (offset, one.delivery_count)
                    for one in part.acquired_records
                    for offset in range(one.first_offset, one.last_offset + 1)
                ]
                shown = (part.error_code, part.acknowledge_error_code, acquired, [b[0] for b in batches(part.records)])
                if shown != (0, 0, [], []):
                    said[part.partition_index] = shown
        return said

    def acknowledge(self, name: str, epoch: str, says: dict[str, Any], renew: bool) -> Any:
        member, side = self._members[name], self.side
        sent = self._epoch(member, epoch)
        rows = self._acknowledged(member, says)
        if not rows or not sent:
            return None
        if renew:
            rows = [(first, last, [4]) for first, last, _ in rows]
        request: Any = ShareAcknowledgeRequest[2](side.name("g"), name, sent, renew)
        request.topics = [(side.topic_ids[side.name(TOPIC)], [(says["partition"], rows)])]
        reply = side.ask(request, name)
        if reply.error_code:
            if sent == member.epoch and reply.error_code in {122, 123}:
                member.epoch = 0
            return reply.error_code
        member.epoch += 1
        codes = [part.error_code for topic in reply.responses for part in topic.partitions]
        if not renew:
            self._forget(member, says, rows, max(codes))
        return codes

    def close(self, name: str, by: str, says: dict[str, Any] | None) -> Any:
        member, side = self._members[name], self.side
        if not member.epoch:
            return None
        rows = self._acknowledged(member, says) if by != "loss" else []
        parts = [(says["partition"], rows)] if says is not None and rows else []
        said: Any = None
        if by == "loss":
            side.connection(name).reopen()
        elif by == "fetch":
            request: Any = ShareFetchRequest[2](side.name("g"), name, -1)
            request.max_wait_ms, request.min_bytes, request.max_bytes = 0, 0, 0
            request.max_records, request.batch_size = 0, 0
            request.topics = [(side.topic_ids[side.name(TOPIC)], parts)] if parts else []
            said = self._said(member, side.ask(request, name), -1)
        else:
            ask: Any = ShareAcknowledgeRequest[2](side.name("g"), name, -1, False)
            ask.topics = [(side.topic_ids[side.name(TOPIC)], parts)] if parts else []
            reply = side.ask(ask, name)
            said = reply.error_code, [part.error_code for topic in reply.responses for part in topic.partitions]
        self._members[name] = _Member()
        time.sleep(0.2)  # Kafka releases what the member had after its reply, and does not say when it has done so
        return said


def _step(rng: random.Random, partition: int) -> Step:
    name = rng.choice(MEMBERS[: rng.choice([1, 2, 3])])
    what = rng.choice(["fetch"] * 8 + ["produce"] * 4 + ["acknowledge"] * 6 + ["close", "describe", "rare"])
    says = _says(rng, partition)
    sometimes = _says(rng, partition, WITH_FETCH) if rng.random() < 0.4 else None
    if what == "rare":
        what = rng.choice(["reset", "transaction"])
    arguments: dict[str, dict[str, Any]] = {
        "produce": {"partition": partition, "count": rng.choice([1, 2, 10, 10, 60]), "times": rng.choice([1, 1, 3])},
        "fetch": {
            "name": name,
            "epoch": rng.choice(EPOCHS),
            "most": rng.choice([1, 5, 10, 10, 500]),
            "exactly": rng.random() < 0.3,
            "size": rng.choice([1, 10, 500, 500]),
            "says": sometimes,
        },
        "acknowledge": {"name": name, "epoch": rng.choice(EPOCHS), "says": says, "renew": rng.random() < 0.15},
        "close": {"name": name, "by": rng.choice(["fetch", "acknowledge", "loss"]), "says": sometimes},
        "describe": {},
        "transaction": {"partition": partition, "count": rng.choice([1, 5]), "commits": rng.random() < 0.5},
        "reset": {"partition": partition, "share": round(rng.random(), 2)},
    }
    return Step(what, arguments[what], eventually=what == "describe")


def _says(rng: random.Random, partition: int, kinds: Sequence[int] = TYPES) -> dict[str, Any]:
    types = [rng.choice(kinds) for _ in range(rng.choice([1, 3, 7]))]
    each = rng.random() < 0.2
    strange = rng.choice([0, 3, 50, 10_000]) if rng.random() < 0.08 else 0
    part = sorted([round(rng.random(), 2), rng.choice([1.0, round(rng.random(), 2)])])
    return {"partition": partition, "types": types, "each": each, "part": part, "strange": strange}
