"""Consuming from a real broker: polls of 500 and of 5,000, one by one, and columns.

One operation is one pass over a topic, each record looked at (key and value); figures are per record. The topics are
filled once per invocation, by the same client for everyone, in batches of the size that the producing workload uses.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from itertools import cycle, islice

import traffic
from consumers import CONSUMERS, Plan
from workload import Case, Job, Target, Workload, main

_RECORDS = {100: 100_000, 1000: 30_000}  # one pass: a tenth of a second for the fastest, a few for the slowest
_KEEP = {"retention.bytes": "-1", "retention.ms": "-1"}


def _plans() -> dict[str, Plan]:
    """The cases: a plain one per size and number of partitions, then one thing changed at a time."""
    plans = {}
    for size, label in ((100, "100"), (1000, "1k")):
        for partitions in (1, 6):
            plain = Plan(f"bench-consume-{label}-p{partitions}-none", size, partitions, _RECORDS[size])
            plans[f"poll500-{label}-p{partitions}"] = plain
        plans[f"poll5000-{label}-p6"] = replace(plain, at_once=5000)
        plans[f"iterate-{label}-p6"] = replace(plain, mode="iterate")
        plans[f"columns-{label}-p6"] = replace(plain, mode="columns")
        plans[f"poll500-{label}-p6-group"] = replace(plain, group=True)
        for codec in ("gzip", "snappy", "lz4", "zstd"):
            plans[f"poll500-{label}-p6-{codec}"] = replace(plain, topic=f"bench-consume-{label}-p6-{codec}")
    return plans


PLANS = _plans()


def prepare(impl: str, case: str, args: argparse.Namespace) -> Job:
    """A consumer that has its partitions before the clock starts (the warm-up sees to it)."""
    plan = PLANS[case]
    consumer = CONSUMERS[impl](args.bootstrap, plan)
    return Job(consumer.read, plan.records, plan.records * plan.size, close=consumer.close)


def set_up(args: argparse.Namespace) -> None:
    """Make the topics and fill those that are new."""
    plans = {plan.topic: plan for plan in PLANS.values()}
    created = traffic.make_topics(args.bootstrap, {name: plan.partitions for name, plan in plans.items()}, _KEEP)
    for topic in sorted(created):
        plan = plans[topic]
        records = islice(cycle(traffic.values(plan.size)), plan.records)
        traffic.fill(args.bootstrap, topic, records, topic.rpartition("-")[2])


WORKLOAD = Workload(
    title="records from a real broker",
    unit="record",
    impls=tuple(CONSUMERS),
    cases=[Case(name, "", start=1) for name in PLANS],
    prepare=prepare,
    targets=[
        Target("poll*", peer="kafka-python", at_least=4),
        Target("poll*", peer="aiokafka", at_least=1),
        Target("iterate-*", peer="aiokafka", at_least=1),
        Target("iterate-*", peer="confluent-kafka", at_least=1),
        *(
            Target(f"columns-{label}-p6", peer="*", peer_case=f"poll5000-{label}-p6", at_least=1)
            for label in ("100", "1k")
        ),
    ],
    settings={
        "fetch": f"at most {traffic.FETCH_MAX_BYTES:,} B, {traffic.PARTITION_FETCH_BYTES:,} B a partition, "
        f"at least {traffic.FETCH_MIN_BYTES} B, {traffic.FETCH_WAIT_MS} ms wait",
        "checks": "CRC on for all (it is off by default in confluent-kafka), read_uncommitted",
        "group": "none, partitions assigned by hand; where a case's name has it: a group of one with automatic commit",
        "topics": ", ".join(f"{count:,} records of {size:,} B" for size, count in _RECORDS.items())
        + f", in batches of {traffic.BATCH_BYTES:,} B, read to the end as often as needed",
    },
    needs_broker=True,
    set_up=set_up,
    set_up_impl="confluent-kafka",
)

if __name__ == "__main__":
    main(WORKLOAD)
