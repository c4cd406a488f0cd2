"""What all connections of a client share: the loop, the settings, names, workers, and who counts bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kafka._runtime.loop import Loop
from kafka._runtime.timers import Backoff
from kafka.net.sockets import Resolver

if TYPE_CHECKING:
    from kafka.net.environment import Environment
    from kafka.net.link import Link
    from kafka.net.settings import ConnectionSettings

__all__ = ["LinkContext"]


class LinkContext:
    """What all connections of a client share."""

    def __init__(
        self,
        loop: Loop,
        settings: ConnectionSettings,
        environment: Environment,
    ) -> None:
        self.loop = loop
        self.settings = settings
        self.workers = environment.workers
        self.resolver = Resolver(loop, environment.lookup_workers, environment.lookup, environment.reverse)
        self.make_socket = environment.make_socket
        self.backoff = Backoff(settings.reconnect_backoff, settings.reconnect_backoff_max, loop.rng)
        self.scratch = memoryview(bytearray(settings.chunk_size))
        self.ancient: dict[tuple[str, int], tuple[int, ...]] = {}
        """Releases of brokers that cannot be asked, found by probing."""
        self.modern = False
        """Whether a broker was asked and has answered: one that hangs up now is not ancient, it is in trouble."""
        self.reported: dict[tuple[str, int], tuple[str, float]] = {}
        """Address -> what the log said last of a failure there, and when: several connections fail for one reason."""
        self.told_of_clear_text = False
        """Whether the log has said that the password is not encrypted on its way."""
        self.on_reply: Callable[[Link, str, float, int], object] | None = None
        self.on_state: Callable[[Link], object] | None = None
        self.on_bytes: Callable[[Link, int, int], object] | None = None
        """Told of bytes sent and received, for metrics."""
