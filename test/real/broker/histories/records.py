"""Histories of idempotent producers: sequence numbers in order, repeated, overlapping, with gaps, of other epochs."""

from __future__ import annotations

import random
import time
from typing import Any

from kafka.protocol.admin import DeleteRecordsRequest
from kafka.protocol.fetch import FetchRequest
from kafka.protocol.produce import ProduceRequest
from kafka.protocol.transaction import DescribeProducersRequest, InitProducerIdRequest
from kafka.record.batch_builder import BatchBuilder

from .lockstep import Kind, Side, Step

PARTITIONS = 2
PRODUCERS = ("p1", "p2")
#: The last sequence number; 0 follows.
LAST = 2**31 - 1
KEPT = 5


def batch(who: tuple[int, int], sequence: int, count: int, *, transactional: bool = False) -> bytes:
    """Return a batch of records that were made now: Kafka deletes old ones."""
    builder = BatchBuilder(limit=100_000)
    for number in range(count):
        builder.append(int(time.time() * 1000), None, b"%d" % number)
    sealed = builder.seal(
        producer_id=who[0], producer_epoch=who[1], base_sequence=sequence, transactional=transactional
    )
    return bytes(sealed.data)


def produced(version: int, topic: str, partition: int, data: bytes, transactional_id: str | None = None) -> Any:
    part = ProduceRequest[version].PartitionProduceData(index=partition, records=data)
    topics = [ProduceRequest[version].TopicProduceData(name=topic, partition_data=[part])]
    return ProduceRequest[version](transactional_id=transactional_id, acks=-1, timeout_ms=30_000, topic_data=topics)


def fetched(side: Side, topic: str, partition: int, offset: int, isolation: int = 0) -> Any:
    """Return what a reader is told of a partition."""
    part = FetchRequest[11].FetchPartition(
        partition=partition, fetch_offset=offset, log_start_offset=-1, partition_max_bytes=1 << 20
    )
    part.current_leader_epoch = -1
    request = FetchRequest[11](max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, isolation_level=isolation)
    request.replica_id, request.session_id, request.session_epoch, request.rack_id = -1, 0, -1, ""
    request.topics = [FetchRequest[11].FetchTopic(topic=topic, partitions=[part])]
    return side.ask(request).responses[0].partitions[0]


def batches(data: bytes) -> list[tuple[int, int, int, int]]:
    """Return base offset, number of records, epoch and first sequence number of each batch."""
    found, at = [], 0
    data = bytes(data or b"")
    while at + 61 <= len(data):
        base, size = int.from_bytes(data[at : at + 8], "big"), int.from_bytes(data[at + 8 : at + 12], "big")
        epoch = int.from_bytes(data[at + 51 : at + 53], "big", signed=True)
        sequence = int.from_bytes(data[at + 53 : at + 57], "big", signed=True)
        found.append((base, int.from_bytes(data[at + 57 : at + 61], "big"), epoch, sequence))
        at += 12 + size
    return found


class IdempotentProduce(Kind):
    """Two producers write to two partitions."""

    length = 60

    def __init__(self, side: Side) -> None:
        super().__init__(side)
        self._who: dict[str, tuple[int, int]] = {}

    def prepare(self) -> None:
        self.side.make_topics(records=PARTITIONS)
        for name in PRODUCERS:
            self.init(name)

    @staticmethod
    def steps(rng: random.Random, length: int) -> list[Step]:
        following: dict[tuple[str, int, int], int] = {}
        sent: dict[tuple[str, int, int], list[tuple[int, int]]] = {}
        epochs = dict.fromkeys(PRODUCERS, 0)
        steps: list[Step] = []
        while len(steps) < length:
            what = rng.random()
            name, partition = rng.choice(PRODUCERS), rng.randrange(PARTITIONS)
            if what < 0.03:
                steps.append(Step("init", {"name": name}))
                epochs[name] = 0
                for held in (following, sent):
                    for key in [key for key in held if key[0] == name]:
                        del held[key]
                continue
            if what < 0.06:
                steps.append(Step("delete", {"partition": partition, "behind": rng.choice([0, 0, 1, 3])}, True))
                continue
            if what < 0.16:
                steps.append(Step("look", {"partition": partition}, eventually=True))
                continue
            if rng.random() < 0.04:
                epochs[name] += 1  # as a producer does by itself after an error
            # Kafka takes a producer id with epoch -1 for none, the embedded broker refuses it: it is documented.
            epoch = max(0, epochs[name] + rng.choice([0] * 20 + [-1, 1]))
            key = (name, partition, epoch)
            first = rng.choice([0, 0, 0, 0, LAST - 2, LAST, 7])
            sequence, count = following.get(key, first), rng.randint(1, 4)
            before = sent.get(key, [])[-(KEPT + 2) :]
            how = rng.random()
            if before and how < 0.25:
                sequence, count = rng.choice(before)
                count += rng.choice([0, 0, 0, 1, -1]) if count > 1 else 0
            elif how < 0.33:
                sequence = (sequence + rng.choice([1, 2, -1, -2, 100])) % (LAST + 1)
            else:
                following[key] = (sequence + count) % (LAST + 1)
                sent.setdefault(key, []).append((sequence, count))
            steps.append(
                Step(
                    "write",
                    {
                        "name": name,
                        "partition": partition,
                        "epoch": epoch,
                        "sequence": sequence,
                        "count": count,
                        "version": rng.randint(3, 12),
                    },
                )
            )
        return steps

    def init(self, name: str) -> Any:
        reply = self.side.settled(
            lambda: InitProducerIdRequest[4](None, 60_000, -1, -1), lambda reply: {reply.error_code}
        )
        self._who[name] = (reply.producer_id, reply.producer_epoch)
        return reply.error_code, reply.producer_epoch

    def write(self, name: str, partition: int, epoch: int, sequence: int, count: int, version: int) -> Any:
        pid, begun = self._who[name]
        data = batch((pid, begun + epoch), sequence, count)
        reply = self.side.ask(produced(version, self.side.name("records"), partition, data))
        part = reply.responses[0].partition_responses[0]
        errors = [(one.batch_index) for one in getattr(part, "record_errors", None) or []]
        return part.error_code, part.base_offset, getattr(part, "log_start_offset", None), errors

    def delete(self, partition: int, behind: int) -> Any:
        """Delete all records but the last ones."""
        topic = self.side.name("records")
        end = fetched(self.side, topic, partition, 0).high_watermark
        reply = self.side.ask(DeleteRecordsRequest[2]([(topic, [(partition, max(0, end - behind))])], 30_000))
        part = reply.topics[0].partitions[0]
        return part.error_code, part.low_watermark

    def look(self, partition: int) -> Any:
        topic = self.side.name("records")
        start = max(0, fetched(self.side, topic, partition, 0).log_start_offset)
        part = fetched(self.side, topic, partition, start)
        known = self.side.ask(DescribeProducersRequest[0]([(topic, [partition])])).topics[0].partitions[0]
        names = {who[0]: name for name, who in self._who.items()}
        producers = sorted(
            (names[one.producer_id], one.producer_epoch, one.last_sequence)
            for one in known.active_producers
            if one.producer_id in names
        )
        return part.error_code, part.high_watermark, part.log_start_offset, batches(part.records), producers
