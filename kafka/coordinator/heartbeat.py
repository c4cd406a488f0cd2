"""When a member of a group must send a heartbeat, when the coordinator removes it, and when its application is stuck.

Three limits: a heartbeat is due every heartbeat_interval_ms; the coordinator removes a member from which it received
nothing for session_timeout_ms; a member whose application does not call poll() for max_poll_interval_ms leaves, because
the application is stuck. `Heartbeat` does no I/O and has no timers: a clock and sums.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, TypeVar

from kafka._runtime.clock import SYSTEM_CLOCK, Clock
from kafka.coordinator.group_log import GroupLog
from kafka.errors import KafkaConfigurationError, KafkaError, for_code
from kafka.protocol.group import HeartbeatRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka._runtime.loop import Loop
    from kafka._runtime.timers import Timer
    from kafka.coordinator.states import Generation
    from kafka.protocol.api import Request, Response

__all__ = ["Heartbeat", "HeartbeatTask", "PollTimer"]

ResponseT = TypeVar("ResponseT", bound="Response")

# In seconds: the shortest wait for the end of the poll interval, and the time that an application has to show that it
# waits in poll() and is not stuck.
_SHORTEST_WAIT: Final = 0.001
_LIVENESS_GRACE: Final = 1.0
# How often within the poll interval the timer looks whether the application takes records by iteration, which makes no
# call for each of them. An application that is stuck is noticed that much of the interval later.
_LOOKS: Final = 4
_NEVER: Final = float("-inf")


class Heartbeat:
    """The timers of a group's member.

    >>> heartbeat = Heartbeat(heartbeat_interval_ms=3000, session_timeout_ms=10000)
    >>> heartbeat.should_heartbeat(), heartbeat.session_expired()
    (False, False)
    """

    DEFAULT_CONFIG: ClassVar[dict[str, Any]] = {
        "group_id": None,  # without effect, as retry_backoff_ms: kafka-python's heartbeat has them
        "heartbeat_interval_ms": 3000,
        "session_timeout_ms": 30000,
        "max_poll_interval_ms": 300000,
        "retry_backoff_ms": 100,
    }

    def __init__(self, *, clock: Clock = SYSTEM_CLOCK, **configs: Any) -> None:
        for option in configs:
            if option not in Heartbeat.DEFAULT_CONFIG:
                raise KafkaConfigurationError(f"Heartbeat has no option {option!r}", option=option)
        self.config = config = {**Heartbeat.DEFAULT_CONFIG, **self.DEFAULT_CONFIG, **configs}
        interval: float = config["heartbeat_interval_ms"]
        timeout: float = config["session_timeout_ms"]
        if interval >= timeout:
            raise KafkaConfigurationError(
                f"heartbeat_interval_ms ({interval}) must be less than session_timeout_ms ({timeout}), and should be "
                "at most a third of it",
                option="heartbeat_interval_ms",
            )
        self.interval = interval / 1000
        """Seconds between heartbeats."""
        self.timeout = timeout / 1000
        """Seconds without a heartbeat after which the coordinator removes the member."""
        self.poll_interval: float = config["max_poll_interval_ms"] / 1000
        """The longest time between two calls of poll(), in seconds."""
        self._clock = clock
        self.last_send = self.last_receive = self.last_failure = _NEVER
        self.last_reset = self.last_poll = clock.monotonic()

    # Limits of the coordinator…

    def sent_heartbeat(self) -> None:
        """Record that a heartbeat is sent."""
        self.last_send = self._clock.monotonic()

    def received_heartbeat(self) -> None:
        """Record a response of the coordinator."""
        self.last_receive = self._clock.monotonic()

    def fail_heartbeat(self) -> None:
        """Record a failure; the next heartbeat is due at once."""
        self.last_failure = self._clock.monotonic()
        self.last_send = _NEVER
        self.last_reset = min(self.last_reset, self.last_failure - self.interval)

    def reset_session_timeout(self) -> None:
        """Restart all limits, as after joining."""
        self.last_reset = self.last_receive = self._clock.monotonic()

    def ttl(self) -> float:
        """Seconds until the next heartbeat is due; 0 for now."""
        return max(0.0, max(self.last_send, self.last_reset) + self.interval - self._clock.monotonic())

    def should_heartbeat(self) -> bool:
        """Whether a heartbeat is due."""
        return self.ttl() == 0

    def session_left(self) -> float:
        """Seconds until the coordinator removes this member, by the last response."""
        return max(0.0, max(self.last_receive, self.last_reset) + self.timeout - self._clock.monotonic())

    def session_expired(self) -> bool:
        """Whether the coordinator has removed this member, by the last response."""
        return self.session_left() == 0

    def seconds_since_answer(self) -> float:
        """Seconds since the coordinator last answered, or since the member began."""
        return self._clock.monotonic() - max(self.last_receive, self.last_reset)

    # The names of kafka-python 2.x.

    session_timeout_expired = session_expired
    time_to_next_heartbeat = ttl

    def reset_timeouts(self) -> None:
        """Restart all limits, as after joining."""
        self.reset_session_timeout()
        self.poll()

    # The limit of the application…

    def poll(self) -> None:
        """Record that the application called poll()."""
        self.last_poll = self._clock.monotonic()

    def poll_left(self) -> float:
        """Seconds until the application counts as stuck."""
        return max(0.0, self.last_poll + self.poll_interval - self._clock.monotonic())

    def poll_timeout_expired(self) -> bool:
        """Whether the application counts as stuck."""
        return self.poll_left() == 0


class PollTimer:
    """Notices that an application neither calls poll() nor takes a record for max_poll_interval_ms."""

    def __init__(
        self,
        loop: Loop,
        heartbeat: Heartbeat,
        is_active: Callable[[], bool],
        notify: Callable[[], object],
        on_timeout: Callable[[], object],
        last_taken: Callable[[], object] = lambda: None,
    ) -> None:
        self._loop = loop
        self._heartbeat = heartbeat
        self._is_active = is_active
        self._notify = notify
        self._on_timeout = on_timeout
        self._last_taken = last_taken
        self._seen_taken: object = None
        self._timer: Timer | None = None
        self.notified = False
        """Whether the application was notified and has not called poll() since."""

    def arm(self) -> None:
        """Check before the interval ends, unless that is planned."""
        if self._timer is None:
            heartbeat = self._heartbeat
            wait = min(heartbeat.poll_left(), heartbeat.poll_interval / _LOOKS)
            self._timer = self._loop.call_later(max(wait, _SHORTEST_WAIT), self._check)

    def cancel(self) -> None:
        """Check no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check(self) -> None:
        self._timer = None
        if not self._is_active():
            return
        taken = self._last_taken()
        if taken is not None and taken != self._seen_taken:
            self._seen_taken = taken
            self._heartbeat.poll()
        if not self._heartbeat.poll_timeout_expired():
            self.notified = False
            self.arm()
        elif not self.notified:
            # A poll() that waits for records longer than the interval is not stuck: it serves when notified.
            self.notified = True
            self._notify()
            grace = min(_LIVENESS_GRACE, self._heartbeat.poll_interval / 10)
            self._timer = self._loop.call_later(grace, self._check)
        else:
            self.notified = False
            self._on_timeout()


