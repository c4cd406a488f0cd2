"""``python -m benchmarks.cluster``: what grows with the size of a cluster and of a group, on the embedded broker.

A cluster of 100 brokers and 10,000 topics of one partition, and a group of 200 members. The broker is in a process of
its own; the processor time is that of the clients, and the requests are those that they sent. Each row is one run.

Seen on 2026-11-27 with CPython 3.11 on two cores at a load of 25, seconds of CPU: topics() 0.22 (one Metadata), all
topics by assign 3.3, by subscribe 5.7, by pattern 6.6; 200 members by range 5.1, by cooperative-sticky 5.5 (two
JoinGroup for each member), by KIP-848 6.1 (18 s from the first join to the last leave, at a load of 6; before a change
of one member no longer saved all others, 200 were not done after 140 seconds at a load of 25). A producer asks for the
metadata of each topic by itself: 10,000 topics took 21.1 (88 s, at a load of 15), and were not done after nine minutes
when each answer, and each topic more, was a look at all the others.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from multiprocessing.connection import Connection
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.broker import Broker

_TIMEOUT_S = 600
_MEMBERS_TOPIC = "members"


def serve(pipe: Connection, brokers: int, topics: dict[str, int]) -> None:
    """Run a broker; for each question, say which requests it has got since the one before."""
    with Broker(nodes=brokers, topics=topics) as broker:
        for name in topics:
            broker.append(name, b"value")
        pipe.send(broker.bootstrap_servers)
        seen = len(broker.requests)
        while pipe.recv():
            requests = broker.requests[seen:]
            seen += len(requests)
            pipe.send(Counter(request.name for request in requests))


class Cluster:
    """A broker in another process, and the table of what its clients cost."""

    def __init__(self, brokers: int, topics: dict[str, int], only: str) -> None:
        self.topics, self._only = topics, only
        context = multiprocessing.get_context("spawn")
        self._pipe, there = context.Pipe()
        self._process = context.Process(target=serve, args=(there, brokers, topics), daemon=True)
        self._process.start()
        self.bootstrap_servers: Any = self._pipe.recv()

    def row(self, name: str, run: Callable[[], object]) -> None:
        """Run something and print what it cost, if the row is wanted."""
        if self._only not in name:
            return
        self._asked()
        wall, cpu = time.perf_counter(), time.process_time()
        run()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        asked = ", ".join(f"{count} {api}" for api, count in self._asked().most_common())
        print(f"{name:<44} {cpu:8.2f} s CPU {wall:8.2f} s   {asked}", flush=True)

    def _asked(self) -> Counter[str]:
        self._pipe.send(True)
        asked: Counter[str] = self._pipe.recv()
        return asked

    def close(self) -> None:
        self._pipe.send(False)
        self._process.join(60)

    # What is measured…

    def administer(self) -> None:
        """Describe all topics and look up the end of each."""
        with KafkaAdminClient(bootstrap_servers=self.bootstrap_servers) as admin:
            assert len(admin.describe_topics()) == len(self.topics)
            ends = admin.list_partition_offsets({TopicPartition(name, 0): "latest" for name in self.topics})
            assert len(ends) == len(self.topics)

    def refresh(self) -> None:
        """Ask for the metadata of all topics, ten times."""
        with KafkaConsumer(bootstrap_servers=self.bootstrap_servers) as consumer:
            for _ in range(10):
                assert len(consumer.topics()) == len(self.topics)

    def produce(self) -> None:
        """Send one record to each topic, as a producer that knows none of them."""
        with KafkaProducer(bootstrap_servers=self.bootstrap_servers, linger_ms=50) as producer:
            sent = [producer.send(name, b"value") for name in self.topics]
            producer.flush()
            assert all(future.succeeded() for future in sent)

    def consume(self, how: str) -> None:
        """Read the record of each topic."""
        group = None if how == "assign" else f"readers by {how}"
        with KafkaConsumer(
            bootstrap_servers=self.bootstrap_servers, group_id=group, auto_offset_reset="earliest"
        ) as consumer:
            if how == "assign":
                consumer.assign([TopicPartition(name, 0) for name in self.topics])
            elif how == "pattern":
                consumer.subscribe(pattern="^topic-")
            else:
                consumer.subscribe(list(self.topics))
            left, deadline = len(self.topics), time.monotonic() + _TIMEOUT_S
            while left > 0:
                assert time.monotonic() < deadline, f"{left} topics were not read"
                left -= sum(map(len, consumer.poll(500, max_records=5000).values()))

    def gather(self, members: int, partitions: int, options: dict[str, Any]) -> None:
        """Let members join a group one after the other, wait until all have their share, and let all go."""
        with ExitStack() as stack:
            consumers = [
                stack.enter_context(
                    KafkaConsumer(
                        _MEMBERS_TOPIC, bootstrap_servers=self.bootstrap_servers, group_id=str(options), **options
                    )
                )
                for _ in range(members)
            ]
            deadline = time.monotonic() + _TIMEOUT_S
            while min(shares := [len(consumer.assignment()) for consumer in consumers]) < partitions // members:
                assert time.monotonic() < deadline, f"the shares are {Counter(shares)}"
                for consumer in consumers:
                    consumer.poll(0)
                time.sleep(0.1)
            assert sum(shares) == partitions


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--brokers", type=int, default=100)
    parser.add_argument("--topics", type=int, default=10_000)
    parser.add_argument("--members", type=int, default=200)
    parser.add_argument("--only", default="", metavar="TEXT", help="run the rows whose names have this text")
    args = parser.parse_args()
    cluster = Cluster(args.brokers, {f"topic-{number:05}": 1 for number in range(args.topics)}, args.only)
    try:
        cluster.row("admin: describe all topics, their ends", cluster.administer)
        cluster.row("consumer: topics(), ten times", cluster.refresh)
        for how in ("assign", "subscribe", "pattern"):
            cluster.row(f"consumer: all topics, by {how}", lambda how=how: cluster.consume(how))  # type: ignore[misc]
        cluster.row("producer: one record to each topic", cluster.produce)
    finally:
        cluster.close()
    partitions = 3 * args.members
    cluster = Cluster(3, {_MEMBERS_TOPIC: partitions}, args.only)
    protocols: dict[str, dict[str, Any]] = {
        "range": {"partition_assignment_strategy": "range", "group_protocol": "classic"},
        "cooperative-sticky": {"partition_assignment_strategy": "cooperative-sticky", "group_protocol": "classic"},
        "KIP-848": {"group_protocol": "consumer"},
    }
    try:
        for name, options in protocols.items():
            cluster.row(
                f"{args.members} members: join and leave, {name}",
                lambda options=options: cluster.gather(args.members, partitions, options),  # type: ignore[misc]
            )
    finally:
        cluster.close()


if __name__ == "__main__":
    main()
