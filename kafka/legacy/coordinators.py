"""`BaseCoordinator` and `ConsumerCoordinator`, which programs make by hand or derive from, over the groups of today.

With a client made by hand nothing turns its loop but these calls and the client's ``poll``. The names of kafka-python's
coordinators, and of this library's before it had `ConsumerGroup`, lead to the objects that have them now.
"""

# ruff: noqa: SLF001 - the methods that a subclass overrides have private names

from __future__ import annotations

import logging
import warnings
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Final

from kafka._core.client import core_of
from kafka._runtime.application import Application
from kafka._runtime.network_thread import CallerDriver, complete
from kafka._runtime.tasks import Event
from kafka.config import Config, part_of_defaults, resolve_part
from kafka.coordinator.classic_member import OLD_SESSION, ClassicMember
from kafka.coordinator.consumer_group import ConsumerGroup
from kafka.coordinator.membership import Membership
from kafka.coordinator.metrics import GroupCoordinatorMetrics
from kafka.coordinator.states import Generation, MemberState
from kafka.errors import ClientClosedError, IllegalGenerationError, KafkaTimeoutError, UnknownMemberIdError
from kafka.structs import MemberState as StateNames
from kafka.structs import OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from typing_extensions import Self

    from kafka._core.client import Client
    from kafka.client_async import KafkaClient
    from kafka.consumer.subscription_state import SubscriptionState
    from kafka.future import Future
    from kafka.metrics import Metrics
    from kafka.protocol.group import JoinGroupResponse

__all__ = ["BaseCoordinator", "ConsumerCoordinator"]

log = logging.getLogger(__name__)

_API_TIMEOUT_MS: Final = 60_000.0
_CLOSE_TIMEOUT: Final = 30.0  # seconds

# Methods of the coordinators of kafka-python that send a request, read a response, or run the thread for heartbeats.
_NEVER_CALLED: Final = frozenset(
    """
    _auto_assign_all_partitions _build_metadata_snapshot _close_heartbeat_thread _commit_offsets_async_on_complete
    _default_offset_commit_callback _disable_heartbeat_thread _do_auto_commit_offsets_async _do_commit_offsets_async
    _failed_request _handle_group_coordinator_response _handle_heartbeat_response _handle_join_failure
    _handle_join_group_response _handle_join_success _handle_leave_group_response _handle_metadata_update
    _handle_offset_commit_response _handle_offset_fetch_response _handle_sync_group_response _initiate_join_group
    _invoke_completed_offset_commit_callbacks _lookup_assignor _maybe_auto_commit_offsets_async
    _maybe_auto_commit_offsets_sync _on_join_follower _on_join_leader _rejoin_incomplete
    _reset_find_coordinator_future _reset_join_group_future _send_group_coordinator_request _send_heartbeat_request
    _send_join_group_request _send_offset_commit_request _send_offset_fetch_request _send_sync_group_request
    _start_heartbeat_thread _subscription_metadata_changed lookup_coordinator
    """.split()  # noqa: SIM905 - readable
)


def _of(path: str) -> Any:
    """Return a property for an attribute, or a method, of another object."""
    return property(attrgetter(path), doc=f"`{path}`")


