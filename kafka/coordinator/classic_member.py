"""A member of a classic group, of any protocol type: rounds of JoinGroup and SyncGroup, heartbeats, leaving.

Inside of these requests the members of a group have another protocol (`GroupProtocol`): the metadata that each offers,
the assignments that the leader makes from it. That of consumers is `ClassicAssignment`.

Retriable errors are retried here, without end and with backoff; the log and `waiting_for` name them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

from kafka._runtime.tasks import Task, wait_any
from kafka.coordinator import join_group
from kafka.coordinator.group_coordinator import COORDINATOR_LOST, JOINS
from kafka.coordinator.heartbeat import HeartbeatTask
from kafka.coordinator.membership import REMOVED, Membership
from kafka.coordinator.states import NO_GENERATION, Generation, MemberEvent, MemberState
from kafka.errors import (
    FatalError,
    IllegalGenerationError,
    KafkaError,
    RebalanceInProgressError,
    RejoinNeededError,
    UnknownMemberIdError,
    UnsupportedFieldError,
    UnsupportedVersionError,
)

if TYPE_CHECKING:
    from kafka.config import Config
    from kafka.coordinator.metrics import GroupCoordinatorMetrics
    from kafka.protocol.group import JoinGroupResponse

# A join request waits this much longer than the rebalance timeout, in seconds: the coordinator answers at its end.
_JOIN_GRACE: Final = 5.0
# The coordinator answers a first join at once, with the member's id (KIP-394). Leaving waits for that, in seconds.
_ID_PATIENCE: Final = 1.0
OLD_SESSION: Final = 30.0
"""The longest session that brokers before 0.10.1 allow, in seconds; the default with them."""
# Since this release brokers allow sessions of more than 30 seconds without configuration.
_LONG_SESSIONS_SINCE: Final = (0, 10, 1)


class GroupProtocol(Protocol):
    """The protocol that the members of a classic group have agreed on. The coroutines run on the loop."""

    def protocol_type(self) -> str:
        """The protocol type of the group, such as ``"consumer"``."""

    async def prepare(self, generation: Generation) -> None:
        """Give up what must not be owned while the member joins."""

    async def offer(self) -> Sequence[tuple[str, object]]:
        """Return ``[(name, metadata), …]`` of the protocols that this member supports, the preferred one first."""

    async def assign(
        self, protocol: str, members: Sequence[JoinGroupResponse.JoinGroupResponseMember]
    ) -> Mapping[str, object]:
        """As leader: return the assignment of each member by its id."""

    async def assignment_skipped(self, members: Sequence[JoinGroupResponse.JoinGroupResponseMember]) -> None:
        """As leader: nothing has changed since the last assignment."""

    async def take(self, generation: Generation, assignment: bytes) -> None:
        """Take the assignment of this member."""

    def generation_ended(self) -> None:
        """The member is not in that generation any more."""

    def metadata_changed(self) -> None:
        """As leader: compare the assignment with new metadata."""


class ClassicMember:
    """The rounds, the heartbeats and the errors of one member."""

    protocol: ClassVar[str] = "classic"
    reads_as_member: ClassVar[bool] = False

    def __init__(
        self,
        membership: Membership,
        rounds: GroupProtocol,
        sensors: GroupCoordinatorMetrics,
        config: Config,
    ) -> None:
        self._membership = membership
        self._coordinator = coordinator = membership.coordinator
        self.rounds = rounds
        self.sensors = sensors
        self._fits_session = "session_timeout_ms" not in config.given
        """Whether the session is as long as the brokers allow: the application has not set it."""
        self._asking: Task[JoinGroupResponse] | None = None
        # As the task that sends the heartbeats needs it.
        self.loop = membership.loop
        self.group_id = membership.group_id
        self.group_instance_id = membership.group_instance_id
        self.heartbeat = membership.heartbeat
        self.retry_backoff = coordinator.retry_backoff
        self.ask = coordinator.ask
        self.coordinator_dead = coordinator.forget
        self.heartbeat_answered = sensors.heartbeat
        self.heartbeat_task = HeartbeatTask(self)

    @property
    def generation(self) -> Generation:
        """The generation that heartbeats are sent in."""
        return self._membership.generation

    async def run(self) -> None:
        """Join when that is needed."""
        membership, failures = self._membership, 0
        while True:
            await membership.rejoin.wait()
            try:
                await self._join_group()
            except KafkaError as error:
                failures = await self._recover(error, failures)
            else:
                failures = 0
                self._coordinator.waiting_for = None

    # A round…

    async def _join_group(self) -> None:
        """Go through one round: prepare, join, sync, take the assignment."""
        membership = self._membership
        await self._coordinator.find(joining=True)
        self._fit_session()
        membership.rejoin.clear()
        reason = membership.rejoin_reason
        membership.move(MemberEvent.START)
        await self.rounds.prepare(membership.generation)
        offer = await self.rounds.offer()
        membership.move(MemberEvent.PREPARED)
        self.heartbeat_task.disable()
        began = self.loop.time()
        joined = await self._send_join(reason, offer)
        self.sensors.joined(self.loop.time() - began)
        membership.generation = Generation(joined.generation_id, joined.member_id, joined.protocol_name)
        membership.move(MemberEvent.JOINED)
        self.heartbeat_task.reset()
        assignment = await self._send_sync(joined)
        membership.move(MemberEvent.SYNCED)
        await self.rounds.take(membership.generation, assignment)
        membership.move(MemberEvent.COMPLETED if membership.generation.is_member else MemberEvent.RETRY)

    def _fit_session(self) -> None:
        """Cut the session timeout to the limit of brokers before 0.10.1, unless the application set it."""
        versions = self._coordinator.client.versions
        if versions is not None and versions.release < _LONG_SESSIONS_SINCE and self._fits_session:
            self.heartbeat.timeout = min(self.heartbeat.timeout, OLD_SESSION)

    async def _send_join(self, reason: str, offer: Sequence[tuple[str, object]]) -> JoinGroupResponse:
        membership = self._membership
        timeout = max(membership.rebalance_timeout + _JOIN_GRACE, self._coordinator.client.settings.request_timeout)
        while True:
            request = join_group.join_request(
                self.group_id,
                membership.generation.member_id,
                self.group_instance_id,
                session_timeout_ms=int(self.heartbeat.timeout * 1000),
                rebalance_timeout_ms=int(membership.rebalance_timeout * 1000),
                protocol_type=self.rounds.protocol_type(),
                protocols=offer,
                reason=reason,
            )
            # A separate task: if this one is cancelled, `leave` needs the id that the coordinator assigns.
            asking = self._asking = self.loop.spawn(self.ask(request, JOINS, timeout), "join")
            try:
                response = await asking
            except UnsupportedFieldError as error:
                raise UnsupportedVersionError(
                    f"group_instance_id={self.group_instance_id!r} needs brokers of Kafka 2.3 or newer (KIP-345); "
                    f"leave it out: {error}"
                ) from error
            self._asking = None
            if not join_group.is_member_id_required(response):
                join_group.check_joined(response, self.rounds.protocol_type())
                return response
            # KIP-394: the coordinator assigns the member id with the first response, and the member joins with it.
            membership.generation = Generation(-1, response.member_id, None)

    async def _send_sync(self, joined: JoinGroupResponse) -> bytes:
        assignments: dict[str, bytes] = {}
        if joined.leader == joined.member_id and not joined.skip_assignment:
            found = await self.rounds.assign(joined.protocol_name or "", joined.members)
            assignments = {member: join_group.as_bytes(part) for member, part in found.items()}
        elif joined.leader == joined.member_id:
            # KIP-814: a static leader came back and nothing changed; it only must watch the topics again.
            await self.rounds.assignment_skipped(joined.members)
        began, generation, protocol_type = self.loop.time(), self.generation, self.rounds.protocol_type()
        request = join_group.sync_request(self.group_id, generation, self.group_instance_id, protocol_type, assignments)
        response = await self.ask(request, JOINS, self._membership.rebalance_timeout + _JOIN_GRACE)
        self.sensors.synced(self.loop.time() - began)
        join_group.check_synced(response, protocol_type, self.generation)
        return bytes(response.assignment)

    # Errors…

    async def _recover(self, error: KafkaError, failures: int) -> int:
        """Prepare another attempt, or stop after a fatal error; return the number of failures in a row."""
        membership = self._membership
        if isinstance(error, UnknownMemberIdError):
            membership.lose_generation(keep_id=False, why=f"{REMOVED}: {error}")
        elif isinstance(error, IllegalGenerationError):
            membership.lose_generation(keep_id=True, why=f"{REMOVED}: {error}")
        elif not isinstance(error, RejoinNeededError) and not error.retriable:
            membership.fail_with(error)
            return 0
        if isinstance(error, COORDINATOR_LOST):
            self._coordinator.forget(error)
        membership.move(MemberEvent.RETRY)
        membership.join_again(f"the last attempt failed with {type(error).__name__}")
        if isinstance(error, RejoinNeededError) and failures == 0:
            self._coordinator.log.info("%s joins the group again: %s", membership.who, error)
            return 1
        await self._coordinator.back_off(error, failures)
        return failures + 1

    def heartbeat_refused(self, error: KafkaError, generation: Generation) -> None:
        """React to the error code of a heartbeat response of `generation`."""
        membership = self._membership
        if generation != membership.generation:
            return  # the response is to an earlier generation
        if membership.in_round and isinstance(error, RejoinNeededError):
            return  # it was sent before the round; the response to the join decides
        if isinstance(error, RebalanceInProgressError):
            if membership.state is MemberState.STABLE:
                membership.join_again("the group rebalances")
        elif isinstance(error, COORDINATOR_LOST):
            self._coordinator.forget(error)
        elif isinstance(error, (UnknownMemberIdError, IllegalGenerationError)):
            self._coordinator.log.warning(
                "the coordinator removed %s from the group: %s",
                membership.who,
                error,
                extra={"kafka_error": type(error).__name__},
            )
            membership.lose_generation(keep_id=isinstance(error, IllegalGenerationError), why=f"{REMOVED}: {error}")
            if membership.state is MemberState.STABLE:
                membership.move(MemberEvent.RETRY)
            membership.join_again("the coordinator removed it")
        elif not error.retriable:
            membership.stop()
            membership.fail_with(error)

    def commit_refused(self, error: KafkaError, generation_id: int) -> KafkaError:
        """React to the refusal of a commit in a generation; return the error to raise."""
        membership = self._membership
        # The coordinator has the new generation when all members have joined, this member when it has the response.
        # With the cooperative protocol it owns partitions meanwhile, and may commit.
        moved_on = membership.generation.is_member and membership.generation.generation_id != generation_id
        if isinstance(error, IllegalGenerationError) and (moved_on or membership.in_round):
            return RebalanceInProgressError(f"the group took on a new generation meanwhile: {error}")
        if isinstance(error, (RejoinNeededError, FatalError)) and generation_id == membership.generation.generation_id:
            self.heartbeat_refused(error, membership.generation)
        return error

    def metadata_changed(self) -> None:
        """Compare the assignment with new metadata, as leader."""
        self.rounds.metadata_changed()

    # Leaving…

    def stop(self) -> None:
        """Give up a join that is under way, unless `leave` needs the id in its response."""
        if self._asking is not None and self.generation.member_id:
            self._asking.cancel()
            self._asking = None

    def generation_ended(self) -> None:
        """Send no heartbeats until the next round."""
        self.heartbeat_task.disable()
        self.rounds.generation_ended()

    async def leave(self, leaving: Generation, reason: str, deadline: float | None) -> None:
        """Leave the group, unless the member is static: the coordinator keeps its place while it restarts (KIP-345)."""
        if not leaving.member_id:
            leaving = await self._assigned_id(deadline)
        if not leaving.member_id or self.group_instance_id is not None:
            return
        request = partial(join_group.leave_request, self.group_id, leaving.member_id, reason)
        await self._coordinator.leave(leaving.member_id, deadline, request)

    async def _assigned_id(self, deadline: float | None) -> Generation:
        """Return the identity in the answer to the first join that this member did not take: the group waits for it."""
        asking, self._asking = self._asking, None
        if asking is None:
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
