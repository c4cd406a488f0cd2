"""The membership of one client in its group: state, generation, limits of time, and errors for the application.

A `GroupMember` sends the requests of one protocol and moves the membership: `ClassicMember`, `ConsumerGroupMember`
(KIP-848), `ShareGroupMember` (KIP-932; nothing is revoked in a share group, so it needs no `Membership`). One task runs
the member; `PollTimer` notices an application that is stuck; both run on the client's loop. Calls that the application
must make (listeners) wait in `rendezvous` until its next poll().

An error that stops the member is raised by the next poll() (`take_error`), and the poll() after that tries again.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Final, Protocol
from uuid import uuid4

from kafka._runtime.tasks import Event, Task, wait_any
from kafka._text import printable
from kafka.coordinator.group_coordinator import GroupCoordinator
from kafka.coordinator.heartbeat import Heartbeat, PollTimer
from kafka.coordinator.rebalance import Rendezvous
from kafka.coordinator.states import NO_GENERATION, Generation, MemberEvent, MemberState, next_state
from kafka.errors import FencedInstanceIdError, KafkaError

if TYPE_CHECKING:
    from kafka._core.client import Client
    from kafka._runtime.application import Application
    from kafka.config import Config

REMOVED: Final = "the coordinator removed this member from the group"


class GroupMember(Protocol):
    """A member of a group in one protocol. Its methods are called on the loop."""

    protocol: ClassVar[str]
    """The protocol's name in health()."""

    async def run(self) -> None:
        """Join, and stay in the group; returns when that has come to an end for the application to see."""

    def stop(self) -> None:
        """End what `run`, which is cancelled, has begun beside itself."""

    async def leave(self, leaving: Generation, reason: str, deadline: float | None) -> None:
        """Leave the group, which `leaving` was the last generation in; raises no KafkaError."""


class PartitionedMember(GroupMember, Protocol):
    """A member of a group whose partitions have one owner each; it has a `Membership`."""

    reads_as_member: ClassVar[bool]
    """Whether the coordinator checks the member that reads committed offsets."""

    def generation_ended(self) -> None:
        """Send no heartbeat for the generation any more."""

    def commit_refused(self, error: KafkaError, generation_id: int) -> KafkaError:
        """React to the refusal of a commit in a generation; return the error to raise."""

    def metadata_changed(self) -> None:
        """Compare the assignment with new metadata."""


def new_member_id() -> str:
    """Return an id for a member that chooses its own: a UUID as Kafka writes it.

    >>> len(new_member_id())
    22
    """
    return urlsafe_b64encode(uuid4().bytes).decode().rstrip("=")


