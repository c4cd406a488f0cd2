"""Members of a classic group against the embedded broker, over loopback."""

from __future__ import annotations

import time
from typing import Any

import pytest

from kafka import ConsumerRebalanceListener, KafkaConsumer
from kafka._runtime.network_thread import complete
from kafka.broker import Broker
from kafka.errors import (
    CommitFailedError,
    FencedInstanceIdError,
    GroupAuthorizationFailedError,
    IllegalGenerationError,
    RebalanceInProgressError,
    UnsupportedVersionError,
)
from kafka.protocol.admin import CreatePartitionsRequest
from kafka.structs import OffsetAndMetadata, TopicPartition

from .member import Member, poll_until, stable

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


pytestmark = pytest.mark.kafka_broker(topics={"t": 6}, configs={"group.min.session.timeout.ms": 100})


class Listener:
    def __init__(self) -> None:
        self.calls: list[tuple[str, set[int]]] = []
        self.on_revoked: Any = lambda: None

    def on_partitions_assigned(self, assigned):
        self.calls.append(("assigned", {p.partition for p in assigned}))

    def on_partitions_revoked(self, revoked):
        self.calls.append(("revoked", {p.partition for p in revoked}))
        self.on_revoked()

    def on_partitions_lost(self, lost):
        self.calls.append(("lost", {p.partition for p in lost}))


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "sticky", "cooperative-sticky"])
def test_members_share_the_partitions_and_take_over_from_each_other(broker, strategy):
    config = {"partition_assignment_strategy": [strategy]}
    with Member(broker.bootstrap_servers, **config) as one:
        poll_until(stable(one, partitions=6), one)
        with Member(broker.bootstrap_servers, **config) as two:
            poll_until(stable(one, two, partitions=6), one, two)
            assert len(one.assigned) == len(two.assigned) == 3
        poll_until(stable(one, partitions=6), one)


def test_cooperative_members_keep_what_they_keep(broker):
    config = {"partition_assignment_strategy": ["cooperative-sticky"]}
    first, second = Listener(), Listener()
    with Member(broker.bootstrap_servers, listener=first, **config) as one:
        poll_until(stable(one, partitions=6), one)
        with Member(broker.bootstrap_servers, listener=second, **config) as two:
            poll_until(stable(one, two, partitions=6), one, two)
            revoked = [gone for kind, gone in first.calls if kind == "revoked"]
            assert len(revoked) == 1
            assert len(revoked[0]) == 3
            assert not revoked[0] & one.assigned


def test_listeners_hear_everything_in_the_order_of_the_protocol(broker):
    listener = Listener()
    with Member(broker.bootstrap_servers, listener=listener) as one:
        poll_until(stable(one, partitions=6), one)
        with Member(broker.bootstrap_servers) as two:
            poll_until(stable(one, two, partitions=6), one, two)
        poll_until(stable(one, partitions=6), one)
    kinds = [kind for kind, _ in listener.calls]
    assert kinds == ["revoked", "assigned", "revoked", "assigned", "revoked", "assigned", "revoked"]
    assert listener.calls[0][1] == set()  # each eager rebalance begins with it
    assert listener.calls[1][1] == set(range(6))
    assert listener.calls[2][1] == set(range(6))


def test_a_listener_may_commit(broker):
    listener = Listener()
    with Member(broker.bootstrap_servers, listener=listener, enable_auto_commit=False) as one:
        poll_until(stable(one, partitions=6), one)
        listener.on_revoked = lambda: one.commit(t0=17)
        with Member(broker.bootstrap_servers) as two:
            poll_until(stable(one, two, partitions=6), one, two)
            assert two.committed(T0, T1) == [17, None]
        listener.on_revoked = lambda: None


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_listener_may_unsubscribe(broker, protocol):
    revoked = []

    class Leaving(ConsumerRebalanceListener):
        def on_partitions_assigned(self, assigned):
            pass

        def on_partitions_revoked(self, partitions):
            revoked.append(set(partitions))
            if partitions:
                consumer.unsubscribe()

    with KafkaConsumer(
        bootstrap_servers=broker.bootstrap_servers, group_id="leaving", group_protocol=protocol
    ) as consumer:
        consumer.subscribe(["t"], listener=Leaving())
        deadline = time.monotonic() + 60
        while not consumer.assignment():
            assert time.monotonic() < deadline
            consumer.poll(100)
        had = consumer.assignment()
        consumer.unsubscribe()
        assert (consumer.assignment(), consumer.subscription()) == (set(), None)
        assert [each for each in revoked if each] == [had]


def test_an_exception_of_a_listener_comes_out_of_poll_and_the_rebalance_continues(broker):
    listener = Listener()

    def fail() -> None:
        raise ValueError("mine")

    with Member(broker.bootstrap_servers, listener=listener) as one, Member(broker.bootstrap_servers, ()) as two:
        poll_until(stable(one, partitions=6), one)
        listener.on_revoked = fail
        two.subscribe(["t"])
        with pytest.raises(ValueError, match="mine"):
            poll_until(stable(one, two, partitions=6), one, two)
        listener.on_revoked = lambda: None
        poll_until(stable(one, two, partitions=6), one, two)


