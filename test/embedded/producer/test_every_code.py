"""Each error code that there is, and one that there is not, at each step of a record's way.

What is expected is spelled out here in numbers, so that a change to an error's flags shows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

import pytest

from kafka import KafkaProducer, errors
from kafka.broker import Broker
from kafka.errors import KafkaError, KafkaTimeoutError, UnrecognizedBrokerError, for_code
from test.embedded.producer.conftest import WAIT

FACES = "both"

LONG = 10_000
"""linger_ms, so that what is flushed together goes out together."""
UNHEARD_OF = 999
CODES = [code for code in range(-1, 200) if code and not issubclass(for_code(code), UnrecognizedBrokerError)]
CODES.append(UNHEARD_OF)

# What an answer to Produce means. All codes that are not here end the batch, and nothing but the batch.
SENT_AGAIN = {2, 3, 5, 6, 7, 9, 13, 14, 15, 16, 19, 20, 41, 51, 56, 70, 71, 72, 74, 75, 78, 80, 83, 84, 88, 89, 100}
SENT_AGAIN |= {103, 106, 122, 123, 133}
NEW_EPOCH = {45, 47, 59}
DIVIDED = {10, 18}
TAKEN_BEFORE = {46}
UNKNOWN_OUTCOME = {-1, UNHEARD_OF}
"""The broker does not say what happened, and it may have happened after the append."""


def test_the_table_has_all_codes() -> None:
    assert len(CODES) > 130
    assert set(CODES) >= SENT_AGAIN | NEW_EPOCH | DIVIDED | TAKEN_BEFORE | UNKNOWN_OUTCOME


def half(face: str, flag: bool = True) -> list[int]:
    """Every second code: each occurs with each value of a flag, and then on each face, but not in all pairs."""
    return CODES[(face == "asyncio") ^ flag :: 2]


def check_each(check: Callable[[int], object], codes: Iterable[int]) -> None:
    """Try all codes; the failures of all of them together."""
    wrong = {}
    for code in codes:
        try:
            check(code)
        except Exception as error:  # noqa: PERF203 - one at a time is the point
            wrong[code] = f"{for_code(code).__name__}: {error!r}"
    if wrong:
        pytest.fail("\n".join(f"{code} {problem}" for code, problem in wrong.items()), pytrace=False)


def numbers(broker: Broker, topic: str) -> list[int]:
    return [int(record.value) for record in broker.records(topic)]


class Numbered:
    """Sends 0, 1, 2 and so on, and knows which of them have to be in the log."""

    def __init__(self, producer: KafkaProducer, broker: Broker, topic: str) -> None:
        self.producer, self.broker, self.topic = producer, broker, topic
        self.wanted: list[int] = []
        self._next = 0
        producer.partitions_for(topic)

    def send(self, count: int = 3):
        first, self._next = self._next, self._next + count
        futures = [self.producer.send(self.topic, b"%d" % number) for number in range(first, self._next)]
        self.producer.flush(WAIT)
        self.wanted += [number for number, future in enumerate(futures, first) if future.succeeded()]
        return futures

    def goes_on(self) -> None:
        """The error is over, and has left nothing behind."""
        assert all(future.succeeded() for future in self.send())
        assert numbers(self.broker, self.topic) == self.wanted


# Produce


@pytest.mark.slow
@pytest.mark.parametrize("idempotent", [True, False])
def test_each_answer_to_produce(face, make, broker, topic, idempotent):
    load = Numbered(make(enable_idempotence=idempotent, linger_ms=LONG), broker, topic)

    def check(code: int) -> None:
        with broker.fail("Produce", [code]):
            futures = load.send()
        told = [type(future.exception) for future in futures]
        if code in SENT_AGAIN | DIVIDED or (code in NEW_EPOCH and idempotent):
            assert told == [type(None)] * 3
            assert [future.value.offset for future in futures] == list(range(len(load.wanted) - 3, len(load.wanted)))
        elif code in TAKEN_BEFORE:
            assert [future.value.offset for future in futures] == [-1] * 3
            del load.wanted[-3:]  # the broker lied
        else:
            assert told == [for_code(code)] * 3
            assert {future.exception.outcome_unknown for future in futures} == {code in UNKNOWN_OUTCOME}
        load.goes_on()

    check_each(check, half(face, idempotent))


@pytest.mark.slow
def test_each_answer_to_produce_that_passes_said_after_the_append(make, broker, topic):
    load = Numbered(make(linger_ms=LONG), broker, topic)

    def check(code: int) -> None:
        with broker.intercept("Produce", lambda exchange: spoil(exchange, code), times=1):
            futures = load.send()
        assert all(future.succeeded() for future in futures)
        load.goes_on()

    check_each(check, SENT_AGAIN | TAKEN_BEFORE)


@pytest.mark.parametrize("code", sorted(UNKNOWN_OUTCOME))
def test_an_answer_that_says_nothing_may_come_after_the_append(make, broker, topic, code):
    load = Numbered(make(linger_ms=LONG), broker, topic)
    with broker.intercept("Produce", lambda exchange: spoil(exchange, code), times=1):
        futures = load.send()
    assert all(future.exception.outcome_unknown for future in futures)
    load.wanted = [0, 1, 2]  # they are there
    load.goes_on()


def spoil(exchange, code):
    for entry in exchange.reply.responses:
        for part in entry.partition_responses:
            part.error_code, part.base_offset = code, -1


def test_a_broker_that_never_accepts_a_number_is_not_asked_without_pause(make, broker, topic):
    load = Numbered(make(retry_backoff_ms=100, linger_ms=LONG), broker, topic)
    load.goes_on()
    broker.forget_requests()
    with broker.fail("Produce", [45], times=1000):
        future = load.producer.send(topic, b"3")
        with pytest.raises(KafkaTimeoutError):
            future.get(1)
        assert sum(request.name == "Produce" for request in broker.requests) < 15
    assert future.get(WAIT).offset == 3


# The producer id


@pytest.mark.slow
@pytest.mark.parametrize("insisted", [True, False])
def test_each_answer_to_init_producer_id(face, make, broker, topic, insisted):
    broker.create_topic(topic + "-first")
    configs = {"enable_idempotence": True} if insisted else {}
    sent = [0]

    def check(code: int) -> None:
        producer = make(**configs)
        passes = for_code(code)().retriable or (code == 31 and not insisted)
        with broker.fail("InitProducerId", [code]):
            future = producer.send(topic, b"%d" % sent[0])
            producer.flush(WAIT)
            assert type(future.exception) is (type(None) if passes else for_code(code))
            if not passes:
                assert code in UNKNOWN_OUTCOME or not future.exception.outcome_unknown
        sent[0] += passes
        assert producer.send(topic, b"x").get(WAIT).offset == sent[0]
        sent[0] += 1
        producer.close()

    check_each(check, half(face, insisted))


# Metadata


@pytest.mark.slow
@pytest.mark.parametrize("whole", [True, False], ids=["request", "topic"])
def test_each_answer_to_metadata_of_a_new_topic(face, make, broker, topic, whole):
    producer = make()

    def check(code: int) -> None:
        name = f"{topic}-{code}"
        broker.create_topic(name)
        with fail_metadata(broker, code, name, whole=whole):
            try:
                future = producer.send(name, b"0")
                error = future.exception
                if error is None:
                    assert future.get(WAIT).offset == 0
            except KafkaError as raised:
                error = raised
        if error is not None:
            assert type(error) is for_code(code)
            assert not error.retriable
            assert producer.send(name, b"0").get(WAIT).offset == 0

    check_each(check, half(face, whole))


@pytest.mark.slow
@pytest.mark.parametrize("whole", [True, False], ids=["request", "topic"])
def test_each_answer_to_metadata_while_a_leader_has_moved(face, make, broker, topic, whole):
    load = Numbered(make(linger_ms=LONG), broker, topic)

    def check(code: int) -> None:
        with fail_metadata(broker, code, topic, whole=whole), broker.fail("Produce", [6]):
            load.send()
        load.goes_on()

    check_each(check, half(face, whole))


def fail_metadata(broker: Broker, code: int, name: str, *, whole: bool):
    """Have the next answer say this error, about everything or about one topic."""
    if whole:
        return broker.fail("Metadata", [code])
    left = [1]

    def say(exchange):
        for entry in exchange.reply.topics:
            if entry.name == name and left[0]:
                left[0] -= 1
                entry.error_code, entry.partitions = code, []

    return broker.intercept("Metadata", say)


# Versions


@pytest.mark.slow
def test_each_answer_to_api_versions_at_the_first_connection(face, make, broker, topic):
    sent = [0]

    def check(code: int) -> None:
        with broker.fail("ApiVersions", [code]):
            try:
                producer = make(bootstrap_timeout_ms=5000)
            except KafkaError as error:
                assert not error.retriable or isinstance(error, errors.NoBrokersAvailable)
                return
        assert producer.send(topic, b"x").get(WAIT).offset == sent[0]
        sent[0] += 1
        producer.close()

    check_each(check, half(face))


@pytest.mark.slow
def test_each_answer_to_api_versions_at_a_later_connection(face, make, broker, topic):
    load = Numbered(make(linger_ms=LONG), broker, topic)

    def check(code: int) -> None:
        with broker.fail("ApiVersions", [code]):
            broker.drop_connections()
            load.send()
        # Some of these say that who we are is wrong: until the next attempt to connect all fails with that.
        deadline = time.monotonic() + WAIT
        while not load.send(1)[0].succeeded():
            assert time.monotonic() < deadline
        load.goes_on()

    check_each(check, half(face))
