"""What the driver says of topics that are deleted while a query runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from kafka.broker import Broker
from kafka.errors import UnknownTopicOrPartitionError
from kafka.spark.driver import ClusterOffsets
from kafka.spark.offsets import EARLIEST, LATEST
from kafka.spark.options import SourceOptions
from kafka.structs import TopicPartition

A0, B0 = TopicPartition("a", 0), TopicPartition("b", 0)


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(topics={"a": 1, "b": 1}) as running:
        yield running


def driver(broker: Broker, **given: str) -> closing[ClusterOffsets]:
    options = SourceOptions.parse(
        {
            "kafka.bootstrap.servers": broker.bootstrap_servers,
            "kafka.reconnect.backoff.ms": "10",
            "fetchOffset.numRetries": "3",
            "fetchOffset.retryIntervalMs": "1",
            **given,
        },
        streaming=True,
    )
    return closing(ClusterOffsets(options, patience=1.0))


@pytest.mark.parametrize("given", [{"subscribe": "a,b"}, {"assign": '{"a":[0],"b":[0]}'}])
def test_of_topics_that_a_query_names_none_may_be_deleted(broker: Broker, given: dict[str, str]) -> None:
    with driver(broker, **given) as offsets:
        assert offsets.latest({}) == {A0: 0, B0: 0}
        broker.delete_topic("b")
        # An answer without b would be written down as the end of a batch, and one without a too.
        with pytest.raises(UnknownTopicOrPartitionError, match="topic 'b'"):
            offsets.latest({A0: 0, B0: 0})
        with pytest.raises(UnknownTopicOrPartitionError, match="topic 'b'"):
            offsets.everywhere(EARLIEST)
        # Asked for these two, the driver tells which of them there are.
        assert offsets.edges({A0: LATEST, B0: LATEST}) == {A0: 0}
        broker.create_topic("b", partitions=1)
        assert offsets.latest({}) == {A0: 0, B0: 0}


def test_a_topic_that_a_pattern_found_may_be_deleted(broker: Broker) -> None:
    with driver(broker, subscribePattern="[ab]") as offsets:
        assert offsets.latest({}) == {A0: 0, B0: 0}
        broker.delete_topic("b")
        assert offsets.latest({A0: 0, B0: 0}) == {A0: 0}
