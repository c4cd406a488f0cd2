"""ClusterMetadata: what it answers, how replies are merged, when it wants to be refreshed."""

from __future__ import annotations

import pickle
import threading
from uuid import UUID

import pytest

from kafka._core.metadata import MetadataState
from kafka.cluster import ClusterMetadata, NodeId
from kafka.errors import (
    InvalidTopicError,
    KafkaConnectionError,
    KafkaTimeoutError,
    LeaderNotAvailableError,
    MetadataEmptyBrokerList,
)
from kafka.protocol.commit import FindCoordinatorResponse
from kafka.protocol.metadata import MetadataResponse
from kafka.structs import BrokerMetadata, PartitionMetadata, TopicPartition
from kafka.testing import FakeClock

ZERO, ONE, TWO, THREE = (UUID(int=number) for number in range(4))


def partition(number, leader, epoch=-1, error=0):
    return MetadataResponse.MetadataResponsePartition(
        error_code=error,
        partition_index=number,
        leader_id=leader,
        leader_epoch=epoch,
        replica_nodes=[0, 1],
        isr_nodes=[0],
        offline_replicas=[],
    )


def topic(name, *partitions, error=0, topic_id=ZERO, internal=False):
    return MetadataResponse.MetadataResponseTopic(
        error_code=error, name=name, topic_id=topic_id, is_internal=internal, partitions=list(partitions)
    )


def response(*topics, brokers=2, controller=1):
    return MetadataResponse(
        brokers=[
            MetadataResponse.MetadataResponseBroker(node_id=n, host=f"b{n}", port=9092, rack=f"r{n}")
            for n in range(brokers)
        ],
        cluster_id="c",
        controller_id=controller,
        topics=list(topics),
    )


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def cluster(clock):
    return ClusterMetadata(bootstrap_servers="s1,s2:9093", clock=clock)


TP = TopicPartition("t", 0)


def test_before_the_first_reply_it_knows_the_bootstrap_servers(cluster):
    assert {broker.host for broker in cluster.brokers()} == {"s1", "s2"}
    assert cluster.broker_metadata("bootstrap-1") == BrokerMetadata("bootstrap-1", "s2", 9093, None)
    assert cluster.is_bootstrap("bootstrap-0")
    assert not cluster.is_bootstrap(0)
    assert cluster.broker_metadata(0) is None
    assert cluster.controller is None
    assert cluster.leader_for_partition(TP) is None
    assert cluster.leader_epoch_for_partition(TP) == -1


def test_a_reply_answers_all_questions(cluster):
    cluster.update_metadata(
        response(topic("t", partition(0, 1, 5), partition(1, -1), topic_id=ONE), topic("__i", internal=True))
    )
    assert cluster.brokers() == {BrokerMetadata(0, "b0", 9092, "r0"), BrokerMetadata(1, "b1", 9092, "r1")}
    assert cluster.controller.nodeId == 1
    assert cluster.cluster_id == "c"
    assert cluster.topics() == {"t"}
    assert cluster.topics(exclude_internal_topics=False) == {"t", "__i"}
    assert cluster.internal_topics == {"__i"}
    assert cluster.partitions_for_topic("t") == {0, 1}
    assert cluster.available_partitions_for_topic("t") == {0}
    assert cluster.partitions_for_topic("x") is None
    assert cluster.available_partitions_for_topic("x") is None
    assert cluster.leader_for_partition(TP) == 1
    assert cluster.leader_for_partition(TopicPartition("t", 1)) == -1
    assert cluster.leader_epoch_for_partition(TP) == 5
    assert cluster.partitions_for_broker(1) == {TP}
    assert cluster.partitions_for_broker(0) is None
    assert cluster.topic_id("t") == ONE
    assert cluster.topic_name_for_id(ONE) == "t"
    assert cluster.is_replica_node(TP, 1)
    assert not cluster.is_replica_node(TP, 7)
    assert cluster.partition_metadata(TP).isr == [0]


# Merging


