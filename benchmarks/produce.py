"""Producing to a real broker what users send: uneven values, keys on every second record, default options.

One operation is one record, from the call that takes it to its acknowledgement; the loop ends with a flush. Records
without a key go where each library's own partitioner puts them.
"""

from __future__ import annotations

import argparse

import traffic
from producers import BULK, PRODUCERS, Plan
from workload import OURS, Case, Job, Target, Workload, main

_TOPICS = {count: f"bench-produce-{count}" for count in (1, 6, 100, 1000)}


def _plans() -> dict[str, Plan]:
    """The main rows first, then one thing changed at a time."""
    plans = {}
    for shape in ("mix", "json"):
        for partitions in (1, 6):
            plain = plans[f"send-{shape}-p{partitions}"] = Plan(_TOPICS[partitions], shape)
            for codec in ("lz4", "zstd"):
                plans[f"send-{shape}-p{partitions}-{codec}"] = plain._replace(codec=codec)
    six = Plan(_TOPICS[6], "mix")
    plans["send-mix-p6-headers"] = six._replace(shape="mix-headers")
    plans["send-mix-p6-acks1"] = six._replace(acks="1")
    plans["callback-mix-p6"] = six._replace(mode="callback")
    plans["many-mix-p6"] = six._replace(mode="many")
    plans["flush20-mix-p1"] = Plan(_TOPICS[1], "mix", mode="flush20")
    plans["flush500-mix-p6"] = six._replace(mode="flush500")
    plans["paced-mix-p1"] = Plan(_TOPICS[1], "mix", mode="paced")
    for partitions in (100, 1000):
        plans[f"send-mix-p{partitions}"] = Plan(_TOPICS[partitions], "mix")
    plans["send-100-p6"] = six._replace(shape="100")
    plans["send-1000-p6"] = six._replace(shape="1000")
    return plans


PLANS = _plans()


def prepare(impl: str, case: str, args: argparse.Namespace) -> Job:
    """A producer that is connected and knows its topic before the clock starts (the warm-up sees to it)."""
    plan = PLANS[case]
    content = traffic.Content(plan.shape, args.seed)
    producer = PRODUCERS[impl](args.bootstrap, plan, content)
    return Job(producer.send_all, bytes=content.mean_size, close=producer.close)


def set_up(args: argparse.Namespace) -> None:
    """Make the topics."""
    traffic.make_topics(args.bootstrap, {name: count for count, name in _TOPICS.items()}, {})


WORKLOAD = Workload(
    title="records to a real broker",
    unit="record",
    impls=tuple(PRODUCERS),
    cases=[Case(name, f"{plan.shape}, {plan.codec}, {plan.mode}", start=1000) for name, plan in PLANS.items()],
    prepare=prepare,
    targets=[
        Target("send-mix-p1000", peer=OURS, peer_case="send-mix-p1", at_least=1 / 1.3),
        *(
            target
            for shape in ("mix", "json")
            for target in (
                Target(f"send-{shape}-p?*", peer="aiokafka", at_least=2),
                Target(f"send-{shape}-p?*", peer="kafka-python", at_least=6.67),
                Target(f"send-{shape}-p?*", peer="confluent-kafka", at_least=0.67),
            )
        ),
    ],
    settings={
        "options": "each library's defaults; acks=all where its default is less; -acks1: acks=1",
        "records": "mix: values of 20 to 300 B; json: documents of 80 to 2,000 B; 100, 1000: values of that size",
        "keys": "on every second record; -headers: two headers on every tenth",
        "content": "random, another in each round, the same for all libraries in a round",
        "many": f"calls of {BULK:,} records (aiokafka: whole batches built by hand)",
        "flush20, flush500": "a flush after as many records",
        "paced": "one record per millisecond, so that each has a timestamp of its own",
    },
    needs_broker=True,
    set_up=set_up,
    set_up_impl="confluent-kafka",
)

if __name__ == "__main__":
    main(WORKLOAD)
