"""Where partitions start, and who is asked for it."""

from __future__ import annotations

import logging
from collections import deque
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from kafka.consumer.partition_state import EARLIEST, Cursor
from kafka.consumer.positions import Positions
from kafka.errors import KafkaTimeoutError, NoOffsetForPartitionError, TopicAuthorizationFailedError
from kafka.structs import OffsetAndTimestamp
from test.unit.consumer.scripted import SILENCE, T0, T1, Cluster, MakeConsumer, read


def test_a_partition_starts_at_the_committed_offset(cluster: Cluster, make: MakeConsumer) -> None:
    cluster.fill(10)
    cluster.committed[T0] = 6
    consumer = make(group_id="g")
    consumer.assign([T0])
    assert consumer.position(T0) == 6
    assert not cluster.asked("ListOffsets")


@pytest.mark.parametrize(("policy", "position"), [("earliest", 0), ("latest", 10)])
def test_without_a_committed_offset_auto_offset_reset_decides(
    cluster: Cluster, make: MakeConsumer, policy: str, position: int
) -> None:
    cluster.fill(10)
    consumer = make(group_id="g", auto_offset_reset=policy)
    consumer.assign([T0])
    assert consumer.position(T0) == position


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (
            {"group_id": "g", "auto_offset_reset": "latest"},
            (
                "Reading starts at the end, with records that are written from now on, as the group has no committed "
                "offsets of them and auto_offset_reset is 'latest': t-1"
            ),
        ),
        (
            {"auto_offset_reset": "earliest"},
            "Reading starts at the beginning, as there is no group_id and auto_offset_reset is 'earliest': t-0, t-1",
        ),
    ],
)
def test_the_log_says_once_where_reading_starts_and_why(
    cluster: Cluster, make: MakeConsumer, options: dict[str, str], line: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "kafka.consumer")
    cluster.committed[T0] = 6
    consumer = make("t", **options)
    consumer.poll(timeout_ms=1000)
    consumer.poll(timeout_ms=1000)
    lines = [record.getMessage() for record in caplog.records]
    assert lines == (["Reading starts at committed offsets: t-0 at 6"] if "group_id" in options else []) + [line]


@pytest.mark.parametrize("options", [{}, {"group_id": "g"}])
def test_a_consumer_that_never_polled_is_not_healthy(
    cluster: Cluster, make: MakeConsumer, options: dict[str, str]
) -> None:
    consumer = make(**options)
    assert consumer.health()["ok"]
    consumer.subscribe(["t"])
    health = consumer.health()
    assert not health["ok"]
    assert health["problems"] == ["the application has not called poll() since it chose topics or partitions"]
    consumer.poll(timeout_ms=1000)
    assert consumer.health()["ok"]


def test_with_the_policy_none_poll_raises_until_the_application_seeks(cluster: Cluster, make: MakeConsumer) -> None:
    cluster.fill(10)
    consumer = make(group_id="g", auto_offset_reset="none")
    consumer.assign([T0])
    with pytest.raises(NoOffsetForPartitionError, match=r"^there is no committed offset.*seek first") as caught:
        consumer.poll(timeout_ms=1000)
    consumer.seek(caught.value.args[0], 8)  # programs for kafka-python and aiokafka have the partition from there
    assert [record.offset for record in read(consumer, 2)] == [8, 9]


def test_positions_wait_for_the_first_metadata_without_an_error(
    cluster: Cluster, make: MakeConsumer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "kafka.consumer.positions")
    cluster.fill(1)
    consumer = make()
    consumer.assign([T0, T1])
    assert read(consumer, 1)
    assert "is not known yet" not in caplog.text


def test_a_retriable_error_is_retried_with_backoff(cluster: Cluster, make: MakeConsumer) -> None:
    cluster.script["ListOffsets"] = deque([6, 6, 6])
    consumer = make(retry_backoff_ms=100, retry_backoff_max_ms=100)
    consumer.assign([T0])
    assert consumer.position(T0, timeout_ms=10_000) == 0
    times = cluster.times["ListOffsets"]
    assert len(times) == 4
    assert all(later - earlier > 0.07 for earlier, later in pairwise(times))


def test_another_error_is_raised_once_in_place_of_records(cluster: Cluster, make: MakeConsumer) -> None:
    cluster.script["ListOffsets"] = deque([TopicAuthorizationFailedError.errno])
    consumer = make()
    consumer.assign([T0])
    with pytest.raises(TopicAuthorizationFailedError):
        consumer.poll(timeout_ms=1000)
    assert consumer.position(T0) == 0


def test_a_group_that_does_not_answer_does_not_delay_other_partitions(cluster: Cluster, make: MakeConsumer) -> None:
    cluster.fill(3, T1)
    cluster.script["OffsetFetch"] = deque([SILENCE] * 100)
    consumer = make(group_id="g")
    consumer.assign([T0, T1])
    consumer.seek_to_beginning(T1)
    assert len(read(consumer, 3)) == 3
    with pytest.raises(KafkaTimeoutError, match="the position of t-0"):
        consumer.position(T0, timeout_ms=2000)
    assert "looked up" in consumer.health()["partitions"]["t-0"]["problem"]


def test_a_seek_wins_over_a_look_up_that_is_under_way(cluster: Cluster, make: MakeConsumer) -> None:
    cluster.fill(10)
    cluster.script["ListOffsets"] = deque([SILENCE])
    consumer = make()
    consumer.assign([T0])
    consumer.poll(timeout_ms=100)
    consumer.seek(T0, 7)
    assert [record.offset for record in read(consumer, 3)] == [7, 8, 9]


def test_the_position_of_the_new_leader_stays_when_the_old_one_answers_late() -> None:
    cursor = Cursor(reset=EARLIEST)

    async def ask(_leader: int, _wanted: object, _deadline: float) -> object:
        cursor.place(5)  # the new leader was asked meanwhile
        return {T0: OffsetAndTimestamp(3, -1, -1)}, {}

    nothing: Any = None
    lookup: Any = SimpleNamespace(ask=ask)
    positions = Positions(nothing, nothing, lookup, "earliest", lambda: None, lambda _state: None)
    answer = positions._from_leader(1, {T0: (nothing, cursor)}, 0.0)
    with pytest.raises(StopIteration) as ended:
        answer.send(None)
    assert ended.value.value == {}
    assert cursor.position == 5
