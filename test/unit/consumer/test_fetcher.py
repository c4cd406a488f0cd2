"""What fetching reports to the application: an error as long as it lasts, and the memory in use exactly."""

from __future__ import annotations

from collections import deque
from typing import Any, cast

import pytest

from kafka.consumer.fetch_response import FetchTarget
from kafka.consumer.partition_state import AssignedPartition, CompletedFetch, Cursor
from kafka.errors import ClusterAuthorizationFailedError, UnknownError
from kafka.structs import TopicPartition
from test.unit.consumer.scripted import T0, T1, Cluster, MakeConsumer, read, rest

REFUSED = ClusterAuthorizationFailedError.errno


def poll_until_refused(consumer: Any) -> None:
    with pytest.raises(ClusterAuthorizationFailedError):
        read(consumer, 1)


def test_an_error_whose_cause_is_gone_is_not_raised(cluster: Cluster, make: MakeConsumer) -> None:
    """The application was busy while fetches were refused, and by now they are answered."""
    cluster.fill(10)
    cluster.script["Fetch"] = deque([REFUSED] * 30)
    consumer = make(retry_backoff_ms=50, retry_backoff_max_ms=100)
    consumer.assign([T0])
    consumer.seek(T0, 0)
    rest(consumer, 10)
    assert not cluster.script["Fetch"]
    assert len(read(consumer, 10)) == 10


def test_an_error_that_lasts_is_raised_once_for_all_its_attempts(cluster: Cluster, make: MakeConsumer) -> None:
    cluster.script["Fetch"] = deque([REFUSED] * 1000)
    consumer = make(retry_backoff_ms=50, retry_backoff_max_ms=100)
    consumer.assign([T0])
    consumer.seek(T0, 0)
    rest(consumer, 10)
    assert len(cluster.asked("Fetch")) > 20
    poll_until_refused(consumer)
    assert consumer.poll() == {}  # until the next attempt
    poll_until_refused(consumer)


def test_a_transaction_that_is_open_from_the_first_record_on_leaves_no_lag(
    cluster: Cluster, make: MakeConsumer
) -> None:
    cluster.fill(10)
    cluster.stable_offset = 0
    consumer = make(isolation_level="read_committed")
    consumer.assign([T0])
    read(consumer, 10)
    assert consumer._core.subscription.get(T0).stable_offset == 0


def test_a_partition_that_a_reply_leaves_out_is_not_asked_for_without_end(cluster: Cluster, make: MakeConsumer) -> None:
    cluster.leaves_out = {T1}
    consumer = make(fetch_max_wait_ms=20_000)
    consumer.assign([T0, T1])
    consumer.pause(T1)
    consumer.poll(timeout_ms=5000)
    assert len(cluster.asked("Fetch")) == 1  # the broker holds it back
    consumer.resume(T1)
    rest(consumer, 5)
    assert len(cluster.asked("Fetch")) == 2


def test_a_reply_that_is_drained_while_memory_is_counted_frees_its_memory_once(
    cluster: Cluster, make: MakeConsumer
) -> None:
    """The loop counts what is held just when the application's thread adds to what it has drained."""
    cluster.fill(100)
    memory = 4096
    consumer = make(fetch_buffer_memory=memory)
    consumer.assign([T0])
    consumer.seek(T0, 0)
    read(consumer, 100)
    core = consumer._core
    assert core is not None
    fetcher, cursor = core.fetcher, core.subscription.get(T0).cursor

    class Reply:
        count = 1
        counted = False
        reader = None

        @property
        def size(self) -> int:
            if not self.counted:
                self.counted = True
                assert fetcher._room() < 0
            return 2 * memory

    reply = cast("CompletedFetch", Reply())
    cursor.current = reply
    fetcher._received += 2 * memory
    core.fetcher.drained(cursor, reply)
    assert fetcher._room() == memory


def test_a_consumer_whose_application_does_not_poll_asks_for_nothing(cluster: Cluster, make: MakeConsumer) -> None:
    consumer = make(fetch_max_wait_ms=500)
    consumer.assign([T0])
    consumer.seek(T0, 0)
    assert consumer.poll(timeout_ms=2000) == {}
    assert 4 <= len(cluster.asked("Fetch")) <= 5  # a call that waits asks twice a second
    rest(consumer, 1)  # the last one is answered
    core = consumer._core
    assert core is not None
    asked, turns = len(cluster.asked("Fetch")), core.loop.turns
    rest(consumer, 3600)
    assert len(cluster.asked("Fetch")) == asked
    assert core.loop.turns - turns <= 8 * 3600 / 300, "metadata each five minutes, and nothing else"
    cluster.fill(3)
    assert len(read(consumer, 3)) == 3