def test_consumed_offsets_are_committed_before_revocation_and_on_close(broker):
    with Member(broker.bootstrap_servers) as one:
        poll_until(stable(one, partitions=6), one)
        for number in range(6):
            one.consume(TopicPartition("t", number), 10 + number)
        with Member(broker.bootstrap_servers) as two:
            poll_until(stable(one, two, partitions=6), one, two)
            assert two.committed(*(TopicPartition("t", number) for number in range(6))) == [10, 11, 12, 13, 14, 15]
            mine = min(two.assigned)
            two.consume(TopicPartition("t", mine), 99)
    with Member(broker.bootstrap_servers, ()) as three:
        assert three.committed(TopicPartition("t", mine)) == [99]


def test_automatic_commits_begin_in_poll(broker):
    with Member(broker.bootstrap_servers, auto_commit_interval_ms=1) as one:
        poll_until(stable(one, partitions=6), one)
        one.consume(T0, 5)
        poll_until(lambda: one.committed(T0) == [5], one)


def test_a_commit_of_what_the_group_took_away_fails_and_names_it(broker):
    with Member(broker.bootstrap_servers) as one, Member(broker.bootstrap_servers) as two:
        poll_until(stable(one, two, partitions=6), one, two)
        other = min(two.assigned)
        with pytest.raises(CommitFailedError, match=f"t-{other}"):
            one.commit(**{f"t{other}": 1})


def test_commit_callbacks_run_in_the_application_s_thread(broker):
    import threading

    seen = []
    with Member(broker.bootstrap_servers) as one:
        poll_until(stable(one, partitions=6), one)
        offsets = {T0: OffsetAndMetadata(3, "note")}
        one.coordinator.commit_async(offsets, lambda *args: seen.append((args, threading.get_ident())))
        poll_until(lambda: bool(seen), one)
        (committed, answer), thread = seen[0]
        assert committed == offsets
        assert answer.topics[0].partitions[0].error_code == 0
        assert thread == threading.get_ident()
        found = one.run(one.coordinator.committed([T0, T1], one.client.loop.time() + 10))
        assert found == {T0: OffsetAndMetadata(3, "note"), T1: None}


def test_a_member_whose_application_is_stuck_leaves_and_comes_back_when_it_polls(broker):
    listener = Listener()
    with Member(broker.bootstrap_servers, listener=listener, max_poll_interval_ms=300, session_timeout_ms=250) as one:
        poll_until(stable(one, partitions=6), one)
        with Member(broker.bootstrap_servers) as two:
            poll_until(stable(two, partitions=6), two)
            with pytest.raises(CommitFailedError):
                one.commit(t0=1)
            one.consume(T0, 1)
            listener.calls.clear()
            one.poll()
            assert listener.calls == [("lost", set(range(6)))]
            assert one.assigned == set()
            poll_until(stable(one, two, partitions=6), one, two)
            assert two.committed(T0) == [None]


def test_members_join_again_when_partitions_are_added(broker):
    with Member(broker.bootstrap_servers, metadata_max_age_ms=100) as one:
        poll_until(stable(one, partitions=6), one)
        topic: Any = CreatePartitionsRequest.CreatePartitionsTopic
        one.run(
            one.client.request(
                CreatePartitionsRequest(topics=[topic(name="t", count=8, assignments=None)], timeout_ms=5000)
            )
        )
        poll_until(stable(one, partitions=8), one)


def test_a_pattern_takes_topics_as_they_come(broker):
    with Member(broker.bootstrap_servers, pattern="new-.*", metadata_max_age_ms=100) as one:
        broker.create_topic("new-a", 2)
        poll_until(lambda: len(one.subscription.assigned()) == 2, one)
        broker.create_topic("new-b", 1)
        poll_until(lambda: len(one.subscription.assigned()) == 3, one)


def test_the_leader_assigns_topics_that_it_does_not_read_itself(broker):
    broker.create_topic("u", 2)
    with Member(broker.bootstrap_servers) as one, Member(broker.bootstrap_servers, ["u"]) as two:
        poll_until(lambda: len(one.subscription.assigned()) == 6 and len(two.subscription.assigned()) == 2, one, two)


def test_a_static_member_comes_back_without_a_rebalance(broker):
    with Member(broker.bootstrap_servers, group_instance_id="a") as one:
        two = Member(broker.bootstrap_servers, group_instance_id="b")
        poll_until(stable(one, two, partitions=6), one, two)
        generation, had = one.coordinator.generation, two.assigned
        two.close()
        with Member(broker.bootstrap_servers, group_instance_id="b") as again:
            poll_until(lambda: again.state == "STABLE" and again.assigned == had, one, again)
            assert one.coordinator.generation == generation


