"""Sends heartbeats when they are due, on the loop, whatever the application does meanwhile."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kafka.errors import KafkaError, for_code
from kafka.protocol.group import HeartbeatRequest

if TYPE_CHECKING:
    from kafka._runtime.timers import Timer
    from kafka.coordinator.base import BaseCoordinator

__all__ = ["HeartbeatTask"]

log = logging.getLogger(__name__)


class HeartbeatTask:
    """The heartbeats of one member. There is a timer while it is enabled, and nothing otherwise."""

    def __init__(self, coordinator: BaseCoordinator) -> None:
        self._coordinator = coordinator
        self._timer: Timer | None = None
        self._enabled = False
        self._under_way = False

    def disable(self) -> None:
        """Send no more, as while the member joins: the coordinator knows then that it lives."""
        self._enabled = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def reset(self) -> None:
        """Send from now on, the first one an interval from now."""
        self._enabled = True
        self._coordinator.heartbeat.reset_session_timeout()
        self._arm()

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._coordinator.loop.call_later(self._coordinator.heartbeat.ttl(), self._due)

    def _due(self) -> None:
        self._timer = None
        if self._enabled and not self._under_way:
            self._under_way = True
            self._coordinator.loop.spawn_logged(self._beat(), "heartbeat")

    async def _beat(self) -> None:
        coordinator, heartbeat = self._coordinator, self._coordinator.heartbeat
        generation = coordinator.generation
        request = HeartbeatRequest(
            group_id=coordinator.group_id,
            generation_id=generation.generation_id,
            member_id=generation.member_id,
            group_instance_id=coordinator.group_instance_id,
        )
        sent = coordinator.loop.time()
        heartbeat.sent_heartbeat()
        try:
            response = await coordinator.ask(request, "heartbeat", max(heartbeat.session_left(), heartbeat.interval))
            heartbeat.received_heartbeat()
            coordinator.sensors.heartbeat(coordinator.loop.time() - sent)
            if response.error_code:
                error: KafkaError = for_code(response.error_code)("the coordinator's answer to a heartbeat")
                coordinator.heartbeat_refused(error, generation)
        except KafkaError as lost:
            log.info("Group %s: a heartbeat failed and is sent again: %s", coordinator.group_id, lost)
            coordinator.coordinator_dead(lost)
            await coordinator.loop.sleep(coordinator.retry_backoff)
            heartbeat.fail_heartbeat()
        finally:
            self._under_way = False
        if self._enabled:
            self._arm()
