"""All groups together: offsets, expiry, moves between protocols, deletion, and what outlives the process."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

import pytest

from kafka.broker.groups.classic_group import ClassicGroup
from kafka.broker.groups.classic_member import State, SyncAsk
from kafka.broker.groups.consumer_group import ConsumerGroup
from kafka.broker.groups.consumer_member import HeartbeatAsk
from kafka.broker.groups.coordinator import GroupCoordinator
from kafka.broker.groups.migration import read_assignment, write_assignment
from kafka.broker.groups.offsets import CommittedOffset
from kafka.broker.groups.settings import GroupSettings
from kafka.errors import (
    GroupIdNotFoundError,
    GroupMaxSizeReachedError,
    IllegalGenerationError,
    InvalidRegularExpressionError,
    InvalidSessionTimeoutError,
    NonEmptyGroupError,
    NotCoordinatorError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
from kafka.protocol.consumer_protocol import ConsumerProtocolSubscription
from kafka.structs import TopicPartition

from .world import World, join_ask

T0 = TopicPartition("t", 0)
DAY = 86400.0


class Tables:
    def __init__(self) -> None:
        self.data: dict[str, dict[str, Any]] = {}

    def __call__(self, name: str) -> MutableMapping[str, Any]:
        return self.data.setdefault(name, {})


def make(
    world: World | None = None, tables: Tables | None = None, **settings: object
) -> tuple[World, GroupCoordinator]:
    world = world or World(t=4)
    return world, GroupCoordinator(
        GroupSettings(**settings),  # type: ignore[arg-type]
        world,
        world,
        world,
        world.new_id,
        tables or Tables(),
    )


def subscription(*topics: str, owned: Any = (), generation: int = -1) -> bytes:
    value = ConsumerProtocolSubscription[3](list(topics), None)
    value.owned_partitions, value.generation_id = list(owned), generation
    return b"\x00\x03" + value.encode()


def offset(world: World, value: int, **terms: Any) -> CommittedOffset:
    return CommittedOffset(value, commit_ms=world.now_ms(), **terms)


def enter(groups: GroupCoordinator, member: str, group: str = "g") -> Any:
    return groups.consumer_heartbeat(
        group, HeartbeatAsk(member, 0, rebalance_timeout=10.0, names=("t",), owned={}, client_id="c")
    )


def classic_member(groups: GroupCoordinator) -> tuple[str, int]:
    """One classic member that reads all of t."""
    result = groups.join("g", join_ask(protocols=[("range", subscription("t"))])).value
    plan = write_assignment({_id(groups): frozenset(range(4))}, groups._topics, 3)
    groups.sync("g", SyncAsk(result.member_id, None, result.generation, assignments=((result.member_id, plan),)))
    return result.member_id, result.generation


def _id(groups: GroupCoordinator) -> Any:
    return groups._topics.topic_id("t")


# Offsets


def test_offsets_without_members_need_no_group() -> None:
    world, groups = make()
    groups.commit("g", "", None, -1, [(T0, offset(world, 5))], version=9)
    assert groups.offsets["g"].committed[T0].offset == 5
    with pytest.raises(IllegalGenerationError):
        groups.commit("other", "m", None, 1, [], version=8)
    with pytest.raises(GroupIdNotFoundError):
        groups.commit("other", "m", None, 1, [], version=9)


def test_members_commit_with_their_generation_and_not_while_it_begins() -> None:
    world, groups = make()
    joined = groups.join("g", join_ask()).value
    member, generation = joined.member_id, joined.generation
    with pytest.raises(RebalanceInProgressError):
        groups.commit("g", member, None, generation, [(T0, offset(world, 5))], version=9)
    groups.sync("g", SyncAsk(member, None, generation))
    groups.commit("g", member, None, generation, [(T0, offset(world, 5))], version=9)
    for who, number, error in (
        (member, generation + 1, IllegalGenerationError),
        ("x", generation, UnknownMemberIdError),
        ("", -1, UnknownMemberIdError),
    ):
        with pytest.raises(error):
            groups.commit("g", who, None, number, [], version=9)


def test_a_commit_keeps_its_member_alive() -> None:
    world, groups = make()
    member, generation = classic_member(groups)
    for _ in range(3):
        world.advance(8)
        groups.commit("g", member, None, generation, [(T0, offset(world, 5))], version=9)
    assert groups.find(ClassicGroup, "g").state is State.STABLE


def test_transactions_move_offsets_when_they_are_committed_and_only_forward_in_time() -> None:
    world, groups = make()
    store = groups.offsets_of("g")
    groups.commit_pending("g", 7, [(T0, offset(world, 9))])
    assert store.is_unstable(T0)
    assert T0 not in store.committed
    groups.end_transaction(7, ["g", "unknown"], committed=True)
    assert store.committed[T0].offset == 9
    groups.commit_pending("g", 7, [(T0, offset(world, 20))])
    store.commit(T0, offset(world, 15))  # KAFKA-17219: committed later than what the transaction took
    groups.end_transaction(7, ["g"], committed=True)
    assert store.committed[T0].offset == 15
    groups.commit_pending("g", 7, [(T0, offset(world, 30))])
    groups.end_transaction(7, ["g"], committed=False)
    assert (store.committed[T0].offset, store.is_unstable(T0)) == (15, False)


def test_offsets_of_a_group_without_members_expire_and_the_group_with_them() -> None:
    world, groups = make()
    groups.commit("g", "", None, -1, [(T0, offset(world, 5))], version=9)
    world.advance(6.9 * DAY)
    assert T0 in groups.offsets["g"].committed
    world.advance(0.2 * DAY)
    assert "g" not in groups.groups


def test_offsets_expire_from_when_the_group_became_empty() -> None:
    world, groups = make()
    joined = groups.join("g", join_ask(session_timeout=600)).value
    member, generation = joined.member_id, joined.generation
    groups.sync("g", SyncAsk(member, None, generation))
    groups.commit("g", member, None, generation, [(T0, offset(world, 5))], version=9)
    for _ in range(3 * 24 * 20):
        world.advance(180)
        groups.heartbeat("g", member, None, generation)
    world.advance(601)  # nothing is heard of the member any more
    world.advance(6.9 * DAY)
    assert T0 in groups.offsets["g"].committed
    world.advance(0.2 * DAY)
    assert "g" not in groups.groups


def test_offsets_with_an_expiry_time_expire_then_unless_a_transaction_moves_them() -> None:
    world, groups = make(offsets_check_interval=60.0)
    groups.commit("g", "", None, -1, [(T0, offset(world, 5, expire_ms=world.now_ms() + 1000))], version=2)
    groups.commit_pending("g", 7, [(T0, offset(world, 6))])
    world.advance(61)
    assert T0 in groups.offsets["g"].committed
    groups.end_transaction(7, ["g"], committed=False)
    world.advance(61)
    assert "g" not in groups.groups


# Going over to the other protocol


def test_a_classic_group_becomes_a_consumer_group_and_keeps_what_it_reads() -> None:
    _, groups = make()
    member, generation = classic_member(groups)
    result = enter(groups, "new")
    group = groups.find(ConsumerGroup, "g")
    assert result.assignment == {}
    assert group.members[member].holding.assigned == {_id(groups): frozenset(range(4))}
    with pytest.raises(RebalanceInProgressError):
        groups.heartbeat("g", member, None, generation)
    owned = [("t", [0, 1, 2, 3])]
    first = groups.join(
        "g", join_ask(member, protocols=[("range", subscription("t", owned=owned, generation=generation))])
    ).value
    told = groups.sync("g", SyncAsk(member, None, first.generation)).value
    kept = read_assignment(told.assignment, groups._topics)[_id(groups)]
    assert len(kept) == 2
    owned = [("t", sorted(kept))]
    again = groups.join(
        "g", join_ask(member, protocols=[("range", subscription("t", owned=owned, generation=first.generation))])
    ).value
    assert again.generation == group.epoch
    result = groups.consumer_heartbeat("g", HeartbeatAsk("new", result.epoch, owned={}))
    assert result.assignment == {_id(groups): frozenset(range(4)) - kept}
    assert group.state == "Stable"


def test_the_last_consumer_leaves_a_classic_group_behind() -> None:
    _, groups = make()
    member, _ = classic_member(groups)
    enter(groups, "new")
    epoch = groups.find(ConsumerGroup, "g").epoch
    groups.consumer_heartbeat("g", HeartbeatAsk("new", -1))
    group = groups.find(ClassicGroup, "g")
    assert (group.state, group.generation) == (State.PREPARING, epoch)
    back = groups.join("g", join_ask(member, protocols=[("range", subscription("t"))])).value
    assert (back.generation, back.leader) == (epoch + 1, member)


def test_more_classic_members_than_a_classic_group_may_have_stay_in_the_consumer_group() -> None:
    _, groups = make(max_size=1)
    member, _ = classic_member(groups)
    enter(groups, "new")
    groups.join("g", join_ask(protocols=[("range", subscription("t"))]))
    assert len(groups.find(ConsumerGroup, "g").members) == 3
    groups.consumer_heartbeat("g", HeartbeatAsk("new", -1))
    assert len(groups.find(ConsumerGroup, "g").members) == 2
    groups.leave("g", [(member, None)])
    assert isinstance(groups.groups["g"], ClassicGroup)


def test_a_silent_consumer_leaves_a_classic_group_behind_too() -> None:
    world, groups = make()
    member, _ = classic_member(groups)
    joined = groups.join("g", join_ask(member, session_timeout=600, protocols=[("range", subscription("t"))]))
    groups.sync("g", SyncAsk(member, None, joined.value.generation))
    enter(groups, "new")
    world.advance(46)
    assert isinstance(groups.groups["g"], ClassicGroup)


def test_a_classic_member_that_does_not_rejoin_in_time_is_out() -> None:
    world, groups = make()
    member, generation = classic_member(groups)
    new = enter(groups, "new")
    for _ in range(9):
        if member in groups.find(ConsumerGroup, "g").members:
            with pytest.raises(RebalanceInProgressError):
                groups.heartbeat("g", member, None, generation)
        world.advance(8)
        new = groups.consumer_heartbeat("g", HeartbeatAsk("new", new.epoch, owned={}))
    assert set(groups.find(ConsumerGroup, "g").members) == {"new"}


def test_groups_that_may_not_or_cannot_change_stay_what_they_are() -> None:
    _, groups = make(consumer_migration_policy="disabled")
    classic_member(groups)
    with pytest.raises(GroupIdNotFoundError, match="disabled"):
        enter(groups, "new")
    _, groups = make()
    groups.join("g", join_ask(protocol_type="connect"))
    with pytest.raises(GroupIdNotFoundError, match="does not use"):
        enter(groups, "new")


def test_a_join_that_is_refused_leaves_no_group_behind_and_none_changed() -> None:
    # Kafka: INVALID_REGULAR_EXPRESSION, and there is no such group.
    _, groups = make()
    bad = HeartbeatAsk("m", 0, rebalance_timeout=10.0, names=(), regex="(", owned={})
    with pytest.raises(InvalidRegularExpressionError):
        groups.consumer_heartbeat("g", bad)
    assert not groups.groups
    _, groups = make(consumer_max_size=1)
    classic_member(groups)
    for ask, error in (
        (bad, InvalidRegularExpressionError),
        (HeartbeatAsk("m", 0, names=("t",)), GroupMaxSizeReachedError),
    ):
        with pytest.raises(error):
            groups.consumer_heartbeat("g", ask)
        assert groups.find(ClassicGroup, "g").state is State.STABLE


def test_an_empty_group_gives_way_to_the_other_protocol_and_keeps_its_offsets() -> None:
    world, groups = make()
    groups.commit("g", "", None, -1, [(T0, offset(world, 5))], version=9)
    enter(groups, "a")
    assert isinstance(groups.groups["g"], ConsumerGroup)
    groups.consumer_heartbeat("g", HeartbeatAsk("a", -1))
    assert groups.join("g", join_ask()).value.error_code == 0
    assert isinstance(groups.groups["g"], ClassicGroup)
    assert groups.offsets["g"].committed[T0].offset == 5


# Administration


def test_only_empty_groups_are_deleted() -> None:
    world, groups = make()
    groups.commit("g", "", None, -1, [(T0, offset(world, 5))], version=9)
    groups.delete("g")
    assert "g" not in groups.groups
    enter(groups, "a")
    with pytest.raises(NonEmptyGroupError):
        groups.delete("g")
    with pytest.raises(GroupIdNotFoundError):
        groups.delete("nope")


def test_waiting_members_get_an_error_when_the_coordinator_moves_and_can_join_again() -> None:
    _, groups = make()
    first, _ = classic_member(groups)
    waiting = groups.join("g", join_ask())
    groups.moved("g")
    assert waiting.value.error_code == NotCoordinatorError.errno
    again = groups.join("g", join_ask(first, protocols=[("range", subscription("t"))]))
    assert again.value.error_code == 0
    assert list(groups.find(ClassicGroup, "g").roster.members) == [first]


# What outlives the process


def test_groups_and_offsets_are_there_again_after_a_restart() -> None:
    tables = Tables()
    world, groups = make(tables=tables)
    member, generation = classic_member(groups)
    groups.commit("g", member, None, generation, [(T0, offset(world, 5))], version=9)
    groups.commit_pending("g/with/slashes", 7, [(T0, offset(world, 8))])
    enter(groups, "a", "h")
    state = groups.find(ConsumerGroup, "h")
    groups.close()

    _, later = make(World(t=4), tables)
    later.heartbeat("g", member, None, generation)
    assert later.offsets["g"].committed[T0].offset == 5
    later.end_transaction(7, ["g/with/slashes"], committed=True)
    assert later.offsets["g/with/slashes"].committed[T0].offset == 8
    loaded = later.find(ConsumerGroup, "h")
    assert (loaded.epoch, loaded.assignment_epoch, loaded.targets) == (
        state.epoch,
        state.assignment_epoch,
        state.targets,
    )
    assert later.consumer_heartbeat("h", HeartbeatAsk("a", loaded.epoch)).epoch == loaded.epoch
    later.close()


def test_a_change_of_one_member_makes_the_saved_data_of_that_one_alone() -> None:
    """Of a group of 200 each heartbeat of a rebalance took 13 ms for the other 199."""
    tables = Tables()
    _, groups = make(tables=tables)
    for name in ("a", "b", "c", "d"):
        enter(groups, name)

    def saved() -> dict[str, dict[str, Any]]:
        return {each["member_id"]: each for each in tables("groups")["g"]["state"]["members"]}

    before = saved()
    groups.consumer_heartbeat("g", HeartbeatAsk("a", groups.find(ConsumerGroup, "g").members["a"].epoch, owned={}))
    after = saved()
    assert [name for name in before if after[name] is not before[name]] == ["a"]
    assert before["a"]["holding"] != after["a"]["holding"]


@pytest.mark.parametrize("way", ["group", "topic"])
def test_offsets_that_a_transaction_was_to_commit_do_not_come_back_after_a_deletion(way: str) -> None:
    """They made the offset of a group of the same name unstable for ever, after a restart."""
    tables = Tables()
    world, groups = make(tables=tables)
    groups.check_commit("g", "", None, -1, 9, [T0], transactional=True)
    groups.commit_pending("g", 7, [(T0, offset(world, 8))])
    if way == "group":
        groups.delete("g")
    else:
        groups.forget_topic(T0.topic)
    groups.end_transaction(7, ["g"], committed=True)
    groups.close()
    _, later = make(World(t=4), tables)
    assert not later.offsets_of("g").is_unstable(T0)
    assert not later.offsets_of("g").committed
    later.close()


@pytest.mark.parametrize("timeout", [5.9, 1801])
def test_session_timeouts_have_limits_and_a_refusal_leaves_no_group_behind(timeout: float) -> None:
    _, groups = make()
    refused = groups.join("g", join_ask(session_timeout=timeout)).value
    assert refused.error_code == InvalidSessionTimeoutError.errno
    assert not groups.groups
