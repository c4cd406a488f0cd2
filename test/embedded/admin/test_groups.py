"""Groups and their offsets through `KafkaAdminClient`, against the embedded broker."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from kafka import KafkaAdminClient, KafkaConsumer, OffsetAndMetadata, TopicPartition
from kafka.broker import Broker
from kafka.errors import (
    GroupAuthorizationFailedError,
    GroupIdNotFoundError,
    GroupSubscribedToTopicError,
    IllegalArgumentError,
    NoError,
    NonEmptyGroupError,
    UnknownMemberIdError,
    UnsupportedVersionError,
)

FIRST, SECOND = TopicPartition("events", 0), TopicPartition("events", 1)


@pytest.fixture
def admin(broker: Broker) -> Iterator[KafkaAdminClient]:
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        yield admin


@pytest.fixture
def member(broker: Broker) -> Iterator[KafkaConsumer]:
    """A member of the group ``alive`` that owns both partitions."""
    with KafkaConsumer("events", group_id="alive", bootstrap_servers=broker.bootstrap_servers) as consumer:
        while len(consumer.assignment()) < 2:
            consumer.poll(timeout_ms=100)
        yield consumer


def test_a_broker_that_has_left_the_cluster_is_not_waited_for(admin: KafkaAdminClient, broker: Broker):
    """It is in the metadata when the call begins; fresh metadata end the wait for it, not the default of 60 s."""
    admin.list_groups()
    gone = next(
        one.broker_id
        for one in admin.describe_cluster().brokers
        if one.broker_id != admin.describe_cluster().controller_id
    )
    broker.stop_node(gone)
    began = time.monotonic()
    found = admin.list_groups(raise_errors=False)
    assert time.monotonic() - began < 30
    assert set(found.failed) <= {gone}


def test_groups_of_all_brokers_are_listed(admin: KafkaAdminClient, broker: Broker):
    names = [f"g{number}" for number in range(9)]
    for name in names:
        assert admin.alter_group_offsets(name, {FIRST: 0}) == {FIRST: NoError}
    assert sorted(group.group_id for group in admin.list_groups()) == names
    shares = [admin.list_groups([node]) for node in broker.node_ids]
    assert all(shares)
    assert sorted(group["group_id"] for share in shares for group in share) == names


def test_groups_are_chosen_by_state_and_type(admin: KafkaAdminClient, member: KafkaConsumer):
    admin.alter_group_offsets("idle", {FIRST: 0})
    assert [group.group_id for group in admin.list_groups(states_filter=["Stable"])] == ["alive"]
    assert [group.group_id for group in admin.list_groups(states_filter=["Empty"])] == ["idle"]
    assert admin.list_groups(types_filter=["share"]) == []
    assert ("alive", "consumer") in admin.list_consumer_groups()


def test_a_broker_that_does_not_answer_costs_its_own_groups(admin: KafkaAdminClient, broker: Broker):
    for number in range(9):
        admin.alter_group_offsets(f"g{number}", {FIRST: 0})
    of_second = {group.group_id for group in admin.list_groups([2])}
    with broker.fail("ListGroups", "CLUSTER_AUTHORIZATION_FAILED", times=2, node=2):
        found = admin.list_groups(raise_errors=False)
        assert {f"g{number}" for number in range(9)} - {group.group_id for group in found} == of_second
        assert list(found.failed) == [2]
        assert not found.ok
        with pytest.raises(type(found.failed[2])) as caught:
            admin.list_groups()
        assert len(caught.value.results) == len(found)


def test_offsets_are_altered_listed_and_deleted(admin: KafkaAdminClient):
    offsets: dict[TopicPartition, Any] = {FIRST: OffsetAndMetadata(5, "why"), SECOND: 7}
    assert admin.alter_group_offsets("g", offsets) == {FIRST: NoError, SECOND: NoError}
    assert admin.list_group_offsets("g") == {"g": {FIRST: OffsetAndMetadata(5, "why"), SECOND: OffsetAndMetadata(7)}}
    assert admin.list_consumer_group_offsets("g").keys() == {FIRST, SECOND}
    assert admin.delete_group_offsets("g", [FIRST]) == {FIRST: NoError}
    assert admin.list_group_offsets(["g"])["g"].keys() == {SECOND}
    unset = admin.list_consumer_group_offsets("g", partitions=[FIRST, SECOND])
    assert [unset[partition].offset for partition in (FIRST, SECOND)] == [-1, 7]


def test_offsets_of_many_groups_are_listed_at_once(admin: KafkaAdminClient):
    for number in range(5):
        admin.alter_group_offsets(f"g{number}", {FIRST: number, SECOND: 9})
    found = admin.list_group_offsets({f"g{number}": [FIRST] for number in range(5)})
    assert {group: offsets[FIRST].offset for group, offsets in found.items()} == {f"g{n}": n for n in range(5)}
    assert all(offsets.keys() == {FIRST} for offsets in found.values())


@pytest.mark.parametrize("release", [(0, 10, 2), (2, 0), (2, 8), (3, 9)])
def test_offsets_are_listed_with_the_requests_of_early_releases(admin: KafkaAdminClient, broker: Broker, release: Any):
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers, api_version=release) as old:
        assert old.alter_group_offsets("g", {FIRST: 3}) == {FIRST: NoError}
        assert old.list_group_offsets("g")["g"][FIRST].offset == 3


def test_describing_a_group_with_members_and_changing_it_is_refused(admin: KafkaAdminClient, member: KafkaConsumer):
    assert admin.alter_group_offsets("alive", {FIRST: 0}, raise_errors=False) == {FIRST: UnknownMemberIdError}
    assert admin.delete_group_offsets("alive", [FIRST], raise_errors=False) == {FIRST: GroupSubscribedToTopicError}
    assert admin.delete_consumer_groups(["alive"]) == [("alive", NonEmptyGroupError)]


def test_groups_are_deleted(admin: KafkaAdminClient):
    admin.alter_group_offsets("g", {FIRST: 0})
    found = admin.delete_groups(["g", "missing"], raise_errors=False)
    assert found["g"] == "OK"
    assert isinstance(found["missing"].error, GroupIdNotFoundError)
    assert admin.list_groups() == []


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_with_members_is_described(admin: KafkaAdminClient, broker: Broker, protocol: str):
    options = {"group_id": "g", "group_protocol": protocol, "client_id": "reader"}
    with KafkaConsumer("events", bootstrap_servers=broker.bootstrap_servers, **options) as consumer:
        while len(consumer.assignment()) < 2:
            consumer.poll(timeout_ms=100)
        group = admin.describe_groups(["g"], include_authorized_operations=True)["g"]
        (information,) = admin.describe_consumer_groups(["g"])
    assert (group["group_id"], group.group_type, group.group_state) == ("g", protocol, "Stable")
    assert "READ" in (group.authorized_operations or [])
    (member,) = group.members
    assert member.client_id == "reader"
    assert member["member_metadata"]["topics"] == ["events"]
    (entry,) = member["member_assignment"]["assigned_partitions"]
    assert (entry["topic"], sorted(entry["partitions"])) == ("events", [0, 1])
    assert (information.group, information.state, information.protocol_type) == ("g", "Stable", "consumer")
    assert information.members[0].member_metadata.subscription == ["events"]
    assert [topic for topic, _ in information.members[0].member_assignment.assignment] == ["events"]


def test_a_group_that_is_not_there_is_dead(admin: KafkaAdminClient):
    admin.alter_group_offsets("idle", {FIRST: 0})
    found = admin.describe_groups(["idle", "missing"])
    assert [group.group_state for group in found.values()] == ["Empty", "Dead"]
    assert found["idle"]["error"] is None
    assert [group.state for group in admin.describe_consumer_groups(["idle", "missing"])] == ["Empty", "Dead"]


def test_a_group_that_may_not_be_described_has_its_error(admin: KafkaAdminClient, broker: Broker):
    broker.fail("ConsumerGroupDescribe", "GROUP_AUTHORIZATION_FAILED", times=2)
    assert isinstance(admin.describe_groups(["g"])["g"].error, GroupAuthorizationFailedError)
    with pytest.raises(GroupAuthorizationFailedError, match="group 'g'"):
        admin.describe_consumer_groups(["g"])


def test_a_coordinator_that_moved_costs_no_error(admin: KafkaAdminClient, broker: Broker):
    for api in ("OffsetCommit", "OffsetFetch", "OffsetDelete"):
        broker.fail(api, ["NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS"])
    assert admin.alter_group_offsets("g", {FIRST: 4}) == {FIRST: NoError}
    assert admin.list_group_offsets("g")["g"][FIRST].offset == 4
    assert admin.delete_group_offsets("g", [FIRST]) == {FIRST: NoError}
    admin.alter_group_offsets("g", {FIRST: 4})
    broker.fail("DeleteGroups", "NOT_COORDINATOR")
    assert admin.delete_groups(["g"])["g"] == "OK"


def test_a_request_that_an_old_broker_lacks_is_an_unsupported_version(broker: Broker):
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers, api_version=(2, 5)) as old:
        with pytest.raises(UnsupportedVersionError, match=r"states_filter needs Kafka 2\.6"):
            old.list_groups(states_filter=["Stable"])
        with pytest.raises(UnsupportedVersionError, match=r"types_filter needs Kafka 3\.8"):
            old.list_groups(types_filter=["consumer"])


def test_wrong_arguments_are_refused(admin: KafkaAdminClient):
    with pytest.raises(TypeError, match="list of names"):
        admin.delete_groups("g")
    with pytest.raises(TypeError, match="id of a group must be a str, not 7"):
        admin.list_group_offsets([7])  # type: ignore[list-item]
    with pytest.raises(IllegalArgumentError, match="must not be negative"):
        admin.alter_group_offsets("g", {FIRST: -1})
    with pytest.raises(TypeError, match="OffsetAndMetadata or an int"):
        admin.alter_group_offsets("g", {FIRST: "5"})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="must be TopicPartition objects"):
        admin.delete_group_offsets("g", ["events"])  # type: ignore[list-item]