def test_an_older_leader_epoch_is_ignored(cluster):
    cluster.update_metadata(response(topic("t", partition(0, 1, 5))))
    cluster.update_metadata(response(topic("t", partition(0, 0, 4))))
    assert cluster.leader_for_partition(TP) == 1
    cluster.update_metadata(response(topic("t", partition(0, 0, 6))))
    assert cluster.leader_for_partition(TP) == 0


@pytest.mark.parametrize("version", [7, 8])
def test_kafka_9212_leader_epochs_of_metadata_before_version_9_are_not_used(cluster, version):
    def old(epoch, leader):
        reply = response(topic("t", partition(0, leader, epoch)))
        return MetadataResponse[version].decode(MetadataResponse[version](**vars_of(reply)).encode())

    cluster.update_metadata(old(5, 1))
    assert cluster.leader_epoch_for_partition(TP) == -1
    cluster.update_metadata(old(4, 0))
    assert cluster.leader_for_partition(TP) == 0
    # While a cluster is upgraded, the epoch of a newer broker does not hold off an older one's answer.
    cluster.update_metadata(response(topic("t", partition(0, 1, 5))))
    cluster.update_metadata(old(4, 0))
    assert (cluster.leader_for_partition(TP), cluster.leader_epoch_for_partition(TP)) == (0, -1)


def vars_of(reply):
    return {name: getattr(reply, name) for name in ("brokers", "cluster_id", "controller_id", "topics")}


def test_version_9_of_metadata_has_leader_epochs(cluster):
    reply = MetadataResponse[9](**vars_of(response(topic("t", partition(0, 1, 5)))))
    cluster.update_metadata(MetadataResponse[9].decode(reply.encode()))
    assert cluster.leader_epoch_for_partition(TP) == 5


def test_a_leader_from_a_response_leaves_the_index_of_the_ids_alone(cluster):
    cluster.update_metadata(response(topic("t", partition(0, 1, 5), topic_id=ONE)))
    names = cluster.topology.names_by_id
    assert cluster.update_partition_leader(TP, 7, 6)
    assert cluster.topology.names_by_id is names
    assert cluster.topic_name_for_id(ONE) == "t"


def test_a_topic_created_again_restarts_its_epochs(cluster):
    cluster.update_metadata(response(topic("t", partition(0, 1, 5), topic_id=ONE)))
    cluster.update_metadata(response(topic("t", partition(0, 0, 0), topic_id=TWO)))
    assert cluster.leader_for_partition(TP) == 0
    assert cluster.topic_name_for_id(ONE) is None


@pytest.mark.parametrize(
    ("replies", "left"),
    [
        ([[topic("t", partition(0, 1), topic_id=TWO)]], {"u": ONE, "t": TWO}),
        ([[topic("t", error=5)], [topic("t", partition(0, 1), topic_id=ZERO)]], {"t": THREE, "u": ONE}),
        ([[topic("t", error=3)], [topic("t", error=3)]], {"u": ONE}),
        ([[topic("t", error=29)]], {"u": ONE}),
        ([None, [topic("t", partition(0, 1), topic_id=THREE)]], {"t": THREE}),
    ],
    ids=["created again", "known", "deleted", "refused", "all"],
)
def test_ids_and_names_are_each_others_index_whatever_happens(cluster, replies, left):
    cluster.update_metadata(response(topic("t", partition(0, 1), topic_id=THREE), topic("u", topic_id=ONE)))
    whole = replies[0] is None
    for reply in filter(None, replies):
        cluster.update_metadata(response(*reply), whole=whole)
    topology = cluster.topology
    assert topology.topic_ids == left
    assert topology.names_by_id == {topic_id: name for name, topic_id in left.items()}


def test_a_topic_that_was_not_asked_for_stays_unless_all_were(cluster):
    cluster.update_metadata(response(topic("t", partition(0, 1))))
    cluster.update_metadata(response(topic("u", partition(0, 1))))
    assert cluster.topics() == {"t", "u"}
    cluster.update_metadata(response(topic("u", partition(0, 1))), whole=True)
    assert cluster.topics() == {"u"}


