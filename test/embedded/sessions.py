"""Sessions of a group's members that pass by the broker's clock."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafka.broker import Broker

__all__ = ["SESSION", "let_sessions_pass"]

#: Seconds; of the machine's time this is more than a busy one stands still.
SESSION = 10
_PATIENCE = 20.0


def let_sessions_pass(broker: Broker, client_id: str | None = None, *, times: int = 3) -> None:
    """Let so many sessions pass at the broker, as fast as a client's heartbeats come (or anybody's).

    A member whose heartbeats do not come is out; a machine that stands still for a while only makes this longer.
    """

    def heartbeats() -> int:
        return sum(seen.name.endswith("Heartbeat") and client_id in {None, seen.client_id} for seen in broker.requests)

    deadline = time.monotonic() + _PATIENCE
    for _ in range(4 * times):
        wanted = heartbeats() + 2
        while heartbeats() < wanted:
            assert time.monotonic() < deadline, "no heartbeats"
            time.sleep(0.002)
        broker.clock.advance(SESSION / 4)
