"""The coordinator of a group, as the client reaches it: the broker is found, and sent requests. Runs on the loop.

Joins have a separate connection: the coordinator holds them back until all members have joined, and it answers the
requests of one connection one after another.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kafka._core.attempts import pause_after
from kafka._core.client import COORDINATOR
from kafka._runtime.timers import Backoff
from kafka._text import printable
from kafka.cluster import GROUP
from kafka.coordinator.group_log import GroupLog
from kafka.errors import (
    CoordinatorNotAvailableError,
    InvalidCoordinatorError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    RequestTimedOutError,
    for_code,
)

if TYPE_CHECKING:
    from kafka._core.client import Client
    from kafka._runtime.loop import Loop
    from kafka.config import Config
    from kafka.protocol.api import Request, Response
    from kafka.protocol.negotiation import ApiVersions

ResponseT = TypeVar("ResponseT", bound="Response")

log = logging.getLogger(__name__)

# Joins wait at the broker for the other members, and must not delay heartbeats and commits.
JOINS: Final = "group-joins"
COMMITS: Final = COORDINATOR
# Errors after which the coordinator is looked up again.
COORDINATOR_LOST: Final = (
    InvalidCoordinatorError,
    CoordinatorNotAvailableError,
    KafkaConnectionError,
    KafkaTimeoutError,
    RequestTimedOutError,
)
# Errors after which a request to leave may be sent to the coordinator, as it is now, once more.
_MOVED: Final = (InvalidCoordinatorError, CoordinatorNotAvailableError, KafkaConnectionError)
_UNHEARD: Final = (*_MOVED, RequestTimedOutError)
# How long close() or unsubscribe() looks for the coordinator, in seconds: the member's session ends without that, too.
_LEAVING_PATIENCE: Final = 1.0


class GroupCoordinator:
    """Finds one group's coordinator, and sends requests to it."""

    def __init__(self, client: Client, config: Config) -> None:
        self.client = client
        self.loop: Loop = client.loop
        self.group_id: str = config["group_id"]
        self.log = GroupLog(self.group_id)
        self.waiting_for: str | None = None
        """The reason why the client is not a member, in words; None for a member."""
        self.request_timeout = config.seconds("request_timeout_ms")
        self.retry_backoff = config.seconds("retry_backoff_ms")
        self.leaving_patience = _LEAVING_PATIENCE
        """How long `leave` looks for the coordinator where it has a deadline, in seconds."""
        # The options of the coordinator, which may be made by hand with others than its client.
        self._backoff = Backoff(self.retry_backoff, config.seconds("retry_backoff_max_ms"), self.loop.rng)

    @property
    def node_id(self) -> int | None:
        """The broker that coordinates the group; None while it is unknown."""
        known = self.client.cluster.coordinator_for_group(self.group_id)
        return None if known is None or known < 0 else known

    def is_unknown(self) -> bool:
        """Whether the coordinator must be looked up, or has no working connection."""
        node_id = self.node_id
        if node_id is None or self.client.cluster.broker_metadata(node_id) is None:
            return True
        if self.client.link(node_id, COMMITS).backing_off():
            self.client.cluster.forget_coordinator(GROUP, self.group_id)
            return True
        return False

    def forget(self, error: object) -> None:
        """Look the coordinator up again before the next request, because of an error."""
        if self.node_id is not None:
            self.log.info(
                "broker %s does not answer as its coordinator, so the coordinator is looked up again: %s",
                self.node_id,
                error,
            )
            self.client.cluster.forget_coordinator(GROUP, self.group_id)

    async def find(self, *, joining: bool = False) -> int:
        """Return the coordinator's id, however long that takes; raises errors that are not retriable.

        With `joining` the connection for joins is made at the same time.
        """
        failures = 0
        while True:
            deadline = self.loop.time() + self.request_timeout
            try:
                node_id = await self.client.coordinator(GROUP, self.group_id, deadline)
                if joining and not (apart := self.client.link(node_id, JOINS)).backing_off():
                    apart.open()
                await self.client.open(self.client.link(node_id, COMMITS), deadline)
            except KafkaError as error:
                if not error.retriable:
                    raise
                self.forget(error)
                failures += 1
                await self._back_off(error, failures, f"the coordinator of group {self.group_id}: {error}")
            else:
                return node_id

    async def ask(self, request: Request[ResponseT], use: str, timeout: float | None = None) -> ResponseT:
        """Send a request to the coordinator and return the response; its error codes are the caller's to read."""
        if timeout is None:
            timeout = self.request_timeout
        deadline = self.loop.time() + timeout
        node_id = await self.client.coordinator(GROUP, self.group_id, deadline)
        if use == JOINS:  # answered when the group has rebalanced
            return await self.client.submit(node_id, request, use=JOINS, timeout=timeout)
        return await self.client.submit(node_id, request, use=COMMITS, deadline=deadline)

    async def back_off(self, error: KafkaError, failures: int) -> None:
        """Wait for the backoff before another attempt to be a member, after `failures` and this one."""
        await self._back_off(error, failures + 1, f"group {self.group_id} to let this member in: {error}")

    async def _back_off(self, error: KafkaError, failures: int, what: str) -> None:
        # The first time at once, then about each minute, once the backoff has grown.
        if failures == 1 or failures % 60 == 0:
            log.warning("Waiting for %s", what)
        self.waiting_for = what
        await self.loop.sleep(pause_after(error, failures, self._backoff))

    async def leave(
        self, member_id: str, deadline: float | None, request: Callable[[ApiVersions], Request[Any]]
    ) -> None:
        """Send the request of a member that leaves, by a deadline; a failure is logged.

        Again for a second, or for request_timeout_ms where no caller waits (no deadline), while no broker is the
        coordinator, and once where there is no answer or the connection ends later, perhaps over another request: the
        group would wait for the session's end.
        """
        patience = self.leaving_patience if deadline is not None else self.request_timeout
        failures, last = 0, self.loop.time() + patience
        while True:
            now = self.loop.time()
            look, limit = now + patience, now + self.request_timeout
            if deadline is not None:
                look, limit = min(look, deadline), min(limit, max(now, deadline))
            try:
                node_id = await self.client.coordinator(GROUP, self.group_id, look)
                link = self.client.link(node_id, COMMITS)
                await self.client.open(link, limit)
                assert link.versions is not None
                check_left(await self.client.submit(node_id, request(link.versions), use=COMMITS, deadline=limit))
            except KafkaError as error:
                failures += 1
                now = self.loop.time()
                first = failures == 1 and isinstance(error, _UNHEARD) and (deadline is None or now < deadline)
                if first or (isinstance(error, _MOVED) and now < last):
                    self.forget(error)
                    if failures > 1:
                        await self.loop.sleep(pause_after(error, failures - 1, self._backoff))
                    continue
                self.log.info(
                    "the coordinator did not confirm that member %s left. If it did not receive that, its "
                    "session ends, and what it has goes to other members then: %s",
                    printable(member_id),
                    error,
                )
            return


def check_left(response: Any) -> None:
    """Raise the error in the response to a request to leave: of the request, or of the member in it."""
    for part in (response, *(getattr(response, "members", None) or ())):
        if part.error_code:
            raise for_code(part.error_code)(getattr(part, "error_message", None) or "the coordinator refused it")
