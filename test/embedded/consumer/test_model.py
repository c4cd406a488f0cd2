"""One reader under a random model: leaders move and crash, logs are cut and trimmed, transactions end either way.

Each seed is a whole run; a failure prints it, and PUREKAFKA_SEEDS="7 1200-1300" replays just those, with
`pytest -m soak` and this file. Threads and the machine's load have a say in what happens, so a seed is a kind of
history rather than one history. Seeds take turns with what brokers can do: fetches that tell of a cut log themselves,
as of 2.7, and those after which it has to be asked for; with topic ids and without.

P5  is checked with each record: it is one that was at this offset, it comes behind the one before, and between the two
    is nothing that the application ought to have seen. Nothing makes the reader go elsewhere without being told, as
    auto_offset_reset is 'none': where records are gone, it raises that.
P8  once nothing fails any more, everything is read to the end.
"""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from kafka.broker import Broker
from kafka.consumer import KafkaConsumer
from kafka.errors import (
    CorruptRecordError,
    FencedLeaderEpochError,
    FetchSessionIdNotFoundError,
    InvalidFetchSessionEpochError,
    KafkaError,
    KafkaStorageError,
    LeaderNotAvailableError,
    LogTruncationError,
    NotLeaderForPartitionError,
    OffsetNotAvailableError,
    OffsetOutOfRangeError,
    TopicAuthorizationFailedError,
    UnknownError,
    UnknownLeaderEpochError,
    UnknownTopicOrPartitionError,
)
from kafka.record.batch_builder import BatchBuilder
from kafka.structs import TopicPartition

from .reading import TIMEOUT, tp
from .unclean import cut_log

FACES = "both"

PARTITIONS = 3
NODES = [1, 2, 3]
STEPS = 60
ALL = [tp(number) for number in range(PARTITIONS)]
PASSING: dict[str, list[type[KafkaError]]] = {
    "Fetch": [
        NotLeaderForPartitionError,
        UnknownTopicOrPartitionError,
        FencedLeaderEpochError,
        UnknownLeaderEpochError,
        OffsetNotAvailableError,
        KafkaStorageError,
        CorruptRecordError,
        UnknownError,
        FetchSessionIdNotFoundError,
        InvalidFetchSessionEpochError,
        TopicAuthorizationFailedError,
    ],
    "ListOffsets": [NotLeaderForPartitionError, LeaderNotAvailableError, OffsetNotAvailableError],
    "OffsetForLeaderEpoch": [NotLeaderForPartitionError, FencedLeaderEpochError, UnknownLeaderEpochError],
    "Metadata": [LeaderNotAvailableError],
}


class Truth:
    """What is and was in the log of each partition."""

    def __init__(self) -> None:
        self.shown: dict[TopicPartition, dict[int, set[bytes]]] = defaultdict(lambda: defaultdict(set))
        self.hidden: dict[TopicPartition, set[int]] = defaultdict(set)

    def show(self, partition: TopicPartition, first: int, values: list[bytes]) -> None:
        for offset, value in enumerate(values, first):
            self.shown[partition][offset].add(value)

    def check(self, partition: TopicPartition, expected: int, offset: int, value: bytes) -> None:
        assert offset >= expected, f"{partition}: {offset} came when {expected} was next"
        assert value in self.shown[partition].get(offset, ()), f"{partition}: {value!r} was never shown at {offset}"
        missed = [
            at for at in range(expected, offset) if at in self.shown[partition] and at not in self.hidden[partition]
        ]
        assert not missed, f"{partition}: {missed} were passed on the way to {offset}"


