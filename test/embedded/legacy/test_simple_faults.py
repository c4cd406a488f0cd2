"""The clients of the Simple* era when brokers fail, move or are not there."""

from __future__ import annotations

import gc
import logging
import pickle
import threading
import time
import warnings
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

import kafka.legacy
from kafka import MultiProcessConsumer, SimpleClient, SimpleConsumer, SimpleProducer, create_message
from kafka.broker import Broker
from kafka.broker.faults import Exchange
from kafka.codec import CODEC_GZIP
from kafka.errors import (
    AsyncProducerQueueFull,
    ConsumerFetchSizeTooSmall,
    FailedPayloadsError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    KafkaUnavailableError,
    LeaderNotAvailableError,
    NotLeaderForPartitionError,
    OffsetOutOfRangeError,
    UnknownTopicOrPartitionError,
    UnsupportedCodecError,
)
from kafka.legacy.payload_requests import commit_request, produce_request, produce_responses
from kafka.legacy.protocol_payloads import KafkaProtocol
from kafka.protocol.commit import OffsetCommitRequest
from kafka.protocol.message import Message, MessageSet
from kafka.protocol.metadata import MetadataRequest
from kafka.structs import (
    FetchRequestPayload,
    OffsetAndMessage,
    OffsetCommitRequestPayload,
    OffsetRequestPayload,
    ProduceRequestPayload,
    TopicPartition,
)

HELLO = ProduceRequestPayload("events", 0, [create_message("hello")])


pytestmark = pytest.mark.kafka_broker(nodes=2, topics={"events": 2})


@pytest.fixture
def client(broker: Broker) -> Iterator[SimpleClient]:
    with SimpleClient(broker.bootstrap_servers, timeout=10, reconnect_backoff_ms=10) as connected:
        yield connected


# Warnings


def test_each_class_warns_once_and_names_its_successor(broker: Broker) -> None:
    kafka.legacy._warned.clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            with SimpleClient(broker.bootstrap_servers) as client:
                SimpleProducer(client)
                SimpleConsumer(client, None, "events").stop()
    assert [(str(w.message), w.category, w.filename) for w in caught] == [
        ("SimpleClient is deprecated: use KafkaProducer, KafkaConsumer or KafkaClient", DeprecationWarning, __file__),
        ("SimpleProducer is deprecated: use KafkaProducer", DeprecationWarning, __file__),
        ("SimpleConsumer is deprecated: use KafkaConsumer", DeprecationWarning, __file__),
    ]


# The client


def test_no_broker_is_a_kafka_unavailable_error(broker: Broker) -> None:
    servers = broker.bootstrap_servers
    broker.close()
    with pytest.raises(KafkaUnavailableError, match="All servers failed"):
        SimpleClient(servers, timeout=1, bootstrap_timeout_ms=500)


def test_a_new_leader_is_found_after_an_error(broker: Broker, client: SimpleClient) -> None:
    client.send_produce_request([HELLO])
    old = broker.leader("events", 0)
    broker.move_leader(("events", 0), 3 - old)
    with pytest.raises(NotLeaderForPartitionError):
        client.send_produce_request([HELLO])
    client.load_metadata_for_topics()
    assert client.send_produce_request([HELLO])[0].offset == 1


def test_a_lost_broker_fails_its_payloads_and_no_others(broker: Broker, client: SimpleClient) -> None:
    to_both = [HELLO, HELLO._replace(partition=1)]
    client.send_produce_request(to_both)
    gone = client.topics_to_brokers[TopicPartition("events", 1)]
    assert gone is not None
    kept = client.topics_to_brokers[TopicPartition("events", 0)]
    assert kept is not None
    assert gone != kept
    broker.stop_node(int(gone.nodeId))
    results = client.send_produce_request(to_both, fail_on_error=False)
    assert results[0].error == 0
    assert isinstance(results[1], FailedPayloadsError)
    assert results[1].payload == to_both[1]


def test_unknown_topics_and_partitions_are_named(broker: Broker, client: SimpleClient) -> None:
    with pytest.raises(UnknownTopicOrPartitionError, match="events has no partition 7"):
        client.send_produce_request([HELLO._replace(partition=7)])
    (failed,) = client.send_produce_request([HELLO._replace(partition=7)], fail_on_error=False)
    assert isinstance(failed.__cause__, UnknownTopicOrPartitionError)


