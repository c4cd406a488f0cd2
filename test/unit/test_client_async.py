"""KafkaClient and the client core against scripted brokers in memory, under a clock that jumps."""

from __future__ import annotations

import gc
import logging
import os
import re
import signal
import threading
import weakref

import pytest

import kafka.client
from kafka._core.client import COORDINATOR, FETCH, Client
from kafka.client_async import KafkaClient
from kafka.cluster import ClusterMetadata
from kafka.config import resolve
from kafka.conn import BrokerConnection
from kafka.errors import (
    Cancelled,
    ClientClosedError,
    GroupAuthorizationFailedError,
    IllegalArgumentError,
    InvalidReceiveError,
    InvalidTopicError,
    KafkaConfigurationError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    NoBrokersAvailable,
    NodeNotReadyError,
    RequestTimedOutError,
    SaslAuthenticationFailedError,
    SslAuthenticationError,
    UnknownBrokerIdError,
    UnknownTopicOrPartitionError,
)
from kafka.protocol.admin import CreateTopicsRequest, ListGroupsRequest
from kafka.protocol.api_versions import ApiVersionsRequest
from kafka.protocol.commit import OffsetCommitRequest
from kafka.protocol.group import HeartbeatRequest
from kafka.protocol.metadata import MetadataRequest, MetadataResponse
from kafka.protocol.offset import ListOffsetsRequest, ListOffsetsResponse
from kafka.protocol.transaction import EndTxnRequest
from kafka.structs import TopicPartition
from kafka.testing import HANG_UP, SILENCE, MemoryNetwork, ScriptedBroker
from test.unit.test_conn import answer_late


class Cluster:
    """A few scripted brokers that tell the same metadata."""

    def __init__(self, size=3):
        self.network = MemoryNetwork()
        self.controller = 1
        self.topics = {"t": {0: 0, 1: 1, 2: 2}}
        self.brokers = [ScriptedBroker(self.network, f"b{n}") for n in range(size)]
        self.members = list(range(size))
        for number, broker in enumerate(self.brokers):
            broker.on("Metadata", self.metadata)
            broker.on("FindCoordinator", self.find_coordinator)
            broker.on("Heartbeat", {})
            broker.on("ListGroups", {"throttle_time_ms": number * 0, "groups": []})
        self.coordinator = 2
        self.coordinator_error = 0

    def metadata(self, request, _session):
        wanted = self.topics if request.topics is None else [topic.name for topic in request.topics]
        response = MetadataResponse
        return {
            "brokers": [
                response.MetadataResponseBroker(node_id=n, host=f"b{n}", port=9092, rack=None) for n in self.members
            ],
            "controller_id": self.controller,
            "cluster_id": "c",
            "topics": [
                response.MetadataResponseTopic(
                    error_code=0 if name in self.topics else 3,
                    name=name,
                    partitions=[
                        response.MetadataResponsePartition(
                            partition_index=p, leader_id=leader, replica_nodes=[leader], isr_nodes=[leader]
                        )
                        for p, leader in self.topics.get(name, {}).items()
                    ],
                )
                for name in wanted
            ],
        }

    def find_coordinator(self, request, _session):
        if self.coordinator_error:
            code, self.coordinator_error = self.coordinator_error, 0
            fields = {"error_code": code, "node_id": -1, "host": "", "port": -1}
        else:
            fields = {"error_code": 0, "node_id": self.coordinator, "host": f"b{self.coordinator}", "port": 9092}
        if request.coordinator_keys:
            from kafka.protocol.commit import FindCoordinatorResponse

            return {
                "coordinators": [
                    FindCoordinatorResponse.Coordinator(key=key, error_message=None, **fields)
                    for key in request.coordinator_keys
                ]
            }
        return fields

    def asked(self, api):
        return [number for number, broker in enumerate(self.brokers) for _ in broker.asked(api)]


@pytest.fixture
def cluster():
    return Cluster()


@pytest.fixture
def make(cluster):
    made = []

    def make(**config):
        config.setdefault("bootstrap_servers", "b0,b1,b2")
        client = KafkaClient(environment=cluster.network.environment(), **config)
        made.append(client)
        return client

    yield make
    for client in made:
        client.close()
        assert client.core.loop.closed
    assert not cluster.network.open_sockets


def run(client, coro, seconds=100):
    return client.core.loop.run_until(client.core.loop.spawn(coro), client.core.loop.time() + seconds)


def late(cluster, loop, seconds):
    """Let each answer of the cluster take some time."""
    for broker in cluster.brokers:
        answer_late(broker, loop, seconds)


def rest(client, seconds):
    """Let time pass while the client does what it likes."""
    client.core.loop.run_until(client.core.loop.spawn(client.core.loop.sleep(seconds)))


def test_the_historic_paths_lead_to_one_class():
    assert kafka.client.KafkaClient is KafkaClient
    assert (2, 8) in KafkaClient.API_VERSIONS
    # In kafka-python 1.3.4, whose manual points there.
    historic = [(0, 10, 1), (0, 10, 0), (0, 10), (0, 9), (0, 8, 2), (0, 8, 1), (0, 8, 0)]
    assert [release for release in KafkaClient.API_VERSIONS if release in historic] == historic
    for release in KafkaClient.API_VERSIONS:
        assert resolve("client", {"api_version": release})["api_version"] == release
    assert KafkaClient.DEFAULT_CONFIG["request_timeout_ms"] == 30000


# Bootstrap


def test_it_learns_the_cluster_from_one_server(make, cluster):
    client = make()
    assert {broker.nodeId for broker in client.cluster.brokers()} == {0, 1, 2}
    assert client.bootstrap_connected()
    assert client.api_version >= (4, 0)
    assert client.get_api_versions()[0][0] == 0
    assert client.check_version() == client.api_version == client.config["api_version"]
    # the connection to the bootstrap server goes on as the one to that broker
    assert sum(len(broker.sessions) for broker in cluster.brokers) == 1
    assert client.least_loaded_node() in {0, 1, 2}


def test_a_broker_that_breaks_off_is_not_ancient_where_another_has_answered(make, cluster):
    client = make(bootstrap_servers="b0", reconnect_backoff_max_ms=100)
    honest = cluster.brokers[1].handlers["ApiVersions"]
    cluster.brokers[1].on("ApiVersions", lambda *_: HANG_UP)
    future = client.submit(1, ListGroupsRequest(), timeout=100)
    with pytest.raises(KafkaConnectionError):
        run(client, client.core.open(client.link(1), client.core.loop.time() + 10))
    assert future.is_done
    assert not cluster.brokers[1].asked("ListGroups")
    cluster.brokers[1].on("ApiVersions", honest)
    assert run(client, client.core.request(ListGroupsRequest(), node_id=1)).groups == []
    assert client.link(1).versions.release > (4, 0)


def test_servers_that_are_down_are_passed_over(make, cluster):
    cluster.brokers[0].stop()
    cluster.brokers[2].stop()
    assert make().cluster.controller.nodeId == 1


def test_a_server_that_does_not_answer_holds_up_for_a_moment_only(make, cluster):
    for number in (0, 2):
        cluster.network.unreachable.add((f"b{number}", 9092))
    before = cluster.network.clock.monotonic()
    make(bootstrap_servers="b0,b1,b2")
    assert cluster.network.clock.monotonic() - before < 2.5


