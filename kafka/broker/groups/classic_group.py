"""A classic group: its states, its rebalances, and the clocks of its members.

A rebalance gathers JoinGroup requests until everyone has joined or time is up (PreparingRebalance), answers them all
with a new generation (CompletingRebalance), waits for the leader's SyncGroup with the assignment, and hands that out
(Stable). Steps and errors are the same as in Kafka's coordinator; where a step is odd, its KIP or ticket is named.

Lives on the broker's loop and takes no lock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from kafka.broker.cluster.clock import BrokerClock, Timer, Timers
from kafka.broker.groups.classic_member import (
    CONSUMER,
    Event,
    JoinAsk,
    JoinResult,
    Member,
    Roster,
    State,
    SyncAsk,
    SyncResult,
    next_state,
)
from kafka.broker.groups.group import Answer, Commit, Group
from kafka.broker.groups.settings import GroupSettings
from kafka.errors import (
    BrokerResponseError,
    Code,
    CoordinatorNotAvailableError,
    IllegalGenerationError,
    InconsistentGroupProtocolError,
    NonEmptyGroupError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)


@dataclass(frozen=True)
class ClassicGroupSnapshot:
    """The state of a classic group that outlives the broker; only a stable group has members in it."""

    generation: int
    state_since_ms: int
    protocol_type: str | None
    protocol_name: str | None
    leader: str | None
    members: list[Member]


class ClassicGroup(Group):
    """One group of the classic protocol."""

    kind = "classic"

    def __init__(
        self,
        group_id: str,
        settings: GroupSettings,
        clock: BrokerClock,
        timers: Timers,
        new_id: Callable[[], str],
        *,
        generation: int = 0,
        on_stored: Callable[[ClassicGroup], object] = lambda _group: None,
    ) -> None:
        self.group_id = group_id
        self.settings = settings
        self.state = State.EMPTY
        self.state_since_ms = clock.now_ms()
        self.generation = generation
        self.protocol_name: str | None = None
        self.roster = Roster()
        self.subscribed: frozenset[str] | None = None
        self._clock = clock
        self._timers = timers
        self._new_id = new_id
        self._on_stored = on_stored
        #: Member ids that were given out and have not been joined with yet (KIP-394).
        self._pending: dict[str, Timer] = {}
        #: Members that know the generation but have not asked for their assignment yet.
        self._unsynced: set[str] = set()
        self._join_timer: Timer | None = None
        self._sync_timer: Timer | None = None
        #: The first rebalance of an empty group waits for company, however many have joined already.
        self._is_initial = False
        self._has_newcomer = False

    @property
    def protocol_type(self) -> str | None:
        """The protocol of the members; None for a group that only keeps offsets."""
        return self.roster.protocol_type

    @property
    def state_name(self) -> str:
        """Kafka's name of the group's state."""
        return self.state.value

    @property
    def members(self) -> Mapping[str, Member]:
        """The members by their ids."""
        return self.roster.members

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members, nor a rebalance for the first."""
        return self.state is State.EMPTY

    @property
    def classic_members(self) -> ClassicGroup:
        """The group itself."""
        return self

    @property
    def has_pending(self) -> bool:
        """Whether member ids were given out that may still be joined with."""
        return bool(self._pending)

    def __repr__(self) -> str:
        return f"<ClassicGroup {self.group_id!r} {self.state.value} generation {self.generation}>"

    def _move(self, event: Event) -> None:
        self.state = next_state(self.state, event)
        self.state_since_ms = self._clock.now_ms()

    # Joining

    def join(self, ask: JoinAsk) -> Answer[JoinResult]:
        """Join, or join again; the answer comes when the rebalance has gathered everyone."""
        answer: Answer[JoinResult] = Answer()
        try:
            self._join(ask, answer)
        except BrokerResponseError as error:
            answer.set(JoinResult(error.code, ask.member_id))
        return answer

    def _join(self, ask: JoinAsk, answer: Answer[JoinResult]) -> None:
        if not self._has_room_for(ask.member_id):
            self.roster.remove(ask.member_id)
            answer.set(JoinResult(Code.GROUP_MAX_SIZE_REACHED, ""))
            return
        if self.state is State.DEAD:
            raise CoordinatorNotAvailableError
        if not self.roster.supports(ask.protocol_type, ask.protocols):
            raise InconsistentGroupProtocolError
        if ask.member_id:
            self._join_known(ask, answer)
        elif ask.instance_id is not None:
            self._join_static(ask, answer)
        elif ask.needs_id_first:
            given = self._make_id(ask)
            self._pending[given] = self._timers.call_later(ask.session_timeout, self._drop_pending, given)
            answer.set(JoinResult(Code.MEMBER_ID_REQUIRED, given))
        else:
            self._add(ask, self._make_id(ask), answer)

    def _has_room_for(self, member_id: str) -> bool:
        if self.state is State.PREPARING:
            known = self.roster.members.get(member_id)
            waiting = sum(member.join_answer is not None for member in self.roster)
            return waiting < self.settings.max_size or (known is not None and known.join_answer is not None)
        if self.state in (State.COMPLETING, State.STABLE):
            return member_id in self.roster or len(self.roster) < self.settings.max_size
        return True

    def _make_id(self, ask: JoinAsk) -> str:
        return f"{ask.instance_id or ask.client_id}-{self._new_id()}"

    def _join_known(self, ask: JoinAsk, answer: Answer[JoinResult]) -> None:
        if ask.member_id in self._pending:
            self._add(ask, ask.member_id, answer)
            return
        member = self.roster.expect(ask.member_id, ask.instance_id)
        unchanged = list(member.protocols) == list(ask.protocols)
        leads = member.member_id == self.roster.leader
        if self.state not in (State.PREPARING, State.COMPLETING, State.STABLE):
            raise UnknownMemberIdError
        if unchanged and self.state is State.COMPLETING:
            # It has joined already and missed the answer: the generation is not over for that.
            answer.set(self._result(member, tell_all=leads))
        elif unchanged and self.state is State.STABLE and not leads:
            answer.set(self._result(member))
        else:  # in a stable group a leader joins again to say that the assignment has to change
            self._take_terms(member, ask)
            self._await_join(member, answer)
            self._rebalance()

    def _join_static(self, ask: JoinAsk, answer: Answer[JoinResult]) -> None:
        assert ask.instance_id is not None
        present = self.roster.static.get(ask.instance_id)
        if present is None:
            self._add(ask, self._make_id(ask), answer)
            return
        leader_before = self.roster.leader
        member = self.replace_static(present, self._make_id(ask))
        self._take_terms(member, ask)
        if self.state is State.STABLE and self.roster.vote() == self.protocol_name:
            # KIP-345: the same instance is back, nothing to rebalance. Before KIP-814 the response names its
            # old id as the leader's, so that it does not compute an assignment that a stable group would not hand out.
            self._watch(member)
            leads = member.member_id == self.roster.leader
            if ask.can_skip_assignment:
                answer.set(self._result(member, tell_all=leads, skip=leads))
            else:
                answer.set(self._result(member, leader=leader_before))
            self._on_stored(self)
        else:
            self._await_join(member, answer)
            self._rebalance()

    def replace_static(self, old_id: str, new_id: str) -> Member:
        """Put a new incarnation in the place of a static member; the old one is fenced."""
        member = self.roster.members[old_id]
        member.answer_join(JoinResult(Code.FENCED_INSTANCE_ID, old_id))
        member.answer_sync(SyncResult(Code.FENCED_INSTANCE_ID))
        self._unsynced.discard(old_id)
        return self.roster.rename(old_id, new_id)

    def _add(self, ask: JoinAsk, member_id: str, answer: Answer[JoinResult]) -> None:
        pending = self._pending.pop(member_id, None)
        if pending is not None:
            pending.cancel()
        member = Member(
            member_id,
            ask.instance_id,
            ask.client_id,
            ask.client_host,
            rebalance_timeout=ask.rebalance_timeout,
            session_timeout=ask.session_timeout,
            protocols=ask.protocols,
            is_new=True,
        )
        self.roster.add(member, ask.protocol_type)
        self._has_newcomer = self._has_newcomer or self._is_initial
        self._await_join(member, answer)
        # It cannot send heartbeats before it is answered, which may take the longest of all rebalance timeouts.
        self._watch(member, self.settings.new_member_join_timeout)
        self._rebalance()

    def _take_terms(self, member: Member, ask: JoinAsk) -> None:
        self.roster.update_protocols(member, ask.protocols)
        member.rebalance_timeout = ask.rebalance_timeout
        member.session_timeout = ask.session_timeout

    def _await_join(self, member: Member, answer: Answer[JoinResult]) -> None:
        # An earlier request of the same member came over a connection that it has given up.
        member.answer_join(JoinResult(Code.REBALANCE_IN_PROGRESS, member.member_id))
        member.join_answer = answer

    # Rebalancing

    def _rebalance(self) -> None:
        """Begin a rebalance if there is none; end the present one if everyone is there."""
        if self.state is State.PREPARING:
            self._maybe_complete_join()
            return
        if self.state is State.COMPLETING:
            for member in self.roster:
                member.assignment = b""
                if member.sync_answer is not None:
                    member.answer_sync(SyncResult(Code.REBALANCE_IN_PROGRESS))
                    self._watch(member)
        self._cancel_sync_timer()
        self._is_initial = self.state is State.EMPTY
        self._move(Event.REBALANCE)
        if not self._is_initial:
            if self._everyone_joined:
                self._complete_join()
            else:
                self._join_timer = self._timers.call_later(self.roster.rebalance_timeout(), self._complete_join)
            return
        self._has_newcomer = False
        delay = self.settings.initial_rebalance_delay
        if delay <= 0:
            self._complete_join()
        else:
            rest = max(self.roster.rebalance_timeout() - delay, 0.0)
            self._join_timer = self._timers.call_later(delay, self._initial_delay_over, delay, rest)

    def _initial_delay_over(self, delay: float, rest: float) -> None:
        if self._has_newcomer and rest > 0:
            self._has_newcomer = False
            delay = min(self.settings.initial_rebalance_delay, rest)
            self._join_timer = self._timers.call_later(delay, self._initial_delay_over, delay, max(rest - delay, 0.0))
        else:
            self._complete_join()

    @property
    def _everyone_joined(self) -> bool:
        return not self._pending and all(member.join_answer is not None for member in self.roster)

    def _maybe_complete_join(self) -> None:
        if self.state is State.PREPARING and not self._is_initial and self._everyone_joined:
            self._complete_join()

    def _complete_join(self) -> None:
        """All members have joined, or time is up: continue with the members that joined."""
        if self._join_timer is not None:
            self._join_timer.cancel()
            self._join_timer = None
        if self.state is not State.PREPARING:
            return
        for member in self.roster:
            if member.join_answer is None and member.instance_id is None:
                self.roster.remove(member.member_id)
        if len(self.roster) and not self.roster.elect():
            # Static members alone are left and none is back yet: their session timeouts decide.
            self._join_timer = self._timers.call_later(self.roster.rebalance_timeout(), self._complete_join)
            return
        self._is_initial = False
        self._next_generation()

    def _next_generation(self) -> None:
        self.generation += 1
        self._unsynced.clear()
        if not len(self.roster):
            self.protocol_name = None
            self.subscribed = self.roster.subscribed_topics(None)
            self._move(Event.DESERTED)
            self._on_stored(self)
            return
        self.protocol_name = self.roster.vote()
        self.subscribed = self.roster.subscribed_topics(self.protocol_name)
        self._move(Event.GATHERED)
        for member in self.roster:
            member.answer_join(self._result(member, tell_all=member.member_id == self.roster.leader))
            self._watch(member)
            member.is_new = False
            self._unsynced.add(member.member_id)
        self._sync_timer = self._timers.call_later(self.roster.rebalance_timeout(), self._sync_expired, self.generation)

    def _result(
        self, member: Member, *, tell_all: bool = False, skip: bool = False, leader: str | None = None
    ) -> JoinResult:
        told = [(each.member_id, each.instance_id, each.metadata(self.protocol_name)) for each in self.roster]
        return JoinResult(
            0,
            member.member_id,
            self.generation,
            self.protocol_type,
            self.protocol_name,
            leader or self.roster.leader or "",
            skip,
            tuple(told) if tell_all else (),
        )

    # Synchronising

    def sync(self, ask: SyncAsk) -> Answer[SyncResult]:
        """Hand over or ask for the assignment; the answer comes when the leader's has come."""
        answer: Answer[SyncResult] = Answer()
        try:
            self._sync(ask, answer)
        except BrokerResponseError as error:
            answer.set(SyncResult(error.code))
        return answer

    def _sync(self, ask: SyncAsk, answer: Answer[SyncResult]) -> None:
        if self.state is State.DEAD:
            raise CoordinatorNotAvailableError
        member = self.roster.expect(ask.member_id, ask.instance_id)
        if ask.generation != self.generation:
            raise IllegalGenerationError
        if (ask.protocol_type is not None and ask.protocol_type != self.protocol_type) or (
            ask.protocol_name is not None and ask.protocol_name != self.protocol_name
        ):
            raise InconsistentGroupProtocolError
        if self.state is State.PREPARING:
            raise RebalanceInProgressError
        if self.state is State.EMPTY:
            raise UnknownMemberIdError
        self._unsynced.discard(member.member_id)
        if self.state is State.STABLE:
            answer.set(self._assigned(member))
            self._watch(member)
        else:
            member.answer_sync(SyncResult(Code.REBALANCE_IN_PROGRESS))
            member.sync_answer = answer
            if member.member_id == self.roster.leader:
                self._assign(dict(ask.assignments))
        if not self._unsynced:
            self._cancel_sync_timer()

    def _assign(self, assignments: Mapping[str, bytes]) -> None:
        for member in self.roster:
            member.assignment = assignments.get(member.member_id, b"")
        self._move(Event.ASSIGNED)
        self._on_stored(self)
        for member in self.roster:
            if member.sync_answer is not None:
                self._unsynced.discard(member.member_id)
                member.answer_sync(self._assigned(member))
                self._watch(member)

    def _assigned(self, member: Member) -> SyncResult:
        return SyncResult(0, member.assignment, self.protocol_type, self.protocol_name)

    def _sync_expired(self, generation: int) -> None:
        """Remove members that have not requested their assignment within the rebalance timeout (KAFKA-13435)."""
        self._sync_timer = None
        if generation != self.generation or self.state not in (State.COMPLETING, State.STABLE) or not self._unsynced:
            return
        for member_id in list(self._unsynced):
            self._forget(member_id)
        self._rebalance()

    def _cancel_sync_timer(self) -> None:
        if self._sync_timer is not None:
            self._sync_timer.cancel()
            self._sync_timer = None

    # Staying

    def heartbeat(self, member_id: str, instance_id: str | None, generation: int) -> None:
        """Record that a member is alive; raise the error for its reply."""
        if self.state is State.DEAD:
            raise CoordinatorNotAvailableError
        member = self.roster.expect(member_id, instance_id)
        if generation != self.generation:
            raise IllegalGenerationError
        if self.state is State.EMPTY:
            raise UnknownMemberIdError
        self._watch(member)
        if self.state is State.PREPARING:
            raise RebalanceInProgressError

    def _watch(self, member: Member, timeout: float | None = None) -> None:
        member.stop_timers()
        timeout = member.session_timeout if timeout is None else timeout
        member.session = self._timers.call_later(timeout, self._session_over, member)

    def _session_over(self, member: Member) -> None:
        member.session = None
        if self.state is State.DEAD or self.roster.members.get(member.member_id) is not member:
            return
        if not member.is_new and (member.join_answer is not None or member.sync_answer is not None):
            return  # the member waits for a response of this group
        self.expel(member.member_id)

    def expel(self, member_id: str) -> None:
        """Remove a member as if its session had ended."""
        self._forget(member_id)
        self.force_rebalance()

    # Leaving

    def leave(self, members: Iterable[tuple[str, str | None]]) -> list[int]:
        """Let members go, each named by its id or its instance id; return an error code for each."""
        if self.state is State.DEAD:
            raise CoordinatorNotAvailableError
        codes = [self._leave(member_id, instance_id) for member_id, instance_id in members]
        if 0 in codes:
            # Also where it had no more than its id: Kafka makes no difference.
            self.force_rebalance()
        return codes

    def _leave(self, member_id: str, instance_id: str | None) -> int:
        if not member_id:
            # An administrator removes a static member, whose present id it need not know (KIP-345).
            member_id = self.roster.static.get(instance_id or "", "")
        elif member_id in self._pending and instance_id is None:
            self._pending.pop(member_id).cancel()
            return 0
        try:
            self._forget(self.roster.expect(member_id, instance_id).member_id)
        except BrokerResponseError as error:
            return error.code
        return 0

    def _drop_pending(self, member_id: str) -> None:
        self._pending.pop(member_id, None)
        self._maybe_complete_join()

    def _forget(self, member_id: str) -> None:
        member = self.roster.remove(member_id)
        self._unsynced.discard(member_id)
        if member is not None:
            member.answer_join(JoinResult(Code.UNKNOWN_MEMBER_ID, ""))  # no member has its id any longer
            member.answer_sync(SyncResult(Code.UNKNOWN_MEMBER_ID))

    def force_rebalance(self) -> None:
        """Have everyone join again."""
        if self.state in (State.STABLE, State.COMPLETING, State.PREPARING):
            self._rebalance()

    # Offsets

    def check_commit(self, commit: Commit) -> None:
        """Raise if a member may not commit now; a commit shows that the member is alive."""
        generation = commit.epoch
        if self.state is State.DEAD:
            raise CoordinatorNotAvailableError
        if generation < 0 and self.state is State.EMPTY:
            return
        if generation >= 0 or commit.member_id or commit.instance_id is not None:
            self.roster.expect(commit.member_id, commit.instance_id)
            if generation != self.generation:
                raise IllegalGenerationError
        elif not commit.is_transactional:
            # Only a client outside the group may leave the member id out, and only while the group has no members.
            raise UnknownMemberIdError
        if not commit.is_transactional and self.state is State.COMPLETING:
            raise RebalanceInProgressError
        member = self.roster.members.get(commit.member_id)
        if member is not None and self.state in (State.PREPARING, State.STABLE):
            self._watch(member)

    def check_deletion_of_offsets(self) -> None:
        """Raise if no offsets of the group may be deleted: its members are not consumers, so all topics may be read."""
        if self.protocol_type not in (CONSUMER, None) and len(self.roster):
            raise NonEmptyGroupError

    def unused_since_ms(self, committed_ms: int) -> int:
        """Return since when an offset that was committed then has not been in use: while there are members, it is."""
        was_joined = self.protocol_type is not None and self.is_empty
        return max(committed_ms, self.state_since_ms) if was_joined else committed_ms

    # For the coordinator

    def become_stable(
        self, members: Iterable[Member], protocol_type: str, protocol_name: str | None, leader: str | None
    ) -> None:
        """Become a stable group of these members, as one that another protocol or process has left."""
        for member in members:
            self.roster.add(member, protocol_type)
        self.roster.leader = leader or self.roster.leader
        self.protocol_name = protocol_name or self.roster.vote()
        self.subscribed = self.roster.subscribed_topics(self.protocol_name)
        for event in (Event.REBALANCE, Event.GATHERED, Event.ASSIGNED):
            self._move(event)
        for member in self.roster:
            self._watch(member)

    def snapshot(self) -> ClassicGroupSnapshot:
        """Return the state of the group that outlives the broker: as its last assignment was handed out."""
        return ClassicGroupSnapshot(
            self.generation,
            self.state_since_ms,
            self.protocol_type,
            self.protocol_name,
            self.roster.leader,
            list(self.roster) if self.state is State.STABLE else [],
        )

    def load(self, snapshot: ClassicGroupSnapshot) -> None:
        """Take a fresh group to the state of a snapshot."""
        self.generation = snapshot.generation
        self.roster.protocol_type = snapshot.protocol_type
        if snapshot.members:
            assert snapshot.protocol_type is not None
            self.become_stable(snapshot.members, snapshot.protocol_type, snapshot.protocol_name, snapshot.leader)
        self.state_since_ms = snapshot.state_since_ms

    def expects(self, topic: str) -> bool:
        """Whether a consumer of this group reads the topic, or may do so."""
        if self.state in (State.EMPTY, State.DEAD):
            return False
        return self.subscribed is None or topic in self.subscribed

    def delete(self) -> None:
        """Delete the group; waiting requests get the error that has members look up the coordinator again."""
        self.resign(Code.COORDINATOR_NOT_AVAILABLE)
        self._move(Event.DELETED)

    def resign(self, error_code: int = Code.NOT_COORDINATOR) -> None:
        """Stop all timers and answer all who wait: another node coordinates this group from now on."""
        for timer in (self._join_timer, self._sync_timer, *self._pending.values()):
            if timer is not None:
                timer.cancel()
        self._join_timer = self._sync_timer = None
        self._pending.clear()
        for member in self.roster:
            member.stop_timers()
            member.answer_join(JoinResult(error_code, member.member_id))
            member.answer_sync(SyncResult(error_code))

    def resume(self) -> None:
        """Continue at the new coordinator: as after a load from the log, sessions start again."""
        for member in self.roster:
            if member.is_new:
                self.roster.remove(member.member_id)  # it never learned its id
            else:
                self._watch(member)
        if self.state is State.PREPARING:
            self._is_initial = False
            self._join_timer = self._timers.call_later(self.roster.rebalance_timeout(), self._complete_join)
        elif self.state is State.COMPLETING:
            self._rebalance()
