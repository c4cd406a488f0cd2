"""KafkaProducer against a broker that fails: per partition the log holds exactly what was acknowledged, in order."""

from __future__ import annotations

import contextlib
import re
import time
import traceback

import pytest

from kafka.broker import Broker
from kafka.broker.faults import CLOSE, NO_REPLY
from kafka.errors import (
    Cancelled,
    ClientClosedError,
    ClusterAuthorizationFailedError,
    InvalidRecordError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    NotEnoughReplicasError,
    OutcomeUnknownError,
    OutcomeUnknownTimeoutError,
    TopicAuthorizationFailedError,
    for_code,
)
from kafka.interceptors import ProducerInterceptor
from kafka.net.environment import Environment
from test.embedded.clocks import JumpingClock

from .conftest import WAIT

FACES = "both"

PRODUCE = 0
DEFINITE = [17, 29, 32, 35, 42, 43, 44, 76, 87, -1]


def numbers(broker, topic, partition=0):
    return [int(record.value) for record in broker.records(topic, partition)]


def produce(producer, topic, count=200):
    return [producer.send(topic, b"%d" % number, partition=0) for number in range(count)]


def check_log(broker, topic, futures):
    """The log holds what was acknowledged, in order, each record once, where the future says; of the rest no more than
    what is called unknown."""
    found = numbers(broker, topic)
    assert found == sorted(set(found)), "order or uniqueness is lost"
    for number, future in enumerate(futures):
        assert future.is_done
        if future.succeeded():
            offset = future.value.offset
            assert offset < 0 or found[offset] == number
            assert number in found
        elif not future.exception.outcome_unknown:
            assert number not in found, f"{number} is there, but: {future.exception!r}"


def wait_until(condition):
    deadline = time.monotonic() + WAIT
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


# Errors that pass


@pytest.mark.parametrize("code", [14, 15, 7, 51])
def test_a_producer_id_that_is_late(make, broker, topic, code):
    broker.fail("InitProducerId", [for_code(code)], times=2)
    assert make().send(topic, b"x").get(WAIT).offset == 0


@pytest.mark.parametrize("idempotent", [True, False])
def test_requests_that_are_served_after_the_request_timeout(make, broker, topic, idempotent):
    """The first attempt arrives when the second has been written already."""
    producer = make(batch_size=200, request_timeout_ms=200, enable_idempotence=idempotent)
    producer.send(topic, b"0", partition=0).get(WAIT)
    with broker.delay("Produce", 0.5, times=3):
        futures = [producer.send(topic, b"%d" % number, partition=0) for number in range(1, 200)]
        producer.flush(WAIT)
    assert all(future.succeeded() for future in futures)
    found = numbers(broker, topic)
    assert set(found) == set(range(200))
    if idempotent:
        assert found == list(range(200))


# Errors that do not


@pytest.mark.parametrize("code", DEFINITE)
def test_an_error_fails_the_batch_and_nothing_else(make, broker, topic, code):
    producer = make(batch_size=100)
    producer.partitions_for(topic)
    broker.fail("Produce", [for_code(code)])
    futures = produce(producer, topic)
    producer.flush(WAIT)
    failed = [future for future in futures if future.failed()]
    assert failed
    assert len(failed) < 200
    assert {type(future.exception) for future in failed} == {for_code(code)}
    check_log(broker, topic, futures)
    assert producer.send(topic, b"1000", partition=0).get(WAIT).offset == 200 - len(failed)


def test_one_topic_without_rights_harms_no_other(make, broker, topic):
    producer = make(linger_ms=0)
    broker.create_topic(topic + "-bad")

    def refuse(exchange):
        for entry in exchange.reply.responses:
            wanted = {t.topic_id: t.name for t in exchange.request.topic_data}
            name = entry.name or producer._core.cluster.topic_name_for_id(entry.topic_id) or wanted.get(entry.topic_id)
            if name.endswith("-bad"):
                for part in entry.partition_responses:
                    part.error_code, part.base_offset = TopicAuthorizationFailedError.errno, -1

    with broker.intercept("Produce", refuse):
        for number in range(30):
            bad = producer.send(topic + "-bad", b"%d" % number)
            good = producer.send(topic, b"%d" % number)
            assert good.get(WAIT).offset == number
            with pytest.raises(TopicAuthorizationFailedError):
                bad.get(WAIT)


