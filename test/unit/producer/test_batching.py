"""When batches are sent: full ones at once, the others after linger_ms."""

from __future__ import annotations

import pytest

from test.unit.producer.memory_cluster import Cluster

KILOBYTE = b"x" * 1000


def longest_wait(cluster: Cluster, producer, send, count: int) -> float:
    """Send records 4 ms apart; return how long the slowest full batch was under way, in seconds."""
    done: list[float] = []
    full = []
    for number in range(count):
        future = send(number)
        if number % 16 == 0:
            began = cluster.now
            future.add_callback(lambda _, began=began: done.append(cluster.now - began))
            full.append(future)
        producer.rest(0.004)
    producer.rest(0.5)
    assert sum(future.is_done for future in full) >= len(full) - 3  # those that are still open
    return max(done)


@pytest.mark.parametrize("partitions", [1, 2, 3, 10])
@pytest.mark.parametrize("many", [False, True], ids=["send", "send_many"])
def test_full_batches_do_not_wait_for_linger_ms(make_producer, partitions, many):
    cluster = Cluster({"events": partitions})
    producer = make_producer(cluster, linger_ms=4000)
    producer.partitions_for("events")

    def send(_number: int):
        return producer.send_many("events", [KILOBYTE])[0] if many else producer.send("events", KILOBYTE)

    assert longest_wait(cluster, producer, send, 300) < 1


def test_full_batches_of_keys_do_not_wait_for_linger_ms(make_producer):
    cluster = Cluster({"events": 3})
    producer = make_producer(cluster, linger_ms=4000)
    producer.partitions_for("events")
    done = []
    for number in range(300):
        producer.send("events", KILOBYTE, key=b"%d" % (number % 7)).add_callback(lambda _: done.append(1))
        producer.rest(0.004)
    assert len(done) > 240, "all but the last batch of each partition"


def test_a_batch_that_is_not_full_waits_for_linger_ms(make_producer):
    cluster = Cluster({"events": 3})
    producer = make_producer(cluster, linger_ms=4000)
    producer.send("events", KILOBYTE)
    producer.rest(3.9)
    assert not cluster.times
    producer.rest(0.2)
    assert len(cluster.times) == 1


# Where records without a key go


def test_a_request_has_128_batches_at_most_and_all_others_follow_at_once(make_producer):
    """The partitions of a large topic are due at once: a pass for all of them held an event loop for 37 ms."""
    cluster = Cluster({"events": 300})
    producer = make_producer(cluster, linger_ms=20)
    producer.partitions_for("events")
    sent = [producer.send("events", b"x", partition=index) for index in range(300)]
    producer.rest(0.05)
    assert all(future.succeeded() for future in sent)
    batches = [len(request.topic_data[0].partition_data) for request in cluster.asked("Produce")]
    assert sum(batches) == 300
    assert max(batches) == 128
    assert len(batches) == 3
