"""What users tell of consumers that stopped without a word, each as a test: they go on, or say why they cannot."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, suppress
from typing import Any

import pytest

from kafka.broker import Broker
from kafka.broker.faults import CLOSE
from kafka.consumer import ConsumerRebalanceListener, KafkaConsumer
from kafka.errors import (
    CommitFailedError,
    GroupAuthorizationFailedError,
    InvalidCommitOffsetSizeError,
    KafkaError,
    OffsetMetadataTooLargeError,
    RetriableError,
    TopicAuthorizationFailedError,
    UnknownError,
    for_code,
)
from kafka.structs import OffsetAndMetadata, TopicPartition
from test.embedded.sessions import SESSION, let_sessions_pass

FACES = "both"


PROTOCOLS = ["classic", "consumer"]
CONFIGS = {
    "group.initial.rebalance.delay.ms": 0,
    "group.consumer.heartbeat.interval.ms": 50,
    "group.consumer.session.timeout.ms": SESSION * 1000,
}
QUICK: dict[str, Any] = {"retry_backoff_ms": 20, "reconnect_backoff_ms": 20, "metadata_max_age_ms": 300}
ALL = [TopicPartition("t", number) for number in range(4)]
PATIENCE = 60.0  # for what comes at once, if the machine is not busy
Make = Callable[..., KafkaConsumer]


pytestmark = [pytest.mark.slow, pytest.mark.kafka_broker(nodes=3, topics={"t": 4}, configs=CONFIGS)]


@pytest.fixture
def make(broker: Broker) -> Iterator[Make]:
    """Makes members of one group."""
    with ExitStack() as opened:

        def member(protocol: str, *, listener: Any = None, topics: Collection[str] = ("t",), **more: Any) -> Any:
            chosen: dict[str, Any] = {"group_protocol": protocol, "group_id": "g", **QUICK}
            if protocol == "classic":
                chosen |= {"session_timeout_ms": SESSION * 1000, "heartbeat_interval_ms": 50}
            consumer = KafkaConsumer(
                bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest", **{**chosen, **more}
            )
            opened.callback(consumer.close, timeout_ms=3000)
            consumer.subscribe(topics, listener=listener)
            return consumer

        yield member


def write(broker: Broker, count: int = 1, topic: str = "t") -> None:
    """So many records to each partition."""
    for partition in ALL:
        for _ in range(count):
            broker.append(topic, b"x", partition=partition.partition)


def read(count: int, *consumers: KafkaConsumer) -> list[Any]:
    """Poll in turn until there are so many records."""
    found: list[Any] = []
    deadline = time.monotonic() + PATIENCE
    while len(found) < count:
        assert time.monotonic() < deadline, (len(found), [consumer.health() for consumer in consumers])
        for consumer in consumers:
            for records in consumer.poll(timeout_ms=20).values():
                found += records
    return found


def places(records: list[Any]) -> list[tuple[int, int]]:
    return sorted((record.partition, record.offset) for record in records)


def until(condition: Callable[[], bool], *consumers: KafkaConsumer) -> list[Any]:
    """Poll in turn until a condition holds; return the records that came meanwhile."""
    found: list[Any] = []
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, [consumer.health() for consumer in consumers]
        for consumer in consumers:
            for records in consumer.poll(timeout_ms=10).values():
                found += records
    return found


def coordinator(consumer: KafkaConsumer) -> int:
    """The node that coordinates: a busy machine may be late with a heartbeat's reply, and it is looked for again."""
    seen: list[Any] = [None]

    def known() -> bool:
        seen.append(consumer.health()["group"]["coordinator"])
        return seen[-1] is not None

    until(known, consumer)
    return int(seen[-1])