@pytest.mark.parametrize("code", [5, 3, 7])
def test_an_error_of_a_topic_keeps_what_was_known_and_is_asked_about_again(cluster, code):
    cluster.update_metadata(response(topic("t", partition(0, 1), topic_id=ONE)))
    assert not cluster.need_update
    cluster.update_metadata(response(topic("t", error=code)))
    assert cluster.leader_for_partition(TP) == 1
    assert cluster.topic_id("t") == ONE
    assert cluster.topic_error("t").errno == code
    assert cluster.need_update
    cluster.update_metadata(response(topic("t", partition(0, 0))))
    assert cluster.topic_error("t") is None
    assert not cluster.need_update


def test_a_topic_that_is_unknown_twice_is_gone(cluster):
    cluster.update_metadata(response(topic("t", partition(0, 1), topic_id=ONE)))
    for _ in range(2):
        cluster.update_metadata(response(topic("t", error=3)))
    assert cluster.partitions_for_topic("t") is None
    assert cluster.topic_id("t") is None


def test_a_topic_that_may_not_be_described_is_named(cluster):
    cluster.update_metadata(response(topic("t", partition(0, 1))))
    cluster.update_metadata(response(topic("t", error=29)))
    assert cluster.unauthorized_topics == {"t"}
    assert cluster.partitions_for_topic("t") is None
    assert not cluster.need_update


def test_a_partition_without_a_leader_is_asked_about_again(cluster):
    cluster.update_metadata(response(topic("t", partition(0, -1, error=5))))
    assert cluster.need_update
    assert cluster.partition_metadata(TP).error is LeaderNotAvailableError


@pytest.mark.parametrize("trouble", [topic("gone", error=3), topic("gone", partition(0, -1, error=5))])
def test_trouble_of_a_topic_that_is_no_longer_asked_for_is_over(cluster, trouble):
    cluster.set_topics(["gone", "t"])
    cluster.update_metadata(response(trouble, topic("t", partition(0, 1))))
    assert cluster.need_update
    cluster.set_topics(["t"])
    cluster.update_metadata(response(topic("t", partition(0, 1))))
    assert not cluster.need_update


def test_a_reply_without_brokers_is_a_failure(cluster):
    cluster.update_metadata(response(topic("t", partition(0, 1))))
    future = cluster.request_update()
    cluster.update_metadata(response(brokers=0))
    assert isinstance(future.exception, MetadataEmptyBrokerList)
    assert cluster.topics() == {"t"}


def test_a_hint_of_a_new_leader_counts_if_it_is_newer(cluster):
    cluster.update_metadata(response(topic("t", partition(0, 1, 5))))
    seven = BrokerMetadata(7, "b7", 9092, None)
    assert not cluster.update_partition_leader(TP, 7, 5, [seven])
    assert cluster.update_partition_leader(TP, 7, 6, [seven])
    assert cluster.leader_for_partition(TP) == 7
    assert cluster.broker_metadata(7) == seven
    assert not cluster.update_partition_leader(TopicPartition("x", 0), 7, 9)


def test_a_picture_does_not_change_under_its_reader(cluster):
    cluster.update_metadata(response(topic("t", partition(0, 1))))
    picture = cluster.topology
    cluster.update_metadata(response(topic("u", partition(0, 0))))
    assert set(picture.topics) == {"t"}


def test_readers_in_other_threads_see_whole_pictures(cluster):
    wrong = []

    def read():
        for _ in range(3000):
            picture = cluster.topology
            leaders = {partition.leader for partition in picture.topics.get("t", {}).values()}
            if len(leaders) > 1:
                wrong.append(leaders)

    thread = threading.Thread(target=read)
    thread.start()
    for epoch in range(200):
        cluster.update_metadata(response(topic("t", *(partition(n, epoch % 2, epoch) for n in range(20)))))
    thread.join()
    assert not wrong


def test_a_copy_with_more_partitions_leaves_the_original(cluster):
    cluster.update_metadata(response(topic("t", partition(0, 1))))
    copy = cluster.with_partitions([PartitionMetadata("t", 9, 0, [], [])])
    assert copy.partitions_for_topic("t") == {0, 9}
    assert cluster.partitions_for_topic("t") == {0}
    assert copy.brokers() == cluster.brokers()


