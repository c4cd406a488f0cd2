"""Logs that lose their end when the leader changes (KIP-320), as fetches tell it and as it has to be asked for."""

from __future__ import annotations

import pytest

from kafka.broker import Broker
from kafka.errors import (
    ClusterAuthorizationFailedError,
    FencedLeaderEpochError,
    LogTruncationError,
    NotLeaderForPartitionError,
    RecordDeserializationError,
    UnknownLeaderEpochError,
    UnknownTopicOrPartitionError,
)
from kafka.record.batch_builder import BatchBuilder

from .conftest import MakeConsumer
from .reading import fill, read, tp
from .unclean import cut_log

FACES = "both"

ASKED = "OffsetForLeaderEpoch"


def other_leader(broker: Broker) -> int:
    return 3 - broker.leader("events", 0)


def times_asked(broker: Broker) -> int:
    return sum(request.name == ASKED for request in broker.requests)


@pytest.fixture(params=["as of 2.6", "newest"])
def any_broker(request: pytest.FixtureRequest, broker: Broker) -> Broker:
    if request.param == "as of 2.6":
        broker.advertise("Fetch", 0, 11)
    return broker


@pytest.mark.parametrize("reset", ["none", "earliest"])
def test_a_cut_log_is_noticed_after_a_change_of_leader(
    any_broker: Broker, make_consumer: MakeConsumer, reset: str
) -> None:
    fill(any_broker, 20)
    consumer = make_consumer(auto_offset_reset=reset, fetch_max_wait_ms=50)
    consumer.assign([tp()])
    consumer.seek(tp(), 0)
    assert len(read(consumer, 20)) == 20
    cut_log(any_broker, tp(), 10, other_leader(any_broker))
    any_broker.append_many("events", [b"new %d" % n for n in range(30)])
    if reset == "none":
        with pytest.raises(LogTruncationError) as caught:
            read(consumer, 1)
        assert caught.value.divergent_offsets is not None
        assert caught.value.divergent_offsets[tp()].offset == 10
        consumer.seek(tp(), 10)
    found = read(consumer, 30)
    assert [record.offset for record in found] == list(range(10, 40))
    assert found[0].value == b"new 0"


def test_a_truncated_log_is_distinguished_from_a_wrong_offset(any_broker: Broker, make_consumer: MakeConsumer) -> None:
    fill(any_broker, 20)
    consumer = make_consumer(auto_offset_reset="none", fetch_max_wait_ms=50)
    consumer.assign([tp()])
    consumer.seek(tp(), 0)
    assert len(read(consumer, 20)) == 20
    cut_log(any_broker, tp(), 10, other_leader(any_broker))
    with pytest.raises(LogTruncationError, match="was cut at offset 10"):
        read(consumer, 1)


def test_only_new_leaders_are_asked(broker: Broker, make_consumer: MakeConsumer) -> None:
    broker.advertise("Fetch", 0, 11)
    fill(broker, 10)
    consumer = make_consumer(fetch_max_wait_ms=50)
    consumer.assign([tp()])
    assert len(read(consumer, 10)) == 10
    assert times_asked(broker) == 0
    for turn in range(3):
        broker.move_leader(tp(), other_leader(broker))
        broker.append("events", b"%d" % turn)
        assert [record.value for record in read(consumer, 1)] == [b"%d" % turn]
    assert times_asked(broker) == 3


@pytest.mark.parametrize(
    "error",
    [
        FencedLeaderEpochError,
        UnknownLeaderEpochError,
        NotLeaderForPartitionError,
        UnknownTopicOrPartitionError,
        ClusterAuthorizationFailedError,
    ],
)
def test_errors_of_the_question_are_outlived(broker: Broker, make_consumer: MakeConsumer, error: type) -> None:
    broker.advertise("Fetch", 0, 11)
    fill(broker, 10)
    consumer = make_consumer(fetch_max_wait_ms=50)
    consumer.assign([tp()])
    assert len(read(consumer, 10)) == 10
    broker.fail(ASKED, [error], times=3)
    broker.move_leader(tp(), other_leader(broker))
    broker.append("events", b"next")
    assert [record.value for record in read(consumer, 1)] == [b"next"]


def test_a_leader_that_knows_nothing_of_the_epoch_sends_back_to_the_policy(
    broker: Broker, make_consumer: MakeConsumer
) -> None:
    broker.advertise("Fetch", 0, 11)
    fill(broker, 10)
    consumer = make_consumer(fetch_max_wait_ms=50)
    consumer.assign([tp()])
    assert len(read(consumer, 10)) == 10

    def forget(exchange: object) -> None:
        for topic in exchange.reply.topics:  # type: ignore[attr-defined]
            for part in topic.partitions:
                part.leader_epoch = part.end_offset = -1

    broker.intercept(ASKED, forget)
    broker.move_leader(tp(), other_leader(broker))
    broker.append("events", b"next")
    assert [record.offset for record in read(consumer, 11)] == list(range(11))


def test_a_committed_offset_is_checked_before_it_is_read_from(broker: Broker, make_consumer: MakeConsumer) -> None:
    broker.advertise("Fetch", 0, 11)
    fill(broker, 20)
    with make_consumer("events", group_id="readers") as consumer:
        assert len(read(consumer, 20)) == 20
    cut_log(broker, tp(), 10, other_leader(broker))
    broker.append_many("events", [b"new %d" % n for n in range(30)])
    consumer = make_consumer("events", group_id="readers")
    assert [record.offset for record in read(consumer, 30)] == list(range(10, 40))


@pytest.mark.parametrize("way", ["columns", "skip", "aborted"])
def test_records_passed_in_a_later_epoch_are_not_a_truncation(
    any_broker: Broker, make_consumer: MakeConsumer, way: str
) -> None:
    """A position has the epoch of what is before it, also where that was no record of poll()."""
    fill(any_broker, 5)
    any_broker.move_leader(tp(), other_leader(any_broker))
    if way == "aborted":
        builder = BatchBuilder(1 << 20)
        builder.append(0, None, b"aborted")
        data = builder.seal(producer_id=7, producer_epoch=0, base_sequence=0, transactional=True).data
        any_broker.run(lambda cluster: cluster.append(cluster.partition(*tp()), data))
        any_broker.run(lambda cluster: cluster.append_marker(cluster.partition(*tp()), 7, 0, committed=False))
    else:
        any_broker.append("events", b"refused")
    end = any_broker.offsets("events")[2]
    options = {"group_id": "g", "auto_offset_reset": "none", "isolation_level": "read_committed"}
    consumer = make_consumer(value_deserializer=refuse if way == "skip" else None, **options)
    consumer.assign([tp()])
    consumer.seek(tp(), 0)
    assert len(read(consumer, 5, max_records=5)) == 5
    while consumer.position(tp()) < end:
        try:
            consumer.poll_batches(1000) if way == "columns" else consumer.poll(100)
        except RecordDeserializationError as error:  # noqa: PERF203
            assert error.offset is not None
            consumer.seek(tp(), error.offset + 1)
    consumer.commit()
    any_broker.append("events", b"more")
    again = make_consumer(**options)
    again.assign([tp()])
    assert read(again, 1)[0].offset == end


def refuse(value: bytes) -> bytes:
    if value == b"refused":
        raise ValueError(value)
    return value