def test_a_topic_that_is_not_created_in_time_is_a_timeout() -> None:
    with (
        Broker(configs={"auto.create.topics.enable": "false"}) as broker,
        SimpleClient(broker.bootstrap_servers) as client,
        pytest.raises(KafkaTimeoutError, match="'missing'"),
    ):
        client.ensure_topic_exists("missing", timeout=0.2)


def test_a_topic_is_created_where_the_broker_does_that(client: SimpleClient) -> None:
    client.ensure_topic_exists(b"created")
    assert client.has_metadata_for_topic("created")


def test_a_partition_without_a_leader_is_an_error_that_the_manual_catches(broker: Broker, client: SimpleClient) -> None:
    broker.stop_node(broker.leader("events", 1))
    client.reset_all_metadata()
    with pytest.raises((LeaderNotAvailableError, FailedPayloadsError)):
        client.send_produce_request([HELLO._replace(partition=1)])


def test_a_callback_takes_each_response(client: SimpleClient) -> None:
    assert client.send_produce_request([HELLO], callback=lambda response: response.offset) == [0]


def test_a_client_can_be_copied_and_pickled_and_forgets_its_connections(client: SimpleClient) -> None:
    client.send_produce_request([HELLO])
    other = pickle.loads(pickle.dumps(client))
    try:
        assert other.topics_to_brokers == client.topics_to_brokers
        assert other.send_produce_request([HELLO])[0].offset == 1
    finally:
        other.close()


def test_a_client_that_is_collected_closes_its_connections(broker: Broker) -> None:
    def connections() -> int:
        return broker.run(lambda cluster: sum(len(node.listener.connections) for node in cluster.nodes.values()))

    client = SimpleClient(broker.bootstrap_servers)
    client.send_produce_request([HELLO])
    assert connections() >= 1
    del client
    gc.collect()  # a socket that is collected without being closed would warn, and warnings are errors here
    deadline = time.monotonic() + 30
    while connections():
        assert time.monotonic() < deadline


# Producers


def test_a_value_other_than_bytes_is_refused(client: SimpleClient) -> None:
    producer = SimpleProducer(client)
    for wrong in ("text", 7):
        with pytest.raises(TypeError, match="encode it first"):
            producer.send_messages("events", wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="at least one"):
        producer.send_messages("events")
    with pytest.raises(TypeError, match="topic"):
        producer.send_messages(7, b"x")  # type: ignore[arg-type]


def test_wrong_arguments_of_a_producer_are_refused(client: SimpleClient) -> None:
    with pytest.raises(UnsupportedCodecError, match="not 9"):
        SimpleProducer(client, codec=9)
    with pytest.raises(TypeError, match="no argument asinc"):
        SimpleProducer(client, asinc=True)
    with pytest.raises(ValueError, match="batch_send_every_n must be at least 1, not 0"):
        SimpleProducer(client, async_send=True, batch_send_every_n=0)


def test_the_keyword_that_python_took_is_accepted(broker: Broker, client: SimpleClient) -> None:
    producer = SimpleProducer(client, **{"async": True, "batch_send_every_t": 0})
    assert producer.send_messages("events", b"x") == []
    producer.stop()
    assert [record.value for record in broker.records("events")] == [b"x"]


def test_an_asynchronous_producer_sends_again_after_an_error(
    broker: Broker, client: SimpleClient, caplog: pytest.LogCaptureFixture
) -> None:
    broker.fail("Produce", "NOT_LEADER_OR_FOLLOWER", times=2)
    producer = SimpleProducer(client, async_send=True, batch_send_every_n=1, async_retry_backoff_ms=1)
    producer.send_messages("events", b"x")
    producer.stop()
    assert [record.value for record in broker.records("events")] == [b"x"]
    assert "are sent again" in caplog.text


def test_messages_that_fail_for_good_are_logged(
    broker: Broker, client: SimpleClient, caplog: pytest.LogCaptureFixture
) -> None:
    broker.fail("Produce", "NOT_LEADER_OR_FOLLOWER", times=100)
    producer = SimpleProducer(
        client, async_send=True, batch_send_every_n=1, async_retry_backoff_ms=1, async_retry_limit=2
    )
    with caplog.at_level(logging.ERROR):
        producer.send_messages("events", b"lost message")
        producer.stop()
    assert "1 messages are lost" in caplog.text
    assert "lost message" in caplog.text
    assert broker.records("events") == []