class HeartbeatSender(Protocol):
    """A member of a group, as far as the task that sends its heartbeats needs it."""

    loop: Loop
    group_id: str
    group_instance_id: str | None
    heartbeat: Heartbeat
    retry_backoff: float

    @property
    def generation(self) -> Generation:
        """The generation that heartbeats are sent in."""

    async def ask(self, request: Request[ResponseT], use: str, timeout: float | None = None) -> ResponseT:
        """Send a request to the coordinator."""

    def heartbeat_answered(self, seconds: float) -> None:
        """Record how long the coordinator took."""

    def heartbeat_refused(self, error: KafkaError, generation: Generation) -> None:
        """React to an error code in the response."""

    def coordinator_dead(self, error: object) -> None:
        """Look the coordinator up again."""


class HeartbeatTask:
    """Sends the heartbeats of one member; while it is disabled it has no timer."""

    def __init__(self, coordinator: HeartbeatSender) -> None:
        self._coordinator = coordinator
        self._log = GroupLog(coordinator.group_id)
        self._timer: Timer | None = None
        self._enabled = False
        self._under_way = False
        self._warned_of: float | None = None
        """The time of the last response before the outage that the log has a warning of."""

    def disable(self) -> None:
        """Send no more, as while the member joins: the coordinator waits for its requests then."""
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
        if not self._enabled:  # it became due in the pass in which the member left
            self._under_way = False
            return
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
            coordinator.heartbeat_answered(coordinator.loop.time() - sent)
            if response.error_code:
                error: KafkaError = for_code(response.error_code)("the coordinator refused a heartbeat")
                coordinator.heartbeat_refused(error, generation)
        except KafkaError as lost:
            if heartbeat.session_timeout_expired() and self._warned_of != heartbeat.last_receive:
                self._warned_of = heartbeat.last_receive
                self._log.warning(
                    "the coordinator has not answered a heartbeat for %.0f s (session_timeout_ms), so it may "
                    "have given the partitions of this member to other members: %s",
                    heartbeat.timeout,
                    lost,
                )
            else:
                self._log.info("a heartbeat failed and is sent again: %s", lost)
            coordinator.coordinator_dead(lost)
            await coordinator.loop.sleep(coordinator.retry_backoff)
            heartbeat.fail_heartbeat()
        finally:
            self._under_way = False
        if self._enabled:
            self._arm()