def test_a_bootstrap_server_that_is_not_a_broker_leaves_the_search_to_the_others(make, cluster):
    for number in (0, 1):
        cluster.brokers[number].on("ApiVersions", lambda *_: b"HTTP/1.1 400 Bad Request")
    for _ in range(8):  # the order of the servers is random
        make(bootstrap_servers="b0,b1,b2")


def test_servers_that_are_all_something_else_than_brokers_are_not_waited_for(make, cluster):
    for broker in cluster.brokers:
        broker.on("ApiVersions", lambda *_: b"HTTP/1.1 400 Bad Request")
    before = cluster.network.clock.monotonic()
    with pytest.raises(InvalidReceiveError, match="speaks HTTP: this is not a broker's port"):
        make(bootstrap_servers="b0,b1,b2")
    cluster.brokers[1].stop()  # another one that does not listen is waited for as if all did not
    with pytest.raises(NoBrokersAvailable, match=r"speaks HTTP.*refused|refused.*speaks HTTP"):
        make(bootstrap_servers="b0,b1,b2")
    assert cluster.network.clock.monotonic() - before < 3


def test_no_server_at_all_names_each_and_why(make, cluster):
    cluster.brokers[0].stop()
    cluster.network.unreachable.add(("b1", 9092))
    cluster.network.names["b9"] = []
    before = cluster.network.clock.monotonic()
    with pytest.raises(NoBrokersAvailable) as caught:
        make(bootstrap_servers="b0,b1,b9", bootstrap_timeout_ms=5000)
    assert cluster.network.clock.monotonic() - before == pytest.approx(5, abs=0.6)
    text = str(caught.value)
    assert "b0:9092: Connection refused" in text
    assert "b9:9092: cannot resolve b9: Name or service not known" in text
    assert "b1:9092: no answer yet" in text
    assert [text.count(f"{server}:9092:") for server in ("b0", "b1", "b9")] == [1, 1, 1]
    assert not cluster.network.open_sockets


@pytest.mark.parametrize(
    ("config", "seconds", "advice"),
    [
        ({}, 2, "to wait for a cluster that starts later set bootstrap_timeout_ms"),
        ({"bootstrap_timeout_ms": None}, 2, "to wait for a cluster that starts later set bootstrap_timeout_ms"),
        ({"bootstrap_timeout_ms": 10_000}, 10, r"within 10 seconds \(bootstrap_timeout_ms\)"),
        ({"bootstrap_timeout_ms": 30_000}, 30, r"within 30 seconds \(bootstrap_timeout_ms\)"),
        ({"api_version_auto_timeout_ms": 500}, 0.5, r"within 0.5 seconds \(bootstrap_timeout_ms\)"),
    ],
)
def test_servers_that_all_refuse_are_waited_for_as_bootstrap_timeout_ms_says(make, cluster, config, seconds, advice):
    for broker in cluster.brokers:
        broker.stop()
    cluster.network.names["b9"] = []
    before = cluster.network.clock.monotonic()
    with pytest.raises(NoBrokersAvailable, match=rf"{advice} \[.*refused"):
        make(**{**config, "bootstrap_servers": "b0,b9"})
    assert cluster.network.clock.monotonic() - before == pytest.approx(seconds, abs=1)


def test_a_client_may_start_before_its_cluster(make, cluster):
    for broker in cluster.brokers:
        broker.stop()
    client = make(bootstrap=False, bootstrap_timeout_ms=120_000)
    began = client.core.loop.time()
    client.core.loop.call_later(90, cluster.brokers[1].start)
    run(client, client.core.bootstrap(), 120)
    assert client.core.loop.time() - began < 92


@pytest.mark.parametrize("seconds", [1.0, 1.8, 2.5, 4.0, 10.0])
def test_a_cluster_that_takes_its_time_is_found_over_one_connection(make, cluster, seconds):
    client = make(bootstrap=False, bootstrap_servers="b0")
    late(cluster, client.core.loop, seconds)
    before = client.core.loop.time()
    run(client, client.core.bootstrap())
    assert client.core.loop.time() - before == pytest.approx(2 * seconds, abs=0.1)
    assert [len(broker.sessions) for broker in cluster.brokers] == [1, 0, 0]


def test_a_client_that_was_connected_waits_for_a_broker_that_became_slow(make, cluster):
    """It does not ask it what only an ancient broker needs to be asked."""
    client = make(bootstrap_servers="b0")
    late(cluster, client.core.loop, 9.0)
    cluster.brokers[0].sessions[0].sock.close()
    rest(client, 0.1)
    before = client.core.loop.time()
    run(client, client.core.request(MetadataRequest(topics=[]), node_id=0))
    assert client.core.loop.time() - before == pytest.approx(18, abs=0.5)
    assert len(cluster.brokers[0].sessions) == 2
    assert not cluster.asked("ListGroups")


@pytest.mark.parametrize("accepted", [lambda end: end.close(), lambda end: None], ids=["hangs up", "says nothing"])
def test_a_bootstrap_name_whose_first_address_leads_nowhere_is_connected_to_at_the_second(make, cluster, accepted):
    network = cluster.network
    network.names["kafka"] = ["10.0.0.1", "b0"]
    network.listen("10.0.0.1", 9092, accepted)
    before = network.clock.monotonic()
    client = make(bootstrap_servers="kafka")
    assert {broker.nodeId for broker in client.cluster.brokers()} == {0, 1, 2}
    assert network.clock.monotonic() - before < 13


@pytest.mark.parametrize("accepted", [lambda end: end.close(), lambda end: None], ids=["hangs up", "says nothing"])
def test_the_address_that_failed_is_remembered_for_all_connections_to_a_broker(make, cluster, accepted):
    network = cluster.network
    client = make(bootstrap_servers="b0")
    network.names["b1"] = ["10.0.0.1", "b1"]
    network.listen("10.0.0.1", 9092, accepted)
    with pytest.raises(KafkaError, match="accepted the connection and"):
        run(client, client.core.request(MetadataRequest(topics=[]), node_id=1))
    run(client, client.core.request(MetadataRequest(topics=[]), node_id=1))
    network.listen("10.0.0.1", 9092, lambda end: pytest.fail("the bad address was tried first"))
    before = client.core.loop.time()
    run(client, client.core.request(MetadataRequest(topics=[]), node_id=1, use=FETCH))
    assert client.core.loop.time() - before < 1


def test_a_broker_that_is_starting_and_knows_of_none_is_asked_again_over_the_same_connection(make, cluster):
    client = make(bootstrap=False, bootstrap_servers="b0")
    tell = cluster.metadata
    cluster.brokers[0].on("Metadata", lambda *_: {"controller_id": -1, "brokers": [], "topics": []})
    client.core.loop.call_later(10, cluster.brokers[0].on, "Metadata", tell)
    run(client, client.core.bootstrap())
    assert len(cluster.brokers[0].sessions) == 1
    assert 8 < len(cluster.brokers[0].asked("Metadata")) < 40


def test_servers_that_know_of_no_broker_are_reported(make, cluster):
    for broker in cluster.brokers:
        broker.on("Metadata", lambda *_: {"controller_id": -1, "brokers": [], "topics": []})
    with pytest.raises(NoBrokersAvailable, match="b0:9092: does not know any broker; it may be starting"):
        make(bootstrap_servers="b0")


