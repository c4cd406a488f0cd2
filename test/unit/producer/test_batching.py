"""When batches are sent: full ones at once, the others after linger_ms."""

from __future__ import annotations

import pytest

from kafka.errors import IllegalStateError, KafkaTimeoutError
from kafka.future import Future
from kafka.net.connection import Connection
from kafka.record.memory_records import MemoryRecords
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


def test_the_linger_of_each_partition_ends_at_its_own_time(make_producer):
    cluster = Cluster({"events": 3})
    producer = make_producer(cluster, linger_ms=4000)
    producer.partitions_for("events")
    began = cluster.now
    for partition in range(3):
        producer.send("events", KILOBYTE, partition=partition)
        producer.rest(1)
    producer.rest(7)
    assert [(at - began, partition) for at, _, partition, _ in cluster.times] == [
        (pytest.approx(4.0 + partition, abs=0.1), partition) for partition in range(3)
    ]


def test_a_batch_that_is_not_full_waits_for_linger_ms(make_producer):
    cluster = Cluster({"events": 3})
    producer = make_producer(cluster, linger_ms=4000)
    producer.send("events", KILOBYTE)
    producer.rest(3.9)
    assert not cluster.times
    producer.rest(0.2)
    assert len(cluster.times) == 1


# Where records without a key go


def test_partitions_that_a_pass_has_no_time_for_follow_in_the_next_one(make_producer):
    """The partitions of a large topic are due at once: a pass for all of them held an event loop for 37 ms."""
    cluster = Cluster({"events": 300})
    producer = make_producer(cluster, linger_ms=20)
    producer.partitions_for("events")
    producer.core.loop.slice = 0.0
    sent = [producer.send("events", b"x", partition=index) for index in range(300)]
    producer.rest(0.05)
    producer.until(lambda: all(future.is_done for future in sent))
    assert all(future.succeeded() for future in sent)
    batches = [len(request.topic_data[0].partition_data) for request in cluster.asked("Produce")]
    assert batches == [1] * 300


def test_without_an_event_loop_a_request_has_all_that_is_due(make_producer):
    cluster = Cluster({"events": 300})
    producer = make_producer(cluster, linger_ms=20)
    producer.partitions_for("events")
    sent = [producer.send("events", b"x", partition=index) for index in range(300)]
    producer.rest(0.05)
    assert all(future.succeeded() for future in sent)
    assert [len(request.topic_data[0].partition_data) for request in cluster.asked("Produce")] == [300]


def test_the_reply_of_an_old_broker_about_many_batches_is_read_at_once(make_producer, monkeypatch):
    """Other large replies are read in slices, and one that comes behind such a reply may be done first."""
    later, decode_later = [], Connection._decode_later

    def noted(link, entry, steps):
        later.append(type(entry.request)._unbound.__name__)
        decode_later(link, entry, steps)

    monkeypatch.setattr(Connection, "_decode_later", noted)
    cluster = Cluster({"events": 1000})
    cluster.brokers[0].ranges[0] = (3, 8)  # of Kafka 2.3
    producer = make_producer(cluster, linger_ms=20)
    producer.partitions_for("events")
    sent = [producer.send("events", b"x", partition=index) for index in range(1000)]
    producer.rest(0.05)
    assert [len(request.topic_data[0].partition_data) for request in cluster.asked("Produce")] == [1000]
    assert all(future.succeeded() for future in sent)
    assert "ProduceRequest" not in later


# Large batches, which are compressed in another thread


class SlowWorkers:
    """Does what it was given when the test says so."""

    def __init__(self):
        self.jobs = []

    def submit(self, function, *args):
        future = Future()
        self.jobs.append((future, function, args))
        return future

    def work(self):
        future, function, args = self.jobs.pop(0)
        try:
            future.success(function(*args))
        except IllegalStateError as error:
            future.failure(error)


@pytest.fixture
def slow(make_producer):
    """A producer of gzip batches of up to 100,000 bytes, and the workers that compress the large ones of them."""
    cluster = Cluster({"events": 2})
    producer = make_producer(cluster, compression_type="gzip", batch_size=100_000, linger_ms=0, retries=3)
    producer.partitions_for("events")
    producer.send("events", b"first", partition=0).get(timeout=10)  # what follows is numbered from 1 on
    workers = producer.core.sender.workers = SlowWorkers()
    return cluster, producer, workers


def values(cluster, partition):
    found = []
    for request in cluster.asked("Produce"):
        for data in request.topic_data[0].partition_data:
            batch = MemoryRecords(bytes(data.records)).next_batch()
            found += [record.value for record in batch if data.index == partition]
    return found


def test_a_batch_that_is_compressed_elsewhere_keeps_its_place_and_holds_up_no_other_partition(slow):
    cluster, producer, workers = slow
    large = [b"%d " % number * 20_000 for number in range(3)]
    sent = [producer.send("events", value, partition=0) for value in large]
    sent.append(producer.send("events", b"last", partition=0))
    producer.rest()
    assert len(workers.jobs) == 1
    assert producer.send("events", b"other", partition=1).get(timeout=10).offset == 0
    producer.rest(1)
    assert not any(future.is_done for future in sent), "all wait for the first"
    while workers.jobs:
        workers.work()
        producer.rest(0.1)
    assert [future.get(timeout=10).offset for future in sent] == [1, 2, 3, 4]
    assert values(cluster, 0) == [b"first", *large, b"last"]


def test_what_compresses_a_large_batch_may_fail(slow):
    """The event loop's executor is shut down, maybe: the loop compresses the batch."""
    cluster, producer, workers = slow
    sent = producer.send("events", b"0123456789" * 5_000, partition=0)
    producer.rest()
    workers.jobs.pop()[0].failure(RuntimeError("cannot schedule new futures after shutdown"))
    assert sent.get(timeout=10).offset == 1
    assert values(cluster, 0)[1] == b"0123456789" * 5_000


def test_a_batch_can_be_given_up_while_it_is_compressed(slow):
    cluster, producer, workers = slow
    first = producer.send("events", b"0123456789" * 5_000, partition=0)
    second = producer.send("events", b"9876543210" * 5_000, partition=0)
    producer.rest()
    (batch, _) = producer.core.sender.accumulator.unsettled()
    batch.partition.expire(batch)
    assert isinstance(first.exception, KafkaTimeoutError)
    workers.work()
    producer.rest()
    workers.work()
    assert second.get(timeout=10).offset == 1
    assert values(cluster, 0) == [b"first", b"9876543210" * 5_000]
