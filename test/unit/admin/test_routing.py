"""Which broker is asked about what, how often, and until when."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafka.admin import ConfigResource
from kafka.errors import (
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    LeaderNotAvailableError,
    UnknownTopicOrPartitionError,
)
from kafka.protocol.commit import FindCoordinatorResponse
from kafka.structs import TopicPartition
from kafka.testing import HANG_UP, SILENCE

from .conftest import Admin, AdminCluster

FIRST, SECOND, MISSING = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("missing", 0)
GROUPS = [f"g{number}" for number in range(2400)]


def coordinate(cluster: AdminCluster, node_of: Callable[[str], int]) -> None:
    """Have brokers name the coordinator of each group."""
    cluster.on(
        "FindCoordinator",
        lambda request, _: {
            "coordinators": [
                FindCoordinatorResponse.Coordinator(
                    key=key,
                    node_id=(node := node_of(key)),
                    host=f"b{node}",
                    port=9092,
                    error_code=0,
                    error_message=None,
                )
                for key in request.coordinator_keys
            ]
        },
    )


def fetched(codes: dict[str, int]) -> Callable[[Any, int], Any]:
    def answer(request: Any, _: int) -> Any:
        return {
            "groups": [
                {"group_id": group.group_id, "topics": [], "error_code": codes.get(group.group_id, 0)}
                for group in request.groups
            ]
        }

    return answer


def test_groups_are_asked_about_in_batches_by_coordinator(admin: Admin, cluster: AdminCluster):
    coordinate(cluster, lambda group: 1 if group.endswith("7") else 2)
    cluster.on("OffsetFetch", fetched({}))
    found = admin.run(admin.calls.list_group_offsets(GROUPS))
    assert list(found) == GROUPS
    assert sorted(cluster.asked("OffsetFetch")) == [1, 2, 2, 2]  # 240 groups there, 2,160 here
    assert len(cluster.asked("FindCoordinator")) == 3


def test_only_groups_whose_coordinator_moved_are_asked_about_again(admin: Admin, cluster: AdminCluster):
    coordinate(cluster, lambda _: 1)
    asked: list[list[str]] = []

    def answer(request: Any, broker: int) -> Any:
        asked.append([group.group_id for group in request.groups])
        return fetched({"b": 16, "c": 30} if len(asked) == 1 else {})(request, broker)

    cluster.on("OffsetFetch", answer)
    found = admin.run(admin.calls.list_group_offsets(["a", "b", "c"], raise_errors=False))
    assert asked == [["a", "b", "c"], ["b"]]
    assert list(found) == ["a", "b"]
    assert list(found.failed) == ["c"]
    assert len(cluster.asked("FindCoordinator")) == 2


def test_a_coordinator_that_hangs_up_costs_its_own_groups(admin: Admin, cluster: AdminCluster):
    coordinate(cluster, lambda group: 1 if group == "a" else 2)
    cluster.on("OffsetFetch", lambda request, broker: HANG_UP if broker == 1 else fetched({})(request, broker))
    began = admin.now
    found = admin.run(admin.calls.list_group_offsets(["a", "b"], 2000, raise_errors=False))
    assert list(found) == ["b"]
    assert isinstance(found.failed["a"], KafkaError)
    assert admin.now - began <= 2.1


def test_answers_that_came_are_kept_when_no_metadata_comes_for_the_next_attempt(admin: Admin, cluster: AdminCluster):
    coordinate(cluster, lambda group: 1 if group == "a" else 2)
    cluster.on("OffsetFetch", lambda request, broker: HANG_UP if broker == 1 else fetched({})(request, broker))
    for broker in cluster.brokers:
        broker.on("Metadata", lambda *_: SILENCE)
    found = admin.run(admin.calls.list_group_offsets(["a", "b"], 2000, raise_errors=False))
    assert list(found) == ["b"]
    assert isinstance(found.failed["a"], KafkaConnectionError)


def offsets(request: Any, codes: dict[int, int] | None = None) -> Any:
    return {
        "topics": [
            {
                "name": topic.name,
                "partitions": [
                    {
                        "partition_index": part.partition_index,
                        "error_code": (codes or {}).get(part.partition_index, 0),
                        "offset": 5,
                    }
                    for part in topic.partitions
                ],
            }
            for topic in request.topics
        ]
    }


@pytest.mark.parametrize("known", [False, True])
def test_only_partitions_whose_leader_moved_are_asked_about_again(admin: Admin, cluster: AdminCluster, known: bool):
    asked: list[list[int]] = []

    def answer(request: Any, _: int) -> Any:
        asked.append([part.partition_index for topic in request.topics for part in topic.partitions])
        return offsets(request, {1: 6} if len(asked) == 1 else {})

    cluster.on("ListOffsets", answer)
    if known:
        admin.run(admin.calls.describe_topics(["t"]))
    before = len(cluster.asked("Metadata"))
    found = admin.run(admin.calls.list_partition_offsets({FIRST: "latest", SECOND: "latest"}))
    assert asked == [[0, 1], [1]]
    assert [at.offset for at in found.values()] == [5, 5]
    assert len(cluster.asked("Metadata")) > before, "the new leader is in fresh metadata"


def test_leaders_that_metadata_have_just_named_are_asked_without_another_look(admin: Admin, cluster: AdminCluster):
    def looks(**options: Any) -> int:
        before = len(cluster.asked("Metadata"))
        found = admin.run(admin.calls.list_partition_offsets({FIRST: "latest", SECOND: "earliest"}, **options))
        assert [at.offset for at in found.values()] == [5, 5]
        return len(cluster.asked("Metadata")) - before

    cluster.on("ListOffsets", lambda request, _: offsets(request))
    admin.run(admin.calls.describe_topics())
    assert [looks(), looks()] == [0, 0]
    assert looks(timeout_ms=0) == 1, "there is no second try to mend an old leader"
    assert admin.core.client.cluster.topics() == {"t"}
    admin.run(admin.loop.sleep(301))
    assert admin.core.client.cluster.topics() == set(), "metadata_max_age_ms is over, and nobody refreshes the topic"
    assert [looks(), looks()] == [1, 0]


def test_a_leader_that_metadata_named_and_that_is_lost_is_looked_up_again(admin: Admin, cluster: AdminCluster):
    cluster.on("ListOffsets", lambda request, node: HANG_UP if node == 0 else offsets(request))
    admin.run(admin.calls.describe_topics())
    cluster.leader = 1
    found = admin.run(admin.calls.list_partition_offsets({FIRST: "latest", SECOND: "latest"}))
    assert [at.offset for at in found.values()] == [5, 5]
    assert cluster.asked("ListOffsets") == [0, 1]
    assert admin.core.client.cluster.leader_for_partition(FIRST) == 1


def test_a_topic_that_is_unknown_is_looked_for_three_times(admin: Admin, cluster: AdminCluster):
    cluster.on("ListOffsets", lambda request, _: offsets(request))
    before, began = len(cluster.asked("Metadata")), admin.now
    with pytest.raises(UnknownTopicOrPartitionError, match="missing-0") as caught:
        admin.run(admin.calls.list_partition_offsets({FIRST: "latest", MISSING: "latest"}))
    assert caught.value.results[FIRST].offset == 5
    assert len(cluster.asked("ListOffsets")) == 1
    assert admin.now - began < 2
    assert len(cluster.asked("Metadata")) - before <= 6


def test_a_partition_without_a_leader_is_waited_for_until_the_deadline(admin: Admin, cluster: AdminCluster):
    def metadata(request: Any, session: Any) -> Any:
        reply = AdminCluster.metadata(cluster, request, session)
        for topic in reply["topics"]:
            for part in topic.partitions:
                part.leader_id = -1
        return reply

    for broker in cluster.brokers:
        broker.on("Metadata", metadata)
    began = admin.now
    with pytest.raises(LeaderNotAvailableError, match="t-0 has no leader"):
        admin.run(admin.calls.list_partition_offsets({FIRST: "latest"}, timeout_ms=2000))
    assert 1.0 < admin.now - began <= 2.1


def test_a_broker_that_is_down_costs_its_own_configuration(admin: Admin, cluster: AdminCluster):
    def answer(request: Any, broker: int) -> Any:
        if broker == 1:
            return HANG_UP
        return {
            "results": [
                {"error_code": 0, "resource_type": one.resource_type, "resource_name": one.resource_name, "configs": []}
                for one in request.resources
            ]
        }

    cluster.on("DescribeConfigs", answer)
    resources = [ConfigResource("broker", 1), ConfigResource("broker", 2), ConfigResource("topic", "t")]
    found = admin.run(admin.calls.describe_configs(resources, timeout_ms=2000, raise_errors=False))
    assert [one.resource_name for one in found.resources if one.ok] == ["2", "t"]
    # The deadline comes while the connection is tried again or while it waits for the next try.
    error = found.resources.failed[0].error
    assert isinstance(error, (KafkaConnectionError, KafkaTimeoutError))
    assert "the connection to broker 1 (b1:9092) ended: the broker closed it" in str(error)
    with pytest.raises(KafkaError) as caught:
        admin.run(admin.calls.describe_configs(resources, timeout_ms=2000))
    assert len(caught.value.results.resources) == 3


def test_a_call_that_ends_while_the_client_finds_out_why_a_broker_hangs_up_says_that_it_did(
    admin: Admin, cluster: AdminCluster
) -> None:
    cluster.on("DescribeConfigs", lambda _request, broker: HANG_UP if broker == 1 else None)
    began = admin.now
    found = admin.run(admin.calls.describe_configs([ConfigResource("broker", 1)], timeout_ms=500, raise_errors=False))
    assert admin.now - began <= 0.51
    # The deadline comes while the connection is tried again or while it waits for the next try.
    error = found.resources.failed[0].error
    assert isinstance(error, (KafkaConnectionError, KafkaTimeoutError))
    assert "the connection to broker 1 (b1:9092) ended: the broker closed it" in str(error)


SILENT: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "controller": ("CreatePartitions", lambda calls: calls.create_partitions({"t": 3}, 2000)),
    "coordinator": ("OffsetFetch", lambda calls: calls.list_group_offsets("g", 2000)),
    "look-up": ("FindCoordinator", lambda calls: calls.list_group_offsets("g", 2000)),
    "leader": ("ListOffsets", lambda calls: calls.list_partition_offsets({FIRST: "latest"}, timeout_ms=2000)),
    "all brokers": ("ListGroups", lambda calls: calls.list_groups(timeout_ms=2000)),
    "any broker": ("DescribeClientQuotas", lambda calls: calls.describe_client_quotas(timeout_ms=2000)),
    "metadata": ("Metadata", lambda calls: calls.list_topics(2000)),
}


@pytest.mark.parametrize("kind", SILENT)
def test_a_call_that_is_not_answered_ends_within_100_ms_of_its_deadline(kind: str, admin: Admin, cluster: AdminCluster):
    api, call = SILENT[kind]
    coordinate(cluster, lambda _: 1)
    cluster.on(api, lambda *_: SILENCE)
    began = admin.now
    with pytest.raises(KafkaTimeoutError):
        admin.run(call(admin.calls))
    assert 1.9 <= admin.now - began <= 2.1