# Coordinators


def test_a_coordinator_is_remembered_and_its_id_is_true(cluster):
    found = cluster.add_group_coordinator("g", FindCoordinatorResponse(node_id=0, host="b0", port=9092))
    assert found == 0
    assert found
    assert isinstance(found, int)
    assert cluster.coordinator_for_group("g") == 0
    assert cluster.broker_metadata(0).host == "b0"
    assert cluster.coordinator_for_group("other") is None
    cluster.forget_coordinator(0, "g")
    assert cluster.coordinator_for_group("g") is None
    assert pickle.loads(pickle.dumps(NodeId(0))) == 0


def test_a_coordinator_in_the_newer_form(cluster):
    entry = FindCoordinatorResponse.Coordinator(key="tx", node_id=3, host="b3", port=1)
    assert cluster.add_coordinator(FindCoordinatorResponse(coordinators=[entry]), 1, "tx") == 3
    assert cluster.get_coordinator(1, "tx") == 3


def test_an_error_about_a_coordinator_is_not_cached_as_a_coordinator(cluster):
    assert cluster.add_group_coordinator("g", FindCoordinatorResponse(error_code=15)) is None
    assert cluster.coordinator_for_group("g") == -1


# When to refresh


def test_its_state_has_a_name(cluster, clock):
    assert cluster.state is MetadataState.DUE
    cluster.requests += 1
    assert cluster.state is MetadataState.REQUESTED
    cluster.requests -= 1
    cluster.failed_update(KafkaTimeoutError("no answer"))
    assert cluster.state is MetadataState.BACKING_OFF
    clock.advance(10)
    assert cluster.state is MetadataState.DUE
    cluster.update_metadata(response())
    assert cluster.state is MetadataState.FRESH
    clock.advance(301)
    assert cluster.state is MetadataState.DUE


def test_it_wants_an_update_at_first_by_age_and_on_request(cluster, clock):
    assert cluster.ttl() == 0
    cluster.update_metadata(response())
    assert cluster.ttl() == pytest.approx(300_000)
    clock.advance(299)
    assert cluster.ttl() == pytest.approx(1000)
    clock.advance(1)
    assert cluster.ttl() == 0
    cluster.update_metadata(response())
    clock.advance(10)
    future = cluster.request_update()
    assert cluster.ttl() == 0
    assert cluster.request_update() is future
    cluster.update_metadata(response())
    assert future.value is cluster


def test_a_new_topic_does_not_wait_for_the_backoff_after_an_update(cluster, clock):
    cluster.update_metadata(response())
    cluster.request_update()
    assert cluster.due_in() > 0
    cluster.add_topic("events")
    assert cluster.due_in() == 0
    version = cluster.wanted_version
    cluster.update_metadata(response(topic("events", error=5)), version=version)  # its leader is being elected
    assert cluster.due_in() > 0
    cluster.add_topic("more")
    assert cluster.due_in() > 0


def test_failures_are_waited_out_longer_and_longer(cluster, clock):
    waits = []
    for _ in range(6):
        future = cluster.request_update()
        cluster.failed_update(KafkaConnectionError("down"))
        assert isinstance(future.exception, KafkaConnectionError)
        waits.append(cluster.ttl())
        assert cluster.refresh_backoff() == pytest.approx(waits[-1])
        clock.advance(waits[-1] / 1000 + 0.001)
        assert cluster.ttl() == 0
    for wait, expected in zip(waits, (100, 200, 400, 800, 1000, 1000), strict=True):
        assert expected * 0.79 <= wait <= expected * 1.21


def test_an_answer_that_is_none_yet_is_not_asked_for_in_a_busy_loop(cluster, clock):
    cluster.update_metadata(response(topic("t", error=5)))
    assert cluster.need_update
    assert cluster.ttl() > 50


