"""kafka.producer.plugins: serializers, partitioner and interceptors on the way of a record."""

from __future__ import annotations

from typing import Any

import pytest

from kafka.errors import IllegalArgumentError
from kafka.partitioner import DefaultPartitioner, Partitioner, RoundRobinPartitioner
from test.unit.producer.memory_cluster import Cluster


class Upper:
    """A serializer that can be closed."""

    closed = False

    def serialize(self, topic: str, headers: Any, data: str) -> bytes:
        return f"{topic}:{data.upper()}".encode()

    def close(self) -> None:
        self.closed = True


class ByLength:
    """A partitioner of the application."""

    closed = False

    def __call__(self, key: bytes, all_partitions: list[int], available: list[int]) -> int:
        return len(key) % len(all_partitions)

    def close(self) -> None:
        self.closed = True


class Watching:
    """An interceptor that counts."""

    def __init__(self) -> None:
        self.seen: list[object] = []

    def on_send(self, record: Any) -> Any:
        self.seen.append("send")
        return record._replace(value=b"changed")

    def on_acknowledgement(self, metadata: Any, error: BaseException | None) -> None:
        self.seen.append((metadata.partition, metadata.offset, error))


def values(cluster: Cluster) -> bytes:
    return b"".join(bytes(topic.partition_data[0].records) for topic in cluster.asked("Produce")[-1].topic_data)


def test_serializers_make_bytes_and_are_closed_with_the_producer(make_producer: Any) -> None:
    cluster, serializer = Cluster({"events": 1}), Upper()
    producer = make_producer(cluster, value_serializer=serializer)
    assert not producer._plain
    producer.send("events", "hello").get(10)
    assert b"events:HELLO" in values(cluster)
    producer.close()
    assert serializer.closed


def test_the_partitioner_of_the_application_places_every_record(make_producer: Any) -> None:
    cluster, partitioner = Cluster({"events": 3}), ByLength()
    producer = make_producer(cluster, partitioner=partitioner)
    assert [producer.send("events", b"x", key=b"k" * size).get(10).partition for size in (1, 2, 3)] == [1, 2, 0]
    producer.close()
    assert partitioner.closed


@pytest.mark.parametrize("partitions", [2, 3])
def test_each_record_takes_one_turn_of_a_partitioner_that_counts(make_producer: Any, partitions: int) -> None:
    cluster = Cluster({"t": partitions})
    with make_producer(cluster, partitioner=RoundRobinPartitioner()) as producer:
        found = [producer.send("t", b"x").get(10).partition for _ in range(2 * partitions)]
    assert found == [*range(partitions)] * 2


def test_a_partitioner_is_notified_of_each_batch_and_may_choose_again(make_producer: Any) -> None:
    class Sticky(Partitioner):
        opened = 0

        def partition(self, *args: Any, **kwargs: Any) -> int:
            return self.opened % 2

        def on_new_batch(self, topic: str, cluster: Any, prev_partition: int) -> None:
            self.opened += 1

    with make_producer(Cluster({"t": 2}), partitioner=Sticky()) as producer:
        assert [producer.send("t", b"x").get(10).partition for _ in range(4)] == [1, 0, 1, 0]


def test_a_partition_that_does_not_exist_is_an_error_that_names_what_chose_it(make_producer: Any) -> None:
    producer = make_producer(Cluster({"events": 2}))
    with pytest.raises(IllegalArgumentError, match=r"there is no partition 2 of topic 'events'; it has 2 partitions"):
        producer.send("events", b"x", partition=2)
    producer = make_producer(Cluster({"events": 2}), partitioner=lambda _key, _all, _available: 5)
    with pytest.raises(IllegalArgumentError, match="the partitioner chose partition 5"):
        producer.send("events", b"x", key=b"k")


def test_keys_are_placed_alike_by_the_fast_path_and_by_the_other_one(make_producer: Any) -> None:
    producer = make_producer(Cluster({"events": 7}))
    for number in range(50):
        key = b"key-%d" % number
        fast, slow = producer.send("events", b"x", key), producer.send("events", b"x", key, headers=[("h", b"1")])
        expected = DefaultPartitioner().choose("events", key, list(range(7)), ())
        assert fast._batch.partition.index == slow._batch.partition.index == expected
    producer.flush()


def test_interceptors_change_a_record_and_see_its_outcome_first(make_producer: Any) -> None:
    cluster, watching = Cluster({"events": 1}), Watching()
    producer = make_producer(cluster, interceptors=[watching])
    order: list[str] = []
    future = producer.send("events", b"original")
    future.add_callback(lambda _: order.append(f"after {len(watching.seen)}"))
    future.get(10)
    assert b"changed" in values(cluster)
    assert watching.seen == ["send", (0, 0, None)]
    assert order == ["after 2"]


def test_interceptors_see_the_error_of_a_record_that_is_refused(make_producer: Any) -> None:
    watching = Watching()
    producer = make_producer(Cluster({"events": 1}), interceptors=[watching], max_block_ms=1000)
    with pytest.raises(IllegalArgumentError):
        producer.send("events", b"x", partition=4)
    assert isinstance(watching.seen[-1][2], IllegalArgumentError)  # type: ignore[index]


def test_interceptors_see_the_outcome_of_a_record_that_has_waited_for_metadata(make_producer: Any) -> None:
    watching = Watching()
    producer = make_producer(Cluster({"events": 1}), interceptors=[watching])
    assert "events" not in producer._accumulator.topics
    assert producer.send("events", b"x").get(10).offset == 0
    assert watching.seen[-1] == (0, 0, None)
