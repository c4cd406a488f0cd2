"""Names and shapes that programs of kafka-python rely on, beyond those in the name lists."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from typing import ClassVar

import pytest

from kafka import KafkaClient
from kafka.cluster import ClusterMetadata
from kafka.config import defaults, resolve
from kafka.config.option import CLASSES
from kafka.conn import BrokerConnection, ConnectionStates
from kafka.consumer.subscription_state import SubscriptionState, SubscriptionType, TopicPartitionState
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.coordinator.heartbeat import Heartbeat
from kafka.coordinator.protocol import ConsumerProtocolMemberMetadata
from kafka.errors import (
    IllegalStateError,
    KafkaConfigurationError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    RecordTooLargeError,
    for_code,
)
from kafka.future import Future
from kafka.metrics import AnonMeasurable, MetricName, NamedMeasurable
from kafka.metrics.stats import SampledTotal, rate
from kafka.metrics.stats.percentile import Percentile
from kafka.producer.future import FutureProduceResult, FutureRecordMetadata
from kafka.protocol.commit import OffsetCommitRequest
from kafka.protocol.fetch import FetchResponse
from kafka.protocol.group import JoinGroupRequest
from kafka.protocol.metadata import MetadataRequest, MetadataResponse
from kafka.protocol.struct import Struct
from kafka.protocol.types import Int16, Schema
from kafka.structs import BrokerMetadata, OffsetAndMetadata, PartitionMetadata, TopicPartition
from kafka.util import Timer, ensure_valid_topic_name, synchronized

EVENTS_0 = TopicPartition("events", 0)


class Cluster:
    """Two topics' partitions, which is all that an assignor looks at."""

    def partitions_for_topic(self, topic: str) -> set[int]:
        return {0, 1}

    def brokers(self) -> set[object]:
        return set()


# Versioned messages behave as the lists that they were


def test_a_slice_of_a_message_is_a_list_of_versions() -> None:
    assert MetadataRequest[0:2] == [MetadataRequest[0], MetadataRequest[1]]
    assert MetadataRequest[-2:] == [MetadataRequest[len(MetadataRequest) - 2], MetadataRequest[-1]]
    assert MetadataResponse[::-1][0] is MetadataResponse[-1]
    assert [r.API_VERSION for r in MetadataRequest] == list(range(len(MetadataRequest)))


class Declared(Struct):
    SCHEMA = Schema(("number", Int16))


@pytest.mark.parametrize("cls", [MetadataRequest[1], Declared])
@pytest.mark.parametrize("kind", [TypeError, ValueError])
def test_an_unknown_field_is_refused_as_both_generations_did(cls: type[Struct], kind: type[Exception]) -> None:
    with pytest.raises(kind, match="bogus"):
        cls(bogus=1)


# Small names


def test_arguments_have_their_historic_names() -> None:
    error = RuntimeError("x")
    assert Future().failure(e=error).exception is error
    assert for_code(error_code=3).errno == 3
    named = NamedMeasurable(metric_name=MetricName("a", "g"), measurable_stat=AnonMeasurable(lambda _c, _n: 1))
    assert (named.name.name, named.stat.measure(None, 0)) == ("a", 1)
    assert Percentile(metric_name=MetricName("p", "g"), percentile=99).percentile == 99


def test_removed_states_are_other_names_of_the_remaining_ones() -> None:
    assert ConnectionStates.DISCONNECTING is ConnectionStates.DISCONNECTED
    assert ConnectionStates.API_VERSIONS_SEND is ConnectionStates.CHECKING_API_VERSIONS
    assert len(set(ConnectionStates)) == len(list(ConnectionStates))


def test_the_client_names_what_it_supports() -> None:
    assert (0, 8, 2) in KafkaClient.API_VERSIONS
    assert all(mechanism in str(KafkaClient.__doc__) for mechanism in BrokerConnection.SASL_MECHANISMS)


def test_the_library_has_a_null_handler() -> None:
    assert any(isinstance(handler, logging.NullHandler) for handler in logging.getLogger("kafka").handlers)


def test_a_program_that_does_not_configure_logging_gets_no_output() -> None:
    program = "import kafka.conn, logging; logging.getLogger('kafka.conn').error('no output')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")


# Assignors


