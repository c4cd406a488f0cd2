"""Consumer groups (KIP-848): epochs, reconciliation, fencing, timeouts, and no partition with two owners."""

from __future__ import annotations

import json
from uuid import UUID

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kafka.broker.groups.consumer_group import ConsumerGroup, ConsumerGroupSnapshot
from kafka.broker.groups.consumer_member import HeartbeatAsk, HeartbeatResult
from kafka.broker.groups.group import Commit
from kafka.broker.groups.persistence import from_json, to_json
from kafka.broker.groups.settings import GroupSettings
from kafka.errors import (
    BrokerResponseError,
    FencedInstanceIdError,
    FencedMemberEpochError,
    IllegalGenerationError,
    InvalidRegularExpressionError,
    StaleMemberEpochError,
    UnknownMemberIdError,
    UnreleasedInstanceIdError,
    UnsupportedVersionError,
)
from kafka.structs import TopicPartition

from .world import World

Owned = dict[UUID, frozenset[int]]


class Client:
    """A member as a consumer plays it: it gives up what it is not to keep, at once or when told to."""

    def __init__(self, group: ConsumerGroup, name: str, topics: tuple[str, ...] = ("t",), **terms: object) -> None:
        self.group = group
        self.name = name
        self.topics = topics
        self.terms = terms
        self.epoch = 0
        self.owned: Owned = {}
        self.told: Owned = {}

    def join(self) -> HeartbeatResult:
        self.epoch, self.owned = 0, {}
        return self._send(names=self.topics, rebalance_timeout=10.0, owned={}, **self.terms)

    def beat(self, **changes: object) -> HeartbeatResult:
        return self._send(owned=self.owned, instance_id=self.terms.get("instance_id"), **changes)

    def _send(self, **fields: object) -> HeartbeatResult:
        result = self.group.heartbeat(HeartbeatAsk(self.name, self.epoch, **fields))  # type: ignore[arg-type]
        self.epoch = result.epoch
        if result.assignment is not None:
            self.told = dict(result.assignment)
        return result

    def obey(self) -> None:
        """Own what was assigned, no more and no less."""
        self.owned = dict(self.told)

    @property
    def partitions(self) -> set[tuple[UUID, int]]:
        return {(topic, index) for topic, indexes in self.owned.items() for index in indexes}


def make(world: World | None = None, **settings: object) -> tuple[World, ConsumerGroup]:
    world = world or World(t=4)
    return world, ConsumerGroup("g", GroupSettings(**settings), world, world, world)  # type: ignore[arg-type]


def settle(*clients: Client) -> None:
    for _ in range(6):
        for client in clients:
            client.beat()
            client.obey()


def test_the_first_member_gets_everything() -> None:
    _, group = make()
    client = Client(group, "a")
    client.join()
    client.obey()
    assert len(client.partitions) == 4
    assert group.state == "Stable"


def test_a_second_member_waits_until_the_first_has_given_up_its_share() -> None:
    _, group = make()
    first, second = Client(group, "a"), Client(group, "b")
    first.join()
    first.obey()
    assert second.join().assignment == {}
    epoch = first.epoch
    first.beat()
    assert first.epoch == epoch  # it stays at its epoch until it has revoked
    assert second.beat().assignment is None
    first.obey()
    first.beat()
    assert first.epoch == group.epoch
    second.beat()
    second.obey()
    assert len(first.partitions) == len(second.partitions) == 2
    assert group.state == "Stable"


def test_two_hundred_members_that_join_one_after_the_other_settle_within_two_heartbeats_of_the_last() -> None:
    """A member gives up its surplus at its next heartbeat, and the last ones get it at theirs after that."""
    interval, members = 5.0, 200
    world, group = make(World(t=3 * members))
    sent: list[str] = []

    def beat(client: Client) -> None:
        sent.append(client.name)
        if client.epoch == 0:
            client.join()
        elif client.told != client.owned:
            client.obey()
            client.beat()
        else:
            client._send()  # it has nothing to report
        world.call_later(0.0 if client.told != client.owned else interval, beat, client)

    clients = [Client(group, f"m{number:03}") for number in range(members)]
    for client in clients:
        world.call_later(0.0, beat, client)
        world.advance(0.05)
    sent.clear()
    world.advance(2 * interval + 0.1)
    assert group.state == "Stable"
    assert {len(client.partitions) for client in clients} == {3}
    assert len(sent) <= 4 * members  # two each, and one for each assignment that a member has to report