class World:
    """A broker, its history, and one consumer that reads it."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.history: list[str] = []
        self.transactions = seed % 2 == 0
        self.broker = Broker(nodes=len(NODES), topics={"events": PARTITIONS}, seed=seed)
        self.truth = Truth()
        self.count = 0
        self.sequences: dict[tuple[int, TopicPartition], int] = defaultdict(int)
        self.open: dict[TopicPartition, tuple[int, list[tuple[int, list[bytes]]]]] = {}
        self.expected: dict[TopicPartition, int] = {}
        self.seed = seed

    def run(self) -> None:
        with self.broker as broker:
            broker.advertise("Fetch", 0, (17, 12, 11, 6)[self.seed // 2 % 4])
            with KafkaConsumer(
                bootstrap_servers=broker.bootstrap_servers,
                auto_offset_reset="none",
                isolation_level="read_committed" if self.transactions else "read_uncommitted",
                retry_backoff_ms=2,
                retry_backoff_max_ms=20,
                reconnect_backoff_ms=2,
                reconnect_backoff_max_ms=20,
                fetch_max_wait_ms=20,
                max_partition_fetch_bytes=self.rng.choice([200, 2000, 1 << 20]),
                fetch_buffer_memory=self.rng.choice([500, 1 << 20]),
                consumer_timeout_ms=50,
            ) as consumer:
                consumer.assign(ALL)
                for partition in ALL:
                    consumer.seek(partition, 0)
                    self.expected[partition] = 0
                for _ in range(STEPS):
                    self.step(consumer)
                self.finish(consumer)

    def step(self, consumer: KafkaConsumer) -> None:
        actions: list[tuple[int, Callable[[], object]]] = [
            (8, self.append),
            (10, lambda: self.read(consumer)),
            (2, self.move_leader),
            (1, self.node_goes_or_comes),
            (2, self.fail),
            (1, self.drop),
            (1, self.trim),
            (2, lambda: self.seek(consumer)),
            (2, lambda: self.pause_or_resume(consumer)),
            (3, self.transact) if self.transactions else (1, self.cut),
        ]
        _, action = self.rng.choices(actions, [weight for weight, _ in actions])[0]
        action()

    def note(self, text: str) -> None:
        self.history.append(text)

    # What happens to the cluster…

    def values(self) -> list[bytes]:
        count = self.rng.choice([1, 3, 20, 60])
        self.count += count
        return [b"%d" % number for number in range(self.count - count, self.count)]

    def append(self) -> None:
        partition, values = self.rng.choice(ALL), self.values()
        first = self.broker.append_many("events", values, partition=partition.partition)
        self.truth.show(partition, first, values)
        self.note(f"{partition.partition}: {len(values)} at {first}")

    def transact(self) -> None:
        """Write in a transaction, or end it."""
        partition = self.rng.choice(ALL)
        if partition in self.open and self.rng.random() < 0.5:
            self.end_transaction(partition, committed=self.rng.random() < 0.5)
            return
        producer, written = self.open.setdefault(partition, (self.count + 1000, []))
        values = self.values()
        builder = BatchBuilder(1 << 20)
        for value in values:
            builder.append(1_700_000_000_000, None, value)
        sequence = self.sequences[producer, partition]
        self.sequences[producer, partition] += len(values)
        data = builder.seal(producer_id=producer, producer_epoch=0, base_sequence=sequence, transactional=True).data
        first = self.broker.run(lambda cluster: cluster.append(cluster.partition(*partition), data))
        written.append((first, values))
        self.note(f"{partition.partition}: {len(values)} at {first} in a transaction of {producer}")

    def end_transaction(self, partition: TopicPartition, *, committed: bool) -> None:
        producer, written = self.open.pop(partition)
        # Before the marker is there: from then on a reader may have them.
        for first, values in written:
            if committed:
                self.truth.show(partition, first, values)
            else:
                self.truth.hidden[partition].update(range(first, first + len(values)))
        at = self.broker.run(
            lambda cluster: cluster.append_marker(cluster.partition(*partition), producer, 0, committed=committed)
        )
        self.truth.hidden[partition].add(at)
        self.note(f"{partition.partition}: {producer} {'committed' if committed else 'aborted'} at {at}")

    def move_leader(self) -> None:
        partition, node = self.rng.choice(ALL), self.rng.choice(NODES)
        self.broker.move_leader(partition, node)
        self.note(f"{partition.partition}: led by {node}")

    def node_goes_or_comes(self) -> None:
        node = self.rng.choice(NODES[1:])
        self.note(f"node {node} stops and starts")
        self.broker.stop_node(node, crash=self.rng.random() < 0.5)
        self.broker.start_node(node)

    def fail(self) -> None:
        api = self.rng.choice(list(PASSING))
        error, times = self.rng.choice(PASSING[api]), self.rng.choice([1, 2, 5])
        self.broker.fail(api, [error], times=times)
        self.note(f"{api} fails with {error.__name__} {times} times")

    def drop(self) -> None:
        self.note("connections are cut")
        self.broker.drop_connections(api=self.rng.choice(list(PASSING)))

    def trim(self) -> None:
        partition = self.rng.choice(ALL)
        start, stable, _ = self.broker.offsets("events", partition.partition)
        offset = self.rng.randint(start, max(start, stable))
        self.broker.run(lambda cluster: cluster.partition(*partition).log.delete_before(offset))
        self.note(f"{partition.partition}: begins at {offset}")

    def cut(self) -> None:
        partition = self.rng.choice(ALL)
        start, _, end = self.broker.offsets("events", partition.partition)
        offset = self.rng.randint(start, end)
        leader = self.broker.leader("events", partition.partition)
        cut_log(self.broker, partition, offset, self.rng.choice([node for node in NODES if node != leader]))
        self.note(f"{partition.partition}: cut to {self.broker.offsets('events', partition.partition)}")

    # …and what the application does.

    def read(self, consumer: KafkaConsumer) -> None:
        how = self.rng.choice([self.poll, self.poll, self.iterate, self.columns])
        before = dict(self.expected)
        try:
            how(consumer)
        except (OffsetOutOfRangeError, LogTruncationError, TopicAuthorizationFailedError) as error:
            self.told(consumer, error)
        if self.expected != before:
            self.note(f"read by {how.__name__} to {[self.expected[partition] for partition in ALL]}")

    def poll(self, consumer: KafkaConsumer) -> None:
        for partition, records in consumer.poll(50, max_records=self.rng.choice([1, 7, 500])).items():
            for record in records:
                self.saw(partition, record.offset, record.value)

    def iterate(self, consumer: KafkaConsumer) -> None:
        for record in consumer:
            self.saw(TopicPartition(record.topic, record.partition), record.offset, record.value)
            if self.rng.random() < 0.1:
                break

    def columns(self, consumer: KafkaConsumer) -> None:
        for partition, columns in consumer.poll_batches(50).items():
            for offset, value in zip(columns.offsets, columns.values, strict=True):
                self.saw(partition, int(offset), bytes(value))

    def saw(self, partition: TopicPartition, offset: int, value: bytes) -> None:
        self.truth.check(partition, self.expected[partition], offset, value)
        self.expected[partition] = offset + 1

    def told(self, consumer: KafkaConsumer, error: Any) -> None:
        self.note(f"told {error!r}")
        partition = error.topic_partition
        if isinstance(error, TopicAuthorizationFailedError):
            return
        if isinstance(error, LogTruncationError) and error.divergent_offsets:
            target = min(error.divergent_offsets[partition].offset, self.expected[partition])
        else:
            # Back to the start of the log, or from there as far as it was read.
            # Where logs are cut the error may be of a time when the log was shorter than it is now.
            start = self.broker.offsets("events", partition.partition)[0]
            assert not self.transactions or self.expected[partition] < start
            target = start
        consumer.seek(partition, target)
        self.expected[partition] = target

    def seek(self, consumer: KafkaConsumer) -> None:
        partition = self.rng.choice(ALL)
        start, _, end = self.broker.offsets("events", partition.partition)
        offset = self.rng.randint(start, end)
        consumer.seek(partition, offset)
        self.expected[partition] = offset
        self.note(f"{partition.partition}: seek to {offset}")

    def pause_or_resume(self, consumer: KafkaConsumer) -> None:
        partition = self.rng.choice(ALL)
        if partition in consumer.paused():
            consumer.resume(partition)
        else:
            consumer.pause(partition)
        self.note(f"{partition.partition}: {'paused' if partition in consumer.paused() else 'resumed'}")

    def finish(self, consumer: KafkaConsumer) -> None:
        """Nothing fails any more: all is read to the end."""
        self.note("nothing fails any more")
        for partition in list(self.open):
            self.end_transaction(partition, committed=True)
        self.broker.clear_faults()
        consumer.resume(*ALL)
        deadline = time.monotonic() + TIMEOUT
        while self.is_behind(consumer):
            assert time.monotonic() < deadline, f"{self.expected} {consumer.health()}"
            self.read(consumer)
        for partition in ALL:
            end = self.broker.offsets("events", partition.partition)[2]
            shown, hidden = self.truth.shown[partition], self.truth.hidden[partition]
            missed = [at for at in range(self.expected[partition], end) if at in shown and at not in hidden]
            assert not missed, f"{partition}: {missed} were passed on the way to the end"

    def is_behind(self, consumer: KafkaConsumer) -> bool:
        try:
            return any(
                consumer.position(partition) < self.broker.offsets("events", partition.partition)[2]
                for partition in ALL
            )
        except TopicAuthorizationFailedError:  # of a request before the faults were cleared
            return True


def live_through(seed: int) -> None:
    world = World(seed)
    try:
        world.run()
    except BaseException:
        print(f"PUREKAFKA_SEEDS={seed}")
        print("\n".join(world.history))
        raise


@pytest.mark.parametrize("seed", range(8))  # what brokers can do repeats after so many
def test_promises_hold_in_a_few_histories(seed: int) -> None:
    live_through(seed)


@pytest.mark.soak
@pytest.mark.seeds("100-399")
def test_promises_hold_whatever_happens(seed: int) -> None:
    live_through(seed)
