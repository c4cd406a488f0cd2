"""kafka.producer.built_in_partitioner: where records without a key go."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from kafka._runtime.network_thread import complete
from test.unit.producer.memory_cluster import Cluster


class Counting(dict):
    """The partitions of a topic, and how often all of them were looked at."""

    looks = 0

    def values(self):
        self.looks += 1
        return super().values()


def prepared(make_producer, partitions: int, **options: Any) -> tuple[Any, Any]:
    """Return a producer's core and its topic, with nothing in the queues."""
    producer = make_producer(Cluster({"events": partitions}, nodes=2), **options)
    core = producer.core
    return core, complete(producer._driver.run(core.find_topic("events", core.now() + 10)))


def choices(core: Any, topic: Any, count: int) -> Counter[int]:
    with core.accumulator.lock:
        return Counter(core.accumulator._choose(topic).index for _ in range(count))


@pytest.mark.parametrize("uneven", [False, True], ids=["even", "uneven"])
@pytest.mark.parametrize("partitions", [1000, 5000])
def test_a_choice_among_many_partitions_does_not_look_at_all_of_them(make_producer, partitions, uneven):
    core, topic = prepared(make_producer, partitions)
    topic.partitions = counting = Counting(topic.partitions)
    if uneven:
        topic.ordered[7].queue.extend([None] * 3)
    choices(core, topic, partitions)
    topic.ordered[7].queue.clear()
    assert counting.looks <= 17


@pytest.mark.parametrize("partitions", [4, 40, 400])
def test_partitions_with_fewer_batches_waiting_are_chosen_more_often(make_producer, partitions):
    core, topic = prepared(make_producer, partitions)
    half = topic.ordered[: partitions // 2]
    for partition in half:
        partition.queue.extend([None] * 9)
    found = choices(core, topic, 40_000)
    to_long = sum(found[partition.index] for partition in half)
    for partition in half:
        partition.queue.clear()
    assert len(found) == partitions
    assert 0.08 < to_long / 40_000 < 0.102  # weights of 1 and 10: 1 in 11


def test_partitions_are_chosen_alike_without_adaptive_partitioning(make_producer):
    core, topic = prepared(make_producer, 100, partitioner_adaptive_partitioning_enable=False)
    topic.ordered[0].queue.extend([None] * 50)
    found = choices(core, topic, 50_000)
    topic.ordered[0].queue.clear()
    assert all(350 < found[index] < 650 for index in range(100))


def test_a_partition_that_has_lost_its_leader_is_chosen_no_more(make_producer):
    core, topic = prepared(make_producer, 1000)
    choices(core, topic, 1)
    without = set(range(0, 1000, 2))
    producer = core.sender.keeper()
    for index in without:
        producer.cluster.leaders["events", index] = -1
    complete(producer._driver.run(core.client.refresh(core.now() + 10)))
    assert not without & set(choices(core, topic, 3000))


def test_partitions_that_are_added_are_chosen_at_once(make_producer):
    core, topic = prepared(make_producer, 1000)
    choices(core, topic, 1)
    producer = core.sender.keeper()
    producer.cluster.topics["events"] = 2000
    complete(producer._driver.run(core.client.refresh(core.now() + 10)))
    assert any(index >= 1000 for index in choices(core, topic, 60))


def test_a_broker_that_takes_no_data_is_avoided_among_many_partitions_too(make_producer):
    core, topic = prepared(make_producer, 1000, partitioner_availability_timeout_ms=500)
    choices(core, topic, 1)
    silent = SimpleNamespace(stalled_since=core.now() - 0.45)
    for partition in topic.ordered[::2]:
        partition.sink = silent
    core.sender.keeper().rest(0.1)
    found = choices(core, topic, 2000)
    for partition in topic.ordered[::2]:
        partition.sink = None
    assert all(index % 2 for index in found)
