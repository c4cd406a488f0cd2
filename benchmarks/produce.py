"""Producing to a real broker: records handed over one by one, with a callback each, and many per call.

One operation is one record, from the call that takes it to its acknowledgement; the loop ends with a flush. Records
have no key and go where each library's own partitioner for such records puts them.
"""

from __future__ import annotations

import argparse

import traffic
from producers import BULK, PRODUCERS, Plan
from workload import Case, Job, Target, Workload, main

_TOPICS = {1: "bench-produce-1", 6: "bench-produce-6"}


def _plans() -> dict[str, Plan]:
    """The cases: a plain one per size and number of partitions, then one thing changed at a time."""
    plans = {}

    def add(name: str, size: int, partitions: int, **more: object) -> None:
        plans[name] = Plan(_TOPICS[partitions], size, partitions, **more)  # type: ignore[arg-type]

    for size, label in ((100, "100"), (1000, "1k")):
        for partitions in (1, 6):
            add(f"send-{label}-p{partitions}", size, partitions)
            add(f"callback-{label}-p{partitions}", size, partitions, mode="callback")
            add(f"many-{label}-p{partitions}", size, partitions, mode="many")
        for codec in ("lz4", "zstd"):
            add(f"send-{label}-p6-{codec}", size, 6, codec=codec)
        add(f"send-{label}-p6-plain", size, 6, idempotent=False)
        add(f"send-{label}-p6-acks1", size, 6, idempotent=False, acks="1")
    return plans


PLANS = _plans()


def prepare(impl: str, case: str, args: argparse.Namespace) -> Job:
    """A producer that is connected and knows its topic before the clock starts (the warm-up sees to it)."""
    plan = PLANS[case]
    producer = PRODUCERS[impl](args.bootstrap, plan)
    return Job(producer.send_all, bytes=plan.size, close=producer.close)


def set_up(args: argparse.Namespace) -> None:
    """Make the topics."""
    traffic.make_topics(args.bootstrap, {name: count for count, name in _TOPICS.items()}, {})


def _about(plan: Plan) -> str:
    safety = "idempotent" if plan.idempotent else "not idempotent"
    return f"{plan.size} B, {plan.partitions} partitions, {plan.codec}, acks {plan.acks}, {safety}, {plan.mode}"


WORKLOAD = Workload(
    title="records to a real broker",
    unit="record",
    impls=tuple(PRODUCERS),
    cases=[Case(name, _about(plan), start=20_000) for name, plan in PLANS.items()],
    prepare=prepare,
    targets=[
        Target("send-*", peer="kafka-python", at_least=4),
        Target("callback-*", peer="kafka-python", at_least=4),
        Target("send-*", peer="aiokafka", at_least=1),
        Target("many-*", peer="confluent-kafka", at_least=1),
        *(Target("*", peer=peer, metric="wall_us", at_least=1) for peer in ("kafka-python", "aiokafka")),
    ],
    settings={
        "linger": f"{traffic.LINGER_MS} ms",
        "batch": f"{traffic.BATCH_BYTES:,} B",
        "in flight": f"{traffic.IN_FLIGHT} requests (aiokafka: its own 1 per broker)",
        "acks and codec": "all, none, idempotent; a case's name says where it differs (-plain: not idempotent)",
        "many": f"calls of {BULK:,} records (aiokafka: whole batches built by hand)",
        "partitioner": "each library's own for records without a key",
    },
    needs_broker=True,
    set_up=set_up,
    set_up_impl="confluent-kafka",
)

if __name__ == "__main__":
    main(WORKLOAD)
