"""Share groups: records that members take from a queue, and acknowledge one by one.

``work`` is one member that takes what is in a partition: it polls, acknowledges each record and commits, again and
again. In ``work-10`` ten members share the partition, in one process. One operation of ``send-done`` sends a record,
polls until it is there, acknowledges it, and has the broker's confirmation. Acknowledgement is explicit; linger is 0;
all else is each library's default. Java's members are threads of a program (ShareBench.java), whose CPU counts.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import traffic
from latency import percentile
from workload import Case, Job, Target, Unsupported, Workload, main

_QUEUE = "bench-share"
_SENT = "bench-share-sent"
_RECORDS = 1_000_000
_POLL_S = 1.0
_MEMBERS = {"work": 1, "work-10": 10, "send-done": 1}
_VALUE = b"x" * 100

Member = tuple[Callable[[], int], Callable[[], Any]]
"""A poll that acknowledges and commits, and returns how many records there were; and a close."""


class Count:
    """How many records are still to be taken; the members count it down together."""

    def __init__(self, left: int) -> None:
        self.left = left
        self._lock = threading.Lock()

    def take(self, count: int) -> None:
        with self._lock:
            self.left -= count


def _ours(bootstrap: str, group: str, topic: str) -> Member:
    from kafka import KafkaShareConsumer

    consumer = KafkaShareConsumer(
        topic, bootstrap_servers=bootstrap, group_id=group, share_acknowledgement_mode="explicit"
    )

    def poll() -> int:
        seen = 0
        for records in consumer.poll(_POLL_S * 1000).values():
            for record in records:
                record.key, record.value  # noqa: B018 - looked at, as a user would
                consumer.acknowledge(record)
            seen += len(records)
        _check(consumer.commit() if seen else {})
        return seen

    return poll, consumer.close


def _confluent(bootstrap: str, group: str, topic: str) -> Member:
    from confluent_kafka import ShareConsumer

    consumer = ShareConsumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "share.acknowledgement.mode": "explicit"}
    )
    consumer.subscribe([topic])

    def poll() -> int:
        messages = consumer.poll(_POLL_S)
        for message in messages:
            if message.error():
                raise RuntimeError(str(message.error()))
            message.key()
            message.value()
            consumer.acknowledge(message)
        _check(consumer.commit_sync() if messages else {})
        return len(messages)

    return poll, consumer.close


def _check(results: Mapping[Any, Any]) -> None:
    if any(results.values()):
        raise RuntimeError(f"an acknowledgement was refused: {results}")


class Threads:
    """Members in threads of this process."""

    def __init__(self, impl: str, bootstrap: str, group: str, case: str) -> None:
        topic = _SENT if case == "send-done" else _QUEUE
        make = _ours if impl == "purekafka" else _confluent
        self._members = [make(bootstrap, group, topic) for _ in range(_MEMBERS[case])]
        self._send: Callable[[], Any] = lambda: None
        if case == "send-done":
            self._send = _sender(impl, bootstrap)

    def work(self, count: int) -> None:
        left = Count(count)

        def work(poll: Callable[[], int]) -> None:
            while left.left > 0:
                left.take(poll())

        threads = [threading.Thread(target=work, args=(poll,)) for poll, _ in self._members]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def once(self) -> None:
        self._send()
        while not self._members[0][0]():
            pass

    def close(self) -> None:
        for _, close in self._members:
            close()


def _sender(impl: str, bootstrap: str) -> Callable[[], Any]:
    if impl == "purekafka":
        from kafka import KafkaProducer

        ours = KafkaProducer(bootstrap_servers=bootstrap, linger_ms=0)
        return lambda: ours.send(_SENT, _VALUE)
    from confluent_kafka import Producer

    theirs = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    return lambda: theirs.produce(_SENT, _VALUE)


class Tasks:
    """Members of ours as tasks of one event loop."""

    def __init__(self, bootstrap: str, group: str, case: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._run = self._loop.run_until_complete
        self._producer: Any = None
        self._members: list[Any] = []
        self._run(self._start(bootstrap, group, case))

    async def _start(self, bootstrap: str, group: str, case: str) -> None:
        from kafka.aio import AIOKafkaProducer, AIOKafkaShareConsumer

        topic = _SENT if case == "send-done" else _QUEUE
        options: dict[str, Any] = {"bootstrap_servers": bootstrap, "group_id": group}
        for _ in range(_MEMBERS[case]):
            member = AIOKafkaShareConsumer(topic, **options, share_acknowledgement_mode="explicit")
            await member.start()
            self._members.append(member)
        if case == "send-done":
            self._producer = AIOKafkaProducer(bootstrap_servers=bootstrap, linger_ms=0)
            await self._producer.start()

    async def _poll(self, consumer: Any) -> int:
        seen = 0
        for records in (await consumer.poll(_POLL_S * 1000)).values():
            for record in records:
                record.key, record.value  # noqa: B018
                consumer.acknowledge(record)
            seen += len(records)
        _check(await consumer.commit() if seen else {})
        return seen

    def work(self, count: int) -> None:
        left = Count(count)

        async def work(consumer: Any) -> None:
            while left.left > 0:
                left.take(await self._poll(consumer))

        async def all_of_them() -> None:
            await asyncio.gather(*map(work, self._members))

        self._run(all_of_them())

    def once(self) -> None:
        self._run(self._once())

    async def _once(self) -> None:
        await self._producer.send(_SENT, _VALUE)
        while not await self._poll(self._members[0]):
            pass

    def close(self) -> None:
        async def stop() -> None:
            for client in (*self._members, *([self._producer] if self._producer else [])):
                await client.stop()

        self._run(stop())
        self._loop.close()


class Java:
    """The Java program, which is told line by line what to do."""

    def __init__(self, bootstrap: str, group: str, case: str) -> None:
        command = os.environ.get("BENCH_JAVA")
        if not command:
            raise Unsupported("its jars come with a broker that is started for the run")
        words = [*json.loads(command), str(Path(__file__).with_name("ShareBench.java"))]
        topic = _SENT if case == "send-done" else _QUEUE
        pipe = subprocess.PIPE
        self._program = subprocess.Popen(
            [*words, bootstrap, group, topic, str(_MEMBERS[case])],
            stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        self.took: list[float] = []
        self._answer()

    def _ask(self, *words: object) -> list[str]:
        assert self._program.stdin is not None
        self._program.stdin.write(" ".join(map(str, words)) + "\n")
        self._program.stdin.flush()
        return self._answer()

    def _answer(self) -> list[str]:
        assert self._program.stdout is not None
        for line in self._program.stdout:
            if line.split()[:1] == ["bench"]:
                return line.split()[1:]
        raise RuntimeError("the Java program has ended")

    def cpu_s(self) -> float:
        """User and system time of the process."""
        fields = Path(f"/proc/{self._program.pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def work(self, count: int) -> None:
        self._ask("work", count)

    def rounds(self, count: int) -> None:
        self.took = [int(word) / 1e9 for word in self._ask("rounds", count)]

    def close(self) -> None:
        self._program.communicate("close\n", timeout=traffic.TIMEOUT_S)


class Rounds:
    """Rounds of ``send-done``, and how long each took."""

    def __init__(self, once: Callable[[], None]) -> None:
        self._once = once
        self.took: list[float] = []

    def rounds(self, count: int) -> None:
        """Only those of the last call are kept: the others were the warm-up."""
        self.took = []
        for _ in range(count):
            began = time.perf_counter()
            self._once()
            self.took.append(time.perf_counter() - began)


def _read_from_the_start(impl: str, bootstrap: str, group: str) -> None:
    """Have the group begin at the first record. The Java program does so itself."""
    if impl.startswith("purekafka"):
        from kafka import KafkaAdminClient
        from kafka.admin import ConfigResource

        with KafkaAdminClient(bootstrap_servers=bootstrap) as ours:
            ours.alter_configs([ConfigResource("GROUP", group, {"share.auto.offset.reset": "earliest"})])
    elif impl == "confluent-kafka":
        from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

        entry = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=[entry])
        admin = AdminClient({"bootstrap.servers": bootstrap})
        (future,) = admin.incremental_alter_configs([resource]).values()
        future.result(traffic.TIMEOUT_S)


def prepare(impl: str, case: str, args: argparse.Namespace) -> Job:
    """The group is new; its members have joined when the warm-up has got its records."""
    group = f"bench-{uuid.uuid4()}"
    _read_from_the_start(impl, args.bootstrap, group)
    members: Any
    if impl == "kafka-clients":
        members = Java(args.bootstrap, group, case)
    elif impl == "purekafka-aio":
        members = Tasks(args.bootstrap, group, case)
    else:
        members = Threads(impl, args.bootstrap, group, case)
    cpu = {"cpu_s": members.cpu_s} if impl == "kafka-clients" else {}
    if case != "send-done":
        return Job(members.work, bytes=160, close=members.close, warm_up=10_000, **cpu)
    rounds = members if impl == "kafka-clients" else Rounds(members.once)

    def figures() -> Mapping[str, float]:
        took = sorted(rounds.took)
        return {f"p{part}_ms": percentile(took, part) * 1000 for part in (50, 99)}

    return Job(rounds.rounds, bytes=len(_VALUE), extra=figures, close=members.close, warm_up=30, **cpu)


def set_up(args: argparse.Namespace) -> None:
    """Make the topics, and fill the queue once: each run has a group of its own."""
    created = traffic.make_topics(args.bootstrap, {_QUEUE: 1, _SENT: 1}, {"retention.bytes": "-1"})
    if _QUEUE in created:
        traffic.fill(args.bootstrap, _QUEUE, traffic.Content("mix", args.seed).records(_RECORDS), "none")


WORKLOAD = Workload(
    title="members of a share group, with a real broker",
    unit="record",
    impls=("purekafka", "purekafka-aio", "confluent-kafka", "kafka-clients"),
    cases=[
        Case("work", "one member", start=20_000, same_count=True),
        Case("work-10", "ten members on one partition", start=20_000, same_count=True),
        Case("send-done", "from send() to the confirmed acceptance", start=100, same_count=True),
    ],
    prepare=prepare,
    targets=[
        Target("work*", peer="confluent-kafka", at_least=0.4),
        Target("send-done", peer="*", metric="p50_ms", at_least=0.5),
    ],
    settings={
        "acknowledgement": "explicit: each record, then a commit that waits",
        "linger": "0 ms (send-done)",
        "purekafka-aio": "AIOKafkaShareConsumer: members are tasks of one event loop",
        "kafka-clients": "Java's KafkaShareConsumer; CPU of its process, JIT compiler included",
    },
    run_s=0.2,
    needs_broker=True,
    set_up=set_up,
    set_up_impl="confluent-kafka",
)

if __name__ == "__main__":
    main(WORKLOAD)
