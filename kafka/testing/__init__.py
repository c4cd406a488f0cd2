"""Test doubles for programs that speak Kafka's protocol: a network in memory, a scripted broker, a clock that jumps.

`MemoryNetwork` replaces sockets, name resolution and the clock of a client; the client's code is the code that runs in
production. `ScriptedBroker` answers each request as a test prescribes, also with errors, silence or a closed
connection. To test an application against a broker that stores records, use `kafka.broker`.

>>> network = MemoryNetwork()
>>> broker = ScriptedBroker(network)
>>> broker.on("Metadata", {"brokers": [broker.node(1)], "controller_id": 1})
>>> from kafka import KafkaClient
>>> client = KafkaClient(bootstrap_servers="broker", environment=network.environment())
>>> client.cluster.controller.host
'broker'
>>> client.close()
>>> network.open_sockets
[]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka._lazy import lazy_names

if TYPE_CHECKING:
    from kafka.testing.memory import (
        FakeClock,
        MemoryListener,
        MemoryNetwork,
        MemorySelector,
        MemorySocket,
        NothingWillHappenError,
    )
    from kafka.testing.scripted_broker import HANG_UP, SILENCE, ScriptedBroker, Session

__all__ = [
    "HANG_UP",
    "SILENCE",
    "FakeClock",
    "MemoryListener",
    "MemoryNetwork",
    "MemorySelector",
    "MemorySocket",
    "NothingWillHappenError",
    "ScriptedBroker",
    "Session",
]

_MODULES = {
    "memory": "FakeClock MemoryListener MemoryNetwork MemorySelector MemorySocket NothingWillHappenError",
    "scripted_broker": "HANG_UP SILENCE ScriptedBroker Session",
}

if not TYPE_CHECKING:  # checkers report a name that is not here
    __getattr__, __dir__ = lazy_names(__name__, _MODULES)