def test_two_members_of_one_instance_id_fence_each_other_out(broker):
    with Member(broker.bootstrap_servers, group_instance_id="a") as one:
        poll_until(stable(one, partitions=6), one)
        with Member(broker.bootstrap_servers, group_instance_id="a") as two:
            with pytest.raises(FencedInstanceIdError):
                poll_until(lambda: False, one, two)
            assert one.coordinator.health()["waiting_for"]


def test_errors_that_do_not_pass_reach_poll_each_time(broker):
    broker.fail("JoinGroup", [GroupAuthorizationFailedError], times=2)
    with Member(broker.bootstrap_servers) as one:
        for _ in range(2):
            with pytest.raises(GroupAuthorizationFailedError):
                poll_until(lambda: False, one)
        poll_until(stable(one, partitions=6), one)


def test_brokers_without_groups_say_so():
    with (
        Broker(topics={"t": 1}, as_version="0.8.2") as broker,
        Member(broker.bootstrap_servers, api_version=(0, 8, 2)) as one,
        pytest.raises(UnsupportedVersionError, match="no consumer groups"),
    ):
        poll_until(lambda: False, one)


def test_brokers_without_static_members_are_named():
    with (
        Broker(topics={"t": 1}, as_version="2.2") as broker,
        Member(broker.bootstrap_servers, group_instance_id="first") as one,
        pytest.raises(UnsupportedVersionError, match=r"needs brokers of Kafka 2\.3.*leave it out"),
    ):
        poll_until(lambda: False, one)


def test_unsubscribing_leaves_the_group_and_subscribing_joins_again(broker):
    listener = Listener()
    with Member(broker.bootstrap_servers, listener=listener) as one, Member(broker.bootstrap_servers) as two:
        poll_until(stable(one, two, partitions=6), one, two)
        complete(one.coordinator.unsubscribed(one.client.loop.time() + 5))
        one.subscription.unsubscribe()
        assert listener.calls[-1][0] == "revoked"
        poll_until(stable(two, partitions=6), two)
        one.subscribe(["t"])
        poll_until(stable(one, two, partitions=6), one, two)


def test_offsets_of_partitions_assigned_by_hand_are_committed_outside_of_the_group(broker):
    with Member(broker.bootstrap_servers, ()) as one:
        one.subscription.assign_by_user([T0])
        one.poll()
        one.commit(t0=12)
        assert one.committed(T0) == [12]
        assert one.state == "UNJOINED"


def test_closing_without_a_broker_is_quick(broker):
    one = Member(broker.bootstrap_servers)
    poll_until(stable(one, partitions=6), one)
    broker.close()
    import time

    began = time.monotonic()
    one.close(timeout_ms=300)
    assert time.monotonic() - began < 4  # a busy machine adds to it; unbounded, it would take 5


def test_commits_under_way_are_waited_for_on_close(broker):
    with Member(broker.bootstrap_servers, (), enable_auto_commit=False) as one:
        one.subscription.assign_by_user([T0])
        future = one.coordinator.commit_async({T0: OffsetAndMetadata(31)}, None)
        one.coordinator.close()
        assert future.succeeded()


COOPERATIVE = {"partition_assignment_strategy": ["cooperative-sticky"]}


@pytest.mark.parametrize("api", ["JoinGroup", "SyncGroup"])
def test_a_commit_during_a_cooperative_rebalance_costs_nothing_but_time(broker, api):
    listener = Listener()
    with Member(broker.bootstrap_servers, listener=listener, **COOPERATIVE) as one:
        poll_until(stable(one, partitions=6), one)
        generation = one.coordinator.generation.generation_id
        slow = broker.delay(api, 0.3)
        one.coordinator.request_rejoin("the test asks for it")
        poll_until(lambda: one.state == api.removesuffix("Group").upper() + "ING", one)
        # What the coordinator says while it has the new generation and the member has not, or the other way round.
        refused = broker.fail("OffsetCommit", [IllegalGenerationError, RebalanceInProgressError])
        one.commit(t0=5)
        slow.remove()
        assert not refused.errors
        poll_until(stable(one, partitions=6), one)
        assert one.committed(T0) == [5]
        assert [call for call in listener.calls if call[1]] == [("assigned", set(range(6)))]
        assert one.coordinator.generation.generation_id == generation + 1  # one round, not one more per commit


def test_a_coordinator_that_is_back_is_asked_at_once(broker):
    """The backoff of its connection is all that is waited for, however many attempts there were."""
    configs = {"retry_backoff_ms": 20, "retry_backoff_max_ms": 60_000}
    configs |= {"reconnect_backoff_ms": 10, "reconnect_backoff_max_ms": 10}
    with Member(broker.bootstrap_servers, **configs) as member:
        poll_until(stable(member, partitions=6), member)
        broker.drop_connections(api="OffsetCommit", times=12)
        broker.drop_connections(api="OffsetFetch", times=12)
        member.coordinator.commit_offsets_sync({T0: OffsetAndMetadata(5)}, timeout_ms=20_000)
        assert member.committed(T0) == [5]