def test_stop_ends_retries_when_its_time_is_up(
    broker: Broker, client: SimpleClient, caplog: pytest.LogCaptureFixture
) -> None:
    broker.fail("Produce", "NOT_LEADER_OR_FOLLOWER", times=10**6)
    producer = SimpleProducer(client, async_send=True, batch_send_every_n=1, async_retry_backoff_ms=1)
    producer.send_messages("events", b"x")
    producer.stop(timeout=0.2)
    producer.thread.join(60)
    assert not producer.thread.is_alive()
    assert "the producer was stopped" in caplog.text


def test_a_full_queue_is_an_error_with_the_messages_that_are_left(broker: Broker, client: SimpleClient) -> None:
    held = threading.Event()
    client.ensure_topic_exists("events")
    producer = SimpleProducer(client, async_send=True, async_queue_maxsize=2, batch_send_every_n=1)
    producer._sender._client.send_produce_request = lambda *_, **__: (held.wait(60), [])[1]  # type: ignore[method-assign]
    try:
        with pytest.raises(AsyncProducerQueueFull) as caught:
            producer.send_messages("events", *[b"%d" % n for n in range(9)])
        left = [message.value for message in caught.value.failed_msgs]
        assert left == [b"%d" % n for n in range(9 - len(left), 9)]
        assert len(left) >= 6
    finally:
        held.set()
        producer.stop()


def test_a_producer_that_is_collected_ends_its_thread(client: SimpleClient) -> None:
    producer = SimpleProducer(client, async_send=True)
    thread = producer.thread
    del producer
    gc.collect()
    thread.join(60)
    assert not thread.is_alive()


def test_messages_that_cannot_be_encoded_are_logged_and_the_next_are_sent(
    broker: Broker, client: SimpleClient, caplog: pytest.LogCaptureFixture
) -> None:
    producer = SimpleProducer(client, async_send=True, codec=CODEC_GZIP, codec_compresslevel=42, batch_send_every_n=1)
    producer.send_messages("events", b"not encoded")
    while "are lost" not in caplog.text:
        assert producer.thread.is_alive()
        time.sleep(0.01)
    assert "not encoded" in caplog.text
    producer._sender._compresslevel = 6
    producer.send_messages("events", b"x")
    producer.stop()
    assert [record.value for record in broker.records("events")] == [b"x"]


def test_stop_does_not_wait_for_room_in_the_queue(client: SimpleClient, caplog: pytest.LogCaptureFixture) -> None:
    begun, held = threading.Event(), threading.Event()
    client.ensure_topic_exists("events")
    producer = SimpleProducer(client, async_send=True, async_queue_maxsize=1, batch_send_every_n=1)

    def hang(*_: object, **__: object) -> Any:
        begun.set()
        held.wait(60)
        raise KafkaConnectionError("the broker hung")

    producer._sender._client.send_produce_request = hang  # type: ignore[method-assign]
    producer.send_messages("events", b"first")
    assert begun.wait(60)
    producer.send_messages("events", b"second")
    stopping = threading.Thread(target=producer.stop, args=(0.1,))
    stopping.start()
    stopping.join(60)
    stopped = not stopping.is_alive()
    held.set()
    assert stopped
    producer.thread.join(60)
    assert not producer.thread.is_alive()
    assert "2 messages are lost: the producer was stopped" in caplog.text


# Consumers


def out_of_range_behind(offset: int) -> Any:
    """Answer as a broker that has records up to an offset and no others."""

    def change(exchange: Exchange) -> Any:
        if exchange.request.topics[0].partitions[0].fetch_offset < offset:
            return None
        exchange.reply.responses[0].partitions[0].error_code = OffsetOutOfRangeError.errno
        return exchange.reply

    return change


def test_messages_before_an_error_are_returned_and_the_next_call_raises_it(
    broker: Broker, client: SimpleClient
) -> None:
    broker.append("events", value=b"x", partition=0)
    broker.intercept("Fetch", out_of_range_behind(1))
    consumer = SimpleConsumer(client, "group", "events", partitions=[0], auto_offset_reset="")
    assert [found.message.value for found in consumer.get_messages(2, timeout=60)] == [b"x"]
    with pytest.raises(OffsetOutOfRangeError):
        consumer.get_messages(2, timeout=60)
    consumer.stop()
    assert broker.committed("group", "events", 0) == 1


