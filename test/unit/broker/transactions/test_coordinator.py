"""Transactions: epochs that fence, ends that happen everywhere or nowhere, timeouts under a clock that is pushed."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kafka.broker.transactions.coordinator import Granted, TransactionCoordinator, TransactionSettings
from kafka.broker.transactions.transaction import LAST_EPOCH, Event, State, next_state
from kafka.errors import (
    BrokerResponseError,
    ConcurrentTransactionsError,
    IllegalStateError,
    InvalidProducerIdMappingError,
    InvalidTransactionTimeoutError,
    InvalidTxnStateError,
    ProducerFencedError,
    TransactionAbortableError,
    TransactionalIdNotFoundError,
)
from kafka.structs import TopicPartition
from test.unit.broker.groups.world import World

A, B = TopicPartition("a", 0), TopicPartition("b", 0)


class Log:
    """Remembers what is written; partitions in ``down`` have no leader."""

    def __init__(self) -> None:
        self.markers: list[tuple[TopicPartition, int, int, bool]] = []
        self.offsets: list[tuple[int, frozenset[str], bool]] = []
        self.down: set[TopicPartition] = set()

    def write_marker(self, partition: TopicPartition, producer_id: int, epoch: int, *, committed: bool) -> bool:
        if partition in self.down:
            return False
        self.markers.append((partition, producer_id, epoch, committed))
        return True

    def end_offsets(self, producer_id: int, groups: Iterable[str], *, committed: bool) -> None:
        if groups:
            self.offsets.append((producer_id, frozenset(groups), committed))


class Bench:
    def __init__(
        self, tables: dict[str, dict[str, Any]] | None = None, *, world: World | None = None, **settings: float
    ) -> None:
        self.world, self.log = world or World(), Log()
        self.tables = {} if tables is None else tables
        self.next_id = 100
        self.coordinator = TransactionCoordinator(
            TransactionSettings(**settings),
            self.world,
            self.world,
            self.log,
            self._new_id,
            lambda name: self.tables.setdefault(name, {}),
        )
        self.coordinator.load()

    def _new_id(self) -> int:
        self.next_id += 1
        return self.next_id

    def start(self, timeout: float = 60.0) -> Granted:
        return self.coordinator.init_producer("x", timeout)

    def state(self) -> State:
        return self.coordinator.describe("x").state

    def end(self, who: Granted, *, committed: bool = True, bumps: bool = True) -> Granted:
        return self.coordinator.end("x", who, committed=committed, bumps_epoch=bumps)


def test_an_idempotent_producer_gets_a_fresh_id_each_time() -> None:
    bench = Bench()
    first = bench.coordinator.init_producer(None, 60.0)
    assert bench.coordinator.init_producer(None, 60.0) == Granted(first.producer_id + 1, 0)


def test_each_start_fences_the_producer_before() -> None:
    bench = Bench()
    old, new = bench.start(), bench.start()
    assert new == Granted(old.producer_id, old.epoch + 1)
    with pytest.raises(ProducerFencedError):
        bench.coordinator.add("x", old, [A])
    with pytest.raises(ProducerFencedError):
        bench.end(old)


def test_a_start_may_be_repeated_but_not_by_a_producer_that_another_one_has_replaced() -> None:
    bench = Bench()
    first = bench.start()
    second = bench.coordinator.init_producer("x", 60.0, first)
    assert bench.coordinator.init_producer("x", 60.0, first) == second, "the answer was lost"
    bench.start()
    with pytest.raises(ProducerFencedError):
        bench.coordinator.init_producer("x", 60.0, second)


@pytest.mark.parametrize("bumps", [False, True])
@pytest.mark.parametrize("committed", [False, True])
def test_an_end_reaches_all_partitions_and_groups(bumps: bool, committed: bool) -> None:
    bench = Bench()
    who = bench.start()
    bench.coordinator.add("x", who, [A], ["g"])
    bench.coordinator.add("x", who, [B])
    after = bench.end(who, committed=committed, bumps=bumps)
    epoch = who.epoch + bumps
    assert after == Granted(who.producer_id, epoch)
    assert bench.log.markers == [(part, who.producer_id, epoch, committed) for part in (A, B)]
    assert bench.log.offsets == [(who.producer_id, frozenset("g"), committed)]
    assert bench.state() is (State.COMPLETE_COMMIT if committed else State.COMPLETE_ABORT)


def test_a_repeated_end_is_answered_as_the_first_and_the_contrary_is_refused() -> None:
    bench = Bench()
    who = bench.start()
    bench.coordinator.add("x", who, [A])
    after = bench.end(who)
    assert bench.end(who) == after
    assert len(bench.log.markers) == 1
    with pytest.raises(InvalidTxnStateError):
        bench.end(who, committed=False)
    with pytest.raises(InvalidTxnStateError):
        bench.end(after)  # nothing was begun with this epoch
    assert bench.end(after, committed=False).epoch == after.epoch + 1  # KIP-890: an abort of nothing is fine


def test_in_version_one_there_is_nothing_to_end_before_something_was_added() -> None:
    bench = Bench()
    who = bench.start()
    for committed in (True, False):
        with pytest.raises(InvalidTxnStateError):
            bench.end(who, committed=committed, bumps=False)


def test_partitions_without_a_leader_get_their_markers_later() -> None:
    bench = Bench()
    who = bench.start()
    bench.coordinator.add("x", who, [A, B])
    bench.log.down = {B}
    after = bench.end(who)
    assert bench.state() is State.PREPARE_COMMIT
    with pytest.raises(ConcurrentTransactionsError):
        bench.coordinator.add("x", after, [A])
    with pytest.raises(ConcurrentTransactionsError):
        bench.start()
    bench.world.advance(5)
    assert [marker[0] for marker in bench.log.markers] == [A]
    bench.log.down = set()
    bench.world.advance(1)
    assert [marker[0] for marker in bench.log.markers] == [A, B]
    bench.coordinator.add("x", after, [A])
    assert bench.state() is State.ONGOING


def test_a_new_producer_aborts_what_the_old_one_left_open() -> None:
    bench = Bench()
    old = bench.start()
    bench.coordinator.add("x", old, [A])
    with pytest.raises(ConcurrentTransactionsError):
        bench.start()
    assert bench.log.markers == [(A, old.producer_id, old.epoch + 1, False)]
    assert bench.start() == Granted(old.producer_id, old.epoch + 2)


def test_a_transaction_that_takes_too_long_is_aborted_and_its_producer_fenced() -> None:
    bench = Bench()
    who = bench.start(timeout=30.0)
    bench.coordinator.add("x", who, [A])
    bench.world.advance(29)
    bench.coordinator.add("x", who, [B])  # does not prolong it
    bench.world.advance(2)
    assert bench.state() is State.COMPLETE_ABORT
    assert {marker[0] for marker in bench.log.markers} == {A, B}
    with pytest.raises(ProducerFencedError):
        bench.end(who, bumps=False)
    with pytest.raises(ProducerFencedError):
        bench.coordinator.add("x", who, [A])


def test_a_producer_of_kip_890_that_ends_a_late_transaction_learns_that_it_was_aborted() -> None:
    bench = Bench()
    who = bench.start(timeout=30.0)
    bench.coordinator.add("x", who, [A])
    bench.world.advance(31)
    with pytest.raises(InvalidTxnStateError):
        bench.end(who)
    assert bench.end(who, committed=False) == Granted(who.producer_id, who.epoch + 1)


def test_a_producer_continues_after_an_error_with_the_next_epoch() -> None:
    bench = Bench()
    who = bench.start()
    again = bench.coordinator.init_producer("x", 60.0, who)
    assert again == Granted(who.producer_id, who.epoch + 1)
    assert bench.coordinator.init_producer("x", 60.0, who) == again  # the answer was lost
    bench.start()
    with pytest.raises(ProducerFencedError):
        bench.coordinator.init_producer("x", 60.0, who)
    with pytest.raises(ProducerFencedError):
        bench.coordinator.init_producer("x", 60.0, Granted(999, 0))


def test_a_producer_that_recovers_in_its_open_transaction_continues_with_the_next_epoch() -> None:
    # Kafka: CONCURRENT_TRANSACTIONS while the transaction is aborted, then the same producer id and the next epoch.
    bench = Bench()
    who = bench.start()
    bench.coordinator.add("x", who, [A])
    with pytest.raises(ConcurrentTransactionsError):
        bench.coordinator.init_producer("x", 60.0, who)
    again = bench.coordinator.init_producer("x", 60.0, who)
    assert again == Granted(who.producer_id, who.epoch + 1)
    assert bench.log.markers == [(A, who.producer_id, who.epoch + 1, False)]
    assert bench.coordinator.init_producer("x", 60.0, again) == Granted(who.producer_id, who.epoch + 2)


def test_a_producer_whose_transaction_another_one_has_aborted_stays_fenced() -> None:
    bench = Bench()
    who = bench.start()
    bench.coordinator.add("x", who, [A])
    with pytest.raises(ConcurrentTransactionsError):
        bench.start()
    assert bench.start().epoch == who.epoch + 2
    with pytest.raises(ProducerFencedError):
        bench.coordinator.init_producer("x", 60.0, who)


def test_a_producer_whose_transaction_took_too_long_gets_the_next_epoch() -> None:
    # Kafka 4.3.1 answers so with and without KIP-890; since KIP-588 the producer need not be closed.
    bench = Bench()
    who = bench.start()
    bench.coordinator.add("x", who, [A])
    bench.world.advance(61)
    assert bench.state() is State.COMPLETE_ABORT
    with pytest.raises(ProducerFencedError):
        bench.coordinator.add("x", who, [A])
    assert bench.coordinator.init_producer("x", 60.0, who) == Granted(who.producer_id, who.epoch + 1)


def test_a_producer_of_an_earlier_epoch_aborts_the_open_transaction_and_is_fenced_itself() -> None:
    bench = Bench()
    earliest = bench.start()
    bench.start()
    current = bench.start()
    bench.coordinator.add("x", current, [A])
    with pytest.raises(ConcurrentTransactionsError):  # the epoch is looked at when there is one to be given out
        bench.coordinator.init_producer("x", 60.0, earliest)
    assert bench.state() is State.COMPLETE_ABORT
    assert bench.log.markers == [(A, current.producer_id, current.epoch + 1, False)]
    with pytest.raises(ProducerFencedError):
        bench.coordinator.init_producer("x", 60.0, earliest)
    assert bench.coordinator.init_producer("x", 60.0, current).epoch == current.epoch + 1  # that of the fence


def test_an_end_from_before_the_producer_s_last_start_is_fenced() -> None:
    bench = Bench()
    who = bench.start()
    again = bench.end(who, committed=False)
    assert bench.coordinator.init_producer("x", 60.0, who) == again
    with pytest.raises(ProducerFencedError):
        bench.end(who, committed=False)


def test_when_the_epochs_are_used_up_the_next_producer_id_comes() -> None:
    bench = Bench()
    who = bench.start()
    bench.coordinator.describe("x").epoch = LAST_EPOCH
    who = Granted(who.producer_id, LAST_EPOCH)
    bench.coordinator.add("x", who, [A])
    after = bench.end(who)
    assert after == Granted(who.producer_id + 1, 0)
    assert bench.log.markers == [(A, who.producer_id, LAST_EPOCH + 1, True)]
    assert bench.end(who) == after
    record = bench.coordinator.describe("x")
    record.epoch = LAST_EPOCH
    assert bench.start() == Granted(after.producer_id + 1, 0)


def test_only_what_was_added_is_verified() -> None:
    bench = Bench()
    who = bench.start()
    with pytest.raises(TransactionAbortableError):
        bench.coordinator.verify("x", who, A)
    bench.coordinator.add("x", who, [A])
    bench.coordinator.verify("x", who, A)
    with pytest.raises(TransactionAbortableError):
        bench.coordinator.verify("x", who, B)
    with pytest.raises(InvalidProducerIdMappingError):
        bench.coordinator.verify("y", who, A)


@pytest.mark.parametrize("timeout", [0.0, -1.0, 901.0])
def test_timeouts_have_limits(timeout: float) -> None:
    with pytest.raises(InvalidTransactionTimeoutError):
        Bench().start(timeout)


def test_an_id_that_is_not_used_is_forgotten() -> None:
    bench = Bench(id_expiration=7200.0)
    who = bench.start()
    bench.world.advance(7000)
    bench.coordinator.add("x", who, [A])
    bench.world.advance(7100)  # it timed out in between
    assert bench.state() is State.COMPLETE_ABORT
    bench.world.advance(7200)
    with pytest.raises(TransactionalIdNotFoundError):
        bench.coordinator.describe("x")
    assert not bench.tables["transactions"]


def test_decided_transactions_are_carried_out_after_a_restart() -> None:
    bench = Bench()
    who = bench.start()
    bench.coordinator.add("x", who, [A, B])
    bench.log.down = {A, B}
    bench.end(who)
    bench.coordinator.close()
    later = Bench(bench.tables)
    assert {(marker[0], marker[3]) for marker in later.log.markers} == {(A, True), (B, True)}
    assert later.state() is State.COMPLETE_COMMIT


def test_the_producer_id_after_an_exhausted_one_outlives_a_restart() -> None:
    bench = Bench()
    who = bench.start()
    bench.coordinator.add("x", who, [A])
    bench.coordinator.describe("x").epoch = LAST_EPOCH
    bench.log.down = {A}
    bench.end(Granted(who.producer_id, LAST_EPOCH))
    successor = bench.coordinator.describe("x").successor
    assert successor is not None
    bench.coordinator.close()
    record = Bench(bench.tables).coordinator.describe("x")
    assert (record.producer_id, record.epoch, record.previous_producer_id) == (*successor, who.producer_id)


def test_an_open_transaction_continues_after_a_restart_and_still_times_out() -> None:
    bench = Bench()
    who = bench.start()
    bench.coordinator.add("x", who, [A])
    bench.world.advance(40)
    bench.coordinator.close()
    later = Bench(bench.tables, world=bench.world)
    later.coordinator.add("x", who, [B])
    later.world.advance(19)
    assert later.state() is State.ONGOING
    later.world.advance(2)
    assert {marker[0] for marker in later.log.markers} == {A, B}


def test_a_key_that_the_table_does_not_have_is_an_error() -> None:
    assert sum(_is_allowed(*pair) for pair in product(State, Event)) == 19
    with pytest.raises(IllegalStateError, match="Dead cannot take that it is committed"):
        next_state(State.DEAD, Event.COMMIT)


def _is_allowed(state: State, event: Event) -> bool:
    try:
        next_state(state, event)
    except IllegalStateError:
        return False
    return True


class AnyOrder(RuleBasedStateMachine):
    """Producers, also old ones, do anything in any order: epochs only grow, and all ends in the end."""

    def __init__(self) -> None:
        super().__init__()
        self.bench = Bench()
        self.producers: list[Granted] = []
        self.highest = -1

    @rule()
    def start(self) -> None:
        try:
            self.producers.append(self.bench.start())
        except ConcurrentTransactionsError:
            assert self.bench.state() in (State.COMPLETE_ABORT, State.PREPARE_ABORT, State.PREPARE_COMMIT)

    @precondition(lambda self: self.producers)
    @rule(data=st.data(), partition=st.sampled_from([A, B]))
    def add(self, data: st.DataObject, partition: TopicPartition) -> None:
        who = data.draw(st.sampled_from(self.producers))
        try:
            self.bench.coordinator.add("x", who, [partition])
        except BrokerResponseError:
            return
        assert who.epoch == self.bench.coordinator.describe("x").epoch

    @precondition(lambda self: self.producers)
    @rule(data=st.data(), committed=st.booleans(), bumps=st.booleans())
    def end(self, data: st.DataObject, committed: bool, bumps: bool) -> None:
        who = data.draw(st.sampled_from(self.producers))
        try:
            self.producers.append(self.bench.end(who, committed=committed, bumps=bumps))
        except BrokerResponseError:
            return

    @rule(down=st.sampled_from([set(), {A}, {A, B}]))
    def leaders_change(self, down: set[TopicPartition]) -> None:
        self.bench.log.down = down

    @rule(seconds=st.sampled_from([0.2, 30, 61]))
    def time_passes(self, seconds: float) -> None:
        self.bench.world.advance(seconds)

    @invariant()
    def epochs_never_go_back(self) -> None:
        if self.producers:
            epoch = self.bench.coordinator.describe("x").epoch
            assert epoch >= self.highest
            self.highest = epoch

    def teardown(self) -> None:
        self.bench.log.down = set()
        self.bench.world.advance(1000)
        if self.producers:
            assert self.bench.state().is_idle
            assert not self.bench.coordinator.describe("x").partitions


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = hypothesis_settings(max_examples=30, stateful_step_count=30, deadline=None)