def generation(consumer: KafkaConsumer) -> int:
    return int(consumer.health()["group"]["generation"])


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_coordinator_moves_and_dies_and_the_group_stays(broker: Broker, make: Make, protocol: str) -> None:
    consumer = make(protocol)
    write(broker)
    assert len(read(4, consumer)) == 4
    for _ in range(3):
        node = coordinator(consumer)
        broker.stop_node(node, crash=True)
        until(lambda node=node: consumer.health()["group"]["coordinator"] not in {None, node}, consumer)  # type: ignore[misc]
        consumer.commit()
        broker.start_node(node)
        broker.rehash_coordinators()
        write(broker)
        assert len(read(4, consumer)) == 4
        consumer.commit()
    assert {partition: found.offset for partition, found in consumer.committed(ALL).items() if found} == dict.fromkeys(
        ALL, 4
    )


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_processing_for_longer_than_the_session_costs_nothing(broker: Broker, make: Make, protocol: str) -> None:
    consumer = make(protocol, client_id="busy")
    write(broker)
    read(4, consumer)
    before = generation(consumer)
    let_sessions_pass(broker, "busy")  # in which the application does not come by
    consumer.commit()
    assert generation(consumer) == before


class Blocker(ConsumerRebalanceListener):
    def __init__(self, block: Callable[[], None] = lambda: None) -> None:
        self.block = block
        self.lost: list[Any] = []

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        self.block()

    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        if revoked:  # before it joins, there is no session
            self.block()

    def on_partitions_lost(self, lost: Collection[TopicPartition]) -> None:
        self.lost += lost


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_listener_that_blocks_for_longer_than_the_session_loses_nothing(
    broker: Broker, make: Make, protocol: str
) -> None:
    first, second = (Blocker(lambda name=name: let_sessions_pass(broker, name)) for name in ("one", "two"))  # type: ignore[misc]
    one = make(protocol, listener=first, client_id="one")
    until(lambda: len(one.assignment()) == 4, one)
    two = make(protocol, listener=second, client_id="two")
    until(lambda: len(one.assignment()) == len(two.assignment()) == 2, one, two)
    first.block = second.block = lambda: None
    assert not first.lost
    assert not second.lost
    write(broker)
    assert len(read(4, one, two)) == 4


@pytest.mark.one_face  # asyncio gives partitions up in the background, before it is too late
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_member_that_polls_too_late_loses_its_partitions_and_gets_some_again(
    broker: Broker, make: Make, protocol: str
) -> None:
    listener = Blocker()
    slow = make(protocol, listener=listener, max_poll_interval_ms=600, enable_auto_commit=False)
    write(broker)
    read(4, slow)
    other = make(protocol)
    # While the slow one does not poll. On a busy machine the poll that ends the rebalance returns records too.
    early = until(lambda: len(other.assignment()) == 4, other)
    with pytest.raises(CommitFailedError):
        slow.commit()
    again = places(early + read(4 - len(early), other))
    assert again == [(number, 0) for number in range(4)]  # nothing of it had been committed
    until(lambda: len(slow.assignment()) == len(other.assignment()) == 2, slow, other)
    assert set(listener.lost) == set(ALL)
    write(broker)
    found: set[tuple[int, int]] = set()
    while len(found) < 4:  # what was read is read again if it comes by too late once more, for a busy machine
        found |= set(places(read(1, slow, other)))
    assert found == {(number, 1) for number in range(4)}


# What a broker can answer to a commit, from the code to what the application sees.
COMMIT_ERRORS: dict[int, type[KafkaError] | None] = {
    **dict.fromkeys([3, 7, 14, 15, 16], None),  # they pass, and so does the commit
    12: OffsetMetadataTooLargeError,
    28: InvalidCommitOffsetSizeError,
    29: TopicAuthorizationFailedError,
    30: GroupAuthorizationFailedError,
    -1: UnknownError,
}
LOST_ERRORS = {"classic": [22, 25], "consumer": [25, 110]}