def test_messages_before_an_interruption_come_again(
    broker: Broker, client: SimpleClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.append("events", value=b"x", partition=0)
    consumer = SimpleConsumer(client, "group", "events", partitions=[0])
    fetch, fetched = consumer._fetch, []

    def interrupted() -> None:
        if fetched:
            raise KeyboardInterrupt
        fetch()
        fetched.extend(consumer.queue)

    monkeypatch.setattr(consumer, "_fetch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        consumer.get_messages(2, timeout=60)
    assert consumer.offsets == {0: 0}
    assert [found.message.value for found in consumer.get_messages(1, timeout=60)] == [b"x"]
    consumer.stop()


def test_messages_of_processes_before_an_error_are_returned(broker: Broker, client: SimpleClient) -> None:
    consumer = MultiProcessConsumer(client, None, "events", partitions=[0], num_procs=0)
    try:
        consumer.queue.put((0, OffsetAndMessage(0, create_message("x"))))
        consumer.queue.put((-1, KafkaError("a process has ended")))
        assert [found.message.value for found in consumer.get_messages(2, timeout=60)] == [b"x"]
        with pytest.raises(KafkaError, match="a process has ended"):
            consumer.get_messages(2, timeout=60)
    finally:
        consumer.stop()


def test_a_consumer_that_is_dropped_ends_its_processes(broker: Broker, client: SimpleClient) -> None:
    consumer = MultiProcessConsumer(client, None, "events", partitions=[0], num_procs=1, auto_commit=False)
    (process,), collected = consumer.processes, weakref.ref(consumer)
    del consumer
    gc.collect()
    assert collected() is None
    assert process.returncode is not None
    deadline = time.monotonic() + 60
    while any(thread.name == "kafka-multiprocess" for thread in threading.enumerate()):
        assert time.monotonic() < deadline, "the thread that reads from the process has not ended"
        time.sleep(0.01)


def test_auto_offset_reset_none_raises_the_error(client: SimpleClient) -> None:
    consumer = SimpleConsumer(client, None, "events", auto_offset_reset="")
    consumer.seek(100)
    with pytest.raises(OffsetOutOfRangeError):
        consumer.get_message(timeout=60)


def test_auto_offset_reset_largest_goes_to_the_end(broker: Broker, client: SimpleClient) -> None:
    broker.append("events", value=b"x", partition=0)
    consumer = SimpleConsumer(client, None, "events", partitions=[0])
    consumer.seek(100)
    assert consumer.get_message(timeout=0.1) is None
    assert consumer.fetch_offsets == {0: 1}


def test_a_message_that_the_broker_cut_off_is_fetched_with_a_larger_buffer() -> None:
    messages = [(n, Message(b"x" * size)) for n, size in enumerate((20_000, 40_000))]
    whole = {n: MessageSet.encode([message], prepend_size=False) for n, message in enumerate(messages)}

    def cut(exchange: Exchange) -> Any:
        """Reply as brokers before 0.10.1 do: with as many bytes as are asked for."""
        asked = exchange.request.topics[0].partitions[0]
        found = exchange.reply.responses[0].partitions[0]
        found.records = whole.get(asked.fetch_offset, b"")[: asked.partition_max_bytes]
        return exchange.reply

    with Broker(topics={"events": 1}, as_version="0.9") as broker, SimpleClient(broker.bootstrap_servers) as client:
        for _, message in messages:
            broker.append("events", value=message.value)
        broker.intercept("Fetch", cut)
        consumer = SimpleConsumer(client, None, "events")
        assert len(consumer.get_message(timeout=60).message.value) == 20_000
        with pytest.raises(ConsumerFetchSizeTooSmall, match="max_buffer_size, 32768 bytes"):
            consumer.get_message(timeout=60)
        unlimited = SimpleConsumer(client, None, "events", max_buffer_size=None)
        assert [len(m.message.value) for m in unlimited.get_messages(2, timeout=60)] == [20_000, 40_000]


def test_a_buffer_larger_than_its_limit_is_refused(client: SimpleClient) -> None:
    with pytest.raises(ValueError, match=r"buffer_size \(9000\)"):
        SimpleConsumer(client, None, "events", buffer_size=9000, max_buffer_size=8000)


def test_a_consumer_follows_a_new_leader(broker: Broker, client: SimpleClient) -> None:
    consumer = SimpleConsumer(client, None, "events", partitions=[0])
    broker.append("events", value=b"one", partition=0)
    assert consumer.get_message(timeout=60).message.value == b"one"
    broker.move_leader(("events", 0), 3 - broker.leader("events", 0))
    broker.append("events", value=b"two", partition=0)
    assert consumer.get_message(timeout=10).message.value == b"two"


def test_positions_are_committed_by_time_once(broker: Broker, client: SimpleClient) -> None:
    consumer = SimpleConsumer(client, "group", "events", auto_commit_every_n=None, auto_commit_every_t=20)
    try:
        broker.append("events", value=b"x", partition=0)
        assert consumer.get_message(timeout=60)
        waited = threading.Event()
        while broker.committed("group", "events", 0) != 1:
            waited.wait(0.01)
        broker.forget_requests()
        waited.wait(0.2)
        assert [seen for seen in broker.requests if seen.api_key == OffsetCommitRequest.API_KEY] == []
    finally:
        consumer.stop()


def test_stop_commits_what_was_read(broker: Broker, client: SimpleClient) -> None:
    consumer = SimpleConsumer(client, "group", "events")
    broker.append("events", value=b"x", partition=0)
    assert consumer.get_message(timeout=60)
    consumer.stop()
    assert broker.committed("group", "events", 0) == 1


def test_a_consumer_without_a_group_cannot_commit(client: SimpleClient) -> None:
    with pytest.raises(Exception, match="give it a group"):
        SimpleConsumer(client, None, "events").commit()


def test_a_commit_that_fails_is_logged_and_false(
    broker: Broker, client: SimpleClient, caplog: pytest.LogCaptureFixture
) -> None:
    consumer = SimpleConsumer(client, "group", "events", auto_commit=False)
    broker.fail("OffsetCommit", "GROUP_AUTHORIZATION_FAILED")
    assert consumer.commit() is False
    assert "The commit of group group failed" in caplog.text


def test_control_records_are_left_out(broker: Broker, client: SimpleClient) -> None:
    from kafka import KafkaProducer

    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id="t") as producer:
        producer.init_transactions()
        for value in (b"one", b"two"):
            producer.begin_transaction()
            producer.send("events", value, partition=0)
            producer.commit_transaction()
    (response,) = client.send_fetch_request([FetchRequestPayload("events", 0, 0, 9999)])
    assert [(m.offset, m.message.value) for m in response.messages] == [(0, b"one"), (2, b"two")]


# Subclasses that call private methods, as operators' tools do


def test_the_private_methods_of_a_client(client: SimpleClient) -> None:
    client.send_produce_request([HELLO])
    leader = client._get_leader_for_partition("events", 0)
    assert leader == client.brokers[int(leader.nodeId)]
    wanted = [OffsetRequestPayload("events", 0, -1, 1)]
    produced = client._send_broker_aware_request(
        [HELLO],
        lambda payloads: produce_request(3, payloads, 1, 1000),
        produce_responses,
    )
    assert [(r.offset, r.error) for r in produced] == [(1, 0)]
    client._raise_on_response_error(produced[0])
    assert client.send_offset_request(wanted)[0].offsets == [2]
    topics = client._send_broker_unaware_request(
        [], lambda payloads: MetadataRequest[1](payloads or None), lambda response: [t.name for t in response.topics]
    )
    assert "events" in topics
    commits = [OffsetCommitRequestPayload("events", 0, 2, "")]
    committed = client._send_consumer_aware_request(
        "group",
        commits,
        lambda group, payloads: commit_request(2, group, payloads),
        KafkaProtocol.decode_offset_commit_response,
    )
    assert [r.error for r in committed] == [0]


def test_a_private_connection_leaves_its_futures_to_the_caller(client: SimpleClient) -> None:
    coordinator = client._get_coordinator_for_group("group")
    connection = client._get_conn(coordinator.host, coordinator.port, 0)
    future = connection.send(MetadataRequest[1](None))
    while not future.is_done:
        for response, own in connection.recv():
            own.success(response)
    assert "events" in [topic.name for topic in future.value.topics]
    with pytest.raises(KafkaConnectionError, match="nowhere:1"):
        client._get_conn("nowhere", 1, 0)
