"""Members of a group in the protocol of KIP-848 against the embedded broker, over loopback."""

from __future__ import annotations

from typing import Any

import pytest

from kafka.broker import Broker
from kafka.errors import (
    CommitFailedError,
    GroupAuthorizationFailedError,
    UnreleasedInstanceIdError,
    UnsupportedAssignorError,
    UnsupportedVersionError,
)
from kafka.protocol.admin import CreatePartitionsRequest
from kafka.structs import OffsetAndMetadata, TopicPartition
from test.embedded.sessions import SESSION

from .member import Member, poll_until, stable
from .test_classic import Listener

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
CONFIGS = {
    "group.min.session.timeout.ms": 100,
    "group.consumer.heartbeat.interval.ms": 50,
    "group.consumer.session.timeout.ms": SESSION * 1000,
}


pytestmark = pytest.mark.kafka_broker(topics={"t": 6}, configs=CONFIGS)


def member(broker: Broker, *args: Any, **configs: Any) -> Member:
    return Member(broker.bootstrap_servers, *args, **{"group_protocol": "consumer", **configs})


@pytest.mark.parametrize("assignor", [None, "uniform", "range"])
def test_members_share_the_partitions_and_take_over_from_each_other(broker, assignor):
    with member(broker, group_remote_assignor=assignor) as one:
        poll_until(stable(one, partitions=6), one)
        with member(broker, group_remote_assignor=assignor) as two:
            poll_until(stable(one, two, partitions=6), one, two)
            assert len(one.assigned) == len(two.assigned) == 3
        poll_until(stable(one, partitions=6), one)


def test_listeners_are_notified_of_partitions_that_come_and_go(broker):
    listener = Listener()
    with member(broker, listener=listener) as one:
        poll_until(stable(one, partitions=6), one)
        with member(broker) as two:
            poll_until(stable(one, two, partitions=6), one, two)
        poll_until(stable(one, partitions=6), one)
    changes = [(kind, len(partitions)) for kind, partitions in listener.calls if partitions]
    assert changes == [("assigned", 6), ("revoked", 3), ("assigned", 3), ("revoked", 6)]


def test_consumed_offsets_are_committed_before_revocation(broker):
    with member(broker) as one:
        poll_until(stable(one, partitions=6), one)
        for number in range(6):
            one.consume(TopicPartition("t", number), 10 + number)
        with member(broker) as two:
            poll_until(stable(one, two, partitions=6), one, two)
            mine = [TopicPartition("t", number) for number in sorted(two.assigned)]
            assert two.committed(*mine) == [10 + partition.partition for partition in mine]


def test_a_commit_of_what_the_group_took_away_fails_and_names_it(broker):
    with member(broker) as one, member(broker) as two:
        poll_until(stable(one, two, partitions=6), one, two)
        with pytest.raises(CommitFailedError, match=f"t-{min(two.assigned)}"):
            one.commit(**{f"t{min(two.assigned)}": 1})
        one.commit(**{f"t{min(one.assigned)}": 1})


def test_a_member_whose_application_is_stuck_leaves_and_comes_back_when_it_polls(broker):
    listener = Listener()
    with member(broker, listener=listener, max_poll_interval_ms=300) as one:
        poll_until(stable(one, partitions=6), one)
        with member(broker) as two:
            poll_until(stable(two, partitions=6), two)
            listener.calls.clear()
            one.poll()
            assert listener.calls == [("lost", set(range(6)))]
            poll_until(stable(one, two, partitions=6), one, two)


def test_a_fenced_member_loses_everything_and_joins_again(broker):
    listener = Listener()
    with member(broker, listener=listener) as one:
        poll_until(stable(one, partitions=6), one)
        broker.fail("ConsumerGroupHeartbeat", [110])
        poll_until(lambda: listener.calls[-1] == ("lost", set(range(6))), one)
        poll_until(stable(one, partitions=6), one)


def test_errors_that_do_not_pass_reach_poll_each_time(broker):
    broker.fail("ConsumerGroupHeartbeat", [GroupAuthorizationFailedError], times=2)
    with member(broker) as one:
        for _ in range(2):
            with pytest.raises(GroupAuthorizationFailedError):
                poll_until(lambda: False, one)
        poll_until(stable(one, partitions=6), one)