def test_leaving_gives_the_partitions_to_the_remaining_members() -> None:
    _, group = make()
    first, second = Client(group, "a"), Client(group, "b")
    first.join()
    second.join()
    settle(first, second)
    group.leave("b", None, -1)
    settle(first)
    assert len(first.partitions) == 4


def test_a_member_is_removed_after_the_session_timeout() -> None:
    world, group = make()
    first, second = Client(group, "a"), Client(group, "b")
    first.join()
    second.join()
    settle(first, second)
    for _ in range(5):
        world.advance(10)
        first.beat()
    assert set(group.members) == {"a"}
    with pytest.raises(UnknownMemberIdError):
        second.beat()


def test_a_member_that_does_not_revoke_within_the_rebalance_timeout_is_removed() -> None:
    world, group = make()
    first, second = Client(group, "a"), Client(group, "b")
    first.join()
    first.obey()
    second.join()
    for _ in range(3):
        first.beat()  # it lives, but keeps what it was asked to give back
        second.beat()
        world.advance(4)
    assert set(group.members) == {"b"}
    second.beat()
    second.obey()
    assert len(second.partitions) == 4


def test_epochs_are_checked_and_a_lost_answer_is_forgiven() -> None:
    _, group = make()
    client = Client(group, "a")
    client.join()
    settle(client)
    before = client.epoch
    client.epoch += 1
    with pytest.raises(FencedMemberEpochError, match="greater"):
        client.beat()
    client.epoch = before
    client.beat(names=("t", "u"))
    client.epoch = before
    client.beat()  # the answer that told the new epoch did not arrive
    assert client.epoch == before + 1
    assert before > 0
    client.beat(names=("t",))
    client.epoch = before
    with pytest.raises(FencedMemberEpochError, match="smaller"):
        client.beat()


def test_a_known_member_joins_again_and_receives_its_whole_assignment() -> None:
    # Kafka: no error, the member's epoch, its full assignment; with another subscription the next epoch.
    _, group = make()
    client, other = Client(group, "a"), Client(group, "b")
    client.join()
    other.join()
    settle(client, other)
    epoch, mine = client.epoch, client.partitions
    client.epoch = epoch + 1
    with pytest.raises(FencedMemberEpochError):
        client.beat()
    client.join()
    client.obey()
    assert (client.epoch, client.partitions) == (epoch, mine)
    client.topics = ()
    client.join()
    assert (client.epoch, group.epoch, client.told) == (epoch + 1, epoch + 1, {})


def test_a_member_that_was_to_revoke_has_done_so_when_it_joins_again() -> None:
    _, group = make()
    client, other = Client(group, "a"), Client(group, "b")
    client.join()
    settle(client)
    other.join()
    client.beat()
    assert group.members["a"].holding.pending_revocation
    client.join()
    client.obey()
    other.beat()
    other.obey()
    assert (len(client.partitions), len(other.partitions)) == (2, 2)
    assert not client.partitions & other.partitions


def test_a_static_member_keeps_its_place_while_it_is_away() -> None:
    world, group = make()
    old, other = Client(group, "a", instance_id="i"), Client(group, "b")
    old.join()
    other.join()
    settle(old, other)
    mine = old.partitions
    for name in ("c", "a"):  # as in Kafka, whoever it says that it is
        with pytest.raises(UnreleasedInstanceIdError):
            Client(group, name, instance_id="i").join()
    group.leave("a", "i", -2)
    epoch = group.epoch
    back = Client(group, "c", instance_id="i")
    back.join()
    back.obey()
    assert back.partitions == mine
    assert group.epoch == epoch
    with pytest.raises(FencedInstanceIdError):
        old.beat()
    group.leave("c", "i", -2)
    world.advance(44)
    other.beat()
    world.advance(2)
    assert set(group.members) == {"b"}


def test_a_pattern_means_the_topics_that_are_there_now() -> None:
    world, group = make(World(orders=1, orders_eu=1, other=1))
    client = Client(group, "a", ())
    client.terms = {"regex": "orders.*"}
    client.join()
    client.obey()
    assert {world.topic_name(topic) for topic, _ in client.partitions} == {"orders", "orders_eu"}
    world.topics["orders_us"] = 2
    settle(client)
    assert len(client.partitions) == 4
    with pytest.raises(InvalidRegularExpressionError):
        client.beat(regex="(")


def test_new_partitions_are_handed_out() -> None:
    world, group = make()
    client = Client(group, "a")
    client.join()
    settle(client)
    world.topics["t"] = 6
    settle(client)
    assert len(client.partitions) == 6


