"""Classic groups: joins, generations, assignments, static members and timeouts, under a clock that is pushed."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kafka.broker.groups.classic_group import ClassicGroup
from kafka.broker.groups.classic_member import Event, JoinResult, State, SyncAsk, SyncResult, next_state
from kafka.broker.groups.group import Answer
from kafka.broker.groups.settings import GroupSettings
from kafka.errors import (
    FencedInstanceIdError,
    IllegalGenerationError,
    IllegalStateError,
    InconsistentGroupProtocolError,
    MemberIdRequiredError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)

from .world import World, join_ask

NONE = 0
UNKNOWN_MEMBER_ID = UnknownMemberIdError.errno
REBALANCE_IN_PROGRESS = RebalanceInProgressError.errno


def make(world: World | None = None, **settings: object) -> tuple[World, ClassicGroup]:
    world = world or World()
    return world, ClassicGroup("g", GroupSettings(**settings), world, world, world.new_id)  # type: ignore[arg-type]


def stable(group: ClassicGroup, *ids: str | None, world: World | None = None) -> list[str]:
    """Bring members in, the first as leader, and let them have their assignments."""
    first = group.join(join_ask()).value
    members = [first.member_id]
    for _ in ids:
        newcomer = group.join(join_ask())
        rejoins = [group.join(join_ask(member)) for member in members]
        members.append(newcomer.value.member_id)
        assert all(answer.is_set for answer in rejoins)
    sync_all(group, members)
    return members


def sync_all(group: ClassicGroup, members: list[str]) -> dict[str, SyncResult]:
    plan = tuple((member, member.encode()) for member in members)
    answers: dict[str, Answer[SyncResult]] = {}
    for member in members:
        answers[member] = group.sync(
            SyncAsk(member, None, group.generation, assignments=plan if member == group.roster.leader else ())
        )
    return {member: answer.value for member, answer in answers.items()}


def test_the_first_member_leads_and_sees_everyone() -> None:
    _, group = make()
    result = group.join(join_ask(protocols=[("range", b"meta")])).value
    assert result == JoinResult(
        NONE, result.member_id, 1, "consumer", "range", result.member_id, False, ((result.member_id, None, b"meta"),)
    )
    assert group.state is State.COMPLETING


def test_everyone_gets_what_the_leader_hands_out() -> None:
    _, group = make()
    members = stable(group, None, None)
    assert group.state is State.STABLE
    results = sync_all(group, members)
    assert {member: result.assignment for member, result in results.items()} == {m: m.encode() for m in members}


def test_a_follower_waits_for_the_leader_to_synchronise() -> None:
    _, group = make()
    leader = group.join(join_ask()).value.member_id
    second = group.join(join_ask())
    group.join(join_ask(leader))
    follower = second.value.member_id
    waiting = group.sync(SyncAsk(follower, None, group.generation))
    assert not waiting.is_set
    group.sync(SyncAsk(leader, None, group.generation, assignments=((follower, b"mine"),)))
    assert waiting.value.assignment == b"mine"


def test_new_members_get_their_id_first_and_join_with_it() -> None:
    world, group = make()
    refused = group.join(join_ask(needs_id_first=True)).value
    assert refused.error_code == MemberIdRequiredError.errno
    assert refused.member_id.startswith("client-")
    assert group.state is State.EMPTY
    assert group.join(join_ask(refused.member_id, needs_id_first=True)).value.error_code == NONE
    assert world.timers_pending == 2  # its session and the wait for its sync


def test_a_given_id_that_is_not_used_is_forgotten_with_the_session_timeout() -> None:
    world, group = make()
    given = group.join(join_ask(needs_id_first=True)).value.member_id
    world.advance(11)
    assert group.join(join_ask(given)).value.error_code == UNKNOWN_MEMBER_ID


def test_a_rebalance_waits_for_ids_that_were_given_out() -> None:
    _, group = make()
    (first,) = stable(group)
    given = group.join(join_ask(needs_id_first=True)).value.member_id
    second = group.join(join_ask())
    rejoin = group.join(join_ask(first))
    assert not rejoin.is_set
    group.join(join_ask(given))
    assert rejoin.value.generation == second.value.generation == 2


def test_leaving_with_an_id_alone_rebalances_the_group_too() -> None:
    # Kafka: from then on the members' heartbeats are answered with REBALANCE_IN_PROGRESS.
    _, group = make()
    (member,) = stable(group)
    given = group.join(join_ask(needs_id_first=True)).value.member_id
    assert group.leave([(given, None)]) == [NONE]
    with pytest.raises(RebalanceInProgressError):
        group.heartbeat(member, None, group.generation)
    assert group.join(join_ask(member)).value.error_code == NONE


def test_a_member_removed_while_it_joins_has_no_id_any_more() -> None:
    _, group = make()
    stable(group)
    waiting = group.join(join_ask())
    (newcomer,) = (each.member_id for each in group.roster if each.join_answer is not None)
    group.expel(newcomer)
    assert (waiting.value.error_code, waiting.value.member_id) == (UNKNOWN_MEMBER_ID, "")


def test_the_initial_delay_waits_for_company_while_it_comes() -> None:
    world, group = make(initial_rebalance_delay=3.0)
    first = group.join(join_ask(rebalance_timeout=10))
    world.advance(2)
    second = group.join(join_ask(rebalance_timeout=10))
    world.advance(1.5)
    assert not first.is_set
    world.advance(3)
    assert first.value.generation == second.value.generation == 1


def test_a_member_that_does_not_rejoin_within_the_rebalance_timeout_is_removed() -> None:
    world, group = make()
    first, second = stable(group, None)
    rejoin = group.join(join_ask(first, session_timeout=300))
    for _ in range(12):
        with pytest.raises(RebalanceInProgressError):
            group.heartbeat(second, None, group.generation)
        world.advance(5)
    assert rejoin.value.members == ((first, None, b""),)
    assert second not in group.roster


def test_a_member_silent_for_its_session_timeout_is_removed_and_the_others_rebalance() -> None:
    world, group = make()
    first, second = stable(group, None)
    world.advance(9)
    group.heartbeat(first, None, group.generation)
    world.advance(2)
    assert second not in group.roster
    with pytest.raises(RebalanceInProgressError):
        group.heartbeat(first, None, group.generation)


def test_a_session_does_not_end_while_the_member_waits_for_us() -> None:
    world, group = make()
    first, second = stable(group, None)
    rejoin = group.join(join_ask(first))
    world.advance(9)
    with pytest.raises(RebalanceInProgressError):
        group.heartbeat(second, None, group.generation)
    world.advance(5)
    assert first in group.roster
    assert not rejoin.is_set


def test_a_member_that_does_not_synchronise_within_the_rebalance_timeout_is_removed() -> None:
    world, group = make()
    leader = group.join(join_ask(session_timeout=300)).value.member_id
    second = group.join(join_ask(session_timeout=300))
    group.join(join_ask(leader, session_timeout=300))
    group.sync(SyncAsk(leader, None, group.generation))
    world.advance(61)
    assert second.value.member_id not in group.roster
    assert leader in group.roster


def test_a_leader_that_joins_again_rebalances_a_follower_does_not() -> None:
    _, group = make()
    first, second = stable(group, None)
    generation = group.generation
    assert group.join(join_ask(second)).value.generation == generation
    assert group.state is State.STABLE
    assert not group.join(join_ask(first)).is_set
    assert group.state is State.PREPARING


def test_changed_metadata_rebalances() -> None:
    _, group = make()
    _, second = stable(group, None)
    group.join(join_ask(second, protocols=[("range", b"other")]))
    assert group.state is State.PREPARING


def test_the_protocol_that_all_speak_and_most_prefer_is_chosen() -> None:
    _, group = make(initial_rebalance_delay=1.0)
    world = group._clock
    for order in (["a", "b", "c"], ["b", "a"], ["b", "a", "d"]):
        group.join(join_ask(protocols=[(name, b"") for name in order]))
    world.advance(5)  # type: ignore[attr-defined]
    assert group.protocol_name == "b"
    refused = group.join(join_ask(protocols=[("d", b"")])).value
    assert refused.error_code == InconsistentGroupProtocolError.errno
    assert group.join(join_ask(protocol_type="connect")).value.error_code == InconsistentGroupProtocolError.errno


def test_generations_and_names_of_members_are_checked() -> None:
    _, group = make()
    (member,) = stable(group)
    with pytest.raises(IllegalGenerationError):
        group.heartbeat(member, None, group.generation - 1)
    with pytest.raises(UnknownMemberIdError):
        group.heartbeat("who", None, group.generation)
    assert group.sync(SyncAsk(member, None, 99)).value.error_code == IllegalGenerationError.errno
    wrong = group.sync(SyncAsk(member, None, group.generation, "consumer", "other")).value
    assert wrong.error_code == InconsistentGroupProtocolError.errno


def test_leaving_rebalances_the_rest_and_the_last_one_leaves_an_empty_group() -> None:
    _, group = make()
    first, second = stable(group, None)
    assert group.leave([(second, None), ("nobody", None)]) == [NONE, UNKNOWN_MEMBER_ID]
    assert group.state is State.PREPARING
    assert group.leave([(first, None)]) == [NONE]
    assert group.state is State.EMPTY
    assert group.generation == 3


# Static members (KIP-345)


def test_a_static_member_that_returns_takes_its_place_without_a_rebalance() -> None:
    _, group = make()
    old = group.join(join_ask(instance_id="one")).value.member_id
    group.sync(SyncAsk(old, "one", 1, assignments=((old, b"mine"),)))
    back = group.join(join_ask(instance_id="one")).value
    assert back.generation == 1
    assert back.member_id != old
    assert (back.leader, back.skip_assignment, len(back.members)) == (back.member_id, True, 1)
    assert group.sync(SyncAsk(back.member_id, "one", 1)).value.assignment == b"mine"
    with pytest.raises(FencedInstanceIdError):
        group.heartbeat(old, "one", 1)


def test_before_kip_814_a_returning_leader_is_not_told_that_it_leads() -> None:
    _, group = make()
    old = group.join(join_ask(instance_id="one")).value.member_id
    group.sync(SyncAsk(old, "one", 1))
    back = group.join(join_ask(instance_id="one", can_skip_assignment=False)).value
    assert (back.leader, back.skip_assignment, back.members) == (old, False, ())


def test_the_old_incarnation_is_fenced_while_it_waits() -> None:
    _, group = make()
    old = group.join(join_ask(instance_id="one")).value.member_id
    group.sync(SyncAsk(old, "one", 1))
    group.join(join_ask())
    waiting = group.join(join_ask(old, instance_id="one"))
    assert waiting.is_set  # with it everyone is there
    waiting = group.sync(SyncAsk(old, "one", group.generation))
    # Not the leader's sync alone but the new incarnation decides here.
    group.join(join_ask(instance_id="one"))
    assert group.sync(SyncAsk(old, "one", group.generation)).value.error_code == FencedInstanceIdError.errno


def test_static_members_keep_their_place_through_a_rebalance_they_miss() -> None:
    world, group = make()
    static = group.join(join_ask(instance_id="one", session_timeout=300)).value.member_id
    group.sync(SyncAsk(static, "one", 1))
    newcomer = group.join(join_ask(session_timeout=300))
    world.advance(61)
    result = newcomer.value
    assert static in group.roster
    assert result.leader == result.member_id  # the leader that did not come leads no more
    assert len(result.members) == 2


def test_an_administrator_removes_a_static_member_by_its_instance_id() -> None:
    _, group = make()
    group.join(join_ask(instance_id="one"))
    assert group.leave([("", "one"), ("", "two")]) == [NONE, UNKNOWN_MEMBER_ID]
    assert group.state is State.EMPTY


# The table


def test_a_key_that_the_table_does_not_have_is_an_error() -> None:
    allowed = {pair for pair in product(State, Event) if _is_allowed(*pair)}
    assert len(allowed) == 10
    with pytest.raises(IllegalStateError, match="Dead cannot take that a rebalance begins"):
        next_state(State.DEAD, Event.REBALANCE)


def _is_allowed(state: State, event: Event) -> bool:
    try:
        next_state(state, event)
    except IllegalStateError:
        return False
    return True


# Any order of anything


class AnyOrder(RuleBasedStateMachine):
    """Members join, answer, stay silent and leave in any order; generations only grow, and rebalances end."""

    def __init__(self) -> None:
        super().__init__()
        self.world, self.group = make(initial_rebalance_delay=1.0)
        self.members: set[str] = set()
        self.waiting: list[Answer[JoinResult]] = []
        self.generation = 0

    def _note(self, answer: Answer[JoinResult]) -> None:
        self.waiting.append(answer)
        answer.then(lambda result: self.members.add(result.member_id) if result.member_id else None)

    @rule(instance=st.sampled_from([None, None, "one", "two"]), first=st.booleans())
    def join_new(self, instance: str | None, first: bool) -> None:
        self._note(self.group.join(join_ask(instance_id=instance, needs_id_first=first)))

    @precondition(lambda self: self.members)
    @rule(data=st.data(), meta=st.sampled_from([b"", b"x"]))
    def join_again(self, data: st.DataObject, meta: bytes) -> None:
        member = data.draw(st.sampled_from(sorted(self.members)))
        self._note(self.group.join(join_ask(member, protocols=[("range", meta)])))

    @precondition(lambda self: self.members)
    @rule(data=st.data())
    def sync(self, data: st.DataObject) -> None:
        member = data.draw(st.sampled_from(sorted(self.members)))
        plan = tuple((each.member_id, each.member_id.encode()) for each in self.group.roster)
        answer = self.group.sync(SyncAsk(member, None, self.group.generation, assignments=plan))
        if answer.is_set and not answer.value.error_code and self.group.roster.members[member].instance_id is None:
            assert answer.value.assignment in (member.encode(), b"")

    @precondition(lambda self: self.members)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        self.group.leave([(data.draw(st.sampled_from(sorted(self.members))), None)])

    @rule(seconds=st.sampled_from([0.5, 2, 9, 61]))
    def time_passes(self, seconds: float) -> None:
        self.world.advance(seconds)

    @invariant()
    def generations_never_go_back(self) -> None:
        assert self.group.generation >= self.generation
        self.generation = self.group.generation

    @invariant()
    def the_leader_is_a_member(self) -> None:
        roster = self.group.roster
        assert (roster.leader in roster) if len(roster) else roster.leader is None
        if self.group.state is State.EMPTY:
            assert not len(roster)
        if self.group.state in (State.STABLE, State.COMPLETING):
            assert all(member.join_answer is None for member in roster)
        if self.group.state is State.STABLE:
            assert all(member.sync_answer is None for member in roster)

    def teardown(self) -> None:
        # Whoever is silent is out in the end, nobody waits for ever, and an empty group needs no timer.
        self.world.advance(5000)
        assert self.group.state is State.EMPTY
        assert all(answer.is_set for answer in self.waiting)
        assert self.world.timers_pending == 0


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = hypothesis_settings(max_examples=30, stateful_step_count=30, deadline=None)