def test_an_assignor_that_the_broker_does_not_have_is_refused(broker):
    with member(broker, group_remote_assignor="fair") as one, pytest.raises(UnsupportedAssignorError, match="fair"):
        poll_until(lambda: False, one)


def test_partitions_that_are_added_are_assigned(broker):
    with member(broker, metadata_max_age_ms=100) as one:
        poll_until(stable(one, partitions=6), one)
        topic: Any = CreatePartitionsRequest.CreatePartitionsTopic
        one.run(
            one.client.request(
                CreatePartitionsRequest(topics=[topic(name="t", count=8, assignments=None)], timeout_ms=5000)
            )
        )
        poll_until(stable(one, partitions=8), one)


def test_the_broker_matches_a_pattern_in_re2(broker):
    broker.create_topic("new-a", 2)
    with member(broker, ()) as one:
        one.subscribe_for_broker("new-.*")
        poll_until(lambda: len(one.subscription.assigned()) == 2, one)
        broker.create_topic("new-b", 1)
        poll_until(lambda: len(one.subscription.assigned()) == 3, one)


def test_a_static_member_comes_back_to_what_it_had(broker):
    with member(broker, group_instance_id="a") as one:
        two = member(broker, group_instance_id="b")
        poll_until(stable(one, two, partitions=6), one, two)
        had, mine = two.assigned, one.assigned
        two.close()
        with member(broker, group_instance_id="b") as again:
            poll_until(lambda: again.assigned == had, one, again)
            assert one.assigned == mine


def test_a_broker_without_the_protocol_says_so_and_auto_falls_back():
    with Broker(topics={"t": 6}, as_version="3.6") as broker:
        with member(broker) as one, pytest.raises(UnsupportedVersionError, match="KIP-848"):
            poll_until(lambda: False, one)
        with member(broker, group_protocol="auto") as one:
            poll_until(stable(one, partitions=6), one)
            assert one.coordinator.health()["protocol"] == "classic"


def test_a_group_goes_over_to_the_new_protocol_and_back_one_member_at_a_time(broker):
    one, two = member(broker, group_protocol="classic"), member(broker, group_protocol="classic")
    poll_until(stable(one, two, partitions=6), one, two)
    one.consume(T0, 5) if 0 in one.assigned else two.consume(T0, 5)
    for old, new in (("classic", "consumer"), ("consumer", "classic")):
        for _ in range(2):
            one.close()
            one, two = two, member(broker, group_protocol=new)
            poll_until(stable(one, two, partitions=6), one, two)
        assert old != new
    assert two.committed(T0) == [5]
    one.close()
    two.close()


def test_offsets_go_by_topic_ids(broker):
    with member(broker) as one:
        poll_until(stable(one, partitions=6), one)
        offsets = {T0: OffsetAndMetadata(3, "note"), T1: OffsetAndMetadata(4)}
        one.coordinator.commit_offsets_sync(offsets)
        assert one.coordinator.fetch_committed_offsets([T0, T1]) == offsets


def test_a_static_member_that_was_killed_gets_its_place_when_the_old_session_ends(broker):
    listener = Listener()
    first = member(broker, group_instance_id="a")
    poll_until(stable(first, partitions=6), first)
    first.crash()
    with member(broker, listener=listener, group_instance_id="a") as again:
        poll_until(lambda: "UnreleasedInstanceId" in str(again.coordinator.health()["waiting_for"]), again)
        broker.clock.advance(SESSION + 1)
        poll_until(stable(again, partitions=6), again)
        assert again.coordinator.health()["waiting_for"] is None
        assert listener.calls == [("assigned", set(range(6)))]


def test_two_static_members_with_one_name_get_an_error(broker):
    with member(broker, group_instance_id="a") as one:
        poll_until(stable(one, partitions=6), one)
        timeouts = {"group_protocol": "auto", "session_timeout_ms": 300, "heartbeat_interval_ms": 50}
        with member(broker, group_instance_id="a", **timeouts) as two:
            with pytest.raises(UnreleasedInstanceIdError, match="instance id a "):
                poll_until(lambda: False, one, two)
            assert len(one.assigned) == 6