class Membership:
    """One membership, in the protocol of its `member`."""

    member: PartitionedMember
    """The present member; set by the owner of the membership, before `start`."""

    def __init__(
        self,
        client: Client,
        config: Config,
        application: Application,
        *,
        last_taken: Callable[[], object] = lambda: None,
    ) -> None:
        self.coordinator = GroupCoordinator(client, config)
        self.loop = client.loop
        self.group_id = self.coordinator.group_id
        self.group_instance_id: str | None = config["group_instance_id"]
        self.heartbeat = heartbeat = Heartbeat(
            heartbeat_interval_ms=config["heartbeat_interval_ms"],
            session_timeout_ms=config["session_timeout_ms"],
            max_poll_interval_ms=config["max_poll_interval_ms"],
            clock=client.environment.clock,
        )
        self.fallback: PartitionedMember | None = None
        """The member for brokers that do not have the protocol of the present one."""
        self.rendezvous = Rendezvous()
        self.rendezvous.on_waiting = self.notify_application
        self.state = MemberState.UNJOINED
        self.generation = NO_GENERATION
        self.last_generation = NO_GENERATION
        """The generation of its last membership, after it has ended."""
        self.left_because = ""
        """Why its last membership has ended, in words."""
        self.error: KafkaError | None = None
        """For the application to raise, once."""
        self.is_leaving = False
        """Whether the application leaves the group: a poll() of another task joins when that has ended."""
        self._leaving: Task[object] | None = None
        self.rejoin = Event()
        """Set when it must join, or with KIP-848 send a heartbeat."""
        self.rejoin_reason = ""
        self.poll_timer = PollTimer(
            self.loop, heartbeat, self.is_active, self.notify_application, self._poll_timed_out, last_taken
        )
        self.is_polling: Callable[[], bool] = lambda: True
        """Whether the application is inside poll() when it serves; in asyncio another task serves."""
        self.rebalance_timeout = heartbeat.poll_interval
        """Seconds that a member may take to give its partitions up and to join again."""
        self.on_due: Callable[[], object] = lambda: None
        """Called, from any thread, when the application has something to do."""
        self.on_change: Callable[[], object] = lambda: None
        """Called, from any thread, after each change of the state, and when `on_due` is."""
        self.on_rebalanced: Callable[[float, str], object] = lambda _seconds, _why: None
        """Called after a rebalance with the seconds that it took, and the reason for it."""
        self.last_count: Callable[[], int] = lambda: 0
        """Returns how many records the last poll() has returned. From any thread."""
        self.on_lost: Callable[[str], object] = lambda _why: None
        """Called on the loop with the reason when the coordinator removed it, or it must give its partitions up."""
        self._application = application
        self._rebalance_began = 0.0
        self._rebalances_because = ""
        self._running: Task[object] | None = None

    @property
    def in_round(self) -> bool:
        """Whether a join or sync request of this member is under way."""
        return self.state in {MemberState.JOINING, MemberState.SYNCING}

    @property
    def is_started(self) -> bool:
        """Whether it is, or has tried to be, a member since it last left."""
        return self._running is not None

    def is_active(self) -> bool:
        """Whether it is in the group, or on its way into it, as far as the application allows that."""
        return self.state not in {MemberState.LEFT, MemberState.FAILED, MemberState.CLOSED}

    @property
    def who(self) -> str:
        """The member, for a message."""
        member_id = self.generation.member_id
        return f"member {printable(member_id)}" if member_id else "this member"

    # On any thread…

    def start(self) -> None:
        """Become a member as soon as possible, and stay one."""
        self.loop.call_soon(self._start)

    def request_rejoin(self, reason: str) -> None:
        """Join again; the request has the reason (KIP-800)."""
        self.loop.call_soon(self.join_again, reason)

    def polled(self) -> None:
        """Record that the application called poll()."""
        self.heartbeat.poll()
        # In each poll, so no set: the hash of an enum's member is Python code before 3.12.
        # While there is an error this is the poll() that raises it.
        if (self.state is MemberState.LEFT or self.state is MemberState.FAILED) and self.error is None:
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
            await call.run(self._application, self.loop)

    def take_error(self) -> KafkaError | None:
        """Return an error for the application to raise, once."""
        error, self.error = self.error, None
        return error

    def waits_for_application(self) -> str | None:
        """Say that a rebalance waits for poll(), if it does: a member that is out of the group has its own reason."""
        if not self.rendezvous or not self.is_active():
            return None
        seconds = self.heartbeat.poll_interval - self.heartbeat.poll_left()
        return f"the application: a rebalance waits for its next poll(), the last one was {seconds:.0f} s ago"

    def notify_application(self) -> None:
        """Let the application look for work."""
        self.on_change()
        self.on_due()

    # On the loop: the state…

    def _start(self) -> None:
        if self._running is None and self.state is not MemberState.CLOSED:
            self.join_again("startup")
            self.heartbeat.poll()  # in asyncio it starts without a call of poll()
            self._running = self.loop.spawn_logged(self._run(), "stay member")
            self.poll_timer.arm()

    async def _run(self) -> None:
        await self.member.run()
        if self.state is not MemberState.FAILED and self.fallback is not None:
            self.member, self.fallback = self.fallback, None
            await self.member.run()

    def move(self, event: MemberEvent) -> None:
        """Change the state by an event."""
        before, self.state = self.state, next_state(self.state, event)
        series = self.coordinator.client.series
        if event is MemberEvent.START:
            self._rebalance_began, self._rebalances_because = self.loop.time(), self.rejoin_reason
        elif event is MemberEvent.COMPLETED:
            seconds = self.loop.time() - self._rebalance_began
            self.on_rebalanced(seconds, self._rebalances_because)
            if series is not None:
                series.count("kafka_consumer_rebalances_total", (self.group_id,))
                series.count("kafka_consumer_rebalance_seconds_total", (self.group_id,), seconds)
        elif event is MemberEvent.SYNCED and before is MemberState.STABLE:
            # KIP-848: the assignment came with a heartbeat.
            self._rebalance_began, self._rebalances_because = self.loop.time(), "the coordinator changed the assignment"
        self.coordinator.log.debug("%s -> %s (%s)", before.name, self.state.name, event.value)
        self.on_change()

    def join_again(self, reason: str) -> None:
        """Have the member join again, with this reason unless there is one before."""
        if not self.rejoin.is_set():
            self.coordinator.log.info("%s joins the group: %s", self.who, reason)
            self.rejoin_reason = reason
        self.rejoin.set()

    def lose_generation(self, *, keep_id: bool, why: str) -> None:
        """End the membership: the owned partitions are lost."""
        self.left_because = why
        was_member = self.generation.is_member
        if was_member:
            self.last_generation = self.generation
        self.generation = Generation(-1, self.generation.member_id if keep_id else "", None)
        self.member.generation_ended()
        if was_member:
            self.on_lost(why)

    def fail_with(self, error: KafkaError) -> None:
        """Stop until poll() has raised the error and is called again."""
        self.coordinator.log.error(
            "%s cannot be a member. The next poll() raises this, the one after it tries again: %s", self.who, error
        )
        self.lose_generation(keep_id=not isinstance(error, FencedInstanceIdError), why=f"{REMOVED}: {error}")
        self.move(MemberEvent.FATAL)
        self.rejoin.clear()
        self.coordinator.waiting_for = str(error)
        self.error = error
        self.notify_application()

    def _polled_again(self) -> None:
        if self.state in {MemberState.LEFT, MemberState.FAILED} and self.error is None and not self.is_leaving:
            self.move(MemberEvent.POLLED)
            self.join_again("poll() was called again")
            if self._running is None or self._running.is_done:
                self._running = self.loop.spawn_logged(self._run(), "stay member")
            self.poll_timer.arm()

    def _poll_timed_out(self) -> None:
        why = f"poll() was not called for {self.heartbeat.poll_interval:g} s (max_poll_interval_ms)"
        self.coordinator.log.warning(
            "%s leaves the group because %s; the last one returned %d records. Return fewer records from "
            "each poll() (max_poll_records), or raise max_poll_interval_ms",
            self.who,
            why,
            self.last_count(),
        )
        self.stop()
        leaving = self.generation
        self.lose_generation(keep_id=self.group_instance_id is not None, why=why)
        self.move(MemberEvent.POLL_TIMEOUT)
        self.coordinator.waiting_for = f"the application: {why}"
        self._leaving = self.loop.spawn_logged(self.member.leave(leaving, why, None), "leave the group")
        self.notify_application()  # a call that waits was late, as on a machine that was suspended: it joins again

    # On the loop: leaving…

    def stop(self) -> None:
        """Join no more, and send no heartbeats that only `run` sends."""
        if self._running is not None:
            self._running.cancel()
            self._running = None
        self.member.stop()
        self.rejoin.clear()

    async def leave(self, reason: str, deadline: float | None = None) -> None:
        """Leave the group now; `start` joins it again."""
        self.stop()
        self.poll_timer.cancel()
        leaving, self.generation = self.generation, NO_GENERATION
        if leaving.is_member:
            self.last_generation = leaving
        self.member.generation_ended()
        if self.state is not MemberState.CLOSED:
            self.move(MemberEvent.LEAVE)
        await self.member.leave(leaving, reason, deadline)
        if self._leaving is not None:  # begun when poll() was not called; a client that ends would end it
            await wait_any(self.loop, self._leaving, deadline=deadline)

    async def close(self, reason: str, deadline: float | None) -> None:
        """Leave the group for good."""
        await self.leave(reason, deadline)
        self.move(MemberEvent.CLOSE)