def test_retries_can_be_bounded(make, broker, topic):
    producer = make(retries=2)
    producer.partitions_for(topic)
    broker.fail("Produce", [for_code(19)], times=3)
    with pytest.raises(NotEnoughReplicasError):
        producer.send(topic, b"1").get(WAIT)
    assert producer.send(topic, b"2").get(WAIT).offset == 0


def test_an_error_after_a_lost_reply_says_that_the_outcome_is_unknown(make, broker, topic):
    producer = make()
    producer.partitions_for(topic)
    seen = [0]

    def trouble(exchange):
        seen[0] += 1
        if seen[0] == 1:
            return CLOSE
        for entry in exchange.reply.responses:
            part = entry.partition_responses[0]
            part.error_code, part.base_offset = 29, -1
        return None

    with broker.intercept("Produce", trouble, times=2), pytest.raises(OutcomeUnknownError) as caught:
        producer.send(topic, b"0").get(WAIT)
    assert isinstance(caught.value.__cause__, TopicAuthorizationFailedError)
    assert producer.send(topic, b"1").get(WAIT).offset == 1


# Sequence numbers


@pytest.mark.parametrize("code", [45, 59, 47])
def test_a_broker_that_lost_track_gets_a_new_epoch(make, broker, topic, code):
    producer = make(batch_size=100)
    futures = produce(producer, topic, 50)
    producer.flush(WAIT)
    broker.fail("Produce", [for_code(code)])
    futures += [producer.send(topic, b"%d" % number, partition=0) for number in range(50, 150)]
    producer.flush(WAIT)
    assert numbers(broker, topic) == list(range(150))
    check_log(broker, topic, futures)


def test_a_duplicate_is_a_success_of_unknown_place(make, broker, topic):
    producer = make()
    producer.partitions_for(topic)
    broker.fail("Produce", [for_code(46)])
    metadata = producer.send(topic, b"0").get(WAIT)
    assert metadata.offset == -1


def test_a_principal_without_the_right_continues_without_idempotence(make, broker, topic, caplog):
    broker.fail("InitProducerId", [ClusterAuthorizationFailedError], times=1)
    assert make().send(topic, b"0").get(WAIT).offset == 0
    assert "may not write idempotently" in caplog.text


def test_a_principal_without_the_right_fails_where_idempotence_was_asked_for(make, broker, topic):
    broker.fail("InitProducerId", [ClusterAuthorizationFailedError], times=1)
    producer = make(enable_idempotence=True)
    with pytest.raises(ClusterAuthorizationFailedError):
        producer.send(topic, b"0").get(WAIT)
    assert producer.send(topic, b"1").get(WAIT).offset == 0


# Sizes


def test_batches_that_are_too_large_for_the_broker_are_divided(make, broker, topic):
    broker.delete_topic(topic)
    broker.create_topic(topic, configs={"max.message.bytes": 1000})
    producer = make(batch_size=20_000)
    broker_side = []
    futures = [producer.send(topic, b"%0100d" % number, partition=0) for number in range(500)]
    futures[123].add_callback(broker_side.append)
    producer.flush(WAIT)
    assert numbers(broker, topic) == list(range(500))
    check_log(broker, topic, futures)
    assert [metadata.offset for metadata in broker_side] == [123]


def test_one_record_that_is_too_large_for_the_broker_fails_alone(make, broker, topic):
    broker.delete_topic(topic)
    broker.create_topic(topic, configs={"max.message.bytes": 1000})
    producer = make(batch_size=20_000)
    futures = [
        producer.send(topic, b"%0*d" % (3000 if number == 7 else 100, number), partition=0) for number in range(40)
    ]
    producer.flush(WAIT)
    assert [number for number, future in enumerate(futures) if future.failed()] == [7]
    assert isinstance(futures[7].exception, MessageSizeTooLargeError)
    assert re.search(r"a batch of \d{4,} bytes .*max\.message\.bytes", str(futures[7].exception))
    check_log(broker, topic, futures)


def test_send_many_gets_each_result_of_a_batch_that_is_divided(make, broker, topic):
    broker.delete_topic(topic)
    broker.create_topic(topic, configs={"max.message.bytes": "4000"})
    sent = make(linger_ms=50).send_many(topic, [b"x" * 900 for _ in range(12)])
    assert [metadata.offset for metadata in sent.get(WAIT)] == list(range(12))
    assert len(broker.records(topic)) == 12