def check_commit(consumer: KafkaConsumer, wanted: type[KafkaError] | None) -> None:
    if wanted is None:
        consumer.commit()
    else:
        with pytest.raises(wanted):
            consumer.commit()


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("code", list(COMMIT_ERRORS))
def test_a_failed_commit_is_raised_and_the_consumer_continues(
    broker: Broker, make: Make, protocol: str, code: int
) -> None:
    consumer = make(protocol, enable_auto_commit=False)
    write(broker)
    read(4, consumer)
    broker.fail("OffsetCommit", [code])
    check_commit(consumer, COMMIT_ERRORS[code])
    write(broker)
    deadline = time.monotonic() + PATIENCE
    found: list[Any] = []
    while len(found) < 4 and time.monotonic() < deadline:
        with suppress(*([GroupAuthorizationFailedError] if code == 30 else [])):  # it reaches poll as well, once
            found += read(4 - len(found), consumer)
    consumer.commit()
    assert [offset.offset for offset in consumer.committed(ALL).values() if offset] == [2] * 4


@pytest.mark.parametrize(("protocol", "code"), [(kind, code) for kind in PROTOCOLS for code in LOST_ERRORS[kind]])
def test_a_commit_of_a_member_that_is_out_says_so_and_it_joins_again(
    broker: Broker, make: Make, protocol: str, code: int
) -> None:
    consumer = make(protocol, enable_auto_commit=False)
    write(broker)
    read(4, consumer)
    (name,) = broker.group_members("g")
    broker.fail("OffsetCommit", [code])
    if protocol == "consumer":  # there the heartbeat is told the same
        broker.fail("ConsumerGroupHeartbeat", [code])
    with pytest.raises(CommitFailedError):
        consumer.commit()
    if (protocol, code) == ("classic", 25):
        broker.expire_member("g", name)  # it comes under another name, and would wait for the session of this one
    assert len(read(4, consumer)) == 4  # it begins again where the group committed
    consumer.commit()
    assert [offset.offset for offset in consumer.committed(ALL).values() if offset] == [1] * 4


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("code", [7, 14, 16, -1])
def test_failed_automatic_commits_do_not_stop_a_consumer(broker: Broker, make: Make, protocol: str, code: int) -> None:
    consumer = make(protocol, auto_commit_interval_ms=20)
    order = broker.fail("OffsetCommit", [code], times=3)
    write(broker, 5)
    read(20, consumer)
    until(lambda: not order.errors, consumer)
    until(lambda: all(offset and offset.offset == 5 for offset in consumer.committed(ALL).values()), consumer)
    assert issubclass(for_code(code), RetriableError) == (code != -1)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_topic_that_is_deleted_and_made_again_is_read_and_the_others_all_the_time(
    broker: Broker, make: Make, protocol: str
) -> None:
    broker.create_topic("u", 4)
    consumer = make(protocol, topics=["t", "u"], allow_auto_create_topics=False)
    write(broker, topic="u")
    read(4, consumer)
    broker.delete_topic("u")
    write(broker)
    assert {record.topic for record in read(4, consumer)} == {"t"}
    until(lambda: {partition.topic for partition in consumer.assignment()} == {"t"}, consumer)
    broker.create_topic("u", 4)
    write(broker, topic="u")
    assert {record.topic for record in read(4, consumer)} == {"u"}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_members_that_an_administrator_removes_come_back(broker: Broker, make: Make, protocol: str) -> None:
    one, two = make(protocol), make(protocol)
    until(lambda: len(one.assignment()) == len(two.assignment()) == 2, one, two)
    write(broker)
    read(4, one, two)
    for consumer in (one, two):
        consumer.commit()
    before = set(broker.group_members("g"))
    for name in before:
        broker.expire_member("g", name)
    write(broker)
    # What was read before it heard that it is out is read again: the commit of it was refused.
    found: list[Any] = []
    while {(number, 1) for number in range(4)} - set(places(found)):
        found += read(1, one, two)
    until(lambda: len(one.assignment()) == len(two.assignment()) == 2, one, two)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("api", "error"),
    [("Fetch", TopicAuthorizationFailedError), ("Heartbeat", GroupAuthorizationFailedError)],
)
def test_a_right_that_is_taken_away_is_raised_and_reading_continues_when_it_is_back(
    broker: Broker, make: Make, protocol: str, api: str, error: type[KafkaError]
) -> None:
    consumer = make(protocol, fetch_max_wait_ms=50)
    write(broker)
    read(4, consumer)
    consumer.commit()
    if api == "Heartbeat" and protocol == "consumer":
        api = "ConsumerGroupHeartbeat"

    def deny(exchange: Any) -> Any:
        if api == "Fetch":
            for topic in exchange.reply.responses:
                for data in topic.partitions:
                    data.error_code, data.records = 29, None
        else:
            exchange.reply = type(exchange.reply)(error_code=30)
        return exchange.reply

    denial = broker.intercept(api, deny)
    if api == "Fetch":
        write(broker, 2)
    with pytest.raises(error):
        read(1000, consumer)
    with pytest.raises(error):
        list(consumer)
    denial.remove()
    write(broker)
    ends = {partition: broker.offsets(*partition)[1] for partition in ALL}
    deadline = time.monotonic() + PATIENCE
    while {partition: consumer.position(partition) for partition in consumer.assignment()} != ends:
        assert time.monotonic() < deadline, consumer.health()
        with suppress(error):  # what was under way
            consumer.poll(timeout_ms=20)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("jump", [86_400.0, -86_400.0])
