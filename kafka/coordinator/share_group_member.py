"""A member of a share group (KIP-932): heartbeats bring its partitions, and nothing is revoked.

Several members may have the same partition, so a member takes each assignment as it comes. Brokers deliver records to
it, and take its acknowledgements, whether or not it is in the group at that time: after the coordinator removed a
member it joins again under the same id, and keeps the records that it has. Runs on the client's loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Final
from uuid import UUID

from kafka._runtime.tasks import Event
from kafka._text import printable
from kafka.coordinator.group_coordinator import COMMITS, GroupCoordinator
from kafka.coordinator.membership import new_member_id
from kafka.coordinator.states import NO_GENERATION, Generation
from kafka.errors import (
    FencedMemberEpochError,
    GroupIdNotFoundError,
    KafkaError,
    TopicAuthorizationFailedError,
    UnknownMemberIdError,
    UnsupportedVersionError,
    for_code,
)
from kafka.protocol.share import ShareGroupHeartbeatRequest

if TYPE_CHECKING:
    from kafka._core.client import Client
    from kafka._runtime.tasks import Task
    from kafka.config import Config
    from kafka.protocol.share import ShareGroupHeartbeatResponse

_JOIN: Final = 0
_LEAVE: Final = -1
# Seconds between heartbeats until the coordinator says otherwise: Kafka's group.share.heartbeat.interval.ms.
_INTERVAL: Final = 5.0


def share_groups_unsupported(error: KafkaError) -> UnsupportedVersionError:
    """Return the error for brokers without share groups."""
    return UnsupportedVersionError(
        "share groups need brokers of Kafka 4.2, or of 4.1 with the feature share.version=1 "
        f"(kafka-features.sh upgrade --feature share.version=1): {error}"
    )


class ShareGroupMember:
    """One member, with the id that it has for its life."""

    protocol: ClassVar[str] = "share"

    def __init__(self, client: Client, config: Config, on_change: Callable[[], object]) -> None:
        self.loop = client.loop
        self.coordinator = GroupCoordinator(client, config)
        self.group_id = self.coordinator.group_id
        self.member_id = new_member_id()
        self.epoch = _JOIN
        self.assigned: dict[UUID, frozenset[int]] = {}
        """The partitions to read, by the id of their topic."""
        self.error: KafkaError | None = None
        """Why it cannot be a member, for the application to raise, once."""
        self.on_heartbeat: Callable[[float], object] | None = None
        """Called with the seconds that each heartbeat took."""
        self._on_change = on_change
        self._rack: str | None = config["client_rack"] or None
        self._poll_interval = config.seconds("max_poll_interval_ms")
        self._interval = _INTERVAL
        self._topics: frozenset[str] = frozenset()
        self._sent_topics: frozenset[str] | None = None
        self._changed = Event()
        self._task: Task[Any] | None = None
        self._leaving: Task[Any] | None = None
        self._failures = 0
        self._may_be_member = False
        """Whether the coordinator may have it as a member."""
        self._polls = 0
        self._polled_at = 0.0
        self.last_count = 0
        """How many records the last poll() has returned."""

    # Calls of the application…

    def began_poll(self) -> None:
        """Record that the application waits in poll(). From its thread."""
        self._polls += 1
        self._polled_at = self.loop.time()
        self.last_count = 0

    def ended_poll(self) -> None:
        """Record that the wait has ended."""
        self._polls -= 1
        self._polled_at = self.loop.time()

    def subscribe(self, topics: frozenset[str]) -> None:
        """Be a member that reads these topics; with none, leave the group."""
        if topics != self._topics:
            self._topics = topics
            self._changed.set()
        if not topics:
            if self._task is not None:
                self._leaving = self.loop.spawn_logged(
                    self.end("the application unsubscribed", self.loop.time() + self.coordinator.request_timeout),
                    "leave",
                )
        elif self._task is None or self._task.is_done:
            self._task = self.loop.spawn_logged(self.run(), "share group heartbeats")

    def needs(self, topics: frozenset[str]) -> bool:
        """Return whether `subscribe` is to be called: something is new, or an error has ended the heartbeats."""
        return topics != self._topics or self._task is None or self._task.is_done or self._is_stuck

    @property
    def is_member(self) -> bool:
        """Whether the coordinator has it as a member."""
        return self.epoch > _JOIN

    @property
    def _is_stuck(self) -> bool:
        return not self._polls and self.loop.time() - self._polled_at > self._poll_interval

    # Heartbeats…

    async def run(self) -> None:
        """Join, and stay in the group; returns after an error that the application must see, or without its poll()."""
        if self._leaving is not None and not self._leaving.is_done:
            await self._leaving  # what unsubscribe() has begun
        while True:
            try:
                await self._heartbeat_loop()
            except KafkaError as error:  # noqa: PERF203 - each pass waits for the network
                if not await self._recover(error):
                    return
            else:
                return

    async def _heartbeat_loop(self) -> None:
        """Send heartbeats when they are due or the subscription has changed; until one fails, or no poll() comes."""
        await self.coordinator.find()
        while not self._is_stuck:
            self._changed.clear()
            await self._beat()
            self.coordinator.waiting_for = None
            await self._changed.wait_until(self.loop, self.loop.time() + self._interval)
        self.coordinator.log.warning(
            "this member leaves the group because poll() was not called for %g s (max_poll_interval_ms); the "
            "last one returned %d records. Return fewer records from each poll() (max_poll_records), or raise "
            "max_poll_interval_ms. Acknowledgements of these records are still sent",
            self._poll_interval,
            self.last_count,
        )
        await self._depart("poll() was not called", None)

    async def _beat(self) -> None:
        topics, epoch = self._topics, self.epoch
        request = ShareGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            member_epoch=epoch,
            rack_id=self._rack if epoch == _JOIN else None,
            subscribed_topic_names=None if topics == self._sent_topics else sorted(topics),
        )
        sent = self.loop.time()
        self._may_be_member = True
        response = await self.coordinator.ask(request, COMMITS)
        if self.on_heartbeat is not None:
            self.on_heartbeat(self.loop.time() - sent)
        if response.error_code:
            raise for_code(response.error_code)(response.error_message or "the coordinator refused a heartbeat")
        self._failures = 0
        self._sent_topics = topics
        self._take(response)

    def _take(self, response: ShareGroupHeartbeatResponse) -> None:
        if self.epoch == _JOIN:
            self.coordinator.log.info(
                "member %s joined the share group, epoch %d", self.member_id, response.member_epoch
            )
        self.epoch = response.member_epoch
        if response.heartbeat_interval_ms > 0:
            self._interval = response.heartbeat_interval_ms / 1000
        if response.assignment is not None:
            entries = response.assignment.topic_partitions
            self.assigned = {entry.topic_id: frozenset(entry.partitions) for entry in entries}
            self._on_change()

    # Errors…

    async def _recover(self, error: KafkaError) -> bool:
        """Prepare another attempt; False after a fatal error."""
        self._sent_topics = None  # the broker may not have received them
        # A group whose last member's session has ended may be gone.
        is_gone = isinstance(error, GroupIdNotFoundError) and self.epoch != _JOIN
        if is_gone or isinstance(error, (FencedMemberEpochError, UnknownMemberIdError)):
            self.coordinator.log.warning(
                "the coordinator removed member %s from the group, it joins again: %s",
                printable(self.member_id),
                error,
                extra={"kafka_error": type(error).__name__},
            )
            self.stop()
            if not self._failures:
                self._failures += 1
                return True
        elif isinstance(error, TopicAuthorizationFailedError):
            self.error = error  # a grant may come
            self._on_change()
        elif not error.retriable:
            self.error = share_groups_unsupported(error) if isinstance(error, UnsupportedVersionError) else error
            self.coordinator.waiting_for = str(self.error)
            self.stop()
            return False
        else:
            self.coordinator.forget(error)
        await self.coordinator.back_off(error, self._failures)
        self._failures += 1
        return True

    def stop(self) -> None:
        """Be no member, and read nothing."""
        self.epoch, self.assigned, self._sent_topics = _JOIN, {}, None
        self._may_be_member = False
        self._on_change()

    # Leaving…

    async def end(self, reason: str, deadline: float | None) -> None:
        """Leave the group, for good or until `subscribe`."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
        await self._depart(reason, deadline)

    async def _depart(self, reason: str, deadline: float | None) -> None:
        leaving = Generation(self.epoch, self.member_id) if self._may_be_member else NO_GENERATION
        self.stop()
        await self.leave(leaving, reason, deadline)

    async def leave(self, leaving: Generation, reason: str, deadline: float | None) -> None:
        """Send the heartbeat that says so, if the coordinator may have it as a member."""
        if not leaving.is_member:
            return
        self.coordinator.log.info("member %s leaves the share group: %s", self.member_id, reason)
        request = ShareGroupHeartbeatRequest(
            group_id=self.group_id, member_id=self.member_id, member_epoch=_LEAVE, subscribed_topic_names=None
        )
        await self.coordinator.leave(self.member_id, deadline, lambda _versions: request)

    def health(self) -> dict[str, Any]:
        """Return the member's state as plain values."""
        return {
            "group_id": self.group_id,
            "protocol": self.protocol,
            "member_id": self.member_id,
            "epoch": self.epoch,
            "state": "in the group" if self.is_member else "not in the group",
            "coordinator": self.coordinator.node_id,
            "waiting_for": self.coordinator.waiting_for,
        }