def test_what_any_broker_may_answer_is_not_asked_of_one_that_is_stuck(make, cluster):
    client = make(bootstrap_servers="b0")
    stuck = client.submit(1, ListGroupsRequest())
    cluster.brokers[1].on("ApiVersions", lambda *_: SILENCE)
    cluster.brokers[0].stop()
    client.submit(0, MetadataRequest(topics=[]))
    rest(client, 2)
    before = client.core.loop.time()
    run(client, client.core.request(MetadataRequest(topics=[])))
    assert client.core.loop.time() - before < 3
    assert not stuck.is_done
    # Where no other is left it is waited for.
    cluster.brokers[2].stop()
    rest(client, 0.1)
    assert client.least_loaded_node() in {0, 1, 2}


def test_metadata_comes_from_another_broker_while_one_does_not_finish_connecting(make, cluster):
    client = make(bootstrap_servers="b0", connections_max_idle_ms=1000)
    for broker in cluster.brokers[1:]:
        broker.on("ApiVersions", lambda *_: SILENCE)
    rest(client, 2)  # the connection to broker 0 is closed: an idle one
    client.submit(1, ListGroupsRequest())
    client.submit(2, ListGroupsRequest())
    rest(client, 0.1)
    before = client.core.loop.time()
    run(client, client.core.refresh(before + 60))
    assert client.core.loop.time() - before < 5
    assert set(cluster.asked("Metadata")) == {0}


def test_health_names_the_state_of_the_metadata(make, cluster):
    client = make(bootstrap_servers="b0")
    assert client.core.health()["metadata_state"] == "fresh"
    cluster.brokers[0].on("Metadata", lambda *_: SILENCE)
    client.cluster.request_update()
    client.core.metadata.start()
    rest(client, 3)
    assert client.core.health()["metadata_state"] == "requested"


def test_a_server_that_falls_silent_is_asked_again_after_the_time_for_a_request(make, cluster):
    silent = [True]
    tell = cluster.metadata
    cluster.brokers[0].on("Metadata", lambda *words: SILENCE if silent and silent.pop() else tell(*words))
    before = cluster.network.clock.monotonic()
    make(bootstrap_servers="b0", request_timeout_ms=3000)
    assert cluster.network.clock.monotonic() - before < 5


def test_a_server_that_is_slow_is_waited_for_though_the_others_refuse(make, cluster):
    for broker in cluster.brokers:
        broker.stop()
    cluster.network.unreachable.add(("b1", 9092))
    before = cluster.network.clock.monotonic()
    with pytest.raises(NoBrokersAvailable):
        make()
    assert cluster.network.clock.monotonic() - before == pytest.approx(30, abs=1)


def test_servers_that_come_up_within_moments_are_found(make, cluster):
    for broker in cluster.brokers:
        broker.stop()
    client = make(bootstrap=False)
    client.core.loop.call_later(1.2, cluster.brokers[0].start)
    run(client, client.core.bootstrap())
    assert client.cluster.update_age() is not None


def test_bootstrapping_against_nothing_does_not_spin(cluster):
    for broker in cluster.brokers:
        broker.stop()
    client = KafkaClient(environment=cluster.network.environment(), bootstrap_servers="b0", bootstrap=False)
    with pytest.raises(NoBrokersAvailable):
        run(client, client.core.bootstrap())
    attempts = len(cluster.network.sockets)
    assert client.core.loop.turns <= 15 * attempts
    client.close()


@pytest.mark.parametrize("code", [58])
def test_a_wrong_password_is_raised_at_once(make, cluster, code):
    for broker in cluster.brokers:
        broker.on("SaslHandshake", {"error_code": 0, "mechanisms": ["PLAIN"]})
        broker.on("SaslAuthenticate", {"error_code": code, "error_message": "Authentication failed"})
    before = cluster.network.clock.monotonic()
    with pytest.raises(SaslAuthenticationFailedError, match="Authentication failed"):
        make(
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="PLAIN",
            sasl_plain_username="a",
            sasl_plain_password="b",
        )
    assert cluster.network.clock.monotonic() - before < 1


def test_a_tls_client_at_plain_ports_fails_at_once(make, cluster):
    with pytest.raises(SslAuthenticationError, match="PLAINTEXT"):
        make(security_protocol="SSL")


def test_an_option_that_does_not_exist_names_its_neighbour():
    with pytest.raises(KafkaConfigurationError, match="bootstrap_servers"):
        KafkaClient(bootstrap_server="b0")


def test_canonical_names_replace_the_bootstrap_servers(make, cluster):
    cluster.network.names["seed"] = ["b0", "b1"]
    client = make(bootstrap_servers="seed", client_dns_lookup="resolve_canonical_bootstrap_servers_only")
    assert [broker.host for broker in client.cluster.bootstrap_brokers()] == ["b0", "b1"]


# Sending by hand


def test_the_way_of_the_manual(make, cluster):
    client = make()
    node_id = client.least_loaded_node()
    assert client.await_ready(node_id)
    assert client.connected(node_id)
    assert client.is_ready(node_id)
    future = client.send(node_id, MetadataRequest[1](["t"]))
    assert client.in_flight_request_count(node_id) == 1
    responses = client.poll(timeout_ms=1000, future=future)
    assert responses == [future.value]
    assert future.value.topics[0].name == "t"
    assert client.in_flight_request_count() == 0
    assert client.connection_delay(node_id) > 1e6
    client.close(node_id)
    assert not client.connected(node_id)


@pytest.mark.parametrize("from_another_thread", [False, True])
def test_wakeup_ends_a_poll(make, cluster, from_another_thread):
    client = make()
    if from_another_thread:  # which wakes the loop while it sleeps
        client.core.loop.call_later(0.5, client.wakeup)
    else:
        client.wakeup()
    before = client.core.loop.time()
    assert client.poll(timeout_ms=4000) == []
    assert client.core.loop.time() - before == pytest.approx(0.5 if from_another_thread else 0, abs=0.01)
    # It ends one poll.
    before = client.core.loop.time()
    assert client.poll(timeout_ms=4000) == []
    assert client.core.loop.time() - before == pytest.approx(4, abs=0.01)
    # And none that waits for a future.
    future = client.submit(0, ListGroupsRequest())
    client.wakeup()
    client.poll(timeout_ms=4000, future=future)
    assert future.succeeded()


def test_ready_connects_in_the_polls_to_come(make):
    client = make()
    other = next(number for number in (0, 1, 2) if not client.connected(number))
    assert not client.ready(other)
    for _ in range(20):
        client.poll(timeout_ms=0)
    assert client.ready(other)
    assert not client.is_disconnected(other)


def test_sending_to_a_broker_that_is_not_ready_fails_at_once(make):
    client = make()
    other = next(number for number in (0, 1, 2) if not client.connected(number))
    assert isinstance(client.send(other, ListGroupsRequest()).exception, NodeNotReadyError)
    with pytest.raises(UnknownBrokerIdError, match="no broker has the id 99"):
        client.send(99, ListGroupsRequest())
    assert not client.maybe_connect(99)


def test_a_request_is_sent_in_no_version_beyond_the_newest_that_its_caller_names(make, cluster):
    client = make()
    future = client.submit(0, ListGroupsRequest(), newest=2)
    client.poll(timeout_ms=1000, future=future)
    client.poll(timeout_ms=1000, future=client.submit(0, ListGroupsRequest()))
    limited, plain = (version for name, version, _ in cluster.brokers[0].requests if name == "ListGroups")
    assert limited == 2
    assert plain > 2


