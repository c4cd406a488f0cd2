"""Groups of a real broker: from a new consumer to its first record, and a rebalance of twenty members.

One operation is one such event; what counts is how long it takes, and the CPU of the process beside it. For
``first-record`` that is: make a consumer, subscribe, poll until a record comes, close it. For ``rebalance-20``: a
member joins nineteen others until all twenty have their share, and leaves until the nineteen have theirs: two
rebalances.
"""

from __future__ import annotations

import argparse
import time
import uuid
from functools import partial

import traffic
from members import AiokafkaMembers, Members, ThreadMembers, classic, confluent
from workload import Case, Job, Target, Unsupported, Workload, main

_TOPIC = "bench-groups"
_PARTITIONS = 40
_MEMBERS = 20
_MAKERS = {
    "purekafka": partial(ThreadMembers, make=classic),
    "kafka-python": partial(ThreadMembers, make=classic),
    "aiokafka": AiokafkaMembers,
    "confluent-kafka": partial(ThreadMembers, make=confluent),
}


class FirstRecord:
    """Time to the first record."""

    def __init__(self, impl: str, bootstrap: str) -> None:
        self._impl, self._bootstrap = impl, bootstrap

    def run(self, count: int) -> None:
        once = getattr(self, "_" + self._impl.replace("-", "_"))
        for _ in range(count):
            once(f"bench-{uuid.uuid4()}")

    def _purekafka(self, group: str) -> None:
        from kafka import KafkaConsumer

        consumer = KafkaConsumer(
            _TOPIC, bootstrap_servers=self._bootstrap, group_id=group, auto_offset_reset="earliest"
        )
        self._until(lambda: consumer.poll(timeout_ms=1000))
        consumer.close()

    _kafka_python = _purekafka

    def _confluent_kafka(self, group: str) -> None:
        from confluent_kafka import Consumer

        consumer = Consumer({"bootstrap.servers": self._bootstrap, "group.id": group, "auto.offset.reset": "earliest"})
        consumer.subscribe([_TOPIC])
        self._until(lambda: consumer.poll(1.0))
        consumer.close()

    def _aiokafka(self, group: str) -> None:
        import asyncio

        from aiokafka import AIOKafkaConsumer

        async def read() -> None:
            consumer = AIOKafkaConsumer(
                _TOPIC, bootstrap_servers=self._bootstrap, group_id=group, auto_offset_reset="earliest"
            )
            await consumer.start()
            await asyncio.wait_for(consumer.getone(), traffic.TIMEOUT_S)
            await consumer.stop()

        asyncio.run(read())

    @staticmethod
    def _until(poll: object) -> None:
        deadline = time.monotonic() + traffic.TIMEOUT_S
        while not poll():  # type: ignore[operator]
            if time.monotonic() > deadline:
                raise RuntimeError("no record came")


class Rebalance:
    """A member that comes and goes."""

    def __init__(self, impl: str, bootstrap: str) -> None:
        maker = _MAKERS[impl]
        self._members: Members = maker(bootstrap, _TOPIC, f"bench-{uuid.uuid4()}", _PARTITIONS)
        for _ in range(_MEMBERS - 1):
            self._members.join()
        self._members.settle()

    def run(self, count: int) -> None:
        members = self._members
        for _ in range(count):
            number = members.join()
            members.settle()
            members.leave(number)
            members.settle()

    def close(self) -> None:
        self._members.close()


def prepare(impl: str, case: str, args: argparse.Namespace) -> Job:
    """The nineteen are there before the clock starts."""
    if impl in {"purekafka", "kafka-python"}:
        try:
            from kafka import KafkaConsumer  # noqa: F401
        except ImportError as error:
            raise Unsupported("there is no KafkaConsumer in it") from error
    if case == "first-record":
        return Job(FirstRecord(impl, args.bootstrap).run, warm_up=1)
    rebalance = Rebalance(impl, args.bootstrap)
    return Job(rebalance.run, close=rebalance.close, warm_up=1)


def set_up(args: argparse.Namespace) -> None:
    """Make the topic, with a few records in each partition."""
    if traffic.make_topics(args.bootstrap, {_TOPIC: _PARTITIONS}, {"retention.ms": "-1", "retention.bytes": "-1"}):
        traffic.fill(args.bootstrap, _TOPIC, traffic.Content("mix", args.seed).records(4000), "none")


WORKLOAD = Workload(
    title="members of a group, with a real broker",
    unit="event",
    impls=tuple(_MAKERS),
    cases=[Case("first-record", "", start=3), Case("rebalance-20", "", start=1)],
    prepare=prepare,
    targets=[
        Target(case, peer=peer, metric="wall_us", at_least=1)
        for case in ("first-record", "rebalance-20")
        for peer in ("kafka-python", "aiokafka", "confluent-kafka")
    ],
    settings={
        "group": f"{_PARTITIONS} partitions, assignor range, heartbeats each 100 ms (first-record: each library's "
        "defaults), polls of 50 ms; the broker waits for nobody in a first rebalance",
        "members": f"{_MEMBERS} in one process: a thread each, or one event loop for aiokafka",
    },
    needs_broker=True,
    set_up=set_up,
    set_up_impl="confluent-kafka",
)

if __name__ == "__main__":
    main(WORKLOAD)
