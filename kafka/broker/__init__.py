"""A Kafka broker in pure Python, for tests, for development, for trying things out.

>>> from kafka.broker import Broker
>>> with Broker(topics={"events": 3}) as broker:
...     broker.bootstrap_servers.startswith("127.0.0.1:")
True

It speaks real TCP on loopback and the protocol of every Kafka since 0.8; any client can talk to it. See
:class:`Broker` for what a test can have it do.

The names below are loaded when they are first used (PEP 562): the pytest plugin lives in this package and is imported
by every test run of an environment that has it, with or without a broker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka._lazy import lazy_names

if TYPE_CHECKING:
    from kafka.broker.broker import Broker as Broker
    from kafka.broker.cluster.thread import Snapshot as Snapshot
    from kafka.broker.faults import CLOSE as CLOSE
    from kafka.broker.faults import NO_REPLY as NO_REPLY
    from kafka.broker.faults import Exchange as Exchange
    from kafka.broker.faults import SeenRequest as SeenRequest
    from kafka.broker.sharing.share_partition import ShareRecord as ShareRecord

_MODULES = {
    "broker": "Broker",
    "cluster.thread": "Snapshot",
    "faults": "CLOSE Exchange NO_REPLY SeenRequest",
    "sharing.share_partition": "ShareRecord",
}

__all__ = ["CLOSE", "NO_REPLY", "Broker", "Exchange", "SeenRequest", "ShareRecord", "Snapshot"]

if not TYPE_CHECKING:  # checkers report a name that is not here
    __getattr__, __dir__ = lazy_names(__name__, _MODULES)