def test_records_are_fetched_ahead_until_there_are_as_many_as_a_poll_returns(
    cluster: Cluster, make: MakeConsumer
) -> None:
    consumer = make(fetch_max_wait_ms=20, max_poll_records=20)
    consumer.assign([T0])
    consumer.seek(T0, 0)
    cluster.fill(1)
    assert len(read(consumer, 1)) == 1
    for _ in range(50):  # one record after the other, while the application is busy
        cluster.fill(1)
        rest(consumer, 0.02)
    buffered = len(consumer.poll(timeout_ms=0)[T0])
    assert 19 <= buffered <= 20
    asked = len(cluster.asked("Fetch"))
    assert 20 <= asked <= 23
    assert len(read(consumer, 50 - buffered)) == 50 - buffered  # the rest comes in one piece
    assert len(cluster.asked("Fetch")) - asked <= 3


def test_each_poll_after_a_rest_asks_again(cluster: Cluster, make: MakeConsumer) -> None:
    consumer = make(fetch_max_wait_ms=500)
    consumer.assign([T0])
    consumer.seek(T0, 0)
    for number in range(10):
        rest(consumer, 5)
        cluster.fill(1)
        assert consumer.poll(timeout_ms=0) == {}
        rest(consumer, 1)
        assert [record.offset for record in consumer.poll(timeout_ms=0)[T0]] == [number]


# A partition is with a connection, a candidate, or waits for what ends that it cannot be fetched.


def asked_for(request: Any) -> dict[int, int]:
    """The partitions that a request names, with their offsets."""
    return {part.partition: part.fetch_offset for topic in request.topics for part in topic.partitions}


def forgotten(request: Any) -> set[int]:
    return {number for topic in request.forgotten_topics_data for number in topic.partitions}


def long_polls(cluster: Cluster) -> list[Any]:
    """The requests of the main connection, which have a session."""
    return [request for request in cluster.asked("Fetch") if request.max_wait_ms]


@pytest.fixture
def waiting(cluster: Cluster, make: MakeConsumer) -> Any:
    """A consumer of two partitions whose request is held back at the broker: all has been read."""
    cluster.fill(3)
    cluster.fill(3, T1)
    consumer = make(fetch_max_wait_ms=500)
    consumer.assign([T0, T1])
    assert len(read(consumer, 6)) == 6
    assert consumer.poll(timeout_ms=0) == {}
    rest(consumer, 0.1)
    return consumer


def test_a_partition_that_is_paused_while_a_request_is_held_back_is_not_in_the_next(
    cluster: Cluster, waiting: Any
) -> None:
    waiting.pause(T1)
    cluster.fill(2)
    before = len(long_polls(cluster))
    assert [(record.partition, record.offset) for record in read(waiting, 2)] == [(0, 3), (0, 4)]
    waiting.poll(timeout_ms=2000)
    after = long_polls(cluster)[before:]
    assert set().union(*map(forgotten, after)) == {1}
    assert 1 not in set().union(*map(asked_for, after))
    cluster.fill(1, T1)
    assert waiting.poll(timeout_ms=2000) == {}
    waiting.resume(T1)
    assert [(record.partition, record.offset) for record in read(waiting, 1)] == [(1, 3)]


def test_a_partition_that_is_paused_while_no_request_is_under_way_is_not_in_the_next(
    cluster: Cluster, waiting: Any
) -> None:
    rest(waiting, 5)  # the consumer asks for nothing until the application polls
    waiting.pause(T1)
    before = len(long_polls(cluster))
    assert waiting.poll(timeout_ms=2000) == {}
    after = long_polls(cluster)[before:]
    assert forgotten(after[0]) == {1}
    waiting.resume(T1)
    cluster.fill(1, T1)
    assert len(read(waiting, 1)) == 1


