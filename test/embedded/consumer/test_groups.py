"""The consumer as a member: what it commits, when, and what its listener may do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from typing import Any

import pytest

from kafka._runtime.network_thread import complete
from kafka.broker import Broker
from kafka.consumer import AsyncConsumerRebalanceListener, ConsumerRebalanceListener, KafkaConsumer
from kafka.errors import AbortableTransactionError, WakeupError
from kafka.producer import KafkaProducer
from kafka.structs import OffsetAndMetadata, TopicPartition

from .conftest import MakeConsumer
from .reading import TIMEOUT, fill, read, tp

FACES = "both"

GROUP: dict[str, Any] = {"group_id": "readers", "heartbeat_interval_ms": 100}


pytestmark = pytest.mark.kafka_broker(
    nodes=2,
    topics={"events": 4},
    configs={"group.initial.rebalance.delay.ms": 0, "group.min.session.timeout.ms": 100},
)


def settle(*consumers: KafkaConsumer) -> list[Any]:
    """Poll all until each has its share; what they read meanwhile."""
    found = []
    deadline = time.monotonic() + TIMEOUT
    share = 4 // len(consumers)
    while any(len(consumer.assignment()) != share for consumer in consumers):
        assert time.monotonic() < deadline, [consumer.health()["group"] for consumer in consumers]
        for consumer in consumers:
            for records in consumer.poll(timeout_ms=20).values():
                found += records
    return found


def test_the_next_member_continues_where_the_last_one_was_closed(broker: Broker, make_consumer: MakeConsumer) -> None:
    fill(broker, 100)
    first = make_consumer("events", **GROUP, max_poll_records=30)
    assert [record.offset for record in read(first, 30)] == list(range(30))
    first.close()
    second = make_consumer("events", **GROUP)
    assert [record.offset for record in read(second, 70)] == list(range(30, 100))


def test_an_iteration_commits_what_was_handed_out_and_no_more(broker: Broker, make_consumer: MakeConsumer) -> None:
    fill(broker, 100)
    consumer = make_consumer("events", **GROUP)
    for record in consumer:
        if record.offset == 41:
            break
    consumer.close()
    second = make_consumer("events", **GROUP)
    assert second.committed(tp()) == 42
    assert next(second).offset == 42


def test_without_auto_commit_nothing_is_committed(broker: Broker, make_consumer: MakeConsumer) -> None:
    fill(broker, 10)
    consumer = make_consumer("events", **GROUP, enable_auto_commit=False)
    read(consumer, 10)
    assert consumer.committed(tp()) is None
    consumer.commit({tp(): OffsetAndMetadata(4, "note")})
    assert consumer.committed(tp(), metadata=True) == OffsetAndMetadata(4, "note", -1)
    consumer.seek_to_committed()
    assert consumer.position(tp()) == 4
    consumer.close()
    assert make_consumer(**GROUP).committed([tp()]) == {tp(): OffsetAndMetadata(4, "note", -1)}


def test_commit_async_calls_back_in_a_later_poll(broker: Broker, make_consumer: MakeConsumer) -> None:
    fill(broker, 10)
    consumer = make_consumer("events", **GROUP, enable_auto_commit=False)
    read(consumer, 10)
    calls: list[Any] = []
    future = consumer.commit_async(callback=lambda offsets, outcome: calls.append((offsets, outcome)))
    deadline = time.monotonic() + TIMEOUT
    while not calls and time.monotonic() < deadline:
        consumer.poll(timeout_ms=20)
    assert future.succeeded()
    assert calls[0][0][tp()].offset == 10


@pytest.mark.one_face  # asyncio's stop() and unsubscribe() log what user code raises
@pytest.mark.parametrize("how", ["close", "unsubscribe"])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_member_leaves_whatever_the_callback_of_a_commit_raises(
    broker: Broker, make_consumer: MakeConsumer, how: str, error: type[BaseException]
) -> None:
    def raises(_offsets: Any, _outcome: Any) -> None:
        raise error("of the application")

    fill(broker, 10)
    listener = Bookkeeper(commits=False)
    consumer = make_consumer(**GROUP, enable_auto_commit=False)
    consumer.subscribe(["events"], listener=listener)
    settle(consumer)
    consumer.commit_async({tp(): OffsetAndMetadata(3)}, callback=raises)
    with pytest.raises(error, match="of the application"):
        getattr(consumer, how)()
    assert not broker.group_members("readers")
    assert len(listener.revoked) == 4
    if how == "unsubscribe":
        assert consumer.subscription() is None
        consumer.subscribe(["events"])
        settle(consumer)


def test_a_notification_that_comes_while_the_last_one_is_served_is_not_lost(
    broker: Broker, make_consumer: MakeConsumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    consumer = make_consumer("events", **GROUP)
    settle(consumer)
    core = consumer._core
    assert core is not None
    group: Any = core.group

    async def nothing() -> None:
        pass

    def notified(_self: object) -> bool:
        group.set_due()  # by the network thread
        return False

    monkeypatch.setattr(group, "_serve", nothing)
    monkeypatch.setattr(type(group), "has_work", property(notified))
    complete(group.serve())
    monkeypatch.undo()
    assert group.due


class Bookkeeper(ConsumerRebalanceListener):
    def __init__(self, *, commits: bool = True) -> None:
        self.consumer: Any = None
        self.commits = commits
        self.revoked: set[TopicPartition] = set()

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        for partition in assigned if self.commits else ():
            if self.consumer.committed(partition) is None:
                self.consumer.seek(partition, 10)

    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        self.revoked |= set(revoked)
        if self.commits:
            self.consumer.commit()


def test_a_listener_may_commit_and_seek(broker: Broker, make_consumer: MakeConsumer) -> None:
    for partition in range(4):
        fill(broker, 20, partition)

    listeners = [Bookkeeper(), Bookkeeper()]
    consumers = []
    records = []
    for listener in listeners:
        listener.consumer = make_consumer(**GROUP, enable_auto_commit=False, max_poll_records=3)
        listener.consumer.subscribe(["events"], listener=listener)
        consumers.append(listener.consumer)
        records += settle(*consumers)
    deadline = time.monotonic() + TIMEOUT
    while len(records) < 40 and time.monotonic() < deadline:
        for consumer in consumers:
            for rows in consumer.poll(timeout_ms=20).values():
                records += rows
    places = sorted((record.partition, record.offset) for record in records)
    assert places == [(partition, offset) for partition in range(4) for offset in range(10, 20)]
    assert listeners[0].revoked
    assert consumers[0].group_metadata().group_id == "readers"


class Diary(AsyncConsumerRebalanceListener):
    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ended: list[str] = []

    async def note(self, what: str, partitions: Collection[TopicPartition]) -> None:
        self.begun.append(f"{what} {len(partitions)}")
        await asyncio.sleep(0.01)
        self.ended.append(f"{what} {len(partitions)}")

    async def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        await self.note("assigned", assigned)

    async def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        await self.note("revoked", revoked)


def test_the_coroutine_functions_of_a_listener_run_to_their_end(broker: Broker, make_consumer: MakeConsumer) -> None:
    fill(broker, 1)
    diary = Diary()
    consumer = make_consumer(**GROUP)
    consumer.subscribe(["events"], listener=diary)
    read(consumer, 1)  # no record is returned before the listener has ended
    consumer.unsubscribe()
    deadline = time.monotonic() + TIMEOUT
    while len(diary.ended) < 3 and time.monotonic() < deadline:  # asyncio's unsubscribe() does not wait
        time.sleep(0.01)
    assert diary.ended == diary.begun == ["revoked 0", "assigned 4", "revoked 4"]


@pytest.mark.parametrize(
    "options",
    [{"heartbeat_interval_ms": 50}, {"group_protocol": "consumer"}],
    ids=["classic", "consumer"],
)
def test_records_of_a_removed_member_cannot_be_committed_in_a_transaction(
    broker: Broker, make_consumer: MakeConsumer, options: dict[str, Any]
) -> None:
    """Another has processed it meanwhile. Offsets that nobody signs would be taken, and the records be there twice."""
    fill(broker, 10)
    options = {"group_id": "copiers", "enable_auto_commit": False, **options}
    session = {} if "group_protocol" in options else {"session_timeout_ms": 250}
    stuck = make_consumer("events", **options, **session, max_poll_interval_ms=300)
    assert len(read(stuck, 10)) == 10
    member = stuck.group_metadata()
    deadline = time.monotonic() + TIMEOUT
    while stuck.health()["group"]["generation"] >= 0:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    other = make_consumer("events", **options)
    read(other, 10)
    with KafkaProducer(
        bootstrap_servers=broker.bootstrap_servers, transactional_id="copier", enable_idempotence=True
    ) as producer:
        producer.init_transactions()
        with producer.transaction():
            producer.send_offsets_to_transaction({tp(0): 10}, other.group_metadata())
        assert stuck.group_metadata()[:3] == member[:3]
        with pytest.raises(AbortableTransactionError), producer.transaction():
            producer.send_offsets_to_transaction({tp(0): 5}, stuck.group_metadata())
        assert other.committed(tp(0)) == 10


def test_partitions_assigned_by_hand_begin_at_the_committed_offset(broker: Broker, make_consumer: MakeConsumer) -> None:
    fill(broker, 10)
    first = make_consumer(**GROUP)
    first.assign([tp()])
    read(first, 5, max_records=5)
    first.commit()
    first.close()
    second = make_consumer(**GROUP)
    second.assign([tp()])
    assert second.position(tp()) == 5


def test_a_slow_iteration_commits_at_its_interval_and_lets_others_join(
    broker: Broker, make_consumer: MakeConsumer
) -> None:
    for partition in range(4):
        fill(broker, 100, partition)
    slow = make_consumer("events", **GROUP, auto_commit_interval_ms=50)
    watcher = make_consumer(**GROUP, enable_auto_commit=False)
    record = next(slow)
    start = (record.topic, record.partition)
    deadline = time.monotonic() + TIMEOUT
    while not watcher.committed(TopicPartition(*start)):
        assert time.monotonic() < deadline
        next(slow)
    other = make_consumer("events", **GROUP)
    while len(other.assignment()) != 2 or len(slow.assignment()) != 2:
        assert time.monotonic() < deadline
        other.poll(timeout_ms=20)
        next(slow)


def test_wakeup_ends_an_iteration_between_two_records(broker: Broker, make_consumer: MakeConsumer) -> None:
    fill(broker, 100)
    consumer = make_consumer("events")
    assert next(consumer).offset == 0
    consumer.wakeup()
    with pytest.raises(WakeupError):
        next(consumer)
    assert [next(consumer).offset for _ in range(99)] == list(range(1, 100))
