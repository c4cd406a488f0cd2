"""Arrow columns into a producer: the same records in the same places as one by one."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from kafka import KafkaAdminClient
from kafka.errors import (
    ClientClosedError,
    IllegalArgumentError,
    KafkaTimeoutError,
    RecordTooLargeError,
    TopicAuthorizationFailedError,
)
from kafka.partitioner import RoundRobinPartitioner, murmur2
from kafka.producer.arrow import SentColumns, takes_columns
from kafka.producer.partition import Partition, Topic
from kafka.producer.producer_batch import Delivered, ProducerBatch
from kafka.protocol.produce import ProduceRequest
from kafka.record import BatchBuilder
from kafka.structs import TopicPartition

from .conftest import WAIT

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


class Watching:
    def on_send(self, record: Any) -> Any:
        return record


@pytest.fixture
def wide(broker: Any, topic: str) -> str:
    broker.create_topic(topic + "-wide", 5)
    return topic + "-wide"


def rows(broker: Any, topic: str, partition: int | None = None) -> list[tuple[Any, ...]]:
    return [(record.key, record.value, tuple(record.headers)) for record in broker.records(topic, partition)]


def test_nulls_headers_and_empty_ones_arrive_as_they_are(make, broker, topic):
    values = pa.array([b"a", None, b"", b"d"])
    keys = pa.array([None, b"k", b"", None])
    headers = pa.array([None, [], [{"key": "h", "value": b"1"}, {"key": "n", "value": None}], None], HEADERS)
    make().send_columns(topic, values, keys, headers).get(WAIT)
    expected = [(None, b"a", ()), (b"k", None, ()), (b"", b"", (("h", b"1"), ("n", None))), (None, b"d", ())]
    assert rows(broker, topic) == expected


@pytest.mark.parametrize("codec", [None, "gzip", "lz4"])
def test_keys_go_where_their_hash_says_and_keep_their_order(make, broker, wide, codec):
    rng = random.Random(1)
    keys = [rng.randbytes(rng.randrange(12)) for _ in range(300)] * 3
    values = [b"%d" % number for number in range(len(keys))]
    producer = make(batch_size=1000, compression_type=codec)
    producer.send_columns(wide, pa.array(values), pa.array(keys)).get(WAIT)
    for index in range(5):
        expected = [
            (key, value, ())
            for key, value in zip(keys, values, strict=True)
            if (murmur2(key) & 0x7FFFFFFF) % 5 == index
        ]
        assert rows(broker, wide, index) == expected


def test_a_partition_that_is_given_goes_before_the_key(make, broker, wide):
    values, keys = pa.array([b"0", b"1", b"2", b"3"]), pa.array([b"k", b"k", b"k", None])
    partitions = pa.array([4, None, 2, 1], pa.int32())
    make().send_columns(wide, values, keys, None, partitions).get(WAIT)
    own = (murmur2(b"k") & 0x7FFFFFFF) % 5
    assert (b"k", b"0", ()) in rows(broker, wide, 4)
    assert (b"k", b"1", ()) in rows(broker, wide, own)
    assert (b"k", b"2", ()) in rows(broker, wide, 2)
    assert (None, b"3", ()) in rows(broker, wide, 1)


def test_a_partition_that_was_just_added_can_be_given(make, broker, topic):
    producer = make()
    producer.send(topic, b"0").get(WAIT)
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.create_partitions({topic: 3})
    producer.send_columns(topic, pa.array([b"1"]), None, None, pa.array([2], pa.int32())).get(WAIT)
    assert rows(broker, topic, 2) == [(None, b"1", ())]


@pytest.mark.parametrize("index", [5, -1, -2])
def test_a_partition_that_is_not_there_is_refused_and_nothing_sent(make, broker, wide, index):
    with pytest.raises(IllegalArgumentError, match=f"there is no partition {index} of topic"):
        make().send_columns(wide, pa.array([b"a", b"b"]), None, None, pa.array([0, index], pa.int32()))
    assert rows(broker, wide) == []


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint8(), pa.int16()])
def test_partitions_may_be_integers_of_any_size(make, broker, wide, kind):
    make().send_columns(wide, pa.array([b"a", b"b"]), None, None, pa.array([3, None], kind)).get(WAIT)
    assert (None, b"a", ()) in rows(broker, wide, 3)
    assert len(rows(broker, wide)) == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"partitions": pa.array([1], pa.int32())}, "1 partitions for 2 values"),
        ({"partitions": pa.array([1, 2, 3], pa.int32())}, "3 partitions for 2 values"),
        ({"partitions": pa.array(["a", "b"])}, "cannot be partitions"),
        ({"keys": pa.array([1, 2])}, "cannot be keys"),
        ({"keys": pa.array([b"k"])}, "1 "),
        ({"keys": pa.array([b"k"]), "partitions": pa.array([1, 1])}, "1 "),
    ],
)
def test_columns_that_do_not_go_together_are_refused_and_nothing_sent(make, broker, wide, options, words):
    with pytest.raises(IllegalArgumentError, match=words):
        make().send_columns(wide, pa.array([b"a", b"b"]), **options)
    assert rows(broker, wide) == []


def test_records_without_a_key_keep_their_order_among_the_others(make, broker, topic):
    keys = [b"%d" % number if number % 3 else None for number in range(500)]
    values = [b"%d" % number for number in range(500)]
    make(batch_size=1000).send_columns(topic, pa.array(values), pa.array(keys)).get(WAIT)
    assert [value for _, value, _ in rows(broker, topic)] == values


def test_keys_say_nothing_where_they_are_to_be_ignored(make, broker, wide):
    producer = make(partitioner_ignore_keys=True, batch_size=100_000)
    producer.send_columns(wide, pa.array([b"a"] * 50), pa.array([b"%d" % number for number in range(50)])).get(WAIT)
    assert sorted(len(rows(broker, wide, index)) for index in range(5)) == [0, 0, 0, 0, 50]


def test_records_sent_one_by_one_before_and_after_keep_their_place(make, broker, topic):
    producer = make(linger_ms=1000)
    producer.send(topic, b"0", partition=0)
    first = producer.send_columns(topic, pa.array([b"1", b"2"]))
    producer.send(topic, b"3")
    second = producer.send_columns(topic, pa.array([b"4"]), pa.array([b"k"]))
    producer.send(topic, b"5", b"k")
    producer.flush(WAIT)
    assert [list(sent.counts().values()) for sent in (first, second)] == [[2], [1]]
    assert [value for _, value, _ in rows(broker, topic)] == [b"0", b"1", b"2", b"3", b"4", b"5"]


def test_columns_in_chunks_and_slices_are_taken(make, broker, topic):
    values = pa.chunked_array([pa.array(["x", "a", "b"])[1:], pa.array(["c"])])
    keys = pa.chunked_array([pa.array([b"", b"", b"1", b"2"])[2:], pa.array([b"3"])])
    make().send_columns(topic, values, keys).get(WAIT)
    assert rows(broker, topic) == [(b"1", b"a", ()), (b"2", b"b", ()), (b"3", b"c", ())]


def test_no_rows_are_no_batches(make, topic):
    assert make().send_columns(topic, pa.array([], pa.binary()), pa.array([], pa.binary())).get(0) == {}


def test_a_record_that_is_too_large_fails_with_its_size(make, broker, topic):
    with pytest.raises(RecordTooLargeError, match="max_request_size"):
        make(max_request_size=10_000).send_columns(topic, pa.array([b"a", b"x" * 20_000]))


def test_more_than_the_buffer_holds_waits_for_room(make, broker, topic):
    producer = make(buffer_memory=20_000, batch_size=5000)
    sent = producer.send_columns(topic, pa.array([b"%0100d" % number for number in range(2000)]))
    producer.flush(WAIT)
    assert sum(sent.get(WAIT).values()) == 2000
    assert [value for _, value, _ in rows(broker, topic)] == [b"%0100d" % number for number in range(2000)]
    assert producer.health()["buffer_available"] == 20_000


def test_a_transaction_that_is_aborted_takes_its_columns_along(make, broker, topic):
    producer = make(transactional_id=topic)
    producer.init_transactions()
    for commit in (False, True):
        producer.begin_transaction()
        producer.send_columns(topic, pa.array([b"%d" % commit]))
        producer.flush(WAIT)
        (producer.commit_transaction if commit else producer.abort_transaction)()
    assert [record.value for record in broker.records(topic, committed=True)] == [b"1"]


def test_a_closed_producer_refuses(make, topic):
    producer = make()
    producer.send_columns(topic, pa.array([b"a"]))
    producer.close()
    with pytest.raises(ClientClosedError):
        producer.send_columns(topic, pa.array([b"b"]))


def test_an_interceptor_that_must_see_each_record_is_not_bypassed(make):
    assert takes_columns(make()._calls)
    assert not takes_columns(make(value_serializer=str.encode)._calls)
    assert not takes_columns(make(partitioner=RoundRobinPartitioner())._calls)
    assert not takes_columns(make(interceptors=[Watching()])._calls)


@pytest.mark.parametrize("options", [{}, {"interceptors": [Watching()]}])
def test_the_records_of_a_call_are_counted_by_partition_when_they_are_written(make, broker, wide, options):
    producer = make(linger_ms=60_000, **options)
    values, partitions = pa.array([b"v"] * 3), pa.array([0, 0, 3], pa.int32())
    with broker.delay("Produce", 2, times=1):  # whole batches are sent at once, whatever linger_ms is
        some = [producer.send_columns(wide, values, None, None, partitions) for _ in range(2)]
        with pytest.raises(KafkaTimeoutError, match="are still being sent"):
            some[1].get(0)
    assert some[0].get(WAIT) == {TopicPartition(wide, 0): 2, TopicPartition(wide, 3): 1}
    assert some[1].get(WAIT) == some[0].counts()
    assert some[1].is_done


def test_a_serializer_gets_the_objects_of_a_column(make, broker, topic):
    producer = make(value_serializer=lambda text: text.upper().encode())
    producer.send_columns(topic, pa.array(["a", "b"]), pa.array(["k", None])).get(WAIT)
    assert rows(broker, topic) == [(b"k", b"A", ()), (None, b"B", ())]


def test_a_batch_that_waits_for_its_leader_does_not_keep_the_others_in_memory():
    def settled(number: int) -> ProducerBatch:
        batch = ProducerBatch(Partition(Topic("out"), number, None), BatchBuilder(100), 0.0, 0)
        if number:
            batch.settle(Delivered(0, -1))
        return batch

    batches = [settled(number) for number in range(3)]
    sent = SentColumns(dict.fromkeys(batches, 1))
    assert sent.counts() == {TopicPartition("out", 1): 1, TopicPartition("out", 2): 1}
    assert list(sent._waiting) == batches[:1]
    assert repr(sent) == "<SentColumns 2 records written, 1 under way>"


def test_the_error_of_a_record_of_a_column_is_raised(make, broker, topic):
    broker.fail(ProduceRequest, [TopicAuthorizationFailedError])
    sent = make().send_columns(topic, pa.array([b"a"]))
    with pytest.raises(TopicAuthorizationFailedError):
        sent.get(WAIT)
