"""Records and offsets of partitions through `KafkaAdminClient`."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from kafka import KafkaAdminClient, KafkaProducer, OffsetSpec, TopicPartition
from kafka.admin import OffsetTimestamp, RecordsToDelete
from kafka.broker import Broker
from kafka.errors import (
    BrokerResponseError,
    IllegalArgumentError,
    OffsetOutOfRangeError,
    PolicyViolationError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
)

FIRST, SECOND, MISSING = TopicPartition("events", 0), TopicPartition("events", 1), TopicPartition("evnets", 0)
DAY = 86_400_000


@pytest.fixture(autouse=True)
def records(broker: Broker) -> None:
    """Ten records in the first partition, a day apart from the first day of 1970, none in the second."""
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for number in range(10):
            producer.send("events", b"record", partition=0, timestamp_ms=number * DAY).get(timeout=10)


def test_records_before_an_offset_are_deleted(admin: KafkaAdminClient):
    found = admin.delete_records({FIRST: 4, SECOND: RecordsToDelete(-1)})
    assert {partition: outcome["low_watermark"] for partition, outcome in found.items()} == {FIRST: 4, SECOND: 0}
    assert found[FIRST] == {"low_watermark": 4, "error_code": 0, "error_message": None, "partition_index": 0}
    assert admin.list_partition_offsets({FIRST: "earliest"})[FIRST].offset == 4
    assert admin.delete_records({FIRST: -1})[FIRST].low_watermark == 10


def test_one_partition_that_is_refused_does_not_lose_the_others(admin: KafkaAdminClient):
    with pytest.raises(OffsetOutOfRangeError, match="events-1") as caught:
        admin.delete_records({FIRST: 2, SECOND: 99})
    assert caught.value.results[FIRST].low_watermark == 2
    with pytest.raises(BrokerResponseError, match=r"events-1.*evnets-0") as several:
        admin.delete_records({FIRST: 3, SECOND: 99, MISSING: 0})
    assert [outcome.ok for outcome in several.value.results.values()] == [True, False, False]
    found = admin.delete_records({FIRST: 4, MISSING: 0}, raise_errors=False)
    assert found[FIRST].ok
    assert isinstance(found[MISSING].error, UnknownTopicOrPartitionError)


def test_records_of_a_compacted_topic_are_not_deleted_and_the_error_says_why(admin: KafkaAdminClient):
    admin.create_topics({"compacted": {"configs": {"cleanup.policy": "compact"}}})
    with pytest.raises(PolicyViolationError, match=r"compacted-0: the topic's cleanup\.policy is compact"):
        admin.delete_records({TopicPartition("compacted", 0): 0})


def test_wrong_offsets_are_refused(admin: KafkaAdminClient):
    for wrong, error in ((-2, IllegalArgumentError), ("4", TypeError), (None, TypeError)):
        with pytest.raises(error):
            admin.delete_records({FIRST: wrong})  # type: ignore[dict-item]


def test_offsets_are_looked_up_by_place_and_by_time(admin: KafkaAdminClient):
    third = datetime(1970, 1, 3, tzinfo=timezone.utc)
    for spec, offset in (
        (OffsetSpec.EARLIEST, 0),
        ("latest", 10),
        (OffsetSpec.MAX_TIMESTAMP, 9),
        (third, 2),
        (OffsetTimestamp(third + timedelta(hours=1)), 3),
        (5 * DAY, 5),
        (timedelta(days=1), -1),  # nothing is so young
    ):
        assert admin.list_partition_offsets({FIRST: spec})[FIRST].offset == offset, spec
    assert admin.list_offsets({FIRST: 2 * DAY})[FIRST].timestamp == 2 * DAY


def test_one_partition_that_is_unknown_does_not_lose_the_other_offsets(admin: KafkaAdminClient):
    with pytest.raises(UnknownTopicOrPartitionError, match="evnets-0") as caught:
        admin.list_partition_offsets({FIRST: "latest", MISSING: "latest"})
    assert caught.value.results[FIRST].offset == 10
    found = admin.list_partition_offsets({FIRST: "latest", MISSING: "latest"}, raise_errors=False)
    assert isinstance(found[MISSING], UnknownTopicOrPartitionError)


def test_the_end_of_a_leader_epoch_is_known(admin: KafkaAdminClient):
    assert admin.offsets_for_leader_epochs({FIRST: 0, SECOND: 0}) == {FIRST: (0, 10), SECOND: (0, 0)}


def test_places_that_an_old_broker_does_not_know_are_named():
    with (
        Broker(as_version="2.8", topics=["events"]) as broker,
        KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin,
    ):
        with pytest.raises(UnsupportedVersionError, match=r"MAX_TIMESTAMP needs Kafka 3\.0"):
            admin.list_partition_offsets({FIRST: OffsetSpec.MAX_TIMESTAMP})
        assert admin.list_partition_offsets({FIRST: OffsetSpec.LATEST})[FIRST].offset == 0
