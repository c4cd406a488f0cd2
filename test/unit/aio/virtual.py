"""An asyncio loop under the virtual clock: it watches sockets in memory, and sleeping moves the clock."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine, Mapping
from itertools import count
from typing import Any, TypeVar

from kafka.aio.lifecycle import Lifecycle
from kafka.testing import MemoryNetwork, MemorySelector

__all__ = ["VirtualLoop", "live_in", "run"]

T = TypeVar("T")

_FDS = count(3_000_000)


class PollableSelector(MemorySelector):
    """A selector over sockets in memory that another one can watch."""

    def __init__(self, network: MemoryNetwork) -> None:
        super().__init__(network)
        self.fd = next(_FDS)
        self.known = network
        SELECTORS[self.fd] = self

    def fileno(self) -> int:
        return self.fd

    @property
    def is_ready(self) -> bool:
        for key in tuple(self._keys.values()):
            sock = self.known.by_fd.get(key.fd)
            if sock is not None and sock.ready() & key.events:
                return True
        return False

    def close(self) -> None:
        SELECTORS.pop(self.fd, None)
        super().close()


SELECTORS: dict[int, PollableSelector] = {}


class _Selector(selectors.BaseSelector):
    """What the event loop watches: `PollableSelector`s. Real descriptors are never ready."""

    def __init__(self, network: MemoryNetwork) -> None:
        self._network = network
        self._keys: dict[int, selectors.SelectorKey] = {}

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        fd = fileobj if isinstance(fileobj, int) else fileobj.fileno()
        key = self._keys[fd] = selectors.SelectorKey(fileobj, fd, events, data)
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys.pop(fileobj if isinstance(fileobj, int) else fileobj.fileno())

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = [
            (key, selectors.EVENT_READ)
            for fd, key in self._keys.items()
            if (inner := SELECTORS.get(fd)) is not None and inner.is_ready
        ]
        if not ready:
            assert timeout is not None, "nothing is ready and no timer is set: this would wait for ever"
            if timeout > 0:
                self._network.clock.advance(timeout)
        return ready

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return {key.fileobj: key for key in self._keys.values()}

    def get_key(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys[fileobj if isinstance(fileobj, int) else fileobj.fileno()]

    def close(self) -> None:
        self._keys.clear()


class VirtualLoop(asyncio.SelectorEventLoop):
    """See the head of this file. `turns` counts how often it looked for something to do."""

    def __init__(self, network: MemoryNetwork) -> None:
        super().__init__(_Selector(network))
        self._clock = network.clock
        self._clock_resolution = 1e-9
        self.turns = 0

    def time(self) -> float:
        return self._clock.monotonic()

    def _run_once(self) -> None:
        self.turns += 1
        super()._run_once()  # type: ignore[misc]


def live_in(network: MemoryNetwork, client: Any) -> Any:
    """Have a client that is not started live on a network in memory."""
    assert isinstance(client, Lifecycle)
    environment = network.environment()
    environment.selector = lambda: PollableSelector(network)
    client._environment = environment
    return client


def run(network: MemoryNetwork, main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in virtual time; as `asyncio.run`, and nothing may be left running."""
    loop = VirtualLoop(network)
    asyncio.set_event_loop(loop)
    try:
        task = loop.create_task(main)
        result = loop.run_until_complete(task)
        left = [each for each in asyncio.all_tasks(loop) if not each.done()]
        assert not left, f"tasks are left: {left}"
        return result
    finally:
        for each in asyncio.all_tasks(loop):
            each.cancel()
        loop.run_until_complete(loop.shutdown_asyncgens())
        asyncio.set_event_loop(None)
        loop.close()
