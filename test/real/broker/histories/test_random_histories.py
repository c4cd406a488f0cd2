"""A few random histories of each kind: the embedded broker answers as Apache Kafka does, step by step.

``python -m test.real.broker.histories KIND 0-999`` lives through many, and makes one that differs shorter.
"""

from __future__ import annotations

import functools
import os
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from .kinds import KINDS, both
from .lockstep import Address, live, shortened

#: How many histories of a kind take a few seconds.
FEW = {
    "records": 10,
    "transactions": 10,
    "consumer-groups": 8,
    "classic-groups": 3,
    "share-groups": 5,
    "rights": 3,
    "topics": 5,
    "cleaning": 2,
}


Brokers = Callable[[str], tuple[Address, Address]]


@pytest.fixture(scope="module")
def brokers() -> Iterator[Brokers]:
    """Kafka and the embedded broker for a kind of histories: one pair with ACLs, and one for all others."""
    with ExitStack() as stack:
        started = functools.cache(lambda with_acls: both(stack, with_acls=with_acls))
        yield lambda name: started(name == "rights")


def live_through(brokers: Brokers, name: str, seeds: range) -> None:
    kind, differing = KINDS[name], []
    real, ours = brokers(name)
    for seed in seeds:
        outcome = live(kind, kind.steps(random.Random(f"{name}/{seed}"), kind.length), real, ours)
        if outcome.differences:
            differing.append(f"{name} {seed}\n{shortened(kind, outcome, real, ours)}")
    assert not differing, "\n\n".join(differing)


@pytest.mark.parametrize("name", list(KINDS))
def test_the_embedded_broker_answers_as_kafka_through_a_random_history(brokers: Brokers, name: str) -> None:
    live_through(brokers, name, range(FEW[name]))


@pytest.mark.soak
@pytest.mark.parametrize("name", list(KINDS))
def test_the_embedded_broker_answers_as_kafka_through_many_random_histories(brokers: Brokers, name: str) -> None:
    first = int(os.environ.get("PUREKAFKA_SEED", "1000"))
    live_through(brokers, name, range(first, first + 20 * FEW[name]))
