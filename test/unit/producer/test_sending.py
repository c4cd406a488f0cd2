"""What send() and send_many() take, and what they say about the rest."""

from __future__ import annotations

import gc
import traceback

import pytest

from kafka.errors import (
    Cancelled,
    InvalidTopicError,
    KafkaTimeoutError,
    RecordTooLargeError,
    TopicAuthorizationFailedError,
)
from kafka.testing import SILENCE
from test.unit.producer.memory_cluster import Cluster


def test_what_send_many_returns_says_the_same_as_single_futures(make_producer):
    producer = make_producer(Cluster({"events": 1}))
    headers = [("trace", b"77")]
    records = [
        (b"k", b"value"),
        (None, b"v", headers),
        (b"key", None, headers, 0),
        (b"k", b"", None, 0, 12_345),
        b"alone",
    ]
    found = producer.send_many("events", records).get(10)
    assert [metadata.offset for metadata in found] == [0, 1, 2, 3, 4]
    sizes = [(each.serialized_key_size, each.serialized_value_size, each.serialized_header_size) for each in found]
    assert sizes == [(1, 5, -1), (-1, 1, 7), (3, -1, 7), (1, 0, -1), (-1, 5, -1)]
    assert found[3].timestamp == 12_345
    assert {metadata.timestamp for metadata in (*found[:3], found[4])} == {int(producer._time() * 1000)}


def test_send_many_of_values_says_their_sizes(make_producer):
    producer = make_producer(Cluster({"events": 3}))
    values = [b"x" * (number % 7) if number % 5 else None for number in range(20_000)]
    found = producer.send_many("events", values).get(10)
    assert [each.serialized_value_size for each in found] == [-1 if value is None else len(value) for value in values]


def test_send_many_places_pairs_as_send_does(make_producer):
    pairs = [(b"key-%d" % (number % 40) if number % 3 else None, b"%05d" % number) for number in range(10_000)]
    producer = make_producer(Cluster({"events": 7}))
    many = producer.send_many("events", pairs).get(10)
    sizes = [(-1 if key is None else len(key), len(value), -1) for key, value in pairs]
    assert [
        (each.serialized_key_size, each.serialized_value_size, each.serialized_header_size) for each in many
    ] == sizes
    with make_producer(Cluster({"events": 7})) as other:
        single = [other.send("events", value, key=key) for key, value in pairs]
        other.flush(10)
    assert [each.partition for each, (key, _) in zip(many, pairs, strict=True) if key] == [
        future.value.partition for future, (key, _) in zip(single, pairs, strict=True) if key
    ]
    # One after the other in each partition, and none left out.
    offsets: dict[int, list[int]] = {}
    for each in many:
        offsets.setdefault(each.partition, []).append(each.offset)
    assert all(found == list(range(len(found))) for found in offsets.values())
    assert sum(map(len, offsets.values())) == len(pairs)


def test_a_pair_that_is_too_large_fails_alone(make_producer):
    producer = make_producer(Cluster({"events": 2}), max_request_size=5000)
    sent = producer.send_many("events", [(b"k", b"small"), (b"k", b"x" * 6000), (None, b"x" * 6000), (b"k", b"small")])
    producer.flush(10)
    assert [type(future.exception) for future in sent] == [
        type(None),
        RecordTooLargeError,
        RecordTooLargeError,
        type(None),
    ]


def test_pairs_wait_for_memory_and_are_in_order(make_producer):
    cluster = Cluster({"events": 1})
    producer = make_producer(cluster, buffer_memory=20_000, batch_size=4000)
    pairs = [(b"k", b"%04d" % number + b"." * 500) for number in range(200)]
    found = producer.send_many("events", pairs).get(10)
    assert [metadata.offset for metadata in found] == list(range(200))


def test_pairs_to_a_topic_that_is_not_there_fail_each(make_producer):
    producer = make_producer(Cluster({"events": 1}), max_block_ms=500)
    sent = producer.send_many("a/b", [(b"k", b"v"), (None, b"v")])
    assert [type(future.exception) for future in sent] == [InvalidTopicError, InvalidTopicError]


