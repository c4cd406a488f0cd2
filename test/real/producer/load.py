"""A stream of numbered records from a thread of its own, while the test breaks the cluster, and the judgement after.

Each partition gets the numbers 0, 1, 2 and so on. What the log must hold is then known: with idempotence exactly the
numbers whose futures succeeded, in order, where the futures say; without it all of those, the first time in order.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kafka import KafkaConsumer, KafkaProducer
from kafka.structs import TopicPartition
from test.real import wire
from test.real.kafka_process import KafkaCluster

if TYPE_CHECKING:
    from typing_extensions import Self

    from kafka.producer.future import FutureRecordMetadata

PARTITIONS = 3
CHUNK = 50
PAD = b"." * 80
WAIT = 180.0
TICK = 0.02


def until(condition: Callable[[], object], what: str, seconds: float = 60.0) -> None:
    """Wait until something outside of this process holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"no {what} within {seconds} s"
        time.sleep(TICK)


class Load:
    """Sends `count` records, first `rate` per second and then ever fewer, so that there are some left until `finish()`.

    A context manager, at whose end the producer is closed.
    """

    def __init__(self, cluster: KafkaCluster, topic: str, count: int, *, rate: int, **configs: Any) -> None:
        self.count = count
        self.futures: list[FutureRecordMetadata] = []
        self.longest_send = 0.0
        self._rate = rate
        self._topic = topic
        self._at_full_speed = threading.Event()
        self._stop = False
        self._error: BaseException | None = None
        self.producer = KafkaProducer(
            bootstrap_servers=cluster.bootstrap_servers, acks="all", max_block_ms=int(WAIT * 1000), **configs
        )
        self._thread = threading.Thread(target=self._run, name="load")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._stop = True
        self._at_full_speed.set()
        self.producer.close(timeout=5)
        self._thread.join(WAIT)

    @property
    def sent(self) -> int:
        """How many records were handed over."""
        return len(self.futures)

    def _run(self) -> None:
        send, futures, topic = self.producer.send, self.futures, self._topic
        try:
            while (left := self.count - len(futures)) and not self._stop:
                for number in range(len(futures), min(len(futures) + CHUNK, self.count)):
                    began = time.monotonic()
                    value = b"%d %s" % (number // PARTITIONS, PAD)
                    futures.append(send(topic, value, partition=number % PARTITIONS))
                    self.longest_send = max(self.longest_send, time.monotonic() - began)
                self._at_full_speed.wait(CHUNK / self._rate * self.count / left)
        except BaseException as error:
            self._error = error

    def stop_sending(self) -> None:
        """Send no more, though there are some left."""
        self._stop = True

    def finish(self) -> float:
        """Send the rest at full speed and wait for all outcomes; how long that took."""
        began = time.monotonic()
        self._at_full_speed.set()
        self._thread.join(WAIT)
        assert not self._thread.is_alive(), "send() hangs"
        if self._error is not None:
            raise self._error
        self.producer.flush(timeout=WAIT)
        return time.monotonic() - began


@dataclass
class Judgement:
    """What came of a load."""

    written: int = 0
    unknown: int = 0
    refused: int = 0
    repeated: int = 0
    in_log: dict[int, int] = field(default_factory=dict)


def judge(cluster: KafkaCluster, topic: str, load: Load, *, exactly_once: bool = True) -> Judgement:
    """Compare the log with the futures; raises where a promise is broken."""
    found = Judgement()
    for partition, log in read_log(cluster, topic).items():
        _judge_partition(log, load.futures[partition::PARTITIONS], found, exactly_once=exactly_once)
        found.in_log[partition] = len(log)
    return found


def _judge_partition(
    log: list[int], futures: list[FutureRecordMetadata], found: Judgement, *, exactly_once: bool
) -> None:
    first_seen = dict.fromkeys(log)
    assert list(first_seen) == sorted(first_seen), "the order is lost"
    found.repeated += len(log) - len(first_seen)
    if exactly_once:
        assert len(first_seen) == len(log), f"{len(log) - len(first_seen)} records are there twice"
    for number, future in enumerate(futures):
        assert future.is_done, f"{number} has no outcome"
        if future.succeeded():
            found.written += 1
            metadata = future.value
            assert metadata is not None
            assert number in first_seen, f"{number} was acknowledged, and is lost"
            if metadata.offset >= 0:
                assert log[metadata.offset] == number, f"{number} is not where its future says"
        elif future.exception.outcome_unknown:  # type: ignore[union-attr]
            found.unknown += 1
        else:
            found.refused += 1
            assert number not in first_seen, f"{number} is there, but: {future.exception!r}"


def read_log(cluster: KafkaCluster, topic: str) -> dict[int, list[int]]:
    """The numbers in each partition, in the order of their offsets, which have to be without gaps."""
    logs: dict[int, list[int]] = {}
    with KafkaConsumer(bootstrap_servers=cluster.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        partitions = [TopicPartition(topic, index) for index in range(PARTITIONS)]
        consumer.assign(partitions)
        ends = consumer.end_offsets(partitions)
        logs = {one.partition: [] for one in partitions}
        deadline = time.monotonic() + WAIT
        while any(len(logs[one.partition]) < ends[one] for one in partitions):
            assert time.monotonic() < deadline, f"{logs.keys()} cannot be read to their ends {ends}"
            for one, records in consumer.poll(timeout_ms=1000, max_records=10_000).items():
                log = logs[one.partition]
                for record in records:
                    assert record.offset == len(log)
                    log.append(int(record.value.split()[0]))
    return logs


# Breaking the cluster, in steps after which it can bear the next one.


def new_topic(cluster: KafkaCluster, name: str) -> str:
    """A topic that takes records as long as two of three nodes have them."""
    return cluster.create_topic(name, PARTITIONS, replicas=3, configs={"min.insync.replicas": "2"})


def wait_in_sync(cluster: KafkaCluster, topic: str) -> None:
    """Wait until all replicas are in sync again, so that the next node may go."""

    def all_in_sync() -> bool:
        with suppress(OSError):
            known = wire.metadata(cluster.address(cluster.running()[0]), topic).in_sync.get(topic, [])
            return set(known) == {len(cluster.nodes)}
        return False

    until(all_in_sync, "full set of replicas in sync")


def wait_for_another_leader(cluster: KafkaCluster, topic: str, node: int) -> None:
    """Wait until somebody else leads the first partition."""

    def another_leads() -> bool:
        with suppress(OSError):  # a busy node
            return cluster.leader(topic) not in {node, -1}
        return False

    until(another_leads, "new leader")


def kill_the_leader(cluster: KafkaCluster, topic: str) -> None:
    """kill -9, and back when another one leads."""
    node = cluster.leader(topic)
    cluster.kill(node)
    wait_for_another_leader(cluster, topic, node)
    cluster.start(node)
    wait_in_sync(cluster, topic)


def restart_the_leader(cluster: KafkaCluster, topic: str) -> None:
    """An orderly stop, and back."""
    cluster.restart(cluster.leader(topic))
    wait_in_sync(cluster, topic)


def stop_everything(cluster: KafkaCluster) -> None:
    """kill -9 of all nodes at once."""
    for node in cluster.nodes:
        cluster.kill(node)


def start_everything(cluster: KafkaCluster, topic: str) -> None:
    """All nodes come back."""
    cluster.start_all()
    cluster.wait_topic(topic, PARTITIONS)
    wait_in_sync(cluster, topic)