def test_a_clock_that_is_set_to_another_day_has_no_effect(
    broker: Broker, make: Make, protocol: str, jump: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    consumer = make(protocol, auto_commit_interval_ms=20)
    write(broker)
    read(4, consumer)
    before = generation(consumer)
    real, real_ns = time.time, time.time_ns
    monkeypatch.setattr(time, "time", lambda: real() + jump)
    monkeypatch.setattr(time, "time_ns", lambda: real_ns() + int(jump * 1e9))
    write(broker)
    assert len(read(4, consumer)) == 4
    until(lambda: all(offset and offset.offset == 2 for offset in consumer.committed(ALL).values()), consumer)
    assert generation(consumer) == before


@pytest.mark.breaks_invariant("commits", reason="the broker serves what it had got before it hung, after what followed")
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_broker_that_answers_nothing_for_longer_than_the_session_is_outlived(
    broker: Broker, make: Make, protocol: str
) -> None:
    one = make(protocol, request_timeout_ms=700)
    until(lambda: len(one.assignment()) == 4, one)
    write(broker)
    read(4, one)
    one.commit()
    two = make(protocol, request_timeout_ms=700)
    silence = broker.delay(None, SESSION + 1)
    deadline = time.monotonic() + 1.5  # two requests' time
    while time.monotonic() < deadline:
        one.poll(timeout_ms=20)
        two.poll(timeout_ms=20)
    silence.remove()
    broker.clock.advance(SESSION + 2)
    write(broker)
    assert set(places(read(4, one, two))) >= {(0, 1)}
    until(lambda: len(one.assignment()) == len(two.assignment()) == 2, one, two)
    assert one.commit({ALL[0]: OffsetAndMetadata(2)}) is None if ALL[0] in one.assignment() else True


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_member_whose_leave_request_is_lost_with_its_connection_leaves_over_another(
    broker: Broker, make: Make, protocol: str
) -> None:
    member = make(protocol)
    deadline = time.monotonic() + PATIENCE
    while not member.assignment():
        member.poll(100)
        assert time.monotonic() < deadline
    lost = []

    def lose(exchange: Any) -> Any:
        if lost or getattr(exchange.request, "member_epoch", -1) != -1:
            return None
        lost.append(exchange)
        return CLOSE

    broker.intercept("ConsumerGroupHeartbeat" if protocol == "consumer" else "LeaveGroup", lose, before=True)
    member.close()
    assert lost
    assert not broker.group_members("g")
