"""A Kafka broker in pure Python, for tests, for development, for trying things out.

>>> from kafka.broker import Broker
>>> with Broker(topics={"events": 3}) as broker:
...     broker.bootstrap_servers.startswith("127.0.0.1:")
True

It speaks real TCP on loopback and the protocol of every Kafka since 0.8; any client can talk to it. See
:class:`Broker` for what a test can have it do.
"""

from __future__ import annotations

from kafka.broker.broker import Broker
from kafka.broker.faults import CLOSE, NO_REPLY, Exchange, SeenRequest

__all__ = ["CLOSE", "NO_REPLY", "Broker", "Exchange", "SeenRequest"]
