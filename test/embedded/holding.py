"""Requests that wait at the broker until a test lets them go: no machine is so slow that they go by themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafka.broker import Broker

__all__ = ["held_up"]

# Of the broker's time; less than what transactions and sessions have by default.
_SECONDS = 25.0


@contextmanager
def held_up(broker: Broker, api: str, node: int | None = None) -> Iterator[Callable[[], None]]:
    """Keep requests of an API waiting until they are let go, or until the end of the block."""
    order = broker.delay(api, _SECONDS, node=node)

    def let_go() -> None:
        order.remove()
        for _ in range(3):  # what had come before has begun to wait when these have had their turns
            broker.run(lambda _cluster: None)
        broker.clock.advance(_SECONDS + 1)

    try:
        yield let_go
    finally:
        let_go()
