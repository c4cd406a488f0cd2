"""What fetching reports to the application: an error as long as it lasts, and the memory in use exactly."""

from __future__ import annotations

from collections import deque
from typing import Any, cast

import pytest

from kafka.consumer.partition_state import CompletedFetch
from kafka.errors import ClusterAuthorizationFailedError
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
    core.collector._drained(cursor, reply)
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
