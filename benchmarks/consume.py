"""Consuming from a real broker what users send: uneven values in batches of 16 KiB, default options.

One operation is one pass over a topic, each record looked at (key and value); figures are per record. The topics are
filled once per invocation with random content, by the same client for everyone, in batches of 16 KiB.
"""

from __future__ import annotations

import argparse

import traffic
from consumers import CONSUMERS, Plan
from workload import OURS, Case, Job, Target, Workload, main

_RECORDS = {"json": 30_000, "1000": 30_000}  # one pass: a tenth of a second for the fastest, a few for the slowest
_RECORDS_ELSE = 60_000
_KEEP = {"retention.bytes": "-1", "retention.ms": "-1"}
_WITHOUT_NUMPY = f"{OURS}-no-numpy"


def _plan(shape: str, partitions: int, codec: str = "none") -> Plan:
    return Plan(
        f"bench-consume-{shape}-p{partitions}-{codec}", shape, partitions, _RECORDS.get(shape, _RECORDS_ELSE), codec
    )


def _plans() -> dict[str, Plan]:
    """The main rows first, then one thing changed at a time."""
    plans = {}
    for shape in ("mix", "json"):
        for partitions in (1, 6):
            plans[f"poll-{shape}-p{partitions}"] = _plan(shape, partitions)
            plans[f"iterate-{shape}-p{partitions}"] = _plan(shape, partitions)._replace(mode="iterate")
        for codec in ("lz4", "zstd", "gzip", "snappy") if shape == "json" else ("lz4", "zstd"):
            plans[f"poll-{shape}-p6-{codec}"] = _plan(shape, 6, codec)
        plans[f"columns-{shape}-p6"] = _plan(shape, 6)._replace(mode="columns")
    for partitions in (100, 1000):
        plans[f"poll-mix-p{partitions}"] = _plan("mix", partitions)
    plans["poll-mix-p6-headers"] = _plan("mix-headers", 6)
    plans["poll-mix-p6-group"] = _plan("mix", 6)._replace(group=True)
    plans["poll5000-mix-p6"] = _plan("mix", 6)._replace(at_once=5000)
    for shape in ("100", "1000"):
        for partitions in (1, 6):
            plans[f"poll-{shape}-p{partitions}"] = _plan(shape, partitions)
    return plans


PLANS = _plans()


def prepare(impl: str, case: str, args: argparse.Namespace) -> Job:
    """A consumer that has its partitions before the clock starts (the warm-up sees to it)."""
    plan = PLANS[case]
    if impl == _WITHOUT_NUMPY:
        _forbid_numpy()
    consumer = CONSUMERS[impl](args.bootstrap, plan)
    size = traffic.Content(plan.shape, args.seed).mean_size
    return Job(consumer.read, plan.records, plan.records * size, close=consumer.close)


def _forbid_numpy() -> None:
    try:
        import numpy  # noqa: F401
    except ImportError:
        return
    raise RuntimeError("numpy is installed in the environment that is to be without it")


def set_up(args: argparse.Namespace) -> None:
    """Make the topics and fill those that are new."""
    plans = {plan.topic: plan for plan in PLANS.values()}
    created = traffic.make_topics(args.bootstrap, {name: plan.partitions for name, plan in plans.items()}, _KEEP)
    for topic in sorted(created):
        plan = plans[topic]
        content = traffic.Content(plan.shape, args.seed)
        traffic.fill(args.bootstrap, topic, content.records(plan.records), plan.codec)


WORKLOAD = Workload(
    title="records from a real broker",
    unit="record",
    impls=tuple(CONSUMERS),
    cases=[
        Case(name, "", start=1, impls=() if plan.mode != "columns" else (OURS, _WITHOUT_NUMPY))
        for name, plan in PLANS.items()
    ],
    prepare=prepare,
    targets=[
        Target("poll-mix-p1000", peer=OURS, peer_case="poll-mix-p1", at_least=1 / 1.3),
        Target("poll-*", peer="kafka-python", at_least=2.5),
        *(
            target
            for shape in ("mix", "json")
            for target in (
                Target(f"poll-{shape}-p?", peer="aiokafka", at_least=1 / 0.85),
                Target(f"poll-{shape}-p?", peer="confluent-kafka", at_least=1 / 1.6),
                Target(f"poll-{shape}-p?", peer=_WITHOUT_NUMPY, at_most=1.15),
                Target(f"iterate-{shape}-p?", peer="aiokafka", at_least=2),
                Target(f"iterate-{shape}-p?", peer="confluent-kafka", at_least=1 / 1.2),
            )
        ),
    ],
    settings={
        "options": f"each library's defaults, but {traffic.FETCH_WAIT_MS} ms of wait at the end of the log and CRC "
        "checks on (confluent-kafka's default is off)",
        "poll": "500 records a call (confluent-kafka: consume(500), aiokafka: getmany(max_records=500))",
        "group": "none, partitions assigned by hand; where a case's name has it: a group of one with automatic commit",
        "records": "mix: values of 20 to 300 B; json: documents of 80 to 2,000 B; 100, 1000: values of that size; "
        "a key on every second record; -headers: two headers on every tenth",
        "topics": f"in batches of {traffic.BATCH_BYTES:,} B, random content, read to the end as often as needed",
        "no-numpy": "ours in an environment without numpy and pyarrow",
    },
    needs_broker=True,
    set_up=set_up,
    set_up_impl="confluent-kafka",
)

if __name__ == "__main__":
    main(WORKLOAD)
