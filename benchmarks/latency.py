"""One record at a time: send it, wait for the acknowledgement, send the next.

One operation is one such round. Linger is 0 for all: nobody waits for company here.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Mapping

import traffic
from producers import PRODUCERS, Plan
from workload import Case, Job, Target, Workload, main

_TOPIC = "bench-latency"
PLANS = {
    "send-get-100-all": Plan(_TOPIC, 100, linger_ms=0),
    "send-get-100-acks1": Plan(_TOPIC, 100, linger_ms=0, acks="1", idempotent=False),
    "send-get-1k-all": Plan(_TOPIC, 1000, linger_ms=0),
}


class Rounds:
    """Sends and remembers how long each round took."""

    def __init__(self, impl: str, bootstrap: str, plan: Plan) -> None:
        self._producer = PRODUCERS[impl](bootstrap, plan)
        self._took: list[float] = []

    def run(self, count: int) -> None:
        """Only the rounds of the last call are kept: those before it were the warm-up."""
        self._took = []
        send_one, clock, note = self._producer.send_one, time.perf_counter, self._took.append
        for _ in range(count):
            began = clock()
            send_one()
            note(clock() - began)

    def figures(self) -> Mapping[str, float]:
        """Percentiles in milliseconds."""
        took = sorted(self._took)
        return {f"p{part}_ms": percentile(took, part) * 1000 for part in (50, 99)}

    def close(self) -> None:
        """Close the producer."""
        self._producer.close()


def percentile(ordered: list[float], part: int) -> float:
    """The least value that at least ``part`` percent of the values do not exceed."""
    return ordered[max(0, math.ceil(len(ordered) * part / 100) - 1)]


def prepare(impl: str, case: str, args: argparse.Namespace) -> Job:
    """Twenty rounds of warm-up: connections, metadata, and the broker's own first steps."""
    rounds = Rounds(impl, args.bootstrap, PLANS[case])
    return Job(rounds.run, bytes=PLANS[case].size, extra=rounds.figures, close=rounds.close, warm_up=20)


def set_up(args: argparse.Namespace) -> None:
    """Make the topic."""
    traffic.make_topics(args.bootstrap, {_TOPIC: 1}, {})


WORKLOAD = Workload(
    title="one record at a time",
    unit="record",
    impls=tuple(PRODUCERS),
    cases=[Case(name, "", start=100, same_count=True) for name in PLANS],
    prepare=prepare,
    targets=[Target("*", peer=peer, metric="p50_ms", at_least=1) for peer in ("kafka-python", "aiokafka")],
    settings={"linger": "0 ms", "acks": "all and idempotent; acks1: 1 and not idempotent", "codec": "none"},
    needs_broker=True,
    set_up=set_up,
    set_up_impl="confluent-kafka",
)

if __name__ == "__main__":
    main(WORKLOAD)
