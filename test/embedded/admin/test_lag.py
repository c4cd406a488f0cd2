"""The lag of groups, and their offsets reset, through `KafkaAdminClient`."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, OffsetAndMetadata, OffsetSpec, TopicPartition
from kafka.admin import MemberToRemove, OffsetTimestamp, Shift
from kafka.broker import Broker
from kafka.errors import (
    CoordinatorNotAvailableError,
    GroupIdNotFoundError,
    IllegalArgumentError,
    NoError,
    NonEmptyGroupError,
    UnknownMemberIdError,
    UnknownTopicOrPartitionError,
)

FIRST, SECOND, MISSING = TopicPartition("events", 0), TopicPartition("events", 1), TopicPartition("evnets", 0)
DAY = 86_400_000


@pytest.fixture(autouse=True)
def records(broker: Broker) -> None:
    """Ten records in the first partition, a day apart from the first day of 1970, and four in the second."""
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for number in range(10):
            producer.send("events", b"record", partition=0, timestamp_ms=number * DAY)
        for _ in range(4):
            producer.send("events", b"record", partition=1, timestamp_ms=0)


def test_the_lag_of_a_group_is_known_by_partition_topic_and_member(admin: KafkaAdminClient):
    admin.alter_group_offsets("readers", {FIRST: 3, SECOND: 4})
    lags = admin.group_lag(["readers"])
    lag = lags["readers"]
    assert (lag.total, lag.by_topic, lag.by_member, lag.ok) == (7, {"events": 7}, {None: 7}, True)
    assert [(one.partition, one.committed, one.end, one.lag) for one in lag] == [(0, 3, 10, 7), (1, 4, 4, 0)]
    assert lag.description is not None
    assert lag.description.group_state == "Empty"
    assert (lags.total, lags.ok, lags.failed) == (7, True, {})


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_partitions_of_members_count_from_their_beginning(admin: KafkaAdminClient, broker: Broker, protocol: str):
    with KafkaConsumer(
        "events",
        group_id="live",
        bootstrap_servers=broker.bootstrap_servers,
        enable_auto_commit=False,
        group_protocol=protocol,
    ) as consumer:
        while len(consumer.assignment()) < 2:
            consumer.poll(timeout_ms=100)
        admin.delete_records({FIRST: 2})
        lag = admin.group_lag()["live"]
        (member,) = broker.group_members("live")
    assert [(one.committed, one.is_committed, one.lag, one.member_id) for one in lag] == [
        (None, False, 8, member),
        (None, False, 4, member),
    ]
    assert lag.by_member == {member: 12}


def test_all_groups_are_looked_at_or_some_topics(admin: KafkaAdminClient):
    admin.create_topics(["logs"], wait_for_metadata=True)
    admin.alter_group_offsets("one", {FIRST: 10, TopicPartition("logs", 0): 0})
    admin.alter_group_offsets("two", {FIRST: 0})
    assert {group: lag.total for group, lag in admin.group_lag().items()} == {"one": 0, "two": 10}
    assert [one.topic for one in admin.group_lag(topics=["logs"])["one"]] == ["logs"]
    assert admin.group_lag(topics=["logs"])["two"].partitions == []


def test_records_of_open_transactions_do_not_count_for_readers_of_committed_ones(
    admin: KafkaAdminClient, broker: Broker
):
    admin.alter_group_offsets("readers", {FIRST: 10})
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id="orders")
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("events", b"record", partition=0).get(timeout=10)
    assert admin.group_lag(["readers"])["readers"].total == 1
    assert admin.group_lag(["readers"], isolation_level="read_committed")["readers"].total == 0
    producer.close(timeout=5)


def test_one_partition_or_group_that_cannot_be_looked_at_does_not_lose_the_others(
    admin: KafkaAdminClient, broker: Broker
):
    admin.create_topics(["doomed"], wait_for_metadata=True)
    admin.alter_group_offsets("readers", {FIRST: 3, TopicPartition("doomed", 0): 0})
    broker.intercept("ListOffsets", lambda exchange: _refuse(exchange.reply, "doomed"))
    lag = admin.group_lag(["readers", "nobody"])
    assert lag["readers"].by_topic == {"doomed": 0, "events": 7}
    (refused,) = [one for one in lag["readers"] if one.topic == "doomed"]
    assert (refused.lag, refused.end) == (None, None)
    assert "doomed-0" in str(refused.error)
    assert not lag["readers"].ok
    assert lag["nobody"].partitions == []


def _refuse(reply: object, name: str) -> object:
    """Have a ListOffsets reply refuse the partitions of a topic."""
    for topic in reply.topics:  # type: ignore[attr-defined]
        for entry in topic.partitions:
            if topic.name == name:
                entry.error_code = 29
    return reply


def test_groups_whose_coordinator_is_not_available_have_an_error(admin: KafkaAdminClient, broker: Broker):
    admin.alter_group_offsets("readers", {FIRST: 3})
    admin.group_lag()  # all connections are there
    broker.fail("OffsetFetch", 15, times=1000)
    lag = admin.group_lag(timeout_ms=1500)
    assert isinstance(lag["readers"].error, CoordinatorNotAvailableError)
    assert list(lag.failed) == ["readers"]
    with pytest.raises(CoordinatorNotAvailableError, match="'readers'") as caught:
        admin.list_group_offsets("readers", timeout_ms=1500)
    assert caught.value.results.failed.keys() == {"readers"}
    assert not admin.list_group_offsets("readers", timeout_ms=1500, raise_errors=False).ok


def test_offsets_are_reset_to_places_times_and_numbers(admin: KafkaAdminClient):
    admin.alter_group_offsets("readers", {FIRST: 5, SECOND: 1})
    third = datetime(1970, 1, 3, tzinfo=timezone.utc)
    for place, offset in (
        (OffsetSpec.EARLIEST, 0),
        ("latest", 10),
        (7, 7),
        (99, 10),
        (third, 2),
        (OffsetTimestamp(3 * DAY), 3),
        (timedelta(days=1), 10),
        (OffsetAndMetadata(4), 4),
        (Shift(3), 7),
        (Shift(-100), 0),
        ("current", 0),
        (Shift(2), 2),
    ):
        found = admin.reset_group_offsets("readers", {FIRST: place})
        assert found == {FIRST: {"error": NoError, "offset": offset}}, place
        assert admin.list_group_offsets("readers")["readers"][FIRST].offset == offset, place
    assert admin.list_group_offsets("readers")["readers"][SECOND].offset == 1


def test_a_reset_of_all_partitions_of_a_topic_or_of_a_group(admin: KafkaAdminClient):
    assert {one.offset for one in admin.reset_group_offsets("new", {"events": "latest"}).values()} == {10, 4}
    admin.reset_group_offsets("readers", {FIRST: 5})
    found = admin.reset_group_offsets("readers", OffsetSpec.EARLIEST)
    assert {partition: (one.previous, one.offset) for partition, one in found.items()} == {FIRST: (5, 0)}
    with pytest.raises(UnknownTopicOrPartitionError, match="'evnets'"):
        admin.reset_group_offsets("readers", {"evnets": "latest"})


def test_a_dry_run_commits_nothing(admin: KafkaAdminClient):
    admin.alter_group_offsets("readers", {FIRST: 5})
    found = admin.reset_group_offsets("readers", Shift(2), dry_run=True)
    assert (found[FIRST].previous, found[FIRST].offset) == (5, 7)
    assert admin.list_group_offsets("readers")["readers"][FIRST].offset == 5


def test_a_partition_that_is_unknown_does_not_lose_the_others(admin: KafkaAdminClient):
    found = admin.reset_group_offsets("readers", {FIRST: "latest", MISSING: "latest"}, raise_errors=False)
    assert (found[FIRST].error, found[FIRST].offset) == (NoError, 10)
    assert (found[MISSING].error, found[MISSING].offset) == (UnknownTopicOrPartitionError, -1)
    assert list(admin.list_group_offsets("readers")["readers"]) == [FIRST]
    for wrong, error in ((-3, IllegalArgumentError), (1.5, TypeError), ("middle", IllegalArgumentError)):
        with pytest.raises(error):
            admin.reset_group_offsets("readers", {FIRST: wrong})


def test_a_group_with_members_is_not_reset_until_they_are_removed(admin: KafkaAdminClient, broker: Broker):
    with KafkaConsumer("events", group_id="live", bootstrap_servers=broker.bootstrap_servers) as consumer:
        while len(consumer.assignment()) < 2:
            consumer.poll(timeout_ms=100)
        found = admin.reset_group_offsets("live", {FIRST: "latest"}, raise_errors=False)
        assert issubclass(found[FIRST].error, (NonEmptyGroupError, UnknownMemberIdError))
        (member,) = broker.group_members("live")
        assert admin.remove_group_members("live", ["nobody"], raise_errors=False) == {"nobody": UnknownMemberIdError}
        assert admin.remove_group_members("live", [MemberToRemove(member, reason="maintenance")]) == {member: NoError}
        assert admin.remove_group_members("live") == {}
        assert admin.reset_group_offsets("live", {FIRST: "latest"})[FIRST].error is NoError


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_all_members_are_removed(admin: KafkaAdminClient, broker: Broker, protocol: str):
    options = {"group_id": "live", "group_instance_id": "worker-1", "group_protocol": protocol}
    with KafkaConsumer("events", bootstrap_servers=broker.bootstrap_servers, **options) as consumer:
        while len(consumer.assignment()) < 2:
            consumer.poll(timeout_ms=100)
        assert admin.remove_members_from_consumer_group("live") == {"worker-1": NoError}
        assert broker.group_members("live") == {}
        assert admin.remove_group_members("live") == {}
    with pytest.raises(GroupIdNotFoundError):
        admin.remove_group_members("nobody")


def test_a_static_member_is_removed_by_its_name(admin: KafkaAdminClient, broker: Broker):
    with KafkaConsumer(
        "events", group_id="live", group_instance_id="worker-1", bootstrap_servers=broker.bootstrap_servers
    ) as consumer:
        while len(consumer.assignment()) < 2:
            consumer.poll(timeout_ms=100)
        assert admin.remove_group_members("live", [MemberToRemove(group_instance_id="worker-1")]) == {
            "worker-1": NoError
        }
        assert broker.group_members("live") == {}
    with pytest.raises(IllegalArgumentError, match="member_id or a group_instance_id"):
        admin.remove_group_members("live", [MemberToRemove()])
