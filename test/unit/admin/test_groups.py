"""Groups: the forms of arguments, and coordinators that move."""

from __future__ import annotations

from typing import Any

import pytest

from kafka.admin.groups import as_groups
from kafka.admin.partitions import as_offsets, as_partitions
from kafka.errors import GroupAuthorizationFailedError, NotCoordinatorError, UnknownTopicOrPartitionError
from kafka.protocol.commit import FindCoordinatorResponse
from kafka.structs import OffsetAndMetadata, TopicPartition

from .conftest import Admin, AdminCluster

FIRST = TopicPartition("t", 0)


@pytest.fixture
def coordinators(cluster: AdminCluster) -> list[int]:
    """Who is named as the coordinator, in turn; the last one from then on."""
    turn = [1]

    def answer(request: Any, _: int) -> Any:
        node = turn.pop(0) if len(turn) > 1 else turn[0]
        return {
            "coordinators": [
                FindCoordinatorResponse.Coordinator(
                    key=key, node_id=node, host=f"b{node}", port=9092, error_code=0, error_message=None
                )
                for key in request.coordinator_keys
            ]
        }

    cluster.on("FindCoordinator", answer)
    return turn


def committed(code: int) -> dict[str, Any]:
    return {"topics": [{"name": "t", "partitions": [{"partition_index": 0, "error_code": code}]}]}


def alter(admin: Admin, seconds: float = 10.0, **options: bool) -> Any:
    return admin.run(admin.calls.alter_group_offsets("g", {FIRST: 5}, timeout_ms=seconds * 1000, **options))


def test_the_next_coordinator_is_asked_when_one_has_moved(admin: Admin, cluster: AdminCluster, coordinators: list[int]):
    coordinators[:] = [1, 2]
    cluster.on("OffsetCommit", lambda _, broker: committed(0 if broker == 2 else 16))
    assert [error.__name__ for error in alter(admin).values()] == ["NoError"]
    assert cluster.asked("OffsetCommit") == [1, 2]


def test_a_coordinator_that_never_settles_is_an_error_by_the_deadline(
    admin: Admin, cluster: AdminCluster, coordinators: list[int]
):
    cluster.on("OffsetCommit", lambda *_: committed(16))
    began = admin.now
    with pytest.raises(NotCoordinatorError, match="group 'g'"):
        alter(admin, 2.0)
    assert 1.0 < admin.now - began <= 2.1


def test_an_error_of_a_partition_is_its_outcome(admin: Admin, cluster: AdminCluster, coordinators: list[int]):
    cluster.on("OffsetCommit", lambda *_: committed(3))
    assert alter(admin, raise_errors=False) == {FIRST: UnknownTopicOrPartitionError}
    assert len(cluster.asked("OffsetCommit")) == 1
    with pytest.raises(UnknownTopicOrPartitionError, match=r"alter_group_offsets\(\): group 'g': t-0: ") as failed:
        alter(admin)
    assert failed.value.results == {FIRST: UnknownTopicOrPartitionError}


def test_an_error_of_a_group_is_raised(admin: Admin, cluster: AdminCluster, coordinators: list[int]):
    cluster.on("OffsetFetch", lambda *_: {"groups": [{"group_id": "g", "topics": [], "error_code": 30}]})
    with pytest.raises(GroupAuthorizationFailedError, match="group 'g'"):
        admin.run(admin.calls.list_group_offsets("g", 5000))


def test_partitions_are_given_in_three_forms():
    assert as_partitions([FIRST, ("t", 0)]) == as_partitions({"t": [0]}) == [FIRST]
    for wrong in (["t"], [("t", "0")], [(0, "t")]):
        with pytest.raises(TypeError):
            as_partitions(wrong)


def test_offsets_are_integers_or_objects():
    assert as_offsets({("t", 0): 5}) == as_offsets({FIRST: OffsetAndMetadata(5)}) == {FIRST: OffsetAndMetadata(5)}
    for wrong in ([FIRST], {FIRST: True}, {FIRST: None}):
        with pytest.raises(TypeError):
            as_offsets(wrong)


def test_groups_are_a_list_of_names():
    assert as_groups(["b", "a", "b"]) == ["b", "a"]
    for wrong in ("g", [7]):
        with pytest.raises(TypeError):
            as_groups(wrong)