def test_topics_that_are_new_ask_for_an_update(cluster):
    cluster.update_metadata(response())
    first = cluster.add_topic("a")
    assert not first.is_done
    cluster.update_metadata(response())
    assert cluster.set_topics(["a"]).value is cluster
    assert not cluster.set_topics(["a", "b"]).is_done
    request = cluster.metadata_request()
    assert [topic.name for topic in request.topics] == ["a", "b"]
    cluster.need_all_topic_metadata = True
    assert cluster.metadata_request().topics is None


def test_a_request_names_the_topics_that_are_new_and_all_when_that_is_due(cluster, clock):
    def asked():
        topics = cluster.metadata_request(cluster.due_topics()).topics
        return None if topics is None else [topic.name for topic in topics]

    def answer(*topics, partial=True):
        cluster.update_metadata(response(*topics), version=cluster.wanted_version, partial=partial)

    cluster.set_topics(["a", "b"])
    assert asked() == ["a", "b"]
    answer(topic("a", partition(0, 1)), topic("b", error=5), partial=False)  # b's leader is being elected
    assert cluster.due_in() > 0
    assert asked() == ["b"]
    future = cluster.add_topic("c")
    clock.advance(0.2)
    assert cluster.due_in() == 0
    assert asked() == ["b", "c"]
    everything = cluster.request_update()
    assert asked() == ["a", "b", "c"]
    answer(topic("c", partition(0, 1)))  # what was asked for before
    assert future.value is cluster
    assert not everything.is_done
    assert cluster.need_update
    assert asked() == ["a", "b", "c"]
    answer(*(topic(name, partition(0, 1)) for name in "abc"), partial=False)
    assert everything.value is cluster
    assert not cluster.need_update
    clock.advance(200)
    cluster.set_topics(["b", "c", "d"])
    assert asked() == ["d"]
    answer(topic("d", partition(0, 1)))
    assert cluster.update_age() == 200
    assert 0 < cluster.due_in() <= 100  # its age is that of the oldest part
    clock.advance(101)
    assert asked() == ["b", "c", "d"]
    cluster.need_all_topic_metadata = True
    assert asked() is None
    assert set(cluster.topics()) == set("abcd")


def test_one_topic_can_be_asked_for_again_and_waits_for_the_backoff(cluster, clock):
    cluster.set_topics(["a", "b"])
    cluster.update_metadata(response(topic("a", partition(0, 1)), topic("b", error=29)))
    version = cluster.wanted_version
    again = cluster.request_update(["b"])
    assert cluster.due_topics() == {"b"}
    assert cluster.due_in() > 0
    assert cluster.request_update(["b"]) is again
    cluster.update_metadata(response(topic("a", partition(0, 1))), version=version, partial=True)  # sent before
    assert not again.is_done
    cluster.update_metadata(response(topic("b", partition(0, 1))), version=cluster.wanted_version, partial=True)
    assert again.value is cluster
    assert cluster.due_topics() == frozenset()
    assert not cluster.need_update


def test_a_future_of_a_topic_that_is_no_longer_wanted_gets_the_next_answer(cluster):
    cluster.update_metadata(response())
    future = cluster.add_topic("a")
    cluster.set_topics([])
    assert cluster.due_in() == 0
    assert cluster.metadata_request(cluster.due_topics()).topics == []
    cluster.update_metadata(response(), version=cluster.wanted_version, partial=True)
    assert future.value is cluster
    assert not cluster.need_update


def test_a_name_that_cannot_be_sent_is_refused_once_and_stays_so(cluster, caplog):
    cluster.update_metadata(response())
    for name in ("x" * 40_000, "good"):
        cluster.add_topic(name)
        request = cluster.metadata_request(cluster.due_topics())
        found = [topic(each.name, partition(0, 1)) for each in request.topics]
        cluster.update_metadata(response(*found), version=cluster.wanted_version, partial=True)
        assert cluster.topic_error("x" * 40_000) is InvalidTopicError
        assert not cluster.need_update
    assert cluster.topics() == {"good"}
    assert caplog.text.count("cannot be sent") == 1


# What is wanted while a request is under way


