"""What the driver does about topics that are deleted while a query runs, and about brokers that move or are away."""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from kafka.broker import Broker
from kafka.consumer import KafkaConsumer
from kafka.errors import NotCoordinatorError, TopicAuthorizationFailedError, UnknownTopicOrPartitionError
from kafka.protocol.commit import OffsetCommitRequest
from kafka.spark.micro_batch_reader import KafkaStreamReader
from kafka.spark.offset_reader import KafkaOffsetReader
from kafka.spark.offsets import EARLIEST, LATEST
from kafka.spark.options import SourceOptions
from kafka.structs import TopicPartition

A0, B0 = TopicPartition("a", 0), TopicPartition("b", 0)


pytestmark = pytest.mark.kafka_broker(topics={"a": 1, "b": 1})


def driver(broker: Broker, **given: str) -> closing[KafkaOffsetReader]:
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
    return closing(KafkaOffsetReader(options, patience=1.0))


@pytest.mark.parametrize("given", [{"subscribe": "a,b"}, {"assign": '{"a":[0],"b":[0]}'}])
def test_of_topics_that_a_query_names_none_may_be_deleted(broker: Broker, given: dict[str, str]) -> None:
    with driver(broker, **given) as offsets:
        assert offsets.latest({}) == {A0: 0, B0: 0}
        broker.delete_topic("b")
        # An answer without b would be written down as the end of a batch, and one without a too.
        with pytest.raises(UnknownTopicOrPartitionError, match="Topic 'b' does not exist"):
            offsets.latest({A0: 0, B0: 0})
        with pytest.raises(UnknownTopicOrPartitionError, match="Topic 'b' does not exist"):
            offsets.everywhere(EARLIEST)
        # Asked for these two, the driver tells which of them there are.
        assert offsets.edges({A0: LATEST, B0: LATEST}) == {A0: 0}
        broker.create_topic("b", partitions=1)
        assert offsets.latest({}) == {A0: 0, B0: 0}


@pytest.mark.parametrize("option", ["subscribe", "assign"])
def test_a_topic_that_does_not_exist_is_named_with_the_option_that_names_it(
    broker: Broker, option: str, caplog: pytest.LogCaptureFixture
) -> None:
    named = {option: "evnets" if option == "subscribe" else '{"evnets":[0]}'}
    with driver(broker, **named) as offsets, pytest.raises(UnknownTopicOrPartitionError) as caught:
        offsets.latest({})
    sentence = f"Topic 'evnets' does not exist on {broker.bootstrap_servers}: create it, or correct the option {option}"
    assert sentence in str(caught.value)
    assert caplog.records == []  # the error alone says it


def test_a_topic_that_a_pattern_found_may_be_deleted(broker: Broker) -> None:
    with driver(broker, subscribePattern="[ab]") as offsets:
        assert offsets.latest({}) == {A0: 0, B0: 0}
        broker.delete_topic("b")
        assert offsets.latest({A0: 0, B0: 0}) == {A0: 0}


def test_progress_is_committed_where_the_group_has_moved_to(caplog: pytest.LogCaptureFixture) -> None:
    with Broker(nodes=3, topics={"a": 1}) as broker, driver(broker, subscribe="a") as offsets:
        for number in range(1, 4):
            offsets.commit("lag", {A0: number})
            broker.rehash_coordinators()
            with KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, group_id="lag") as who:
                assert who.committed(A0) == number
    assert not [entry for entry in caplog.records if entry.name == "kafka.spark.offset_reader"]


def test_refused_progress_is_logged_and_fails_nothing(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    with driver(broker, subscribe="a") as offsets:
        with broker.fail(OffsetCommitRequest, [TopicAuthorizationFailedError], times=1):
            offsets.commit("lag", {A0: 1})
        assert "Committing progress of a-0 to 'lag' failed: [Error 29] TopicAuthorizationFailedError" in caplog.text
        with broker.fail(OffsetCommitRequest, [NotCoordinatorError], times=2):  # which passes
            offsets.commit("lag", {A0: 2})
    with KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, group_id="lag") as who:
        assert who.committed(A0) == 2


def test_a_query_may_be_started_while_the_brokers_are_away(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    class Heard(logging.Handler):
        """Tells when the broker was seen to be away."""

        def emit(self, record: logging.LogRecord) -> None:
            if "refused" in record.getMessage():
                is_away.set()

    is_away, handler, log = threading.Event(), Heard(), logging.getLogger("kafka.net.connection")
    options = SourceOptions.parse(
        {"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": "a", "startingOffsets": "earliest"},
        streaming=True,
    )
    # How long others look for a broker where nobody is there.
    monkeypatch.setattr("kafka.net.settings._REFUSAL", 0.0)
    broker.stop_node(1)
    reader = KafkaStreamReader(options, ["value"])
    log.addHandler(handler)
    try:
        with ThreadPoolExecutor(1) as pool:
            initial = pool.submit(reader.initialOffset)
            assert is_away.wait(30)
            broker.start_node(1)
            assert initial.result(60) == {"a": {"0": 0}}
    finally:
        log.removeHandler(handler)
        reader.stop()


def test_the_log_has_one_line_when_brokers_are_away_for_long_and_one_when_they_are_back(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("kafka.spark.offset_reader._SILENCE", 0.2)
    options = SourceOptions.parse(
        {
            "kafka.bootstrap.servers": broker.bootstrap_servers,
            "subscribe": "a",
            "fetchOffset.numRetries": "1000",
            "fetchOffset.retryIntervalMs": "10",
            # An attempt whose lookup ends by its time asks for the partitions next, for as long as this.
            "kafka.default.api.timeout.ms": "1000",
        },
        streaming=True,
    )
    broker.append("a", b"x")
    offsets = KafkaOffsetReader(options, patience=0.5)
    try:
        assert offsets.latest({}) == {A0: 1}
        broker.stop_node(1)
        with ThreadPoolExecutor(1) as pool:
            latest = pool.submit(offsets.latest, {})
            deadline = time.monotonic() + 60
            while sum("failed, attempt" in text for text in caplog.messages) < 2:
                assert time.monotonic() < deadline, caplog.messages
                time.sleep(0.02)
            broker.start_node(1)
            assert latest.result(60) == {A0: 1}
    finally:
        offsets.close()
    said = [text for text in caplog.messages if "The brokers" in text]
    assert len(said) == 2, caplog.messages
    assert said[0].startswith(f"The brokers at {broker.bootstrap_servers} have not answered for ")
    assert said[1].startswith("The brokers answer again, after ")
