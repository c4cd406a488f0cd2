"""Reassignments that the embedded broker never has under way."""

from __future__ import annotations

from kafka.structs import TopicPartition

from .conftest import Admin, AdminCluster

PARTITION = TopicPartition("t", 1)


def test_a_move_under_way_is_listed(admin: Admin, cluster: AdminCluster):
    part = {"partition_index": 1, "replicas": [1, 2, 3], "adding_replicas": [3], "removing_replicas": [2]}
    cluster.on("ListPartitionReassignments", lambda *_: {"topics": [{"name": "t", "partitions": [part]}]})
    found = admin.run(admin.calls.list_partition_reassignments([PARTITION]))
    assert found == {PARTITION: {"replicas": [1, 2, 3], "adding_replicas": [3], "removing_replicas": [2]}}
    assert found[PARTITION].adding_replicas == [3]
    (request,) = [request for broker in cluster.brokers for request in broker.asked("ListPartitionReassignments")]
    assert [(topic.name, list(topic.partition_indexes)) for topic in request.topics] == [("t", [1])]


def test_a_controller_that_moves_costs_an_attempt(admin: Admin, cluster: AdminCluster):
    def answer(request: object, broker: int) -> dict[str, object]:
        cluster.controller = 2
        return {"error_code": 0 if broker == 2 else 41, "error_message": None, "responses": []}

    cluster.on("AlterPartitionReassignments", answer)
    assert admin.run(admin.calls.alter_partition_reassignments({PARTITION: [1]})) == {}
    assert cluster.asked("AlterPartitionReassignments") == [1, 2]