def test_offsets_of_partitions_are_asked_of_their_leaders(make, cluster):
    client = make()
    for number, broker in enumerate(cluster.brokers):
        broker.on("ListOffsets", lambda request, _session, number=number: _offsets(request, 10 + number))
    wanted = {TopicPartition("t", 0): -1, TopicPartition("t", 2): 1_700_000_000_000}
    found = client.list_offsets(wanted, committed_only=True)
    assert {partition.partition: place.offset for partition, place in found.items()} == {0: 10, 2: 12}
    (asked,) = cluster.brokers[0].asked("ListOffsets")
    assert asked.isolation_level == 1
    began = client.core.loop.time()
    with pytest.raises(KafkaTimeoutError, match="offsets could not be looked up"):
        client.list_offsets({TopicPartition("absent", 0): -1}, timeout_ms=3000)
    assert client.core.loop.time() - began <= 3


def _offsets(request, offset):
    response = ListOffsetsResponse
    return {
        "topics": [
            response.ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    response.ListOffsetsPartitionResponse(
                        partition_index=part.partition_index, error_code=0, timestamp=-1, offset=offset
                    )
                    for part in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    }


def test_submitting_waits_for_the_connection(make):
    client = make()
    for number in (0, 1, 2):
        future = client.submit(number, ListGroupsRequest())
        assert client.core.loop.run_until(future, client.core.loop.time() + 5).groups == []


def test_poll_returns_at_its_time_without_a_response(make, cluster):
    client = make()
    before, turns = cluster.network.clock.monotonic(), client.core.loop.turns
    assert client.poll(timeout_ms=5000) == []
    assert cluster.network.clock.monotonic() - before == pytest.approx(5)
    assert client.core.loop.turns - turns <= 3
    assert client.poll(timeout_ms=5000, sleep=False) == []
    assert cluster.network.clock.monotonic() - before == pytest.approx(5)
    with pytest.raises(ValueError, match="negative"):
        client.poll(timeout_ms=-1)


def test_a_broker_that_cannot_be_reached_is_not_ready_in_time(make, cluster):
    client = make()
    other = next(number for number in (0, 1, 2) if not client.connected(number))
    cluster.brokers[other].stop()
    with pytest.raises(KafkaConnectionError):
        client.await_ready(other, timeout_ms=200)
    with pytest.raises(NodeNotReadyError):
        client.check_version(other, timeout=0.2)
    assert client.connection_delay(other) >= 0


# Scheduled tasks


def test_a_task_runs_in_the_first_poll_after_its_time(make, cluster):
    client = make()
    ran = []
    clock = cluster.network.clock
    future = client.schedule(lambda: ran.append(clock.time()) or "result", clock.time() + 10)
    before = clock.time()
    client.poll(timeout_ms=60_000, future=future)
    assert ran == [pytest.approx(before + 10)]
    assert future.value == "result"


def test_a_task_may_take_back_another_that_is_due_as_well(make, cluster):
    client, clock, ran = make(), cluster.network.clock, []

    def second():
        ran.append("second")

    def first():
        ran.append("first")
        client.unschedule(second)

    for task in (first, second):
        client.schedule(task, clock.time())
    last = client.schedule(lambda: ran.append("last"), clock.time())
    client.poll(50, delayed_tasks=False)
    client.poll(50)
    assert ran == ["first", "last"]
    assert last.is_done


def test_a_task_is_scheduled_once_and_can_be_taken_back(make, cluster):
    client, ran = make(), []

    def task():
        ran.append(1)

    now = cluster.network.clock.time()
    client.schedule(task, now + 1)
    client.schedule(task, now + 2)
    client.poll(timeout_ms=1500)
    assert ran == []
    client.poll(timeout_ms=1500)
    assert ran == [1]
    client.schedule(task, now + 4)
    client.unschedule(task)
    client.unschedule(task)
    client.poll(timeout_ms=5000)
    assert ran == [1]


def test_the_future_of_a_task_is_done_whatever_becomes_of_the_task(make, cluster):
    client, now = make(), cluster.network.clock.time()

    def task():
        return "result"

    first = client.schedule(task, now + 1)
    assert client.schedule(task, now + 2) is first
    client.poll(timeout_ms=3000)
    assert first.value == "result"
    taken_back = client.schedule(task, now + 9)
    client.unschedule(task)
    assert isinstance(taken_back.exception, Cancelled)
    left = client.schedule(task, now + 99)
    client.close()
    assert isinstance(left.exception, ClientClosedError)


def test_a_task_waits_for_a_poll_that_wants_tasks(make, cluster):
    client = make()
    future = client.schedule(lambda: 1 / 0, cluster.network.clock.time())
    client.poll(timeout_ms=100, delayed_tasks=False)
    assert not future.is_done
    client.poll(timeout_ms=0)
    assert isinstance(future.exception, ZeroDivisionError)


# Routing


@pytest.mark.parametrize(
    ("request_", "api", "where"),
    [
        (CreateTopicsRequest(topics=[], timeout_ms=1), "CreateTopics", 1),
        (HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), "Heartbeat", 2),
        (OffsetCommitRequest(group_id="g", topics=[]), "OffsetCommit", 2),
        (EndTxnRequest(transactional_id="x", producer_id=1, producer_epoch=1, committed=True), "EndTxn", 2),
        (
            ListOffsetsRequest(
                replica_id=-1,
                topics=[
                    ListOffsetsRequest.ListOffsetsTopic(
                        name="t",
                        partitions=[ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=-1)],
                    )
                ],
            ),
            "ListOffsets",
            0,
        ),
    ],
)
def test_a_request_goes_where_it_belongs(make, cluster, request_, api, where):
    for broker in cluster.brokers:
        broker.on(api, {})
    client = make()
    run(client, client.core.request(request_))
    assert cluster.asked(api) == [where]


def test_a_request_for_anyone_goes_to_anyone(make, cluster):
    client = make()
    assert run(client, client.core.request(ListGroupsRequest())).groups == []


def test_partitions_of_two_leaders_do_not_fit_into_one_request(make):
    client = make()
    run(client, client.core.leader(TopicPartition("t", 0), client.core.loop.time() + 5))
    topic = ListOffsetsRequest.ListOffsetsTopic(
        name="t",
        partitions=[ListOffsetsRequest.ListOffsetsPartition(partition_index=n, timestamp=-1) for n in (0, 1)],
    )
    with pytest.raises(IllegalArgumentError, match="several leaders"):
        run(client, client.core.request(ListOffsetsRequest(replica_id=-1, topics=[topic])))


def test_a_coordinator_that_is_not_there_yet_is_looked_up_again(make, cluster):
    client = make()
    cluster.coordinator_error = 15
    assert run(client, client.core.coordinator(0, "g", client.core.loop.time() + 10)) == 2
    assert len(cluster.asked("FindCoordinator")) == 2
    assert run(client, client.core.coordinator(0, "g", client.core.loop.time() + 10)) == 2
    assert len(cluster.asked("FindCoordinator")) == 2