def test_a_partition_that_the_side_connection_found_empty_is_in_the_next_request_of_the_main_one(
    cluster: Cluster, make: MakeConsumer
) -> None:
    consumer = make(fetch_max_wait_ms=500)
    consumer.assign([T0])
    consumer.seek(T0, 0)
    consumer.poll(timeout_ms=100)  # the main connection has a request under way
    consumer.assign([T0, T1])
    consumer.seek(T1, 0)
    consumer.poll(timeout_ms=100)
    assert [(request.max_wait_ms, asked_for(request)) for request in cluster.asked("Fetch")] == [
        (500, {0: 0}),
        (0, {1: 0}),
    ]
    cluster.fill(1)
    assert len(read(consumer, 1)) == 1
    assert asked_for(long_polls(cluster)[1]) == {0: 1, 1: 0}
    cluster.fill(1, T1)
    assert len(read(consumer, 1)) == 1


@pytest.mark.parametrize("seconds", [0, 5], ids=["under way", "at rest"])
def test_a_position_that_is_moved_is_asked_for_at_its_new_place(cluster: Cluster, waiting: Any, seconds: float) -> None:
    rest(waiting, seconds)
    waiting.seek(T1, 1)
    assert [(record.partition, record.offset) for record in read(waiting, 2)] == [(1, 1), (1, 2)]
    cluster.fill(1, T1)
    assert [(record.partition, record.offset) for record in read(waiting, 1)] == [(1, 3)]
    cluster.fill(1)
    assert [(record.partition, record.offset) for record in read(waiting, 1)] == [(0, 3)]


@pytest.mark.parametrize("seconds", [0, 5], ids=["under way", "at rest"])
def test_a_partition_that_was_taken_away_and_given_again_is_read(
    cluster: Cluster, waiting: Any, seconds: float
) -> None:
    rest(waiting, seconds)
    waiting.assign([T0])
    waiting.assign([T0, T1])
    waiting.seek(T1, 2)
    cluster.fill(1)
    assert sorted((record.partition, record.offset) for record in read(waiting, 2)) == [(0, 3), (1, 2)]


def test_a_partition_whose_buffer_was_full_is_asked_for_when_there_is_room(
    cluster: Cluster, make: MakeConsumer
) -> None:
    cluster.fill(500)
    consumer = make(max_partition_fetch_bytes=1, max_poll_records=100)  # so a response makes it full
    consumer.assign([T0])
    read(consumer, 500)
    cluster.fill(500)
    assert [record.offset for record in read(consumer, 500)] == list(range(500, 1000))


def test_after_an_error_of_a_partition_it_is_asked_for_again(cluster: Cluster, waiting: Any) -> None:
    cluster.errors = {T1: UnknownError.errno}
    cluster.fill(1, T1)
    before = len(cluster.asked("Fetch"))
    assert waiting.poll(timeout_ms=3000) == {}
    assert len(cluster.asked("Fetch")) - before < 25  # it pauses
    assert waiting.health()["partitions"]["t-1"]["problem"]
    cluster.fill(1)
    assert [record.partition for record in read(waiting, 1)] == [0]
    cluster.errors = {}
    assert [(record.partition, record.offset) for record in read(waiting, 1)] == [(1, 3)]


@pytest.mark.parametrize("calls", ["none", "pause, resume", "seek"])
def test_a_request_after_a_change_of_one_partition_does_not_look_at_the_others(
    cluster: Cluster, make: MakeConsumer, monkeypatch: pytest.MonkeyPatch, calls: str
) -> None:
    cluster.topics["t"] = 100
    consumer = make(fetch_max_wait_ms=20_000)
    consumer.assign([TopicPartition("t", number) for number in range(100)])
    cluster.fill(1)
    read(consumer, 1)
    looked_at: list[TopicPartition] = []

    class Counted(FetchTarget):
        __slots__ = ()

        def __init__(self, state: AssignedPartition, cursor: Cursor | None = None) -> None:
            looked_at.append(state.topic_partition)
            super().__init__(state, cursor)

    monkeypatch.setattr("kafka.consumer.fetcher.FetchTarget", Counted)
    for _ in range(10):
        before = len(long_polls(cluster))
        rest(consumer, 21)  # the metadata is not refreshed meanwhile
        cluster.fill(1)
        if calls == "seek":
            consumer.seek(T0, consumer.position(T0))
        elif calls == "pause, resume":
            consumer.pause(T0)
            rest(consumer, 1)
            consumer.resume(T0)
        read(consumer, 1)
        requests = long_polls(cluster)[before:]
        assert all(set(asked_for(request)) <= {0} and forgotten(request) <= {0} for request in requests)
    assert set(looked_at) == {T0}