class BaseCoordinator:
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
    DEFAULT_SESSION_TIMEOUT_MS_PRE_KIP_735: ClassVar[int] = int(OLD_SESSION * 1000)
    """The longest session that brokers before 0.10.1 allow; the default with them."""

    _membership: Membership
    _classic: ClassicMember
    client: Client
    application: Application

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        for name in sorted(_NEVER_CALLED & vars(cls).keys()):
            warnings.warn(
                f"{cls.__qualname__}.{name} is never called: the requests of a member are sent and read by other code "
                "than in kafka-python; override protocol_type, group_protocols, _on_join_prepare, _perform_assignment "
                "and _on_join_complete",
                RuntimeWarning,
                stacklevel=2,
            )

    def __init__(self, client: Client | KafkaClient, metrics: Metrics | None = None, **configs: Any) -> None:
        self.config = config = resolve_part(type(self).__name__, "consumer", configs, self.DEFAULT_CONFIG)
        self.client = core = core_of(client)
        self.application = CallerDriver(core.loop)
        membership = Membership(core, config, self.application)
        sensors = GroupCoordinatorMetrics(membership.heartbeat, metrics, config["metric_group_prefix"])
        membership.member = classic = ClassicMember(membership, _Hooks(self), sensors, config)
        self._take_over(membership, classic)

    def _take_over(self, membership: Membership, classic: ClassicMember) -> None:
        self._membership = membership
        self._classic = classic
        self._progress = Event()
        self._changes = 0
        membership.on_change = self._changed

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

    def need_rejoin(self) -> bool:
        """Whether the member must join the group, or join it again."""
        return self._membership.rejoin.is_set() or not self._membership.generation.is_member

    # Where the attributes are now…

    ask = _of("_membership.coordinator.ask")
    back_off = _of("_membership.coordinator.back_off")
    coordinator_id = _of("_membership.coordinator.node_id")
    find_coordinator = _of("_membership.coordinator.find")
    request_timeout = _of("_membership.coordinator.request_timeout")
    retry_backoff = _of("_membership.coordinator.retry_backoff")
    waiting_for = _of("_membership.coordinator.waiting_for")
    fail_with = _of("_membership.fail_with")
    generation = _of("_membership.generation")
    group_id = _of("_membership.group_id")
    group_instance_id = _of("_membership.group_instance_id")
    heartbeat = _of("_membership.heartbeat")
    in_round = _of("_membership.in_round")
    last_membership = _of("_membership.last_generation")
    leave_group = _of("_membership.leave")
    left_because = _of("_membership.left_because")
    loop = _of("_membership.loop")
    lose_generation = _of("_membership.lose_generation")
    move = _of("_membership.move")
    polled = _of("_membership.polled")
    rejoin = _of("_membership.rejoin")
    rendezvous = _of("_membership.rendezvous")
    request_rejoin = _of("_membership.request_rejoin")
    serve_calls = _of("_membership.serve_calls")
    start = _of("_membership.start")
    state = _of("_membership.state")
    take_error = _of("_membership.take_error")
    heartbeat_answered = _of("_classic.heartbeat_answered")
    heartbeat_refused = _of("_classic.heartbeat_refused")
    heartbeat_task = _of("_classic.heartbeat_task")
    sensors = _of("_classic.sensors")
    _client = _of("client")
    _generation = _of("_membership.generation")
    member_id = _of("_membership.generation.member_id")

    # Calls…

    def coordinator_unknown(self) -> bool:
        """Whether the coordinator must be looked up, or has no working connection."""
        return self._membership.coordinator.is_unknown()

    def coordinator_dead(self, error: object) -> None:
        """Look the coordinator up again before the next request."""
        self._membership.coordinator.forget(error)

    def ensure_coordinator_known(self, timeout_ms: float | None = None) -> bool:
        """Wait until the coordinator is known and connected; False after the timeout."""
        finding = self._membership.coordinator.find()
        try:
            complete(self.application.run(finding, self._until(timeout_ms), "looking up the coordinator"))
        except KafkaTimeoutError:
            return False
        return True

    def ensure_coordinator_ready(self, timeout_ms: float | None = None) -> bool:
        """Wait until the coordinator is known and connected; False after the timeout."""
        return self.ensure_coordinator_known(timeout_ms)

    def coordinator(self) -> int | None:
        """Return the id of the coordinator; None while it is unknown."""
        return None if self.coordinator_unknown() else self.coordinator_id

    def ensure_active_group(self, timeout_ms: float | None = None) -> bool:
        """Wait until this is a member with an assignment; False after the timeout.

        Calls that wait for the application are made in the calling thread.
        """
        return complete(self._become_active(self._until(timeout_ms)))

    def join_group(self, timeout_ms: float | None = None) -> bool:
        """Wait until this is a member with an assignment; False after the timeout."""
        return self.ensure_active_group(timeout_ms)

    async def _become_active(self, deadline: float | None) -> bool:
        membership = self._membership
        membership.start()
        while True:
            seen = self._changes
            membership.polled()
            await membership.serve_calls()
            if membership.state is MemberState.STABLE and not membership.rejoin.is_set():
                return True
            try:
                await self.application.run(self._something_changes(seen), deadline, "joining the group")
            except KafkaTimeoutError:
                return False

    async def _something_changes(self, seen: int) -> None:
        while self._changes == seen and not self._membership.rendezvous:
            self._progress.clear()
            await self._progress.wait()

    def _changed(self) -> None:
        self._changes += 1
        self._progress.set()

    def _until(self, timeout_ms: float | None) -> float | None:
        return None if timeout_ms is None else self._membership.loop.time() + timeout_ms / 1000

    def generation_if_stable(self) -> Generation | None:
        """Return the generation; None while the group rebalances, and outside of it."""
        membership = self._membership
        return membership.generation if membership.state.historic == StateNames.STABLE else None

    @property
    def rejoin_needed(self) -> bool:
        """Whether the member joins the group again; a program that sets it to True makes it do so."""
        return self.need_rejoin()

    @rejoin_needed.setter
    def rejoin_needed(self, needed: bool) -> None:
        if needed:
            self._membership.request_rejoin("the application asked for it")

    @property
    def rejoining(self) -> bool:
        """Whether a rebalance is under way."""
        return self._membership.state.historic == StateNames.REBALANCING

    def rebalance_in_progress(self) -> bool:
        """Whether a rebalance is under way."""
        return self.rejoining

    def reset_generation(self, member_id: str = "") -> None:
        """Forget the generation, as if the coordinator had removed the member, and join again; an id is kept."""
        kind = IllegalGenerationError if member_id else UnknownMemberIdError
        lost = kind("the application reset the generation")
        self._membership.loop.call_soon(self._classic.heartbeat_refused, lost, self._membership.generation)

    def poll_heartbeat(self) -> None:
        """Record that the application works, as poll() does; raises an error that ended the membership."""
        self._membership.polled()
        error = self._membership.take_error()
        if error is not None:
            raise error

    def time_to_next_heartbeat(self) -> float:
        """Seconds until the next heartbeat is due."""
        return self._membership.heartbeat.time_to_next_heartbeat()

    def maybe_leave_group(self, timeout_ms: float | None = None) -> None:
        """Leave the group until the next poll(), without a commit and without a call of the listener."""
        deadline = self._until(timeout_ms)
        leaving = self._membership.leave("the application called maybe_leave_group()", deadline)
        complete(self.application.run(leaving, deadline, "leaving the group"))

    def close(self, timeout_ms: float | None = None) -> None:
        """Leave the group and stop; may be called twice."""
        membership = self._membership
        if membership.state is MemberState.CLOSED or membership.loop.closed:
            return
        deadline = self._until(timeout_ms)
        try:
            leaving = membership.close("the member is closed", deadline)
            complete(self.application.run(leaving, deadline, "leaving the group"))
        except (KafkaTimeoutError, ClientClosedError) as error:
            log.info("Group %s: closed without leaving the group: %s", membership.group_id, error)
        membership.state = MemberState.CLOSED


