"""One member of a classic group, of any protocol type: joining, staying, leaving.

One task (`_stay_member`) joins whenever that is needed and then sleeps; `HeartbeatTask` sends heartbeats; `PollTimer`
notices an application that is stuck; all run on the client's loop. Calls that the application must make (listeners)
wait in `rendezvous` until its next poll().

Retriable errors are retried here, without end and with backoff; the log and `waiting_for` name them. Another error
stops the member: the next poll() raises it (`take_error`), and the poll() after that tries again.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from kafka._core.client import core_of
from kafka._historic import historic_names
from kafka._runtime.application import complete
from kafka._runtime.tasks import Event, Task, wait_any
from kafka._text import printable
from kafka.config import Config, part_of_defaults, resolve_part
from kafka.coordinator import join_group
from kafka.coordinator.heartbeat import Heartbeat, HeartbeatTask, PollTimer
from kafka.coordinator.lookup import COMMITS, COORDINATOR_LOST, COORDINATOR_MOVED, JOINS, CoordinatorFinder
from kafka.coordinator.metrics import GroupCoordinatorMetrics
from kafka.coordinator.rebalance import Rendezvous
from kafka.coordinator.states import NO_GENERATION, Generation, MemberEvent, MemberState, next_state
from kafka.errors import (
    ClientClosedError,
    FencedInstanceIdError,
    IllegalGenerationError,
    KafkaError,
    KafkaTimeoutError,
    RebalanceInProgressError,
    RejoinNeededError,
    UnknownMemberIdError,
)

if TYPE_CHECKING:
    from kafka._core.client import Client
    from kafka._runtime.application import Application
    from kafka.client_async import KafkaClient
    from kafka.metrics import Metrics
    from kafka.protocol.group import JoinGroupResponse

__all__ = ["BaseCoordinator", "GroupCoordinatorMetrics", "HeartbeatTask"]

log = logging.getLogger(__name__)

T = TypeVar("T")

# A join request waits this much longer than the rebalance timeout, in seconds: the coordinator answers at its end.
_JOIN_GRACE: Final = 5.0
# The coordinator answers a first join at once, with the member's id (KIP-394). Leaving waits for that, in seconds.
_ID_PATIENCE: Final = 1.0
# Since this release brokers allow sessions of more than 30 seconds without configuration.
_LONG_SESSIONS_SINCE: Final = (0, 10, 1)


@historic_names("kafka.legacy.private_names:CoordinatorNames")
class BaseCoordinator(CoordinatorFinder):
    """A member of a group; a subclass defines the protocol that its members use.

    A subclass overrides `protocol_type`, `group_protocols`, `_perform_assignment` and `_on_join_complete`; the
    underscored ones may be coroutines. Keyword arguments are the options in ``DEFAULT_CONFIG``.

    They are called in the thread that turns the client's loop: with a client made by hand the one that calls
    `ensure_active_group` or the client's ``poll``. No heartbeats are sent meanwhile, so a method that takes long, or
    waits for the network, must be a coroutine.
    """

    DEFAULT_CONFIG: ClassVar[dict[str, Any]] = part_of_defaults(
        "consumer",
        "group_instance_id",
        "heartbeat_interval_ms",
        "max_poll_interval_ms",
        "request_timeout_ms",
        "retry_backoff_ms",
        "retry_backoff_max_ms",
        "api_version",
        group_id="kafka-python-default-group",
        metric_group_prefix="",
        session_timeout_ms=30000,
    )
    DEFAULT_SESSION_TIMEOUT_MS_PRE_KIP_735: ClassVar[int] = 30_000
    """The longest session that brokers before 0.10.1 allow; the default with them."""

    def __init_subclass__(cls, **kwargs: object) -> None:
        from kafka.legacy.private_names import warn_of_overrides

        super().__init_subclass__(**kwargs)
        warn_of_overrides(cls)

    def __init__(
        self,
        client: Client | KafkaClient,
        metrics: Metrics | None = None,
        *,
        config: Config | None = None,
        application: Application | None = None,
        **configs: Any,
    ) -> None:
        if config is None:
            config = resolve_part(type(self).__name__, "consumer", configs, self.DEFAULT_CONFIG)
        self.config = config
        client = core_of(client)
        super().__init__(client, self.config, application)
        self.group_instance_id: str | None = self.config["group_instance_id"]
        self.heartbeat = Heartbeat(
            heartbeat_interval_ms=config["heartbeat_interval_ms"],
            session_timeout_ms=config["session_timeout_ms"],
            max_poll_interval_ms=config["max_poll_interval_ms"],
            clock=client.environment.clock,
        )
        self.heartbeat_task = HeartbeatTask(self)
        self.sensors = GroupCoordinatorMetrics(self.heartbeat, metrics, self.config["metric_group_prefix"])
        self.rendezvous = Rendezvous()
        self.rendezvous.on_waiting = self._notify_application
        self.generation = NO_GENERATION
        self.last_membership = NO_GENERATION
        """The generation of its last membership, after it has ended."""
        self.left_because = ""
        """Why its last membership has ended, in words."""
        self.state = MemberState.UNJOINED
        self._rebalance_began = 0.0
        self.due = True
        """Whether the application has something to do here. A plain attribute: each poll() reads it."""
        self.on_due: Callable[[], object] = lambda: None
        """Called, from any thread, when `due` has become true."""
        self._error: KafkaError | None = None
        self._main: Task[object] | None = None
        self._asking: Task[JoinGroupResponse] | None = None
        self.rejoin = Event()
        self._rejoin_reason = ""
        self._progress = Event()
        self._changes = 0
        self.poll_timer = PollTimer(
            self.loop,
            self.heartbeat,
            self._is_active,
            self._notify_application,
            self._poll_timed_out,
            self._last_taken,
        )
        self.is_polling: Callable[[], bool] = lambda: True
        """Whether the application is inside poll() when it serves; in asyncio another task serves."""
        self.rebalance_timeout = self.heartbeat.poll_interval
        """Seconds that a member may take to give its partitions up and to join again."""

    # For subclasses to implement…

    def protocol_type(self) -> str:
        """The protocol type of the group, such as ``"consumer"``."""
        raise NotImplementedError

    def group_protocols(self) -> Sequence[tuple[str, object]]:
        """Return ``[(name, metadata), …]`` of the protocols that this member supports, the preferred one first.

        Metadata is bytes or has ``encode()``. The coordinator picks a protocol that all members have.
        """
        raise NotImplementedError

    def _on_join_prepare(self, generation: int, member_id: str) -> object:
        """Give up partitions that must not be owned while the member joins."""

    def _perform_assignment(
        self, leader_id: str, protocol: str, members: Sequence[JoinGroupResponse.JoinGroupResponseMember]
    ) -> object:
        """As leader: return ``{member_id: bytes}`` from the members (member_id, metadata, group_instance_id)."""
        raise NotImplementedError

    def _on_join_complete(self, generation: int, member_id: str, protocol: str, assignment: bytes) -> object:
        """Take the assignment of this member."""
        raise NotImplementedError

    def _on_generation_lost(self) -> None:
        """The group continues without this member: its partitions belong to other members."""

    def _last_taken(self) -> object:
        """Identify the record that the application took last without a call of poll(); None if there is none."""
        return None

    def need_rejoin(self) -> bool:
        """Whether the member must join the group, or join it again."""
        return self.rejoin.is_set() or not self.generation.is_member

    @property
    def in_round(self) -> bool:
        """Whether a join or sync request of this member is under way."""
        return self.state in {MemberState.JOINING, MemberState.SYNCING}

    @property
    def _who(self) -> str:
        """The member, for a message."""
        member_id = self.generation.member_id
        return f"member {printable(member_id)}" if member_id else "this member"

    # Membership: on any thread…

    def start(self) -> None:
        """Become a member as soon as possible, and stay one."""
        self.loop.call_soon(self._start)

    def ensure_active_group(self, timeout_ms: float | None = None) -> bool:
        """Wait until this is a member with an assignment; False after the timeout.

        Calls that wait for the application are made in the calling thread.
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
        """Join again; the request has the reason (KIP-800)."""
        self.loop.call_soon(self._request_rejoin, reason)

    def polled(self) -> None:
        """Record that the application called poll()."""
        self.heartbeat.poll()
        # In each poll, so no set: the hash of an enum's member is Python code before 3.12.
        if self.state is MemberState.LEFT or self.state is MemberState.FAILED:
            self.loop.call_soon(self._polled_again)

    async def serve_calls(self) -> None:
        """Make the calls that wait for the application. Raises errors of listeners, and fatal ones."""
        if self.is_polling():
            self.heartbeat.poll()
            self.poll_timer.notified = False
        error = self.take_error()
        if error is not None:
            raise error
        while (call := self.rendezvous.take()) is not None:
            await call.run(self.application, self.loop)

    def take_error(self) -> KafkaError | None:
        """Return an error for the application to raise, once."""
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

    # Membership: on the loop…

    def _start(self) -> None:
        if self._main is None and self.state is not MemberState.CLOSED:
            self._request_rejoin("startup")
            self.heartbeat.poll()  # in asyncio it starts without a call of poll()
            self._main = self.loop.spawn_logged(self._stay_member(), "stay member")
            self.poll_timer.arm()

    def move(self, event: MemberEvent) -> None:
        """Change the state by an event."""
        before, self.state = self.state, next_state(self.state, event)
        if event is MemberEvent.START:
            self._rebalance_began = self.loop.time()
        elif event is MemberEvent.COMPLETED and self.client.series is not None:
            count, labels = self.client.series.count, (str(self.group_id),)
            count("kafka_consumer_rebalances_total", labels)
            count("kafka_consumer_rebalance_seconds_total", labels, self.loop.time() - self._rebalance_began)
        elif event is MemberEvent.SYNCED and before is MemberState.STABLE:
            self._rebalance_began = self.loop.time()  # KIP-848: the assignment came with a heartbeat
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
        """Cut the session timeout to the limit of brokers before 0.10.1, unless the application set it."""
        versions = self.client.versions
        if versions is None or versions.release >= _LONG_SESSIONS_SINCE or "session_timeout_ms" in self.config.given:
            return
        self.heartbeat.timeout = min(self.heartbeat.timeout, self.DEFAULT_SESSION_TIMEOUT_MS_PRE_KIP_735 / 1000)

    async def _offer(self) -> Sequence[tuple[str, object]]:
        return self.group_protocols()

    async def _send_join(self, reason: str, protocols: Sequence[tuple[str, object]]) -> JoinGroupResponse:
        timeout = max(self.heartbeat.poll_interval + _JOIN_GRACE, self.client.settings.request_timeout)
        while True:
            request = join_group.join_request(
                self.group_id,
                self.generation.member_id,
                self.group_instance_id,
                session_timeout_ms=int(self.heartbeat.timeout * 1000),
                rebalance_timeout_ms=int(self.rebalance_timeout * 1000),
                protocol_type=self.protocol_type(),
                protocols=protocols,
                reason=reason,
            )
            # A separate task: if this one is cancelled, `leave_group` needs the id that the coordinator assigns.
            asking = self._asking = self.loop.spawn(self.ask(request, JOINS, timeout), "join")
            response = await asking
            if not join_group.is_member_id_required(response):
                join_group.check_joined(response, self.protocol_type())
                return response
            # KIP-394: the coordinator assigns the member id with the first response, and the member joins with it.
            self.generation = Generation(-1, response.member_id, None)

    async def _send_sync(self, joined: Any) -> bytes:
        assignments: dict[str, bytes] = {}
        if joined.leader == joined.member_id and not joined.skip_assignment:
            found = await _result(self._perform_assignment(joined.leader, joined.protocol_name, joined.members))
            assignments = {member: join_group.as_bytes(part) for member, part in found.items()}
        elif joined.leader == joined.member_id:
            # KIP-814: a static leader came back and nothing changed; it only must watch the topics again.
            await _result(self._on_assignment_skipped(joined.protocol_name, joined.members))
        began = self.loop.time()
        request = join_group.sync_request(
            self.group_id, self.generation, self.group_instance_id, self.protocol_type(), assignments
        )
        response = await self.ask(request, JOINS, self.heartbeat.poll_interval + _JOIN_GRACE)
        self.sensors.synced(self.loop.time() - began)
        join_group.check_synced(response, self.protocol_type(), self.generation)
        return bytes(response.assignment)

    def _on_assignment_skipped(
        self, protocol: str, members: Sequence[JoinGroupResponse.JoinGroupResponseMember]
    ) -> object:
        """Called on a leader that need not assign because nothing changed."""

    # Errors…

    async def _recover(self, error: KafkaError, failures: int) -> int:
        """Prepare another attempt, or stop after a fatal error; return the number of failures in a row."""
        if isinstance(error, UnknownMemberIdError):
            self.lose_generation(keep_id=False, why=f"{REMOVED}: {error}")
        elif isinstance(error, IllegalGenerationError):
            self.lose_generation(keep_id=True, why=f"{REMOVED}: {error}")
        elif not isinstance(error, RejoinNeededError) and not error.retriable:
            self.fail_with(error)
            return 0
        if isinstance(error, COORDINATOR_LOST):
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
        """React to the error code of a heartbeat response of `generation`."""
        if generation != self.generation:
            return  # the response is to an earlier generation
        if self.in_round and isinstance(error, RejoinNeededError):
            return  # it was sent before the round; the response to the join decides
        if isinstance(error, RebalanceInProgressError):
            if self.state is MemberState.STABLE:
                self._request_rejoin("the group rebalances")
        elif isinstance(error, COORDINATOR_LOST):
            self.coordinator_dead(error)
        elif isinstance(error, (UnknownMemberIdError, IllegalGenerationError)):
            log.warning("Group %s: the coordinator removed %s from the group: %s", self.group_id, self._who, error)
            self.lose_generation(keep_id=isinstance(error, IllegalGenerationError), why=f"{REMOVED}: {error}")
            if self.state is MemberState.STABLE:
                self.move(MemberEvent.RETRY)
            self._request_rejoin("the coordinator removed it")
        elif not error.retriable:
            self._stop_main()
            self.fail_with(error)

    def lose_generation(self, *, keep_id: bool, why: str) -> None:
        """End the membership: the owned partitions are lost."""
        self.left_because = why
        was_member = self.generation.is_member
        if was_member:
            self.last_membership = self.generation
        self.generation = Generation(-1, self.generation.member_id if keep_id else "", None)
        self.heartbeat_task.disable()
        if was_member:
            self._on_generation_lost()

    def fail_with(self, error: KafkaError) -> None:
        """Stop until poll() has raised the error and is called again."""
        log.error(
            "Group %s: %s cannot be a member. The next poll() raises this, the one after it tries again: %s",
            self.group_id,
            self._who,
            error,
        )
        self.lose_generation(keep_id=not isinstance(error, FencedInstanceIdError), why=f"{REMOVED}: {error}")
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
            self.poll_timer.arm()

    def _stop_main(self) -> None:
        if self._main is not None:
            self._main.cancel()
            self._main = None
        if self._asking is not None and self.generation.member_id:
            self._asking.cancel()
            self._asking = None

    def _is_active(self) -> bool:
        return self.state not in {MemberState.LEFT, MemberState.FAILED, MemberState.CLOSED}

    def _poll_timed_out(self) -> None:
        why = f"poll() was not called for {self.heartbeat.poll_interval:g} s (max_poll_interval_ms)"
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
        self.lose_generation(keep_id=self.group_instance_id is not None, why=why)
        self.move(MemberEvent.POLL_TIMEOUT)
        self.waiting_for = f"the application: {why}"
        self.loop.spawn_logged(self._send_leave(leaving, why), "leave the group")
        self._notify_application()  # a call that waits was late, as on a machine that was suspended: it joins again

    # Leaving…

    async def leave_group(self, reason: str, deadline: float | None = None) -> None:
        """Leave the group now; `start` joins it again."""
        self._stop_main()
        self.poll_timer.cancel()
        self.rejoin.clear()
        leaving = self.generation
        self.heartbeat_task.disable()
        if leaving.is_member:
            self.last_membership = leaving
        self.generation = NO_GENERATION
        if self.state is not MemberState.CLOSED:
            self.move(MemberEvent.LEAVE)
        if not leaving.member_id:
            leaving = await self._assigned_id(deadline)
        await self._send_leave(leaving, reason, deadline)

    async def _assigned_id(self, deadline: float | None) -> Generation:
        """Return the identity that the response to the first join has, if that is under way: the group waits for it."""
        asking, self._asking = self._asking, None
        if asking is None or asking.is_done:
            return NO_GENERATION
        patience = self.loop.time() + _ID_PATIENCE
        try:
            if await wait_any(self.loop, asking, deadline=patience if deadline is None else min(patience, deadline)):
                return Generation(-1, asking.result().member_id, None)
        except KafkaError:
            pass  # the coordinator does not know this member
        finally:
            asking.cancel()
        return NO_GENERATION

    def maybe_leave_group(self, timeout_ms: float | None = None) -> None:
        """Leave the group until the next poll()."""
        deadline = None if timeout_ms is None else self.loop.time() + timeout_ms / 1000
        leaving = self.leave_group("the application called maybe_leave_group()", deadline)
        complete(self.application.run(leaving, deadline, "leaving the group"))

    async def _send_leave(self, leaving: Generation, reason: str, deadline: float | None = None) -> None:
        # A static member does not leave: the coordinator keeps its place while it restarts (KIP-345).
        if not leaving.member_id or self.group_instance_id is not None:
            return
        for is_last in (False, True):
            now = self.loop.time()
            timeout = self.client.settings.request_timeout if deadline is None else max(0.0, deadline - now)
            try:
                node_id = await self.find_coordinator_to_leave(deadline)
                link = self.client.link(node_id, COMMITS)
                await self.client.open(link, now + timeout)
                assert link.versions is not None
                request = join_group.leave_request(self.group_id, leaving.member_id, reason, link.versions)
                response = await self.client.submit(node_id, request, use=COMMITS, deadline=now + timeout)
                join_group.check_left(response)
            except KafkaError as error:
                if isinstance(error, COORDINATOR_MOVED) and not is_last:
                    self.coordinator_dead(error)
                    continue  # perhaps another request was not answered; the group would wait for the session's end
                log.info(NOT_CONFIRMED, self.group_id, printable(leaving.member_id), error)
            return

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


REMOVED: Final = "the coordinator removed this member from the group"
NOT_CONFIRMED: Final = (
    "Group %s: the coordinator did not confirm that member %s left. If it did not receive that, the partitions go to "
    "other members when the session times out: %s"
)


async def _result(value: object) -> Any:
    """Return a hook's result, awaited if it is a coroutine."""
    return await value if isinstance(value, Awaitable) else value
