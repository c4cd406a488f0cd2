"""The driver's questions to the cluster, under a clock that jumps."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from kafka import KafkaClient
from kafka.config import resolve
from kafka.protocol.offset import ListOffsetsResponse
from kafka.spark.offset_reader import KafkaOffsetReader
from kafka.spark.offsets import LATEST
from kafka.spark.options import SourceOptions
from kafka.structs import TopicPartition
from test.unit.test_client_async import Cluster


@pytest.fixture
def cluster() -> Any:
    made: Any = Cluster()  # type: ignore[no-untyped-call]
    for number, broker in enumerate(made.brokers):
        broker.on("ListOffsets", lambda request, _session, number=number: ends(request, 10 + number))
    return made


def ends(request: Any, offset: int) -> dict[str, Any]:
    part: Any = ListOffsetsResponse.ListOffsetsPartitionResponse
    topic: Any = ListOffsetsResponse.ListOffsetsTopicResponse
    return {
        "topics": [
            topic(
                name=each.name,
                partitions=[
                    part(partition_index=one.partition_index, error_code=0, timestamp=-1, offset=offset)
                    for one in each.partitions
                ],
            )
            for each in request.topics
        ]
    }


@pytest.mark.parametrize("subscription", [{"subscribe": "t"}, {"subscribePattern": "t"}, {"assign": '{"t":[0,1,2]}'}])
def test_the_first_offsets_take_one_request_for_metadata_and_no_backoff(
    cluster: Any, subscription: dict[str, str]
) -> None:
    options = SourceOptions.parse({"kafka.bootstrap.servers": "b0,b1,b2", **subscription}, streaming=True)
    client = KafkaClient(environment=cluster.network.environment(), config=resolve("consumer", options.client))
    with closing(KafkaOffsetReader(options, client)) as offsets:
        bootstrap = len(cluster.asked("Metadata"))
        began = client.core.loop.time()
        assert offsets.everywhere(LATEST) == {TopicPartition("t", each): 10 + each for each in range(3)}
        assert client.core.loop.time() == began
        assert len(cluster.asked("Metadata")) == bootstrap + 1
        # A leader that moves is found as before.
        cluster.topics["t"] = {0: 1, 1: 1, 2: 2}
        moved = iter([6])
        cluster.brokers[0].on("ListOffsets", lambda request, _session: refused(request, next(moved)))
        assert offsets.everywhere(LATEST)[TopicPartition("t", 0)] == 11


def refused(request: Any, code: int) -> dict[str, Any]:
    answer = ends(request, -1)
    for topic in answer["topics"]:
        for part in topic.partitions:
            part.error_code = code
    return answer
