"""How long one record takes: to its acknowledgement, and to a consumer that polls for it.

One operation is one round. In ``lone-`` cases a round begins each 10 ms, as in a service that sends a record now and
then, and what counts is its CPU. ``send-get`` sends a record, waits for the acknowledgement, sends the next.
``send-poll`` sends a record and polls a consumer of the same process until it has it. Linger is 0 for all: nobody
waits for company here. All else is each library's default.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Mapping
from typing import Any

import consumers
import traffic
from producers import PRODUCERS, Plan
from workload import Case, Job, Target, Workload, main

_TOPIC = "bench-latency"
_POLLED = "bench-latency-polled"
PLANS = {
    "send-get-mix": Plan(_TOPIC, "mix", linger_ms=0),
    "send-get-json": Plan(_TOPIC, "json", linger_ms=0),
    "send-get-mix-acks1": Plan(_TOPIC, "mix", linger_ms=0, acks="1"),
    "send-poll-mix": Plan(_POLLED, "mix", linger_ms=0),
    "lone-get-mix": Plan(_TOPIC, "mix", linger_ms=0),
    "lone-poll-mix": Plan(_POLLED, "mix", linger_ms=0),
}


_PERIOD = 0.010


class Rounds:
    """Sends and remembers how long each round took."""

    def __init__(self, impl: str, bootstrap: str, plan: Plan, content: traffic.Content, period: float) -> None:
        self._producer: Any = PRODUCERS[impl](bootstrap, plan, content)
        self._follower: Any = consumers.follower(impl, bootstrap, plan.topic) if plan.topic == _POLLED else None
        self._took: list[float] = []
        self._period = period

    def run(self, count: int) -> None:
        """Only the rounds of the last call are kept: those before it were the warm-up."""
        self._took = []
        once = self._producer.send_one if self._follower is None else self._send_and_poll
        clock, note = time.perf_counter, self._took.append
        for _ in range(count):
            began = clock()
            once()
            note(clock() - began)
            if self._period:
                time.sleep(max(0.0, began + self._period - clock()))

    def _send_and_poll(self) -> None:
        self._follower.send_and_poll(self._producer)

    def figures(self) -> Mapping[str, float]:
        """Percentiles in milliseconds."""
        took = sorted(self._took)
        return {f"p{part}_ms": percentile(took, part) * 1000 for part in (50, 99)}

    def close(self) -> None:
        """Close the clients."""
        if self._follower is not None:
            self._follower.close()
        self._producer.close()


def percentile(ordered: list[float], part: int) -> float:
    """The least value that at least ``part`` percent of the values do not exceed."""
    return ordered[max(0, math.ceil(len(ordered) * part / 100) - 1)]


def prepare(impl: str, case: str, args: argparse.Namespace) -> Job:
    """Twenty rounds of warm-up: connections, metadata, and the broker's own first steps."""
    plan = PLANS[case]
    content = traffic.Content(plan.shape, args.seed)
    rounds = Rounds(impl, args.bootstrap, plan, content, _PERIOD if case.startswith("lone-") else 0.0)
    return Job(rounds.run, bytes=content.mean_size, extra=rounds.figures, close=rounds.close, warm_up=20)


def set_up(args: argparse.Namespace) -> None:
    """Make the topics."""
    traffic.make_topics(args.bootstrap, {_TOPIC: 1, _POLLED: 1}, {})


WORKLOAD = Workload(
    title="one record at a time",
    unit="record",
    impls=tuple(PRODUCERS),
    cases=[Case(name, "", start=200, same_count=True) for name in PLANS],
    prepare=prepare,
    targets=[
        Target("*", peer="confluent-kafka", metric="p50_ms", at_least=0.5),
        *(Target("*", peer=peer, metric="p50_ms", at_least=1) for peer in ("kafka-python", "aiokafka")),
        Target("lone-*", peer="confluent-kafka", at_least=1 / 1.5),
    ],
    settings={
        "linger": "0 ms",
        "acks": "all; acks1: 1 and not idempotent",
        "lone": f"a round each {_PERIOD * 1000:.0f} ms",
        "send-poll": "producer and consumer in one process; the consumer polls until it has the record",
    },
    needs_broker=True,
    set_up=set_up,
    set_up_impl="confluent-kafka",
)

if __name__ == "__main__":
    main(WORKLOAD)