def names(cluster):
    topics = cluster.metadata_request().topics
    return None if topics is None else [topic.name for topic in topics]


def want_topics(cluster):
    cluster.set_topics(["t", "new"])


def want_all(cluster):
    cluster.need_all_topic_metadata = True


@pytest.mark.parametrize("change", [want_topics, want_all])
def test_a_reply_does_not_answer_for_what_was_wanted_after_its_request(cluster, clock, change):
    before = cluster.set_topics(["t"])
    version = cluster.wanted_version
    change(cluster)
    after = cluster.request_update()
    cluster.update_metadata(response(topic("t", partition(0, 1))), whole=False, version=version)
    assert before.value is cluster
    assert not after.is_done
    assert cluster.need_update
    clock.advance(1)
    assert cluster.ttl() == 0
    version = cluster.wanted_version
    cluster.update_metadata(response(topic("t", partition(0, 1)), topic("new", partition(0, 1))), version=version)
    assert after.value is cluster
    assert not cluster.need_update


def test_a_failure_reaches_the_waiters_of_that_request(cluster):
    before = cluster.set_topics(["t"])
    version = cluster.wanted_version
    after = cluster.add_topic("new")
    cluster.failed_update(KafkaConnectionError("down"), version=version)
    assert isinstance(before.exception, KafkaConnectionError)
    assert not after.is_done
    assert cluster.need_update
    cluster.update_metadata(response(brokers=0), version=version)
    assert not after.is_done
    cluster.failed_update(KafkaConnectionError("nobody can be asked"))
    assert isinstance(after.exception, KafkaConnectionError)


def test_an_update_of_what_is_asked_for_already_comes_with_the_reply_under_way(cluster):
    first = cluster.set_topics(["t"])
    version = cluster.wanted_version
    cluster.set_topics([])
    cluster.need_all_topic_metadata = False
    second = cluster.request_update()
    assert cluster.request_update() is second
    cluster.update_metadata(response(topic("t", partition(0, 1))), version=version)
    assert first.value is second.value is cluster
    assert not cluster.need_update


def test_of_two_replies_the_one_for_what_is_wanted_now_counts_whichever_comes_last(cluster):
    older = cluster.wanted_version
    future = cluster.add_topic("t")
    cluster.update_metadata(response(topic("t", partition(0, 1))), version=cluster.wanted_version)
    assert future.value is cluster
    cluster.update_metadata(response(), version=older)
    assert not cluster.need_update


def test_topics_asked_for_in_a_block_stay_wanted_to_its_end(cluster):
    cluster.set_topics(["t"])
    cluster.update_metadata(response(topic("t", partition(0, 1))))
    with cluster.also(["t"]), cluster.also(["t"]):
        assert not cluster.need_update
    version = cluster.wanted_version
    with cluster.also(["looked-up", "t"]):
        assert cluster.need_update
        assert cluster.wanted_version > version
        for topics in ([], ["u"]):
            cluster.set_topics(topics)
            assert names(cluster) == sorted({"looked-up", "t", *topics})
            assert cluster.wanted_topics == set(topics)
        cluster.update_metadata(response(topic("looked-up", partition(0, 1)), topic("u", partition(0, 1))))
        with cluster.also(everything=True):
            assert names(cluster) is None
            assert cluster.need_update
    assert names(cluster) == ["u"]
    cluster.update_metadata(response(topic("u", partition(0, 1))))
    with cluster.also(["looked-up"]):
        assert not cluster.need_update  # it is known, though an answer under way would not have it
        assert names(cluster) == ["looked-up", "u"]


def test_listeners_are_notified_and_cannot_break_each_other(cluster, caplog):
    told = []

    def broken(_cluster):
        raise ValueError("mine")

    cluster.add_listener(broken)
    cluster.add_listener(told.append)
    cluster.update_metadata(response())
    assert told == [cluster]
    assert "mine" in caplog.text
    cluster.remove_listener(told.append)
    cluster.update_metadata(response())
    assert len(told) == 1
    assert "brokers: 2" in str(cluster)
