"""One member of a classic group: joining, staying, leaving. What the group is about is for the subclass to say.

One task (`_stay_member`) joins whenever that is needed and then sleeps; `HeartbeatTask` says that the
member lives; both run on the client's loop, never in the application's thread. What the application
has to do itself (listeners) waits in `rendezvous` until its thread comes by.

Errors that pass are retried here, for ever and with backoff, and fields in the log and in `waiting_for`. An
error that does not pass stops the member; the application sees it in `take_error`, and its next poll
tries again.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from kafka._core.client import core_of
from kafka._runtime.application import complete
from kafka._runtime.tasks import Event, Task
from kafka._text import printable
from kafka.config import Config, defaults, resolve
from kafka.coordinator import join_group
from kafka.coordinator.heartbeat import Heartbeat, HeartbeatTask
from kafka.coordinator.lookup import COMMITS, JOINS, CoordinatorFinder
from kafka.coordinator.metrics import GroupCoordinatorMetrics
from kafka.coordinator.rebalance import Rendezvous
from kafka.coordinator.states import NO_GENERATION, Generation, MemberEvent, MemberState, next_state
from kafka.errors import (
    ClientClosedError,
    CoordinatorNotAvailableError,
    FencedInstanceIdError,
    IllegalGenerationError,
    InvalidCoordinatorError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    RebalanceInProgressError,
    RejoinNeededError,
    RequestTimedOutError,
    UnknownMemberIdError,
)

if TYPE_CHECKING:
    from kafka._core.client import Client
    from kafka._runtime.application import Application
    from kafka._runtime.timers import Timer
    from kafka.client_async import KafkaClient
    from kafka.metrics import Metrics

__all__ = ["BaseCoordinator", "GroupCoordinatorMetrics", "HeartbeatTask"]

log = logging.getLogger(__name__)

T = TypeVar("T")

# How much longer than the group may take a join waits, in seconds: the coordinator answers late, not us early.
_JOIN_GRACE: Final = 5.0
# The longest session that brokers before this release allow unless they are configured, in seconds.
_LONG_SESSIONS_SINCE: Final = (0, 10, 1)
# How long the application gets to show that it is waiting in poll() rather than stuck, in seconds.
_LIVENESS_GRACE: Final = 1.0


class BaseCoordinator(CoordinatorFinder):
    """A member of a group; derive from it and say what the group is about.

    A subclass gives `protocol_type`, `group_protocols`, `_perform_assignment` and `_on_join_complete`; the
    underscored ones may be coroutines. Keyword arguments are the options in ``DEFAULT_CONFIG``.

    They are called by whoever turns the client's loop: with a client made by hand the thread that calls
    `ensure_active_group` or the client's ``poll``. Heartbeats rest meanwhile, so what takes long, or waits for the
    network, is a coroutine.
    """

    DEFAULT_CONFIG: ClassVar[dict[str, Any]] = defaults("coordinator")
    DEFAULT_SESSION_TIMEOUT_MS_PRE_KIP_735: ClassVar[int] = 30_000
    """The longest session that brokers before 0.10.1 allow: theirs unless session_timeout_ms was given."""
    _KIND: ClassVar[str] = "coordinator"

    def __init__(
        self,
        client: Client | KafkaClient,
        metrics: Metrics | None = None,
        *,
        config: Config | None = None,
        application: Application | None = None,
        **configs: Any,
    ) -> None:
        self.config = config if config is not None else resolve(self._KIND, configs)
        client = core_of(client)
        super().__init__(client, self.config, application)
        self.group_instance_id: str | None = self.config["group_instance_id"]
        self.heartbeat = Heartbeat(config=self.config.subset("heartbeat"), clock=client.environment.clock)
        self.heartbeat_task = HeartbeatTask(self)
        self.sensors = GroupCoordinatorMetrics(self.heartbeat, metrics, self.config["metric_group_prefix"])
        self.rendezvous = Rendezvous()
        self.rendezvous.on_waiting = self._notify_application
        self.generation = NO_GENERATION
        self.last_membership = NO_GENERATION
        """The last generation that it was a member of and is not any more."""
        self.state = MemberState.UNJOINED
        self.due = True
        """Whether the application has something to do here. A plain attribute: each poll() reads it."""
        self.on_due: Callable[[], object] = lambda: None
        """Called, from any thread, when `due` has become true."""
        self._error: KafkaError | None = None
        self._main: Task[object] | None = None
        self.rejoin = Event()
        self._rejoin_reason = ""
        self._progress = Event()
        self._changes = 0
        self._poll_timer: Timer | None = None
        self._liveness_asked = False

    # What the subclass says…

    def protocol_type(self) -> str:
        """The name of what the group is about, such as ``"consumer"``."""
        raise NotImplementedError

    def group_protocols(self) -> list[tuple[str, Any]]:
        """Return ``[(name, metadata), …]`` of what this member can do, the preferred one first.

        Metadata is bytes or has ``encode()``. The coordinator picks a protocol that all members have.
        """
        raise NotImplementedError

    def _on_join_prepare(self, generation: int, member_id: str) -> Any:
        """Give up what must not be held while joining."""

    def _perform_assignment(self, leader_id: str, protocol: str, members: Sequence[Any]) -> Any:
        """As leader: return ``{member_id: bytes}`` from the members (member_id, metadata, group_instance_id)."""
        raise NotImplementedError

    def _on_join_complete(self, generation: int, member_id: str, protocol: str, assignment: bytes) -> Any:
        """Take what the leader assigned to this member."""
        raise NotImplementedError

    def _on_generation_lost(self) -> None:
        """The group goes on without this member: whatever it held is another's."""

    def need_rejoin(self) -> bool:
        """Whether the group is to be joined, or joined again."""
        return self.rejoin.is_set() or not self.generation.is_member

    @property
    def in_round(self) -> bool:
        """Whether the coordinator has a join or sync of this member to answer."""
        return self.state in {MemberState.JOINING, MemberState.SYNCING}

    @property
    def _who(self) -> str:
        """The member, for a message."""
        member_id = self.generation.member_id
        return f"member {printable(member_id)}" if member_id else "this member"

    # Being a member: from any thread…

    def start(self) -> None:
        """Become a member as soon as possible, and stay one."""
        self.loop.call_soon(self._start)

    def ensure_active_group(self, timeout_ms: float | None = None) -> bool:
        """Wait until this is a member with an assignment; whether it is, by the time given.

        What the application has to do for it is done in the calling thread.
        """
        return complete(self._become_active(None if timeout_ms is None else self.loop.time() + timeout_ms / 1000))

    async def _become_active(self, deadline: float | None) -> bool:
        self.start()
        while True:
            seen = self._changes
            self.polled()
            await self.serve_calls()
            if self.state is MemberState.STABLE and not self.rejoin.is_set():
                return True
            try:
                await self.application.run(self._something_changes(seen), deadline, "joining the group")
            except KafkaTimeoutError:
                return False

    def request_rejoin(self, reason: str) -> None:
        """Join again; the coordinator is told why (KIP-800)."""
        self.loop.call_soon(self._request_rejoin, reason)

    def polled(self) -> None:
        """Record that the application called poll()."""
        self.heartbeat.poll()
        # With each poll: a set would ask for the members' hash, which is Python code before 3.12.
        if self.state is MemberState.LEFT or self.state is MemberState.FAILED:
            self.loop.call_soon(self._polled_again)

    async def serve_calls(self) -> None:
        """Make the calls that wait for the application. Raises what a listener raised, and errors that do not pass."""
        self.heartbeat.poll()
        self._liveness_asked = False
        error = self.take_error()
        if error is not None:
            raise error
        while (call := self.rendezvous.take()) is not None:
            await call.run(self.application)

    def take_error(self) -> KafkaError | None:
        """Return an error that the application has to see, once."""
        error, self._error = self._error, None
        return error

    async def _something_changes(self, seen: int) -> None:
        while self._changes == seen and not self.rendezvous:
            self._progress.clear()
            await self._progress.wait()

    def _changed(self) -> None:
        self._changes += 1
        self._progress.set()

    def _notify_application(self) -> None:
        self._changed()
        self._set_due()

    def _set_due(self) -> None:
        self.due = True
        self.on_due()

    # …and on the loop.

    def _start(self) -> None:
        if self._main is None and self.state is not MemberState.CLOSED:
            self._request_rejoin("the member starts")
            self._main = self.loop.spawn_logged(self._stay_member(), "stay member")
            self._arm_poll_timer()

    def move(self, event: MemberEvent) -> None:
        """Go where an event leads."""
        before, self.state = self.state, next_state(self.state, event)
        log.debug("Group %s: %s -> %s (%s)", self.group_id, before.name, self.state.name, event.value)
        self._changed()

    def _request_rejoin(self, reason: str) -> None:
        if not self.rejoin.is_set():
            log.info("Group %s: %s joins the group: %s", self.group_id, self._who, reason)
            self._rejoin_reason = reason
        self.rejoin.set()

    async def _stay_member(self) -> None:
        failures = 0
        while True:
            await self.rejoin.wait()
            try:
                await self._join_group()
            except KafkaError as error:
                failures = await self._recover(error, failures)
            else:
                failures = 0
                self.waiting_for = None

    async def _join_group(self) -> None:
        """Go through one round: prepare, join, sync, take the assignment."""
        await self.find_coordinator(joining=True)
        self._fit_session()
        self.rejoin.clear()
        reason = self._rejoin_reason
        self.move(MemberEvent.START)
        await _result(self._on_join_prepare(self.generation.generation_id, self.generation.member_id))
        protocols = await self._offer()
        self.move(MemberEvent.PREPARED)
        self.heartbeat_task.disable()
        began = self.loop.time()
        joined = await self._send_join(reason, protocols)
        self.sensors.joined(self.loop.time() - began)
        self.generation = Generation(joined.generation_id, joined.member_id, joined.protocol_name)
        self.move(MemberEvent.JOINED)
        self.heartbeat_task.reset()
        assignment = await self._send_sync(joined)
        self.move(MemberEvent.SYNCED)
        generation = self.generation
        await _result(
            self._on_join_complete(
                generation.generation_id, generation.member_id, str(generation.protocol), bytes(assignment)
            )
        )
        self.move(MemberEvent.COMPLETED if self.generation.is_member else MemberEvent.RETRY)

    def _fit_session(self) -> None:
        """Stay below what brokers before 0.10.1 allow, unless the application decided otherwise."""
        versions = self.client.versions
        if versions is None or versions.release >= _LONG_SESSIONS_SINCE or "session_timeout_ms" in self.config.given:
            return
        self.heartbeat.timeout = min(self.heartbeat.timeout, self.DEFAULT_SESSION_TIMEOUT_MS_PRE_KIP_735 / 1000)

    async def _offer(self) -> Sequence[tuple[str, Any]]:
        return self.group_protocols()

    async def _send_join(self, reason: str, protocols: Sequence[tuple[str, Any]]) -> Any:
        timeout = max(self.heartbeat.poll_interval + _JOIN_GRACE, self.client.settings.request_timeout)
        while True:
            response = await self.ask(
                join_group.join_request(
                    self.group_id,
                    self.generation.member_id,
                    self.group_instance_id,
                    session_timeout_ms=int(self.heartbeat.timeout * 1000),
                    rebalance_timeout_ms=int(self.heartbeat.poll_interval * 1000),
                    protocol_type=self.protocol_type(),
                    protocols=protocols,
                    reason=reason,
                ),
                JOINS,
                timeout,
            )
            if not join_group.is_member_id_required(response):
                join_group.check_joined(response, self.protocol_type())
                return response
            # KIP-394: the coordinator names the member before it lets it in.
            self.generation = Generation(-1, response.member_id, None)

    async def _send_sync(self, joined: Any) -> bytes:
        assignments: dict[str, bytes] = {}
        if joined.leader == joined.member_id and not joined.skip_assignment:
            found = await _result(self._perform_assignment(joined.leader, joined.protocol_name, joined.members))
            assignments = {member: join_group.as_bytes(part) for member, part in found.items()}
        elif joined.leader == joined.member_id:
            # KIP-814: a static leader came back and nothing changed; it only has to watch the topics again.
            await _result(self._on_assignment_skipped(joined.protocol_name, joined.members))
        began = self.loop.time()
        request = join_group.sync_request(
            self.group_id, self.generation, self.group_instance_id, self.protocol_type(), assignments
        )
        response = await self.ask(request, JOINS, self.heartbeat.poll_interval + _JOIN_GRACE)
        self.sensors.synced(self.loop.time() - began)
        join_group.check_synced(response, self.protocol_type(), self.generation)
        return bytes(response.assignment)

    def _on_assignment_skipped(self, protocol: str, members: Sequence[Any]) -> Any:
        """As leader that has nothing to assign because nothing changed."""

    # When something goes wrong…

    async def _recover(self, error: KafkaError, failures: int) -> int:
        """Get ready for another attempt, or stop where none can help; how many failed in a row by now."""
        if isinstance(error, UnknownMemberIdError):
            self.lose_generation(keep_id=False)
        elif isinstance(error, IllegalGenerationError):
            self.lose_generation(keep_id=True)
        elif not isinstance(error, RejoinNeededError) and not error.retriable:
            self.fail_with(error)
            return 0
        if isinstance(error, _GONE):
            self.coordinator_dead(error)
        self.move(MemberEvent.RETRY)
        self._request_rejoin(f"the last attempt failed with {type(error).__name__}")
        if isinstance(error, RejoinNeededError) and failures == 0:
            log.info("Group %s: %s joins the group again: %s", self.group_id, self._who, error)
            return 1
        await self.back_off(error, failures)
        return failures + 1

    def heartbeat_answered(self, seconds: float) -> None:
        """Record how long the coordinator took to answer a heartbeat."""
        self.sensors.heartbeat(seconds)

    def heartbeat_refused(self, error: KafkaError, generation: Generation) -> None:
        """React to what the coordinator answered to a heartbeat of `generation`."""
        if generation != self.generation:
            return  # the answer is to who this member was before
        if self.in_round and isinstance(error, RejoinNeededError):
            return  # it was sent before the round, on another connection; the answer to the join says more
        if isinstance(error, RebalanceInProgressError):
            if self.state is MemberState.STABLE:
                self._request_rejoin("the group rebalances")
        elif isinstance(error, _GONE):
            self.coordinator_dead(error)
        elif isinstance(error, (UnknownMemberIdError, IllegalGenerationError)):
            log.warning("Group %s: the coordinator removed %s from the group: %s", self.group_id, self._who, error)
            self.lose_generation(keep_id=isinstance(error, IllegalGenerationError))
            if self.state is MemberState.STABLE:
                self.move(MemberEvent.RETRY)
            self._request_rejoin("the coordinator had removed this member")
        elif not error.retriable:
            self._stop_main()
            self.fail_with(error)

    def lose_generation(self, *, keep_id: bool) -> None:
        """Be a member no more; what it held is lost."""
        was_member = self.generation.is_member
        if was_member:
            self.last_membership = self.generation
        self.generation = Generation(-1, self.generation.member_id if keep_id else "", None)
        self.heartbeat_task.disable()
        if was_member:
            self._on_generation_lost()

    def fail_with(self, error: KafkaError) -> None:
        """Stop until the application has seen the error and calls poll() again."""
        log.error(
            "Group %s: %s cannot be a member. The next poll() raises this, the one after it tries again: %s",
            self.group_id,
            self._who,
            error,
        )
        self.lose_generation(keep_id=not isinstance(error, FencedInstanceIdError))
        self.move(MemberEvent.FATAL)
        self.rejoin.clear()
        self.waiting_for = str(error)
        self._error = error
        self._notify_application()

    def _polled_again(self) -> None:
        if self.state in {MemberState.LEFT, MemberState.FAILED} and self._error is None:
            self.move(MemberEvent.POLLED)
            self._request_rejoin("poll() was called again")
            if self._main is None or self._main.is_done:
                self._main = self.loop.spawn_logged(self._stay_member(), "stay member")
            self._arm_poll_timer()

    def _stop_main(self) -> None:
        if self._main is not None:
            self._main.cancel()
            self._main = None

    # The application's time…

    def _arm_poll_timer(self) -> None:
        if self._poll_timer is None:
            self._poll_timer = self.loop.call_later(max(self.heartbeat.poll_left(), 0.001), self._check_poll)

    def _check_poll(self) -> None:
        self._poll_timer = None
        if self.state in {MemberState.LEFT, MemberState.FAILED, MemberState.CLOSED}:
            return
        if not self.heartbeat.poll_timeout_expired():
            self._liveness_asked = False
            self._arm_poll_timer()
        elif not self._liveness_asked:
            # A poll() that waits for records for longer than the interval is not stuck: it serves when notified.
            self._liveness_asked = True
            self._notify_application()
            grace = min(_LIVENESS_GRACE, self.heartbeat.poll_interval / 10)
            self._poll_timer = self.loop.call_later(grace, self._check_poll)
        else:
            self._poll_timed_out()

    def _poll_timed_out(self) -> None:
        self._liveness_asked = False
        why = f"poll() was not called for {self.heartbeat.poll_interval:.0f} s (max_poll_interval_ms)"
        log.warning(
            "Group %s: %s leaves the group because %s. Return fewer records from each poll() (max_poll_records), or "
            "raise max_poll_interval_ms",
            self.group_id,
            self._who,
            why,
        )
        self._stop_main()
        self.rejoin.clear()
        leaving = self.generation
        self.lose_generation(keep_id=self.group_instance_id is not None)
        self.move(MemberEvent.POLL_TIMEOUT)
        self.waiting_for = f"the application: {why}"
        self.loop.spawn_logged(self._send_leave(leaving, why), "leave the group")

    # Leaving…

    async def leave_group(self, reason: str, deadline: float | None = None) -> None:
        """Leave the group now; joining again takes `start`."""
        self._stop_main()
        self.rejoin.clear()
        leaving = self.generation
        self.heartbeat_task.disable()
        if leaving.is_member:
            self.last_membership = leaving
        self.generation = NO_GENERATION
        if self.state is not MemberState.CLOSED:
            self.move(MemberEvent.LEAVE)
        await self._send_leave(leaving, reason, deadline)

    async def _send_leave(self, leaving: Generation, reason: str, deadline: float | None = None) -> None:
        # A static member ownership_ids: that its place is kept while it restarts is what it is static for (KIP-345).
        if not leaving.member_id or self.group_instance_id is not None or self.coordinator_id is None:
            return
        now = self.loop.time()
        timeout = self.client.settings.request_timeout if deadline is None else max(0.0, deadline - now)
        try:
            node_id = self.coordinator_id
            link = self.client.link(node_id, COMMITS)
            await self.client.open(link, now + timeout)
            assert link.versions is not None
            request = join_group.leave_request(self.group_id, leaving.member_id, reason, link.versions)
            response = await self.client.submit(node_id, request, use=COMMITS, timeout=timeout)
            join_group.check_left(response)
        except KafkaError as error:
            log.info(NOT_CONFIRMED, self.group_id, printable(leaving.member_id), error)

    def close(self, timeout_ms: float | None = None) -> None:
        """Leave the group and stop; may be called twice."""
        if self.state is MemberState.CLOSED or self.loop.closed:
            return
        deadline = None if timeout_ms is None else self.loop.time() + timeout_ms / 1000
        try:
            leaving = self._close("the member is closed", deadline)
            complete(self.application.run(leaving, deadline, "leaving the group"))
        except (KafkaTimeoutError, ClientClosedError) as error:
            log.info("Group %s: closed without leaving the group: %s", self.group_id, error)
        self.state = MemberState.CLOSED

    async def _close(self, reason: str, deadline: float | None) -> None:
        await self.leave_group(reason, deadline)
        self.move(MemberEvent.CLOSE)
        if self._poll_timer is not None:
            self._poll_timer.cancel()
            self._poll_timer = None


NOT_CONFIRMED: Final = (
    "Group %s: the coordinator did not confirm that member %s left. If it did not receive that, the partitions go to "
    "other members when the session times out: %s"
)
_GONE: Final = (
    InvalidCoordinatorError,
    CoordinatorNotAvailableError,
    KafkaConnectionError,
    KafkaTimeoutError,
    RequestTimedOutError,
)


async def _result(value: Any) -> Any:
    """Return a hook's result, awaited if it is a coroutine."""
    return await value if isinstance(value, Awaitable) else value