def test_the_assignor_that_most_ask_for_is_used() -> None:
    _, group = make(World(t=2, u=2))
    clients = [Client(group, name, ("t", "u"), assignor="range") for name in "ab"]
    for client in clients:
        client.join()
    settle(*clients)
    assert group.assignor == "range"
    assert [sorted(index for _, index in client.partitions) for client in clients] == [[0, 0], [1, 1]]
    for client in clients:
        group.leave(client.name, None, -1)
    assert group.assignor == "uniform"  # nobody asks for another


def test_assignments_can_be_spaced_out() -> None:
    world, group = make(consumer_assignment_interval=1.0)
    first, second = Client(group, "a"), Client(group, "b")
    first.join()
    second.join()
    assert group.state == "Assigning"
    world.advance(1)
    settle(first, second)
    assert group.state == "Stable"


def test_commits_need_the_member_s_epoch_and_a_version_that_knows_epochs() -> None:
    _, group = make()
    client = Client(group, "a")
    client.join()
    part = [TopicPartition("t", 0)]
    group.check_commit(Commit("a", None, client.epoch, part, is_transactional=False, version=9))
    with pytest.raises(StaleMemberEpochError):
        group.check_commit(Commit("a", None, client.epoch - 1, part, is_transactional=False, version=9))
    with pytest.raises(IllegalGenerationError):
        group.check_commit(Commit("a", None, client.epoch - 1, part, is_transactional=True, version=5))
    with pytest.raises(StaleMemberEpochError):
        group.check_commit(Commit("a", None, client.epoch + 1, part, is_transactional=False, version=9))
    with pytest.raises(UnknownMemberIdError):
        group.check_commit(Commit("b", None, client.epoch, part, is_transactional=False, version=9))
    with pytest.raises(UnsupportedVersionError):
        group.check_commit(Commit("a", None, client.epoch, part, is_transactional=False, version=8))
    with pytest.raises(UnknownMemberIdError):
        group.check_commit(Commit("", None, -1, part, is_transactional=False, version=9))
    group.check_commit(Commit("", None, -1, part, is_transactional=True, version=5))


def test_a_commit_with_an_earlier_epoch_counts_for_partitions_that_the_member_has_had_since() -> None:
    world, group = make()
    first, second = Client(group, "a"), Client(group, "b")
    first.join()
    first.obey()
    before = first.epoch
    second.join()
    first.beat()
    first.obey()
    first.beat()
    assert first.epoch > before
    mine = [TopicPartition("t", index) for _, index in sorted(first.partitions)]
    group.check_commit(Commit("a", None, before, mine, is_transactional=False, version=9))
    group.check_commit(Commit("a", None, before, mine, is_transactional=True, version=5))
    theirs = [
        TopicPartition("t", index) for index in range(4) if ("t", index) not in {(p.topic, p.partition) for p in mine}
    ]
    for refused in (theirs, [*mine, *theirs], [TopicPartition("none", 0)]):
        with pytest.raises(StaleMemberEpochError):
            group.check_commit(Commit("a", None, before, refused, is_transactional=False, version=9))
    second.beat()
    group.leave("a", None, -1)
    joined = second.epoch
    second.beat()
    assert second.epoch > joined
    group.check_commit(Commit("b", None, joined, theirs, is_transactional=False, version=9))
    with pytest.raises(StaleMemberEpochError):  # they came with the later epoch
        group.check_commit(Commit("b", None, joined, mine, is_transactional=False, version=9))
    restored = ConsumerGroup("g", GroupSettings(), world, world, world)
    restored.load(from_json(ConsumerGroupSnapshot, json.loads(json.dumps(to_json(group.snapshot())))))
    restored.check_commit(Commit("b", None, joined, theirs, is_transactional=False, version=9))
    with pytest.raises(StaleMemberEpochError):
        restored.check_commit(Commit("b", None, joined, mine, is_transactional=False, version=9))


def test_a_member_stays_at_its_epoch_while_it_has_more_to_revoke() -> None:
    _, group = make(World(t=6))
    first, second, third = (Client(group, name) for name in "abc")
    first.join()
    first.obey()
    epoch = first.epoch
    second.join()
    first.beat()
    half = dict(first.told)
    third.join()
    first.owned = half
    first.beat()
    assert (first.epoch, sum(map(len, first.told.values()))) == (epoch, 2)
    first.obey()
    first.beat()
    assert first.epoch == group.epoch


