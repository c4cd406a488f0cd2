"""The two brokers that answer with errors, and what each client makes of them."""

from __future__ import annotations

import itertools
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any, Protocol

from kafka import KafkaProducer
from kafka.broker import Broker
from kafka.errors import Code
from test.real.golden import Golden
from test.real.kafka_process import KafkaCluster
from test.real.releases import NEWEST

from .judges import JUDGES, all_judges
from .proxy import ErrorProxy
from .rows import COMMANDS, Row

TABLE = Path(__file__).parents[4] / "docs" / "injected_errors.csv"
HEADINGS = ["API", "Error", "The program asks to", *JUDGES]
TOPIC = "events"
NOT_SENT = "not sent"
_numbers = itertools.count(1)


class Fails(Protocol):
    """`ErrorProxy.fail` and `Broker.fail`; the result's `used` tells how often it was."""

    def __call__(self, api: str, code: int, times: int) -> AbstractContextManager[Any]: ...


class Side:
    """A broker, and the clients that are connected to it."""

    def __init__(self, fail: Fails, judges: dict[str, Any]) -> None:
        self.fail = fail
        self.judges = judges


class Sides:
    """Apache Kafka behind the proxy, and the embedded broker."""

    def __init__(self, stack: ExitStack) -> None:
        proxy = stack.enter_context(ErrorProxy(stack.enter_context(Golden(NEWEST))))
        kafka = stack.enter_context(
            KafkaCluster(NEWEST, listeners=["FRONT:PLAINTEXT"], advertised_ports={1: proxy.port}, properties=QUICK)
        )
        proxy.target = kafka.address(1, "FRONT")
        kafka.create_topic(TOPIC)
        servers = f"127.0.0.1:{proxy.port}"
        self.kafka = Side(proxy.fail, all_judges(stack, servers))
        broker = stack.enter_context(Broker(topics=[TOPIC]))
        self.embedded = Side(broker.fail, all_judges(stack, broker.bootstrap_servers))
        for where in (servers, broker.bootstrap_servers):
            fill(where)
        for side in (self.kafka, self.embedded):  # a client that has just been started takes its time
            for name, judge in side.judges.items():
                assert judge.told("join", TOPIC, f"first-{next(_numbers)}") == "ok", name


#: The embedded broker has these defaults.
QUICK = {"group.initial.rebalance.delay.ms": "0"}


def line(row: Row, told: dict[str, str]) -> list[str]:
    """Return a line of the table."""
    return [row.api, f"{Code(row.code).name} ({row.code})", COMMANDS[row.command], *told.values()]


def fill(servers: str) -> None:
    """Write the records that are read."""
    with KafkaProducer(bootstrap_servers=servers) as producer:
        for value in (b"a", b"b", b"c"):
            producer.send(TOPIC, value, partition=0).get(30)


def reactions(side: Side, row: Row, names: list[str] | None = None) -> dict[str, str]:
    """Return what each client's application is told."""
    told = {}
    for name in names or list(side.judges):
        with side.fail(row.api, row.code, times=row.times) as fault:
            said = side.judges[name].told(row.command, TOPIC, f"judged-{next(_numbers)}")
            told[name] = said if fault.used else NOT_SENT
    return told
