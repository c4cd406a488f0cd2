"""A few random histories of each kind: the embedded broker answers as Apache Kafka does, step by step.

``python -m test.real.broker.histories KIND 0-999`` lives through many, and makes one that differs shorter.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
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


Brokers = tuple[Address, Address]
#: Kinds that need a pair of brokers of their own.
WITH_ACLS = ("rights",)
OTHERS = [name for name in KINDS if name not in WITH_ACLS]


@pytest.fixture(scope="module")
def brokers() -> Iterator[Brokers]:
    """Kafka and the embedded broker."""
    with ExitStack() as stack:
        yield both(stack, with_acls=False)


@pytest.fixture(scope="module")
def guarded() -> Iterator[Brokers]:
    """The same with ACLs."""
    with ExitStack() as stack:
        yield both(stack, with_acls=True)


def live_through(brokers: Brokers, name: str, seeds: range) -> None:
    kind, differing = KINDS[name], []
    real, ours = brokers
    for seed in seeds:
        outcome = live(kind, kind.steps(random.Random(f"{name}/{seed}"), kind.length), real, ours)
        if outcome.differences:
            differing.append(f"{name} {seed}\n{shortened(kind, outcome, real, ours)}")
    assert not differing, "\n\n".join(differing)


def many(name: str) -> range:
    first = int(os.environ.get("PUREKAFKA_SEED", "1000"))
    return range(first, first + 20 * FEW[name])


@pytest.mark.parametrize("name", OTHERS)
def test_the_embedded_broker_answers_as_kafka_through_a_random_history(brokers: Brokers, name: str) -> None:
    live_through(brokers, name, range(FEW[name]))


@pytest.mark.parametrize("name", WITH_ACLS)
def test_the_embedded_broker_answers_clients_without_rights_as_kafka_does(guarded: Brokers, name: str) -> None:
    live_through(guarded, name, range(FEW[name]))


@pytest.mark.soak
@pytest.mark.parametrize("name", OTHERS)
def test_the_embedded_broker_answers_as_kafka_through_many_random_histories(brokers: Brokers, name: str) -> None:
    live_through(brokers, name, many(name))


@pytest.mark.soak
@pytest.mark.parametrize("name", WITH_ACLS)
def test_the_embedded_broker_answers_clients_without_rights_as_kafka_does_many_times(
    guarded: Brokers, name: str
) -> None:
    live_through(guarded, name, many(name))