def test_a_request_that_could_not_be_sent_is_tried_elsewhere(make, cluster):
    client = make()
    answered = client.least_loaded_node()
    for number in {0, 1, 2} - {(answered + 1) % 3}:
        cluster.brokers[number].stop()
    before = cluster.network.clock.monotonic()
    assert run(client, client.core.request(ListGroupsRequest())).groups == []
    assert cluster.network.clock.monotonic() - before < 2


def test_a_coordinator_that_went_away_is_looked_up_again(make, cluster):
    client = make()
    run(client, client.core.request(HeartbeatRequest(group_id="g", generation_id=1, member_id="m")))
    cluster.brokers[2].stop()
    cluster.coordinator = 1
    rest(client, 0.01)
    run(client, client.core.request(HeartbeatRequest(group_id="g", generation_id=1, member_id="m")))
    assert cluster.asked("Heartbeat") == [1, 2]


@pytest.mark.parametrize("api", ["ApiVersions", "FindCoordinator"], ids=["from the start", "connected"])
@pytest.mark.parametrize("silent", [0, 1])
@pytest.mark.parametrize("seed", range(4))
def test_a_silent_broker_does_not_hold_up_a_lookup_that_another_could_answer(cluster, api, silent, seed):
    environment = cluster.network.environment(seed=seed)
    cluster.members = [0, 1]
    cluster.coordinator = 1 - silent
    with KafkaClient(bootstrap_servers="b0,b1", environment=environment, request_timeout_ms=10_000) as client:
        for number in (0, 1):
            run(client, client.core.request(MetadataRequest(topics=[]), node_id=number))
        cluster.brokers[silent].on(api, lambda *_: SILENCE)
        if api == "ApiVersions":
            client.close(silent)
            client.close(1 - silent)
        before = client.core.loop.time()
        found = run(client, client.core.coordinator(0, "g", before + 60))
        assert found == 1 - silent
        assert client.core.loop.time() - before < (3 if api == "ApiVersions" else 12)


def test_request_timeout_ms_is_the_limit_of_one_request_of_a_longer_call(make, cluster):
    client = make(request_timeout_ms=10_000)
    partition = TopicPartition("t", 0)
    cluster.brokers[0].on("ListOffsets", lambda *_: SILENCE)
    cluster.brokers[1].on("ListOffsets", lambda request, _session: _offsets(request, 7))
    client.core.loop.call_later(5, cluster.topics["t"].update, {0: 1})
    before = client.core.loop.time()
    assert client.list_offsets({partition: -1}, timeout_ms=60_000)[partition].offset == 7
    assert client.core.loop.time() - before < 12


def test_no_request_of_a_call_waits_longer_than_request_timeout_ms(make, cluster):
    client = make(request_timeout_ms=3000)
    cluster.brokers[1].on("ListGroups", lambda *_: SILENCE)
    before = client.core.loop.time()
    with pytest.raises(RequestTimedOutError, match=r"no response to ListGroupsRequest within 3\.0 seconds"):
        client.ask(ListGroupsRequest(), node_id=1, timeout_ms=60_000)
    assert client.core.loop.time() - before < 4
    # A program may give one request more time: a broker may have to wait before it answers.
    before = client.core.loop.time()
    future = client.submit(1, ListGroupsRequest(), timeout=30)
    with pytest.raises(RequestTimedOutError):
        client.core.loop.run_until(future)
    assert client.core.loop.time() - before == pytest.approx(30, abs=1)


def test_a_request_that_waits_for_a_broker_that_is_down_ends_with_the_reason(make, cluster):
    client = make(reconnect_backoff_ms=20_000, reconnect_backoff_max_ms=20_000)
    client.close(1)
    cluster.brokers[1].stop()
    with pytest.raises(NodeNotReadyError, match=r"broker 1 \(b1:9092\): Connection refused"):
        client.ask(ListGroupsRequest(), node_id=1)
    with pytest.raises(KafkaTimeoutError, match=r"ListGroupsRequest could not be sent in time: .*Connection refused"):
        client.ask(ListGroupsRequest(), node_id=1, timeout_ms=3000)
    cluster.network.unreachable.add(("b2", 9092))
    client.close(2)
    with pytest.raises(KafkaTimeoutError, match=r"ListGroupsRequest could not be sent in time: .*to be accepted"):
        client.ask(ListGroupsRequest(), node_id=2, timeout_ms=3000)
    with pytest.raises(KafkaConnectionError, match=r"is not ready after 500 ms: .*Connection refused"):
        client.await_ready(1, timeout_ms=500)


def test_a_request_for_one_broker_is_not_tried_elsewhere(make, cluster):
    client = make()
    other = next(number for number in (0, 1, 2) if not client.connected(number))
    cluster.brokers[other].stop()
    with pytest.raises(NodeNotReadyError, match="refused"):
        run(client, client.core.request(ListGroupsRequest(), node_id=other))


def test_lookups_of_one_coordinator_at_one_time_are_one(make, cluster):
    client = make()
    deadline = client.core.loop.time() + 10
    tasks = [client.core.loop.spawn(client.core.coordinator(0, "g", deadline)) for _ in range(5)]
    for task in tasks:
        assert client.core.loop.run_until(task) == 2
    assert len(cluster.asked("FindCoordinator")) == 1


def test_a_coordinator_that_is_refused_is_an_error_at_once(make, cluster):
    client = make()
    cluster.coordinator_error = 30
    with pytest.raises(GroupAuthorizationFailedError):
        run(client, client.core.coordinator(0, "g", client.core.loop.time() + 10))


def test_a_topic_that_does_not_exist_is_reported_as_missing(make):
    client = make()
    with pytest.raises((UnknownTopicOrPartitionError, KafkaTimeoutError)):
        run(client, client.core.leader(TopicPartition("nope", 0), client.core.loop.time() + 2))


def test_uses_have_separate_connections(make, cluster):
    client = make()
    links = {client.link(0, use) for use in ("default", FETCH, COORDINATOR)}
    assert len(links) == 3
    for link in links:
        client.core.loop.run_until(link.open(), client.core.loop.time() + 5)
    assert len(cluster.brokers[0].sessions) >= 3


# Metadata


def test_metadata_is_refreshed_by_age_and_not_more_often(make, cluster):
    client = make(metadata_max_age_ms=10_000)
    asked, turns = len(cluster.asked("Metadata")), client.core.loop.turns
    rest(client, 60.5)
    assert len(cluster.asked("Metadata")) - asked == 6
    assert client.core.loop.turns - turns <= 6 * 15


def test_a_new_topic_is_asked_for_at_once(make, cluster):
    client = make()
    future = client.add_topic("t")
    client.poll(timeout_ms=1000, future=future)
    assert client.cluster.partitions_for_topic("t") == {0, 1, 2}
    future = client.set_topics(["t"])
    assert future.is_done


def test_a_topic_being_created_is_waited_for_without_spinning(make, cluster):
    client = make()
    client.add_topic("later")
    asked = len(cluster.asked("Metadata"))
    rest(client, 3)
    assert 3 <= len(cluster.asked("Metadata")) - asked <= 12
    cluster.topics["later"] = {0: 0}
    rest(client, 2)
    assert client.cluster.partitions_for_topic("later") == {0}


def test_a_lost_connection_asks_for_metadata(make, cluster):
    client = make()
    rest(client, 0.5)
    asked = len(cluster.asked("Metadata"))
    client.submit(0, ListGroupsRequest())
    rest(client, 0.5)
    for session in cluster.brokers[0].sessions:
        session.sock.close()
    rest(client, 1)
    assert len(cluster.asked("Metadata")) > asked


