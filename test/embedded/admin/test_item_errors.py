"""A call about several items raises the first error of one, with the outcomes of all, on both faces."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import (
    ACL,
    ACLFilter,
    ResourcePattern,
    ResourcePatternFilter,
    UserScramCredentialDeletion,
)
from kafka.aio.admin import AIOKafkaAdminClient
from kafka.broker import Broker
from kafka.errors import (
    GroupIdNotFoundError,
    IllegalArgumentError,
    InvalidUpdateVersionError,
    KafkaError,
    LogDirNotFoundError,
    ResourceNotFoundError,
    SecurityDisabledError,
    UnknownMemberIdError,
    UnknownTopicOrPartitionError,
)
from kafka.structs import TopicPartitionReplica

KNOWN, MISSING = TopicPartition("events", 0), TopicPartition("evnets", 0)
ACLS = ACL("User:alice", "*", "read", "allow", ResourcePattern("topic", "events"))
EVERY = ACLFilter(None, None, "any", "any", ResourcePatternFilter("any", None))

CALLS: list[tuple[str, tuple[object, ...], type[KafkaError], str]] = [
    ("alter_group_offsets", ("g", {KNOWN: 0, MISSING: 0}), UnknownTopicOrPartitionError, "group 'g': evnets-0"),
    ("alter_consumer_group_offsets", ("g", {KNOWN: 0, MISSING: 0}), UnknownTopicOrPartitionError, "evnets-0"),
    ("alter_streams_group_offsets", ("g", {KNOWN: 0, MISSING: 0}), UnknownTopicOrPartitionError, "evnets-0"),
    ("alter_share_group_offsets", ("s", {KNOWN: 0, MISSING: 0}), UnknownTopicOrPartitionError, "evnets-0"),
    ("delete_share_group_offsets", ("s", ["evnets"]), UnknownTopicOrPartitionError, "group 's': evnets"),
    ("reset_group_offsets", ("g", {KNOWN: 0, MISSING: 0}), UnknownTopicOrPartitionError, "group 'g': evnets-0"),
    ("delete_group_offsets", ("g", [MISSING]), UnknownTopicOrPartitionError, "group 'g': evnets-0"),
    ("delete_consumer_group_offsets", ("g", [MISSING]), UnknownTopicOrPartitionError, "evnets-0"),
    ("delete_streams_group_offsets", ("g", [MISSING]), UnknownTopicOrPartitionError, "evnets-0"),
    ("delete_groups", (["nobody"],), GroupIdNotFoundError, "'nobody'"),
    ("delete_share_groups", (["nobody"],), GroupIdNotFoundError, "'nobody'"),
    ("delete_streams_groups", (["nobody"],), GroupIdNotFoundError, "'nobody'"),
    ("remove_group_members", ("g", ["nobody"]), UnknownMemberIdError, "group 'g': nobody"),
    ("remove_members_from_consumer_group", ("g", ["nobody"]), UnknownMemberIdError, "nobody"),
    ("create_acls", ([ACLS],), SecurityDisabledError, "User:alice"),
    ("delete_acls", ([EVERY],), SecurityDisabledError, ""),
    ("update_features", ({"group.version": 0},), InvalidUpdateVersionError, "group.version"),
    (
        "alter_user_scram_credentials",
        ([UserScramCredentialDeletion("carol", "SCRAM-SHA-256")],),
        ResourceNotFoundError,
        "'carol'",
    ),
    (
        "alter_replica_log_dirs",
        ({TopicPartitionReplica("events", 0, 1): "/nowhere"},),
        LogDirNotFoundError,
        "events-0-1",
    ),
]


@pytest.fixture(scope="module")
def cluster() -> Any:
    with Broker(topics=["events"]) as broker, KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.alter_group_offsets("g", {KNOWN: 0})
        admin.alter_share_group_offsets("s", {KNOWN: 0})
        yield broker, admin


def call(face: str, cluster: Any, name: str, *args: object, **options: bool) -> Any:
    broker, admin = cluster
    if face == "sync":
        return getattr(admin, name)(*args, **options)

    async def run() -> Any:
        async with AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as aio:
            return await getattr(aio, name)(*args, **options)

    return asyncio.run(run())


@pytest.mark.parametrize("face", ["sync", "asyncio"])
@pytest.mark.parametrize(("name", "args", "error", "item"), CALLS, ids=[name for name, *_ in CALLS])
def test_a_refused_item_is_raised_and_named_with_the_outcomes_of_all(
    cluster: Any, face: str, name: str, args: tuple[object, ...], error: type[KafkaError], item: str
) -> None:
    with pytest.raises(error) as failed:
        call(face, cluster, name, *args)
    assert item in str(failed.value)
    assert failed.value.results == call(face, cluster, name, *args, raise_errors=False)


@pytest.mark.parametrize("face", ["sync", "asyncio"])
def test_a_reset_of_a_group_without_offsets_says_to_name_topics(cluster: Any, face: str) -> None:
    with pytest.raises(IllegalArgumentError, match=r"group 'never-seen' has no committed offsets .*: name topics"):
        call(face, cluster, "reset_group_offsets", "never-seen", "earliest")
    assert call(face, cluster, "reset_group_offsets", "never-seen", {}) == {}


def test_several_refused_items_are_counted(cluster: Any) -> None:
    other = TopicPartition("evnets", 1)
    with pytest.raises(UnknownTopicOrPartitionError, match=r"2 items failed; error.results has the outcome of each"):
        call("sync", cluster, "alter_group_offsets", "g", {MISSING: 0, KNOWN: 0, other: 0})