@pytest.mark.parametrize(
    "assignor",
    [RangePartitionAssignor, RoundRobinPartitionAssignor, StickyPartitionAssignor, CooperativeStickyAssignor],
)
def test_assignors_are_called_on_the_class_and_on_an_instance(assignor: type) -> None:
    for subject in (assignor, assignor()):
        metadata = subject.metadata(["events"])
        assert list(metadata.subscription) == ["events"]
        members = {name: ConsumerProtocolMemberMetadata(0, ["events"], metadata.user_data) for name in ("m1", "m2")}
        assignment = subject.assign(Cluster(), members)
        assert sorted(tp for found in assignment.values() for tp in found.partitions()) == [EVENTS_0, ("events", 1)]


def test_member_metadata_may_be_given_by_name() -> None:
    members = {"m": ConsumerProtocolMemberMetadata(0, ["events"], b"")}
    for assignor in (RangePartitionAssignor, RoundRobinPartitionAssignor):
        assert len(assignor.assign(cluster=Cluster(), member_metadata=members)["m"].partitions()) == 2


# SubscriptionState


def test_a_subscription_answers_under_its_historic_names() -> None:
    state = SubscriptionState("latest")
    assert state.subscription is None
    state.subscribe(["events"])
    assert state.subscription == {"events"}
    assert state.mode is SubscriptionType.AUTO_TOPICS
    assert state.partitions_auto_assigned()
    assert state.group_subscription() == {"events"}
    state.group_subscribe(["events", "others"])
    assert state.group_subscription() == {"events", "others"}
    state.reset_group_subscription()
    state.assign_from_subscribed([EVENTS_0])
    assert isinstance(state.assignment[EVENTS_0], TopicPartitionState)
    assert state.assigned_partitions() == {EVENTS_0}
    assert state.is_assigned(EVENTS_0)
    assert state.missing_fetch_positions() == {EVENTS_0}
    assert not state.has_all_fetch_positions()
    assert not state.has_valid_position(EVENTS_0)
    assert not state.is_fetchable(EVENTS_0)
    state.seek(EVENTS_0, 7)
    position = state.position(EVENTS_0)
    assert position == 7
    assert position is not None
    assert (position.offset, state.assignment[EVENTS_0].position) == (7, 7)
    assert state.fetchable_partitions() == {EVENTS_0}
    assert state.all_consumed_offsets() == {EVENTS_0: OffsetAndMetadata(7, "", -1)}
    state.pause(EVENTS_0)
    assert state.is_paused(EVENTS_0)
    assert state.paused_partitions() == {EVENTS_0}
    assert state.fetchable_partitions() == set()
    assert state.has_default_offset_reset_policy()
    for strategy in ("earliest", -1, None):
        state.need_offset_reset(EVENTS_0, strategy)
        assert state.is_offset_reset_needed(EVENTS_0)
        assert state.partitions_needing_reset() == {EVENTS_0}
    state.change_subscription(["others"])
    assert state.subscription == {"others"}
    with pytest.raises(IllegalStateError):
        state.position(TopicPartition("events", 9))


def test_a_subscription_by_hand() -> None:
    state = SubscriptionState()
    state.assign_from_user([EVENTS_0])
    assert state.subscription is None
    assert state.mode is SubscriptionType.USER_ASSIGNED


# Others


def test_the_outcome_of_a_batch() -> None:
    result = FutureProduceResult(EVENTS_0)
    assert not result.wait(0)
    result.failure(e=KafkaTimeoutError("late"))
    assert result.wait(0)
    assert isinstance(result.exception, KafkaTimeoutError)


@pytest.mark.parametrize("sizes", [(-1, 5), (-1, 5, -1)])
def test_the_future_of_a_record_is_made_with_the_arguments_of_older_releases(sizes: tuple[int, ...]) -> None:
    result = FutureProduceResult(EVENTS_0)
    future, same, next_one = (FutureRecordMetadata(result, index, 17, None, *sizes) for index in (2, 2, 3))
    assert future == same != next_one
    assert not future.is_done
    seen: list[object] = []
    future.add_callback(seen.append).add_errback(seen.append)
    with pytest.raises(KafkaTimeoutError, match="is not completed"):
        future.get(timeout=0.001)
    result.success((7, -1, 0))  # base offset, timestamp, and in 2.x the start of the log
    metadata = future.get()
    assert metadata == (EVENTS_0.topic, 0, EVENTS_0, 9, 17, None, -1, 5, -1)
    assert seen == [metadata] == [future.value]
    assert (future.succeeded(), future.failed()) == (True, False)


