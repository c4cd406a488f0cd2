"""KafkaProducer against the embedded broker, where nothing goes wrong."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from kafka import KafkaAdminClient, KafkaProducer, TopicPartition
from kafka._runtime.network_thread import complete
from kafka.broker import Broker
from kafka.broker.faults import NO_REPLY
from kafka.errors import (
    BufferExhaustedError,
    ClientClosedError,
    IllegalArgumentError,
    IllegalStateError,
    InvalidTopicError,
    KafkaConfigurationError,
    KafkaTimeoutError,
    NoBrokersAvailable,
    RecordTooLargeError,
    UnsupportedVersionError,
)
from kafka.partitioner import RoundRobinPartitioner, StickyPartitioner, murmur2
from kafka.producer.delivery import DeliveryReport
from kafka.producer.sink import Sink
from kafka.serializer import Serializer
from test.embedded.threads import nothing_left

from .conftest import WAIT

FACES = "both"


def values(broker, topic, partition=None):
    return [record.value for record in broker.records(topic, partition)]


# One record


@pytest.mark.one_face  # aiokafka's metadata has no sizes and no checksum
def test_the_future_says_where_the_record_is(make, broker, topic):
    metadata = make().send(topic, b"value", b"key", [("h", b"12"), ("n", None)], timestamp_ms=1234567890123).get(WAIT)
    assert metadata.topic_partition == TopicPartition(topic, 0) == metadata[:2]
    assert (metadata.offset, metadata.timestamp, metadata.checksum) == (0, 1234567890123, None)
    assert (metadata.serialized_key_size, metadata.serialized_value_size, metadata.serialized_header_size) == (3, 5, 4)
    (record,) = broker.records(topic)
    assert (record.key, record.value, record.timestamp) == (b"key", b"value", 1234567890123)
    assert list(record.headers) == [("h", b"12"), ("n", None)]


def test_topics_that_are_used_one_after_the_other_are_asked_about_once(make, broker):
    """Not all of them again with each that is new: a thousand topics would be half a million names."""
    count = 40
    names = [f"one-by-one-{number}" for number in range(count)]
    for name in names[: count // 2]:  # the broker creates the others as they are asked for
        broker.create_topic(name)
    producer = make(client_id="one-by-one")
    for name in names:
        producer.send(name, b"v").get(WAIT)
    requests = broker.asked("Metadata", "one-by-one")
    asked = [topic.name for request in requests for topic in request.topics or ()]
    assert set(asked) == set(names)
    assert len(requests) <= 2 * count + 5
    assert len(asked) <= 2 * count + 5  # a topic that is being created is asked about again
    assert all(len(request.topics or ()) <= 3 for request in requests)


@pytest.mark.one_face  # the loop of asyncio has one thread
@pytest.mark.parametrize(
    ("options", "own"), [({"linger_ms": 0}, True), ({"linger_ms": 0, "on_delivery": print}, False)]
)
def test_a_record_without_company_is_sent_by_the_thread_of_send(options, own, make, topic, monkeypatch):
    """Unless callbacks could run: the program may hold a lock in send() that they take."""
    threads, sent, send = [], threading.Event(), Sink._send

    def noting(*args):
        threads.append(threading.current_thread())
        send(*args)
        sent.set()

    monkeypatch.setattr(Sink, "_send", noting)
    producer = make(**options)
    producer.send(topic, b"connects").get(WAIT)
    own_threads, deadline = [], time.monotonic() + WAIT
    while True:  # now and then the network thread is not asleep, and sends it
        threads.clear()
        sent.clear()
        future = producer.send(topic, b"value")
        assert sent.wait(WAIT)
        own_threads.append(threads[0] is threading.current_thread())
        future.get(WAIT)
        if len(own_threads) > 5 and (own_threads[-1] or not own):
            break
        assert time.monotonic() < deadline
    assert any(own_threads) is own


@pytest.mark.one_face  # aiokafka's metadata has no sizes
def test_headers_may_be_a_mapping(make, broker, topic):
    metadata = make().send(topic, b"value", headers={"a": b"1", "b": None}).get(WAIT)
    assert metadata.serialized_header_size == 3
    (record,) = broker.records(topic)
    assert list(record.headers) == [("a", b"1"), ("b", None)]


@pytest.mark.one_face  # aiokafka's metadata has no sizes
def test_absent_parts_have_size_minus_one(make, topic):
    metadata = make().send(topic).get(WAIT)
    assert metadata[-3:] == (-1, -1, -1)
    assert make().send(topic, b"").get(WAIT)[-3:] == (-1, 0, -1)


def test_the_brokers_timestamp_counts_where_the_topic_says_so(make, broker, topic):
    broker.delete_topic(topic)
    broker.create_topic(topic, configs={"message.timestamp.type": "LogAppendTime"})
    metadata = make().send(topic, b"x", timestamp_ms=5).get(WAIT)
    assert metadata.timestamp > 10**12


@pytest.mark.one_face  # callbacks of asyncio get the future
def test_callbacks_run_once_and_late_ones_at_once(make, topic):
    seen = []
    future = make().send(topic, b"x")
    future.add_callback(seen.append).add_errback(lambda error: seen.append("failed"))
    future.add_both(lambda what, *rest, **more: seen.append((what, rest, more)), k=1)
    metadata = future.get(WAIT)
    future.add_callback(lambda first, found: seen.append((first, found)), "args first")
    assert seen == [metadata, (metadata, (), {"k": 1}), ("args first", metadata)]
    assert future.is_done
    assert future.succeeded()
    assert not future.failed()
    assert future.exception is None
    assert future.value == metadata


@pytest.mark.one_face  # the event loop handles errors of its callbacks
def test_a_callback_that_raises_has_no_other_effect(make, topic, caplog):
    producer = make()
    future = producer.send(topic, b"x").add_callback(lambda _: 1 / 0)
    assert future.get(WAIT).offset == 0
    assert producer.send(topic, b"x").get(WAIT).offset == 1
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.one_face  # a callback on the event loop cannot wait
def test_a_callback_may_send_but_not_wait(make, broker, topic):
    producer = make()
    problems = []

    def again(_metadata):
        later = producer.send(topic, b"second")
        try:
            later.get(1)
        except IllegalStateError as error:
            problems.append(error)

    producer.send(topic, b"first").add_callback(again)
    producer.flush(WAIT)
    producer.flush(WAIT)
    assert values(broker, topic) == [b"first", b"second"]
    assert len(problems) == 1


@pytest.mark.one_face  # about the synchronous producer in asyncio
def test_futures_can_be_awaited_in_asyncio(make, topic):
    producer = make()

    async def go():
        futures = [producer.send(topic, b"%d" % number) for number in range(10)]
        return await asyncio.gather(*(asyncio.ensure_future(wait(future)) for future in futures))

    async def wait(future):
        return await future

    assert [metadata.offset for metadata in asyncio.run(go())] == list(range(10))


def test_get_ends_the_linger(make, topic):
    assert make(linger_ms=60_000).send(topic, b"x").get(WAIT).offset == 0


def test_flush_ends_the_linger(make, broker, topic):
    producer = make(linger_ms=60_000)
    producer.send(topic, b"x")
    producer.flush(WAIT)
    assert values(broker, topic) == [b"x"]


def test_the_linger_ends_without_another_call(make, topic):
    done = threading.Event()
    make(linger_ms=1).send(topic, b"x").add_callback(lambda _: done.set())
    assert done.wait(WAIT)


@pytest.mark.one_face  # a dropped asyncio producer is an error of the program; see embedded/aio
def test_a_producer_without_a_reference_delivers(broker, topic):
    future = KafkaProducer(bootstrap_servers=broker.bootstrap_servers).send(topic, b"x")
    assert future.get(WAIT).offset == 0


# Many records


@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
def test_order_is_kept_over_many_batches(make, broker, topic, codec):
    producer = make(compression_type=codec, batch_size=500, linger_ms=0)
    futures = [producer.send(topic, b"%d" % number) for number in range(300)]
    producer.flush(WAIT)
    assert all(future.succeeded() for future in futures)
    assert [future.value.offset for future in futures] == list(range(300))
    assert values(broker, topic) == [b"%d" % number for number in range(300)]


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_all_acks(make, broker, topic, acks):
    producer = make(acks=acks, batch_size=500)
    futures = [producer.send(topic, b"%d" % number) for number in range(500)]
    producer.flush(WAIT)
    last = futures[-1].get(WAIT)
    assert last.offset == 499 if acks else last is None or last.offset == -1  # None in asyncio, as in aiokafka
    producer.send(topic, b"end", timestamp_ms=1).get(WAIT)
    while len(values(broker, topic)) < 501:
        time.sleep(0.01)
    assert values(broker, topic) == [*(b"%d" % number for number in range(500)), b"end"]


@pytest.mark.one_face  # aiokafka's metadata has no sizes
def test_send_many_takes_values_and_tuples(make, broker, topic):
    producer = make(batch_size=300)
    plain = producer.send_many(topic, [b"%d" % number for number in range(100)])
    mixed = producer.send_many(topic, [b"a", (b"k", b"b"), (None, b"c", [("h", b"")], 0, 77)])
    assert [metadata.offset for metadata in plain.get(WAIT)] == list(range(100))
    assert [metadata.offset for metadata in mixed.get(WAIT)] == [100, 101, 102]
    assert plain[9].get(0).serialized_value_size == 1
    assert plain[-1].get(0).serialized_value_size == 2
    assert [future.value.serialized_key_size for future in mixed[:2]] == [-1, 1]
    assert broker.records(topic)[102].timestamp == 77
    assert len(plain) == 100
    assert producer.send_many(topic, []).get(WAIT) == []
    with pytest.raises(IndexError):
        plain[100]


@pytest.mark.one_face  # an asyncio producer is used on its event loop
def test_threads_share_a_producer(make, broker, topic):
    producer = make(batch_size=1000, buffer_memory=20_000)
    problems = []

    def work(name):
        try:
            for number in range(500):
                producer.send(topic, b"%s-%d" % (name, number))
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(b"%d" % at,)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT)
    producer.flush(WAIT)
    assert not problems
    found = values(broker, topic)
    for at in range(4):
        mine = [value for value in found if value.startswith(b"%d-" % at)]
        assert mine == [b"%d-%d" % (at, number) for number in range(500)]


def test_on_delivery_gets_the_range_of_each_batch(make, topic):
    reports = []
    producer = make(on_delivery=reports.append, linger_ms=60_000)
    producer.send_many(topic, [b"x"] * 10)
    producer.flush(WAIT)
    assert reports == [DeliveryReport(TopicPartition(topic, 0), 0, 10, None)]
    assert reports[0].offsets == range(10)


# Partitions


def test_records_with_a_key_go_where_javas_go(make, broker, topic):
    broker.create_topic(topic + "-5", 5)
    producer = make()
    futures = [producer.send(topic + "-5", b"v", b"key-%d" % number) for number in range(50)]
    for number, future in enumerate(futures):
        assert future.get(WAIT).partition == (murmur2(b"key-%d" % number) & 0x7FFFFFFF) % 5


def test_records_without_a_key_stay_for_a_batch_and_reach_all_partitions(make, broker, topic):
    broker.create_topic(topic + "-4", 4)
    producer = make(batch_size=1000)
    for _ in range(200):
        producer.send_many(topic + "-4", [b"x" * 100] * 10)
    producer.flush(WAIT)
    counts = [len(values(broker, topic + "-4", partition)) for partition in range(4)]
    assert sum(counts) == 2000
    assert min(counts) > 200


def test_the_partition_can_be_given(make, broker, topic):
    broker.create_topic(topic + "-3", 3)
    assert make().send(topic + "-3", b"x", partition=2).get(WAIT).partition == 2
    with pytest.raises(IllegalArgumentError, match=r"no partition 7 .* 3 partitions"):
        make().send(topic + "-3", b"x", partition=7)


def test_a_partition_that_was_just_added_can_be_given(make, broker, topic):
    producer = make()
    producer.send(topic, b"0", partition=0).get(WAIT)
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.create_partitions({topic: 3})
    assert producer.send(topic, b"1", partition=2).get(WAIT).partition == 2


@pytest.mark.parametrize("partitioner", [RoundRobinPartitioner(), StickyPartitioner(), lambda key, every, some: 1])
def test_other_partitioners(make, broker, topic, partitioner):
    name = f"{topic[:30]}-{type(partitioner).__name__}"
    broker.create_topic(name, 3)
    producer = make(partitioner=partitioner, linger_ms=0)
    found = [producer.send(name, b"x").get(WAIT).partition for _ in range(30)]
    if isinstance(partitioner, RoundRobinPartitioner):
        assert {found.count(at) for at in range(3)} == {10}
    elif isinstance(partitioner, StickyPartitioner):
        assert set(found) == {0, 1, 2}
    else:
        assert set(found) == {1}


# What users give


def test_serializers_of_all_forms(make, broker, topic):
    class Shouting(Serializer):
        def serialize(self, topic, headers, data):
            return data.upper().encode()

    make(key_serializer=str.encode, value_serializer=Shouting()).send(topic, "loud", "k").get(WAIT)
    (record,) = broker.records(topic)
    assert (record.key, record.value) == (b"k", b"LOUD")


def test_a_serializers_own_exception_comes_out(make, topic):
    with pytest.raises(ZeroDivisionError):
        make(value_serializer=lambda value: 1 / value).send(topic, 0)


@pytest.mark.parametrize(("record", "message"), [
    ({"value": "text"}, "value must be bytes, not str; set value_serializer"),
    ({"value": b"", "key": 1}, "key must be bytes, not int; set key_serializer"),
    ({"value": b"", "headers": [("a", "b")]}, "header 'a' must be bytes, not str"),
    ({"value": b"", "headers": [(b"a", b"b")]}, "name must be a str, not bytes"),
    ({"value": b"", "headers": ["ab"]}, "pairs of name and bytes, as in .*, not 'ab'"),
    ({"value": b"", "headers": {"a": "b"}}, "header 'a' must be bytes, not str"),
    ({"value": b"", "timestamp_ms": "now"}, "timestamp_ms must be a number"),
])  # fmt: skip
def test_a_value_other_than_bytes_is_a_type_error_that_names_the_fix(make, topic, record, message):
    with pytest.raises(TypeError, match=message):
        make().send(topic, **record)


def test_buffers_are_copied(make, broker, topic):
    data = bytearray(b"before")
    producer = make(linger_ms=60_000)
    producer.send(topic, data)
    data[:] = b"after!"
    producer.flush(WAIT)
    assert values(broker, topic) == [b"before"]


def test_a_record_that_is_too_large_fails_alone(make, broker, topic):
    producer = make(max_request_size=2000, batch_size=1000)
    future = producer.send(topic, b"x" * 3000)
    assert isinstance(future.exception, RecordTooLargeError)
    assert producer.send(topic, b"x" * 1500).get(WAIT).offset == 0


def test_a_topic_that_cannot_be_is_the_futures_error(make):
    future = make().send("a/b", b"x")
    with pytest.raises(InvalidTopicError, match=r"'a/b' is not a legal name of a topic"):
        future.get(WAIT)
    with pytest.raises(TypeError, match="a topic's name must be a str"):
        make().send(b"bytes", b"x")


def test_a_topic_that_does_not_come_is_a_timeout(make, broker):
    producer = make(allow_auto_create_topics=False, max_block_ms=50)
    with pytest.raises(KafkaTimeoutError, match="'nowhere'"):
        producer.send("nowhere", b"x")


def test_a_topic_is_created_by_sending(make, topic):
    assert make().send(topic + "-new", b"x").get(WAIT).offset == 0


def test_partitions_for(make, broker, topic):
    broker.create_topic(topic + "-3", 3)
    assert make().partitions_for(topic + "-3") == {0, 1, 2}


def test_what_this_release_does_not_have_is_refused(broker):
    with pytest.raises(KafkaConfigurationError, match="not supported"):
        KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transaction_two_phase_commit_enable=True)


# Memory


def test_a_full_buffer_blocks_and_then_says_so(make, broker, topic):
    producer = make(buffer_memory=5000, batch_size=1000, max_block_ms=2000)
    producer.partitions_for(topic)

    def fill():
        for _ in range(100):
            producer.send(topic, b"x" * 100)

    with broker.intercept("Produce", lambda _exchange: NO_REPLY), pytest.raises(BufferExhaustedError, match="buffer_"):
        fill()


@pytest.mark.one_face  # a callback on the event loop cannot wait
def test_a_send_from_a_callback_that_would_have_to_wait_keeps_no_memory(make, topic):
    producer = make(buffer_memory=5000, batch_size=1000, linger_ms=60_000)
    refused = []

    def send_more(_metadata):
        try:
            for _ in range(100):
                producer.send(topic, b"x" * 300)
        except IllegalStateError as error:
            refused.append(error)

    for _ in range(3):
        refused.clear()
        future = producer.send(topic, b"first")
        future.add_callback(send_more)
        future.get(WAIT)
        assert refused
        producer.flush(WAIT)
        assert producer.metrics()["producer-metrics"]["buffer-available-bytes"] == 5000


@pytest.mark.one_face  # aiokafka's metadata has no sizes
@pytest.mark.parametrize("codec", [None, "gzip"])
def test_futures_that_are_kept_do_not_keep_what_was_sent(make, topic, codec):
    producer = make(compression_type=codec)
    futures = [producer.send(topic, b"%05d" % number * 1000) for number in range(100)]
    producer.flush(WAIT)
    assert {future.get(0).serialized_value_size for future in futures} == {5000}
    assert sum(len(future._batch.sealed.body) for future in futures) == 0


def test_a_full_buffer_empties_without_waiting_for_the_linger(make, broker, topic):
    producer = make(buffer_memory=3000, batch_size=1000, linger_ms=60_000)
    for number in range(200):
        producer.send(topic, b"%d" % number, partition=0)
    producer.flush(WAIT)
    assert len(values(broker, topic)) == 200
    assert producer.metrics()["producer-metrics"]["buffer-available-bytes"] == 3000


# Beginning and ending


def test_a_port_without_a_listener_fails_at_once():
    with pytest.raises(NoBrokersAvailable):
        KafkaProducer(bootstrap_servers="127.0.0.1:1", bootstrap_timeout_ms=200)


def test_close_sends_what_is_left(broker, topic):
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, linger_ms=60_000) as producer:
        future = producer.send(topic, b"x")
    assert future.get(0).offset == 0
    with pytest.raises(ClientClosedError):
        producer.send(topic, b"x")
    with pytest.raises(ClientClosedError):
        producer.flush()
    producer.close()


def test_close_leaves_no_thread(broker, topic):
    with nothing_left():
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
        producer.send(topic, b"x")
        producer.close()


def test_old_brokers_get_old_formats():
    for release in ("0.8.2", "0.10.0", "0.11.0", "1.1", "2.8", "3.9"):
        with Broker(as_version=release, topics=["t"]) as old:
            with KafkaProducer(bootstrap_servers=old.bootstrap_servers, batch_size=200) as producer:
                futures = [producer.send("t", b"%d" % number, b"k") for number in range(50)]
                if release < "0.11":
                    with pytest.raises(UnsupportedVersionError, match="headers need"):
                        producer.send("t", b"x", headers=[("a", b"")])
            assert futures[-1].get(0).offset == 49, release
            assert [record.value for record in old.records("t")] == [b"%d" % number for number in range(50)]
            if release < "0.11":
                with pytest.raises(UnsupportedVersionError, match=r"needs brokers of Kafka 0\.11"):
                    KafkaProducer(bootstrap_servers=old.bootstrap_servers, enable_idempotence=True)
                with pytest.raises(UnsupportedVersionError, match="zstd"):
                    KafkaProducer(bootstrap_servers=old.bootstrap_servers, compression_type="zstd")


@pytest.mark.one_face  # each connection of asyncio asks its broker, as aiokafka's
def test_a_release_that_is_stated_is_believed_and_nothing_is_asked(broker, topic):
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, api_version=(2, 8)) as producer:
        assert producer.send(topic, b"x").get(WAIT).offset == 0
    with (
        KafkaProducer(bootstrap_servers="127.0.0.1:1", api_version=(2, 8), max_block_ms=50) as nobody,
        pytest.raises(KafkaTimeoutError),
    ):
        nobody.send(topic, b"x")


@pytest.mark.one_face  # it runs a coroutine on the network thread
def test_a_topic_that_was_idle_continues_with_its_sequence_numbers(make, broker, topic):
    """From 0 again, the broker would take the record for one that it has, and the future would succeed all the same."""
    producer = make(metadata_max_idle_ms=5000)
    first = producer.send(topic, b"first").get(WAIT)
    state = producer._accumulator.topics[topic]
    state.used_at -= 10
    producer._core._idle_from = 0.0
    complete(producer._driver.run(producer._core.client.refresh(producer._core.now() + WAIT), None, "refresh"))
    assert topic not in producer._accumulator.topics
    second = producer.send(topic, b"second").get(WAIT)
    assert (first.offset, second.offset) == (0, 1)
    assert [record.value for record in broker.records(topic)] == [b"first", b"second"]


def test_a_serializer_that_returns_no_bytes_is_named(make, topic):
    with pytest.raises(TypeError, match="key_serializer must return bytes, not str"):
        make(key_serializer=str).send(topic, b"x", key=3)
    with pytest.raises(TypeError, match="value_serializer must return bytes, not str"):
        make(value_serializer=str).send(topic, 3)


def test_a_record_that_is_too_large_says_where_it_was_to_go(make, topic):
    producer = make(max_request_size=1000)
    error = producer.send(topic, b"x" * 2000).exception
    assert f"The record to {topic} takes" in str(error)
    error = producer.send(topic, b"x" * 2000, partition=0).exception
    assert f"The record to {topic}-0 takes" in str(error)
    assert error.topic_partition == TopicPartition(topic, 0)


@pytest.mark.one_face  # callbacks of asyncio get the future
def test_a_callback_that_cannot_be_called_is_refused_at_once(make, topic):
    future = make().send(topic, b"x")
    for add in (future.add_callback, future.add_errback, future.add_both):
        with pytest.raises(TypeError, match="a callback must be callable, not 3"):
            add(3)


def test_health_says_in_seconds_how_old_the_metadata_is(make):
    assert make().health()["metadata_age_s"] >= 0