def test_a_member_that_is_to_revoke_a_partition_gets_it_back_at_once() -> None:
    _, group = make()
    first, second = Client(group, "a"), Client(group, "b")
    first.join()
    first.obey()
    second.join()
    first.beat()
    first.obey()
    group.leave("b", None, -1)
    first.beat()
    assert sum(map(len, first.told.values())) == 4
    assert first.epoch == group.epoch


def test_a_subscription_that_gets_smaller_during_a_revocation_counts_at_once() -> None:
    world, group = make(World(t=2, u=2))
    first, second = Client(group, "a", ("t", "u")), Client(group, "b", ("t", "u"))
    first.join()
    first.obey()
    epoch = first.epoch
    second.join()
    first.beat()
    left = dict(first.told)
    assert sum(map(len, left.values())) == 2
    topic = next(iter(left))
    (other,) = {"t", "u"} - {name for name in ("t", "u") if world.topic_id(name) == topic}
    first.beat(names=(other,))
    assert first.told == {one: indexes for one, indexes in left.items() if one == world.topic_id(other)}
    assert first.epoch == epoch
    settle(first, second)
    assert group.state == "Stable"


class AnyOrder(RuleBasedStateMachine):
    """Members join, lag, obey late, fall silent and leave in any order: no partition is ever owned by two."""

    def __init__(self) -> None:
        super().__init__()
        self.world, self.group = make(World(t=3, u=2))
        self.clients: dict[str, Client] = {}
        self.epoch = 0
        self.count = 0

    @precondition(lambda self: len(self.clients) < 4)
    @rule(topics=st.sampled_from([("t",), ("t", "u"), ("u",)]), assignor=st.sampled_from([None, "range", "uniform"]))
    def join(self, topics: tuple[str, ...], assignor: str | None) -> None:
        self.count += 1
        client = Client(self.group, f"m{self.count}", topics, assignor=assignor)
        client.join()
        self.clients[client.name] = client

    def _pick(self, data: st.DataObject) -> Client:
        return self.clients[data.draw(st.sampled_from(sorted(self.clients)))]

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def beat(self, data: st.DataObject) -> None:
        client = self._pick(data)
        try:
            client.beat()
        except BrokerResponseError:
            client.join()  # fenced: it has dropped everything before it comes back
        # What is taken away has to be given up before anything new is taken up.
        client.owned = {topic: indexes & client.told.get(topic, frozenset()) for topic, indexes in client.owned.items()}

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def obey(self, data: st.DataObject) -> None:
        client = self._pick(data)
        if client.name in self.group.members:
            client.obey()

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), topics=st.sampled_from([("t",), ("t", "u"), ("u",)]))
    def change_topics(self, data: st.DataObject, topics: tuple[str, ...]) -> None:
        client = self._pick(data)
        if client.name in self.group.members:
            client.topics = topics
            client.beat(names=topics)

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        client = self._pick(data)
        del self.clients[client.name]
        if client.name in self.group.members:
            self.group.leave(client.name, None, -1)

    @rule(seconds=st.sampled_from([1, 6, 20]))
    def time_passes(self, seconds: int) -> None:
        self.world.advance(seconds)
        for client in self.clients.values():
            if client.name not in self.group.members:
                client.owned = client.told = {}  # a consumer that was not heard of has stopped by then

    @rule()
    def a_topic_grows(self) -> None:
        self.world.topics["t"] = min(self.world.topics["t"] + 1, 6)

    @invariant()
    def nothing_has_two_owners(self) -> None:
        owned = [each for client in self.clients.values() for each in client.partitions]
        assert len(owned) == len(set(owned))
        held = [
            (topic, index)
            for member in self.group.members.values()
            for topic, indexes in member.holding.owned.items()
            for index in indexes
        ]
        assert len(held) == len(set(held))

    @invariant()
    def epochs_never_go_back(self) -> None:
        assert self.group.epoch >= self.epoch
        assert self.group.assignment_epoch <= self.group.epoch
        self.epoch = self.group.epoch

    def teardown(self) -> None:
        clients = [client for client in self.clients.values() if client.name in self.group.members]
        settle(*clients)
        wanted = {topic for client in clients for topic in client.topics}
        total = sum(self.world.topics[topic] for topic in wanted)
        assert sum(len(client.partitions) for client in clients) == total
        if clients:
            assert self.group.state == "Stable"


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = hypothesis_settings(max_examples=40, stateful_step_count=30, deadline=None)
