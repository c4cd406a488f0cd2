"""Random transactions under random faults: what was committed is there whole and in order, nothing else is.

Each seed is one history: some forty transactions over four partitions, each with a few faults ordered before it: error
codes, lost requests, lost replies, late replies, coordinators and leaders that move, connections that break, another
instance that takes over. A seed that fails is printed by its number.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from kafka import KafkaConsumer, KafkaProducer
from kafka.broker import Broker
from kafka.broker.faults import CLOSE, NO_REPLY
from kafka.errors import (
    AbortableTransactionError,
    FatalError,
    KafkaError,
    KafkaTimeoutError,
    OutcomeUnknownTimeoutError,
)
from kafka.structs import TopicPartition

FACES = "both"

TOPICS = ("one", "two")
PARTITIONS = 2
TRANSACTIONS = 40
STEPS = ["AddPartitionsToTxn", "Produce", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn", "InitProducerId"]
# Codes that brokers really answer at any time; a lie, such as a fence that is none, would end the history at once.
PASSING = [3, 6, 7, 14, 15, 16, 19, 51]
DOOMING = [29, 45, 47, 49, 59, 120]
FAULTS = ["passing", "passing", "dooming", "lost", "lost", "late", "coordinator", "leader", "cut", "taken"]
OFFSETS = TopicPartition("one", 0)


class History:
    """One run: the producer that goes on, and what became of each transaction."""

    def __init__(self, seed: int, broker: Broker) -> None:
        self.rng = random.Random(seed)
        self.broker = broker
        self.outcomes: list[str] = []
        self.sent: list[list[tuple[str, int, bytes]]] = []
        self.offsets: list[int | None] = []
        self.producer = self.new_producer()

    def new_producer(self) -> KafkaProducer:
        return KafkaProducer(
            bootstrap_servers=self.broker.bootstrap_servers,
            transactional_id="random",
            request_timeout_ms=250,
            delivery_timeout_ms=self.rng.choice([400, 2000]),
            retry_backoff_ms=5,
            retry_backoff_max_ms=50,
            reconnect_backoff_ms=5,
            reconnect_backoff_max_ms=20,
            linger_ms=0,
            batch_size=self.rng.choice([60, 200, 16384]),
            max_block_ms=20_000,
            transaction_timeout_ms=self.rng.choice([1000, 60_000]),
        )

    def start_over(self) -> None:
        """As a program that was restarted."""
        self.producer.close(timeout=0)
        self.producer = self.new_producer()
        self.producer.init_transactions()

    def run(self) -> None:
        self.producer.init_transactions()
        for number in range(TRANSACTIONS):
            for _ in range(self.rng.choice([0, 1, 1, 2, 3])):
                self.order_a_fault()
            self.sent.append([])
            self.offsets.append(None)
            try:
                outcome = self.transaction(number)
            except FatalError as error:
                outcome = "unknown" if error.outcome_unknown else "aborted"
            self.outcomes.append(outcome)
            if outcome == "unknown" or not self.is_usable():
                self.broker.clear_faults()
                self.start_over()
        self.broker.clear_faults()
        self.start_over()
        self.producer.close()

    def is_usable(self) -> bool:
        return bool(self.producer.health()["transaction"]["state"] != "failed")

    def transaction(self, number: int) -> str:
        producer, rng = self.producer, self.rng
        producer.begin_transaction()
        try:
            for index in range(rng.randint(1, 30)):
                topic, partition = rng.choice(TOPICS), rng.randrange(PARTITIONS)
                value = b"%d-%d" % (number, index)
                self.sent[-1].append((topic, partition, value))
                producer.send(topic, value, partition=partition)
                if rng.random() < 0.1:
                    producer.flush()
            if rng.random() < 0.5:
                self.offsets[-1] = number
                producer.send_offsets_to_transaction({OFFSETS: number}, "random")
            if rng.random() < 0.2:
                self.again(producer.abort_transaction)
                return "aborted"
            self.again(producer.commit_transaction)
        except AbortableTransactionError:
            self.again(producer.abort_transaction)
            return "aborted"
        except KafkaTimeoutError:  # of send() or of send_offsets_to_transaction()
            self.again(producer.abort_transaction)
            return "aborted"
        return "committed"

    def again(self, call: Callable[..., Any]) -> None:
        """Call with little time at first, as often as it takes."""
        while True:
            try:
                call(timeout=self.rng.choice([0.02, 0.2, 20]))
            except (OutcomeUnknownTimeoutError, KafkaTimeoutError):  # noqa: PERF203 - that is what the loop is for
                continue
            else:
                return

    def order_a_fault(self) -> None:
        rng, broker = self.rng, self.broker
        step = rng.choice(STEPS)
        kind = rng.choice(FAULTS)
        if kind == "passing":
            broker.fail(step, [rng.choice(PASSING)], times=rng.randint(1, 3))
        elif kind == "dooming" and step not in {"InitProducerId", "EndTxn"}:
            broker.fail(step, [rng.choice(DOOMING)])
        elif kind == "lost":
            fate = rng.choice([CLOSE, NO_REPLY])
            broker.intercept(step, lambda _exchange: fate, before=rng.random() < 0.5, times=rng.randint(1, 2))
        elif kind == "late":
            broker.delay(step, 0.4, times=1)
        elif kind == "coordinator":
            broker.rehash_coordinators()
        elif kind == "leader":
            broker.shuffle_leaders()
        elif kind == "cut":
            broker.drop_connections()
        elif kind == "taken" and rng.random() < 0.3:
            broker.clear_faults()
            with self.new_producer() as other:
                other.init_transactions()

    def check(self) -> None:
        for topic in TOPICS:
            for partition in range(PARTITIONS):
                self.check_partition(topic, partition)
        self.check_offsets()

    def check_partition(self, topic: str, partition: int) -> None:
        found = [record.value for record in self.broker.records(topic, partition, committed=True)]
        expected: list[bytes] = []
        for number, (outcome, sent) in enumerate(zip(self.outcomes, self.sent, strict=True)):
            values = [value for *where, value in sent if where == [topic, partition]]
            if outcome == "committed" or (outcome == "unknown" and self.is_there(number)):
                expected += values
        assert found == expected, (topic, partition)

    def is_there(self, number: int) -> bool:
        """Whether a transaction of unknown outcome was committed: all of it is there, or nothing."""
        there = {
            value in [record.value for record in self.broker.records(topic, partition, committed=True)]
            for topic, partition, value in self.sent[number]
        }
        assert len(there) == 1, f"transaction {number} is torn"
        return there.pop()

    def check_offsets(self) -> None:
        committed = None
        for number, outcome in enumerate(self.outcomes):
            done = outcome == "committed" or (outcome == "unknown" and self.is_there(number))
            if done and self.offsets[number] is not None:
                committed = self.offsets[number]
        with KafkaConsumer(bootstrap_servers=self.broker.bootstrap_servers, group_id="random") as reader:
            assert reader.committed(OFFSETS) == committed


def run_seed(seed: int) -> list[str]:
    with Broker(nodes=3, seed=seed) as broker:
        if seed % 2:
            for api, newest in (("EndTxn", 4), ("Produce", 11), ("TxnOffsetCommit", 4)):
                broker.advertise(api, 0, newest)
        for topic in TOPICS:
            broker.create_topic(topic, PARTITIONS)
        history = History(seed, broker)
        try:
            history.run()
        except KafkaError:
            print(f"seed {seed}, after {history.outcomes}")
            raise
        history.check()
        return history.outcomes


@pytest.mark.timeout(120)
@pytest.mark.parametrize("seed", range(2))
def test_a_random_history(seed):
    outcomes = run_seed(seed)
    assert {"committed", "aborted"} <= set(outcomes)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_random_histories_in_number():
    for seed in range(100, 200):
        run_seed(seed)