class ConsumerCoordinator(BaseCoordinator):
    """A consumer in its group. Keyword arguments are the options in ``DEFAULT_CONFIG``.

    ``consumer._coordinator`` is one over the group of a consumer.
    """

    DEFAULT_CONFIG: ClassVar[dict[str, Any]] = {
        **BaseCoordinator.DEFAULT_CONFIG,
        **part_of_defaults(
            "consumer",
            "client_rack",
            "metric_group_prefix",
            "group_protocol",
            "group_remote_assignor",
            "partition_assignment_strategy",
            "assignors",
            "enable_auto_commit",
            "auto_commit_interval_ms",
            "default_offset_commit_callback",
            "exclude_internal_topics",
        ),
    }

    def __init__(
        self,
        client: Client | KafkaClient,
        subscription: SubscriptionState,
        metrics: Metrics | None = None,
        *,
        config: Config | None = None,
        application: Application | None = None,
        **configs: Any,
    ) -> None:
        if config is None:
            config = resolve_part(type(self).__name__, "consumer", configs, self.DEFAULT_CONFIG)
        core = core_of(client)
        if application is None:
            application = CallerDriver(core.loop)
        self._over(ConsumerGroup(core, subscription, metrics, config=config, application=application), config)
        self._group.classic.rounds = _ConsumerHooks(self)

    @classmethod
    def of(cls, group: ConsumerGroup, config: Config) -> Self:
        """Return the coordinator of a consumer's group."""
        made = cls.__new__(cls)
        made._over(group, config)
        return made

    def _over(self, group: ConsumerGroup, config: Config) -> None:
        self.config = config
        self.client = group.client
        self.application = group.application
        self._group = group
        self._take_over(group.membership, group.classic)

    # The methods that a subclass may override…

    def protocol_type(self) -> str:
        """The protocol type of consumers."""
        return self._group.assignment.protocol_type()

    def group_protocols(self) -> Sequence[tuple[str, object]]:
        """Return the assignors' names, each with the metadata of this member: its topics and its partitions."""
        return self._group.assignment.group_protocols()

    def _on_join_prepare(self, generation: int, member_id: str) -> object:
        return self._group.assignment.prepare(Generation(generation, member_id))

    def _perform_assignment(
        self,
        leader_id: str,  # noqa: ARG002
        protocol: str,
        members: Sequence[JoinGroupResponse.JoinGroupResponseMember],
    ) -> object:
        return self._group.assignment.assign(protocol, members)

    def _on_join_complete(self, generation: int, member_id: str, protocol: str, assignment: bytes) -> object:
        return self._group.assignment.take(Generation(generation, member_id, protocol), assignment)

    def need_rejoin(self) -> bool:
        """Whether the member must join the group, or join it again."""
        subscription, known = self._group.subscription, self._group.assignments.joined_version
        return subscription.is_automatic and (super().need_rejoin() or known != subscription.subscription_version)

    # Where the attributes are now…

    assignments = _of("_group.assignments")
    assignors = _of("_group.assignment.assignors")
    auto_commit = _of("_group.offsets.auto_commit")
    commit = _of("_group.offsets.commit")
    commit_async = _of("_group.offsets.commit_async")
    committed = _of("_group.offsets.committer.fetch")
    committer = _of("_group.offsets.committer")
    consumer_sensors = _of("_group.offsets.sensors")
    due = _of("_group.due")
    group_metadata = _of("_group.metadata")
    has_work = _of("_group.has_work")
    health = _of("_group.health")
    match_pattern = _of("_group.match_pattern")
    polled = _of("_group.polled")
    rebalance_protocol = _of("_group.assignment.rebalance_protocol")
    run_commit_callbacks = _of("_group.offsets.call_back")
    serve = _of("_group.serve")
    subscription = _of("_group.subscription")
    unsubscribed = _of("_group.unsubscribed")
    _auto_commit_task = _of("_group.offsets.auto_commit")
    _cluster = _of("client.cluster")
    _subscription = _of("_group.subscription")

    def log_waiting(self) -> None:
        """Log once for each rebalance that poll() may return nothing."""
        self._group.assignments.log_rebalance(self._group.membership.coordinator.log)

    # Calls…

    def poll(self, timeout_ms: float | None = None) -> bool:
        """Do the group's work, and wait for the assignment where the subscription needs one; False after the timeout.

        `KafkaConsumer` does not call it: its poll() serves the group and reads meanwhile.
        """
        complete(self._group.serve())
        return not self._group.subscription.is_automatic or self.ensure_active_group(timeout_ms)

    def maybe_leave_group(self, timeout_ms: float | None = None) -> None:
        """Leave the group until the next poll(), without a commit and without a call of the listener."""
        try:
            super().maybe_leave_group(timeout_ms)
        finally:
            self._group.join_with_next_poll()

    def commit_offsets_async(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], callback: Callable[..., object] | None = None
    ) -> Future[Any]:
        """Commit without waiting. `callback` is called as ``callback(offsets, response or error)``."""
        return self._group.offsets.commit_async(offsets, callback)

    def commit_offsets_sync(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], timeout_ms: float | None = None
    ) -> None:
        """Commit, and retry after retriable errors; raises others."""
        committing = self._group.offsets.commit(offsets, self._deadline(timeout_ms))
        complete(self.application.run(committing, None, "the commit"))

    def fetch_committed_offsets(
        self, partitions: Iterable[TopicPartition], timeout_ms: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the committed offsets, without partitions that have none."""
        reading = self._group.offsets.committer.fetch(list(partitions), self._deadline(timeout_ms))
        found = complete(self.application.run(reading, None, "reading offsets"))
        return {partition: offset for partition, offset in found.items() if offset is not None}

    def refresh_committed_offsets_if_needed(self, timeout_ms: float | None = None) -> None:
        """Move assigned partitions without a position to their committed offsets."""
        subscription = self._group.subscription
        missing = list(subscription.without_position())
        if missing:
            for partition, offset in self.fetch_committed_offsets(missing, timeout_ms).items():
                subscription.seek(partition, offset.offset, offset.leader_epoch)

    def _deadline(self, timeout_ms: float | None) -> float:
        if timeout_ms is None:  # a bare KafkaClient has no such option
            timeout_ms = self.client.config.get("default_api_timeout_ms", _API_TIMEOUT_MS)
        return self.client.loop.time() + timeout_ms / 1000

    def close(  # type: ignore[override]
        self, autocommit: bool = True, timeout_ms: float | None = None, *, patient: bool | None = None
    ) -> None:
        """Commit if that is automatic, call the listener, leave the group, stop; may be called twice.

        Takes 30 seconds at most unless `timeout_ms` is given, and 5 without a connection to any broker unless it is
        `patient`, the default with a timeout.
        """
        if patient is None:
            patient = timeout_ms is not None
        deadline = self.client.loop.time() + (_CLOSE_TIMEOUT if timeout_ms is None else timeout_ms / 1000)
        complete(self._group.finish(deadline, commit=autocommit, patient=patient))


class _Hooks:
    """The `GroupProtocol` that a subclass of a coordinator defines."""

    def __init__(self, coordinator: BaseCoordinator) -> None:
        self._coordinator = coordinator

    def protocol_type(self) -> str:
        return self._coordinator.protocol_type()

    async def prepare(self, generation: Generation) -> None:
        await _result(self._coordinator._on_join_prepare(generation.generation_id, generation.member_id))

    async def offer(self) -> Sequence[tuple[str, object]]:
        return self._coordinator.group_protocols()

    async def assign(
        self, protocol: str, members: Sequence[JoinGroupResponse.JoinGroupResponseMember]
    ) -> Mapping[str, object]:
        leader = self._coordinator.generation.member_id
        found: Mapping[str, object] = await _result(self._coordinator._perform_assignment(leader, protocol, members))
        return found

    async def assignment_skipped(self, members: Sequence[JoinGroupResponse.JoinGroupResponseMember]) -> None:
        """Nothing: the assignment has not changed."""

    async def take(self, generation: Generation, assignment: bytes) -> None:
        number, member_id, protocol = generation
        await _result(self._coordinator._on_join_complete(number, member_id, str(protocol), assignment))

    def generation_ended(self) -> None:
        """Nothing: `_on_join_prepare` comes before the next generation."""

    def metadata_changed(self) -> None:
        """Nothing: such a group is not about topics."""


class _ConsumerHooks(_Hooks):
    """That of a `ConsumerCoordinator`, whose own methods lead to the group's `ClassicAssignment`."""

    def __init__(self, coordinator: ConsumerCoordinator) -> None:
        super().__init__(coordinator)
        assignment = coordinator._group.assignment
        self.assignment_skipped = assignment.assignment_skipped  # type: ignore[method-assign]
        self.generation_ended = assignment.generation_ended  # type: ignore[method-assign]
        self.metadata_changed = assignment.metadata_changed  # type: ignore[method-assign]
        self._offer_from = assignment.offer_from

    async def offer(self) -> Sequence[tuple[str, object]]:
        return await self._offer_from(self._coordinator.group_protocols)


async def _result(value: object) -> Any:
    """Return a hook's result, awaited if it is a coroutine."""
    return await value if isinstance(value, Awaitable) else value
