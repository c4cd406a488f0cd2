"""The two connections to a broker, and the check of a new leader's log."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from kafka.consumer.fetch_connection import check_new_leader, unchecked
from kafka.consumer.fetch_response import FetchTarget
from kafka.consumer.fetch_session import Wanted
from kafka.consumer.partition_state import AssignedPartition, Cursor
from kafka.errors import (
    LogTruncationError,
    NotLeaderForPartitionError,
    TopicAuthorizationFailedError,
    UnknownLeaderEpochError,
)
from kafka.protocol.offset import OffsetForLeaderEpochResponse
from kafka.protocol.registry import ApiKey
from kafka.structs import OffsetAndMetadata, TopicPartition
from test.unit.consumer.scripted import T0, T1, Cluster, MakeConsumer, read

EPOCHS = OffsetForLeaderEpochResponse


def test_the_main_connection_waits_at_the_broker_and_the_side_one_does_not(
    cluster: Cluster, make: MakeConsumer
) -> None:
    cluster.fill(1000)
    cluster.fill(5, T1)
    consumer = make(fetch_max_wait_ms=400)
    consumer.assign([T0, T1])
    consumer.pause(T0)
    assert len(read(consumer, 5)) == 5
    consumer.poll(timeout_ms=10)  # the main connection has a request at the broker for t-1
    consumer.resume(T0)
    began = cluster.now
    assert len(read(consumer, 500)) >= 500
    assert cluster.now - began < 0.4
    waits = [request.max_wait_ms for request in cluster.asked("Fetch")]
    assert {0, 400} == set(waits)
    side = [request for request in cluster.asked("Fetch") if not request.max_wait_ms]
    assert all(request.session_epoch == -1 for request in side)
    assert {topic.topic for request in side for topic in request.topics} == {"t"}


def test_a_request_has_the_settings_of_the_consumer(cluster: Cluster, make: MakeConsumer) -> None:
    cluster.fill(1)
    consumer = make(
        isolation_level="read_committed",
        fetch_min_bytes=7,
        fetch_max_bytes=5_000_000,
        max_partition_fetch_bytes=100_000,
        client_rack="r1",
    )
    consumer.assign([T0])
    read(consumer, 1)
    request = cluster.asked("Fetch")[0]
    assert (request.isolation_level, request.min_bytes, request.rack_id) == (1, 7, "r1")
    assert request.max_bytes == 5_000_000
    assert request.topics[0].partitions[0].partition_max_bytes == 100_000


def test_with_no_bytes_of_a_partition_batches_come_one_by_one(cluster: Cluster, make: MakeConsumer) -> None:
    cluster.fill(3)
    consumer = make(max_partition_fetch_bytes=0)
    consumer.assign([T0])
    assert len(read(consumer, 3)) == 3


def asked_partitions(request: Any) -> list[int]:
    return [part.partition for topic in request.topics for part in topic.partitions]


@pytest.fixture
def old_cluster(cluster: Cluster) -> Cluster:
    """A broker before 0.10.1, with ten partitions: a response may have max_partition_fetch_bytes of each."""
    cluster.topics["t"] = 10
    cluster.broker.ranges[ApiKey.Fetch] = (0, 2)
    return cluster


TEN = [TopicPartition("t", number) for number in range(10)]


def test_brokers_that_know_no_limit_are_asked_for_no_more_partitions_than_fit_into_the_memory(
    old_cluster: Cluster, make: MakeConsumer
) -> None:
    for partition in TEN:
        old_cluster.fill(3, partition)
    consumer = make(fetch_buffer_memory=400_000, max_partition_fetch_bytes=100_000)
    consumer.assign(TEN)
    assert {(record.partition, record.offset) for record in read(consumer, 30)} == {
        (number, offset) for number in range(10) for offset in range(3)
    }
    assert max(len(asked_partitions(request)) for request in old_cluster.asked("Fetch")) == 4


def test_partitions_without_records_take_turns_at_brokers_that_know_no_limit(
    old_cluster: Cluster, make: MakeConsumer
) -> None:
    consumer = make(fetch_buffer_memory=400_000, max_partition_fetch_bytes=100_000, fetch_max_wait_ms=500)
    consumer.assign(TEN)
    consumer.poll(timeout_ms=1000)
    before = len(old_cluster.asked("Fetch"))
    consumer.poll(timeout_ms=10_000)
    turns = old_cluster.asked("Fetch")[before:]
    assert 45 <= len(turns) <= 55  # the wait is divided, too: 200 ms each
    assert Counter(number for request in turns for number in asked_partitions(request)).total() == 4 * len(turns)
    for at in range(len(turns) - 2):
        assert {number for request in turns[at : at + 3] for number in asked_partitions(request)} == set(range(10))


def test_a_record_that_needs_more_than_the_memory_comes_from_brokers_that_know_no_limit(
    old_cluster: Cluster, make: MakeConsumer
) -> None:
    old_cluster.fill(1, TEN[7])
    consumer = make(fetch_buffer_memory=50_000, max_partition_fetch_bytes=100_000)
    consumer.assign(TEN)
    assert [record.partition for record in read(consumer, 1)] == [7]
    assert {len(asked_partitions(request)) for request in old_cluster.asked("Fetch")} == {1}


def test_the_next_request_has_left_when_poll_returns_the_records(cluster: Cluster, make: MakeConsumer) -> None:
    cluster.fill(5)
    consumer = make()
    consumer.assign([T0])
    while not consumer.poll(timeout_ms=1000):
        pass
    assert [request.topics[0].partitions[0].fetch_offset for request in cluster.asked("Fetch")] == [0, 5]


def targets(**epochs: int) -> dict[TopicPartition, FetchTarget]:
    found = {}
    for name, epoch in epochs.items():
        partition = TopicPartition("t", int(name[1:]))
        cursor = Cursor(10, 2)
        cursor.checked_epoch = epoch
        found[partition] = FetchTarget(AssignedPartition(partition), cursor)
    return found


def test_only_new_leaders_of_partitions_that_were_read_are_asked() -> None:
    wanted = {
        TopicPartition("t", 0): Wanted(10, 5, 2, 100),  # the leader is new
        TopicPartition("t", 1): Wanted(10, 4, 2, 100),  # the same leader
        TopicPartition("t", 2): Wanted(10, 5, -1, 100),  # no record was read yet
    }
    asked = targets(t0=4, t1=4, t2=4)
    assert list(unchecked(wanted, asked)) == [TopicPartition("t", 0)]
    assert [target.cursor.checked_epoch for target in asked.values()] == [4, 4, 5]


class Link:
    """A connection that answers OffsetForLeaderEpoch from a table of (code, epoch, end offset)."""

    def __init__(self, answers: dict[int, tuple[int, int, int]], version: int = 4) -> None:
        self.answers, self.version = answers, version
        self.versions = self

    def reaches(self, _key: int, version: int) -> bool:
        return version <= self.version

    async def submit(self, _request: object, _timeout: float) -> object:
        partitions = [
            EPOCHS.EpochEndOffset(partition=number, error_code=code, leader_epoch=epoch, end_offset=end)
            for number, (code, epoch, end) in self.answers.items()
        ]
        return EPOCHS(topics=[EPOCHS.OffsetForLeaderTopicResult(topic="t", partitions=partitions)])


def checked(link: Link, *numbers: int) -> dict[int, Any]:
    wanted = {TopicPartition("t", number): Wanted(10, 5, 2, 100) for number in numbers}
    coro = check_new_leader(link, wanted, 1.0)  # type: ignore[arg-type]
    with pytest.raises(StopIteration) as ended:
        coro.send(None)
    return {partition.partition: check for partition, check in ended.value.value.items()}


def test_a_log_that_continues_is_not_reported_and_a_truncated_one_is() -> None:
    found = checked(Link({0: (0, 2, 10), 1: (0, 1, 7), 2: (0, -1, -1)}), 0, 1, 2)
    assert {number: type(error) for number, error in found.items()} == dict.fromkeys((1, 2), LogTruncationError)
    assert found[1].divergent_offsets == {TopicPartition("t", 1): OffsetAndMetadata(7, "", 1)}
    assert not found[2].divergent_offsets


def test_errors_and_missing_partitions_are_asked_again() -> None:
    found = checked(Link({0: (NotLeaderForPartitionError.errno, -1, -1)}), 0, 1)
    assert isinstance(found[0], NotLeaderForPartitionError)
    assert isinstance(found[1], UnknownLeaderEpochError)


def test_without_the_right_or_the_version_the_log_cannot_be_checked() -> None:
    assert checked(Link({0: (TopicAuthorizationFailedError.errno, -1, -1)}), 0) == {}
    assert checked(Link({}, version=1), 0) == {}