def test_the_error_of_a_batch_has_as_long_a_traceback_for_its_last_record_as_for_its_first(make, broker, topic):
    producer = make(linger_ms=60_000)
    producer.partitions_for(topic)
    futures = [producer.send(topic, b"x") for _ in range(50)]
    lengths = set()
    with broker.fail("Produce", "TOPIC_AUTHORIZATION_FAILED"):
        for future in futures:
            with pytest.raises(TopicAuthorizationFailedError) as caught:
                future.get(WAIT)
            lengths.add(len(traceback.extract_tb(caught.value.__traceback__)))
    assert len(lengths) <= 2, lengths  # the first one has waited


# Time


def let_time_pass(producer, clock, seconds):
    clock.ahead += seconds
    producer.health()  # wakes the thread, which sleeps by the real clock


@pytest.mark.one_face  # an event loop has the clock of the machine
def test_a_batch_that_was_never_answered_is_unknown_when_its_time_is_over(make, broker, topic):
    clock = JumpingClock()
    options = {"request_timeout_ms": 20_000, "delivery_timeout_ms": 50_000, "environment": Environment(clock=clock)}
    producer = make(linger_ms=0, **options)
    producer.partitions_for(topic)
    with broker.intercept("Produce", lambda _exchange: NO_REPLY):
        future = producer.send(topic, b"0")
        for attempt in range(1, 4):
            wait_until(lambda attempt=attempt: sum(seen.name == "Produce" for seen in broker.requests) >= attempt)
            let_time_pass(producer, clock, 21)
        with pytest.raises(OutcomeUnknownTimeoutError):
            future.get(WAIT)
    assert producer.send(topic, b"1").get(WAIT).offset >= 0
    assert numbers(broker, topic)[0] == 0
    assert numbers(broker, topic).count(1) == 1


def test_a_batch_that_was_refused_until_its_time_is_over_is_not_written(make, broker, topic):
    # A busy machine has to be asked once within this time, and to take a record within it.
    producer = make(request_timeout_ms=1000, delivery_timeout_ms=2500, linger_ms=0)
    producer.partitions_for(topic)
    with (
        broker.fail("Produce", [for_code(19)], times=10_000),
        pytest.raises(KafkaTimeoutError, match="NotEnoughReplicas") as caught,
    ):
        producer.send(topic, b"0").get(WAIT)
    assert not caught.value.outcome_unknown
    assert isinstance(caught.value.__cause__, NotEnoughReplicasError)
    assert producer.send(topic, b"1").get(WAIT).offset == 0


def test_throttling_is_waited_out(make, broker, topic):
    producer = make(linger_ms=0)
    producer.partitions_for(topic)

    def throttle(exchange):
        exchange.reply.throttle_time_ms = 50

    with broker.intercept("Produce", throttle):
        futures = produce(producer, topic, 30)
        producer.flush(WAIT)
    assert numbers(broker, topic) == list(range(30))
    check_log(broker, topic, futures)


# The end


def test_close_with_everything_down_fails_what_is_left(make, broker, topic):
    producer = make()
    producer.send(topic, b"0").get(WAIT)
    nodes = broker.node_ids
    for node in nodes:
        broker.stop_node(node)
    try:
        futures = produce(producer, topic, 20)
        before = producer._core.now()
        producer.close(timeout=0.3)
        assert producer._core.now() - before < 3
    finally:
        for node in nodes:
            broker.start_node(node)
    # A request may have left before the client has seen that the broker is gone: nobody knows what became of that.
    allowed = (ClientClosedError, KafkaConnectionError, OutcomeUnknownError)
    found = {type(future.exception) for future in futures}
    assert all(issubclass(kind, allowed) for kind in found), found


def test_closing_at_once_says_what_is_unknown(make, broker, topic):
    producer = make(linger_ms=0)
    producer.partitions_for(topic)
    with broker.intercept("Produce", lambda _exchange: NO_REPLY):
        future = producer.send(topic, b"0")
        while not broker.records(topic):
            pass
        producer.close(timeout=0)
    assert isinstance(future.exception, KafkaError)
    assert future.exception.outcome_unknown


def test_record_errors_are_raised(make, broker, topic):
    broker.delete_topic(topic)
    broker.create_topic(topic, configs={"cleanup.policy": "compact"})
    with pytest.raises(InvalidRecordError, match="record 0"):
        make().send(topic, b"no key").get(WAIT)


# By hand