def test_send_many_of_nothing_is_nothing(make_producer):
    sent = make_producer(Cluster({"events": 3})).send_many("events", [])
    assert (len(sent), list(sent), sent.get(10)) == (0, [], [])


def test_records_of_one_batch_have_one_error_whose_traceback_does_not_grow(make_producer):
    cluster = Cluster({"events": 1})
    producer = make_producer(cluster, linger_ms=50)
    producer.partitions_for("events")
    cluster.script.append(29)
    sent = producer.send_many("events", [b"x"] * 50)
    producer.flush()

    def lines(future):
        try:
            future.get(0)
        except TopicAuthorizationFailedError:
            return traceback.format_exc().count("\n")

    assert len({lines(future) for future in sent}) == 1
    assert len({id(future.exception) for future in sent}) == 1


def test_a_timeout_says_the_time_that_was_given(make_producer):
    cluster = Cluster({"events": 1})
    cluster.script.extend([SILENCE] * 10)
    producer = make_producer(cluster)
    producer.partitions_for("events")
    for sent in (producer.send_many("events", [b"1", b"2"]), producer.send("events", b"3")):
        with pytest.raises(
            KafkaTimeoutError, match=r"was not acknowledged within 0\.5 seconds; it is still being sent"
        ):
            sent.get(timeout=0.5)


def test_an_error_of_an_earlier_record_comes_before_a_timeout_of_a_later_one(make_producer):
    cluster = Cluster({"events": 2})
    producer = make_producer(cluster, max_in_flight_requests_per_connection=1)
    producer.partitions_for("events")
    cluster.script.extend([29, SILENCE])
    first, second = [(b"k", b"x", None, at) for at in (0, 1)]
    sent = producer.send_many("events", [first])
    producer.flush()
    more = producer.send_many("events", [second])
    many = type(sent).of([*sent, *more])
    with pytest.raises(TopicAuthorizationFailedError):
        many.get(timeout=0.5)


@pytest.mark.parametrize("brokers", ["0.10", "4.0"])
def test_futures_do_not_keep_the_bytes_of_batches_that_were_given_up(make_producer, brokers):
    producer = make_producer(Cluster({"events": 1}), linger_ms=60_000, batch_size=20_000)
    producer.partitions_for("events")
    producer.core.accumulator.use_format(1 if brokers == "0.10" else 2)
    futures = [producer.send("events", b"%06d" % number * 2000) for number in range(200)]
    assert producer.purge() == 200
    objects = [batch.builder for batch in {future._batch for future in futures}]
    held = [each for builder in objects for each in gc.get_referents(builder) if isinstance(each, (list, bytes))]
    assert sum(len(each) for each in held) == 0
    assert sum(builder.count for builder in objects) == 200
    assert len({future._index for future in futures if isinstance(future.exception, Cancelled)}) > 0


def test_close_gives_up_when_the_cluster_has_acknowledged_nothing_for_30_seconds(make_producer):
    cluster = Cluster({"events": 1})
    producer = make_producer(cluster, batch_size=1000, linger_ms=0)
    producer.send("events", b"x").get(10)
    cluster.brokers[0].stop()
    producer.send("events", b"x")
    began = cluster.now
    producer.close()
    assert cluster.now - began == pytest.approx(30, abs=1)


def test_close_waits_as_long_as_the_cluster_acknowledges(make_producer):
    cluster = Cluster({"events": 1})
    producer = make_producer(cluster, batch_size=1000, linger_ms=0, delivery_timeout_ms=10**6)
    producer.partitions_for("events")
    cluster.throttle_ms = 20_000
    futures = [producer.send("events", b"x" * 900) for _ in range(10)]
    began = cluster.now
    producer.close()
    assert cluster.now - began > 100
    assert all(future.succeeded() for future in futures)