def test_the_future_of_a_record_fails_with_the_outcome_that_a_program_gives() -> None:
    result = FutureProduceResult(EVENTS_0)
    future = FutureRecordMetadata(result, 0, 17, None, -1, -1, -1)
    seen: list[object] = []
    future.add_both(seen.append)
    error = KafkaTimeoutError("late")
    result.failure(error)
    assert seen == [error] == [future.exception]
    assert future.retriable()
    with pytest.raises(KafkaTimeoutError, match="late"):
        future.get()


def test_timer() -> None:
    timer = Timer(1000, "too late", start_at=time.monotonic() - 2)
    assert timer.expired
    assert timer.timeout_ms == 0
    assert timer.elapsed_ms >= 2000
    with pytest.raises(KafkaTimeoutError, match="too late"):
        timer.maybe_raise()
    endless = Timer(None)
    endless.maybe_raise()
    assert endless.timeout_ms is None


def test_synchronized_and_topic_names() -> None:
    class Subject:
        def __init__(self) -> None:
            self._lock = Lock()

        @synchronized
        def value(self) -> bool:
            return self._lock.held

    class Lock:
        held = False

        def __enter__(self) -> None:
            self.held = True

        def __exit__(self, *_: object) -> None:
            self.held = False

    assert Subject().value()
    ensure_valid_topic_name("events")
    with pytest.raises(ValueError, match="legal name"):
        ensure_valid_topic_name("no spaces")


def test_a_configuration_is_read_under_historic_names() -> None:
    assert resolve("consumer", {})["assignors"] == resolve("consumer", {})["partition_assignment_strategy"]


# Subclasses that use private parts


def test_a_cluster_whose_subclass_fills_the_tables_is_read_from_them() -> None:
    class Cluster(ClusterMetadata):
        def update_metadata(self, metadata: object) -> None:
            self._brokers = {1: BrokerMetadata(1, "b1", 9092)}
            self._partitions = {
                "events": {
                    0: PartitionMetadata("events", 0, 1, [1], [1]),
                    1: PartitionMetadata("events", 1, -1, [], []),
                },
                "__internal": {},
            }
            self._broker_partitions = {1: {EVENTS_0}}
            self.internal_topics = {"__internal"}
            self.controller = self._brokers[1]

    cluster = Cluster(bootstrap_servers=["b0:9092"])
    assert {broker.host for broker in cluster.brokers()} == {"b0"}
    cluster.update_metadata(None)
    assert cluster.brokers() == {cluster.controller}
    assert cluster.broker_metadata(1) == cluster.controller
    assert cluster.broker_metadata(9) is None
    assert cluster.broker_metadata("bootstrap-0") is not None
    assert cluster.topics() == {"events"}
    assert cluster.topics(exclude_internal_topics=False) == {"events", "__internal"}
    assert cluster.partitions_for_topic("events") == {0, 1}
    assert cluster.partitions_for_topic("unknown") is None
    assert cluster.available_partitions_for_topic("events") == {0}
    assert cluster.available_partitions_for_topic("unknown") is None
    assert cluster.leader_for_partition(EVENTS_0) == 1
    assert cluster.leader_for_partition(TopicPartition("events", 9)) is None
    assert cluster.partitions_for_broker(1) == {EVENTS_0}


def test_a_cluster_whose_subclass_only_looks_on_stays_as_it_is() -> None:
    seen = []

    class Cluster(ClusterMetadata):
        def update_metadata(self, metadata: object, **more: object) -> None:
            super().update_metadata(metadata, **more)  # type: ignore[arg-type]
            seen.append(metadata)

    cluster = Cluster()
    response = MetadataResponse[0]([(1, "b1", 9092)], [(0, "events", [(0, 0, 1, [1], [1])])])
    cluster.update_metadata(response)
    assert seen == [response]
    assert cluster.leader_for_partition(EVENTS_0) == 1