def test_purged_records_are_not_sent_and_the_rest_continues(make, broker, topic):
    producer = make(batch_size=100, linger_ms=0)
    producer.send(topic, b"0", partition=0).get(WAIT)
    with broker.fail("Produce", [for_code(19)], times=10_000):
        futures = produce(producer, topic, 100)
        assert producer.health()["partitions"]
        given_up = producer.purge(in_flight=True)
    assert given_up > 0
    producer.flush(WAIT)
    failed = [future for future in futures if future.failed()]
    assert len(failed) == given_up
    assert any(type(future.exception) is Cancelled for future in failed)
    last = producer.send(topic, b"1000", partition=0).get(WAIT)
    assert numbers(broker, topic)[last.offset] == 1000
    found = numbers(broker, topic)
    for number, future in enumerate(futures):
        if not future.succeeded() and not future.exception.outcome_unknown:
            assert number not in found[1:]
    assert producer.health()["ok"]
    assert producer.health()["partitions"] == {}


def test_health_says_what_hinders(make, broker, topic):
    producer = make(linger_ms=0)
    producer.partitions_for(topic)
    with broker.fail("Produce", [for_code(19)], times=10_000):
        future = producer.send(topic, b"1", partition=0)
        entry = {"attempts": 0}
        deadline = time.monotonic() + WAIT
        while entry["attempts"] < 3 and time.monotonic() < deadline:
            (entry,) = producer.health()["partitions"].values()
    assert entry["attempts"] >= 3  # one more may fall between two looks
    assert entry["records"] == 1
    assert entry["leader"] == broker.leader(topic)
    assert future.get(WAIT).offset == 0
    producer.close()
    assert not producer.health()["ok"]


@pytest.mark.one_face  # a callback on the event loop cannot wait
def test_health_is_returned_in_a_callback_too(make, topic):
    producer = make(linger_ms=0)
    inside = []
    producer.send(topic, b"2").add_callback(lambda _: inside.append(producer.health()["ok"])).get(WAIT)
    producer.close()
    assert (inside, producer.health()["ok"]) == ([True], False)


def test_a_broker_is_avoided_for_what_waited_since_before_the_first_request(make):
    with Broker(nodes=2, topics={"t": 2}) as broker:
        silent = broker.leader("t", 0)
        broker.intercept("Produce", lambda _exchange: NO_REPLY, before=True, node=silent)
        producer = make(
            bootstrap_servers=broker.bootstrap_servers,
            batch_size=0,
            linger_ms=0,
            max_in_flight_requests_per_connection=1,
            partitioner_adaptive_partitioning_enable=False,
            partitioner_availability_timeout_ms=500,  # the other one may take its time on a busy machine
        )
        producer.send("t", b"x", partition=1).get(WAIT)
        broker.delay("ApiVersions", 0.3, node=silent)  # until that is answered both records wait in the same queue
        stuck = [producer.send("t", b"x", partition=0) for _ in range(2)]
        deadline = time.monotonic() + WAIT
        while not any(seen.api_key == PRODUCE and seen.node_id == silent for seen in broker.requests):
            assert time.monotonic() < deadline
        time.sleep(0.6)  # more than that time, for the second one alone
        for _ in range(20):
            assert producer.send("t", b"x").get(WAIT).partition == 1
        assert not any(future.is_done for future in stuck)
        producer.close(timeout=0)


@pytest.mark.one_face  # a callback that ends the program ends the event loop
@pytest.mark.internal_errors
@pytest.mark.parametrize("kind", ["callback", "on_delivery", "interceptor"])
@pytest.mark.parametrize("who", ["the network thread", "the thread that waits"])
def test_a_callback_that_ends_the_program_costs_no_other_record(make, broker, kind, who):
    """sys.exit() in a callback left the answers of other partitions untaken, and their futures open for ever."""
    ended = []

    def ends(*_):
        if not ended:
            ended.append(True)
            raise SystemExit("enough")

    class Ends(ProducerInterceptor):
        on_acknowledgement = staticmethod(ends)

    options = {"on_delivery": {"on_delivery": ends}, "interceptor": {"interceptors": [Ends()]}}
    producer = make(linger_ms=50, **options.get(kind, {}))
    topic = f"ends-{kind}-{who.replace(' ', '-')}"
    broker.create_topic(topic, 3)
    futures = [producer.send(topic, b"%d" % number, partition=number) for number in range(3)]
    if kind == "callback":
        for future in futures:
            future.add_callback(ends)
    if who == "the thread that waits":
        with contextlib.suppress(SystemExit):  # where it is this thread that heard the broker
            producer.flush(timeout=WAIT)
    for future in futures:
        with contextlib.suppress(SystemExit):  # perhaps the one of another record, before this one has its answer
            future.get(timeout=WAIT)
        future.get(timeout=WAIT)
    assert ended
    for number in range(3):
        producer.send(topic, b"more", partition=number).get(timeout=WAIT)