def test_a_broker_that_moved_is_found_at_its_new_address(make, cluster):
    client = make()
    client.core.loop.run_until(client.link(0).open(), client.core.loop.time() + 5)
    moved = ScriptedBroker(cluster.network, "new")
    moved.on("ListGroups", {"groups": []})
    original = cluster.metadata

    def metadata(request, session):
        reply = original(request, session)
        reply["brokers"][0].host = "new"
        return reply

    for broker in cluster.brokers:
        broker.on("Metadata", metadata)
    run(client, client.core.refresh(client.core.loop.time() + 5))
    run(client, client.core.request(ListGroupsRequest(), node_id=0))
    assert moved.asked("ListGroups")


def test_when_every_broker_is_gone_it_starts_again_from_the_bootstrap_servers(make, cluster, caplog):
    cluster.network.names["seed"] = ["b0"]
    client = make(bootstrap_servers="seed")
    rest(client, 0.1)
    cluster.network.names["seed"] = ["elsewhere"]
    for broker in cluster.brokers:
        broker.stop()
    replacement = ScriptedBroker(cluster.network, "elsewhere")
    replacement.on("Metadata", cluster.metadata)
    client.cluster.request_update()
    rest(client, 30)
    assert "Starting again from the bootstrap servers" in caplog.text
    assert replacement.asked("Metadata")


@pytest.fixture
def advertised(cluster):
    """The address that the brokers advertise cannot be reached."""
    original = cluster.metadata

    def metadata(request, session):
        reply = original(request, session)
        del reply["brokers"][1:]
        reply["brokers"][0].host = "inside"
        return reply

    for broker in cluster.brokers:
        broker.on("Metadata", metadata)


@pytest.mark.usefixtures("advertised")
def test_an_advertised_address_that_cannot_be_reached_is_tried_at_growing_intervals(make, caplog):
    """Each start from the bootstrap servers gives the same address again."""
    client = make(bootstrap_servers="b0")

    async def ask():
        async for attempt in client.core.attempts(client.core.loop.time() + 60, "asking the leader"):
            with attempt:
                await client.core.request(ListGroupsRequest(), node_id=0)

    with pytest.raises(KafkaError):
        run(client, ask())
    assert "Starting again from the bootstrap servers" in caplog.text
    assert "broker 0 (inside:9092): Connection refused; failed 32 times in a row" in caplog.text


@pytest.mark.usefixtures("advertised")
def test_behind_such_an_address_the_bootstrap_server_answers_what_any_broker_can(make, cluster):
    client = make(bootstrap_servers="b0")
    began = client.core.loop.time()

    async def ask():
        link = await client.core.some_link(began + 60)
        return link.host

    assert [run(client, ask()) for _ in range(3)] == ["b0"] * 3
    assert client.core.loop.time() - began < 10
    assert run(client, client.core.request(ApiVersionsRequest(), deadline=client.core.loop.time() + 60)).api_keys


def test_without_the_strategy_it_continues_trying(make, cluster, caplog):
    client = make(metadata_recovery_strategy="none")
    for broker in cluster.brokers:
        broker.stop()
    client.cluster.request_update()
    rest(client, 30)
    assert "Starting again" not in caplog.text
    for broker in cluster.brokers:
        broker.start()
    future = client.cluster.request_update()
    client.poll(timeout_ms=60_000, future=future)
    assert future.succeeded() or client.cluster.ttl() > 0


def test_an_outage_is_survived_and_does_not_spin(make, cluster):
    client = make(reconnect_backoff_max_ms=30_000)
    for broker in cluster.brokers:
        broker.stop()
    client.cluster.request_update()
    turns, sockets = client.core.loop.turns, len(cluster.network.sockets)
    rest(client, 600)
    attempts = len(cluster.network.sockets) - sockets
    assert attempts < 600_000 / 30_000 * 3 * 8
    assert client.core.loop.turns - turns <= 20 * attempts
    for broker in cluster.brokers:
        broker.start()
    rest(client, 60)
    assert run(client, client.core.request(ListGroupsRequest())).groups == []


def test_waiting_for_metadata_fails_with_the_reason(make, cluster):
    client = make()
    for broker in cluster.brokers:
        broker.stop()
    with pytest.raises(KafkaError):
        run(client, client.core.refresh(client.core.loop.time() + 5))


def test_old_brokers_are_asked_in_their_way(make, cluster):
    for broker in cluster.brokers:
        broker.ranges[3] = (0, 0)
    client = make()
    assert client.cluster.topics() == {"t"} or client.cluster.topics() == set()
    client.poll(timeout_ms=1000, future=client.add_topic("t"))
    assert client.cluster.topics() == {"t"}


def test_topics_are_not_created_by_asking_old_brokers(make, cluster):
    for broker in cluster.brokers:
        broker.ranges[3] = (0, 3)
    client = make(allow_auto_create_topics=False)
    client.poll(timeout_ms=1000, future=client.add_topic("t"))
    assert client.cluster.topics() == {"t"}
    assert all(request.topics in (None, []) for broker in cluster.brokers for request in broker.asked("Metadata"))


# Idle, throttled, closed


def test_idle_connections_are_closed_and_nothing_happens_after_that(make, cluster):
    client = make(connections_max_idle_ms=60_000, metadata_max_age_ms=10_000_000)
    client.submit(0, ListGroupsRequest())
    rest(client, 1)
    turns = client.core.loop.turns
    rest(client, 300)
    assert not cluster.network.open_sockets
    assert client.core.loop.turns - turns <= 8
    assert run(client, client.core.request(ListGroupsRequest())).groups == []


def test_a_connection_in_use_is_not_idle(make, cluster):
    client = make(connections_max_idle_ms=60_000)
    future = client.submit(0, ListGroupsRequest())
    client.poll(timeout_ms=100, future=future)
    for broker in cluster.brokers:
        broker.on("ListGroups", lambda *_: SILENCE)
    client.submit(0, ListGroupsRequest(), timeout=200)
    rest(client, 120)
    assert client.connected(0)


@pytest.mark.parametrize("milliseconds", [0, 1])
def test_connections_max_idle_ms_of_nothing_closes_what_is_not_in_use_and_does_not_spin(make, cluster, milliseconds):
    client = make(connections_max_idle_ms=milliseconds, metadata_max_age_ms=10_000_000)
    for broker in cluster.brokers:
        broker.on("ListGroups", lambda *_: SILENCE)
    future = client.submit(0, ListGroupsRequest(), timeout=20)
    turns = client.core.loop.turns
    rest(client, 10)
    assert client.connected(0)
    assert client.core.loop.turns - turns < 150
    session = cluster.brokers[0].sessions[-1]
    session.reply(*session.unanswered[-1], {"groups": []})
    assert client.core.loop.run_until(future).groups == []
    turns = client.core.loop.turns
    rest(client, 10)
    assert not cluster.network.open_sockets
    assert client.core.loop.turns - turns < 10


def test_a_throttled_broker_is_not_the_least_loaded(make, cluster):
    client = make()
    for broker in cluster.brokers:
        broker.on("ListGroups", {"throttle_time_ms": 10_000, "groups": []})
    node_id = client.least_loaded_node()
    client.core.loop.run_until(client.submit(node_id, ListGroupsRequest()), client.core.loop.time() + 5)
    assert client.throttle_delay(node_id) > 9000
    assert not client.is_ready(node_id, metadata_priority=False)
    assert client.least_loaded_node() != node_id