@pytest.mark.parametrize(
    ("cls", "name", "value"),
    [
        (OffsetCommitRequest, "DEFAULT_GENERATION_ID", -1),
        (OffsetCommitRequest[2], "DEFAULT_RETENTION_TIME", -1),
        (JoinGroupRequest[0], "UNKNOWN_MEMBER_ID", ""),
        (MetadataRequest[0], "ALL_TOPICS", []),
        (MetadataRequest[1], "ALL_TOPICS", None),
        (MetadataRequest[1], "NO_TOPICS", []),
    ],
)
def test_constants_of_requests(cls: type, name: str, value: object) -> None:
    assert getattr(cls, name) == value
    with pytest.raises(AttributeError, match="NO_SUCH_CONSTANT"):
        _ = cls.NO_SUCH_CONSTANT  # type: ignore[attr-defined]


def test_records_are_bytes_where_a_response_is_read_as_a_tuple() -> None:
    response = FetchResponse[4](0, [("events", [(0, 0, 1, 1, None, b"records")])])
    (partition,) = FetchResponse[4].decode(memoryview(response.encode())).responses[0].partitions
    assert type(partition[-1]) is bytes
    assert tuple(partition)[-1] == b"records"


def test_the_heartbeat_answers_under_the_names_of_two_generations() -> None:
    heartbeat = Heartbeat(session_timeout_ms=10_000, heartbeat_interval_ms=3_000)
    heartbeat.reset_timeouts()
    assert not heartbeat.session_timeout_expired()
    assert 0 < heartbeat.time_to_next_heartbeat() <= 3
    assert rate.SampledTotal is SampledTotal


# DEFAULT_CONFIG: a subclass or a program changes the defaults of a class


def test_a_subclass_has_defaults_that_differ() -> None:
    class Patient(ClusterMetadata):
        DEFAULT_CONFIG: ClassVar = {**ClusterMetadata.DEFAULT_CONFIG, "metadata_max_age_ms": 7, "retry_backoff_ms": 50}

    made = Patient(retry_backoff_ms=60)
    assert (made.config["metadata_max_age_ms"], made.config["retry_backoff_ms"]) == (7, 60)
    assert ClusterMetadata().config["metadata_max_age_ms"] == 300_000


def test_a_connection_a_client_and_a_heartbeat_take_the_defaults_of_their_classes() -> None:
    class Connection(BrokerConnection):
        DEFAULT_CONFIG: ClassVar = {"client_id": "mine"}

    class Quick(Heartbeat):
        DEFAULT_CONFIG: ClassVar = dict(Heartbeat.DEFAULT_CONFIG, heartbeat_interval_ms=5, session_timeout_ms=9)

    class Client(KafkaClient):
        DEFAULT_CONFIG: ClassVar = {"client_id": "mine"}

    assert Connection("127.0.0.1", 9).config["client_id"] == "mine"
    with Client(bootstrap=False) as client:
        assert client.config["client_id"] == "mine"
    assert (Quick().interval, Quick().timeout, Quick(heartbeat_interval_ms=6).interval) == (0.005, 0.009, 0.006)


def test_a_default_that_a_program_changes_counts_under_each_spelling(monkeypatch: pytest.MonkeyPatch) -> None:
    declared = defaults("consumer")
    monkeypatch.setitem(declared, "assignors", (RoundRobinPartitionAssignor,))
    monkeypatch.setitem(declared, "client_id", "mine")
    found = resolve("consumer", {}, declared)
    assert found["partition_assignment_strategy"] == (RoundRobinPartitionAssignor,)
    assert found.given == {"client_id", "partition_assignment_strategy"}
    chosen = {"partition_assignment_strategy": [RangePartitionAssignor], "client.id": "other"}
    found = resolve("consumer", chosen, declared)
    assert (list(found["assignors"]), found["client_id"]) == ([RangePartitionAssignor], "other")


@pytest.mark.parametrize("kind", CLASSES)
def test_unchanged_defaults_are_not_given(kind: str) -> None:
    assert resolve(kind, {}, defaults(kind)).given == frozenset()


def test_a_default_that_no_class_has_is_refused() -> None:
    with pytest.raises(KafkaConfigurationError, match="did you mean 'client_id'"):
        resolve("consumer", {}, {"clientid": "x"})


# Errors


def test_a_record_that_is_too_large_is_the_error_of_the_manual() -> None:
    error = RecordTooLargeError("too large")
    assert isinstance(error, MessageSizeTooLargeError)
    assert (str(error), error.retriable) == ("too large", False)
    assert for_code(10) is MessageSizeTooLargeError
