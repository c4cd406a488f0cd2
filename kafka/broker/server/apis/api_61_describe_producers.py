"""DescribeProducers (61), version 0: the active producers of partitions (KIP-664).

* v0: epoch, last sequence, coordinator epoch, start of the open transaction.
"""

from __future__ import annotations

from kafka.broker.server.api import Call, Code, Operation, Resource
from kafka.protocol.transaction import DescribeProducersRequest, DescribeProducersResponse


def handle(call: Call[DescribeProducersResponse], request: DescribeProducersRequest) -> DescribeProducersResponse:
    """Describe them."""
    return call.response(
        topics=[
            (topic.name, [_describe(call, topic.name, index) for index in topic.partition_indexes])
            for topic in request.topics
        ]
    )


def _describe(
    call: Call[DescribeProducersResponse], name: str, index: int
) -> DescribeProducersResponse.PartitionResponse:
    result = call.response.PartitionResponse(partition_index=index)
    partition = call.cluster.partition(name, index)
    if not call.allows(Operation.READ, Resource.TOPIC, name):
        result.error_code = Code.TOPIC_AUTHORIZATION_FAILED
    elif partition is None:
        result.error_code = Code.UNKNOWN_TOPIC_OR_PARTITION
        if name not in call.cluster.topics:
            result.error_message = "This server does not host this topic-partition."
    elif call.node.node_id not in partition.replicas:  # followers answer too
        result.error_code = Code.NOT_LEADER_OR_FOLLOWER
    else:
        result.active_producers = [
            call.response.ProducerState(
                state.producer_id,
                state.epoch,
                state.last_sequence,
                state.last_timestamp,
                state.coordinator_epoch,
                -1 if state.transaction_start is None else state.transaction_start,
            )
            for state in partition.log.producers.states.values()
        ]
    return result
