"""The outside world as a client sees it: clocks, chance, selectors, sockets, names, worker threads.

One object, so that all of it can be replaced at once: `kafka.testing.MemoryNetwork.environment`
gives a world in memory where time jumps and nothing blocks.
"""

from __future__ import annotations

import selectors
import socket
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

from kafka._runtime.clock import SYSTEM_CLOCK, Clock
from kafka._runtime.loop import Loop
from kafka._runtime.workers import ThreadWorkers, Workers
from kafka.errors import KafkaConfigurationError
from kafka.net.resolver import Lookup

__all__ = ["Environment"]


def _no_selector(factory: object, why: str) -> KafkaConfigurationError:
    sentence = f"selector must be a class as in the module selectors, not {factory!r}: {why}"
    return KafkaConfigurationError(sentence, option="selector")


class Environment:
    """The machine that the program runs on, unless something else is given for a part of it.

    >>> loop = Environment(rng=Random(1)).make_loop()
    >>> loop.close()
    """

    def __init__(
        self,
        *,
        clock: Clock = SYSTEM_CLOCK,
        rng: Random | None = None,
        selector: Callable[[], selectors.BaseSelector] | None = None,
        make_socket: Callable[..., Any] = socket.socket,
        lookup: Lookup = socket.getaddrinfo,
        reverse: Callable[[tuple[Any, ...], int], tuple[str, str]] = socket.getnameinfo,
        workers: Workers | None = None,
    ) -> None:
        self.clock = clock
        self.rng = rng
        self.selector = selector
        self.make_socket = make_socket
        self.lookup = lookup
        self.reverse = reverse
        self.workers = workers or ThreadWorkers()
        # A token endpoint or a directory service that is slow must not hold up the lookup of names.
        self.codec_workers = workers or ThreadWorkers(name="kafka-codec")
        self.lookup_workers = workers or ThreadWorkers(name="kafka-lookup")

    def make_loop(self, selector: Callable[[], selectors.BaseSelector] = selectors.DefaultSelector) -> Loop:
        """Return a loop in this world; `selector` is the configured one."""
        factory = self.selector or selector
        try:
            made: Any = factory()
        except TypeError as error:
            raise _no_selector(factory, str(error)) from error
        # By its calls, not by its class: eventlet imports `selectors` a second time.
        if isinstance(made, type) or not all(map(partial(hasattr, made), ("register", "modify", "select", "get_map"))):
            raise _no_selector(factory, f"calling it gives {made!r}")
        return Loop(clock=self.clock, rng=self.rng, selector=lambda: made)
