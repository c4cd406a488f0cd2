"""What grows with the cluster and not with the records: 1 to 5,000 partitions, and records of 5 MB.

One operation of ``send`` is one record, of ``poll`` one pass over a topic, of ``first`` a client from its constructor
to its first record: a consumer that is assigned all partitions, or a producer that sends one and waits.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import traffic
from consumers import CONSUMERS
from consumers import Plan as ReadPlan
from producers import PRODUCERS
from producers import Plan as SendPlan
from workload import OURS, Case, Job, Target, Unsupported, Workload, main

_PARTITIONS = (1, 100, 1000, 5000)
_RECORDS = 60_000
_LARGE = "5000000"  # bytes
_LARGE_RECORDS = 20
_KEEP = {"retention.bytes": "-1", "retention.ms": "-1", "max.message.bytes": "10000000"}


def _sent(partitions: int) -> str:
    return f"bench-scale-sent-{partitions}"


def _read(partitions: int) -> str:
    return f"bench-scale-read-{partitions}"


def _plans() -> dict[str, SendPlan | ReadPlan]:
    plans: dict[str, SendPlan | ReadPlan] = {}
    for count in _PARTITIONS:
        plans[f"send-keyed-p{count}"] = SendPlan(_sent(count), "mix-keyed")
        plans[f"send-robin-p{count}"] = SendPlan(_sent(count), "mix-keyed", mode="robin", partitions=count)
        plans[f"poll-p{count}"] = ReadPlan(_read(count), "mix", count, _RECORDS)
        plans[f"first-poll-p{count}"] = ReadPlan(_read(count), "mix", count, _RECORDS, mode="first")
        plans[f"first-send-p{count}"] = SendPlan(_sent(count), "mix", linger_ms=0)
    plans["send-5MB"] = SendPlan("bench-scale-large-sent", _LARGE)
    plans["poll-5MB"] = ReadPlan("bench-scale-large-read", _LARGE, 1, _LARGE_RECORDS, at_once=10)
    return plans


PLANS = _plans()


class First:
    """Clients that are made, used once, and closed; how long that takes until the record is there."""

    def __init__(self, impl: str, bootstrap: str, plan: SendPlan | ReadPlan, content: traffic.Content) -> None:
        self._make = (CONSUMERS if isinstance(plan, ReadPlan) else PRODUCERS)[impl]
        self._impl, self._bootstrap, self._content = impl, bootstrap, content
        self._plan = plan._replace(mode="poll", at_once=1) if isinstance(plan, ReadPlan) else plan
        self._took: list[float] = []

    def run(self, count: int) -> None:
        """Only the last call counts: the one before it was the warm-up."""
        self._took = []
        for _ in range(count):
            began = time.perf_counter()
            reading = isinstance(self._plan, ReadPlan)
            more = () if reading else (self._content,)
            client: Any = self._make(self._bootstrap, self._plan, *more)
            if reading:
                client.first()
            else:
                client.send_one()
            self._took.append(time.perf_counter() - began)
            client.close()

    def figures(self) -> dict[str, float]:
        """The median, in milliseconds."""
        return {"p50_ms": sorted(self._took)[len(self._took) // 2] * 1000}


def prepare(impl: str, case: str, args: argparse.Namespace) -> Job:
    """A client that is connected and knows its topic before the clock starts, but for the first records."""
    plan = PLANS[case]
    content = traffic.Content(plan.shape, args.seed)
    size = content.mean_size
    if case.startswith("first-"):
        first = First(impl, args.bootstrap, plan, content)
        return Job(first.run, extra=first.figures, warm_up=1)
    if isinstance(plan, ReadPlan):
        consumer = CONSUMERS[impl](args.bootstrap, plan)
        return Job(consumer.read, plan.records, plan.records * size, close=consumer.close)
    if impl == "aiokafka" and case == "send-robin-p5000":
        raise Unsupported("it needs a minute for a round")
    producer = PRODUCERS[impl](args.bootstrap, plan, content)
    return Job(producer.send_all, bytes=size, close=producer.close)


def set_up(args: argparse.Namespace) -> None:
    """Make the topics and fill those to be read, if they are new."""
    wanted = {plan.topic: getattr(plan, "partitions", 1) for plan in PLANS.values()}
    wanted.update({_sent(count): count for count in _PARTITIONS})
    created = traffic.make_topics(args.bootstrap, wanted, _KEEP)
    for plan in {plan.topic: plan for plan in PLANS.values() if isinstance(plan, ReadPlan)}.values():
        if plan.topic in created:
            content = traffic.Content(plan.shape, args.seed)
            traffic.fill(args.bootstrap, plan.topic, content.records(plan.records), "none")


WORKLOAD = Workload(
    title="many partitions, and large records",
    unit="record",
    impls=tuple(PRODUCERS),
    cases=[
        Case(name, "", start=1 if isinstance(plan, ReadPlan) or "first" in name else 10 if "5MB" in name else 1000)
        for name, plan in PLANS.items()
    ],
    prepare=prepare,
    targets=[
        *(
            Target(f"{what}-p{count}", peer=OURS, peer_case=f"{what}-p1", at_least=1 / 1.3)
            for what in ("send-keyed", "send-robin", "poll")
            for count in _PARTITIONS[1:]
        ),
        *(Target(f"first-*-p{count}", peer="confluent-kafka", metric="p50_ms", at_least=1) for count in _PARTITIONS),
        Target("*-5MB", peer="confluent-kafka", at_least=1 / 1.5),
    ],
    settings={
        "options": "each library's defaults, acks=all; messages of 10 MB are allowed in the rows of 5 MB",
        "keyed, robin": "a key on every record; the next partition for each record",
        "first": "from the constructor to the first record, in a process that has done it once; CPU with closing",
        "poll": "500 records a call, in batches of "
        f"{traffic.BATCH_BYTES:,} B or less: at 5,000 partitions there are 12 records in each",
    },
    needs_broker=True,
    set_up=set_up,
    set_up_impl="confluent-kafka",
)

if __name__ == "__main__":
    main(WORKLOAD)
