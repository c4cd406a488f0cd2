"""When a member of a group must say that it lives, and when it is taken for dead. No I/O, no timers: a clock and sums.

Three limits: a heartbeat is due every heartbeat_interval_ms; a member of which the coordinator heard
nothing for session_timeout_ms is put out of the group; one that does not call poll() for
max_poll_interval_ms leaves by itself, because it is stuck.
"""

from __future__ import annotations

from typing import Any, Final

from kafka._runtime.clock import SYSTEM_CLOCK, Clock
from kafka.config import Config, defaults, resolve
from kafka.errors import KafkaConfigurationError

__all__ = ["Heartbeat"]

_NEVER: Final = float("-inf")


class Heartbeat:
    """The timers of a group's member. Keyword arguments are the options in ``Heartbeat.DEFAULT_CONFIG``.

    >>> heartbeat = Heartbeat(heartbeat_interval_ms=3000, session_timeout_ms=10000)
    >>> heartbeat.should_heartbeat(), heartbeat.session_expired()
    (False, False)
    """

    DEFAULT_CONFIG: Final[dict[str, Any]] = defaults("heartbeat")

    def __init__(self, *, config: Config | None = None, clock: Clock = SYSTEM_CLOCK, **configs: Any) -> None:
        self.config = config if config is not None else resolve("heartbeat", configs)
        if self.config["heartbeat_interval_ms"] >= self.config["session_timeout_ms"]:
            raise KafkaConfigurationError(
                f"heartbeat_interval_ms ({self.config['heartbeat_interval_ms']}) must be less than session_timeout_ms "
                f"({self.config['session_timeout_ms']}), and should be at most a third of it",
                option="heartbeat_interval_ms",
            )
        self.interval = self.config.seconds("heartbeat_interval_ms")
        """Seconds between heartbeats."""
        self.timeout = self.config.seconds("session_timeout_ms")
        """Seconds of silence after which the coordinator gives the member up."""
        self.poll_interval = self.config.seconds("max_poll_interval_ms")
        """Seconds between two calls of poll() at most."""
        self._clock = clock
        self.last_send = self.last_receive = self.last_failure = _NEVER
        self.last_reset = self.last_poll = clock.monotonic()

    # Towards the coordinator…

    def sent_heartbeat(self) -> None:
        """Take note that a heartbeat goes out."""
        self.last_send = self._clock.monotonic()

    def received_heartbeat(self) -> None:
        """Take note that the coordinator answered."""
        self.last_receive = self._clock.monotonic()

    def fail_heartbeat(self) -> None:
        """Take note that it did not; the next one is due at once."""
        self.last_failure = self._clock.monotonic()
        self.last_send = _NEVER
        self.last_reset = min(self.last_reset, self.last_failure - self.interval)

    def reset_session_timeout(self) -> None:
        """Begin anew, as after joining."""
        self.last_reset = self.last_receive = self._clock.monotonic()

    def ttl(self) -> float:
        """Seconds until the next heartbeat is due; 0 for now."""
        return max(0.0, max(self.last_send, self.last_reset) + self.interval - self._clock.monotonic())

    def should_heartbeat(self) -> bool:
        """Whether a heartbeat is due."""
        return self.ttl() == 0

    def session_left(self) -> float:
        """Seconds until the coordinator gives this member up, as far as is known here."""
        return max(0.0, max(self.last_receive, self.last_reset) + self.timeout - self._clock.monotonic())

    def session_expired(self) -> bool:
        """Whether the coordinator has given this member up by now."""
        return self.session_left() == 0

    def seconds_since_answer(self) -> float:
        """Seconds since the coordinator last answered, or since the member began."""
        return self._clock.monotonic() - max(self.last_receive, self.last_reset)

    # Towards the application…

    def poll(self) -> None:
        """Take note that the application called poll()."""
        self.last_poll = self._clock.monotonic()

    def poll_left(self) -> float:
        """Seconds until the application is taken to be stuck."""
        return max(0.0, self.last_poll + self.poll_interval - self._clock.monotonic())

    def poll_timeout_expired(self) -> bool:
        """Whether the application is taken to be stuck."""
        return self.poll_left() == 0