def test_close_fails_what_is_under_way_and_refuses_what_comes(make, cluster):
    client = make()
    for broker in cluster.brokers:
        broker.on("ListGroups", lambda *_: SILENCE)
    sent = client.submit(0, ListGroupsRequest())
    waiting = client.cluster.request_update()
    client.close()
    assert isinstance(sent.exception, ClientClosedError)
    assert waiting.is_done
    with pytest.raises(ClientClosedError):
        client.link(0)
    client.close()


def test_a_client_that_is_forgotten_says_so_and_frees_everything(cluster):
    client = KafkaClient(environment=cluster.network.environment(), bootstrap_servers="b0")
    client.submit(0, ListGroupsRequest())
    client.poll(timeout_ms=10)
    with pytest.warns(ResourceWarning, match="not closed"):  # noqa: PT031 - both are the collection
        del client
        gc.collect()
    assert not cluster.network.open_sockets


def test_closing_the_loop_resolves_every_future(cluster):
    client = KafkaClient(environment=cluster.network.environment(), bootstrap_servers="b0")
    for broker in cluster.brokers:
        broker.on("ListGroups", lambda *_: SILENCE)
    futures = [client.submit(number, ListGroupsRequest()) for number in (0, 1, 2)]
    update = client.cluster.request_update()
    client.core.loop.close()
    assert all(isinstance(future.exception, ClientClosedError) for future in futures)
    assert update.is_done
    assert not cluster.network.open_sockets
    client.close()


def test_it_closes_at_the_end_of_its_block(cluster):
    with KafkaClient(environment=cluster.network.environment(), bootstrap_servers="b0") as client:
        assert client.bootstrap_connected()
    assert not cluster.network.open_sockets


def test_a_thousand_brokers(monkeypatch):
    cluster = Cluster(size=1000)
    client = KafkaClient(environment=cluster.network.environment(), bootstrap_servers="b0,b1")
    futures = [client.submit(number, ListGroupsRequest()) for number in range(1000)]
    turns = client.core.loop.turns
    for future in futures:
        client.core.loop.run_until(future, client.core.loop.time() + 60)
    assert client.core.loop.turns - turns < 100
    turns = client.core.loop.turns
    rest(client, 60)
    assert client.core.loop.turns - turns <= 5
    client.close()
    assert not cluster.network.open_sockets


def test_a_broker_that_hangs_up_on_metadata_is_not_the_only_one_asked(make, cluster):
    cluster.brokers[0].on("Metadata", lambda *_: HANG_UP)
    client = make()
    rest(client, 5)
    assert set(cluster.asked("Metadata")) - {0}


def test_with_a_stated_release_metadata_comes_with_the_first_polls(make, cluster):
    client = make(api_version=(3, 9))
    assert not cluster.asked("Metadata")
    assert client.api_version == (3, 9)
    client.poll(timeout_ms=1000)
    assert client.cluster.controller.nodeId == 1
    assert not cluster.asked("ApiVersions")


def test_ctrl_c_ends_a_poll_and_the_client_works_on():
    client = KafkaClient(bootstrap_servers="127.0.0.1:1", bootstrap=False, api_version=(3, 9))
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012
        timer.start()
        client.poll(timeout_ms=20_000)
    timer.join()
    client.poll(timeout_ms=1)
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012
        timer.start()
        client.check_version(timeout=20)
    timer.join()
    client.close()


def test_the_core_can_be_driven_by_a_thread():
    from kafka._runtime.network_thread import ThreadDriver, complete

    core = Client(resolve("client", {"bootstrap_servers": "127.0.0.1:1", "bootstrap_timeout_ms": 300}))
    driver = ThreadDriver(core.loop)
    with pytest.raises(NoBrokersAvailable, match=r"127\.0\.0\.1:1"):
        complete(driver.run(core.bootstrap()))
    core.loop.call_soon(core.shut_down)
    complete(driver.close())


# What cannot be asked for


@pytest.mark.parametrize("name", ["tenant-\udcff", "x" * 32_768, "\ud800"])
def test_a_topic_name_that_cannot_be_encoded_costs_itself_and_not_the_refresh(make, cluster, name, caplog):
    client = make(api_version=None)
    client.cluster.set_topics({"t", name})
    for _ in range(2):
        run(client, client.core.refresh(client.core.loop.time() + 5))
    assert client.cluster.partitions_for_topic("t") == {0, 1, 2}
    assert client.cluster.topic_error(name) is InvalidTopicError
    assert client.cluster.ttl() > 1000  # it is not asked for again at once
    asked = [
        topic.name for broker in cluster.brokers for request in broker.asked("Metadata") for topic in request.topics
    ]
    assert name not in asked
    texts = [record.getMessage() for record in caplog.records if "left out" in record.getMessage()]
    assert len(texts) == 1
    assert len(texts[0]) < 250
    with pytest.raises(InvalidTopicError):
        run(client, client.core.leader(TopicPartition(name, 0), client.core.loop.time() + 60))
    client.cluster.set_topics({"t"})
    run(client, client.core.refresh(client.core.loop.time() + 5))
    assert client.cluster.topic_error(name) in {None, InvalidTopicError}


@pytest.mark.parametrize("what", ["controller", "leader"])
def test_a_lookup_in_metadata_is_tried_again_until_its_deadline(make, cluster, what):
    """The first broker asked hangs up, once; there is time for another."""
    client = make()
    run(client, client.core.bootstrap())
    cluster.controller = -1
    run(client, client.core.refresh(client.core.loop.time() + 5))
    hung_up = []

    def metadata(request, session):
        if not hung_up:
            hung_up.append(True)
            return HANG_UP
        return cluster.metadata(request, session)

    for broker in cluster.brokers:
        broker.on("Metadata", metadata)
    cluster.controller = 2
    deadline = client.core.loop.time() + 5
    call = (
        client.core.controller(deadline)
        if what == "controller"
        else client.core.leader(TopicPartition("t", 2), deadline)
    )
    assert run(client, call) == 2
    assert hung_up


def test_a_lookup_in_metadata_ends_at_its_deadline(make, cluster):
    client = make()
    run(client, client.core.bootstrap())
    for broker in cluster.brokers:
        broker.on("Metadata", lambda *_: HANG_UP)
    before = client.core.loop.time()
    with pytest.raises(KafkaError):
        run(client, client.core.leader(TopicPartition("t", 2), before + 5))
    assert client.core.loop.time() - before == pytest.approx(5, abs=0.5)


@pytest.mark.parametrize("end", ["shut_down", "close", "maybe_connect"])
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # for the one that is not closed
def test_a_client_that_is_shut_down_before_its_tasks_began_leaves_no_warning(cluster, end):
    """A coroutine that was never awaited is told by a warning, which fails the test."""
    client = KafkaClient(bootstrap_servers="b0", api_version=(2, 8), environment=cluster.network.environment())
    client.set_topics(["t"])
    if end == "maybe_connect":
        client.maybe_connect("bootstrap-0")
    else:
        (client.close if end == "close" else client.core.shut_down)()
    gone = weakref.ref(client.core.metadata)
    # Whatever is freed first: the client's finalizer does not run here before what it would end.
    client.__class__ = type("WithoutFinalizer", (KafkaClient,), {"__del__": lambda _self: None})
    del client
    gc.collect()
    assert gone() is None


