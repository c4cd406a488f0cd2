"""Transactions against the embedded broker, classic and of version two: what returned is there, what raised is not."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from typing import Any

import pytest

from kafka import KafkaConsumer, KafkaProducer
from kafka.broker import Broker
from kafka.broker.faults import CLOSE, NO_REPLY
from kafka.errors import (
    AbortableTransactionError,
    FatalError,
    FatalTransactionError,
    IllegalArgumentError,
    IllegalStateError,
    KafkaTimeoutError,
    OutcomeUnknownTimeoutError,
    ProducerFencedError,
    RecordTooLargeError,
    TopicAuthorizationFailedError,
    TransactionAbortedError,
    TransactionOutcomeUnknownError,
)
from kafka.net.environment import Environment
from kafka.structs import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition
from test.embedded.clocks import JumpingClock
from test.embedded.holding import held_up
from test.unit.consumer.test_interrupted import interrupted_at_call

from .conftest import WAIT

FACES = "both"

CLASSIC_APIS = {"EndTxn": 4, "Produce": 11, "TxnOffsetCommit": 4}

Make = Callable[..., KafkaProducer]


@pytest.fixture(scope="module", params=["v2", "classic"])
def shared(request: pytest.FixtureRequest) -> Iterator[Broker]:
    with Broker(nodes=3, seed=1) as broker:
        if request.param == "classic":
            for api, newest in CLASSIC_APIS.items():
                broker.advertise(api, 0, newest)
        yield broker


@pytest.fixture
def producer(make: Make, topic: str) -> KafkaProducer:
    producer = make(transactional_id=topic, max_block_ms=WAIT * 1000)
    producer.init_transactions()
    return producer


def committed(broker: Broker, topic: str) -> list[bytes]:
    return [record.value for record in broker.records(topic, committed=True)]


def all_values(broker: Broker, topic: str) -> list[bytes]:
    return [record.value for record in broker.records(topic)]


def committed_offset(broker: Broker, group: str, topic: str) -> int | None:
    with KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, group_id=group, enable_auto_commit=False) as reader:
        return reader.committed(TopicPartition(topic, 0))


def describe(broker: Broker, transactional_id: str) -> Any:
    from kafka.broker.transactions.service import TransactionService

    return broker.run(lambda cluster: cluster.service(TransactionService).coordinator.records[transactional_id])


def wait_for_state(broker: Broker, transactional_id: str, wanted: str) -> None:
    import time

    deadline = time.monotonic() + WAIT
    while describe(broker, transactional_id).state.value != wanted:
        assert time.monotonic() < deadline
        threading.Event().wait(0.01)


# What is promised


def test_a_commit_that_returned_is_visible_whole(broker, topic, producer):
    for number in range(3):
        producer.begin_transaction()
        futures = [producer.send(topic, b"%d-%d" % (number, each)) for each in range(5)]
        producer.commit_transaction()
        assert all(future.succeeded() for future in futures)
    assert committed(broker, topic) == [b"%d-%d" % (number, each) for number in range(3) for each in range(5)]


def test_nothing_of_an_aborted_transaction_is_visible(broker, topic, make):
    producer = make(transactional_id=topic, linger_ms=WAIT * 1000)  # only flush() sends
    producer.init_transactions()
    producer.begin_transaction()
    written = producer.send(topic, b"written")
    producer.flush()
    unsent = producer.send(topic, b"not sent")
    producer.abort_transaction()
    assert written.succeeded()
    assert isinstance(unsent.exception, TransactionAbortedError)
    with producer.transaction():
        producer.send(topic, b"next")
    assert committed(broker, topic) == [b"next"]
    assert all_values(broker, topic) == [b"written", b"next"]


def test_ctrl_c_in_the_block_of_a_transaction_does_not_wait_for_a_silent_coordinator(broker, topic, producer):
    def interrupted():
        with producer.transaction():
            producer.send(topic, b"x").get(WAIT)
            raise KeyboardInterrupt

    with held_up(broker, "EndTxn") as let_go:
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            interrupted()
        assert time.monotonic() - began < WAIT / 3  # half a second; max_block_ms is longer
        let_go()
    producer.abort_transaction()  # waits for the rest
    with producer.transaction():
        producer.send(topic, b"next")
    assert committed(broker, topic) == [b"next"]


def test_partitions_are_looked_up_outside_of_a_transaction_too(make, topic):
    producer = make(transactional_id=topic)
    assert producer.partitions_for(topic) == {0}
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(topic, b"x")
    producer.commit_transaction()


def test_an_empty_transaction_sends_no_request(broker, topic, producer):
    broker.forget_requests()
    with producer.transaction():
        pass
    producer.begin_transaction()
    producer.abort_transaction()
    assert not [seen for seen in broker.requests if seen.name == "EndTxn"]


def test_offsets_are_committed_with_the_records_or_not_at_all(broker, topic, producer):
    with pytest.raises(ValueError, match="changed my mind"), producer.transaction():  # noqa: PT012
        producer.send(topic, b"x")
        producer.send_offsets_to_transaction({TopicPartition(topic, 0): OffsetAndMetadata(5, "", -1)}, topic)
        raise ValueError("changed my mind")
    assert committed_offset(broker, topic, topic) is None
    with producer.transaction():
        producer.send_offsets_to_transaction({TopicPartition(topic, 0): 7}, consumer_group_id=topic)
    assert committed_offset(broker, topic, topic) == 7


def test_offsets_of_a_consumer_that_its_group_has_moved_on_from(broker, topic, producer):
    stale = ConsumerGroupMetadata(topic, 3, "somebody")
    with pytest.raises(AbortableTransactionError) as raised, producer.transaction():  # noqa: PT012
        producer.send(topic, b"x")
        producer.send_offsets_to_transaction({TopicPartition(topic, 0): 7}, stale)
    assert raised.value.__cause__ is not None
    with producer.transaction():
        producer.send(topic, b"y")
    assert committed(broker, topic) == [b"y"]


def test_the_last_one_to_take_over_continues_and_the_other_is_fenced(broker, topic, producer, make):
    producer.begin_transaction()
    producer.send(topic, b"of the first")
    producer.flush()
    other = make(transactional_id=topic)
    other.init_transactions()
    with pytest.raises(ProducerFencedError):
        producer.commit_transaction()
    for call in (producer.begin_transaction, producer.abort_transaction, lambda: producer.send(topic, b"no")):
        with pytest.raises(ProducerFencedError):
            call()
    with other.transaction():
        other.send(topic, b"of the second")
    assert committed(broker, topic) == [b"of the second"]


def test_being_locked_out_between_transactions(topic, producer, make):
    with producer.transaction():
        producer.send(topic, b"x")
    make(transactional_id=topic).init_transactions()
    with pytest.raises(ProducerFencedError), producer.transaction():
        producer.send(topic, b"y")


# Time


def take_too_long(broker: Broker, topic: str, make: Make) -> KafkaProducer:
    """A producer whose transaction is over before it ends it: in no time, so that the next one has all of its own."""
    clock = JumpingClock()
    producer = make(transactional_id=topic, transaction_timeout_ms=20_000, environment=Environment(clock=clock))
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(topic, b"late").get(WAIT)
    clock.ahead += 21
    broker.clock.advance(21)
    wait_for_state(broker, topic, "CompleteAbort")
    return producer


def test_a_transaction_that_took_too_long_is_aborted_and_the_producer_continues(broker, topic, make):
    producer = take_too_long(broker, topic, make)
    with pytest.raises(AbortableTransactionError, match="transaction_timeout_ms"):
        producer.commit_transaction()
    producer.abort_transaction()
    with producer.transaction():
        producer.send(topic, b"in time")
    assert committed(broker, topic) == [b"in time"]


def test_sending_in_a_transaction_that_took_too_long(broker, topic, make):
    producer = take_too_long(broker, topic, make)
    producer.send(topic, b"later")
    with pytest.raises(AbortableTransactionError):
        producer.commit_transaction()
    producer.abort_transaction()
    with producer.transaction():
        producer.send(topic, b"in time")
    assert committed(broker, topic) == [b"in time"]


def test_one_that_took_too_long_and_was_taken_over_does_not_continue(broker, topic, make):
    producer = take_too_long(broker, topic, make)
    other = make(transactional_id=topic)
    other.init_transactions()
    with pytest.raises(AbortableTransactionError):
        producer.commit_transaction()
    with pytest.raises(ProducerFencedError):
        producer.abort_transaction()
    with other.transaction():
        other.send(topic, b"of the other")
    assert committed(broker, topic) == [b"of the other"]


def test_a_commit_whose_time_is_up_is_unknown_and_can_be_repeated(broker, topic, producer):
    producer.begin_transaction()
    producer.send(topic, b"x")
    producer.flush()
    with held_up(broker, "EndTxn") as let_go:
        with pytest.raises(OutcomeUnknownTimeoutError, match="call it again"):
            producer.commit_transaction(timeout=0.1)
        with pytest.raises(IllegalStateError, match="call it again"):
            producer.abort_transaction()
        with pytest.raises(IllegalStateError):
            producer.send(topic, b"not now")
        threading.Timer(0.1, let_go).start()
        producer.commit_transaction()
    assert committed(broker, topic) == [b"x"]
    with producer.transaction():
        producer.send(topic, b"y")
    assert committed(broker, topic) == [b"x", b"y"]


def test_a_commit_that_ended_unheard_is_heard_by_the_next_call(broker, topic, producer):
    producer.begin_transaction()
    producer.send(topic, b"x")
    producer.flush()
    with held_up(broker, "EndTxn"), pytest.raises(OutcomeUnknownTimeoutError):
        producer.commit_transaction(timeout=0.05)
    wait_for_state(broker, topic, "CompleteCommit")
    with pytest.raises(IllegalStateError, match="call it again"):
        producer.begin_transaction()
    producer.commit_transaction()
    producer.begin_transaction()


@contextmanager
def interrupted_at(broker: Broker, api: str) -> Iterator[None]:
    """Press Ctrl-C when a request has come."""
    broker.forget_requests()

    def press() -> None:
        deadline = time.monotonic() + WAIT
        while not any(seen.name == api for seen in broker.requests):
            assert time.monotonic() < deadline
            time.sleep(0.002)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            yield
    finally:
        thread.join()


@pytest.mark.parametrize("how", ["its time is up", "Ctrl-C"])
@pytest.mark.parametrize(("first", "second"), [("commit", "abort"), ("abort", "commit")])
def test_an_end_that_is_cut_short_is_not_taken_for_the_other_end(broker, topic, producer, first, second, how):
    """While EndTxn is under way, and when it is done."""
    ends = {"commit": producer.commit_transaction, "abort": producer.abort_transaction}
    producer.begin_transaction()
    producer.send(topic, first.encode()).get(WAIT)
    with held_up(broker, "EndTxn") as let_go:
        if how == "Ctrl-C":
            with interrupted_at(broker, "EndTxn"):
                ends[first]()
        else:
            with pytest.raises(KafkaTimeoutError):
                ends[first](timeout=0.05)
        with pytest.raises(IllegalStateError, match=rf"{first}_transaction\(\).* call it again"):
            ends[second]()
        let_go()
    with pytest.raises(IllegalStateError, match=rf"{first}_transaction\(\).* call it again"):
        ends[second]()
    ends[first]()
    with producer.transaction():
        producer.send(topic, b"next")
    assert committed(broker, topic) == [*([b"commit"] if first == "commit" else []), b"next"]


@pytest.mark.one_face  # a task is cancelled where it waits
@pytest.mark.parametrize("name", ["begin_transaction", "commit_transaction"])
def test_ctrl_c_anywhere_in_a_call_leaves_no_coroutine_that_was_never_awaited(producer, name):
    call = getattr(producer, name)
    for at in count(1):
        if name == "commit_transaction":
            producer.begin_transaction()
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            try:
                with interrupted_at_call(at) as begun:
                    call()
            except KeyboardInterrupt:
                with suppress(IllegalStateError):  # it was about to return
                    call()
        assert not [str(one.message) for one in seen], at
        if name == "begin_transaction":
            producer.abort_transaction()
        if begun[0] < at:
            return


@pytest.mark.one_face  # start() of the asyncio producer is what takes the transactional_id over
def test_every_other_call_has_a_time_too(broker, topic, make):
    producer = make(transactional_id=topic)
    with held_up(broker, "InitProducerId") as let_go:
        with pytest.raises(KafkaTimeoutError, match="init_transactions"):
            producer.init_transactions(timeout=0.05)
        with pytest.raises(IllegalStateError):
            producer.begin_transaction()
        threading.Timer(0.1, let_go).start()
        producer.init_transactions()
    producer.begin_transaction()
    producer.send(topic, b"x")
    producer.flush()
    with held_up(broker, "TxnOffsetCommit"), pytest.raises(KafkaTimeoutError):
        producer.send_offsets_to_transaction({TopicPartition(topic, 0): 1}, topic, timeout=0.05)
    with held_up(broker, "EndTxn") as let_go:
        with pytest.raises(KafkaTimeoutError):
            producer.abort_transaction(timeout=0.05)
        threading.Timer(0.1, let_go).start()
        producer.abort_transaction()
    assert committed(broker, topic) == []


# Faults at every step


def run(producer: KafkaProducer, topic: str, value: bytes, attempts: int = 5) -> str:
    """Run one transaction as an application should; returns how it ended."""
    for _ in range(attempts):
        try:
            with producer.transaction():
                producer.send(topic, value)
                producer.send_offsets_to_transaction({TopicPartition(topic, 0): 1}, topic)
            return "committed"
        except AbortableTransactionError:  # noqa: PERF203 - that is what the loop is for
            continue
        except FatalError as error:
            return "unknown" if error.outcome_unknown else "fatal"
    return "gave up"


DUPLICATE_SEQUENCE_NUMBER = 46
# Those that brokers answer to these requests, and some that they do not; the others differ in nothing but their number.
USUAL_CODES = [-1, 3, 6, 7, 10, 12, 14, 15, 16, 19, 22, 25, 29, 30, 31, 35, 45, 47, 48, 49, 51, 53, 59, 82, 90, 120]
ALL_CODES = sorted({-1, *range(1, 77), *USUAL_CODES, 89, 103, 105, 110, 111, 113})


@pytest.mark.parametrize("codes", [USUAL_CODES, pytest.param(ALL_CODES, marks=pytest.mark.soak)], ids=["usual", "all"])
@pytest.mark.parametrize("step", ["AddPartitionsToTxn", "Produce", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn"])
def test_every_code_at_every_step_commits_once_or_says_what_to_do(broker, topic, make, step, codes):
    """Each error once: the transaction is committed, at the first attempt or a later one, or the producer says that it
    is finished; what is in the log agrees."""
    producer = None
    for code in codes:
        if step == "Produce" and code == DUPLICATE_SEQUENCE_NUMBER:
            continue  # says that the batch is written, which the fault does not see to
        if producer is None:
            producer = make(transactional_id=topic)
            producer.init_transactions()
        value = b"%d" % code
        with broker.fail(step, [code]):
            ended = run(producer, topic, value)
        if ended != "committed":  # what it left open is for the next one to abort
            producer.close(timeout=0)
            producer = make(transactional_id=topic)
            producer.init_transactions()
        found = committed(broker, topic).count(value)
        if ended == "unknown":
            assert found in {0, 1}
        else:
            assert (ended, found) in {("committed", 1), ("fatal", 0)}, (step, code)
    with producer.transaction():
        producer.send(topic, b"and on")
    assert committed(broker, topic)[-1] == b"and on"


def test_the_outcome_is_unknown_if_the_answer_is_lost_and_another_takes_over(broker, topic, make):
    producer = make(transactional_id=topic, request_timeout_ms=300)
    producer.init_transactions()
    other = make(transactional_id=topic)
    producer.begin_transaction()
    producer.send(topic, b"x")
    producer.flush()
    lost = threading.Event()

    def lose(_exchange: Any) -> Any:
        lost.set()
        return NO_REPLY

    with broker.intercept("EndTxn", lose):
        with pytest.raises(OutcomeUnknownTimeoutError):
            producer.commit_transaction(timeout=0.1)
        assert lost.wait(WAIT)
        other.init_transactions()
        other.begin_transaction()
    with pytest.raises(TransactionOutcomeUnknownError) as raised:
        producer.commit_transaction()
    assert raised.value.outcome_unknown
    assert isinstance(raised.value, FatalTransactionError)


def test_nothing_late_gets_into_the_next_transaction(broker, topic, producer):
    """A commit that was lost on its way and sent again has its own epoch behind it: it could end the next one else."""
    epochs = []
    with broker.intercept("EndTxn", lambda _exchange: CLOSE, times=1):
        for value in (b"x", b"y"):
            with producer.transaction():
                producer.send(topic, value)
                producer.flush()
                epochs.append(describe(broker, topic).epoch)
    assert epochs[1] > epochs[0]
    assert committed(broker, topic) == [b"x", b"y"]


# A record that is lost dooms the whole


@pytest.mark.one_face  # send() of the asyncio producer has raised the error
def test_a_record_that_cannot_be_written_dooms_the_transaction(broker, topic, producer):
    producer.begin_transaction()
    good = producer.send(topic, b"good")
    producer.flush()
    bad = producer.send(topic, b"x" * 2_000_000)
    assert isinstance(bad.exception, RecordTooLargeError)
    with pytest.raises(AbortableTransactionError) as raised:
        producer.commit_transaction()
    assert isinstance(raised.value.__cause__, RecordTooLargeError)
    with pytest.raises(AbortableTransactionError):
        producer.send(topic, b"more")
    producer.abort_transaction()
    assert good.succeeded()
    with producer.transaction():
        producer.send(topic, b"next")
    assert committed(broker, topic) == [b"next"]


def test_what_waits_fails_with_the_transaction(broker, topic, make):
    producer = make(transactional_id=topic, linger_ms=60_000, delivery_timeout_ms=120_000)
    producer.init_transactions()
    other = topic + "-other"
    broker.create_topic(other)
    producer.begin_transaction()
    producer.send(topic, b"first").get(WAIT)
    waiting = producer.send(topic, b"waits")
    broker.fail("Produce", [TopicAuthorizationFailedError])
    refused = producer.send(other, b"refused")
    with pytest.raises((TopicAuthorizationFailedError, TransactionAbortedError)):
        refused.get(WAIT)
    with pytest.raises(TransactionAbortedError):
        waiting.get(WAIT)
    with pytest.raises(AbortableTransactionError):
        producer.commit_transaction()
    producer.abort_transaction()
    with producer.transaction():
        producer.send(other, b"next")
    assert committed(broker, other) == [b"next"]
    assert committed(broker, topic) == []


def test_a_batch_that_is_too_large_is_divided_within_the_transaction(broker, topic, make):
    from kafka.errors import MessageSizeTooLargeError

    producer = make(transactional_id=topic, linger_ms=1000)  # a batch of one record cannot be divided
    producer.init_transactions()
    with producer.transaction():
        producer.send(topic, b"first").get(WAIT)
        broker.fail("Produce", [MessageSizeTooLargeError], times=2)
        futures = [producer.send(topic, b"%d" % number) for number in range(300)]
        producer.flush()
    assert all(future.succeeded() for future in futures)
    assert committed(broker, topic) == [b"first", *(b"%d" % number for number in range(300))]


def test_leaders_that_move_within_a_transaction(broker, topic, producer):
    expected = []
    for number in range(5):
        with producer.transaction():
            for each in range(20):
                producer.send(topic, b"%d-%d" % (number, each))
                expected.append(b"%d-%d" % (number, each))
                if each == 10:
                    producer.flush()
                    broker.shuffle_leaders()
    assert committed(broker, topic) == expected


def test_a_block_that_fails_is_aborted_whatever_the_error(broker, topic, producer):
    for error in (KeyboardInterrupt(), OutcomeUnknownTimeoutError("of a record"), ProducerFencedError("of another")):
        with pytest.raises(type(error)), producer.transaction():  # noqa: PT012
            producer.send(topic, b"x").get(WAIT)
            raise error
    with producer.transaction():
        producer.send(topic, b"y")
    assert committed(broker, topic) == [b"y"]


# The end


def test_close_aborts_what_is_open(broker, topic, make):
    producer = make(transactional_id=topic, linger_ms=60_000)  # so that the last record is not sent before close()
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(topic, b"x")
    producer.flush()
    waiting = producer.send(topic, b"y")
    producer.close()
    assert describe(broker, topic).state.value == "CompleteAbort"
    assert isinstance(waiting.exception, TransactionAbortedError)
    assert committed(broker, topic) == []


def test_close_waits_for_a_commit_whose_time_was_up(broker, topic, producer):
    producer.begin_transaction()
    producer.send(topic, b"x")
    with held_up(broker, "EndTxn") as let_go:
        with pytest.raises(OutcomeUnknownTimeoutError):
            producer.commit_transaction(timeout=0.05)
        threading.Timer(0.1, let_go).start()
        producer.close()
    assert committed(broker, topic) == [b"x"]


def test_close_with_the_coordinator_silent_returns_in_time(broker, topic, producer):
    import time

    producer.begin_transaction()
    producer.send(topic, b"x").get(WAIT)
    with broker.intercept("EndTxn", lambda _exchange: NO_REPLY, before=True):
        started = time.monotonic()
        producer.close(timeout=0.3)
        assert time.monotonic() - started < 15  # a busy machine adds to it; unbounded, requests have 30


# Calls that make no sense


def test_calls_without_a_transactional_id_say_what_is_missing(make):
    producer = make()
    for call in (producer.init_transactions, producer.begin_transaction, producer.commit_transaction):
        with pytest.raises(IllegalStateError, match="transactional_id"):
            call()


@pytest.mark.one_face  # start() of the asyncio producer is what takes the transactional_id over
def test_calls_out_of_order_say_what_comes_first(broker, topic, make):
    producer = make(transactional_id=topic)
    with pytest.raises(IllegalStateError, match="init_transactions"):
        producer.begin_transaction()
    with pytest.raises(IllegalStateError, match="init_transactions"):
        producer.send(topic, b"x")
    producer.init_transactions()
    with pytest.raises(IllegalStateError, match="once"):
        producer.init_transactions()
    for call in (producer.commit_transaction, producer.abort_transaction, lambda: producer.send(topic, b"x")):
        with pytest.raises(IllegalStateError, match="begin_transaction"):
            call()
    producer.begin_transaction()
    with pytest.raises(IllegalStateError, match="commit_transaction"):
        producer.begin_transaction()
    producer.abort_transaction()
    assert all_values(broker, topic) == []


def test_offsets_that_make_no_sense(topic, producer):
    where = TopicPartition(topic, 0)
    producer.begin_transaction()
    for offsets, group, kind in [
        ({where: -1}, "g", IllegalArgumentError),
        ({where: 1}, "", IllegalArgumentError),
        ({where: 1}, ConsumerGroupMetadata("g", 5, ""), IllegalArgumentError),
        ({where: 1}, ConsumerGroupMetadata(), IllegalArgumentError),
        ({where: 1}, 7, TypeError),
        ({"topic": 1}, "g", TypeError),
        ([1], "g", TypeError),
    ]:
        with pytest.raises(kind):
            producer.send_offsets_to_transaction(offsets, group)
    producer.send_offsets_to_transaction({}, "g")
    producer.commit_transaction()


def test_the_reason_for_which_init_is_refused_can_be_removed(broker, topic, make):
    from kafka.errors import TransactionalIdAuthorizationFailedError

    producer = make(transactional_id=topic)
    broker.fail("InitProducerId", [TransactionalIdAuthorizationFailedError])
    with pytest.raises(TransactionalIdAuthorizationFailedError):
        producer.init_transactions()
    producer.init_transactions()
    with producer.transaction():
        producer.send(topic, b"x")
    assert committed(broker, topic) == [b"x"]


def test_the_state_is_part_of_health(broker, topic, producer):
    def found():
        health = producer.health()["transaction"]
        assert health["transactional_id"] == topic
        return health["state"], health["error"]

    assert found() == ("ready", None)
    producer.begin_transaction()
    assert found() == ("in a transaction", None)
    broker.fail("Produce", [TopicAuthorizationFailedError])
    with pytest.raises(TopicAuthorizationFailedError) as caught:
        producer.send(topic, b"0").get(WAIT)
    state, error = found()
    assert state == "in a transaction that must be aborted"
    assert str(caught.value) in error
    assert "abort_transaction() lets the producer continue" in error
    producer.abort_transaction()
    assert found() == ("ready", None)
