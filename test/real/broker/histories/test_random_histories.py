"""A few random histories of each kind: the embedded broker answers as Apache Kafka does, step by step.

``python -m test.real.broker.histories KIND 0-999`` lives through many, and makes one that differs shorter.
"""

from __future__ import annotations

import os
import random
from contextlib import ExitStack

import pytest

from .kinds import KINDS, both
from .lockstep import live, shortened

#: How many histories of a kind take a few seconds.
FEW = {
    "records": 10,
    "transactions": 10,
    "consumer-groups": 8,
    "classic-groups": 3,
    "share-groups": 5,
    "rights": 3,
    "topics": 5,
}


def live_through(name: str, seeds: range) -> None:
    kind, differing = KINDS[name], []
    with ExitStack() as stack:
        real, ours = both(kind, stack)
        for seed in seeds:
            outcome = live(kind, kind.steps(random.Random(f"{name}/{seed}"), kind.length), real, ours)
            if outcome.differences:
                differing.append(f"{name} {seed}\n{shortened(kind, outcome, real, ours)}")
    assert not differing, "\n\n".join(differing)


@pytest.mark.parametrize("name", list(KINDS))
def test_the_embedded_broker_answers_as_kafka_through_a_random_history(name: str) -> None:
    live_through(name, range(FEW[name]))


@pytest.mark.soak
@pytest.mark.parametrize("name", list(KINDS))
def test_the_embedded_broker_answers_as_kafka_through_many_random_histories(name: str) -> None:
    first = int(os.environ.get("PUREKAFKA_SEED", "1000"))
    live_through(name, range(first, first + 20 * FEW[name]))