# What a caller may get wrong

ODD = [None, "", "x", 0, -1, 1.5, float("nan"), b"x", [], {}, (), object(), len, True, [5], "\udcff", MetadataRequest]
ODD += [TopicPartition("t", "x"), TopicPartition([], 0), MetadataRequest(topics=[])]


def complain(call, *arguments, **named):
    """Return what a call with wrong arguments says; Python's own words are a failure."""
    try:
        call(*arguments, **named)
    except (KafkaError, TypeError) as error:
        if isinstance(error, TypeError):
            own = ("unhashable", "has no attribute", "not iterable", "unsupported operand", "not supported between")
            assert " must be " in str(error), (call, arguments, str(error))
            assert not any(words in str(error) for words in own), (call, arguments, str(error))
        return str(error)
    return ""


@pytest.mark.parametrize(
    "name",
    [
        "maybe_connect",
        "ready",
        "is_ready",
        "await_ready",
        "connected",
        "is_disconnected",
        "connection_delay",
        "throttle_delay",
        "link",
        "in_flight_request_count",
        "ask",
        "set_topics",
        "add_topic",
        "schedule",
        "unschedule",
        "send",
        "submit",
    ],
)
def test_a_wrong_argument_of_a_client_is_named(make, name):
    client = make(api_version=(2, 8), request_timeout_ms=1)
    call = getattr(client, name)
    second = {"send": [MetadataRequest(topics=[])], "submit": [MetadataRequest(topics=[])], "schedule": [0.0]}
    for value in ODD:
        complain(call, value, *second.get(name, []))
    if name in {"send", "submit"}:
        for value in ODD:
            complain(call, "bootstrap-0", value)
    if name == "schedule":
        for value in ODD:
            complain(call, print, value)


def test_errors_about_wrong_arguments(make, cluster):
    client = make()
    request = MetadataRequest(topics=[])
    node = "node_id must be a broker's id, an integer, or a bootstrap server's, a str; not "
    assert complain(client.ask, "x").startswith("request must be a request of kafka.protocol, such as MetadataRequest(")
    assert (
        complain(client.ask, MetadataRequest)
        == "request must be an instance, as in MetadataRequest(...), not the class"
    )
    assert complain(client.send, "t", request) == "no broker has the id 't' (node_id=t)"
    assert complain(client.send, [], request) == node + "[]"
    assert complain(client.ask, request, timeout_ms="5") == "timeout_ms must be a number of milliseconds, not '5'"
    assert complain(client.poll, "5") == "timeout_ms must be a number of milliseconds, not '5'"
    assert complain(client.poll, -1) == "timeout_ms must not be negative, not -1"
    assert complain(client.poll, 0, 5) == "future must be a Future, as send() returns it, not 5"
    assert complain(client.check_version, timeout=[]) == "timeout must be a number of seconds, not []"
    assert complain(client.close, []) == node + "[]"
    assert complain(client.set_topics, "t") == "topics must be a list of names; for one topic, call add_topic('t')"
    assert complain(client.schedule, 5, 0) == "task must be callable, not 5"
    partition = "partition must be a TopicPartition, as in TopicPartition('events', 0), not "
    assert complain(client.cluster.leader_for_partition, ("t", 0)) == partition + "('t', 0)"
    assert complain(client.cluster.set_topics, 5) == "topics must be a list of names, not 5"
    assert complain(client.cluster.update_metadata, "x") == "metadata must be a MetadataResponse, not 'x'"
    conn = "b", 9092
    assert complain(BrokerConnection, 5, 9092) == "host must be a str, not 5"
    assert complain(BrokerConnection, "b", "9092") == "port must be an integer, not '9092'"
    assert complain(BrokerConnection, "b", 70_000) == "port must be from 1 to 65535, not 70000"
    alone = BrokerConnection(*conn, environment=cluster.network.environment())
    assert complain(alone.connect_blocking, "1") == "timeout must be a number of seconds, not '1'"
    assert complain(alone.send, 5).startswith("request must be a request of kafka.protocol")
    assert complain(alone.send, request, request_timeout_ms=[]).endswith("must be a number of milliseconds, not []")
    assert complain(alone.close, "x") == "error must be a KafkaError or None, not 'x'"
    alone.close()
    alone._loop.close()


@pytest.mark.parametrize(
    "name",
    [
        "topic_error",
        "topic_id",
        "topic_name_for_id",
        "partitions_for_topic",
        "available_partitions_for_topic",
        "partitions_for_broker",
        "leader_for_partition",
        "leader_epoch_for_partition",
        "partition_metadata",
        "broker_metadata",
        "coordinator_for_group",
        "set_topics",
        "add_topic",
        "add_listener",
        "remove_listener",
        "update_metadata",
    ],
)
def test_a_wrong_argument_of_the_cluster_is_named(name):
    for value in ODD:
        complain(getattr(ClusterMetadata(), name), value)
    assert complain(getattr(ClusterMetadata(), name), {}) or name == "set_topics"


@pytest.mark.parametrize(
    "call",
    [
        lambda client: client.set_topics(["t"]),
        lambda client: client.add_topic("t"),
        lambda client: client.schedule(print, 0),
        lambda client: client.ask(MetadataRequest(topics=[])),
        lambda client: client.poll(0),
        lambda client: client.check_version(),
        lambda client: client.await_ready(0),
    ],
)
def test_a_closed_client_says_so(make, call):
    """A future that stays pending for ever would say nothing."""
    client = make()
    client.close()
    with pytest.raises(ClientClosedError):
        call(client)


# What the log says


def test_the_log_says_once_at_info_that_a_client_is_connected_and_to_what(make, caplog):
    caplog.set_level("INFO", "kafka")
    client = make(client_id="app")
    for _ in range(3):
        run(client, client.core.refresh(client.core.loop.time() + 5))
    texts = [record.getMessage() for record in caplog.records if record.levelname == "INFO"]
    assert len(texts) == 1
    expected = r"app is connected to cluster c through broker \S+ \(b\d:9092\): Kafka \d\.\d, 3 brokers, PLAINTEXT"
    assert re.fullmatch(expected, texts[0])
    assert not [record for record in caplog.records if record.levelno > logging.INFO]


def warned(caplog):
    records = [record for record in caplog.records if "broker 1 (b1:9092)" in record.getMessage()]
    return [record.levelname for record in records].count("WARNING")


def test_connections_to_one_broker_that_end_together_are_logged_once(make, cluster, caplog):
    client = make()
    run(client, client.core.bootstrap())
    for use in ("default", FETCH, COORDINATOR):
        run(client, client.core.open(client.link(1, use), client.core.loop.time() + 5))
    caplog.clear()
    cluster.brokers[1].stop()
    rest(client, 0.01)
    assert warned(caplog) == 1
    cluster.brokers[1].start()
    rest(client, 30)
    run(client, client.core.open(client.link(1, FETCH), client.core.loop.time() + 5))
    caplog.clear()
    cluster.brokers[1].stop()
    rest(client, 0.01)
    assert [record.levelname for record in caplog.records if "broker 1 (b1" in record.getMessage()].count(
        "WARNING"
    ) == 1
